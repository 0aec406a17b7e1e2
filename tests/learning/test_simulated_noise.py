"""Noise of simulated releases: its distribution, and that no release can have it."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpgm_core import Budget, BudgetError, SeededRandomness, Sensitivity, make
from dpgm_core.learning.bootstrap import SimulatedNoise, simulated_noise
from dpgm_core.privacy.mechanism import ScaledNoise, calibrate
from dpgm_core.privacy.tabulated import NoiseDistribution, TabulatedNoise
from dpgm_core.releases.pooling import PooledNoise
from dpgm_core.releases.views import SummedNoise

_ONE = Sensitivity(l0=2, l1=2, l2_squared=2, linf=1)
_PURE, _APPROX = Budget.pure("0.3"), Budget.approx(1, "1e-9")
_NOISES = {
    "laplace": make("mechanism", "laplace").noise(_ONE, _PURE),
    "laplace, narrow": make("mechanism", "laplace").noise(_ONE, Budget.pure(8)),
    "gaussian": make("mechanism", "gaussian").noise(_ONE, _APPROX),
    "gaussian, narrow": make("mechanism", "gaussian").noise(_ONE, Budget.zcdp(8)),
    "tabulated": TabulatedNoise(
        distribution=NoiseDistribution(weights=(5, 9, 2), tail=Fraction(1, 3)), sensitivity=_ONE, cost=Budget.pure(10)
    ),
}
_DRAWS = 200_000


@pytest.mark.parametrize("name", _NOISES)
def test_whole_numbers_have_the_released_distribution(name):
    """Chi-squared of all values that are expected 20 times, the others together; false alarms below 1e-6 each."""
    noise = _NOISES[name]
    quick = simulated_noise(noise)
    assert isinstance(quick, SimulatedNoise)
    drawn = quick.draw((_DRAWS,), SeededRandomness(5))
    assert drawn.dtype == np.int64
    values = np.arange(-5000, 5001)
    expected = _DRAWS * np.exp(noise.logpdf(values.astype(np.float64)))
    found = np.bincount(np.clip(drawn, -5000, 5000) + 5000, minlength=len(values))
    often = expected >= 20
    rest = _DRAWS - expected[often].sum()
    terms = list((found[often] - expected[often]) ** 2 / expected[often])
    if rest >= 20:
        terms.append((found[~often].sum() - rest) ** 2 / rest)
    assert found[expected == 0].sum() == 0
    assert sum(terms) < stats.chi2.isf(1e-6, len(terms) - 1)


@pytest.mark.parametrize("name", ["laplace", "gaussian", "tabulated"])
def test_the_exact_sampler_draws_the_same(name):
    """Two samples, of both samplers, by Kolmogorov and Smirnov; false alarms below 1e-6."""
    noise = _NOISES[name]
    exact, quick = (one.draw((20_000,), SeededRandomness(3)) for one in (noise, simulated_noise(noise)))
    assert stats.ks_2samp(exact, quick).pvalue > 1e-6


def test_sums_and_means_of_tables_have_quick_parts():
    """Merged cells, pooled and scaled tables: mean and variance of each, out by 6 standard deviations at most."""
    noise = _NOISES["laplace"]
    pooled = PooledNoise(noises=(noise, _NOISES["gaussian"]), weights=(0.25, 0.75))
    summed = SummedNoise(noise=noise, blocks=(1, 3, 2))
    scaled = ScaledNoise(noise=noise, factor=0.5)
    randomness = SeededRandomness(1)
    for whole, shape, variances in [
        (pooled, (4,), [pooled.variance] * 4),
        (summed, (3,), [noise.variance * block for block in (1, 3, 2)]),
        (scaled, (2,), [scaled.variance] * 2),
    ]:
        quick = simulated_noise(whole)
        assert type(quick) is type(whole) and quick != whole
        draws = np.array([quick.draw(shape, randomness) for _ in range(4000)])
        assert np.all(np.abs(draws.mean(axis=0)) < 6 * np.sqrt(np.array(variances) / 4000))
        # Laplace noise has excess kurtosis of at most 3
        assert np.all(np.abs(draws.var(axis=0) / variances - 1) < 6 * np.sqrt(5 / 4000))


def test_noise_without_a_table_is_drawn_as_it_is():
    """Too wide for a table, textbook floats, and a `logpdf` whose masses do not sum to 1."""

    class Unnormalised(type(_NOISES["laplace"])):
        def logpdf(self, residual):
            return super().logpdf(residual) + 0.1

    noise = _NOISES["laplace"]
    wrong = Unnormalised(**{field.name: getattr(noise, field.name) for field in type(noise).__attrs_attrs__})
    wide = make("mechanism", "laplace").noise(_ONE, Budget.pure("1e-5"))
    floats = make("mechanism", {"name": "gaussian", "exact": False, "allow_unsafe": True}).noise(_ONE, _APPROX)
    for one in (wrong, wide, floats):
        assert simulated_noise(one) is one


def test_no_release_can_have_it():
    """It has no cost, so a mechanism that returned it is refused before any charge."""
    quick = simulated_noise(_NOISES["laplace"])

    class Leak:
        own_randomness = None

        def noise(self, sensitivity, budget):
            return quick

    with pytest.raises(BudgetError, match="costs nothing of its own"):
        calibrate(Leak(), quick, _ONE, _PURE)
