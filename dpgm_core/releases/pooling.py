"""Pooling of several releases about the same people into one to learn from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from attrs import evolve, frozen

from dpgm_core._util.arrays import Array, FloatArray
from dpgm_core._util.randomness import Randomness
from dpgm_core.errors import BudgetError, StructureError
from dpgm_core.privacy.budget import compose_budgets
from dpgm_core.privacy.contrasts import spread
from dpgm_core.privacy.measurement import Measurement
from dpgm_core.privacy.mechanism import Calibration, DerivedNoise, Noise
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.release import NoisyTables, check_alike, costs_apart
from dpgm_core.releases.views import equalize_totals, plausible
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = ["PooledNoise", "check_merged", "check_one_way", "mean_of", "pool", "total_of", "united"]


# Each table is the mean of its releases' by inverse variance, which for Gaussian noise loses nothing (Gauss and Markov;
# for other noise it is the best linear one). N is combined likewise. That is post-processing, and free.

#: Two releases are taken for one when they agree by chance this rarely.
_MAX_COINCIDENCE_CHANCE = 1e-9


@frozen(kw_only=True)
class PooledNoise(DerivedNoise):
    """The noise of a weighted mean of tables; for learning, never for a release.

    noises, weights: of the tables; weights sum to 1. The density is the Gaussian of the same variance, to which means
    of independent noise tend: exact, but for the lattice, where all are Gaussian. Draws have the true distribution.
    """

    noises: tuple[Noise, ...]
    weights: tuple[float, ...]

    exact = False  # its values are no whole numbers

    @property
    def variance(self) -> float:
        """records**2, per cell."""
        return sum(weight**2 * noise.variance for noise, weight in zip(self.noises, self.weights, strict=True))

    @property
    def unsafe(self) -> str | None:
        """What is unsafe about any of them."""
        return "; ".join(sorted({noise.unsafe for noise in self.noises if noise.unsafe is not None})) or None

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """The weighted sum of fresh draws of each, float64."""
        drawn: Array = np.zeros(shape)
        for noise, weight in zip(self.noises, self.weights, strict=True):
            drawn = drawn + weight * noise.draw(shape, randomness).astype(np.float64)
        return drawn


def pool(releases: Sequence[NoisyTables], conversion_delta: Fraction | None = None) -> NoisyTables:
    """Return all the releases as one to learn from: each table once, the mean over its releases.

    releases: at least one, about the same people under the same terms, over one domain; N may be estimated in some and
    known in others. Cliques are the same in any order of their names; one inside another stays a table of its own. Each
    release goes through `equalize_totals` and `plausible` first. The view keeps them (`pooled`), and costs what they
    cost together (`compose_budgets`). Raises BudgetError for releases that do not go together, for rounds
    and for one that occurs twice, StructureError for different domains.
    """
    published = tuple(behind for one in releases for behind in one.published)
    if published:
        check_merged(published)
    structure = united([one.structure for one in published])
    check_one_way(published)
    if len(published) == 1:
        return plausible(equalize_totals(published[0]))
    check_alike(published)
    _check_poolable(published)
    total, variance, terms = _total(published)
    views = [plausible(equalize_totals(evolve(one, total=total, total_variance=variance))) for one in published]
    tables, measurement = mean_of(structure, views, total)
    return NoisyTables(
        tables=tables,
        measurement=measurement,
        terms=evolve(terms, contributions=None),
        total=total,
        total_variance=variance,
        cost=compose_budgets(costs_apart(published, [one.cost for one in published]), conversion_delta),
        private=all(one.private for one in published),
        unsafe="; ".join(dict.fromkeys(one.unsafe for one in published if one.unsafe)) or None,
        pooled=published,
    )


def check_merged(releases: Sequence[NoisyTables]) -> None:
    """Refuse, with StructureError, releases of which one counted labels together that another counted apart."""
    first = releases[0].structure.domain
    for one in releases:
        domain, merges = one.structure.domain, [each.session.merges for each in releases if each.session is not None]
        apart = [name for name in first.names if name in domain and domain[name] != first[name]]
        merged = [name for name in apart if any(name in each for each in merges)]
        if merged:
            raise StructureError(
                f"a session counted rare labels of {', '.join(map(repr, merged[:4]))} together, and another release "
                "did not, so their tables do not add up; learn from each alone, or choose with merge = false"
            )


def united(structures: Sequence[Structure]) -> Structure:
    """The structure with every table of any of them, once; the first one if the others add none.

    Raises BudgetError for none, StructureError for different domains.
    """
    if not structures:
        raise BudgetError("a pool needs at least one release")
    first = structures[0]
    if any(other.domain != first.domain for other in structures):
        raise StructureError(
            "the releases are over different domains, so their cells do not mean the same; pool releases whose "
            "attributes and labels agree, in their order"
        )
    groups: dict[tuple[Clique, ...], tuple[Clique, ...]] = {}
    for structure in structures:
        for group in structure.groups:
            groups.setdefault(_canonical(group)[0], group)
    if len(groups) == len(first.groups):
        return first
    return Structure(first.domain, (), tied=groups.values())


def _check_poolable(releases: Sequence[NoisyTables]) -> None:
    for number, one in enumerate(releases):
        if one.round is not None:
            raise BudgetError(
                "a release of subsampled rounds does not pool with others: its tables are about a secret subsample; "
                "learn from it alone"
            )
        if any(_is_same(one, other) for other in releases[:number]):
            raise BudgetError(
                "one release is given twice, or two were drawn with one seed; pooled they would look like less noise "
                "than there is; give each once"
            )


def _is_same(one: NoisyTables, other: NoisyTables) -> bool:
    """Whether it is one release: all numbers are the same, and the ledger's entry is or chance would not do it."""
    if one is other:
        return True
    if one.structure != other.structure or not np.array_equal(one.tables.values, other.tables.values):
        return False
    if one.provenance.get("entry") is not None and one.provenance == other.provenance:
        return True
    # Two draws of a lattice noise agree in a cell with a chance of about 1 / (2 sqrt(pi v)), at most 1.
    variances = np.array([noise.variance for noise in one.noise])
    chances = np.minimum(1.0, 0.5 / np.sqrt(math.pi * np.maximum(variances, 1e-300)))
    draws = np.ones(len(variances)) if one.contrasts else np.asarray(one.structure.sizes)
    return float(draws @ np.log(chances)) < math.log(_MAX_COINCIDENCE_CHANCE)


def _total(releases: Sequence[NoisyTables]) -> tuple[float, float, Terms]:
    """N, its variance and the terms that say how it is known."""
    known = [one for one in releases if one.total_policy != "estimated"]
    if known:
        if len({one.total for one in known}) > 1:
            low, high = min(one.total for one in known), max(one.total for one in known)
            raise BudgetError(
                f"the releases state N = {low:,.10g} and N = {high:,.10g}, so they are not about the same records; "
                "pool those of one N"
            )
        return known[0].total, 0.0, known[0].terms
    return *total_of(releases), releases[0].terms


def total_of(releases: Sequence[NoisyTables]) -> tuple[float, float]:
    """N and its variance: the mean by inverse variance; exact where any of them states it."""
    # a power of two, by which an exact N is multiplied without rounding or overflow
    precisions = np.array([1 / max(one.total_variance, 2.0**-900) for one in releases])
    mean = float(precisions @ np.array([one.total for one in releases]) / precisions.sum())
    return mean, float(1 / precisions.sum())


def mean_of(structure: Structure, views: Sequence[NoisyTables], total: float) -> tuple[Tables, Measurement]:
    """Each table of the structure, and its noise: the mean by inverse variance over the views that hold it.

    views: releases `plausible` at the total of all of them, each table of the structure in one of them at least; of
    contrasts all or none, and then the contrasts are what the mean is taken of, and tables are filled up from them.
    Raises BudgetError for some of both.
    """
    contrasts = check_one_way(views)
    tables_of: dict[tuple[Clique, ...], list[tuple[int, int, tuple[int, ...]]]] = {}
    for number, view in enumerate(views):
        for place, group in enumerate(view.structure.groups):
            key, axes = _canonical(group)
            tables_of.setdefault(key, []).append((number, place, axes))
    numbers = [view.measured for view in views]
    parts: list[FloatArray] = []
    calibrations: dict[tuple[tuple[int, int], ...], Calibration] = {}
    of_group = []
    for group in structure.groups:
        key, axes = _canonical(group)
        holders = tables_of[key]
        own = [views[number].calibrations[views[number].measurement.of_group[place]] for number, place, _ in holders]
        precisions = np.array([1 / one.noise.variance for one in own])
        weights = precisions / precisions.sum()
        mean = sum(
            weight * (numbers[number][place] if contrasts else views[number].tables.group(place).transpose(order))
            for weight, (number, place, order) in zip(weights, holders, strict=True)
        )
        means = np.asarray(mean, dtype=np.float64)
        parts.append((means if contrasts else means.transpose(np.argsort(axes))).reshape(-1))
        # Tables of the same noises share one calibration, so that simulations draw them at once.
        kind = tuple((number, views[number].measurement.of_group[place]) for number, place, _ in holders)
        if kind not in calibrations:
            calibrations[kind] = own[0] if len(own) == 1 else _calibration(own, weights)
        of_group.append(list(calibrations).index(kind))
    measurement = Measurement(
        structure=structure, calibrations=tuple(calibrations.values()), of_group=tuple(of_group), contrasts=contrasts
    )
    values = np.concatenate(parts)
    return spread(structure, values, total) if contrasts else Tables(structure, values), measurement


def check_one_way(releases: Sequence[NoisyTables]) -> bool:
    """Whether all of them measured contrasts; BudgetError where some did, and others tables."""
    contrasts = releases[0].contrasts
    if any(one.contrasts is not contrasts for one in releases):
        raise BudgetError(
            "some of the releases measured contrasts and others tables, which do not pool: their noises are of "
            "different things; learn from those of one way"
        )
    return contrasts


def _calibration(own: Sequence[Calibration], weights: FloatArray) -> Calibration:
    """Of a mean; what each was calibrated from stands in the releases behind it."""
    noise = PooledNoise(noises=tuple(one.noise for one in own), weights=tuple(map(float, weights)))
    return evolve(own[0], noise=noise, component=None, options={})


def _canonical(group: tuple[Clique, ...]) -> tuple[tuple[Clique, ...], tuple[int, ...]]:
    """The same for tables that hold the same numbers, and the transposition that brings a table to it."""
    least = min(group, key=sorted)
    axes = tuple(sorted(range(len(least)), key=least.__getitem__))
    return tuple(sorted(tuple(clique[axis] for axis in axes) for clique in group)), axes
