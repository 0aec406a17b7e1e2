"""Tables for analyses that are stated before the records are read: which, with which shares of a budget.

Let psi_j be the influence function of coefficient j of an analysis, and psi_jS its effect of the attributes S
(`dpgm_core.models.effects`). Where table k over T_k has noise variance v / a_k in each cell, a_k its share of a budget,
and m_kS of its cells per cell of S, noise adds to the variance of coefficient j, N**2 times,

    sum over S of v |psi_jS|^2 / P_S,    P_S = sum over k with S inside T_k of a_k / m_kS.

The split minimises F(a) = sum_S Q_S / P_S, Q_S = sum_j |psi_jS|^2 / Var(psi_j): noise beside sampling, summed over the
coefficients. F is convex and homogeneous of degree -1, so that sum_k a_k g_k = F for g_k = -dF/da_k, and shares that
sum to 1 are optimal where no g_k exceeds F. The updates a_k sqrt(g_k / F) are those of Silvey, Titterington and
Torsney (1978).

psi_j stands for its part that the effects of some sets tell, as in an analysis (`P_w` of `dpgm_core.models.effects`):
of sets whose effects are a part of the variance worth a table. psi depends on the population, which nobody may look at
here, so Q is the mean over random distributions with fixed seeds: tables and shares follow from the domain and the
analyses alone. An effect that no influence function has, such as that of an outcome with two covariates that share no
term, needs no table, and one of a tiny part of every variance is left to the model.

Under pure budgets the variance is v / b_k**2 for a share b_k. P_S = sum_k b_k**2 / m_kS makes F neither convex nor best
for many tables: k tables cost k**2 each, their union only the product of the sizes that it adds. So larger tables are
candidates too, also where they tell effects that no analysis needs, whose noise counts in F; F is lowered from random
starts with fixed seeds by b_k (-dF/db_k)**(1/3), which is exact in one step for tables without common effects and ends
with few tables.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core._util.blas import one_thread
from dpgm_core._util.progress import Progress
from dpgm_core._util.randomness import Randomness
from dpgm_core.components.options import component_option, option
from dpgm_core.components.registry import make
from dpgm_core.curator.contract import Session
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import (
    BudgetError,
    InferenceError,
    OptionError,
    StructureError,
    TooLarge,
    brief,
    human_bytes,
    listed,
)
from dpgm_core.inference.contract import Inference
from dpgm_core.learning.contract import Fit
from dpgm_core.learning.model_size import ModelSize, limits_of
from dpgm_core.learning.named_cliques import deviation, share_of
from dpgm_core.learning.selector import (
    Fitting,
    MergingSelector,
    Selection,
    SelectionPlan,
    Selector,
    SwitchingSelector,
    VotingSelector,
)
from dpgm_core.models.effects import Axes, add_over_axes, code_weights, effect, effect_norms, means_over_axes
from dpgm_core.models.functionals import Functional, Regression
from dpgm_core.models.within_bins import missing_code
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.workload import Workload

__all__ = [
    "ANALYSIS_TABLES",
    "ResearchPlan",
    "Targeted",
    "default_share",
    "plan_research",
    "split_budget",
    "split_pure_budget",
]

#: Share of a budget for the tables of analyses where another selector has the rest, and where they hold all columns.
_SHARE, _SHARE_OF_ALL = 0.6, 0.9
#: Purpose of the budget of the tables of analyses, in the plan of a selection.
ANALYSIS_TABLES = "tables of the analyses"
#: Random distributions of the guess, and fewer where influence functions have more numbers than this.
_MODELS, _FEW_MODELS, _MANY_NUMBERS = 24, 4, 2**20
#: Standard deviations of what is random in them: effects of attributes and of pairs of covariates, and the intercept of
#: labels; nats. The spread of a regression's predictor for labels, and for numbers of spread 1, and the largest
#: coefficient of a column of spread 1.
_MAIN_EFFECT, _PAIR_EFFECT, _INTERCEPT = 0.5, 0.3, 1.0
_FOR_LABELS, _FOR_NUMBERS, _MAX_COEFFICIENT = 1.3, 0.65, 0.5
#: How rare missing values are beside a label, nats.
_MISSING = -9.0
#: Effect of a pair that is too large to be measured, per standard deviation of each: a correlation of about .8.
_STRONG_EFFECT = 1.25
#: Cells of an analysis' table, and those times its numbers.
_MAX_CELLS, _MAX_NUMBERS = 2**20, 2**25
#: Effects of a smaller part of each variance are left to the model, and tables with a smaller share are not measured.
_MIN_EFFECT, _MIN_SHARE = 5e-4, 1e-4
#: Larger ones too where no table then tells at most such a share of any answer, in nine of ten distributions, which is
#: far from `by structure`: as with many labels, whose tables of three attributes cost much.
_FEW_EFFECT, _FEW_QUANTILE, _FEW_UNSUPPORTED = 3e-3, 0.9, 0.03
#: Updates of the split at most, and how far above F, in parts, a gradient may be at the end.
_MAX_UPDATES, _GAP = 3000, 1e-3
#: Starts and updates of the split of a pure budget, and the most tables that it chooses among.
_STARTS, _PURE_UPDATES, _MAX_TABLES = 40, 200, 1000
#: Share of all influence functions of an analysis outside of the tables from which it is refused.
_MAX_UNSUPPORTED = 0.5
#: Widest noise of a table, standard deviation in records, that is sure to be drawn; tables that a plan names.
_MAX_DEVIATION, _SHOWN = 2.0**28, 8


# --- The split of a budget ------------------------------------------------------------------------


def split_budget(needs: Mapping[Clique, float], tables: Sequence[Clique], sizes: Mapping[str, int]) -> FloatArray:
    """Return the shares of a budget for Gaussian noise that minimise F, (tables,); they sum to 1.

    Parameters
    ----------
    needs : mapping of clique to float
        Q_S of each effect. Those inside no table are left out.
    tables : sequence of Clique
        Their attributes, and those of effects, in one order.
    sizes : mapping of str to int
        Number of labels of each attribute.
    """
    objective = _Objective.of(needs, tables, sizes)
    shares = np.full(len(tables), 1 / len(tables))
    for _ in range(_MAX_UPDATES):
        value, gradients = objective.value(shares), objective.gradients(shares)
        if gradients.max() <= value * (1 + _GAP):
            break
        shares = shares * np.sqrt(gradients / value)
        shares /= shares.sum()
    return shares


def split_pure_budget(
    needs: Mapping[Clique, float], besides: Mapping[Clique, float], tables: Sequence[Clique], sizes: Mapping[str, int]
) -> FloatArray:
    """Return shares of a pure budget for which F is low, (tables,); they sum to 1, and most of them are 0.

    Parameters
    ----------
    needs, besides : mapping of clique to float
        Q_S of the effects that tables must tell, and of others that count where some table tells them.
    tables, sizes :
        As of `split_budget`.
    """
    needed, other = _Objective.of(needs, tables, sizes), _Objective.of(besides, tables, sizes)
    generator = np.random.default_rng(0)
    best, least = np.zeros(len(tables)), math.inf
    for _ in range(_STARTS):
        shares = generator.exponential(size=len(tables)) ** 2
        shares /= shares.sum()
        for _ in range(_PURE_UPDATES):
            if not needed.is_told(shares**2):
                break
            before = shares
            shares = shares * (2 * shares * needed.gradients(shares**2)) ** (1 / 3)
            shares /= shares.sum()
            shares[shares < _MIN_SHARE] = 0.0
            if np.abs(shares - before).max() < _MIN_SHARE / 10:
                break
        shares /= shares.sum()
        value = needed.value(shares**2) + other.value(shares**2) if needed.is_told(shares**2) else math.inf
        if value < least:
            best, least = shares, value
    return best


@frozen(kw_only=True, eq=False)
class _Objective:
    """F over shares. of_table, of_effect, weights: each table, each effect inside it, and 1 / m_kS."""

    needs: FloatArray
    tables: int
    of_table: IntArray
    of_effect: IntArray
    weights: FloatArray

    @classmethod
    def of(cls, needs: Mapping[Clique, float], tables: Sequence[Clique], sizes: Mapping[str, int]) -> _Objective:
        inside = [(number, some) for number, table in enumerate(tables) for some in _inside(table) if some in needs]
        places = {some: number for number, some in enumerate(dict.fromkeys(some for _, some in inside))}
        rest = [math.prod(sizes[name] for name in tables[number] if name not in some) for number, some in inside]
        return cls(
            needs=np.array([needs[some] for some in places], dtype=np.float64),
            tables=len(tables),
            of_table=np.array([number for number, _ in inside], dtype=np.int64),
            of_effect=np.array([places[some] for _, some in inside], dtype=np.int64),
            weights=1 / np.array(rest, dtype=np.float64),
        )

    def value(self, shares: FloatArray) -> float:
        """Return F, of the effects that some table with a share tells."""
        precisions = self._precisions(shares)
        told = precisions > 0
        return float(np.sum(self.needs[told] / precisions[told]))

    def is_told(self, shares: FloatArray) -> bool:
        """Return whether tables with a share tell each effect."""
        return bool(np.all(self._precisions(shares) > 0))

    def gradients(self, shares: FloatArray) -> FloatArray:
        """Return g_k = -dF/da_k, (tables,)."""
        slopes = self.needs / self._precisions(shares) ** 2
        return _sums(self.of_table, self.weights * slopes[self.of_effect], self.tables)

    def _precisions(self, shares: FloatArray) -> FloatArray:
        return _sums(self.of_effect, self.weights * shares[self.of_table], len(self.needs))


def _sums(numbers: IntArray, values: FloatArray, count: int) -> FloatArray:
    return np.asarray(np.bincount(numbers, values, count), dtype=np.float64)


def _inside(clique: Clique) -> Iterator[Clique]:
    """Yield the subsets of a clique, in its order."""
    for size in range(len(clique) + 1):
        yield from itertools.combinations(clique, size)


def _parts(weights: Sequence[float], kind: str) -> list[float]:
    """Return the parts of a budget of this kind for shares that are optimal for Gaussian noise; they sum to 1.

    The variance of pure noise falls with the square of a share, so that each is raised to 2/3: for tables without
    common effects this is the optimum.
    """
    powers = [weight ** (2 / 3) if kind == "pure" else weight for weight in weights]
    return [power / sum(powers) for power in powers]


def _budgets(weights: Sequence[float], budget: Budget) -> list[Budget]:
    """Return a budget for each table, together all of it."""
    budgets = [share_of(budget, part) for part in _parts(weights, budget.kind)]
    return [*budgets[:-1], budget - Budget.sum(budgets[:-1])] if len(budgets) > 1 else [budget]


# --- The plan -------------------------------------------------------------------------------------


@frozen(kw_only=True, eq=False, repr=False)
class ResearchPlan:
    """Tables for analyses, and what their noise is expected to cost each coefficient; made without records.

    Attributes
    ----------
    domain : Domain
    analyses : tuple of Functional
    tables : tuple of Clique
    weights : tuple of float
        Shares of a budget for Gaussian noise, which sum to 1.
    unsupported : tuple of arrays of shape (K,)
        For each analysis the median share of each influence function, as a variance, that no table tells; the larger
        one where pairs that are too large to be measured depend strongly.
    notes : tuple of str
        What its reader should know.
    """

    domain: Domain
    analyses: tuple[Functional, ...]
    tables: tuple[Clique, ...]
    weights: tuple[float, ...]
    unsupported: tuple[FloatArray, ...]
    #: For each analysis: effect -> |psi_jS|^2 / Var(psi_j) at each random distribution, (distributions, K).
    _norms: tuple[Mapping[Clique, FloatArray], ...] = field(alias="norms")
    notes: tuple[str, ...] = ()

    def widths(self, budget: Budget, terms: Terms, records: float) -> tuple[FloatArray, ...]:
        """Return how much wider each interval is expected to be than that of a sample without noise, (K,) ratios.

        The mean over the random distributions, without what other tables tell besides.

        Parameters
        ----------
        budget : Budget
            Of these tables together, pure or zCDP.
        records : float
            Their number, public or a guess.
        """
        variances = [
            deviation(part, Structure(self.domain, [table]), terms) ** 2
            for table, part in zip(self.tables, _budgets(self.weights, budget), strict=True)
        ]
        precisions: dict[Clique, float] = {}
        for table, variance in zip(self.tables, variances, strict=True):
            for some in _inside(table):
                cells = math.prod(self.domain[name].size for name in table if name not in some)
                precisions[some] = precisions.get(some, 0.0) + 1 / (variance * cells)
        if terms.total_policy != "estimated":
            precisions.pop((), None)
        added = [sum(norms[some] / precisions[some] for some in norms if some in precisions) for norms in self._norms]
        return tuple(np.asarray(np.mean(np.sqrt(1 + one / records), axis=0)) for one in added)

    def __repr__(self) -> str:
        return brief("ResearchPlan", f"{len(self.analyses)} analyses", f"{len(self.tables)} tables")


@one_thread
def plan_research(
    analyses: Sequence[Functional],
    workload: Workload,
    *,
    pure: bool = False,
    pools: Sequence[Mapping[str, IntArray]] = (),
) -> ResearchPlan:
    """Return the tables for analyses among a workload's candidates, and their shares; no record is read.

    Parameters
    ----------
    analyses : sequence of Functional
        Over attributes of the workload's domain, with all their codes or over pools of them.
    workload : Workload
        Its candidates are the tables that may be measured.
    pure : bool
        Whether the budget is pure, under which few large tables are better than many small ones.
    pools : sequence of mappings, optional
        For each analysis: attribute -> the pool of each of its codes, as in `dpgm_core.models.analysis.estimate`.

    Raises
    ------
    StructureError
        An attribute has private labels or bins, or no candidate tells anything of an analysis.
    TooLarge
        The table of an analysis has more than 2**20 cells.
    InferenceError
        An analysis is undefined for any distribution, as one with a singular design is.
    """
    domain = workload.domain
    guesses = [
        _Guess.of(analysis, domain, workload.candidates, one)
        for analysis, one in zip(analyses, pools or [{}] * len(analyses), strict=True)
    ]
    if not guesses:
        raise OptionError("there is no analysis to plan tables for; name at least one")
    large = [guess.large_effects() for guess in guesses]
    needed = [
        {inner for one in large for some, part in one.items() if part >= least for inner in _inside(some)}
        for least in (_MIN_EFFECT, _FEW_EFFECT)
    ]
    few = [guess.unsupported(needed[1], _FEW_QUANTILE).max() <= _FEW_UNSUPPORTED for guess in guesses]
    split = _Split.of(guesses, needed[all(few)], workload, pure)
    tables, shares = split.tables, split.shares
    chosen = [number for number, share in enumerate(shares.tolist()) if share > 0]
    measured = {some for number in chosen for some in _inside(tables[number])}
    unsupported = tuple(guess.unsupported(measured) for guess in guesses)
    for guess, shares_without in zip(guesses, unsupported, strict=True):
        if shares_without.min() > _MAX_UNSUPPORTED:
            raise StructureError(
                f"no table that the workload allows tells enough of {listed(guess.analysis.names, 3)} over "
                f"{listed(guess.names, 5)}; raise max_cells of the workload (a table of all these columns has "
                f"{math.prod(domain.shape(guess.names)):,} cells) or its order, take from `never`, or take columns of "
                "fewer labels or bins"
            )
    forecasts, notes = _forecast_large_pairs(guesses, unsupported, measured, workload)
    return ResearchPlan(
        domain=domain,
        analyses=tuple(analyses),
        tables=tuple(tables[number] for number in chosen),
        weights=tuple((shares[chosen] / shares[chosen].sum()).tolist()),
        unsupported=forecasts,
        norms=split.norms,
        notes=notes,
    )


def _forecast_large_pairs(
    guesses: Sequence[_Guess], unsupported: Sequence[FloatArray], measured: set[Clique], workload: Workload
) -> tuple[tuple[FloatArray, ...], tuple[str, ...]]:
    """Return what no table tells where pairs that are too large to be measured depend strongly, and notes on them."""
    large, forecasts, notes = workload.large_pairs(workload.domain), list(unsupported), list[str]()
    for number, guess in enumerate(guesses):
        apart = [pair for pair in large if set(pair) <= set(guess.names)]
        if not apart:
            continue
        axes = tuple(tuple(sorted(map(guess.names.index, pair))) for pair in apart)
        forecasts[number] = np.maximum(forecasts[number], evolve(guess, strong=axes).unsupported(measured))
        needed = max(math.prod(workload.domain.shape(pair)) for pair in apart)
        limit = f"{listed([*map(' x '.join, apart)], 3)}, with more than max_cells = {workload.max_cells:,} cells"
        why = f"what is measured is forecast as if these depended strongly; max_cells = {needed} admits all"
        notes.append(f"the analysis of {listed(guess.names, 5)} has no table of {limit}: {why}")
    return tuple(forecasts), tuple(notes)


@frozen(kw_only=True, eq=False)
class _Split:
    """Tables, their shares in the words of `ResearchPlan.weights`, and the norms of effects for each analysis."""

    tables: tuple[Clique, ...]
    shares: FloatArray
    norms: tuple[Mapping[Clique, FloatArray], ...]

    @classmethod
    def of(cls, guesses: Sequence[_Guess], needed: set[Clique], workload: Workload, pure: bool) -> _Split:
        """Return the split for these effects."""
        tables = [some for some in workload.candidates if some in needed]
        within = [some for some in workload.candidates if any(some in guess.sets for guess in guesses)]
        larger = pure and bool(tables) and len(within) <= _MAX_TABLES
        tables = within if larger else tables
        told = {some for one in tables for some in _inside(one)} if larger else needed
        norms = tuple(guess.norms(told) for guess in guesses)
        needs: dict[Clique, float] = {}
        for one in norms:
            for some, parts in one.items():
                needs[some] = needs.get(some, 0.0) + float(parts.sum(axis=1).mean()) / len(norms)
        if not tables:
            return cls(tables=(), shares=np.zeros(0), norms=norms)
        if larger:
            besides = {some: need for some, need in needs.items() if some not in needed}
            must = {some: need for some, need in needs.items() if some in needed}
            shares = split_pure_budget(must, besides, tables, workload.domain.sizes) ** 1.5
        else:
            shares = split_budget(needs, tables, workload.domain.sizes)
            shares = np.where(shares >= _MIN_SHARE, shares, 0.0)
        return cls(tables=tuple(tables), shares=shares / shares.sum(), norms=norms)


# --- The public guess -----------------------------------------------------------------------------


@frozen(kw_only=True, eq=False)
class _Guess:
    """Influence functions of an analysis at random distributions. names: its attributes. missing: the code of each that
    stands for a missing value. sets: effects that candidate tables hold, as axes, by their attributes in the domain's
    order. pooled: codes in the largest pool of each attribute; as many cells of a table make one of its pools. strong:
    pairs of axes that depend strongly."""

    analysis: Functional
    names: Clique
    shape: tuple[int, ...]
    missing: tuple[int | None, ...]
    sets: Mapping[Clique, Axes]
    pooled: tuple[int, ...]
    strong: tuple[Axes, ...] = ()

    @classmethod
    def of(
        cls, analysis: Functional, domain: Domain, candidates: Sequence[Clique], pools: Mapping[str, IntArray]
    ) -> _Guess:
        names = tuple(analysis.attributes)
        undetermined = [name for name in names if name in domain.undetermined]
        if undetermined:
            raise StructureError(
                f"the labels or bins of {undetermined[0]!r} are still to be found privately, so no tables can be "
                "planned for an analysis of it; give it public labels or bins, or those "
                "that an earlier run printed or wrote as a domain"
            )
        codes = [pools.get(name, np.arange(domain[name].size)) for name in names]
        counts = [np.bincount(one) for one in codes]
        shape = tuple(map(len, counts))
        if math.prod(shape) > _MAX_CELLS:
            raise TooLarge(
                f"the columns of an analysis have {math.prod(shape):,} combinations, more than {_MAX_CELLS:,}; leave "
                "some out"
            )
        numbers = math.prod(shape) * len(analysis.names)
        if numbers > _MAX_NUMBERS:
            raise TooLarge(
                f"an analysis of {listed(names, 5)} has {len(analysis.names):,} numbers over {math.prod(shape):,} "
                f"combinations, more than {_MAX_NUMBERS:,} in all; leave terms out"
            )
        axes = {name: axis for axis, name in enumerate(names)}
        sets = {one: tuple(sorted(axes[name] for name in one)) for one in candidates if axes.keys() >= set(one)}
        rare = [missing_code(domain[name]) for name in names]
        return cls(
            analysis=analysis,
            names=names,
            shape=shape,
            missing=tuple(None if code is None else int(one[code]) for code, one in zip(rare, codes, strict=True)),
            sets={(): (), **sets},
            pooled=tuple(int(one.max()) for one in counts),
        )

    def large_effects(self) -> dict[Clique, float]:
        """Return the part of an influence function's variance that the effects of each set are under the shares of
        codes, the largest."""
        sums: dict[Clique, FloatArray] = {some: np.zeros(len(self.analysis.names)) for some in self.sets}
        count = 0
        for influence, variances, table in self._influences():
            weights, axes = code_weights(table), self.sets.values()
            means, masses = means_over_axes(influence, axes, weights), means_over_axes(table[None], axes)
            for some, one in self.sets.items():
                part = effect(means[one], one, weights).reshape(len(influence), -1)
                mass = masses[one].reshape(-1) * (table.size / masses[one].size)
                sums[some] = sums[some] + (part**2 @ mass) / variances
            count += 1
        return {some: float((total / count).max()) for some, total in sums.items() if some}

    def norms(self, held: set[Clique]) -> dict[Clique, FloatArray]:
        """Return |psi_jS|^2 / Var(psi_j) of each of these effects at each distribution, (distributions, K), psi being
        the part of an influence function that they tell."""
        inside = {some: axes for some, axes in self.sets.items() if some in held}
        result: dict[Clique, list[FloatArray]] = {some: [] for some in inside}
        for influence, variances, table in self._influences():
            norms = effect_norms(self._told(influence, table, inside.values()), inside.values())
            for some, axes in inside.items():
                result[some].append(math.prod(self.pooled[axis] for axis in axes) * norms[axes] / variances)
        return {some: np.stack(norms) for some, norms in result.items()}

    def unsupported(self, held: set[Clique], quantile: float = 0.5) -> FloatArray:
        """Return a quantile over the distributions of each influence function's share outside these effects, (K,)."""
        axes = [axes for some, axes in self.sets.items() if some in held or not some]
        shares = []
        for influence, variances, table in self._influences():
            rest = (influence - self._told(influence, table, axes)).reshape(len(influence), -1)
            shares.append((rest**2 @ table.reshape(-1)) / variances)
        return np.asarray(np.quantile(shares, quantile, axis=0))

    def _told(self, influence: FloatArray, table: FloatArray, axes: Collection[Axes]) -> FloatArray:
        """Return the part of functions that effects tell, (K, *shape)."""
        if not axes:
            return np.zeros((len(influence), *self.shape))
        weights, listed_axes = code_weights(table), list(axes)
        means = means_over_axes(influence, listed_axes, weights)
        return add_over_axes({one: effect(means[one], one, weights) for one in listed_axes}, self.shape)

    def _influences(self) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Yield influence functions, (K, *shape), their variances, (K,), and the table, (*shape); never nothing."""
        refusal: InferenceError | None = None
        many = len(self.analysis.names) * math.prod(self.shape) > _MANY_NUMBERS
        is_valid = False
        for seed in range(_FEW_MODELS if many else _MODELS):
            table = self._table(np.random.default_rng(seed))
            try:
                _, influence = self.analysis.evaluate(table)
            except InferenceError as error:
                refusal = error
                continue
            is_valid = True
            variances = np.maximum(influence**2 @ table, 1e-300)
            yield influence.reshape(len(influence), *self.shape), variances, table.reshape(self.shape)
        if not is_valid and refusal is not None:
            raise refusal

    def _table(self, generator: np.random.Generator) -> FloatArray:
        """Return a random distribution over the cells, (cells,): effects of attributes and of pairs of covariates, and
        of a regression's design on its outcome."""
        analysis, shape = self.analysis, self.shape
        outcomes = _outcome_axes(analysis, shape) if isinstance(analysis, Regression) else ()
        inner = [axis for axis in range(len(shape)) if axis not in outcomes]
        scales: dict[Axes, float] = {(axis,): _MAIN_EFFECT for axis in range(len(shape))}
        scales |= dict.fromkeys(itertools.combinations(inner, 2), _PAIR_EFFECT)
        effects: dict[Axes, FloatArray] = {
            axes: generator.normal(scale=scale, size=(1, *(size if at in axes else 1 for at, size in enumerate(shape))))
            for axes, scale in scales.items()
        }
        for axes in self.strong:
            scores = [math.sqrt(3) * np.linspace(-1, 1, shape[axis]) for axis in axes]
            strong = _STRONG_EFFECT * np.multiply.outer(*scores)
            effects[axes] = strong.reshape(1, *(size if at in axes else 1 for at, size in enumerate(shape)))
        for axis, code in enumerate(self.missing):
            if code is not None:
                np.moveaxis(effects[axis,], axis + 1, 0)[code] += _MISSING
        table: FloatArray = np.exp(add_over_axes(effects, shape)).reshape(-1)
        if isinstance(analysis, Regression):
            table = _with_regression(analysis, table / table.sum(), generator)
        total = float(table.sum())
        return table / total


def _outcome_axes(regression: Regression, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes that the design does not depend on."""
    design = regression.design.reshape(*shape, -1)
    return tuple(axis for axis in range(len(shape)) if np.ptp(design, axis=axis).max() == 0)


def _with_regression(regression: Regression, table: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Return the table with random coefficients of the regression, for columns and numbers of one spread; its link is
    canonical, so that each outcome's odds get a factor exp(y x' beta)."""
    design, outcome = regression.design, regression.outcome
    inside = table if regression.included is None else table * regression.included
    inside = inside / inside.sum()
    means = inside @ design
    spreads = np.sqrt(np.maximum(inside @ design**2 - means**2, 0.0))
    columns = np.divide(design - means, spreads, out=np.zeros_like(design), where=spreads > 1e-9)
    scale = min(1 / math.sqrt(design.shape[1] - 1), _MAX_COEFFICIENT / _FOR_LABELS) if design.shape[1] > 1 else 0.0
    predictor = columns @ generator.normal(scale=scale, size=(design.shape[1], outcome.shape[1]))
    if regression.family in ("linear", "poisson"):
        centred = outcome - inside @ outcome
        outcome = centred / math.sqrt(max(float(inside @ centred[:, 0] ** 2), 1e-18))
        predictor = _FOR_NUMBERS * predictor
    else:
        predictor = _FOR_LABELS * predictor + generator.normal(scale=_INTERCEPT, size=outcome.shape[1])
    exponent = np.where(inside > 0, np.sum(predictor * outcome, axis=1), -np.inf)
    factors = np.exp(exponent - exponent.max())
    return np.where(inside > 0, table * factors / (inside @ factors), table)


def default_share(columns: Iterable[str], workload: Workload) -> float:
    """Return the share of a budget for tables of these columns, where another selector has the rest.

    Where they are all that the workload holds, their tables serve every other question too; else the other columns
    have only the rest.

    >>> workload = Workload.all(Domain.from_sizes({"a": 2, "b": 2, "c": 2}))
    >>> default_share("abc", workload), default_share("ab", workload)
    (0.9, 0.6)
    """
    return _SHARE_OF_ALL if set(columns).issuperset(workload.attributes) else _SHARE


# --- The selector ---------------------------------------------------------------------------------


def _in_unit(instance: object, attribute: Any, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise OptionError(f"{attribute.name} must be a number above 0 and at most 1, got {value!r}")


@frozen(kw_only=True)
class Targeted:
    """Tables that are named, such as those of a `ResearchPlan`; then another selector with what they leave.

    Serves the budgets of the other selector.
    """

    tables: tuple[tuple[str, ...], ...] = option((), help="tables to measure first, each a list of columns")
    weights: tuple[float, ...] = option(
        (), help="what their parts of a budget with Gaussian noise are proportional to, by table; none for equal parts"
    )
    analyses: tuple[str, ...] = option((), help="what they are for, in words; part of the model's provenance")
    share: float = option(_SHARE, help="their part of the budget; at 1 no other table is measured", validator=_in_unit)
    then: Any = component_option("auto", kind="selector", help="the selector that spends the rest")

    def __attrs_post_init__(self) -> None:
        if self.weights and len(self.weights) != len(self.tables):
            raise OptionError(f"{len(self.tables)} tables have {len(self.weights)} weights; give one for each table")
        numbers = (isinstance(one, (int, float)) and not isinstance(one, bool) for one in self.weights)
        if not all(numbers) or not all(0 < weight < math.inf for weight in self.weights):
            raise OptionError("weights must be finite numbers above 0")

    @property
    def merges_codes(self) -> bool:
        """Whether the selector that spends the rest merges codes; see `MergingSelector`."""
        then = self._rest() if self.share < 1 else None
        return isinstance(then, MergingSelector) and then.merges_codes

    def without_switch(self) -> Targeted:
        """See `SwitchingSelector`."""
        then = self._rest()
        return evolve(self, then=then.without_switch()) if isinstance(then, SwitchingSelector) else self

    def plan(self, workload: Workload, budget: Budget, terms: Terms, records: float | None = None) -> SelectionPlan:
        """See `Selector.plan`."""
        tables = self._tables_in(workload)
        own = budget if self.share == 1 else share_of(budget, self.share)
        deviations = [
            deviation(part, Structure(workload.domain, [table]), terms)
            for table, part in zip(tables, _budgets(self._weights, own), strict=True)
        ]
        if max(deviations) > _MAX_DEVIATION:
            raise BudgetError(
                f"a table of the analyses would have noise of {max(deviations):.2g} records (standard deviation), "
                "which is too wide; give more budget, or name fewer analyses"
            )
        named = listed([*map(" x ".join, self._by_weight(tables))], _SHOWN)
        note = f"{len(tables):,} tables of the analyses are measured first: {named}"
        longest = max(map(len, tables))
        if self.share == 1:
            return SelectionPlan(
                shares={ANALYSIS_TABLES: own},
                deviation=min(deviations),
                detectable=None,
                candidates=len(tables),
                limits={},
                choices=(),
                order=longest,
                structure=Structure(workload.domain, tables),
                notes=[note],
            )
        then = self._rest()
        plan = then.plan(workload, budget - own, terms, records)
        if plan.directed or plan.contrasts:
            chosen = "a directed graph" if plan.directed else "contrasts"
            raise StructureError(
                f"the selector after the tables of the analyses chooses {chosen}, which these tables do not go with; "
                "take selector = 'auto' under [structure], in Python then = 'auto'"
            )
        self._check_size(workload, tables, plan.limits)
        return evolve(
            plan,
            shares={ANALYSIS_TABLES: own, **plan.shares},
            order=None if plan.order is None else max(plan.order, longest),
            structure=None if plan.structure is None else _with_tables(plan.structure, tables),
            switched=None if plan.switched is None else _with_tables(plan.switched, tables),
            notes=[note, *plan.notes],
        )

    def select(
        self, session: Session, *, inference: Inference, fitting: Fitting, randomness: Randomness, progress: Progress
    ) -> Selection:
        """See `Selector.select`."""
        tables = self._tables_in(session.workload)
        own = session.budget if self.share == 1 else share_of(session.budget, self.share)
        progress("measuring tables of the analyses", 0, 1)
        session.measure(dict(zip(tables, _budgets(self._weights, own), strict=True)))
        progress("measuring tables of the analyses", 1, 1)
        if self.share == 1:
            return Selection(structure=Structure(session.domain, tables))

        def fit_with_tables(release: NoisyTables, structure: Structure, before: Fit | None) -> Fit:
            return fitting(release, _with_tables(structure, tables), before)

        rest: Any = _Rest(session, session.budget - own, {name for table in tables for name in table})
        selection = self._rest().select(
            rest, inference=inference, fitting=fit_with_tables, randomness=randomness, progress=progress
        )
        return evolve(selection, structure=_with_tables(selection.structure, tables))

    @property
    def _weights(self) -> tuple[float, ...]:
        return self.weights or (1.0,) * len(self.tables)

    def _rest(self) -> Selector:
        """Return the selector that spends the rest."""
        then: Selector = make("selector", self.then)
        if isinstance(then, VotingSelector):
            raise OptionError(
                "votes come before every other step of a session, so a selector that votes cannot spend the rest of "
                "it; take selector = 'auto' under [structure], in Python then = 'auto'"
            )
        return then

    def _tables_in(self, workload: Workload) -> list[Clique]:
        """Return the tables as the workload names them. Raises StructureError for what it does not allow."""
        if not self.tables:
            raise StructureError("selector 'research' has no tables to measure; name them, or take another selector")
        # Codes are not merged before they are measured.
        candidates = {frozenset(clique): clique for clique in workload.measurable(workload.domain)}
        for table in self.tables:
            if len(set(table)) < len(table) or frozenset(table) not in candidates:
                raise StructureError(
                    f"the table {' x '.join(table)} of the analyses is not a candidate of the workload; raise its "
                    "max_cells or order, or take it from `never`"
                )
        result = [candidates[frozenset(table)] for table in self.tables]
        if len(set(result)) < len(result):
            raise StructureError("the analyses name a table twice; name it once")
        left = set(workload.attributes) - {name for table in result for name in table}
        if self.share == 1 and left:
            raise StructureError(
                f"share = 1 leaves nothing for {listed(sorted(left), 5)}, which no table of the analyses holds; take a "
                "smaller share, or leave them out of the workload"
            )
        return result

    def _by_weight(self, tables: Sequence[Clique]) -> list[Clique]:
        """Return the tables, those with the largest parts first."""
        order = sorted(range(len(tables)), key=lambda number: -self._weights[number])
        return [tables[number] for number in order]

    def _check_size(self, workload: Workload, tables: Sequence[Clique], limits: Mapping[str, float]) -> None:
        """Refuse, before the charge, tables that do not fit in a model of the size that the other selector allows."""
        most = limits_of(limits)
        size = ModelSize(workload.domain, [*((name,) for name in workload.attributes), *tables])
        if most is not None and not size.within(most):
            predicted = {
                "max_fit_seconds": (size.seconds(), most.seconds),
                "max_fit_bytes": (size.memory(), most.memory),
            }
            more = [f"{name} = {math.ceil(need)}" for name, (need, limit) in predicted.items() if need > limit]
            raise TooLarge(
                f"a fit with the tables of the analyses would take {size.seconds():.2g} CPU seconds of inference and "
                f"{human_bytes(size.memory())}, as predicted, more than the selector's max_fit_seconds = "
                f"{most.seconds:g} or max_fit_bytes = {most.memory:,}; analyse columns of fewer bins or fewer columns "
                f"together, or raise them, as in selector = {{ name = 'auto', {', '.join(more)} }}"
            )


class _Rest:
    """The session as the other selector has it: its budget is what the first tables leave, and codes of their
    attributes are not merged. It hands everything else on."""

    def __init__(self, session: Session, budget: Budget, fixed: set[str]) -> None:
        self._session, self._fixed, self.budget = session, fixed, budget

    def coarsen(self, merges: Mapping[str, Sequence[int]]) -> Domain:
        """See `Session.coarsen`."""
        return self._session.coarsen({name: codes for name, codes in merges.items() if name not in self._fixed})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def _with_tables(structure: Structure, tables: Sequence[Clique]) -> Structure:
    """Return a structure whose cliques hold these tables too."""
    lacking = [table for table in tables if structure.covering(table) is None]
    return Structure(structure.domain, [*structure.cliques, *lacking]) if lacking else structure
