"""What every selector must keep: it sees records through the session alone and says nothing but what follows from its
steps, stays within the workload and the budget, stops, and gives a structure that holds what was measured."""

from __future__ import annotations

import gc
import json
import math
import random
import weakref
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from dpgm_core.domain import Domain
from dpgm_core.errors import Overspent, StructureError
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.privacy.budget import Budget
from dpgm_core.structure import Clique, Structure
from dpgm_core.structure.dag import Dag
from dpgm_core.testing.check import Checklist, require
from dpgm_core.testing.checks import selector_plan as checks_selector_plan
from dpgm_core.testing.checks import selector_told as checks_selector_told
from dpgm_core.testing.selecting import (
    DOMAIN,
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
from dpgm_core.testing.subjects import SelectorSubject
from dpgm_core.workload import Workload

__all__ = ["CHECKS"]

CHECKS = Checklist("selector")

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
    for told in (structure, *one.shown) if one.plan.directed else ():
        require(_directed(told), f"{where}: its plan says directed, but {told.cliques} is no graph that Dag.of reads")
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
    """It touches nothing of the session but its protocol, and the booby-trapped records are read by core alone. Cannot
    show: a selector that looks for records elsewhere in the process (a plugin is trusted code)."""
    one = plain(subject)
    require(not one.touched, f"it reached for {', '.join(one.touched)} of the session, beyond the protocol")
    require(not one.trespassers, f"the records were read by {', '.join(one.trespassers)}, not by the curator")


@CHECKS.add()
def says_only_what_follows_from_the_steps(subject: SelectorSubject) -> None:
    """Given the same answers by a session without any record it asks the same, predictions and budgets to the last
    bit, and says the same: structure, trace, notes and progress are made of what was released. Cannot show: what it
    writes elsewhere."""
    one = plain(subject)
    require(again(subject, one) == one.said, "without records, but with the same answers, it says something else")


@CHECKS.add()
def records_are_not_kept(subject: SelectorSubject) -> None:
    """After selecting neither the selector nor the selection holds on to the session or the records. Cannot show:
    copies."""
    alive: list[weakref.ref[Any]] = []
    one = choose(subject, planted(200, 1), watch=lambda thing: alive.append(weakref.ref(thing)))
    selection = one.selection
    del one
    gc.collect()
    require(all(kept() is None for kept in alive), "the session or the records are still held after `select` returned")
    del selection


@CHECKS.add()
def same_seed_same_selection(subject: SelectorSubject) -> None:
    """The same records, options and seed give the same requests and the same selection, whatever was selected in
    between; the global random state is neither read nor moved. Cannot show: other machines or library versions."""
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
    """Triples, pairs, targets, weights, `never`, few cells, one attribute, one label: what is measured is a candidate
    and lies in a clique of the structure, every attribute that may be measured is, and trace and notes are plain; a
    plan that says directed is true of every structure; or `plan` refuses the workload. Cannot show: large ones."""
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
    """For each kind of budget and relation that `plan` does not refuse it never asks for more than remains, leaves
    less than 1 % unspent unless it says what to measure with it (and of what is for votes in any case), and the
    session's release costs what was charged. Cannot show: that it is spent well."""
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


CHECKS += checks_selector_plan.CHECKS
CHECKS += checks_selector_told.CHECKS
