"""The mechanism `gaussian`: calibration, densities, sampling and refusals beyond what the conformance kit tests.

Its delta is tested in core.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from dpgm_gaussian.mechanism import Gaussian, GaussianNoise
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core import Budget, BudgetError, Sensitivity
from dpgm_core.privacy import analytic_delta, bounded_variance, discrete_delta
from dpgm_testing import MechanismConformance

amounts = st.fractions(min_value=Fraction(1, 10**6), max_value=10**9).filter(bool)


def units(cells):
    return Sensitivity(l0=cells, l1=cells, l2_squared=cells, linf=min(cells, 1))


TIED = Sensitivity(l0=24, l1=48, l2_squared=24 * 4, linf=2)


def of_width(width, exact=True, cells=1):
    width = bounded_variance(Fraction(width))
    return GaussianNoise(
        sigma_squared=width, cost=Budget.zcdp(cells / (2 * width)), sensitivity=units(cells), exact=exact
    )


# --- calibration ------------------------------------------------------------------------------------------------


@given(st.integers(1, 2000), amounts)
@example(24, Fraction(1, 10))
@example(1, Fraction(10**9))
@example(10**6, Fraction(1, 2147))
@example(3, Fraction(2**61 - 1, 2**59 - 55))
def test_zcdp_is_never_overspent_and_hardly_wasted(cells, rho):
    """sigma^2 >= L2^2 / (2 rho), cost = L2^2 / (2 sigma^2) <= rho; above sigma 1 nearly nothing is lost."""
    noise = Gaussian().noise(units(cells), Budget.zcdp(rho))
    assert noise.sigma_squared >= cells / (2 * rho)
    assert noise.cost == Budget.zcdp(cells / (2 * noise.sigma_squared)) and noise.cost <= Budget.zcdp(rho)
    if noise.sigma_squared > 1:
        assert noise.cost.rho >= rho * (1 - Fraction(1, 2**26))


def test_the_squared_l2_matters_not_its_root():
    """sigma^2 = L2^2 / (2 rho), for tied groups too; L0, L1 and Linf are not zCDP's business; 0 counts as 1."""
    assert Gaussian().noise(units(24), Budget.zcdp("0.1")).sigma_squared == 120
    assert Gaussian().noise(TIED, Budget.zcdp("0.5")).sigma_squared == 96
    assert Gaussian().noise(units(0), Budget.zcdp("0.5")).sigma_squared == 1


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from([units(1), units(2), units(24), TIED]),
    st.fractions(min_value=Fraction(1, 100), max_value=6),
    st.sampled_from(["1e-3", "1e-6", "1e-10"]),
)
@example(units(24), Fraction(1), "1e-6")
@example(units(0), Fraction(1), "1e-6")
def test_epsilon_delta_is_met_and_barely(sensitivity, epsilon, delta):
    """delta(epsilon) of the noise is at most delta; a ten-thousandth less variance has more; the cost is as asked."""
    budget = Budget.approx(epsilon, delta)
    noise = Gaussian().noise(sensitivity, budget)
    assert noise.cost == budget
    assert discrete_delta(noise.sigma_squared, noise.sensitivity, epsilon) <= budget.delta
    assert discrete_delta(noise.sigma_squared * Fraction(9999, 10000), noise.sensitivity, epsilon) > budget.delta


def test_the_published_comparison_with_laplace():
    for delta, variance in (("1e-4", 243.57), ("1e-6", 428.35)):
        noise = Gaussian().noise(units(24), Budget.approx(1, delta))
        assert noise.variance == pytest.approx(variance, abs=0.005)


def test_textbook_noise_is_calibrated_by_balle_and_wang():
    """exact = false: sigma = 3.7306 at (1, 1e-5), as their code says; under zCDP the same sigma^2 as exact noise."""
    textbook = Gaussian(exact=False, allow_unsafe=True)
    noise = textbook.noise(units(1), Budget.approx(1, "1e-5"))
    assert noise.event.kind == "gaussian" and noise.event.scale == pytest.approx(3.730632, abs=2e-6)
    assert noise.variance == float(noise.sigma_squared)
    assert analytic_delta(noise.sigma_squared, units(1), Fraction(1)) <= 1e-5
    assert textbook.noise(units(3), Budget.zcdp("0.1")).sigma_squared == 15


# --- densities --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [Fraction(1, 2**29), Fraction(1, 10), 1, 10**6, 2**57])
def test_variance_is_positive_and_finite_at_both_ends(width):
    """At most sigma^2, and never 0 although exp(-2^28) is."""
    noise = of_width(width)
    assert 0 < noise.variance <= float(noise.sigma_squared) * (1 + 1e-13) and math.isfinite(1 / noise.variance)
    assert np.isfinite(noise.logpdf(np.zeros(1))).all()


# --- refusals ---------------------------------------------------------------------------------------------------


def test_pure_epsilon_is_refused_and_the_message_says_what_would_do():
    with pytest.raises(BudgetError, match=r"say budget = \{ rho = .* mechanism = 'laplace' \(in Python Budget\.zcdp"):
        Gaussian().noise(units(1), Budget.pure(1))


@pytest.mark.parametrize("budget", [Budget("approx", epsilon=Fraction(1)), Budget("approx", delta=Fraction(1, 10**6))])
def test_what_is_no_positive_budget_is_refused(budget):
    """delta = 0 and epsilon = 0 raise BudgetError; what is no budget is refused too, as the conformance kit tests."""
    with pytest.raises(BudgetError):
        Gaussian().noise(units(1), budget)


@pytest.mark.parametrize(
    "budget", [Budget.zcdp(Fraction(1, 10**30)), Budget.approx("1e-12", "1e-12"), Budget.approx(1, "1e-300")]
)
def test_noise_that_cannot_be_had_is_refused(budget):
    """Noise too wide for 64-bit counts, and a delta beyond double precision, before anything is drawn."""
    with pytest.raises(BudgetError, match=r"too wide|too small"):
        Gaussian().noise(units(1), budget)


def test_unsafe_noise_says_so():
    """The stamp travels with the noise; exact noise carries none."""
    assert "floating-point" in of_width(1, exact=False).unsafe and of_width(1).unsafe is None


@pytest.mark.parametrize("fields", [
    {"cost": Budget.zcdp("0.004")}, {"cost": Budget.zcdp("0.006")}, {"cost": Budget.pure(1)},
    {"cost": Budget.approx("0.1", "1e-3")}, {"cost": Budget.zero("zcdp")}, {"cost": 1}, {"sigma_squared": 100.0},
    {"sigma_squared": Fraction(50)}, {"sigma_squared": Fraction(0)}, {"sigma_squared": Fraction(-100)},
    {"sigma_squared": Fraction(100 * 2**40 + 1, 2**40)}, {"sensitivity": units(2)}, {"sensitivity": units(0)},
    {"sensitivity": 1}, {"exact": 1}, {"exact": None},
])  # fmt: skip
def test_a_noise_from_a_file_cannot_claim_less_than_it_cost(fields):
    good = {"sigma_squared": Fraction(100), "cost": Budget.zcdp("0.005"), "sensitivity": units(1), "exact": True}
    GaussianNoise(**good)
    with pytest.raises(BudgetError):
        GaussianNoise(**good | fields)


@pytest.mark.parametrize("mutate", [lambda v: v / 2, lambda v: v * Fraction(99, 100), lambda v: Fraction(int(v**0.5))])
@pytest.mark.parametrize("exact", [True, False])
def test_too_little_noise_for_epsilon_delta_is_caught(mutate, exact):
    """Half the variance, 1 % less, sigma for sigma^2: each is refused at (1, 1e-6)."""
    noise = Gaussian(exact=exact, allow_unsafe=not exact).noise(units(24), Budget.approx(1, "1e-6"))
    width = mutate(noise.sigma_squared).limit_denominator(1000)
    with pytest.raises(BudgetError, match="does not cost"):
        GaussianNoise(sigma_squared=width, cost=noise.cost, sensitivity=noise.sensitivity, exact=exact)


class TestGaussian(MechanismConformance):
    """Every check, default options."""

    component = Gaussian


@pytest.mark.landing
class TestTextbookGaussian(MechanismConformance):
    """The floats that reproduce papers: they say why they are unsafe, and keep everything else."""

    component = Gaussian(exact=False, allow_unsafe=True)
