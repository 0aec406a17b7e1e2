"""Mechanisms: the protocol, exactness, calibration, and verification of stated costs."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, Protocol, runtime_checkable

import attrs
import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, FloatArray
from dpgm_core._util.exact_numbers import decimal_text
from dpgm_core._util.randomness import Randomness, SystemRandomness
from dpgm_core.components.options import converter, option
from dpgm_core.components.registry import default_registry
from dpgm_core.errors import BudgetError, IncompatiblePlugin, InferenceError, OptionError
from dpgm_core.privacy.budget import Budget, BudgetKind, PrivacyEvent
from dpgm_core.privacy.dominating_pairs import laplace_delta, truncated_delta
from dpgm_core.privacy.gaussian import Part, analytic_delta, discrete_delta, gaussian_mu_squared, moved_cells
from dpgm_core.privacy.gdp import MOVED_CELLS
from dpgm_core.privacy.joint_gaussian import normal_parts_delta, together_delta
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.tabulated import LAST_DIGITS, TabulatedNoise, tabulated_cost, tabulated_delta, tabulated_variance

__all__ = [
    "Calibration",
    "DELTAS_TOGETHER",
    "DerivedNoise",
    "DualTerm",
    "Exactness",
    "Mechanism",
    "Noise",
    "ScaledNoise",
    "add_noise",
    "calibrate",
    "check_claims",
    "check_together",
    "event_of",
    "mechanism_name",
    "noise_fields",
    "parts_of",
    "residuals",
]

# Constants may be declared on the class: `support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)`.


@frozen(kw_only=True)
class DualTerm:
    """The dual form of log p(y|n) in the E-step: |u| <= bound, plus curvature * u**2 / 2 per cell.

    Parameters
    ----------
    bound : float
        Per record; infinite if there is none (Gaussian).
    curvature : float
        records**2; 0 if there is none (Laplace).

    Examples
    --------
    >>> DualTerm(bound=0.5, curvature=0.0).bound
    0.5
    """

    bound: float
    curvature: float


@runtime_checkable
class Noise(Protocol):
    """One calibrated additive noise, independent and identically distributed for each cell.

    Implement it as a frozen attrs class with plain fields.
    """

    @property
    def cost(self) -> Budget:
        """The budget that one release with this noise spends; never more than the noise was calibrated for."""
        ...

    @property
    def event(self) -> PrivacyEvent:
        """The distribution that bounds it for every whole-numbered shift; core computes the least cost from it."""
        ...

    @property
    def variance(self) -> float:
        """The variance of a cell, records**2."""
        ...

    @property
    def dual(self) -> DualTerm | None:
        """The dual form of logpdf; None when only the general, slower evidence path serves it."""
        ...

    @property
    def exact(self) -> bool:
        """Whether draws are whole numbers (int64), made by exact arithmetic; textbook noise is float64."""
        ...

    @property
    def unsafe(self) -> str | None:
        """Why the guarantee does not hold to the letter, in words; None if it does."""
        ...

    @property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest value a draw can take, records; infinite where there is none."""
        ...

    @property
    def log_concave(self) -> bool:
        """Whether logpdf is concave on the support; what follows the likelihood of single cells needs it."""
        ...

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Return fresh noise: int64 for exact noise, float64 for textbook noise.

        Parameters
        ----------
        shape : tuple of int
            The shape of the noise.
        randomness : Randomness
            The source of random words.
        """
        ...

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """Return the log mass, extended to the reals between whole numbers; -inf off the support.

        Parameters
        ----------
        residual : ndarray
            noisy - true, in records.
        """
        ...

    def score(self, residual: FloatArray) -> FloatArray:
        """Return d logpdf / d residual on the support; a subgradient at kinks."""
        ...


@runtime_checkable
class Mechanism(Protocol):
    """A calibration of noise to a sensitivity and a budget."""

    @property
    def own_randomness(self) -> str | None:
        """Why a seed cannot steer its draws, in words; None when they come from the randomness passed in."""
        ...

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> Noise:
        """Return the noise calibrated to a sensitivity and a budget; touches no data.

        Raises
        ------
        BudgetError
            For budgets that the mechanism cannot serve.
        """
        ...


# --------------------------------------------------------------------------------------------------
# Options and checks that mechanisms on whole numbers share


@frozen(kw_only=True)
class Exactness:
    """Base class with the options of a mechanism that draws exact noise, and textbook floats only if that is allowed.

    Parameters
    ----------
    exact : bool
        Draw whole-numbered noise by integer arithmetic.
    allow_unsafe : bool
        Allow `exact=False`, whose guarantee does not hold to the letter.

    Raises
    ------
    OptionError
        For `exact=False` without `allow_unsafe=True`; names the mechanism by its class.

    Examples
    --------
    >>> @frozen(kw_only=True)
    ... class Mine(Exactness):
    ...     pass
    >>> Mine().exact
    True
    >>> Mine(exact=False)
    Traceback (most recent call last):
    dpgm_core.errors.OptionError: mechanism 'mine' was asked for the unsafe exact = false: ...
    """

    own_randomness: ClassVar[None] = None

    exact: bool = option(
        True, help="draw whole-numbered noise by integer arithmetic; false: textbook floats, to reproduce papers only"
    )
    allow_unsafe: bool = option(False, help="allow noise whose guarantee does not hold to the letter (exact = false)")

    def __attrs_post_init__(self) -> None:
        name = type(self).__name__.lower()
        for field in ("exact", "allow_unsafe"):
            if not isinstance(getattr(self, field), bool):
                raise OptionError(f"option {field!r} of mechanism {name!r} must be true or false")
        if not self.exact and not self.allow_unsafe:
            raise OptionError(
                f"mechanism {name!r} was asked for the unsafe exact = false: floating-point noise leaks the counts; "
                "leave exact = true, or say allow_unsafe = true to reproduce a paper"
            )

    @staticmethod
    def caveat(noise: str) -> str:
        """Return why the guarantee of textbook noise does not hold to the letter, for `Noise.unsafe`."""
        return (
            f"textbook floating-point {noise} noise: the low bits of the sums can reveal the counts (Mironov 2012), "
            "so the stated budget does not hold to the letter"
        )


def residuals(values: FloatArray) -> FloatArray:
    """Return observed less expected counts as float64, for `logpdf` and `score`.

    Parameters
    ----------
    values : ndarray
        Of any shape, in records.

    Raises
    ------
    InferenceError
        For NaN.

    Examples
    --------
    >>> residuals(np.array([1, -2])).tolist()
    [1.0, -2.0]
    """
    values = np.asarray(values, dtype=np.float64)
    if np.isnan(values).any():
        raise InferenceError(
            "a residual is NaN; releases and expected tables hold numbers only, so check the potentials"
        )
    return values


# --------------------------------------------------------------------------------------------------
# Verification of the facts that a noise declares
#
# A noise states four facts, and a false one would break the guarantee: its cost, its event (the distribution that
# bounds it: of which kind, how wide), its variance and its support. Core computes the least cost again, from the
# event's kind and scale and from the sensitivity, which nobody types in:
#
# * Laplace kinds: epsilon = L1 / scale; rho = epsilon^2 / 2; mu^2 = (pi / 2) epsilon^2; an (epsilon', delta) as in
#   `laplace_delta`.
# * Gaussian kinds: rho = L2^2 / (2 scale^2); mu^2 as in `gaussian_mu_squared`, of textbook noise L2^2 / scale^2; delta
#   as in `discrete_delta` and `analytic_delta`; no pure epsilon at all.
# * truncated Laplace: delta as in `truncated_delta`; neither pure epsilon nor zCDP.
# * tabulated: core's own noise of the distribution that the event holds; see `dpgm_core.privacy.tabulated`.
# * Gaussian noises of several widths, drawn together: delta as in `together_delta`, or `normal_parts_delta` (textbook).
#
# These are the bounds that core can prove: a mechanism with a sharper analysis must claim that its noise costs more. A
# sensitivity of 0 (one-cell tables under replace-one) costs nothing; otherwise no cost is 0.
#
# A variance below the event's is a lie as well. Where moving a cell by 1 loses at most 1/t, neighbouring masses differ
# by a factor of at most e^(1/t), and no such distribution has less variance than the discrete Laplace distribution of
# scale t (a linear program says so in the tests). Where moving it by 1 has a Renyi divergence of order 2 of at most
# 1/s^2, the variance is at least 1 / (e^(1/s^2) - 1) (Chapman and Robbins 1951). And noise that ends somewhere betrays
# a count at its end, which only the truncated kind accounts for.
#
# These are declared facts. Whether the draws follow them is what the conformance kit and `tests/audit` test, by
# samples.

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
    if event.distribution is not None and type(noise) is not TabulatedNoise:
        raise BudgetError(
            "the noise of a tabulated distribution is drawn by core; leave `draw` out, and return a TabulatedNoise"
        )
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
    """Refuse, with BudgetError, a cost below what core can prove for the event at this sensitivity."""
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
        room = _ROOM if event.distribution is None else LAST_DIGITS
        covered = least is not None and least * room <= cost
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
    if type(event) is not PrivacyEvent:  # a subclass could state one event and then another
        raise IncompatiblePlugin(
            f"mechanism fault: its noise {type(noise).__name__} states no PrivacyEvent as its event, got "
            f"{type(event).__name__}; without it nobody can tell what the noise costs"
        )
    return event


def _least_budget(kind: BudgetKind, event: PrivacyEvent, sensitivity: Sensitivity) -> Budget | None:
    """Return the exact pure epsilon, rho or mu of the event; None where it has none."""
    scale = Fraction(event.scale)
    if event.distribution is not None:
        return tabulated_cost(event.distribution, sensitivity, kind)
    if event.kind == _TRUNCATED:
        return None
    if event.kind in _GAUSSIAN:
        if kind != "gdp":
            return None if kind == "pure" else Budget.zcdp(sensitivity.l2_squared / (2 * scale**2))
        if moved_cells(sensitivity) > MOVED_CELLS:
            return None
        exact = event.kind == "discrete-gaussian"
        price = gaussian_mu_squared(scale**2, sensitivity.l2_squared) if exact else sensitivity.l2_squared / scale**2
        return Budget("gdp", mu_squared=price)
    pure = Budget.pure(sensitivity.l1 / scale)
    if kind == "gdp":
        return pure.to_gdp()
    return pure if kind == "pure" else pure.to_zcdp()


def _least_delta(event: PrivacyEvent, sensitivity: Sensitivity, epsilon: Fraction) -> float:
    """Return the delta of the event at epsilon, for the worst shift, rounded up."""
    if event.kind in _GAUSSIAN:
        delta_of = discrete_delta if event.kind == "discrete-gaussian" else analytic_delta
        return float(delta_of(Fraction(event.scale) ** 2, sensitivity, epsilon))
    if event.distribution is not None:
        return tabulated_delta(event.distribution, sensitivity, epsilon)
    if event.bound is not None:
        return truncated_delta(Fraction(event.scale), event.bound, sensitivity, epsilon)
    return laplace_delta(Fraction(event.scale), sensitivity, epsilon)


def _least_variance(event: PrivacyEvent) -> float:
    """Return a lower bound on the variance of noise with this event, records**2; the module has the proof."""
    if event.kind in _GAUSSIAN:
        rate = 1 / event.scale**2 if event.scale > 0.05 else math.inf
        return 1 / math.expm1(rate) if rate < 700 else 0.0
    if event.distribution is not None:
        return tabulated_variance(event.distribution)
    rate = 1 / event.scale
    if event.bound is None:
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2
    values = np.arange(1.0, min(event.bound, _MAX_SUMMED_NUMBER) + 1)
    masses = np.exp(-values * rate)
    return 2 * float(values**2 @ masses) / (1 + 2 * float(masses.sum()))


# --------------------------------------------------------------------------------------------------
# Calibration, and the checks that a mechanism must pass before any charge

# Noise and counts are clamped to 2^61, so that their sum fits int64.
CLAMP = 2**61


@attrs.frozen(kw_only=True)
class Calibration:
    """One noise and what it was calibrated from, so that a file can restore it without an import path.

    Parameters
    ----------
    noise : Noise
        The calibrated noise.
    component : str or None
        The mechanism's registered name; None if it was passed as an unregistered object.
    options : mapping
        The mechanism's fields as plain values.
    sensitivity : Sensitivity
        What the noise was calibrated to.
    budget : Budget
        What the noise was calibrated to; its cost is at most that.
    """

    noise: Noise
    component: str | None
    options: Mapping[str, Any]
    sensitivity: Sensitivity
    budget: Budget


@frozen(kw_only=True)
class ScaledNoise:
    """The noise of a table that was multiplied by `factor` after it was drawn: for learning, never to be calibrated."""

    noise: Noise
    factor: float

    exact = False  # its values are multiples of the factor

    @property
    def cost(self) -> Budget:
        """That of the noise as it was drawn."""
        return self.noise.cost

    @property
    def event(self) -> PrivacyEvent:
        """Scale and sensitivity change together; truncated noise keeps its event, as a bound is whole."""
        event = self.noise.event
        if event.bound is not None:
            return event
        return attrs.evolve(event, scale=event.scale * self.factor, sensitivity=event.sensitivity * self.factor)

    @property
    def variance(self) -> float:
        """records**2, per cell."""
        return self.noise.variance * self.factor**2

    @property
    def dual(self) -> DualTerm | None:
        """psi(r / f) has the conjugate psi*(f u)."""
        term = self.noise.dual
        if term is None:
            return None
        return DualTerm(bound=term.bound / self.factor, curvature=term.curvature * self.factor**2)

    @property
    def unsafe(self) -> str | None:
        """That of the noise as it was drawn."""
        return self.noise.unsafe

    @property
    def support(self) -> tuple[float, float]:
        """That of the noise, scaled."""
        low, high = self.noise.support
        return low * self.factor, high * self.factor

    @property
    def log_concave(self) -> bool:
        """That of the noise."""
        return self.noise.log_concave

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Fresh noise, float64."""
        return self.factor * self.noise.draw(shape, randomness).astype(np.float64)

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """That of the noise at residual / factor, per record."""
        return self.noise.logpdf(residual / self.factor) - math.log(self.factor)

    def score(self, residual: FloatArray) -> FloatArray:
        """The derivative of `logpdf`."""
        return self.noise.score(residual / self.factor) / self.factor


class DerivedNoise:
    """Base of the noise of sums and means; subclasses define a variance and a draw. For learning, never for a release.

    Its density is the Gaussian of the same variance, to which sums of independent noise tend.
    """

    support = -math.inf, math.inf
    log_concave = True

    @property
    def cost(self) -> Budget:
        """Raises BudgetError: the releases were paid for, not what is made of them."""
        self._refuse()

    @property
    def event(self) -> PrivacyEvent:
        """Raises BudgetError, like `cost`."""
        self._refuse()

    @property
    def variance(self) -> float:
        """records**2."""
        raise NotImplementedError

    @property
    def dual(self) -> DualTerm | None:
        """The Gaussian's."""
        return DualTerm(bound=math.inf, curvature=self.variance)

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """The Gaussian's, per record."""
        return -(residual**2) / (2 * self.variance) - math.log(2 * math.pi * self.variance) / 2

    def score(self, residual: FloatArray) -> FloatArray:
        """The derivative of `logpdf`."""
        return -residual / self.variance

    def _refuse(self) -> NoReturn:
        raise BudgetError(
            f"{type(self).__name__} costs nothing of its own; ask the releases behind it, `NoisyTables.published`"
        )


def calibrate(mechanism: Mechanism, noise: Noise, sensitivity: Sensitivity, budget: Budget) -> Calibration:
    """Return the noise with what it was calibrated from.

    Raises BudgetError for a noise that costs more than the budget, or more than it claims (see `check_claims`), or
    cannot be drawn, and IncompatiblePlugin for one that a file could not restore.
    """
    _check_noise(noise, budget)
    try:
        check_claims(noise, sensitivity)
    except BudgetError as error:
        raise BudgetError(f"mechanism fault: {error}") from None
    trial = check_draw(noise.draw((2, 1), SystemRandomness()), (2, 1))  # thrown away
    if noise.exact and trial.dtype.kind == "f":
        raise BudgetError("mechanism fault: its noise says that it is exact, but draws floating-point numbers")
    registry = default_registry()
    component = registry.name_of("mechanism", mechanism)
    if component is not None:
        _check_restorable(noise, f"mechanism {component!r}")
    return Calibration(
        noise=noise, component=component, options=registry.options_of(mechanism), sensitivity=sensitivity, budget=budget
    )


def mechanism_name(mechanism: Mechanism) -> str:
    """Return the registered name of a mechanism, or that of its class."""
    return default_registry().name_of("mechanism", mechanism) or type(mechanism).__name__


def check_draw(noise: object, shape: tuple[int, ...]) -> Array:
    """Return the noise if it is a finite array of numbers of that shape; BudgetError otherwise."""
    if not isinstance(noise, np.ndarray) or noise.dtype.kind not in "if" or noise.shape != shape:
        got = f"{noise.dtype} of shape {noise.shape}" if isinstance(noise, np.ndarray) else type(noise).__name__
        raise BudgetError(f"mechanism fault: asked for an array of noise of shape {shape}, got {got}")
    if not np.all(np.isfinite(noise)):
        raise BudgetError("mechanism fault: its noise holds NaN or infinite values")
    return noise


def add_noise(counts: Array, drawn: object) -> Array:
    """Return counts (or sums of scores) plus noise of the same shape; values are clamped to what int64 holds."""
    noise = check_draw(drawn, counts.shape)
    if noise.dtype.kind == "i":
        # Values are clamped, never an error after the noise (docs/privacy.md).
        return np.clip(counts, -CLAMP, CLAMP) + np.clip(noise.astype(np.int64), -CLAMP, CLAMP)
    return counts + noise.astype(np.float64)


def noise_fields(noise: Noise) -> dict[str, Any]:
    """Return the fields of a noise as plain values, exact amounts as texts; its class's name if it has none."""
    if not attrs.has(type(noise)):
        return {"class": f"{type(noise).__module__}:{type(noise).__qualname__}", "variance": noise.variance}
    fields: dict[str, Any] = converter.unstructure(noise)
    return fields


def _check_noise(noise: Noise, budget: Budget) -> None:
    """Refuse, before any charge, a noise that lacks a member, costs more than the budget, or states senseless facts."""
    for member in vars(Noise):
        if not member.startswith("_") and not hasattr(noise, member):
            raise IncompatiblePlugin(f"mechanism fault: its noise {type(noise).__name__} has no {member}")
    # Exactly a Budget: a subclass could compare as it likes.
    if type(noise.cost) is not Budget or not noise.cost <= budget:
        raise BudgetError(f"mechanism fault: it was asked for {budget}, but its noise costs {noise.cost}")
    variance: object = noise.variance
    if not isinstance(variance, (int, float)) or not np.isfinite(variance) or variance <= 0:
        raise BudgetError(f"mechanism fault: its noise has variance {variance!r}; it must be finite and positive")
    support: object = noise.support
    ends = isinstance(support, tuple) and len(support) == 2 and all(isinstance(end, (int, float)) for end in support)
    if not ends or not noise.support[0] <= 0 <= noise.support[1]:
        raise BudgetError(f"mechanism fault: its noise has support {support!r}; it must be two ends around 0, records")


def _check_restorable(noise: Noise, what: str) -> None:
    """Refuse, with IncompatiblePlugin, a registered mechanism's noise that a file could not give back."""
    try:
        fields = json.loads(json.dumps(noise_fields(noise), allow_nan=False))
        restored: object = converter.structure(fields, type(noise))
    except Exception:
        restored = None
    if restored != noise:
        raise IncompatiblePlugin(
            f"{what}: its noise {type(noise).__qualname__} cannot be saved and restored; "
            "make it a frozen attrs class whose fields are numbers, texts, fractions or budgets"
        )
