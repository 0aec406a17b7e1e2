"""Checks of selectors."""

from __future__ import annotations

import gc
import itertools
import json
import math
import random
import weakref
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from dpgm_core._util.arrays import FloatArray
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, DpgmError, Overspent, StructureError, TooLarge
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning.selector_run import split_votes
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.steps import Choice, NoisyScores
from dpgm_core.structure.dag import Dag
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.workload import Workload
from dpgm_testing.check import Checklist, fast_collections, require
from dpgm_testing.selecting import (
    DOMAIN,
    LINKED,
    PAIRS,
    Selected,
    again,
    budget_of,
    choose,
    first,
    plain,
    planted,
    served,
    serves,
    unlinked,
)
from dpgm_testing.sessions import STEPS, Request
from dpgm_testing.subjects import SelectorSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("selector")


# --- Structures, steps and budget -----------------------------------------------------------------

_APPROX = (Budget.approx(1, "1e-6"), "add-remove")


def _valid(one: Selected, where: str) -> None:
    """Nothing that core refuses was asked for, and what came out is what the contract says."""
    refused = [step.error for step in one.log if isinstance(step.error, (StructureError, Overspent))]
    require(not refused, f"{where}: the session refused what it asked for: {refused[0] if refused else ''}")
    require(not one.wrong, f"{where}: {one.wrong[0] if one.wrong else ''}")
    structure: object = one.selection.structure
    require(isinstance(structure, Structure), f"{where}: Selection.structure is a {type(structure).__name__}")
    assert isinstance(structure, Structure)
    require(structure.domain == one.domain, f"{where}: the structure is over another domain than the session is by now")
    require(max(structure.multiplicities) == 1, f"{where}: the structure has tied cliques")
    for clique, weight in one.selection.measure.items():
        require(_weight(weight), f"{where}: the weight of {clique!r} in Selection.measure must be a number above 0")
    candidates = {frozenset(clique) for clique in one.workload.candidates}
    wanted: list[Clique] = [*one.measured, *one.selection.measure]
    for clique in wanted:
        require(frozenset(clique) in candidates, f"{where}: {clique!r} is no candidate of the workload")
        held = structure.covering(clique) is not None
        require(held, f"{where}: no clique of the structure holds {clique!r}, which is measured")
    left_out = {name for clique in candidates for name in clique} - {name for clique in wanted for name in clique}
    require(not left_out, f"{where}: nothing is measured of {', '.join(sorted(left_out))}")
    JunctionTree().compile(structure)
    for shown in (structure, *one.shown) if one.plan.directed else ():
        require(_directed(shown), f"{where}: its plan says directed, but {shown.cliques} is no graph that Dag.of reads")
    for row in one.selection.trace:
        require(_has_a_form(row), f"{where}: a row of the trace has no form in a file: {dict(row)!r}")
    for note in one.selection.notes:
        require(isinstance(note, str) and note.strip(), f"{where}: notes must be sentences")


def _directed(structure: Structure) -> bool:
    try:
        Dag.of(structure)
    except StructureError:
        return False
    return True


def _has_a_form(row: Mapping[str, Any]) -> bool:
    try:
        json.dumps(dict(row))
    except (TypeError, ValueError):
        return False
    return True


def _weight(weight: Any) -> bool:
    return isinstance(weight, (int, float)) and not isinstance(weight, bool) and 0 < weight < math.inf


@CHECKS.add()
def records_only_through_the_session(subject: SelectorSubject) -> None:
    """It touches nothing of the session but its protocol, and booby-trapped records are read by core alone. Cannot
    show: a selector that looks for records elsewhere in the process."""
    one = plain(subject)
    require(not one.touched, f"it reached for {', '.join(one.touched)} of the session, beyond the protocol")
    require(not one.trespassers, f"the records were read by {', '.join(one.trespassers)}, not by the curator")


@CHECKS.add()
def says_only_what_follows_from_the_steps(subject: SelectorSubject) -> None:
    """With the same answers from a session without records, requests, structure, trace, notes and progress are the same
    to the last bit. Cannot show: what it writes elsewhere."""
    one = plain(subject)
    require(again(subject, one) == one.said, "without records, but with the same answers, it says something else")


@CHECKS.add()
def records_are_not_kept(subject: SelectorSubject) -> None:
    """After selecting neither the selector nor the selection refers to the session or the records. Cannot show:
    copies."""
    alive: list[weakref.ref[Any]] = []
    with fast_collections():
        one = choose(subject, planted(200, 1), watch=lambda thing: alive.append(weakref.ref(thing)))
        selection = one.selection
        del one
        gc.collect()
    require(all(kept() is None for kept in alive), "the session or the records are still held after `select` returned")
    del selection


@CHECKS.add()
def same_seed_same_selection(subject: SelectorSubject) -> None:
    """The same records, options and seed give the same requests and selection, whatever was selected in between; the
    global random state is neither read nor moved. Cannot show: other machines or library versions."""
    one = plain(subject)
    choose(subject, unlinked(300, 2))
    random.seed(2)
    np.random.seed(2)  # noqa: NPY002 - the global state is what is watched
    before = repr((random.getstate(), np.random.get_state()))  # noqa: NPY002
    two = choose(subject, planted(2000, 1))
    after = repr((random.getstate(), np.random.get_state()))  # noqa: NPY002
    require(before == after, "selecting moves a global random state")
    asked, now = ([(step.name, step.asked) for step in run.log] for run in (one, two))
    require(asked == now, "the same records and seed give other requests")
    require(one.said == two.said, "the same records and seed give another selection")


@CHECKS.add()
def measures_within_the_workload(subject: SelectorSubject) -> None:
    """Over triples, pairs, targets, weights, `never`, few cells, one attribute, one label: what is measured is a
    candidate and lies in a clique of the structure, every attribute that may be measured is, and trace and notes are
    plain; a plan that says directed is true of every structure; or `plan` refuses the workload. Cannot show: large
    workloads."""
    served = 0
    for where, workload in _workloads().items():
        if not serves(subject, workload, budget_of(first(subject), 1)):
            continue
        codes = planted(1000, 1)
        if workload.domain != DOMAIN:
            codes = codes[:, : len(workload.domain)] % np.array([one.size for one in workload.domain])
        _valid(choose(subject, codes, workload=workload), where)
        served += 1
    require(served, "its plan refuses every workload")


@CHECKS.add()
def spends_what_it_has(subject: SelectorSubject) -> None:
    """For each budget and relation that `plan` does not refuse it never asks for more than remains, leaves less than 1
    % unspent unless it says what to measure with it (and of what is for votes in any case), and the release costs what
    was charged."""
    for budget, neighbours in [*served(subject), *([_APPROX] if "zcdp" in subject.capabilities else [])]:
        where = f"{budget}, {neighbours}"
        one = choose(subject, planted(1000, 1), budget=budget, neighbours=neighbours)
        _valid(one, where)
        spent = one.selection.measure or one.left < 0.01
        require(spent, f"{where}: {one.left:.1%} of the budget is left, for nothing")
        require(one.unvoted < 0.01, f"{where}: {one.unvoted:.1%} of what was for votes is left")
        require(one.paid == one.charged == one.budget, f"{where}: of {one.charged} the release states {one.paid}")


@CHECKS.add()
def stops(subject: SelectorSubject) -> None:
    """With a fifth of the budget, and with thirty times as much, on independent and on dependent records, it stops
    before 300 steps, 300 fits and 5,000 requests. Cannot show: loops that ask nothing."""
    for epsilon, codes in ((Fraction(1, 5), unlinked(1000, 3)), (Fraction(30), planted(1000, 3))):
        if serves(subject, PAIRS, budget_of(first(subject), epsilon)):
            _valid(choose(subject, codes, budget=budget_of(first(subject), epsilon)), f"epsilon = {epsilon}")


def _workloads() -> dict[str, Workload]:
    one, flat = Domain.from_sizes({"a": 3}), Domain.from_sizes({"a": 1, "b": 2, "c": 1})
    return {
        "triples": Workload.all(DOMAIN, order=3),
        "no pairs": Workload.all(DOMAIN, order=1),
        "targeted": Workload.targeted(DOMAIN, ["b"], order=2),
        "weighted": Workload.of(DOMAIN, {("a", "b", "c"): 3, ("d",): Fraction(1, 3)}),
        "never": Workload.all(DOMAIN, order=2, never=[("a", "b"), ("e",)]),
        "few cells": Workload.all(DOMAIN, order=3, max_cells=6),
        "one attribute": Workload.all(one),
        "one label": Workload.all(flat, order=2),
    }


# --- The plan and the session ---------------------------------------------------------------------

_CHOICES = ("select", "score", "descend")
# How far spending may be off, as a share of the budget, and the distance stated, as a factor of the first choice's.
_OFF, _FACTOR = 0.02, 2.0
# More shares than this are not searched for those that make up a sum.
_MOST_SHARES = 12


def _amount(budget: Budget) -> float:
    return float(budget.epsilon if budget.kind == "pure" else budget.rho)


def _taken(one: Selected, names: Sequence[str]) -> list[Request]:
    """The steps of these names that were taken, in their order."""
    return [step for step in one.log if step.name in names and step.error is None]


@CHECKS.add()
def spends_as_planned(subject: SelectorSubject) -> None:
    """To 2 % of the budget, its choices, and the tables measured before them, cost sums of shares of its plan."""
    one = plain(subject)
    shares = [_amount(share) for share in one.plan.shares.values()]
    if len(shares) > _MOST_SHARES:
        return
    whole = sum(shares)
    sums = {sum(some) for count in range(len(shares) + 1) for some in itertools.combinations(shares, count)}
    steps = [step.name for step in _taken(one, ("measure", *_CHOICES))]
    first = next((place for place, name in enumerate(steps) if name in _CHOICES), len(steps))
    before = _taken(one, ("measure", *_CHOICES))[:first] if first < len(steps) else []
    for what, taken in (("its choices cost", _taken(one, _CHOICES)), ("the tables measured before them cost", before)):
        spent = sum(_amount(step.answer.cost) for step in taken)
        off = min(abs(spent - planned) for planned in sums)
        listed = ", ".join(f"{name}: {_amount(share) / whole:.1%}" for name, share in one.plan.shares.items())
        require(
            off <= _OFF * whole,
            f"{what} {spent / whole:.1%} of the budget, which no shares of its plan sum to ({listed})",
        )


@CHECKS.add()
def what_it_calls_detectable_is(subject: SelectorSubject) -> None:
    """What its plan calls detectable is, to a factor of two, the lead with which a candidate of its first choice is
    chosen with probability 0.9. Cannot show: plans that state none, and choices by regressions."""
    one = plain(subject)
    stated, answer = one.plan.detectable, next((step.answer for step in _taken(one, ("select", "score"))), None)
    if stated is None:
        return
    if isinstance(answer, Choice):
        others = max(map(len, answer.groups)) - 1
        ahead = math.log(9 * others) / (float(answer.temperature) * answer.grid) if others else 0.0
    elif isinstance(answer, NoisyScores) and answer.groups is None:
        others = len(answer.candidates) - 1
        ahead = answer.deviation * (1.28 + math.sqrt(2 * math.log(max(2, others))))
    else:
        return
    if others:
        require(
            ahead / _FACTOR <= stated <= _FACTOR * ahead,
            f"its plan calls {stated:.4g} records detectable; in its first choice, among {others + 1}, a table must be "
            f"{ahead:.4g} ahead of all others to be chosen with probability 0.9",
        )


# --- Findings and failures ------------------------------------------------------------------------


@CHECKS.add()
def plan_refuses_what_select_would(subject: SelectorSubject) -> None:
    """Over kinds of budget, relations, amounts and workloads, `select` refuses nothing that `plan` lets pass; and
    `plan` refuses with BudgetError, StructureError or TooLarge. Cannot show: budgets smaller than a hundredth of an
    epsilon."""
    small = Workload.all(Domain.from_sizes({"a": 2, "b": 2, "c": 2}))
    for kind in sorted({"pure", "zcdp"} | subject.capabilities):
        for neighbours, epsilon in (("add-remove", Fraction(1, 100)), ("replace-one", Fraction(1, 10))):
            budget = budget_of(kind, epsilon)
            if not serves(subject, small, budget, neighbours):
                continue
            try:
                choose(subject, planted(500, 4)[:, :3] % 2, workload=small, budget=budget, neighbours=neighbours)
            except (BudgetError, StructureError, TooLarge) as error:
                require(
                    False, f"{budget}, {neighbours}: plan lets it pass, select raises {type(error).__name__}: {error}"
                )


@CHECKS.add()
def plan_adds_up(subject: SelectorSubject) -> None:
    """The shares of a plan are budgets of the right kind that sum to it exactly, votes excepted, its numbers are
    numbers, and a second plan says the same."""
    for kind in sorted(subject.capabilities):
        _, budget = split_votes(subject.component, budget_of(kind, Fraction(2, 3)))
        one, two = (subject.component.plan(PAIRS, budget, Terms(neighbours="add-remove"), 1000.0) for _ in range(2))
        require(one == two, "a plan made again says something else")
        shares = list(one.shares.values())
        require(shares and all(isinstance(share, Budget) for share in shares), "shares must be budgets")
        require(Budget.sum(shares) == budget, f"the shares of {budget} sum to {Budget.sum(shares)}")
        least = [one.deviation] if one.detectable is None else [one.deviation, one.detectable]
        require(all(0 < float(number) < math.inf for number in least), f"a plan states {least} records")
        require(isinstance(one.candidates, int) and one.candidates >= 0, f"a plan states {one.candidates!r} candidates")
        limits = one.limits
        require(isinstance(limits, Mapping) and all(isinstance(n, int | float) for n in limits.values()), "limits")
        require(all(isinstance(note, str) and note.strip() for note in one.notes), "notes must be sentences")


@CHECKS.add()
def plan_tells_the_noise(subject: SelectorSubject) -> None:
    """The deviation that a plan states is, to 2 %, that of the first tables of one attribute, for each kind of budget
    and relation that it does not refuse. Cannot show: the other figures of the plan."""
    for budget, neighbours in served(subject):
        one = choose(subject, planted(1000, 1), budget=budget, neighbours=neighbours)
        measured = (step.answer for step in one.log if step.name == "measure" and step.error is None)
        tables = ((release, place) for release in measured for place in enumerate(release.structure.cliques))
        found = next(
            (math.sqrt(release.variances[number]) for release, (number, clique) in tables if len(clique) == 1), None
        )
        require(
            found is None or math.isclose(found, one.plan.deviation, rel_tol=0.02),
            f"{budget}, {neighbours}: the plan says {one.plan.deviation:.4g} records of noise in one-way tables, they "
            f"have {found or 0:.4g}",
        )


@CHECKS.add()
def strong_dependence_is_found(subject: SelectorSubject) -> None:
    """Of five attributes two pairs depend strongly on each other, 5,000 records, epsilon = 10: a clique of the
    structure holds each, and both are measured. Two seeds. Cannot show: what it finds with less."""
    for seed in (5, 6):
        one = choose(subject, planted(5000, seed), budget=budget_of(first(subject), 10), seed=seed)
        tables = [*one.measured, *one.selection.measure]
        for pair in LINKED:
            found = any(set(pair) <= set(table) for table in tables)
            require(found, f"{' x '.join(pair)}, far from independence, is measured by none of its tables")


@CHECKS.add()
def more_records_never_hurt(subject: SelectorSubject) -> None:
    """At ten times the records and the same epsilon = 1/2 the mean error of the pairs, in total variation, of the kit's
    fit grows by no more than 0.01; at 20,000 it is at most 0.05. Mean of two seeds."""
    budget = budget_of(first(subject), Fraction(1, 2))

    def mean(count: int) -> float:
        runs = (choose(subject, planted(count, 9 + s), budget=budget, seed=s, judge=True) for s in (1, 2))
        return float(np.mean([_error(one) for one in runs]))

    few, many = mean(2_000), mean(20_000)
    require(many <= few + 0.01, f"the mean error of pairs is {few:.3g} with 2,000 records, {many:.3g} with 20,000")
    require(many <= 0.05, f"the mean error of pairs is {many:.3g} with 20,000 records")


def _error(one: Selected) -> float:
    """The mean distance of the model's pairs from the population's, in total variation."""
    truth = _population()
    return float(np.mean([np.abs(one.marginal(pair) - table).sum() / 2 for pair, table in truth.items()]))


@lru_cache(maxsize=1)
def _population() -> Mapping[Clique, FloatArray]:
    """The table of each pair, of 200,000 records."""
    codes = planted(200_000, 0)
    found: dict[Clique, FloatArray] = {}
    for pair in combinations(DOMAIN.names, 2):
        places, shape = [DOMAIN.names.index(name) for name in pair], DOMAIN.shape(pair)
        flat = np.ravel_multi_index(tuple(codes[:, place] for place in places), shape)
        found[pair] = np.bincount(flat, minlength=math.prod(shape)).reshape(shape) / len(codes)
    return found


@CHECKS.add()
def what_it_chooses_fits(subject: SelectorSubject) -> None:
    """Of seven attributes of 24 labels, all noisy copies of one, at epsilon = 30, it chooses a structure that an exact
    engine holds; or `plan` refuses, or states the structure, its own or that of another learner, so that the learner is
    checked with it before the charge."""
    domain = Domain.from_sizes(dict.fromkeys("abcdefg", 24))
    workload, budget = Workload.all(domain, order=2), budget_of(first(subject), 30)
    if not serves(subject, workload, budget):
        return
    draw = np.random.default_rng(1)
    codes, noise = draw.integers(0, 24, (3000, 1)), draw.integers(0, 24, (3000, 7))
    codes = np.where(draw.random((3000, 7)) < 0.7, codes, noise)
    one = choose(subject, codes, workload=workload, budget=budget, finds=False)
    planned = one.plan.structure if one.selection.learner is None else one.plan.switched
    if planned is not None:
        stated = {*planned.cliques} == {*one.selection.structure.cliques}
        require(stated, "it chose other cliques than those of the structure in its plan")
        return
    try:
        JunctionTree().compile(one.selection.structure)
    except TooLarge as error:
        require(False, f"the structure it chose does not fit, when all is paid for: {error}")


@CHECKS.add()
def nothing_to_find_is_no_failure(subject: SelectorSubject) -> None:
    """Independent records, no records, and a budget so small that most noisy counts are negative, give a selection."""
    for where, codes, epsilon in (
        ("independent records", unlinked(1000, 7), 1),
        ("no records", unlinked(0, 7), 1),
        ("thirty records at epsilon = 1/20", unlinked(30, 7), Fraction(1, 20)),
    ):
        budget = budget_of(first(subject), epsilon)
        if not serves(subject, PAIRS, budget):
            continue
        try:
            choose(subject, codes, budget=budget, judge=True)
        except DpgmError as error:
            require(False, f"{where}: {type(error).__name__}: {error}")


@CHECKS.add()
def progress_is_told(subject: SelectorSubject) -> None:
    """Progress reports at least once its task, how far it is, and of how much, and never goes back within a task."""
    reports = plain(subject).reports
    require(reports, "it never says how far it is")
    last: dict[str, int] = {}
    for task, done, total in reports:
        require(isinstance(task, str) and task, f"the task reported is {task!r}")
        good = isinstance(done, int) and done >= 0 and (total is None or (isinstance(total, int) and done <= total))
        require(good, f"{task}: {done!r} of {total!r} is no progress")
        require(done >= last.get(task, 0), f"{task}: it goes back from {last.get(task)} to {done}")
        last[task] = done


@CHECKS.add()
def fits_that_never_settle_end_it_too(subject: SelectorSubject) -> None:
    """With a learner none of whose fits converges it stops with a selection, or an error of dpgm."""
    try:
        choose(subject, planted(1000, 1), settles=False)
    except DpgmError:
        return


@CHECKS.add()
def a_step_that_fails_ends_it(subject: SelectorSubject) -> None:
    """When the first, second or third step of the session fails, `select` raises an error of dpgm."""
    steps = sum(one.name in STEPS for one in plain(subject).log)
    for number in range(1, min(3, steps) + 1):
        try:
            choose(subject, planted(2000, 1), breaks_at=number)
        except DpgmError:
            continue
        require(False, f"step {number} of the session failed, and a selection came out")
