"""Dominating pairs are the laws of what they stand for, and lose what cells lose."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from dpgm_core import PrivacyEvent, Sensitivity
from dpgm_core.privacy import dominating_pairs as dominating
from dpgm_core.privacy.accounting import compose, has_dp_accounting
from dpgm_core.privacy.dominating_pairs import gaussian_pair, reduce_delta, response_pair

needs_pld = pytest.mark.skipif(not has_dp_accounting(), reason="dp-accounting is not installed")


def mass(kind: str, scale: float, shift: int, reach: int = 60) -> np.ndarray:
    """The mass of one noisy cell on -reach ... reach."""
    z = np.arange(-reach, reach + 1) - shift
    weights = np.exp(-np.abs(z) / scale) if kind == "discrete-laplace" else np.exp(-(z**2) / (2 * scale**2))
    return weights / weights.sum()


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
