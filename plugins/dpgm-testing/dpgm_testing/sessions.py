"""Guarded sessions: the protocol of a session and nothing else, with a log of requests and answers.

`replayed` answers from such a log without any record, which shows what a selector makes of the steps alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from attrs import frozen

from dpgm_core.curator.contract import Session
from dpgm_core.curator.funds import Single
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, DataError, DpgmError
from dpgm_core.learning.contract import Fit
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.descent import NodeGradients
from dpgm_core.privacy.selection import TableDistance
from dpgm_core.privacy.votes import Voter
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.steps import Choice, Descent, NoisyScores, Verdict
from dpgm_core.structure.graphs import Clique
from dpgm_testing.check import CheckFailed

__all__ = [
    "Endless",
    "MOST_REQUESTS",
    "MOST_STEPS",
    "Request",
    "STEPS",
    "GuardedSession",
    "live",
    "plainly",
    "replayed",
]

#: What the kit's small domains may take: a selector that goes on beyond is taken for one that never stops. Looking at
#: what remains is a request too.
MOST_STEPS, MOST_REQUESTS = 300, 5_000

#: What a selector may ask of a session that takes something of it, or changes it.
STEPS = ("measure", "select", "score", "descend", "vote", "coarsen")


class Endless(BaseException):
    """A selector went on and on; no `except Exception` of its own shall stop this."""


@frozen(kw_only=True)
class Request:
    """What was asked of a session, in plain values, and what it answered or raised."""

    name: str
    asked: object
    answer: Any = None
    error: DpgmError | None = None


def _asked(name: str) -> Any:
    """A property of a session that is asked for like its steps."""
    return property(lambda session: session._ask(name))


class GuardedSession(Single):
    """The protocol of a session and nothing else; whatever else is asked of it is remembered and refused.

    breaks_at: the number of the step that fails. log: every request with its answer. touched: the names asked for
    beyond the protocol.
    """

    def __init__(self, answer: Callable[[str, Mapping[str, Any]], Any], *, breaks_at: int | None = None) -> None:
        super().__init__()
        self.log: list[Request] = []
        self.touched: list[str] = []
        self._breaks_at = breaks_at
        self._answer: Callable[[str, Mapping[str, Any]], Any] | None = answer
        self._steps = 0

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            self.touched.append(name)
        raise AttributeError(
            "a session offers domain, workload, terms, budget, remaining, choices_left, votes, steps, measure, select, "
            f"score, descend, vote, coarsen and pooled; not {name!r}"
        )

    def close(self) -> None:
        """Answer nothing any more, and let go of the session."""
        self._answer = None
        for error in self.errors:
            error.__traceback__ = None  # its frames hold the session

    @property
    def errors(self) -> list[DpgmError]:
        """What it refused."""
        return [one.error for one in self.log if one.error is not None]

    # The attributes as they are counted now, what the model is wanted for, what is protected, what steps may cost
    # together, what they, planned choices and votes may still cost, and all that came out so far.
    domain, workload, terms, budget, remaining, choices_left, votes, steps = map(
        _asked, ("domain", "workload", "terms", "budget", "remaining", "choices_left", "votes", "steps")
    )

    def measure(
        self,
        cliques: Iterable[Clique] | Mapping[Clique, Budget],
        budget: Budget | None = None,
        *,
        contrasts: bool = False,
    ) -> NoisyTables:
        """Noisy tables."""
        listed = cliques if isinstance(cliques, Mapping) else list(cliques)
        return cast(NoisyTables, self._ask("measure", cliques=listed, budget=budget, contrasts=contrasts))

    def select(
        self, scores: TableDistance, budget: Budget, picks: int = 1, *, forest: Iterable[Clique] | None = None
    ) -> Choice:
        """Numbers of candidates."""
        before = None if forest is None else list(forest)
        return cast(Choice, self._ask("select", scores=scores, budget=budget, picks=picks, forest=before))

    def score(self, scores: TableDistance, budget: Budget, *, mean: bool = False) -> NoisyScores:
        """Noisy distances, or means of them."""
        return cast(NoisyScores, self._ask("score", scores=scores, budget=budget, mean=mean))

    def descend(self, gradients: NodeGradients, budget: Budget) -> Descent:
        """A direction of each regression."""
        return cast(Descent, self._ask("descend", gradients=gradients, budget=budget))

    def vote(self, voter: Voter, budget: Budget) -> Verdict:
        """A graph, or nothing."""
        return cast(Verdict, self._ask("vote", voter=voter, budget=budget))

    def coarsen(self, merges: Mapping[str, Sequence[int]]) -> Domain:
        """The domain with fewer codes."""
        return cast(Domain, self._ask("coarsen", merges=merges))

    def pooled(self) -> NoisyTables:
        """All tables as one release."""
        return cast(NoisyTables, self._ask("pooled"))

    def _ask(self, name: str, **given: Any) -> Any:
        if self._answer is None:
            raise BudgetError("the session was closed; its records are gone")
        self._steps += name in STEPS
        if self._steps > MOST_STEPS or len(self.log) >= MOST_REQUESTS:
            raise Endless(f"after {self._steps} steps and {len(self.log)} requests it had not stopped")
        asked = plainly(given)
        try:
            if name in STEPS and self._steps == self._breaks_at:
                raise DataError("the conformance kit makes this step fail")
            answer = self._answer(name, given)
        except DpgmError as error:
            self.log.append(Request(name=name, asked=asked, error=error))
            raise
        self.log.append(Request(name=name, asked=asked, answer=answer))
        return answer


def live(session: Session, *, breaks_at: int | None = None) -> GuardedSession:
    """Guard a session; see `GuardedSession`."""

    def answer(name: str, given: Mapping[str, Any]) -> Any:
        found = getattr(session, name)
        return found(**given) if given or name == "pooled" else found

    return GuardedSession(answer, breaks_at=breaks_at)


def replayed(log: Sequence[Request]) -> GuardedSession:
    """Answer as another session did, for the same requests in the same order. Raises CheckFailed for other requests."""
    left = iter(log)

    def answer(name: str, given: Mapping[str, Any]) -> Any:
        then = next(left, None)
        if then is None or then.name != name or then.asked != plainly(given):
            before = "nothing more" if then is None else f"`{then.name}`"
            other = " with other arguments" if then is not None and then.name == name else ""
            raise CheckFailed(f"it asks for `{name}`{other} where, given the same answers, it asked for {before}")
        if then.error is not None:
            raise then.error
        return then.answer

    return GuardedSession(answer)


def plainly(value: object) -> object:
    """A value as what compares: arrays as their bytes, mappings as their items, potentials of a fit."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, TableDistance):
        return (
            value.candidates.cliques,
            plainly(np.asarray(value.predicted, dtype=np.float64)),
            value.weights,
            value.offsets,
            value.groups,
            value.contrast,
        )
    if isinstance(value, NodeGradients):
        own = value.regressions
        units = value.radius, value.weights_grid, value.residual_grid, value.clip
        return own.candidates.cliques, own.loss, plainly(value.weights), units
    if isinstance(value, Fit):
        return value.model.structure.cliques, plainly(value.model.potentials.values)
    if isinstance(value, Mapping):
        return tuple((key, plainly(one)) for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(plainly, value))
    return value
