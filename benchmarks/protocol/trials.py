"""The study of learners on synthetic truths: methods, data sets, the store of trials and its summaries."""

from __future__ import annotations

import math
import time
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, field, frozen
from dpgm_cgm_em.weighting import score_bound
from dpgm_naive_mle.projection import targets

from benchmarks.harness.main import Study
from benchmarks.harness.runs import Line, Task
from benchmarks.peers.mbi_peer import mbi_kls, mbi_missing
from benchmarks.protocol.populations import (
    GRAPHS,
    TRUTHS,
    Population,
    curator,
    descended,
    independent_model,
    learners,
    non_private_mle,
    random_estimator,
    structure_of,
)
from dpgm_core import (
    Budget,
    FloatArray,
    LiveCurator,
    NoisyTables,
    SeededRandomness,
    Structure,
    Tables,
    Terms,
    learn,
    make,
    optimal_split,
)
from dpgm_core._util.progress import silent
from dpgm_core.counting.table_counts import count
from dpgm_core.learning import Likelihood, consistent
from dpgm_core.sources import as_source

# --------------------------------------------------------------------------------------------------
# The methods that are compared on one data set: a function each, data set -> {label: kl, seconds and tuning}.
#
# What is called "oracle" was tuned by the truth and can be had by nobody; it says what a rule could reach at best.
# Seconds are CPU seconds of one process on one thread. An oracle's seconds are those of one fit at the tuning it chose,
# without the search for it. KL(true || learned) is in nats.

Results = dict[str, dict[str, float]]

# The best of these is the "plain oracle" of a data set.
PLAIN_ORACLES = (
    "naive oracle",
    "ridge oracle",
    "consistent oracle",
    "cgm-em oracle",
    "soft-sign oracle",
    "one-shot oracle",
)

_BEYOND = 1.5  # a path ends when its KL has risen this far above its least, or has not fallen for long
# Steps of tau, and how many of each: fine where the noise is large, together 10.
_STEPS = ((0.02, 10), (0.05, 16), (0.1, 90))


@frozen(kw_only=True, eq=False)
class DataSet:
    """One truth, the exact tables of its records, and one release of them. seed: for methods that draw."""

    population: Population
    codes: np.ndarray
    counts: Tables
    release: NoisyTables
    epsilon: float
    seed: int


@frozen(kw_only=True)
class Method:
    """A function of a data set; `missing` says why it cannot run here, None if it can.

    serves: which (size of an attribute, records, epsilon, noise) it is meant for. draws: at most so many by size.
    family_draws: at most so many in a cell of the families, where neither of the two counts.
    """

    function: Callable[[DataSet], Results]
    missing: Callable[[], str | None] = lambda: None
    serves: Callable[[int, int, float, str], bool] = lambda size, records, epsilon, noise: True
    draws: dict[int, int] = field(factory=dict)
    family_draws: int = 0


def uniform(data: DataSet) -> Results:
    """The uniform model: what is known without any data."""
    return {"uniform": _timed(data, lambda: np.zeros(data.population.structure.cells))}


def independent(data: DataSet) -> Results:
    """Independent attributes, from the release's own margins."""
    return {"independent": _timed(data, lambda: independent_model(data.release))}


def random(data: DataSet) -> Results:
    """The MLE of random marginals."""
    population = data.population
    return {"random": _timed(data, lambda: random_estimator(population.engine, population.structure, data.seed))}


def non_private(data: DataSet) -> Results:
    """The MLE of the exact tables; the penalty keeps cells without records finite."""
    return {"non-private": _timed(data, lambda: non_private_mle(data.population.engine, data.counts, l2=1e-7))}


def learner(data: DataSet, *, label: str, name: str, **options: object) -> Results:
    """A learner as users get it."""
    tuning: dict[str, float] = {}

    def fit() -> FloatArray:
        done = learn(data.release, make("learner", name, **options), randomness=SeededRandomness(data.seed))
        tuning.update({key: value for key, value in done.certificate.items() if key in ("l2", "tau")})
        tuning["converged"] = float(done.converged)
        values: FloatArray = done.model.potentials.values
        return values

    return {label: _timed(data, fit) | tuning}


def ridge_path(data: DataSet, *, label: str, target: Callable[[NoisyTables], Tables]) -> Results:
    """Maximum likelihood at the best L2 penalty: half decades from the strongest on, then eighths around the best."""
    problem = Likelihood(data.population.engine, target(data.release), silent)
    nowhere = np.zeros(data.population.structure.cells)

    def fit(exponent: float, start: FloatArray, tolerance: float) -> FloatArray:
        return problem.minimise(start, 10.0**-exponent, tolerance, 2000)[0]

    found: dict[float, tuple[float, FloatArray]] = {}
    theta, kls = nowhere, []
    for exponent in np.arange(-1.5, 9, 0.5):
        theta = fit(exponent, theta, 1e-5)
        kls.append(data.population.kl(theta))
        found[exponent] = kls[-1], theta
        # It hardly moves at first, then falls, then hardly moves or rises.
        if len(kls) > 1 and (kls[-1] > kls[-2] or 0.9 * kls[0] > kls[-1] > 0.999 * kls[-2]):
            break
    for half in (0.25, 0.125):
        _, best = _least(found)
        for exponent in (best - half, best + half):
            theta = fit(exponent, found[best][1], 1e-5)
            found[exponent] = data.population.kl(theta), theta
    _, best = _least(found)
    return {label: _timed(data, lambda: fit(best, nowhere, 1e-6)) | {"l2": 10.0**-best}}


def em_path(data: DataSet, *, label: str, e_step: str, to_the_end: bool) -> Results:
    """EM from the uniform model: the best point on its path and, if wanted, its end at tau = 10."""
    infer = make("collective", e_step).compile(data.population.engine, data.release).infer
    bound = score_bound(data.release)
    theta, start = Tables.zeros(data.population.structure), None
    best, now = {"kl": math.inf}, {"kl": math.inf}
    tau = spent = 0.0
    for step in (length for length, number in _STEPS for _ in range(number)):
        before = time.process_time()
        start = infer(theta, evidence_weight=step / bound, start=start).multipliers
        theta = theta + start
        spent += time.process_time() - before
        tau += step
        now = {"kl": data.population.kl(theta.values), "seconds": spent, "tau": tau}
        best = min(best, now, key=lambda point: point["kl"])
        if not to_the_end and (now["kl"] > _BEYOND * best["kl"] or tau > 2 * best["tau"] + 0.5):
            break
    return {f"{label} oracle": best} | ({f"{label} converged": now} if to_the_end else {})


def one_shot(data: DataSet) -> Results:
    """max H(n) - tau |y - n|_1, one E-step from the uniform model, at the best tau: steps of 1.3, then of 1.07."""
    infer = make("collective", "collective-dual").compile(data.population.engine, data.release).infer
    bound, uniform = score_bound(data.release), Tables.zeros(data.population.structure)
    found: dict[float, tuple[float, Tables, float]] = {}

    def add(taus: Iterable[float], start: Tables | None) -> None:
        for tau in taus:
            before = time.process_time()
            start = infer(uniform, evidence_weight=tau / bound, start=start).multipliers
            found[tau] = data.population.kl(start.values), start, time.process_time() - before
            least, at = _least(found)
            if found[tau][0] > _BEYOND * least or tau > 3 * at:
                return

    add((0.02 * 1.3**power for power in range(26)), None)
    _, best = _least(found)
    add((best * 1.07**power for power in (-2, -1, 1, 2)), found[best][1])
    kl, best = _least(found)
    return {"one-shot oracle": {"kl": kl, "seconds": found[best][2], "tau": best}}


def psgd(data: DataSet) -> Results:
    """DP-SGD at the best of three sampling rates and four learning rates; it sees the records, and draws its noise."""
    best = {"kl": math.inf}
    for name, one in learners().items():
        for rate in (0.1, 0.3, 1.0, 3.0) if name.startswith("DP-SGD") and "clipped" not in name else ():
            before = time.process_time()
            source = curator(data.codes, data.population, data.epsilon, data.seed)
            kl = descended(data.population, evolve(one, learning_rate=rate), source, data.seed)
            point = {"seconds": time.process_time() - before, "kl": kl, "learning_rate": rate}
            best = min(best, point | {"sampling_rate": one.sampling_rate}, key=lambda each: each["kl"])
    return {"psgd oracle": best}


def mbi(data: DataSet) -> Results:
    """mbi's mirror descent with L2 loss: at its default 1000 iterations, and at the best stop."""
    found = mbi_kls(data.population, data.release)
    return {"mbi": found["mbi"], "mbi oracle": found["mbi-oracle"]}


def _timed(data: DataSet, fit: Callable[[], FloatArray]) -> dict[str, float]:
    before = time.process_time()
    theta = fit()
    seconds = time.process_time() - before
    return {"kl": data.population.kl(theta), "seconds": seconds}


def _least(found: dict[float, tuple[float, ...]]) -> tuple[float, float]:
    """(least KL, where)."""
    at = min(found, key=lambda place: found[place][0])
    return found[at][0], at


def _agreed_first(release: NoisyTables) -> Tables:
    """The tables made to agree, then moved to the nearest ones without negative cells (and made to agree again)."""
    return targets(evolve(release, tables=consistent(release.tables, release.variances)), project=True)


def _laplace(size: int, records: int, epsilon: float, noise: str) -> bool:
    return noise == "laplace" and size <= 5


def _nowhere(size: int, records: int, epsilon: float, noise: str) -> bool:
    return False


def _few(size: int, records: int, epsilon: float, noise: str) -> bool:
    # Below, the paper has no DP-SGD either; its own noise is Gaussian whatever the release's is.
    return size == 5 and records <= 10**5 and epsilon >= 0.5 and noise == "laplace"


def _no_accounting() -> str | None:
    return None if find_spec("dp_accounting") else "dp-accounting is not installed (extra `accounting`)"


def _learner(label: str, name: str, **options: object) -> Method:
    return Method(function=partial(learner, label=label, name=name, **options))


def _ridge(label: str, target: Callable[[NoisyTables], Tables]) -> Method:
    return Method(function=partial(ridge_path, label=label, target=target))


def _em(e_step: str, label: str, *, to_the_end: bool) -> Method:
    return Method(function=partial(em_path, label=label, e_step=e_step, to_the_end=to_the_end))


# Draws by k, where a method is slow or varies little; the plain oracle is wanted at k = 5 only.
_SOME = {5: 2, 10: 1, 20: 1}
_ALL = 1000
_ONCE = {5: 1, 0: 1}
_FIVE = {10: 2, 20: 1}
_MOST = {5: 5, 10: 3, 20: 2}

# "ridge-path" and "one-shot" were each the best plain learner on one data set in 40, by little, and were therefore run
# on the first draws only. Making the tables agree changes nothing for the ridge, which depends on their agreed part
# alone, but it does where negative cells are moved to zero afterwards: "consistent-path" won on about half of the sets.
METHODS: dict[str, Method] = {
    "uniform": Method(function=uniform, family_draws=_ALL),
    "independent": Method(function=independent, family_draws=_ALL),
    "random": Method(function=random, draws=_SOME),
    "non-private": Method(function=non_private, draws=_SOME),
    # Unpenalised maximum likelihood in all but name; it does not exist where the noise made cells negative, so that
    # the KL is that of 300 steps on the way to nowhere.
    "naive-tiny": evolve(_learner("naive tiny", "naive-mle", l2=1e-6, max_iterations=300), draws=_SOME),
    "naive-discrepancy": _learner("naive discrepancy", "naive-mle", l2="discrepancy"),
    "naive-auto": _learner("naive auto", "naive-mle", l2="auto"),
    "naive-path": evolve(_ridge("naive oracle", partial(targets, project=True)), family_draws=_ALL),
    "ridge-path": evolve(_ridge("ridge oracle", partial(targets, project=False)), draws=_SOME, family_draws=_ALL),
    "consistent-path": evolve(_ridge("consistent oracle", _agreed_first), draws=_FIVE),
    "em-plateau": _learner("cgm-em plateau", "cgm-em", tau=10.0, stop="plateau"),
    "em-auto": _learner("cgm-em auto", "cgm-em", tau="auto"),
    "em-path": _em("collective-dual", "cgm-em", to_the_end=True),
    # The same path as far as it falls, for the families.
    "em-fall": evolve(_em("collective-dual", "cgm-em", to_the_end=False), serves=_nowhere, family_draws=_ALL),
    "soft-path": evolve(_em("soft-sign", "soft-sign", to_the_end=False), draws=_FIVE),
    # Never the best, and slow where N is large. Under Gaussian noise it is the ridge on the raw tables.
    "one-shot": Method(function=one_shot, serves=_laplace, draws=_ONCE),
    "eb-map": evolve(_learner("eb-map", "eb-map"), draws={20: 2}, family_draws=_ALL),
    "psgd": Method(function=psgd, missing=_no_accounting, serves=_few, draws={5: 3}),
    "mbi": Method(function=mbi, missing=mbi_missing, draws=_MOST),
}


# --------------------------------------------------------------------------------------------------
# Cells x draws x methods on the protocol of Bernstein et al. (2017), in one store that several reports read.
#
# A cell names a truth, a graph, the number of labels k, the number of records N, epsilon and the noise:
# `dirichlet/chain3/k5/N1e4/eps0.1/laplace`. Gaussian noise has the same epsilon and delta = 1/N, or, where the name
# says rho, `matched/pairs8/k2/N5e3/rho0.01/zcdp`, that rho. Noise called "-split" is unequal, by a public split of the
# budget (`UNEQUAL`). Attributes are 10 unless the graph has its own; k0 says that they have labels of their own. A
# trial is a seed, base + draw: draws 0 to 4 are five populations, draws 5 to 9 the same five again with other records
# and other noise, and so on. N is public, neighbours are add-remove.

STORE = "trials.jsonl"
BASE, POPULATIONS, ROOM = 70_000, 5, 1000  # seeds: base + draw, draw < ROOM
FAMILY_BASE = 110_000
NOISES = ("laplace", "gaussian", "zcdp", "laplace-split", "zcdp-split")  # in the order of the seeds: add at the end
# Of the first table, the second, the third, the fourth, ... in `optimal_split`: at equal sizes Laplace noise has
# standard deviations in the ratios 16 : 4 : 1, Gaussian noise 8 : 2.8 : 1.
UNEQUAL = (1, 64, 64**2)
# Truths of the families, which have a grid, a base of seeds and a report of their own (families.py).
FAMILY_TRUTHS = TRUTHS[TRUTHS.index("matched") :]
# Cells with the number of draws wanted from each.
Grid = dict["Cell", int]


@frozen(kw_only=True, order=True)
class Cell:
    """One point of the grid.

    >>> Cell.parse("dirichlet/er/k5/N1e5/eps0.5/laplace").records
    100000
    """

    truth: str
    graph: str
    size: int
    records: int
    epsilon: float  # rho where the noise is of zCDP
    noise: str

    @property
    def family(self) -> bool:
        """Whether it belongs to the families and not to the first study."""
        return self.truth in FAMILY_TRUTHS

    @property
    def budget(self) -> Budget:
        """For all tables together."""
        if self.noise.startswith("zcdp"):
            return Budget.zcdp(self.epsilon)
        return Budget.approx(self.epsilon, 1 / self.records) if self.noise == "gaussian" else Budget.pure(self.epsilon)

    @property
    def name(self) -> str:
        """As in the store and on the command line."""
        short = f"{self.records:.0e}".replace("e+0", "e")
        records = short if float(short) == self.records else self.records
        budget = f"{'rho' if self.noise.startswith('zcdp') else 'eps'}{self.epsilon:g}"
        return f"{self.truth}/{self.graph}/k{self.size}/N{records}/{budget}/{self.noise}"

    @classmethod
    def parse(cls, name: str) -> Cell:
        """The cell of a name. Raises ValueError."""
        try:
            truth, graph, size, records, epsilon, noise = name.split("/")
            cell = cls(
                truth=truth,
                graph=graph,
                size=int(size.removeprefix("k")),
                records=int(float(records.removeprefix("N"))),
                epsilon=float(epsilon.removeprefix("rho" if noise.startswith("zcdp") else "eps")),
                noise=noise,
            )
        except ValueError:
            raise ValueError(
                f"{name!r} is not a cell: truth/graph/kSIZE/NRECORDS/epsEPSILON/noise (zcdp: rhoRHO)"
            ) from None
        least, most = GRAPHS.get(graph, (1, 0))
        if truth not in TRUTHS or noise not in NOISES or not least <= cell.size <= most or cell.name != name:
            raise ValueError(f"{name!r} is not a cell: truths are {TRUTHS}, graphs {tuple(GRAPHS)}, noises {NOISES}")
        return cell


def cells(
    graphs: Sequence[str],
    size: int,
    points: Iterable[tuple[int, float]],
    *,
    truth: str = "dirichlet",
    noise: str = "laplace",
) -> list[Cell]:
    """Each graph at each (N, epsilon)."""
    return [
        Cell(truth=truth, graph=graph, size=size, records=records, epsilon=epsilon, noise=noise)
        for graph in graphs
        for records, epsilon in points
    ]


def work(task: Task, asked: Namespace) -> Mapping[str, Any]:
    """One method on one data set, numbers with no more digits than mean something."""
    data = data_set(task.cell, task.trial)
    results = {
        label: {key: float(f"{value:.{6 if key == 'kl' else 3}g}") for key, value in numbers.items()}
        for label, numbers in METHODS[task.method].function(data).items()
    }
    for label, numbers in results.items():
        if not all(map(math.isfinite, numbers.values())):
            raise ArithmeticError(f"{label} gave {numbers}")
    return {"seeds": _seeds(Cell.parse(task.cell), task.trial), "results": results}


def _seeds(cell: Cell, trial: int) -> list[int]:
    """Of the population, shared by all cells; and of records and of noise, of this cell and trial alone."""
    base, draw = trial - trial % ROOM, trial % ROOM
    point = [trial, cell.records, round(1e6 * cell.epsilon), cell.size, TRUTHS.index(cell.truth)]
    point += [list(GRAPHS).index(cell.graph), NOISES.index(cell.noise)]
    return [base + draw % POPULATIONS, *map(int, np.random.SeedSequence(point).generate_state(2))]


@lru_cache(maxsize=2)
def _population(truth: str, graph: str, size: int, seed: int) -> Population:
    return Population.draw(structure_of(graph, size), seed, truth)


@lru_cache(maxsize=1)  # the methods of one data set come one after another
def data_set(cell_name: str, trial: int) -> DataSet:
    """The data set of a cell and a trial."""
    cell = Cell.parse(cell_name)
    of_population, of_records, of_noise = _seeds(cell, trial)
    population = _population(cell.truth, cell.graph, cell.size, of_population)
    codes = population.records(cell.records, of_records)
    return DataSet(
        population=population,
        codes=codes,
        counts=count(as_source(codes), population.structure).tables,
        release=_released(cell, codes, population.structure, of_noise),
        epsilon=cell.epsilon,
        seed=of_noise,
    )


def _released(cell: Cell, codes: np.ndarray, structure: Structure, seed: int) -> NoisyTables:
    """N is public, neighbours are add-remove."""
    live = LiveCurator(
        as_source(codes),
        structure,
        make("mechanism", "laplace" if cell.noise.startswith("laplace") else "gaussian"),
        terms=Terms(neighbours="add-remove", total="public"),
        budget=cell.budget,
        randomness=SeededRandomness(seed),
    )
    if not cell.noise.endswith("-split"):
        return live.release()
    weights = {clique: UNEQUAL[number % 3] for number, clique in enumerate(structure.cliques)}
    return live.release(budget=optimal_split(structure, cell.budget, weights))


def study(
    about: str | None,
    name: str,
    grids: Mapping[str, Grid],
    text: Callable[[Sequence[Line]], str],
    pictures: Callable[[Sequence[Line], Path], Iterable[Path]],
) -> Study:
    """A report over trials. grids: of "smoke", "usual", "full" and perhaps "families"; for the others see `Study`."""

    def drawn(asked: Namespace) -> dict[str, int]:
        return {cell.name: min(draws, asked.draws) for cell, draws in grids[asked.extent].items()}

    def trial(asked: Namespace, cell: str, draw: int) -> int:
        usual = FAMILY_BASE if asked.extent == "families" else BASE
        return draw + (usual if asked.base is None else int(asked.base))

    return Study(
        about=about,
        name=name,
        store=STORE,
        arguments=_arguments,
        cells=drawn,
        methods=list(METHODS),
        serves=serves,
        trial=trial,
        extents={"families": f"the families of truths; base {FAMILY_BASE}"} if "families" in grids else {},
        missing=lambda method: METHODS[method].missing(),
        work=work,
        text=text,
        pictures=pictures,
    )


def serves(cell_name: str, draw: int, method: str) -> bool:
    """Whether the method is meant for the cell, and for so many draws of it."""
    cell = Cell.parse(cell_name)
    if cell.family:
        return draw < METHODS[method].family_draws
    if draw >= METHODS[method].draws.get(cell.size, ROOM):
        return False
    return METHODS[method].serves(cell.size, cell.records, cell.epsilon, cell.noise)


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--base", type=int, help=f"of the seeds, by default {BASE}; a fresh base is a fresh study")
    parser.add_argument("--draws", type=int, default=ROOM, help="at most so many from each cell")


# --------------------------------------------------------------------------------------------------
# What the store of trials says: ratios to an oracle, ranks and their uncertainty. Reading only.
#
# Draws of a cell are not many: intervals are 90 % bootstrap percentiles over them, with a fixed seed. Means of KL and
# of ratios are geometric.

# cell -> trial -> label -> kl, seconds, ...
Scores = dict[Cell, dict[int, Results]]
_RESAMPLES = 2000


@frozen(kw_only=True)
class Summary:
    """Ratios of one method's KL to a reference: on how many data sets, geometric mean, worst, and where."""

    count: int
    mean: float
    worst: float
    cell: Cell | None

    def __str__(self) -> str:
        return f"{self.mean:.3f} / {self.worst:.2f}" if self.count else "-"


def scores(lines: Iterable[Line], keep: Callable[[Cell, int], bool] = lambda cell, trial: True) -> Scores:
    """The results of every data set that `keep` wants (cell, base of its seed), cells in order."""
    found: Scores = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        cell, trial = Cell.parse(line["cell"]), line["trial"]
        if keep(cell, trial - trial % ROOM):
            found[cell][trial] |= line["results"]
    return {cell: dict(found[cell]) for cell in sorted(found)}


def plain_oracle(results: Results) -> float | None:
    """The best plain learner at the best tuning; None unless those were run that ever win (see METHODS)."""
    if not {"naive oracle", "consistent oracle", "cgm-em oracle", "soft-sign oracle"} <= set(results):
        return None
    return min(results[label]["kl"] for label in PLAIN_ORACLES if label in results)


def kl_of(label: str, what: str = "kl") -> Callable[[Results], float | None]:
    """The KL of a method as a reference, or another number of it."""
    return lambda results: results.get(label, {}).get(what)


def summary(found: Scores, label: str, reference: Callable[[Results], float | None]) -> Summary:
    """Of one method over all data sets that have both it and the reference."""
    by_cell = {cell: some for cell, trials in found.items() if (some := ratios(trials, label, reference))}
    if not by_cell:
        return Summary(count=0, mean=math.nan, worst=math.nan, cell=None)
    where = max(by_cell, key=lambda cell: max(by_cell[cell]))
    every = [ratio for some in by_cell.values() for ratio in some]
    return Summary(count=len(every), mean=geometric(every), worst=max(every), cell=where)


def ratios(
    trials: Mapping[int, Results], label: str, reference: Callable[[Results], float | None], what: str = "kl"
) -> list[float]:
    """One number of one method over the reference, from each draw that has both."""
    both = [(results[label][what], reference(results)) for results in trials.values() if label in results]
    return [number / max(best, 1e-300) for number, best in both if best is not None]


def draws(trials: Mapping[int, Results], label: str, what: str = "kl") -> list[float]:
    """One number of one method from each draw that has it."""
    return [results[label][what] for results in trials.values() if label in results]


def geometric(values: Iterable[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(np.maximum(list(values), 1e-300)))))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """A 90 % interval of the geometric mean over draws; the point itself when there is one draw."""
    logs = np.log(np.maximum(values, 1e-300))
    picks = np.random.default_rng(0).integers(len(logs), size=(_RESAMPLES, len(logs)))
    low, high = np.exp(np.quantile(logs[picks].mean(axis=1), [0.05, 0.95]))
    return float(low), float(high)


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Geometric mean and its interval, as text."""
    if not values:
        return "-"
    low, high = interval(values)
    text = f"{geometric(values):.{digits}g}"
    return text if len(values) == 1 else f"{text} ({low:.{digits}g}-{high:.{digits}g})"


def ranks(trials: Mapping[int, Results], labels: Sequence[str]) -> tuple[int, list[tuple[str, float, int, int]]]:
    """(draws, (method, mean KL, best rank, worst rank) from the best mean on); a 90 % interval over resampled draws.

    Only methods that were run on half of the draws, and only the draws that have all of these: few draws of one slow
    method shall not decide between the others.
    """
    counts = {label: len(draws(trials, label)) for label in labels}
    present = [label for label in labels if 2 * counts[label] >= max(1, *counts.values())]
    whole = [results for results in trials.values() if set(present) <= set(results)]
    if not present or not whole:
        return 0, []
    logs = np.log([[max(results[label]["kl"], 1e-300) for label in present] for results in whole])
    picks = np.random.default_rng(0).integers(len(logs), size=(_RESAMPLES, len(logs)))
    order = logs[picks].mean(axis=1).argsort(axis=1).argsort(axis=1) + 1
    low, high = np.quantile(order, [0.05, 0.95], axis=0, method="nearest")
    means = np.exp(logs.mean(axis=0))
    return len(whole), [(present[at], float(means[at]), int(low[at]), int(high[at])) for at in means.argsort()]
