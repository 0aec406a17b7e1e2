"""Weighted counts and clipped scores of a few persons against sums by hand."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpgm_core import ClippedScore, Contributions, Domain, Structure, Terms
from dpgm_core.counting.clipped_scores import ClippedScores, FewCounts
from dpgm_core.counting.table_counts import Counts
from dpgm_core.counting.weights import WeightedCounts

DOMAIN = Domain.from_sizes(dict.fromkeys("abc", 3))


def test_no_person_adds_more_than_is_declared():
    """Whatever the number of rows, the table of a person sums to K floor(D / K), which is at most the declared L1."""
    structure = Structure(DOMAIN, [("a",)])
    shares = Contributions(per="clique", grid=60)
    statistic = WeightedCounts(structure, shares)
    terms = Terms(neighbours="add-remove", person="id", rows_per_person=50, contributions=shares)
    sums = [int(statistic.partial([np.zeros(rows, int)], np.array([rows])).sum()) for rows in range(1, 51)]
    assert sums == [rows * (60 // rows) for rows in range(1, 51)]
    assert max(sums) == statistic.sensitivity(terms).l1 == 60


CHAIN = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 3)))
TIED = Structure(Domain.from_sizes(dict.fromkeys("abc", 3)), [("a",)], tied=[[("a", "b"), ("b", "c")]])
EMPTY = Structure(Domain.from_sizes(dict.fromkeys("abc", 3)), [(), ("c", "a")])
CODES = [column.astype(np.uint8) for column in np.random.default_rng(2).integers(0, 3, (3, 40))]
LENGTHS = np.array([1, 2, 3, 4] * 4)


def codes_of(statistic):
    return [CODES["abc".index(name)] for name in statistic.columns]


@pytest.mark.parametrize("structure", [CHAIN, TIED, EMPTY], ids=["chain", "tied", "empty clique"])
def test_few_counts_are_the_counts(structure):
    few, many = FewCounts(structure), Counts.of(structure)
    found = few.tables(few.partial(codes_of(few), None))
    wanted = many.tables(many.partial(codes_of(many), None))
    assert found.values.tolist() == wanted.values.tolist()


@pytest.mark.parametrize("structure", [CHAIN, TIED], ids=["chain", "tied"])
@pytest.mark.parametrize("norm", [Fraction(1, 2), Fraction(3), Fraction(100)])
def test_scores_are_clipped_person_by_person(structure, norm):
    """T(x) - mu of all rows of a person, shortened to the norm, in whole units; never longer than the norm."""
    mu = np.random.default_rng(3).dirichlet(np.ones(9), len(structure.groups) + 1).reshape(-1)[: structure.cells]
    clip = ClippedScore(norm=norm, grid=1024)
    statistic, counts = ClippedScores(structure, clip=clip, mu=mu), FewCounts(structure)
    total, first = np.zeros(structure.cells), 0
    for rows in LENGTHS:
        own = [column[first : first + rows] for column in codes_of(statistic)]
        score = counts.partial(own, None) - rows * mu
        total += score * min(1.0, float(norm) / np.linalg.norm(score)) * 1024
        alone = statistic.partial(own, np.array([rows]))
        assert math.isqrt(int(np.sum(alone**2))) <= norm * 1024
        first += rows
    found = statistic.partial([column[:first] for column in codes_of(statistic)], LENGTHS)
    assert np.abs(found - total).max() <= len(LENGTHS)  # each person's cells lose less than a unit


def test_each_has_the_sensitivity_of_what_it_sums():
    terms, clip = Terms(neighbours="add-remove"), ClippedScore(norm=2, grid=8)
    assert FewCounts(CHAIN).sensitivity(terms) == terms.sensitivity(CHAIN)
    scores = ClippedScores(CHAIN, clip=clip, mu=np.zeros(CHAIN.cells))
    assert scores.sensitivity(terms).l2_squared == 256
