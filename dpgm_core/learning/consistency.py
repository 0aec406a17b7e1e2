"""Consistency of noisy tables: the nearest tables whose shared margins agree, by least squares."""

from __future__ import annotations

import itertools
import math

import numpy as np

from dpgm_core._util.arrays import FloatArray
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.tables import Tables

__all__ = ["consistent"]

#: Projections on tables that agree, and on those without impossible cells, until these hold no more than this part.
_MAX_PROJECTIONS = 200
_ROUNDING_SHARE = 1e-9


def consistent(tables: Tables, variances: FloatArray | None = None) -> Tables:
    """Return the nearest tables (least squares over all cells) whose shared margins agree.

    Parameters
    ----------
    tables : Tables
        One table per clique, any units; tied groups are not changed.
    variances : array (groups,), optional
        Of the noise in a cell of each group, in any common unit; they divide the squares. None: all equal.

    Returns
    -------
    Tables
        May be negative; 0 where constraints of the domain allow no record (by alternating projections, von Neumann
        1950).

    Notes
    -----
    Unweighted this is the orthogonal projection on the span of the model's statistics, so it changes no
    maximum-likelihood fit, but removes the directions along which the likelihood would fall forever; weighted it lets
    tables of little noise count for more. With e_S^C the pure interaction of attributes S in table C, K the cells of C
    outside S and v its variance, the agreed interaction is sum_C e_S^C / (K v) over sum_C 1 / (K v).

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
    >>> from dpgm_core.structure import Structure
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a",), ("a", "b")])
    >>> both = consistent(Tables(structure, np.array([3.0, 1, 1, 1, 1, 1])))
    >>> bool(np.allclose(both["a"], both["a", "b"].sum(axis=1)))
    True
    """
    impossible = tables.structure.impossible
    if impossible is None:
        return _with_agreed_margins(tables, variances)
    scale = float(np.abs(tables.values).max())
    for _ in range(_MAX_PROJECTIONS):
        tables = _with_agreed_margins(tables, variances)
        left = float(np.abs(tables.values[impossible]).max())
        tables = tables.like(np.where(impossible, 0.0, tables.values))
        if left <= _ROUNDING_SHARE * scale:
            break
    return tables


def _with_agreed_margins(tables: Tables, variances: FloatArray | None) -> Tables:
    structure = tables.structure
    values = tables.values.astype(np.float64)
    # Relative to the largest: exactly 1 where all are the same, so that then weights change no digit.
    relative = np.ones(len(structure.groups)) if variances is None else variances / np.max(variances)
    holders: dict[frozenset[str], list[int]] = {}
    for number, group in enumerate(structure.groups):
        if len(group) == 1:
            for count in range(len(group[0]) + 1):
                for subset in itertools.combinations(group[0], count):
                    holders.setdefault(frozenset(subset), []).append(number)
    for shared, numbers in holders.items():
        if len(numbers) < 2:
            continue
        names = tuple(sorted(shared))
        effects = [_interaction(tables.group(number), structure.groups[number][0], names) for number in numbers]
        outside = [structure.sizes[number] // math.prod(structure.domain.shape(names)) for number in numbers]
        spreads = [cells * float(relative[number]) for cells, number in zip(outside, numbers, strict=True)]
        weight = sum(1 / spread for spread in spreads)
        agreed = sum(effect / spread for effect, spread in zip(effects, spreads, strict=True)) / weight
        for number, effect, cells in zip(numbers, effects, outside, strict=True):
            clique = structure.groups[number][0]
            block = values[structure.slices[number]].reshape(structure.shapes[number])
            block += _align_axes((agreed - effect) / cells, names, clique)
    return Tables(structure, values)


def _interaction(table: FloatArray, clique: Clique, names: Clique) -> FloatArray:
    """The margin on `names`, centred along each of its axes: their pure interaction."""
    outside = tuple(axis for axis, name in enumerate(clique) if name not in names)
    left = [name for name in clique if name in names]
    summed: FloatArray = np.asarray(table.sum(axis=outside, dtype=np.float64))
    margin = summed.transpose([left.index(name) for name in names])
    for axis in range(len(names)):
        margin = margin - margin.mean(axis=axis, keepdims=True)
    return margin


def _align_axes(effect: FloatArray, names: Clique, clique: Clique) -> FloatArray:
    """The effect with axes in the clique's order and length-1 axes for the other attributes."""
    order = [names.index(name) for name in clique if name in names]
    ordered = effect.transpose(order)
    sizes = iter(ordered.shape)
    aligned: FloatArray = ordered.reshape([next(sizes) if name in names else 1 for name in clique])
    return aligned
