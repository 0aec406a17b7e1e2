"""The kit's privacy losses against closed forms and each other."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core import Budget, Sensitivity
from dpgm_core.privacy.gaussian import unit_shift_delta
from dpgm_testing import (
    ReferenceGaussian,
    ReferenceLaplace,
    admissible_shifts,
    hockey_stick,
    renyi_divergence,
    worst_hockey_stick,
    worst_loss,
    worst_renyi,
)
from dpgm_testing.privacy_loss import even_shifts, largest_loss, summed_hockey_stick

ONE = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
HOME = Sensitivity(l0=3, l1=3, l2_squared=9, linf=3)


def sensitivities():
    numbers = st.integers(1, 4)
    return st.builds(
        lambda l0, linf, l1: Sensitivity(l0=l0, l1=l1, l2_squared=min(l1 * linf, l0 * linf**2), linf=linf),
        numbers, st.integers(1, 3), st.integers(1, 6),
    )  # fmt: skip


@given(sensitivities())
@settings(max_examples=60)
def test_every_admissible_shift_is_listed_once(sensitivity):
    """Against all vectors up to order: none is missing, none is inadmissible, none comes twice."""
    found = list(admissible_shifts(sensitivity))
    wanted = {
        tuple(sorted((size for size in vector if size), reverse=True))
        for vector in itertools.product(range(sensitivity.linf + 1), repeat=sensitivity.l0)
        if sum(vector) <= sensitivity.l1 and sum(size**2 for size in vector) <= sensitivity.l2_squared
    } - {()}
    assert len(found) == len(set(found)) and set(found) == wanted


@pytest.mark.parametrize("epsilon", ["1/10", "1", "3"])
def test_the_worst_loss_of_laplace_noise_is_epsilon(epsilon):
    """Discrete Laplace at scale L1 / eps loses exactly eps under every full shift; at linf alone it would lose less."""
    noise = ReferenceLaplace().noise(HOME, Budget.pure(epsilon))
    loss, shift = worst_loss(noise, HOME)
    assert math.isclose(loss, float(Fraction(epsilon)), rel_tol=1e-9) and sum(shift) == 3


@pytest.mark.parametrize("order", [1.5, 2.0, 16.0])
def test_the_renyi_divergence_of_a_gaussian_is_known(order):
    """alpha s^2 / (2 sigma^2) where alpha s is whole; additive over cells (Canonne, Kamath, Steinke 2020, Prop. 5)."""
    noise = ReferenceGaussian().noise(HOME, Budget.zcdp("1/8"))
    expected = order * 4 / (2 * float(noise.sigma_squared))
    assert math.isclose(renyi_divergence(noise, 2, order), expected, rel_tol=1e-9)
    assert math.isclose(worst_renyi(noise, HOME, order)[0], order / 8, rel_tol=1e-9)


@pytest.mark.parametrize("cells", [1, 2, 5])
def test_the_hockey_stick_divergence_agrees_with_the_exact_delta(cells):
    """The lower bound here and core's upper bound meet: delta of unit shifts in k cells, to six digits."""
    sensitivity = Sensitivity(l0=cells, l1=cells, l2_squared=cells, linf=1)
    noise = ReferenceGaussian().noise(sensitivity, Budget.approx(1, "1e-5"))
    lower = hockey_stick(noise, (1,) * cells, 1.0)
    upper = unit_shift_delta(noise.sigma_squared, cells, Fraction(1))
    assert lower <= upper and math.isclose(lower, upper, rel_tol=1e-6)
    assert worst_hockey_stick(noise, sensitivity, 1.0) == (lower, (1,) * cells)


@pytest.mark.parametrize("cells", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [1, 20])
def test_the_sum_of_gaussian_cells_loses_what_the_cells_do(cells, epsilon):
    """By FFT and by convolving losses: delta agrees to four digits, at epsilon = 20 too, and is never above core's."""
    sensitivity = Sensitivity(l0=cells, l1=cells, l2_squared=cells, linf=1)
    noise = ReferenceGaussian().noise(sensitivity, Budget.approx(epsilon, "1e-6"))
    found = summed_hockey_stick(noise, 1, cells, float(epsilon))
    upper = unit_shift_delta(noise.sigma_squared, cells, Fraction(epsilon))
    if math.sqrt(noise.sigma_squared) > 0.4:  # narrower noise leaves the FFT no digits, and it claims nothing
        assert math.isclose(found, hockey_stick(noise, (1,) * cells, float(epsilon)), rel_tol=1e-4)
    assert found <= upper * (1 + 1e-6)


def test_ten_thousand_cells_cost_what_core_says():
    """Where no enumeration reaches: delta of unit shifts in 10,000 cells, to four digits; half the variance shows."""
    wide = Sensitivity(l0=10**4, l1=10**4, l2_squared=10**4, linf=1)
    noise = ReferenceGaussian().noise(wide, Budget.approx(1, "1e-6"))
    assert math.isclose(summed_hockey_stick(noise, 1, 10**4, 1.0), 1e-6, rel_tol=1e-3)
    small = ReferenceGaussian().noise(wide, Budget.approx("1.6", "1e-6"))
    assert summed_hockey_stick(small, 1, 10**4, 1.0) > 1e-4


def test_heavy_tails_are_not_judged_by_their_sum():
    """Laplace noise has tails that the FFT cannot bound: no claim is made, instead of a wrong one."""
    assert summed_hockey_stick(ReferenceLaplace().noise(ONE, Budget.pure(1)), 1, 1, 1.0) == 0.0


@given(sensitivities())
@settings(max_examples=60)
def test_even_shifts_are_admissible_and_reach_the_ends(sensitivity):
    """They are among all shifts, and hold the largest single move and the most cells."""
    all_shifts = set(admissible_shifts(sensitivity))
    found = [(size,) * cells for size, cells in even_shifts(sensitivity)]
    assert set(found) <= all_shifts
    ones = max((len(shift) for shift in all_shifts if set(shift) == {1}), default=0)
    assert not ones or (1,) * ones in found


@given(st.integers(1, 10**4), st.sampled_from(["1/100", "1", "20"]))
@settings(max_examples=40)
def test_the_largest_loss_is_a_lower_bound_to_twelve_digits(size, epsilon):
    """One cell moved by L1 under Laplace noise loses epsilon: never more by the bound, and hardly less."""
    one = Sensitivity(l0=1, l1=size, l2_squared=size**2, linf=size)
    found = largest_loss(ReferenceLaplace().noise(one, Budget.pure(epsilon)), size)
    assert Fraction(found) <= Fraction(epsilon) and math.isclose(found, float(Fraction(epsilon)), rel_tol=1e-10)
