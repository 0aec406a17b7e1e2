"""Runs of a selector."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from fractions import Fraction
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from attrs import evolve, frozen

from dpgm_core._util.progress import Progress, silent
from dpgm_core._util.randomness import Randomness, randomness_or_system
from dpgm_core.components.registry import default_registry, make
from dpgm_core.curator.contract import Session
from dpgm_core.curator.live import LiveCurator
from dpgm_core.curator.replay import ReplayCurator
from dpgm_core.curator.session import LiveSession
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.related import Related
from dpgm_core.errors import BudgetError, DpgmError, IncompatiblePlugin, LearningFailed, OptionError, StructureError
from dpgm_core.inference.contract import Inference
from dpgm_core.learning.contract import Fit, Fitter, Learner, name_of
from dpgm_core.learning.learner_checks import check_learner, fitter_of
from dpgm_core.learning.learner_run import run_learner
from dpgm_core.learning.named_cliques import NamedCliques
from dpgm_core.learning.selector import (
    Fitting,
    MergingSelector,
    Selection,
    SelectionPlan,
    Selector,
    SwitchingSelector,
    VotingSelector,
    WideningSelector,
)
from dpgm_core.models.model import Model
from dpgm_core.privacy.bins import bins_choices, bins_cost, check_votes_first, plan_bins
from dpgm_core.privacy.budget import Budget, Split
from dpgm_core.privacy.holdout import candidate_pairs, pairs_to_check
from dpgm_core.privacy.mechanism import Mechanism, Noise, calibrate, mechanism_name
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.session_account import PlannedChoices, SessionAccount, settle_account
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.saving import saved_text
from dpgm_core.releases.steps import mechanism_of, session_budget, session_mechanism
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.workload import Workload

__all__ = [
    "PlannedSession",
    "fit_selection",
    "plan_for_curator",
    "plan_session",
    "select_structure",
    "selector_of",
    "session_noises",
    "share_only",
    "split_votes",
    "why_not_exact",
    "workload_of",
]


# --------------------------------------------------------------------------------------------------
# Runs of a selector against a session

#: Smallest share of a session's budget that is worth a table which was not measured yet.
_MIN_SHARE_LEFT = Fraction(1, 100)
#: Widest noise of one-way tables, standard deviation in records; wider noise can hardly be drawn.
_MAX_DEVIATION_RECORDS = 2.0**28
#: A share of as little, in awkward digits.
_LITTLE_SHARE = Fraction(10**16 + 61, 10**18 + 9)
#: What is measured, by `SelectionPlan.contrasts`.
_MEASURED_NAMES = {True: "contrasts", False: "tables"}
#: Share that is left by rounding.
_ROUNDING_SHARE = Fraction(1, 10**6)
#: Note where a holdout was asked for and there is no pair that it could measure.
_NO_HOLDOUT = (
    "no pair of attributes with two labels each is a candidate, so nothing is left for a holdout; its share of the "
    "budget goes to the selection"
)


def split_votes(selector: Selector, budget: Budget) -> tuple[Budget | None, Budget]:
    """Return the part of a session's budget for votes, None without votes, and the part for its other steps."""
    if not isinstance(selector, VotingSelector):
        return None, session_budget(budget)
    votes: object = selector.votes(budget)
    if not isinstance(votes, Budget):
        raise IncompatiblePlugin(f"selector {_name(selector)} gives votes a {type(votes).__name__}, not a Budget")
    return votes, session_budget(budget, votes)


@frozen(kw_only=True)
class PlannedSession:
    """A session before it is opened: the selector's plan, and what pays for its steps.

    votes: what votes may cost. budget: what all other steps may, private bins too, pure or zCDP. account: what proves
    it within an (epsilon, delta) or mu; None: the conversion of zCDP.
    """

    plan: SelectionPlan
    votes: Budget | None
    budget: Budget
    account: SessionAccount | None = None


def plan_session(
    selector: Selector,
    workload: Workload,
    budget: Budget,
    terms: Terms,
    share: Fraction,
    records: float | None = None,
    mechanism: Mechanism | None = None,
) -> PlannedSession:
    """Return the selector's plan for a session with this budget. Raises the selector's refusals; nothing is charged.

    mechanism: of the noise of tables; None for core's own. share: of a holdout, reserved from what votes leave; the
    selector has it where no pair could be left to measure.
    """
    requested, share = share, _possible_share(workload, share)
    votes, left = split_votes(selector, budget)
    columns = plan_bins(workload.domain, workload.attributes, left, terms)
    check_votes_first(columns, votes)
    bins = bins_cost(columns, left)

    def plan_with(whole: Budget) -> SelectionPlan:
        steps = whole - bins
        factor = partial(_noise_factor, mechanism, workload, steps, terms)
        return _plan_steps(selector, workload, steps * (1 - share) if share else steps, terms, records, factor)

    plan, account = plan_with(left), None
    if budget.kind in ("approx", "gdp"):
        plans = {left.rho: plan}

        def choices(rho: Fraction) -> PlannedChoices | None:
            if rho not in plans:
                plans[rho] = plan_with(Budget("zcdp", rho=rho))
            planned = plans[rho].choices
            return None if planned is None else tuple((count, each.rho) for count, each in planned)

        settled = why_not_exact(mechanism) or settle_account(
            budget if votes is None else budget - votes, bins_choices(columns), choices
        )
        if isinstance(settled, SessionAccount):
            gained = 1 - math.sqrt(left.rho / settled.budget.rho)
            room = f" with room for {settled.count} planned choices" if settled.count else ""
            reason = f"the exact Gaussian curve{room} narrows noise by {gained:.1%} against the conversion of zCDP"
            if budget.kind == "gdp":
                reason = f"the session spends {budget}{room}"
            account, left = settled, settled.budget
            plan = plans[left.rho]
        elif budget.kind == "gdp":
            raise BudgetError(
                f"a session of selector {_name(selector)} cannot spend {budget}: {settled}; ask for (epsilon, delta), "
                "rho or epsilon"
            )
        else:
            reason = f"the budget is converted by zCDP, without the exact Gaussian curve: {settled}"
        plan = evolve(plan, notes=[*plan.notes, reason])
    if mechanism is not None:
        factor = _noise_factor(mechanism, workload, left - bins, terms, contrasts=plan.contrasts)
        note = (
            f"tables have noise of mechanism {mechanism_name(mechanism)!r}, with {factor:.3g} times the standard "
            "deviation of core's own; selectors divide the budget as for core's own"
        )
        plan = evolve(plan, notes=[*plan.notes, note])
    if not bins.is_zero:
        names = ", ".join(workload.domain.undetermined)
        plan = evolve(plan, shares={f"private bins of {names}": bins, **plan.shares})
    plan = evolve(plan, notes=[*plan.notes, *workload.say_large_pairs()])
    if requested and not share:
        plan = evolve(plan, notes=[*plan.notes, _NO_HOLDOUT])
    if votes is not None:
        assert isinstance(selector, VotingSelector)  # as it has votes
        sentences = selector.foretell(workload, votes, terms, records)
        plan = evolve(plan, shares={"votes on the structure": votes, **plan.shares}, notes=[*sentences, *plan.notes])
    return PlannedSession(plan=plan, votes=votes, budget=left, account=account)


def why_not_exact(mechanism: Mechanism | None) -> str:
    """Return why the noise of a session's tables has no exact Gaussian account; empty where it has.

    Another mechanism than core's own may draw other noise at other sensitivities, which would show after the charge.
    """
    own = make("mechanism", mechanism_of(Budget.zcdp(1)))
    if mechanism is None or type(mechanism) is type(own):
        return ""
    return f"it is proven for core's own noise, and tables have that of mechanism {mechanism_name(mechanism)!r}"


def _plan_steps(
    selector: Selector,
    workload: Workload,
    budget: Budget,
    terms: Terms,
    records: float | None,
    factor: Callable[..., float],
) -> SelectionPlan:
    """Return the selector's plan for steps of this budget, if it is one.

    factor: of the noise of tables, or of contrasts, to that of core.
    """
    plan: object = selector.plan(workload, budget, terms, records)
    if not isinstance(plan, SelectionPlan):
        raise IncompatiblePlugin(f"selector {_name(selector)} planned a {type(plan).__name__}, not a SelectionPlan")
    if not isinstance(plan.deviation, Real) or not isinstance(plan.contrasts, bool):
        raise IncompatiblePlugin(
            f"selector {_name(selector)} planned a deviation that is no number, or contrasts that are neither true nor "
            "false"
        )
    if plan.order is not None and (isinstance(plan.order, bool) or not isinstance(plan.order, int) or plan.order < 1):
        raise IncompatiblePlugin(f"selector {_name(selector)} planned an order that is no whole number of at least 1")
    if (plan.learner is None) is not (plan.switched is None):
        raise IncompatiblePlugin(
            f"selector {_name(selector)} planned another learner without its structure, or the reverse"
        )
    plan = evolve(plan, deviation=float(plan.deviation) * factor(contrasts=plan.contrasts))
    if plan.deviation > _MAX_DEVIATION_RECORDS:
        raise BudgetError(
            f"selector {_name(selector)} would measure each attribute with noise of {plan.deviation:.2g} records "
            "(standard deviation), which is too wide for 64-bit counts; give it more budget, or tables a larger share"
        )
    if plan.choices is not None and not _are_choices(plan.choices, budget):
        raise IncompatiblePlugin(
            f"selector {_name(selector)} planned choices that are no pairs of a number and a {budget.kind} Budget"
        )
    return plan


def _are_choices(choices: object, budget: Budget) -> bool:
    """Whether a plan states choices that this budget could pay for."""
    return isinstance(choices, tuple) and all(
        isinstance(one, tuple)
        and len(one) == 2
        and isinstance(one[0], int)
        and not isinstance(one[0], bool)
        and one[0] > 0
        and type(one[1]) is Budget
        and one[1].kind == budget.kind
        and not one[1].is_zero
        and one[1] * one[0] <= budget
        for one in choices
    )


def _noise_factor(
    mechanism: Mechanism | None, workload: Workload, budget: Budget, terms: Terms, *, contrasts: bool = False
) -> float:
    """Return how much wider the noise of a mechanism is than core's own, for all attributes alone at half the budget.

    mechanism: None for core's own. contrasts: of all attributes, and of N where it is estimated. Raises BudgetError,
    before any charge, where it cannot be drawn for about a hundredth of the budget, which steps may come to, and in
    digits that no mechanism expects.
    """
    if mechanism is None:
        return 1.0
    counted: list[Clique] = [()] if contrasts and terms.total_policy == "estimated" else []
    singles = Structure(workload.domain, [*counted, *((name,) for name in workload.attributes)])
    alone = terms.sensitivity(singles, contrasts=contrasts)
    little = budget * _LITTLE_SHARE
    calibrate(mechanism, mechanism.noise(alone, little), alone, little)
    own, half = session_mechanism(budget), budget * Fraction(1, 2)
    return math.sqrt(mechanism.noise(alone, half).variance / own.noise(alone, half).variance)


def session_noises(mechanism: Mechanism | None, budget: Budget) -> tuple[Noise, ...]:
    """Return a noise as tables of a session have it, for the dry run of a learner; empty for core's own."""
    if mechanism is None:
        return ()
    return (mechanism.noise(Sensitivity(l0=1, l1=1, l2_squared=1, linf=1), budget),)


def _possible_share(workload: Workload, share: Fraction) -> Fraction:
    """Return the share of a holdout; 0 where no candidate pair could be left for it, whatever a selector measures."""
    alone = Structure(workload.domain, [(name,) for name in workload.attributes])
    return share if share and candidate_pairs(alone, workload.candidates) else Fraction(0)


def plan_for_curator(
    selector: Selector, workload: Workload, curator: LiveCurator, share: Fraction, mechanism: Mechanism | None = None
) -> PlannedSession:
    """Return the selector's plan for a curator's whole budget; see `plan_session`."""
    return plan_session(selector, workload, curator.remaining, curator.terms, share, mechanism=mechanism)


def _fitting_of(learner: Learner, inference: Inference, randomness: Randomness) -> Fitting:
    """Return the learner as a selector calls it: its own `fitter`, or `learn` from scratch each time.

    An error inside it names the learner, as it comes up inside a selector.
    """
    if isinstance(learner, Fitter):
        own = fitter_of(learner, inference)

        def fit_again(release: NoisyTables, structure: Structure, before: Fit | None) -> Fit:
            try:
                fit: object = own(release, structure, before)
            except DpgmError:
                raise
            except Exception as error:
                raise LearningFailed(
                    f"learner {name_of(learner)} failed in its fitter, {type(error).__name__}: {error}", releases=()
                ) from error
            if not isinstance(fit, Fit) or not isinstance(fit.model, Model):
                raise IncompatiblePlugin(
                    f"the fitter of learner {name_of(learner)} returned {type(fit).__name__}, not a Fit"
                )
            return fit

        return fit_again

    def fit_afresh(release: NoisyTables, structure: Structure, before: Fit | None) -> Fit:
        return run_learner(learner, ReplayCurator(release, structure), inference, randomness=randomness)

    return fit_afresh


def select_structure(
    selector: Selector,
    curator: LiveCurator,
    workload: Workload,
    learner: Learner,
    inference: Inference,
    *,
    share: Fraction = Fraction(0),
    mechanism: Mechanism | None = None,
    randomness: Randomness | None = None,
    progress: Progress = silent,
) -> tuple[NoisyTables, Selection]:
    """Open a session, let the selector spend it, and measure the tables that it left for the end.

    mechanism: of the noise of tables; None for core's own. share: of the budget, for a holdout: tables of random
    candidate pairs that were not measured, which nobody learns from. Returns the session's release and the selection,
    whose notes include what was decided here. Raises what can be refused before the charge, and LearningFailed for any
    error after it: the release so far is saved and in the error.
    """
    planned = plan_for_curator(selector, workload, curator, share, mechanism)
    plan = planned.plan
    if plan.learner is None and isinstance(selector, SwitchingSelector):
        selector = selector.without_switch()
    named = isinstance(selector, NamedCliques)
    if not named:  # whose learner was checked with its own structure
        noises = session_noises(mechanism, planned.budget)
        check_learner(learner, inference, workload, plan, curator.terms, planned.budget, noises)
    source = randomness_or_system(randomness)
    fitting = _fitting_of(learner, inference, source)
    # With np.seterr(all='raise') an underflow in the tail of a density would end the run after the charge.
    with np.errstate(under="ignore"), _open_session(selector, curator, workload, planned, mechanism) as session:
        assert isinstance(session, LiveSession)
        try:
            session.reserve_holdout(possible := _possible_share(workload, share))
            try:
                outcome: object = selector.select(
                    session, inference=inference, fitting=fitting, randomness=source, progress=progress
                )
            except SystemExit as left:
                raise IncompatiblePlugin(f"it tried to end the program ({left})") from left
            selection = _check_selection(outcome, session, selector, plan)
            session.set_model_structure(selection.structure, named=named)
            notes = [*selection.notes, *session.workload.say_large_pairs(session.domain)]
            if share and not possible:
                notes.append(_NO_HOLDOUT)
            elif share and not _has_holdout_pair(session, selection):
                session.return_holdout()
                possible = Fraction(0)
                notes.append(
                    "every candidate pair of attributes was measured, so there is none left for a holdout; its "
                    "share of the budget went to the tables"
                )
            notes += _measure_rest(session, selection)
            if possible:
                _measure_holdout(session, source)
            if not named and plan.structure is None and not isinstance(learner, Fitter):
                notes.append(f"learner {name_of(learner)} has no fitter, so each round of the selection began afresh")
            return session.pooled(), evolve(selection, notes=notes)
        except BaseException as error:
            failed = _selection_failed(selector, error, curator)
            if isinstance(error, Exception):
                raise failed from error
            raise error from failed


def _open_session(
    selector: Selector, curator: LiveCurator, workload: Workload, planned: PlannedSession, mechanism: Mechanism | None
) -> AbstractContextManager[Session]:
    """Return the session; an error once it is paid for, as private bins are found, becomes LearningFailed."""
    before = curator.remaining
    try:
        return curator.session(workload=workload, votes=planned.votes, account=planned.account, mechanism=mechanism)
    except Exception as error:
        if curator.remaining == before:
            raise
        raise _selection_failed(selector, error, curator) from error


def fit_selection(
    release: NoisyTables,
    selection: Selection,
    selector: Selector,
    learner: Learner,
    inference: Inference,
    *,
    randomness: Randomness | None = None,
    progress: Progress = silent,
) -> Fit:
    """Return the learner's fit to a session's release over the chosen structure, with the selector in its provenance.

    Raises LearningFailed, with the release, for any error.
    """
    named = ""
    if selection.learner is not None:
        learner, named = make("learner", selection.learner), f" --learner {selection.learner}"
    try:
        fit = run_learner(
            learner, ReplayCurator(release, selection.structure), inference, randomness=randomness, progress=progress
        )
    except Exception as error:
        raise LearningFailed(
            f"learner {name_of(learner)} failed, {error}; the session's release is paid for and kept: learn again, at "
            f"no cost, with dpgm learn FILE{named} where it was saved, or with learn(error.releases[0])",
            releases=(release,),
        ) from error
    notes = [*selection.notes, *fit.notes]
    chosen: dict[str, Any] = {"notes": notes}
    if not isinstance(selector, NamedCliques):
        chosen |= {
            "selector": default_registry().record("selector", selector),
            "selection": {"trace": [dict(row) for row in selection.trace], "notes": list(selection.notes)},
        }
    model = Model(
        fit.model.structure,
        fit.model.potentials,
        releases=fit.releases,
        provenance={**fit.model.provenance, **chosen},
        conversion_delta=fit.model.conversion_delta,
        latent=fit.model.latent,
    )
    return evolve(fit, model=model, notes=notes)


def _check_selection(outcome: object, session: LiveSession, selector: Selector, plan: SelectionPlan) -> Selection:
    name = _name(selector)
    if not isinstance(outcome, Selection) or not isinstance(outcome.structure, Structure):
        raise IncompatiblePlugin(f"selector {name} returned {type(outcome).__name__}, not a Selection")
    if outcome.structure.domain != session.domain:
        raise IncompatiblePlugin(f"selector {name} chose a structure over another domain than the session's last")
    tables = [tuple(clique) for clique in outcome.measure]
    measured = session.pooled().structure.cliques if session.has_tables else ()
    for clique in (*measured, *tables):
        if outcome.structure.covering(clique) is None:
            raise IncompatiblePlugin(f"selector {name} left {clique!r}, which it measured, out of its structure")
    if not measured and not tables:
        raise IncompatiblePlugin(f"selector {name} measured nothing, so there is nothing to learn from")
    contrasts = session.pooled().contrasts if measured else bool(outcome.contrasts)
    if contrasts is not plan.contrasts or (tables and outcome.contrasts is not contrasts):
        raise IncompatiblePlugin(
            f"selector {name} planned {_MEASURED_NAMES[plan.contrasts]}, for which the learner was asked, but measures "
            f"{_MEASURED_NAMES[not plan.contrasts]}"
        )
    if outcome.learner is not None and outcome.learner != plan.learner:
        raise IncompatiblePlugin(f"selector {name} chose the learner {outcome.learner!r}, which its plan does not name")
    longest, planned = max(map(len, outcome.structure.cliques)), plan.structure
    if outcome.learner is not None:
        planned = plan.switched
    elif plan.order is not None and longest > plan.order:
        raise IncompatiblePlugin(
            f"selector {name} planned cliques of up to {plan.order} attributes, for which the learner was asked, but "
            f"chose one of {longest}"
        )
    if planned is not None and any(planned.covering(one) is None for one in outcome.structure.cliques):
        raise IncompatiblePlugin(
            f"selector {name} chose a clique outside of the structure in its plan, for which the learner was asked"
        )
    weights = outcome.measure.values()
    if not all(isinstance(one, Real) and not isinstance(one, bool) and 0 < one < float("inf") for one in weights):
        raise IncompatiblePlugin(f"selector {name} gave a table to measure a weight that is no positive number")
    return outcome


def _measure_rest(session: LiveSession, selection: Selection) -> list[str]:
    """Spend the rest on the tables that the selector named, or else on those it has; return what was decided, in words.

    Where less than 1 % is left, only tables that were measured before are measured: a new one would be noise alone.
    """
    left = session.remaining
    if session.has_tables and left <= session.budget * _ROUNDING_SHARE:
        return []
    if not session.has_tables or not left <= session.budget * _MIN_SHARE_LEFT:
        contrasts = session.pooled().contrasts if session.has_tables else selection.contrasts
        _measure_by_weight(session, selection.measure or _widest_measured(session), left, contrasts)
        return []
    pooled = {frozenset(clique) for clique in session.pooled().structure.cliques}
    again = {clique: weight for clique, weight in selection.measure.items() if frozenset(clique) in pooled}
    try:
        _measure_by_weight(session, again or _widest_measured(session), left, session.pooled().contrasts)
    except BudgetError:
        if session.remaining != left:
            raise
        # The noise would be wider than 64-bit counts hold; nothing was drawn.
    if len(again) == len(selection.measure):
        return []
    return [f"less than {float(_MIN_SHARE_LEFT):.0%} of the budget was left, so no more tables were measured"]


def _measure_by_weight(session: LiveSession, tables: Mapping[Clique, float], budget: Budget, contrasts: bool) -> None:
    """Measure tables, each for a part of the budget in proportion to its weight."""
    most, least = max(map(float, tables.values())), Fraction(1, 10**6)
    weights = {
        clique: max(least, Fraction(float(weight) / most).limit_denominator(10**6)) for clique, weight in tables.items()
    }
    if len(set(weights.values())) == 1:
        session.measure(list(weights), budget, contrasts=contrasts)
    else:
        whole = sum(weights.values())
        session.measure({clique: budget * (weight / whole) for clique, weight in weights.items()}, contrasts=contrasts)


def _widest_measured(session: LiveSession) -> dict[Clique, float]:
    """Return the measured tables that no other one holds, at equal weights; without those of merged codes alone."""
    cliques = session.pooled().structure.cliques
    widest = [one for one in cliques if not any(set(one) < set(other) for other in cliques)]
    open_ones = [one for one in widest if any(session.domain[name].size > 1 for name in one)]
    return dict.fromkeys(open_ones or widest, 1.0)


def _has_holdout_pair(session: LiveSession, selection: Selection) -> bool:
    """Return whether a candidate pair stays unmeasured once all that the selection names is measured."""
    measured = session.pooled().structure.cliques if session.has_tables else ()
    named = {frozenset(clique): tuple(clique) for clique in (*measured, *selection.measure)}
    candidates = session.workload.measurable(session.domain)
    return bool(candidate_pairs(Structure(session.domain, list(named.values())), candidates))


def _measure_holdout(session: LiveSession, randomness: Randomness) -> None:
    candidates = session.workload.measurable(session.domain)
    pairs = pairs_to_check(session.pooled().structure, randomness.generator(), candidates)
    if pairs is not None:
        session.measure_holdout(pairs)


def _selection_failed(selector: Selector, error: BaseException, curator: LiveCurator) -> LearningFailed:
    kind = "" if isinstance(error, DpgmError) else f"{type(error).__name__}: "
    state = (
        "what it measured is kept: learn from it with dpgm learn FILE where it was saved, or learn(error.releases[0])"
        if curator.released
        else "nothing was measured yet"
    )
    lost = saved_text(curator.released)
    if lost is not None:
        state = f"what it measured is {lost}"
    return LearningFailed(
        f"selector {_name(selector)} failed, {kind}{error}; the session's budget is spent, and {state}",
        releases=curator.released,
    )


def _name(selector: Selector) -> str:
    if isinstance(selector, NamedCliques):
        return "of the named cliques"
    return default_registry().name_of("selector", selector) or type(selector).__name__


# --------------------------------------------------------------------------------------------------
# Arguments of a selection


def selector_of(selector: object) -> Selector:
    """Return the selector of this name, table or object. Raises StructureError for anything else."""
    if not isinstance(selector, (str, Mapping, Selector)):
        raise StructureError(
            "fit needs a Structure after the data, or a selector such as 'auto' that chooses one; got "
            f"{type(selector).__name__}"
        )
    made: Selector = make("selector", selector)
    return made


def workload_of(workload: object) -> Workload:
    """Return the workload, or the default one of a domain or of two related tables."""
    if isinstance(workload, Domain):
        return Workload.default(workload)
    if isinstance(workload, Related):
        return Workload.related(workload)
    if not isinstance(workload, Workload):
        raise OptionError(
            "a selector needs to know what the model is for: workload=Workload.all(domain), or workload=domain for its "
            f"default; got {type(workload).__name__}"
        )
    return workload


def widened_workload(selector: object, workload: object, budget: Budget, may_widen: bool) -> Workload:
    """Return the run's workload: where it is the default one, what the selector makes of it; see `WideningSelector`.

    Of a selector that merges codes, with the candidates that merging may make small enough; see `MergingSelector`.
    """
    widened = _widen(selector, workload_of(workload), budget, may_widen)
    return widened.before_merging() if isinstance(selector, MergingSelector) and selector.merges_codes else widened


def _widen(selector: object, given: Workload, budget: Budget, may_widen: bool) -> Workload:
    """Return what a selector makes of a workload."""
    if not (may_widen and given.is_default and isinstance(selector, WideningSelector)):
        return given
    widened: object = selector.widen(given, budget)
    limits = [(one.domain, one.never, one.max_cells) for one in (given, widened) if isinstance(one, Workload)]
    if not isinstance(widened, Workload) or limits[0] != limits[1]:
        raise IncompatiblePlugin(
            f"selector {type(selector).__name__} widened a workload to another domain, or dropped its limits"
        )
    return widened


def share_only(split: Split | str | Mapping[str, Any]) -> Fraction:
    """Return the share of a holdout. Raises OptionError for options that go with named cliques only."""
    split = Split.of(split)
    if split.tables != "even":
        raise OptionError(
            f"split = {split.tables!r} divides a budget over named cliques, but a selector divides it itself"
        )
    return split.holdout
