"""Truncated discrete Laplace noise: its delta against brute force over every shift, and its composition."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core import Budget, BudgetError, PrivacyEvent, Sensitivity
from dpgm_core.privacy.accounting import compose
from dpgm_core.privacy.dominating_pairs import revealing_mass, truncated_delta
from dpgm_testing.privacy_loss import admissible_shifts, hockey_stick
from dpgm_testing.unusual import TruncatedLaplace, TruncatedLaplaceNoise

ONE = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
CASES = {
    "one cell": ONE,
    "three cells": Sensitivity(l0=3, l1=3, l2_squared=3, linf=1),
    "one cell by three": Sensitivity(l0=3, l1=3, l2_squared=9, linf=3),
    "two cells by two": Sensitivity(l0=4, l1=4, l2_squared=8, linf=2),
}


def masses(scale, bound):
    p = np.exp(-np.abs(np.arange(-bound, bound + 1)) / scale)
    return p / p.sum()


def brute(scale, bound, shift, epsilon):
    """The hockey-stick divergence of the product, output by output."""
    p = dict(zip(range(-bound, bound + 1), masses(scale, bound).tolist(), strict=True))
    total = 0.0
    for outputs in itertools.product(p, repeat=len(shift)):
        here = math.prod(p[y] for y in outputs)
        there = math.prod(p.get(y - s, 0.0) for y, s in zip(outputs, shift, strict=True))
        total += max(0.0, here - math.exp(epsilon) * there)
    return total


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("scale", "bound"), [(1.0, 3), (2.5, 4), (0.3, 2), (40.0, 2)])
def test_delta_is_that_of_the_worst_shift(case, scale, bound):
    """From epsilon = l1 / scale on, and at every epsilon for unit shifts: equal to brute force over all shifts."""
    sensitivity = CASES[case]
    whole_loss = sensitivity.l1 / scale
    for epsilon in (whole_loss + 1e-9, 1.5 * whole_loss, 0.0, 0.4 * whole_loss):
        found = truncated_delta(scale, bound, sensitivity, epsilon)
        worst = max(brute(scale, bound, shift, epsilon) for shift in admissible_shifts(sensitivity))
        if sensitivity.linf == 1 or epsilon > whole_loss:
            assert found == pytest.approx(worst, rel=1e-7, abs=1e-14)
        assert found >= worst * (1 - 1e-12)


@settings(max_examples=40)
@given(
    scale=st.floats(0.2, 20),
    bound=st.integers(1, 4),
    cells=st.integers(1, 4),
    most=st.integers(1, 4),
    l1=st.integers(1, 6),
    epsilon=st.floats(0, 5),
)
def test_delta_is_never_too_small(scale, bound, cells, most, l1, epsilon):
    """No admissible shift has a larger hockey-stick divergence, whatever the four norms and epsilon are."""
    sensitivity = Sensitivity(l0=min(cells, l1), l1=l1, l2_squared=l1 * min(most, l1), linf=min(most, l1))
    found = truncated_delta(scale, bound, sensitivity, epsilon)
    for shift in admissible_shifts(sensitivity):
        if len(shift) <= 3:
            assert brute(scale, bound, shift, epsilon) <= found + 1e-12


def test_the_exponents_neither_overflow_nor_vanish():
    """Narrow and wide extremes give probabilities; more bound never costs more."""
    for scale in (1e-4, 1e-2, 1.0, 1e4, 1e9):
        found = [revealing_mass(scale, bound, ONE) for bound in (1, 2, 10, 1000, 10**6)]
        assert all(0 <= one <= 1 for one in found)
        assert found == sorted(found, reverse=True)


def test_a_noise_cannot_claim_less_than_it_costs():
    """A smaller bound, scale or delta than was calibrated is refused by the noise itself."""
    good = TruncatedLaplace().noise(CASES["two cells by two"], Budget.approx(1, "1e-6"))
    fields = {"scale": good.scale, "bound": good.bound, "sensitivity": good.sensitivity, "cost": good.cost}
    assert TruncatedLaplaceNoise(**fields) == good
    for change in (
        {"bound": good.bound - 1},
        {"scale": good.scale / 2},
        {"cost": Budget.approx(1, "1e-7")},
        {"cost": Budget.approx("1/2", "1e-6")},
        {"cost": Budget.pure(1)},
    ):
        with pytest.raises(BudgetError):
            TruncatedLaplaceNoise(**fields | change)


def test_composition_bounds_the_exact_hockey_stick():
    """Two rounds without subsampling are one release on twice the cells: the accountant never says less."""
    for epsilon in ("1/2", 1):
        one = TruncatedLaplace().noise(ONE, Budget.approx(epsilon, "1e-4"))
        accountant = compose(one.event, ONE, rounds=2, neighbours="add-remove")
        found = accountant.epsilon("3e-4")
        assert math.isfinite(found)
        assert hockey_stick(one, (1, 1), found) <= 3e-4 * (1 + 1e-6)
        # and not much more: pure composition is 2 epsilon
        assert found <= 2 * float(Fraction(epsilon)) * (1 + 1e-9)
        assert accountant.epsilon("1e-4") == math.inf  # two rounds reveal more than that
        assert accountant.pure_epsilon() == math.inf


def test_subsampling_helps_what_is_not_revealed():
    """On a subsample epsilon falls; what the bound reveals is counted in full."""
    noise = TruncatedLaplace().noise(ONE, Budget.approx(1, "1e-6"))
    whole, part = (
        compose(noise.event, ONE, rounds=10, sampling_rate=rate, neighbours="add-remove").epsilon("1e-4")
        for rate in (1, "1/10")
    )
    assert part < whole / 2


@pytest.mark.parametrize("bound", [0, -1, 1.5, True, None])
def test_an_event_states_a_whole_bound(bound):
    with pytest.raises(BudgetError):
        PrivacyEvent(kind="truncated-discrete-laplace", scale=1.0, sensitivity=1.0, bound=bound)
    if bound is not None:
        with pytest.raises(BudgetError, match="no bound"):
            PrivacyEvent(kind="discrete-laplace", scale=1.0, sensitivity=1.0, bound=bound)


@pytest.mark.parametrize("scale", [math.nan, math.inf, -math.inf, -1.0, 0, True])
def test_a_scale_is_a_positive_number(scale):
    with pytest.raises(BudgetError, match="scale of truncated noise"):
        truncated_delta(scale, 3, ONE, 1)
    with pytest.raises(BudgetError, match="scale of truncated noise"):
        revealing_mass(scale, 3, ONE)
