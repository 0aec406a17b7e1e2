"""Error bars: by formula, from replicates of an estimate, and from analyses of several synthetic data sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import numpy as np
from attrs import evolve, frozen

from dpgm_core._util.arrays import Array, FloatArray
from dpgm_core._util.html import Html, card
from dpgm_core.errors import InferenceError, OptionError, brief, listed
from dpgm_core.models.notebook import number_table
from dpgm_core.structure.graphs import Clique

__all__ = [
    "Interval",
    "MAX_REPLICATES",
    "checked_level",
    "checked_replicates",
    "combine",
    "corrected_interval",
    "farthest",
    "interval",
    "replicate_interval",
    "student",
    "widen",
]

_Model = TypeVar("_Model")

#: More refits improve no error bar; a file that claims more was not written by dpgm.
MAX_REPLICATES = 1000


@frozen(kw_only=True, eq=False)
class Interval:
    """An estimate with its errors, entry by entry: arrays of the estimate's shape.

    Attributes
    ----------
    estimate : array
        The model's answer.
    standard_error : array
        Root mean square error to expect, from its parts `spread` (sampling and noise), `bias` and `structure`; by
        formula that of the corrected answer, which has no bias.
    bias : array
        Mean of the refits less the model they were simulated from; 0 by formula.
    low, high : array
        Contain the truth with probability `level` if the model's structure is right; its error is included only where a
        holdout measured it.
    level : float
    standing : str or None
        The basis of the estimate, as `Model.standing` states it; None where it is unknown (`interval_of`).
    structure : array or float
        Standard deviation of the structure's error where a holdout measured it, otherwise 0.
    names, labels : tuple
        Attributes of the axes and their labels, for notebooks; () where axes are no attributes.
    flaws : tuple of str
        Why the estimate is less private than the budget of its releases.
    undefined, replicates : int
        Number of replicates in which the query was undefined, and of all replicates.

    Examples
    --------
    >>> replicates = np.array([[0.4, 0.6], [0.6, 0.4], [0.45, 0.55], [0.55, 0.45]])
    >>> interval(np.array([0.5, 0.5]), replicates, level=0.9, within=(0, 1)).low.round(2)
    array([0.29, 0.29])
    """

    estimate: FloatArray
    standard_error: FloatArray
    bias: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    standing: str | None = None
    structure: FloatArray | float = 0.0
    names: Clique = ()
    labels: tuple[tuple[str, ...], ...] = ()
    flaws: tuple[str, ...] = ()
    undefined: int = 0
    replicates: int = 0

    @property
    def spread(self) -> FloatArray:
        """The standard deviation over the replicates, without bias and structure."""
        return np.sqrt(np.maximum(self.standard_error**2 - self.bias**2 - self.structure**2, 0.0))

    @property
    def widened(self) -> bool:
        """Whether what a holdout found is in it."""
        return bool(np.any(np.asarray(self.structure) > 0))

    @property
    def note(self) -> str | None:
        """A sentence on the replicates in which the query was undefined; None without any."""
        if not self.undefined:
            return None
        return (
            f"in {self.undefined} of {self.replicates} replicates the answer is undefined, as what is given has "
            "probability 0 there; they count as the possible value farthest from the estimate, so the interval is wide"
        )

    def __repr__(self) -> str:
        about = [listed(self.names)] if self.names else []
        return brief("Interval", *about, f"level={self.level:g}", f"shape={self.estimate.shape}")

    def _repr_html_(self) -> Html:
        columns = {"estimate": self.estimate, "standard error": self.standard_error}
        columns |= {"low": self.low, "high": self.high}
        about = f" of {listed(self.names)}" if self.names else ""
        facts = [("level", f"{self.level:g}"), ("structure's error", "is in it" if self.widened else "is not in it")]
        facts += [("note", self.note)] if self.note else []
        table = number_table(self.names, self.labels, columns, self.standing)
        return card(f"Interval{about}", facts, table, flaws=self.flaws)


def interval(
    estimate: FloatArray,
    replicates: FloatArray,
    *,
    level: float,
    within: tuple[float, float] = (-math.inf, math.inf),
    undefined: int = 0,
) -> Interval:
    """Return the bias-aware bootstrap interval: estimate +- t sqrt(sd^2 + (mean - estimate)^2), clipped to `within`.

    replicates: (B, *shape of the estimate), B at least 2. sd and mean are the replicates'; the squared distance of mean
    and estimate contains sd^2 / B besides the squared bias. t: Student's quantile with B - 1 degrees of freedom.
    undefined: number of replicates that stand for undefined ones. Raises InferenceError where a replicate is not
    finite. Source: the bootstrap estimate of the mean square error, Efron and Tibshirani (1993), section 10.3.
    """
    level = checked_level(level)
    if not (np.isfinite(estimate).all() and np.isfinite(replicates).all()):
        raise InferenceError("the query is not finite for the model and all of its replicates, so it has no interval")
    spread = replicates.std(axis=0, ddof=1)
    bias = replicates.mean(axis=0) - estimate
    error = np.sqrt(spread**2 + bias**2)
    width = student(level, len(replicates) - 1) * error
    return Interval(
        estimate=estimate,
        standard_error=error,
        bias=bias,
        low=np.clip(estimate - width, *within),
        high=np.clip(estimate + width, *within),
        level=level,
        undefined=undefined,
        replicates=len(replicates),
    )


def corrected_interval(
    estimate: FloatArray, corrected: FloatArray, variance: FloatArray, structure: FloatArray, level: float
) -> Interval:
    """Return normal intervals of probabilities around corrected answers; they hold the estimates too.

    variance: of sampling and noise. structure: standard deviation of the structure's error. An estimate of 0 that has
    no variance is one that constraints rule out.

    >>> one = corrected_interval(np.array([0.1]), np.array([0.2]), np.array([1e-4]), np.zeros(()), 0.9)
    >>> one.low.round(3).tolist(), one.high.round(3).tolist()
    ([0.1], [0.216])
    """
    from scipy.special import ndtri

    error = np.sqrt(variance + structure**2)
    width = float(ndtri((1 + level) / 2)) * error
    return Interval(
        estimate=estimate,
        standard_error=error,
        bias=np.zeros_like(estimate),
        low=np.minimum(np.clip(corrected - width, 0.0, 1.0), estimate),
        high=np.maximum(np.clip(corrected + width, 0.0, 1.0), estimate),
        level=level,
        structure=structure,
    )


def replicate_interval(
    query: Callable[[_Model], Array | float],
    model: _Model,
    replicates: Sequence[_Model],
    *,
    level: float,
    within: tuple[float, float],
) -> Interval:
    """Return the `interval` of a query, answered by a model and by each of its replicates.

    A replicate in which the query is undefined (InferenceError) counts as `farthest`. Raises OptionError without
    replicates, and InferenceError for undefined answers where `within` is infinite.

    >>> replicate_interval(lambda one: one, 0.5, [0.4, 0.6], level=0.5, within=(0.0, 1.0)).spread.round(2).item()
    0.14
    """
    if not replicates:
        raise OptionError("the model has no replicates to tell errors from; make them with bootstrap(model)")
    estimate = np.asarray(query(model), dtype=np.float64)
    answers = []
    for one in replicates:
        with suppress(InferenceError):
            answers.append(np.asarray(query(one), dtype=np.float64))
    undefined = len(replicates) - len(answers)
    if undefined and not np.isfinite(within).all():
        raise InferenceError(
            f"in {undefined} of {len(replicates)} replicates the query is undefined, as what is given has probability "
            "0 there; state the range of its possible values with within=(low, high)"
        )
    answers += [farthest(estimate, within)] * undefined
    return interval(estimate, np.stack(answers), level=level, within=within, undefined=undefined)


def farthest(estimate: FloatArray, within: tuple[float, float]) -> FloatArray:
    """Return the end of a range that is farther from each entry of an estimate, which stands for undefined replicates.

    Nothing is known of such a replicate, and undefined ones are no sample of all: they are the ones in which least is
    known. To leave them out, or to fill in the estimate, covers less than is promised.
    """
    low, high = within
    return np.where(estimate - low > high - estimate, low, high)


def widen(result: Interval, structure: FloatArray, replicates: int, *, within: tuple[float, float]) -> Interval:
    """An interval of `replicates` refits with what the structure may miss in it, a standard deviation per entry."""
    error = np.sqrt(result.standard_error**2 + structure**2)
    width = student(result.level, replicates - 1) * error
    return evolve(
        result,
        standard_error=error,
        structure=structure,
        low=np.clip(result.estimate - width, *within),
        high=np.clip(result.estimate + width, *within),
    )


def combine(
    estimates: Sequence[float] | FloatArray,
    variances: Sequence[float] | FloatArray,
    *,
    level: float = 0.9,
    ratio: float = 1.0,
) -> Interval:
    """Combine the same analysis of m synthetic data sets, each sampled from another replicate of a model.

    Parameters
    ----------
    estimates, variances : array of shape (m, ...)
        The analysis's estimate and its squared standard error on each data set, as if the rows were real.
    level : float
        Of the interval.
    ratio : float
        Synthetic rows per data set over the records behind the model.

    Returns
    -------
    Interval
        Without the bias of the learner, so it may hold less often than its level says; `dpgm.analyse` removes it.

    Raises
    ------
    OptionError
        Fewer than two estimates, different shapes, or values out of range.

    Notes
    -----
    With q the mean and B the variance of the estimates and U the mean of the variances, the total variance is
    T = (1 + 1/m) B - U, which subtracts the sampling of the synthetic rows; where T is negative by chance, ratio * U
    replaces it. Student's t has (m - 1) (1 - U / ((1 + 1/m) B))^2 degrees of freedom, at least 1. Large data sets
    (small U) make T reliable.

    References
    ----------
    Raghunathan, Reiter and Rubin (2003); for negative T Reiter (2002); for synthetic data under differential privacy
    Raisa et al. (2023).

    Examples
    --------
    >>> round(float(combine([0.52, 0.49, 0.55, 0.50], [1e-5] * 4).standard_error), 4)
    0.0294
    """
    level = checked_level(level)
    q, u = np.asarray(estimates, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    if q.shape != u.shape or q.ndim == 0 or len(q) < 2:
        raise OptionError(f"combine needs at least 2 estimates and as many variances, got {q.shape} and {u.shape}")
    if not (np.isfinite(q).all() and np.isfinite(u).all() and (u >= 0).all()):
        raise OptionError("estimates and variances must be finite, and variances at least 0")
    if not isinstance(ratio, (int, float)) or isinstance(ratio, bool) or not 0 < ratio < math.inf:
        raise OptionError(f"ratio must be a positive number, synthetic rows over records, got {ratio!r}")
    m = len(q)
    mean, within = q.mean(axis=0), u.mean(axis=0)
    between = (1 + 1 / m) * q.var(axis=0, ddof=1)
    total = between - within
    share = np.divide(within, between, out=np.ones_like(between), where=between > 0)
    degrees = np.where(total > 0, np.maximum((m - 1) * (1 - share) ** 2, 1.0), m - 1)
    error = np.sqrt(np.where(total > 0, total, ratio * within))
    width = student(level, degrees) * error
    return Interval(
        estimate=mean, standard_error=error, bias=np.zeros_like(mean), low=mean - width, high=mean + width, level=level
    )


def checked_level(level: object) -> float:
    """A probability strictly between 0 and 1. Raises OptionError."""
    if not isinstance(level, (int, float)) or isinstance(level, bool) or not 0 < level < 1:
        raise OptionError(f"the level of an interval must lie between 0 and 1, such as 0.9; got {level!r}")
    return float(level)


def checked_replicates(count: object) -> int:
    """Return a checked number of refits. Raises OptionError."""
    if not isinstance(count, int) or isinstance(count, bool) or not 2 <= count <= MAX_REPLICATES:
        raise OptionError(f"replicates must be a whole number from 2 to {MAX_REPLICATES}, got {count!r}")
    return count


def student(level: float, degrees: float | FloatArray) -> FloatArray:
    """Half the width, in standard errors, of the central interval of Student's t."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(degrees, (1 + level) / 2))
