"""Serve pgmax's loopy BP on a grid to `benchmarks.loopy`, from pgmax's own virtual environment. Needs nothing of dpgm.

Run as `PYTHON pgmax_grid.py`: one line in (a number of labels), one line out (milliseconds per call and the marginal of
the first variable).
"""

import json
import sys
import time

import numpy as np

ROWS = COLUMNS = 10
SWEEPS = 50
CALLS = 20


def edges():
    """The grid's edges in the order of `dpgm_core.structure.ready_made.grid`."""
    found = []
    for i in range(ROWS * COLUMNS):
        if (i + 1) % COLUMNS:
            found.append((i, i + 1))
        if i + COLUMNS < ROWS * COLUMNS:
            found.append((i, i + COLUMNS))
    return found


def tables(size):
    """One Gaussian table of log-potentials per edge."""
    return np.random.default_rng(size).normal(size=(len(edges()), size, size))


def fastest(call):
    """The shortest of CALLS calls, milliseconds."""
    best = float("inf")
    for _ in range(CALLS):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return 1e3 * best


def main():
    """Answer until the input ends."""
    import types

    import jax
    import jax.extend.backend

    # pgmax 0.6.1 looks for a module that current JAX no longer has.
    jax.lib.xla_bridge = types.SimpleNamespace(get_backend=jax.extend.backend.get_backend)
    from pgmax import fgraph, fgroup, infer, vgroup

    built = {}
    for line in sys.stdin:
        size = int(line)
        if size not in built:
            grid = vgroup.NDVarArray(num_states=size, shape=(ROWS, COLUMNS))
            graph = fgraph.FactorGraph(variable_groups=[grid])
            scopes = [[grid[divmod(i, COLUMNS)], grid[divmod(j, COLUMNS)]] for i, j in edges()]
            graph.add_factors(
                fgroup.PairwiseFactorGroup(variables_for_factors=scopes, log_potential_matrix=tables(size))
            )
            bp = infer.BP(graph.bp_state, temperature=1.0)
            arrays = bp.init()
            run = jax.jit(lambda state, bp=bp: bp.run(state, num_iters=SWEEPS, damping=0.0))
            marginals = infer.get_marginals(bp.get_beliefs(run(arrays)))[grid]
            built[size] = (run, arrays, np.asarray(marginals)[0, 0].tolist())
        run, arrays, marginal = built[size]
        milliseconds = fastest(lambda run=run, arrays=arrays: jax.block_until_ready(run(arrays)))
        print(json.dumps([milliseconds, marginal]), flush=True)


if __name__ == "__main__":
    main()
