"""Protocols of curators, sessions and rounds, as learners see them; implemented by core only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Any, Protocol

from dpgm_core.curator.funds import Single
from dpgm_core.domain.domain import Domain
from dpgm_core.inference.contract import Beliefs
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.descent import NodeGradients
from dpgm_core.privacy.mechanism import Mechanism, Noise
from dpgm_core.privacy.selection import TableDistance
from dpgm_core.privacy.sensitivity import ClippedScore
from dpgm_core.privacy.terms import Terms
from dpgm_core.privacy.votes import Voter
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.steps import Choice, Descent, NoisyScores, Verdict
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.workload import Workload

__all__ = ["Curator", "ForwardingCurator", "Rounds", "Session"]


class Rounds(Protocol):
    """Many noisy releases of subsampled tables, charged in full when they were opened.

    Each release's cost is that of all rounds together; its `round` says which one it is.
    """

    def next(self, beliefs: Beliefs | None = None) -> NoisyTables:
        """The next release: noisy counts of a fresh subsample; its total is that of the subsample.

        beliefs: of one record, for rounds opened with a ClippedScore; then tables are noisy sums of clipped scores
        T(x) - mu, in units of 1/grid.
        """
        ...


class Session(Protocol):
    """Adaptive steps out of one budget that was charged in full when it was opened; a context manager.

    Its user sees numbers of candidates, noisy scores and noisy tables, never a true score or count. Only the
    candidates of the workload may be named, in any order of their attributes.
    """

    @property
    def domain(self) -> Domain:
        """The attributes as they are counted now: those of the records, coarser after `coarsen`."""
        ...

    @property
    def workload(self) -> Workload:
        """What the model is for, over the records' own domain; private bins are those that were found."""
        ...

    @property
    def terms(self) -> Terms:
        """What is protected, and how the number of records becomes known."""
        ...

    @property
    def budget(self) -> Budget:
        """What its steps may cost together: pure, or zCDP. An (epsilon, delta) was turned into the largest rho.

        Private bins, which are found before its first step, are paid for already.
        """
        ...

    @property
    def remaining(self) -> Budget:
        """What they may still cost; without what `choices_left` is for."""
        ...

    @property
    def choices_left(self) -> tuple[Budget, ...] | None:
        """What each choice may cost that was planned (`SelectionPlan.choices`) and not made yet, the largest last.

        None where choices are paid out of `remaining`, as they are unless the session has an (epsilon, delta). `select`
        takes the least planned ones that its budget fits; one that fits none takes pi / 2 times its budget from
        `remaining`, and so does a descent.
        """
        ...

    @property
    def steps(self) -> tuple[NoisyTables | Choice | NoisyScores | Descent | Verdict, ...]:
        """All that came out so far, oldest first."""
        ...

    def measure(
        self,
        cliques: Iterable[Clique] | Mapping[Clique, Budget],
        budget: Budget | None = None,
        *,
        contrasts: bool = False,
    ) -> NoisyTables:
        """Noisy tables: of cliques with one noise for `budget`, or each with a budget of its own.

        The noise is of the session's mechanism: discrete Laplace for pure budgets and discrete Gaussian for zCDP where
        none was named. An attribute whose ranges the curator measures has its own table estimated from windows of its
        codes (`RangeStrategy`). contrasts: of binary attributes, the sum of products of each clique named instead of
        its cells (and the number of records, where it is estimated); all
        tables of a session are measured one way or the other. Raises Overspent with nothing drawn.
        """
        ...

    def select(
        self, scores: TableDistance, budget: Budget, picks: int = 1, *, forest: Iterable[Clique] | None = None
    ) -> Choice:
        """`picks` candidates of each group, without replacement, by the exponential mechanism; exact.

        scores: their candidates over the session's domain as it is now, attributes in its order. budget: of all picks
        together, of the session's kind. forest: of candidates that are pairs in one group, picks that close no cycle;
        the attributes of each clique that it names are connected before.
        """
        ...

    def score(self, scores: TableDistance, budget: Budget, *, mean: bool = False) -> NoisyScores:
        """All distances at once with discrete Gaussian noise; refused for pure budgets.

        Weights, offsets and groups do not enter: they may be applied to what comes out.

        mean: the weighted mean distance of each group instead, sum w |n - m|_1 / sum w: how far a model is from a
        workload, in one number. One person moves it no further than one distance, so its noise does not grow with the
        number of tables; offsets do not enter. The least of several models' means is biased downwards.
        """
        ...

    def descend(self, gradients: NodeGradients, budget: Budget) -> Descent:
        """One direction of each regression by the exponential mechanism over its gradient: the steepest, nearly.

        budget: of all regressions together, of the session's kind.
        """
        ...

    @property
    def votes(self) -> Budget | None:
        """What votes may still cost, (epsilon, delta), besides `remaining`; None where the session has none."""
        ...

    def vote(self, voter: Voter, budget: Budget) -> Verdict:
        """The graph that votes agree on, or nothing where they are not stable; before any other step.

        budget: (epsilon, delta), out of `votes`; spent whatever comes out. OptionError for other than core's voters.
        """
        ...

    def coarsen(self, merges: Mapping[str, Sequence[int]]) -> Domain:
        """Count some attributes by fewer codes from now on; the new domain. Once, and before any table that holds one
        of them and another attribute is measured.

        merges: attribute -> the new code of each of its codes, 0 to its new size - 1; a function of released things
        only. Tables measured before stay as released, and `pooled` has them summed.
        """
        ...

    def pooled(self) -> NoisyTables:
        """All tables measured so far as one release over the domain as it is now; free. BudgetError for none."""
        ...


class Curator(Protocol):
    """The only access to the records; implemented by core only."""

    @property
    def structure(self) -> Structure:
        """The model's structure."""
        ...

    @property
    def terms(self) -> Terms:
        """What is protected, and how the number of records becomes known."""
        ...

    @property
    def budget(self) -> Budget:
        """What it may spend in all."""
        ...

    @property
    def remaining(self) -> Budget:
        """What it may still spend."""
        ...

    @property
    def released(self) -> tuple[NoisyTables, ...]:
        """All that was handed out and paid for, oldest first, as released; what a model says it cost is their sum."""
        ...

    @property
    def conversion_delta(self) -> Fraction | None:
        """Where releases cost different kinds of budget, the delta at which the zCDP part is converted; else None."""
        ...

    @property
    def replayed(self) -> bool:
        """Whether it serves saved releases instead of records."""
        ...

    @property
    def pooled(self) -> bool:
        """Whether it handed out several saved releases as one."""
        ...

    @property
    def contrasts(self) -> bool:
        """Whether its releases are of contrasts, unless `release` gets another split; for a `ContrastLearner` only."""
        ...

    def release(
        self,
        *,
        budget: Budget | Mapping[Clique, Budget] | None = None,
        cliques: Iterable[Clique] | None = None,
        split: str | None = None,
        accept: Callable[[Sequence[Noise]], None] | None = None,
    ) -> NoisyTables:
        """Noisy tables; spends `budget` (None: all that remains) on `cliques` (None: those of the structure).

        It may be called again with what remains. Tables of normalised contributions are rescaled to one total; the
        release itself is their `original`. A replay serves what there is.

        Parameters
        ----------
        budget : Budget or mapping of cliques to Budget, optional
            For all tables together, or for each its own.
        cliques : iterable of Clique, optional
            Each inside one of the structure's.
        split : str, optional
            How one budget is divided: "even", "optimal", "contrasts" (noisy sums of products of binary attributes in
            place of cells) or "sharper" (the better of "contrasts" and "even"); by default the curator's own.
        accept : callable, optional
            Called with the noise of each table before anything is read or charged; raises to refuse it.

        Raises
        ------
        BudgetError
            Also for "contrasts" where tables would measure the product of a clique better.
        """
        ...

    def rounds(
        self,
        n: int,
        *,
        sampling_rate: float,
        cliques: Iterable[Clique] | None = None,
        budget: Budget | None = None,
        clip: ClippedScore | None = None,
    ) -> AbstractContextManager[Rounds]:
        """n releases of subsampled tables, charged in full here; stopping early is sound and refunds nothing.

        sampling_rate: each person takes part with this probability. cliques, budget: as in `release`. clip: clipped
        scores instead of counts.
        """
        ...

    def session(
        self,
        *,
        workload: Workload,
        budget: Budget | None = None,
        votes: Budget | None = None,
        mechanism: str | Mapping[str, Any] | Mechanism | None = None,
    ) -> AbstractContextManager[Session]:
        """Adaptive steps, charged in full here (None: all that remains); stopping early is sound and refunds nothing.

        mechanism: of the noise of its tables; None is core's own, discrete Laplace or discrete Gaussian.
        votes: how much of an (epsilon, delta) is for `Session.vote`, an (epsilon, delta) too; the rest becomes rho. The
        tables it measures are handed out as one release when it is left; see `Session`.
        """
        ...


class ForwardingCurator(Single):
    """Base of curators that pass every request to another one; a subclass overrides what it changes.

    Parameters
    ----------
    curator : Curator
        Stays in a closure, so that no attribute of the wrapper leads to records.
    """

    def __init__(self, curator: Curator) -> None:
        super().__init__()
        self._inner: Callable[[], Curator] = lambda: curator

    @property
    def structure(self) -> Structure:
        """The model's structure."""
        return self._inner().structure

    @property
    def terms(self) -> Terms:
        """What is protected."""
        return self._inner().terms

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""
        return self._inner().budget

    @property
    def remaining(self) -> Budget:
        """What may still be spent."""
        return self._inner().remaining

    @property
    def released(self) -> tuple[NoisyTables, ...]:
        """All releases that were paid for."""
        return self._inner().released

    @property
    def conversion_delta(self) -> Fraction | None:
        """The delta at which zCDP is converted where kinds of budget are mixed."""
        return self._inner().conversion_delta

    @property
    def replayed(self) -> bool:
        """Whether saved releases are served."""
        return self._inner().replayed

    @property
    def pooled(self) -> bool:
        """Whether several saved releases were served as one."""
        return self._inner().pooled

    @property
    def contrasts(self) -> bool:
        """Whether releases are of contrasts."""
        return self._inner().contrasts

    def release(self, **options: Any) -> NoisyTables:
        """Return noisy tables; see `Curator.release`."""
        return self._inner().release(**options)

    def rounds(self, n: int, **options: Any) -> AbstractContextManager[Rounds]:
        """Open releases of subsampled tables; see `Curator.rounds`."""
        return self._inner().rounds(n, **options)

    def session(self, **options: Any) -> AbstractContextManager[Session]:
        """Open adaptive steps; see `Curator.session`."""
        return self._inner().session(**options)
