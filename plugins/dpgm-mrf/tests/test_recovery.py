"""The recovery of a polynomial from regressions and parities: exact on a population, and what it does with noise."""

import numpy as np
import pytest
from dpgm_mrf.polynomials import degrees, monomials_of, transform
from dpgm_mrf.published_method import recover_polynomial

import dpgm_core as dpgm

P = 6
NAMES = tuple("abcdef")
ALL = monomials_of(dpgm.Structure.complete(dpgm.Domain.from_sizes(dict.fromkeys(NAMES, 2)), 3), NAMES, 3)


def truth(seed=1):
    """Triples, pairs that lie in none of them, and smaller monomials inside; and the law of the states."""
    rng = np.random.default_rng(seed)
    actual = np.zeros(1 << P)
    actual[[0b000111, 0b011100, 0b100010, 0b110000, 0b000011, 0b000001, 0b010000]] = rng.uniform(-0.6, 0.6, 7)
    weights = np.exp(transform(actual))
    return actual, weights / weights.sum()


def regression(distribution, place):
    """The logistic regression of an attribute on all products of up to two others, over the whole population: Newton's
    method on the loss written out, state by state."""
    others = np.array([one for one in range(1 << P) if not one >> place & 1 and degrees(1 << P)[one] <= 2])
    states = np.arange(1 << P)
    features = 1.0 - 2.0 * (degrees(1 << P)[states[:, None] & others] % 2)
    label = 1.0 - 2.0 * (states >> place & 1)
    weights = np.zeros(len(others))
    for _ in range(50):
        wrong = 1 / (1 + np.exp(label * (features @ weights)))
        gradient = features.T @ (distribution * wrong * label)
        weights += np.linalg.solve((features * (distribution * wrong * (1 - wrong))[:, None]).T @ features, gradient)
    actual = np.zeros(1 << P)
    actual[others] = weights
    return actual


def test_a_population_gives_its_polynomial_back():
    """Every monomial to 1e-6: maximal ones by the formula, those inside others by the weights."""
    coefficients, distribution = truth()
    weights = [regression(distribution, place) for place in range(P)]
    actual = recover_polynomial(weights, transform(distribution), ALL, 1e-4)
    assert np.abs(actual - coefficients).max() < 1e-6


def test_the_formula_is_the_mean_of_a_derivative():
    """With regressions that are off, a pair that lies in no triple is the mean of d_j v_i / 2, both ways round."""
    _, distribution = truth()
    rng = np.random.default_rng(2)
    weights = [regression(distribution, place) + 0.01 * rng.normal(size=1 << P) for place in range(P)]
    for place, one in enumerate(weights):
        one[(np.arange(1 << P) >> place & 1 == 1) | (degrees(1 << P) > 2)] = 0
    expected = 0.0
    for i, j in ((1, 5), (5, 1)):
        values = transform(weights[i])
        states = np.arange(1 << P)
        up, down = values[states & ~(1 << j)], values[states | 1 << j]
        expected += float(distribution @ (up - down) / 2) / 4
    actual = recover_polynomial(weights, transform(distribution), ALL, 0.1)
    assert actual[0b100010] == pytest.approx(expected, abs=1e-12)


def test_only_what_is_above_the_threshold_stays_with_all_inside_it():
    """A triple of .5 with a pair of .01 inside it; a pair of .1 outside goes."""
    coefficients = np.zeros(8)
    coefficients[[0b111, 0b011]] = 0.5, 0.01
    weights = []
    for place in range(3):
        own = np.zeros(8)
        for monomial in (0b111, 0b011):
            if monomial >> place & 1:
                own[monomial ^ 1 << place] = 2 * coefficients[monomial]
        weights.append(own)
    uniform = np.eye(8)[0]
    assert recover_polynomial(weights, uniform, np.arange(1, 8), 0.2) == pytest.approx(coefficients)
    assert not recover_polynomial(weights, uniform, np.arange(1, 8), 0.6).any()
    without = recover_polynomial(weights, uniform, np.array([1, 2, 4, 3, 5, 6]), 0.005)
    assert without[0b011] == pytest.approx(0.01) and without[0b111] == 0
