"""pyAgrum: a Shafer-Shenoy inference on the Markov field, rebuilt for each set, else it answers the old one"""

from benchmarks.peers.served import Variant, weights


def variants(model, only=None):
    """One."""
    import pyagrum

    field = pyagrum.MarkovRandomField()
    for i, size in enumerate(model.sizes):
        field.add(pyagrum.RangeVariable(f"x{i}", "", 0, size - 1))
    factors = [field.addFactor([f"x{i}" for i in clique]) for clique in model.cliques]
    # pyAgrum counts the first variable fastest.
    sets = [[array.reshape(-1, order="F") for array in weights(model, row)] for row in model.theta]
    targets = [{f"x{i}" for i in clique} for clique in model.cliques]

    def call(number):
        for factor, flat in zip(factors, sets[number], strict=True):
            factor.fillWith(flat)
        inference = pyagrum.ShaferShenoyMRFInference(field)
        for target in targets:
            inference.addJointTarget(target)
        inference.makeInference()
        return inference, [inference.jointPosterior(target) for target in targets]

    def read(result):
        found = []
        for posterior, clique in zip(result[1], model.cliques, strict=True):
            axes = [posterior.names[::-1].index(f"x{i}") for i in clique]
            found.append(posterior.toarray().transpose(axes))
        return found, None

    return [Variant("shafer-shenoy", call, read)]
