"""Model files and stamps of synthetic tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dpgm_core._util.arrays import Array
from dpgm_core._util.files import Archive, read_archive
from dpgm_core._util.locations import open_regular
from dpgm_core.components.options import converter
from dpgm_core.components.registry import Registry
from dpgm_core.errors import ModelFileError
from dpgm_core.models.intervals import MAX_REPLICATES
from dpgm_core.models.latent import SCHEMA
from dpgm_core.models.model import Model
from dpgm_core.privacy.budget import Budget
from dpgm_core.releases.release import member_names
from dpgm_core.releases.release_file import check_format, read_release, read_structure
from dpgm_core.structure.tables import Tables

__all__ = ["load_model", "read_stamp", "sidecar_path"]


# --- Model files ----------------------------------------------------------------------------------

#: A file that claims more was not written by dpgm.
_MAX_RELEASES = 10_000


def load_model(path: str | Path, *, registry: Registry | None = None) -> Model:
    """Read a `.dpgm` model file.

    Parameters
    ----------
    path : str or Path
    registry : Registry, optional
        Of components, by default the installed plugins.

    Raises
    ------
    ModelFileError
        The file is damaged, hostile, too new, or not a model.
    PluginError
        The mechanism of a release needs a plugin that is not installed.
    """

    def read(archive: Archive) -> Model:
        if "model.json" not in archive.names() and "release.json" in archive.names():
            raise ModelFileError(f"{path} is a release, not a model; learn one from it with: dpgm learn {path}")
        document = archive.document("model.json")
        check_format(archive, document, "dpgm-model", SCHEMA)
        structure = read_structure(document)
        potentials = Tables(structure, archive.array("potentials.npz", structure.cells))
        has_count = document["schema"] > 1
        count = document["releases"] if has_count else int("release.json" in archive.names())
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= _MAX_RELEASES:
            raise ModelFileError(f"the number of releases must be from 0 to {_MAX_RELEASES}, got {count!r}")
        stated = {name for number in range(1, count + 1) for name in member_names(number)}
        if any(name.startswith(("release", "tables")) for name in archive.names() - stated):
            raise ModelFileError(f"{path} carries more releases than the {count} it states")
        releases = [read_release(archive, registry, number) for number in range(1, count + 1)]
        if not releases and document.get("private") is not None:
            raise ModelFileError(f"{path} claims a privacy stamp but carries no release")
        delta = document["conversion_delta"] if has_count else None
        model = Model(
            structure,
            potentials,
            releases=releases,
            provenance=_provenance(document["provenance"]),
            replicates=_replicates(archive, document.get("replicates", 0), structure.cells),
            conversion_delta=None if delta is None else converter.structure(delta, Fraction),
            latent=_latent(document.get("latent", [])) if document["schema"] > 2 else (),
        )
        if model.pooled:
            model.release  # noqa: B018 - releases that do not pool were not learned from so
        model.holdout  # noqa: B018 - holdouts that do not pool are refused too
        if has_count and not _covers(document["cost"], model):
            raise ModelFileError(f"{path}: the cost is not that of its releases; the file was edited")
        return model

    return read_archive(path, "model file", read)


def _covers(stated: object, model: Model) -> bool:
    """Whether a file states the cost of its releases, or a larger epsilon at the same delta where they were converted.

    Files written under a conversion that proved less remain true.
    """
    cost = model.cost
    if cost is None or len({one.cost.kind for one in model.releases}) == 1:
        return stated == (None if cost is None else cost.to_dict())
    budget = Budget.parse(stated)
    return budget.kind == "approx" and budget.delta == cost.delta and budget.epsilon >= cost.epsilon


def _replicates(archive: Archive, count: object, cells: int) -> Array | None:
    if count == 0 and not isinstance(count, bool):
        return None
    if not isinstance(count, int) or isinstance(count, bool) or not 2 <= count <= MAX_REPLICATES:
        raise ModelFileError(f"the number of replicates must be 0 or from 2 to {MAX_REPLICATES}, got {count!r}")
    return archive.array("replicates.npz", count * cells, (np.float32,)).reshape(count, cells)


def _latent(names: object) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelFileError("the latent classes must be a list of names")
    return tuple(names)


def _provenance(facts: object) -> Mapping[str, Any]:
    notes = facts.get("notes", []) if isinstance(facts, dict) else None
    if (
        not isinstance(facts, dict)
        or not isinstance(facts.get("converged", True), bool)
        or not isinstance(facts.get("pooled", False), bool)
        or not isinstance(notes, list)
        or not all(isinstance(note, str) for note in notes)
    ):
        raise ModelFileError("the provenance is not one that dpgm writes")
    return facts


# --- Stamps of synthetic records ------------------------------------------------------------------

_MAX_STAMP_BYTES = 2**20


def sidecar_path(path: Path) -> Path:
    """Return the path of the stamp of a CSV file, which has no metadata: NAME.csv.dpgm.json."""
    return path.with_name(f"{path.name}.dpgm.json")


def read_stamp(path: Path) -> dict[str, Any] | None:
    """Return the stamp in a JSON file, or in the metadata `dpgm` of a Parquet or Arrow file; None where there is none.

    Nothing proves it: plain values, of which only `dpgm` and `guarantee` are known to exist.
    """
    try:
        facts = json.loads(_text(path))
    except (ValueError, RecursionError):
        return None
    return facts if isinstance(facts, dict) and {"dpgm", "guarantee"} <= set(facts) else None


def _text(path: Path) -> bytes:
    """Return the bytes that may be a stamp; empty for other files."""
    import pyarrow
    import pyarrow.ipc
    import pyarrow.parquet

    try:
        with open_regular(path) as file:
            if path.suffix == ".json":
                return file.read(_MAX_STAMP_BYTES)
            if path.suffix == ".parquet":
                schema = pyarrow.parquet.read_schema(file)
            else:
                with pyarrow.ipc.open_file(file) as reader:
                    schema = reader.schema
        return bytes((schema.metadata or {}).get(b"dpgm", b""))
    except (OSError, pyarrow.ArrowException):
        return b""
