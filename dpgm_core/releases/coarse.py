"""Releases over merged codes: tables are summed by block. Post-processing, free.

A merged cell holds the noise of all cells in its block, so its variance is as many times theirs; our contract of noise
is one variance per table. The view states the mean over its cells: squares summed over a table are then expected right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from attrs import evolve, frozen

from dpgm_core.arrays import Array, FloatArray, IntArray
from dpgm_core.errors import BudgetError, StructureError
from dpgm_core.noise.calibration import Calibration
from dpgm_core.noise.contract import Noise
from dpgm_core.noise.measurement import Measurement
from dpgm_core.randomness import Randomness
from dpgm_core.releases.derived import DerivedNoise
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

__all__ = ["SummedNoise", "block_sums", "cell_variances", "cells_as_drawn", "check_untouched", "coarsened"]


@frozen(kw_only=True)
class SummedNoise(DerivedNoise):
    """The noise of one table that was summed by block; for learning, never for a release.

    noise: of each cell that was summed. blocks: how many of them each cell of the table holds, in the table's order.
    Variance and density are those of the mean cell, and the density is the Gaussian, to which sums of noise tend; draws
    have the true law, cell by cell.

    >>> from dpgm_core import Budget, Sensitivity, make
    >>> noise = make("mechanism", "laplace").noise(Sensitivity(l0=1, l1=1, l2_squared=1, linf=1), Budget.pure(1))
    >>> SummedNoise(noise=noise, blocks=(1, 3)).variance / noise.variance
    2.0
    """

    noise: Noise
    blocks: tuple[int, ...]

    @property
    def variance(self) -> float:
        """records**2, the mean over the cells."""
        return self.noise.variance * sum(self.blocks) / len(self.blocks)

    @property
    def exact(self) -> bool:
        """Whether draws are whole numbers, as sums of whole numbers are."""
        return self.noise.exact

    @property
    def unsafe(self) -> str | None:
        """That of the noise as it was drawn."""
        return self.noise.unsafe

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Fresh noise of each cell's block, summed. shape: of as many cells as there are blocks. BudgetError else."""
        if math.prod(shape) != len(self.blocks):
            raise BudgetError(f"summed noise is of one table of {len(self.blocks)} cells, it has none of shape {shape}")
        drawn = self.noise.draw((sum(self.blocks),), randomness)
        starts = np.cumsum((0, *self.blocks[:-1]))
        return np.asarray(np.add.reduceat(drawn, starts)).reshape(shape)


def coarsened(release: NoisyTables, merges: Mapping[str, Sequence[int]]) -> NoisyTables:
    """The release over its domain `coarsened`; itself if nothing is merged.

    merges: attribute -> the new code of each of its codes. Tables without such an attribute keep their numbers and
    their noise. Raises DomainError for merges that are none, StructureError for attributes that share a table and are
    merged otherwise, and for those whose contrasts were measured.

    >>> from dpgm_core import Budget, Domain, SeededRandomness, release
    >>> structure = Structure(Domain.from_sizes({"a": 3, "b": 2}), [("a",), ("b",)])
    >>> noisy = release(np.array([[0, 0], [1, 1], [2, 1]]), structure, Budget.pure(1), neighbours="add-remove",
    ...     randomness=SeededRandomness(0))
    >>> coarse = coarsened(noisy, {"a": [0, 1, 1]})
    >>> coarse.tables["a"].tolist() == [noisy.tables["a"][0], noisy.tables["a"][1:].sum()]
    True
    >>> (coarse.variances / noisy.variances).tolist(), coarse.published == (noisy,)
    ([1.5, 1.0], True)
    """
    fine = release.structure
    domain = fine.domain.coarsened(merges)
    codes = {name: np.asarray(merges[name]) for name in merges if domain[name] != fine.domain[name]}
    if not codes:
        return release
    if release.contrasts:
        check_untouched(fine, codes)
    for group in fine.groups:
        _check_tied(group, codes)
    structure = Structure(domain, [], tied=fine.groups)
    parts: list[Array] = []
    calibrations: dict[tuple[int, int], Calibration] = {}
    of_group: list[int] = []
    for group, table, number in zip(fine.groups, release.tables.arrays(), release.measurement.of_group, strict=True):
        blocks: Array = np.ones(table.shape, dtype=np.int64)
        for axis, name in enumerate(group[0]):
            if name in codes:
                table, blocks = (block_sums(one, axis, codes[name]) for one in (table, blocks))
        parts.append(table.reshape(-1))
        one, key = release.calibrations[number], (number, -1)
        if blocks.max() > 1:
            # A calibration of its own: what shares one is drawn at once, and this is the noise of one table.
            key = (number, len(of_group))
            noise = SummedNoise(noise=one.noise, blocks=tuple(map(int, blocks.reshape(-1))))
            one = evolve(one, noise=noise, component=None, options={})
        calibrations.setdefault(key, one)
        of_group.append(list(calibrations).index(key))
    return evolve(
        release,
        tables=Tables(structure, np.concatenate(parts)),
        measurement=Measurement(
            structure=structure,
            calibrations=tuple(calibrations.values()),
            of_group=tuple(of_group),
            together=release.measurement.together,
            contrasts=release.contrasts,
        ),
        original=release.original or release,
        modelled=None,  # over the codes as they were
    )


def cells_as_drawn(release: NoisyTables) -> list[tuple[int, float]]:
    """How many cells each table had when its noise was drawn, and the variance of one of them, records**2.

    Of a table whose labels were merged later these are the cells before: merged ones have unequal noise, and neither
    their mean variance nor their mean count tells how well a cell is known.

    >>> from dpgm_core import Budget, Domain, Structure, release
    >>> structure = Structure(Domain.from_sizes({"a": 3}), [("a",)])
    >>> noisy = release(np.array([[0], [1], [2]]), structure, Budget.pure(1), neighbours="add-remove")
    >>> cells_as_drawn(coarsened(noisy, {"a": [0, 1, 1]})) == cells_as_drawn(noisy)
    True
    """
    stated = zip(release.structure.sizes, release.variances.tolist(), strict=True)
    return [
        (sum(noise.blocks), noise.noise.variance) if isinstance(noise, SummedNoise) else (cells, variance)
        for noise, (cells, variance) in zip(release.noise, stated, strict=True)
    ]


def cell_variances(release: NoisyTables, clique: Clique) -> FloatArray:
    """The noise variance of each cell of a table, records**2, axes as in `clique`: a merged cell has that of all in it.

    >>> from dpgm_core import Budget, Domain, Structure, release
    >>> structure = Structure(Domain.from_sizes({"a": 3}), [("a",)])
    >>> noisy = release(np.array([[0], [1], [2]]), structure, Budget.pure(1), neighbours="add-remove")
    >>> (cell_variances(coarsened(noisy, {"a": [0, 1, 1]}), ("a",)) / noisy.variances).tolist()
    [1.0, 2.0]
    """
    number = release.structure.find(clique)[0]
    noise, shape = release.noise[number], release.structure.shapes[number]
    if not isinstance(noise, SummedNoise):
        return np.full(release.structure.domain.shape(clique), release.variances[number])
    order = [release.structure.groups[number][0].index(name) for name in clique]
    return noise.noise.variance * np.array(noise.blocks, np.float64).reshape(shape).transpose(order)


def block_sums(table: Array, axis: int, codes: IntArray) -> Array:
    """The table with one axis summed by block. codes: the block of each place on it, 0, 1, ... without gaps.

    >>> block_sums(np.array([[1, 2, 3], [4, 5, 6]]), 1, np.array([0, 1, 1])).tolist()
    [[1, 5], [4, 11]]
    """
    moved = np.moveaxis(table, axis, 0)
    summed = np.zeros((int(codes.max()) + 1, *moved.shape[1:]), dtype=table.dtype)
    np.add.at(summed, codes, moved)
    return np.moveaxis(summed, 0, axis)


def check_untouched(measured: Structure, merged: Iterable[str]) -> None:
    """Refuse, with StructureError, to merge the two labels of an attribute whose contrasts were measured."""
    names = {name for clique in measured.cliques for name in clique}
    touched = [name for name in merged if name in names]
    if touched:
        raise StructureError(
            f"labels of {touched[0]!r} cannot be merged: contrasts of it were measured, which tell its two labels apart"
        )


def _check_tied(group: tuple[Clique, ...], codes: Mapping[str, IntArray]) -> None:
    for names in zip(*group, strict=True):
        if len({tuple(codes[name]) if name in codes else None for name in names}) > 1:
            raise StructureError(
                f"attributes {', '.join(map(repr, names))} stand in one place of a shared table, so their codes can "
                "only be merged alike; merge all of them so, or none"
            )
