"""The accountant and its dominating pairs: closed forms, published cases, brute force, mutants, and refusals."""

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from dpgm_core import Budget, BudgetError, PrivacyEvent, Sensitivity
from dpgm_core.privacy import dominating_pairs as dominating
from dpgm_core.privacy.accounting import compose, has_dp_accounting, sampling_probability
from dpgm_core.privacy.budget import zcdp_epsilon
from dpgm_core.privacy.dominating_pairs import composed_epsilon, gaussian_pair, reduce_delta, response_pair
from dpgm_core.privacy.rounds import round_noise
from tests.fixtures import Gauss, accountant, unit

needs_pld = pytest.mark.skipif(not has_dp_accounting(), reason="dp-accounting is not installed")


def hockey_stick(upper, lower, epsilon):
    """sup over events of P(event) - e^eps Q(event)."""
    return float(np.maximum(upper - math.exp(epsilon) * lower, 0).sum())


def epsilon_of(upper, lower, delta):
    """The smallest epsilon at delta by bisection, both directions."""
    low, high = 0.0, 200.0
    while high - low > 1e-10:
        middle = (low + high) / 2
        worst = max(hockey_stick(upper, lower, middle), hockey_stick(lower, upper, middle))
        low, high = (low, middle) if worst <= delta else (middle, high)
    return high


def mass(kind, scale, shift, reach=60):
    """The mass of one noisy cell on -reach ... reach."""
    z = np.arange(-reach, reach + 1) - shift
    weights = np.exp(-np.abs(z) / scale) if kind == "discrete-laplace" else np.exp(-(z**2) / (2 * scale**2))
    return weights / weights.sum()


@pytest.mark.sampled(5)
@needs_pld
@pytest.mark.parametrize("kind", ["discrete-laplace", "discrete-gaussian"])
@pytest.mark.parametrize("rate", [1.0, 0.5, 0.0625])
@pytest.mark.parametrize(("cells", "rounds"), [(1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("scale", [0.6, 1.5])
def test_pld_equals_the_exact_law_of_the_cells(kind, rate, cells, rounds, scale):
    """The one-number pair loses nothing: epsilon is that of the whole output, enumerated cell by cell."""
    reach = 12 if scale > 1 else 6
    reach = 3 * reach if kind == "discrete-laplace" and cells * rounds == 1 else reach

    def joint(parts):
        total = parts[0]
        for part in parts[1:]:
            total = np.multiply.outer(total, part).reshape(-1)
        return total

    without = joint([mass(kind, scale, 0, reach)] * cells)
    taking_part = joint([mass(kind, scale, 1, reach)] * cells)
    mixed = (1 - rate) * without + rate * taking_part
    delta = 1e-2
    # cut tails are worth less than this here
    exact = epsilon_of(joint([mixed] * rounds), joint([without] * rounds), delta)
    found = accountant(kind, scale, cells, rounds=rounds, rate=rate).pld_epsilon(delta)
    assert found == pytest.approx(exact, rel=2e-3, abs=1e-3)


@pytest.mark.parametrize(
    ("kind", "rate"),
    [("discrete-laplace", 1.0), *itertools.product(["discrete-laplace", "discrete-gaussian"], [0.5, 0.01])],
)
@pytest.mark.parametrize("scale", [0.6, 2.0, 5.0])
def test_renyi_moments_bound_the_exact_ones(kind, rate, scale):
    """At every order the accountant's moment is at least the exact one of the mixture, in both directions."""
    from dpgm_core.privacy.accounting import ORDERS

    exactly = sampling_probability(rate)
    rate = float(exactly)
    reach = 250  # nothing is cut
    without, shifted = mass(kind, scale, 0, reach), mass(kind, scale, 1, reach)
    mixed = (1 - rate) * without + rate * shifted
    moments = accountant(kind, scale, rate=exactly)._log_moments()
    for order, moment in zip(ORDERS[:40], moments[:40], strict=True):
        for upper, lower in ((mixed, without), (without, mixed)):
            keep = (upper > 1e-250) & (lower > 1e-250)
            with np.errstate(over="ignore"):
                exact = math.log(np.sum(np.exp(order * np.log(upper[keep]) - (order - 1) * np.log(lower[keep]))))
            assert moment >= exact - 1e-9


def test_the_standard_case_of_abadi_et_al():
    """q = .01, sigma = 4, T = 10^4, delta = 1e-5: the paper's moments give 1.26; Renyi gives 1.035 (Mironov et al.)."""
    case = accountant("discrete-gaussian", 4.0, rounds=10_000, rate=0.01)
    assert case.renyi_epsilon(1e-5) == pytest.approx(1.0355, abs=2e-3)
    assert case.epsilon(1e-5) <= 1.0355 < 1.26


@needs_pld
def test_the_standard_case_by_privacy_loss_distributions():
    """The same case through the privacy loss distribution: .947, as dp-accounting has it for continuous noise."""
    case = accountant("discrete-gaussian", 4.0, rounds=10_000, rate=0.01)
    assert case.pld_epsilon(1e-5) == pytest.approx(0.947, abs=1e-3)
    assert accountant("gaussian", 4.0, rounds=10_000, rate=0.01).pld_epsilon(1e-5) == pytest.approx(0.947, abs=1e-3)


@pytest.mark.sampled(4)
@needs_pld
@pytest.mark.parametrize(
    ("n", "epsilon", "published"), [(1e4, 0.5, 2.04), (1e4, 1, 1.26), (1e6, 0.5, 1.06), (1e6, 1, 0.79)]
)
def test_noise_multipliers_of_ten_epochs(n, epsilon, published):
    """Batch sqrt(N), 10 epochs, delta = 1/N: the multipliers that dp-accounting finds for continuous noise."""
    rate = n**-0.5
    rounds = int(10 / rate)
    assert accountant("gaussian", published * 1.006, rounds=rounds, rate=rate).epsilon(1 / n) <= epsilon
    assert accountant("gaussian", published * 0.994, rounds=rounds, rate=rate).epsilon(1 / n) > epsilon


@needs_pld
@pytest.mark.parametrize("sigma", [20.0, 50.0])
def test_wide_noise_without_subsampling_meets_the_analytic_gaussian(sigma):
    """T full rounds of wide noise are one Gaussian of sigma / sqrt(T), whose delta is known (Balle and Wang 2018)."""
    rounds, delta = 100, 1e-6
    found = accountant("discrete-gaussian", sigma, rounds=rounds).pld_epsilon(delta)
    mu = math.sqrt(rounds) / sigma
    analytic = norm.cdf(mu / 2 - found / mu) - math.exp(found) * norm.cdf(-mu / 2 - found / mu)
    assert analytic == pytest.approx(delta, rel=2e-2)


def test_pure_rounds_add_and_are_amplified():
    """n ln(1 + q (e^eps0 - 1))."""
    case = accountant("discrete-laplace", 2.0, rounds=7, rate=0.25)
    assert case.pure_epsilon() == pytest.approx(7 * math.log(1 + 0.25 * math.expm1(0.5)))
    assert accountant("discrete-gaussian", 2.0).pure_epsilon() == math.inf


@needs_pld
def test_the_smaller_bound_counts():
    """epsilon is the least of all bounds, whichever that is."""
    for case in (accountant("discrete-laplace", 50.0, rounds=3, rate=0.1), accountant("discrete-gaussian", 30.0, 24)):
        assert case.epsilon(1e-6) == min(case.bounds(1e-6).values())


def test_prv_accountant_agrees():
    """An independent accountant (Gopi, Lee, Wutschitz 2021) brackets the same epsilon."""
    prv = pytest.importorskip("prv_accountant")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        other = prv.PRVAccountant(
            prvs=prv.PoissonSubsampledGaussianMechanism(noise_multiplier=4.0, sampling_probability=0.01),
            max_self_compositions=10_000,
            eps_error=0.01,
            delta_error=1e-10,
        )
        low, _, high = other.compute_epsilon(delta=1e-5, num_self_compositions=[10_000])
    assert low - 0.001 <= accountant("gaussian", 4.0, rounds=10_000, rate=0.01).epsilon(1e-5) <= high + 0.001


@needs_pld
@pytest.mark.parametrize("mutant", ["half the noise", "forgotten sqrt", "forgotten rate", "one round forgotten"])
def test_mutants_are_told_apart(mutant):
    """Each classical slip changes epsilon by far more than the accountant's tolerance."""
    right = accountant("discrete-gaussian", 30.0, 24, rounds=100, rate=0.1).epsilon(1e-6)
    wrong = {
        "half the noise": accountant("discrete-gaussian", 15.0, 24, rounds=100, rate=0.1),
        "forgotten sqrt": accountant("discrete-gaussian", 30.0, 24 * 24, rounds=100, rate=0.1),
        "forgotten rate": accountant("discrete-gaussian", 30.0, 24, rounds=100),
        "one round forgotten": accountant("discrete-gaussian", 30.0, 24, rounds=101, rate=0.1),
    }[mutant].epsilon(1e-6)
    assert wrong > right * 1.003


def test_noise_calibrated_to_less_is_refused():
    """A mechanism that forgot the square root, or a factor, is caught before it is used."""
    event = PrivacyEvent(kind="discrete-gaussian", scale=3.0, sensitivity=1.0)
    with pytest.raises(BudgetError, match="calibrated to a sensitivity"):
        compose(event, unit(24), neighbours="add-remove")


@pytest.mark.parametrize(("alpha", "shift"), list(itertools.product([2, 5], [(2,), (1, 2), (3,), (2, 2, 1)])))
def test_gaussian_moments_hold_for_every_whole_shift(alpha, shift):
    """E (P/Q)^a <= exp(a (a - 1) |s|^2 / (2 sigma^2)) for whole-numbered s, by direct sums (Canonne et al. 2020)."""
    sigma = 0.8
    exact = 0.0
    for step in shift:
        p, q = mass("discrete-gaussian", sigma, 0, 40), mass("discrete-gaussian", sigma, step, 40)
        keep = (p > 0) & (q > 0)
        exact += math.log(np.sum(np.exp(alpha * np.log(p[keep]) - (alpha - 1) * np.log(q[keep]))))
    assert exact <= alpha * (alpha - 1) * sum(s * s for s in shift) / (2 * sigma**2) + 1e-9


def test_without_dp_accounting_the_renyi_bound_stands(monkeypatch):
    """Its absence costs accuracy, not soundness: only bounds of our own are left, and calibration uses them."""
    for module in ("privacy.accounting", "privacy.rounds"):
        monkeypatch.setattr(f"dpgm_core.{module}.has_dp_accounting", lambda: False)
    case = accountant("discrete-gaussian", 4.0, rounds=10_000, rate=0.01)
    assert case.bounds(1e-5) == {"renyi": case.renyi_epsilon(1e-5)}
    noise, _ = round_noise(
        Gauss(), unit(1), Budget.approx(1, 1e-5), rounds=10_000, sampling_rate=0.01, neighbours="add-remove"
    )
    assert 4.0 < noise.event.scale < 4.2
    small = Budget.approx("1e-4", 1e-6)
    with pytest.raises(BudgetError, match="more noise"):  # below what Renyi divergences of the orders used can tell
        round_noise(Gauss(), unit(1), small, rounds=1, sampling_rate=0.5, neighbours="add-remove")
    noise, _ = round_noise(Gauss(), unit(1), small, rounds=1, sampling_rate=1, neighbours="add-remove")
    assert noise.event.scale == pytest.approx(1 / math.sqrt(2 * small.zcdp_within().rho), rel=1e-3)


@pytest.mark.parametrize(("scale", "rounds"), [(3000.0, 1), (100.0, 10), (4.0, 3), (0.1, 1), (0.1, 50)])
def test_full_rounds_of_gaussian_noise_are_one_zcdp(scale, rounds):
    """Their rhos add and are converted at the best order, which may lie beyond or between those used otherwise."""
    rho = rounds / Fraction(scale) ** 2 / 2
    found = accountant("discrete-gaussian", scale, rounds=rounds).renyi_epsilon("1e-9")
    exact = zcdp_epsilon(rho, Fraction(1, 10**9))
    assert exact < Fraction(found) <= exact * (1 + Fraction(1, 10**15))


@needs_pld
def test_out_of_reach_is_said():
    """Tiny deltas are left to the Renyi bound, because Fourier transforms round."""
    assert composed_epsilon(gaussian_pair(1, 4.0), 1.0, 1, 1e-12) is None
    assert "pld" not in accountant("discrete-gaussian", 4.0).bounds(1e-12)


@pytest.mark.sampled(5)
@needs_pld
@pytest.mark.parametrize(("rounds", "sigma"), [(10**4, 300.0), (10**5, 1000.0), (10**5, 3000.0), (10**6, 3000.0)])
@pytest.mark.parametrize("delta", [1e-6, 1e-8, 1e-9, 1.1e-10])
def test_no_bound_is_below_the_truth_for_many_rounds_and_tiny_deltas(rounds, sigma, delta):
    """Full rounds of wide noise are one Gaussian of sigma / sqrt(T); transforms round more with every round."""
    mu = math.sqrt(rounds) / sigma
    for found in accountant("discrete-gaussian", sigma, rounds=rounds).bounds(delta).values():
        analytic = norm.cdf(mu / 2 - found / mu) - math.exp(found) * norm.cdf(-mu / 2 - found / mu)
        assert analytic <= delta * (1 + 1e-7)


@needs_pld
def test_too_many_rounds_are_left_to_the_renyi_bound():
    """Up to 2^18 a calibration by transforms takes seconds; and deltas serve from 100 margins on."""
    assert reduce_delta(1e-6, 2**18) is not None and reduce_delta(1e-6, 2**18 + 1) is None
    assert reduce_delta(1e-9, 10**5) is not None and reduce_delta(1.1e-10, 10**5) is None
    for kind in ("gaussian", "discrete-gaussian"):
        assert set(accountant(kind, 3000.0, rounds=10**6).bounds(1e-6)) == {"renyi"}


@pytest.mark.parametrize("rate", [0, -0.1, 1.5, math.nan, math.inf, True, "x", None, 2.0**-33])
def test_sampling_rates_are_multiples_of_a_coin(rate):
    """Of 2^-32, never above what was asked; numbers in (0, 1] only."""
    with pytest.raises(BudgetError, match="sampling rate"):
        sampling_probability(rate)
    exact = sampling_probability(0.1)
    assert exact <= Fraction(1, 10) < exact + Fraction(1, 2**32)
    assert (exact * 2**32).denominator == 1


@pytest.mark.parametrize("rounds", [0, -1, 1.5, True, "3", math.nan, 10**8])
def test_rounds_that_make_no_sense(rounds):
    with pytest.raises(BudgetError, match="rounds"):
        round_noise(Gauss(), unit(1), Budget.zcdp(1), rounds=rounds, sampling_rate=1, neighbours="add-remove")
    with pytest.raises(BudgetError, match="rounds"):
        compose(accountant("laplace", 1.0).event, unit(1), rounds=rounds, neighbours="add-remove")


@pytest.mark.parametrize("delta", [0, 1, -1e-6, math.nan, math.inf, True, "x", None])
def test_deltas_that_make_no_sense(delta):
    with pytest.raises(BudgetError, match="delta"):
        accountant("discrete-gaussian", 4.0).epsilon(delta)


def test_gaussian_pair_is_the_law_of_the_sum():
    """P is the convolution of the cells' noises, Q its shift, for noise on both sides of the switch at sigma = 4."""
    for sigma, cells in [(0.7, 3), (3.9, 2), (4.0, 2), (6.0, 3)]:
        pair = gaussian_pair(cells, sigma)
        reach = int(9 * sigma) + 5
        one = mass("discrete-gaussian", sigma, 0, reach)
        total = one
        for _ in range(cells - 1):
            total = np.convolve(total, one)
        p, q = np.exp(pair.log_p), np.exp(pair.log_q)
        first = -(len(p) - cells - 1) // 2
        window = np.arange(-int(4 * sigma), int(4 * sigma) + 1)
        assert p[window - first] == pytest.approx(total[window + cells * reach], rel=1e-9)
        assert q[window + cells - first] == pytest.approx(p[window - first], rel=1e-9)


def test_laplace_is_one_randomised_response_per_cell():
    """A unit shift of discrete Laplace noise has losses +-1/scale only, with the masses of randomised response."""
    scale = 1.7
    p, q = mass("discrete-laplace", scale, 0), mass("discrete-laplace", scale, 1)
    agree = p[: len(p) // 2 + 1].sum()
    assert np.abs(np.log(p / q)) == pytest.approx(np.full(len(p), 1 / scale), rel=1e-9)
    assert np.exp(response_pair(1, 1 / scale).log_p[1]) == pytest.approx(agree)


def test_wide_shifts_have_no_unit_pair():
    """Where a person can move one cell by 2, Gaussian noise has the Renyi bound only, and Laplace its whole epsilon."""
    wide = Sensitivity(l0=2, l1=2, l2_squared=4, linf=2)
    gaussian = compose(
        PrivacyEvent(kind="discrete-gaussian", scale=9.0, sensitivity=2.0), wide, neighbours="add-remove"
    )
    assert gaussian._pair() is None
    laplace = compose(PrivacyEvent(kind="discrete-laplace", scale=9.0, sensitivity=2.0), wide, neighbours="add-remove")
    assert len(laplace._pair().log_p) == 2


@needs_pld
def test_the_margin_for_rounding_covers_what_transforms_lose():
    """At the true epsilon, the composed distribution's delta is too small by less than a third of the margin."""
    rounds, sigma, delta = 10**5, 1000.0, 1.1e-10
    mu = math.sqrt(rounds) / sigma
    true = brentq(
        lambda e: norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu) - delta, 0.1, 9, xtol=1e-14
    )
    pair = gaussian_pair(1, sigma)
    grid = dominating._on_grid(pair.log_p, pair.log_q, pair.lost)
    lost = delta - grid.self_compose(rounds, tail_mass_truncation=1e-15).get_delta_for_epsilon(true)
    margin = 1e-6 - reduce_delta(1e-6, rounds) - 1e-12
    assert 0 < 3 * lost < margin
