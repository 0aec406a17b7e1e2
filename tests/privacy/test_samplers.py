"""The exact samplers: exact on words we choose, chi-squared against exact mass functions, no bias, no overflow.

Every chi-squared test here has a fixed seed, so it either passes always or never; had the seed been drawn afresh, a
correct sampler would be refused with probability ALARM.
"""

import ast
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from dpgm_core import BudgetError, SeededRandomness
from dpgm_core.privacy import samplers as sampling
from dpgm_core.privacy.samplers import (
    bernoulli_exp,
    bernoulli_exp_square,
    bounded_variance,
    discrete_gaussian,
    discrete_laplace,
    uniform_below,
)
from tests.fixtures import Words

ALARM = 1e-6

SAMPLERS = {"laplace": discrete_laplace, "gaussian": discrete_gaussian}


def p_value(observed, expected):
    """Chi-squared with the cells of small expectation merged into their neighbours."""
    merged_observed, merged_expected, seen, wanted = [], [], 0, 0.0
    for count, mass in zip(observed, expected, strict=True):
        seen, wanted = seen + count, wanted + mass
        if wanted >= 20:
            merged_observed.append(seen)
            merged_expected.append(wanted)
            seen, wanted = 0, 0.0
    merged_observed[-1] += seen
    merged_expected[-1] += wanted
    assert len(merged_expected) > 1
    squares = (np.array(merged_observed) - merged_expected) ** 2 / merged_expected
    return stats.chi2.sf(squares.sum(), len(squares) - 1)


def laplace_bins(scale, samples, bins=200):
    """Observed and expected counts in bins of the whole numbers, from the exact distribution function.

    P(|Z| <= m) = 1 - 2 p^(m+1) / (1 + p) with p = exp(-1 / scale), and the signs are equal.
    """
    rate, count = float(1 / scale), len(samples)
    edges = np.unique(np.ceil(-np.log1p(-np.arange(1, bins) / bins) / rate).astype(np.int64))
    edges = edges[edges > 0]
    # positive side: bins [1, e1), [e1, e2), ..., [ek, inf); mass of [m, inf) is p^m / (1 + p)
    starts = np.concatenate([[1], edges[edges > 1]])
    tail = np.exp(-starts * rate) / (1 + math.exp(-rate))
    mass = tail - np.append(tail[1:], 0.0)
    zero = -math.expm1(-rate) / (1 + math.exp(-rate))
    expected = np.concatenate([mass[::-1], [zero], mass]) * count
    assert math.isclose(expected.sum(), count, rel_tol=1e-9)
    place = np.searchsorted(starts, np.abs(samples), side="right") * np.sign(samples) + len(starts)
    return np.bincount(place, minlength=2 * len(starts) + 1), expected


def test_uniform_below_rejects_the_incomplete_last_block():
    """With bound 3 the word 2^64 - 1 is one too many (2^64 = 3 k + 1): it is drawn again, 2^64 - 2 is not."""
    top = 2**64
    assert uniform_below(3, 2, Words(top - 1, top - 2, top - 1, 4)).tolist() == [1, (top - 2) % 3]


@pytest.mark.parametrize("bound", [1, 2, 3, 2**32 - 1, 2**32, 2**63, 2**63 + 1, 2**64 - 1, 2**64])
def test_uniform_below_reaches_exactly_what_is_below(bound):
    """Smallest and largest accepted words map to 0 and bound - 1; the first refused word is redrawn."""
    whole = 2**64 // bound * bound
    assert uniform_below(bound, 2, Words(0, whole - 1)).tolist() == [0, bound - 1]
    if whole < 2**64:
        assert uniform_below(bound, 1, Words(whole, 0)).tolist() == [0]


def test_uniform_below_is_uniform_where_half_of_the_words_are_refused():
    """bound = 2^63 + 1 refuses almost every second word; the rest stays uniform (Kolmogorov-Smirnov, ALARM)."""
    draws = uniform_below(2**63 + 1, 20_000, SeededRandomness(3))
    assert stats.kstest(draws / float(2**63), "uniform").pvalue > ALARM


@pytest.mark.parametrize("gamma", [Fraction(1), Fraction(1, 2), Fraction(1, 1000), Fraction(2**32 - 2, 2**32 - 1)])
def test_bernoulli_exp_has_probability_exp_minus_gamma(gamma):
    """An exact binomial test on 400 000 draws, two-sided, ALARM; 1 % off in a probability near .5 would be 13 sigma."""
    count = 400_000
    numerators = np.full(count, gamma.numerator, dtype=np.uint64)
    hits = int(bernoulli_exp(numerators, gamma.denominator, SeededRandomness(5)).sum())
    assert stats.binomtest(hits, count, math.exp(-gamma)).pvalue > ALARM


def test_bernoulli_exp_follows_algorithm_1_step_by_step():
    """gamma = 1: A_1 holds, A_2 fails on an odd word -> k = 2, even -> False; A_2 holds and A_3 fails -> True."""
    one = np.ones(1, dtype=np.uint64)
    assert bernoulli_exp(one, 1, Words(1)).tolist() == [False]
    assert bernoulli_exp(one, 1, Words(2, 1)).tolist() == [True]
    assert bernoulli_exp(one, 1, Words(2, 3, 1)).tolist() == [False]


def test_bernoulli_exp_takes_each_gamma_on_its_own():
    """Different gammas in one call keep their own probabilities (each binomial, ALARM)."""
    numerators = np.tile(np.arange(8, dtype=np.uint64), 50_000)
    hits = bernoulli_exp(numerators, 7, SeededRandomness(6)).reshape(-1, 8).sum(axis=0)
    assert hits[0] == 50_000
    for gamma in range(1, 8):
        assert stats.binomtest(int(hits[gamma]), 50_000, math.exp(-gamma / 7)).pvalue > ALARM


SCALES = ["1/20", "1/3", "1", "24", "481/2", "1000000", "4294967295/4294967291"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("scale", SCALES)
def test_discrete_laplace_has_the_exact_mass_function(scale):
    """Chi-squared of 400 000 draws against exp(-|z| / scale) (1 - p) / (1 + p); ALARM."""
    exact = Fraction(scale)
    if exact == Fraction(1, 20):  # P(z != 0) = 4e-9: nothing else may come out in 4e5 draws (alarm 1.7e-3, seed fixed)
        assert not discrete_laplace(exact, 400_000, SeededRandomness(11)).any()
        return
    draws = discrete_laplace(exact, 400_000, SeededRandomness(11))
    assert p_value(*laplace_bins(exact, draws)) > ALARM


def scale_p_value(scale, draws):
    """Two-sided normal test of mean |z|, the sufficient statistic of the scale, with its exact mean and variance."""
    p = math.exp(-1 / scale)
    mean = 2 * p / (1 - p**2)
    variance = 2 * p / (1 - p) ** 2 - mean**2
    return 2 * stats.norm.sf(abs(np.abs(draws).mean() - mean) / math.sqrt(variance / len(draws)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("scale", ["1/3", "24", "1000000"])
def test_the_scale_is_right_and_one_percent_off_would_be_seen(scale):
    """A million draws pass the test of mean |z| at ALARM; 1 % of the scale moves it by 9.4 standard errors or more,
    against a threshold of 4.9, so it is missed with probability below 1e-5."""
    exact = Fraction(scale)
    for factor, alike in ((Fraction(1), True), (Fraction(99, 100), False), (Fraction(101, 100), False)):
        draws = discrete_laplace(exact * factor, 1_000_000, SeededRandomness(12))
        assert bool(scale_p_value(float(exact), draws) > ALARM) is alike


def test_one_third_shows_the_probabilities_of_its_first_values():
    """At scale 1/3 the share of 0 and of each sign is right (binomials, ALARM): (-, 0) is not counted twice."""
    draws = discrete_laplace(Fraction(1, 3), 400_000, SeededRandomness(13))
    p = math.exp(-3)
    zero = (1 - p) / (1 + p)
    for value, mass in ((0, zero), (1, zero * p), (-1, zero * p)):
        assert stats.binomtest(int((draws == value).sum()), 400_000, mass).pvalue > ALARM


def test_neighbouring_draws_are_independent():
    """Signs and sizes of successive draws are uncorrelated, across the chunks too (normal tails, ALARM each)."""
    draws = discrete_laplace(Fraction(24), 300_000, SeededRandomness(14)).astype(float)
    for series in (np.sign(draws), np.abs(draws)):
        correlation = np.corrcoef(series[:-1], series[1:])[0, 1]
        assert abs(correlation) * math.sqrt(len(series)) < stats.norm.isf(ALARM / 2)


@pytest.mark.landing
@pytest.mark.parametrize(
    ("law", "ours", "scale", "count", "edges"),
    [("laplace", Fraction(24), 24.0, 100_000, np.arange(-100, 101, 4)),
     ("gaussian", bounded_variance(Fraction("7.3") ** 2), 7.3, 50_000, np.arange(-21, 22))],
    ids=SAMPLERS,
)  # fmt: skip
def test_it_agrees_with_opendp(law, ours, scale, count, edges):
    """Two-sample chi-squared against OpenDP's sampler, which takes no seed: it fails once in a million runs (ALARM)."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    distance = dp.l1_distance(T="i64") if law == "laplace" else dp.l2_distance(T=float)
    make = dp.m.make_laplace if law == "laplace" else dp.m.make_gaussian
    theirs = np.array(make(dp.vector_domain(dp.atom_domain(T="i64")), distance, scale=scale)([0] * count))
    drawn = SAMPLERS[law](ours, count, SeededRandomness(15))
    table = [np.bincount(np.digitize(draws, edges), minlength=len(edges) + 1) for draws in (drawn, theirs)]
    assert stats.chi2_contingency(table).pvalue > ALARM


@pytest.mark.parametrize(
    ("law", "width", "golden"),
    [
        ("laplace", Fraction(24), [-21, 35, 38, -7, -16, -37, 0, 28]),
        ("laplace", Fraction(1, 3), [0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1]),
        ("gaussian", Fraction(400), [-12, 19, -38, 8, 10, -34, -10, -9]),
    ],
)
def test_the_same_seed_gives_the_same_noise(law, width, golden):
    """Golden values: a change of the sampler that changes seeded simulations must be deliberate."""
    assert SAMPLERS[law](width, len(golden), SeededRandomness(7)).tolist() == golden


@settings(max_examples=60)
@given(st.integers(1, 2**32 - 1), st.integers(1, 2**32 - 1), st.integers(0, 50), st.integers(0, 2**32))
def test_any_admissible_scale_gives_as_many_int64_as_asked(top, bottom, count, seed):
    """The whole range of scales works; the extreme tail of it stays far below the clamp."""
    draws = discrete_laplace(Fraction(top, bottom), count, SeededRandomness(seed))
    assert draws.shape == (count,) and draws.dtype == np.int64
    assert (np.abs(draws) <= 64 * max(1, top // bottom + 1)).all()  # passed with probability < 50 exp(-32)


def test_the_largest_scales_stay_below_the_clamp_by_construction():
    """numerator * (most blocks + 1) <= 2^62, so noise plus counts below 2^62 fits int64."""
    assert (sampling.SCALE_LIMIT - 1) * (sampling._MAX_BLOCKS + 1) < 2**62


def test_a_climb_is_cut_after_the_last_block(monkeypatch):
    """The cut is a clamp, not an error: with at most 3 blocks, scale 1 gives |z| <= 3 and plenty of threes."""
    monkeypatch.setattr(sampling, "_MAX_BLOCKS", 3)
    draws = np.abs(discrete_laplace(Fraction(1), 2_000, SeededRandomness(1)))
    assert draws.max() == 3 and (draws == 3).sum() > 20


@pytest.mark.parametrize(
    "scale", [0, 1, 1.0, math.nan, "1", None, True, Fraction(0), Fraction(-1), Fraction(2**32), Fraction(1, 2**32)]
)
def test_scales_that_are_no_positive_32_bit_fraction_are_refused(scale):
    with pytest.raises(BudgetError, match="scale"):
        discrete_laplace(scale, 1, SeededRandomness(1))


@pytest.mark.parametrize("count", [-1, 1.0, True, "3", None])
@pytest.mark.parametrize("law", SAMPLERS)
def test_counts_that_are_no_whole_number_are_refused(law, count):
    with pytest.raises(BudgetError, match="number of noise values"):
        SAMPLERS[law](Fraction(4), count, SeededRandomness(1))


def test_no_floating_point_on_the_path():
    """The module has no float literal, no true division outside a Fraction, no float type and no math function."""
    tree = ast.parse(Path(sampling.__file__).read_text())
    for node in ast.walk(tree):
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, (float, complex)))
        assert not isinstance(node, ast.Div)
        assert not (isinstance(node, ast.Attribute) and node.attr in ("float64", "float32", "exp", "log", "random"))
        assert not (isinstance(node, ast.Import) and {alias.name for alias in node.names} & {"math", "random"})


SIGMAS = ["0.3", "0.9999", "1", "1.3", "5", "20.7", "1000", "100000"]
variances = st.fractions(min_value=Fraction(1, 2**29), max_value=2**58, max_denominator=2**62)


def mass(values, variance):
    """The masses of whole numbers, normalised by a sum (small sigma) or, to 1e-60, by the integral."""
    total = np.exp(-np.square(np.arange(-400.0, 401.0)) / (2 * variance)).sum()
    if variance > 100:
        total = math.sqrt(2 * math.pi * variance)
    return np.exp(-np.square(values) / (2 * variance)) / total


def gaussian_bins(draws, variance):
    """Observed and expected counts in at most some 200 bins of equal width that hold 20 or more; tails merged."""
    sigma, count = math.sqrt(variance), len(draws)
    width = max(1, math.ceil(sigma / 25))
    most = math.ceil(8 * sigma / width)
    values = np.arange(-most * width - width // 2, most * width - width // 2 + width)
    if variance > 10**6:  # the sum over a bin equals the integral to (width / sigma)^2 / 24 of it at least
        edges = np.arange(-most, most + 2) * width - width // 2 - 0.5
        expected = np.diff(stats.norm.cdf(edges / sigma)) * count
    else:
        cells = values[: (2 * most + 1) * width].reshape(-1, width)
        expected = mass(cells.astype(float), variance).sum(axis=1) * count
    observed = np.bincount((draws + most * width + width // 2) // width, minlength=2 * most + 1)
    kept = expected >= 20
    observed = np.append(observed[kept], observed[~kept].sum())
    expected = np.append(expected[kept], count - expected[kept].sum())
    return (observed, expected) if expected[-1] >= 5 else (observed[:-1], expected[:-1])


def gaussian_p_value(draws, variance):
    """Chi-squared against the exact masses."""
    observed, expected = gaussian_bins(draws, variance)
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("sigma", SIGMAS)
def test_samples_follow_the_exact_mass_function(sigma):
    """400 000 draws at sigma from 0.3 to 1e5, fixed seeds, ALARM."""
    variance = bounded_variance(Fraction(sigma) ** 2)
    draws = discrete_gaussian(variance, 400_000, SeededRandomness(11))
    assert gaussian_p_value(draws, float(variance)) > ALARM


@pytest.mark.sampled(6)
@pytest.mark.parametrize("sigma", SIGMAS[2:])
def test_that_check_would_refuse_two_percent(sigma):
    """Draws from a sigma 2 % smaller fail the same chi-squared."""
    variance = bounded_variance(Fraction(sigma) ** 2)
    draws = discrete_gaussian(bounded_variance(variance * Fraction(98, 100) ** 2), 400_000, SeededRandomness(11))
    assert gaussian_p_value(draws, float(variance)) < ALARM


@pytest.mark.sampled(5)
@pytest.mark.parametrize("root", [0, 1, 2, 3, 4, 5, 7, 9])
@pytest.mark.parametrize("denominator", [2, 3, 8, 17])
def test_bernoulli_exp_square_has_its_probability(root, denominator):
    """exp(-root^2 / denominator), gamma from 0 to above 40: an exact binomial test on 100 000 draws, ALARM."""
    count = 100_000
    hits = int(bernoulli_exp_square(np.full(count, root), denominator, SeededRandomness(root)).sum())
    expected = math.exp(-(root**2) / denominator)
    assert stats.binomtest(hits, count, expected).pvalue > ALARM


@pytest.mark.landing
def test_the_factors_of_a_square_multiply_to_it():
    """rest^2, 2k times unit * rest, k^2 times unit^2: each at most the denominator, together root^2."""
    seen = []

    def record(numerators, denominator, randomness):
        seen.append(int(numerators[0]))
        return np.ones(len(numerators), dtype=bool)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "bernoulli_exp", record)
        for root, denominator in [(0, 2), (1, 2), (37, 17), (100, 99), (2**40 + 3, 2**63 - 1), (2**33, 2**63 - 1)]:
            seen.clear()
            assert bernoulli_exp_square(np.array([root]), denominator, None).all()
            assert sum(seen) == root**2 and max(seen) <= denominator


@given(variances)
@example(Fraction(1, 2**29))
@example(Fraction(2**58))
@example(Fraction(2**58) - Fraction(1, 2**40))
@example(Fraction(10**10) - Fraction(1, 10**12))  # rounding up passes a whole sigma
@example(Fraction(1) - Fraction(1, 2**61))
def test_rounded_variances_are_no_smaller_and_fit_64_bits(variance):
    """Rounding is up, by little from 1 on, and done once; then no product of the sampler passes 63 bits."""
    rounded = bounded_variance(variance)
    assert variance <= rounded == bounded_variance(rounded)
    if variance >= 1:
        assert rounded <= variance * (1 + Fraction(1, 2**26))
    t = math.isqrt(math.floor(rounded)) + 1
    peak = rounded / t
    assert 2 * t * peak.numerator * peak.denominator < 2**63
    # |z| is at most t (blocks + 1), see discrete_laplace; its product with the denominator is the largest root
    assert t * (sampling._MAX_BLOCKS + 1) * peak.denominator <= 2**62 and t < sampling.SCALE_LIMIT


@settings(max_examples=60)
@given(variances, st.integers(0, 50), st.integers(0, 2**32))
@example(Fraction(2**58), 50, 1)
@example(Fraction(1, 2**29), 50, 1)
def test_any_admissible_variance_gives_as_many_int64_as_asked(variance, count, seed):
    """The whole range works; the extreme tail stays near sigma."""
    draws = discrete_gaussian(bounded_variance(variance), count, SeededRandomness(seed))
    assert draws.shape == (count,) and draws.dtype == np.int64
    assert (np.abs(draws) <= 12 * (math.isqrt(math.floor(variance)) + 1)).all()  # passed with probability < 50 exp(-72)


@pytest.mark.parametrize(
    "variance", [0, 1, 1.0, math.nan, "1", None, True, Fraction(0), Fraction(-1), Fraction(2**59), Fraction(1, 2**31)]
)
def test_variances_that_cannot_be_drawn_are_refused(variance):
    with pytest.raises(BudgetError, match="bounded_variance"):
        discrete_gaussian(variance, 1, SeededRandomness(1))


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(-1), Fraction(2**58) + Fraction(1, 3)])
def test_no_variance_beyond_the_limits_is_rounded(variance):
    """sigma above 2^29 records is too wide, and 0 is no noise."""
    with pytest.raises(BudgetError, match="sigma = 2"):
        bounded_variance(variance)
