"""Effects: what noisy tables tell of functions on the table of some attributes, by ANOVA components.

V are the attributes of a question and c a cell of their table. The effect f_S of a function f, S a subset of V, is its
component under uniform weights: along the axes in S subtract the mean, along all others take it. Then f = sum_S f_S.
Of counts n the effect n_S is that of the mean table, so that sum_c f(c) n(c) = sum_S <f_S, n_S> (cells outside S).

Statement. Let table k hold the attributes T_k with noise of variance v_k in each cell, m_kS of its cells per cell of
S. For every S inside some T_k the generalised least squares estimate of n_S from all tables is the mean of the tables'
own, weighted by 1 / (v_k m_kS); estimates of different effects are uncorrelated. Proof. Noise within a table is
isotropic, so its orthogonal components have uncorrelated noise, with covariance v_k m_kS times the projection. n_S
appears only in tables with S inside T_k, so the normal equations separate over S into weighted means.

Tests compare this with dense least squares. A table of one attribute whose ranges were measured has no isotropic noise;
the effect of its attribute then has a matrix in place of a number (`_with_windows`).

A function that no table tells whole is replaced by one that tables tell. With weights w of the codes of each attribute,
all positive, its effects are taken under w: "subtract the mean" and "take it" mean the weighted one, and the part that
the tables D tell is P_w f = sum over S in D of these effects. Where codes are rare, as those of missing values are, a
function that is a sum of functions of few attributes but for these codes keeps that form. P_w f lies in the span of the
tables, so that the estimate of its sum is by its uniform effects, as above. The adjoint of P_w spreads what tables tell
over cells by the weights.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import TypeAlias

import numpy as np
from attrs import field, frozen

from dpgm_core._util.arrays import FloatArray, IntArray, aligned
from dpgm_core.errors import TooLarge
from dpgm_core.models.range_margins import covariance_of
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.totals import counted
from dpgm_core.releases.views import block_sums
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.tables import margin_of

__all__ = [
    "Axes",
    "Effects",
    "Weights",
    "code_weights",
    "add_over_axes",
    "combine_tables",
    "effect",
    "effect_norms",
    "effects_of",
    "means_over_axes",
    "subsets",
]

#: Axes of a table, ascending.
Axes: TypeAlias = tuple[int, ...]

#: Of the codes of each axis.
Weights: TypeAlias = Sequence[FloatArray]

#: A noisy table: attributes, counts, noise variance of a cell, or of ranges the covariance of all cells, and whether it
#: holds all effects of its attributes.
Measured: TypeAlias = tuple[Clique, FloatArray, float | FloatArray, bool]

#: Least weight of a code by `code_weights`.
_LEAST_WEIGHT = 1e-6

#: More effects than this are not computed one by one.
_MAX_EFFECTS = 2**16


# --- Means and their adjoint ----------------------------------------------------------------------
# Both walk the axes once for all targets: an axis that no target needs is averaged before the next one is looked at, so
# that the cost is that of a few passes over the largest array.


def means_over_axes(
    values: FloatArray, targets: Iterable[Axes], weights: Weights | None = None
) -> dict[Axes, FloatArray]:
    """Return the mean of the values over all axes but those of each target.

    Parameters
    ----------
    values : array of shape (K, *shape)
    targets : iterable of tuple of int
        Axes of `shape` that stay.
    weights : sequence of arrays, optional
        Of the codes of each axis, which sum to 1; by default equal.

    Returns
    -------
    dict
        target -> array of shape (K, ...), with 1 in place of the axes that were averaged.
    """
    result: dict[Axes, FloatArray] = {}

    def walk(array: FloatArray, axis: int, left: list[Axes]) -> None:
        if axis == values.ndim - 1:
            result[left[0]] = array
            return
        without, within = [one for one in left if axis not in one], [one for one in left if axis in one]
        if without:
            walk(_mean(array, axis, weights), axis + 1, without)
        if within:
            walk(array, axis + 1, within)

    distinct = list(dict.fromkeys(targets))
    if distinct:
        walk(values, 0, distinct)
    return result


def add_over_axes(tables: Mapping[Axes, FloatArray], shape: Sequence[int]) -> FloatArray:
    """Return the sum of tables that have 1 in place of axes they do not depend on, over the whole grid.

    tables: axes -> (K, ...), of at least one table. The result has the shape (K, *shape).
    """

    def walk(axis: int, left: list[Axes]) -> FloatArray:
        if axis == len(shape):
            return tables[left[0]]
        without, within = [one for one in left if axis not in one], [one for one in left if axis in one]
        if not within:
            return walk(axis + 1, without)
        return walk(axis + 1, within) + walk(axis + 1, without) if without else walk(axis + 1, within)

    summed = walk(0, list(tables))
    return np.ascontiguousarray(np.broadcast_to(summed, (len(summed), *shape)))


def effect(values: FloatArray, axes: Axes, weights: Weights | None = None) -> FloatArray:
    """Return the effect of these axes: centred along them, averaged along all others.

    values: (K, *shape). weights: as of `means_over_axes`.
    """
    for axis in range(values.ndim - 1):
        mean = _mean(values, axis, weights)
        values = values - mean if axis in axes else mean
    return values


def _mean(values: FloatArray, axis: int, weights: Weights | None) -> FloatArray:
    """Return the mean along an axis of `shape`, which stays with length 1; an axis of length 1 is averaged already."""
    before, length, after = values.shape[: axis + 1], values.shape[axis + 1], values.shape[axis + 2 :]
    if length == 1:
        return values
    rows = values.reshape(math.prod(before), length, math.prod(after))
    if weights is None:
        mean = np.add.reduce(rows, axis=1) / length
    elif rows.shape[2] == 1:
        mean = rows[:, :, 0] @ weights[axis]  # a sum along the last axis is slow
    else:
        mean = np.add.reduce(rows * weights[axis][:, None], axis=1)
    return np.asarray(mean.reshape(*before, 1, *after))


def subsets(axes: Iterable[int], *, most: int | None = None) -> Iterator[Axes]:
    """Yield all subsets of the axes, up to a size, small ones first."""
    ordered = sorted(axes)
    sizes = range(min(len(ordered), len(ordered) if most is None else most) + 1)
    return chain.from_iterable(combinations(ordered, size) for size in sizes)


def code_weights(table: FloatArray) -> list[FloatArray]:
    """Return the probabilities of the codes of each axis, each at least 1e-6 or so.

    table: probabilities, (*shape).

    >>> [weights.tolist() for weights in code_weights(np.array([[0.25, 0.5], [0.25, 0.0]]))]
    [[0.75, 0.25], [0.5, 0.5]]
    """
    shares = [table.sum(axis=tuple(at for at in range(table.ndim) if at != axis)) for axis in range(table.ndim)]
    positive = [np.maximum(one, _LEAST_WEIGHT) for one in shares]
    return [one / one.sum() for one in positive]


# --- Effects that tables tell ---------------------------------------------------------------------


@frozen(kw_only=True, eq=False)
class Effects:
    """Least squares estimates of the effects of the counts that noisy tables tell.

    Attributes
    ----------
    attributes, shape : tuple
        V and the sizes of its axes.
    variances : dict
        Axes of each estimated effect -> variance of its noise in the sense of the module: the covariance of the sums
        over the other cells is this number times the projection, records**2.
    table : array of the shape
        The sum of the estimates: counts whose effects are the estimated ones, the others 0. It has negative cells.
    total : float
        Number of records N.
    tops : tuple of Axes
        Sets whose subsets are all effects that are known.
    covariances : dict
        Axis of each attribute whose ranges were measured -> the covariance of its margin, given N; its number among the
        variances is the mean along the effect.
    """

    attributes: Clique
    shape: tuple[int, ...]
    variances: Mapping[Axes, float]
    table: FloatArray
    total: float
    tops: tuple[Axes, ...]
    covariances: Mapping[int, FloatArray] = field(factory=dict)

    def project(self, values: FloatArray, weights: Weights | None = None) -> FloatArray:
        """Return the part of functions that the tables tell: the sum of their effects that are estimated.

        values: (K, *shape). weights: of the codes of each axis, as of `means_over_axes`.
        """
        parts = {axes: np.zeros((1,) * values.ndim) for axes in self.tops}
        for axes, part in self._effects(values, weights if self._is_closed else None):
            top = self._top_of(axes)
            parts[top] = parts[top] + part
        return add_over_axes(parts, self.shape)

    def spread(self, values: FloatArray, weights: Weights) -> FloatArray:
        """Return the adjoint of `project`: sums that the tables tell, over cells in proportion to positive weights.

        values: (K, *shape).
        """
        product = functools.reduce(np.multiply.outer, weights)
        if not self._is_closed:
            return self.project(values)
        return self.project(values / product, weights) * product

    @functools.cached_property
    def _is_closed(self) -> bool:
        """Whether with each effect those of its subsets are estimated, as they are but for contrasts."""
        return all(some in self.variances for top in self.tops for some in subsets(top))

    def noise(self, values: FloatArray) -> FloatArray:
        """Return the covariance of sum_c f(c) table(c) from noise, for K functions; (K, K), records**2."""
        covariance = np.zeros((len(values), len(values)))
        for axes, part in self._effects(values):
            flat = part.reshape(len(values), -1)
            whole = self.covariances.get(axes[0]) if len(axes) == 1 else None
            covariance += self.variances[axes] * (flat @ flat.T) if whole is None else flat @ whole @ flat.T
        return covariance

    def _effects(self, values: FloatArray, weights: Weights | None = None) -> Iterator[tuple[Axes, FloatArray]]:
        by_top: dict[Axes, list[Axes]] = {top: [] for top in self.tops}
        for axes in self.variances:
            by_top[self._top_of(axes)].append(axes)
        means = means_over_axes(values, self.tops, weights)
        for top, inside in by_top.items():
            for axes in inside:
                yield axes, effect(means[top], axes, weights)

    def _top_of(self, axes: Axes) -> Axes:
        return next(top for top in self.tops if set(axes) <= set(top))


def effect_norms(values: FloatArray, sets: Iterable[Axes]) -> dict[Axes, FloatArray]:
    """Return the squared length of effects, the sum over the cells of the effect's own table, for K functions.

    values: (K, *shape). Returns axes -> (K,).

    >>> {axes: norm.tolist() for axes, norm in effect_norms(np.array([[[1.0, 3.0], [5.0, 7.0]]]), [(0,), ()]).items()}
    {(0,): [8.0], (): [16.0]}
    """
    needed = list(sets)
    means = means_over_axes(values, needed)
    return {axes: np.sum(effect(means[axes], axes).reshape(len(values), -1) ** 2, axis=1) for axes in needed}


def combine_tables(
    attributes: Clique, shape: Sequence[int], tables: Iterable[Measured], total: tuple[float, float]
) -> Effects:
    """Return the effects on the table of `attributes` that independent noisy tables tell.

    Parameters
    ----------
    attributes : tuple of str
    shape : sequence of int
    tables : iterable of (clique, counts, variance, whole)
        Noisy counts with one axis for each attribute of the clique, the noise variance of a cell, records**2, and
        whether all effects of the table were measured or only the one of all its attributes. Other attributes than
        those asked for are summed out.
    total : (float, float)
        N and its variance; it stands for the effect of the empty set.

    Raises
    ------
    TooLarge
        The tables hold more than 65,536 effects.
    """
    where = {name: axis for axis, name in enumerate(attributes)}
    mean: dict[Axes, FloatArray] = {(): np.full((1,) * (len(shape) + 1), total[0] / math.prod(shape))}
    variances: dict[Axes, float] = {(): total[1]}
    precision: dict[Axes, float] = {}
    sums: dict[Axes, FloatArray] = {}
    inside: dict[tuple[Axes, bool], tuple[FloatArray, float]] = {}
    windows: dict[int, list[tuple[FloatArray, FloatArray]]] = {}
    for clique, counts, variance, whole in tables:
        axes = tuple(sorted(where[name] for name in clique if name in where))
        if isinstance(variance, np.ndarray):
            if axes:
                windows.setdefault(axes[0], []).append((np.asarray(counts, np.float64), variance))
        elif axes and (whole or len(axes) == len(clique)):
            names = [attributes[axis] for axis in axes]
            table = aligned(margin_of(counts, clique, names), names, attributes)[None]
            # Tables of the same attributes are averaged first, which changes no estimate.
            before, weight = inside.get((axes, whole), (np.zeros(()), 0.0))
            new = 1 / (variance * (counts.size // table.size))
            inside[axes, whole] = (before + new * table, weight + new)
    count = sum(2 ** len(axes) for axes, _ in inside)
    if count > _MAX_EFFECTS:
        raise TooLarge(
            f"the released tables hold {count:,} effects of {len(attributes)} attributes, above {_MAX_EFFECTS:,}; ask "
            "about fewer attributes"
        )
    for (axes, whole), (weighted, weight) in inside.items():
        table = weighted / weight
        for some in list(subsets(axes))[1:] if whole else [axes]:
            # a cell of `some` holds this many of the table's, each with noise 1 / weight
            cells = math.prod(shape[axis] for axis in axes if axis not in some)
            here = weight / cells
            sums[some] = sums.get(some, 0.0) + here * effect(table, some) * cells
            precision[some] = precision.get(some, 0.0) + here
    covariances = {}
    for axis, known in windows.items():
        ones = [1] * (len(shape) + 1)
        ones[axis + 1] = shape[axis]
        margin, covariances[axis] = _with_windows(known, sums.pop((axis,), None), precision.get((axis,), 0.0), total)
        variances[axis,] = float(np.trace(covariances[axis])) / max(shape[axis] - 1, 1)
        rest = math.prod(size for at, size in enumerate(shape) if at != axis)
        mean[axis,] = effect(margin.reshape(ones), (axis,)) / rest
    for some, weighted in sums.items():
        variances[some] = 1 / precision[some]
        rest = math.prod(size for axis, size in enumerate(shape) if axis not in some)
        mean[some] = weighted / precision[some] / rest
    tops = [axes for axes in variances if not any(set(axes) < set(other) for other in variances)]
    return Effects(
        attributes=attributes,
        shape=tuple(shape),
        variances=variances,
        table=add_over_axes(mean, shape)[0],
        total=total[0],
        tops=tuple(tops),
        covariances=covariances,
    )


def _with_windows(
    known: Sequence[tuple[FloatArray, FloatArray]],
    weighted: FloatArray | None,
    precision: float,
    total: tuple[float, float],
) -> tuple[FloatArray, FloatArray]:
    """Return the least squares margin of an attribute, which sums to N, and its covariance about N times its direction.

    known: the counts of each table of it alone that was estimated from windows, and their covariance. weighted,
    precision: the sum of the other tables' effects, by their precision. total: N and its variance.
    """
    size = len(known[0][0])
    inverses = [np.linalg.inv(covariance) for _, covariance in known]
    whole = sum(inverses, precision * (np.eye(size) - 1 / size))
    slope = sum((inverse @ counts for inverse, (counts, _) in zip(inverses, known, strict=True)), np.zeros(size))
    covariance = np.linalg.inv(whole)
    margin = covariance @ (slope if weighted is None else slope + weighted.reshape(-1))
    along = covariance.sum(axis=1) / covariance.sum()
    # The noise of N beside its even spread, which counts as that of the empty set, is next to nothing.
    apart = along - 1 / size
    conditional = covariance - np.outer(along, along) * covariance.sum() + np.outer(apart, apart) * total[1]
    return margin + along * (total[0] - margin.sum()), np.asarray(conditional)


# --- Released tables ------------------------------------------------------------------------------


def effects_of(
    releases: Sequence[NoisyTables],
    attributes: Clique,
    shape: Sequence[int],
    merges: Mapping[str, Sequence[IntArray]] | None = None,
) -> Effects:
    """Return the effects on the table of `attributes` that releases tell, about the same people.

    Parameters
    ----------
    releases : sequence of NoisyTables
        As published, at least one. Tables that tied cliques share, rounds, gradients and tables of normalised
        contributions tell nothing here, and holdouts are left to their own comparison.
    attributes, shape :
        V and the number of codes, or blocks of codes, of each.
    merges : mapping, optional
        attribute -> block of each of its codes, where tables are to be summed by block; of tables that are over blocks
        already, block of each of these, if there are such.

    Raises
    ------
    TooLarge
    """
    tables = chain.from_iterable(tables_of(one, attributes, shape, merges or {}) for one in releases)
    total = min((counted(one) for one in releases), key=lambda one: one[1])
    return combine_tables(attributes, shape, tables, total)


def tables_of(
    release: NoisyTables, attributes: Clique, shape: Sequence[int], merges: Mapping[str, Sequence[IntArray]]
) -> Iterator[Measured]:
    """Yield each measured table of some of these attributes as it was drawn, with their codes summed by block.

    What a table is, and the parameters, are those of `combine_tables` and `effects_of`.
    """
    steps = [one for one in release.steps if isinstance(one, NoisyTables)] if release.steps else [release]
    sizes = dict(zip(attributes, shape, strict=True))
    for one in steps:
        if one.holdout or one.round is not None or one.contributions is not None:
            continue
        variances = one.variances.tolist()
        for number, group in enumerate(one.structure.groups):
            if len(group) > 1 or not group[0] or sizes.keys().isdisjoint(group[0]):
                continue
            clique, variance = group[0], variances[number]
            if one.contrasts:
                # The product is the length of the attributes' own effect, whose sign changes along each axis; the
                # release's variance is that along this effect, which is the product's by the number of cells.
                cells = 2.0 ** len(clique)
                signs = functools.reduce(np.multiply.outer, [np.array([1.0, -1.0])] * len(clique))
                yield clique, signs * (one.measured[number] / cells), variance, False
                continue
            counts = np.asarray(one.tables.group(number), dtype=np.float64)
            covariance = covariance_of(one.noise[number])
            if covariance is not None:
                name = clique[0]
                for merge in _merges_of(merges.get(name, ()), len(covariance)):
                    counts, blocks = block_sums(counts, 0, merge), np.eye(sizes[name])[merge]
                    covariance = np.asarray(blocks.T @ covariance @ blocks)
                if len(counts) == sizes[name]:
                    yield clique, counts, covariance, True
                continue
            for axis, name in enumerate(clique):
                for merge in _merges_of(merges.get(name, ()), counts.shape[axis]):
                    counts = block_sums(counts, axis, merge)
                    variance *= int(np.bincount(merge).max())
            if all(counts.shape[axis] == sizes.get(name, counts.shape[axis]) for axis, name in enumerate(clique)):
                yield clique, counts, variance, True


def _merges_of(merges: Sequence[IntArray], size: int) -> list[IntArray]:
    """Return the merge of an axis of this size; none where it is over blocks already."""
    return [one for one in merges if len(one) == size][:1]
