"""pgmax: 50 undamped flooding sweeps over pairs, jitted and warm, in 32 bits, on arrays that are ready."""

import types

import numpy as np

from benchmarks.peers.served import Variant, tables

SWEEPS = 50


def variants(model, only=None):
    """One; cliques are pairs of attributes of one size."""
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
