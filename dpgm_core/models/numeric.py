"""Means, variances, quantiles and correlations of attributes with numbers, exact for a model and its bins.

A value is spread inside its bin as `within_bins` says, independently of all else given its code. Codes without a
number, such as missing values, are left out: every answer is about records that have a number in all attributes of the
query. All values of a bin without an end are placed at its finite edge, so moments of such a bin are bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from dpgm_core._util.arrays import FloatArray, IntArray, ratio
from dpgm_core.domain.attribute import Attribute
from dpgm_core.errors import DomainError, InferenceError, OptionError
from dpgm_core.models.within_bins import BinDistribution, bin_distribution, fit_wide_bins

__all__ = [
    "calibrate_correlation",
    "checked_share",
    "correlation_of",
    "ends_of",
    "mean_of",
    "number_distribution",
    "quantile_of",
    "share_of",
    "variance_of",
]

#: Terms of a Hermite series, and the places at which it is computed.
_TERMS, _PLACES = 40, 401
#: Least covariance of the means of blocks, over the deviations of the numbers, that tells a correlation.
_LEAST_BETWEEN = 1e-9


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


def calibrate_correlation(
    value: FloatArray, columns: Sequence[tuple[BinDistribution, FloatArray, IntArray]]
) -> FloatArray:
    """Return correlations of two attributes that depend on each other inside blocks of codes as they do between them.

    value: correlations where the attributes are independent given their blocks, as of `correlation_of`. columns: of
    each attribute its numbers, p of its codes, and their blocks.

    The attributes are taken as increasing functions of two normal variables with correlation r. A function with the
    coefficients c_k of normalised Hermite polynomials, and another with d_k, have the covariance sum_k c_k d_k r^k
    (Mehler's formula): that of the blocks' means gives r, and r that of the numbers.

    >>> dist = number_distribution(Attribute.of_bins("a", [-3, -1, 1, 3], unknown="?"))
    >>> column = dist, np.array([0.16, 0.68, 0.16, 0.0]), np.arange(4)
    >>> calibrate_correlation(np.array([0.0, 0.3]), [column, column]).round(3).tolist()
    [0.0, 0.437]
    """
    (means, numbers), (other_means, other_numbers) = (_hermite_series(*column) for column in columns)
    places = np.linspace(-1.0, 1.0, _PLACES)
    powers = places[:, None] ** np.arange(1, _TERMS + 1)
    between, whole = powers @ (means * other_means), powers @ (numbers * other_numbers)
    if between[-1] - between[0] < _LEAST_BETWEEN:
        return value
    inside = np.interp(value, np.maximum.accumulate(between), whole - between)
    return np.clip(value + inside, -1.0, 1.0)


def _hermite_series(dist: BinDistribution, table: FloatArray, blocks: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the series of the blocks' means and of the numbers, (terms,) each, over the deviation of the numbers."""
    codes: IntArray = np.flatnonzero(dist.present & (table > 0))
    means, variances = (moment[codes] for moment in dist.moments())
    order = np.argsort(means, kind="stable")
    codes, means, deviations = codes[order], means[order], np.sqrt(variances[order])
    weights = table[codes] / _sum(table[codes])
    means = means - _mean(weights, means)
    sums = (np.bincount(blocks[codes], weights=part) for part in (weights * means, weights))
    between = ratio(*sums)[blocks[codes]]
    # Two points with the mean and the variance of a bin stand for it.
    numbers = np.stack([means - deviations, means + deviations], axis=1).reshape(-1)
    ends = ndtri(np.clip(np.cumsum(np.repeat(weights / 2, 2))[:-1], 0.0, 1.0))
    steps = np.diff(np.stack([np.repeat(between, 2), numbers]), axis=1)
    steps, ends = steps[:, np.isfinite(ends)], ends[np.isfinite(ends)]
    before, polynomial = np.zeros(len(ends)), np.exp(-(ends**2) / 2) / math.sqrt(2 * math.pi)
    series = np.zeros((2, _TERMS))
    for degree in range(1, _TERMS + 1):
        series[:, degree - 1] = steps @ polynomial / math.sqrt(degree)
        following = (ends * polynomial - math.sqrt(degree - 1) * before) / math.sqrt(degree)
        before, polynomial = polynomial, following
    series /= math.sqrt(float(weights @ (means**2 + deviations**2)))
    return series[0], series[1]


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
