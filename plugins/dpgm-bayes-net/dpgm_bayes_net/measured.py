"""Curator for another learner, which chooses the tables of its one release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from dpgm_core import (
    Clique,
    Curator,
    Noise,
    NoisyTables,
    OptionError,
    Rounds,
    Session,
    Structure,
)
from dpgm_core.learning import ForwardingCurator

__all__ = ["MeasuredCurator"]


class MeasuredCurator(ForwardingCurator):
    """Hands out one release, of the cliques told, all the budget split over them as told.

    structure: of the other learner's model. split: "optimal", "even" or None, the curator's own. A saved release is
    handed out as it is. What else is asked for is refused, OptionError, before anything is read or charged.
    """

    def __init__(self, curator: Curator, structure: Structure, cliques: Sequence[Clique], split: str | None) -> None:
        super().__init__(curator)
        self._structure, self._cliques, self._split = structure, cliques, split
        self._handed: NoisyTables | None = None

    @property
    def structure(self) -> Structure:
        """The other learner's."""
        return self._structure

    def release(self, *, accept: Callable[[Sequence[Noise]], None] | None = None, **others: Any) -> NoisyTables:
        """The release. Raises OptionError, with nothing paid, for other cliques or budgets and for a second one."""
        if any(value is not None for value in others.values()) or self._handed is not None:
            raise _refusal("asks for other releases than one of all tables and all the budget")
        if self.replayed:
            self._handed = super().release(accept=accept)
        else:
            self._handed = super().release(cliques=self._cliques, split=self._split, accept=accept)
        return self._handed

    @property
    def handed(self) -> NoisyTables:
        """The release that was handed out. Raises OptionError if there was none."""
        if self._handed is None:
            raise _refusal("asked for none")
        return self._handed

    def rounds(self, n: int, **options: Any) -> AbstractContextManager[Rounds]:
        """Raises OptionError: there is one release."""
        raise _refusal("trains on rounds of subsampled records")

    def session(self, **options: Any) -> AbstractContextManager[Session]:
        """Raises OptionError: there is one release."""
        raise _refusal("opens a session")


def _refusal(asks: str) -> OptionError:
    return OptionError(
        f"bayes-net measures once and divides the budget itself, and its own learner {asks}; take one that learns from "
        "a single release, such as 'eb-map'"
    )
