"""The only door to the records, as a learner sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from dpgm_core.inference.contract import Beliefs

if TYPE_CHECKING:
    from dpgm_core.privacy.budget import Budget
    from dpgm_core.privacy.contributions import ClippedScore
    from dpgm_core.privacy.sensitivity import Neighbours
    from dpgm_core.releases.release import NoisyTables
    from dpgm_core.structure import Clique, Structure


__all__ = ["Curator", "Rounds"]


class Rounds(Protocol):
    """Many noisy releases of subsampled tables, charged in full when they were opened.

    Each release's cost is that of all rounds together; its provenance says which round it is.
    """

    def next(self, beliefs: Beliefs | None = None) -> NoisyTables:
        """The next release: noisy counts of a fresh subsample; its total is that of the subsample.

        beliefs: of one record, for rounds opened with a ClippedScore; then tables are noisy sums of clipped scores
        T(x) - mu, in units of 1/grid.
        """
        ...


class Curator(Protocol):
    """The only door to the records; implemented by core only."""

    @property
    def structure(self) -> Structure:
        """The model's structure."""
        ...

    @property
    def neighbours(self) -> Neighbours:
        """The declared relation."""
        ...

    @property
    def budget(self) -> Budget:
        """What it was given to spend."""
        ...

    @property
    def remaining(self) -> Budget:
        """What it may still spend."""
        ...

    @property
    def replayed(self) -> bool:
        """Whether it hands out releases that were paid for before: what a learner asks of it then costs nothing."""
        ...

    def release(
        self,
        *,
        budget: Budget | Mapping[Clique, Budget] | None = None,
        cliques: Iterable[Clique] | None = None,
        sampling_rate: float = 1.0,
    ) -> NoisyTables:
        """Noisy tables; spends `budget` (None: all that remains) on `cliques` (None: those of the structure)."""
        ...

    def rounds(
        self, n: int, *, sampling_rate: float, budget: Budget | None = None, clip: ClippedScore | None = None
    ) -> AbstractContextManager[Rounds]:
        """n releases of subsampled tables, charged in full here; stopping early is sound and refunds nothing.

        sampling_rate: each person takes part with this probability. clip: clipped scores instead of counts.
        """
        ...
