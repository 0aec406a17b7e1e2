"""Analyses of a model: estimates that are corrected from its released tables, with standard errors by formula.

Let p be the model's distribution over the attributes V of a question, N the number of records, theta(p) the answer and
psi its influence function at p. D are the effects (`dpgm_core.models.effects`) that the released tables tell, n_S their
least squares estimates. The answer and its variance are

    theta(p) + (1/N) sum over S in D of <f_S, n_S - N p_S>,
    Var_p(psi) / N + (1/N^2) sum over S in D of v_S |f_S|^2,     f = P_w psi, w the shares of codes under p.

Statement. With P the population, the answer less theta(P) is L + B + R: L = <f, n/N - P> has mean zero, given what
p tends to, and the variance stated; B = <psi - f, p - P> is zero where D holds psi; R = O(|p - P|^2). Proof. The
von Mises expansion gives theta(p) - theta(P) = <psi, p - P> + R; insert the definition of the answer, split psi, and
note that <f, p> cancels. Sampling is counted for all of psi, also where B is not zero. P_w keeps psi - f small where p
has its mass: with equal weights a label for missing values, which is rare, would spoil the additive form that psi has
elsewhere.

So the bias of the learner drops out to first order wherever tables exist. Private selection chooses D, and the noise of
a table is drawn after it was chosen. That earlier noise chooses later tables, and records choose D, is not part of the
formula; `python -m benchmarks.research` measures the coverage with it.

Where the corrected table c gives a value itself, this value replaces the step, so that R vanishes in the part that the
tables tell: a regression solves its score equation on c, and a function of expectations takes those of c. The error is
then that of an M-estimator, with psi at c: H_c(b)^-1 x (y - mu(x'b)) for the root b, H_c(b) the curvature of c. At the
model's own b, which is shrunk, and with the model's H the formula misses the noise in H times b, and how far an H that
noise made small has moved the root: at epsilon .3 up to a fifth of the width.

What no table tells is judged at the model and at perturbed models, as at the model alone a wrong one vouches for
itself: with independence between two attributes some influence functions lose the effect that would show it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from attrs import evolve, field, frozen

from dpgm_core._util.arrays import Array, FloatArray, IntArray, ratio
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.attribute_tables import MISSING
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.resolved_constraints import Derived
from dpgm_core.domain.values import Values
from dpgm_core.errors import InferenceError, OptionError, TooLarge, brief
from dpgm_core.models.corrections import MAX_CELLS, Grid, Split
from dpgm_core.models.distribution import Distribution, collect_potentials, pieces_of
from dpgm_core.models.effects import Axes, Effects, add_over_axes, code_weights, effect, means_over_axes, subsets
from dpgm_core.models.functionals import Functional, Moments, Regression
from dpgm_core.models.intervals import checked_level
from dpgm_core.models.merged_codes import MergedDistribution
from dpgm_core.models.misfit import cell_scales
from dpgm_core.models.model import Model
from dpgm_core.models.numeric import number_distribution
from dpgm_core.releases.session import caveats_of
from dpgm_core.structure.graphs import Clique

__all__ = [
    "BY_STRUCTURE",
    "CorrectedEstimates",
    "MEASURED",
    "MOSTLY_MEASURED",
    "Pools",
    "estimate",
    "pool_codes",
    "pooled_marginal",
]

#: Standings of an estimate, by the share of its influence function that no table tells.
#: On chains and stars that miss pairs of generated and real populations, answers off by more than three standard errors
#: had shares from .105 on; tables that were planned for a regression had at most .074.
MEASURED, MOSTLY_MEASURED, BY_STRUCTURE = "measured", "mostly measured", "by structure"
_MAX_MEASURED, _MAX_MOSTLY_MEASURED = 1e-9, 0.1

#: Of a pair of attributes that no table holds, and that no selector weighed, the share up to which an answer is mostly
#: measured. Such a pair may depend on each other as much as any, and the estimate's error is that dependence times the
#: root of the share, which noise and sampling do not grow with.
_MAX_UNWEIGHED = 0.01

#: Largest number of all values of a question's influence functions.
_MAX_NUMBERS = 2**25
#: Perturbed models that judge the support, and the standard deviation of their effects of pairs, nats.
_PERTURBED_MODELS, _PERTURBATION = 6, 0.3
#: Newton steps of a regression on the corrected table, and how far they may go beyond the first, standard errors.
_MAX_STEPS, _MAX_MOVE = 20, 3.0
#: Missing tables that are named: up to this many attributes, this many for each estimate, and of at least this share.
_MAX_ORDER, _MAX_NAMED, _MIN_SHARE = 3, 3, 0.005
#: Share of each code in the mean of a pool that the model takes as empty.
_LEAST_SHARE = 1e-9
#: Part of a column's variance that a pool of all its codes would cost beside what it loses.
_CODES_COST = 0.01


@frozen(kw_only=True, eq=False, repr=False)
class CorrectedEstimates:
    """K estimates about the population, corrected from the released tables, with their errors.

    Attributes
    ----------
    attributes : tuple of str
        Of the question, with those of its condition.
    names : tuple of str
        Of the K estimates.
    estimate, standard_error, low, high : array of shape (K,)
        The interval holds the population's value with probability `level` where the standing is not "by structure".
    covariance : array of shape (K, K)
        Of the estimates; the sum of `sampling`, `noise` and `structure`.
    sampling, noise, structure : array of shape (K, K)
        The parts of it: records are a sample, noise was added, and what a holdout found of pairs that no table holds.
    uncorrected : array of shape (K,)
        The model's own values, with the learner's bias.
    unsupported : array of shape (K,)
        The share of each influence function, as a variance, that no table tells; the largest at seven models.
    unweighed : array of shape (K,)
        The largest share of a pair that no table holds and no selector weighed, at seven models; 0 after a selection.
    standing : tuple of str
        "measured", "mostly measured" (at most .1 is unsupported, and .01 unweighed) or "by structure".
    missing : tuple
        For each estimate up to three (attributes, share) whose joint table would tell most of what is unsupported; a
        single attribute stands for its codes that were merged, or that no table tells apart.
    level, total : float
        Of the intervals; and the number of records.
    unstable : array of bool of shape (K,)
        Where the corrected table has no such value near the one-step estimate, which then stands: noise is as large as
        what the tables tell, and no interval is promised. All of a regression or none.
    flaws : tuple of str
        Why the estimates are less private than the budget of the releases.
    """

    attributes: Clique
    names: tuple[str, ...]
    estimate: FloatArray
    covariance: FloatArray
    sampling: FloatArray
    noise: FloatArray
    structure: FloatArray
    uncorrected: FloatArray
    unsupported: FloatArray
    unweighed: FloatArray
    missing: tuple[tuple[tuple[Clique, float], ...], ...]
    level: float
    total: float
    unstable: Array
    flaws: tuple[str, ...] = field(default=())

    @property
    def standard_error(self) -> FloatArray:
        """The square root of the variance of each estimate."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def low(self) -> FloatArray:
        """The lower end of each interval."""
        return self.estimate - self._quantile() * self.standard_error

    @property
    def high(self) -> FloatArray:
        """The upper end of each interval."""
        return self.estimate + self._quantile() * self.standard_error

    @property
    def standing(self) -> tuple[str, ...]:
        """The basis of each estimate."""
        mostly = (self.unsupported <= _MAX_MOSTLY_MEASURED) & (self.unweighed <= _MAX_UNWEIGHED)
        return tuple(
            MEASURED if share <= _MAX_MEASURED else MOSTLY_MEASURED if is_mostly else BY_STRUCTURE
            for share, is_mostly in zip(self.unsupported.tolist(), mostly.tolist(), strict=True)
        )

    def __repr__(self) -> str:
        return brief(
            "CorrectedEstimates", f"{len(self.names)} of {', '.join(self.attributes)}", f"level={self.level:g}"
        )

    def _quantile(self) -> float:
        from scipy.special import ndtri

        return float(ndtri((1 + self.level) / 2))


def estimate(
    model: Model,
    functional: Functional,
    *,
    level: float = 0.95,
    rows: FloatArray | None = None,
    given: Mapping[str, object] | None = None,
    pools: Mapping[str, IntArray] | None = None,
) -> CorrectedEstimates:
    """Return estimates of a functional of the population, corrected from the model's releases.

    Parameters
    ----------
    model : Model
        With at least one release.
    functional : Functional
        Over attributes of the model's domain, with all their codes.
    level : float
        Of the intervals.
    rows : array of shape (cells,), optional
        How many rows of synthetic data, drawn from this model, lie in each cell of the functional's table. They take
        the model's place; the correction removes their chance where tables exist.
    given : mapping, optional
        attribute -> label or code: the functional of p(. | given). Not together with rows.
    pools : mapping, optional
        attribute of the functional, in no constraint -> the pool of each of its codes, by `Pools`; the
        functional's table is over pools.

    Returns
    -------
    CorrectedEstimates

    Raises
    ------
    OptionError
        The model carries no release, or arguments are out of range.
    StructureError
        An attribute is not in the model, or no release measured it.
    TooLarge
        More than 2**20 cells, or 2**25 numbers with the influence functions.
    InferenceError
        The functional is undefined under the model.
    """
    level = checked_level(level)
    question = _Question.of(model, functional, given or {}, rows, pools or {})
    grid = question.grid
    values, influence = question.evaluate(question.table)
    effects = grid.effects(model.learned)
    # What the tables say of each cell, less what the model does, as far as they tell it.
    weights = question.weights(question.table)
    apart = effects.table / effects.total - effects.project(grid.mass(question.table)[None])[0]
    apart = effects.spread(apart[None], weights)[0]
    splits = grid.splits(question.table, effects)
    correction = grid.by_weight(apart) + sum((one.spread(apart, effects.total) for one in splits), np.zeros(()))
    corrected, unstable = values + influence @ correction, np.zeros(len(values), dtype=bool)
    parts = _covariances(model, question, influence, question.table, effects, rows)
    counts = question.asked.condition(question.sum_up(question.table + correction))
    found = _at_counts(functional, counts, values)
    if found is not None:
        errors = np.sqrt(np.diag(sum(parts, np.zeros(()))))
        # It may be as far beyond the step as the step was long: then the model is what is far off.
        near = np.abs(found[0] - corrected) <= _MAX_MOVE * errors + np.abs(corrected - values)
        unstable = ~(near & near.all() if isinstance(functional, Regression) else near)
        if not unstable.all():
            corrected = np.where(unstable, corrected, found[0])
            influence = np.where(unstable[:, None], influence, question.whole(found[1]))
            positive = np.maximum(question.table + correction, 0.0)
            parts = _covariances(model, question, influence, positive / positive.sum(), effects, rows)
    sampling, noise, structure = parts
    unsupported, pairs, missing = _support(question, effects)
    return CorrectedEstimates(
        attributes=question.asked.attributes,
        names=functional.names,
        estimate=corrected,
        covariance=sampling + noise + structure,
        sampling=sampling,
        noise=noise,
        structure=structure,
        uncorrected=values,
        unsupported=unsupported,
        unweighed=np.zeros_like(pairs) if model.is_selected else pairs,
        missing=missing,
        level=level,
        total=effects.total,
        unstable=unstable,
        flaws=caveats_of(model.releases),
    )


# --- A question: a functional of the model, on the grid of its attributes -------------------------


@frozen(kw_only=True, eq=False)
class _Question:
    """A functional, and the distribution that it is evaluated at: the model's, or that of rows.

    asked: the grid of its attributes, with those of the condition. grid: the one that tables are about, with what
    determines it in place of a derived column. cells: the cell of the former for each of the latter, where they differ.
    """

    functional: Functional
    asked: Grid
    grid: Grid
    cells: IntArray | None
    table: FloatArray

    @classmethod
    def of(
        cls,
        model: Model,
        functional: Functional,
        given: Mapping[str, object],
        rows: FloatArray | None,
        pools: Mapping[str, IntArray],
    ) -> _Question:
        if not model.learned:
            raise OptionError(
                "the model carries no release, so nothing is known of its noise; analyse a model that was learned from "
                "a release"
            )
        names, fixed = model._read(functional.attributes, given)
        requested = grid = model._grid(names, fixed, pools)
        traced = {name: one for name, one in model._basis.derived.items() if name in requested.attributes}
        if traced:
            sources = [traced[name].of if name in traced else name for name in requested.attributes]
            grid = model._grid(tuple(dict.fromkeys(sources)), {}, pools)
        cells = math.prod(grid.shape)
        numbers = cells * len(functional.names)
        if cells > MAX_CELLS or numbers > _MAX_NUMBERS:
            what = f"{cells:,} combinations" if cells > MAX_CELLS else f"{numbers:,} numbers of {cells:,} combinations"
            most = MAX_CELLS if cells > MAX_CELLS else _MAX_NUMBERS
            raise TooLarge(f"this question's attributes have {what}, more than {most:,}; leave some attributes out")
        table = pooled_marginal(model, grid.attributes, pools).reshape(-1)
        result = cls(
            functional=functional,
            asked=requested,
            grid=grid,
            cells=_cells_of(requested, grid, traced) if traced else None,
            table=table,
        )
        if rows is None:
            return result
        inside = result.sum_up(table)
        counts = np.asarray(rows, dtype=np.float64).reshape(-1)
        if fixed or counts.shape != inside.shape or not (np.isfinite(counts).all() and (counts >= 0).all()):
            raise OptionError(f"rows are counted in the {len(inside):,} cells of the question, without a condition")
        if not counts.sum() > 0:
            raise OptionError("there are no rows to analyse")
        shares = counts / counts.sum()
        if result.cells is not None:
            # Rows lie over what determines their derived columns as the model does.
            shares = table * ratio(shares, inside)[result.cells]
        return evolve(result, table=shares)

    def sum_up(self, table: FloatArray) -> FloatArray:
        """Return a table over the cells that are asked about, from one over what determines them."""
        if self.cells is None:
            return table
        return np.bincount(self.cells, weights=table, minlength=math.prod(self.asked.shape)).astype(np.float64)

    def evaluate(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return values and influence functions, (K,) and (K, cells), at a distribution over all attributes."""
        values, influence = self._evaluate(self.sum_up(table))
        return values, influence if self.cells is None else influence[:, self.cells]

    def _evaluate(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        if not self.asked.fixed:
            return self.functional.evaluate(table)
        inside = self.asked.condition(table)
        mass = float(inside.sum())
        if not mass > 0:
            raise InferenceError("what is given has probability 0 under the model")
        values, influence = self.functional.evaluate(inside / mass)
        return values, self._outside(influence / mass)

    def whole(self, influence: FloatArray) -> FloatArray:
        """Return functions of the cells of the condition, (K, cells of the free attributes), over all attributes."""
        whole = self._outside(influence) if self.asked.fixed else influence
        return whole if self.cells is None else whole[:, self.cells]

    def _outside(self, influence: FloatArray) -> FloatArray:
        """Return functions of the cells of the condition over all cells that are asked about: 0 on the others."""
        shape = self.asked.shape
        result = np.zeros((len(influence), *shape))
        result[(slice(None), *self.asked.where)] = influence.reshape(len(influence), *shape[: self.asked.free])
        return result.reshape(len(influence), -1)

    def weights(self, table: FloatArray) -> list[FloatArray]:
        """Return the probabilities of the blocks of each attribute under a table over all codes."""
        return code_weights(self.grid.mass(table))


def _cells_of(asked: Grid, grid: Grid, derived: Mapping[str, Derived]) -> IntArray:
    """Return the cell of the grid that is asked about for each cell of the one that determines it."""
    codes = np.indices(grid.shape).reshape(len(grid.shape), -1)
    columns = []
    for name in asked.attributes:
        one = derived.get(name)
        column = codes[grid.attributes.index(name if one is None else one.of)]
        columns.append(column if one is None else one.code[column])
    return np.asarray(np.ravel_multi_index(columns, asked.shape))


def _over_codes(grid: Grid, parts: Iterable[tuple[Split, FloatArray]]) -> FloatArray:
    """Return the sum of functions of codes of single attributes over all cells; (K, cells)."""
    result = sum((one.along(part, len(grid.shape)) for one, part in parts), np.zeros((1,) * (len(grid.shape) + 1)))
    return np.asarray(np.broadcast_to(result, (len(result), *grid.shape)).reshape(len(result), -1))


def _covariance(values: FloatArray, table: FloatArray) -> FloatArray:
    """Return the covariance of K functions under a table; (K, K)."""
    flat, weights = values.reshape(len(values), -1), table.reshape(-1)
    centred = flat - (flat @ weights)[:, None]
    return np.asarray((centred * weights) @ centred.T)


def _at_counts(functional: Functional, counts: FloatArray, start: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return the values at a corrected table, nan where it has none, and the functions whose sums over it are their
    errors; None for functionals that take one step."""
    if isinstance(functional, Regression):
        root = functional.solve(counts, start, _MAX_STEPS)
        if root is None:
            return np.full(len(start), np.nan), np.zeros((len(start), len(counts)))
        return root, functional.influence(counts, root)
    return functional.at(counts) if isinstance(functional, Moments) else None


def _covariances(
    model: Model,
    question: _Question,
    influence: FloatArray,
    table: FloatArray,
    effects: Effects,
    rows: FloatArray | None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the covariances from sampling, from noise and from structure of sums of functions, (K, cells), over what
    the tables say; (K, K) each. table: the distribution that records are a sample of."""
    grid = question.grid
    average, weights = grid.by_block(influence), question.weights(question.table)
    projected, splits = effects.project(average, weights), grid.splits(question.table, effects)
    inside = [(one, one.influence(influence)) for one in splits]
    sampling = _covariance(influence, table) / effects.total
    if rows is not None:
        known = [(one, part * one.is_told) for one, part in inside]
        rest = influence - grid.by_code(projected) - _over_codes(grid, known)
        sampling = sampling + (rest * question.table) @ rest.T / float(np.sum(rows))
    by_block = sum((one.along(one.by_block(part), len(grid.shape)) for one, part in inside), np.zeros(()))
    noise = effects.noise(projected + by_block) + sum(one.noise(part) for one, part in inside)
    return sampling, noise / effects.total**2, _structure_covariance(model, question, average, effects)


def _structure_covariance(model: Model, question: _Question, values: FloatArray, effects: Effects) -> FloatArray:
    """Return what a holdout found of pairs that no table tells, as a covariance; 0 without a holdout."""
    covariance = np.zeros((len(values), len(values)))
    if not model.checked:
        return covariance
    error, table = model._error.expected, question.grid.mass(question.table)[None]
    pairs = [pair for pair in subsets(range(len(effects.shape)), most=2) if len(pair) == 2]
    weights = question.weights(question.table)
    means = means_over_axes(values, [pair for pair in pairs if pair not in effects.variances], weights)
    for pair, mean in means.items():
        part = effect(mean, pair, weights).reshape(len(values), -1)
        shares = [table.sum(axis=tuple(at for at in range(1, table.ndim) if at != axis + 1))[0] for axis in pair]
        scales = cell_scales(shares[0], shares[1], model.is_selected).reshape(-1)
        covariance += error * ((part * scales**2) @ part.T)
    return covariance


# --- What the tables tell of an estimate ----------------------------------------------------------


def _support(
    question: _Question, effects: Effects
) -> tuple[FloatArray, FloatArray, tuple[tuple[tuple[Clique, float], ...], ...]]:
    """Return the share of each influence function that no table tells, the largest of a pair that none holds, and the
    tables that would tell most of it."""
    count = len(question.functional.names)
    worst, pairs = np.zeros(count), np.zeros(count)
    named: list[tuple[tuple[Clique, float], ...]] = [()] * count
    for table in _models(question):
        try:
            _, influence = question.evaluate(table)
        except InferenceError:
            continue  # a perturbed model at which the estimate is undefined judges nothing
        average = question.grid.by_block(influence)
        rest = influence - question.grid.by_code(effects.project(average, question.weights(table)))
        splits = [(one, one.influence(influence)) for one in question.grid.splits(table, effects) if one.is_measured]
        rest = rest - _over_codes(question.grid, splits)
        shares = ratio((rest**2) @ table, (influence**2) @ table)
        higher = np.flatnonzero((shares > worst) & (shares > _MAX_MEASURED))
        worst = np.maximum(worst, shares)
        above = np.flatnonzero(shares > _MAX_MEASURED)
        most = _MAX_ORDER if len(higher) else 2
        if len(above):
            known = [(one, part[above]) for one, part in splits]
            every = _missing(question, effects, influence[above], average[above], known, table, most)
            result = [{names: float(share[at]) for names, share in every.items()} for at in range(len(above))]
            for at, one in zip(above, result, strict=True):
                pairs[at] = max([pairs[at], *(share for names, share in one.items() if len(names) == 2)])
                if at in higher:
                    named[at] = _largest(one)
    return np.minimum(worst, 1.0), pairs, tuple(named)


def _models(question: _Question) -> Iterator[FloatArray]:
    """Yield the model's table, and tables with other effects of pairs, from fixed seeds; (cells,)."""
    yield question.table
    pairs = [pair for pair in subsets(range(len(question.grid.shape)), most=2) if len(pair) == 2]
    for seed in range(_PERTURBED_MODELS if pairs else 0):
        generator = np.random.default_rng(seed)
        effects: dict[Axes, FloatArray] = {}
        for pair in pairs:
            shape = [size if at in pair else 1 for at, size in enumerate(question.grid.blocks)]
            effects[pair] = generator.normal(scale=_PERTURBATION, size=(1, *shape))
        table = question.table * np.exp(question.grid.by_code(add_over_axes(effects, question.grid.blocks)))[0]
        yield table / table.sum()


def _missing(
    question: _Question,
    effects: Effects,
    influence: FloatArray,
    average: FloatArray,
    splits: list[tuple[Split, FloatArray]],
    table: FloatArray,
    most: int,
) -> dict[Clique, FloatArray]:
    """Return the sets of at most so many attributes whose effects no table tells, with their shares of each influence
    function's variance."""
    whole, mass = (influence**2) @ table, question.grid.mass(table)[None]
    sets = [axes for axes in subsets(range(len(effects.shape)), most=most) if axes not in effects.variances]
    shares: dict[Clique, FloatArray] = {}
    codes = question.weights(table)
    means = means_over_axes(average, sets, codes)
    weights = means_over_axes(mass, sets)
    for axes in sets:
        part = effect(means[axes], axes, codes).reshape(len(average), -1)
        weight = weights[axes].reshape(-1) * (mass.size / weights[axes].size)
        shares[tuple(question.grid.attributes[at] for at in axes)] = (part**2) @ weight / whole
    for at in question.grid.merged:
        # What is lost by the mean inside the blocks of this attribute alone, but for what its own table tells.
        one = evolve(question.grid, merged={at: question.grid.merged[at]})
        known = [part for part in splits if part[0].at == at]
        inside = influence - one.by_code(one.by_block(influence)) - _over_codes(one, known)
        shares[question.grid.attributes[at],] = (inside**2) @ table / whole
    return shares


def _largest(shares: Mapping[Clique, float]) -> tuple[tuple[Clique, float], ...]:
    ordered = sorted(shares.items(), key=lambda one: -one[1])[:_MAX_NAMED]
    return tuple((names, share) for names, share in ordered if share >= _MIN_SHARE)


# --- Pools ----------------------------------------------------------------------------------------


@frozen(kw_only=True, eq=False)
class Pools:
    """Adjacent codes of a column of numbers that a question takes as one, so that its table fits.

    Codes that a session merged stay together, but that numbers and missing values are apart: within a block of merged
    codes a code is independent of all other attributes, and so is a pool. The tables of an analysis are then those of
    the releases, summed by pool, and its estimates those of the population's numbers, each replaced by the mean of its
    pool.

    codes: (codes,), the pool of each. attribute: with a label for each pool, which is the mean of its numbers or,
    without any, no number. bins: how many pools have numbers. variance_share: of the variance of the codes' means, what
    the means of pools have.
    """

    codes: IntArray
    attribute: Attribute
    bins: int
    variance_share: float

    @classmethod
    def of(cls, attribute: Attribute, shares: FloatArray, blocks: IntArray | None, count: int) -> Pools:
        """Return `count` pools of an attribute's numbers, and those of codes without any. As of `pool_codes`."""
        codes = pool_codes(attribute, shares, blocks, count)
        numbers, has_number = _numbers_of(attribute, shares)
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
                attribute.name,
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
    numbers, has_number = _numbers_of(attribute, shares)
    blocks = np.arange(attribute.size) if blocks is None else blocks
    sizes, with_number = np.bincount(blocks), np.bincount(blocks, weights=has_number)
    weights = np.where(has_number, shares, 0.0) + _LEAST_SHARE
    mass = np.bincount(blocks, weights=weights)
    means, whole = np.bincount(blocks, weights=weights * numbers) / mass, np.flatnonzero(with_number == sizes)
    order = whole[np.argsort(means[whole], kind="stable")]
    # A line of pools: where each begins, its weight, its mean from the centre and its codes.
    pools = np.stack([np.arange(len(order)), mass[order], means[order], sizes[order]]).astype(np.float64)
    pools[2] -= pools[1] @ pools[2] / pools[1].sum()
    variance, many = pools[1] @ pools[2] ** 2, pools[3].sum()
    while pools.shape[1] > count:
        (_, one, mean, size), (_, other, next_mean, next_size) = pools[:, :-1], pools[:, 1:]
        lost = one * other * (next_mean - mean) ** 2 / (one + other)
        cost = ratio(lost, np.full(len(lost), variance)) + _CODES_COST * ((size + next_size) / many) ** 2
        at = int(np.argmin(cost))
        pools[2, at] = (one[at] * mean[at] + other[at] * next_mean[at]) / (one[at] + other[at])
        pools[[1, 3], at] += pools[[1, 3], at + 1]
        pools = np.delete(pools, at + 1, axis=1)
    place = count + 1 + np.arange(len(sizes))
    place[order] = np.searchsorted(pools[0], np.arange(len(order)), side="right")
    without = np.where(with_number[blocks] > 0, place[blocks], count + 1 + len(sizes)) + len(sizes)
    return np.asarray(np.unique(np.where(has_number, place[blocks], without), return_inverse=True)[1])


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


def _numbers_of(attribute: Attribute, shares: FloatArray) -> tuple[FloatArray, Array]:
    """Return the mean number of each code, 0 without one, and whether it has one. shares: p of each code."""
    dist = number_distribution(attribute, shares)
    return np.nan_to_num(dist.moments()[0]), np.asarray(dist.present)
