"""Serve mbi's mirror descent to `mbi_peer.py`, from mbi's own virtual environment. Needs nothing of dpgm.

Run as `PYTHON mbi_worker.py {64,32}`, the floating-point width; answers one JSON document per line, the first
with `{"ready": VERSION}` or `{"missing": WHY}`. `{"problem": FILE, "answer": FILE}` reads sizes, cliques, noisy tables,
their standard deviations, the total (NaN: mbi's own estimate), iterations, stops and oracle from an .npz file, and
writes the log-potentials over mbi's own cliques: of the estimate that users get, and at each of the stops on the way.
"""

import functools
import json
import math
import sys
import time
import warnings

try:
    import numpy as np
except ImportError:  # then so does jax's, and main says it
    np = None


def read(path, mbi):
    """(domain, measurements, file) of a problem; attributes are named by their places."""
    with np.load(path) as file:
        problem = dict(file)
    domain = mbi.Domain([f"x{i}" for i in range(len(problem["sizes"]))], list(map(int, problem["sizes"])))
    measurements, at = [], 0
    for clique, stddev in zip(problem["cliques"], problem["stddev"], strict=True):
        names = tuple(f"x{i}" for i in clique.split(","))
        cells = domain.size(names)
        measurements.append(mbi.LinearMeasurement(problem["values"][at : at + cells], names, stddev=float(stddev)))
        at += cells
    return domain, measurements, problem


def flat(potentials):
    """(names of mbi's cliques, their tables one after another)."""
    names = [",".join(name.removeprefix("x") for name in clique) for clique in potentials.cliques]
    return names, np.concatenate([np.asarray(potentials[clique].datavector()) for clique in potentials.cliques])


def solver(jax, mbi):
    """A function problem file -> answer; what is compiled is kept between calls."""
    estimators = {"default": mbi.estimation.MirrorDescent()}
    seen = set()

    # estimate() shows its iterates every 50 steps only; the same step, as many times as wanted.
    @functools.partial(jax.jit, static_argnums=0)
    def advance(estimator, state, loss, total, steps):
        return jax.lax.fori_loop(0, steps, lambda _, s: estimator._step(s, loss, total), state)

    def solve(path):
        domain, measurements, problem = read(path, mbi)
        total = float(problem["total"])
        if math.isnan(total):
            total = mbi.estimation.minimum_variance_unbiased_total(measurements)
        oracle = str(problem["oracle"])
        if oracle not in estimators:
            named = getattr(mbi.marginal_oracles, f"message_passing_{oracle}")
            estimators[oracle] = mbi.estimation.MirrorDescent(marginal_oracle=named)
        estimator = estimators[oracle]
        shape = (tuple(domain.shape), tuple(problem["cliques"]), oracle)
        compiling = time.process_time()
        if shape not in seen:
            estimator.estimate(domain, measurements, known_total=total, iters=1)
            seen.add(shape)
        start = time.process_time()
        found = estimator.estimate(domain, measurements, known_total=total, iters=int(problem["iterations"]))
        names, default = flat(jax.block_until_ready(found.potentials))
        done = time.process_time()
        potentials = [default]
        if len(problem["stops"]):
            loss = mbi.marginal_loss.from_linear_measurements(measurements, domain)
            state, before = estimator._init(domain, loss, total), 0
            for stop in map(int, problem["stops"]):
                state = advance(estimator, state, loss, total, stop - before)
                potentials.append(flat(state.potentials)[1])
                before = stop
        marginals = [np.asarray(found.project(one.clique).datavector()) / total for one in measurements]
        return {
            "cliques": np.array(names),
            "potentials": np.array(potentials),
            "marginals": np.concatenate(marginals),
            "total": np.array(total),
            # CPU seconds: to compile (first time with a structure), of the estimate, to walk through all stops
            "seconds": np.array([start - compiling, done - start, time.process_time() - done]),
        }

    return solve


def main():
    """Answer requests until the input ends; whatever libraries print goes to stderr."""
    answers, sys.stdout = sys.stdout, sys.stderr
    sys.stdin.readline()
    try:
        import jax

        jax.config.update("jax_enable_x64", sys.argv[1] == "64")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import mbi
            from mbi import marginal_loss  # noqa: F401
        solve = solver(jax, mbi)
        from importlib.metadata import version

        print(json.dumps({"ready": version("mbi")}), file=answers, flush=True)
    except Exception as error:
        print(json.dumps({"missing": f"{type(error).__name__}: {error}"}), file=answers, flush=True)
        return
    for line in sys.stdin:
        request = json.loads(line)
        try:
            np.savez(request["answer"], **solve(request["problem"]))
            answer = {}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
