"""Serve exact marginals by a peer library to `benchmarks.inference`, from the peer's own virtual environment.

Run as `PYTHON marginals.py {mbi,mbi64,pyagrum}`; speaks one JSON document per line. `{"load": FILE}` prepares
the model of an .npz file (sizes, cliques, one row of log-potentials per parameter set), `{"calls": n}` times n calls,
each with the next parameter set, and answers `{"seconds": [fastest per variant], "names": [...]}`; `{"check": FILE}`
writes the marginals of the first set. Needs nothing of dpgm.
"""

import json
import math
import sys
import time
import warnings

import numpy as np


def load(path):
    """sizes, cliques as index tuples, parameter sets (sets, cells)."""
    with np.load(path) as file:
        cliques = [tuple(map(int, clique.split(","))) for clique in file["cliques"]]
        return list(map(int, file["sizes"])), cliques, file["theta"]


def tables(sizes, cliques, row):
    """One parameter set, cut into one array per clique."""
    found, at = [], 0
    for clique in cliques:
        shape = [sizes[i] for i in clique]
        found.append(row[at : at + math.prod(shape)].reshape(shape))
        at += math.prod(shape)
    return found


def mbi_variants(sizes, cliques, theta, wide):
    """mbi's message-passing oracles, jitted and warm, on device arrays that are ready."""
    import jax

    jax.config.update("jax_enable_x64", wide)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mbi
        from mbi import marginal_oracles

    domain = mbi.Domain([f"x{i}" for i in range(len(sizes))], sizes)
    names = [tuple(f"x{i}" for i in clique) for clique in cliques]
    sets = []
    for row in theta:
        arrays = dict(zip(names, tables(sizes, cliques, row), strict=True))
        factors = {
            name: mbi.Factor(domain.project(name), jax.numpy.asarray(array, dtype="float64" if wide else "float32"))
            for name, array in arrays.items()
        }
        sets.append(mbi.CliqueVector(domain, names, factors))
    jax.block_until_ready(sets)
    variants = {}
    for name in ("fast", "implicit", "hugin", "shafer_shenoy", "stable"):
        oracle = jax.jit(getattr(marginal_oracles, f"message_passing_{name}"))

        def call(number, oracle=oracle):
            return jax.block_until_ready(oracle(sets[number]))

        try:
            call(0)
        except Exception as error:
            print(f"mbi {name}: {error!r}", file=sys.stderr)
            continue
        variants[name] = (call, lambda result: [np.asarray(result[name].datavector(flatten=False)) for name in names])
    return variants


def pyagrum_variants(sizes, cliques, theta):
    """A Shafer-Shenoy inference on the Markov field, rebuilt for each parameter set (else it answers the old one)."""
    import pyagrum

    model = pyagrum.MarkovRandomField()
    for i, size in enumerate(sizes):
        model.add(pyagrum.RangeVariable(f"x{i}", "", 0, size - 1))
    factors = [model.addFactor([f"x{i}" for i in clique]) for clique in cliques]
    # pyAgrum counts the first variable fastest.
    sets = [
        [np.exp(array - array.max()).reshape(-1, order="F") for array in tables(sizes, cliques, row)] for row in theta
    ]
    targets = [{f"x{i}" for i in clique} for clique in cliques]

    def call(number):
        for factor, flat in zip(factors, sets[number], strict=True):
            factor.fillWith(flat)
        inference = pyagrum.ShaferShenoyMRFInference(model)
        for target in targets:
            inference.addJointTarget(target)
        inference.makeInference()
        return inference, [inference.jointPosterior(target) for target in targets]

    def read(result):
        found = []
        for posterior, clique in zip(result[1], cliques, strict=True):
            axes = [posterior.names[::-1].index(f"x{i}") for i in clique]
            found.append(posterior.toarray().transpose(axes))
        return found

    return {"shafer-shenoy": (call, read)}


def main():
    """Answer requests until the input ends."""
    peer = sys.argv[1]
    variants, sets = {}, 1
    for line in sys.stdin:
        request = json.loads(line)
        answer = {}
        if "load" in request:
            sizes, cliques, theta = load(request["load"])
            sets = len(theta)
            if peer == "pyagrum":
                variants = pyagrum_variants(sizes, cliques, theta)
            else:
                variants = mbi_variants(sizes, cliques, theta, peer == "mbi64")
        elif "calls" in request:
            answer = {"names": list(variants), "seconds": []}
            for call, _ in variants.values():
                best = math.inf
                for number in range(request["calls"]):
                    start = time.perf_counter()
                    call(number % sets)
                    best = min(best, time.perf_counter() - start)
                answer["seconds"].append(best)
        else:
            found = {
                name: np.concatenate([part.ravel() for part in read(call(0))])
                for name, (call, read) in variants.items()
            }
            np.savez(request["check"], **found)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
