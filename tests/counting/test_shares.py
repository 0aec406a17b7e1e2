"""Weighted counts against a sum by hand, person by person, in fractions."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dpgm_core import Contributions, Domain, Structure, Terms
from dpgm_core.counting.weights import WeightedCounts

DOMAIN = Domain.from_sizes(dict.fromkeys("abc", 3))
STRUCTURES = {
    "chain": Structure.chain(DOMAIN),
    "tied": Structure(DOMAIN, [("a",)], tied=[[("a", "b"), ("b", "c")]]),
    "empty clique": Structure(DOMAIN, [(), ("c", "a")]),
}


def by_hand(structure, persons, per, grid):
    """Cells of all tables: each row of each person adds floor(D / K) to one cell per clique."""
    total = Counter()
    for rows in persons:
        for number, group in enumerate(structure.groups):
            for clique in group:
                hits = len(rows) * (1 if per == "clique" else len(group))
                for row in rows:
                    cell = tuple(row["abc".index(name)] for name in clique)
                    total[number, cell] += grid * Fraction(1, hits) // 1
    return [
        int(total[number, cell])
        for number, group in enumerate(structure.groups)
        for cell in np.ndindex(*structure.domain.shape(group[0]))
    ]


@pytest.mark.parametrize("per", ["clique", "group"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_shares_are_those_summed_by_hand(name, per):
    """Persons with 1 to 5 rows, a grid that no number of rows divides, in one piece and in two."""
    structure, grid = STRUCTURES[name], 61
    rng = np.random.default_rng(7)
    persons = [[tuple(row) for row in rng.integers(0, 3, (rng.integers(1, 6), 3))] for _ in range(30)]
    statistic = WeightedCounts(structure, Contributions(per=per, grid=grid))

    def partial(some):
        rows = np.array([row for rows in some for row in rows])
        codes = [rows[:, "abc".index(column)] for column in statistic.columns]
        return statistic.partial(codes, np.array([len(rows) for rows in some]))

    whole = partial(persons)
    assert whole.tolist() == by_hand(structure, persons, per, grid)
    assert whole.tolist() == (partial(persons[:11]) + partial(persons[11:])).tolist()


def test_no_person_adds_more_than_is_declared():
    """Whatever the number of rows, the table of a person sums to K floor(D / K), which is at most the declared L1."""
    structure = Structure(DOMAIN, [("a",)])
    shares = Contributions(per="clique", grid=60)
    statistic = WeightedCounts(structure, shares)
    terms = Terms(neighbours="add-remove", person="id", rows_per_person=50, contributions=shares)
    sums = [int(statistic.partial([np.zeros(rows, int)], np.array([rows])).sum()) for rows in range(1, 51)]
    assert sums == [rows * (60 // rows) for rows in range(1, 51)]
    assert max(sums) == statistic.sensitivity(terms).l1 == 60
