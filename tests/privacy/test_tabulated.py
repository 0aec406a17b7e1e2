"""Tabulated noise: losses against brute force over outputs, exact draws against the weights, and calibration."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtri

from dpgm_core import Budget, BudgetError, SeededRandomness, Sensitivity
from dpgm_core.privacy import tabulated
from dpgm_core.privacy.accounting import compose
from dpgm_core.privacy.budget import NoiseDistribution
from dpgm_core.privacy.gaussian import normal_delta
from dpgm_core.privacy.tabulated import (
    TabulatedNoise,
    calibrate_tabulated,
    log_moment,
    tabulated_cost,
    tabulated_delta,
    tabulated_variance,
)
from tests.fixtures import Words

SHIFTS = ((1,), (2,), (1, 1), (2, 1))
EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 3.0)
ORDERS = (1.01, 1.5, 2.0, 4.0, 16.0)


def of(logs, tail):
    logs = np.asarray(logs, float)
    weights = tuple(int(one) for one in np.exp(logs - logs.max()) * 2.0**61)
    return NoiseDistribution(weights=weights, tail=Fraction(tail).limit_denominator(10**6))


X = np.arange(40.0)
NOISES = {
    "laplace": of(-X[:3] / 2, math.exp(-0.5)),
    "gaussian": of(-(X[:13] ** 2) / 4, math.exp(-6.25)),
    "power": of(-(X[:30] ** 1.5) / 4, math.exp(-2.1)),
    "huber": of(np.where(X < 4, -(X**2) / 8, 2 - X), math.exp(-1.0)),
    "staircase": of(-np.floor((X[:38] + 1) / 3) * 0.9, math.exp(-0.3)),
    "two widths": of(np.logaddexp(-X, -X / 5 - 2), math.exp(-0.2)),
    "two humps": of(-np.abs(X[:20] - 3) / 3, math.exp(-0.4)),
    "no table": NoiseDistribution(weights=(1,), tail=Fraction(1, 3)),
}


def moved(shift):
    return Sensitivity(l0=len(shift), l1=sum(shift), l2_squared=sum(s * s for s in shift), linf=max(shift))


def pair(distribution, shift, reach=300):
    """(P, Q) of all outputs within reach, by the definition of the weights; cells shifted against cells as they are."""
    numbers = np.abs(np.arange(-reach, reach + 1))
    last = len(distribution.weights) - 1
    logs = np.log(np.array(distribution.weights, float))[np.minimum(numbers, last)]
    logs = logs + np.maximum(numbers - last, 0) * math.log(distribution.tail)
    masses = np.exp(logs - np.logaddexp.reduce(logs))
    p, q = np.ones(1), np.ones(1)
    for s in shift:
        here, there = masses[: len(masses) - s], masses[s:]
        keep = (here > 1e-13) | (there > 1e-13)
        p, q = np.outer(p, here[keep]).ravel(), np.outer(q, there[keep]).ravel()
    return p, q


def hockey_stick(distribution, shift, epsilon):
    """A lower bound of delta at epsilon."""
    p, q = pair(distribution, shift)
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


def excess(distribution, price, shifts=SHIFTS):
    """How far the hockey stick exceeds the curve of mu^2 = price(shift), at the worst of the shifts and epsilons."""
    return max(
        hockey_stick(distribution, shift, epsilon)
        - float(normal_delta(math.sqrt(price(shift)), np.array(float(epsilon))))
        for shift in shifts
        for epsilon in EPSILONS
    )


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("shift", SHIFTS)
def test_no_shift_loses_more_than_is_charged(name, shift):
    """Pure, zCDP and (epsilon, delta), by brute force over the outputs."""
    noise, sensitivity = NOISES[name], moved(shift)
    p, q = pair(noise, shift)
    seen = (p > 1e-200) & (q > 1e-200)
    pure = float(tabulated_cost(noise, sensitivity, "pure").epsilon)
    assert np.abs(np.log(p[seen] / q[seen])).max() <= pure + 1e-9
    rho = float(tabulated_cost(noise, sensitivity, "zcdp").rho)
    for order in ORDERS:
        renyi = math.log(np.sum(np.exp(order * np.log(p[seen]) + (1 - order) * np.log(q[seen])))) / (order - 1)
        assert renyi <= order * rho + 1e-9
    for epsilon in EPSILONS:
        claimed = tabulated_delta(noise, sensitivity, Fraction(epsilon))
        assert hockey_stick(noise, shift, epsilon) <= claimed + 1e-11


@pytest.mark.parametrize("name", NOISES)
def test_the_price_of_one_unit_is_sharp(name):
    """At some epsilon the hockey stick of a unit shift comes within 2 % of the curve, so no smaller mu would do."""
    noise = NOISES[name]
    mu = math.sqrt(2 * float(tabulated_cost(noise, moved((1,)), "zcdp").rho))
    mu = min(mu, math.sqrt(tabulated._mu_squared(noise, moved((1,)))))
    assert excess(noise, lambda shift: (0.98 * mu) ** 2 * sum(s * s for s in shift), ((1,),)) > 0


def thresholds_only(noise):
    """mu of a unit shift by the events W >= t: what holds of log-concave noise alone."""
    weights = np.array(noise.weights, float)
    beyond = weights[-1] * float(noise.tail / (1 - noise.tail))
    total = weights[0] + 2 * weights[1:].sum() + 2 * beyond
    tails = np.append(np.cumsum(weights[::-1])[::-1] + beyond, beyond) / total  # of W >= 0, 1, ...
    z = -ndtri(tails)
    z[0] = -z[1]
    return float(np.diff(z).max())


@pytest.mark.parametrize("name", ["staircase", "two widths", "two humps"])
def test_spacings_alone_are_too_low_a_price_off_log_concave_noise(name):
    """The specification's price, of thresholds, is exceeded; that of all events is not."""
    noise = NOISES[name]
    mu = thresholds_only(noise)
    honest = math.sqrt(tabulated._mu_squared(noise, moved((1,))))
    assert not TabulatedNoise(distribution=noise, sensitivity=moved((1,)), cost=Budget.pure(10)).log_concave
    assert honest >= mu
    if honest > 1.001 * mu:
        assert excess(noise, lambda shift: mu**2 * sum(s * s for s in shift), ((1,),)) > 1e-4


@pytest.mark.parametrize("name", ["laplace", "gaussian", "power", "huber", "no table"])
def test_spacings_are_the_price_of_log_concave_noise(name):
    """Both agree where both hold."""
    honest = math.sqrt(tabulated._mu_squared(NOISES[name], moved((1,))))
    assert thresholds_only(NOISES[name]) == pytest.approx(honest, rel=1e-8)


@pytest.mark.parametrize("name", ["laplace", "gaussian", "power"])
def test_the_price_of_the_variance_is_too_low(name):
    """L2^2 / variance, which holds of continuous Gaussian noise."""
    noise = NOISES[name]
    price = 1 / tabulated_variance(noise)
    assert excess(noise, lambda shift: price * sum(s * s for s in shift)) > 1e-3


def test_a_tail_lighter_than_stated_costs_more():
    """The loss is that of the tail that is there."""
    wide, light = (NoiseDistribution(weights=NOISES["laplace"].weights, tail=Fraction(tail)) for tail in ("3/5", "1/5"))
    stated = float(tabulated_cost(wide, moved((1,)), "pure").epsilon)
    p, q = pair(light, (1,), 40)
    assert np.log(p / q).max() > stated + 0.5


@settings(max_examples=40)
@given(st.lists(st.integers(1, 2**30), min_size=1, max_size=12), st.fractions("1/20", "9/10", max_denominator=50))
def test_any_weights_are_charged_for(weights, tail):
    """Whatever their shape: no hockey stick of a unit shift, or of two, is above the curve or the pure bound."""
    noise = NoiseDistribution(weights=tuple(weights), tail=tail)
    for shift, epsilon in itertools.product(((1,), (2,), (1, 1)), (0.0, 0.5, 2.0)):
        claimed = tabulated_delta(noise, moved(shift), Fraction(epsilon))
        assert hockey_stick(noise, shift, epsilon) <= claimed + 1e-10


def test_a_staircase_charges_one_step_for_a_shift_of_its_width():
    """One cell by 3 crosses one step of the staircase: 0.9 nats and not three times that."""
    one_cell = Sensitivity(l0=1, l1=3, l2_squared=9, linf=3)
    assert float(tabulated_cost(NOISES["staircase"], one_cell, "pure").epsilon) == pytest.approx(0.9)
    wide = Sensitivity(l0=1, l1=100, l2_squared=10**4, linf=100)
    assert float(tabulated_cost(NOISES["staircase"], wide, "pure").epsilon) == pytest.approx(90)


@pytest.mark.parametrize(
    ("weights", "tail", "words"),
    [
        ((), "1/2", "1 to 65,536 weights"),
        ((3, 0, 1), "1/2", "0 would be an end"),
        ((3, 2**62), "1/2", "0 would be an end"),
        ((3, True), "1/2", "0 would be an end"),
        ((3, 1.0), "1/2", "0 would be an end"),
        ([3, 1], "1/2", "1 to 65,536 weights"),
        ((3, 1), "1", "above 0 and at most"),
        ((3, 1), "0", "above 0 and at most"),
    ],
)
def test_what_is_no_distribution_is_refused(weights, tail, words):
    with pytest.raises(BudgetError, match=words) as caught:
        NoiseDistribution(weights=weights, tail=Fraction(tail))
    assert "\n" not in str(caught.value)


def test_a_cost_below_the_loss_is_refused():
    """By the noise itself, in all three kinds."""
    one, noise = moved((1,)), NOISES["power"]
    rho = tabulated_cost(noise, one, "zcdp")
    TabulatedNoise(distribution=noise, sensitivity=one, cost=rho)
    for cost in (rho * Fraction(99, 100), Budget.pure("1/2"), Budget.approx("1/10", "1e-4")):
        with pytest.raises(BudgetError, match=r"claims to cost .*, but costs"):
            TabulatedNoise(distribution=noise, sensitivity=one, cost=cost)


@pytest.mark.parametrize("name", ["laplace", "two humps", "no table"])
def test_draws_follow_the_weights(name):
    """Chi-squared over values, also of the tail; false alarm 1e-6 each, with a fixed seed."""
    noise = TabulatedNoise(distribution=NOISES[name], sensitivity=moved((1,)), cost=Budget.pure(10))
    drawn = noise.draw((200, 1000), SeededRandomness(3))
    assert drawn.shape == (200, 1000) and drawn.dtype == np.int64
    values = np.arange(-200, 201)
    expected = np.exp(noise.logpdf(values)) * drawn.size
    seen = np.bincount(np.clip(drawn.ravel(), -200, 200) + 200, minlength=401)
    keep = expected > 20
    statistic = ((seen[keep] - expected[keep]) ** 2 / expected[keep]).sum()
    assert stats.chi2.sf(statistic, keep.sum()) > 1e-6


def test_probabilities_of_draws_by_scripted_words():
    """W = 0 of weights 1 and a tail of 1/3 has U < 1/2: 2^63 is the bound itself, so the digits after it tell."""
    noise = NOISES["no table"]

    def draw(*words):
        return int(tabulated._draw(noise, 1, Words(*words, rest=0))[0])

    assert draw(2**63 - 1) == 0
    assert abs(draw(2**63 + 1, *[2**64 - 1] * 60)) == 1
    assert abs(draw(2**63, 5, *[2**64 - 1] * 60)) == 1  # beyond the bound by its second word
    thirds = NoiseDistribution(weights=(1, 1), tail=Fraction(1, 4))  # whole 1 + 2 + 2 / 3: 0 below 3 / 11
    at = (3 << 64) // 11
    below, above = ((3 << 128) // 11 & (2**64 - 1)) - 5, ((3 << 128) // 11 & (2**64 - 1)) + 5
    assert tabulated._draw(thirds, 1, Words(at, below, rest=0))[0] == 0
    assert abs(tabulated._draw(thirds, 1, Words(at, above, *[2**64 - 1] * 70, rest=0))[0]) == 1


def test_digits_of_the_tail_by_scripted_words():
    """The first digit of a tail of 1/2 is 1 below 1/3, 0.5555... in hexadecimal; the second word tells at the bound."""
    fives, ones = 0x5555555555555555, [2**64 - 1] * 60
    for word, digit in ((fives - 5, 1), (fives + 5, 0)):
        for words in ((fives, word), (word,)):
            assert tabulated._geometric(Fraction(1, 2), 1, Words(*words, *ones, rest=0)).tolist() == [digit]


@given(st.fractions("1/100", "99/100", max_denominator=1000), st.integers(0, 40))
def test_digits_of_the_tail_are_within_two_units(tail, digit):
    """Of the exact odds, for digits whose powers can be written out; else of those at more bits."""
    (found,), (finer,) = tabulated._odds(tail, digit, 64), tabulated._odds(tail, digit, 128)
    assert 0 <= finer - (found << 64) <= 2 << 64
    if digit <= 8:
        power = tail ** (2**digit)
        assert 0 <= power / (1 + power) * 2**64 - found < 2


def test_variance_moments_density_and_score_belong_together():
    """By sums over 2,000 values."""
    values = np.arange(-2000.0, 2001)
    for name, distribution in NOISES.items():
        noise = TabulatedNoise(distribution=distribution, sensitivity=moved((1,)), cost=Budget.pure(10))
        masses = np.exp(noise.logpdf(values))
        assert masses.sum() == pytest.approx(1, abs=1e-12), name
        assert masses @ values**2 == pytest.approx(noise.variance, rel=1e-9)
        if float(distribution.tail) < 0.9:
            by_hand = np.log(masses @ np.exp(0.1 * values))
            assert log_moment(distribution, np.array([-0.1, 0.1])) == pytest.approx([by_hand, by_hand], rel=1e-9)
        assert np.isposinf(log_moment(distribution, np.array([100.0])))
        middle = np.array([-3.5, -0.5, 0.5, 20.5, 300.5])
        slope = noise.logpdf(middle + 0.25) - noise.logpdf(middle - 0.25)
        assert noise.score(middle) == pytest.approx(2 * slope, rel=1e-6)


@pytest.mark.parametrize("name", NOISES)
def test_rounds_and_subsamples_are_accounted_for_by_the_loss_of_a_unit(name):
    """One round and two against brute force, whose cells move by 1 each; a subsample of a tenth against the mixture."""
    one = moved((1,))
    noise = TabulatedNoise(distribution=NOISES[name], sensitivity=one, cost=Budget.pure(10))
    for rounds, shift in ((1, (1,)), (2, (1, 1))):
        epsilon = compose(noise.event, one, rounds=rounds, neighbours="add-remove").epsilon(1e-3)
        assert hockey_stick(NOISES[name], shift, epsilon) <= 1e-3 + 1e-10
    accountant = compose(noise.event, one, rounds=1, sampling_rate="1/10", neighbours="add-remove")
    p, q = pair(NOISES[name], (1,))
    for mixed, other in ((0.9 * q + 0.1 * p, q), (q, 0.9 * q + 0.1 * p)):
        assert np.maximum(mixed - math.exp(accountant.epsilon(1e-3)) * other, 0).sum() <= 1e-3 + 1e-10


FAMILIES = {
    "power": lambda z, scale: -((z / scale) ** 1.5),
    "laplace": lambda z, scale: -z / scale,
    "staircase": lambda z, scale: -np.floor((z + 2) / 4) * 4 / scale,
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("budget", [Budget.pure(1), Budget.zcdp("1/50"), Budget.approx(1, "1e-6")], ids=str)
def test_calibration_spends_the_budget_and_no_more(family, budget):
    sensitivity = Sensitivity(l0=5, l1=5, l2_squared=5, linf=1)
    noise = calibrate_tabulated(FAMILIES[family], sensitivity, budget)
    assert noise.cost <= budget
    if budget.kind == "approx":
        spent = Fraction(tabulated_delta(noise.distribution, sensitivity, budget.epsilon)) / budget.delta
        if not spent:  # of a pure epsilon that is as small, which is the cheaper way
            spent = tabulated_cost(noise.distribution, sensitivity, "pure").epsilon / budget.epsilon
    else:
        spent = (noise.cost.epsilon / budget.epsilon) if budget.kind == "pure" else noise.cost.rho / budget.rho
    assert 0.999999 <= spent <= 1
    assert noise.log_concave is (family != "staircase")


def test_laplace_by_the_table_has_the_variance_of_laplace():
    """Core's own mechanism of this distribution."""
    noise = calibrate_tabulated(FAMILIES["laplace"], moved((1, 1)), Budget.pure("1/10"))
    rate = 0.05
    assert noise.variance == pytest.approx(2 * math.exp(-rate) / math.expm1(-rate) ** 2, rel=1e-6)


def test_wide_noise_ends_its_table_early_and_costs_what_it_loses():
    """Claim: 2^16 weights and a geometric tail; its divergence of order 2, summed, is within 2 rho, and above rho."""
    noise = calibrate_tabulated(FAMILIES["power"], moved((1,)), Budget.zcdp("1e-8"))
    assert len(noise.distribution.weights) == 2**16 and noise.log_concave
    values = np.arange(-40.0 * math.sqrt(noise.variance) // 1, 40 * math.sqrt(noise.variance))
    logs = noise.logpdf(values)
    masses, ratios = np.exp(logs[1:]), np.diff(logs)
    assert masses.sum() == pytest.approx(1, abs=1e-9)
    assert float(values[1:] ** 2 @ masses) == pytest.approx(noise.variance, rel=1e-6)
    divergence = float(masses @ (np.expm1(ratios) - ratios)) + float(masses @ ratios)
    assert float(noise.cost.rho) < divergence < 2 * float(noise.cost.rho)
    assert abs(np.abs(noise.draw((1000,), SeededRandomness(1))).max()) > math.sqrt(noise.variance)


@pytest.mark.parametrize(
    ("family", "budget", "words"),
    [
        (FAMILIES["power"], Budget.zcdp("1e-20"), "wider than 2\\*\\*16 weights hold, or 2\\*\\*29 records"),
        (FAMILIES["staircase"], Budget.zcdp("1e-12"), "wider than 2\\*\\*16 weights hold"),
        (FAMILIES["power"], Budget.zero("pure"), "takes a positive budget"),
        (lambda z, scale: z * np.nan, Budget.pure(1), "finite log weight"),
        (lambda z, scale: -1 / (1 + z), Budget.pure(1), "wider than"),
        (lambda z, scale: np.where(z, 0.0, -99.0) - z, Budget.pure(1), "near the largest"),
        (lambda z, scale: -z, Budget.pure("1/2"), "no scale of this noise"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(family, budget, words):
    with pytest.raises(BudgetError, match=words) as caught:
        calibrate_tabulated(family, moved((1,)), budget)
    assert "\n" not in str(caught.value)
