"""Reading of releases from their own files and from model files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve

from dpgm_core._version import __version__
from dpgm_core.components.options import converter
from dpgm_core.components.registry import Registry
from dpgm_core.domain import Domain
from dpgm_core.errors import ModelFileError
from dpgm_core.files import Archive, read_archive
from dpgm_core.noise.contrasts import spread
from dpgm_core.noise.measurement import Measurement
from dpgm_core.privacy.amounts import whole
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.calibrations import calibration_of
from dpgm_core.releases.claims import (
    check_sensitivities,
    check_sum,
    is_round_cost_proven,
    read_contrasts,
    read_round,
    stated_unsafe,
)
from dpgm_core.releases.discovery import Discovery, read_discovery
from dpgm_core.releases.release import CONTRASTS_SCHEMA, SCHEMA, NoisyTables, member_names
from dpgm_core.releases.session_reading import read_session
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

__all__ = ["check_format", "load_release", "read_release", "read_structure"]


def load_release(path: str | Path, *, registry: Registry | None = None) -> NoisyTables:
    """Read a release from its own file or from the model file that carries it.

    Raises ModelFileError for anything damaged, hostile or too new, for a model that carries several (see
    `Model.releases`), and PluginError if the mechanism is missing.
    """

    def read(archive: Archive) -> NoisyTables:
        if member_names(2)[0] in archive.names():
            raise ModelFileError(f"{path} carries several releases; take one of load_model(path).releases")
        return read_release(archive, registry)

    return read_archive(path, "release file", read)


def read_release(archive: Archive, registry: Registry | None = None, number: int = 1) -> NoisyTables:
    """Read the `number`-th release inside an open archive."""
    facts, values = member_names(number)
    document = archive.document(facts)
    check_format(archive, document, "dpgm-release", SCHEMA)
    if document["schema"] == 1:
        document = _from_schema_1(document)
    if "session" in document:
        numbers = archive.array(values, whole("the count of its numbers", document["numbers"], least=0), (np.int64,))
        session = read_session(document, _read_terms(document["terms"]), numbers, registry)
        assert session.session is not None
        return evolve(
            session,
            modelled=_read_modelled(document.get("modelled"), session.structure),
            discovery=_read_discovery(document, session.session.workload.domain, session.terms),
        )
    structure = read_structure(document)
    terms = _read_terms(document["terms"])
    contrasts = read_contrasts(document, structure, terms)
    if contrasts and document["schema"] < CONTRASTS_SCHEMA:
        raise ModelFileError(f"{archive.path}: contrasts are of schema {CONTRASTS_SCHEMA}, not {document['schema']}")
    numbers = archive.array(values, len(structure.groups) if contrasts else structure.cells)
    if not np.all(np.isfinite(numbers)):
        raise ModelFileError(f"{archive.path}: the tables hold NaN or infinite values")
    cost = Budget.parse(document["cost"])
    calibrations = tuple(calibration_of(one, registry) for one in document["calibrations"])
    # several noises, each of a rho, and one (epsilon, delta): so they were drawn together
    drawn = document["round"] is None and cost.kind == "approx" and len(calibrations) > 1
    measurement = Measurement(
        structure=structure,
        calibrations=calibrations,
        of_group=tuple(converter.structure(document["calibration_of"], list[int])),
        together=cost if drawn and all(one.noise.cost.kind == "zcdp" for one in calibrations) else None,
        contrasts=contrasts,
    )
    total = converter.structure(document["total"], float)
    variance = converter.structure(document["total_variance"], float)
    of_group = measurement.of_group
    if len(of_group) != len(structure.groups) or not all(0 <= i < len(calibrations) for i in of_group):
        raise ModelFileError(f"{archive.path}: the noise does not fit the tables")
    if not (math.isfinite(total) and total >= 1 and math.isfinite(variance) and variance >= 0):
        raise ModelFileError(f"{archive.path}: the total is not a number of at least 1")
    if not calibrations:
        raise ModelFileError(f"{archive.path}: it has no noise")
    round = None if document["round"] is None else read_round(document["round"])
    if terms.contributions is not None and round is not None:
        raise ModelFileError(f"{archive.path}: normalised contributions go without rounds")
    if contrasts and round is not None:
        raise ModelFileError(f"{archive.path}: contrasts go without rounds")
    check_sensitivities(measurement, terms, None if round is None else round.clip)
    check_sum(measurement)
    proven = True
    if round is None:
        if measurement.cost != cost:
            raise ModelFileError(f"{archive.path}: the cost is not that of the noise")
    elif len(calibrations) > 1:
        raise ModelFileError(f"{archive.path}: rounds have one noise for all tables")
    else:
        proven = is_round_cost_proven(measurement, cost, round, terms)
    return NoisyTables(
        tables=spread(structure, numbers, total) if contrasts else Tables(structure, numbers),
        measurement=measurement,
        terms=terms,
        total=total,
        total_variance=variance,
        cost=cost,
        private=converter.structure(document["private"], bool),
        unsafe=stated_unsafe([one.noise for one in calibrations], numbers, _structured(document["unsafe"], str | None)),
        round=round,
        provenance=dict(document["provenance"]),
        cost_stated=not proven,
        holdout=converter.structure(document.get("check", False), bool),
        modelled=_read_modelled(document.get("modelled"), structure),
        discovery=_read_discovery(document, structure.domain, terms),
    )


def _read_discovery(document: Mapping[str, Any], domain: Domain, terms: Terms) -> Discovery | None:
    """Labels that were found before; refused, with ModelFileError, where the domain has others."""
    if "discovery" not in document:
        return None
    discovery = read_discovery(document["discovery"], terms)
    for one in discovery.columns:
        if one.column not in domain or domain[one.column].labels[: len(one.labels)] != one.labels:
            raise ModelFileError(f"its attribute {one.column!r} has other labels than were found; the file was edited")
    return discovery


def _read_modelled(plain: Any, measured: Structure) -> Structure | None:
    """What a release was made to learn; spelled out, and with room for every table. Raises ModelFileError."""
    if plain is None:
        return None
    if not isinstance(plain, Mapping) or not plain.keys() <= {"cliques", "tied"}:
        raise ModelFileError("the model that the release was made for must be given by its cliques")
    structure = Structure.from_dict(measured.domain, plain)
    for clique in measured.cliques:
        if structure.covering(clique) is None:
            raise ModelFileError(f"the model that the release was made for has no clique that contains {clique!r}")
    return structure


def check_format(archive: Archive, document: Mapping[str, Any], expected: str, schema: int) -> None:
    """Refuse other formats and newer schemas with what to do about it."""
    if document.get("format") != expected:
        raise ModelFileError(f"{archive.path} is not a {expected} file")
    actual = document.get("schema")
    if not isinstance(actual, int) or isinstance(actual, bool) or not 1 <= actual <= schema:
        raise ModelFileError(
            f"{archive.path} has schema {actual!r}, this dpgm {__version__} reads schemas up to {schema}; "
            f"it was written by dpgm {document.get('dpgm')!r}"
        )


def read_structure(document: Mapping[str, Any]) -> Structure:
    """Domain and structure of a document; it bounds their sizes itself, as labels and cliques are spelled out."""
    attributes = document["domain"]["attributes"]
    if any("size" in entry for entry in attributes.values()):
        raise ModelFileError("the domain must spell out its labels")
    if "graph" in document["structure"]:
        raise ModelFileError("the structure must spell out its cliques")
    return Structure.from_dict(Domain.from_dict(document["domain"]), document["structure"])


def _read_terms(plain: Any) -> Terms:
    keys = {"neighbours", "unit", "person", "rows_per_person", "contributions", "total"}
    if not isinstance(plain, dict) or set(plain) != keys or not isinstance(plain["unit"], str):
        raise ModelFileError(f"its terms must state {', '.join(sorted(keys))}")
    return Terms.from_dict(plain)


def _from_schema_1(document: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a file of schema 1, in the places where schema 2 has them."""
    provenance = dict(document["provenance"])
    policy, total, round = document["total_policy"], document["total"], provenance.pop("rounds", None)
    if policy not in ("estimated", "public", "declared"):
        raise ModelFileError(f"there is no total policy {policy!r}")
    if round is not None:
        least = {"round", "rounds", "sampling_rate"}
        if not isinstance(round, Mapping) or set(round) not in (least, least | {"clip_norm", "grid"}):
            raise ModelFileError(
                "its rounds must state round, rounds, sampling_rate, and clip_norm with grid if clipped"
            )
        round = {
            "number": round["round"],
            "of": round["rounds"],
            "sampling_rate": round["sampling_rate"],
            "clip_norm": round.get("clip_norm"),
            "grid": round.get("grid"),
        }
    if policy == "declared":  # rounds state the total of a subsample
        rate = Fraction(1) if round is None else read_round(round).sampling_rate
        policy = float(converter.structure(total, float)) / float(rate)
    return {
        **document,
        "terms": {
            "neighbours": document["neighbours"],
            "unit": document["unit"],
            "person": provenance.pop("person_key", None),
            "rows_per_person": document["rows_per_person"],
            # files of the first versions do not have the key
            "contributions": document.get("contributions"),
            "total": policy,
        },
        "round": round,
        "provenance": provenance,
    }


def _structured(value: Any, hint: Any) -> Any:
    return converter.structure(value, hint)
