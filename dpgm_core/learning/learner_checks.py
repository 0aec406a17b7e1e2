"""Checks of learners: of contrasts, and for sessions, which leave them one release of the chosen tables."""

from __future__ import annotations

import math
from functools import partial

from attrs import evolve

from dpgm_core.components.registry import make
from dpgm_core.errors import IncompatiblePlugin, OptionError, StructureError, TooLarge
from dpgm_core.inference.contract import Inference
from dpgm_core.learning.contract import (
    Fitter,
    Learner,
    ResourceEstimator,
    Resources,
    check_contrast_learner,
    check_resources,
    name_of,
    resource_estimate,
)
from dpgm_core.learning.dry_run import DryRun
from dpgm_core.learning.model_size import limits_of
from dpgm_core.learning.selector import Fitting, SelectionPlan
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.mechanism import Noise
from dpgm_core.privacy.terms import Terms
from dpgm_core.structure.dag import Dag
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.workload import Workload

__all__ = ["check_learner", "fitter_of", "largest_estimate"]


def check_learner(
    learner: Learner,
    inference: Inference,
    workload: Workload,
    plan: SelectionPlan,
    terms: Terms,
    budget: Budget,
    noises: tuple[Noise, ...] = (),
) -> None:
    """Refuse, before anything is charged, a learner that does not go with a session of this plan.

    A session leaves one release and no records, so learners that train on rounds or spend a part of the budget first
    are refused; so is one that needs a directed graph where the selector chooses none, and one that learns from tables
    alone where the selector measures contrasts. Nothing declares any of it, so the learner makes dry runs: over the
    attributes alone, and with the smallest candidate table of each order that the selector may choose, since what a
    learner takes and asks for may depend on the structure. A learner that would take the chosen tables but not all that
    may be chosen is refused too: afterwards the session is paid for. Where the plan has the structure, the learner is
    checked with that. budget: of the session. noises: like those of its tables, where they are not core's own.
    """
    # A directed graph has a node for each attribute, whether the workload wants it or not.
    alone = Structure(workload.domain, [(name,) for name in workload.domain.names])
    check_contrast_learner(learner, plan.contrasts)
    learner.check(alone, inference)  # its options; what is chosen is kept small enough by the selector
    check_resources(learner, alone, inference)
    if isinstance(learner, Fitter):
        fitter_of(learner, inference)
    dry_run = partial(DryRun, learner=learner, inference=inference, terms=terms, budget=budget, noises=noises)
    _check_one_release(learner, dry_run(structure=alone).first_request())
    for table in ((), *_smallest(workload, plan)):
        measured = Structure(alone.domain, [*alone.cliques, *([table] if table else [])])
        for chosen in dict.fromkeys(_with_table(alone, table, directed=plan.directed)):
            try:
                if table:
                    learner.check(chosen, inference)
                for served in (None, measured):  # what it asks of records, and what of the session's release
                    _check_one_release(learner, dry_run(structure=chosen, served=served).first_request())
            except TooLarge:
                if len(table) <= 2:  # of larger tables the selector may choose none
                    raise
            except (OptionError, StructureError) as error:
                if not table:
                    raise
                raise _refusal(learner, inference, alone, table, error, directed=plan.directed) from error
    if plan.learner is not None:
        other = evolve(plan, learner=None, structure=plan.switched, switched=None, order=None)
        check_learner(make("learner", plan.learner), inference, workload, other, terms, budget, noises)
    if plan.structure is not None:
        try:
            learner.check(plan.structure, inference)
            check_resources(learner, plan.structure, inference)
        except TooLarge as error:
            raise TooLarge(
                f"learner {name_of(learner)} cannot hold a model of the {len(plan.structure.cliques):,} tables that "
                f"the selector measures, {error}; take learner = 'mixture', or a selector that chooses, such as 'auto'"
            ) from error


def largest_estimate(
    learner: Learner, inference: Inference, workload: Workload, plan: SelectionPlan
) -> Resources | None:
    """Return an upper estimate of one fit, over the largest candidates that max_fit_seconds allows together.

    None where the selector or the learner states no bound; of the plan's structure where it has one. Of two learners
    that the plan may lead to, the one with more memory.
    """
    if plan.learner is not None:
        own = largest_estimate(learner, inference, workload, evolve(plan, learner=None, switched=None))
        other = evolve(plan, learner=None, structure=plan.switched, switched=None)
        estimates = own, largest_estimate(make("learner", plan.learner), inference, workload, other)
        return max((one for one in estimates if one is not None), key=lambda one: one.memory, default=None)
    if plan.structure is not None:
        return resource_estimate(learner, plan.structure, inference)
    limits = limits_of(plan.limits)
    if limits is None or not isinstance(learner, ResourceEstimator):
        return None
    domain = workload.forecast_domain()
    sizes, names = domain.sizes, list(domain.names)
    choosable = {*_choosable(workload, plan)}
    cells = {one: math.prod(sizes[name] for name in one) for one in workload.measurable(domain) if one in choosable}
    cliques, families = list[Clique]((name,) for name in names), dict[str, Clique]()
    work = taken = 0
    for clique in sorted(cells, key=lambda one: -cells[one]):
        *parents, child = sorted(clique, key=names.index)  # of a directed graph: one family for each attribute
        more, now = work + cells[clique] * len(clique) ** 2, taken + cells[clique]
        if not limits.allow(more, now) or (plan.directed and child in families):
            continue
        families[child] = tuple(parents)
        cliques, work, taken = [*cliques, clique], more, now
    alone = Structure(domain, [(name,) for name in names])
    largest = Dag(domain, families).structure() if plan.directed else Structure(domain, cliques)
    both = [resource_estimate(learner, one, inference) for one in (alone, largest)]
    return max((one for one in both if one is not None), key=lambda one: one.memory)


def _choosable(workload: Workload, plan: SelectionPlan) -> list[Clique]:
    """Return the candidates of two attributes and more, up to the order that the selector may choose."""
    return [one for one in workload.candidates if 1 < len(one) <= (plan.order or len(one))]


def _smallest(workload: Workload, plan: SelectionPlan) -> list[Clique]:
    """Return the candidate with the fewest cells of each order from 2 on that may be chosen, pairs first."""
    sizes, smallest = workload.domain.sizes, dict[int, tuple[int, Clique]]()
    for clique in _choosable(workload, plan):
        cells = math.prod(sizes[name] for name in clique)
        if cells < smallest.get(len(clique), (math.inf, ()))[0]:
            smallest[len(clique)] = cells, clique
    return [smallest[order][1] for order in sorted(smallest)]


def _with_table(alone: Structure, table: Clique, *, directed: bool) -> list[Structure]:
    """Return structures that a selector might choose: a table and all attributes alone, or those outside of it."""
    if not table:
        return [alone]
    if directed:
        return [Dag(alone.domain, {table[0]: table[1:]}).structure()]
    outside = [one for one in alone.cliques if one[0] not in table]
    return [Structure(alone.domain, [*outside, table]), Structure(alone.domain, [*alone.cliques, table])]


class _NotOneRelease(OptionError):
    """Refusal of a learner that asks for more than one release."""


def _check_one_release(learner: Learner, request: str | None) -> None:
    """Refuse a learner by its first request."""
    left = "and a structure that is chosen leaves one release"
    why = {
        "rounds": f"trains on many releases of subsampled records, {left}",
        "session": f"asks more of the records than tables, {left} of tables",
        "part": f"spends a part of the budget first and then the rest, {left}",
        "tables": f"names the tables to be released, {left} of tables that the selector has named",
    }.get(request or "")
    if why is not None:
        raise _NotOneRelease(
            f"learner {name_of(learner)} {why}; take another learner, such as 'eb-map', or name the cliques"
        )


def _refusal(
    learner: Learner,
    inference: Inference,
    alone: Structure,
    table: Clique,
    error: OptionError | StructureError,
    *,
    directed: bool,
) -> OptionError | StructureError:
    """Return the learner's refusal of a structure with this table, with advice; `_NotOneRelease` errors have theirs."""
    if isinstance(error, _NotOneRelease):
        return error
    said = f"learner {name_of(learner)} does not take what the selector may choose: {error}"

    def is_refused(structure: Structure) -> bool:
        try:
            learner.check(structure, inference)
        except (OptionError, StructureError):
            return True
        return False

    if len(table) == 2 and not directed:  # it may refuse the pair for want of direction
        plain, arrow = (_with_table(alone, table, directed=graph) for graph in (False, True))
        if any(map(is_refused, plain)) and not is_refused(arrow[0]):
            return type(error)(
                f"{said}; the selector chooses cliques without direction; take selector = 'privbayes', which chooses a "
                "directed graph"
            )
    if len(table) > 2:
        return type(error)(
            f"{said}; the selector may choose cliques of {len(table)} attributes, so set order = {len(table) - 1} in "
            "the workload, or take another learner, such as 'eb-map'"
        )
    return type(error)(f"{said}; take another learner, such as 'eb-map', or name the cliques")


def fitter_of(learner: Fitter, inference: Inference) -> Fitting:
    """Return the learner's own function for loops. Raises IncompatiblePlugin."""
    fitter: object = learner.fitter(inference)
    if not callable(fitter):
        raise IncompatiblePlugin(
            f"learner {name_of(learner)} made a {type(fitter).__name__} of fitter(inference), not a function that fits"
        )
    return fitter
