"""One way to sums, wherever the rows are: the same bits, looked at before they are believed."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpgm_core.counting.passes import TableCounts
from dpgm_core.counting.rows import Elsewhere, Recoded, Streamed, open_rows
from dpgm_core.counting.statistic import PairCounts, Sum
from dpgm_core.counting.table_counts import Counts, count
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError
from dpgm_core.sources import as_source
from dpgm_core.sources.contract import Reading, Reduction
from dpgm_core.sources.engines import Shipped, received
from dpgm_core.structure.structure import Structure

DOMAIN = Domain.from_sizes({"a": 3, "b": 300, "c": 2})
TABLE = pa.table(
    {
        "a": np.arange(900) % 3,
        "b": np.arange(900) * 7 % 300,
        "c": np.arange(900) // 450,
        "id": np.arange(900) // 3,
    }
)
CHAIN = Counts.of(Structure.chain(DOMAIN))


class InParts:
    """A source that sums in nine partitions, each cut between persons, and says when it is open."""

    def __init__(self, table: pa.Table = TABLE) -> None:
        self.table, self.events = table, []  # type: ignore[var-annotated]

    @contextmanager
    def pinned(self, reading: Reading) -> Iterator[InParts]:
        self.work = Shipped(reading=reading)
        self.events.append("pinned")
        try:
            yield self
        finally:
            self.events.append("dropped")

    def reduce(self, reduction: Reduction) -> np.ndarray[Any, np.dtype[np.int64]]:
        sent = pickle.loads(pickle.dumps(reduction))
        parts = [self.table.slice(start, 99).to_batches() for start in range(0, self.table.num_rows, 99)]
        return received([self.work.summed(sent, batches) for batches in parts], reduction)


class Answers:
    """A source that brings back whatever it is told to."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    @contextmanager
    def pinned(self, reading: Reading) -> Iterator[Answers]:
        yield self

    def reduce(self, reduction: Reduction) -> Any:
        return self.answer


@pytest.mark.parametrize("person", [None, "id"])
def test_every_source_gives_the_same_sums(person: str | None) -> None:
    """Streamed here and summed where the rows are, bit for bit."""
    reading = Reading(domain=DOMAIN, columns=CHAIN.columns, person=person, rows_per_person=2)
    sums = []
    for source in (as_source(TABLE), InParts()):
        with open_rows(source, reading) as rows:
            sums.append(rows.total(CHAIN))
    assert isinstance(rows, Elsewhere)
    assert sums[0].tobytes() == sums[1].tobytes() and sums[0][-1] == (900 if person is None else 600)


def test_the_context_of_a_source_is_left_whatever_happens() -> None:
    """What it keeps is dropped, also when a sum fails."""
    source = InParts()
    with pytest.raises(ZeroDivisionError), open_rows(source, Reading(domain=DOMAIN, columns=("a",))):
        raise ZeroDivisionError
    assert source.events == ["pinned", "dropped"]


def test_merged_codes_are_looked_up_where_the_rows_are() -> None:
    """Twice merged, over 300 codes that need two bytes: the counts of the table with the new codes."""
    first = {"b": np.arange(300) // 2}
    second = {"b": np.arange(150) // 100, "a": np.array([0, 1, 1])}
    middle, last = Domain.from_sizes({"a": 3, "b": 150, "c": 2}), Domain.from_sizes({"a": 2, "b": 2, "c": 2})
    fewer = Counts.of(Structure.chain(last))
    columns = {name: TABLE[name].to_numpy() for name in DOMAIN.names}
    columns |= {"b": second["b"][first["b"][columns["b"]]], "a": second["a"][columns["a"]]}
    expected = count(as_source(columns), fewer.structure).tables.values
    with open_rows(InParts(), Reading(domain=DOMAIN, columns=DOMAIN.names)) as rows:
        assert isinstance(rows, Elsewhere)
        merged = rows.recoded(first, middle).recoded(second, last)
        assert fewer.tables(merged.total(fewer)).values.tolist() == expected.tolist()
        assert {name: codes.dtype for name, codes in merged.codes.items()} == dict.fromkeys("ab", np.dtype(np.uint8))
        assert len(rows.total(CHAIN)) == CHAIN.cells > fewer.cells  # the first rows are as they were


def test_a_sum_of_merged_codes_pickles_and_is_checked_as_its_own() -> None:
    """It travels with what it looks up."""
    recoded = pickle.loads(pickle.dumps(Recoded(Counts.of(Structure(DOMAIN, [("a",)])), {"a": np.zeros(3, np.uint8)})))
    sums = recoded.partial([np.array([0, 1, 2], np.uint8)], None)
    assert sums.tolist() == [3, 0, 0, 3] and recoded.columns == ("a",) and recoded.cells == 4
    recoded.check(sums)
    with pytest.raises(DataError):
        recoded.check(sums + np.array([1, 0, 0, 0]))


WHOLE = Counts.of(Structure(DOMAIN, [("a",)]))


@pytest.mark.parametrize(
    "answer",
    [None, [1, 0, 0, 1], np.array([1.0, 0, 0, 1]), np.array([1, 0, 0, 1], np.int32), np.array([[1, 0, 0, 1]]),
     np.array([1, 0, 1]), np.array([1]), np.array([1, 0, 0, 1], np.uint64), np.array([1, 0, 0, 0, 1]), "SECRET"],
    ids=repr,
)  # fmt: skip
def test_what_comes_back_is_a_vector_of_whole_numbers_of_its_length(answer: Any) -> None:
    """Anything else is refused, and not quoted."""
    with open_rows(Answers(answer), Reading(domain=DOMAIN, columns=("a",))) as rows:
        with pytest.raises(DataError, match="no vector of whole numbers") as caught:
            rows.total(WHOLE)
        assert "SECRET" not in str(caught.value)


def test_sums_that_do_not_fit_together_are_refused() -> None:
    """The statistic's own check is asked before anybody sees the sum."""
    source, reading = Answers(np.array([1, 0, 0, 2])), Reading(domain=DOMAIN, columns=("a",))
    with open_rows(source, reading) as rows, pytest.raises(DataError, match="fit together"):
        rows.total(WHOLE)


def test_sums_of_one_context_are_of_the_same_records() -> None:
    """A pass that lost a partition, or saw another one, is told from an earlier pass, whatever each counts."""
    pairs = PairCounts(Structure(DOMAIN, [("a", "c")]))
    odd = Recoded(Counts.of(Structure(DOMAIN, [("c",)])), {"c": np.array([1, 1], np.uint8)})
    for later in (pairs, odd, TableCounts(CHAIN.structure)):
        source = InParts()
        with open_rows(source, Reading(domain=DOMAIN, columns=DOMAIN.names)) as rows:
            assert isinstance(rows, Elsewhere)
            rows.total(CHAIN)
            again = rows.recoded({}, DOMAIN)
            again.total(later)
            source.table = TABLE.slice(99)
            with pytest.raises(DataError, match="changed from one pass over them to the next") as caught:
                again.total(later)
            assert not any(letter.isdigit() for letter in str(caught.value))


def test_an_answer_is_taken_as_the_array_that_it_is() -> None:
    """A child of arrays would be shown what is done with true sums."""

    class Child(np.ndarray):  # type: ignore[type-arg]
        def __array_finalize__(self, obj: Any) -> None: ...

    answer = np.array([1, 0, 0, 1]).view(Child)
    with open_rows(Answers(answer), Reading(domain=DOMAIN, columns=("a",))) as rows:
        found = rows.total(WHOLE)
    assert type(found) is np.ndarray and not np.shares_memory(found, answer) and found.tolist() == [1, 0, 0, 1]


def test_progress_of_rows_that_are_read_here_says_nothing_of_them() -> None:
    """Start and end of each sum."""
    told: list[tuple[str, int, int | None]] = []
    reading = Reading(domain=DOMAIN, columns=("a",))
    with open_rows(as_source(TABLE), reading, lambda *call: told.append(call)) as rows:
        assert isinstance(rows, Streamed)
        rows.total(WHOLE)
    assert told == [("counting", 0, None), ("counting", 1, 1)]


def test_sums_may_be_any() -> None:
    """A sum of which nothing is known is only held to its length."""

    class Odd(Sum):
        columns, cells = ("a",), 1

        def add(self, codes: Any, lengths: Any, sums: Any) -> None:
            sums -= len(codes[0])

    with open_rows(as_source(TABLE), Reading(domain=DOMAIN, columns=("a",))) as rows:
        assert rows.total(Odd()).tolist() == [-900]
