"""Descents of a session: what they cost, and where they lead."""

from fractions import Fraction

import numpy as np
import pytest

from dpgm_core import Budget, Overspent, Structure
from tests.curator.opened import CODES, DOMAIN, PAIRS, WORKLOAD, curator, slopes


@pytest.mark.parametrize("kind", ["pure", "zcdp"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_descents_out_of_one_budget(kind, neighbours):
    """Ten of them and a table spend what they were given and no more; merged codes have regressions of their own."""
    budget = {"pure": Budget.pure(200), "zcdp": Budget.zcdp(100)}[kind]
    with curator(budget=budget, neighbours=neighbours).session(workload=WORKLOAD) as session:
        session.measure(["a"], budget * Fraction(1, 11))
        domain = session.coarsen({"c": [0, 1, 1, 1]})
        for _ in range(10):
            descent = session.descend(slopes(Structure(domain, PAIRS.cliques)), budget * Fraction(1, 11))
            assert budget * Fraction(9, 100) <= descent.cost <= budget * Fraction(1, 11)
        assert len(session.steps) == 11 and session.pooled().steps == session.steps
        with pytest.raises(Overspent):
            session.descend(slopes(Structure(domain, PAIRS.cliques)), budget * Fraction(1, 1000))


def test_with_no_noise_to_speak_of_a_descent_goes_the_steepest_way():
    """Sign and place of the largest gradient of each attribute, from the counts: own code less its share."""
    with curator(budget=Budget.zcdp(10**6)).session(workload=WORKLOAD) as session:
        descent = session.descend(slopes(clip=None), Budget.zcdp(10**5))
    own = descent.regressions
    hot = np.column_stack([CODES[:, DOMAIN.names.index(name)] == code for (name,), (code,) in own.columns[:-1]])
    hot = np.column_stack([hot, np.ones(len(hot), bool)])
    for rows, (row, column, sign) in zip(own.choices, descent.picks, strict=True):
        size = len(rows)
        sums = {
            (one, other): sum((128 * hot[:, one] - 128 // size) * hot[:, other])
            for one in rows
            for other in np.flatnonzero(own.allowed[one])
        }
        assert row in rows and sign * sums[row, column] == max(map(abs, sums.values()))
