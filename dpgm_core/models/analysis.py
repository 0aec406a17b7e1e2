"""Analyses of a model: estimates that are corrected from its released tables, with standard errors by formula.

Let p be the model's distribution over the attributes V of a question, N the number of records, theta(p) the answer and
psi its influence function at p. D are the effects (`dpgm_core.models.effects`) that the released tables tell, n_S their
least squares estimates. The answer and its variance are

    theta(p) + (1/N) sum over S in D of <f_S, n_S - N p_S>,
    Var_p(f) / N + (1/N^2) sum over S in D of v_S |f_S|^2,     f = P_w psi, w the shares of codes under p.

Statement. With P the population, the answer less theta(P) is L + B + R: L = <f, n/N - P> has mean zero, given what
p tends to, and the variance stated; B = <psi - f, p - P> is zero where D holds psi; R = O(|p - P|^2). Proof. The
von Mises expansion gives theta(p) - theta(P) = <psi, p - P> + R; insert the definition of the answer, split psi, and
note that <f, p> cancels. P_w (`dpgm_core.models.effects`) keeps psi - f small where p has its mass: with equal weights
a label for missing values, which is rare, would spoil the additive form that psi has elsewhere.

So the bias of the learner drops out to first order wherever tables exist. Private selection chooses D, and the noise of
a table is drawn after it was chosen. That earlier noise chooses later tables, and records choose D, is not part of the
formula; `python -m benchmarks.research` measures the coverage with it. A regression solves its score equation on the
corrected table in place of one step, so that R vanishes in the part that the tables tell.

What no table tells is judged at the model and at perturbed models, as at the model alone a wrong one vouches for
itself: with independence between two attributes some influence functions lose the effect that would show it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve, field, frozen

from dpgm_core._util.arrays import Array, FloatArray, IntArray
from dpgm_core.errors import InferenceError, OptionError, TooLarge, brief
from dpgm_core.models.effects import (
    Axes,
    Effects,
    add_over_axes,
    code_weights,
    effect,
    effects_of,
    means_over_axes,
    subsets,
)
from dpgm_core.models.functionals import Functional, Regression
from dpgm_core.models.intervals import checked_level
from dpgm_core.models.misfit import cell_scales
from dpgm_core.releases.session import caveats_of
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

if TYPE_CHECKING:
    from dpgm_core.models.merged_codes import MergedAttribute
    from dpgm_core.models.model import Model

__all__ = [
    "BY_STRUCTURE",
    "CorrectedEstimates",
    "MEASURED",
    "MOSTLY_MEASURED",
    "correct_shares",
    "estimate",
    "needs_replicates",
]

#: Standings of an estimate, by the share of its influence function that no table tells.
MEASURED, MOSTLY_MEASURED, BY_STRUCTURE = "measured", "mostly measured", "by structure"
_MAX_MEASURED, _MAX_MOSTLY_MEASURED = 1e-9, 0.2

#: Largest table of a question, and of all its influence functions together.
_MAX_CELLS, _MAX_NUMBERS = 2**20, 2**25
#: Perturbed models that judge the support, and the standard deviation of their effects of pairs, nats.
_PERTURBED_MODELS, _PERTURBATION = 6, 0.3
#: Newton steps of a regression on the corrected table, and how far they may go beyond the first, standard errors.
_MAX_STEPS, _MAX_MOVE = 20, 3.0
#: Missing tables that are named: up to this many attributes, this many for each estimate, and of at least this share.
_MAX_ORDER, _MAX_NAMED, _MIN_SHARE = 3, 3, 0.005


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
    standing : tuple of str
        "measured", "mostly measured" (at most .2 is unsupported) or "by structure".
    missing : tuple
        For each estimate up to three (attributes, share) whose joint table would tell most of what is unsupported; a
        single attribute stands for its merged codes.
    level, total : float
        Of the intervals; and the number of records.
    unstable : bool
        Whether a regression's equation has no root near the one-step estimate, which then stands.
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
    missing: tuple[tuple[tuple[Clique, float], ...], ...]
    level: float
    total: float
    unstable: bool = False
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
        return tuple(
            MEASURED if u <= _MAX_MEASURED else MOSTLY_MEASURED if u <= _MAX_MOSTLY_MEASURED else BY_STRUCTURE
            for u in self.unsupported.tolist()
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
    question = _Question.of(model, functional, given or {}, rows)
    values, influence = question.evaluate(question.table)
    effects = effects_of(model.learned, question.attributes, question.blocks, question.merges)
    # What the tables say of each cell, less what the model does, as far as they tell it.
    average = question.by_block(influence)
    weights = question.weights(question.table)
    apart = effects.table / effects.total - effects.project(question.mass(question.table)[None])[0]
    apart = effects.spread(apart[None], weights)[0]
    told = effects.project(average, weights)
    corrected = values + average.reshape(len(values), -1) @ apart.reshape(-1)
    sampling = _covariance(told, question.mass(question.table)) / effects.total
    if rows is not None:
        rest = influence - question.by_code(told)
        sampling = sampling + (rest * question.table) @ rest.T / float(np.sum(rows))
    noise = effects.noise(told) / effects.total**2
    structure = _structure_covariance(model, question, average, effects)
    covariance = sampling + noise + structure
    unstable = False
    if isinstance(functional, Regression):
        counts = question.condition(question.table + question.by_weight(apart))
        root = functional.solve(counts, values, _MAX_STEPS)
        errors = np.sqrt(np.diag(covariance))
        # The root may be as far beyond the step as the step was long: then the model is what is far off.
        near = _MAX_MOVE * errors + np.abs(corrected - values)
        unstable = root is None or bool(np.any(np.abs(root - corrected) > near))
        corrected = corrected if unstable or root is None else root
    unsupported, missing = _support(question, effects)
    return CorrectedEstimates(
        attributes=question.attributes,
        names=functional.names,
        estimate=corrected,
        covariance=covariance,
        sampling=sampling,
        noise=noise,
        structure=structure,
        uncorrected=values,
        unsupported=unsupported,
        missing=missing,
        level=level,
        total=effects.total,
        unstable=unstable,
        flaws=caveats_of(model.releases),
    )


# --- A question over all codes, and over blocks of merged ones -----------------------------------


@frozen(kw_only=True)
class _Nothing:
    """A functional without values."""

    attributes: Clique
    names: tuple[str, ...] = ()

    def evaluate(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(0), np.zeros((0, len(table)))


@frozen(kw_only=True, eq=False)
class _Question:
    """A functional of the model's distribution, with its condition and the merged codes among its attributes."""

    functional: Functional
    attributes: Clique
    shape: tuple[int, ...]
    #: Axis of each condition -> its code.
    fixed: Mapping[int, int]
    #: Axis of each attribute with merged codes.
    merged: Mapping[int, MergedAttribute]
    table: FloatArray

    @classmethod
    def of(
        cls, model: Model, functional: Functional, given: Mapping[str, object], rows: FloatArray | None
    ) -> _Question:
        if not model.learned:
            raise OptionError(
                "the model carries no release, so nothing is known of its noise; analyse a model that was learned from "
                "a release"
            )
        names, fixed = model._read(functional.attributes, given)
        attributes = (*names, *fixed)
        shape = tuple(model.domain[name].size for name in attributes)
        cells = math.prod(shape)
        numbers = cells * len(functional.names)
        if cells > _MAX_CELLS or numbers > _MAX_NUMBERS:
            what = f"{cells:,} combinations" if cells > _MAX_CELLS else f"{numbers:,} numbers of {cells:,} combinations"
            most = _MAX_CELLS if cells > _MAX_CELLS else _MAX_NUMBERS
            raise TooLarge(f"this question's attributes have {what}, more than {most:,}; leave some attributes out")
        table = np.asarray(model.marginal(attributes), dtype=np.float64).reshape(-1)
        if rows is not None:
            counts = np.asarray(rows, dtype=np.float64).reshape(-1)
            if fixed or counts.shape != table.shape or not (np.isfinite(counts).all() and (counts >= 0).all()):
                raise OptionError(f"rows are counted in the {cells:,} cells of the question, without a condition")
            if not counts.sum() > 0:
                raise OptionError("there are no rows to analyse")
            table = counts / counts.sum()
        codes = model._merged_codes
        merged = {} if codes is None else {at: codes.of[name] for at, name in enumerate(attributes) if name in codes.of}
        # The one-way table of a merged attribute was measured over all its codes.
        alone = len(attributes) == 1 and all(one.counts is not None for one in merged.values())
        return cls(
            functional=functional,
            attributes=attributes,
            shape=shape,
            fixed={len(names) + at: code for at, code in enumerate(fixed.values())},
            merged={} if alone else merged,
            table=table,
        )

    @property
    def blocks(self) -> tuple[int, ...]:
        """The number of blocks of each attribute."""
        return tuple(self.merged[at].blocks if at in self.merged else size for at, size in enumerate(self.shape))

    @property
    def merges(self) -> dict[str, IntArray]:
        """attribute -> block of each code."""
        return {self.attributes[at]: one.codes for at, one in self.merged.items()}

    def condition(self, table: Array) -> Array:
        """Return p of the functional's own attributes and the condition, (cells of the functional,)."""
        return table.reshape(self.shape)[self._slice].reshape(-1)

    def evaluate(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return values and influence functions, (K,) and (K, cells), at a distribution over all attributes."""
        if not self.fixed:
            return self.functional.evaluate(table)
        inside = self.condition(table)
        mass = float(inside.sum())
        if not mass > 0:
            raise InferenceError("what is given has probability 0 under the model")
        values, influence = self.functional.evaluate(inside / mass)
        whole = np.zeros((len(values), *self.shape))
        whole[(slice(None), *self._slice)] = influence.reshape(len(values), *self.shape[: -len(self.fixed)]) / mass
        return values, whole.reshape(len(values), -1)

    def by_block(self, values: FloatArray) -> FloatArray:
        """Return the mean of functions inside each block, by the model's weights; (K, *blocks)."""
        array = values.reshape(len(values), *self.shape)
        for at, one in self.merged.items():
            weights = np.zeros((one.blocks, len(one.codes)))
            weights[one.codes, np.arange(len(one.codes))] = one.weights
            array = np.moveaxis(np.tensordot(array, weights, axes=(at + 1, 1)), -1, at + 1)
        return array

    def by_code(self, values: FloatArray) -> FloatArray:
        """Return functions of blocks, (K, *blocks), as functions of codes, (K, cells)."""
        for at, one in self.merged.items():
            values = values.take(one.codes, axis=at + 1)
        return values.reshape(len(values), -1)

    def by_weight(self, table: FloatArray) -> FloatArray:
        """Return a table over blocks, spread over their codes by the model's weights; (cells,)."""
        for at, one in self.merged.items():
            table = one.expand(table, at)
        return table.reshape(-1)

    def mass(self, table: FloatArray) -> FloatArray:
        """Return the probabilities of blocks, (*blocks,)."""
        array = table.reshape(self.shape)
        for at, one in self.merged.items():
            members = np.zeros((len(one.codes), one.blocks))
            members[np.arange(len(one.codes)), one.codes] = 1.0
            array = np.moveaxis(np.tensordot(array, members, axes=(at, 0)), -1, at)
        return array

    def weights(self, table: FloatArray) -> list[FloatArray]:
        """Return the probabilities of the blocks of each attribute under a table over all codes."""
        return code_weights(self.mass(table))

    @property
    def _slice(self) -> tuple[slice | int, ...]:
        return tuple(self.fixed.get(at, slice(None)) for at in range(len(self.shape)))


def _covariance(values: FloatArray, table: FloatArray) -> FloatArray:
    """Return the covariance of K functions under a table; (K, K)."""
    flat, weights = values.reshape(len(values), -1), table.reshape(-1)
    centred = flat - (flat @ weights)[:, None]
    return np.asarray((centred * weights) @ centred.T)


def _structure_covariance(model: Model, question: _Question, values: FloatArray, effects: Effects) -> FloatArray:
    """Return what a holdout found of pairs that no table tells, as a covariance; 0 without a holdout."""
    covariance = np.zeros((len(values), len(values)))
    if not model.checked:
        return covariance
    error, table = model._error().expected, question.mass(question.table)[None]
    pairs = [pair for pair in subsets(range(len(effects.shape)), most=2) if len(pair) == 2]
    weights = question.weights(question.table)
    means = means_over_axes(values, [pair for pair in pairs if pair not in effects.variances], weights)
    for pair, mean in means.items():
        part = effect(mean, pair, weights).reshape(len(values), -1)
        shares = [table.sum(axis=tuple(at for at in range(1, table.ndim) if at != axis + 1))[0] for axis in pair]
        scales = cell_scales(*shares).reshape(-1)
        covariance += error * ((part * scales**2) @ part.T)
    return covariance


# --- What the tables tell of an estimate ----------------------------------------------------------


def _support(question: _Question, effects: Effects) -> tuple[FloatArray, tuple[tuple[tuple[Clique, float], ...], ...]]:
    """Return the share of each influence function that no table tells, and the tables that would tell most of it."""
    count = len(question.functional.names)
    worst = np.zeros(count)
    named: list[tuple[tuple[Clique, float], ...]] = [()] * count
    for table in _models(question):
        try:
            _, influence = question.evaluate(table)
        except InferenceError:
            continue  # a perturbed model at which the estimate is undefined judges nothing
        average = question.by_block(influence)
        rest = influence - question.by_code(effects.project(average, question.weights(table)))
        whole = (influence**2) @ table
        shares = np.divide((rest**2) @ table, whole, out=np.zeros(count), where=whole > 0)
        higher = np.flatnonzero((shares > worst) & (shares > _MAX_MEASURED))
        worst = np.maximum(worst, shares)
        if len(higher):
            found = _missing(question, effects, influence[higher], average[higher], table)
            for at, one in zip(higher, found, strict=True):
                named[at] = one
    return np.minimum(worst, 1.0), tuple(named)


def _models(question: _Question) -> Iterator[FloatArray]:
    """Yield the model's table, and tables with other effects of pairs, from fixed seeds; (cells,)."""
    yield question.table
    pairs = [pair for pair in subsets(range(len(question.shape)), most=2) if len(pair) == 2]
    for seed in range(_PERTURBED_MODELS if pairs else 0):
        generator = np.random.default_rng(seed)
        effects: dict[Axes, FloatArray] = {}
        for pair in pairs:
            shape = [size if at in pair else 1 for at, size in enumerate(question.blocks)]
            effects[pair] = generator.normal(scale=_PERTURBATION, size=(1, *shape))
        table = question.table * np.exp(question.by_code(add_over_axes(effects, question.blocks)))[0]
        yield table / table.sum()


def _missing(
    question: _Question, effects: Effects, influence: FloatArray, average: FloatArray, table: FloatArray
) -> list[tuple[tuple[Clique, float], ...]]:
    """Return, for each influence function, the sets whose effects no table tells, with their shares of its variance."""
    whole, mass = (influence**2) @ table, question.mass(table)[None]
    sets = [axes for axes in subsets(range(len(effects.shape)), most=_MAX_ORDER) if axes not in effects.variances]
    shares: dict[Clique, FloatArray] = {}
    codes = question.weights(table)
    means = means_over_axes(average, sets, codes)
    weights = means_over_axes(mass, sets)
    for axes in sets:
        part = effect(means[axes], axes, codes).reshape(len(average), -1)
        weight = weights[axes].reshape(-1) * (mass.size / weights[axes].size)
        shares[tuple(question.attributes[at] for at in axes)] = (part**2) @ weight / whole
    for at in question.merged:
        # What is lost by the mean inside the blocks of this attribute alone.
        one = _only(question, at)
        inside = influence - one.by_code(one.by_block(influence))
        shares[question.attributes[at],] = (inside**2) @ table / whole
    return [_largest({names: float(share[at]) for names, share in shares.items()}) for at in range(len(influence))]


def _only(question: _Question, axis: int) -> _Question:
    return evolve(question, merged={axis: question.merged[axis]})


def _largest(shares: Mapping[Clique, float]) -> tuple[tuple[Clique, float], ...]:
    ordered = sorted(shares.items(), key=lambda one: -one[1])[:_MAX_NAMED]
    return tuple((names, share) for names, share in ordered if share >= _MIN_SHARE)


# --- Intervals of probabilities -------------------------------------------------------------------
# The influence function of p(x | g) is (1{x, g} - p(x | g) 1{g}) / p(g). Its correction is read off the table of what
# the releases say less what the model does. Its noise is a quadratic form of indicators, and that of two cells depends
# only on which axes they agree on: sum over S in D of v_S / r_S^2 prod over S of (1{agree} - 1/size), r_S the cells
# outside S. Sampling counts in full, p(x | g) (1 - p(x | g)) / (N p(g)), also for the part that no table tells.


def _split_variance(merged: MergedAttribute, shares: FloatArray, total: float) -> FloatArray:
    """Return the relative variance of p(code | block) from the noise and sampling of its table, (labels,).

    That of the unshrunk share, at most what an unknown share has. shares: p of each code.
    """
    sizes = np.bincount(merged.codes)[merged.codes]
    blocks = np.bincount(merged.codes, weights=shares)[merged.codes]
    variance = (1 - 1 / sizes) * (merged.variance + total * shares)
    known = np.divide(variance, (total * blocks) ** 2, out=np.zeros(len(shares)), where=blocks > 0)
    known = np.minimum(known, np.where(merged.is_alone, 0.0, 0.25))
    relative: FloatArray = np.divide(known, merged.weights**2, out=np.zeros(len(shares)), where=merged.weights > 0)
    return relative


def needs_replicates(model: Model, attributes: Clique) -> bool:
    """Return whether intervals of probabilities of these attributes take replicates.

    They do where no table tells each of the attributes by itself, as with tied cliques, rounds, gradients and
    normalised contributions, and for more than 2**20 cells.
    """
    if not model.learned or math.prod(model.domain[name].size for name in attributes) > _MAX_CELLS:
        return True
    question = _Question.of(model, _Nothing(attributes=attributes), {}, None)
    known = effects_of(model.learned, question.attributes, question.blocks, question.merges).variances
    return any((at,) not in known for at, size in enumerate(question.blocks) if size > 1)


def correct_shares(
    model: Model, names: Clique, fixed: Mapping[str, int], answer: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Return p(names | fixed) corrected from the released tables, and its variance from sampling and noise.

    answer: the model's. None where it `needs_replicates`. What no table tells of an answer by structure is neither
    corrected nor part of the variance.
    """
    if needs_replicates(model, (*names, *fixed)):
        return None
    question = _Question.of(model, _Nothing(attributes=names), fixed, None)
    effects = effects_of(model.learned, question.attributes, question.blocks, question.merges)
    mass = question.mass(question.table)
    apart = question.by_weight(effects.table / effects.total - effects.project(mass[None])[0])
    given, inside = float(question.condition(question.table).sum()), question.condition(apart).reshape(answer.shape)
    corrected = answer + (inside - answer * inside.sum()) / given
    # Of two cells that agree, of a cell and the sum of all that are asked about, and of this sum with itself.
    free, count, cells = len(names), math.prod(effects.shape[: len(names)]), math.prod(effects.shape)
    same = across = 0.0
    for axes, variance in effects.variances.items():
        rest = cells / math.prod(effects.shape[at] for at in axes)
        norm = variance / rest**2 * math.prod(1 - 1 / effects.shape[at] for at in axes)
        same += norm
        if all(at >= free for at in axes):
            across += norm * count
    noise = (same - 2 * answer * across + answer**2 * across * count) / (given * effects.total) ** 2
    errors: FloatArray = answer * (1 - answer) / (given * effects.total) + noise
    for at, one in question.merged.items():
        if at < free and one.counts is not None:
            others = tuple(axis for axis in range(len(question.shape)) if axis != at)
            relative = _split_variance(one, question.table.reshape(question.shape).sum(axis=others), effects.total)
            errors = errors + answer**2 * relative.reshape([-1 if axis == at else 1 for axis in range(free)])
    impossible = Structure(model.domain, [question.attributes]).impossible
    if impossible is None:
        return corrected, errors
    ruled_out = question.condition(impossible).reshape(answer.shape)
    return np.where(ruled_out, 0.0, corrected), np.where(ruled_out, 0.0, errors)
