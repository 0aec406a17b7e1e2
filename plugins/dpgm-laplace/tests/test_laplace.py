"""The mechanism `laplace`: calibration, worst-case loss, densities and refusals beyond what the kit tests."""

import math
from fractions import Fraction

import numpy as np
import pytest
from dpgm_laplace.mechanism import Laplace, LaplaceNoise
from hypothesis import example, given
from hypothesis import strategies as st

from dpgm_core import Budget, BudgetError, SeededRandomness, Sensitivity, SystemRandomness
from dpgm_testing import MechanismConformance

LIMIT = 2**32

amounts = st.fractions(min_value=Fraction(1, 10**6), max_value=10**12).filter(bool)


def sensitivity(l1):
    return Sensitivity(l0=l1, l1=l1, l2_squared=l1, linf=min(l1, 1))


def pure(l1=1, epsilon=1, **options):
    return Laplace(**options).noise(sensitivity(l1), Budget.pure(epsilon))


def of_scale(scale, l1=1, exact=True):
    return LaplaceNoise(scale=Fraction(scale), cost=Budget.pure(l1 / Fraction(scale)), l1=l1, exact=exact)


# --- calibration ------------------------------------------------------------------------------------------------


@given(st.integers(1, 2000), amounts)
@example(24, Fraction(1, 10))
@example(1, Fraction(10**12))
@example(10**6, Fraction(1, 2147))
@example(3, Fraction(2**61 - 1, 2**59 - 55))
def test_the_scale_is_never_too_small_and_the_cost_never_too_large(l1, epsilon):
    """scale >= L1 / eps, cost = L1 / scale <= eps, both parts below 2^32; above scale 1 nearly nothing is lost."""
    noise = pure(l1, epsilon)
    assert noise.scale >= l1 / epsilon
    assert max(noise.scale.as_integer_ratio()) < LIMIT
    assert noise.cost == Budget.pure(l1 / noise.scale) and noise.cost <= Budget.pure(epsilon)
    if l1 / epsilon >= 1:
        assert noise.scale <= l1 / epsilon * (1 + Fraction(1, 2**31))
    if max((l1 / epsilon).as_integer_ratio()) < LIMIT:
        assert noise.cost == Budget.pure(epsilon)


@given(st.integers(1, 10**4), amounts)
@example(24, Fraction(1, 2))
def test_zcdp_is_spent_as_half_epsilon_squared(l1, rho):
    """The cost in rho is (L1 / scale)^2 / 2, at most what was asked, and close to it above scale 1."""
    noise = Laplace().noise(sensitivity(l1), Budget.zcdp(rho))
    assert noise.cost == Budget.zcdp((l1 / noise.scale) ** 2 / 2) and noise.cost <= Budget.zcdp(rho)
    if noise.scale > 1:
        assert noise.cost.rho >= rho * (1 - Fraction(1, 2**29))


def test_squares_cost_exactly_what_was_asked():
    """rho = 1/2 is epsilon = 1: nothing is lost to rounding."""
    noise = Laplace().noise(sensitivity(3), Budget.zcdp("0.5"))
    assert noise.scale == 3 and noise.cost == Budget.zcdp("0.5")


def test_only_l1_matters_and_nobody_changing_anything_counts_as_one():
    """L0, L2 and Linf are not the Laplace mechanism's business; L1 = 0 gets the noise of L1 = 1."""
    moved = Sensitivity(l0=1, l1=6, l2_squared=36, linf=6)
    assert Laplace().noise(moved, Budget.pure(1)) == pure(6)
    assert pure(0) == pure(1)


# --- densities --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [Fraction(1, LIMIT - 1), Fraction(1, 800), Fraction(1, 40), 1, 10**6, 2**31])
def test_mass_and_variance_keep_their_digits_at_both_ends(scale):
    """Against 60-digit decimals: log((1 - p) / (1 + p)) and 2 p / (1 - p)^2, from scale 2^-32 to 2^31."""
    from decimal import Context, Decimal

    wide = Context(prec=60, Emax=10**9, Emin=-(10**9), traps=[])
    noise = of_scale(scale)
    p = wide.exp(wide.divide(-noise.scale.denominator, noise.scale.numerator))
    variance = float(wide.divide(2 * p, wide.power(wide.subtract(1, p), 2)))
    peak = wide.ln(wide.divide(wide.subtract(1, p), wide.add(1, p))) if p > Decimal("1e-59") else -2 * p
    assert float(noise.logpdf(np.zeros(1))[0]) == pytest.approx(float(peak), rel=1e-12, abs=1e-300)
    assert noise.variance == pytest.approx(max(variance, 2.0**-1000), rel=1e-12)
    assert 0 < noise.variance < math.inf


# --- sampling ---------------------------------------------------------------------------------------------------


def test_a_seed_repeats_and_the_system_does_not():
    """SeededRandomness gives the same noise again (golden values); system noise differs (clash below 1e-30)."""
    noise = of_scale(24)
    assert noise.draw((2, 2), SeededRandomness(7)).tolist() == [[94, -23], [-5, -11]]
    first, second = (noise.draw((50,), SystemRandomness()).tolist() for _ in range(2))
    assert first != second


def test_noise_and_counts_fit_64_bits():
    """At the widest noise, 2^61 (where the curator clamps) is passed with probability below exp(-2^30)."""
    widest = pure(1, Fraction(1, 2**31))
    assert widest.scale == 2**31
    assert float(widest.logpdf(np.array([2.0**61]))[0]) < -(2**30)
    assert np.abs(widest.draw((10_000,), SeededRandomness(1))).max() < 2**36


# --- refusals ---------------------------------------------------------------------------------------------------


def test_epsilon_delta_is_refused_and_the_message_says_what_would_do():
    with pytest.raises(
        BudgetError, match=r"say budget = \{ epsilon = .* mechanism = 'gaussian' \(in Python Budget\.pure"
    ):
        Laplace().noise(sensitivity(1), Budget.approx(1, 1e-6))


@pytest.mark.parametrize(
    ("l1", "budget"),
    [
        (1, Budget.pure(Fraction(1, 2**31 + 1))),
        (1, Budget.zcdp(Fraction(1, 10**30))),
        (2**31 + 1, Budget.pure(10**6)),
        (2**20, Budget.pure("1e-4")),
    ],
)
def test_noise_too_wide_for_64_bit_counts_is_refused(l1, budget):
    with pytest.raises(BudgetError, match="too wide"):
        Laplace().noise(sensitivity(l1), budget)


def test_unsafe_noise_says_so():
    """The stamp travels with the noise; exact noise carries none, even when unsafe noise was allowed."""
    assert "floating-point" in pure(exact=False, allow_unsafe=True).unsafe
    assert pure(allow_unsafe=True).unsafe is None and pure().unsafe is None


@pytest.mark.parametrize("fields", [
    {"cost": Budget.pure("0.04")}, {"cost": Budget.approx("1/24", "1e-6")}, {"cost": 1}, {"scale": 24.0},
    {"scale": Fraction(0)}, {"scale": Fraction(-24)}, {"scale": Fraction(2**31 + 1)},
    {"scale": Fraction(24, LIMIT + 1)}, {"l1": 0}, {"l1": 2}, {"l1": 1.0}, {"l1": True}, {"exact": 1},
    {"exact": None},
])  # fmt: skip
def test_a_noise_from_a_file_cannot_claim_less_than_it_cost(fields):
    good = {"scale": Fraction(24), "cost": Budget.pure("1/24"), "l1": 1, "exact": True}
    LaplaceNoise(**good)
    with pytest.raises(BudgetError):
        LaplaceNoise(**good | fields)


# --- declaration ------------------------------------------------------------------------------------------------


class TestLaplace(MechanismConformance):
    """Every check, default options."""

    component = Laplace


@pytest.mark.landing
class TestTextbookLaplace(MechanismConformance):
    """The floats that reproduce papers: they say why they are unsafe, and keep everything else."""

    component = Laplace(exact=False, allow_unsafe=True)
