"""Private descent: regressions of each attribute on the others, improved by private choices over clipped gradients.

Core computes the gradients from records; a plugin hands over public weights only and sees which directions were chosen.

Sensitivity. Let m_c be the largest residual of a record in choice c, in units; over c the sum of m_c^2 (zCDP), or of
m_c (pure), is at most `reach` for every record (proof: docs/proofs.md). Let `person` be how many records one person
adds and takes away together: r under add-remove, 2 r under replace-one.

Distribution. One choice for each regression, of a weight and its sign, by the exponential mechanism over the gradient
(`dpgm_core.privacy.selection`), with independent random bits.

Cost. With C choices at temperature h a descent is e-DP, e = 2 h person reach + C 2^-30, or rho-zCDP,
rho = (2 h person sqrt(reach) + sqrt(C) 2^-30)^2 / 8.

Proof. Before `descent_cost`. Source of the algorithms: Zhang, Kamath, Kulkarni, Wu (2020), Algorithms 1 to 3; of the
Frank-Wolfe steps: Talwar, Thakurta, Zhang (2015), Nearly optimal private LASSO.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from decimal import Context
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from attrs import field, frozen

from dpgm_core._util.arrays import IntArray
from dpgm_core._util.exact_numbers import Amount, amount, decimal_text, round_down, sqrt_floor, whole
from dpgm_core._util.randomness import Randomness
from dpgm_core.errors import BudgetError, OptionError, StructureError, TooLarge
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.selection import (
    MAX_TABLE_LENGTH,
    MAX_TEMPERATURE,
    MIN_TEMPERATURE,
    SLACK,
    draw_candidates,
    table_length,
)
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

__all__ = [
    "Loss",
    "NodeGradients",
    "Regressions",
    "descent_cost",
    "descent_temperature",
    "largest_residual",
    "reach",
    "steepest",
    "within_limits",
]

Loss: TypeAlias = Literal["logistic", "softmax", "pairs"]
#: An attribute and the codes that its regression tells apart.
Row: TypeAlias = tuple[str, tuple[int, ...]]
#: The attributes of a product of +1 and -1, or an attribute and the code that its column is 1 for; the constant: none.
Column: TypeAlias = tuple[Clique, tuple[int, ...]]

_MAX_CELLS = 2**24


def _check_candidates(instance: Regressions, attribute: object, value: Structure) -> None:
    if not isinstance(value, Structure):
        raise StructureError(f"candidates must be a Structure of them, got {type(value).__name__}")
    if max(value.multiplicities) > 1:
        raise StructureError("candidates cannot be tied cliques: each has weights of its own")
    short = next((clique for clique in value.cliques if len(clique) < 2), None)
    if short is not None:
        raise StructureError(
            f"candidate {short!r} has nothing to be regressed on; name cliques of two attributes or more"
        )


def _check_loss(instance: Regressions, attribute: object, value: Loss) -> None:
    if not isinstance(value, str) or value not in get_args(Loss):
        raise OptionError(f"loss must be one of {', '.join(get_args(Loss))}, got {value!r}")
    cliques, sizes = instance.candidates.cliques, instance.candidates.domain.sizes
    for name in instance.nodes:
        if sizes[name] != 2 and value == "logistic":
            raise StructureError(
                f"{name!r} has {sizes[name]} codes, and logistic regressions take attributes of two; use 'softmax'"
            )
        if sizes[name] < 2:
            raise StructureError(f"{name!r} has one code only, so there is nothing to regress; leave it out")
    long = next((clique for clique in cliques if len(clique) > 2), None)
    if long is not None and value != "logistic":
        raise StructureError(f"loss {value!r} takes pairs, not {long!r}; use 'logistic' for binary attributes")
    if len(instance.rows) * len(instance.columns) > _MAX_CELLS:
        raise TooLarge(
            f"{len(instance.rows):,} x {len(instance.columns):,} weights are more than {_MAX_CELLS:,}; name fewer "
            "candidates"
        )


@frozen(kw_only=True)
class Regressions:
    """The regressions of attributes on the others of their cliques.

    candidates: cliques that may have weight, of two attributes or more; an attribute is regressed on the others of its
    cliques. loss: "logistic": every attribute of the candidates has two labels, coded +1 and -1 (+1 is code 0), one
    regression each, on the products of the other attributes of each of its cliques: P(+1) = sigma(w x). "softmax": one
    regression an attribute with a row for each label, on the labels of its partners, one column each (pairs only).
    "pairs": one regression for each two labels u < v of an attribute, on the records that have one of them, P(u) =
    sigma(w x) (Algorithm 3 of the paper; pairs only). Each has a constant.

    Raises StructureError for candidates that do not fit the loss, OptionError for another loss.

    >>> from dpgm_core.domain.domain import Domain
    >>> pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> own = Regressions(candidates=pair, loss="logistic")
    >>> own.rows, own.columns
    ((('a', (0, 1)), ('b', (0, 1))), ((('a',), ()), (('b',), ()), ((), ())))
    >>> own.allowed.tolist()
    [[False, True, True], [True, False, True]]
    """

    candidates: Structure = field(validator=_check_candidates)
    loss: Loss = field(validator=_check_loss)

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The attributes that are regressed: those of the candidates, in the domain's order."""
        used = {name for clique in self.candidates.cliques for name in clique}
        return tuple(name for name in self.candidates.domain.names if name in used)

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.nodes)}

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The attribute and its codes of each row of the weights.

        A row raises the odds of the first code against the second; of "softmax", of the one against all others.
        """
        sizes = self.candidates.domain.sizes
        if self.loss == "softmax":
            return tuple((name, (code,)) for name in self.nodes for code in range(sizes[name]))
        return tuple((name, two) for name in self.nodes for two in itertools.combinations(range(sizes[name]), 2))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The factor of each column of the weights; the last is the constant, `((), ())`.

        "logistic": the attributes whose +1 and -1 are multiplied, one by one first, and (). Else: an attribute, and
        the code for which the column is 1 and not 0.
        """
        if self.loss != "logistic":
            sizes = self.candidates.domain.sizes
            return (*(((name,), (code,)) for name in self.nodes for code in range(sizes[name])), ((), ()))
        products = {rest for clique in self.candidates.cliques if len(clique) > 2 for rest in self._rests(clique)}
        longer = sorted(products, key=lambda rest: (len(rest), [self._place[name] for name in rest]))
        return (*(((name,), ()) for name in self.nodes), *((rest, ()) for rest in longer), ((), ()))

    @cached_property
    def allowed(self) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
        """The mask of weights that may differ from 0, (rows, columns); read-only."""
        mask = np.zeros((len(self.rows), len(self.columns)), np.bool_)
        mask[:, -1] = True
        if self.loss == "logistic":
            column = {attributes: number for number, (attributes, _) in enumerate(self.columns)}
            for clique in self.candidates.cliques:
                for name, rest in zip(self._in_order(clique), self._rests(clique), strict=True):
                    mask[self._place[name], column[rest]] = True
        else:
            rows, columns = (
                {name: [number for number, one in numbered if one == name] for name in self.nodes}
                for numbered in (
                    [(number, name) for number, (name, _) in enumerate(self.rows)],
                    [(number, name) for number, (names, _) in enumerate(self.columns) for name in names],
                )
            )
            for one, other in self.candidates.cliques:
                mask[np.ix_(rows[one], columns[other])] = True
                mask[np.ix_(rows[other], columns[one])] = True
        mask.flags.writeable = False
        return mask

    @cached_property
    def choices(self) -> tuple[tuple[int, ...], ...]:
        """The rows that each choice of the exponential mechanism is made over: one, or all of an attribute's."""
        if self.loss != "softmax":
            return tuple((number,) for number in range(len(self.rows)))
        own: dict[str, list[int]] = {name: [] for name in self.nodes}
        for number, (name, _) in enumerate(self.rows):
            own[name].append(number)
        return tuple(map(tuple, own.values()))

    @cached_property
    def touched(self) -> int:
        """Number of choices that one record has residuals in: one an attribute; of "pairs", all with its code."""
        if self.loss != "pairs":
            return len(self.nodes)
        return sum(self.candidates.domain.sizes[name] - 1 for name in self.nodes)

    def zeros(self) -> IntArray:
        """Weights to start from, (rows, columns)."""
        return np.zeros((len(self.rows), len(self.columns)), np.int64)

    def _in_order(self, clique: Clique) -> Clique:
        return tuple(sorted(clique, key=self._place.__getitem__))

    def _rests(self, clique: Clique) -> list[Clique]:
        names = self._in_order(clique)
        return [names[:number] + names[number + 1 :] for number in range(len(names))]


#: Units of a weight that a choice may have together: sums of so many are exact in float32, and the tables stay small.
_MAX_WEIGHT_UNITS = 2**20
#: Units of a residual: a record's residual times a factor of 12 bits is exact in float32.
_MAX_RESIDUAL_UNITS = 2**12
_DIGITS = Context(prec=60)


@lru_cache(maxsize=64)
def largest_residual(loss: Loss, radius: Fraction, grid: int) -> int:
    """Return the largest residual of a record, in units of 1/grid: floor(grid sigma(radius)), of "softmax" the grid.

    sigma at 60 digits: no platform rounds it otherwise, and it is never too small.
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
    Proof: docs/proofs.md.
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
    Source: Zhang, Kamath, Kulkarni, Wu (2020), Algorithms 1 to 3; the exact constants in docs/proofs.md.

    >>> from dpgm_core.domain.domain import Domain
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


# Proof of the cost of a descent.
#
# A record adds residual * feature to the score of a weight and the negative of it to that of the other sign, and
# features are -1, 0 or 1, with a constant that is 1. So its part of the scores of choice c lies in [-m_c, m_c], with
# range 2 m_c, and one person moves them by a vector of range at most the sum of 2 m_c over the records added and taken
# away. By the cost of one choice, choice c is e_c-DP and e_c^2/8-zCDP between these two data sets, e_c = h
# range_c + 2^-30. The choices draw independent bits, so their costs add between these two data sets. Pure: the sum of
# e_c. zCDP: a (root of the) sum of squares of sums is at most the sum of the roots (Minkowski): of the records, person
# sqrt(reach), and of the slack, sqrt(C) 2^-30.

_BITS = 64


def descent_cost(h: Fraction, reach: int, person: int, choices: int, kind: Literal["pure", "zcdp"]) -> Budget:
    """Return the cost of one descent at temperature h, roots rounded up."""
    if kind == "pure":
        return Budget("pure", epsilon=2 * h * person * reach + choices * SLACK)
    return Budget("zcdp", rho=(2 * h * person * _root(reach) + _root(choices) * SLACK) ** 2 / 8)


def descent_temperature(budget: Budget, reach: int, person: int, choices: int) -> Fraction:
    """Return the temperature of one descent that costs a budget: the calibration of `descent_cost`.

    Parameters
    ----------
    budget : Budget
        Of the descent; pure or zCDP.
    reach : int
        How far the residuals of one record reach together; see `NodeGradients.reach`.
    person : int
        How many records one person adds and takes away together.
    choices : int
        The number of choices.

    Returns
    -------
    Fraction
        h, rounded down, so that `descent_cost` is at most the budget.

    Raises
    ------
    BudgetError
        Where h would be so small that there is no table for it; names the budget that would do.

    Examples
    --------
    >>> float(descent_temperature(Budget.pure(1), 100, 1, 3))
    0.00499999...
    """
    if budget.kind == "approx":
        raise BudgetError(f"a descent costs epsilon or rho, not {budget}; give it its share of the session's rho")
    kind: Literal["pure", "zcdp"] = "pure" if budget.kind == "pure" else "zcdp"
    if budget.kind == "pure":
        h = (budget.epsilon - choices * SLACK) / (2 * person * reach)
    else:
        h = (sqrt_floor(8 * budget.rho) - _root(choices) * SLACK) / (2 * person * _root(reach))
    h = round_down(min(h, MAX_TEMPERATURE))
    if h <= 0 or table_length(h) > MAX_TABLE_LENGTH:
        # A little more than the least, so that what is said in six digits is enough.
        least = descent_cost(MIN_TEMPERATURE * Fraction(100_001, 100_000), reach, person, choices, kind)
        would = f"epsilon = {decimal_text(least.epsilon)}" if kind == "pure" else f"rho = {decimal_text(least.rho)}"
        raise BudgetError(
            f"{budget} for a descent of {choices} choices is too little to choose by: every direction would be as "
            f"likely as any other; give at least {would}, take fewer steps, or a coarser residual_grid"
        )
    return h


def steepest(
    sums: IntArray, regressions: Regressions, h: Fraction, randomness: Randomness
) -> Iterator[tuple[int, int, int]]:
    """Draw the row, the column and the sign of each choice, by the exponential mechanism.

    sums: the gradients, (rows * columns,), whole numbers. Each allowed weight is a candidate upwards, where it scores
    its sum, and downwards, where it scores the negative. Two random words for each choice.
    """
    allowed, gradients = regressions.allowed, sums.reshape(regressions.allowed.shape)
    for rows in regressions.choices:
        at = [(row, int(column)) for row in rows for column in np.flatnonzero(allowed[row])]
        upwards = np.concatenate([gradients[row][allowed[row]] for row in rows])
        (picked,) = draw_candidates(np.concatenate([upwards, -upwards]), h, 1, randomness)
        yield *at[picked % len(at)], (1 if picked < len(at) else -1)


def _root(value: int) -> Fraction:
    """Return the square root, exact for squares, else rounded up by less than 2^-64."""
    root = math.isqrt(value << (2 * _BITS))
    return Fraction(root + (root**2 != value << (2 * _BITS)), 1 << _BITS)
