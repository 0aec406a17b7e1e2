"""What a selector makes of what it is told: what its plan says and refuses, what it finds in records that are made so
that there is something to find or nothing, and what it does when a step, a fit or its luck fails."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.domain import Domain
from dpgm_core.errors import BudgetError, DpgmError, StructureError, TooLarge
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import Terms
from dpgm_core.selection.run import split_votes
from dpgm_core.structure import Clique
from dpgm_core.testing.check import Checklist, require
from dpgm_core.testing.selecting import (
    DOMAIN,
    LINKED,
    PAIRS,
    Selected,
    budget_of,
    choose,
    first,
    plain,
    planted,
    served,
    serves,
    unlinked,
)
from dpgm_core.testing.sessions import STEPS
from dpgm_core.testing.subjects import SelectorSubject
from dpgm_core.workload import Workload

__all__ = ["CHECKS"]

CHECKS = Checklist("selector")


@CHECKS.add()
def plan_refuses_what_select_would(subject: SelectorSubject) -> None:
    """What `plan` lets pass, over kinds of budget, relations, amounts and workloads, `select` does not refuse, when all
    is charged; and `plan` refuses with BudgetError, StructureError or TooLarge. Cannot show: other workloads, and
    budgets smaller than a hundredth of an epsilon."""
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
    """The shares of a plan are budgets of the kind given that sum to it exactly, votes aside, its numbers are numbers,
    and a second plan says the same. Cannot show: that it keeps to the plan, but for the noise of one-way tables."""
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
        require(isinstance(one.limits, Mapping) and all(isinstance(n, int) for n in one.limits.values()), "limits")
        require(all(isinstance(note, str) and note.strip() for note in one.notes), "notes must be sentences")


@CHECKS.add()
def plan_tells_the_noise(subject: SelectorSubject) -> None:
    """The deviation that a plan states is, to 2 %, that of the tables of one attribute as they are first measured, for
    each kind of budget and relation that it does not refuse. Cannot show: the other figures of the plan."""
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
    structure holds each, and both are measured. Two seeds, fixed. Cannot show: what it finds with less."""
    for seed in (5, 6):
        one = choose(subject, planted(5000, seed), budget=budget_of(first(subject), 10), seed=seed)
        tables = [*one.measured, *one.selection.measure]
        for pair in LINKED:
            found = any(set(pair) <= set(table) for table in tables)
            require(found, f"{' x '.join(pair)}, far from independence, is measured by none of its tables")


@CHECKS.add()
def more_records_never_hurt(subject: SelectorSubject) -> None:
    """At ten times the records and the same epsilon = 1/2 the mean error of the pairs, in total variation, of the kit's
    fit is no more than before and 0.01; at 20,000 it is at most 0.05. Mean of two fixed seeds. Cannot show: that it is
    as good as can be."""
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
    engine holds, however much there is to be found; or `plan` refuses. The learner in its loop finds main effects only.
    Cannot show: where its limit lies."""
    domain = Domain.from_sizes(dict.fromkeys("abcdefg", 24))
    workload, budget = Workload.all(domain, order=2), budget_of(first(subject), 30)
    if not serves(subject, workload, budget):
        return
    draw = np.random.default_rng(1)
    codes, noise = draw.integers(0, 24, (3000, 1)), draw.integers(0, 24, (3000, 7))
    codes = np.where(draw.random((3000, 7)) < 0.7, codes, noise)
    one = choose(subject, codes, workload=workload, budget=budget, finds=False)
    try:
        JunctionTree().compile(one.selection.structure)
    except TooLarge as error:
        require(False, f"the structure it chose does not fit, when all is paid for: {error}")


@CHECKS.add()
def nothing_to_find_is_no_failure(subject: SelectorSubject) -> None:
    """Independent records, and none at all, and so small a budget that most noisy counts are negative, give a
    selection. Cannot show: that it is a good one."""
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
    """Progress is told at least once what is being done, how far it is, and of how much, and never goes back within
    a task. Cannot show: that it goes at an even pace."""
    told = plain(subject).told
    require(told, "it never says how far it is")
    last: dict[str, int] = {}
    for task, done, total in told:
        require(isinstance(task, str) and task, f"the task told is {task!r}")
        good = isinstance(done, int) and done >= 0 and (total is None or (isinstance(total, int) and done <= total))
        require(good, f"{task}: {done!r} of {total!r} is no progress")
        require(done >= last.get(task, 0), f"{task}: it goes back from {last.get(task)} to {done}")
        last[task] = done


@CHECKS.add()
def fits_that_never_settle_end_it_too(subject: SelectorSubject) -> None:
    """With a learner none of whose fits converges it stops with a selection, or an error of dpgm. Cannot show: that it
    judges such fits well."""
    try:
        choose(subject, planted(1000, 1), settles=False)
    except DpgmError:
        return


@CHECKS.add()
def a_step_that_fails_ends_it(subject: SelectorSubject) -> None:
    """When a step of the session fails, the first, the second or the third, `select` raises an error of dpgm: it makes
    nothing up. Cannot show: later steps."""
    steps = sum(one.name in STEPS for one in plain(subject).log)
    for number in range(1, min(3, steps) + 1):
        try:
            choose(subject, planted(2000, 1), breaks_at=number)
        except DpgmError:
            continue
        require(False, f"step {number} of the session failed, and a selection came out")
