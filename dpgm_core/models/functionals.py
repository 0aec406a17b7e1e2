"""Functionals of a distribution: regressions and functions of expectations, with their influence functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from attrs import evolve, field, frozen

from dpgm_core._util.arrays import Array, FloatArray
from dpgm_core.errors import InferenceError, OptionError, listed
from dpgm_core.structure.graphs import Clique

__all__ = ["FAMILIES", "Family", "Functional", "Moments", "Regression"]

#: Generalised linear models with their canonical link.
Family: TypeAlias = Literal["linear", "logistic", "poisson", "multinomial"]
FAMILIES: tuple[Family, ...] = ("linear", "logistic", "poisson", "multinomial")

#: Newton steps of a fit, and the largest that ends it, over 1 and the largest coefficient, on columns of length 1.
_MAX_STEPS, _STEP_END = 100, 1e-10
#: The largest linear predictor, nats, that a fit is taken as finite for.
_MAX_PREDICTOR = 30.0
#: Least part of a column's length that must be apart from the columns before it.
_MIN_APART = 1e-9
#: Above this eigenvalue of the columns' correlations none is so near to the others, and no factorisation is needed.
_MIN_APART_FAST = 1e-8


@runtime_checkable
class Functional(Protocol):
    """K numbers that follow from the joint distribution of some attributes.

    Attributes
    ----------
    attributes : tuple of str
        The axes of the table it takes.
    names : tuple of str
        Of the K numbers.
    """

    @property
    def attributes(self) -> Clique:
        """The axes of the table."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the K numbers."""

    def evaluate(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the numbers, (K,), and their influence functions, (K, cells), whose means under the table are 0.

        table: probabilities of the cells, (cells,), in C order. Raises InferenceError where the numbers are undefined.
        """


# --- Functions of expectations --------------------------------------------------------------------


@frozen(kw_only=True, eq=False)
class Moments:
    """A smooth function of expectations: a mean, a difference, a ratio, an odds ratio, a correlation.

    Attributes
    ----------
    attributes, names : tuple of str
    features : array of shape (m, cells)
        The functions whose expectations are taken, on the cells in C order.
    function : callable
        Takes the m expectations; returns the values, (K,), and their derivatives, (K, m).
    """

    attributes: Clique
    names: tuple[str, ...]
    features: FloatArray
    function: Callable[[FloatArray], tuple[Any, Any]]

    def evaluate(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the values and their influence functions, by the delta method."""
        means = self.features @ table
        values, derivatives = self._at(means)
        undefined = ~_are_finite(values, derivatives)
        if undefined.any():
            named = listed([self.names[at] for at in np.flatnonzero(undefined)], 3)
            raise InferenceError(
                f"{named}: the model gives probability 0 to what this divides by; ask about groups that occur, and "
                "an event that occurs in each"
            )
        return values, derivatives @ (self.features - means[:, None])

    def at(self, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the values at a table of any sum, which may have negative cells, and their influence functions on it,
        (K, cells); nan where a value is undefined."""
        mass = float(counts.sum())
        undefined = np.full(len(self.names), np.nan), np.zeros((len(self.names), len(counts)))
        if not mass > 0:
            return undefined
        means = self.features @ counts / mass
        try:
            values, derivatives = self._at(means)
        except (ArithmeticError, ValueError):  # as of math.sqrt, below 0
            return undefined
        finite = _are_finite(values, derivatives)
        influence = np.where(finite[:, None], derivatives, 0.0) @ (self.features - means[:, None]) / mass
        return np.where(finite, values, np.nan), influence

    def are_defined(self, table: FloatArray) -> Array:
        """Return which of the values are defined at a table; (K,)."""
        return _are_finite(*self._at(self.features @ table))

    def only(self, kept: Array) -> Moments:
        """Return the same without some of the values. kept: which stay, (K,)."""

        def function(means: FloatArray) -> tuple[FloatArray, FloatArray]:
            values, derivatives = self._at(means)
            return values[kept], derivatives[kept]

        return evolve(self, names=tuple(np.array(self.names)[kept].tolist()), function=function)

    def _at(self, means: FloatArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(divide="ignore", invalid="ignore"):
            values, derivatives = self.function(means)
        return np.asarray(values, dtype=np.float64), np.asarray(derivatives, dtype=np.float64)


def _are_finite(values: FloatArray, derivatives: FloatArray) -> Array:
    return np.asarray(np.isfinite(values) & np.isfinite(derivatives).all(axis=1))


# --- Regressions ----------------------------------------------------------------------------------


def _as_floats(values: Array) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


def _is_small(step: FloatArray, coefficients: FloatArray) -> bool:
    return bool(np.all(np.abs(step) <= _STEP_END * max(1.0, float(np.abs(coefficients).max()))))


def _as_outcome(outcome: Array) -> FloatArray:
    return np.atleast_2d(_as_floats(outcome).T).T  # a column for one equation


@frozen(kw_only=True, eq=False)
class Regression:
    """A generalised linear model with canonical link, as a functional of the joint distribution.

    The coefficients solve E[x (y - mu(x' beta))] = 0, the expectation being over the cells that are included.

    Attributes
    ----------
    attributes : tuple of str
        Of the outcome and the covariates.
    names : tuple of str
        Of the coefficients; of a multinomial model equation by equation.
    family : {"linear", "logistic", "poisson", "multinomial"}
    design : array of shape (cells, columns)
        The covariates x of each cell, in C order.
    outcome : array of shape (cells,) or (cells, equations)
        The outcome y of each cell: a number, 0 or 1 for a logistic model, and for a multinomial one the indicators of
        all classes but the first.
    included : array of shape (cells,), optional
        Which cells count, by default all; others, such as those with a missing value, are left out.

    Raises
    ------
    OptionError
        Arrays that do not fit each other.
    """

    attributes: Clique
    names: tuple[str, ...]
    family: Family
    design: FloatArray = field(converter=_as_floats)
    outcome: FloatArray = field(converter=_as_outcome)
    included: Array | None = None

    def __attrs_post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise OptionError(f"a regression's family is one of {', '.join(FAMILIES)}, got {self.family!r}")
        cells, columns = self.design.shape
        equations = self.outcome.shape[1]
        if len(self.outcome) != cells or (self.included is not None and self.included.shape != (cells,)):
            raise OptionError("design, outcome and included cells of a regression must have as many rows")
        if len(self.names) != columns * equations or (equations > 1 and self.family != "multinomial"):
            raise OptionError(f"a regression with {columns} columns and {equations} equations has other names")

    def evaluate(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the coefficients and their influence functions H^-1 x (y - mu), with H = E[x x' mu'].

        Raises InferenceError for a singular design, and where the outcome is separated by the covariates.
        """
        weights = self._weights(table)
        self._check_design(weights)
        one, back = self._with_even_columns(weights)
        coefficients: FloatArray = back @ one._fit(weights)
        return coefficients, self.influence(table, coefficients)

    def influence(self, table: FloatArray, coefficients: FloatArray) -> FloatArray:
        """Return H^-1 x (y - mu) at a table, which may have negative cells, and coefficients; (K, cells)."""
        weights = self._weights(table)
        one, back = self._with_even_columns(weights)
        coefficients = _as_floats(np.linalg.solve(back, coefficients))
        curvature = one._curvature(weights, coefficients)
        return np.asarray(back @ np.linalg.solve(curvature, one.score(coefficients)), dtype=np.float64)

    def score(self, coefficients: FloatArray) -> FloatArray:
        """Return x (y - mu(x' beta)) on each cell, (K, cells); 0 on cells that are left out."""
        residual = self.outcome - self._means(coefficients)
        if self.included is not None:
            residual = residual * self.included[:, None]
        return np.asarray((residual[:, :, None] * self.design[:, None, :]).reshape(len(residual), -1).T)

    def solve(self, weights: FloatArray, start: FloatArray, steps: int) -> FloatArray | None:
        """Return the root of sum_c w(c) score(c), near the start; None where Newton's method finds none.

        weights: (cells,), which may be negative, as those of corrected tables are.
        """
        weights = weights if self.included is None else weights * self.included
        one, back = self._with_even_columns(weights)
        coefficients = _as_floats(np.linalg.solve(back, start))
        for _ in range(steps):
            curvature = one._curvature(weights, coefficients)
            if not np.isfinite(curvature).all() or np.linalg.eigvalsh(curvature).min() <= 0:
                return None
            step = _as_floats(np.linalg.solve(curvature, one.score(coefficients) @ weights))
            coefficients = coefficients + step
            if np.abs(one.design @ coefficients.reshape(-1, one.design.shape[1]).T).max() > _MAX_PREDICTOR and (
                self.family != "linear"
            ):
                return None
            if _is_small(step, coefficients):
                return _as_floats(back @ coefficients)
        return None

    def _with_even_columns(self, weights: FloatArray) -> tuple[Regression, FloatArray]:
        """Return the same on orthogonal columns of length 1, and the matrix that takes its coefficients to those here.

        Years or degrees beside a constant are nearly parallel to it, so that rounding would hide where a fit ends.
        """
        shares = np.maximum(weights, 0.0) / max(float(np.maximum(weights, 0.0).sum()), 1e-300)
        try:
            back = np.linalg.inv(np.linalg.qr(self.design * np.sqrt(shares)[:, None])[1])
        except np.linalg.LinAlgError:  # singular, which is found out by what the caller does
            back = np.eye(self.design.shape[1])
        every = np.kron(np.eye(self.outcome.shape[1]), back)
        return evolve(self, design=self.design @ back), np.asarray(every, dtype=np.float64)

    def _weights(self, table: FloatArray) -> FloatArray:
        return table if self.included is None else table * self.included

    def _means(self, coefficients: FloatArray) -> FloatArray:
        """mu of each cell and equation, (cells, equations)."""
        predictor: FloatArray = self.design @ coefficients.reshape(-1, self.design.shape[1]).T
        if self.family == "linear":
            return predictor
        if self.family == "poisson":
            return np.exp(np.minimum(predictor, 700.0))
        top = np.maximum(predictor.max(axis=1, keepdims=True), 0.0)
        odds = np.exp(predictor - top)
        return np.asarray(odds / (np.exp(-top) + odds.sum(axis=1, keepdims=True)))

    def _curvature(self, weights: FloatArray, coefficients: FloatArray) -> FloatArray:
        """H = sum_c w(c) x x' (the derivative of mu), (K, K)."""
        means, design = self._means(coefficients), self.design
        equations = means.shape[1]
        blocks = [[np.zeros(0)] * equations for _ in range(equations)]
        for one in range(equations):
            for other in range(equations):
                if self.family == "linear":
                    slope = np.ones(len(means))
                elif self.family == "poisson":
                    slope = means[:, 0]
                else:
                    slope = means[:, one] * ((one == other) - means[:, other])
                blocks[one][other] = design.T @ (design * (weights * slope)[:, None])
        return np.block(blocks)

    def _fit(self, weights: FloatArray) -> FloatArray:
        """Maximum likelihood on the cells, by Newton's method with halved steps."""
        coefficients = np.zeros(len(self.names))
        value = self._loss(weights, coefficients)
        for _ in range(_MAX_STEPS):
            curvature, gradient = self._curvature(weights, coefficients), self.score(coefficients) @ weights
            if not np.isfinite(curvature).all() or np.linalg.cond(curvature) > 1e14:
                raise self._separated()
            step = _as_floats(np.linalg.solve(curvature, gradient))
            new = self._loss(weights, coefficients + step)
            for _ in range(40):
                if new <= value + 1e-12 * abs(value):
                    break
                step = step / 2
                new = self._loss(weights, coefficients + step)
            coefficients, value = coefficients + step, new
            if _is_small(step, coefficients):
                return coefficients
        raise self._separated()

    def _loss(self, weights: FloatArray, coefficients: FloatArray) -> float:
        """Minus the log-likelihood, nats, up to a constant."""
        predictor = self.design @ coefficients.reshape(-1, self.design.shape[1]).T
        if self.family == "linear":
            potential = predictor[:, 0] ** 2 / 2
        elif self.family == "poisson":
            potential = np.exp(np.minimum(predictor[:, 0], 700.0))
        else:
            top = np.maximum(predictor.max(axis=1), 0.0)
            potential = top + np.log(np.exp(-top) + np.exp(predictor - top[:, None]).sum(axis=1))
        return float(weights @ (potential - np.sum(self.outcome * predictor, axis=1)))

    def _check_design(self, weights: FloatArray) -> None:
        if not weights.sum() > 0:
            raise InferenceError("the model gives probability 0 to all cells that this regression includes")
        gram = self.design.T @ (self.design * weights[:, None])
        lengths = np.sqrt(np.diag(gram))
        if lengths.min() > 0 and np.linalg.eigvalsh(gram / np.outer(lengths, lengths)).min() > _MIN_APART_FAST:
            return
        factor: FloatArray = np.linalg.qr(self.design * np.sqrt(weights)[:, None])[1]
        lengths = np.sqrt(np.sum(factor**2, axis=0))
        for column in np.flatnonzero(np.abs(np.diag(factor)) <= _MIN_APART * lengths).tolist():
            shares = np.linalg.lstsq(factor[:, :column], factor[:, column], rcond=None)[0] if column else np.zeros(0)
            same = [self.names[at] for at in np.flatnonzero(np.abs(shares) > 1e-6)]
            repeats = f"says the same as {' and '.join(same)}" if same else "is 0 for all records"
            raise InferenceError(f"the design is singular: {self.names[column]} {repeats}; leave one out")

    def _separated(self) -> InferenceError:
        return InferenceError(
            "the covariates separate the outcome, so the coefficients have no finite estimate; leave out the covariate "
            "that determines the outcome, or merge labels"
        )
