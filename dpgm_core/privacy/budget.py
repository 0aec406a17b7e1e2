"""Privacy budgets: pure, zero-concentrated, Gaussian and approximate, and conversions between them."""

from __future__ import annotations

import decimal
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any, Literal, TypeAlias, get_args

from attrs import field, frozen

from dpgm_core._util.exact_numbers import Amount, amount, decimal_text, sqrt_floor, whole
from dpgm_core._util.html import Html, card
from dpgm_core.errors import BudgetError, OptionError, did_you_mean
from dpgm_core.privacy.gdp import PURE_MU_SQUARED, gdp_epsilon, gdp_mu_squared

__all__ = [
    "Budget",
    "BudgetKind",
    "MAX_WEIGHTS",
    "NoiseDistribution",
    "PrivacyEvent",
    "Split",
    "check_budget",
    "check_split",
    "compose_budgets",
    "concentrated_exponent",
    "holdout_share",
    "may_be_contrasts",
    "zcdp_epsilon",
    "zcdp_rho",
]

BudgetKind: TypeAlias = Literal["pure", "zcdp", "approx", "gdp"]
#: Of each kind of budget, the amounts that it has.
_PARTS = {"pure": ("epsilon",), "zcdp": ("rho",), "approx": ("epsilon", "delta"), "gdp": ("mu_squared",)}
EventKind: TypeAlias = Literal[
    "discrete-laplace", "laplace", "discrete-gaussian", "gaussian", "truncated-discrete-laplace", "tabulated"
]


@frozen(repr=False)
class Budget:
    """An exact amount of privacy loss: pure epsilon, zCDP rho, (epsilon, delta), or mu of Gaussian privacy (GDP).

    Make one with `Budget.pure`, `Budget.zcdp`, `Budget.approx` or `Budget.gdp`. Budgets of one kind add, and compare
    part by part; of GDP the squares of mu add.

    Attributes
    ----------
    kind : {"pure", "zcdp", "approx", "gdp"}
        Which definition of privacy the amounts belong to.
    epsilon, delta, rho, mu_squared : Fraction
        The amounts; those that the kind does not have are 0.

    Examples
    --------
    >>> Budget.pure(0.1) + Budget.pure("0.2") == Budget.pure("0.3")
    True
    >>> print(Budget.approx(1, 1e-6))
    (epsilon, delta) = (1, 1e-06)
    """

    kind: BudgetKind
    epsilon: Fraction = field(default=Fraction(0))
    delta: Fraction = field(default=Fraction(0))
    rho: Fraction = field(default=Fraction(0))
    mu_squared: Fraction = field(default=Fraction(0))

    def __attrs_post_init__(self) -> None:
        if isinstance(self.kind, (int, float)):
            says = f"pure({self.kind!r})" if not self.epsilon else f"approx({self.kind!r}, {self.epsilon!r})"
            raise BudgetError(
                f"a budget of {self.kind!r} does not say its kind: write Budget.{says}, or for zCDP Budget.zcdp(0.5)"
            )
        if self.kind not in _PARTS:
            raise BudgetError(
                f"a budget is one of {', '.join(_PARTS)}; got {self.kind!r}{did_you_mean(self.kind, list(_PARTS))}"
            )
        own = _PARTS[self.kind]
        for name in ("epsilon", "delta", "rho", "mu_squared"):
            part = getattr(self, name)
            if not isinstance(part, Fraction) or part.numerator < 0 or (part.numerator and name not in own):
                raise BudgetError(
                    "make budgets by Budget.pure(1), Budget.zcdp(0.5), Budget.approx(1, 1e-9) or Budget.gdp(0.25)"
                )

    @classmethod
    def pure(cls, epsilon: Amount) -> Budget:
        """Return a budget of pure differential privacy.

        Parameters
        ----------
        epsilon : int, float, str, Decimal or Fraction
            Nats, above 0.

        Examples
        --------
        >>> print(Budget.pure("0.5"))
        epsilon = 0.5
        """
        return cls("pure", epsilon=amount("epsilon", epsilon))

    @classmethod
    def zcdp(cls, rho: Amount) -> Budget:
        """Return a budget of zero-concentrated differential privacy (Bun and Steinke 2016).

        Parameters
        ----------
        rho : int, float, str, Decimal or Fraction
            Above 0.

        Examples
        --------
        >>> print(Budget.zcdp(0.5))
        rho = 0.5 (zCDP)
        """
        return cls("zcdp", rho=amount("rho", rho))

    @classmethod
    def approx(cls, epsilon: Amount, delta: Amount) -> Budget:
        """Return a budget of approximate differential privacy.

        Parameters
        ----------
        epsilon : int, float, str, Decimal or Fraction
            Nats, above 0.
        delta : int, float, str, Decimal or Fraction
            A probability, above 0 and below 1.

        Examples
        --------
        >>> Budget.approx(1, "1e-6").delta
        Fraction(1, 1000000)
        """
        probability = _probability(delta)
        return cls("approx", epsilon=amount("epsilon", epsilon), delta=probability)

    @classmethod
    def gdp(cls, mu: Amount) -> Budget:
        """Return a budget of Gaussian differential privacy (Dong, Roth, Su 2022).

        Parameters
        ----------
        mu : int, float, str, Decimal or Fraction
            Above 0. Kept exactly, as its square.

        Examples
        --------
        >>> print(Budget.gdp(0.3) + Budget.gdp(0.4))
        mu = 0.5 (GDP)
        """
        return cls("gdp", mu_squared=amount("mu", mu) ** 2)

    @classmethod
    def parse(cls, plain: object) -> Budget:
        """Return the budget that a spec states: {"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 1}, {"mu": 1}.

        Raises
        ------
        BudgetError
            For anything else.

        Examples
        --------
        >>> Budget.parse({"epsilon": 1}) == Budget.pure(1)
        True
        """
        if isinstance(plain, Budget):
            return plain
        shapes = "epsilon = 1, rho = 0.5, mu = 0.25, or epsilon = 1 with delta = 1e-6"
        if not isinstance(plain, dict):
            raise BudgetError(f"a budget must say {shapes}; got {plain!r}")
        known = {"epsilon": cls.pure, "rho": cls.zcdp, "mu": cls.gdp}
        for key in plain:
            if key not in (*known, "delta", "mu_squared"):
                raise BudgetError(f"a budget has no {key!r}{did_you_mean(key, [*known, 'delta'])}")
        if set(plain) == {"epsilon", "delta"}:
            return cls.approx(plain["epsilon"], plain["delta"])
        if set(plain) == {"mu_squared"}:  # as files have it
            return cls("gdp", mu_squared=amount("mu_squared", plain["mu_squared"]))
        if len(plain) == 1 and not known.keys().isdisjoint(plain):
            ((key, value),) = plain.items()
            return known[key](value)
        raise BudgetError(f"a budget must say {shapes}; got {', '.join(sorted(plain)) or 'nothing'}")

    def to_dict(self) -> dict[str, str]:
        """Return the amounts as exact texts, which `parse` reads back.

        Examples
        --------
        >>> Budget.pure("1/3").to_dict(), Budget.gdp("0.25").to_dict()
        ({'epsilon': '1/3'}, {'mu_squared': '1/16'})
        """
        return {name: str(part) for name, part in self._amounts.items()}

    # The converter of options and files calls these two; see `dpgm_core.components.options`.
    _structure, _unstructure = parse, to_dict

    @classmethod
    def zero(cls, kind: BudgetKind) -> Budget:
        """Return a budget of this kind of which nothing is spent."""
        return cls(kind)

    @classmethod
    def sum(cls, costs: Iterable[Budget]) -> Budget:
        """Return the sum of several costs of one kind.

        Raises
        ------
        BudgetError
            For mixed kinds, and for no costs at all.

        Examples
        --------
        >>> print(Budget.sum([Budget.pure("0.1"), Budget.pure("0.9")]))
        epsilon = 1
        """
        several = list(costs)
        if not several:
            raise BudgetError("no budget was spent, so there is no kind to sum it in")
        return reduce(operator.add, several)

    @property
    def is_zero(self) -> bool:
        """Whether all amounts are 0."""
        return not any(self._amounts.values())

    @property
    def _amounts(self) -> dict[str, Fraction]:
        return {name: getattr(self, name) for name in _PARTS[self.kind]}

    def _each(self, of: Callable[[Fraction, Fraction], Fraction], other: Budget) -> Budget:
        theirs = other._amounts
        return Budget(self.kind, **{name: of(part, theirs[name]) for name, part in self._amounts.items()})

    def __add__(self, other: Budget) -> Budget:
        self._same_kind(other)
        return self._each(operator.add, other)

    def __sub__(self, other: Budget) -> Budget:
        """Return what is left; BudgetError if `other` is more than this."""
        if not other <= self:
            raise BudgetError(f"cannot take {other} out of {self}")
        return self._each(operator.sub, other)

    def __mul__(self, factor: int | Fraction) -> Budget:
        """Return a share or a multiple of this budget; the factor must be exact and positive."""
        share = amount("the factor of a budget", factor)
        return Budget(self.kind, **{name: part * share for name, part in self._amounts.items()})

    __rmul__ = __mul__

    def __le__(self, other: Budget) -> bool:
        self._same_kind(other)
        theirs = other._amounts
        return all(part <= theirs[name] for name, part in self._amounts.items())

    def _same_kind(self, other: Budget) -> None:
        if not isinstance(other, Budget):
            raise TypeError(f"a Budget goes with a Budget, not with {type(other).__name__}")
        if self.kind != other.kind:
            raise BudgetError(f"budgets of different kinds do not mix: {self} and {other}; convert one of them first")

    def to_zcdp(self) -> Budget:
        """Return the zCDP budget that a pure budget, or one of GDP, implies, exactly.

        Notes
        -----
        An epsilon-DP mechanism is (epsilon^2 / 2)-zCDP (Bun and Steinke 2016, Proposition 1.4), and a mu-GDP one is
        (mu^2 / 2)-zCDP, as a map makes it of two normal numbers (Dong, Roth, Su 2022, Theorem 2.10).

        Examples
        --------
        >>> print(Budget.pure(1).to_zcdp(), Budget.gdp(1).to_zcdp())
        rho = 0.5 (zCDP) rho = 0.5 (zCDP)
        """
        if self.kind == "zcdp":
            return self
        if self.kind == "approx":
            raise BudgetError(f"{self} implies no zCDP bound; account for the mechanism itself instead")
        return Budget("zcdp", rho=(self.epsilon**2 + self.mu_squared) / 2)

    def to_gdp(self) -> Budget:
        """Return the GDP budget that a pure budget implies, rounded up: mu^2 = (pi / 2) epsilon^2.

        Raises
        ------
        BudgetError
            For zCDP and (epsilon, delta), which imply no mu.

        Examples
        --------
        >>> print(Budget.pure("0.1").to_gdp())
        mu = ~0.125331 (GDP)
        """
        if self.kind == "zcdp":
            raise BudgetError(f"{self} has no price in mu, as zCDP does not imply GDP; ask for mu, or (epsilon, delta)")
        if self.kind == "approx":
            raise BudgetError(f"{self} implies no mu; Budget.gdp_within is the most of mu that stays within it")
        return self if self.kind == "gdp" else Budget("gdp", mu_squared=PURE_MU_SQUARED * self.epsilon**2)

    def to_pure(self) -> Budget:
        """Return the largest pure budget that costs at most this one: itself, or that of rho or mu, rounded down.

        Notes
        -----
        An epsilon-DP mechanism is (epsilon^2 / 2)-zCDP, so one that is sqrt(2 rho)-DP costs at most rho. See `to_gdp`.

        Examples
        --------
        >>> print(Budget.zcdp("0.5").to_pure())
        epsilon = 1
        """
        if self.kind == "pure":
            return self
        if self.kind == "zcdp":
            return Budget("pure", epsilon=sqrt_floor(2 * self.rho))
        if self.kind == "gdp":
            return Budget("pure", epsilon=sqrt_floor(self.mu_squared / PURE_MU_SQUARED))
        raise BudgetError(
            f"{self} cannot be spent by a purely private mechanism as such; say budget = {{ epsilon = ... }} (in "
            "Python Budget.pure), which is stronger, or use a mechanism for (epsilon, delta)"
        )

    def to_approx(self, delta: Amount) -> Budget:
        """Return the (epsilon, delta) that this budget implies at a given delta, rounded up.

        Parameters
        ----------
        delta : int, float, str, Decimal or Fraction
            A probability, above 0 and below 1.

        Raises
        ------
        BudgetError
            For a budget that has a delta of its own.

        Notes
        -----
        A pure budget keeps its epsilon. zCDP: Canonne, Kamath, Steinke (2020), Corollary 13. GDP: Dong, Roth, Su
        (2022), Corollary 2.13, with a millionth of delta for what noise on whole numbers differs by.

        Examples
        --------
        >>> [round(float(one.to_approx("1e-6").epsilon), 4) for one in (Budget.zcdp("0.5"), Budget.gdp(1))]
        [5.2215, 4.8866]
        """
        probability = _probability(delta)
        if self.kind == "pure":
            return Budget("approx", epsilon=self.epsilon, delta=probability)
        if self.kind == "approx":
            raise BudgetError(f"{self} has its own delta; it cannot be moved to another one")
        epsilon = zcdp_epsilon(self.to_zcdp().rho, probability)
        if self.mu_squared:
            epsilon = gdp_epsilon(self.mu_squared, probability, epsilon)
        return Budget("approx", epsilon=epsilon, delta=probability)

    def gdp_within(self) -> Budget:
        """Return the largest GDP budget, of 12 digits, whose `to_approx` is at most this (epsilon, delta).

        Raises
        ------
        BudgetError
            For other kinds, and for a delta too small, or an epsilon too large, for an exact curve.

        Notes
        -----
        This says what may be spent, not what was spent: (epsilon, delta) implies no GDP.

        Examples
        --------
        >>> print(Budget.approx(1, "1e-6").gdp_within())
        mu = ~0.236704 (GDP)
        """
        if self.kind != "approx" or not (self.epsilon and self.delta):
            raise BudgetError(f"no mu stays within {self}; ask it of an (epsilon, delta) of which both are positive")
        return Budget("gdp", mu_squared=gdp_mu_squared(self.epsilon, self.delta))

    def zcdp_within(self) -> Budget:
        """Return the largest zCDP budget, of 12 digits, whose `to_approx` is at most this (epsilon, delta).

        Raises
        ------
        BudgetError
            For other kinds, and where epsilon or delta is too small for any rho.

        Notes
        -----
        This says what may be spent, not what was spent: (epsilon, delta) implies no zCDP.

        Examples
        --------
        >>> print(Budget.approx(1, "1e-9").zcdp_within())
        rho = ~0.0149731 (zCDP)
        """
        rho = zcdp_rho(self.epsilon, self.delta) if self.kind == "approx" else Fraction(0)
        if not rho:
            raise BudgetError(f"no zCDP stays within {self}; ask it of an (epsilon, delta) of which both are positive")
        return Budget("zcdp", rho=rho)

    def __repr__(self) -> str:
        return f"Budget({self})"

    def _repr_html_(self) -> Html:
        words = {"pure": "pure", "zcdp": "zero-concentrated", "approx": "approximate", "gdp": "Gaussian"}
        return card("Budget", [("kind", f"{words[self.kind]} differential privacy"), ("amount", str(self))])

    def __str__(self) -> str:
        if self.kind == "pure":
            return f"epsilon = {decimal_text(self.epsilon)}"
        if self.kind == "zcdp":
            return f"rho = {decimal_text(self.rho)} (zCDP)"
        if self.kind == "gdp":
            mu = sqrt_floor(self.mu_squared)
            text = decimal_text(mu)
            return f"mu = {text if mu**2 == self.mu_squared else '~' + text.removeprefix('~')} (GDP)"
        return f"(epsilon, delta) = ({decimal_text(self.epsilon)}, {decimal_text(self.delta)})"


def _probability(delta: Amount) -> Fraction:
    probability = amount("delta", delta)
    if probability >= 1:
        raise BudgetError(f"delta must be a probability below 1, such as 1e-6; got {delta!r}")
    return probability


def check_budget(budget: object) -> None:
    """Refuse, with BudgetError, what is no Budget."""
    if not isinstance(budget, Budget):
        raise BudgetError(f"budget must be a Budget such as Budget.pure(1), got {budget!r}")


def compose_budgets(costs: Iterable[Budget], conversion_delta: Fraction | None = None) -> Budget:
    """Return what several costs come to together, by sequential composition.

    Parameters
    ----------
    costs : iterable of Budget
        Costs of one kind add up to that kind, and costs of several kinds to an (epsilon, delta).
    conversion_delta : Fraction, optional
        The delta at which the zCDP costs, and those of GDP as zCDP, become an (epsilon, delta), where kinds are mixed.

    Raises
    ------
    BudgetError
        For mixed kinds without a `conversion_delta`.

    Notes
    -----
    The documentation of `Ledger` has the theorems.

    Examples
    --------
    >>> print(compose_budgets([Budget.pure(1), Budget.zcdp("0.5")], Fraction(1, 10**6)))
    (epsilon, delta) = (~6.22153, 1e-06)
    """
    costs = list(costs)
    kinds = sorted({cost.kind for cost in costs})
    if len(kinds) < 2:
        return Budget.sum(costs)
    if conversion_delta is None:
        raise BudgetError(
            f"costs of kinds {' and '.join(kinds)} do not add up; state a conversion delta, at which the zCDP part "
            "becomes an (epsilon, delta)"
        )
    if not 0 < conversion_delta < 1:
        raise BudgetError(
            f"conversion_delta must be a probability above 0 and below 1, such as 1e-6; got {conversion_delta}"
        )
    # eps = sum eps_i + eps(sum rho_j, delta'), delta = sum delta_i + delta'
    epsilon = sum((cost.epsilon for cost in costs), Fraction(0))
    delta = sum((cost.delta for cost in costs), Fraction(0))
    rho = sum((cost.to_zcdp().rho for cost in costs if cost.kind in ("zcdp", "gdp")), Fraction(0))
    if rho:
        epsilon += zcdp_epsilon(rho, conversion_delta)
        delta += conversion_delta
    return Budget("approx", epsilon=epsilon, delta=delta)


#: Most weights of a distribution, the bits of a weight, and those of how much of a tail is lost a record.
MAX_WEIGHTS, _WEIGHT_BITS, _TAIL_BITS = 2**16, 62, 40


@frozen(kw_only=True, cache_hash=True, repr=False)
class NoiseDistribution:
    """A symmetric distribution on the whole numbers without ends, by whole weights.

    W = k has the weight `weights[abs(k)]`; beyond the last, each weight is `tail` times the one before.

    Parameters
    ----------
    weights : tuple of int
        Of 0, 1, ..., K records; each from 1 to 2**62 - 1, at most 2**16 of them.
    tail : Fraction
        Above 0 and at most 1 - 2**-40, both parts below 2**62. Noise with an end would reveal counts there.

    Raises
    ------
    BudgetError
        For other weights and tails.

    Examples
    --------
    >>> NoiseDistribution(weights=(4, 2, 1), tail=Fraction(1, 2))
    NoiseDistribution(3 weights, tail 0.5)
    """

    weights: tuple[int, ...]
    tail: Fraction

    def __attrs_post_init__(self) -> None:
        weights, tail = self.weights, self.tail
        if not isinstance(weights, tuple) or not 1 <= len(weights) <= MAX_WEIGHTS:
            raise BudgetError(f"a noise distribution needs a tuple of 1 to {MAX_WEIGHTS:,} weights")
        if not all(type(weight) is int and 0 < weight < 1 << _WEIGHT_BITS for weight in weights):
            raise BudgetError(
                "each weight of a noise distribution must be a whole number from 1 to 2**62 - 1; 0 would be an end, "
                "which reveals a count"
            )
        most = 1 - Fraction(1, 1 << _TAIL_BITS)
        if not isinstance(tail, Fraction) or not 0 < tail <= most or tail.denominator >= 1 << _WEIGHT_BITS:
            raise BudgetError(
                "the tail of a noise distribution must be a Fraction above 0 and at most 1 - 2**-40, both parts below "
                f"2**62; got {tail!r}"
            )

    def __repr__(self) -> str:
        return f"NoiseDistribution({len(self.weights)} weights, tail {float(self.tail):.6g})"


@frozen(kw_only=True)
class PrivacyEvent:
    """One use of a noise, as an accountant needs to know it: an allow-listed kind and finite parameters.

    Parameters
    ----------
    kind : {"discrete-laplace", "laplace", "discrete-gaussian", "gaussian", "truncated-discrete-laplace", "tabulated"}
        The distribution of the noise.
    scale : float
        The Laplace scale or the Gaussian sigma, in records; of a tabulated distribution one over the largest loss of a
        shift by one record.
    sensitivity : float
        L2 for Gaussian noise, L1 for all other noise, in records.
    bound : int, optional
        The largest value of truncated noise, in whole records; None for all other kinds.
    distribution : NoiseDistribution, optional
        That of tabulated noise; None for all other kinds.

    Raises
    ------
    BudgetError
        For an unknown kind, and for parameters that are not finite and positive.
    """

    kind: EventKind
    scale: float
    sensitivity: float
    bound: int | None = None
    distribution: NoiseDistribution | None = None

    def __attrs_post_init__(self) -> None:
        kinds = get_args(EventKind)
        if self.kind not in kinds:
            raise BudgetError(f"there is no privacy event {self.kind!r}{did_you_mean(self.kind, kinds)}")
        if (self.kind == "tabulated") is not isinstance(self.distribution, NoiseDistribution):
            raise BudgetError(
                f"a {self.kind} event was given a {type(self.distribution).__name__} as its distribution; a tabulated "
                "event needs a NoiseDistribution, and no other has one"
            )
        for name, value in (("scale", self.scale), ("sensitivity", self.sensitivity)):
            if not isinstance(value, float) or not math.isfinite(value) or value <= 0:
                raise BudgetError(f"a privacy event needs a finite, positive {name}; got {value!r}")
        if self.kind == "truncated-discrete-laplace":
            whole("the bound of truncated noise", self.bound, least=1)
        elif self.bound is not None:
            raise BudgetError(f"a {self.kind} event has no bound, got {self.bound!r}; only truncated noise has one")


# --------------------------------------------------------------------------------------------------
# Conversion between rho-zCDP and (epsilon, delta), rounded up
#
# Claim (Canonne, Kamath, Steinke 2020, The Discrete Gaussian, Corollary 13). A rho-zCDP release is (epsilon, delta)-DP
# for every real epsilon and every order alpha > 1 with
#
#     delta = exp((alpha - 1)(alpha rho - epsilon)) (1 - 1/alpha)^(alpha - 1) / alpha.
#
# Proof. Let P and Q be its distributions on neighbours, and Z = log P(Y)/Q(Y) with Y drawn from P. The least delta is
# E (1 - exp(epsilon - Z))_+. With t = exp(epsilon - Z),
#
#     (1 - t)_+ <= exp((alpha - 1)(Z - epsilon)) max over t in [0, 1] of (1 - t) t^(alpha - 1),
#
# the maximum is at t = 1 - 1/alpha, and E exp((alpha - 1) Z) <= exp((alpha - 1) alpha rho), which is what zCDP says. So
#
#     delta = exp(a ((1 + a) rho - epsilon) - gain(a)),      epsilon = (1 + a) rho + (ln(1/delta) - gain(a)) / a,
#     a = alpha - 1 > 0,      gain(a) = ln(1 + a) + a ln(1 + 1/a) > 0.
#
# Without the gain this is Bun and Steinke's bound (2016, Proposition 1.3), rho + 2 sqrt(rho ln(1/delta)) at its best a;
# so it is never larger. Every a gives a proof, and only its logarithms are irrational: these are rounded, on the safe
# side, and all the rest is exact.

_UP = decimal.Context(prec=120, rounding=decimal.ROUND_CEILING)
_DOWN = decimal.Context(prec=120, rounding=decimal.ROUND_FLOOR)
#: Orders have 30 digits, and rhos that are given out 12.
_ORDER = decimal.Context(prec=30)
_SHORT = decimal.Context(prec=12, rounding=decimal.ROUND_FLOOR)
_CLOSE = Decimal("1e-35")
#: ln(1/delta) is taken to be at least this, so that a delta of almost 1 needs no more digits.
_LEAST_LOG = Decimal("1e-100")
#: Epsilons are multiples of its inverse.
_UNIT = 10**40


def zcdp_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """The epsilon of rho-zCDP at a delta in (0, 1): the least over all orders, rounded up to a multiple of 1e-40.

    Never falls when rho rises or delta falls: it is the least over one fixed set of orders (those of 30 digits), and
    for each of them what is computed does not. 0 for rho = 0 and positive otherwise. Source: the module's claim.
    """
    if rho == 0:
        return Fraction(0)
    log = _log_inverse(delta)
    near = _ORDER.plus(_best(rho, log))
    # The bound falls up to the best a and rises from there, so the best on the grid is next to it.
    bounds = [
        (1 + Fraction(a)) * rho + (Fraction(log) - Fraction(_gain(a))) / Fraction(a)
        for a in (_ORDER.next_minus(near), near, _ORDER.next_plus(near))
    ]
    return Fraction(max(1, math.ceil(min(bounds) * _UNIT)), _UNIT)


@lru_cache(maxsize=64)
def zcdp_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho of 12 digits whose `zcdp_epsilon` at delta, below 1, is at most epsilon; 0 where none is."""
    if not delta or epsilon * _UNIT < 1:
        return Fraction(0)
    log, target = _log_inverse(delta), _DOWN.divide(epsilon.numerator, epsilon.denominator)
    # Bun and Steinke's rho, then twice and half of it until the largest lies between
    root = _DOWN.divide(target, _UP.add(_UP.sqrt(_UP.add(log, target)), _UP.sqrt(log)))
    low = _SHORT.multiply(root, root)
    while zcdp_epsilon(Fraction(low), delta) > epsilon:
        low = _SHORT.divide(low, 2)
    high = _SHORT.multiply(low, 2)
    while zcdp_epsilon(Fraction(high), delta) <= epsilon:
        low, high = high, _SHORT.multiply(high, 2)
    while (middle := _SHORT.divide(_UP.add(low, high), 2)) > low:
        low, high = (middle, high) if zcdp_epsilon(Fraction(middle), delta) <= epsilon else (low, middle)
    return Fraction(low)


def concentrated_exponent(rho: Fraction, epsilon: Fraction, a: float) -> float:
    """ln of the claim's delta at order 1 + a, a > 0: above it by at most a double's rounding, never below."""
    exact = Fraction(a) * ((1 + Fraction(a)) * rho - epsilon) - Fraction(_gain(Decimal(a)))
    return math.nextafter(float(exact), math.inf)


def _gain(a: Decimal) -> Decimal:
    """ln(1 + a) + a ln(1 + 1/a), rounded down."""
    # ln rounds to the nearest in any context, so the number before is taken
    first = _DOWN.next_minus(_DOWN.ln(_DOWN.add(1, a)))
    second = _DOWN.next_minus(_DOWN.ln(_DOWN.add(1, _DOWN.divide(1, a))))
    return max(_DOWN.add(first, _DOWN.multiply(a, second)), Decimal(0))


def _log_inverse(delta: Fraction) -> Decimal:
    """ln(1/delta), rounded up."""
    return max(_UP.next_plus(_UP.ln(_UP.divide(delta.denominator, delta.numerator))), _LEAST_LOG)


def _best(rho: Fraction, log: Decimal) -> Decimal:
    """The a at which epsilon is least: rho a^2 + ln(1 + a) = ln(1/delta).

    d epsilon / da = rho - (ln(1/delta) - ln(1 + a)) / a^2 rises through 0 once. In u = ln a the equation's left side is
    convex and rises, so Newton's steps from above never pass the root. A worse a would be a proof as well.
    """
    with decimal.localcontext(_UP):
        curve = Decimal(rho.numerator) / Decimal(rho.denominator)
        a = min((log / curve).sqrt(), log.exp() - 1)
        for _ in range(200):
            square = curve * a * a
            step = (square + (1 + a).ln() - log) / (2 * square + a / (1 + a))
            a *= (-step).exp()
            if abs(step) < _CLOSE:
                break
        return a


# --- How a budget is divided ----------------------------------------------------------------------


def holdout_share(share: Amount) -> Fraction:
    """Return the share of a holdout as an exact number; 0 is none. Raises OptionError for what is no share."""
    try:
        exact = amount("the share of the holdout", share, zero=True)
    except BudgetError as error:
        raise OptionError(str(error)) from None
    if exact >= 1:
        raise OptionError(f"the share of the holdout must be below 1, such as 0.05; got {share!r}")
    return exact


def range_names(names: object) -> tuple[str, ...]:
    """Return the attributes whose ranges are measured, each once. Raises OptionError for what is no list of names."""
    exact = (None,) if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
    if not all(isinstance(one, str) for one in exact):
        raise OptionError(f"ranges must be a list of attributes, such as ['age']; got {names!r:.80}")
    return tuple(dict.fromkeys(exact))


#: even: one noise for all tables. optimal: see `optimal_split`. contrasts: one noise for sums of products of binary
#: attributes, one for each set inside a clique, in place of tables; see `dpgm_core.privacy.contrasts`. sharper:
#: contrasts, or "even" where these have more noise or there are none.
SPLITS = ("even", "optimal", "contrasts", "sharper")


def check_split(split: object) -> str:
    """The name of a way to split, or OptionError."""
    if not isinstance(split, str) or split not in SPLITS:
        raise OptionError(f"split must be one of {', '.join(SPLITS)}; got {split!r}{did_you_mean(str(split), SPLITS)}")
    return split


def may_be_contrasts(split: str) -> bool:
    """Whether contrasts may come out of it, which not every learner takes.

    >>> [may_be_contrasts(split) for split in SPLITS]
    [False, False, True, True]
    """
    return split in ("contrasts", "sharper")


@frozen
class Split:
    """How a budget is divided: a share for a holdout first, then the rest over the tables.

    Parameters
    ----------
    tables : str
        One of `SPLITS`.
    holdout : Fraction
        Share of the budget for the holdout, 0 (none) to below 1.
    ranges : tuple of str
        Attributes whose own tables are measured so that ranges of their values are answered well
        (`dpgm_core.privacy.ranges`); with "even" and "optimal" only.

    Raises
    ------
    OptionError
        For another word, what is no share, and what are no names.

    Examples
    --------
    >>> Split.of("optimal").holdout, Split.of({"holdout": 0.05})
    (Fraction(0, 1), Split(tables='even', holdout=Fraction(1, 20), ranges=()))
    """

    tables: str = field(default="even", converter=check_split)
    holdout: Fraction = field(default=Fraction(0), converter=holdout_share)
    ranges: tuple[str, ...] = field(default=(), converter=range_names)

    def __attrs_post_init__(self) -> None:
        if self.ranges and may_be_contrasts(self.tables):
            raise OptionError(
                f"ranges are measured beside tables, not with split = {self.tables!r}; leave one of them out"
            )

    @classmethod
    def of(cls, split: Split | str | Mapping[str, Any]) -> Split:
        """Read a split from a word, or from a mapping of `tables`, `holdout` and `ranges`, with defaults."""
        if isinstance(split, Split):
            return split
        if not isinstance(split, Mapping):
            return cls(tables=split)
        for key in split:
            if key not in ("tables", "holdout", "ranges", "check"):  # the last is an earlier spelling of holdout
                known = did_you_mean(str(key), ["tables", "holdout", "ranges"])
                raise OptionError(f"a split has tables, holdout and ranges, but no {key!r}{known}")
        if "check" in split and "holdout" in split:
            raise OptionError("a split has both holdout and check, which mean the same; keep holdout")
        holdout = split.get("holdout", split.get("check", 0))
        return cls(split.get("tables", "even"), holdout, split.get("ranges", ()))

    def divide(self, budget: Budget) -> tuple[Budget | None, Budget]:
        """Return what the holdout may cost, None without one, and what is left; together exactly the budget."""
        if not self.holdout:
            return None, budget
        own = budget * self.holdout
        return own, budget - own
