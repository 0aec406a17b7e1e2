"""Pools: adjacent codes of columns of numbers that a question takes as one, so that its table fits.

Codes that a session merged stay together, but that numbers and missing values are apart: within a block of merged codes
a code is independent of all other attributes, and so is a pool. The tables of an analysis are then those of the
releases, summed by pool, and its estimates those of the population's numbers, each replaced by the mean of its pool.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, FloatArray, IntArray, ratio
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.attribute_tables import MISSING
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.values import Values
from dpgm_core.models.distribution import Distribution, collect_potentials, pieces_of
from dpgm_core.models.merged_codes import MergedDistribution
from dpgm_core.models.model import Model
from dpgm_core.models.numeric import number_distribution
from dpgm_core.structure.graphs import Clique

__all__ = ["Pools", "pool_codes", "pooled_marginal"]

#: Share of each code in the mean of a pool that the model takes as empty.
_LEAST_SHARE = 1e-9
#: Part of a column's variance that a pool of all its codes would cost beside what it loses.
_CODES_COST = 0.01


@frozen(kw_only=True, eq=False)
class Pools:
    """The pools of one attribute.

    codes: (codes,), the pool of each. attribute: with a label for each pool, which is the mean of its numbers or,
    without any, no number. bins: how many pools have numbers. variance_share: of the variance of the codes' means, what
    the means of pools have.
    """

    codes: IntArray
    attribute: Attribute
    bins: int
    variance_share: float

    @classmethod
    def of(cls, model: Model, name: str, shares: FloatArray, count: int) -> Pools:
        """Return `count` pools of an attribute's numbers, and those of codes without any. shares: p of each."""
        attribute = model.domain[name]
        merged = None if model._merged_codes is None else model._merged_codes.of.get(name)
        codes = pool_codes(attribute, shares, None if merged is None else merged.codes, count)
        numbers, has_number = _numbers_of(attribute)
        weights = np.where(has_number, shares, 0.0)
        weights += _LEAST_SHARE * (has_number & (np.bincount(codes, weights=weights)[codes] <= 0))
        totals = np.bincount(codes, weights=weights)
        bins = int((totals > 0).sum())
        centre = float(weights @ numbers) / float(weights.sum())  # so that dates lose no digits
        means = ratio(np.bincount(codes, weights=weights * (numbers - centre)), totals)
        spread = float(weights @ (numbers - centre) ** 2)
        labels: list[str] = []
        for mean in (means[:bins] + centre).tolist():
            while repr(mean) in labels:  # as of blocks of merged codes, which lie among each other
                mean = math.nextafter(mean, math.inf)
            labels.append(repr(mean))
        labels += [f"{MISSING} {number}" if number else MISSING for number in range(len(totals) - bins)]
        return cls(
            codes=codes,
            attribute=Attribute.of_labels(
                name,
                labels,
                unknown=labels[codes[attribute.unknown]],
                null=labels[codes[attribute.null]],
                values=Values(kind="number"),
            ),
            bins=bins,
            variance_share=float(totals @ means**2) / spread if spread > 0 else 1.0,
        )


def pool_codes(attribute: Attribute, shares: FloatArray, blocks: IntArray | None, count: int) -> IntArray:
    """Return the pool of each code, (codes,): `count` pools of numbers, then those of codes without a number.

    shares: p of each code. blocks: of the codes that a session merged. Neighbours are pooled that lose the least part
    of the variance between codes, as in Ward (1963), and whose codes are few: the noise of pools is taken as that of
    the one with most codes.

    >>> age = Attribute.of_bins("age", [0, 10, 20, 30, 40], unknown="missing")
    >>> pool_codes(age, np.array([0.4, 0.1, 0.1, 0.3, 0.1]), None, 2).tolist()
    [0, 1, 1, 1, 2]
    """
    numbers, has_number = _numbers_of(attribute)
    blocks = np.arange(attribute.size) if blocks is None else blocks
    sizes, with_number = np.bincount(blocks), np.bincount(blocks, weights=has_number)
    weights = np.where(has_number, shares, 0.0) + _LEAST_SHARE
    whole, mass = np.flatnonzero(with_number == sizes), np.asarray(np.bincount(blocks, weights=weights), np.float64)
    means = np.bincount(blocks, weights=weights * numbers) / mass
    order = whole[np.argsort(means[whole], kind="stable")]
    starts = _pool_neighbours(mass[order], means[order], sizes[order], count)
    place = np.zeros(len(sizes), dtype=np.int64)
    place[order] = np.searchsorted(starts, np.arange(len(order)), side="right")
    mixed = (with_number > 0) & (with_number < sizes)
    several = int(mixed.sum())
    place[mixed] = count + 1 + np.arange(several)
    rest = np.where(mixed[blocks], place[blocks] + several, count + 1 + 2 * several)
    return np.asarray(np.unique(np.where(has_number, place[blocks], rest), return_inverse=True)[1])


def _pool_neighbours(weights: FloatArray, means: FloatArray, sizes: IntArray, count: int) -> IntArray:
    """Return where each pool of a line of blocks begins. weights, means, sizes: of the blocks, by their means."""
    starts, whole = np.arange(len(weights)), sizes.sum()
    means = means - weights @ means / weights.sum()
    variance = float(weights @ means**2)
    while len(starts) > count:
        pairs = weights[:-1] + weights[1:]
        lost = weights[:-1] * weights[1:] * np.diff(means) ** 2 / pairs
        cost = ratio(lost, np.full(len(lost), variance)) + _CODES_COST * ((sizes[:-1] + sizes[1:]) / whole) ** 2
        at = int(np.argmin(cost))
        means[at] = (weights[at] * means[at] + weights[at + 1] * means[at + 1]) / pairs[at]
        weights[at], sizes[at] = pairs[at], sizes[at] + sizes[at + 1]
        starts, sizes = np.delete(starts, at + 1), np.delete(sizes, at + 1)
        weights, means = np.delete(weights, at + 1), np.delete(means, at + 1)
    return starts


def pooled_marginal(
    model: Model, names: Clique, pools: Mapping[str, IntArray], condition: Mapping[str, object] | None = None
) -> FloatArray:
    """Return p(names | condition) over pools, which the model's own table, of all codes, may be too large for.

    A node for the pools of each column depends on its codes alone, so that no table holds the codes of two columns that
    no clique holds together. Raises TooLarge, InferenceError and StructureError.
    """
    if not pools:
        return np.asarray(model.marginal(names, condition), dtype=np.float64)
    model.marginals_of([(name,) for name in names])  # refuses what no release measured
    base, merged = model._distribution.base, model._merged_codes
    domain, pieces, spelled = base.structure.domain, [*pieces_of(base.potentials)], {name: name for name in names}
    nodes: list[Attribute] = []
    for name, codes in pools.items():
        merge = None if merged is None else merged.of.get(name)
        table = np.zeros((domain[name].size, int(codes.max()) + 1))
        if merge is None:
            table[np.arange(len(codes)), codes] = 1.0
        else:
            np.add.at(table, (merge.codes, codes), merge.weights)
        node = f"pools of {name}"
        while node in domain:
            node += "'"
        nodes.append(Attribute.of_size(node, table.shape[1]))
        spelled[name] = node
        with np.errstate(divide="ignore"):
            pieces.append(((name, node), np.log(table)))
    whole = Domain([*domain.attributes, *nodes], domain.constraints)
    plain = Distribution(collect_potentials(whole, pieces)[1], base.inference)
    distribution = plain if merged is None else MergedDistribution(plain, merged)
    evidence = model._read(names, condition or {})[1]
    return distribution.marginals_of([tuple(spelled[name] for name in names)], evidence)[0]


def _numbers_of(attribute: Attribute) -> tuple[FloatArray, Array]:
    """Return the mean number of each code, 0 without one, and whether it has one."""
    dist = number_distribution(attribute)
    return np.nan_to_num(dist.moments()[0]), np.asarray(dist.present)
