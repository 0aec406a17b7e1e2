"""Views of a release that learners see: consistent tables, coarser codes, and derived tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from attrs import evolve, frozen

from dpgm_core._util.arrays import Array, FloatArray, IntArray
from dpgm_core._util.randomness import Randomness
from dpgm_core.errors import BudgetError, InferenceError, StructureError
from dpgm_core.privacy.contrasts import spread
from dpgm_core.privacy.measurement import Measurement
from dpgm_core.privacy.mechanism import Calibration, DerivedNoise, Noise, ScaledNoise
from dpgm_core.privacy.ranges import RangeNoise
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = [
    "SummedNoise",
    "block_sums",
    "cell_variances",
    "cells_as_drawn",
    "check_untouched",
    "coarsened",
    "emptied",
    "equalize_totals",
    "implausible",
    "plausible",
]


# --- Normalised contributions: all tables in persons, of one total --------------------------------
# Weighted tables need not sum to the same: a person may add nothing to one and much to another. Learners know one total
# only. So each table is multiplied by what brings its own noisy sum to m_g N, and its noise with it (post-processing).


def equalize_totals(release: NoisyTables) -> NoisyTables:
    """The release in persons, each group's table brought to m_g N by its own noisy sum; itself if it counts records.

    The sampling variance that learners derive from `total`, one record drawn per person, is nominal: a person's rows
    count together as one.
    """
    if release.contributions is None:
        return release
    structure = release.structure
    factors = release.total * np.asarray(structure.multiplicities, np.float64) / release.totals
    return evolve(
        release,
        tables=Tables(structure, release.tables.values * release.tables.repeat(factors)),
        measurement=Measurement(
            structure=structure,
            calibrations=tuple(
                evolve(
                    release.calibrations[number],
                    noise=ScaledNoise(noise=noise, factor=float(factor)),
                    component=None,
                    options={},
                )
                for noise, factor, number in zip(release.noise, factors, release.measurement.of_group, strict=True)
            ),
            of_group=tuple(range(len(factors))),
            together=release.measurement.together,
        ),
        terms=evolve(release.terms, contributions=None),
        original=release,
    )


# --- Merged codes: tables summed by block (post-processing) ---------------------------------------
# A merged cell holds the noise of all cells in its block, so its variance is as many times theirs; our contract of
# noise is one variance per table. The view states the mean over its cells: squares summed over a table are then
# expected right.


@frozen(kw_only=True)
class SummedNoise(DerivedNoise):
    """The noise of one table that was summed by block; for learning, never for a release.

    noise: of each cell that was summed. blocks: how many of them each cell of the table holds, in the table's order.
    Variance and density are those of the mean cell, and the density is the Gaussian, to which sums of noise tend; draws
    have the true distribution, cell by cell.

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
        if isinstance(one.noise, RangeNoise) and blocks.max() > 1:
            key = (number, len(of_group))
            one = evolve(one, noise=one.noise.merged(codes[group[0][0]]), component=None, options={})
        elif blocks.max() > 1:
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
    """
    stated = zip(release.structure.sizes, release.variances.tolist(), strict=True)
    return [
        (sum(noise.blocks), noise.noise.variance) if isinstance(noise, SummedNoise) else (cells, variance)
        for noise, (cells, variance) in zip(release.noise, stated, strict=True)
    ]


def cell_variances(release: NoisyTables, clique: Clique) -> FloatArray:
    """The noise variance of each cell, records**2, axes as in `clique`: a merged cell has that of all in it."""
    number = release.structure.find(clique)[0]
    noise, shape = release.noise[number], release.structure.shapes[number]
    if isinstance(noise, RangeNoise):
        return np.diag(noise.covariance)
    if not isinstance(noise, SummedNoise):
        return np.full(release.structure.domain.shape(clique), release.variances[number])
    order = [release.structure.groups[number][0].index(name) for name in clique]
    return noise.noise.variance * np.array(noise.blocks, np.float64).reshape(shape).transpose(order)


def block_sums(table: Array, axis: int, codes: IntArray) -> Array:
    """The table with one axis summed by block. codes: the block of each place on it, 0, 1, ... without gaps."""
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


# --- Plausible tables: cells within reach of their noise, 0 where constraints allow none ----------
# A file may hold any number, and a public total may be wrong: one cell of 2^62 among counts of some hundred would only
# keep a learner busy. An honest release is never changed: by the noise's own distribution a cell is beyond its reach
# with a chance below 1e-24. Counts where no record is possible are noise alone, and taken as 0; files keep what was
# drawn. N is estimated from all cells: the noise of those has mean 0, and what records that break a constraint add to
# them belongs to N, so a sum without them would be too small.

#: How much less likely than no noise is never seen, nats; at the reach of Laplace or Gaussian noise e^-60 is 1e-26.
_NEVER_NATS = 60.0
#: Reach of an estimated total, standard deviations.
_TOTAL_DEVIATIONS = 12.0
#: Counts are int64, so no more records than this were counted.
_MAX_RECORDS = 2.0**62


def plausible(release: NoisyTables) -> NoisyTables:
    """The release with cells that its noise cannot have made moved to where it can, and 0 where constraints allow no
    record; itself if there are none.

    A cell of group g lies within m_g N and 0 and the reach of its noise beyond, a contrast within N and -N; of sums of
    clipped scores nothing is known. Raises InferenceError for a total above 2^62 records.
    """
    near = _within(release)
    if near.contrasts or not _of_counts(near):  # of products of codes every record has its part
        return near
    tables = emptied(near.tables)
    return near if tables is near.tables else evolve(near, tables=tables, original=near.original or near)


def emptied(tables: Tables) -> Tables:
    """The tables with 0 in all cells that constraints of the domain rule out; the same ones where that is so.

    >>> from dpgm_core import Domain, Structure
    >>> rule = {"x": {"columns": ["a"], "impossible": [["1"]]}}
    >>> domain = Domain.from_dict({"attributes": {"a": {"size": 2, "unknown": 0}}, "constraints": rule})
    >>> emptied(Tables(Structure(domain, [("a",)]), np.array([3, -2])))["a"].tolist()
    [3, 0]
    """
    impossible = tables.structure.impossible
    if impossible is None or not tables.values[impossible].any():
        return tables
    return tables.like(np.where(impossible, tables.values.dtype.type(0), tables.values))


def _within(release: NoisyTables) -> NoisyTables:
    if release.total > _MAX_RECORDS:
        raise InferenceError(
            f"the release states {release.total:.3g} records, more than can be counted; it is damaged or made up"
        )
    if not _of_counts(release):
        return release
    low, high = _limits(release)
    values = release.measured
    beyond = (values < low) | (values > high)
    if not beyond.any():
        return release
    moved = values.copy()
    moved[beyond] = np.rint(np.where(values < low, low, high)[beyond]).astype(values.dtype)
    structure = release.structure
    tables = spread(structure, moved, release.total) if release.contrasts else Tables(structure, moved)
    return evolve(release, tables=tables, original=release.original or release)


def implausible(release: NoisyTables) -> int:
    """How many cells, or contrasts, `plausible` moves because its noise cannot have made them."""
    seen = _within(release)
    return 0 if seen is release else int(np.sum(seen.measured != release.measured))


def _of_counts(release: NoisyTables) -> bool:
    return release.round is None or release.round.clip is None


def _limits(release: NoisyTables) -> tuple[FloatArray, FloatArray]:
    """The least and the most of each cell, (cells,), or contrast, (groups,), in the unit of the tables."""
    most = release.total + _TOTAL_DEVIATIONS * math.sqrt(release.total_variance)
    reach = np.array([_reach(one.noise) for one in release.calibrations])[list(release.measurement.of_group)]
    if release.contrasts:
        return -most - reach, most + reach
    tied = np.asarray(release.structure.multiplicities, dtype=np.float64)
    # A table of normalised contributions was brought to m_g N by its own noisy sum.
    sums = _TOTAL_DEVIATIONS * np.sqrt(np.asarray(release.structure.sizes) * release.variances)
    return release.tables.repeat(-reach), release.tables.repeat(tied * most + sums + reach)


def _reach(noise: Noise) -> float:
    """A distance that its draws stay within, records: the least power of two in standard deviations that will do."""
    if all(map(math.isfinite, noise.support)):
        return max(map(abs, noise.support))
    if isinstance(noise, SummedNoise):  # its density is that of the mean cell, and the largest block reaches further
        return _reach(noise.noise) * max(noise.blocks)
    if isinstance(noise, RangeNoise):
        return noise.gain * _reach(noise.noise)
    distances: FloatArray = np.asarray(math.sqrt(noise.variance) * 2.0 ** np.arange(64), dtype=np.float64)
    density = np.maximum(noise.logpdf(distances), noise.logpdf(-distances))
    never = density <= float(noise.logpdf(np.zeros(1))[0]) - _NEVER_NATS
    return float(distances[never.argmax()]) if never.any() else math.inf
