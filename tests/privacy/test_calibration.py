"""A noise with what it was calibrated from: what a mechanism gives is held to its word before any charge."""

import numpy as np
import pytest

from dpgm_core import Budget, BudgetError, Domain, Structure, Terms, make
from dpgm_core.privacy.measurement import measure
from dpgm_core.privacy.mechanism import CLAMP, add_noise, check_draw

CHAIN = Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2}))
TERMS = Terms(neighbours="add-remove")
LAPLACE = make("mechanism", "laplace")


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
