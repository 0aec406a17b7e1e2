"""Discrete noise compared with continuous noise: the claim cell by cell, every shift of a box, and mutants."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate

from dpgm_core.privacy.gaussian import (
    analytic_delta,
    any_shift_delta,
    concentrated_delta,
    discrete_delta,
    discrete_mass,
    least_variance,
    moved_cells,
    normal_delta,
    smoothed,
    smoothed_delta,
)
from dpgm_core.privacy.sensitivity import Sensitivity


def norms(shift):
    """The sensitivity that admits just this shift (and those below it)."""
    size = [abs(one) for one in shift]
    return Sensitivity(l0=len(size), l1=sum(size), l2_squared=sum(one**2 for one in size), linf=max(size))


def enumerated(variances, shift, epsilon):
    """sum over all outputs of a wide box of (P(z) - e^epsilon P(z - s))_+, one variance for each cell."""
    here, there = np.ones(1), np.ones(1)
    for variance, moved in zip(variances, shift, strict=True):
        reach = math.ceil(9 * math.sqrt(variance)) + abs(moved)
        z = np.arange(-reach, reach + 1.0)
        here = np.multiply.outer(here, discrete_mass(z, variance)).ravel()
        there = np.multiply.outer(there, discrete_mass(z - moved, variance)).ravel()
    return float(np.maximum(here - math.exp(epsilon) * there, 0).sum())


@pytest.mark.parametrize(("variance", "spread"), [(1.0, 0.3), (2.0, 0.5), (3.5, 1.2)])
def test_a_discrete_gaussian_is_nearly_drawn_from_a_continuous_one(variance, spread):
    """The claim of the module, by quadrature at each whole number: within (1 - h) / (1 + h) and 1 + h."""
    height = 2 * sum(math.exp(-2 * math.pi**2 * spread * j**2) for j in range(1, 5))

    def joint(x, y):
        around = np.arange(-12, 13) + round(x)
        normaliser = np.exp(-((around - x) ** 2) / (2 * spread)).sum()
        return math.exp(-(x**2) / (2 * (variance - spread)) - (y - x) ** 2 / (2 * spread)) / normaliser

    for y in range(4):
        drawn, _ = integrate.quad(joint, -14, 14, args=(y,), limit=300, epsabs=1e-13)
        ratio = float(discrete_mass(np.array(float(y)), variance))
        ratio /= drawn / math.sqrt(2 * math.pi * (variance - spread))
        assert (1 - height) / (1 + height) - 1e-9 <= ratio <= 1 + height + 1e-9


@pytest.mark.parametrize("admissible", [(1, 3, 9, 3), (2, 4, 8, 2), (3, 6, 14, 3)])
@pytest.mark.parametrize("variances", [(6.0, 6.0, 6.0), (2.5, 6.0, 11.0)])
def test_no_shift_exceeds_the_comparison(admissible, variances):
    """All whole-numbered shifts within (L0, L1, L2^2, Linf), enumerated, under equal and unequal noise."""
    sensitivity = Sensitivity(**dict(zip(("l0", "l1", "l2_squared", "linf"), admissible, strict=True)))
    widths = variances[: sensitivity.l0]
    least = (Fraction(min(widths)), sensitivity)  # as if all had the least noise
    for epsilon in (0.5, 1.5, 4.0):
        bound = smoothed_delta({least: 1}, Fraction(epsilon))
        for shift in itertools.product(range(sensitivity.linf + 1), repeat=sensitivity.l0):
            if 0 < sum(shift) <= sensitivity.l1 and sum(one**2 for one in shift) <= sensitivity.l2_squared:
                assert enumerated(widths, shift, epsilon) <= bound


@pytest.mark.parametrize("shift", [(1,), (3,), (2, 1), (4, 3)])
def test_tables_of_unequal_noise_are_one_normal_number(shift):
    """Each cell a part of its own: above the enumeration, and within what 2 records**2 less of sigma^2 would give."""
    variances = (9.0, 21.0)[: len(shift)]
    parts = {(Fraction(v), norms((s,))): 1 for v, s in zip(variances, shift, strict=True)}
    for epsilon in (0.3, 1.0, 2.5):
        exact, bound = enumerated(variances, shift, epsilon), smoothed_delta(parts, Fraction(epsilon))
        square = sum(s**2 / (v - 2) for v, s in zip(variances, shift, strict=True))
        assert exact <= bound <= float(normal_delta(math.sqrt(square), np.array(epsilon)))


def test_taking_the_variance_as_it_is_would_be_too_little():
    """A mutant that forgets to take t off the variance is found out: some true delta is above its bound."""
    cases = [(Fraction(v), (s,), e / 4) for v in (2, 3, 6) for s in (1, 2, 5) for e in range(1, 60)]
    mutant = [analytic_delta(v, norms(s), Fraction(e)) for v, s, e in cases]
    assert any(enumerated((float(v),), s, e) > m * (1 + 1e-6) for (v, s, e), m in zip(cases, mutant, strict=True))
    real = [smoothed_delta({(v, norms(s)): 1}, Fraction(e)) for v, s, e in cases]
    assert all(enumerated((float(v),), s, e) <= r for (v, s, e), r in zip(cases, real, strict=True))


def test_what_is_taken_from_epsilon_grows_with_the_cells():
    """k cells pay k log((1 + h)^2 / (1 - h)) and (1 + h)^k, of the h that their t gives."""
    for cells in (1, 24, 1000):
        part = (Fraction(10**4), norms((1,) * cells))
        mu, cost, factor = smoothed({part: 1}, 1e-3)
        spread = 10**4 - cells / mu**2
        height = 2 * math.exp(-2 * math.pi**2 * spread)
        assert cost >= cells * math.log((1 + height) ** 2 / (1 - height)) * (1 - 1e-6)
        assert factor >= (1 + height) ** cells * (1 - 1e-9) and cost < 2e-3
        assert smoothed({part: 3})[0] == pytest.approx(math.sqrt(3) * smoothed({part: 1})[0], rel=1e-4)
    assert smoothed({(Fraction(1, 2), norms((1,))): 1})[0] == math.inf
    assert smoothed_delta({(Fraction(1, 3), norms((1,))): 1}, Fraction(1)) == 1


def test_shifts_by_more_than_one_need_hardly_more_noise_than_continuous_noise():
    """At (1, 1e-6), squared widths over those of the analytic mechanism; it was 1.0045 for nine records of a person."""
    for rows, cells, most in ((9, 1, 1.0011), (10, 24, 1.00005), (60, 100, 1.000001)):
        sensitivity = Sensitivity(l0=cells, l1=rows * cells, l2_squared=rows**2 * cells, linf=rows)
        smooth, ours, before = (
            float(least_variance(delta_of, sensitivity, Fraction(1), Fraction(1, 10**6)))
            for delta_of in (analytic_delta, discrete_delta, any_shift_delta)
        )
        assert ours / smooth < most and ours < before


@pytest.mark.landing
def test_no_noise_is_wider_than_zcdp_would_have_it():
    """As in mbi, whose sigma is that of the best conversion: never wider, whatever a person moves."""
    for shift in ((1,), (1, 1), (1,) * 24, (2,), (5,), (3, 3)):
        for epsilon, delta in (
            (Fraction(1, 10), 1e-9),
            (Fraction(1), 1e-6),
            (Fraction(10), 1e-9),
            (Fraction(20), 1e-9),
        ):

            def zcdp(variance, sensitivity, at):
                return concentrated_delta(sensitivity.l2_squared / (2 * variance), at)

            ours, theirs = (
                least_variance(one, norms(shift), epsilon, Fraction(delta)) for one in (discrete_delta, zcdp)
            )
            assert ours <= theirs * (1 + Fraction(1, 10**8))


def test_the_normal_delta_at_epsilons_below_zero():
    """delta(-e) = 1 - exp(-e) (1 - delta(e)): the two directions of a symmetric pair; 10 digits, never below."""
    for mu, epsilon in itertools.product((1e-3, 0.05, 0.6, 2.0, 30.0), (1e-6, 0.1, 1.5, 3.0, 40.0)):
        above, below = normal_delta(mu, np.array([epsilon, -epsilon])).tolist()
        expected = -math.expm1(-epsilon) + math.exp(-epsilon) * above
        assert expected * (1 - 1e-9) <= below <= min(1.0, expected * (1 + 5e-9))
    assert normal_delta(1e-3, np.array([-800.0, 800.0])).tolist() == [1.0, 0.0]
    assert moved_cells(Sensitivity(l0=0, l1=0, l2_squared=0, linf=0)) == 1
