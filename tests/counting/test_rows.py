"""Where rows are: the same sums everywhere, and subsamples by exact coins, of all rows of a person or none."""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpgm_core import DataError, Domain, SeededRandomness, Structure, SystemRandomness
from dpgm_core.counting.rows import Elsewhere, Recoded, Streamed, draw_subsample, open_rows, read_persons
from dpgm_core.counting.statistic import PairCounts, Sum
from dpgm_core.counting.table_counts import Counts, TableCounts, count
from dpgm_core.sources import as_source
from dpgm_core.sources.contract import Reading
from dpgm_core.sources.engines import Shipped, received
from dpgm_core.sources.persons import PersonSource
from tests.fixtures import Words

DOMAIN = Domain.from_sizes({"a": 3, "b": 300, "c": 2})
TABLE = pa.table(
    {"a": np.arange(900) % 3, "b": np.arange(900) * 7 % 300, "c": np.arange(900) // 450, "id": np.arange(900) // 3}
)

CHAIN = Counts.of(Structure.chain(DOMAIN))


class InParts:
    """A source that sums in nine partitions, each cut between persons, and says when it is open."""

    def __init__(self, table=TABLE):
        self.table, self.events = table, []

    @contextmanager
    def pinned(self, reading):
        self.work = Shipped(reading=reading)
        self.events.append("pinned")
        try:
            yield self
        finally:
            self.events.append("dropped")

    def reduce(self, reduction):
        sent = pickle.loads(pickle.dumps(reduction))
        parts = [self.table.slice(start, 99).to_batches() for start in range(0, self.table.num_rows, 99)]
        return received([self.work.summed(sent, batches) for batches in parts], reduction)


class Answers:
    """A source that brings back whatever it is told to."""

    def __init__(self, answer):
        self.answer = answer

    @contextmanager
    def pinned(self, reading):
        yield self

    def reduce(self, reduction):
        return self.answer


@pytest.mark.parametrize("person", [None, "id"])
def test_every_source_gives_the_same_sums(person):
    reading = Reading(domain=DOMAIN, columns=CHAIN.columns, person=person, rows_per_person=2)
    sums = []
    for source in (as_source(TABLE), InParts()):
        with open_rows(source, reading) as rows:
            sums.append(rows.total(CHAIN))
    assert isinstance(rows, Elsewhere)
    assert sums[0].tobytes() == sums[1].tobytes() and sums[0][-1] == (900 if person is None else 600)


def test_the_context_of_a_source_is_left_whatever_happens():
    source = InParts()
    with pytest.raises(ZeroDivisionError), open_rows(source, Reading(domain=DOMAIN, columns=("a",))):
        raise ZeroDivisionError
    assert source.events == ["pinned", "dropped"]


def test_merged_codes_are_looked_up_where_the_rows_are():
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


def test_a_sum_of_merged_codes_pickles_and_is_checked_as_its_own():
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
def test_what_comes_back_is_a_vector_of_whole_numbers_of_its_length(answer):
    """Anything else is refused, and not quoted."""
    with open_rows(Answers(answer), Reading(domain=DOMAIN, columns=("a",))) as rows:
        with pytest.raises(DataError, match="no vector of whole numbers") as caught:
            rows.total(WHOLE)
        assert "SECRET" not in str(caught.value)


def test_sums_that_do_not_fit_together_are_refused():
    """The statistic's own check is asked before anybody sees the sum."""
    source, reading = Answers(np.array([1, 0, 0, 2])), Reading(domain=DOMAIN, columns=("a",))
    with open_rows(source, reading) as rows, pytest.raises(DataError, match="fit together"):
        rows.total(WHOLE)


def test_sums_of_one_context_are_of_the_same_records():
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


def test_an_answer_is_taken_as_the_array_that_it_is():
    """A child of arrays would be shown what is done with true sums."""

    class Child(np.ndarray):
        def __array_finalize__(self, obj): ...

    answer = np.array([1, 0, 0, 1]).view(Child)
    with open_rows(Answers(answer), Reading(domain=DOMAIN, columns=("a",))) as rows:
        found = rows.total(WHOLE)
    assert type(found) is np.ndarray and not np.shares_memory(found, answer) and found.tolist() == [1, 0, 0, 1]


def test_progress_of_rows_that_are_read_here_says_nothing_of_them():
    """Start and end of each sum."""
    told = []
    reading = Reading(domain=DOMAIN, columns=("a",))
    with open_rows(as_source(TABLE), reading, lambda *call: told.append(call)) as rows:
        assert isinstance(rows, Streamed)
        rows.total(WHOLE)
    assert told == [("counting", 0, None), ("counting", 1, 1)]


def test_sums_may_be_any():
    """A sum of which nothing is known is only held to its length."""

    class Odd(Sum):
        columns, cells = ("a",), 1

        def add(self, codes, lengths, sums):
            sums -= len(codes[0])

    with open_rows(as_source(TABLE), Reading(domain=DOMAIN, columns=("a",))) as rows:
        assert rows.total(Odd()).tolist() == [-900]


HALF = Fraction(1, 2)


def halves(*numbers):
    """Random words whose halves are given."""
    return Words(*np.array(numbers, np.uint32).view(np.uint64).tolist())


@pytest.mark.parametrize("rate", [Fraction(1, 2**32), Fraction(1288490188, 2**32), HALF])
def test_a_coin_compares_32_bits_with_the_rate_exactly(rate):
    """The last word below rate * 2^32 shows True and the next one False, so the probability is the rate, exactly."""
    edge = int(rate * 2**32)
    shown = draw_subsample(4, rate, halves(0, edge - 1, edge, 2**32 - 1))
    assert shown.tolist() == [True, True, False, False]
    assert draw_subsample(7, Fraction(5, 2**32), halves(*range(8))).tolist() == [True] * 5 + [False] * 2
    drawn = draw_subsample(200_000, rate, SeededRandomness(1)).sum()
    assert abs(drawn - 200_000 * rate) < 6 * (200_000 * rate * (1 - rate)) ** 0.5 + 1  # false alarm 2e-9
    assert draw_subsample(0, rate, SystemRandomness()).tolist() == []


def keyed(rows, most):
    """Persons with 1, 2, 3, ... rows, of which at most so many count, and whose code is the person's number."""
    persons = np.repeat(np.arange(rows), np.arange(1, rows + 1))
    table = {"id": np.array([f"p{number}" for number in persons], object), "x": persons}
    return PersonSource(source=as_source(table), person="id", rows_per_person=most)


@pytest.mark.parametrize("most", [6, 2])
def test_all_rows_of_a_person_or_none(most):
    domain = Domain.from_sizes({"x": 6})
    persons, seen = read_persons(keyed(6, most), domain, ["x"]), np.zeros(6, int)
    assert persons.records == sum(min(x + 1, most) for x in range(6))
    for seed in range(100):
        ((column,), lengths) = persons.subsample(HALF, SeededRandomness(seed))[0]
        rows = np.bincount(column, minlength=6)
        assert all(rows[x] in (0, min(x + 1, most)) for x in range(6))
        assert sorted(lengths.tolist()) == sorted(rows[rows > 0].tolist())
        seen += rows > 0
    assert ((seen > 0) & (seen < 100)).all()


def test_everybody_takes_part_at_rate_one():
    """Without a random word; and no records are no pieces."""
    domain = Domain.from_sizes({"x": 5})
    persons = read_persons(as_source(np.arange(5)[:, None]), domain, ["x"])
    ((column,), lengths) = persons.subsample(Fraction(1), None)[0]
    assert column.tolist() == [0, 1, 2, 3, 4] and lengths is None and persons.records == 5
    assert read_persons(as_source(np.zeros((0, 1), int)), domain, ["x"]).subsample(HALF, None) == []
    assert repr(persons) == "Persons(hidden)"


def test_no_batch_is_no_record():
    """A source that yields nothing has columns without rows: nothing may fail once the records are paid for."""

    class Silent:
        def batches(self, domain, columns):
            yield from ()

    domain = Domain.from_sizes({"a": 300, "b": 2})
    persons = read_persons(Silent(), domain, ("a", "b"))
    coarser = domain.coarsened({"a": [0] * 150 + [1] * 150})
    for one in (persons, persons.recoded({"a": np.repeat([0, 1], 150)}, coarser)):
        assert one.records == 0 and list(one.pieces(("b", "a"))) == []
