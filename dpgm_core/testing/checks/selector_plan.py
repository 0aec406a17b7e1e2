"""What a selector's plan says against what its session did: the shares it spends, and what it can tell from noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from dpgm_core.privacy.budget import Budget
from dpgm_core.releases.steps import Choice, NoisyScores
from dpgm_core.testing.check import Checklist, require
from dpgm_core.testing.selecting import Selected, plain
from dpgm_core.testing.sessions import Request
from dpgm_core.testing.subjects import SelectorSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("selector")

_CHOICES = ("select", "score", "descend")
# How far spending may be off, as a share of the budget, and the distance stated, as a factor of the first choice's.
_OFF, _FACTOR = 0.02, 2.0
# More shares than this are not searched for those that make up a sum.
_MOST_SHARES = 12


def _amount(budget: Budget) -> float:
    return float(budget.epsilon if budget.kind == "pure" else budget.rho)


def _taken(one: Selected, names: Sequence[str]) -> list[Request]:
    """The steps of these names that were taken, in their order."""
    return [step for step in one.log if step.name in names and step.error is None]


@CHECKS.add()
def spends_as_planned(subject: SelectorSubject) -> None:
    """To 2 % of the budget, its choices, and the tables measured before them, cost sums of shares of its plan. Cannot
    show: which share is meant for what."""
    one = plain(subject)
    shares = [_amount(share) for share in one.plan.shares.values()]
    if len(shares) > _MOST_SHARES:
        return
    whole = sum(shares)
    sums = {sum(some) for count in range(len(shares) + 1) for some in itertools.combinations(shares, count)}
    steps = [step.name for step in _taken(one, ("measure", *_CHOICES))]
    first = next((place for place, name in enumerate(steps) if name in _CHOICES), len(steps))
    before = _taken(one, ("measure", *_CHOICES))[:first] if first < len(steps) else []
    for what, taken in (("its choices cost", _taken(one, _CHOICES)), ("the tables measured before them cost", before)):
        spent = sum(_amount(step.answer.cost) for step in taken)
        off = min(abs(spent - planned) for planned in sums)
        listed = ", ".join(f"{name}: {_amount(share) / whole:.1%}" for name, share in one.plan.shares.items())
        require(
            off <= _OFF * whole,
            f"{what} {spent / whole:.1%} of the budget, which no shares of its plan sum to ({listed})",
        )


@CHECKS.add()
def what_it_calls_detectable_is(subject: SelectorSubject) -> None:
    """What its plan calls detectable is, to a factor of two, the lead with which a candidate of its first choice is
    chosen with probability 0.9. Cannot show: plans that state none, and choices by regressions."""
    one = plain(subject)
    stated, answer = one.plan.detectable, next((step.answer for step in _taken(one, ("select", "score"))), None)
    if stated is None:
        return
    if isinstance(answer, Choice):
        others = max(map(len, answer.groups)) - 1
        ahead = math.log(9 * others) / (float(answer.temperature) * answer.grid) if others else 0.0
    elif isinstance(answer, NoisyScores):
        others = len(answer.candidates) - 1
        ahead = answer.deviation * (1.28 + math.sqrt(2 * math.log(max(2, others))))
    else:
        return
    if others:
        require(
            ahead / _FACTOR <= stated <= _FACTOR * ahead,
            f"its plan calls {stated:.4g} records detectable; in its first choice, among {others + 1}, a table must be "
            f"{ahead:.4g} ahead of all others to be chosen with probability 0.9",
        )
