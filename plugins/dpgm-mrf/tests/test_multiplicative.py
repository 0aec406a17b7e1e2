"""Multiplicative weights against the update written out and against the distribution of most entropy."""

import numpy as np
import pytest
from dpgm_mrf.entropy import maximum_entropy
from dpgm_mrf.polynomials import transform
from dpgm_mrf.published_method import multiply_weights


def test_one_mean_is_approached_as_the_update_says():
    """D ~ D exp(z (measured - current) / 2), pass by pass, over two states."""
    distribution = np.array([0.5, 0.5])
    for _ in range(20):
        distribution = distribution * np.exp(np.array([1, -1]) * (0.8 - (distribution[0] - distribution[1])) / 2)
        distribution = distribution / distribution.sum()
    assert np.exp(multiply_weights(2, [(1, 0.8)])) == pytest.approx(distribution)


def test_consistent_means_lead_to_the_most_entropy():
    """Called again and again, as rounds do, the means are met, by an exponential family of their monomials."""
    coefficients = np.zeros(16)
    coefficients[[0b0001, 0b0110, 0b1011]] = 0.3, -0.5, 0.4
    weights = np.exp(transform(coefficients))
    means = transform(weights / weights.sum())
    own = [0b0001, 0b0110, 0b1011]
    logs = np.zeros(16)
    for _ in range(10):
        logs = multiply_weights(16, [(one, float(means[one])) for one in own], logs)
    assert np.exp(logs).sum() == pytest.approx(1)
    assert transform(np.exp(logs))[own] == pytest.approx(means[own], abs=1e-6)
    best = maximum_entropy(16, np.array(own), means[own], np.zeros(3))
    assert transform(np.exp(logs)) == pytest.approx(best.means, abs=1e-6)


def test_nothing_measured_is_uniform():
    start = np.log(np.array([0.1, 0.2, 0.3, 0.4]))
    assert np.exp(multiply_weights(4, [])).tolist() == [0.25] * 4
    assert np.exp(multiply_weights(4, [], start)) == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert multiply_weights(4, [(3, 0.9)], start)[0] != start[0] and np.exp(start).sum() == pytest.approx(1)
