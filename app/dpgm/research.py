"""Analysis plans: formulas that are stated before the records are read, and the selector that measures their tables.

>>> from dpgm_core import Domain, Workload
>>> workload = Workload.all(Domain.from_dict({"income": ["low", "high"], "sex": ["F", "M"], "job": ["cook", "pilot"]}))
>>> plan = plan_analyses(workload, [{"formula": "income ~ sex", "groups": True}])
>>> plan.tables[-1]
('income', 'sex')
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve

from dpgm.analysis import question_of
from dpgm.formulas import Formula, read_formula
from dpgm.pooling import answer_over_pools, columns_to_pool
from dpgm.spec import PlannedAnalysis, read_analyses
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DpgmError, StructureError, clipped, listed
from dpgm_core.learning.research import ResearchPlan, Targeted, default_share, plan_research
from dpgm_core.learning.selector import Selector
from dpgm_core.models.analysis import Pools
from dpgm_core.models.functionals import Functional
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.workload import Workload

__all__ = ["cliques_of", "plan_analyses", "research_selector", "targeted"]

#: Cells of the table that a plan guesses by, where bins are pooled.
_MAX_POOLED_CELLS = 2**16


def plan_analyses(
    workload: Workload, analyses: Sequence[str | Mapping[str, Any] | PlannedAnalysis], *, pure: bool = False
) -> ResearchPlan:
    """Return the tables that analyses need, and shares of a budget for them, from the domain alone.

    Parameters
    ----------
    workload : Workload
        Its candidates may be measured.
    analyses : sequence
        Formulas, or tables with `formula` and, as in `dpgm.analyse`, `family`, `event` or `groups`.
    pure : bool
        Whether the budget is pure, which takes fewer and larger tables.

    Raises
    ------
    OptionError, StructureError, TooLarge, InferenceError
        For formulas that do not fit the domain, and analyses that no candidate tells enough of.
    """
    functionals, pools, notes = [], [], []
    for one in map(_as_planned, analyses):
        functional, pooled = _question(one, _read(workload.domain, one))
        functionals.append(functional)
        pools.append({name: part.codes for name, part in pooled.items()})
        if pooled:
            notes.append(
                f"{clipped(one.formula, 200)}: its columns have too many combinations for one table, so the answer "
                f"pools bins of {listed(list(pooled), 5)}; tables of fewer columns are measured over all bins, with "
                "less noise where the domain has about 16 of each"
            )
    plan = plan_research(functionals, workload, pure=pure, pools=pools)
    return evolve(plan, notes=(*notes, *plan.notes))


def research_selector(
    workload: Workload | Domain,
    analyses: Sequence[str | Mapping[str, Any] | PlannedAnalysis],
    *,
    share: float | None = None,
    then: str | Mapping[str, Any] | Selector = "auto",
    pure: bool = False,
) -> Targeted:
    """Return a selector for `dpgm.fit` that measures the tables of analyses first.

    Parameters
    ----------
    workload : Workload or Domain
        The one that the fit gets.
    analyses : sequence
        As in `plan_analyses`.
    share : float, optional
        Of the budget, for these tables; 1 for nothing else. By default .9 where the analyses name all columns of the
        workload, else .6.
    then : str, mapping or Selector
        The selector that spends the rest.
    pure : bool
        Whether the fit's budget is pure, which takes fewer and larger tables.

    Examples
    --------
    >>> domain = Domain.from_dict({"income": ["low", "high"], "sex": ["F", "M"]})
    >>> research_selector(domain, [{"formula": "income ~ sex", "groups": True}], share=1.0).analyses
    ('income ~ sex, by groups',)
    """
    workload = Workload.default(workload) if isinstance(workload, Domain) else workload
    planned = [_as_planned(one) for one in analyses]
    plan = plan_analyses(workload, planned, pure=pure)
    if share is None:
        share = default_share([name for one in plan.analyses for name in one.attributes], workload)
    return targeted(plan, planned, share=share, then=then)


def targeted(plan: ResearchPlan, analyses: Sequence[PlannedAnalysis], *, share: float, then: Any) -> Targeted:
    """Return the selector of a plan, which states its analyses."""
    return Targeted(
        tables=plan.tables, weights=plan.weights, analyses=tuple(map(str, analyses)), share=share, then=then
    )


def cliques_of(domain: Domain, analyses: Sequence[PlannedAnalysis]) -> list[Clique]:
    """Return the sets of columns that tables may be of: all of three, and the outcome with each longer term.

    Raises OptionError and StructureError for formulas that do not fit the domain.
    """
    sets: dict[frozenset[str], Clique] = {}
    for formula in (_read(domain, one) for one in analyses):
        names = formula.attributes
        outcome = names[: len(names) - len(formula.covariates)]
        terms = [frozenset((*outcome, *term)) for term in formula.term_attributes]
        for one in (*map(frozenset, itertools.combinations(names, min(3, len(names)))), *terms):
            sets[one] = tuple(name for name in domain.names if name in one)
    return [one for some, one in sets.items() if not any(some < other for other in sets)]


def _as_planned(analysis: str | Mapping[str, Any] | PlannedAnalysis) -> PlannedAnalysis:
    return analysis if isinstance(analysis, PlannedAnalysis) else read_analyses("an analysis plan", [analysis])[0]


def _question(analysis: PlannedAnalysis, formula: Formula) -> tuple[Functional, dict[str, Pools]]:
    """Return the numbers of an analysis, over pools of evenly likely codes where its table is too large."""
    settings = analysis.groups, analysis.family, analysis.event
    columns = columns_to_pool(formula, *settings)
    try:
        return answer_over_pools(
            formula,
            lambda read, pools: (question_of(read, *settings)[1].functional, dict(pools)),
            columns,
            lambda: {(name,): np.full(size := formula.domain[name].size, 1 / size) for name in columns},
            most=_MAX_POOLED_CELLS,
        )
    except DpgmError as error:
        raise type(error)(_named(analysis, error)) from None


def _read(domain: Domain, analysis: PlannedAnalysis) -> Formula:
    formula = read_formula(analysis.formula, domain, most=math.inf)
    for name in formula.attributes:
        if name in domain.undetermined:
            raise StructureError(
                f"{clipped(analysis.formula, 200)}: the labels or bins of {name!r} are still to be found privately, so "
                "no tables can be planned for it; give it public labels or bins, or those "
                "that an earlier run printed or wrote as a domain"
            )
    return formula


def _named(analysis: PlannedAnalysis, error: DpgmError) -> str:
    """Return the error's sentence, which begins with the formula."""
    text = clipped(analysis.formula, 200)
    return str(error) if str(error).startswith(text) else f"{text}: {error}"
