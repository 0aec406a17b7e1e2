"""Gradients of regressions as values: what weights and units fit, and how far a record reaches."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import attrs
import numpy as np
import pytest

from dpgm_core import BudgetError, OptionError
from dpgm_core.privacy.descent import NodeGradients, Regressions, largest_residual, reach
from tests.privacy.candidates import regressions


def gradients(own, **given):
    """With no weights, unless they are given."""
    return NodeGradients(**{"regressions": own, "weights": own.zeros(), "radius": 2, **given})


@pytest.mark.parametrize("name", ["radius", "clip", "weights_grid", "residual_grid"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -1, 0, True, "many", 2**30, Fraction(3, 10**9)])
def test_units_that_do_not_fit_are_refused(name, value):
    """NaN, infinity, negatives, 0, bools, texts, and what float32 could not add exactly."""
    with pytest.raises(BudgetError):
        gradients(regressions("logistic"), **{name: value})


@pytest.mark.parametrize("spoil", ["shape", "float", "bool", "nan", "self", "long", "far", "list", "least"])
def test_weights_that_do_not_fit_are_refused(spoil):
    """Whole numbers of the right shape, 0 where none is allowed, and within the radius."""
    own = regressions("logistic")
    weights = own.zeros()
    if spoil in ("self", "long", "far", "least"):
        place, units = {
            "self": ((0, 0), 1),
            "long": ((0, 1), 129),
            "far": ((0, 1), 2**62),
            "least": ((0, 1), -(2**63)),
        }[spoil]
        weights[place] = units
    given = {
        "shape": weights[:2],
        "float": weights.astype(float),
        "bool": weights.astype(bool),
        "nan": np.full(weights.shape, np.nan),
        "list": weights.tolist(),
    }.get(spoil, weights)
    with pytest.raises(OptionError, match="weights"):
        gradients(own, weights=given)


def test_weights_of_a_choice_are_bounded_together():
    """Of "softmax" all rows of an attribute have one radius."""
    own = regressions("softmax", 2)
    weights = own.zeros()
    weights[0, 2], weights[1, 3] = 64, -64
    assert gradients(own, weights=weights).units == 128
    weights[1, 3] = -65
    with pytest.raises(OptionError, match="radius"):
        gradients(own, weights=weights)


def test_weights_cannot_be_changed_afterwards():
    """What was checked is what is used."""
    own = regressions("logistic")
    weights = own.zeros()
    made = gradients(own, weights=weights)
    weights[0, 0] = 7
    assert not made.weights.any()
    assert not made.weights.flags.writeable


def test_only_core_says_what_is_regressed():
    """A child of Regressions could hide a residual."""

    class Mine(Regressions):
        pass

    own = regressions("logistic")
    with pytest.raises(OptionError, match="Mine"):
        gradients(Mine(candidates=own.candidates, loss="logistic"), weights=own.zeros())


@pytest.mark.parametrize("grid", [2, 3, 128, 4096])
@pytest.mark.parametrize("radius", ["1/1000", "0.8", "12", "40"])
def test_the_largest_residual_is_that_of_sigma_at_the_radius(grid, radius):
    """floor(G sigma(R)) by another formula, in decimals of 28 digits."""
    exact = Fraction(radius)
    power = (Decimal(exact.numerator) / Decimal(exact.denominator)).exp()
    found = largest_residual("logistic", exact, grid)
    assert found == math.floor(Decimal(grid) * power / (1 + power))
    assert found == largest_residual("pairs", exact, grid)
    assert largest_residual("softmax", exact, grid) == grid


def test_clipping_never_reaches_further_than_none():
    """The lesser of both bounds, whole numbers, for every loss and kind."""
    for loss, kind in itertools.product(("logistic", "softmax", "pairs"), ("pure", "zcdp")):
        given = {"radius": Fraction(2), "grid": 128, "kind": kind}
        none = reach(loss, 10, clip=None, **given)
        assert [reach(loss, 10, clip=Fraction(clip, 10), **given) for clip in (3, 10)] == [
            math.floor(Fraction(3, 10) * 10 * (128 if kind == "pure" else 128**2)),
            none,
        ]
        assert none == 10 * largest_residual(loss, Fraction(2), 128) ** (1 if kind == "pure" else 2)


def test_gradients_are_alike_only_by_identity():
    """Arrays do not compare as values; evolving one is allowed and checked."""
    made = gradients(regressions("logistic"))
    assert attrs.evolve(made, clip="0.3").clip == Fraction(3, 10)
    with pytest.raises(BudgetError):
        attrs.evolve(made, clip=2)
