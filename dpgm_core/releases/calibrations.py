"""Calibrations as values of a file: a noise and what it was calibrated from, without an import path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from dpgm_core._util.files import plain
from dpgm_core.components.options import converter
from dpgm_core.components.registry import Registry, default_registry
from dpgm_core.errors import ModelFileError
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.mechanism import Calibration, Noise, noise_fields
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.tabulated import TabulatedNoise

__all__ = ["calibration_of", "calibration_to", "check_noise_facts"]


def calibration_to(one: Calibration) -> dict[str, Any]:
    """As JSON values; `calibration_of` reads them back where the mechanism is registered."""
    return {
        "component": one.component,
        "options": plain(one.options),
        "sensitivity": attrs.asdict(one.sensitivity),
        "budget": one.budget.to_dict(),
        "noise": noise_fields(one.noise) if _is_restorable(one) else plain(noise_fields(one.noise)),
        **({"tabulated": True} if isinstance(one.noise, TabulatedNoise) else {}),
    }


def _is_restorable(one: Calibration) -> bool:
    return one.component is not None or isinstance(one.noise, TabulatedNoise)


def calibration_of(entry: Mapping[str, Any], registry: Registry | None = None) -> Calibration:
    """The calibration that `calibration_to` wrote. Raises ModelFileError and PluginError."""
    component = entry["component"]
    if not isinstance(component, str | None):
        raise ModelFileError("the mechanism of its noise must be named by a text")
    if entry.get("tabulated", False) is True:  # all of it is in the file, so no plugin is needed
        tabulated = converter.structure(entry["noise"], TabulatedNoise)
        return Calibration(
            noise=tabulated,
            component=component,
            options=dict(entry["options"]),
            sensitivity=converter.structure(entry["sensitivity"], Sensitivity),
            budget=Budget.parse(entry["budget"]),
        )
    if component is None:
        raise ModelFileError(
            "its noise was drawn by a mechanism object that is not registered, so it cannot be restored; "
            "register the mechanism (see docs/write-a-plugin.md)"
        )
    sensitivity = converter.structure(entry["sensitivity"], Sensitivity)
    budget = Budget.parse(entry["budget"])
    mechanism = (registry or default_registry()).make("mechanism", {**entry["options"], "name": component})
    # The class comes from the installed mechanism, the numbers from the file: they are what was drawn.
    fresh = mechanism.noise(sensitivity, budget)
    noise: Noise = converter.structure(entry["noise"], type(fresh))
    check_noise_facts(noise, fresh)
    return Calibration(
        noise=noise, component=component, options=dict(entry["options"]), sensitivity=sensitivity, budget=budget
    )


def check_noise_facts(noise: Noise, fresh: Noise) -> None:
    """Refuse a noise that differs from a `fresh` one of its mechanism in what it was calibrated to, or how safe it is.

    fresh: what the mechanism gives for the calibration's sensitivity and budget.
    """
    facts, expected = _calibrated_to(noise), _calibrated_to(fresh)
    for name in expected:
        if facts.get(name) != expected[name]:
            raise ModelFileError(f"the {name} of its noise is not that of its calibration; the file was edited")
    if noise.event.sensitivity != fresh.event.sensitivity:
        raise ModelFileError("its noise was calibrated to another sensitivity than the file states; it was edited")


def _calibrated_to(noise: Noise) -> dict[str, object]:
    """What a noise says of itself, and its fields that are sensitivities or whole: widths may come out otherwise."""
    fields = attrs.asdict(noise, recurse=False)  # type: ignore[arg-type]
    stated = {"exact": noise.exact, "unsafe": noise.unsafe, "log_concave": noise.log_concave}
    return stated | {name: value for name, value in fields.items() if isinstance(value, (int, Sensitivity))}
