"""Adding one person moves a round's sum by at most what the noise is calibrated to, worst case included."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core import ClippedScore, Domain, SeededRandomness, Sensitivity, Structure, Terms
from dpgm_core.counting.clipped_scores import FewCounts, cell_numbers, clipped_sum
from dpgm_core.counting.rows import read_persons
from dpgm_core.counting.statistic import sum_pieces
from dpgm_core.sources import as_source
from dpgm_core.sources.persons import PersonSource
from tests.persons import norms

NAMES = "abc"
PLAIN = Structure(Domain.from_sizes(dict.fromkeys(NAMES, 3)), [("a", "b"), ("b", "c"), ("c", "a"), ("b",)])
TIED = Structure(Domain.from_sizes(dict.fromkeys(NAMES, 2)), [("a",)], tied=[(("a", "b"), ("b", "c"), ("c", "a"))])


def within(change: np.ndarray, allowed: Sensitivity) -> bool:
    bounds = (allowed.l0, allowed.l1, allowed.l2_squared, allowed.linf)
    return all(one <= bound for one, bound in zip(norms(change), bounds, strict=True))


@st.composite
def scored_persons(draw):
    """A structure, the rows of one person, marginals of any size, a norm and a grid."""
    structure = draw(st.sampled_from([PLAIN, TIED]))
    size = structure.domain.sizes["a"]
    rows = draw(st.lists(st.tuples(*[st.integers(0, size - 1)] * 3), min_size=1, max_size=4))
    finite = st.floats(0, 5, allow_subnormal=False)
    mu = draw(st.lists(finite, min_size=structure.cells, max_size=structure.cells))
    grid = draw(st.sampled_from([1, 3, 10, 1024, 2**20]))
    norm = Fraction(draw(st.integers(7, 7 * 40 * grid)), 7 * grid)
    return structure, rows, mu, ClippedScore(norm=norm, grid=grid)


@pytest.mark.landing
@settings(max_examples=300)
@given(scored_persons())
@example((PLAIN, [(0, 0, 0)] * 4, [0.0] * PLAIN.cells, ClippedScore(norm=2, grid=1)))  # one cell per table, exactly 2
@example((TIED, [(0, 0, 0)], [0.0] * TIED.cells, ClippedScore(norm=1, grid=2**20)))  # one cell three times
@example((PLAIN, [(0, 1, 2)], [1 / 9] * 27 + [1 / 3] * 3, ClippedScore(norm=Fraction(1, 3), grid=1024)))
def test_a_clipped_person_stays_within_the_sensitivity(case):
    """After truncation to the grid the score's integer vector has the norms that the noise was calibrated to."""
    structure, rows, mu, clip = case
    codes = [np.array(column) for column in zip(*rows, strict=True)]
    cells = cell_numbers(structure, codes)
    change = clipped_sum(cells, np.array([len(rows)]), np.array(mu), clip)
    assert within(change, clip.sensitivity(structure.cells, "add-remove"))


def test_the_clipped_sensitivity_is_attained():
    """A score as long as the norm, along the grid, moves the sum by all of it: no smaller sensitivity would do."""
    structure = Structure(Domain.from_sizes({"a": 3}), [("a",)])
    clip = ClippedScore(norm=2, grid=5)
    cells = cell_numbers(structure, [np.zeros(3, int)])
    clipped_away = clipped_sum(cells, np.array([3]), np.zeros(3), clip)  # three rows: |g| = 3
    whole = clipped_sum(cells[:, :2], np.array([2]), np.zeros(3), clip)
    assert norms(whole) == (1, 10, 100, 10)
    assert norms(clipped_away) == (1, 9, 81, 9)  # shortened to 10 units less a hair, then truncated
    allowed = clip.sensitivity(3, "add-remove")
    assert (allowed.l2_squared, allowed.linf) == (100, 10)


@settings(max_examples=100)
@given(scored_persons(), st.integers(1, 5))
def test_persons_are_scored_one_by_one(case, others):
    """The sum over several persons is the sum of each on its own, however they are cut into pieces."""
    structure, rows, mu, clip = case
    codes = [np.tile(np.array(column), others) for column in zip(*rows, strict=True)]
    cells = cell_numbers(structure, codes)
    together = clipped_sum(cells, np.full(others, len(rows)), np.array(mu), clip)
    alone = clipped_sum(cells[:, : len(rows)], np.array([len(rows)]), np.array(mu), clip)
    assert together.tolist() == (others * alone).tolist()


@st.composite
def keyed_rows(draw):
    row = st.tuples(*[st.integers(0, 1)] * 3)
    rows = draw(st.lists(st.tuples(st.sampled_from(["p", "q", ""]), row), max_size=8))
    more = draw(st.lists(row, min_size=1, max_size=6))
    return rows, more, draw(st.integers(1, 4))


@settings(max_examples=60)
@given(keyed_rows())
@example(([], [(0, 0, 0)] * 6, 4))  # all rows hit the same cells
def test_a_person_moves_a_round_within_the_sensitivity(case):
    """One more person in a subsample moves the counts by at most what the terms with r rows say."""
    rows, more, most = case
    statistic = FewCounts(TIED)

    def counted(records):
        table = {"id": np.array([key for key, _ in records], object)} | {
            name: np.array([codes[place] for _, codes in records], int) for place, name in enumerate(NAMES)
        }
        keyed = PersonSource(source=as_source(table), person="id", rows_per_person=most)
        persons = read_persons(keyed, TIED.domain, statistic.columns)
        return sum_pieces(statistic, persons.subsample(Fraction(1), SeededRandomness(1)))

    change = counted([*rows, *(("new", codes) for codes in more)]) - counted(rows)
    assert within(change, statistic.sensitivity(Terms(neighbours="add-remove", person="id", rows_per_person=most)))
