"""Quasi-Newton directions against the formulas they abbreviate."""

import numpy as np

from dpgm_core.inference.quasi_newton import Secants


def test_the_direction_is_that_of_the_bfgs_update_written_out():
    """H <- (I - s y'/sy) H (I - y s'/sy) + s s'/sy from the scaled metric, over the pairs that are still kept."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    hessian = root @ root.T + np.eye(6)
    secants, pairs = Secants(memory=4), []
    for _ in range(7):
        step = rng.normal(size=6)
        secants.add(step, hessian @ step)
        pairs.append((step, hessian @ step))
    metric, gradient = rng.uniform(1, 5, size=6), rng.normal(size=6)
    step, change = pairs[-1]
    inverse = np.diag(1 / metric) * (step @ change) / (change @ (change / metric))
    for step, change in pairs[-4:]:
        left = np.eye(6) - np.outer(step, change) / (step @ change)
        inverse = left @ inverse @ left.T + np.outer(step, step) / (step @ change)
    assert np.allclose(secants.descent(gradient, metric), -inverse @ gradient)


def test_without_pairs_it_is_the_gradient_in_the_metric():
    """And a step without positive curvature is not learned from."""
    secants = Secants(memory=4)
    secants.add(np.array([1.0, 0.0]), np.array([-1.0, 3.0]))
    assert np.array_equal(secants.descent(np.array([2.0, 8.0]), np.array([1.0, 4.0])), [-2.0, -2.0])


def test_coordinates_that_are_held_take_no_part():
    """The direction is 0 in them, and elsewhere that of the pairs' free parts alone."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(5, 5))
    hessian = root @ root.T + np.eye(5)
    free = np.array([True, False, True, True, False])
    secants, among = Secants(memory=4), Secants(memory=4)
    for _ in range(4):
        step = rng.normal(size=5)
        secants.add(step, hessian @ step)
        among.add(step[free], (hessian @ step)[free])
    metric, gradient = rng.uniform(1, 5, size=5), rng.normal(size=5)
    found = secants.descent(gradient, metric, free)
    assert np.array_equal(found[~free], [0.0, 0.0])
    assert np.allclose(found[free], among.descent(gradient[free], metric[free]))
