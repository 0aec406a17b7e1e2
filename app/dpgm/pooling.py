"""Pools of a formula: bins of columns of numbers that are taken as one, so that the table of all its columns fits.

Regression calibration gives coefficients on the numbers of codes, from those on the means of pools. Let x be the
covariates, x* the means of their pools, y and y* the outcome alike. Where E[y | x] = x' b, the root b* of
E[x* (y* - x*' b*)] = 0 has E[x* x'] b = E[x* x*'] b* + E[x* (y - y*)]. These moments are of pairs of columns, so the
model has them for codes, also where a table of all columns is too large. For other families than the linear one this
is an approximation: Carroll, Ruppert, Stefanski and Crainiceanu (2006), Measurement Error in Nonlinear Models, ch. 4.

Of codes that a session merged, the model has no such moments: it takes them as independent of other columns inside
their blocks. With s the means of blocks, its covariance of x and another column is that of s. If the other column's
mean is linear in an increasing function z of x that is normal, the population's is larger by Cov(x, z) / Cov(s, z);
for a normal x this is Var(x) / Var(s). Then E[s x'] b = E[x x'] b* holds, E[s x'] with these covariances.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np
from attrs import evolve, frozen
from scipy.special import ndtri

from dpgm.formulas import MAX_CELLS, Formula, read_formula
from dpgm_core._util.arrays import FloatArray, IntArray, along, ratio
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import TooLarge, listed
from dpgm_core.models.analysis import CorrectedEstimates, Pools
from dpgm_core.models.functionals import Family
from dpgm_core.models.model import Model
from dpgm_core.models.numeric import calibrate_correlation, number_distribution
from dpgm_core.models.within_bins import bin_distribution
from dpgm_core.structure.graphs import Clique

__all__ = ["answer_over_pools", "calibrate", "calibrate_correlations", "columns_to_pool", "merged_note", "pools_note"]

_Answer = TypeVar("_Answer")
#: A function of the codes of a column; of none for a constant.
_Function: TypeAlias = tuple[Clique, FloatArray]
#: Key of the outcome among functions, which is no name of a coefficient.
_OUTCOME = ""
#: Bins of numbers that a pooled column has at least, and how many there are next, where these are too many.
_MIN_POOLS, _LESS = 8, 0.8
#: Least share of codes, and of what is between blocks of them, that tells the rest; and step of a numeric derivative.
_LEAST_SHARE, _STEP = 1e-6, 0.005


def columns_to_pool(formula: Formula, groups: bool, family: Family | None, event: str | None) -> list[str]:
    """Return the columns of which only numbers enter, and no labels; those in constraints stay as they are."""
    outcome, factors = formula.outcome, formula.factors
    if outcome is None and not all(one.kind == "numbers" for one in factors):
        return []  # a two-way table has the labels
    numbers = [*([outcome] if outcome is not None and event is None and family != "multinomial" else []), *factors]
    labelled = {one.column for one in factors if groups or one.kind != "numbers"} | set(formula.domain.constrained)
    return list(dict.fromkeys(one.column for one in numbers if one.kind == "numbers" and one.column not in labelled))


def answer_over_pools(
    whole: Formula,
    answer: Callable[[Formula, Mapping[str, Pools]], _Answer],
    columns: Collection[str],
    shares: Callable[[], Mapping[Clique, FloatArray]],
    *,
    blocks: Mapping[str, IntArray] | None = None,
    fixed: Collection[str] = (),
    empty: Mapping[str, Collection[int]] | None = None,
    most: int | None = None,
) -> _Answer:
    """Return the answer to a formula without pools, or else over the first whose table is not too large.

    The outcome has twice as many as the others, as a slope loses the part of its variance that lies inside pools.

    whole: the formula over all codes. columns: those that may be pooled. shares: p of the codes of each, needed for
    pools only. blocks: of codes that a session merged. fixed: columns of a condition. empty: as of `read_formula`.
    most: cells of a table with pools. Raises TooLarge, with the columns to leave out.
    """
    domain, limit, merged = whole.domain, MAX_CELLS if most is None else most, blocks or {}
    sizes = {name: domain[name].size for name in (*whole.attributes, *fixed)}
    refusal = ""
    if not columns or math.prod(sizes.values()) <= MAX_CELLS:
        try:
            return answer(read_formula(whole.text, domain, empty, MAX_CELLS), {})
        except TooLarge as error:
            refusal = str(error)
    outcome, likely, before = whole.outcome and whole.outcome.column, shares() if columns else {}, math.inf
    numbers = {name: int(number_distribution(domain[name]).present.sum()) for name in columns}
    distinct = {name: len(set(merged.get(name, range(sizes[name])))) for name in columns}
    for few in [*range(max(sizes[name] for name in columns), _MIN_POOLS - 1, -1), 0] if columns else []:
        counts = {name: max(few * (1 + (name == outcome)), _MIN_POOLS) for name in columns}
        least = {name: min(distinct[name], count) - 1 for name, count in counts.items()}
        work = 3 * few or 2 * _MIN_POOLS
        if work > before or (few and math.prod((sizes | least).values()) > limit):
            continue
        pools = {
            name: Pools.of(domain[name], likely[name,], merged.get(name), count)
            for name, count in counts.items()
            if numbers[name] > count
        }
        pooled = {name: one.attribute for name, one in pools.items()}
        cells = math.prod(pooled[name].size if name in pooled else size for name, size in sizes.items())
        if few and (not pools or cells > limit):
            continue
        over = Domain([pooled.get(one.name, one) for one in domain], domain.constraints)
        try:
            return answer(read_formula(whole.text, over, empty, MAX_CELLS), pools)
        except TooLarge as error:
            refusal, before = str(error), _LESS * work
    raise TooLarge(refusal + _how_to_shrink(whole, columns))


def _how_to_shrink(formula: Formula, columns: Collection[str]) -> str:
    """Return which columns make the table of a formula large, after what is said of them."""
    domain, names = formula.domain, formula.attributes
    rest = [name for name in names if name not in columns]
    large = sorted(rest or names, key=lambda name: -domain[name].size)
    parts = [f", such as {listed([f'{name} ({domain[name].size:,} labels)' for name in large], 3)}"]
    if any(bin_distribution(domain[name]) is not None for name in rest):
        parts.append("columns of numbers are pooled where they stand without C() and make no groups, and without rows")
    if columns:
        parts.append(f"{_MIN_POOLS} bins of {listed(list(columns))} are still too many")
    return "; ".join(parts)


def pools_note(pools: Mapping[str, Pools], calibrated: bool) -> list[str]:
    """Return the note on bins that were pooled, if any were."""
    if not pools:
        return []
    each = [f"{name} to {one.bins} ({100 * one.variance_share:.1f} %)" for name, one in pools.items()]
    rest = "coefficients are corrected for the rest" if calibrated else "numbers may be nearer to 0 by about the rest"
    return [
        "Bins were pooled, so that the table of all columns fits, and have so much of a column's variance: "
        f"{listed(each, len(each))}; {rest}."
    ]


def merged_note(blocks: Collection[str]) -> list[str]:
    """Return the note on merged codes that an answer is corrected for, if there are any."""
    if not blocks:
        return []
    return [
        f"Codes of {listed(list(blocks))} were merged: numbers are corrected as if dependence inside blocks were as "
        "between them; drawn records have none inside."
    ]


def calibrate(
    model: Model,
    formula: Formula,
    estimates: CorrectedEstimates,
    pools: Mapping[str, Pools],
    condition: Mapping[str, Any] | None,
    blocks: Mapping[str, IntArray],
) -> CorrectedEstimates:
    """Return a regression's estimates on the numbers of codes.

    formula: over pools, with an outcome, which is not pooled but in a linear regression, and one factor in each term.
    blocks: of codes that a session merged, of columns of which only numbers enter; of the outcome in a linear one.
    """
    assert formula.outcome is not None
    names, outcome = formula.design().names, formula.outcome.column
    columns = [*formula.covariates, *({outcome} & {*pools, *blocks})]
    pairs = [*((one,) for one in columns), *itertools.combinations(columns, 2)]
    included = {one.column: ~one.missing(model.domain[one.column]) for one in (formula.outcome, *formula.factors)}
    shares: dict[frozenset[str], _Function] = {frozenset(): ((), np.ones(()))}
    for clique, table in model.marginals_of(pairs, condition).items():
        inside = table * functools.reduce(np.multiply.outer, [included[name] for name in clique])
        shares[frozenset(clique)] = clique, inside / inside.sum()
    functions = _functions(model, formula, pools, outcome in columns)
    stretched = {
        text: _stretch(whole[1], shares[frozenset(whole[0])][1], blocks[whole[0][0]])
        for text, (_, whole) in functions.items()
        if whole[0] and whole[0][0] in blocks
    }

    def moment(one: _Function, other: _Function) -> float:
        clique, table = shares[frozenset((*one[0], *other[0]))]
        spread = [along(values, clique.index(name), len(clique)) for names, values in (one, other) for name in names]
        return float(functools.reduce(np.multiply, spread, table).sum())

    def score(row: str) -> _Function:
        pooled, whole = functions[row]
        return (whole[0], stretched[row].means) if row in stretched and whole[0][0] not in pools else pooled

    def number(row: str, at: str) -> _Function:
        whole = functions[at][1]
        return (whole[0], stretched[at].numbers) if at in stretched and whole[0] != functions[row][1][0] else whole

    inner = np.array([[moment(functions[row][0], functions[at][0]) for at in names] for row in names])
    whole = np.array([[moment(score(row), number(row, at)) for at in names] for row in names])
    equations = len(estimates.names) // len(names)
    slope, shift = np.linalg.solve(whole, inner), np.zeros(len(names))
    if _OUTCOME in functions:
        pooled, codes = functions[_OUTCOME]
        lost = [moment(score(row), codes) - moment(score(row), pooled) for row in names]
        shift += np.linalg.solve(whole, np.array(lost))
        if _OUTCOME in stretched:
            # Sums of products with the outcome are as larger by 1 / share, but for the product of the means.
            means = np.array([moment(score(row), functions["Intercept"][0]) for row in names])
            share, middle = stretched[_OUTCOME].share, stretched[_OUTCOME].centre
            slope, shift = slope / share, shift / share
            shift += (1 - 1 / share) * middle * np.linalg.solve(whole, means)
    slope, shift = np.kron(np.eye(equations), slope), np.tile(shift, equations)
    parts = {
        name: slope @ getattr(estimates, name) @ slope.T for name in ("covariance", "sampling", "noise", "structure")
    }
    return evolve(
        estimates,
        estimate=slope @ estimates.estimate + shift,
        uncorrected=slope @ estimates.uncorrected + shift,
        **parts,
    )


@frozen(kw_only=True, eq=False)
class _Stretched:
    """A function of merged codes. means: of blocks, for each code. centre: the mean. share: by how much covariances
    with the means are less than those with the function. numbers: the function, stretched by it."""

    means: FloatArray
    centre: float
    share: float
    numbers: FloatArray


def _stretch(values: FloatArray, shares: FloatArray, blocks: IntArray) -> _Stretched:
    """Stretch a function of codes. Its share is that of the covariance with a normal variable of which the function is
    an increasing one, as other columns depend on it by its order: few far numbers have most of the variance."""
    centre = float(shares @ values)
    apart, order = values - centre, np.argsort(values, kind="stable")
    means = ratio(np.bincount(blocks, weights=shares * apart), np.bincount(blocks, weights=shares))[blocks]
    upto = np.cumsum(shares[order]) - shares[order] / 2
    scores = np.zeros(len(values))
    scores[order] = ndtri(np.clip(upto, _LEAST_SHARE, 1 - _LEAST_SHARE))
    share = float(ratio((shares * means) @ scores, (shares * apart) @ scores))
    if share <= _LEAST_SHARE:  # as of a single block, which tells nothing
        means, share = apart, 1.0
    return _Stretched(means=centre + means, centre=centre, share=share, numbers=centre + apart / share)


def calibrate_correlations(
    model: Model, formula: Formula, estimates: CorrectedEstimates, condition: Mapping[str, Any] | None
) -> CorrectedEstimates:
    """Return correlations of columns that depend on each other inside bins and merged codes as they do between them."""
    values = np.stack([estimates.uncorrected, *(estimates.estimate + step for step in (0.0, -_STEP, _STEP))])
    for at, pair in enumerate(itertools.combinations(formula.covariates, 2)):
        table = model.marginal(pair, condition)
        columns = [model._numeric_column(name, table.sum(axis=1 - axis)) for axis, name in enumerate(pair)]
        values[:, at] = calibrate_correlation(values[:, at], columns)
    slope = np.diag((values[3] - values[2]) / (2 * _STEP))
    parts = {
        name: slope @ getattr(estimates, name) @ slope.T for name in ("covariance", "sampling", "noise", "structure")
    }
    return evolve(estimates, estimate=values[1], uncorrected=values[0], **parts)


def _functions(
    model: Model, formula: Formula, pools: Mapping[str, Pools], with_outcome: bool
) -> dict[str, tuple[_Function, _Function]]:
    """Return the columns of the design, by name, as functions of codes: the means of pools, and the codes' numbers."""
    constant = (), np.ones(())
    functions: dict[str, tuple[_Function, _Function]] = {"Intercept": (constant, constant)}
    factors = {factor.text: factor for factor in formula.factors}
    if formula.outcome is not None and with_outcome:
        factors[_OUTCOME] = formula.outcome
    for text, factor in factors.items():
        name, attribute = factor.column, model.domain[factor.column]
        if factor.kind == "labels":
            for code, label in enumerate(attribute.labels):
                indicator = (name,), np.asarray(np.arange(attribute.size) == code, np.float64)
                functions |= dict.fromkeys((f"{text}[{label}]", f"{text}[T.{label}]"), (indicator, indicator))
            continue
        means, numbers = factor.values(formula.domain[name]), factor.values(attribute)
        functions[text] = ((name,), means[pools[name].codes] if name in pools else means), ((name,), numbers)
    return functions
