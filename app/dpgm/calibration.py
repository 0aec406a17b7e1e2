"""Regression calibration: coefficients on the numbers of codes, from those on the means of pools.

Let x be the covariates, x* the means of their pools, y and y* the outcome alike. Where E[y | x] = x' b, the root b* of
E[x* (y* - x*' b*)] = 0 has E[x* x'] b = E[x* x*'] b* + E[x* (y - y*)]. These moments are of pairs of columns, so the
model has them for codes, also where a table of all columns is too large. For other families than the linear one this
is an approximation: Carroll, Ruppert, Stefanski and Crainiceanu (2006), Measurement Error in Nonlinear Models, ch. 4.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from attrs import evolve

from dpgm.formulas import Formula
from dpgm_core._util.arrays import FloatArray, along
from dpgm_core.models.analysis import CorrectedEstimates
from dpgm_core.models.model import Model
from dpgm_core.models.pools import Pools
from dpgm_core.structure.graphs import Clique

__all__ = ["calibrate"]

#: A function of the codes of a column; of none for a constant.
_Function: TypeAlias = tuple[Clique, FloatArray]
#: Key of the outcome among functions, which is no name of a coefficient.
_OUTCOME = ""


def calibrate(
    model: Model,
    formula: Formula,
    estimates: CorrectedEstimates,
    pools: Mapping[str, Pools],
    condition: Mapping[str, Any] | None,
) -> CorrectedEstimates:
    """Return a regression's estimates on the numbers of codes.

    formula: over pools, with an outcome, which is not pooled but in a linear regression, and one factor in each term.
    """
    assert formula.outcome is not None
    means, numbers = _functions(model, formula, pools)
    names = formula.design().names
    outcome = formula.outcome.column
    columns = [*formula.covariates, *([outcome] if outcome in pools else [])]
    pairs = [*((one,) for one in columns), *itertools.combinations(columns, 2)]
    included = {one.column: ~one.missing(model.domain[one.column]) for one in (formula.outcome, *formula.factors)}
    shares = {}
    for clique, table in model.marginals_of(pairs, condition).items():
        inside = table * functools.reduce(np.multiply.outer, [included[name] for name in clique])
        shares[frozenset(clique)] = clique, inside / inside.sum()

    def moment(one: _Function, other: _Function) -> float:
        if not one[0] and not other[0]:
            return 1.0
        clique, table = shares[frozenset((*one[0], *other[0]))]
        spread = [along(values, clique.index(name), len(clique)) for names, values in (one, other) for name in names]
        return float(functools.reduce(np.multiply, spread, table).sum())

    lost = np.array(
        [[moment(means[row], numbers[at]) - moment(means[row], means[at]) for at in names] for row in names]
    )
    whole = np.array([[moment(means[row], numbers[at]) for at in names] for row in names])
    change = np.zeros(len(names))
    if outcome in pools:
        change = np.array(
            [moment(means[row], numbers[_OUTCOME]) - moment(means[row], means[_OUTCOME]) for row in names]
        )
    equations = np.eye(len(estimates.names) // len(names))
    slope = np.kron(equations, np.eye(len(names)) - np.linalg.solve(whole, lost))
    shift = np.tile(np.linalg.solve(whole, change), len(equations))
    parts = {
        name: slope @ getattr(estimates, name) @ slope.T for name in ("covariance", "sampling", "noise", "structure")
    }
    return evolve(
        estimates,
        estimate=slope @ estimates.estimate + shift,
        uncorrected=slope @ estimates.uncorrected + shift,
        **parts,
    )


def _functions(
    model: Model, formula: Formula, pools: Mapping[str, Pools]
) -> tuple[dict[str, _Function], dict[str, _Function]]:
    """Return the columns of the design, by name, as functions of codes: the means of pools, and the codes' numbers."""
    means: dict[str, _Function] = {"Intercept": ((), np.ones(()))}
    numbers = dict(means)
    factors = {factor.text: factor for factor in formula.factors}
    if formula.outcome is not None and formula.outcome.column in pools:
        factors[_OUTCOME] = formula.outcome
    for text, factor in factors.items():
        name, codes = factor.column, np.arange(model.domain[factor.column].size)
        if factor.kind == "labels":
            for code, label in enumerate(model.domain[name].labels):
                for spelled in (f"{text}[{label}]", f"{text}[T.{label}]"):
                    means[spelled] = numbers[spelled] = (name,), np.asarray(codes == code, np.float64)
            continue
        numbers[text] = (name,), factor.values(model.domain[name])
        pooled = factor.values(formula.domain[name])
        means[text] = (name,), pooled[pools[name].codes if name in pools else codes]
    return means, numbers
