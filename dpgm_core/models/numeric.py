"""Means, variances, quantiles and correlations of attributes with numbers, exact for a model and its bins.

A value is spread inside its bin as `within_bins` says, independently of all else given its code. Codes without a
number, such as missing values, are left out: every answer is about records that have a number in all attributes of the
query. All values of a bin without an end are placed at its finite edge, so moments of such a bin are bounds.
"""

from __future__ import annotations

import math

import numpy as np

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core.domain.attribute import Attribute
from dpgm_core.errors import DomainError, InferenceError, OptionError
from dpgm_core.models.within_bins import BinDistribution, bin_distribution, fit_wide_bins

__all__ = [
    "checked_share",
    "correlation_of",
    "ends_of",
    "mean_of",
    "number_distribution",
    "quantile_of",
    "share_of",
    "variance_of",
]


def number_distribution(attribute: Attribute, table: FloatArray | None = None) -> BinDistribution:
    """Return the distribution of an attribute's numbers. table: the model's marginal, to which wide bins are fitted.

    Raises DomainError for an attribute without numbers.
    """
    dist = bin_distribution(attribute) if table is None else fit_wide_bins(attribute, table)
    if dist is None or not dist.present.any():
        raise DomainError(
            f"attribute {attribute.name!r} has no numbers to compute with; declare its bins, or its type and numbers "
            "as labels"
        )
    return dist


def share_of(dist: BinDistribution, table: FloatArray) -> float:
    """Return the probability that there is a number. table: p of each code.

    >>> share_of(number_distribution(Attribute.of_bins("a", [0.5, 1.5, 6.5], unknown="?")), np.array([0.5, 0.25, 0.25]))
    0.75
    """
    return float(table[dist.present].sum())


def ends_of(dist: BinDistribution) -> tuple[float, float]:
    """Return the least and the largest of the numbers."""
    return float(dist.placed(dist.low)[dist.present].min()), float(dist.placed(dist.high)[dist.present].max())


def mean_of(dist: BinDistribution, table: FloatArray) -> float:
    """Return the mean of the numbers; dates are days, see `Values`. Raises InferenceError where there are none."""
    return _mean(_weights(dist, table), dist.moments()[0][dist.present])


def variance_of(dist: BinDistribution, table: FloatArray) -> float:
    """Return the variance of the numbers: the variance of the bins' means plus the mean variance inside bins."""
    means, variances = (moment[dist.present] for moment in dist.moments())
    weights = _weights(dist, table)
    return float(weights @ ((means - _mean(weights, means)) ** 2 + variances))


def quantile_of(dist: BinDistribution, table: FloatArray, share: float) -> float:
    """Return the least number that `share` of the numbers do not exceed, inside a bin by the bin's distribution."""
    codes: IntArray = np.flatnonzero(dist.present)
    codes = codes[np.argsort(dist.low[codes], kind="stable")]
    weights = table[codes] / _sum(table[codes])
    upto = np.cumsum(weights)
    # Rounding must not make a code without weight the answer, at either end.
    positive = np.flatnonzero(weights > 0)
    at = positive[min(int(np.searchsorted(upto[positive], min(share, upto[positive[-1]]))), len(positive) - 1)]
    return dist.quantile(int(codes[at]), float(np.clip((share - upto[at] + weights[at]) / weights[at], 0.0, 1.0)))


def correlation_of(dists: tuple[BinDistribution, BinDistribution], table: FloatArray) -> float:
    """Return Pearson's correlation of two attributes over records with both numbers. table: p of each pair of codes.

    Raises InferenceError where one of them does not vary.
    """
    table = table[np.ix_(dists[0].present, dists[1].present)]
    table = table / _sum(table)
    spread, apart = [], []
    for axis, dist in enumerate(dists):
        means, variances = (moment[dist.present] for moment in dist.moments())
        weights = table.sum(axis=1 - axis)
        apart.append(means - _mean(weights, means))
        spread.append(float(weights @ (apart[-1] ** 2 + variances)))
    if min(spread) <= 0:
        raise InferenceError("a correlation needs two attributes that vary; one of them has a single value")
    # Given their codes the two are independent: only the bins' means are correlated.
    value = float(apart[0] @ table @ apart[1]) / math.sqrt(spread[0] * spread[1])
    return min(1.0, max(-1.0, value))


def checked_share(share: object) -> float:
    """Return a checked share of a quantile, from 0 to 1. Raises OptionError."""
    if not isinstance(share, (int, float, np.floating)) or isinstance(share, bool) or not 0 <= share <= 1:
        raise OptionError(
            f"the share of a quantile must be a number from 0 to 1, such as 0.5 for the median; got {share!r}"
        )
    return float(share)


def _weights(dist: BinDistribution, table: FloatArray) -> FloatArray:
    here = table[dist.present]
    return here / _sum(here)


def _sum(table: FloatArray) -> float:
    total = float(table.sum())
    if total <= 0:
        raise InferenceError("no record has a number there: the model says that all of them are missing")
    return total


def _mean(weights: FloatArray, means: FloatArray) -> float:
    # Around a number of their size, so that dates of this century lose no digits.
    return float(means[0] + weights @ (means - means[0]))
