"""How each library of `benchmarks.inference` answers a model; each is imported where it is used, in its environment.

Every function takes a model and the name of one variant (None: all), and returns variants.
"""

import types
import warnings

import numpy as np

from benchmarks.peers.served import Variant, alone, tables, weights

SWEEPS = 50  # of loopy BP
ORACLES = ("fast", "implicit", "hugin", "shafer_shenoy", "stable")  # mbi's


def executors():
    """Names of executors, "" where the component has no such option yet."""
    from importlib.util import find_spec

    from attrs import fields_dict

    from dpgm_core.inference.junction_tree.engine import JunctionTree

    if "executor" not in fields_dict(JunctionTree):
        return [""]
    return ["numba", "numpy"] if find_spec("numba") else ["numpy"]


def structure_of(model):
    """The structure, made anew: what it remembers of its elimination is not shared."""
    from dpgm_core.domain.domain import Domain
    from dpgm_core.structure.structure import Structure

    domain = Domain.from_sizes({f"x{i}": size for i, size in enumerate(model.sizes)})
    return Structure(domain, [tuple(f"x{i}" for i in clique) for clique in model.cliques])


def engine_of(structure, executor):
    """Compiled for the structure; executor: of `executors`."""
    from dpgm_core.inference.junction_tree.engine import JunctionTree

    return JunctionTree(**({"executor": executor} if executor else {})).compile(structure)


def dpgm(model, only=None):
    """Ours: `junction-tree` with every executor that is here."""
    return _ours(model, only, engine_of, lambda beliefs, marginals: (marginals, beliefs.log_partition))


def dpgm_loopy(model, only=None):
    """Ours: `loopy-bp` with every executor that is here, 50 undamped sweeps, which flood."""
    from dpgm_core.inference.loopy.bp import LoopyBP

    def compiled(structure, executor):
        options = {"executor": executor} if executor else {}
        return LoopyBP(damping=0.0, tolerance=0.0, max_iterations=SWEEPS, **options).compile(structure)

    return _ours(model, only, compiled, lambda beliefs, marginals: (alone(model, marginals), None))


def _ours(model, only, compiled, answer):
    from dpgm_core.structure.tables import Tables

    structure = structure_of(model)
    sets = [Tables(structure, row) for row in model.theta]

    def read(beliefs):
        return answer(beliefs, [beliefs.marginals[clique] for clique in structure.cliques])

    engines = {one or "numpy": compiled(structure, one) for one in executors() if only in (None, one or "numpy")}
    return [
        Variant(name, lambda number, engine=engine: engine.infer(sets[number]), read)
        for name, engine in engines.items()
    ]


def mbi(model, only=None, *, wide):
    """mbi's oracles, jitted and warm, on device arrays that are ready.

    wide: 64 bits, its default is 32; only "NAME plain": that one, not jitted.
    """
    import jax

    jax.config.update("jax_enable_x64", wide)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mbi
        from mbi import marginal_oracles

    domain = mbi.Domain([f"x{i}" for i in range(len(model.sizes))], model.sizes)
    names = [tuple(f"x{i}" for i in clique) for clique in model.cliques]
    kind = "float64" if wide else "float32"
    sets = []
    for row in model.theta:
        arrays = zip(names, tables(model, row), strict=True)
        factors = {
            name: mbi.Factor(domain.project(name), jax.numpy.asarray(array, dtype=kind)) for name, array in arrays
        }
        sets.append(mbi.CliqueVector(domain, names, factors))
    jax.block_until_ready(sets)

    def read(result):
        return [np.asarray(result[name].datavector(flatten=False)) for name in names], None

    def calling(oracle):
        return lambda number: jax.block_until_ready(oracle(sets[number]))

    if only is not None and only.endswith(" plain"):
        return [Variant(only, calling(getattr(marginal_oracles, "message_passing_" + only.split()[0])), read)]
    return [
        Variant(name, calling(jax.jit(getattr(marginal_oracles, f"message_passing_{name}"))), read)
        for name in ORACLES
        if only in (None, name)
    ]


def pgmpy(model, only=None):
    """pgmpy: belief propagation over its junction tree, model and tree rebuilt for each parameter set, as it asks."""
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


def pyagrum(model, only=None):
    """pyAgrum: a Shafer-Shenoy inference on the Markov field, rebuilt for each set, else it answers the old one."""
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


def pgmax(model, only=None):
    """pgmax: 50 undamped flooding sweeps over pairs of attributes of one size, jitted and warm, in 32 bits."""
    import jax
    import jax.extend.backend

    # pgmax 0.6.1 looks for a module that current JAX no longer has.
    jax.lib.xla_bridge = types.SimpleNamespace(get_backend=jax.extend.backend.get_backend)
    from pgmax import fgraph, fgroup, infer, vgroup

    attributes = vgroup.NDVarArray(num_states=model.sizes[0], shape=(len(model.sizes),))
    scopes = [[attributes[i], attributes[j]] for i, j in model.cliques]
    built = []
    for row in model.theta:
        graph = fgraph.FactorGraph(variable_groups=[attributes])
        matrices = np.array(tables(model, row))
        graph.add_factors(fgroup.PairwiseFactorGroup(variables_for_factors=scopes, log_potential_matrix=matrices))
        built.append(infer.BP(graph.bp_state, temperature=1.0))
    bp = built[0]
    arrays = [one.init() for one in built]
    run = jax.jit(lambda state: bp.run(state, num_iters=SWEEPS, damping=0.0))

    def read(result):
        marginals = infer.get_marginals(bp.get_beliefs(result))[attributes]
        return list(np.asarray(marginals, dtype=np.float64)), None

    return [Variant("50 sweeps", lambda number: jax.block_until_ready(run(arrays[number])), read)]
