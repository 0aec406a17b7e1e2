"""What is protected and what it costs: neighbours, sensitivity, budgets, composition and conversion.

All amounts are exact (`fractions.Fraction`); where a formula is irrational the result is rounded against us, never
in our favour, and the docstring says so.
"""

from __future__ import annotations

import decimal
import math
import re
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import field, frozen

from dpgm_core.errors import BudgetError, did_you_mean

if TYPE_CHECKING:
    from dpgm_core.structure import Structure

__all__ = ["Amount", "Budget", "BudgetKind", "Neighbours", "PrivacyEvent", "Sensitivity", "amount", "decimal_text"]

Amount: TypeAlias = int | float | str | Decimal | Fraction
BudgetKind: TypeAlias = Literal["pure", "zcdp", "approx"]

# Digits carried through irrational formulas before they are rounded up; far beyond any amount that makes sense.
_CONTEXT = decimal.Context(prec=60)
_UP = decimal.Context(prec=60, rounding=decimal.ROUND_CEILING)


class Neighbours(Enum):
    """Which two data sets must be hard to tell apart; both in terms of whole persons (DESIGN section 4).

    >>> Neighbours.of("add-remove").value
    'add-remove'
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"

    @classmethod
    def of(cls, name: Neighbours | str) -> Neighbours:
        """Read a relation from its name; BudgetError for anything else. There is no default on purpose."""
        if isinstance(name, Neighbours):
            return name
        for relation in cls:
            if name == relation.value:
                return relation
        known = [relation.value for relation in cls]
        raise BudgetError(
            f"neighbours must be stated as one of {', '.join(known)}; got {name!r}{did_you_mean(name, known)}"
        )


@frozen(kw_only=True)
class Sensitivity:
    """The largest change one person can make to the count tables, in records.

    l0: cells changed. l1, l2 (through the exact l2_squared), linf: norms of the change. A mechanism must be private
    for every integer shift with at most l0 non-zero cells, each at most linf, and norms within l1 and l2.

    >>> Sensitivity(l0=2, l1=2, l2_squared=2, linf=1).l2
    1.4142135623730951
    """

    l0: int
    l1: int
    l2_squared: int
    linf: int

    def __attrs_post_init__(self) -> None:
        for name in ("l0", "l1", "l2_squared", "linf"):
            whole(f"sensitivity {name}", getattr(self, name), least=0)

    @property
    def l2(self) -> float:
        """The Euclidean norm, rounded to the nearest double; use `l2_squared` in exact work."""
        return math.sqrt(self.l2_squared)

    @classmethod
    def of(cls, structure: Structure, neighbours: Neighbours | str, *, rows_per_person: int = 1) -> Sensitivity:
        """Sensitivity of all tables of a structure; Proposition 3 of Bernstein et al. (2017), generalised.

        With m_g cliques tied in group g and r rows per person, under add-remove: L1 = r sum m_g,
        L2^2 = r^2 sum m_g^2, Linf = r max m_g; replace-one doubles L1 and L2^2. Under replace-one
        with r = 1 a table with one cell never changes and costs nothing. These three are attained, by r equal rows
        whose attributes all have code 0 (for one-cell tables under replace-one with r > 1 they are upper bounds).
        L0 is an upper bound: each group's r m_g (or 2 r m_g) cells, at most all it has.

        >>> from dpgm_core.domain import Domain
        >>> from dpgm_core.structure import Structure
        >>> chain = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2)))
        >>> Sensitivity.of(chain, "replace-one")
        Sensitivity(l0=4, l1=4, l2_squared=4, linf=1)
        """
        relation = Neighbours.of(neighbours)
        rows = whole("rows_per_person", rows_per_person, least=1)
        l0 = l1 = l2_squared = linf = 0
        for cells, tied in zip(structure.sizes, structure.multiplicities, strict=True):
            hits = rows * tied  # how often one person is counted in this table
            if relation is Neighbours.ADD_REMOVE or (cells == 1 and rows > 1):
                # One cell, several rows: replacing a person changes how many rows there are, by less than r.
                l0, l1, l2_squared, linf = l0 + min(hits, cells), l1 + hits, l2_squared + hits**2, max(linf, hits)
            elif cells > 1:
                l0, l1, l2_squared = l0 + min(2 * hits, cells), l1 + 2 * hits, l2_squared + 2 * hits**2
                linf = max(linf, hits)
        return cls(l0=l0, l1=l1, l2_squared=l2_squared, linf=linf)


def default_unit(person: str | None) -> str:
    """What is protected when nobody says it: a person if there is a person key, else a record.

    >>> default_unit(None)
    'one record'
    """
    return "one record" if person is None else "one person"


def whole(what: str, value: object, *, least: int, most: int | None = None) -> int:
    """A whole number within bounds; BudgetError otherwise (bools, floats and texts are refused).

    >>> whole("rows_per_person", 3, least=1)
    3
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least or (most is not None and value > most):
        bound = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise BudgetError(f"{what} must be a whole number {bound}, got {value!r}")
    return value


def amount(what: str, value: Amount, *, zero: bool = False) -> Fraction:
    """An exact positive amount from a number or decimal text; floats mean the decimal they print as.

    zero: whether 0 is allowed. Raises BudgetError for NaN, infinities, negatives, bools and other types.

    >>> amount("epsilon", 0.1), amount("epsilon", "1/3")
    (Fraction(1, 10), Fraction(1, 3))
    """
    wanted = "0 or a positive number" if zero else "a positive number"
    exact: Fraction | None = None
    if isinstance(value, (int, Fraction)) and not isinstance(value, bool):
        exact = Fraction(value)
    elif isinstance(value, float) and math.isfinite(value):
        exact = Fraction(repr(float(value)))
    elif isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < 400:
        exact = Fraction(value)
    elif isinstance(value, str) and re.fullmatch(
        r"[+-]?[0-9.]{1,400}(e[+-]?[0-9]{1,3})?|[0-9]{1,400}/[0-9]{1,400}", value
    ):
        try:
            exact = Fraction(value)
        except (ValueError, ZeroDivisionError):
            exact = None
    if exact is None or exact < 0 or (exact == 0 and not zero):
        raise BudgetError(f"{what} must be {wanted} such as 0.5, got {value!r}")
    return exact


def decimal_text(value: Fraction, digits: int = 6) -> str:
    """An exact amount for people: exact when a short decimal says it, else rounded to `digits` and marked by "~".

    >>> decimal_text(Fraction(1, 10)), decimal_text(Fraction(1, 3)), decimal_text(Fraction(1, 10**6))
    ('0.1', '~0.333333', '1e-06')
    """
    try:
        rounded = f"{float(value):.{digits}g}"
    except OverflowError:
        rounded = "inf"
    if rounded == "inf" or (value and not float(rounded)):  # beyond the range of doubles
        rounded = f"{_CONTEXT.divide(value.numerator, value.denominator).normalize():.{digits}g}".lower()
    return rounded if Fraction(rounded) == value else "~" + rounded


@frozen
class Budget:
    """An amount of privacy loss: pure epsilon, zCDP rho, or (epsilon, delta); exact.

    Use `Budget.pure`, `Budget.zcdp` or `Budget.approx`. Budgets of one kind add, and are compared part by part.

    >>> Budget.pure(0.1) + Budget.pure("0.2") == Budget.pure("0.3")
    True
    >>> print(Budget.approx(1, 1e-6))
    (epsilon, delta) = (1, 1e-06)
    """

    kind: BudgetKind
    epsilon: Fraction = field(default=Fraction(0))
    delta: Fraction = field(default=Fraction(0))
    rho: Fraction = field(default=Fraction(0))

    def __attrs_post_init__(self) -> None:
        kinds = ("pure", "zcdp", "approx")
        if self.kind not in kinds:
            raise BudgetError(
                f"a budget is one of {', '.join(kinds)}; got {self.kind!r}{did_you_mean(self.kind, kinds)}"
            )
        foreign = {"pure": (self.delta, self.rho), "zcdp": (self.epsilon, self.delta), "approx": (self.rho,)}[self.kind]
        for part in (self.epsilon, self.delta, self.rho):
            if not isinstance(part, Fraction) or part < 0 or any(foreign):
                raise BudgetError("use Budget.pure(eps), Budget.zcdp(rho) or Budget.approx(eps, delta)")

    @classmethod
    def pure(cls, epsilon: Amount) -> Budget:
        """Pure differential privacy. epsilon: nats, > 0.

        >>> print(Budget.pure("0.5"))
        epsilon = 0.5
        """
        return cls("pure", epsilon=amount("epsilon", epsilon))

    @classmethod
    def zcdp(cls, rho: Amount) -> Budget:
        """Zero-concentrated differential privacy (Bun and Steinke 2016). rho > 0.

        >>> print(Budget.zcdp(0.5))
        rho = 0.5 (zCDP)
        """
        return cls("zcdp", rho=amount("rho", rho))

    @classmethod
    def approx(cls, epsilon: Amount, delta: Amount) -> Budget:
        """Approximate differential privacy. epsilon: nats, > 0; delta: a probability, 0 < delta < 1.

        >>> Budget.approx(1, "1e-6").delta
        Fraction(1, 1000000)
        """
        probability = amount("delta", delta)
        if probability >= 1:
            raise BudgetError(f"delta must be a probability below 1, such as 1e-6; got {delta!r}")
        return cls("approx", epsilon=amount("epsilon", epsilon), delta=probability)

    @classmethod
    def parse(cls, plain: object) -> Budget:
        """Read a budget from a spec: {"epsilon": 1}, {"rho": 0.5} or {"epsilon": 1, "delta": 1e-6}.

        >>> Budget.parse({"epsilon": 1}) == Budget.pure(1)
        True
        """
        if isinstance(plain, Budget):
            return plain
        shapes = "epsilon = 1, rho = 0.5, or epsilon = 1 with delta = 1e-6"
        if not isinstance(plain, dict):
            raise BudgetError(f"a budget must say {shapes}; got {plain!r}")
        keys = set(plain)
        for key in plain:
            if key not in ("epsilon", "delta", "rho"):
                raise BudgetError(f"a budget has no {key!r}{did_you_mean(key, ['epsilon', 'delta', 'rho'])}")
        if keys == {"epsilon"}:
            return cls.pure(plain["epsilon"])
        if keys == {"rho"}:
            return cls.zcdp(plain["rho"])
        if keys == {"epsilon", "delta"}:
            return cls.approx(plain["epsilon"], plain["delta"])
        raise BudgetError(f"a budget must say {shapes}; got {', '.join(sorted(keys)) or 'nothing'}")

    def to_dict(self) -> dict[str, str]:
        """Plain exact texts; `parse` reads them back.

        >>> Budget.pure("1/3").to_dict()
        {'epsilon': '1/3'}
        """
        if self.kind == "pure":
            return {"epsilon": str(self.epsilon)}
        if self.kind == "zcdp":
            return {"rho": str(self.rho)}
        return {"epsilon": str(self.epsilon), "delta": str(self.delta)}

    @classmethod
    def zero(cls, kind: BudgetKind) -> Budget:
        """Nothing spent, in the given kind."""
        return cls(kind)

    @property
    def is_zero(self) -> bool:
        """Whether nothing is left of it."""
        return not (self.epsilon or self.delta or self.rho)

    def __add__(self, other: Budget) -> Budget:
        self._same_kind(other)
        return Budget(self.kind, self.epsilon + other.epsilon, self.delta + other.delta, self.rho + other.rho)

    def __sub__(self, other: Budget) -> Budget:
        """What is left; BudgetError if `other` is more than this."""
        if not other <= self:
            raise BudgetError(f"cannot take {other} out of {self}")
        return Budget(self.kind, self.epsilon - other.epsilon, self.delta - other.delta, self.rho - other.rho)

    def __mul__(self, factor: int | Fraction) -> Budget:
        """A share or a multiple of it; the factor must be exact and positive."""
        share = amount("the factor of a budget", factor)
        return Budget(self.kind, self.epsilon * share, self.delta * share, self.rho * share)

    __rmul__ = __mul__

    def __le__(self, other: Budget) -> bool:
        self._same_kind(other)
        return self.epsilon <= other.epsilon and self.delta <= other.delta and self.rho <= other.rho

    def _same_kind(self, other: Budget) -> None:
        if not isinstance(other, Budget):
            raise TypeError(f"a Budget goes with a Budget, not with {type(other).__name__}")
        if self.kind != other.kind:
            raise BudgetError(f"budgets of different kinds do not mix: {self} and {other}; convert one of them first")

    def to_zcdp(self) -> Budget:
        """The zCDP a pure budget implies: eps-DP is eps^2/2-zCDP (Bun and Steinke 2016, Proposition 1.4). Exact.

        >>> print(Budget.pure(1).to_zcdp())
        rho = 0.5 (zCDP)
        """
        if self.kind == "pure":
            return Budget("zcdp", rho=self.epsilon**2 / 2)
        if self.kind == "zcdp":
            return self
        raise BudgetError(f"{self} implies no zCDP bound; account for the mechanism itself instead")

    def to_pure(self) -> Budget:
        """The largest pure epsilon that stays within this budget: itself, or sqrt(2 rho) rounded down.

        From eps-DP being eps^2/2-zCDP: a mechanism that is sqrt(2 rho)-DP costs at most rho.

        >>> print(Budget.zcdp("0.5").to_pure())
        epsilon = 1
        """
        if self.kind == "pure":
            return self
        if self.kind == "zcdp":
            return Budget("pure", epsilon=sqrt_floor(2 * self.rho))
        raise BudgetError(
            f"{self} cannot be spent by a purely private mechanism as such; ask for Budget.pure(epsilon), "
            "which is stronger, or use a mechanism for (epsilon, delta)"
        )

    def to_approx(self, delta: Amount) -> Budget:
        """The (epsilon, delta) it implies at a stated delta: rho + 2 sqrt(rho ln(1/delta)), rounded up.

        Bun and Steinke (2016), Proposition 1.3, for zCDP. A pure budget is (epsilon, 0) and keeps its epsilon.

        >>> float(Budget.zcdp("0.5").to_approx("1e-6").epsilon)
        5.7565...
        """
        probability = amount("delta", delta)
        if probability >= 1:
            raise BudgetError(f"delta must be a probability below 1, such as 1e-6; got {delta!r}")
        if self.kind == "pure":
            return Budget("approx", epsilon=self.epsilon, delta=probability)
        if self.kind == "approx":
            raise BudgetError(f"{self} has its own delta; it cannot be moved to another one")
        return Budget("approx", epsilon=zcdp_epsilon(self.rho, probability), delta=probability)

    def __str__(self) -> str:
        if self.kind == "pure":
            return f"epsilon = {decimal_text(self.epsilon)}"
        if self.kind == "zcdp":
            return f"rho = {decimal_text(self.rho)} (zCDP)"
        return f"(epsilon, delta) = ({decimal_text(self.epsilon)}, {decimal_text(self.delta)})"


def zcdp_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """epsilon of rho-zCDP at a given delta: rho + 2 sqrt(rho ln(1/delta)), rounded up at the 40th digit.

    Source: Bun and Steinke (2016), Proposition 1.3. Returns 0 for rho = 0.

    >>> float(zcdp_epsilon(Fraction(1, 2), Fraction(1, 10**6)))
    5.7565...
    """
    if rho == 0:
        return Fraction(0)
    # Every step is rounded up; ln and sqrt round to the nearest in any context, so the next number is taken.
    ratio = _UP.divide(delta.denominator, delta.numerator)
    log = _UP.next_plus(_UP.ln(ratio))
    square = _UP.multiply(_UP.divide(rho.numerator, rho.denominator), log)
    exact = rho + 2 * Fraction(_UP.next_plus(_UP.sqrt(square)))
    unit = 10**40
    return Fraction(math.ceil(exact * unit), unit)


def sqrt_floor(value: Fraction) -> Fraction:
    """A rational just below (or at) the square root: exact for squares, else within 2^-64 of it, relatively.

    >>> sqrt_floor(Fraction(9, 4))
    Fraction(3, 2)
    """
    top, bottom = value.numerator, value.denominator
    if math.isqrt(top) ** 2 == top and math.isqrt(bottom) ** 2 == bottom:
        return Fraction(math.isqrt(top), math.isqrt(bottom))
    # sqrt(top/bottom) = sqrt(top * bottom * 4^s) / (bottom * 2^s), floored on the integers; s makes 64 good bits
    shift = max(0, 128 - (top * bottom).bit_length()) // 2 + 2
    return Fraction(math.isqrt((top * bottom) << (2 * shift)), bottom << shift)


@frozen(kw_only=True)
class PrivacyEvent:
    """What an accountant needs to know about one use of a noise: an allow-listed kind and finite parameters.

    kind: "discrete-laplace", "laplace", "discrete-gaussian" or "gaussian". scale: of the noise in records (the
    Laplace scale, or the Gaussian sigma). sensitivity: L1 for Laplace, L2 for Gaussian, in records.
    """

    kind: Literal["discrete-laplace", "laplace", "discrete-gaussian", "gaussian"]
    scale: float
    sensitivity: float

    def __attrs_post_init__(self) -> None:
        kinds = ("discrete-laplace", "laplace", "discrete-gaussian", "gaussian")
        if self.kind not in kinds:
            raise BudgetError(f"there is no privacy event {self.kind!r}{did_you_mean(self.kind, kinds)}")
        for name, value in (("scale", self.scale), ("sensitivity", self.sensitivity)):
            if not isinstance(value, float) or not math.isfinite(value) or value <= 0:
                raise BudgetError(f"a privacy event needs a finite, positive {name}; got {value!r}")
