"""The account of a session under (epsilon, delta): an exact Gaussian curve with room for planned choices.

A session plans in rho, whatever proves its guarantee: each of its steps is zCDP, and what they cost may sum to the
`budget` of its account. Under a rho that zCDP converts to an (epsilon, delta), this is the proof. An account allows
more.

Claim. Fix B and planned choices of bounded ranges e_1, ..., e_k when the session opens. Let each step be, given all
that came out before, either a choice of range at most e_i that uses up one free planned choice, or mu_i-GDP with sum
mu_i^2 <= B over all of these, in any order and with any mu_i and choices that may depend on what came out. Then the
session's delta(epsilon) is at most that of the envelopes of e_1, ..., e_k and a normal number of shift sqrt(B)
together.

Proof, for at most n steps, by induction. Let H_a(P, Q) = sum max(P - a Q, 0), let the first step have P and Q over
outcomes y, and let h be the claim for the state (free choices, B) after it, which depends on the step that was asked
for and not on y. Then

    H_a = sum_y P(y) H_(a Q(y) / P(y))(rest after y) <= sum_y P(y) h(a Q(y) / P(y)) = H_a((P, Q) x claim),

and, with the outcomes of the claim summed last, H_a of a pair of envelopes or of normal numbers in place of (P, Q) is
no smaller, as these dominate it. Normal numbers of shifts m and mu_1 together are one of shift sqrt(m^2 + mu_1^2). A
planned choice that is never made, and B that is left, are forgotten, which helps nobody. Source for Gaussian steps
alone: Smith and Thakurta (2022), Fully adaptive composition for Gaussian differential privacy.

Prices. Discrete Gaussian noise: `gaussian_mu_squared`. A choice of range e that was not planned: mu^2 = (pi / 8) e^2.
For let p = P(A) and q = Q(A); then logit p - logit q <= e, and d Phi^-1(p) / d logit p = p (1 - p) / phi(Phi^-1(p)) <=
sqrt(2 pi) / 4, because (2 Phi(x) - 1)^2 >= 1 - exp(-x^2 / 2): the square |x_1|, |x_2| <= x holds the disk of radius x.
So mu <= e sqrt(2 pi) / 4. With rho = e^2 / 8 that is pi rho; independent choices add, so a descent costs pi rho too
(`dpgm_core.privacy.descent` bounds the sum of e_c^2 by 8 rho). That rho's own 2 rho would do is false.

A session under mu is part of what adds squares of mu, as a ledger does: there planned choices cost pi rho each too, and
these and B are at most mu^2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from attrs import field, frozen

from dpgm_core._util.exact_numbers import Amount, amount, whole
from dpgm_core.errors import BudgetError, Overspent
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.gaussian import concentrated_delta, gaussian_mu_squared, gaussian_variance, moved_cells
from dpgm_core.privacy.gdp import APART, MOVED_CELLS, PURE_MU_SQUARED, ROOM, drawn_cells
from dpgm_core.privacy.joint_gaussian import largest_rho, planned_delta
from dpgm_core.privacy.mechanism import Calibration, Mechanism, Noise, event_of
from dpgm_core.privacy.sensitivity import Sensitivity

__all__ = [
    "PlannedChoices",
    "SessionAccount",
    "SessionSpending",
    "check_exact",
    "exact_rho",
    "settle_account",
    "start_spending",
]

#: How many choices, and the rho of each, e^2 / 8 for a bounded range e.
PlannedChoices: TypeAlias = tuple[tuple[int, Fraction], ...]

#: pi, rounded up.
_PI = 2 * PURE_MU_SQUARED
#: Cells that one person may move in a whole session at least.
_MIN_CELLS = 2**40
#: Up to this rho no step can have noise that is too narrow to have a price: 1 / (2 rho) + 1/11 is at least 1/4.
_MAX_RHO = Fraction(22, 7)
#: A gain of rho below it is none.
_MIN_GAIN = Fraction(10_001, 10_000)
#: What `planned_delta` can hold.
_MAX_CHOICES, _MAX_RANGES = 2048, 256


def _as_mu_squared(value: Amount) -> Fraction:
    return amount("mu_squared of a session", value)


def _as_planned(choices: PlannedChoices) -> PlannedChoices:
    """Return planned choices with exact amounts; BudgetError or OptionError for what are none."""
    for count, _ in choices:
        whole("the number of planned choices", count, least=1, most=_MAX_CHOICES)
    return tuple((count, amount("the rho of a planned choice", rho)) for count, rho in choices)


@frozen(kw_only=True)
class SessionAccount:
    """What the steps of a session may cost under the exact Gaussian curve; fixed when the session opens.

    mu_squared: B, of all its Gaussian steps, and of choices that were not planned. choices: those planned. Raises
    BudgetError for what is none.

    >>> account = SessionAccount(mu_squared=Fraction(1, 4), choices=((2, Fraction(1, 800)),))
    >>> print(account.budget, round(account.delta(Fraction(1)), 6))
    rho = 0.1275 (zCDP) 0.007414
    """

    mu_squared: Fraction = field(converter=_as_mu_squared)
    choices: PlannedChoices = field(default=(), converter=_as_planned)

    def __attrs_post_init__(self) -> None:
        if self.count > _MAX_CHOICES or len({rho for _, rho in self.choices}) > _MAX_RANGES:
            raise BudgetError(
                f"an account holds up to {_MAX_CHOICES} planned choices of up to {_MAX_RANGES} ranges; got {self.count}"
            )

    @property
    def count(self) -> int:
        """The number of planned choices."""
        return sum(count for count, _ in self.choices)

    @property
    def budget(self) -> Budget:
        """What the session plans with: the sum of what its steps may cost, as zCDP."""
        return Budget("zcdp", rho=self.mu_squared / 2 + sum(count * rho for count, rho in self.choices))

    def delta(self, epsilon: Fraction) -> float:
        """Return the delta of all that such a session hands out, rounded up, but for what drawn noise differs by."""
        return planned_delta(_by_range(self.choices), self.mu_squared, epsilon)

    def check(self, spent: Budget) -> None:
        """Refuse, with BudgetError, an account that an (epsilon, delta), or mu, does not cover."""
        if spent.kind == "gdp":
            if self.mu_squared + _PI * _sum(self.choices) > spent.mu_squared:
                raise BudgetError(f"{spent} does not cover its account of {self.budget}")
            return
        if spent.kind != "approx" or drawn_cells(spent.epsilon, spent.delta) < _MIN_CELLS:
            raise BudgetError(f"an exact Gaussian account goes with an (epsilon, delta), and {spent} is none for it")
        if not Fraction(self.delta(spent.epsilon)) <= spent.delta * (1 - APART):
            raise BudgetError(f"{spent} does not cover its account of {self.budget}")

    def to_dict(self) -> dict[str, Any]:
        """JSON values, exact."""
        choices = [[count, str(rho)] for count, rho in self.choices]
        return {"kind": "gaussian", "mu_squared": str(self.mu_squared), "choices": choices}

    @classmethod
    def parse(cls, plain: object) -> SessionAccount:
        """Read what `to_dict` made; BudgetError for anything else."""
        if not isinstance(plain, dict) or set(plain) != {"kind", "mu_squared", "choices"}:
            raise BudgetError("the account of a session must state kind, mu_squared and choices")
        choices = plain["choices"]
        if plain["kind"] != "gaussian" or not isinstance(plain["mu_squared"], str) or not isinstance(choices, list):
            raise BudgetError("the account of a session is not one that a session has")
        if not all(isinstance(one, list) and len(one) == 2 and isinstance(one[1], str) for one in choices):
            raise BudgetError("the planned choices of a session must be lists of a number and the rho of each")
        read = tuple((count, amount("the rho of a planned choice", rho)) for count, rho in choices)
        return cls(mu_squared=amount("mu_squared of a session", plain["mu_squared"]), choices=read)


class SessionSpending:
    """The filter of one session: what is left of its account. A step that does not fit is refused, with Overspent.

    spent: the (epsilon, delta), or mu, that the account is for.
    """

    def __init__(self, account: SessionAccount, spent: Budget) -> None:
        self.mu_squared = account.mu_squared
        self._free = sorted(rho for count, rho in account.choices for _ in range(count))
        self._cells = MOVED_CELLS if spent.kind == "gdp" else drawn_cells(spent.epsilon, spent.delta)

    @property
    def choices(self) -> tuple[Fraction, ...]:
        """The rho of each planned choice that is still free, from small to large."""
        return tuple(self._free)

    def pay(
        self, cost: Budget, *, noise: Sequence[Calibration] = (), choices: int = 0, reserved: Fraction = Fraction(0)
    ) -> None:
        """Pay for a step of this zCDP cost: its noise, or so many choices, or else a descent.

        reserved: rho that is not for this step.
        """
        reserved_mu_squared = 2 * reserved
        if noise:
            self.pay_noise(noise, reserved=reserved_mu_squared)
        elif choices:
            self.pay_choices(choices, cost.rho / choices, reserved=reserved_mu_squared)
        else:
            self.pay_descent(cost.rho, reserved=reserved_mu_squared)

    def pay_noise(self, calibrations: Iterable[Calibration], *, reserved: Fraction = Fraction(0)) -> None:
        """Pay for Gaussian noise. reserved: mu^2 that is not for this step.

        Raises BudgetError for noise without a price.
        """
        price, cells = Fraction(0), 0
        for one in calibrations:
            _check_discrete(one.noise)
            # Its rho is L2^2 / (2 sigma^2) exactly, and never below what core proves (`check_claims`).
            square = max(one.sensitivity.l2_squared, 1)
            price += gaussian_mu_squared(square / (2 * one.noise.cost.rho), square)
            cells += moved_cells(one.sensitivity)
        if cells > self._cells:
            raise Overspent("the steps of this session move more cells than its exact Gaussian account has room for")
        self._take(price, reserved)
        self._cells -= cells

    def pay_choices(self, count: int, rho: Fraction, *, reserved: Fraction = Fraction(0)) -> None:
        """Pay for so many choices of this rho: each with the least planned one that it fits, or else out of mu^2."""
        fitting = [place for place, planned in enumerate(self._free) if planned >= rho][:count]
        self._take((count - len(fitting)) * _PI * rho, reserved)
        self._free = [planned for place, planned in enumerate(self._free) if place not in fitting]

    def pay_descent(self, rho: Fraction, *, reserved: Fraction = Fraction(0)) -> None:
        """Pay for a descent of this rho."""
        self._take(_PI * rho, reserved)

    def _take(self, price: Fraction, reserved: Fraction) -> None:
        if price > self.mu_squared - reserved:
            left = Budget("zcdp", rho=max(self.mu_squared - reserved, Fraction(0)) / 2)
            raise Overspent(f"this step costs {Budget('zcdp', rho=price / 2)} of the session, and {left} remains")
        self.mu_squared -= price

    @staticmethod
    def drawn_rho(budget: Budget, sensitivity: Sensitivity) -> Budget:
        """Return the rho of Gaussian noise that costs at most a budget of the session, as its mechanism is asked."""
        square = max(sensitivity.l2_squared, 1)
        return Budget("zcdp", rho=square / (2 * gaussian_variance(2 * budget.rho, square)))


def start_spending(account: SessionAccount, spent: Budget) -> SessionSpending:
    """Return the filter of a session that an (epsilon, delta), or mu, pays for; BudgetError for too little of it."""
    account.check(spent)
    return SessionSpending(account, spent)


def check_exact(mechanism: Mechanism, own: Mechanism) -> None:
    """Refuse, with BudgetError, another mechanism than core's own: its noise may be another at other sensitivities."""
    if type(mechanism) is not type(own):
        raise BudgetError(
            "an exact Gaussian account is of core's own discrete Gaussian noise only; leave the mechanism out"
        )
    one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    _check_discrete(mechanism.noise(one, Budget.zcdp("1/2")))


def _check_discrete(noise: Noise) -> None:
    if event_of(noise).kind != "discrete-gaussian" or noise.cost.kind != "zcdp":
        raise BudgetError("an exact Gaussian account is of discrete Gaussian noise only")


def exact_rho(whole: Budget, fixed: PlannedChoices, parts: Sequence[tuple[int, Fraction]]) -> Fraction | str:
    """Return about the largest rho that a session may plan with under its exact account; or why it has none, in words.

    whole: (epsilon, delta) of the session, or its mu. fixed: choices of a fixed rho, as for private bins. parts: so
    many choices, and the part of the rest that each has.
    """
    taken, together = _sum(fixed), _sum(parts)
    if not together < 1:
        return "all of it is planned for choices"
    if whole.kind == "gdp":
        rest = (whole.mu_squared - _PI * taken) / (2 * (1 - together) + _PI * together)
        return taken + rest if rest > 0 else "its private bins cost all of it"
    concentrated = whole.zcdp_within().rho
    if drawn_cells(whole.epsilon, whole.delta) < _MIN_CELLS:
        return "its delta is too small for the exact Gaussian curve"
    if sum(count for count, _ in (*fixed, *parts)) > _MAX_CHOICES or len({*fixed, *parts}) > _MAX_RANGES:
        return f"more than {_MAX_CHOICES} choices are planned, or more than {_MAX_RANGES} ranges of them"

    def account(rho: Fraction) -> tuple[Fraction, Fraction, PlannedChoices]:
        rest = max(rho - taken, rho / 10**6)
        return rho, 2 * rest * (1 - together), (*fixed, *((count, part * rest) for count, part in parts))

    def delta(of: tuple[Fraction, Fraction, PlannedChoices], epsilon: Fraction, enough: float) -> float:
        if enough:
            return concentrated_delta(of[0], epsilon)
        return planned_delta(_by_range(of[2]), of[1], epsilon)

    rho = largest_rho(delta, account, whole.epsilon, whole.delta * (1 - APART - ROOM))
    if rho < concentrated * _MIN_GAIN:
        return "so much is planned for choices that the conversion of zCDP allows more"
    if rho > _MAX_RHO:
        return "at so large an epsilon noise may be too narrow for the exact Gaussian curve"
    return rho


def settle_account(
    whole: Budget, fixed: PlannedChoices, planned: Callable[[Fraction], PlannedChoices | None]
) -> SessionAccount | str:
    """Return the exact account of a session; or why it has none, in words.

    planned: the choices of a session of this rho, without those `fixed`; None where they are not known.
    """
    first = (whole.to_zcdp() if whole.kind == "gdp" else whole.zcdp_within()).rho
    choices, taken = planned(first), _sum(fixed)
    if choices is None:
        return "its choices are not planned"
    rho = exact_rho(whole, fixed, [(count, one / (first - taken)) for count, one in choices])
    if isinstance(rho, str):
        return rho
    for _ in range(3):
        choices = planned(rho) or ()
        try:
            account = SessionAccount(mu_squared=2 * (rho - taken - _sum(choices)), choices=(*fixed, *choices))
            account.check(whole)
        except BudgetError:  # what is planned is rounded a little otherwise
            rho *= 1 - Fraction(1, 10**6)
        else:
            return account
    return "what is planned does not grow evenly with the budget"


def _by_range(choices: PlannedChoices) -> dict[Fraction, int]:
    together: dict[Fraction, int] = {}
    for count, rho in choices:
        together[rho] = together.get(rho, 0) + count
    return together


def _sum(choices: Iterable[tuple[int, Fraction]]) -> Fraction:
    return sum((count * one for count, one in choices), Fraction(0))
