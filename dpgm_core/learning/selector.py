"""Protocols of selectors and the values they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from attrs import field, frozen

from dpgm_core._util.html import Html, card, first
from dpgm_core._util.progress import Progress
from dpgm_core._util.randomness import Randomness
from dpgm_core.curator.contract import Session
from dpgm_core.errors import brief, clipped
from dpgm_core.inference.contract import Inference
from dpgm_core.learning.contract import Fit
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.workload import Workload

__all__ = [
    "Fitting",
    "Selection",
    "SelectionPlan",
    "Selector",
    "SwitchingSelector",
    "VotingSelector",
    "WideningSelector",
]

#: From a release, a structure and the previous fit, if there is one, to a fit; see `Fitter`.
Fitting: TypeAlias = Callable[[NoisyTables, Structure, Fit | None], Fit]


@frozen(kw_only=True)
class Selection:
    """Result of a selector.

    Attributes
    ----------
    structure : Structure
        The model's, over the session's domain at its end; every measured table lies inside one of its cliques.
    measure : mapping of clique to weight
        For what is left of the session: the pipeline measures them with budgets in these proportions, unless less than
        1 % is left. Empty: nothing more.
    contrasts : bool
        Whether they are measured by their products.
    trace : sequence of mappings
        Plain values, one mapping per round.
    notes : sequence of str
        Sentences for the user, such as what was not affordable.
    learner : str or None
        Learner of the model in place of the run's; the one that the plan names, or None. Its structure is then that of
        the plan's `switched`.
    """

    structure: Structure
    measure: Mapping[Clique, float] = field(factory=dict)
    contrasts: bool = False
    trace: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    notes: Sequence[str] = ()
    learner: str | None = None

    def __repr__(self) -> str:
        rounds, left = f"{len(self.trace)} rounds", f"{len(self.measure)} tables left to measure"
        return brief("Selection", f"{len(self.structure.cliques)} cliques", rounds, left, f"{len(self.notes)} notes")

    def _repr_html_(self) -> Html:
        facts = [("rounds", f"{len(self.trace):,}"), ("left to measure", f"{len(self.measure):,} tables")]
        notes = first(["notes"], ([clipped(note, 400)] for note in self.notes), len(self.notes))
        return card("Selection", facts, notes, self.structure._repr_html_())


@frozen(kw_only=True)
class SelectionPlan:
    """Plan of a selection, before any record is read.

    Attributes
    ----------
    shares : mapping of str to Budget
        Purposes and the pure or zCDP amounts spent on them, which sum to the budget; for a `VotingSelector` core adds,
        before them, the (epsilon, delta) of the votes.
    deviation : float
        Standard deviation of the noise in a cell of the one-way tables, records.
    detectable : float or None
        Distance from independence, |n - m|_1 in records, at which a pair of attributes is chosen before unrelated ones
        with probability .9; None where there is nothing to choose.
    candidates : int
        Number of tables to choose from.
    limits : mapping of str to float
        Limits of the model, by the name of their option.
    notes : sequence of str
        Decisions and their reasons, and what to reconsider.
    choices : tuple of (int, Budget) or None
        How many choices `select` will be asked for, and what each may cost, one for each pick of each group. Under an
        (epsilon, delta) core has room for them in an exact account, which leaves more for tables than a conversion of
        zCDP. (): none; None: not known, and nothing is gained.
    directed : bool
        Whether its structure, and each that it shows the learner on the way, is a directed graph as `Dag.of` reads it.
    contrasts : bool
        Whether it measures products of binary attributes instead of cells, which takes a `ContrastLearner`.
    order : int or None
        Most attributes of a clique that may be chosen; None: as many as candidates have. Before the charge the learner
        is checked with cliques of each order up to it.
    structure : Structure or None
        The structure that will be chosen, over codes before any are merged or those of `Workload.forecast_domain`,
        where nothing is left to choose; the learner is checked with it before the charge.
    learner : str or None
        Learner that the selection may name in place of the run's; see `SwitchingSelector`.
    switched : Structure or None
        With a learner, the structure that it would be given, over codes before any are merged; it is checked with it
        before the charge.
    learner_memory, learner_seconds
        Upper estimates for one fit, bytes and CPU seconds apart from inference, where `limits` has max_fit_seconds and
        the learner states them; `plan_selection` adds them.
    """

    shares: Mapping[str, Budget]
    deviation: float
    detectable: float | None
    candidates: int
    limits: Mapping[str, float]
    notes: Sequence[str] = ()
    choices: tuple[tuple[int, Budget], ...] | None = None
    directed: bool = False
    contrasts: bool = False
    order: int | None = None
    structure: Structure | None = field(default=None, repr=False)
    learner: str | None = None
    switched: Structure | None = field(default=None, repr=False)
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
        """Return plain values for `--json`."""
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
            "learner": self.learner,
            "learner_memory": self.learner_memory,
            "learner_seconds": self.learner_seconds,
        }


@runtime_checkable
class Selector(Protocol):
    """Component that chooses tables adaptively and the structure; it sees records only through the session."""

    def plan(self, workload: Workload, budget: Budget, terms: Terms, records: float | None = None) -> SelectionPlan:
        """Return the plan of a selection; touch no data.

        Parameters
        ----------
        workload : Workload
            Private bins are as many as there will be at most; `session.workload` has those that were found.
        budget : Budget
            Of the session's steps, pure or zCDP.
        records : float, optional
            Their number, if it is public or guessed.

        Raises
        ------
        BudgetError, StructureError, TooLarge
            For what `select` would refuse: the pipeline calls `plan` before anything is charged.
        """
        ...

    def select(
        self, session: Session, *, inference: Inference, fitting: Fitting, randomness: Randomness, progress: Progress
    ) -> Selection:
        """Spend the session, all of it or all but what `Selection.measure` is for.

        The result depends on the session's steps, the options and the generator alone, so a seed repeats a selection.

        Parameters
        ----------
        fitting : Fitting
            The run's learner; takes `session.pooled()`, a structure that covers it, and the last fit it returned.
        randomness : Randomness
            For post-processing; its `generator` only.
        """
        ...


@runtime_checkable
class SwitchingSelector(Protocol):
    """Selector that may give what it measured to another learner than the run's, where the user named none.

    The plan names that learner, and both are checked before the charge.
    """

    def without_switch(self) -> Selector:
        """Return the selector that leaves everything to the run's learner.

        It is used where the user named one, and where the plan names no other.
        """
        ...


@runtime_checkable
class WideningSelector(Protocol):
    """Selector that may choose among more sets than the default workload has."""

    def widen(self, workload: Workload, budget: Budget) -> Workload:
        """Return the workload that the run is to have, from public facts alone.

        Called once, before anything is planned, where the user named neither sets of attributes nor a learner.

        Parameters
        ----------
        workload : Workload
            The default one.
        budget : Budget
            Of the whole run.
        """
        ...


@runtime_checkable
class MergingSelector(Protocol):
    """Selector that calls `Session.coarsen` before it measures or scores tables of several attributes."""

    @property
    def merges_codes(self) -> bool:
        """Whether it does so with its options.

        Candidates of its workload may then have more than `max_cells` cells, and it leaves out those that have more
        once codes are merged; see `Workload.before_merging` and `Workload.measurable`.
        """
        ...


@runtime_checkable
class VotingSelector(Protocol):
    """Selector that lets blocks of records vote, for a part of an (epsilon, delta) that is fixed beforehand.

    Its `plan` takes the rho of the rest, as its session has it besides `Session.votes`.
    """

    def votes(self, budget: Budget) -> Budget:
        """Return how much of the session's budget votes may cost; the rest becomes rho.

        Raises BudgetError for any budget but an (epsilon, delta): delta is what votes spend.
        """
        ...

    def foretell(self, workload: Workload, votes: Budget, terms: Terms, records: float | None = None) -> Sequence[str]:
        """Return sentences on the votes for a plan: how many blocks there will be and how large; read no data.

        Parameters
        ----------
        votes : Budget
            As `votes` returned it.
        records : float, optional
            N, where it is known.

        Raises
        ------
        StructureError, BudgetError, OptionError
            For votes that cannot be cast, before anything is charged.
        """
        ...
