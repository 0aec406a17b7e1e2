"""Checks of inference engines: answers and refusals, independent calls, batches, and estimates with errors."""

from __future__ import annotations

import gc
import itertools
import math
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import FrameType
from typing import Any, Generic, TypeVar

import numpy as np
from scipy import stats

from dpgm_core._util.arrays import Array, Codes, FloatArray, IntArray
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DpgmError, InferenceError, TooLarge
from dpgm_core.inference.contract import (
    Batched,
    Beliefs,
    Capability,
    Engine,
    Estimates,
    Estimator,
    Maximizer,
    Querier,
    Rounder,
    Sampler,
)
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing.cases import constrained_structures
from dpgm_testing.check import (
    ALARM,
    CheckFailed,
    Checklist,
    Unserved,
    explored,
    fast_collections,
    require,
    require_refusal,
)
from dpgm_testing.oracles import all_records, enumerated, incidence
from dpgm_testing.strategies import awkward_structures, potentials
from dpgm_testing.subjects import InferenceSubject

__all__ = ["CHECKS", "FAR", "at_once", "awkward_potentials", "close", "errors_of", "growth", "held_up", "say"]

CHECKS = Checklist("inference")

_RECORDS = 20_000  # that checks of draws take of a model


def _exact(
    subject: InferenceSubject, capability: Capability, protocol: type, cases: Iterable[Tables]
) -> Iterator[tuple[int, Any, Tables]]:
    """(number, engine, potentials) of the cases whose engine is exact and has a capability."""
    for number, theta in enumerate(cases):
        try:
            engine: Engine = subject.engine(theta.structure)
        except Unserved:
            continue
        if engine.exact and isinstance(engine, protocol) and capability in engine.capabilities:
            yield number, engine, theta


def _tally(method: str, columns: Codes, theta: Tables) -> tuple[IntArray, FloatArray]:
    """How often each record of the domain is among those drawn, and its probability; impossible ones are refused."""
    sizes = tuple(theta.structure.domain.sizes.values())
    require(len(columns) == len(sizes), f"{method} must give one code array per attribute of the domain")
    rows = np.ravel_multi_index(tuple(np.asarray(column, dtype=np.int64) for column in columns), sizes)
    require(len(rows) == _RECORDS, f"{len(rows)} records instead of {_RECORDS}")
    seen, chances = np.bincount(rows, minlength=math.prod(sizes)), enumerated(theta).probabilities
    require(not seen[chances == 0].any(), f"an impossible record is drawn {say(theta)}")
    return seen, chances


# --- Answers, samples and refusals ----------------------------------------------------------------


def awkward_potentials(scale: float = 1.0) -> list[Tables]:
    """Fixed potentials over every awkward structure, with and without impossible cells."""
    found = []
    for number, structure in enumerate(awkward_structures().values()):
        generator = np.random.default_rng(number)
        values = scale * generator.uniform(-1, 1, size=structure.cells)
        found.append(Tables(structure, values))
        record = np.zeros((1, len(structure.domain)), dtype=np.int64)
        zeros = (generator.random(structure.cells) < 0.3) & (incidence(structure, record)[:, 0] == 0)
        found.append(Tables(structure, np.where(zeros, -np.inf, values)))
    return found


def close(found: Array, expected: Array, tolerance: float) -> bool:
    """Within a relative and absolute tolerance."""
    return bool(np.allclose(found, expected, rtol=tolerance, atol=tolerance))


def say(theta: Tables) -> str:
    """Which model it is, for messages."""
    return f"on cliques {theta.structure.groups} with potentials {np.round(theta.values, 3).tolist()}"


@CHECKS.add()
def nonsense_is_refused(subject: InferenceSubject) -> None:
    """NaN or +inf potentials, and potentials that make every record impossible, raise InferenceError; potentials over
    another structure raise an error of dpgm. Cannot show: that contradictions spread over a cycle are seen."""
    structure = awkward_structures()["chain"]
    engine = subject.engine(structure)
    good = np.zeros(structure.cells)
    wrong = {"NaN": np.where(np.arange(len(good)) == 1, np.nan, good), "+inf": np.where(good == 0, np.inf, good)}
    wrong["+inf in one cell"] = np.where(np.arange(len(good)) == 2, np.inf, good)
    impossible = good.copy()
    impossible[structure.slices[0]] = -np.inf
    wrong["an impossible table"] = impossible
    for what, values in wrong.items():
        with np.errstate(all="ignore"):
            require_refusal(what, partial(engine.infer, Tables(structure, values)), InferenceError)
    other = Tables.zeros(awkward_structures()["cycle"])
    require_refusal("potentials over another structure", partial(engine.infer, other), DpgmError)


@CHECKS.add()
def evidence_is_conditioning(subject: InferenceSubject) -> None:
    """-inf outside an observed code conditions on it: exact engines give the conditional distribution, and log Z falls
    by -log P(evidence). Cannot show: approximate engines beyond zeros where they belong."""
    for name in ("chain", "cycle", "third order", "disconnected"):
        structure = awkward_structures()[name]
        theta = Tables(structure, np.random.default_rng(1).normal(size=structure.cells))
        try:
            engine = subject.engine(structure)
        except Unserved:
            continue
        clique = structure.cliques[0]
        mask = np.full(structure.domain.shape(clique), -np.inf)
        mask[1] = 0.0
        values = theta.values.copy()
        values[structure.slices[0]] += mask.reshape(-1)
        observed = engine.infer(theta.like(values))
        require(
            abs(observed.marginals[clique].sum(axis=tuple(range(1, len(clique))))[1] - 1) < 1e-8,
            f"{name}: {clique[0]} = 1 was observed, but its marginal is not 1 there",
        )
        if engine.exact:
            before = enumerated(theta)
            holds = all_records(structure)[:, structure.domain.names.index(clique[0])] == 1
            chance = float(before.probabilities[holds].sum())
            expected = incidence(structure)[:, holds] @ before.probabilities[holds] / chance
            require(close(observed.marginals.values, expected, 1e-8), f"{name}: not the conditional distribution")
            drop = engine.infer(theta).log_partition - observed.log_partition
            require(
                abs(drop + math.log(chance)) < 1e-8, f"{name}: log Z falls by {drop:.9g}, not {-math.log(chance):.9g}"
            )


@CHECKS.add()
def calls_are_independent(subject: InferenceSubject) -> None:
    """The same potentials give the same answer after other calls, earlier results do not change, and potentials are
    left alone."""
    for name in ("chain", "cycle", "tied"):
        structure = awkward_structures()[name]
        engine = subject.engine(structure)
        one, two = (Tables(structure, np.random.default_rng(seed).normal(size=structure.cells)) for seed in (1, 2))
        before = one.values.copy()
        first = engine.infer(one)
        kept = first.marginals.values.copy(), first.log_partition
        engine.infer(two, total=1e4)
        require(np.array_equal(kept[0], first.marginals.values), f"{name}: a later call overwrote an earlier result")
        again = engine.infer(one)
        require(np.array_equal(kept[0], again.marginals.values), f"{name}: another call changed the answer")
        require(kept[1] == again.log_partition, f"{name}: another call changed log Z")
        require(np.array_equal(before, one.values), f"{name}: the potentials were changed")


@CHECKS.add()
def what_cannot_fit_is_refused(subject: InferenceSubject) -> None:
    """Compiling a clique of 10^15 cells raises TooLarge before anything is allocated, and so does a hopeless graph if
    the engine is exact. Cannot show: where exactly the limit lies."""
    wide = Domain.from_sizes({f"x{place}": 10 for place in range(40)})
    hopeless = {"a clique of 10^15 cells": Structure(wide, [wide.names[:15]])}
    if subject.engine(awkward_structures()["complete"]).exact:
        hopeless["all pairs of 40 attributes"] = Structure.complete(wide)
    for what, structure in hopeless.items():
        require_refusal(
            what, partial(subject.engine, structure), TooLarge, Unserved, answered="is compiled, not refused"
        )


@CHECKS.add(needs="maximize")
@explored(potentials, worst=awkward_potentials)
def maximum_is_the_most_probable_record(subject: InferenceSubject, theta: Tables) -> None:
    """maximize returns a record and its unnormalised log-probability; where the engine is exact no record has a larger
    one."""
    engine = subject.engine(theta.structure)
    if not isinstance(engine, Maximizer) or "maximize" not in engine.capabilities:
        return
    record, value = engine.maximize(theta)
    truth = enumerated(theta)
    codes = np.array([[record[name] for name in theta.structure.domain.names]])
    counts = incidence(theta.structure, codes)[:, 0]
    own = float(np.where(counts > 0, counts * np.where(counts > 0, theta.values, 0.0), 0.0).sum())
    require(abs(own - value) <= 1e-7 * (1 + abs(own)), f"the record has {own:.9g}, not {value:.9g} {say(theta)}")
    best = float(truth.log_joint.max())
    if engine.exact:
        require(abs(value - best) <= 1e-7 * (1 + abs(best)), f"{value:.9g} is not the most, {best:.9g} {say(theta)}")


@CHECKS.add(needs="query")
def answers_equal_enumeration(subject: InferenceSubject) -> None:
    """answers gives the sums over all records for attributes in any order, inside cliques and across, if the engine is
    exact."""
    for _, engine, theta in _exact(subject, "query", Querier, [*awkward_potentials(), *awkward_potentials(20.0)]):
        names = theta.structure.domain.names
        joint = enumerated(theta).probabilities.reshape(theta.structure.domain.shape(names))
        queries = [query for order in (1, 2, 3) for query in itertools.permutations(names, order)]
        for query, table in zip(queries, engine.answers(theta, queries), strict=True):
            axes = [names.index(name) for name in query]
            expected = joint.sum(axis=tuple(axis for axis in range(len(names)) if axis not in axes))
            expected = expected.transpose([sorted(axes).index(axis) for axis in axes])
            require(table.shape == expected.shape, f"{query}: shape {table.shape}, not {expected.shape}")
            require(close(table, expected, 1e-8), f"{query}: not the sum over all records {say(theta)}")


@CHECKS.add(needs="sample")
def samples_follow_the_model(subject: InferenceSubject) -> None:
    """Sampled records have the enumerated probabilities (chi-squared, false alarm 1e-7 per structure) and never an
    impossible one. Cannot show: errors below about 2 % of a record's probability."""
    for number, engine, theta in _exact(subject, "sample", Sampler, awkward_potentials()):
        seen, chances = _tally("sample", engine.sample(theta, _RECORDS, np.random.default_rng(number)), theta)
        common = chances * _RECORDS > 10
        if common.sum() < 2:
            continue
        expected = chances[common] * _RECORDS
        statistic = float(((seen[common] - expected) ** 2 / expected).sum())
        require(stats.chi2.sf(statistic, common.sum()) > ALARM, f"records are not drawn from the model {say(theta)}")


@CHECKS.add(needs="rounded")
def rounded_records_have_the_expected_tables(subject: InferenceSubject) -> None:
    """Of 20,000 rounded records none is impossible, and cells of the cliques with 100 expected records or more have in
    all less than half the squared error of independent records. Cannot show: a bias of single rows."""
    for number, engine, theta in _exact(subject, "rounded", Rounder, awkward_potentials()):
        seen, chances = _tally("rounded", engine.rounded(theta, _RECORDS, np.random.default_rng(number)), theta)
        matrix = incidence(theta.structure.untied())
        expected, found = matrix @ (_RECORDS * chances), matrix @ seen
        common = expected >= 100
        squares = float(((found - expected)[common] ** 2 / expected[common]).sum())
        require(squares <= common.sum() / 2, f"tables are as far off as those of independent records {say(theta)}")


# --- Independent calls ----------------------------------------------------------------------------

T = TypeVar("T")

# Calls of each of two threads, and places where one is held up; of engines whose calls take longer than this many
# seconds, about as many fewer.
_TIMES, _PLACES, _LONG = 30, 48, 0.0005
# How long one thread waits for the other, seconds, besides twice its own time.
_PATIENCE = 0.05
# Calls of one stretch whose memory is measured, and what each may leave behind, bytes. A number kept in a list takes
# 32; what the interpreter itself keeps is some hundred bytes in all.
_CALLS = 350
_FEWEST = 50  # of engines that take long; they may leave as much in all
_BYTES = 24  # less than a kept float and its place in a list; other threads of the process allocate too


@CHECKS.add()
def threads_do_not_meet(subject: InferenceSubject) -> None:
    """A call gives the same while another thread calls the engine, interrupted at some fifty of its lines of Python
    until the other's call is over, and both at once. Cannot show: races within compiled code that never came up."""
    for name in ("chain", "cycle", "tied"):
        structure = awkward_structures()[name]
        engine = subject.engine(structure)
        one, two = (Tables(structure, np.random.default_rng(seed).normal(size=structure.cells)) for seed in (1, 2))
        calls = partial(engine.infer, one), partial(engine.infer, two, total=1e4)
        expected = [call() for call in calls]
        fewer = max(1.0, _seconds(calls[0]) / _LONG)
        times, places = max(4, round(_TIMES / fewer)), max(9, round(_PLACES / fewer))
        for number, answer in (*held_up(*calls, places=places), *at_once(*calls, times=times)):
            where = f"{name}: with two threads at once"
            if isinstance(answer, Exception):
                raise CheckFailed(f"{where} infer raises {type(answer).__name__}: {answer}")
            same = np.array_equal(expected[number].marginals.values, answer.marginals.values)
            require(same, f"{where} the tables are others than one call after the other")
            require(expected[number].log_partition == answer.log_partition, f"{where} log Z is another")


@CHECKS.add()
def calls_leave_nothing_behind(subject: InferenceSubject) -> None:
    """Hundreds of calls, each with potentials of its own, leave no memory taken. Cannot show: memory of compiled code
    that Python does not see."""
    structure = awkward_structures()["chain"]
    engine = subject.engine(structure)
    generator = np.random.default_rng(1)

    def call() -> object:
        return engine.infer(Tables(structure, generator.normal(size=structure.cells)))

    calls = max(_FEWEST, round(_CALLS / max(1.0, _seconds(call) / _LONG)))
    left = growth(call, calls, _CALLS * _BYTES)
    require(
        left <= _CALLS * _BYTES, f"every {calls} calls leave {left:,} bytes behind or more, {left / calls:.0f} each"
    )


def _seconds(call: Callable[[], object]) -> float:
    """What a call takes of the processor: the least of a few, the first of which may have filled something."""
    found = []
    for _ in range(4):
        started = time.thread_time()
        call()
        found.append(time.thread_time() - started)
    return min(found)


def at_once(one: Callable[[], T], two: Callable[[], T], *, times: int) -> list[tuple[int, T | Exception]]:
    """What two calls give when each is made so often by a thread of its own: (0 or 1, answer or exception).

    >>> sorted(at_once(lambda: "a", lambda: "b", times=2))
    [(0, 'a'), (0, 'a'), (1, 'b'), (1, 'b')]
    """
    answers: list[tuple[int, T | Exception]] = []
    threads = [
        threading.Thread(target=lambda number=number, call=call: answers.extend(_made(number, call, times)))
        for number, call in enumerate((one, two))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def held_up(one: Callable[[], T], two: Callable[[], T], *, places: int = 48) -> list[tuple[int, T | Exception]]:
    """What they give when `one` is held up before a line that it runs until `two`, in another thread, is through.

    Once for each of so many lines: a third of them the first that run, a third the last, a third from in between. Where
    `two` waits for `one`, as with a lock, `one` goes on after a moment.

    >>> shared = []
    >>> def first():
    ...     shared[:] = [1]
    ...     return shared[0]
    >>> def second():
    ...     shared[:] = [2]
    ...     return shared[0]
    >>> sorted(set(held_up(first, second)))
    [(0, 1), (0, 2), (1, 2)]
    """
    lines = _Lines(one)
    start = time.perf_counter()
    lines.run(-1, lambda: None)
    patience = _PATIENCE + 2 * (time.perf_counter() - start)
    count, third = lines.seen, places // 3
    chosen = {*range(third), *range(count - third, count), *range(0, count, max(1, count // third))}
    answers: list[tuple[int, T | Exception]] = []
    for place in sorted(chosen & set(range(count))):
        other = threading.Thread(target=lambda: answers.extend(_made(1, two, 1)))

        def meanwhile(other: threading.Thread = other) -> None:
            other.start()
            other.join(patience)

        answers.append((0, lines.run(place, meanwhile)))
        if other.ident is not None:  # it need not have come to that line again
            other.join()
    return answers


class _Lines(Generic[T]):
    """A call that can be held up before any line of Python that it runs."""

    def __init__(self, call: Callable[[], T]) -> None:
        self.call, self.seen = call, 0

    def run(self, place: int, meanwhile: Callable[[], None]) -> T | Exception:
        """Its answer, or its exception; `meanwhile` is called before line number `place`."""
        self.seen = 0

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            if event == "line":
                self.seen += 1
                if self.seen == place + 1:
                    meanwhile()
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            return self.call()
        except Exception as error:
            return error
        finally:
            sys.settrace(before)


def _made(number: int, call: Callable[[], T], times: int) -> Iterator[tuple[int, T | Exception]]:
    for _ in range(times):
        try:
            yield number, call()
        except Exception as error:
            yield number, error


def growth(call: Callable[[], object], calls: int, allowed: int = 0) -> int:
    """How many bytes more are taken after so many calls, by Python's own count; the least of three such stretches,
    after a first one that fills what is filled once. The first stretch that leaves no more than allowed is the last:
    more of them could not make the least one larger.

    >>> kept = []
    >>> growth(lambda: kept.append(bytes(100)), 100) > 100 * 100
    True
    """
    started = not tracemalloc.is_tracing()
    if started:
        tracemalloc.start()
    try:
        left: list[int] = []
        with fast_collections():
            while len(left) < 4 and min(left[1:], default=allowed + 1) > allowed:
                gc.collect()
                before = tracemalloc.get_traced_memory()[0]
                for _ in range(calls):
                    call()
                gc.collect()
                left.append(tracemalloc.get_traced_memory()[0] - before)
        return max(0, min(left[1:]))
    finally:
        if started:
            tracemalloc.stop()


# --- Batches --------------------------------------------------------------------------------------

# Rows of a call: one, two, and more than an engine with eight workers, or blocks of eight, takes at once.
_COUNTS = (1, 2, 19)
_NEAR = 1e-9


def _batched(subject: InferenceSubject, structure: Structure) -> tuple[Engine, Batched] | None:
    """The engine twice, by both of its protocols; None where it answers one after another, or refuses the structure."""
    try:
        engine: Engine = subject.engine(structure)
    except Unserved:
        return None
    return (engine, engine) if isinstance(engine, Batched) else None


def _rows(theta: Tables, count: int) -> FloatArray:
    """Potentials near these, no two rows alike, with zeros where these have some, (count, cells)."""
    return theta.values + np.random.default_rng(count).normal(size=(count, theta.structure.cells))


@CHECKS.add(needs="many")
def many_together_are_each_alone(subject: InferenceSubject) -> None:
    """`infer_many` gives for 1, 2 and 19 rows, in order, the tables, log Z, errors and convergence of `infer`, for any
    total and with impossible cells; nothing for no rows."""
    cases = awkward_potentials()
    if "constraints" in subject.capabilities:
        cases += [Tables(one, np.zeros(one.cells)) for one in constrained_structures().values()]
    for number, theta in enumerate(cases):
        both = _batched(subject, theta.structure)
        if both is None:
            continue
        engine, many = both
        total = (1.0, 0.5, 1e6)[number % 3]
        for count in _COUNTS if number < 6 else _COUNTS[-1:]:
            rows = _rows(theta, count)
            where = f"{count} rows for {total:g} records on cliques {theta.structure.groups}"
            _are(where, many.infer_many(rows.copy(), total=total), engine, rows, total)
        require(len(many.infer_many(rows[:0])) == 0, "for no rows there are beliefs")


def _are(where: str, found: list[Beliefs], engine: Engine, rows: FloatArray, total: float = 1.0) -> None:
    """Compare what was found with a call of `infer` for each row."""
    require(len(found) == len(rows), f"{where}: {len(found)} beliefs were returned")
    for place, (one, row) in enumerate(zip(found, rows, strict=True)):
        alone = engine.infer(Tables(engine.structure, row.copy()), total=total)
        require(one.marginals.structure == engine.structure, f"{where}: the tables are over another structure")
        off = float(np.abs(one.marginals.values - alone.marginals.values).max(initial=0.0)) / total
        require(off <= _NEAR, f"{where}: the tables of row {place} are off by {off:.3g} of those that `infer` gives")
        off = abs(one.log_partition - alone.log_partition)
        require(off <= _NEAR * (1 + abs(alone.log_partition)), f"{where}: log Z of row {place} is off by {off:.3g}")
        require(one.converged == alone.converged, f"{where}: row {place} says converged = {one.converged}")
        both = (one.errors, alone.errors)
        if any(errors is not None for errors in both):
            stated = [None if errors is None else errors.values for errors in both]
            near = stated[0] is not None and stated[1] is not None and close(stated[0], stated[1], 1e-6)
            require(near, f"{where}: the errors of row {place} are others than those of `infer`")


@CHECKS.add(needs="many")
def many_refuse_what_one_refuses(subject: InferenceSubject) -> None:
    """One row of NaN, +inf or an impossible table, wherever it stands, raises InferenceError; rows of another length an
    error of dpgm."""
    structure = awkward_structures()["chain"]
    both = _batched(subject, structure)
    if both is None:
        return
    many, cells = both[1], structure.cells
    odd = {"NaN": np.where(np.arange(cells) == 1, np.nan, 0.0), "+inf": np.where(np.arange(cells) == 1, np.inf, 0.0)}
    odd["an impossible table"] = np.where(np.arange(cells) < structure.sizes[0], -np.inf, 0.0)
    calls: dict[str, tuple[FloatArray, type[DpgmError]]] = {
        "rows that are too short": (np.zeros((3, cells - 1)), DpgmError),
        "one row by itself": (np.zeros(cells), DpgmError),
    }
    for what, values in odd.items():
        for place in (0, 9, 18):
            rows = np.zeros((19, cells))
            rows[place] = values
            calls[f"{what} in row {place} of 19"] = (rows, InferenceError)
    for what, (rows, kind) in calls.items():
        with np.errstate(all="ignore"):
            require_refusal(f"infer_many of {what}", partial(many.infer_many, rows), kind)


@CHECKS.add(needs="many")
def many_share_nothing(subject: InferenceSubject) -> None:
    """Beliefs of one call or two, and rows, share no memory; rows are unchanged, in any order of memory; two threads do
    not meet. Cannot show: races within compiled code."""
    for name in ("chain", "cycle", "tied"):
        structure = awkward_structures()[name]
        both = _batched(subject, structure)
        if both is None:
            continue
        engine, many = both
        theta = Tables(structure, np.zeros(structure.cells))
        one, two = _rows(theta, 5), _rows(theta, 6)
        before = one.copy()
        first, second = many.infer_many(one), many.infer_many(two, total=1e4)
        require(np.array_equal(before, one), f"{name}: the rows were changed")
        _are(f"{name}: after another call", first, engine, one)
        tables = [beliefs.marginals.values for beliefs in (*first, *second)]
        for values in _pairs([*tables, one, two]):
            require(not np.shares_memory(*values), f"{name}: two beliefs, or beliefs and rows, share their memory")
        for what, form in {
            "Fortran order": np.asfortranarray(one),
            "every second row": np.repeat(one, 2, 0)[::2],
        }.items():
            _are(f"{name}: rows in {what}", many.infer_many(form), engine, one)
        calls = partial(many.infer_many, one), partial(many.infer_many, two, total=1e4)
        expected = [[beliefs.marginals.values.copy() for beliefs in answer] for answer in (first, second)]
        for number, answer in (*held_up(*calls, places=12), *at_once(*calls, times=6)):
            if isinstance(answer, Exception):
                raise CheckFailed(f"{name}: with two threads infer_many raises {type(answer).__name__}: {answer}")
            same = all(
                close(beliefs.marginals.values, values, _NEAR)
                for beliefs, values in zip(answer, expected[number], strict=True)
            )
            require(same, f"{name}: with two threads at once the tables are others than one call after the other")


def _pairs(arrays: list[FloatArray]) -> Iterator[tuple[FloatArray, FloatArray]]:
    yield from ((one, other) for place, one in enumerate(arrays) for other in arrays[:place])


# --- Estimates with errors ------------------------------------------------------------------------

#: Standard errors beyond which an answer is wrong: of a normal law 3e-12 are, of Student's with 20 degrees of freedom
#: 9e-7, and an engine states errors from about as many.
FAR = 7.0
# How many times the variance of independent records' tables those of drawn ones may have.
_DEPENDENT = 4.0


def errors_of(beliefs: Beliefs) -> tuple[FloatArray | float, float]:
    """By how much marginals and log Z may be off by chance: 0 of engines that do not draw."""
    if beliefs.errors is None or beliefs.log_partition_error is None:
        return 0.0, 0.0
    return FAR * beliefs.errors.values, FAR * beliefs.log_partition_error


def _mild(subject: InferenceSubject) -> Iterator[tuple[str, Engine, Tables, int]]:
    """Name, engine, potentials at which any chain of records forgets where it was, and number of awkward structures."""
    for number, (name, structure) in enumerate(awkward_structures().items()):
        try:
            engine = subject.engine(structure)
        except Unserved:
            continue
        yield name, engine, Tables(structure, np.random.default_rng(number).uniform(-0.5, 0.5, structure.cells)), number


def _queries(structure: Structure) -> list[tuple[str, ...]]:
    names = structure.domain.names
    return [(name,) for name in names] + [(names[-1], names[0])] * (len(names) > 1) + [names] * (len(names) > 2)


@CHECKS.add(needs="estimate")
def errors_are_stated(subject: InferenceSubject) -> None:
    """An engine with "estimate" states finite errors of every marginal and of log Z, for any total, the same in
    `estimates` as in `answers`, above 0 where the answer is neither 0 nor 1, calls itself approximate, and its notes
    are sentences."""
    for name, engine, theta, _ in _mild(subject):
        require(not engine.exact, f"{name}: it states errors and calls itself exact")
        require(isinstance(engine, Estimator), f"{name}: {type(engine).__name__} lacks members of Estimator")
        assert isinstance(engine, Estimator)
        one, ten = engine.infer(theta), engine.infer(theta, total=10)
        for beliefs in (one, ten):
            errors, log_error = beliefs.errors, beliefs.log_partition_error
            require(errors is not None and log_error is not None, f"{name}: `infer` states no errors")
            assert errors is not None
            assert log_error is not None
            require(errors.structure == theta.structure, f"{name}: the errors are over another structure")
            require(_plain(errors.values) and 0 <= log_error < math.inf, f"{name}: an error is negative or not finite")
        assert one.errors is not None
        assert ten.errors is not None
        scaled = np.allclose(ten.errors.values, 10 * one.errors.values, rtol=1e-9)
        require(scaled, f"{name}: the errors for 10 records are not ten times those of one")
        queries = _queries(theta.structure)
        found: object = engine.estimates(theta, queries)
        require(isinstance(found, Estimates), f"{name}: `estimates` returned {type(found).__name__}, not Estimates")
        assert isinstance(found, Estimates)
        require(len(found.tables) == len(found.errors) == len(queries), f"{name}: not a table and errors per query")
        for query, table, off in zip(queries, found.tables, found.errors, strict=True):
            shape = theta.structure.domain.shape(query)
            require(table.shape == off.shape == shape, f"{name}: {query} has another shape than {shape}")
            require(_plain(off) and bool((off[(table > 0) & (table < 1)] > 0).all()), f"{name}: no error of {query}")
        answers = engine.answers(theta, queries) if "query" in engine.capabilities else found.tables  # type: ignore[attr-defined]
        same = all(np.array_equal(one, two) for one, two in zip(answers, found.tables, strict=True))
        require(same, f"{name}: `answers` and `estimates` say different things")
        for note in (*found.notes, *engine.caveats(theta)):
            require(isinstance(note, str) and note.strip(), f"{name}: notes and caveats must be sentences")


def _plain(errors: FloatArray) -> bool:
    return bool(np.isfinite(errors).all() and (errors >= 0).all())


@CHECKS.add(needs="estimate")
def errors_hold(subject: InferenceSubject) -> None:
    """At potentials within half a nat it says that it converged, and marginals, log Z and answers are within seven
    stated errors of enumeration (false alarm below 1e-6 per table). Cannot show: strong couplings."""
    for name, engine, theta, _ in _mild(subject):
        assert isinstance(engine, Estimator)
        beliefs, truth = engine.infer(theta), enumerated(theta)
        require(beliefs.converged, f"{name}: it has not converged, at potentials within half a nat")
        marginals, log_partition = errors_of(beliefs)
        off = np.abs(beliefs.marginals.values - truth.marginals.values)
        require(bool((off <= marginals + 1e-9).all()), f"{name}: a marginal is {off.max():.3g} off, beyond its error")
        missed = abs(beliefs.log_partition - truth.log_partition)
        require(missed <= log_partition + 1e-9, f"{name}: log Z is {missed:.3g} off, beyond its error")
        joint = truth.probabilities.reshape(theta.structure.domain.shape(theta.structure.domain.names))
        queries = _queries(theta.structure)
        found = engine.estimates(theta, queries)
        for query, table, errors in zip(queries, found.tables, found.errors, strict=True):
            axes = [theta.structure.domain.names.index(one) for one in query]
            margin = joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in axes))
            expected = margin.transpose([sorted(axes).index(axis) for axis in axes])
            good = bool((np.abs(table - expected) <= FAR * errors + 1e-9).all())
            require(good, f"{name}: {query} is off beyond its error")


@CHECKS.add(needs="estimate")
def errors_are_no_larger_than_they_are(subject: InferenceSubject) -> None:
    """Over all cells of mild models the root mean square of (answer less truth) over (stated error) is at least a
    tenth. Cannot show: single cells."""
    ratios: list[float] = []
    for _, engine, theta, _ in _mild(subject):
        beliefs = engine.infer(theta)
        assert beliefs.errors is not None
        truth = enumerated(theta).marginals.values
        some = (truth > 0) & (beliefs.errors.values > 0)
        ratios += list((beliefs.marginals.values - truth)[some] / beliefs.errors.values[some])
    typical = math.sqrt(float(np.mean(np.square(ratios))))
    require(
        typical >= 0.1, f"answers are off by {typical:.2g} of the errors stated: these are too large to tell anything"
    )


@CHECKS.add(needs="estimate")
def draws_follow_the_model(subject: InferenceSubject) -> None:
    """20,000 records drawn at mild potentials have the enumerated probabilities, to seven times twice the error of
    independent records (false alarm below 1e-10 per record), and the same generator gives the same ones. Cannot show:
    how much records depend on each other, beyond that."""
    for name, engine, theta, number in _mild(subject):
        if not isinstance(engine, Sampler) or "sample" not in engine.capabilities:
            return
        one, two = (engine.sample(theta, _RECORDS, np.random.default_rng(number)) for _ in range(2))
        same = all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
        require(same, f"{name}: the same generator gives other records")
        counts, chances = _tally(f"{name}: sample", one, theta)
        seen = counts / _RECORDS
        allowed = FAR * np.sqrt(_DEPENDENT * chances / _RECORDS) + FAR * _DEPENDENT / _RECORDS
        off = float(np.abs(seen - chances).max())
        require(
            bool((np.abs(seen - chances) <= allowed).all()), f"{name}: a record is drawn {off:.3g} too often or rarely"
        )
