"""Whole mechanisms of peers, run in the peer's own virtual environment. Needs nothing of dpgm.

A problem has mechanism (one of those below), codes, sizes, epsilon, delta, seed and, for mbi, the folder with the
mechanisms of its repository, which its package does not have.
"""

import itertools
import sys
import time

import numpy as np

from benchmarks.harness.alone import peak_megabytes


def synthetic(problem):
    """Synthetic records, codes; CPU seconds and peak memory."""
    problem = problem | {"codes": np.array(problem["codes"], dtype=np.int64)}
    start = time.process_time()
    records = (mbi_records if problem["mechanism"].startswith("mbi") else dpmm_records)(problem)
    seconds = time.process_time() - start
    return {"records": records.astype(np.int64).tolist(), "seconds": seconds, "peak": peak_megabytes()}


def mbi_records(problem):
    """`aim.py` and `mst.py` of mbi's repository on its package, which is lent what it had before 2.0.0."""
    import mbi
    import pandas

    class Dataset(mbi.Dataset):
        def __init__(self, data, domain, *more):
            if isinstance(data, np.ndarray):
                data = dict(zip(domain.attributes, data.T, strict=True))
            columns = {name: np.asarray(data[name]).astype(np.int64) for name in domain.attributes}
            super().__init__(columns, domain, *more)

    class MirrorDescent(mbi.estimation.MirrorDescent):
        def estimate(self, *given, potentials=None, **more):
            return super().estimate(*given, **(more if potentials is None else {"warm_start": potentials} | more))

    if not hasattr(mbi.Domain, "attrs"):
        mbi.Domain.attrs = property(lambda domain: domain.attributes)
    if not hasattr(mbi.Dataset, "df"):  # of what it samples too
        mbi.Dataset.df = property(lambda data: pandas.DataFrame(data.to_dict()))
    model = mbi.MarkovRandomField
    model.cliques = property(lambda fitted: list(fitted.potentials.cliques))
    mbi.Dataset, mbi.estimation.MirrorDescent = Dataset, MirrorDescent
    if not hasattr(mbi.estimation, "mirror_descent"):
        mbi.estimation.mirror_descent = lambda *given, **more: MirrorDescent().estimate(*given, **more)
    sys.path.insert(0, problem["folder"])
    names, sizes = list(problem["sizes"]), list(problem["sizes"].values())
    domain = mbi.Domain(names, sizes)
    data = Dataset(problem["codes"], domain)
    epsilon, delta = problem["epsilon"], problem["delta"]
    np.random.seed(problem["seed"])  # noqa: NPY002 - what its scripts draw from
    if problem["mechanism"] == "mbi mst":
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

    names = list(problem["sizes"])
    frame = pandas.DataFrame(problem["codes"], columns=names)
    kind = MSTPipeline if problem["mechanism"] == "dpmm mst" else AIMPipeline
    made = kind(epsilon=problem["epsilon"], delta=problem["delta"], n_jobs=1, disable_processing=True)
    made.fit(frame, problem["sizes"], random_state=problem["seed"])
    return made.generate(n_records=len(frame), random_state=problem["seed"])[names].to_numpy()
