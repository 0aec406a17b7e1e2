"""Records for checks of selectors, and calls of selectors on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core._util.progress import Progress
from dpgm_core._util.randomness import Randomness, SeededRandomness
from dpgm_core.curator.contract import Curator, Session
from dpgm_core.curator.live import LiveCurator
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, LearningFailed, StructureError, TooLarge
from dpgm_core.inference.contract import Inference
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning.contract import Fit
from dpgm_core.learning.selector import Fitting, Selection, SelectionPlan, Selector, VotingSelector
from dpgm_core.learning.selector_run import select_structure, split_votes
from dpgm_core.models.model import Model
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import Terms
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.workload import Workload
from dpgm_testing.cases import Learning, fitted
from dpgm_testing.check import CheckFailed, require
from dpgm_testing.curators import TrappedRecords
from dpgm_testing.reference import ReferenceLaplace
from dpgm_testing.sessions import Endless, GuardedSession, Request, live, replayed
from dpgm_testing.subjects import SelectorSubject, plan_by

__all__ = [
    "DOMAIN",
    "LINKED",
    "PAIRS",
    "Selected",
    "again",
    "budget_of",
    "choose",
    "first",
    "plain",
    "planted",
    "served",
    "serves",
    "unlinked",
]

#: Two linked pairs and an attribute on its own; one attribute has rare codes.
DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 5, "e": 2})
LINKED = (("a", "b"), ("c", "d"))
PAIRS = Workload.all(DOMAIN, order=2)


def planted(count: int, seed: int) -> IntArray:
    """Codes with strong dependence between LINKED alone, (records, attributes)."""
    draw = np.random.default_rng(seed)
    a, c, e = (draw.random(count) < share for share in (0.4, 0.5, 0.3))
    b = np.where(draw.random(count) < 0.85, a * 2, draw.integers(0, 3, count))
    d = np.where(draw.random(count) < 0.8, c * 1, np.where(draw.random(count) < 0.9, 2, draw.integers(3, 5, count)))
    return np.stack([a, b, c, d, e], axis=1).astype(np.int64)


def unlinked(count: int, seed: int) -> IntArray:
    """Codes without any dependence, of the same domain."""
    draw = np.random.default_rng(seed)
    return np.stack([draw.integers(0, one.size, count) for one in DOMAIN], axis=1)


def budget_of(kind: str, epsilon: Fraction | int) -> Budget:
    """A pure budget, or the zCDP it implies, which buys about as much, or what that is at a delta of 1e-6."""
    if kind == "pure":
        return Budget.pure(epsilon)
    rho = Budget.zcdp(Fraction(epsilon) ** 2 / 2)
    return rho.to_approx("1e-6") if kind == "approx" else rho


def _amount(budget: Budget) -> Fraction:
    """Epsilon or rho."""
    return budget.epsilon if budget.kind == "pure" else budget.rho


@frozen(kw_only=True, eq=False)
class Selected:
    """One call of `select` and what it left behind.

    budget: given. left: the share of it that the selector left. unvoted: that of what was for votes. domain: the
    session's at the end. reports: of progress. log, touched: of the guarded session. wrong, shown: of its calls
    of the learner. trespassers: who read the records besides core. paid: what the session's release says it cost.
    charged: what the curator has less. model: fitted to all that was measured, `Selection.measure` included, if that
    was asked. merges: attribute -> the new code of each of its codes.
    """

    plan: SelectionPlan
    selection: Selection
    workload: Workload
    budget: Budget
    left: float
    unvoted: float
    domain: Domain
    reports: Sequence[tuple[Any, ...]]
    log: Sequence[Request]
    touched: Sequence[str]
    wrong: Sequence[str]
    shown: Sequence[Structure]
    trespassers: Sequence[str]
    paid: Budget
    charged: Budget
    model: Model | None
    merges: Mapping[str, tuple[int, ...]]

    def marginal(self, clique: Clique) -> FloatArray:
        """The model's, in the codes of the records: what was merged is spread evenly."""
        assert self.model is not None
        table = self.model.marginal(clique)
        for axis, name in enumerate(clique):
            if name in self.merges:
                merged = np.array(self.merges[name])
                across = [-1 if place == axis else 1 for place in range(len(clique))]
                table = table.take(merged, axis=axis) / np.bincount(merged)[merged].reshape(across)
        return table

    @property
    def measured(self) -> list[Clique]:
        """Every table measured, in the order of the steps, by the selector itself."""
        found = [one.answer for one in self.log if one.name == "measure" and one.error is None]
        return [clique for release in found for clique in release.structure.cliques]

    @property
    def said(self) -> object:
        """All that it said, as what compares."""
        return _said(self.selection, self.reports)


def choose(
    subject: SelectorSubject,
    codes: IntArray,
    *,
    workload: Workload | None = None,
    budget: Budget | None = None,
    neighbours: Neighbours | str = "add-remove",
    seed: int = 1,
    settles: bool = True,
    finds: bool = True,
    judge: bool = False,
    watch: Callable[[object], None] | None = None,
    breaks_at: int | None = None,
) -> Selected:
    """Plan, open a session, select, and, to `judge`, measure what is left and fit.

    budget: None for epsilon = 1 of the first kind that is served. watch: gets the session and the records, which it may
    reference weakly. settles, finds: see `Learning`. breaks_at: the number of the session's step that fails.
    """
    selector = subject.component
    wanted = PAIRS if workload is None else workload
    spent = budget_of(first(subject), 1) if budget is None else budget
    terms = Terms(neighbours=neighbours)
    votes, each = split_votes(selector, spent)
    plan = plan_by(selector, wanted, spent, terms)
    if not isinstance(plan, SelectionPlan):
        raise CheckFailed(f"`plan` returned {type(plan).__name__}, not a SelectionPlan")
    records = TrappedRecords(codes, rows=max(1, len(codes)))
    alone = Structure(wanted.domain, [(name,) for name in wanted.domain.names])
    curator = LiveCurator(
        records, alone, ReferenceLaplace(), terms=terms, budget=spent, randomness=SeededRandomness(seed)
    )
    watched = _Watched(selector, partial(Learning, settles=settles, finds=finds), breaks_at)
    try:
        release, _ = select_structure(
            watched, curator, wanted, watched, JunctionTree(), randomness=SeededRandomness(seed)
        )
    except LearningFailed as error:
        raise (error.__cause__ or error) from None
    except Endless as error:
        raise CheckFailed(str(error)) from None
    if watch is not None:
        watch(watched.guarded)
        watch(records)
    return Selected(
        plan=plan,
        selection=watched.selection,
        workload=wanted,
        budget=spent,
        left=float(_amount(watched.left) / _amount(each)),
        unvoted=0.0 if votes is None or watched.unvoted is None else float(watched.unvoted.epsilon / votes.epsilon),
        domain=release.structure.domain,
        reports=tuple(watched.reports),
        log=tuple(watched.guarded.log),
        touched=tuple(watched.guarded.touched),
        wrong=tuple(watched.learning.wrong),
        shown=tuple(watched.learning.shown),
        trespassers=tuple(records.trespassers),
        paid=Budget.sum([one.cost for one in curator.released]),
        charged=spent - curator.remaining,
        model=fitted(release, watched.selection.structure).model if judge else None,
        merges=release.session.merges if release.session is not None else {},
    )


class _Watched:
    """A selector that is given a guarded session instead of the session, and the learner that its loop calls."""

    def __init__(self, selector: Selector, learning: Callable[[], Learning], breaks_at: int | None) -> None:
        self.selector, self._learning, self._breaks_at = selector, learning, breaks_at
        self.reports: list[tuple[Any, ...]] = []
        self.plan = selector.plan
        if isinstance(selector, VotingSelector):
            self.votes, self.foretell = selector.votes, selector.foretell

    def select(
        self, session: Session, *, inference: Inference, fitting: Fitting, randomness: Randomness, progress: Progress
    ) -> Selection:
        """Return what the selector makes of the guarded session; then everything is closed."""
        self.guarded = live(session, breaks_at=self._breaks_at)
        self.learning = self._learning()
        try:
            self.selection = _called(self.selector, self.guarded, self.learning, randomness, self.reports)
            return self.selection
        finally:
            self.left, self.unvoted = session.remaining, session.votes
            self.guarded.close()

    def fitter(self, inference: Inference) -> Fitting:
        """Not called: the guarded session's own `Learning` is."""
        return fitted

    @property
    def takes_contrasts(self) -> bool:
        """Tables that are filled up from contrasts read like others."""
        return True

    def check(self, structure: Structure, inference: Inference) -> None:
        """Any structure will do."""

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """From the release that there is."""
        return fitted(curator.release(), curator.structure)


def again(subject: SelectorSubject, selected: Selected, *, seed: int = 1) -> object:
    """What it says when it is given the same answers and there are no records."""
    reports: list[tuple[Any, ...]] = []
    guarded = replayed(selected.log)
    selection = _called(subject.component, guarded, Learning(), SeededRandomness(seed), reports)
    return _said(selection, reports)


def serves(
    subject: SelectorSubject, workload: Workload, budget: Budget, neighbours: Neighbours | str = "add-remove"
) -> bool:
    """Whether its plan refuses nothing of this; what it raises besides refusals is raised."""
    try:
        plan_by(subject.component, workload, budget, Terms(neighbours=neighbours))
    except (BudgetError, StructureError, TooLarge):
        return False
    return True


def first(subject: SelectorSubject) -> str:
    """A kind of budget that it serves; a selector that serves none fails here."""
    kinds = [kind for kind in ("zcdp", "pure", "approx") if kind in subject.capabilities]
    require(kinds, "its plan refuses pure and zCDP budgets alike, at epsilon = 1 and rho = 1/2, of three small pairs")
    return kinds[0]


def served(subject: SelectorSubject) -> list[tuple[Budget, str]]:
    """Budgets at epsilon = 1 or its like, and relations, that its plan does not refuse."""
    cases = [
        (budget_of(kind, 1), one) for kind in sorted(subject.capabilities) for one in ("add-remove", "replace-one")
    ]
    return [case for case in cases if serves(subject, PAIRS, *case)]


def plain(subject: SelectorSubject) -> Selected:
    """The first run, from 2,000 records at epsilon = 1, made once for all checks that look at one."""
    if "plain" not in subject.kept:
        subject.kept["plain"] = choose(subject, planted(2000, 1))
    found: Selected = subject.kept["plain"]
    return found


def _said(selection: Selection, reports: Sequence[tuple[Any, ...]]) -> object:
    """Structure, tables still to measure, trace, notes and progress."""
    measure, trace = list(selection.measure.items()), [dict(one) for one in selection.trace]
    return selection.structure, measure, trace, list(selection.notes), list(reports)


def _called(
    selector: Any, guarded: GuardedSession, learning: Learning, randomness: Randomness, reports: list[tuple[Any, ...]]
) -> Selection:
    def progress(task: str, done: int, total: int | None) -> None:
        reports.append((task, done, total))

    found: object = selector.select(
        guarded, inference=JunctionTree(), fitting=learning, randomness=randomness, progress=progress
    )
    if not isinstance(found, Selection):
        raise CheckFailed(f"`select` returned {type(found).__name__}, not a Selection")
    return found
