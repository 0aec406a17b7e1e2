"""The mechanism `laplace`: calibration, worst-case privacy loss, densities, sampling, refusals, declaration."""

import itertools
import math
import pickle
import subprocess
import sys
import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from dpgm_laplace.mechanism import Laplace, LaplaceNoise
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from dpgm_core import (
    Budget,
    BudgetError,
    InferenceError,
    Mechanism,
    Noise,
    OptionError,
    SeededRandomness,
    Sensitivity,
    SystemRandomness,
)

ALARM = 1e-6
LIMIT = 2**32

amounts = st.fractions(min_value=Fraction(1, 10**6), max_value=10**12).filter(bool)


def sensitivity(l1):
    """One with this L1, all in different cells."""
    return Sensitivity(l0=l1, l1=l1, l2_squared=l1, linf=min(l1, 1))


def pure(l1=1, epsilon=1, **options):
    """Noise for a pure budget."""
    return Laplace(**options).noise(sensitivity(l1), Budget.pure(epsilon))


def of_scale(scale, l1=1, exact=True):
    """Noise of a given scale."""
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


def test_it_satisfies_the_contracts():
    """Mechanism and Noise as the core states them."""
    mechanism: Mechanism = Laplace()
    assert isinstance(mechanism.noise(sensitivity(1), Budget.pure(1)), Noise)


# --- privacy ----------------------------------------------------------------------------------------------------


def shifts(l1):
    """Every way to spread an L1 change over cells, up to order and sign: the partitions of l1."""

    def partitions(rest, most):
        if rest == 0:
            yield ()
        for first in range(min(rest, most), 0, -1):
            for others in partitions(rest - first, first):
                yield (first, *others)

    return partitions(l1, l1)


@pytest.mark.parametrize("l1", [1, 2, 3, 7])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "7/3", "30"])
def test_the_worst_privacy_loss_over_all_shifts_is_epsilon(l1, epsilon):
    """For every integer shift of norm L1, however spread, the largest log ratio over all outputs is exactly epsilon.

    The largest loss of one cell shifted by s is max_z logpdf(z) - logpdf(z - s); cells add. It is attained by every
    partition, so none may be forgotten, and a shift of L1 + 1 loses more.
    """
    noise = pure(l1, epsilon)
    z = np.arange(-60, 61, dtype=float)
    loss = {s: float((noise.logpdf(z) - noise.logpdf(z - s)).max()) for s in range(1, l1 + 2)}
    for shift in shifts(l1):
        assert sum(loss[s] for s in shift) == pytest.approx(float(noise.cost.epsilon), rel=1e-12)
    assert loss[l1 + 1] > float(noise.cost.epsilon) * 1.1


@pytest.mark.landing
def test_the_sampler_has_the_privacy_it_claims():
    """Empirical loss of the most telling events under the worst shift stays within epsilon = 1/2, L1 = 3.

    Events "y >= a": with P = P(y >= a | n = 3) and Q = P(y >= a | n = 0), P <= e^eps Q must not be refuted: the
    binomial lower bound of P stays below e^eps times the upper bound of Q, at ALARM over 20 events; and the same test
    refutes epsilon = 0.45.
    """
    noise, count = pure(3, "0.5"), 1_000_000
    near = noise.draw((count,), SeededRandomness(1)) + 3
    far = noise.draw((count,), SeededRandomness(2))
    worst = -math.inf
    for edge in range(-4, 16):
        hits = [int((draws >= edge).sum()) for draws in (near, far)]
        low = stats.beta.ppf(ALARM / 40, hits[0], count - hits[0] + 1)
        high = stats.beta.isf(ALARM / 40, hits[1] + 1, count - hits[1])
        worst = max(worst, math.log(low / high))
    assert 0.45 < worst <= 0.5


# --- densities --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["1/20", "1/3", "1", "24", "481/2"])
def test_the_masses_of_the_whole_numbers_sum_to_one_and_have_the_variance(scale):
    """logpdf on the whole numbers is the log mass: it sums to 1, its second moment is `variance`, its mean 0."""
    noise = of_scale(scale)
    z = np.arange(-20_000, 20_001, dtype=float)
    mass = np.exp(noise.logpdf(z))
    assert mass.sum() == pytest.approx(1, rel=1e-12)
    assert (mass * z**2).sum() == pytest.approx(noise.variance, rel=1e-9)


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


@pytest.mark.parametrize("exact", [True, False])
def test_the_score_is_the_slope_of_a_concave_density(exact):
    """Away from 0 the score is the difference quotient; it is odd, falls, is 0 at 0, and the dual bounds it."""
    noise = of_scale(24, exact=exact)
    r = np.array([-1e6, -3.5, -1.0, 0.25, 2.0, 1e6])
    quotient = (noise.logpdf(r + 1e-3) - noise.logpdf(r - 1e-3)) / 2e-3
    assert noise.score(r) == pytest.approx(quotient, rel=1e-6)
    assert noise.score(np.zeros(2)).tolist() == [0.0, 0.0]
    assert np.abs(noise.score(r)).max() == noise.dual.bound == 1 / 24 and noise.dual.curvature == 0.0
    assert noise.score(np.array([[1, -1]])).shape == (1, 2) and noise.logpdf(np.array([[1, -1]])).shape == (1, 2)


@pytest.mark.parametrize("exact", [True, False])
def test_extreme_residuals_give_limits_and_nan_is_refused(exact):
    """Infinite residuals have log mass -inf without a warning; NaN raises InferenceError."""
    noise = of_scale(Fraction(1, 1000), exact=exact)
    assert noise.logpdf(np.array([math.inf, -math.inf, 1.7e308])).tolist() == [-math.inf] * 3
    assert noise.score(np.array([math.inf, -math.inf])).tolist() == [-1000.0, 1000.0]
    for refuse in (noise.logpdf, noise.score):
        with pytest.raises(InferenceError, match="NaN"):
            refuse(np.array([0.0, math.nan]))


@pytest.mark.parametrize("exact", [True, False])
def test_the_event_never_claims_more_noise_than_there_is(exact):
    """kind, scale rounded down, L1; 1/3 as a double is below, 3/7 above, so the latter must move."""
    for scale in (Fraction(1, 3), Fraction(3, 7), Fraction(2, 3), Fraction(24)):
        event = of_scale(scale, l1=5, exact=exact).event
        assert event.kind == ("discrete-laplace" if exact else "laplace") and event.sensitivity == 5.0
        assert Fraction(event.scale) <= scale < Fraction(math.nextafter(event.scale, math.inf))


# --- sampling ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3, 4), (5, 0, 2)])
@pytest.mark.parametrize("exact", [True, False])
def test_samples_have_the_shape_asked(shape, exact):
    """Any shape, scalars and empty ones too: int64 if exact, else float64."""
    draws = of_scale(24, exact=exact).draw(shape, SystemRandomness())
    assert draws.shape == shape and draws.dtype == (np.int64 if exact else np.float64)


def test_exact_samples_follow_the_log_mass():
    """Chi-squared of 400 000 draws at scale 7/2 against exp(logpdf), tails merged; fixed seed, ALARM."""
    noise, count = of_scale("7/2"), 400_000
    draws = noise.draw((count,), SeededRandomness(3))
    z = np.arange(-24, 25)
    expected = np.exp(noise.logpdf(z.astype(float)))
    expected[[0, -1]] += (1 - expected.sum()) / 2
    observed = np.bincount(np.clip(draws, -24, 24) + 24, minlength=49)
    assert stats.chisquare(observed, expected * count).pvalue > ALARM


def test_textbook_samples_follow_the_density():
    """Kolmogorov-Smirnov of 200 000 draws at scale 24 (ALARM); 5 % off in the scale is refused by the same test."""
    draws = of_scale(24, exact=False).draw((200_000,), SeededRandomness(4))
    assert stats.kstest(draws, stats.laplace(scale=24).cdf).pvalue > ALARM
    assert stats.kstest(draws * 1.05, stats.laplace(scale=24).cdf).pvalue < ALARM
    assert draws.var() == pytest.approx(of_scale(24, exact=False).variance, rel=0.03)


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
    """Pure noise has no use for delta."""
    with pytest.raises(
        BudgetError, match=r"say budget = \{ epsilon = .* mechanism = 'gaussian' \(in Python Budget\.pure"
    ):
        Laplace().noise(sensitivity(1), Budget.approx(1, 1e-6))


@pytest.mark.parametrize(
    "budget", [None, 1, 1.0, "1", True, math.nan, math.inf, {"epsilon": 1}, Budget.zero("pure"), Budget.zero("zcdp")]
)
def test_what_is_no_positive_budget_is_refused(budget):
    """Numbers, texts, NaN and empty budgets raise BudgetError."""
    with pytest.raises(BudgetError):
        Laplace().noise(sensitivity(1), budget)


@pytest.mark.parametrize("wrong", [None, 1, 2.0, True, "1", {"l1": 1}])
def test_what_is_no_sensitivity_is_refused(wrong):
    """A bare number is not a sensitivity."""
    with pytest.raises(BudgetError, match="Sensitivity"):
        Laplace().noise(wrong, Budget.pure(1))


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
    """Scale and L1 beyond 2^31 are refused before anything is drawn."""
    with pytest.raises(BudgetError, match="too wide"):
        Laplace().noise(sensitivity(l1), budget)


@pytest.mark.parametrize("wrong", [{"exact": False}, {"exact": 0, "allow_unsafe": True}, {"exact": None}])
def test_unsafe_noise_needs_to_be_asked_for_twice(wrong):
    """exact = false without allow_unsafe = true is an OptionError when the component is made; so are non-bools."""
    with pytest.raises(OptionError):
        Laplace(**wrong)
    with pytest.raises(OptionError):
        Laplace(allow_unsafe="yes")


def test_unsafe_noise_says_so():
    """The stamp travels with the noise; exact noise carries none, even when unsafe noise was allowed."""
    assert "floating-point" in pure(exact=False, allow_unsafe=True).unsafe
    assert pure(allow_unsafe=True).unsafe is None and pure().unsafe is None


@pytest.mark.parametrize(
    "fields",
    [
        {"cost": Budget.pure("0.04")},
        {"cost": Budget.approx("1/24", "1e-6")},
        {"cost": 1},
        {"scale": 24.0},
        {"scale": Fraction(0)},
        {"scale": Fraction(-24)},
        {"scale": Fraction(2**31 + 1)},
        {"scale": Fraction(24, LIMIT + 1)},
        {"l1": 0},
        {"l1": 2},
        {"l1": 1.0},
        {"l1": True},
        {"exact": 1},
        {"exact": None},
    ],
)
def test_a_noise_from_a_file_cannot_claim_less_than_it_cost(fields):
    """The fields must fit each other exactly, or BudgetError."""
    good = {"scale": Fraction(24), "cost": Budget.pure("1/24"), "l1": 1, "exact": True}
    LaplaceNoise(**good)
    with pytest.raises(BudgetError):
        LaplaceNoise(**good | fields)


def test_a_noise_is_plain_data():
    """It pickles, compares and goes through cattrs, as a release file needs."""
    from dpgm_core.components.options import converter

    for noise in (pure(3, "7/3"), Laplace().noise(sensitivity(3), Budget.zcdp("0.1"))):
        assert pickle.loads(pickle.dumps(noise)) == noise
        assert converter.structure(converter.unstructure(noise), LaplaceNoise) == noise


# --- declaration ------------------------------------------------------------------------------------------------


def test_the_declaration_loads_no_numpy_and_names_the_class():
    """Importing the package, as discovery does, is cheap; the target is there."""
    script = """
import sys, dpgm_laplace
(component,) = dpgm_laplace.dpgm_components()
assert "numpy" not in sys.modules and "dpgm_laplace.mechanism" not in sys.modules
print(component.kind, component.name, component.target)
"""
    paths = [str(Path(__file__).parents[1]), str(Path(__file__).parents[3])]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {paths!r}\n{script}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["mechanism", "laplace", "dpgm_laplace.mechanism:Laplace"], done.stderr
    assert Laplace.__module__ == "dpgm_laplace.mechanism"


def test_the_entry_point_is_the_distribution_and_the_package():
    """Group dpgm, key = distribution name, value = import package."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"] == {"dpgm": {project["name"]: "dpgm_laplace"}}


def test_shift_partitions_are_complete():
    """The helper of the privacy test lists all 15 partitions of 7, each summing to 7."""
    partitions = list(shifts(7))
    assert len(partitions) == len(set(partitions)) == 15 and all(sum(one) == 7 for one in partitions)
    assert list(itertools.islice(shifts(2), 5)) == [(2,), (1, 1)]
