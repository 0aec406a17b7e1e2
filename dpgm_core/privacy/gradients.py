"""Descent, sensitivity: gradients of the regressions of each attribute on the others, as scores of directions.

Core computes the gradients from records; a plugin hands over public weights only and sees which directions were chosen.
"""

from __future__ import annotations

import math
from decimal import Context
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from attrs import field, frozen

from dpgm_core.arrays import IntArray
from dpgm_core.errors import BudgetError, OptionError
from dpgm_core.privacy.amounts import Amount, amount, decimal_text, whole
from dpgm_core.privacy.regressions import Loss, Regressions
from dpgm_core.structure import Clique

__all__ = ["NodeGradients", "largest_residual", "reach", "within_limits"]

#: Units of a weight that a choice may have together: sums of so many are exact in float32, and the tables stay small.
_MAX_WEIGHT_UNITS = 2**20
#: Units of a residual: a record's residual times a factor of 12 bits is exact in float32.
_MAX_RESIDUAL_UNITS = 2**12
_DIGITS = Context(prec=60)


@lru_cache(maxsize=64)
def largest_residual(loss: Loss, radius: Fraction, grid: int) -> int:
    """Return the largest residual of a record, in units of 1/grid: floor(grid sigma(radius)), of "softmax" the grid.

    sigma at 60 digits: no platform rounds it otherwise, and it is never too small.

    >>> largest_residual("logistic", Fraction(2), 128)
    112
    """
    if loss == "softmax":
        return grid
    power = _DIGITS.exp(_DIGITS.divide(-radius.numerator, radius.denominator))
    return math.floor(_DIGITS.divide(grid, _DIGITS.add(1, power)))


@lru_cache(maxsize=64)
def reach(
    loss: Loss, touched: int, *, radius: Fraction, grid: int, clip: Fraction | None, kind: Literal["pure", "zcdp"]
) -> int:
    """Return the sensitivity of a descent to one record: how far its residuals reach together, units of 1/grid.

    With m_c the largest residual of a record in choice c: the most that the sum of m_c^2 can be for zCDP, and that of
    m_c for pure budgets. B largest residual: touched B^2, touched B; clipped grid^2 clip touched, grid clip touched.
    Proof: docs/privacy.md.

    >>> reach("logistic", 10, radius=Fraction(2), grid=128, clip=Fraction(3, 10), kind="zcdp"), 10 * 112**2
    (49152, 125440)
    """
    largest = largest_residual(loss, radius, grid)
    most, unit = (touched * largest**2, grid**2) if kind == "zcdp" else (touched * largest, grid)
    return most if clip is None else min(most, math.floor(unit * clip * touched))


def within_limits(radius: Fraction, grid: int, clip: Fraction | None) -> bool:
    """Whether all sums are exact with these units: radius and clip positive, grid of residuals.

    >>> within_limits(Fraction(2), 128, None), within_limits(Fraction(2), 1, None)
    (True, False)
    """
    return radius <= _MAX_WEIGHT_UNITS and 2 <= grid <= _MAX_RESIDUAL_UNITS and (clip is None or clip <= 1)


def _radius(value: Amount) -> Fraction:
    return amount("the radius of weights", value)


def _clip(value: Amount | None) -> Fraction | None:
    return None if value is None else amount("the clip of residuals", value)


def _copied(value: IntArray) -> IntArray:
    """Return a plain, read-only copy: no subclass that would see true sums, and nobody changes it later."""
    if not isinstance(value, np.ndarray) or value.dtype != np.int64:
        return value  # refused by its validator
    copy = np.array(value, np.int64)
    copy.flags.writeable = False
    return copy


def _check_regressions(instance: NodeGradients, attribute: object, value: Regressions) -> None:
    if type(value) is not Regressions:
        raise OptionError(f"regressions must be Regressions, got {type(value).__name__}")


def _check_weights(instance: NodeGradients, attribute: object, value: Any) -> None:
    own = instance.regressions
    shape = (len(own.rows), len(own.columns))
    if not isinstance(value, np.ndarray) or value.dtype != np.int64 or value.shape != shape:
        raise OptionError(
            f"weights must be whole numbers, int64 of shape {shape}, a row for each regression; start from "
            "`Regressions.zeros`"
        )
    if (value[~own.allowed] != 0).any():
        raise OptionError("weights are 0 where the regressions allow none; see `Regressions.allowed`")


@frozen(kw_only=True, eq=False)
class NodeGradients:
    """The negative gradient of every regression's loss, summed over records: a score for each coordinate and sign.

    weights: (rows, columns) of the regressions, int64 in units of 1/weights_grid; public. Of each choice their absolute
    sum is at most radius * weights_grid. residual_grid: G, units of a residual, at most 4096. clip: kappa, at most 1:
    each record's residuals are shortened together, to G sqrt(kappa) times the root of the number it touches (pure
    budgets: to a sum of G kappa times it); None: not at all.

    A record's residual in a row is what its attribute's code is less the probability that the weights give it. A choice
    scores all allowed weights of its rows, up and down. Raises OptionError and BudgetError for what does not fit.
    Source: Zhang, Kamath, Kulkarni, Wu (2020), Algorithms 1 to 3; the exact constants in docs/privacy.md.

    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.structure import Structure
    >>> pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> own = Regressions(candidates=pair, loss="logistic")
    >>> NodeGradients(regressions=own, weights=own.zeros(), radius=2, clip="0.3").reach("zcdp")
    9830
    """

    regressions: Regressions = field(validator=_check_regressions)
    weights: IntArray = field(repr=False, converter=_copied, validator=_check_weights)
    radius: Fraction = field(converter=_radius)
    weights_grid: int = 64
    residual_grid: int = 128
    clip: Fraction | None = field(default=None, converter=_clip)

    def __attrs_post_init__(self) -> None:
        whole("the grid of weights", self.weights_grid, least=1, most=_MAX_WEIGHT_UNITS)
        whole("the grid of residuals", self.residual_grid, least=2, most=_MAX_RESIDUAL_UNITS)
        if not 1 <= self.radius * self.weights_grid <= _MAX_WEIGHT_UNITS:
            raise BudgetError(
                f"a radius of {decimal_text(self.radius)} on a grid of 1/{self.weights_grid} is "
                f"{decimal_text(self.radius * self.weights_grid)} units, which must lie between 1 and 2**20; choose "
                "another grid"
            )
        if self.clip is not None and not (self.clip <= 1 and min(self.reach("pure"), self.reach("zcdp")) >= 1):
            raise BudgetError(
                f"a clip of {decimal_text(self.clip)} must be at most 1 and leave a unit of 1/{self.residual_grid}; "
                "0.3 touches few records"
            )
        # Cut first, so that no sum is beyond 64 bits.
        absolute = np.abs(np.clip(self.weights, -self.units - 1, self.units + 1)).sum(axis=1)
        most = max(sum(int(absolute[row]) for row in choice) for choice in self.regressions.choices)
        if most > self.units:
            raise OptionError(
                f"the weights of a choice have an absolute sum above the radius of {self.units} units of "
                f"1/{self.weights_grid}; shorten them"
            )

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The candidates."""
        return self.regressions.candidates.cliques

    @cached_property
    def units(self) -> int:
        """The radius in units of 1/weights_grid, rounded down."""
        return math.floor(self.radius * self.weights_grid)

    def reach(self, kind: Literal["pure", "zcdp"]) -> int:
        """Return how far the residuals of one record reach together; see the function of that name."""
        return reach(
            self.regressions.loss,
            self.regressions.touched,
            radius=self.radius,
            grid=self.residual_grid,
            clip=self.clip,
            kind=kind,
        )
