"""Subsamples of persons: exact coins, all rows of a person or none, and nothing shown."""

from fractions import Fraction

import numpy as np
import pytest

from dpgm_core import Domain, SeededRandomness
from dpgm_core.counting.rows import draw_coins, read_persons
from dpgm_core.sources import as_source
from dpgm_core.sources.persons import PersonSource

HALF = Fraction(1, 2)


class Words:
    """Random words that are given."""

    private = False

    def __init__(self, *halves):
        self.halves = np.array(halves, np.uint32)

    def words(self, count):
        assert count == len(self.halves) // 2
        return self.halves.view(np.uint64)


@pytest.mark.parametrize("rate", [Fraction(1, 2**32), Fraction(1288490188, 2**32), HALF])
def test_a_coin_compares_32_bits_with_the_rate_exactly(rate):
    """The last word below rate * 2^32 shows True and the next one False, so the probability is the rate, exactly."""
    edge = int(rate * 2**32)
    shown = draw_coins(4, rate, Words(0, edge - 1, edge, 2**32 - 1))
    assert shown.tolist() == [True, True, False, False]


def keyed(rows):
    """Persons with 1, 2, 3, ... rows, whose code is the person's number."""
    persons = np.repeat(np.arange(rows), np.arange(1, rows + 1))
    table = {"id": np.array([f"p{number}" for number in persons], object), "x": persons}
    return PersonSource(source=as_source(table), person="id", rows_per_person=rows)


def test_all_rows_of_a_person_or_none():
    """In each of a hundred subsamples; and every person is in some of them and out of others."""
    domain = Domain.from_sizes({"x": 6})
    persons, seen = read_persons(keyed(6), domain, ["x"]), np.zeros(6, int)
    for seed in range(100):
        ((column,), lengths) = persons.subsample(HALF, SeededRandomness(seed))[0]
        rows = np.bincount(column, minlength=6)
        assert set(rows.tolist()) <= set(range(7)) and all(rows[x] in (0, x + 1) for x in range(6))
        assert sorted(lengths.tolist()) == sorted(rows[rows > 0].tolist())
        seen += rows > 0
    assert ((seen > 0) & (seen < 100)).all()


def test_everybody_takes_part_at_rate_one():
    """Without a random word drawn."""
    persons = read_persons(as_source(np.arange(5)[:, None]), Domain.from_sizes({"x": 5}), ["x"])
    ((column,), lengths) = persons.subsample(Fraction(1), None)[0]
    assert column.tolist() == [0, 1, 2, 3, 4] and lengths is None and persons.records == 5


def test_no_records_are_no_pieces():
    """An empty data set has an empty subsample, and no coin is tossed."""
    persons = read_persons(as_source(np.zeros((0, 1), int)), Domain.from_sizes({"x": 5}), ["x"])
    assert persons.subsample(HALF, None) == []


def test_no_batch_is_no_record():
    """A source that yields nothing at all has columns without rows, as one that yields an empty batch has: what depends
    on the records alone must not fail once they are paid for."""

    class Silent:
        def batches(self, domain, columns):
            yield from ()

    domain = Domain.from_sizes({"a": 300, "b": 2})
    persons = read_persons(Silent(), domain, ("a", "b"))
    coarser = domain.coarsened({"a": [0] * 150 + [1] * 150})
    for one in (persons, persons.recoded({"a": np.repeat([0, 1], 150)}, coarser)):
        assert one.records == 0 and list(one.pieces(("b", "a"))) == []


def test_the_repr_shows_nothing():
    """Neither codes nor how many there are."""
    persons = read_persons(as_source(np.full((4861, 1), 3)), Domain.from_sizes({"x": 5}), ["x"])
    assert repr(persons) == "Persons(hidden)"
