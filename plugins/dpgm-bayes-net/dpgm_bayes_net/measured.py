"""Curator for another learner, which chooses the tables of its one release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction

from dpgm_core import (
    Budget,
    ClippedScore,
    Clique,
    Curator,
    Noise,
    NoisyTables,
    OptionError,
    Rounds,
    Session,
    Structure,
    Terms,
    Workload,
)

__all__ = ["MeasuredCurator"]


class MeasuredCurator:
    """Hands out one release, of the cliques told, all the budget split over them as told.

    structure: of the other learner's model. split: "optimal", "even" or None, the curator's own. A saved release is
    handed out as it is. What else is asked for is refused, OptionError, before anything is read or charged.
    """

    def __init__(self, curator: Curator, structure: Structure, cliques: Sequence[Clique], split: str | None) -> None:
        self.structure = structure
        self.terms: Terms = curator.terms
        self.budget: Budget = curator.budget
        self.conversion_delta: Fraction | None = curator.conversion_delta
        self.replayed: bool = curator.replayed
        self.contrasts: bool = curator.contrasts
        self._curator, self._cliques, self._split = curator, cliques, split
        self._handed: NoisyTables | None = None

    @property
    def remaining(self) -> Budget:
        """The curator's."""
        return self._curator.remaining

    @property
    def released(self) -> tuple[NoisyTables, ...]:
        """The curator's."""
        return self._curator.released

    @property
    def pooled(self) -> bool:
        """The curator's."""
        return self._curator.pooled

    def release(
        self,
        *,
        budget: Budget | Mapping[Clique, Budget] | None = None,
        cliques: Iterable[Clique] | None = None,
        split: str | None = None,
        accept: Callable[[Sequence[Noise]], None] | None = None,
    ) -> NoisyTables:
        """The release. Raises OptionError, with nothing paid, for other cliques or budgets and for a second one."""
        if budget is not None or cliques is not None or split is not None or self._handed is not None:
            raise _refusal("asks for other releases than one of all tables and all the budget")
        self._handed = self._released(accept)
        return self._handed

    @property
    def handed(self) -> NoisyTables:
        """The release that was handed out. Raises OptionError if there was none."""
        if self._handed is None:
            raise _refusal("asked for none")
        return self._handed

    def rounds(
        self,
        n: int,
        *,
        sampling_rate: float,
        cliques: Iterable[Clique] | None = None,
        budget: Budget | None = None,
        clip: ClippedScore | None = None,
    ) -> AbstractContextManager[Rounds]:
        """Raises OptionError: there is one release."""
        raise _refusal("trains on rounds of subsampled records")

    def session(
        self, *, workload: Workload, budget: Budget | None = None, votes: Budget | None = None
    ) -> AbstractContextManager[Session]:
        """Raises OptionError: there is one release."""
        raise _refusal("opens a session")

    def _released(self, accept: Callable[[Sequence[Noise]], None] | None) -> NoisyTables:
        if self._curator.replayed:
            return self._curator.release(accept=accept)
        return self._curator.release(cliques=self._cliques, split=self._split, accept=accept)


def _refusal(asks: str) -> OptionError:
    return OptionError(
        f"bayes-net measures once and divides the budget itself, and its own learner {asks}; take one that learns from "
        "a single release, such as 'eb-map'"
    )
