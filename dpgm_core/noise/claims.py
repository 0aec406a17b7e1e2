"""Verification of what a noise declares: a cost below what its event costs is refused.

A noise states four facts that an adversary would like to be lies: its cost, its event (the distribution that bounds it:
of which kind, how wide), its variance and its support. Core computes the least cost again, from the event's kind and
scale and from the sensitivity, which nobody types in:

* Laplace kinds: epsilon = L1 / scale; rho = epsilon^2 / 2; an (epsilon', delta) as in `laplace_delta`.
* Gaussian kinds: rho = L2^2 / (2 scale^2); delta as in `discrete_delta` and `analytic_delta`; no pure epsilon at all.
* truncated Laplace: delta as in `truncated_delta`; neither pure epsilon nor zCDP.
* Gaussian noises of several widths, drawn together: delta as in `together_delta`, or `normal_parts_delta` (textbook).

These are the bounds that core can prove: a mechanism with a sharper analysis must claim that its noise costs more. A
sensitivity of 0 (one-cell tables under replace-one) costs nothing; otherwise no cost is 0.

A variance below the event's is a lie as well. Where moving a cell by 1 loses at most 1/t, neighbouring masses differ by
a factor of at most e^(1/t), and no such distribution has less variance than the discrete Laplace distribution of scale
t (a linear program says so in the tests). Where moving it by 1 has a Renyi divergence of order 2 of at most 1/s^2, the
variance is at least 1 / (e^(1/s^2) - 1) (Chapman and Robbins 1951). And noise that ends somewhere betrays a count at
its end, which only the truncated kind accounts for.

These are declared facts. Whether the draws follow them is what the conformance kit and `tests/audit` test, by samples.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction

import numpy as np

from dpgm_core.errors import BudgetError, IncompatiblePlugin
from dpgm_core.noise.continuous import Part, analytic_delta
from dpgm_core.noise.contract import Noise
from dpgm_core.noise.gaussian import discrete_delta
from dpgm_core.noise.together import normal_parts_delta, together_delta
from dpgm_core.privacy.amounts import decimal_text
from dpgm_core.privacy.budget import Budget, PrivacyEvent
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.truncated import laplace_delta, truncated_delta

__all__ = ["DELTAS_TOGETHER", "check_claims", "check_cost", "check_together", "event_of", "parts_of"]

# What the doubles of an event may have lost to rounding, relatively. A delta feels the last digits of a scale more.
_ROOM, _DELTA_ROOM = 1 - Fraction(1, 10**12), 1 + 1e-8
_VARIANCE_ROOM = 1 - 1e-6
_GAUSSIAN = ("discrete-gaussian", "gaussian")
#: By kind of event: the delta of noises of several widths.
DELTAS_TOGETHER = {"discrete-gaussian": together_delta, "gaussian": normal_parts_delta}
_TRUNCATED = "truncated-discrete-laplace"
# The variance of a truncated distribution is summed up to there; that of a wider one is larger.
_MAX_SUMMED_NUMBER = 10**5


def check_claims(noise: Noise, sensitivity: Sensitivity) -> None:
    """Refuse, with BudgetError, a noise whose declared facts claim less than they cost or contradict each other.

    sensitivity: what one person can change, as core works it out. Draws nothing. Raises IncompatiblePlugin for what
    states no event.
    """
    event = event_of(noise)
    if not noise.exact and not noise.unsafe:
        raise BudgetError("its noise is not exact, and does not say in `unsafe` why its guarantee falls short")
    check_cost(noise.cost, event, sensitivity)
    least = _least_variance(event)
    if noise.variance < least * _VARIANCE_ROOM:
        raise BudgetError(
            f"its noise has variance {noise.variance:.6g}, but {event.kind} noise of scale "
            f"{event.scale:g} has {least:.6g}; it states more noise to the accountant than it has"
        )
    ends = (-math.inf, math.inf) if event.bound is None else (-event.bound, event.bound)
    if noise.support[0] > ends[0] or noise.support[1] < ends[1]:
        raise BudgetError(
            f"its noise has support {noise.support!r}, but {event.kind} noise has {ends!r}; where it "
            "ends it betrays the count, which only the event truncated-discrete-laplace accounts for"
        )


def check_cost(cost: Budget, event: PrivacyEvent, sensitivity: Sensitivity) -> None:
    """Refuse, with BudgetError, a cost below what core can prove for the event at this sensitivity.

    >>> one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    >>> event = PrivacyEvent(kind="discrete-laplace", scale=4.0, sensitivity=1.0)
    >>> check_cost(Budget.pure("1/4"), event, one)
    >>> check_cost(Budget.pure("1e-300"), event, one)
    Traceback (most recent call last):
    dpgm_core.errors.BudgetError: its noise claims to cost epsilon = 1e-300, but discrete-laplace noise of scale 4 ...
    """
    gaussian = event.kind in _GAUSSIAN
    norm = sensitivity.l2 if gaussian else sensitivity.l1
    if event.sensitivity < norm * _ROOM:
        raise BudgetError(
            f"its noise was calibrated to a sensitivity of {event.sensitivity:g}, but a person can change {norm:g}"
        )
    if not norm:
        return  # nobody can change a thing
    least: Budget | None = None
    if cost.kind == "approx":
        needed = _least_delta(event, sensitivity, cost.epsilon)
        covered = needed <= float(cost.delta) * _DELTA_ROOM
        costs = f"(epsilon, delta) = ({decimal_text(cost.epsilon)}, {needed:.6g})"
    else:
        least = _least_budget(cost.kind, event, sensitivity)
        covered = least is not None and least * _ROOM <= cost
        costs = f"no {cost.kind} budget at all" if least is None else str(least)
    if not covered:
        raise BudgetError(
            f"its noise claims to cost {cost}, but {event.kind} noise of scale {event.scale:g} at "
            f"{'L2' if gaussian else 'L1'} = {norm:.6g} costs {costs}"
        )


def check_together(noises: Sequence[tuple[Noise, Sensitivity]], cost: Budget) -> None:
    """Refuse, with BudgetError, an (epsilon, delta) below what core can prove for noises that are drawn together.

    noises: of each table, or of all, with what one person can change there; fixed before any of them was drawn.
    """
    kinds = {event_of(noise).kind for noise, _ in noises}
    delta_of = DELTAS_TOGETHER.get(kinds.pop()) if len(kinds) == 1 else None
    if delta_of is None or cost.kind != "approx":
        raise BudgetError(
            "what noises cost together is proven for Gaussian ones of one kind, in (epsilon, delta), not for these; "
            "ask for split = 'even', or for pure or zCDP budgets, which add"
        )
    parts = parts_of((Fraction(event_of(noise).scale) ** 2, sensitivity) for noise, sensitivity in noises)
    needed = delta_of(parts, cost.epsilon, float(cost.delta))
    if needed > float(cost.delta) * _DELTA_ROOM:
        raise BudgetError(f"its noises together claim to cost {cost}, but at this epsilon their delta is {needed:.6g}")


def parts_of(noises: Iterable[Part]) -> Counter[Part]:
    """Return how often each noise occurs, without those of tables that nobody can change."""
    return Counter(one for one in noises if one[1].l2_squared)


def event_of(noise: Noise) -> PrivacyEvent:
    """Return the event of a noise; IncompatiblePlugin where it states none, as its cost is then unknown."""
    event: object = None
    with suppress(AttributeError):
        event = noise.event
    if type(event) is not PrivacyEvent:  # a child of it could say one thing and then another
        raise IncompatiblePlugin(
            f"mechanism fault: its noise {type(noise).__name__} states no PrivacyEvent as its event, got "
            f"{type(event).__name__}; without it nobody can tell what the noise costs"
        )
    return event


def _least_budget(kind: str, event: PrivacyEvent, sensitivity: Sensitivity) -> Budget | None:
    """Return the exact pure epsilon or rho of the event; None where it has none."""
    scale = Fraction(event.scale)
    if event.kind == _TRUNCATED:
        return None
    if event.kind in _GAUSSIAN:
        return None if kind == "pure" else Budget.zcdp(sensitivity.l2_squared / (2 * scale**2))
    pure = Budget.pure(sensitivity.l1 / scale)
    return pure if kind == "pure" else pure.to_zcdp()


def _least_delta(event: PrivacyEvent, sensitivity: Sensitivity, epsilon: Fraction) -> float:
    """Return the delta of the event at epsilon, for the worst shift, rounded up."""
    if event.kind in _GAUSSIAN:
        delta_of = discrete_delta if event.kind == "discrete-gaussian" else analytic_delta
        return float(delta_of(Fraction(event.scale) ** 2, sensitivity, epsilon))
    if event.bound is not None:
        return truncated_delta(Fraction(event.scale), event.bound, sensitivity, epsilon)
    return laplace_delta(Fraction(event.scale), sensitivity, epsilon)


def _least_variance(event: PrivacyEvent) -> float:
    """Return a lower bound on the variance of noise with this event, records**2; the module has the proof."""
    if event.kind in _GAUSSIAN:
        rate = 1 / event.scale**2 if event.scale > 0.05 else math.inf
        return 1 / math.expm1(rate) if rate < 700 else 0.0
    rate = 1 / event.scale
    if event.bound is None:
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2
    values = np.arange(1.0, min(event.bound, _MAX_SUMMED_NUMBER) + 1)
    masses = np.exp(-values * rate)
    return 2 * float(values**2 @ masses) / (1 + 2 * float(masses.sum()))
