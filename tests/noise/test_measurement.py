"""A measurement: what it costs, what it draws, and that a plan, a curator and a file speak of the same one."""

import numpy as np
import pytest

from dpgm_core import Budget, BudgetError, Domain, SeededRandomness, Structure, Tables, Terms, make
from dpgm_core.noise.measurement import CLAMP, add_noise, check_draw, measure

CHAIN = Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2}))
TERMS = Terms(neighbours="add-remove")
LAPLACE = make("mechanism", "laplace")


def test_one_budget_is_one_noise_for_all_tables():
    """Calibrated to what one person changes in all of them; it costs what was asked."""
    one = measure(LAPLACE, CHAIN, TERMS, Budget.pure("1/2"))
    assert len(one.calibrations) == 1 and one.of_group == (0, 0)
    assert one.calibrations[0].sensitivity == TERMS.sensitivity(CHAIN)
    assert one.cost == one.asked == Budget.pure("1/2")


def test_budgets_per_table_add_up_and_belong_to_their_tables():
    """Each table has the noise of its own budget, at the sensitivity of that table alone."""
    budgets = {("b", "c"): Budget.pure("1/5"), ("a", "b"): Budget.pure("4/5")}
    own = measure(LAPLACE, CHAIN, TERMS, budgets)
    assert own.cost == Budget.pure(1)
    for clique, budget in budgets.items():
        calibration = own.calibrations[own.of_group[CHAIN.find(clique)[0]]]
        assert calibration.budget == budget and calibration.sensitivity.l1 == 1
    assert own.variances[0] < own.variances[1]


def test_a_draw_adds_each_tables_own_noise():
    """Over 400 draws the variance of each table's cells is the one it states, to 20 %; false alarm below 1e-3.

    The mean over 2,400 squared cells of Laplace noise has a relative error of sqrt(5 / 2400) = 4.6 %.
    """
    measurement = measure(LAPLACE, CHAIN, TERMS, {("a", "b"): Budget.pure(2), ("b", "c"): Budget.pure("1/4")})
    randomness, counts = SeededRandomness(1), Tables(CHAIN, np.arange(12))
    drawn = [(measurement.draw(counts, randomness) - counts).values for _ in range(400)]
    for at, variance in zip(CHAIN.slices, measurement.variances, strict=True):
        cells = np.array([one[at] for one in drawn], float)
        assert cells.size == 2400
        assert np.mean(cells**2) == pytest.approx(variance, rel=0.2)


def test_table_by_table_is_the_same_noise():
    """Same cost per table, same variances; with one table even the same draw."""
    shared = measure(LAPLACE, CHAIN, TERMS, Budget.pure(1))
    single = shared.table_by_table()
    assert single.noise == shared.noise and single.of_group == (0, 1)
    one = Structure(CHAIN.domain, [("a", "b")])
    whole = measure(LAPLACE, one, TERMS, Budget.pure(1))
    zeros = Tables(one, np.zeros(6, np.int64))
    drawn = [each.draw(zeros, SeededRandomness(3)).values.tolist() for each in (whole, whole.table_by_table())]
    assert drawn[0] == drawn[1]


def test_values_are_clamped_and_never_an_error_after_the_noise():
    """Counts and integer noise beyond 2^61 meet their bounds, so that their sum fits 64 bits."""
    huge = np.array([2**62, -(2**62), 5])
    assert add_noise(huge, huge).tolist() == [2 * CLAMP, -2 * CLAMP, 10]


@pytest.mark.parametrize(
    "noise",
    [None, [1, 2, 3], np.zeros(2), np.zeros((3, 1)), np.array([1.0, np.nan, 0.0]), np.array([1.0, np.inf, 0.0]),
     np.array(["a", "b", "c"]), np.zeros(3, bool)],
)  # fmt: skip
def test_what_is_no_noise_is_a_fault_of_the_mechanism(noise):
    """Other shapes, types and what is not finite."""
    with pytest.raises(BudgetError, match="mechanism fault"):
        check_draw(noise, (3,))


class Greedy:
    """Costs twice what it was asked."""

    own_randomness = None

    def noise(self, sensitivity, budget):
        return LAPLACE.noise(sensitivity, budget * 2)


def test_a_noise_that_costs_more_than_was_asked_is_refused():
    """Before anything is charged, as nothing is charged for a measurement."""
    with pytest.raises(BudgetError, match="asked for epsilon = 1, but its noise costs epsilon = 2"):
        measure(Greedy(), CHAIN, TERMS, Budget.pure(1))
