"""What a selector must offer: a session in, a structure out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from attrs import field, frozen

from dpgm_core.curator.contract import Session
from dpgm_core.inference.contract import Inference
from dpgm_core.learning.contract import Fit
from dpgm_core.markup import Html, card, first
from dpgm_core.printable import brief, clipped
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import Terms
from dpgm_core.progress import Progress
from dpgm_core.randomness import Randomness
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure import Clique, Structure
from dpgm_core.workload import Workload

__all__ = ["Fitting", "Selection", "SelectionPlan", "Selector", "VotingSelector"]

#: From a release, a structure and the previous fit, if there is one, to a fit; see `Fitter`.
Fitting: TypeAlias = Callable[[NoisyTables, Structure, Fit | None], Fit]


@frozen(kw_only=True)
class Selection:
    """What a selector returns.

    structure: the model's, over the session's domain as it is at the end; every measured table lies inside one of its
    cliques. measure: cliques and weights, for what is left of the session: the pipeline measures them with budgets in
    these proportions, unless less than 1 % is left. Empty: nothing more. contrasts: they are measured by their
    products. trace: one mapping of plain values per round. notes: sentences for the user, such as what was not
    affordable.
    """

    structure: Structure
    measure: Mapping[Clique, float] = field(factory=dict)
    contrasts: bool = False
    trace: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    notes: Sequence[str] = ()

    def __repr__(self) -> str:
        rounds, left = f"{len(self.trace)} rounds", f"{len(self.measure)} tables left to measure"
        return brief("Selection", f"{len(self.structure.cliques)} cliques", rounds, left, f"{len(self.notes)} notes")

    def _repr_html_(self) -> Html:
        facts = [("rounds", f"{len(self.trace):,}"), ("left to measure", f"{len(self.measure):,} tables")]
        notes = first(["notes"], ([clipped(note, 400)] for note in self.notes), len(self.notes))
        return card("Selection", facts, notes, self.structure._repr_html_())


@frozen(kw_only=True)
class SelectionPlan:
    """What can be said of a selection before any record is read.

    shares: what the budget is spent on, in words -> pure or zCDP amounts that sum to it; of a `VotingSelector` core
    adds, before them, the (epsilon, delta) of the votes. deviation: of the noise in a cell of the one-way tables,
    records. detectable: the distance from independence, |n - m|_1 in records, that a pair of attributes needs to be
    chosen before unrelated ones with probability .9; None where there is nothing to choose. candidates: how many tables
    there are to choose from. limits: names of size limits -> their values. notes: what was decided and why, and what to
    reconsider. directed: whether its structure, and each that it shows the learner on the way, will be a directed graph
    as `Dag.of` reads it, which learners of Bayesian networks need. contrasts: whether it measures products of binary
    attributes instead of cells, which takes a `ContrastLearner`. order: the most attributes of a clique that may be
    chosen; None: as many as candidates have. Before the charge the learner is checked with cliques of each order up to
    it. learner_memory, learner_seconds: upper estimates for one fit, in bytes and CPU seconds beside inference, where
    `limits` has max_model_cells and the learner states them; `plan_selection` adds them.
    """

    shares: Mapping[str, Budget]
    deviation: float
    detectable: float | None
    candidates: int
    limits: Mapping[str, int]
    notes: Sequence[str] = ()
    directed: bool = False
    contrasts: bool = False
    order: int | None = None
    learner_memory: int | None = None
    learner_seconds: float | None = None

    def __repr__(self) -> str:
        sizes = f"{self.candidates:,} candidates", f"deviation {self.deviation:.4g}"
        return brief("SelectionPlan", *sizes, f"{len(self.shares)} shares", f"{len(self.notes)} notes")

    def _repr_html_(self) -> Html:
        facts = [("candidates", f"{self.candidates:,}"), ("noise of one-way tables", f"{self.deviation:.4g} records")]
        facts += [("detectable", f"{self.detectable:.4g} records")] if self.detectable is not None else []
        shares = ((what, str(share)) for what, share in self.shares.items())
        notes = first(["notes"], ([clipped(note, 400)] for note in self.notes), len(self.notes))
        return card("SelectionPlan", facts, notes, first(["spent on", "amount"], shares, len(self.shares)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for `--json`."""
        return {
            "shares": {what: share.to_dict() for what, share in self.shares.items()},
            "deviation": self.deviation,
            "detectable": self.detectable,
            "candidates": self.candidates,
            "limits": dict(self.limits),
            "notes": list(self.notes),
            "directed": self.directed,
            "contrasts": self.contrasts,
            "order": self.order,
            "learner_memory": self.learner_memory,
            "learner_seconds": self.learner_seconds,
        }


@runtime_checkable
class Selector(Protocol):
    """Chooses what to measure, adaptively, and the structure to model; sees records only through the session."""

    def plan(self, workload: Workload, budget: Budget, terms: Terms, records: float | None = None) -> SelectionPlan:
        """What a selection would spend and see; touches no data, and refuses with BudgetError, StructureError or
        TooLarge what `select` would refuse: the pipeline calls it before anything is charged.

        workload: private bins are as many as there will be at most; `session.workload` has those that were found.
        budget: of the session's steps, pure or zCDP. records: their number, if it is public or guessed.
        """
        ...

    def select(
        self,
        session: Session,
        *,
        inference: Inference,
        fitting: Fitting,
        randomness: Randomness,
        progress: Progress,
    ) -> Selection:
        """Spend the session, all of it or all but what `Selection.measure` is for.

        fitting: the run's learner, to be called with `session.pooled()`, a structure that covers it, and the fit it
        returned last. randomness: for post-processing; its `generator` only. Everything depends on the session's steps,
        the options and the generator alone, so the same seed gives the same selection.
        """
        ...


@runtime_checkable
class VotingSelector(Protocol):
    """A selector that has blocks of records vote: a part of an (epsilon, delta) is for that, fixed beforehand.

    Its `plan` is given the rho of the rest, as its session has it besides `Session.votes`.
    """

    def votes(self, budget: Budget) -> Budget:
        """How much of the session's budget, as the user gave it, votes may cost; the rest becomes rho.

        Raises BudgetError for any budget but an (epsilon, delta): delta is what votes spend.
        """
        ...

    def foretell(self, workload: Workload, votes: Budget, terms: Terms, records: float | None = None) -> Sequence[str]:
        """What a plan says of the votes, in sentences: how many blocks there will be, and of how many records.

        votes: as `votes` answered. records: N, where it is known. Reads no data. Raises, before anything is charged,
        StructureError, BudgetError and OptionError for votes that cannot be cast.
        """
        ...
