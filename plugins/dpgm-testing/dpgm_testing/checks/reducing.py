"""Checks of sources that sum where the rows are: the same whole numbers as here, of the same records, silently."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dpgm_core._util.arrays import IntArray
from dpgm_core.counting.rows import Streamed
from dpgm_core.counting.weights import WeightedCounts
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError
from dpgm_core.privacy.sensitivity import Contributions
from dpgm_core.sources.contract import KeyedSource, Reading
from dpgm_core.structure.structure import Structure
from dpgm_testing.check import Checklist, require, require_no_quote
from dpgm_testing.curators import overhearing
from dpgm_testing.reductions import PLANTED, Failing, embedded, tallies
from dpgm_testing.sources import DOMAIN, attempted, example_table, in_chunks, opened, pinned, study
from dpgm_testing.subjects import SourceSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("source")

#: Rows of the table in many chunks; no number of chunks divides them.
_ROWS = 4_001


@CHECKS.add(needs="reduces")
def sums_are_whole_numbers(subject: SourceSubject) -> None:
    """A sum is an int64 array of as many cells as were asked for, and the caller's own: it may be written into. Cannot
    show: that the numbers are right."""
    own = study(subject)
    for name, expected in own.expected.items():
        found = own.vector(name)
        require(isinstance(found, np.ndarray), f"{name}: a {type(found).__name__} came back, not an array")
        require(found.dtype == np.int64, f"{name}: what came back is {found.dtype}, not int64")
        require(found.shape == expected.shape, f"{name}: the shape is {found.shape}, not {expected.shape}")
        require(found.flags.writeable, f"{name}: the array is read-only; hand out one of the caller's own")
    require(
        not (own.vector("again") == -7).any(),
        "what the caller wrote into one sum is in the next: hand out a fresh array",
    )


@CHECKS.add(needs="reduces")
def sums_are_those_of_the_rows(subject: SourceSubject) -> None:
    """Counts, gradients, sums over merged codes and sums beyond 32 bits and 2^53 are, bit for bit, what core sums from
    the same rows. Cannot show: other sums, and other records than the example's in 7 chunks."""
    own = study(subject)
    for name in ("counts", "gradients", "recoded", "large"):
        _require_equal(name, own.vector(name), own.expected[name])


def _require_equal(what: str, found: Any, expected: IntArray) -> None:
    if np.array_equal(found, expected):
        return
    same = isinstance(found, np.ndarray) and found.shape == expected.shape
    cells = f"{np.count_nonzero(found != expected)} of {len(expected)} cells differ" if same else "the shape differs"
    require(False, f"{what}: the sum is not that of the rows: {cells}")


@CHECKS.add(needs="reduces")
def sums_take_columns_as_asked(subject: SourceSubject) -> None:
    """A sum is given the codes of its own columns, in its own order, whatever the order of the domain and of the table.
    Cannot show: names that an engine takes for one another."""
    own = study(subject)
    _require_equal("columns in another order than the domain's", own.vector("hidden"), own.expected["hidden"])
    _require_equal("two of four columns", own.vector("large"), own.expected["large"])


@CHECKS.add(needs="reduces")
def counting_in_its_own_way_changes_nothing(subject: SourceSubject) -> None:
    """Counts by groups of columns, which an engine may count itself (`Grouped`), equal the same counts when it knows no
    more than that they are a sum: tables of four attributes and of two, in another order than the domain's. Cannot
    show: whether it counts in a way of its own at all."""
    own = study(subject)
    _require_equal("counts by groups", own.vector("counts"), own.vector("hidden"))


@CHECKS.add(needs="reduces")
def partitions_change_nothing(subject: SourceSubject) -> None:
    """4,001 rows in one chunk, and shuffled in 64, of which the first has one row and the last and another none, have
    the sums of the rows: each row once. Cannot show: anything where `records` keeps no chunks apart; workers that
    die."""
    table = example_table(_ROWS, seed=1)
    counts = tallies(DOMAIN, [DOMAIN.names, ("coded", "age")])
    reading = Reading(domain=DOMAIN, columns=DOMAIN.names)
    expected = embedded(table, reading, counts)
    generator = np.random.default_rng(2)
    cuts = np.sort(generator.integers(1, _ROWS, 60)).tolist()
    shuffled = table.take(pa.array(generator.permutation(_ROWS)))
    for cut in ((0, _ROWS), (0, 1, *cuts, cuts[30], _ROWS, _ROWS)):
        data = in_chunks(shuffled if len(cut) > 2 else table, sorted(cut))
        with pinned(subject, data, reading) as pin:
            _require_equal(f"{len(cut) - 1} chunks", pin.reduce(counts), expected)


@CHECKS.add(needs="reduces")
def persons_meet_across_partitions(subject: SourceSubject) -> None:
    """Of a person whose rows lie in several chunks so many count in all, those that `PersonSource` keeps: counts
    weighted of two rows each by text keys, plain ones of one row each by 64-bit keys. A null key and an empty one are
    one person; "7" and "07" are two, and so are 2^53 and 2^53 + 1; nobody is no failure. Rows handed out with their
    keys (`KeyedSource`) give the same sums. Cannot show: other types of keys, and parts too large for memory."""
    weighted = WeightedCounts(Structure(DOMAIN, [DOMAIN.names]), Contributions(per="clique", grid=60))
    counts = tallies(DOMAIN, [("visits", "town")])
    for keys, rows, reduction in ((_text_keys(), 2, weighted), (_whole_keys(), 1, counts), (_no_keys(), 1, counts)):
        generator = np.random.default_rng(rows)
        table = example_table(len(keys), seed=rows).append_column("person", keys)
        table = table.take(pa.array(generator.permutation(len(keys)), pa.int64()))
        cuts = [min(cut, len(keys)) for cut in (0, 40, 41, 90, 90)]
        reading = Reading(domain=DOMAIN, columns=reduction.columns, person="person", rows_per_person=rows)
        what = f"{rows} of the rows of each person, {len(keys)} keys of type {keys.type}"
        expected = embedded(table, reading, reduction)
        with opened(subject, in_chunks(table, (*cuts, len(keys)))) as source:
            with source.pinned(reading) as pin:
                _require_equal(what, pin.reduce(reduction), expected)
            if isinstance(source, KeyedSource):
                _require_equal(f"handed out, {what}", Streamed(source, reading).total(reduction), expected)


def _text_keys() -> Any:
    words = ["7", "07", "7.0", "a", "A", "é", " 7"]
    return pa.array([*[words[number % 7] for number in range(70)], *[""] * 9, *[None] * 8, *map(str, range(100, 140))])


def _no_keys() -> Any:
    return pa.array([], pa.string())


def _whole_keys() -> Any:
    few = [2**53, 2**53 + 1, -1, 0, 7]
    return pa.array([*[few[number % 5] for number in range(60)], *[None] * 7, *range(100, 160)], pa.int64())


@CHECKS.add(needs="reduces")
def sums_of_one_pin_are_of_the_same_records(subject: SourceSubject) -> None:
    """While records are pinned sums of the same are the same, and a table that is changed meanwhile does not show, or
    the sum fails with DataError: `records`, called again with the folder it wrote to and twice the rows, may replace
    the others. Cannot show: changes where `records` does not, or fails."""
    own = study(subject)
    _require_equal("the same sum once more", own.vector("again"), own.expected["counts"])
    table, reading = example_table(40), Reading(domain=DOMAIN, columns=DOMAIN.names, several=True)
    counts = tallies(DOMAIN, [("town", "visits")])
    with tempfile.TemporaryDirectory() as folder:
        source: Any = subject.open(in_chunks(table, (0, 20, 40)), Path(folder))
        with source.pinned(reading) as pin:
            first = pin.reduce(counts)
            _require_equal("the first sum", first, embedded(table, reading, counts))
            try:
                subject.open(pa.concat_tables([table, table]), Path(folder))
            except Exception:  # it does not put new rows in the place of the old ones
                return
            second = attempted(pin, counts)
    if isinstance(second, Exception):
        require(isinstance(second, DataError), f"a changed table gives {type(second).__name__}, not DataError")
        return
    _require_equal("after the table was changed", second, first)


@CHECKS.add(needs="reduces")
def a_pin_that_was_left_sums_no_more(subject: SourceSubject) -> None:
    """After its context was left a pin raises DataError: what was kept for it is gone. Cannot show: that it is."""
    left = study(subject).found["left"]
    require(left is not None, "nothing could be pinned")
    require(not isinstance(left, np.ndarray), "a pin that was left still brings back a sum; raise SourceRefused")
    require(isinstance(left, DataError), f"a pin that was left raises {type(left).__name__}, not DataError")


@CHECKS.add(needs="reduces")
def what_has_no_codes_is_refused_when_pinned(subject: SourceSubject) -> None:
    """A missing person key, a column of lists and keys that are floats raise DataError where records are pinned, before
    any sum, and do so without any row: what is refused says nothing of the records. Cannot show: types that `records`
    raises for."""
    plain = example_table(20)
    lists = pa.array([["A"]] * 20, pa.list_(pa.string()))
    cases = {
        "a missing person key": (plain, "person"),
        "a column of lists": (plain.set_column(0, "town", lists), None),
        "keys that are floats": (plain.append_column("person", pa.array([1.0, 2.0] * 10)), "person"),
    }
    for what, (table, person) in cases.items():
        for some, rows in ((table, "with rows"), (table.slice(0, 0), "without rows")):
            reading = Reading(domain=DOMAIN, columns=DOMAIN.names, person=person)
            with tempfile.TemporaryDirectory() as folder:
                try:
                    source: Any = subject.open(some, Path(folder))
                except Exception:  # such a table cannot be there
                    continue
                error = _entered(source, reading)
            require(
                error is not None,
                f"{what}, {rows}, can be pinned; refuse it before any sum (if it cannot be there, let `records` raise)",
            )
            require(isinstance(error, DataError), f"{what}, {rows}, gives {type(error).__name__}, not DataError")


def _entered(source: Any, reading: Reading) -> Exception | None:
    try:
        with source.pinned(reading):
            return None
    except Exception as error:
        return error


@CHECKS.add(needs="reduces")
def a_failure_where_the_rows_are_says_nothing(subject: SourceSubject) -> None:
    """A sum that fails where the rows are, in words that quote a record, comes out as DataError without them in its
    message, cause or context, on stdout or stderr, in warnings or logs of this process and those it starts. Cannot
    show: what processes print that ran before, and logs elsewhere."""
    table = pa.table({"town": pa.array([PLANTED, "A"] * 10), "visits": pa.array([7] * 20)})
    counts = tallies(Domain([DOMAIN["town"], DOMAIN["visits"]]), [("town", "visits")])
    reading = Reading(domain=counts.structure.domain, columns=counts.columns)
    with overhearing() as heard, pinned(subject, in_chunks(table, (0, 10, 20)), reading) as pin:
        error = attempted(pin, Failing(counts))
    require(isinstance(error, Exception), "a sum that fails in each partition brings back numbers")
    require(isinstance(error, DataError), f"a sum that fails gives {type(error).__name__}, not DataError")
    require(PLANTED not in heard.text, "what fails is printed or logged with a record in it")
    require_no_quote(error, PLANTED)


@CHECKS.add(needs="reduces")
def a_source_shows_nothing_of_the_records(subject: SourceSubject) -> None:
    """Neither the repr of the source nor that of a pin holds a record's value. Cannot show: what attributes hold."""
    table = pa.table({"town": pa.array([PLANTED] * 3)})
    reading = Reading(domain=Domain([DOMAIN["town"]]), columns=("town",))
    with opened(subject, table) as source, source.pinned(reading) as pin:
        shown = f"{source!r}{source!s}{pin!r}{pin!s}"
    require(PLANTED not in shown, "the repr of the source, or of a pin, shows a record")
