"""Whole programs, records in and synthetic records out, each run in its own virtual environment.

Only `dpgm_records` needs dpgm. A problem has program (a key of `PROGRAMS`), codes, sizes, epsilon, delta, seed, and
order: of the sets of attributes that programs with a workload are to answer; None: what they answer by default. rho is
the budget of zCDP within (epsilon, delta), for programs that take no other; mechanisms is the folder of mbi's scripts.
"""

import itertools
import sys
import time
from importlib.metadata import version

import numpy as np

from benchmarks.harness.alone import peak_megabytes

#: Cells of the largest marginals in the workload of mbi's AIM, as its script has it.
_MAX_CELLS = 10_000


def synthetic(problem):
    """Return synthetic records (codes, `size` as code where a value is missing), CPU seconds and peak memory in MB.

    dpgm's answer has the errors of its model's exact marginals too.
    """
    problem = problem | {"codes": np.array(problem["codes"], dtype=np.int64)}
    start = time.process_time()
    records, *more = PROGRAMS[problem["program"]][1](problem)
    facts = {"seconds": time.process_time() - start, "peak": peak_megabytes()}
    return {"records": records.astype(np.int64).tolist(), **facts, **(more[0]() if more else {})}


def versions(packages):
    """Return the versions of installed packages in one line."""
    return ", ".join(f"{name} {version(name)}" for name in packages)


def _frame(problem):
    import pandas

    return pandas.DataFrame(problem["codes"], columns=list(problem["sizes"]))


def _kind(problem):
    """Return the second word of the program's name: its mechanism."""
    return problem["program"].split()[1]


def dpgm_records(problem):
    """Return records that have the model's expected counts, rounded, as mbi's have by default."""
    from benchmarks.cases.coded import Coded, off
    from benchmarks.protocol.selecting import TERMS
    from dpgm_core import Budget, Domain, SeededRandomness, Workload, fit

    domain = Domain.from_sizes(problem["sizes"])
    budget = Budget.approx(str(problem["epsilon"]), str(problem["delta"]))
    workload = domain if problem["order"] is None else Workload.all(domain, order=problem["order"])
    source = SeededRandomness(problem["seed"])
    done = fit(problem["codes"], "auto", budget, "gaussian", workload=workload, terms=TERMS, randomness=source)
    rows = max(1, round(done.model.release.total))
    made = done.model.sample(rows, method="rounded", form="labels", randomness=source)
    records = np.column_stack([made[name].to_numpy().astype(np.int64) for name in domain.names])
    table = Coded(domain=domain, codes=problem["codes"])
    return records, lambda: {"exact": off(table, done.model.marginals_of)}


def mbi_records(problem):
    """Run `aim.py` or `mst.py` of mbi's repository on its package, which gets what it had before 2.0.0."""
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
    sys.path.insert(0, problem["mechanisms"])
    names, sizes = list(problem["sizes"]), list(problem["sizes"].values())
    domain = mbi.Domain(names, sizes)
    data = Dataset(problem["codes"], domain)
    epsilon, delta = problem["epsilon"], problem["delta"]
    np.random.seed(problem["seed"])  # noqa: NPY002 - what its scripts draw from
    if _kind(problem) == "mst":
        from mst import MST

        made = MST(data, epsilon, delta)
    else:
        from aim import AIM

        sets = itertools.combinations(names, problem["order"] or 3)
        workload = [(one, 1.0) for one in sets if domain.size(one) <= _MAX_CELLS]
        _, made = AIM(epsilon, delta).run(data, workload)
    table = made.to_dict() if hasattr(made, "to_dict") else {name: made.df[name] for name in names}
    return (np.column_stack([np.asarray(table[name]) for name in names]),)


def dpmm_records(problem):
    """Run dpmm's pipelines at their defaults, on codes as they are: nothing to bin."""
    from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline

    frame = _frame(problem)
    kind = {"mst": MSTPipeline, "aim": AIMPipeline, "privbayes": PrivBayesPipeline}[_kind(problem)]
    made = kind(epsilon=problem["epsilon"], delta=problem["delta"], n_jobs=1, disable_processing=True)
    made.fit(frame, problem["sizes"], random_state=problem["seed"])
    return (made.generate(n_records=len(frame), random_state=problem["seed"])[list(frame)].to_numpy(),)


def dpsynth_records(problem):
    """Run dpsynth's tables in memory at their defaults; its own search for rho fails with dp-accounting 0.6.0."""
    import dpsynth

    made, frame = dpsynth.discrete_mechanisms, _frame(problem)
    kind = {"mst": made.MSTConfig, "aim": made.AIMConfig, "swift": made.SWIFTConfig}[_kind(problem)]
    sets = itertools.combinations(list(frame), problem["order"] or 3)
    asked = {} if problem["order"] is None or kind is made.MSTConfig else {"workload": list(sets)}
    domains = {
        name: dpsynth.CategoricalAttribute(possible_values=list(range(size))) for name, size in problem["sizes"].items()
    }
    config = dpsynth.TabularConfig(domains=domains, discrete_mechanism=kind(**asked))
    mechanism = config.configure(zcdp_rho=problem["rho"])
    result = mechanism(np.random.default_rng(problem["seed"]), frame)
    return (result.synthetic_data[list(frame)].to_numpy(),)


def _is_rounded(problem):
    """Return whether rows are those that mbi 1.1.0 makes by default, whose columns follow each other by a fault.

    Its rounding gives the rows of one parent's label in the same order to every column, so that columns with a common
    parent depend on each other far more than in the model. mbi 2.0.0 shuffles them.
    """
    return problem["program"].endswith("rounded")


def smartnoise_records(problem):
    """Run SmartNoise's synthesizers with public labels; its noise has no seed, its choices have."""
    import mbi
    from snsynth import Synthesizer
    from snsynth.transform import LabelTransformer, TableTransformer

    frame, sizes = _frame(problem), problem["sizes"]
    labels = TableTransformer([LabelTransformer(nullable=False) for _ in sizes])
    # Every code of every column once or more, so that the domain does not come from the records.
    labels.fit([tuple(row % size for size in sizes.values()) for row in range(max(sizes.values()))])
    np.random.seed(problem["seed"])  # noqa: NPY002 - what it draws choices from
    asked = {"degree": problem["order"]} if problem["order"] and _kind(problem) == "aim" else {}
    made = Synthesizer.create(_kind(problem), epsilon=problem["epsilon"], delta=problem["delta"], **asked)
    made.fit(frame, transformer=labels)
    if not _is_rounded(problem):
        made_by = mbi.MarkovRandomField.synthetic_data
        mbi.MarkovRandomField.synthetic_data = lambda model, rows=None: made_by(model, rows, "sample")
    return (np.array([list(row) for row in np.asarray(made.sample(len(frame)))]),)


def opendp_records(problem):
    """Run `opendp.extras.mbi`; its noise has no seed. A null stays one code above the others."""
    import opendp.prelude as dp
    import polars

    dp.enable_features("contrib", "floating-point")
    frame, sizes = polars.LazyFrame(problem["codes"], schema=list(problem["sizes"])), problem["sizes"]
    asked = {"queries": problem["order"]} if problem["order"] and _kind(problem) == "aim" else {}
    algorithm = dp.mbi.MST() if _kind(problem) == "mst" else dp.mbi.AIM(**asked)
    context = dp.Context.compositor(
        data=frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=problem["rho"])
    )
    query = context.query(rho=problem["rho"]).select(*sizes)
    keys = {name: list(range(size)) for name, size in sizes.items()}
    table = query.contingency_table(keys=keys, algorithm=algorithm).release()
    made = table.synthesize(method="round" if _is_rounded(problem) else "sample")
    columns = [made[name].fill_null(size).to_numpy() for name, size in sizes.items()]
    return (np.column_stack(columns),)


def twinify_records(problem):
    """Run NAPSU-MQ with the queries that its own MST selects."""
    import d3p.random
    import pandas
    from twinify.napsu_mq.napsu_mq import NapsuMQModel

    frame = _frame(problem)
    frame = frame.apply(lambda one: pandas.Categorical(one, categories=range(problem["sizes"][one.name])))
    keys = d3p.random.split(d3p.random.PRNGKey(problem["seed"]), 2)
    np.random.seed(problem["seed"])  # noqa: NPY002 - what its selection draws from
    posterior = NapsuMQModel(column_feature_set=[]).fit(frame, keys[0], problem["epsilon"], problem["delta"])
    made = posterior.generate(keys[1], 1, len(frame))
    return (np.column_stack([made[name].astype(np.int64).to_numpy() for name in frame]),)


#: Program -> the environment that it runs in, and the function that runs it.
PROGRAMS = {
    "dpgm auto": ("", dpgm_records),
    "dpsynth swift": ("dpsynth", dpsynth_records),
    "dpsynth aim": ("dpsynth", dpsynth_records),
    "dpsynth mst": ("dpsynth", dpsynth_records),
    "mbi aim": ("mbi", mbi_records),
    "mbi mst": ("mbi", mbi_records),
    "opendp aim": ("opendp", opendp_records),
    "opendp mst": ("opendp", opendp_records),
    "opendp mst rounded": ("opendp", opendp_records),
    "smartnoise aim": ("smartnoise", smartnoise_records),
    "smartnoise mst": ("smartnoise", smartnoise_records),
    "smartnoise mst rounded": ("smartnoise", smartnoise_records),
    "dpmm aim": ("dpmm", dpmm_records),
    "dpmm mst": ("dpmm", dpmm_records),
    "dpmm privbayes": ("dpmm", dpmm_records),
    "twinify napsu-mq": ("twinify", twinify_records),
}
