"""Maximum entropy on all states: its own means again, the optimum by brute force, and means that no one can meet."""

import itertools

import numpy as np
import pytest
from dpgm_mrf.entropy import maximum_entropy
from dpgm_mrf.polynomials import degrees, transform
from scipy.optimize import minimize


def monomials(p, order):
    actual = degrees(1 << p)
    return np.nonzero((actual > 0) & (actual <= order))[0]


def population(p, order, seed, scale=0.4):
    coefficients = np.zeros(1 << p)
    own = monomials(p, order)
    coefficients[own] = np.random.default_rng(seed).normal(scale=scale, size=len(own))
    weights = np.exp(transform(coefficients))
    return coefficients, transform(weights / weights.sum())


@pytest.mark.parametrize(("p", "order"), [(1, 1), (4, 4), (8, 3), (10, 2)])
def test_it_reproduces_its_own_parities(p, order):
    """Without noise the means are met to 1e-8, and with them the polynomial is found again."""
    coefficients, means = population(p, order, seed=p)
    own = monomials(p, order)
    actual = maximum_entropy(1 << p, own, means[own], np.zeros(len(own)))
    assert actual.converged and np.abs(actual.means[own] - means[own]).max() < 1e-8
    assert actual.coefficients == pytest.approx(coefficients, abs=1e-6)
    assert np.abs(actual.means - means).max() < 1e-8  # those it was not told of, too


def test_the_optimum_is_that_of_another_minimiser():
    """p = 4, noisy means, a variance each: the objective written out over 16 states, minimised by BFGS."""
    rng = np.random.default_rng(3)
    own = monomials(4, 3)
    _, means = population(4, 3, seed=1)
    noisy, variances = means[own] + rng.normal(scale=0.1, size=len(own)), rng.uniform(0.001, 0.05, len(own))
    signs = np.array([[(-1) ** bin(one & state).count("1") for one in own] for state in range(16)])

    def objective(x):
        return np.log(np.exp(signs @ x).sum()) - x @ noisy + variances @ x**2 / 2

    best = minimize(objective, np.zeros(len(own)), method="BFGS", options={"gtol": 1e-9}).x
    actual = maximum_entropy(16, own, noisy, variances)
    assert actual.converged and actual.coefficients[own] == pytest.approx(best, abs=1e-4)
    assert objective(actual.coefficients[own]) <= objective(best) + 1e-12
    again = maximum_entropy(16, own, noisy, variances, start=actual.coefficients)
    assert again.converged and len(again.trace) == 1


@pytest.mark.parametrize("variance", [1e-3, 1e-2, 1e4])
def test_means_that_nobody_has_are_met_as_nearly_as_their_noise_allows(variance):
    """All means -1 and 1 at random: finite, converged, and mu - y + v x = 0 by its own numbers."""
    own = monomials(6, 3)
    means = np.random.default_rng(4).choice([-1.0, 1.0], len(own))
    actual = maximum_entropy(64, own, means, np.full(len(own), variance))
    assert actual.converged and np.isfinite(actual.coefficients).all()
    weights = np.exp(transform(actual.coefficients) - transform(actual.coefficients).max())
    mu = transform(weights / weights.sum())[own]
    assert np.abs(mu - means + variance * actual.coefficients[own]).max() < 1e-8


def test_more_noise_pulls_nearer_to_uniform():
    """The absolute coefficient of a single mean falls as its variance grows, from atanh(y) on."""
    actual = [
        maximum_entropy(2, np.array([1]), np.array([0.5]), np.array([variance])).coefficients[1]
        for variance in (0.0, 0.01, 0.1, 1.0, 10.0)
    ]
    assert actual[0] == pytest.approx(np.arctanh(0.5), abs=1e-8)
    assert all(one > other > 0 for one, other in itertools.pairwise(actual))


def test_nothing_to_meet_is_uniform():
    actual = maximum_entropy(8, np.zeros(0, int), np.zeros(0), np.zeros(0))
    assert actual.converged and not actual.coefficients.any() and actual.means.tolist() == [1] + [0] * 7
