"""Run one whole mechanism of a peer, from the peer's own virtual environment. Needs nothing of dpgm.

    PYTHON whole_worker.py FILE.npz ANSWER.npz

The file holds mechanism (one of those below), codes, names, sizes, epsilon, delta, seed and, for mbi, the folder with
the mechanisms of its repository, which its package does not have. The answer holds synthetic records (codes), CPU
seconds and peak memory.
"""

import itertools
import resource
import sys
import time
from pathlib import Path

import numpy as np


def mbi_records(problem):
    """`aim.py` and `mst.py` of mbi's repository on its package, which is lent what it had before 2.0.0."""
    import mbi

    class Dataset(mbi.Dataset):
        def __init__(self, data, domain, *more):
            columns = (
                dict(zip(domain.attributes, data.T.astype(np.int64), strict=True))
                if isinstance(data, np.ndarray)
                else data
            )
            super().__init__(columns, domain, *more)

    class MirrorDescent(mbi.estimation.MirrorDescent):
        def estimate(self, *given, potentials=None, **more):
            return super().estimate(*given, **(more if potentials is None else {"warm_start": potentials} | more))

    if not hasattr(mbi.Domain, "attrs"):
        mbi.Domain.attrs = property(lambda domain: domain.attributes)
    mbi.Dataset, mbi.estimation.MirrorDescent = Dataset, MirrorDescent
    if not hasattr(mbi.estimation, "mirror_descent"):
        mbi.estimation.mirror_descent = lambda *given, **more: MirrorDescent().estimate(*given, **more)
    sys.path.insert(0, str(problem["folder"]))
    names, sizes = list(map(str, problem["names"])), list(map(int, problem["sizes"]))
    domain = mbi.Domain(names, sizes)
    data = Dataset(problem["codes"], domain)
    epsilon, delta = float(problem["epsilon"]), float(problem["delta"])
    np.random.seed(int(problem["seed"]))  # noqa: NPY002 - what its scripts draw from
    if str(problem["mechanism"]) == "mbi mst":
        from mst import MST

        made = MST(data, epsilon, delta)
    else:
        from aim import AIM

        triples = [one for one in itertools.combinations(names, 3) if domain.size(one) <= 10_000]
        _, made = AIM(epsilon, delta).run(data, [(one, 1.0) for one in triples])
    table = made.to_dict() if hasattr(made, "to_dict") else {name: made.df[name] for name in names}
    return np.column_stack([np.asarray(table[name]) for name in names])


def dpmm_records(problem):
    """dpmm's pipelines at their defaults, on codes as they are: nothing to bin."""
    import pandas
    from dpmm.pipelines import AIMPipeline, MSTPipeline

    names = list(map(str, problem["names"]))
    frame = pandas.DataFrame(problem["codes"], columns=names)
    kind = MSTPipeline if str(problem["mechanism"]) == "dpmm mst" else AIMPipeline
    made = kind(epsilon=float(problem["epsilon"]), delta=float(problem["delta"]), n_jobs=1, disable_processing=True)
    made.fit(frame, dict(zip(names, map(int, problem["sizes"]), strict=True)), random_state=int(problem["seed"]))
    return made.generate(n_records=len(frame), random_state=int(problem["seed"]))[names].to_numpy()


def main():
    """One problem, one answer."""
    with np.load(sys.argv[1]) as file:
        problem = dict(file)
    start = time.process_time()
    records = (mbi_records if str(problem["mechanism"]).startswith("mbi") else dpmm_records)(problem)
    seconds = time.process_time() - start
    status = Path("/proc/self/status")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if status.is_file():
        peak = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    np.savez(sys.argv[2], records=records.astype(np.int64), seconds=seconds, peak=peak * 1024 / 1e6)


if __name__ == "__main__":
    main()
