"""Merged codes: a model over coarser codes, answered over the finer ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from attrs import evolve, frozen
from scipy.special import expit, log_ndtr

from dpgm_core._util.arrays import Codes, FloatArray, IntArray, along
from dpgm_core.domain.attribute import code_dtype
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import InferenceError, OptionError, StructureError, TooLarge, human_bytes
from dpgm_core.inference.contract import Estimates
from dpgm_core.inference.junction_tree.logspace import divide_rows
from dpgm_core.models.distribution import Distribution, collect_potentials, expectation, pieces_of
from dpgm_core.models.range_margins import covariance_of, likely_shares
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.tables import Tables

__all__ = [
    "MergedAttribute",
    "MergedCodes",
    "MergedDistribution",
    "SampleMethod",
    "block_weights",
    "checked_count",
    "divergence",
    "draw_codes",
    "expand_potentials",
    "find_merged_codes",
    "merge_pools",
    "reweight",
]


# --- Codes and their blocks -----------------------------------------------------------------------
# A session may merge rare codes once their one-way tables are released, and count all else by blocks of merged codes.
# Within a block, p(code | block) comes from the released one-way table and is taken as independent of all other
# attributes: p(x) = p_coarse(c(x)) * product of w_i(x_i | c_i(x_i)). That is post-processing of the release, and free.

#: Part of the standard deviation of a block's noise that is added to its estimated counts together.
_MIN_NOISE_SHARE = 0.25
#: Standard deviations by which the spread of a block exceeds what noise explains, before it may be sparse; and rounds.
_UNEXPLAINED, _ROUNDS = 2.0, 30
#: Of the log density of bins: the most cosines, scales of the first one's coefficient, others falling with the square
#: of the number of half waves, and deviations of a bin's logarithm from it. Smooth is tried with half the probability.
_COSINES, _SCALES, _ROUGHNESS = 20, np.geomspace(8.0, 0.05, 5), (0.0, 0.25, 1.0)
#: The probability that a bin's count is any, whatever the density; bins either side of which a median starts it; steps.
_ANY, _BESIDE, _STEPS = 0.1, 5, 9


@frozen(kw_only=True, eq=False)
class MergedAttribute:
    """The blocks of merged codes of one attribute.

    codes: (labels,), the block of each. weights: (labels,), the probability of each in its block. counts, variance: the
    noisy one-way table behind the weights, records, and the noise of a cell; None and 0 where none was released.
    precision: of the counts, (labels, labels), where ranges were measured and their noise is not independent.

    >>> one = MergedAttribute(codes=np.array([0, 1, 1]), weights=np.array([1.0, 0.75, 0.25]))
    >>> one.expand(np.array([0.2, 0.8]), 0).round(3).tolist(), one.likeliest.tolist(), one.is_alone.tolist()
    ([0.2, 0.6, 0.2], [0, 1], [True, False, False])
    """

    codes: IntArray
    weights: FloatArray
    counts: FloatArray | None = None
    variance: float = 0.0
    precision: FloatArray | None = None

    def expand(self, table: FloatArray, axis: int) -> FloatArray:
        """Spread an axis of blocks over their codes."""
        return table.take(self.codes, axis=axis) * along(self.weights, axis, table.ndim)

    def sum_up(self, table: FloatArray, axis: int) -> FloatArray:
        """Sum an axis of codes by block."""
        order = np.argsort(self.codes, kind="stable")
        starts = np.searchsorted(self.codes[order], np.arange(self.blocks))
        return np.asarray(np.add.reduceat(table.take(order, axis=axis), starts, axis=axis))

    @cached_property
    def blocks(self) -> int:
        """The number of blocks."""
        return int(self.codes.max()) + 1

    @cached_property
    def is_alone(self) -> FloatArray:
        """(labels,): whether a code is a block of its own."""
        return np.asarray(np.bincount(self.codes)[self.codes] == 1)

    @cached_property
    def likeliest(self) -> IntArray:
        """(blocks,): the first most probable code of each."""
        order = np.lexsort((np.arange(len(self.codes)), -self.weights, self.codes))
        return np.asarray(order[np.searchsorted(self.codes[order], np.arange(self.blocks))])

    @property
    def log_weights(self) -> FloatArray:
        """(labels,): nats, -inf for weight 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.weights)

    def log_weights_in(self, blocks: IntArray) -> FloatArray:
        """(blocks, labels): nats, -inf for codes of other blocks."""
        return np.where(self.codes == blocks[:, None], self.log_weights, -np.inf)

    def draw(self, blocks: IntArray, at: FloatArray) -> IntArray:
        """Draw codes of records in these blocks; at: quantiles inside each block's distribution, in [0, 1)."""
        order = np.argsort(self.codes, kind="stable")
        sorted_codes, sorted_weights = self.codes[order], self.weights[order]
        starts = np.searchsorted(sorted_codes, np.arange(self.blocks))
        ends = np.append(starts[1:], len(order))
        upto = np.cumsum(sorted_weights)
        upto -= np.concatenate([[0.0], upto])[starts][sorted_codes]
        # From the last code with weight on it is 1 exactly, so that no rounding leads to one without.
        last = np.maximum.reduceat(np.where(sorted_weights > 0, np.arange(len(order)), -1), starts)
        upto[np.arange(len(order)) >= last[sorted_codes]] = 1.0
        line = sorted_codes + np.minimum(upto, 1.0)
        points = np.minimum(blocks + at, np.nextafter(blocks + 1.0, 0.0))
        place = np.searchsorted(line, points, side="right")
        return np.asarray(order[np.clip(place, starts[blocks], ends[blocks] - 1)])


@frozen(kw_only=True, eq=False)
class MergedCodes:
    """The merged attributes of a model. fine: the domain it answers about. of: attribute -> its blocks."""

    fine: Domain
    of: Mapping[str, MergedAttribute]

    def to_blocks(self, fixed: Mapping[str, int]) -> dict[str, int]:
        """Return evidence with codes replaced by their blocks."""
        return {name: int(self.of[name].codes[code]) if name in self.of else code for name, code in fixed.items()}

    def is_possible(self, fixed: Mapping[str, int]) -> bool:
        """Whether no code has weight 0 in its block."""
        return all(self.of[name].weights[code] > 0 for name, code in fixed.items() if name in self.of)

    def expand(self, names: Clique, table: FloatArray) -> FloatArray:
        """Return probabilities of codes from those of blocks."""
        for axis, name in enumerate(names):
            if name in self.of:
                table = self.of[name].expand(table, axis)
        return table

    def needs_independence(self, names: Sequence[str], fixed: Mapping[str, int]) -> bool:
        """Whether an answer about these attributes relies on the independent split of blocks, beyond released tables.

        A single attribute has its one-way table, if it was released; fixed to a code of its own it is not split.
        """
        split = [one for one in names if one in self.of]
        split += [one for one, code in fixed.items() if one in self.of and not self.of[one].is_alone[code]]
        if len(names) + len(fixed) > 1:
            return bool(split)
        return any(self.of[one].counts is None for one in split)

    def redraw(self, shares: Mapping[str, FloatArray], total: float, generator: np.random.Generator) -> MergedCodes:
        """Draw weights as other records and noise could have given them, for the error bars of answers.

        shares: p of each merged attribute's codes. total: N. The draws are not shrunk again: the weights are nearly
        even already, so shrinking refits would all agree, however uneven the truth is. Blocks keep the model's mass.
        Without a released table nothing is drawn.
        """
        return evolve(self, of={name: _redraw(one, total * shares[name], generator) for name, one in self.of.items()})


def find_merged_codes(domain: Domain, releases: Sequence[NoisyTables]) -> MergedCodes | None:
    """Return the merged codes of a model over `domain`, as the sessions among its releases state them; None without.

    Raises StructureError for merges that do not lead to the model's attributes.
    """
    merged = [one for one in releases if one.session is not None and one.session.merges]
    codes: dict[str, tuple[int, ...]] = {}
    fine = {one.name: one for one in domain}
    for release in merged:
        session = release.session
        assert session is not None
        for name, new in session.merges.items():
            if name not in domain:
                continue
            whole = session.workload.domain[name]
            if whole.coarsened(new) != domain[name] or codes.get(name, tuple(new)) != tuple(new):
                raise StructureError(
                    f"a session merged the codes of {name!r} to others than the model has, or two did so differently; "
                    "learn over the domain of the session"
                )
            if domain[name] != whole:
                codes[name], fine[name] = tuple(new), whole
    if not codes:
        return None
    measured = Domain(fine.values(), domain.constraints)
    return MergedCodes(
        fine=measured, of={name: _merged_attribute(measured, name, new, merged) for name, new in codes.items()}
    )


def merge_pools(merge: MergedAttribute, pools: IntArray) -> MergedAttribute | None:
    """Return the blocks of pools, where pools split blocks of codes that a session merged; None where they do not."""
    size = int(pools.max()) + 1
    block = np.zeros((size, merge.blocks), dtype=bool)
    block[pools, merge.codes] = True
    shared = np.flatnonzero(block.sum(axis=0) > 1)
    if not len(shared):
        return None
    codes = np.arange(size)
    for one in shared:
        codes[block[:, one]] = np.flatnonzero(block[:, one])[0]
    codes = np.unique(codes, return_inverse=True)[1]
    split = np.bincount(codes)[codes] > 1
    weights = np.where(split, np.bincount(pools, weights=merge.weights), 1.0)
    return MergedAttribute(
        codes=codes,
        weights=weights,
        counts=None if merge.counts is None else np.asarray(np.bincount(pools, weights=merge.counts), np.float64),
        variance=merge.variance * int(np.bincount(pools)[split].max()),
    )


def block_weights(counts: FloatArray, variance: float, codes: IntArray, widths: FloatArray | None = None) -> FloatArray:
    """Return p(code | block) from noisy counts, (labels,): shrunk toward the block's mean, and above 0 under noise.

    variance: of the noise of a count. widths: of bins of numbers, which are the first codes; they are shrunk toward a
    smooth density (`_expect_smooth`). Codes are merged because noise hides their counts, so the counts of a block
    differ mostly by noise: unshrunk, they would make rare codes common and others impossible. Labels are shrunk as far
    as noise explains their spread (the positive-part rule of James and Stein, with as many degrees of freedom as there
    are, so that two codes are shrunk too) and projected on the nearest distribution. All codes together get a part of
    the noise of their sum more, as noise rules out no code. Where noise does not explain how they differ from the mean
    or the density, they are also taken as nobody's or exponential (`_expect_sparse`), as far as that is likelier.
    Blocks without positive counts are even.
    """
    weights = np.ones(len(counts))
    bins = 0 if widths is None or variance == 0 else len(widths)
    if bins and widths is not None:
        density, smooth = _expect_smooth(counts[:bins], variance, widths)
    for block in range(int(codes.max()) + 1):
        inside = np.flatnonzero(codes == block)
        size = len(inside)
        if size == 1:
            continue
        weights[inside] = 1 / size
        mean = float(counts[inside].mean())
        if mean <= 0:
            continue
        if inside[-1] < bins:
            line = mean * size * density[inside] / density[inside].sum()
            likely = mean * size * smooth[inside] / smooth[inside].sum()
        else:
            line = np.full(size, mean)
            shrunk = line + _shrink(counts[inside] - line, (size - 1) * variance)
            likely = mean * size * _nearest(shrunk / (mean * size))
        likely += _MIN_NOISE_SHARE * math.sqrt(variance / size)
        weights[inside] = likely / likely.sum()
        rest = counts[inside] - line
        spread = float(rest @ rest)
        if 0 < variance < spread / (size + _UNEXPLAINED * math.sqrt(2 * size)):
            sparse, evidence = _expect_sparse(counts[inside], math.sqrt(variance))
            even = -size / 2 * (1 + math.log(2 * math.pi * spread / size))  # Gaussian, of the variance that there is
            share = float(expit(evidence - even))
            weights[inside] = share * sparse / sparse.sum() + (1 - share) * weights[inside]
    return weights


def _expect_smooth(counts: FloatArray, variance: float, widths: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return expected counts of bins, (bins,), by a smooth density, and by it and the noisy counts together.

    The log density is a sum of cosines along the order of bins. Counts of people vary around it as Poisson ones do, and
    in proportion to it by its roughness; or a bin's count is any, as where one number is common. Both are above 0.
    Scale and roughness are averaged over, weighted by their evidence in Laplace's approximation.
    """
    size, deviation = len(counts), math.sqrt(variance)
    finite = np.isfinite(widths)
    widths = np.where(finite, widths, widths[finite].max(initial=1.0))
    waves = np.arange(min(_COSINES, size - 1) + 1)
    basis = np.cos(np.pi / size * np.outer(np.arange(size) + 0.5, waves)) * np.where(waves > 0, math.sqrt(2), 1.0)
    near = [slice(max(0, at - _BESIDE), at + _BESIDE + 1) for at in range(size)]
    rough = np.array([np.median(np.maximum(counts[one], 0) / widths[one]) for one in near])
    start = np.log(np.maximum(rough, deviation / 4 / widths))
    anything = _ANY / max(float(counts.max()), 4 * deviation)
    densities, expected, evidence = [], [], []
    for scale, roughness in itertools.product(_SCALES, _ROUGHNESS):
        prior = np.where(waves > 0, waves**4.0 / scale**2, 1e-4)
        fit = np.linalg.solve(basis.T @ basis + np.diag(prior) / 20, basis.T @ start)
        for step in range(_STEPS):
            density = widths * np.exp(np.clip(basis @ fit, -20.0 - np.log(widths), 25.0 - np.log(widths)))
            own = density + (roughness * density) ** 2
            spread = variance + own
            known = (1 - _ANY) * np.exp(-((counts - density) ** 2) / 2 / spread) / np.sqrt(2 * np.pi * spread)
            follows = known / (known + anything)
            precision = (basis.T * (follows * density**2 / spread)) @ basis + np.diag(prior)
            change = np.linalg.solve(
                precision, basis.T @ (follows * density * (counts - density) / spread) - prior * fit
            )
            farthest = float(np.abs(basis @ change).max())
            if farthest < 0.01 or step == _STEPS - 1:
                break
            fit = fit + change / max(1.0, farthest)
        densities.append(density)
        expected.append(follows * (density + own / spread * (counts - density)) + (1 - follows) * counts)
        penalty = (prior * fit**2 - np.log(prior))[1:].sum() + np.linalg.slogdet(precision)[1]
        chance = 0.5 if roughness == 0 else 0.5 / (len(_ROUGHNESS) - 1)
        evidence.append(float(np.log(known + anything).sum() - penalty / 2) + math.log(chance))
    shares = np.exp(np.array(evidence) - max(evidence))
    shares /= shares.sum()
    least = 1e-9 * deviation
    return np.maximum(shares @ densities, least), np.maximum(shares @ np.maximum(expected, 0), least)


def _expect_sparse(counts: FloatArray, deviation: float) -> tuple[FloatArray, float]:
    """Return expected counts where each is 0 or exponential, with the likeliest share and mean, and the log evidence.

    deviation: of the Gaussian noise of a count.
    """
    share, mean = 0.5, max(2 * float(counts.mean()), deviation)
    for _ in range(_ROUNDS):
        centre = counts / deviation - deviation / mean  # of what an exponential count may be, in deviations
        tail = log_ndtr(centre)
        nobody = math.log(1 - share) - (counts / deviation) ** 2 / 2 - math.log(deviation * math.sqrt(2 * math.pi))
        somebody = math.log(share / mean) + deviation**2 / (2 * mean**2) - counts / mean + tail
        either = np.logaddexp(nobody, somebody)
        occurs = np.exp(somebody - either)
        expected = deviation * (centre + np.exp(-(centre**2) / 2 - tail) / math.sqrt(2 * math.pi))
        share = float(np.clip(occurs.mean(), 1e-6, 1 - 1e-6))
        mean = max(float(occurs @ expected / occurs.sum()), deviation / 10)
    return np.maximum(occurs * expected, 1e-9 * deviation), float(either.sum())


def _shrink(values: FloatArray, noise: float) -> FloatArray:
    """Return values without the part of their sum of squares that noise explains."""
    spread = float(values @ values)
    return values * max(0.0, 1 - noise / spread) if spread > 0 else values


def _redraw(level: MergedAttribute, expected: FloatArray, generator: np.random.Generator) -> MergedAttribute:
    if level.counts is None:
        return level
    if level.precision is not None:
        covariance = np.linalg.inv(level.precision) + np.diag(expected)
        noisy = expected + np.linalg.cholesky(covariance) @ generator.normal(size=len(expected))
        return evolve(level, weights=_range_weights(np.linalg.inv(covariance), noisy, expected.sum(), level.codes))
    errors = generator.normal(size=len(expected)) * np.sqrt(expected + level.variance)
    sizes = np.bincount(level.codes)
    errors -= (np.bincount(level.codes, weights=errors) / sizes)[level.codes]
    return evolve(level, weights=block_weights(expected + errors, 0.0, level.codes))


def _range_weights(precision: FloatArray, counts: FloatArray, total: float, codes: IntArray) -> FloatArray:
    """Return p(code | block), (labels,), from counts whose ranges were measured: their likeliest shares, not shrunk.

    precision: of the counts. total: N. Shrinking codes one by one, as `block_weights` does, would move the records of
    a range together: on generated columns it made ranges twice as wrong.
    """
    shares = likely_shares(precision, precision @ counts, total, np.full(len(codes), 1 / len(codes)))
    return np.asarray(shares / np.bincount(codes, weights=shares)[codes])


def _nearest(values: FloatArray) -> FloatArray:
    """Return the nearest distribution, in Euclidean distance, to numbers that sum to 1."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    above = np.flatnonzero(ordered > excess)[-1]
    shifted = np.maximum(values - excess[above], 0.0)
    return np.asarray(shifted / shifted.sum())


def _merged_attribute(fine: Domain, name: str, new: Sequence[int], releases: Sequence[NoisyTables]) -> MergedAttribute:
    """Return the blocks of one attribute, with weights from all one-way tables over it by inverse variance."""
    codes = np.asarray(new, dtype=np.int64)
    steps = [step for release in releases for step in release.steps if isinstance(step, NoisyTables)]
    measured = [
        (step.noise[number], step.tables.group(number))
        for step in steps
        if not step.holdout and step.structure.domain[name] == fine[name]
        for number, group in enumerate(step.structure.groups)
        if group == ((name,),)
    ]
    if not measured:
        return MergedAttribute(codes=codes, weights=1 / np.bincount(codes)[codes])
    covariances = [covariance_of(noise) for noise, _ in measured]
    if any(one is not None for one in covariances):
        precision, weighted = np.zeros((len(codes), len(codes))), np.zeros(len(codes))
        for (noise, table), one in zip(measured, covariances, strict=True):
            own = np.eye(len(codes)) / noise.variance if one is None else np.linalg.inv(one)
            weighted += own @ table
            precision += own
        counts = np.asarray(np.linalg.solve(precision, weighted), np.float64)
        variance = float(np.trace(np.linalg.inv(precision))) / len(codes)
        weights = _range_weights(precision, counts, max(1.0, float(counts.sum())), codes)
        return MergedAttribute(codes=codes, weights=weights, counts=counts, variance=variance, precision=precision)
    bottom = sum(1 / noise.variance for noise, _ in measured)
    counts, variance = np.sum([table / noise.variance for noise, table in measured], axis=0) / bottom, 1 / bottom
    edges = fine[name].edges
    weights = block_weights(counts, variance, codes, None if edges is None else np.diff(edges))
    return MergedAttribute(codes=codes, weights=weights, counts=counts, variance=variance)


# --- Queries over all codes -----------------------------------------------------------------------

#: Sampling method: independent records, or records whose tables are the expected counts, rounded.
SampleMethod: TypeAlias = Literal["independent", "rounded"]

#: Largest size of log-potentials expanded over all codes.
_MAX_BYTES = 2**30


class MergedDistribution:
    """p(x) = p_coarse(c(x)) * product of w_i(x_i | c_i(x_i)), with the methods of a `Distribution`.

    base: over the blocks of merged codes. merged: the merged attributes.

    >>> from dpgm_core import Domain, Structure
    >>> from dpgm_core.models.merged_codes import MergedAttribute, MergedCodes
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> merge = MergedAttribute(codes=np.array([0, 1, 1]), weights=np.array([1.0, 0.75, 0.25]))
    >>> merged = MergedCodes(fine=Domain.from_sizes({"a": 3}), of={"a": merge})
    >>> merged = MergedDistribution(Distribution(Tables.zeros(structure), "junction-tree"), merged)
    >>> merged.marginals_of([("a",)], {})[0].tolist(), merged.most_probable({})
    ([0.5, 0.375, 0.125], {'a': 0})
    """

    def __init__(self, base: Distribution, merged: MergedCodes) -> None:
        self.base = base
        self.merged = merged

    def marginals_of(self, queries: Sequence[Clique], fixed: Mapping[str, int]) -> list[FloatArray]:
        """Return p(names | fixed) of each query, axes in the order of its names. Raises TooLarge and InferenceError."""
        self._check(fixed)
        # Given its block, a code is independent of the other attributes.
        tables = self.base.marginals_of(queries, self.merged.to_blocks(fixed))
        return [self.merged.expand(names, table) for names, table in zip(queries, tables, strict=True)]

    def estimates_of(self, queries: Sequence[Clique], fixed: Mapping[str, int]) -> Estimates | None:
        """Return `marginals_of` with Monte Carlo errors; None for an engine that states none."""
        self._check(fixed)
        estimates = self.base.estimates_of(queries, self.merged.to_blocks(fixed))
        if estimates is None:
            return None

        def spread(tables: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
            # a code has a share of its block, which is known: its error has the same
            return tuple(self.merged.expand(names, table) for names, table in zip(queries, tables, strict=True))

        return evolve(estimates, tables=spread(estimates.tables), errors=spread(estimates.errors))

    def most_probable(self, fixed: Mapping[str, int]) -> dict[str, int]:
        """Return the codes of a most probable record: a block counts with its likeliest code and that code's weight."""
        self._check(fixed)
        free = {name: merge for name, merge in self.merged.of.items() if name not in fixed}
        best = [((name,), merge.log_weights[merge.likeliest]) for name, merge in free.items()]
        pieces = [*pieces_of(self.base.potentials), *best]
        weighted = collect_potentials(self.base.structure.domain, pieces)[1]
        codes = Distribution(weighted, self.base.inference).most_probable(self.merged.to_blocks(fixed))
        codes |= {name: int(merge.likeliest[codes[name]]) for name, merge in free.items()}
        return {**codes, **fixed}

    def sample(self, count: int, generator: np.random.Generator, fixed: Mapping[str, int] | None = None) -> Codes:
        """Return codes of independent records of p(. | fixed), one array per attribute. Raises InferenceError."""
        fixed = fixed or {}
        self._check(fixed)
        return self._split(
            self.base.sample(count, generator, self.merged.to_blocks(fixed)),
            lambda merge, blocks: merge.draw(blocks, generator.random(count)),
            fixed,
        )

    def rounded(self, count: int, generator: np.random.Generator, fixed: Mapping[str, int] | None = None) -> Codes:
        """Return codes of records whose tables are the expected ones up to rounding, also inside blocks."""
        fixed = fixed or {}
        self._check(fixed)
        order = generator.permutation(count)

        def codes_of(merge: MergedAttribute, blocks: IntArray) -> IntArray:
            nonlocal order  # each split spreads its codes over those of the one before
            size = len(merge.codes)
            codes, order = divide_rows(blocks, lambda rows: merge.log_weights_in(blocks[rows]), size, order, generator)
            return codes

        return self._split(self.base.rounded(count, generator, self.merged.to_blocks(fixed)), codes_of, fixed)

    def entropy(self) -> float:
        """Return the entropy of one record, nats: of the blocks, plus that inside blocks."""
        merged = self.merged.of.items()
        inside = (expectation(self.marginals_of([(name,)], {})[0], merge.log_weights) for name, merge in merged)
        return max(0.0, self.base.entropy() - sum(inside))

    def _split(
        self, columns: Codes, codes_of: Callable[[MergedAttribute, IntArray], IntArray], fixed: Mapping[str, int]
    ) -> Codes:
        """Replace the blocks of merged attributes by codes; fixed attributes by their code."""
        codes = []
        for one, column in zip(self.merged.fine, columns, strict=True):
            merge = self.merged.of.get(one.name)
            if merge is not None and one.name in fixed:
                column = np.full(len(column), fixed[one.name], code_dtype(one.size))
            elif merge is not None:
                column = codes_of(merge, column.astype(np.int64)).astype(code_dtype(one.size))
            codes.append(column)
        return codes

    def _check(self, fixed: Mapping[str, int]) -> None:
        if not self.merged.is_possible(fixed):
            raise InferenceError("what is given has probability 0 under the model")


def reweight(
    distribution: Distribution | MergedDistribution, pieces: Sequence[tuple[Clique, FloatArray]]
) -> Distribution | MergedDistribution:
    """Multiply the distribution with log-weights of attributes without merged codes; the result is unnormalised."""
    if not pieces:
        return distribution
    base = distribution.base
    potentials = collect_potentials(base.structure.domain, [*pieces_of(base.potentials), *pieces])[1]
    weighted = Distribution(potentials, base.inference)
    return weighted if isinstance(distribution, Distribution) else MergedDistribution(weighted, distribution.merged)


def draw_codes(
    distribution: Distribution | MergedDistribution,
    count: int,
    method: SampleMethod,
    generator: np.random.Generator,
    fixed: Mapping[str, int] | None = None,
) -> Codes:
    """Return codes of records of p(. | fixed), one array per attribute of the domain.

    Raises OptionError for an invalid number of records or method, InferenceError for an engine that cannot sample.
    """
    count = checked_count(count, method)
    draw = distribution.sample if method == "independent" else distribution.rounded
    return draw(count, generator, fixed)


def checked_count(count: object, method: object) -> int:
    """Return a checked number of records, for a known method. Raises OptionError."""
    if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or count < 0:
        raise OptionError(f"the number of records to sample must be a whole number of at least 0, got {count!r}")
    if method not in ("independent", "rounded"):
        raise OptionError(f"records can be sampled 'independent' or 'rounded', got {method!r}")
    return int(count)


def divergence(one: Distribution | MergedDistribution, other: Distribution | MergedDistribution) -> float:
    """Return KL(one || other), nats, over one domain, merged or not: -H(p) + log Z_q - E_p[theta_q + log w_q]."""
    if isinstance(one, Distribution) and isinstance(other, Distribution):
        return one.divergence(other)
    base, merged = (other, {}) if isinstance(other, Distribution) else (other.base, other.merged.of)
    pieces = [(names, table) for names, table in pieces_of(base.potentials) if names]
    constant = sum(float(table) for names, table in pieces_of(base.potentials) if not names)
    queries = list(dict.fromkeys([*(names for names, _ in pieces), *((name,) for name in merged)]))
    marginals = dict(zip(queries, one.marginals_of(queries, {}), strict=True))
    terms = [expectation(marginals[names].reshape(-1), _spread(names, table, merged)) for names, table in pieces]
    terms += [expectation(marginals[name,], merge.log_weights) for name, merge in merged.items()]
    return max(0.0, base.beliefs().log_partition - constant - sum(terms) - one.entropy())


def expand_potentials(potentials: Tables, merged: MergedCodes | None) -> Tables:
    """Return log-potentials of the same distribution over all codes; unchanged where none are merged.

    Raises TooLarge, with sizes, for more than 1 GiB.
    """
    if merged is None:
        return potentials
    needed = 8 * sum(math.prod(merged.fine.shape(clique)) for clique in potentials.structure.cliques)
    if needed > _MAX_BYTES:
        raise TooLarge(
            f"the model over all codes of its {len(merged.of)} merged attributes takes {human_bytes(needed)}, against "
            f"{human_bytes(_MAX_BYTES)}; write its own potentials, which are over merged codes"
        )
    shapes = {names: merged.fine.shape(names) for names, _ in pieces_of(potentials)}
    pieces = [
        (names, _spread(names, table, merged.of).reshape(shapes[names])) for names, table in pieces_of(potentials)
    ]
    weights = [((name,), one.log_weights) for name, one in merged.of.items()]
    return collect_potentials(merged.fine, [*pieces, *weights])[1]


def _spread(names: Clique, table: FloatArray, merged: Mapping[str, MergedAttribute]) -> FloatArray:
    """Return a table over blocks as a flat one over codes, each with the value of its block."""
    for axis, name in enumerate(names):
        if name in merged:
            table = table.take(merged[name].codes, axis=axis)
    return table.reshape(-1)
