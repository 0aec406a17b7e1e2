"""What a mechanism must keep where one person can change much, or the budget is large: closed forms, not enumeration.

The other privacy checks try every admissible shift, which is possible up to an L1 of about 6 only. Here a person moves
up to 10,000 records, spread evenly over as many cells as the norms allow, and epsilon goes up to 20.
"""

from __future__ import annotations

from fractions import Fraction

from dpgm_core.noise.contract import Noise
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.testing.check import Checklist, require
from dpgm_core.testing.privacy_loss import even_shifts, largest_loss, renyi_divergence, summed_hockey_stick
from dpgm_core.testing.subjects import BUDGETS, SENSITIVITIES, MechanismSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("mechanism")


def _even(size: int, cells: int) -> Sensitivity:
    return Sensitivity(l0=cells, l1=size * cells, l2_squared=size**2 * cells, linf=size)


#: L1 from 25 to 10,000: in many cells, in one, and in between, where L0, L1, L2 and Linf each bind in turn.
LARGE = {
    "25 cells": _even(1, 25),
    "400 cells": _even(1, 400),
    "10,000 cells": _even(1, 10_000),
    "one cell by 60": _even(60, 1),
    "one cell by 10,000": _even(10_000, 1),
    "100 cells by 100": _even(100, 100),
    "any cells within L1 = 1,000": Sensitivity(l0=1000, l1=1000, l2_squared=10**6, linf=1000),
    "any cells within L2 = 30": Sensitivity(l0=900, l1=900, l2_squared=900, linf=30),
}

# 20 is where people who publish call it private still; the others keep sigma within what a grid can hold.
_AMOUNTS = {
    "pure": (Budget.pure("1/100"), Budget.pure(20)),
    "zcdp": (Budget.zcdp("1/2"), Budget.zcdp(20)),
    "approx": (Budget.approx(1, "1e-6"), Budget.approx(20, "1e-6")),
}

# Amounts that no double holds, or that doubles round up; with epsilon = 20, small changes' largest budget.
_AWKWARD = {
    "pure": ("1/3", "1/10", "0.7", "1234567/1000003", "20"),
    "zcdp": ("1/3", "1/10", "0.7", "123456789/1000000007", "20"),
    "approx": ("1/3", "0.7", "20"),
}


def _refused_by(noise: Noise, sensitivity: Sensitivity, *, exact: bool) -> str | None:
    """What refutes the cost, in words; None if nothing does. Every figure is a lower bound of the true one."""
    cost = noise.cost
    shifts = list(even_shifts(sensitivity))
    if cost.kind != "pure":  # the least, a middle and the largest size: sums over all outputs take time
        shifts = [shifts[place] for place in sorted({0, len(shifts) // 2, len(shifts) - 1})]
    for size, cells in shifts:
        moved = f"{cells:,} cell(s) moved by {size:,}"
        if cost.kind == "pure":
            loss = cells * largest_loss(noise, size)
            if loss > float(cost.epsilon) * (1 + 1e-9):
                return f"{moved} lose {loss:.9g} nats, but the cost claims {float(cost.epsilon):.9g}"
        elif cost.kind == "zcdp":
            divergence = cells * renyi_divergence(noise, size, 2.0, exact=exact, reach=14.0)
            allowed = 2 * float(cost.rho)
            if divergence > allowed * (1 + 1e-6):
                return f"{moved} have a Renyi divergence of {divergence:.9g} at order 2, but 2 rho = {allowed:.9g}"
        else:
            delta = summed_hockey_stick(noise, size, cells, float(cost.epsilon), exact=exact)
            if delta > float(cost.delta) * (1 + (1e-4 if exact else 1e-2)) + 1e-12:
                return f"{moved} have delta = {delta:.6g}, but the cost claims {float(cost.delta):.6g}"
    return None


@CHECKS.add()
def large_changes_within_cost(subject: MechanismSubject) -> None:
    """One person may change up to 10,000 records, in one cell or many, and epsilon may be 20: no even shift loses more
    by logpdf than the cost. What is refused with BudgetError is not served. Cannot show: uneven shifts of that size."""
    for kind in sorted(subject.capabilities & set(BUDGETS)):
        cases = [(what, sensitivity, budget) for what, sensitivity in LARGE.items() for budget in _AMOUNTS[kind]]
        cases += [(what, sensitivity, _AMOUNTS[kind][-1]) for what, sensitivity in SENSITIVITIES.items()]
        for what, sensitivity, budget in cases:
            noise = subject.served(sensitivity, budget)
            if noise is None:
                continue
            found = _refused_by(noise, sensitivity, exact=subject.exact(noise))
            require(found is None, f"{budget}, {what}: {found}")


@CHECKS.add()
def costs_compare_as_fractions(subject: MechanismSubject) -> None:
    """The cost is a plain Budget whose exact parts are at most those asked for; a pure one is at least the loss, and
    the event's sensitivity at least the norm, without tolerance: the last digit is rounded against the mechanism.
    Cannot show: losses that logpdf hides in its own rounding (some 1e-13 of them)."""
    for kind in sorted(subject.capabilities & set(BUDGETS)):
        for text in _AWKWARD[kind]:
            asked = _budget(kind, text)
            for what, sensitivity in {**SENSITIVITIES, "400 cells": LARGE["400 cells"]}.items():
                noise = subject.served(sensitivity, asked)
                if noise is None:
                    continue
                cost = noise.cost
                require(type(cost) is Budget, f"{asked}, {what}: the cost is a {type(cost).__name__}, no plain Budget")
                for part in ("epsilon", "delta", "rho"):
                    most, claimed = Fraction(getattr(asked, part)), Fraction(getattr(cost, part))
                    require(claimed <= most, f"{asked}, {what}: {part} is {claimed}, {float(claimed - most):.3g} more")
                if kind == "pure" and subject.exact(noise):
                    size, cells = max(even_shifts(sensitivity), key=lambda shift: shift[0] * shift[1])
                    loss = cells * Fraction(largest_loss(noise, size))
                    require(
                        loss <= Fraction(cost.epsilon),
                        f"{asked}, {what}: the loss is {float(loss)!r} at least, the cost {float(cost.epsilon)!r} "
                        f"({float(loss / cost.epsilon - 1):.2g} too small)",
                    )
                _event_covers(f"{asked}, {what}", noise, sensitivity)


def _event_covers(what: str, noise: Noise, sensitivity: Sensitivity) -> None:
    event = noise.event
    stated = Fraction(event.sensitivity)
    if event.kind in ("gaussian", "discrete-gaussian"):
        stated, norm = stated**2, sensitivity.l2_squared
    else:
        norm = sensitivity.l1
    require(
        stated >= norm,
        f"{what}: the event's sensitivity {event.sensitivity!r} is below the norm by {float(1 - stated / norm):.2g} of "
        f"it; round it up (math.nextafter)",
    )


def _budget(kind: str, text: str) -> Budget:
    if kind == "approx":
        return Budget.approx(text, "1e-6")
    return Budget.pure(text) if kind == "pure" else Budget.zcdp(text)
