"""The identifiable parameters of a structure: main effects and interactions in orthonormal contrasts (ANOVA).

An *effect* is a set of attributes inside some clique; its parameters are the products of orthonormal contrasts of
its attributes, so that no two effects say the same. Cliques that contain the effect share its parameters. The noisy
tables tell about an effect as often as cliques contain it; the reduced statistics z are the means of these tellings,
weighted by their precision, and the potentials theta = B phi are spread with the same weights. Where contrasts were
released, sums of products of binary attributes, each table tells about the effect of all its attributes alone.
"""

from __future__ import annotations

import itertools
import math
from functools import cached_property, lru_cache, partial

import numpy as np
from attrs import evolve, frozen
from scipy.sparse import coo_array, csr_array

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
_MOST_ENTRIES = 2**15  # B is written out, for few vectors, of effects with no more entries than these
_FEW = 64  # vectors
_NONE = np.empty(0, dtype=np.intp)
#: Labels; of an attribute that has more the matrix of contrasts, of the order of their square, is never made.
WIDE = 256


@frozen(kw_only=True)
class Holder:
    """A table that tells about an effect.

    group: whose table. share: of its word among all holders. order: the table's axes as the effect has them.
    summed_axes: the other axes. spread: the shape that broadcasts over them.
    """

    group: int
    share: float
    order: tuple[int, ...]
    summed_axes: tuple[int, ...]
    spread: tuple[int, ...]

    def margin(self, table: FloatArray) -> FloatArray:
        """Return the margin of a table with one more axis, axes as the effect has them."""
        summed = table.sum(axis=self.summed_axes) if self.summed_axes else table
        return summed.transpose(*_ranks(self.order), len(self.order))

    def spread_out(self, margin: FloatArray) -> FloatArray:
        """The effect's table with the axes of the holder's, to be broadcast."""
        ascending = sorted(range(len(self.order)), key=self.order.__getitem__)
        return margin.transpose(*ascending, len(self.order)).reshape(*self.spread, -1)


@lru_cache(maxsize=1024)
def _ranks(order: tuple[int, ...]) -> tuple[int, ...]:
    ascending = sorted(order)
    return tuple(ascending.index(axis) for axis in order)


@lru_cache(maxsize=256)
def contrasts(size: int) -> FloatArray:
    """(size, size - 1): orthonormal columns that sum to 0 (Helmert's).

    >>> contrasts(3).round(3).tolist()
    [[0.707, 0.408], [-0.707, 0.408], [0.0, -0.816]]
    """
    matrix = np.zeros((size, size - 1))
    for column in range(size - 1):
        matrix[: column + 1, column] = 1.0
        matrix[column + 1, column] = -(column + 1.0)
        matrix[:, column] /= math.sqrt((column + 1) * (column + 2))
    matrix.flags.writeable = False
    return matrix


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


@frozen(kw_only=True, eq=False, slots=False)
class Basis:
    """theta = B phi and z = B'y; a product of small matrices per effect.

    size: number of parameters p. group: of each parameter (p,), 0 for main effects, else its clique's. groups: how
    many. variances: of z, records**2 (p,). weights: the prior precision of each parameter if that of each potential
    is 1 (p,).
    """

    structure: Structure
    effects: tuple[Effect, ...]
    size: int
    group: np.ndarray[tuple[int], np.dtype[np.intp]]
    groups: int
    variances: FloatArray
    weights: FloatArray

    def potentials(self, phi: FloatArray) -> FloatArray:
        """B phi: (p,) or (p, m) to (cells,) or (cells, m)."""
        if phi.ndim > 1 and phi.shape[1] > _FEW:
            return self._spread(phi, self.effects)
        written, _, others = self._written
        theta: FloatArray = written @ phi
        return theta + self._spread(phi, others) if others else theta

    def matrix(self) -> FloatArray:
        """B, (cells, p), each column in one piece."""
        _, written, others = self._written
        matrix: FloatArray = written.toarray().T
        if others:
            matrix += self._spread(np.eye(self.size), others)
        return matrix

    def _spread(self, phi: FloatArray, effects: tuple[Effect, ...]) -> FloatArray:
        count = math.prod(phi.shape[1:])
        columns = phi.reshape(self.size, count)
        theta = np.zeros((self.structure.cells, count))
        for effect in effects:
            table = columns[effect.part].reshape(*(size - 1 for size in effect.shape), count)
            for axis, size in enumerate(effect.shape):
                table = _as_labels(size, table, axis)
            for holder in effect.holders:
                self._block(theta, holder.group)[...] += holder.spread_out(holder.share * table)
        return theta.reshape(self.structure.cells, *phi.shape[1:])

    def statistics(self, tables: FloatArray) -> FloatArray:
        """B'y: (cells,) or (cells, m) to (p,) or (p, m)."""
        if tables.ndim > 1 and tables.shape[1] > _FEW:
            return self._reduced(tables, self.effects)
        _, written, others = self._written
        statistics: FloatArray = written @ tables
        return statistics + self._reduced(tables, others) if others else statistics

    def parameters(self, potentials: Tables) -> FloatArray:
        """The phi (p,) of a model, over other cliques of the domain perhaps; 0 for effects that it has not.

        The constant does not count: the model of these parameters is the same.
        """
        phi, effects = np.zeros(self.size), _effects_of(potentials.structure)
        for effect in self.effects:
            table = np.zeros((*effect.shape, 1))
            for number, order in effects.get(effect.cliques, ()):
                holder = _holder(potentials.structure, (number, order), 1.0)
                margin = holder.margin(potentials.group(number)[..., None])
                table = table + margin * (table.size / potentials.structure.sizes[number])
            for axis, size in enumerate(effect.shape):
                table = _as_contrasts(size, table, axis)
            phi[effect.part] = table.reshape(-1)
        return phi

    @cached_property
    def by_table(self) -> tuple[tuple[tuple[slice, ...], FloatArray], ...]:
        """For each table the parameters it tells about, and its rows of B in their columns (cells, q)."""
        tables = []
        for group, where in enumerate(self.structure.slices):
            own: list[Effect] = []
            parts: list[slice] = []
            for effect in self.effects:
                if holders := tuple(one for one in effect.holders if one.group == group):
                    low = own[-1].part.stop if own else 0
                    parts.append(effect.part)
                    part = slice(low, low + effect.part.stop - effect.part.start)
                    own.append(evolve(effect, holders=holders, part=part))
            size = own[-1].part.stop if own else 0
            rows = evolve(self, effects=(), size=size)._spread(np.eye(size), tuple(own))
            tables.append((tuple(parts), rows[where].copy()))
        return tuple(tables)

    @cached_property
    def _written(self) -> tuple[csr_array, csr_array, tuple[Effect, ...]]:
        """B and B' of small effects, by rows, and the others: a fit asks for hundreds of products with one vector, and
        many small ones take longer than one."""
        rows, columns, data, others = [], [], [], []
        for effect in self.effects:
            size = effect.part.stop - effect.part.start
            if size * sum(self.structure.sizes[one.group] for one in effect.holders) > _MOST_ENTRIES:
                others.append(effect)
                continue
            alone = evolve(self, effects=(), size=size)
            entries = coo_array(alone._spread(np.eye(size), (evolve(effect, part=slice(0, size)),)))
            rows.append(entries.row)
            columns.append(entries.col + effect.part.start)
            data.append(entries.data)
        places = (np.concatenate([_NONE, *rows]), np.concatenate([_NONE, *columns]))
        matrix = csr_array((np.concatenate([np.empty(0), *data]), places), shape=(self.structure.cells, self.size))
        return matrix, csr_array(matrix.T), tuple(others)

    def _reduced(self, tables: FloatArray, effects: tuple[Effect, ...]) -> FloatArray:
        columns = tables.reshape(self.structure.cells, math.prod(tables.shape[1:]))
        reduced = np.zeros((self.size, columns.shape[1]))
        for effect in effects:
            margins = (one.share * one.margin(self._block(columns, one.group)) for one in effect.holders)
            table = np.ascontiguousarray(sum(margins))
            for axis, size in enumerate(effect.shape):
                table = _as_contrasts(size, table, axis)
            reduced[effect.part] = table.reshape(-1, columns.shape[1])
        return reduced.reshape(self.size, *tables.shape[1:])

    def _block(self, columns: FloatArray, group: int) -> FloatArray:
        return columns[self.structure.slices[group]].reshape(*self.structure.shapes[group], -1)


def basis_of(release: NoisyTables) -> Basis:
    """The basis for the release's structure and noise; tied groups have the effects of their shared tables."""
    structure = release.structure
    variances = np.maximum(release.variances, _LEAST_VARIANCE)
    effects: list[Effect] = []
    columns: list[tuple[float, ...]] = []
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
    table = np.array(columns).reshape(-1, 3)
    return Basis(
        structure=structure,
        effects=tuple(effects),
        size=start,
        group=table[:, 0].astype(np.intp),
        groups=groups,
        variances=table[:, 1],
        weights=table[:, 2],
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
    shape = structure.shapes[number]
    return Holder(
        group=number,
        share=share,
        order=order,
        summed_axes=tuple(axis for axis in range(len(shape)) if axis not in order),
        spread=tuple(size if axis in order else 1 for axis, size in enumerate(shape)),
    )


def _as_labels(size: int, table: FloatArray, axis: int) -> FloatArray:
    """The matrix of contrasts applied along one axis, of `size` - 1 contrasts."""
    if size <= WIDE:
        return _along(contrasts(size), table, axis)
    moved = np.moveaxis(table, axis, 0)
    weighted = moved * _column(_heights(np.arange(size - 1)), moved)
    labels = np.zeros((size, *moved.shape[1:]))
    labels[:-1] = np.cumsum(weighted[::-1], axis=0)[::-1]
    labels[1:] -= _column(np.arange(1.0, size), moved) * weighted
    return np.moveaxis(labels, 0, axis)


def _as_contrasts(size: int, table: FloatArray, axis: int) -> FloatArray:
    """The transposed matrix of contrasts applied along one axis, of `size` labels."""
    if size <= WIDE:
        return _along(contrasts(size).T, table, axis)
    moved = np.moveaxis(table, axis, 0)
    sums = np.cumsum(moved[:-1], axis=0) - _column(np.arange(1.0, size), moved) * moved[1:]
    return np.moveaxis(sums * _column(_heights(np.arange(size - 1)), moved), 0, axis)


def _column(values: FloatArray, like: FloatArray) -> FloatArray:
    """Reshape to broadcast over all axes but the first."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


def _along(matrix: FloatArray, table: FloatArray, axis: int) -> FloatArray:
    """The matrix applied along one axis."""
    before, size, after = table.shape[:axis], table.shape[axis], table.shape[axis + 1 :]
    product = np.matmul(matrix, table.reshape(math.prod(before), size, math.prod(after)))
    applied: FloatArray = product.reshape(*before, len(matrix), *after)
    return applied
