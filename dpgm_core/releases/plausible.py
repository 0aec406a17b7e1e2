"""Noisy tables as learners see them: no cell further from what N records allow than its noise ever reaches, and none
where a constraint of the domain allows no record.

A file may hold any number, and a public total may be wrong. One cell of 2^62 among counts of some hundred says nothing
that a model could follow, but keeps a learner busy. A release that is what it says is never changed: by the noise's own
law a cell is beyond its reach with a chance below 1e-24. What is counted where no record can be is noise alone, and
taken as 0; files keep what was drawn. N is that of the release, estimated from all cells: the noise of those has mean
0, and what records that break a constraint add to them belongs to N, so a sum without them would be too small.
"""

from __future__ import annotations

import math

import numpy as np
from attrs import evolve

from dpgm_core.arrays import FloatArray
from dpgm_core.errors import InferenceError
from dpgm_core.noise.contract import Noise
from dpgm_core.noise.contrasts import spread
from dpgm_core.releases.coarse import SummedNoise
from dpgm_core.releases.release import NoisyTables
from dpgm_core.tables import Tables

__all__ = ["emptied", "implausible", "plausible"]

#: How much less likely than no noise is never seen, nats; at the reach of Laplace or Gaussian noise e^-60 is 1e-26.
_NEVER = 60.0
#: Of an estimated total, standard deviations.
_DEVIATIONS = 12.0
#: Counts are int64, so no more records than this were counted.
_MOST_RECORDS = 2.0**62


def plausible(release: NoisyTables) -> NoisyTables:
    """The release with cells that its noise cannot have made moved to where it can, and 0 where constraints allow no
    record; itself if there are none.

    A cell of group g lies within m_g N and 0 and the reach of its noise beyond, a contrast within N and -N; of sums of
    clipped scores nothing is known. Raises InferenceError for a total above 2^62 records.

    >>> from dpgm_core import Budget, Domain, SeededRandomness, Structure, Terms
    >>> from dpgm_core import release as released
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> terms = Terms(neighbours="add-remove", total=9)
    >>> codes = np.zeros((9, 1), int)
    >>> noisy = released(codes, structure, Budget.pure(1), terms=terms, randomness=SeededRandomness(0))
    >>> plausible(noisy) is noisy
    True
    >>> plausible(evolve(noisy, tables=Tables(structure, np.array([2**62, 1])))).tables.values.tolist()
    [119, 1]
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
    if release.total > _MOST_RECORDS:
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
    most = release.total + _DEVIATIONS * math.sqrt(release.total_variance)
    reach = np.array([_reach(one.noise) for one in release.calibrations])[list(release.measurement.of_group)]
    if release.contrasts:
        return -most - reach, most + reach
    tied = np.asarray(release.structure.multiplicities, dtype=np.float64)
    # A table of normalised contributions was brought to m_g N by its own noisy sum.
    sums = _DEVIATIONS * np.sqrt(np.asarray(release.structure.sizes) * release.variances)
    return release.tables.repeat(-reach), release.tables.repeat(tied * most + sums + reach)


def _reach(noise: Noise) -> float:
    """A distance that its draws stay within, records: the least power of two in standard deviations that will do."""
    if all(map(math.isfinite, noise.support)):
        return max(map(abs, noise.support))
    if isinstance(noise, SummedNoise):  # its density is that of the mean cell, and the largest block reaches further
        return _reach(noise.noise) * max(noise.blocks)
    distances: FloatArray = np.asarray(math.sqrt(noise.variance) * 2.0 ** np.arange(64), dtype=np.float64)
    density = np.maximum(noise.logpdf(distances), noise.logpdf(-distances))
    never = density <= float(noise.logpdf(np.zeros(1))[0]) - _NEVER
    return float(distances[never.argmax()]) if never.any() else math.inf
