"""What releases find beyond noise: columns that are uneven, pairs that depend, and how exact shares are.

Everything is computed from noisy tables alone, so that it is free in privacy. Let T be the least squares estimate of
the counts of a pair from all tables that tell it (`dpgm_core.models.effects`), N its total, p and q its margins as
shares. With functions f_k of the first attribute's codes and g_l of the second's that have mean 0 and are orthonormal
under p and q, the sums z_kl = sum f_k(i) g_l(j) T_ij are 0 but for noise and sampling if the attributes are
independent. The f_k are chosen so that they are orthogonal in the noise too; those of more than 128 codes are constant
in 128 groups of neighbouring codes. Then z_kl has the variance

    s_kl = N + v_ab F_k G_l + v_a F_k g_l^2 + v_b f_k^2 G_l + v_N f_k^2 g_l^2

with the variances v of the effects' noise, F_k the squared length of f_k less its mean, f_k its mean; N is sampling, as
from independent attributes. The score Q = sum w z^2 / s, w = N / s, weighs what is clear before what noise covers: for
effects that are alike in units of sampling no statistic has more power against small ones. Its chance under
independence comes from three moments of sums of squared normal deviates. Noise with heavier tails than the normal one
is drawn as Laplace noise instead, with a fixed seed, and beyond the largest draws the chance falls exponentially in the
root of Q, as it does for Laplace noise. A column has f_k alone, against even shares.

A model may still lose what its tables tell. Of a found pair of attributes with numbers the sums with f and g that are
linear in the ranks of the codes, over N, are compared: r = sum f(i) g(j) T_ij / N, a rank correlation, has noise of
known variance, and the model's own table has another r. Where they differ by more than a tenth and three standard
deviations together, the model lost correlation: one that is a tenth off is said to be so once in 700 pairs.

Of columns, and of pairs, those count as found that the rule of Benjamini and Hochberg takes at half a per cent. It
bounds the expected share of noise in one table's findings; over many tables the share is larger where few of them are
true, and chances are not exact: of all that was called found on generated tables, less than 1 in 100 was noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from attrs import asdict, evolve, frozen

from dpgm_core._util.arrays import FloatArray
from dpgm_core.domain.domain import Domain
from dpgm_core.models.corrections import cell_covariance, effects_of_each
from dpgm_core.models.effects import Effects, Measured, code_weights, combine_tables, tables_of
from dpgm_core.models.model import Model
from dpgm_core.models.within_bins import bin_distribution
from dpgm_core.releases.release import discoveries
from dpgm_core.releases.totals import counted
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.tables import margin_of

__all__ = ["Correlation", "Finding", "Findings", "expected_errors", "measure_findings", "say_errors"]

#: Share of what is called found in a table that may be noise; level of the errors of shares.
_FALSE_SHARE, _LEVEL = 0.005, 0.9
#: Share of its unknown label above which a column tells nothing.
UNKNOWN_SHARE = 0.95
#: A model loses a correlation that is so much from that of its tables, and so many standard deviations of noise more.
_LOST, _LOST_DEVIATIONS = 0.1, 3.0
#: Names that a sentence spells out.
_MAX_NAMES = 8
#: Draws of noise with heavy tails, their share beyond which the tail is extrapolated, and the largest table drawn.
_DRAWS, _TAIL, _MAX_DRAWN_CELLS = 1000, 0.05, 256
#: Groups of codes that functions of an attribute tell apart; time grows with their cube.
_MAX_GROUPS = 128


@frozen(kw_only=True)
class Correlation:
    """The rank correlation of a pair: by its tables, by the model, and the standard deviation of the noise in it."""

    tables: float
    model: float
    deviation: float

    @property
    def is_lost(self) -> bool:
        """Whether the model has another one than the tables, beyond noise."""
        return abs(self.tables - self.model) > _LOST + _LOST_DEVIATIONS * self.deviation


@frozen(kw_only=True)
class Finding:
    """A column or pair. chance: that noise and sampling make as much. error: of a share, half of its 90 % interval.

    is_unknown: whether nearly all values of a column, whose labels were searched, are too rare for a label.
    correlation: of ranks, of a found pair of numbers, by its tables.
    """

    names: Clique
    cells: int
    chance: float
    error: float
    found: bool = False
    is_unknown: bool = False
    correlation: Correlation | None = None

    @property
    def is_told(self) -> bool:
        """Whether it was found, or is known to be even: to within a quarter of an even share."""
        return not self.is_unknown and (self.found or 4 * self.error * self.cells < 1)


@frozen(kw_only=True)
class Findings:
    """What releases tell of each column and of each pair that a table holds. unchecked: pairs that no table holds.

    large: those of them that no selection could measure, as they have more cells than its workload allows.
    """

    columns: tuple[Finding, ...]
    pairs: tuple[Finding, ...]
    unchecked: int
    large: tuple[Clique, ...] = ()

    @property
    def colour(self) -> str:
        """Return "red" if noise covers all, "amber" if it covers some column or every pair that was asked for, or if
        the model lost a correlation, or if pairs were too large to be measured."""
        clear = [one.is_told for one in self.columns]
        if not any(clear):
            return "red"
        pairs = any(one.found for one in self.pairs) or not (self.pairs or self.unchecked)
        return "green" if all(clear) and pairs and not self._lost and not self.large else "amber"

    @property
    def verdict(self) -> str:
        """The colour in words."""
        return {
            "green": "what was measured stands out from the noise",
            "amber": "part of what was measured stands out from the noise",
            "red": "noise covers what was measured",
        }[self.colour]

    def sentences(self) -> list[str]:
        """Return what was found in words: columns, pairs, errors."""
        errors = say_errors([one.error for one in self.columns], [one.error for one in self.pairs])
        facts = [self._of_unknown(), self._of_columns(), self._of_pairs(), self._of_large(), self._of_lost(), errors]
        return [*filter(None, facts)]

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values."""

        def plain(findings: Sequence[Finding]) -> list[dict[str, Any]]:
            return [
                {"names": list(one.names), "found": one.found, "chance": one.chance, "error": one.error}
                | ({"unknown": True} if one.is_unknown else {})
                | ({} if one.correlation is None else {"rank_correlation": asdict(one.correlation)})
                for one in findings
            ]

        return {
            "verdict": self.colour,
            "columns": plain(self.columns),
            "pairs": plain(self.pairs),
            "pairs_unchecked": self.unchecked,
            **({"pairs_too_large": [list(pair) for pair in self.large]} if self.large else {}),
        }

    def _of_unknown(self) -> str:
        unknown, count = [one.names[0] for one in self.columns if one.is_unknown], len(self.columns)
        if not unknown:
            return ""
        return f"{len(unknown)} of {count} columns tell nothing: nearly all values of {_listed(unknown)} are unknown"

    def _of_columns(self) -> str:
        even = [one.names[0] for one in self.columns if not one.found and not one.is_unknown]
        count, apart = len(self.columns), sum(one.found for one in self.columns)
        if not even and apart < count:
            return f"{apart:,} of {count:,} columns are told apart from even shares" if apart else ""
        if not even:
            return f"{'the column is' if count == 1 else f'all {count:,} columns are'} told apart from even shares"
        if count == 1:
            return f"the column {even[0]} cannot be told apart from even shares"
        return f"{len(even)} of {count} columns cannot be told apart from even shares: {_listed(even)}"

    def _of_pairs(self) -> str:
        found, count = sum(one.found for one in self.pairs), len(self.pairs)
        rest = f"; {self.unchecked:,} more follow from the structure, which no table checks" if self.unchecked else ""
        if not count:
            return f"no pair was measured{rest}" if self.unchecked else ""
        return f"{found:,} of {count:,} measured pairs found to depend{rest}"

    def _of_large(self) -> str:
        named = _listed([" and ".join(pair) for pair in self.large])
        return f"not measured, as a table would have more than max_cells cells: {named}" * bool(self.large)

    @property
    def _lost(self) -> list[Finding]:
        return [one for one in self.pairs if one.correlation is not None and one.correlation.is_lost]

    def _of_lost(self) -> str:
        lost = [
            f"{' and '.join(one.names)} ({one.correlation.model:.2f}, not {one.correlation.tables:.2f})"
            for one in self._lost
            if one.correlation is not None
        ]
        return f"the model has other rank correlations than its tables: {_listed(lost)}" * bool(lost)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_MAX_NAMES]) + (", ..." if len(names) > _MAX_NAMES else "")


def say_errors(columns: Sequence[float], pairs: Sequence[float]) -> str:
    """Return a sentence on errors of shares, of columns and cells of pairs: the medians, in percentage points."""
    first, second = (_points(float(np.median(some))) if len(some) else "" for some in (columns, pairs))
    if not first:
        return ""
    also = f", and cells of measured pairs to about {second}" if second else ""
    return f"in 9 of 10 cases shares of columns are right to about {first} percentage points{also}"


def _points(share: float) -> str:
    return "100" if share > 0.99 else f"{100 * share:.2g}"


def measure_findings(model: Model) -> Findings | None:
    """Return what the model's releases tell, or None where no table tells any column by itself.

    So it is for models that carry no release, of two related tables, and of tied, weighted or repeated tables.
    """
    if model.related is not None or not model.learned:
        return None
    # Whether some noise has heavier tails than a normal deviate.
    duals = [noise.dual for one in model.learned for noise in one.noise]
    heavy = any(dual is None or math.isfinite(dual.bound) for dual in duals)
    names = tuple(one.name for one in model.domain if one.size > 1 and one.name not in model.left_out)
    searched = {name for one in discoveries(model.learned) for name in one.names}
    columns = []
    for name in names:
        grid = model._grid((name,), {})
        effects = effects_of_each(grid, model.learned)
        if effects is not None and effects.shape[0] > 1:
            column = _measure((name,), effects, heavy)
            if name in searched:
                unknown = model.domain[name].unknown
                block = grid.merges[name][0][unknown] if grid.merges else unknown
                column = evolve(column, is_unknown=bool(effects.table[block] > UNKNOWN_SHARE * effects.total))
            columns.append(column)
    if not columns:
        return None
    grid = model._grid(names, {})
    tables = [table for one in model.learned for table in tables_of(one, names, grid.blocks, grid.merges)]
    total = min((counted(one) for one in model.learned), key=lambda one: one[1])
    effects_of_pairs = dict(_effects_of_pairs(names, grid.blocks, tables, total))
    pairs = _find([_measure(pair, one, heavy) for pair, one in effects_of_pairs.items()])
    places = {name: order for name in names if (order := _order_of(model, name)) is not None}
    numbers = [one.names for one in pairs if one.found and places.keys() >= set(one.names)]
    here = model.coarse.marginals_of(numbers) if numbers else {}
    compared = {
        pair: _compare(effects_of_pairs[pair], table, [places[name] for name in pair]) for pair, table in here.items()
    }
    pairs = tuple(evolve(one, correlation=compared.get(one.names)) for one in pairs)
    return Findings(
        columns=_find(columns),
        pairs=pairs,
        unchecked=math.comb(len(names), 2) - len(pairs),
        large=_find_large(model, names, {one.names for one in pairs}),
    )


def _find_large(model: Model, names: Clique, measured: Collection[Clique]) -> tuple[Clique, ...]:
    """Return pairs of these attributes that no table holds, as selections might measure smaller tables only."""
    sessions = [one.session for one in model.learned if one.session is not None and not one.session.named]
    if not sessions:
        return ()
    large = [one.workload.large_pairs(one.workload.domain.coarsened(one.merges)) for one in sessions]
    shared = set(large[0]).intersection(*large[1:]).difference(measured)
    return tuple(pair for pair in itertools.combinations(names, 2) if pair in shared)


def _order_of(model: Model, name: str) -> FloatArray | None:
    """Return the mean number of each code, of each block where codes were merged, NaN where missing; None of texts."""
    attribute = model.domain[name]
    numbers = bin_distribution(attribute)
    if numbers is None or np.count_nonzero(numbers.present) < 2:
        return None
    means, merged = numbers.moments()[0], model._merged_codes and model._merged_codes.of.get(name)
    if not merged:
        return means
    weights = np.where(numbers.present, merged.weights, 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(
            np.bincount(merged.codes, weights * np.nan_to_num(means)) / np.bincount(merged.codes, weights)
        )


def _compare(effects: Effects, model: FloatArray, places: Sequence[FloatArray]) -> Correlation | None:
    """Return the rank correlation by tables and by the model; missing values count as the mean rank.

    model: its table. places: of each axis, the number of each code, NaN where missing. None where one does not vary.
    """
    functions = []
    for weights, numbers in zip(code_weights(effects.table / effects.total), places, strict=True):
        present = np.isfinite(numbers)
        _, level = np.unique(numbers[present], return_inverse=True)
        shares = np.bincount(level, weights[present]) / weights[present].sum()
        ranks = np.zeros(len(weights))
        ranks[present] = (np.cumsum(shares) - shares / 2)[level] - 0.5
        length = math.sqrt(float(weights @ ranks**2))
        if length <= 0:
            return None
        functions.append(ranks / length)
    product = np.multiply.outer(*functions)
    return Correlation(
        tables=float(np.sum(product * effects.table)) / effects.total,
        model=float(np.sum(product * model)),
        deviation=math.sqrt(float(effects.noise(product[None])[0, 0])) / effects.total,
    )


def expected_errors(
    domain: Domain, tables: Iterable[tuple[Clique, float]], records: float
) -> tuple[list[float], list[float]]:
    """Return errors of shares to expect of columns, and of cells of pairs, if all labels were equally frequent.

    Parameters
    ----------
    domain : Domain
    tables : iterable of (clique, variance)
        What will be measured, and the variance of the noise in a cell, records**2.
    records : float
        A public number.

    Examples
    --------
    >>> domain = Domain.from_sizes({"a": 2, "b": 2})
    >>> [[round(error, 3) for error in errors] for errors in expected_errors(domain, [(("a", "b"), 100.0)], 1000)]
    [[0.031, 0.031], [0.027]]
    """
    counted = [
        (clique, np.full(shape := domain.shape(clique), records / math.prod(shape)), variance, True)
        for clique, variance in tables
    ]
    total = (records, 0.0)
    measured = {name for clique, *_ in counted for name in clique}
    names = tuple(name for name in domain.names if name in measured and domain[name].size > 1)
    columns = [_error(combine_tables((name,), domain.shape((name,)), counted, total)) for name in names]
    pairs = [_error(one) for _, one in _effects_of_pairs(names, domain.shape(names), counted, total)]
    return columns, pairs


def _effects_of_pairs(
    names: Clique, shape: Sequence[int], tables: Iterable[Measured], total: tuple[float, float]
) -> Iterator[tuple[Clique, Effects]]:
    """Yield the effects of each pair that a table holds. shape: of the names; the rest as of `combine_tables`.

    The estimate of an effect rests on the tables that hold its attributes, whatever is asked for with it. So each table
    is summed to its columns and pairs once, and all that tell the same are averaged.
    """
    sizes = dict(zip(names, shape, strict=True))
    means: dict[Clique, tuple[FloatArray, float]] = {}
    for clique, counts, noise, whole in tables:
        variance = float(np.trace(noise)) / len(noise) if isinstance(noise, np.ndarray) else noise
        ordered = [name for name in names if name in clique]
        for some in (*zip(ordered), *itertools.combinations(ordered, 2)):
            if whole or len(some) == len(clique):
                table = np.asarray(margin_of(counts, clique, some), dtype=np.float64)
                cells = counts.size // table.size
                before, weights = means.get(some, (np.zeros(()), 0.0))
                means[some] = before + table / (variance * cells), weights + 1 / (variance * cells)
    for pair in itertools.combinations(names, 2):
        parts = [(pair[0],), (pair[1],), pair]
        own = [sizes[name] for name in pair]
        if min(own) > 1 and all(part in means for part in parts):
            estimates = [(part, means[part][0] / means[part][1], 1 / means[part][1], part != pair) for part in parts]
            yield pair, combine_tables(pair, own, estimates, total)


def _find(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Mark those that are found (Benjamini and Hochberg)."""
    chances = np.sort([one.chance for one in findings])
    below = np.flatnonzero(chances <= _FALSE_SHARE * np.arange(1, len(chances) + 1) / max(len(chances), 1))
    limit = float(chances[below[-1]]) if len(below) else -1.0
    return tuple(evolve(one, found=one.chance <= limit and not one.is_unknown) for one in findings)


def _measure(names: Clique, effects: Effects, heavy: bool) -> Finding:
    """Return the finding of a column or a pair."""
    chance = _chance_of_ranges(effects) if effects.covariances else _Score.of(effects).chance(heavy)
    return Finding(names=names, cells=math.prod(effects.shape), chance=chance, error=_error(effects))


def _chance_of_ranges(effects: Effects) -> float:
    """Return the chance that an even column is as far from even, by the whole covariance of noise and sampling."""
    from scipy.special import gammaincc

    codes, total = effects.shape[0], effects.total
    covariance = effects.covariances[0] + total / codes * (np.eye(codes) - 1 / codes)
    apart = (effects.table - total / codes)[1:]  # all of them sum to 0
    return float(gammaincc((codes - 1) / 2, float(apart @ np.linalg.solve(covariance[1:, 1:], apart)) / 2))


def _error(effects: Effects) -> float:
    """Return half of the interval of a share of records, the mean over cells."""
    from scipy.special import ndtri

    total, axes = effects.total, tuple(range(len(effects.shape)))
    noise = cell_covariance(effects, axes, axes)
    shares = np.clip(effects.table / total, 0.0, 1.0)
    spread = np.sqrt(shares * (1 - shares) / total + noise / total**2)
    return min(float(ndtri((1 + _LEVEL) / 2) * spread.mean()), 1.0)


@frozen(kw_only=True, eq=False)
class _Score:
    """The sums z of the module with their variance. axes: their functions. noise: v of the whole set."""

    z: FloatArray
    variance: FloatArray
    total: float
    axes: tuple[_Axis, ...]
    shape: tuple[int, ...]
    noise: float

    @classmethod
    def of(cls, effects: Effects) -> _Score:
        total, ndim = effects.total, len(effects.shape)
        if ndim == 1:
            axes = [_Axis.even(effects.shape[0])]
        else:
            axes = [_Axis.of(one) for one in code_weights(effects.table / total)]
        z = effects.table
        for axis in axes:
            z = axis.sums(z)
        variance = np.full(z.shape, total)
        for some, one in effects.variances.items():
            parts = [axis.lengths if at in some else axis.means**2 for at, axis in enumerate(axes)]
            product = parts[0] if ndim == 1 else np.multiply.outer(*parts)
            variance = variance + one * product
        if ndim == 2:  # margins are noisy themselves
            variance = (
                variance
                + np.multiply.outer(*(effects.variances[at,] * axis.lengths for at, axis in enumerate(axes))) / total**2
            )
        return cls(
            z=z,
            variance=variance,
            total=total,
            axes=tuple(axes),
            shape=effects.shape,
            noise=effects.variances[tuple(range(ndim))],
        )

    @property
    def weights(self) -> FloatArray:
        return self.total / self.variance

    def chance(self, heavy: bool) -> float:
        """Return the chance of as large a score of independent attributes, or of an even column."""
        from scipy.special import gammaincc

        weights = self.weights.reshape(-1)
        score = float(weights @ (self.z**2 / self.variance).reshape(-1))
        squares, cubes = float(weights @ weights), float(np.sum(weights**3))
        freedom = squares**3 / cubes**2
        at = freedom + (score - float(weights.sum())) * math.sqrt(freedom / squares)
        chance = float(gammaincc(freedom / 2, max(at, 0.0) / 2))
        if not heavy or chance > _TAIL or math.prod(self.shape) > _MAX_DRAWN_CELLS:
            return chance
        return max(chance, self._drawn_chance(score))

    def _drawn_chance(self, score: float) -> float:
        """Return the chance from drawn Laplace noise of each cell of the table."""
        rng = np.random.default_rng(0)
        drawn = rng.laplace(scale=math.sqrt(self.noise / 2), size=(_DRAWS, *self.shape))
        for axis, codes in zip(self.axes, self.shape, strict=True):
            functions = axis.sums(np.eye(codes))
            drawn = np.tensordot(drawn, functions - functions.mean(axis=0), axes=(1, 0))
        own = drawn.var(axis=0)
        rest = np.sqrt(np.maximum(self.variance - own, 0.0))
        z = drawn + rest * rng.standard_normal(drawn.shape)
        roots = np.sqrt(np.sum((self.weights * z**2 / self.variance).reshape(_DRAWS, -1), axis=1))
        start = float(np.quantile(roots, 1 - _TAIL))
        beyond = roots[roots > start] - start
        return _TAIL * math.exp(-max(math.sqrt(score) - start, 0.0) / float(beyond.mean()))


@frozen(kw_only=True, eq=False)
class _Axis:
    """Functions of codes, (codes, K), with mean 0 and orthonormal under weights; None for cosines, as of even weights.
    lengths, means: F_k and f_k above."""

    functions: FloatArray | None
    lengths: FloatArray
    means: FloatArray

    @classmethod
    def of(cls, weights: FloatArray) -> _Axis:
        # By place, as the most frequent ones would be those of the largest noise.
        groups = np.arange(len(weights)) * min(_MAX_GROUPS, len(weights)) // len(weights)
        roots = np.sqrt(np.bincount(groups, weights))
        # Orthonormal vectors that are orthogonal to the roots of the weights, over these roots.
        basis = np.linalg.svd(roots[None])[2][1:].T
        functions = (basis / roots[:, None])[groups]
        centred = functions - functions.mean(axis=0)
        lengths, rotation = np.linalg.eigh(centred.T @ centred)
        functions = functions @ rotation
        return cls(functions=functions, lengths=np.maximum(lengths, 0.0), means=functions.mean(axis=0))

    @classmethod
    def even(cls, codes: int) -> _Axis:
        return cls(functions=None, lengths=np.full(codes - 1, float(codes)), means=np.zeros(codes - 1))

    def sums(self, table: FloatArray) -> FloatArray:
        """Return sum_i f_k(i) T_i.., with k as the last axis."""
        from scipy.fft import dct

        if self.functions is not None:
            return np.asarray(np.tensordot(table, self.functions, axes=(0, 0)))
        return np.moveaxis(np.sqrt(len(table)) * dct(table, axis=0, norm="ortho")[1:], 0, -1)
