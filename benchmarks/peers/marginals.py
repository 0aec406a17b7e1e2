"""Serve marginals by one library to `benchmarks.inference`, from the library's own virtual environment.

Run as `PYTHON -m benchmarks.peers.marginals NAME` in the checkout; speaks one JSON document per line and needs nothing
of dpgm but for ours. `{"load": FILE}` prepares the model of an .npz file and answers `{"names": [...]}`, its variants;
`{"check": FILE, "variant": NAME}` makes a first call, writes marginals and log Z of the first parameter set and answers
its seconds; `{"calls": n, "seconds": s, "variant": NAME}` makes up to n calls within about s seconds, each with the
next parameter set, and answers the fastest; `{"versions": [...]}` answers those of distributions. What fails answers
`{"error": ...}`. With two more arguments, FILE and VARIANT, it makes one call on that model and ends.
"""

import json
import math
import sys
import time
from collections import namedtuple
from functools import partial
from importlib.metadata import distributions

import numpy as np

from benchmarks.peers import libraries
from benchmarks.peers.served import load

#: home: the environment it runs in. variants: model, name of one or None -> variants.
Entry = namedtuple("Entry", "home variants")
CONTESTANTS = {
    "dpgm": Entry("dpgm", libraries.dpgm),
    "mbi": Entry("mbi", partial(libraries.mbi, wide=False)),
    "mbi64": Entry("mbi", partial(libraries.mbi, wide=True)),
    "pyagrum": Entry("pyagrum", libraries.pyagrum),
    "pgmpy": Entry("pgmpy", libraries.pgmpy),
    "dpgm-loopy": Entry("dpgm", libraries.dpgm_loopy),
    "pgmax": Entry("pgmax", libraries.pgmax),
}


def check(variant, path):
    """The first call: seconds, and what it found into a file."""
    start = time.perf_counter()
    result = variant.call(0)
    seconds = time.perf_counter() - start
    marginals, log_z = variant.read(result)
    flat = np.concatenate([np.ravel(part) for part in marginals])
    np.savez(path, marginals=flat, log_z=math.nan if log_z is None else log_z)
    return {"seconds": seconds}


def fastest(variant, sets, calls, seconds):
    """The least seconds of a call."""
    best, end = math.inf, time.perf_counter() + seconds
    for number in range(calls):
        start = time.perf_counter()
        variant.call(number % sets)
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            break
    return {"fastest": best}


def answer(request, variants, prepare):
    """The answer to one request; variants: of the model that is loaded, changed when another one is."""
    if "versions" in request:
        return {"versions": versions(request["versions"])}
    if "load" in request:
        variants["model"] = model = load(request["load"])
        variants["by name"] = {variant.name: variant for variant in prepare(model)}
        return {"names": list(variants["by name"])}
    variant = variants["by name"][request["variant"]]
    if "check" in request:
        return check(variant, request["check"])
    return fastest(variant, len(variants["model"].theta), request["calls"], request["seconds"])


def once(prepare, path, name):
    """One call of one variant, read."""
    [variant] = prepare(load(path), only=name)
    marginals, _ = variant.read(variant.call(0))
    if not all(np.isfinite(part).all() for part in marginals):
        raise SystemExit("marginals are not finite")


def versions(names):
    """Of the distributions among these that are installed."""
    return {found.name: found.version for found in distributions() if found.name.lower() in names}


def main():
    """Answer requests until the input ends, or make one call."""
    prepare, variants = CONTESTANTS[sys.argv[1]].variants, {}
    if sys.argv[2:]:
        once(prepare, *sys.argv[2:])
        return
    out, sys.stdout = sys.stdout, sys.stderr  # a library that prints must not end the conversation
    for line in sys.stdin:
        try:
            said = answer(json.loads(line), variants, prepare)
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"}
        print(json.dumps(said), file=out, flush=True)


if __name__ == "__main__":
    main()
