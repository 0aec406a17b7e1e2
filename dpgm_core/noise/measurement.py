"""A structure with the calibrated noise of each of its tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dpgm_core.arrays import Array
from dpgm_core.components.options import converter
from dpgm_core.errors import BudgetError, IncompatiblePlugin, StructureError
from dpgm_core.noise.contract import Noise
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.randomness import SystemRandomness
from dpgm_core.structure import Clique, Structure

__all__ = [
    "CLAMP",
    "Calibration",
    "add_noise",
    "check_budget",
    "check_noise",
    "check_restorable",
    "check_sample",
    "measured_structure",
    "noise_fields",
    "single_group",
    "total_cost",
]

# Noise and counts are both kept below 2^61, so their sum fits int64 with room.
CLAMP = 2**61


def measured_structure(structure: Structure, cliques: Iterable[Clique]) -> Structure:
    """The structure of the tables that a release measures: named groups stay whole, others must be contained.

    >>> from dpgm_core.domain import Domain
    >>> model = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> measured_structure(model, [("a",)]).cliques
    (('a',),)
    """
    plain: list[Clique] = []
    tied: dict[int, tuple[Clique, ...]] = {}
    for raw in cliques:
        clique = (raw,) if isinstance(raw, str) else tuple(raw)
        covering = structure.covering(clique)
        if covering is None:
            raise StructureError(f"cannot measure {clique!r}: no clique of the model contains it")
        group = structure.groups[structure.find(covering)[0]]
        if len(group) > 1:
            if frozenset(clique) not in map(frozenset, group):
                raise StructureError(
                    f"cannot measure {clique!r}: it lies inside a tied group; name a clique of the group"
                )
            tied[structure.find(covering)[0]] = group
        else:
            plain.append(clique)
    return Structure(structure.domain, plain, tied=tied.values())


def single_group(structure: Structure, number: int) -> Structure:
    """The structure with only one of the groups."""
    group = structure.groups[number]
    return Structure(structure.domain, group if len(group) == 1 else (), tied=(group,) if len(group) > 1 else ())


def check_noise(noise: Noise, budget: Budget) -> None:
    """Refuse a noise that costs more than was asked, has no finite variance or cannot be drawn, before any charge."""
    for member in vars(Noise):
        if not member.startswith("_") and not hasattr(noise, member):
            raise IncompatiblePlugin(f"mechanism fault: its noise {type(noise).__name__} has no {member}")
    if not isinstance(noise.cost, Budget) or not noise.cost <= budget:
        raise BudgetError(f"mechanism fault: it was asked for {budget}, but its noise costs {noise.cost}")
    variance: object = noise.variance
    if not isinstance(variance, (int, float)) or not np.isfinite(variance) or variance <= 0:
        raise BudgetError(f"mechanism fault: its noise has variance {variance!r}; it must be finite and positive")
    support: object = noise.support
    ends = isinstance(support, tuple) and len(support) == 2 and all(isinstance(end, (int, float)) for end in support)
    if not ends or not noise.support[0] <= 0 <= noise.support[1]:
        raise BudgetError(f"mechanism fault: its noise has support {support!r}; it must be two ends around 0, records")
    check_sample(noise.sample((2, 1), SystemRandomness()), (2, 1))  # a trial, thrown away


def check_sample(noise: object, shape: tuple[int, ...]) -> Array:
    """The noise, if it is a finite array of numbers of that shape; BudgetError otherwise."""
    if not isinstance(noise, np.ndarray) or noise.dtype.kind not in "if" or noise.shape != shape:
        got = f"{noise.dtype} of shape {noise.shape}" if isinstance(noise, np.ndarray) else type(noise).__name__
        raise BudgetError(f"mechanism fault: asked for an array of noise of shape {shape}, got {got}")
    if not np.all(np.isfinite(noise)):
        raise BudgetError("mechanism fault: its noise holds NaN or infinite values")
    return noise


def check_budget(budget: object) -> None:
    """Refuse what is no Budget."""
    if not isinstance(budget, Budget):
        raise BudgetError(f"budget must be a Budget such as Budget.pure(1), got {budget!r}")


def add_noise(counts: Array, sampled: object) -> Array:
    """Counts (or sums of scores) plus noise of the same shape; values are clamped to what int64 holds."""
    noise = check_sample(sampled, counts.shape)
    if noise.dtype.kind == "i":
        # Values are clamped, never an error after the noise (DESIGN section 4).
        return np.clip(counts, -CLAMP, CLAMP) + np.clip(noise.astype(np.int64), -CLAMP, CLAMP)
    return counts + noise.astype(np.float64)


@attrs.frozen(kw_only=True)
class Calibration:
    """One noise and what it was calibrated from, so that a file can restore it without an import path.

    component: the mechanism's registered name (None if it was passed as an unregistered object). options: its
    fields as plain values.
    """

    noise: Noise
    component: str | None
    options: Mapping[str, Any]
    sensitivity: Sensitivity
    budget: Budget


def noise_fields(noise: Noise) -> dict[str, Any]:
    """The fields of a noise as plain values, exact amounts as texts; its class's name if it is no attrs class."""
    if not attrs.has(type(noise)):
        return {"class": f"{type(noise).__module__}:{type(noise).__qualname__}", "variance": noise.variance}
    fields: dict[str, Any] = converter.unstructure(noise)
    return fields


def check_restorable(noise: Noise, what: str) -> None:
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


def total_cost(calibrations: Sequence[Calibration]) -> Budget:
    """What a release with these noises costs: their sum."""
    cost = calibrations[0].noise.cost
    for one in calibrations[1:]:
        cost = cost + one.noise.cost
    return cost
