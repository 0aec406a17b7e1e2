"""pgmpy: belief propagation over its junction tree, model and tree rebuilt for each parameter set, as it asks for."""

import numpy as np

from benchmarks.peers.served import Variant, tables


def variants(model, only=None):
    """One."""
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.inference import BeliefPropagation
    from pgmpy.models import DiscreteMarkovNetwork

    names = [[f"x{i}" for i in clique] for clique in model.cliques]
    # Not divided by anything: it takes messages for settled that differ by 1e-8, however small they are.
    sets = [[np.exp(array) for array in tables(model, row)] for row in model.theta]

    def call(number):
        field = DiscreteMarkovNetwork()
        field.add_nodes_from([f"x{i}" for i in range(len(model.sizes))])
        for clique in names:
            field.add_edges_from((one, other) for place, one in enumerate(clique) for other in clique[:place])
        for clique, array in zip(names, sets[number], strict=True):
            field.add_factors(DiscreteFactor(clique, array.shape, array))
        tree = BeliefPropagation(field)
        tree.calibrate()
        beliefs = tree.get_clique_beliefs()
        found = []
        for clique in names:
            belief = next(one for cluster, one in beliefs.items() if set(clique) <= set(cluster))
            rest = [name for name in belief.variables if name not in clique]
            found.append(belief.marginalize(rest, inplace=False) if rest else belief)
        return found

    def read(result):
        found = []
        for belief, clique in zip(result, names, strict=True):
            array = np.transpose(belief.values, [belief.variables.index(name) for name in clique])
            found.append(array / array.sum())
        return found, None

    return [Variant("belief propagation", call, read)]
