"""The identifiable parameters of a structure: main effects and interactions in orthonormal contrasts (ANOVA).

Contrasts of bins of numbers are cosines along their order, and long waves may have a larger prior variance than short
ones: what depends on a number mostly changes little from bin to bin. All other contrasts are alike.

An *effect* is a set of attributes inside some clique; its parameters are the products of orthonormal contrasts of
its attributes, so that no two effects say the same. Cliques that contain the effect share its parameters. The noisy
tables tell about an effect as often as cliques contain it; the reduced statistics z are the means of these tellings,
weighted by their precision, and the potentials theta = B phi are spread with the same weights. Where contrasts were
released, sums of products of binary attributes, each table tells about the effect of all its attributes alone.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import TypeAlias

import numpy as np
from attrs import frozen
from scipy.sparse import csr_array

from dpgm_core import Clique, FloatArray, IntArray, NoisyTables, Structure, Tables

__all__ = [
    "WIDE",
    "Basis",
    "Effect",
    "Holder",
    "basis_of",
    "contrast_rows",
    "contrasts",
    "effect_shapes",
    "group_count",
]

# Noise is never taken to be smaller, records**2: counts are whole numbers, and rounding must not look like a signal.
_LEAST_VARIANCE = 1e-6
# Vectors, and their cells in all: more leave the cache, and take twice as long.
_AT_ONCE, _CELLS_AT_ONCE = 64, 2**17
# Of the prior variance of bins, the share that falls with this power of the number of half waves; the rest is even, so
# that spikes remain possible. Chosen on ten kinds of tables and pairs of normal numbers, beside 0, .9 to 1 and powers 2
# to 4: at 0 most correlation was lost, the others were alike but for strong correlation in 40 bins.
_SMOOTH, _POWER = 0.9, 4.0
#: Labels; of an attribute that has more the matrix of contrasts, of the order of their square, is never made.
WIDE = 256


#: The labels of an axis, and how many of them, the first ones, are bins of numbers in their order.
Axis: TypeAlias = tuple[int, int]


@frozen(kw_only=True)
class Holder:
    """A table that tells about an effect.

    group: whose table. share: of its word among all holders. order: the table's axes as the effect has them.
    summed_axes: the other axes.
    """

    group: int
    share: float
    order: tuple[int, ...]
    summed_axes: tuple[int, ...]


@lru_cache(maxsize=256)
def contrasts(size: int, bins: int = 0) -> FloatArray:
    """(size, size - 1): orthonormal columns that sum to 0: Helmert's, of the first `bins` labels cosines.

    >>> contrasts(3).round(3).tolist()
    [[0.707, 0.408], [-0.707, 0.408], [0.0, -0.816]]
    >>> contrasts(4, 3).round(3).tolist()
    [[0.707, 0.408, 0.289], [0.0, -0.816, 0.289], [-0.707, 0.408, 0.289], [0.0, 0.0, -0.866]]
    """
    matrix = np.zeros((size, size - 1))
    for column in range(size - 1):
        matrix[: column + 1, column] = 1.0
        matrix[column + 1, column] = -(column + 1.0)
        matrix[:, column] /= math.sqrt((column + 1) * (column + 2))
    if bins:
        places, waves = np.arange(bins) + 0.5, np.arange(1, bins)
        matrix[:bins, : bins - 1] = math.sqrt(2 / bins) * np.cos(np.pi / bins * np.outer(places, waves))
    matrix.flags.writeable = False
    return matrix


@lru_cache(maxsize=256)
def prior_variances(size: int, bins: int) -> FloatArray:
    """(size - 1,): of each contrast, 1 in the mean over those of bins: long waves are larger than short ones.

    >>> prior_variances(4, 3).round(2).tolist()
    [1.79, 0.21, 1.0]
    """
    variances = np.ones(size - 1)
    if bins:
        smooth = np.arange(1.0, bins) ** -_POWER
        variances[: bins - 1] = _SMOOTH * smooth / smooth.mean() + 1 - _SMOOTH
    variances.flags.writeable = False
    return variances


def bins_of(release: NoisyTables) -> dict[str, int]:
    """Return of attributes of bins how many of their codes, the first ones, are bins in their order."""
    session, bins = release.session, {}
    for one in release.structure.domain:
        new: Sequence[int] = range(one.size)
        if session is not None and one.name in session.merges:  # blocks are in the order of their first codes
            new, one = session.merges[one.name], session.workload.domain[one.name]
        if one.edges is not None and max(new) < WIDE:
            bins[one.name] = len({*new[: len(one.edges) - 1]})
    return {name: count for name, count in bins.items() if count > 2}


def contrast_rows(labels: IntArray, first: int, count: int) -> FloatArray:
    """The rows of `contrasts` at these labels (q,), ascending, and `count` of its columns from `first` on: (q, count).

    >>> contrast_rows(np.array([0, 2]), 1, 1).round(3).tolist()
    [[0.408], [-0.816]]
    """
    columns = np.arange(first, first + count)
    rows = labels[:, None]
    return np.where(rows <= columns, 1.0, np.where(rows == columns + 1, -(columns + 1.0), 0.0)) * _heights(columns)


def _heights(columns: IntArray) -> FloatArray:
    """Return the value of each contrast at the labels before its own."""
    heights: FloatArray = 1 / np.sqrt((columns + 1.0) * (columns + 2.0))
    return heights


@frozen(kw_only=True, eq=False)
class Effect:
    """One main effect or interaction.

    cliques: those it is summed over, its name in every structure. holders: the tables that tell about it; their shares
    sum to 1. shape: labels per attribute. part: where its parameters stand.
    """

    cliques: tuple[Clique, ...]
    holders: tuple[Holder, ...]
    shape: tuple[int, ...]
    part: slice


def axes_of_tables(structure: Structure, bins: Mapping[str, int]) -> list[list[Axis]]:
    """Return the axes of each table."""
    return [
        [(size, bins.get(name, 0)) for name, size in zip(group[0], shape, strict=True)]
        for group, shape in zip(structure.groups, structure.shapes, strict=True)
    ]


@frozen(kw_only=True)
class _Level:
    """One axis of every table. order: place of each entry before, the axis first; back: its inverse. parts: (entries,
    labels of the axis and bins among them); entries of tables without that axis come first and have one."""

    order: IntArray
    back: IntArray
    parts: tuple[tuple[slice, Axis], ...]


@frozen(eq=False, slots=False)
class _Products:
    """All tables of a structure times [1, contrasts] along every axis: the sums and contrasts of all their margins.

    An axis at a time over all tables with equally many labels, as there are hundreds of tables and few sizes: each is
    one product of matrices, without a copy. Vectors are columns (cells, m),
    coefficients are in the order of the last level.
    """

    structure: Structure
    bins: Mapping[str, int]

    def of(self, values: FloatArray) -> FloatArray:
        """Return the coefficients of tables (cells, m)."""
        for level in self._levels:
            values = _along(np.take(values, level.order, axis=0), level.parts, _as_contrasts)
        return values

    def transposed(self, coefficients: FloatArray) -> FloatArray:
        """Return the tables (cells, m) that are sums of these multiples of products of contrasts, which are lost."""
        for level in reversed(self._levels):
            coefficients = np.take(_along(coefficients, level.parts, _as_labels), level.back, axis=0)
        return coefficients

    def places(self, number: int, order: tuple[int, ...]) -> IntArray:
        """Return where the coefficients (q,) of the effect of these axes of a table stand."""
        return self._place_of[_coefficients(self.structure, number, order)]

    @cached_property
    def _levels(self) -> tuple[_Level, ...]:
        levels = []
        place_of = np.arange(self.structure.cells)  # of each cell, in the order of the level before
        for axis in range(max(map(len, self.structure.shapes), default=0)):
            by_axis: dict[Axis, list[IntArray]] = {}
            for where, axes in zip(self.structure.slices, axes_of_tables(self.structure, self.bins), strict=True):
                cells = np.arange(where.start, where.stop).reshape([size for size, _ in axes])
                own = axes[axis] if axis < len(axes) else (1, 0)
                by_axis.setdefault(own, []).append(
                    np.moveaxis(cells, axis, 0).reshape(own[0], -1) if own[0] > 1 else cells.reshape(1, -1)
                )
            parts, low, order = [], 0, list[IntArray]()
            for own in sorted(by_axis):
                order.append(np.concatenate(by_axis[own], axis=1).ravel())
                parts.append((slice(low, low + len(order[-1])), own))
                low += len(order[-1])
            cells_of = np.concatenate(order)
            order_of = place_of[cells_of]
            levels.append(_Level(order=order_of, back=np.argsort(order_of), parts=tuple(parts)))
            place_of = np.argsort(cells_of)
        return tuple(levels)

    @cached_property
    def _place_of(self) -> IntArray:
        """Of each coefficient in the order of cells, in that of the last level."""
        places = np.arange(self.structure.cells)
        for level in self._levels:
            places = level.back[places]
        return places


@frozen(kw_only=True, eq=False, slots=False)
class Basis:
    """theta = B phi and z = B'y.

    size: number of parameters p. group: of each parameter (p,), 0 for main effects, else its clique's. groups: how
    many. variances: of z, records**2 (p,). weights: the prior precision of each parameter if that of each potential
    is 1 (p,). waves: by how much a smooth prior's variance is larger (p,). bins: see `bins_of`.
    """

    structure: Structure
    effects: tuple[Effect, ...]
    size: int
    group: np.ndarray[tuple[int], np.dtype[np.intp]]
    groups: int
    variances: FloatArray
    weights: FloatArray
    waves: FloatArray
    bins: Mapping[str, int]

    def potentials(self, phi: FloatArray) -> FloatArray:
        """B phi: (p,) or (p, m) to (cells,) or (cells, m), each column in one piece."""
        columns = phi.reshape(self.size, math.prod(phi.shape[1:]))
        theta = np.zeros((self.structure.cells, columns.shape[1]), order="F")
        for some in self._batches(columns.shape[1] if self.size else 0):
            spread = np.take(columns[:, some], self._roles[0], axis=0)
            spread *= self._roles[1][:, None]
            theta[:, some] = self._products.transposed(spread)
        return theta.reshape(self.structure.cells, *phi.shape[1:], order="F")

    def bound(self, phi: FloatArray) -> float:
        """An upper bound of the largest absolute value of B phi, for phi (p,), in a fraction of its time.

        A row of orthonormal contrasts is at most 1 long, so an effect moves a potential of a table by no more than its
        share of the length of its parameters.
        """
        starts, shares = self._lengths
        return float((shares @ np.sqrt(np.add.reduceat(phi**2, starts))).max()) if self.size else 0.0

    def matrix(self) -> FloatArray:
        """B, (cells, p), each column in one piece."""
        return self.potentials(np.eye(self.size))

    def statistics(self, tables: FloatArray) -> FloatArray:
        """B'y: (cells,) or (cells, m) to (p,) or (p, m), each column in one piece."""
        columns = tables.reshape(self.structure.cells, math.prod(tables.shape[1:]))
        reduced = np.empty((self.size, columns.shape[1]), order="F")
        for some in self._batches(columns.shape[1]):
            reduced[:, some] = self._means @ self._products.of(columns[:, some])
        return reduced.reshape(self.size, *tables.shape[1:], order="F")

    def _batches(self, vectors: int) -> Iterator[slice]:
        step = min(_AT_ONCE, max(1, _CELLS_AT_ONCE // max(1, self.structure.cells)))
        return (slice(low, low + step) for low in range(0, vectors, step))

    def parameters(self, potentials: Tables) -> FloatArray:
        """The phi (p,) of a model, over other cliques of the domain perhaps; 0 for effects that it has not.

        The constant does not count: the model of these parameters is the same.
        """
        phi, effects = np.zeros(self.size), _effects_of(potentials.structure)
        products = _Products(potentials.structure, self.bins)
        coefficients = products.of(np.asarray(potentials.values, dtype=np.float64)[:, None])[:, 0]
        for effect in self.effects:
            for number, order in effects.get(effect.cliques, ()):
                share = math.prod(effect.shape) / potentials.structure.sizes[number]
                phi[effect.part] += share * coefficients[products.places(number, order)]
        return phi

    @cached_property
    def by_table(self) -> tuple[tuple[tuple[slice, ...], FloatArray], ...]:
        """For each table the parameters it tells about, and its rows of B in their columns (cells, q)."""
        tables = []
        axes_of = axes_of_tables(self.structure, self.bins)
        for number, (where, axes) in enumerate(zip(self.structure.slices, axes_of, strict=True)):
            here = [(one.part, holder) for one in self.effects for holder in one.holders if holder.group == number]
            whole: FloatArray = np.ones((1, 1))
            for size, bins in axes:
                whole = np.asarray(np.kron(whole, _with_ones(size, bins)), np.float64)
            rows = [
                holder.share * whole[:, _coefficients(self.structure, number, holder.order) - where.start]
                for _, holder in here
            ]
            columns = np.concatenate(rows, axis=1) if rows else np.empty((where.stop - where.start, 0))
            tables.append((tuple(part for part, _ in here), columns))
        return tuple(tables)

    @cached_property
    def _products(self) -> _Products:
        return _Products(self.structure, self.bins)

    @cached_property
    def _roles(self) -> tuple[IntArray, FloatArray]:
        """For each coefficient the parameter it tells about and its share; 0 where it tells about none: (cells,)."""
        parameter, share = np.zeros(self.structure.cells, np.intp), np.zeros(self.structure.cells)
        for effect in self.effects:
            for holder in effect.holders:
                places = self._products.places(holder.group, holder.order)
                parameter[places] = np.arange(effect.part.start, effect.part.stop)
                share[places] = holder.share
        return parameter, share

    @cached_property
    def _lengths(self) -> tuple[IntArray, csr_array]:
        """Where the parameters of each effect start, and its share in each table, (tables, effects)."""
        holders = [(place, one) for place, effect in enumerate(self.effects) for one in effect.holders]
        where = [one.group for _, one in holders], [place for place, _ in holders]
        shape = (len(self.structure.groups), len(self.effects))
        starts = np.array([effect.part.start for effect in self.effects], dtype=np.intp)
        return starts, csr_array(([one.share for _, one in holders], where), shape=shape)

    @cached_property
    def _means(self) -> csr_array:
        """What turns coefficients into parameters, (p, cells)."""
        [places] = np.nonzero(self._roles[1])
        entries = self._roles[1][places], (self._roles[0][places], places)
        return csr_array(entries, shape=(self.size, self.structure.cells))


def basis_of(release: NoisyTables) -> Basis:
    """The basis for the release's structure and noise; tied groups have the effects of their shared tables."""
    structure = release.structure
    variances = np.maximum(release.variances, _LEAST_VARIANCE)
    # Tied cliques have other attributes on the same axis.
    bins = bins_of(release) if max(structure.multiplicities) == 1 and not release.contrasts else {}
    effects: list[Effect] = []
    columns: list[tuple[float, ...]] = []
    waves = [np.ones(0)]
    group_of, groups = _groups(structure)
    start = 0
    for cliques, tables in _effects_of(structure).items():
        shape = structure.domain.shape(cliques[0])
        # A contrast is of all attributes of its table, and filled up with other tables' words.
        places = [one for one in tables if not release.contrasts or len(one[1]) == len(structure.shapes[one[0]])]
        if not places:
            continue
        size = math.prod(labels - 1 for labels in shape)
        cells = math.prod(shape)
        # A contrast of a margin has the noise of all the cells summed into it.
        outside = np.array([structure.sizes[number] // cells for number, _ in places])
        precision = 1.0 / (variances[[number for number, _ in places]] * outside)
        shares = precision / precision.sum()
        holders = tuple(map(partial(_holder, structure), places, shares.tolist()))
        effects.append(Effect(cliques=cliques, holders=holders, shape=shape, part=slice(start, start + size)))
        start += size
        columns += [(group_of[cliques], 1 / precision.sum(), 1 / np.sum(1 / outside))] * size
        variances_of = [
            prior_variances(labels, bins.get(name, 0)) for name, labels in zip(cliques[0], shape, strict=True)
        ]
        waves.append(functools.reduce(np.multiply.outer, variances_of).ravel())
    table = np.array(columns).reshape(-1, 3)
    return Basis(
        structure=structure,
        effects=tuple(effects),
        size=start,
        group=table[:, 0].astype(np.intp),
        groups=groups,
        variances=table[:, 1],
        weights=table[:, 2],
        waves=np.concatenate(waves),
        bins=bins,
    )


def group_count(structure: Structure) -> int:
    """Return the number of prior scales: one for all main effects, one for each clique that has interactions.

    >>> from dpgm_core import Domain
    >>> group_count(Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2))))
    3
    """
    return _groups(structure)[1]


def effect_shapes(structure: Structure) -> list[tuple[int, ...]]:
    """The labels of each effect's attributes.

    >>> from dpgm_core import Domain
    >>> effect_shapes(Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")]))
    [(2,), (3,), (2, 3)]
    """
    return [structure.domain.shape(cliques[0]) for cliques in _effects_of(structure)]


def _groups(structure: Structure) -> tuple[dict[tuple[Clique, ...], int], int]:
    """Each effect's group, 0 for main effects, else that of the smallest table that tells about it; how many."""
    hosts: dict[int, int] = {}
    groups = {}
    for cliques, places in _effects_of(structure).items():
        host = min(places, key=lambda place: structure.sizes[place[0]])[0]
        groups[cliques] = 0 if len(cliques[0]) == 1 else hosts.setdefault(host, len(hosts) + 1)
    return groups, len(hosts) + 1


def _effects_of(structure: Structure) -> dict[tuple[Clique, ...], list[tuple[int, tuple[int, ...]]]]:
    """Each effect, named by the cliques it is summed over, and the tables that tell about it with its axes there."""
    effects: dict[tuple[Clique, ...], list[tuple[int, tuple[int, ...]]]] = {}
    for number, group in enumerate(structure.groups):
        live = [axis for axis, size in enumerate(structure.shapes[number]) if size > 1]
        for order in range(1, len(live) + 1):
            for chosen in itertools.combinations(live, order):
                # In the order of axes that names it first: equal statistics of different tables are one effect. That
                # order sorts one of the group's cliques, so no other of the many orders is looked at.
                orders = {tuple(sorted(chosen, key=clique.__getitem__)) for clique in group}
                cliques, axes = min(
                    (tuple(sorted(tuple(clique[axis] for axis in axes) for clique in group)), axes) for axes in orders
                )
                effects.setdefault(cliques, []).append((number, axes))
    return effects


def _holder(structure: Structure, place: tuple[int, tuple[int, ...]], share: float) -> Holder:
    number, order = place
    axes = range(len(structure.shapes[number]))
    summed_axes = tuple(axis for axis in axes if axis not in order)
    return Holder(group=number, share=share, order=order, summed_axes=summed_axes)


def _coefficients(structure: Structure, number: int, order: tuple[int, ...]) -> IntArray:
    """Where the products of the contrasts of these axes stand among all products of all tables, in the order of cells.

    The first of an axis is the sum, the others are its contrasts; those of the effect are in the effect's order.
    """
    where, shape = structure.slices[number], structure.shapes[number]
    here = np.arange(where.start, where.stop).reshape(shape)
    here = here[tuple(slice(1, None) if axis in order else 0 for axis in range(len(shape)))]
    ascending = sorted(order)
    return here.transpose([ascending.index(axis) for axis in order]).ravel()


@lru_cache(maxsize=256)
def _with_ones(size: int, bins: int) -> FloatArray:
    """[1, contrasts], (size, size)."""
    matrix = np.hstack([np.ones((size, 1)), contrasts(size, bins)])
    matrix.flags.writeable = False
    return matrix


def _as_contrasts(axis: Axis, labels: FloatArray) -> FloatArray:
    """Return the sum and the contrasts of the first axis."""
    size = axis[0]
    if size <= WIDE:
        product: FloatArray = np.matmul(_with_ones(*axis).T, labels)
        return product
    heights, counts = _heights(np.arange(size - 1))[:, None], np.arange(1.0, size)[:, None]
    sums = np.cumsum(labels, axis=0)
    differences = (sums[:-1] - counts * labels[1:]) * heights
    return np.concatenate([sums[-1:], differences])


def _as_labels(axis: Axis, coefficients: FloatArray) -> FloatArray:
    """Return the sum of these multiples of 1 and of each contrast of the labels, along the first axis."""
    size = axis[0]
    if size <= WIDE:
        product: FloatArray = np.matmul(_with_ones(*axis), coefficients)
        return product
    weighted = coefficients[1:] * _heights(np.arange(size - 1))[:, None]
    labels = np.repeat(coefficients[:1], size, axis=0)
    labels[:-1] += np.cumsum(weighted[::-1], axis=0)[::-1]
    labels[1:] -= np.arange(1.0, size)[:, None] * weighted
    return labels


def _along(
    columns: FloatArray, parts: tuple[tuple[slice, Axis], ...], product: Callable[[Axis, FloatArray], FloatArray]
) -> FloatArray:
    """Replace the entries of each part (entries, m) by their `product`, by as many as its axis has labels."""
    for where, axis in parts:
        if axis[0] > 1:
            entries = columns[where]
            entries[...] = product(axis, entries.reshape(axis[0], -1)).reshape(entries.shape)
    return columns
