"""Loopy BP beside pgmax: 50 undamped flooding sweeps of a 10 x 10 grid, potentials changed on every call.

    python -m benchmarks.loopy [--pgmax PYTHON] [--sizes 2,3,4,5]

PYTHON is the interpreter of a virtual environment with `pgmax==0.6.1`; this file is then run there as the peer. Times
are minima over interleaved repetitions, ours in float64, pgmax's in float32, jitted, compilation not counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import numpy as np

ROWS = COLUMNS = 10
SWEEPS = 50
ROUNDS = 5
CALLS = 20


def edges():
    """The grid's edges in the order of `dpgm_core.graphs.grid`."""
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


def ours(size):
    """A timing function and the first variable's marginal."""
    from dpgm_core.domain import Domain
    from dpgm_core.inference.loopy.bp import LoopyBP
    from dpgm_core.structure import Structure
    from dpgm_core.tables import Tables

    domain = Domain.from_sizes({f"x{i}": size for i in range(ROWS * COLUMNS)})
    structure = Structure.grid(domain, ROWS, COLUMNS)
    potentials = Tables(structure, tables(size).reshape(-1))
    engine = LoopyBP(damping=0.0, tolerance=0.0, max_iterations=SWEEPS).compile(structure)
    beliefs = engine.infer(potentials)
    return lambda: fastest(lambda: engine.infer(potentials)), beliefs.marginals["x0", "x1"].sum(axis=1)


def peer():
    """Serve pgmax: one line in (a number of labels), one line out (milliseconds and a marginal)."""
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


def main():
    """Print one line per number of labels."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pgmax", metavar="PYTHON", help="interpreter that has pgmax 0.6.1")
    parser.add_argument("--sizes", default="2,3,4,5", help="numbers of labels")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        peer()
        return
    server = None
    if options.pgmax:
        command = [options.pgmax, __file__, "--peer"]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    print(f"{ROWS} x {COLUMNS} grid, {SWEEPS} sweeps, milliseconds per call")
    for size in map(int, options.sizes.split(",")):
        measure, marginal = ours(size)
        mine, theirs, difference = float("inf"), float("inf"), 0.0
        for _ in range(ROUNDS):
            mine = min(mine, measure())
            if server is not None:
                print(size, file=server.stdin, flush=True)
                milliseconds, other = json.loads(server.stdout.readline())
                theirs = min(theirs, milliseconds)
                difference = float(np.abs(marginal - np.array(other)).max())
        line = f"k = {size}: loopy-bp {mine:6.2f}"
        if server is not None:
            line += f"   pgmax {theirs:6.2f}   ratio {mine / theirs:5.2f}   marginals differ by {difference:.1e}"
        print(line, flush=True)
    if server is not None:
        server.stdin.close()
        server.wait()


if __name__ == "__main__":
    main()
