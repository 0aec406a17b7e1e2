"""Reading a release: from its own file, or from the model file that carries it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpgm_core._version import __version__
from dpgm_core.components.options import converter
from dpgm_core.domain import Domain
from dpgm_core.errors import ModelFileError
from dpgm_core.files import Archive, reading
from dpgm_core.noise.contract import Noise
from dpgm_core.noise.measurement import Calibration, total_cost
from dpgm_core.privacy.amounts import whole
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.contributions import Contributions
from dpgm_core.privacy.sensitivity import Neighbours, Sensitivity
from dpgm_core.privacy.terms import TotalPolicy
from dpgm_core.releases.claims import (
    check_noise_facts,
    check_sensitivities,
    is_round_cost_proven,
    read_rounds,
    stated_unsafe,
)
from dpgm_core.releases.release import SCHEMA, NoisyTables
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

if TYPE_CHECKING:
    from dpgm_core.components.registry import Registry

__all__ = ["check_format", "load_release", "read_release", "read_structure"]


def load_release(path: str | Path, *, registry: Registry | None = None) -> NoisyTables:
    """Read a release from its own file or from the model file that carries it.

    Raises ModelFileError for anything damaged, hostile or too new, and PluginError if the mechanism is missing.
    """
    return reading(path, "release file", lambda archive: read_release(archive, registry))


def read_release(archive: Archive, registry: Registry | None = None) -> NoisyTables:
    """Read the release inside an open archive."""
    document = archive.document("release.json")
    check_format(archive, document, "dpgm-release", SCHEMA)
    structure = read_structure(document)
    tables = Tables(structure, archive.array("tables.npz", structure.cells))
    if not np.all(np.isfinite(tables.values)):
        raise ModelFileError(f"{archive.path}: the tables hold NaN or infinite values")
    calibrations = tuple(_read_calibration(one, registry) for one in document["calibrations"])
    calibration_of = tuple(converter.structure(document["calibration_of"], list[int]))
    total = converter.structure(document["total"], float)
    variance = converter.structure(document["total_variance"], float)
    if len(calibration_of) != len(structure.groups) or not all(0 <= i < len(calibrations) for i in calibration_of):
        raise ModelFileError(f"{archive.path}: the noise does not fit the tables")
    if not (math.isfinite(total) and total >= 1 and math.isfinite(variance) and variance >= 0):
        raise ModelFileError(f"{archive.path}: the total is not a number of at least 1")
    if not calibrations:
        raise ModelFileError(f"{archive.path}: it has no noise")
    neighbours = Neighbours.of(document["neighbours"])
    rows = whole("rows_per_person", document["rows_per_person"], least=1)
    cost, terms = Budget.parse(document["cost"]), document["provenance"].get("rounds")
    number, rate, clip = (1, Fraction(1), None) if terms is None else read_rounds(terms, neighbours)
    # files of older versions do not have the key
    weighted = document.get("contributions")
    contributions = None if weighted is None else Contributions.parse(weighted)
    if contributions is not None and (terms is not None or document["total_policy"] != "estimated"):
        raise ModelFileError(f"{archive.path}: normalised contributions go with an estimated total and without rounds")
    check_sensitivities(calibrations, calibration_of, structure, neighbours, rows, clip, contributions)
    proven = True
    if terms is None:
        if total_cost(calibrations) != cost:
            raise ModelFileError(f"{archive.path}: the cost is not that of the noise")
    elif len(calibrations) > 1:
        raise ModelFileError(f"{archive.path}: rounds have one noise for all tables")
    else:
        proven = is_round_cost_proven(calibrations[0], cost, rounds=number, rate=rate, neighbours=neighbours)
    return NoisyTables(
        tables=tables,
        calibrations=calibrations,
        calibration_of=calibration_of,
        neighbours=neighbours,
        unit=converter.structure(document["unit"], str),
        rows_per_person=rows,
        total=total,
        total_policy=_checked(document["total_policy"], TotalPolicy),
        total_variance=variance,
        cost=cost,
        private=converter.structure(document["private"], bool),
        unsafe=stated_unsafe(
            [one.noise for one in calibrations], tables.values, _checked(document["unsafe"], str | None)
        ),
        provenance=dict(document["provenance"]),
        cost_stated=not proven,
        contributions=contributions,
    )


def check_format(archive: Archive, document: Mapping[str, Any], wanted: str, schema: int) -> None:
    """Refuse other formats and newer schemas with what to do about it."""
    if document.get("format") != wanted:
        raise ModelFileError(f"{archive.path} is not a {wanted} file")
    if document.get("schema") != schema:
        raise ModelFileError(
            f"{archive.path} has schema {document.get('schema')!r}, this dpgm {__version__} reads schema {schema}; "
            f"it was written by dpgm {document.get('dpgm')!r}"
        )


def read_structure(document: Mapping[str, Any]) -> Structure:
    """Domain and structure of a document; sizes are bounded by the document itself, as labels are spelled out."""
    attributes = document["domain"]["attributes"]
    if any("size" in entry for entry in attributes.values()):
        raise ModelFileError("the domain must spell out its labels")
    return Structure.from_dict(Domain.from_dict(document["domain"]), document["structure"])


def _read_calibration(entry: Mapping[str, Any], registry: Registry | None) -> Calibration:
    from dpgm_core.components.registry import default_registry

    component = _checked(entry["component"], str | None)
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


def _checked(value: Any, hint: Any) -> Any:
    return converter.structure(value, hint)
