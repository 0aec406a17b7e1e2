"""The parametric bootstrap: simulated releases and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import evolve, field, frozen

from dpgm_core._util.arrays import Array, FloatArray, IntArray
from dpgm_core._util.blas import one_thread
from dpgm_core._util.progress import Progress, silent
from dpgm_core._util.randomness import Randomness, SeededRandomness, SystemRandomness
from dpgm_core.components.options import known_options, with_options
from dpgm_core.components.registry import default_registry, make
from dpgm_core.counting.table_counts import count_codes
from dpgm_core.curator.replay import ReplayCurator
from dpgm_core.errors import BudgetError, DpgmError, IncompatiblePlugin, InferenceError, OptionError
from dpgm_core.inference.constraints import engine_name
from dpgm_core.inference.contract import Engine, Inference, Querier, Sampler
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning.contract import Learner, Refits, Refitter
from dpgm_core.learning.learner_run import rake_margins, run_learner
from dpgm_core.models.intervals import checked_replicates
from dpgm_core.models.model import Model
from dpgm_core.privacy.measurement import Measurement
from dpgm_core.privacy.mechanism import DerivedNoise, Noise, ScaledNoise
from dpgm_core.privacy.ranges import RangeNoise
from dpgm_core.releases.pooling import PooledNoise
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.totals import estimate_total
from dpgm_core.releases.views import SummedNoise, emptied, equalize_totals
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = ["SimulatedNoise", "Simulator", "TableDraws", "_cells_of_junction_tree", "bootstrap", "simulated_noise"]

#: Largest |z| of a table; wider noise is drawn as releases draw it.
_MAX_REACH = 1 << 17
#: A mass whose logarithm is below it ends the table, nats: what is left out is smaller than the rounding of a double.
_LEAST_LOG_MASS = -45.0
#: By how much the sum of the masses may differ from 1.
_MAX_MISSING_MASS = 1e-9


# --------------------------------------------------------------------------------------------------
# Noise of simulated releases: the distribution of the released noise, drawn in doubles
#
# Simulated releases hold no record, so nobody needs exact arithmetic or random bits that cannot be repeated. Layers
# below `learning` cannot import this module, so no curator can draw from it.


@frozen(kw_only=True, eq=False)
class SimulatedNoise(DerivedNoise):
    """Whole numbers, drawn by inversion of their distribution function; without a cost, so nothing can be released.

    first: the least value. cumulative: P(z <= first + i), (values,), the last is 1.
    """

    variance: float
    first: int
    cumulative: FloatArray = field(repr=False)

    exact, unsafe = False, None

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Return fresh noise, int64, from the generator of `randomness` and not from its words."""
        places = np.searchsorted(self.cumulative, randomness.generator().random(shape), side="right")
        return self.first + np.asarray(places, dtype=np.int64)


def simulated_measurement(measurement: Measurement) -> Measurement:
    """Return the measurement with noises that are quicker to draw, of the same distributions."""
    calibrations = tuple(evolve(one, noise=simulated_noise(one.noise)) for one in measurement.calibrations)
    return evolve(measurement, calibrations=calibrations)


def simulated_noise(noise: Noise) -> Noise:
    """Return noise with the same distribution, for `draw` alone; the noise itself where no table serves.

    That is noise of other than whole numbers, noise that is too wide, and noise whose `logpdf` is not that of masses.
    """
    if isinstance(noise, PooledNoise):
        return evolve(noise, noises=tuple(map(simulated_noise, noise.noises)))
    if isinstance(noise, (ScaledNoise, SummedNoise, RangeNoise)):
        return evolve(noise, noise=simulated_noise(noise.noise))
    return (_tabulated(noise) or noise) if noise.exact is True else noise


def _tabulated(noise: Noise) -> Noise | None:
    reach = 16
    while reach < _MAX_REACH and noise.logpdf(np.array([-reach, reach], np.float64)).max() > _LEAST_LOG_MASS:
        reach *= 2
    with np.errstate(under="ignore"):
        cumulative = np.cumsum(np.exp(noise.logpdf(np.arange(-reach, reach + 1, dtype=np.float64))))
    if not abs(cumulative[-1] - 1.0) <= _MAX_MISSING_MASS:
        return None
    return SimulatedNoise(variance=noise.variance, first=-reach, cumulative=cumulative / cumulative[-1])


# --------------------------------------------------------------------------------------------------
# Tables of N records drawn from a model without the records, at a cost that does not grow with N
#
# On a junction tree the counts of N independent records are multinomial at the root and, given the counts of a
# separator, multinomial in each of its states (Sheldon and Dietterich 2011, collective graphical models). Exact.


def _cells_of_junction_tree(structure: Structure) -> int:
    """Return the cells of the junction tree, which is the cost of one draw.

    >>> from dpgm_core.domain.domain import Domain
    >>> _cells_of_junction_tree(Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2))))
    8
    """
    return sum(math.prod(structure.domain.shape(clique)) for clique in structure.constrained.junction_tree[0])


class TableDraws:
    """Sampler of the tables of `measured` from the model with these log-potentials.

    potentials: over the model's structure, one of whose cliques contains each measured clique. The junction tree is
    compiled once and its marginals are kept, so use it where `_cells_of_junction_tree` is small.
    """

    def __init__(self, potentials: Tables, measured: Structure) -> None:
        cliques, edges = potentials.structure.constrained.junction_tree
        domain = potentials.structure.domain
        wider = Structure(domain, cliques)
        marginals = JunctionTree().compile(wider).infer(potentials.embed(wider)).marginals
        self._steps = [_step(marginals, cliques, number, parent) for number, parent in _from_roots(len(cliques), edges)]
        self._places = [[_place(cliques, clique) for clique in group] for group in measured.groups]
        self._tables = len(cliques)

    def draw(self, count: int, generator: np.random.Generator) -> IntArray:
        """Return the counts of `count` records, (measured.cells,)."""
        counts: list[IntArray] = [np.zeros(0, np.int64)] * self._tables
        for step in self._steps:
            parents = np.array([count]) if step.parent is None else step.above.of(counts[step.parent]).reshape(-1)
            drawn = generator.multinomial(parents, step.conditional)
            counts[step.number] = drawn.reshape(step.shape).transpose(step.order)
        return np.concatenate(
            [sum(margin.of(counts[host]).reshape(-1) for host, margin in places) for places in self._places]
        )


@frozen(kw_only=True)
class _Margin:
    """Axes to sum over, then the order of those that are left."""

    summed_axes: tuple[int, ...]
    order: tuple[int, ...]

    def of(self, table: IntArray) -> IntArray:
        summed: IntArray = table.sum(axis=self.summed_axes).transpose(self.order)
        return summed


@frozen(kw_only=True, eq=False)
class _Step:
    """Draw one clique's table given its parent's.

    above: the separator's margin of the parent. conditional: (states of the separator, cells of the rest). shape,
    order: separator first, and back to the clique's axes.
    """

    number: int
    parent: int | None
    above: _Margin
    conditional: FloatArray
    shape: tuple[int, ...]
    order: tuple[int, ...]


def _step(marginals: Tables, cliques: Sequence[Clique], number: int, parent: int | None) -> _Step:
    clique, above = cliques[number], () if parent is None else cliques[parent]
    separator = tuple(name for name in clique if name in above)
    names = separator + tuple(name for name in clique if name not in above)
    table = marginals[names]
    states = math.prod(table.shape[: len(separator)])
    joint = table.reshape(states, -1)
    sums = joint.sum(axis=1, keepdims=True)
    # A state of probability 0 gets no records, whatever stands here.
    conditional = np.divide(joint, sums, out=np.full_like(joint, 1 / joint.shape[1]), where=sums > 0)
    return _Step(
        number=number,
        parent=parent,
        above=_margin(above, separator),
        conditional=conditional,
        shape=table.shape,
        order=tuple(names.index(name) for name in clique),
    )


def _margin(clique: Clique, names: Clique) -> _Margin:
    left = [name for name in clique if name in names]
    return _Margin(
        summed_axes=tuple(axis for axis, name in enumerate(clique) if name not in names),
        order=tuple(left.index(name) for name in names),
    )


def _place(cliques: Sequence[Clique], clique: Clique) -> tuple[int, _Margin]:
    host = next(number for number, other in enumerate(cliques) if set(clique) <= set(other))
    return host, _margin(cliques[host], clique)


def _from_roots(count: int, edges: Sequence[tuple[int, int]]) -> list[tuple[int, int | None]]:
    """Return every node of a forest with its parent, after its parent."""
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for one, two in edges:
        neighbours[one].append(two)
        neighbours[two].append(one)
    parents: dict[int, int | None] = {}
    for root in range(count):
        todo: list[tuple[int, int | None]] = [(root, None)]
        while todo:
            number, parent = todo.pop()
            if number not in parents:
                parents[number] = parent
                todo += [(other, number) for other in neighbours[number]]
    return list(parents.items())


# --------------------------------------------------------------------------------------------------
# Simulated releases, as if a model were the truth (post-processing)

#: From more records on, the deviation of this many is scaled up: the mean and covariance of the counts stay exact.
_MAX_RECORDS = 50_000
#: Codes drawn in the time of one cell of a multinomial.
_CODES_PER_CELL = 1.0


class Simulator:
    """Simulator of releases like `release`, from records of the model with these `potentials`.

    Each draw samples records, counts them, adds fresh noise of the released kind and estimates N again if it was
    estimated. The records are independent: rows of one person that resemble each other are not simulated.

    Parameters
    ----------
    engine : Engine
        Of the model; its structure contains the released cliques, or their attributes where some are latent. One that
        cannot sample raises InferenceError.

    References
    ----------
    Efron and Tibshirani (1993), section 6.5.

    Examples
    --------
    >>> from dpgm_core import Budget, Domain, SeededRandomness, Structure, make, release
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> codes = np.array([[0, 0], [1, 1]] * 500)
    >>> noisy = release(codes, structure, Budget.pure(1), neighbours="add-remove", randomness=SeededRandomness(0))
    >>> engine = make("inference", "junction-tree").compile(structure)
    >>> drawn = Simulator(noisy, engine, Tables.zeros(structure)).draw(SeededRandomness(1))
    >>> round(drawn.total, -2), drawn.private
    (1000.0, False)
    """

    def __init__(self, release: NoisyTables, engine: Engine, potentials: Tables) -> None:
        if "sample" not in engine.capabilities or not isinstance(engine, Sampler):
            raise InferenceError(
                f"{engine_name(engine)} cannot draw records to simulate a release from; use junction-tree"
            )
        release = equalize_totals(release)  # weighted rows are simulated as learners see them, one record per person
        self._release, self._engine, self._potentials = release, engine, potentials
        self._sampler: Sampler = engine
        self._measurement = simulated_measurement(release.measurement)
        self._records = max(1, round(release.total))
        self._expected: FloatArray | None = None
        self._draws: TableDraws | None = None
        codes = len(engine.structure.domain) * min(self._records, _MAX_RECORDS)
        inside = all(engine.structure.covering(clique) is not None for clique in release.structure.cliques)
        if inside and _CODES_PER_CELL * _cells_of_junction_tree(engine.structure) <= codes:
            self._draws = TableDraws(potentials, release.structure)
        elif self._records > _MAX_RECORDS and engine.structure == release.structure:
            self._expected = engine.infer(potentials).marginals.values
        elif self._records > _MAX_RECORDS and not inside and isinstance(engine, Querier):  # latent classes
            self._expected = _answers(engine, potentials, release.structure)

    def draw(self, randomness: Randomness) -> NoisyTables:
        """Return one simulated release, marked as not private: no records are in it."""
        release = self._release
        counts = Tables(release.structure, self._counts(randomness.generator()))
        tables = self._measurement.draw(counts, randomness, release.total)
        total = release.total
        if release.total_policy == "estimated":
            total = estimate_total(tables, release.measurement.total_variances, contrasts=release.contrasts)[0]
        if not release.contrasts:
            tables = emptied(tables)  # as learners see it
        made = evolve(release, tables=tables, total=total, private=False, provenance={"simulated": True})
        return evolve(made, original=None, pooled=(), session=None, steps=())

    def _counts(self, generator: np.random.Generator) -> IntArray:
        """Return true counts of as many records as the release has."""
        if self._draws is not None:
            return self._draws.draw(self._records, generator)
        structure = self._release.structure
        drawn = self._records if self._expected is None else _MAX_RECORDS
        codes = self._sampler.sample(self._potentials, drawn, generator)
        columns = dict(zip(self._engine.structure.domain.names, codes, strict=True))
        counts = count_codes(columns, structure).tables.values
        if self._expected is None:
            return counts.copy()
        deviation = counts - drawn * self._expected
        scaled = self._records * self._expected + math.sqrt(self._records / drawn) * deviation
        rounded: IntArray = np.rint(scaled).astype(np.int64)
        return rounded


def _answers(engine: Querier, potentials: Tables, structure: Structure) -> FloatArray:
    """The expected tables of one record, (structure.cells,), of cliques that lie in no clique of the engine's."""
    cliques = [clique for clique in structure.cliques if clique]
    tables = {(): np.ones(()), **dict(zip(cliques, engine.answers(potentials, cliques), strict=True))}
    return np.concatenate([np.sum([tables[one] for one in group], axis=0).reshape(-1) for group in structure.groups])


# --------------------------------------------------------------------------------------------------
# Parametric bootstrap of a learned model (Efron and Tibshirani 1993, chapter 6; post-processing)

Refit: TypeAlias = Callable[[NoisyTables], Tables]

# Releases refitted together by a learner that can: so many, and of so many cells in all, which take some 30 doubles
# each, 150 MB. Progress is reported in between.
_MAX_REFITS_TOGETHER, _MAX_CELLS_TOGETHER = 40, 2**19


@one_thread
def bootstrap(
    model: Model,
    replicates: int = 40,
    *,
    learner: str | Mapping[str, Any] | Learner | None = None,
    inference: str | Mapping[str, Any] | Inference | None = None,
    randomness: Randomness | None = None,
    progress: Progress | None = None,
) -> Model:
    """Return the model with `replicates` of itself, learned from simulated releases, for error bars.

    A simulated release has records drawn from the model and fresh noise of the released kind; of pooled releases each
    is drawn anew, about the same records. The tuning is fixed. Free in privacy.

    Parameters
    ----------
    learner, inference : name, table or object
        None: those that the model was learned with; only needed when they are not registered.
    randomness : Randomness
        SeededRandomness repeats the draw; None takes the operating system's.

    Raises
    ------
    OptionError
        When the model or its learner cannot be bootstrapped. A refit that fails ends the bootstrap: without the failed
        ones the error bars would be too short.

    Examples
    --------
    >>> from dpgm_core import Budget, Domain, Structure, fit
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> codes = np.array([[0, 0], [1, 1], [1, 1], [0, 1]] * 500)
    >>> done = fit(codes, structure, Budget.pure(1), neighbours="add-remove", randomness=SeededRandomness(1))
    >>> model = bootstrap(done.model, 20, randomness=SeededRandomness(2))
    >>> len(model.replicates), model.standard_errors("a").round(2).tolist()
    (20, [0.01, 0.01])
    """
    refits = _refit_all(model, checked_replicates(replicates), learner, inference, randomness, progress or silent)
    return model.with_replicates(refits)


def _refit_all(
    model: Model, count: int, learner: object, inference: object, randomness: Randomness | None, progress: Progress
) -> Array:
    """Log-potentials of the refits, (count, cells), float32: enough for error bars, and half of the file."""
    release = model.release
    if release is None:
        raise OptionError("the model carries no release, so its noise is unknown and cannot be drawn again")
    name = str(model.provenance.get("learner", {}).get("name", ""))
    learned = len(model.learned)
    if learned > 1 and not model.pooled:
        raise OptionError(
            f"learner {name} cannot be bootstrapped: it learned from {learned} releases, one asked for "
            "after another was seen, and a simulated release cannot answer what it would have asked; learn with one of "
            "a single release"
        )
    if release.round is not None:
        raise OptionError(
            f"learner {name} cannot be bootstrapped: it trains on many noisy rounds that a simulated release does not "
            "hold; learn with another one"
        )
    if any(one.contributions is not None for one in model.releases):
        raise OptionError(
            "a release with normalised contributions cannot be simulated: it does not say how many rows a person has"
        )
    made: Learner = _component("learner", learner, model.provenance, model.provenance.get("tuning", {}))
    used: Inference = _component("inference", inference, model.provenance, {})
    source = _stream(randomness)
    simulator = Simulator(release, model.engine, model.potentials)
    rows = np.empty((count, model.structure.cells), dtype=np.float32)
    number = at_once = 0
    try:
        refit = _refit(made, used, model, source)
        together = min(_MAX_REFITS_TOGETHER, _MAX_CELLS_TOGETHER // model.structure.cells)
        at_once = max(1, together) if isinstance(refit, Refits) else 1
        for number in range(0, count, at_once):
            progress("bootstrap", number, count)
            drawn = [simulator.draw(source) for _ in range(min(at_once, count - number))]
            refits = refit.many(drawn) if isinstance(refit, Refits) else [refit(drawn[0])]
            if len(refits) != len(drawn):
                raise IncompatiblePlugin(f"{len(drawn)} releases refitted by {type(made).__name__} gave {len(refits)}")
            rows[number : number + len(drawn)] = [
                _potentials(one, model, made, used, of) for one, of in zip(refits, drawn, strict=True)
            ]
    except BudgetError as error:  # the learner wants of the curator what one simulated release cannot give
        raise OptionError(f"learner {name or type(made).__name__} cannot be bootstrapped: {error}") from error
    except DpgmError as error:
        last = min(count, number + max(1, at_once))
        which = f"refit {last}" if last == number + 1 else f"refits {number + 1} to {last}"
        error.add_note(f"this happened in {which} of {count} on simulated releases")
        raise
    progress("bootstrap", count, count)
    return rows


def _component(kind: str, component: object, provenance: Mapping[str, Any], tuning: Mapping[str, Any]) -> Any:
    """Return the learner or inference that a model was learned with, or the caller's, with its tuning."""
    record = provenance.get(kind, {})
    if component is not None:
        made = make(kind, component)
        return with_options(made, tuning, what=f"{kind} {type(made).__name__}") if tuning else made
    if "name" not in record:
        what = f"{kind} {record['class']}, which is not registered" if "class" in record else f"an unknown {kind}"
        raise OptionError(f"the model was learned with {what}; give it as bootstrap(model, {kind}=...)")
    options = known_options(default_registry().load(kind, record["name"]), record.get("options", {}))
    return make(kind, {**options, **tuning, "name": record["name"]})


def _stream(randomness: Randomness | None) -> Randomness:
    """Return a random stream of its own: the release's seed must not give the release's noise again."""
    if randomness is None:
        return SystemRandomness()
    if randomness.private:
        return randomness
    return SeededRandomness(int(randomness.generator().integers(2**63)))


def _refit(learner: Learner, inference: Inference, model: Model, randomness: Randomness) -> Refit:
    if isinstance(learner, Refitter) and "tuning" in model.provenance:  # a file that lacks it is older than tuning
        return learner.refitter(model, inference)

    def through_learn(release: NoisyTables) -> Tables:
        curator = ReplayCurator(release, model.structure)
        return run_learner(learner, curator, inference, randomness=randomness).model.potentials

    return through_learn


def _potentials(refit: object, model: Model, learner: Learner, inference: Inference, drawn: NoisyTables) -> Array:
    if not isinstance(refit, Tables) or refit.structure != model.structure:
        raise IncompatiblePlugin(f"a refit by {type(learner).__name__} is not over the model's structure")
    if np.isnan(refit.values).any() or (refit.values == np.inf).any():
        raise InferenceError(f"a refit by {type(learner).__name__} has log-potentials that are NaN or +inf")
    if isinstance(learner, Refitter) and "tuning" in model.provenance:  # of others `run_learner` has done it
        delta, latent = model.conversion_delta, model.latent
        learned = Model(model.structure, refit, releases=model.releases, conversion_delta=delta, latent=latent)
        return rake_margins(learned, [drawn], inference).values
    return refit.values
