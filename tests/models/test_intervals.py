"""Intervals from replicates and from several synthetic data sets: what they cover, and what they refuse."""

import numpy as np
import pytest
from scipy import stats

from dpgm_core import OptionError, combine
from dpgm_core.models.intervals import interval

TRIALS = 10_000


def analyses(m: int, sampling: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(m, TRIALS) estimates of a truth at 0 and their variances: the model's error has variance 1, replicates vary
    about the model with variance 1, and each data set adds `sampling`."""
    rng = np.random.default_rng(seed)
    model = rng.normal(size=TRIALS)
    replicates = model + rng.normal(size=(m, TRIALS))
    return replicates + np.sqrt(sampling) * rng.normal(size=(m, TRIALS)), np.full((m, TRIALS), sampling)


@pytest.mark.parametrize(("m", "sampling"), [(2, 0.0), (5, 0.0), (10, 0.05), (20, 0.3)])
def test_combined_intervals_cover_where_data_sets_are_large(m, sampling):
    """90 % of 10,000 independent trials, within 5 sd = .015: a false alarm has probability below 1e-6. Without taking
    the synthetic sampling off, the last case covers .94; with it added as for missing data, more."""
    found = combine(*analyses(m, sampling))
    assert abs(np.mean((found.low <= 0) & (found.high >= 0)) - 0.9) < 0.015


@pytest.mark.parametrize(("m", "sampling"), [(2, 3.0), (5, 1.0), (10, 3.0), (20, 1.0)])
def test_combined_intervals_are_wide_rather_than_wrong_where_data_sets_are_small(m, sampling):
    """With T often negative or near 0 they cover more than promised, never less, and stay finite."""
    found = combine(*analyses(m, sampling))
    assert np.mean((found.low <= 0) & (found.high >= 0)) > 0.9
    assert np.isfinite(found.high).all()


def test_the_rule_is_the_published_one():
    """q, T, t and its degrees of freedom, computed by hand for one case; and with T negative."""
    q, u = np.array([1.0, 2.0, 4.0, 5.0]), np.array([0.5, 0.7, 0.6, 0.2])
    found = combine(q, u, level=0.95)
    total = 1.25 * np.var(q, ddof=1) - 0.5
    degrees = 3 * (1 - 4 * 0.5 / (5 * np.var(q, ddof=1))) ** 2
    assert found.estimate == 3.0
    assert found.standard_error == pytest.approx(np.sqrt(total))
    assert found.high == pytest.approx(3 + stats.t.ppf(0.975, degrees) * np.sqrt(total))
    negative = combine(q, 100 * u, level=0.95, ratio=0.25)
    assert negative.standard_error == pytest.approx(np.sqrt(0.25 * 50))
    assert negative.low == pytest.approx(3 - stats.t.ppf(0.975, 3) * np.sqrt(0.25 * 50))


def test_equal_data_sets_give_a_point():
    """Nothing varies and nothing was sampled: no division by 0."""
    found = combine([0.5, 0.5], [0.0, 0.0])
    assert (found.low, found.high) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("estimates", "variances", "more", "words"),
    [
        ([1.0], [1.0], {}, "at least 2"),
        (1.0, 1.0, {}, "at least 2"),
        ([1.0, 2.0], [1.0], {}, "as many"),
        ([1.0, np.nan], [1.0, 1.0], {}, "finite"),
        ([1.0, 2.0], [1.0, -1.0], {}, "at least 0"),
        ([1.0, 2.0], [1.0, np.inf], {}, "finite"),
        ([1.0, 2.0], [1.0, 1.0], {"level": 1.0}, "level"),
        ([1.0, 2.0], [1.0, 1.0], {"ratio": 0}, "ratio"),
        ([1.0, 2.0], [1.0, 1.0], {"ratio": True}, "ratio"),
        ([1.0, 2.0], [1.0, 1.0], {"ratio": "1"}, "ratio"),
    ],
)
def test_senseless_input_is_refused(estimates, variances, more, words):
    """One estimate, other lengths, NaN, negative variances, levels and ratios that are none."""
    with pytest.raises(OptionError, match=words):
        combine(estimates, variances, **more)


def test_few_replicates_are_made_up_for():
    """With 3 replicates and no bias the interval still covers 90 %: Student's t, not the normal. 5 sd are .015."""
    rng = np.random.default_rng(1)
    estimate = rng.normal(size=TRIALS)
    found = interval(estimate, estimate + rng.normal(size=(3, TRIALS)), level=0.9)
    assert 0.9 - 0.015 < np.mean((found.low <= 0) & (found.high >= 0)) < 0.96
