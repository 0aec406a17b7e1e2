"""What both mechanisms share: asking OpenDP what a noise costs, drawing from it, and its refusals.

OpenDP 0.16 accepts scale 0 and then releases its input in the clear; only the privacy map says so, by being infinite.
Everything here asks the map first, and takes nothing from it that is not finite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import opendp.prelude as dp
from opendp.mod import OpenDPException

from dpgm_core import Array, Budget, BudgetError, FloatArray, InferenceError, OptionError, Randomness, Sensitivity

__all__ = [
    "LEAST_VARIANCE",
    "MOST",
    "check_request",
    "draw",
    "exactly",
    "numbers",
    "rounded_up",
    "smallest",
    "unit",
    "within",
]

# Declared by the mechanisms: no stream of random words can be given to them.
OWN_RANDOMNESS = "OpenDP draws its own randomness and takes no seed"
# Noise and the norms it hides stay this far inside 64 bits, where OpenDP saturates.
MOST = 1 << 31
# A positive floor for variances that underflow, so that weights 1/variance and their sums stay finite.
LEAST_VARIANCE = 2.0**-1000
# Doublings of one unit in the last place until a scale counts as hopeless: OpenDP's maps round up by a few units.
_NUDGES = 20

dp.enable_features("contrib")  # for the whole process: OpenDP has no narrower switch


def exactly(what: str, claim: Callable[[], float]) -> Fraction:
    """What OpenDP claims as an exact number. Raises BudgetError unless it answers, with a finite and positive one.

    >>> exactly("map", lambda: 0.5)
    Fraction(1, 2)
    """
    try:
        loss = claim()
    except OpenDPException as error:
        raise BudgetError(f"OpenDP's {what} gives no bound ({error.variant}); use another budget") from None
    if not isinstance(loss, float) or not math.isfinite(loss) or loss <= 0:
        raise BudgetError(f"OpenDP's {what} is {loss!r}: it bounds nothing; use a larger noise")
    return Fraction(loss)


def within(claim: Callable[[], Budget], asked: Budget) -> bool:
    """Whether OpenDP claims a cost, and one within what was asked."""
    try:
        return claim() <= asked
    except BudgetError:
        return False


def smallest(scale: float, fits: Callable[[float], bool], asked: Budget) -> float:
    """The first double from `scale` on that fits, in steps that double. Raises BudgetError if none is near."""
    for step in range(_NUDGES):
        if fits(scale):
            return scale
        scale += (1 << step) * math.ulp(scale)
    raise BudgetError(f"OpenDP's privacy map does not reach {asked} at any scale near {scale:.6g} records")


def draw(measurement: Any, shape: tuple[int, ...], randomness: Randomness) -> Array:
    """Fresh noise: what the measurement makes of zeros, int64. Raises OptionError for seeded randomness."""
    if not randomness.private:
        raise OptionError(
            f"{OWN_RANDOMNESS}, so {randomness!r} cannot repeat its noise; "
            "for simulations use the mechanisms of dpgm-laplace and dpgm-gaussian"
        )
    return np.array(measurement([0] * math.prod(shape)), dtype=np.int64).reshape(shape)


def check_request(name: str, sensitivity: Sensitivity, budget: Budget, kinds: tuple[str, ...], instead: str) -> None:
    """Refuse what is no sensitivity or no positive budget of these kinds. Raises BudgetError."""
    if not isinstance(sensitivity, Sensitivity) or not isinstance(budget, Budget):
        raise BudgetError(f"mechanism {name!r} is calibrated from a Sensitivity and a Budget, in this order")
    if budget.kind not in kinds:
        raise BudgetError(f"mechanism {name!r} was asked for {budget}, which it cannot serve; {instead}")
    empty = not (budget.epsilon and budget.delta) if budget.kind == "approx" else budget.is_zero
    if empty:
        raise BudgetError(f"mechanism {name!r} was asked for {budget}; nothing is left to buy noise with")
    if max(sensitivity.l1, sensitivity.l2_squared) > MOST:
        raise BudgetError(f"{sensitivity} is too large for 64-bit counts; use fewer cliques or rows per person")


def rounded_up(value: Fraction) -> float:
    """The nearest double that is not below.

    >>> rounded_up(Fraction(1, 10)) >= Fraction(1, 10)
    True
    """
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def unit(sensitivity: Sensitivity) -> Sensitivity:
    """The sensitivity itself, or that of one count where nobody can change a cell."""
    return sensitivity if sensitivity.l1 else Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)


def numbers(residual: FloatArray) -> FloatArray:
    """Residuals as doubles. Raises InferenceError for NaN."""
    residual = np.asarray(residual, dtype=np.float64)
    if np.isnan(residual).any():
        raise InferenceError("a residual is NaN; releases and expected tables hold numbers only, check the potentials")
    return residual
