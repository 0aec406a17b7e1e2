"""A calibrated noise with its origin, and the checks that a mechanism must pass before any charge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from dpgm_core.arrays import Array
from dpgm_core.components.options import converter
from dpgm_core.components.registry import default_registry
from dpgm_core.errors import BudgetError, IncompatiblePlugin
from dpgm_core.noise.claims import check_claims
from dpgm_core.noise.contract import Mechanism, Noise
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.randomness import SystemRandomness

__all__ = ["Calibration", "add_noise", "calibrated", "check_draw", "noise_fields"]

# Noise and counts are both kept below 2^61, so their sum fits int64 with room.
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


def calibrated(mechanism: Mechanism, noise: Noise, sensitivity: Sensitivity, budget: Budget) -> Calibration:
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
        noise=noise,
        component=component,
        options=registry.options_of(mechanism),
        sensitivity=sensitivity,
        budget=budget,
    )


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
        # Values are clamped, never an error after the noise (DESIGN section 4).
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
    # Exactly a Budget: a child of it could compare as it likes.
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
