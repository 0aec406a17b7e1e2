"""The Gaussian's (epsilon, delta): brute force, published figures, limits, soundness, mutants, and continuous noise."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import integrate

from dpgm_core.errors import BudgetError
from dpgm_core.privacy import gaussian as gaussian_privacy
from dpgm_core.privacy.gaussian import (
    analytic_delta,
    concentrated_delta,
    discrete_delta,
    discrete_mass,
    discrete_variance,
    least_variance,
    log_normaliser,
    moved_cells,
    normal_delta,
    priced_delta,
    smoothed,
    smoothed_delta,
    unit_shift_delta,
    worst_shift_delta,
)
from dpgm_core.privacy.sensitivity import Sensitivity


def norms(shift):
    """The sensitivity that admits just this shift (and those below it)."""
    size = [abs(one) for one in shift]
    return Sensitivity(l0=len(size), l1=sum(size), l2_squared=sum(one**2 for one in size), linf=max(size))


def units(cells):
    return Sensitivity(l0=cells, l1=cells, l2_squared=cells, linf=1)


def admitting(l0, l1, l2_squared, linf):
    """A sensitivity, and all whole-numbered shifts within it."""
    shifts = itertools.product(range(linf + 1), repeat=l0)
    within = [one for one in shifts if 0 < sum(one) <= l1 and sum(x**2 for x in one) <= l2_squared]
    return Sensitivity(l0=l0, l1=l1, l2_squared=l2_squared, linf=linf), within


def enumerated(variances, shift, epsilon):
    """sum over all outputs of a wide box of (P(z) - e^epsilon P(z - s))_+: the definition of delta.

    variances: one for each cell, or one for all.
    """
    here, there = np.ones(1), np.ones(1)
    for variance, moved in zip(np.broadcast_to(np.array(variances, float), len(shift)), shift, strict=True):
        reach = math.ceil(9 * math.sqrt(variance)) + abs(moved)
        z = np.arange(-reach, reach + 1.0)
        here = np.multiply.outer(here, discrete_mass(z, float(variance))).ravel()
        there = np.multiply.outer(there, discrete_mass(z - moved, float(variance))).ravel()
    return float(np.maximum(here - math.exp(epsilon) * there, 0).sum())


def by_sum(variance, shift, epsilon):
    """The same through the law of W = s.z, by positive convolutions; for shifts too wide to enumerate."""
    reach = math.ceil(12 * math.sqrt(variance))
    law = np.ones(1)
    for moved in shift:
        step = np.zeros(2 * reach * moved + 1)
        step[::moved] = discrete_mass(np.arange(-reach, reach + 1.0), float(variance))
        law = np.convolve(law, step)
    w = np.arange(len(law)) - len(law) // 2
    loss = (sum(one**2 for one in shift) + 2 * w) / (2 * float(variance))
    return float(np.sum(law[loss > epsilon] * -np.expm1(epsilon - loss[loss > epsilon])))


# --- exactness --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variance", "cells"),
    [(v, k) for k in (1, 2, 3) for v in ("0.09", "0.3", "0.5", "1", "1.7", "4", "9") if k < 3 or float(v) <= 4],
)
@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "3", "7.25"])
def test_delta_is_that_of_the_product_space(variance, cells, epsilon):
    """1 to 3 cells at sigma from 0.3 to 3: equal to the enumeration to 1e-7 relatively, and never below it."""
    exact = enumerated(Fraction(variance), (1,) * cells, float(epsilon))
    found = unit_shift_delta(Fraction(variance), cells, Fraction(epsilon))
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-7) + 1e-15


@pytest.mark.sampled(3)
@pytest.mark.parametrize("cells", [1, 5, 24, 100])
@pytest.mark.parametrize("variance", ["0.7", "3", "21", "200"])
def test_delta_of_many_cells_is_that_of_their_convolution(cells, variance):
    """Up to 100 cells, at epsilons from where delta is near 1 to where it is near 1e-12."""
    for spread in (-1, 3, 6):
        shift = math.sqrt(cells / float(variance))
        epsilon = Fraction(max(0.01, shift**2 / 2 + spread * shift)).limit_denominator(10**6)
        exact = by_sum(Fraction(variance), (1,) * cells, float(epsilon))
        found = unit_shift_delta(Fraction(variance), cells, epsilon)
        assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-7) + 1e-17


def test_forgetting_a_cell_never_hurts():
    """With L0 = 3, every shift within {-1, 0, 1}^3 is at most as telling as (1, 1, 1)."""
    for epsilon in (0.2, 1.0, 4.0):
        bound = discrete_delta(Fraction(2), units(3), Fraction(epsilon))
        for shift in itertools.product((-1, 0, 1), repeat=3):
            assert enumerated(2, shift, epsilon) <= bound


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "shift", [(2,), (5,), (2, 1), (3, 3), (5, 7), (3, 2, 1), (2, 2, 2), (4, 1, 1, 1), (10, 3), (24,)]
)
@pytest.mark.parametrize("relative", ["1/3", "2", "5", "14", "50"])
def test_no_shift_exceeds_the_bound_for_all(shift, relative):
    """Shifts that move cells by more than 1: the true delta is below each bound; the price is at most 2 % above it."""
    variance, sensitivity = Fraction(relative) * norms(shift).l2_squared, norms(shift)
    for spread in (2, 3, 4.5):
        size = math.sqrt(1 / Fraction(relative))
        epsilon = Fraction(size**2 / 2 + spread * size).limit_denominator(10**6)
        exact = by_sum(variance, shift, float(epsilon))
        assert exact <= discrete_delta(variance, sensitivity, epsilon)
        assert exact <= priced_delta({(variance, sensitivity): 1}, epsilon) * (1 + 1e-12)
        if variance > 100:
            assert priced_delta({(variance, sensitivity): 1}, epsilon) < 1.02 * exact


@pytest.mark.parametrize("admissible", [(1, 3, 9, 3), (3, 3, 9, 3), (4, 4, 8, 2), (3, 5, 11, 3), (2, 9, 81, 9)])
@pytest.mark.parametrize("variance", ["0.1", "0.4", "2.5", "16"])
def test_the_worst_of_few_shifts_is_exact(admissible, variance):
    """That of all admissible shifts, each summed alone; a part in 10^8 less would be a hole."""
    variance, (sensitivity, shifts) = Fraction(variance), admitting(*admissible)
    shifts = {tuple(filter(None, sorted(one, reverse=True))) for one in shifts}
    size = math.sqrt(sensitivity.l2_squared / variance)
    for spread in (0.5, 2, 4):
        epsilon = Fraction(size**2 / 2 + spread * size).limit_denominator(10**6)
        worst = max(by_sum(variance, shift, float(epsilon)) for shift in shifts)
        found = worst_shift_delta(variance, sensitivity, epsilon)
        assert worst <= found * (1 + 1e-10) + 1e-280
        assert found <= worst * (1 + 1e-8) + 1e-25


def test_many_shifts_and_wide_noise_are_left_to_the_other_bounds():
    """Neither takes long: 27 rows in 27 cells, 100,000 cells, and a sigma of 1000."""
    many = Sensitivity(l0=27, l1=27, l2_squared=243, linf=9)
    assert worst_shift_delta(Fraction(4), many, Fraction(1)) == 1
    wide = Sensitivity(l0=10**5, l1=2 * 10**5, l2_squared=4 * 10**5, linf=2)
    assert worst_shift_delta(Fraction(4), wide, Fraction(1)) == 1
    assert worst_shift_delta(Fraction(10**6), Sensitivity(l0=1, l1=3, l2_squared=9, linf=3), Fraction(1, 100)) == 1


@pytest.mark.parametrize("admissible", [(2, 4, 6, 2), (3, 6, 14, 3)])
def test_the_bound_covers_every_admissible_shift(admissible):
    """All whole-numbered shifts within (L0, L1, L2^2, Linf), enumerated; the bound is not refuted by any."""
    sensitivity, shifts = admitting(*admissible)
    variance = Fraction(4 * sensitivity.l2_squared)
    for epsilon in (1.5, 2.5):
        bound = discrete_delta(variance, sensitivity, Fraction(epsilon))
        for shift in shifts:
            assert by_sum(variance, tuple(filter(None, shift)), epsilon) <= bound


# --- published figures and limits -------------------------------------------------------------------------------


def test_the_census_of_2020():
    """rho = 2.56 at delta = 1e-10 is epsilon = 17.14: US Census Bureau, persons of the redistricting data, rounded."""
    assert concentrated_delta(Fraction("2.555"), Fraction("17.14")) < 1e-10
    assert concentrated_delta(Fraction("2.565"), Fraction("17.14")) > 1e-10


@pytest.mark.parametrize(("rho", "epsilon"), [("0.02", "1"), ("2.56", "17.14"), ("1e-6", "0.01"), ("30", "90")])
def test_the_concentrated_delta_is_the_least_over_all_orders(rho, epsilon):
    """The minimum over a fine grid of alpha of the formula as printed, to 1e-6; and below Bun and Steinke's."""
    rho, epsilon = float(rho), float(epsilon)
    a = np.geomspace(1e-4, 1e7, 1_000_001)  # alpha - 1
    grid = a * ((a + 1) * rho - epsilon) - np.log(a) + (a + 1) * np.log1p(-1 / (a + 1))
    found = concentrated_delta(Fraction(str(rho)), Fraction(str(epsilon)))
    assert found == pytest.approx(math.exp(grid.min()), rel=1e-6)
    assert found < math.exp(-((epsilon - rho) ** 2) / (4 * rho))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("power", range(-6, 19, 3))
@pytest.mark.parametrize("log", [1, 20, 200])
def test_the_concentrated_delta_is_never_below_the_formula(power, log):
    """At its best order, to 100 digits, also where rho and epsilon are so large that doubles lose all but a few."""
    rho = Fraction(10) ** power * Fraction("1.2345678987654321")
    with localcontext(prec=100):
        curve = Decimal(rho.numerator) / Decimal(rho.denominator)
        epsilon = curve + 2 * (curve * log).sqrt()
        low, high = Decimal("1e-30"), Decimal("1e30")
        for _ in range(200):
            a = (low * high).sqrt()
            falls = (1 + 2 * a) * curve - epsilon + (a / (1 + a)).ln() < 0
            low, high = (a, high) if falls else (low, a)
        exact = a * ((1 + a) * curve - epsilon) + a * a.ln() - (1 + a) * (1 + a).ln()
        excess = Decimal(concentrated_delta(rho, Fraction(epsilon))).ln() - exact
    assert 0 <= excess < 2e-9


def test_the_analytic_gaussian_mechanism():
    """sigma = 3.730632 at (1, 1e-5) and sensitivity 1 (Balle and Wang's own code); delta(1) = 0.126937 at sigma = 1."""
    found = least_variance(analytic_delta, units(1), Fraction(1), Fraction(1, 10**5))
    assert math.sqrt(found) == pytest.approx(3.730632, abs=2e-6)
    assert analytic_delta(Fraction(1), units(1), Fraction(1)) == pytest.approx(0.1269367, abs=1e-7)


@pytest.mark.parametrize(
    ("variance", "epsilon"), [("1", "1"), ("0.01", "3"), ("428", "1"), ("9", "7"), ("1e12", "2e-6"), ("0.25", "60")]
)
def test_the_analytic_delta_is_its_integral(variance, epsilon):
    """E (1 - exp(epsilon - L))_+ with L normal, by quadrature of its positive integrand: 8 digits, never below."""
    ratio = 1 / math.sqrt(Fraction(variance))
    near = float(Fraction(epsilon)) / ratio - ratio / 2
    integral, _ = integrate.quad(
        lambda x: -math.expm1(-ratio * (x - near)) * math.exp(-(x**2) / 2 + max(near, 0) ** 2 / 2),
        near, near + 60, points=[max(near, 0), max(near, 0) + 1], limit=500, epsabs=0, epsrel=1e-11,
    )  # fmt: skip
    exact = integral * math.exp(-(max(near, 0) ** 2) / 2) / math.sqrt(2 * math.pi)
    assert 1 - 1e-10 <= analytic_delta(Fraction(variance), units(1), Fraction(epsilon)) / exact <= 1 + 2e-8


@pytest.mark.parametrize("cells", [1, 24])
def test_delta_converges_to_the_continuous_one(cells):
    """The relative difference falls with 1 / sigma^2 at the same delta, down to 2e-4 and less."""
    difference = []
    for spread in (1, 4, 16, 64, 256):
        # sigma^2 = 18 k spread: about (1, 1e-6)
        variance, epsilon = Fraction(18 * cells * spread), 1 / Fraction(math.isqrt(spread))
        ratio = unit_shift_delta(variance, cells, epsilon) / analytic_delta(variance, units(cells), epsilon)
        difference.append(abs(ratio - 1))
    assert all(after < 0.3 * before for before, after in itertools.pairwise(difference)) and difference[-1] < 2e-4


def test_the_continuous_calibration_is_too_optimistic_at_small_sigma():
    """At sigma = 0.6 the true delta is 4 times the continuous one at some epsilons: hence the exact mass."""
    variance = Fraction("0.36")
    ratios = [
        unit_shift_delta(variance, 1, epsilon) / analytic_delta(variance, units(1), epsilon)
        for epsilon in map(Fraction, np.arange(1, 60) / 4)
    ]
    assert max(ratios) > 4


# --- soundness --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1, 10**2, 10**6])
def test_wide_noise_is_bounded_not_summed(monkeypatch, scale):
    """The bound for every shift, which serves very wide noise, is above the sum, by less than 4 / sigma of it."""
    variance, epsilon = Fraction(18 * scale), 1 / Fraction(math.isqrt(scale))
    exact = unit_shift_delta(variance, 1, epsilon)
    monkeypatch.setattr(gaussian_privacy, "_WIDE", 0)
    bound = discrete_delta(variance, units(1), epsilon)
    assert exact < bound < exact * (1 + 4 / math.sqrt(variance))


@pytest.mark.landing
@settings(max_examples=80)
@given(
    st.integers(1, 300),
    st.fractions(min_value=Fraction(1, 50), max_value=5),
    st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(1, 10)),
)
@example(24, Fraction(1), Fraction(1, 10**6))
@example(1, Fraction(5), Fraction(1, 10))
def test_calibration_meets_delta_and_barely(cells, epsilon, delta):
    """The variance found has delta(epsilon) <= delta; a millionth less has not."""
    variance = least_variance(discrete_delta, units(cells), epsilon, delta)
    assert Fraction(discrete_delta(variance, units(cells), epsilon)) <= delta
    assert Fraction(discrete_delta(variance * Fraction(10**6 - 1, 10**6), units(cells), epsilon)) > delta


@pytest.mark.landing
@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(1, 30), st.sampled_from(["1e-4", "1e-6", "1e-9"]))
def test_calibration_is_monotone(cells, tenths, delta):
    epsilon, delta = Fraction(tenths, 10), Fraction(delta)
    base = least_variance(discrete_delta, units(cells), epsilon, delta)
    slack = 1 + Fraction(1, 10**8)
    assert least_variance(discrete_delta, units(cells), epsilon + Fraction(1, 10), delta) <= base * slack
    assert least_variance(discrete_delta, units(cells), epsilon, 2 * delta) <= base * slack
    assert least_variance(discrete_delta, units(cells + 1), epsilon, delta) * slack >= base


def test_half_the_noise_or_a_forgotten_root_is_caught():
    """By enumeration, independent of the code under test: the calibrated noise holds, mutants of it do not."""
    epsilon, delta = Fraction(3), Fraction(1, 1000)
    variance = least_variance(discrete_delta, units(2), epsilon, delta)
    assert enumerated(variance, (1, 1), 3.0) <= delta
    for mutant in (variance / 2, variance / 4, Fraction(math.sqrt(variance)), variance * Fraction(98, 100)):
        assert enumerated(mutant, (1, 1), 3.0) > delta
    one_cell = least_variance(discrete_delta, units(1), epsilon, delta)  # sqrt(L0) forgotten
    assert enumerated(one_cell, (1, 1), 3.0) > delta


def test_extreme_questions_get_sound_answers():
    """No overflow, no NaN, no zero: delta between 0 and 1 everywhere, falling in epsilon."""
    for variance in (Fraction(1, 2**29), Fraction(1, 100), Fraction(1), Fraction(10**6), Fraction(2**58)):
        for sensitivity in (units(1), units(10**3), units(10**7), norms((3, 1)), norms((10**6,))):
            found = [discrete_delta(variance, sensitivity, Fraction(e)) for e in ("1e-9", "1e-3", "1", "50", "1e6")]
            assert all(0 < one <= 1 for one in found)
            assert all(after <= before * (1 + 1e-12) for before, after in itertools.pairwise(found))


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"), [("1", "1e-201", "too small"), ("1e-12", "1e-12", "too wide")]
)
def test_calibration_refuses_what_cannot_be_had(epsilon, delta, message):
    with pytest.raises(BudgetError, match=message):
        least_variance(discrete_delta, units(1), Fraction(epsilon), Fraction(delta))


# --- moments ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [2.0**-29, 0.01, 0.09, 0.5, 1.0, 7.999, 8.001, 50.0, 1e4])
def test_mass_and_variance_are_those_of_the_sums(variance):
    """Normaliser and second moment against sums over the whole numbers; both sides of where integrals take over."""
    z = np.arange(-5000.0, 5001.0)
    with np.errstate(under="ignore"):
        weight = np.exp(-(z**2) / (2 * variance))
    assert log_normaliser(variance) == pytest.approx(math.log(weight.sum()), rel=1e-12, abs=1e-14)
    assert discrete_mass(z, variance).sum() == pytest.approx(1, rel=1e-12)
    assert discrete_variance(variance) == pytest.approx((z**2 * weight).sum() / weight.sum(), rel=1e-12, abs=0)
    assert discrete_variance(variance) <= variance * (1 + 1e-13)  # equal from about 4 on, but for rounding


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
    sensitivity, shifts = admitting(*admissible)
    widths = variances[: sensitivity.l0]
    least = (Fraction(min(widths)), sensitivity)  # as if all had the least noise
    for epsilon in (0.5, 1.5, 4.0):
        bound = smoothed_delta({least: 1}, Fraction(epsilon))
        for shift in shifts:
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
    """At (1, 1e-6), squared widths over those of the analytic mechanism."""
    for rows, cells, most in ((9, 1, 1.0001), (10, 24, 1.00001), (60, 100, 1.000001)):
        sensitivity = Sensitivity(l0=cells, l1=rows * cells, l2_squared=rows**2 * cells, linf=rows)
        smooth, ours = (
            float(least_variance(delta_of, sensitivity, Fraction(1), Fraction(1, 10**6)))
            for delta_of in (analytic_delta, discrete_delta)
        )
        assert ours / smooth < most


@pytest.mark.landing
def test_no_noise_is_wider_than_zcdp_would_have_it():
    """As in mbi, whose sigma is that of the best conversion: never wider, whatever a person moves."""

    def zcdp(variance, sensitivity, at):
        return concentrated_delta(sensitivity.l2_squared / (2 * variance), at)

    for shift in ((1,), (1, 1), (1,) * 24, (2,), (5,), (3, 3)):
        for epsilon, delta in (("0.1", 1e-9), ("1", 1e-6), ("10", 1e-9), ("20", 1e-9)):
            budget = norms(shift), Fraction(epsilon), Fraction(delta)
            ours, theirs = (least_variance(one, *budget) for one in (discrete_delta, zcdp))
            assert ours <= theirs * (1 + Fraction(1, 10**8))


def test_the_normal_delta_at_epsilons_below_zero():
    """delta(-e) = 1 - exp(-e) (1 - delta(e)): the two directions of a symmetric pair; 10 digits, never below."""
    for mu, epsilon in itertools.product((1e-3, 0.05, 0.6, 2.0, 30.0), (1e-6, 0.1, 1.5, 3.0, 40.0)):
        above, below = normal_delta(mu, np.array([epsilon, -epsilon])).tolist()
        expected = -math.expm1(-epsilon) + math.exp(-epsilon) * above
        assert expected * (1 - 1e-9) <= below <= min(1.0, expected * (1 + 5e-9))
    assert normal_delta(1e-3, np.array([-800.0, 800.0])).tolist() == [1.0, 0.0]
    assert moved_cells(Sensitivity(l0=0, l1=0, l2_squared=0, linf=0)) == 1
