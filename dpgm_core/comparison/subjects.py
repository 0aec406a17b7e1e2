"""Subjects of a comparison: reading a file, and the facts of each kind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from attrs import frozen

from dpgm_core.comparison.values import Kind, Subject
from dpgm_core.errors import BudgetError, DataError, InferenceError, TooLarge
from dpgm_core.files import read_archive
from dpgm_core.models.model import Model
from dpgm_core.models.reading import load_model
from dpgm_core.models.stamped import read_stamp, sidecar_path
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import flaws
from dpgm_core.releases.coarse import cells_as_drawn
from dpgm_core.releases.reading import load_release
from dpgm_core.releases.release import NoisyTables, total_cost
from dpgm_core.releases.stamps import UNKNOWN, caveats_of, stamp_of
from dpgm_core.structure import Structure

__all__ = ["Content", "Synthetic", "kind_of", "read_subject", "structure_of", "subject_of"]

_RECORD_SUFFIXES = (".csv", ".csv.gz", ".parquet", ".arrow")
_STAMP_KEYS = ("private", "unsafe", "conditions", "guarantee")


@frozen(kw_only=True)
class Synthetic:
    """A file of records that its stamp says were drawn from a model; the stamp is its author's word.

    dialect: of a CSV file, its delimiter and encoding as options of the csv source; None takes what the stamp says, or
    else what the first line looks like.
    """

    path: Path
    stamp: Mapping[str, Any]
    dialect: Mapping[str, Any] | None = None


Content: TypeAlias = Model | NoisyTables | Synthetic


def read_subject(path: str | Path) -> Content:
    """A model, a release, or records that carry the stamp of `dpgm sample`. Nothing else of a table of records is read.

    Raises DataError for records without that stamp, which are records of people as far as anybody knows, and for
    completed rows; ModelFileError for files that are none of these, damaged or too new.
    """
    path = Path(path)
    if path.name.lower().endswith(_RECORD_SUFFIXES):
        return _synthetic(path)
    if read_archive(path, "model or release file", lambda archive: "model.json" in archive.names()):
        return load_model(path)
    return load_release(path)


def _synthetic(path: Path) -> Synthetic:
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    text = path.name.lower().endswith((".csv", ".csv.gz"))
    stamp = read_stamp(sidecar_path(path) if text else path)
    where = f"{sidecar_path(path).name} beside it" if text else "its metadata"
    if stamp is not None and stamp.get("completed"):
        raise DataError(
            f"{path} holds rows of people that dpgm complete filled in, by {where}; it is not a synthetic file"
        )
    if stamp is None or stamp.get("synthetic") is not True or not isinstance(stamp["guarantee"], str):
        raise DataError(
            f"{path} has no stamp of dpgm sample ({where}), so it is records of people as far as anybody knows; "
            f"compare a model with records by: dpgm compare MODEL --data {path} --allow-non-private"
        )
    return Synthetic(path=path, stamp=stamp)


def kind_of(content: Content) -> Kind:
    """Its kind, in a word."""
    return "model" if isinstance(content, Model) else "release" if isinstance(content, NoisyTables) else "synthetic"


def structure_of(content: Content) -> Structure | None:
    """The structure that it has tables over; synthetic records have none."""
    return None if isinstance(content, Synthetic) else content.structure


def subject_of(name: str, content: Content) -> Subject:
    """Its facts and its stamp."""
    if isinstance(content, Model):
        facts, stamp = _model_facts(content), stamp_of(content.releases, content.guarantee())
        caveats, unmeasured = caveats_of(content.releases), content.unmeasured
    elif isinstance(content, NoisyTables):
        facts, stamp = _release_facts(content), stamp_of([content], content.guarantee())
        caveats, unmeasured = caveats_of([content]), content.structure.untold
    else:
        facts = _stamped_facts(content.stamp)
        stamp = {key: content.stamp.get(key) for key in _STAMP_KEYS}
        caveats, unmeasured = _stamped_caveats(content.stamp), ()
    return Subject(
        name=name, kind=kind_of(content), facts=facts, stamp=stamp, caveats=caveats, unmeasured=tuple(unmeasured)
    )


def _facts(**known: Any) -> dict[str, Any]:
    """The same names for every kind, in the order in which they are shown."""
    names = ("cost", "neighbours", "unit", "records", "attributes", "tables", "cells", "noise", "replicates")
    return {name: known.get(name) for name in (*names, "learner", "converged", "entropy")}


def _model_facts(model: Model) -> dict[str, Any]:
    made = _release_facts(model.release) if model.release is not None else {}
    noise = [number for one in model.learned for number in _deviations(one)]
    return _facts(
        **{key: made.get(key) for key in ("neighbours", "unit", "records")},
        cost=None if model.cost is None else str(model.cost),
        attributes=len(model.domain),
        tables=len(model.structure.groups),
        cells=model.structure.cells,
        noise=[min(noise), max(noise)] if noise else None,
        replicates=len(model.replicates),
        learner=_maker(model.provenance),
        converged=model.converged,
        entropy=_entropy(model),
    )


def _release_facts(release: NoisyTables) -> dict[str, Any]:
    noise = _deviations(release)
    return _facts(
        cost=str(total_cost([release])),
        neighbours=release.neighbours.value,
        unit=release.unit,
        records=release.total,
        attributes=len(release.structure.domain),
        tables=len(release.structure.groups),
        cells=release.structure.cells,
        noise=[min(noise), max(noise)],
    )


def _deviations(release: NoisyTables) -> list[float]:
    """The standard deviation of each table's noise, records per cell as it was measured."""
    return [math.sqrt(variance) for _, variance in cells_as_drawn(release)]


def _entropy(model: Model) -> float | None:
    """Nats, where an exact engine has room for it."""
    try:
        return model.entropy() if model.engine.exact else None
    except (TooLarge, InferenceError):
        return None


def _stamped_facts(stamp: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts from a stamp, whose values may be anything."""
    try:
        cost = str(Budget.parse(stamp.get("cost")))
    except (BudgetError, TypeError, ValueError):
        cost = None
    return _facts(cost=cost, learner=_maker(stamp.get("provenance")))


def _stamped_caveats(stamp: Mapping[str, Any]) -> tuple[str, ...]:
    """Why records are less private than their budget, as `caveats_of` says it of the releases behind them."""
    private, unsafe, conditions = stamp.get("private"), stamp.get("unsafe"), stamp.get("conditions")
    if private is None:
        return (UNKNOWN.removesuffix("."),)
    caveats = flaws(unsafe=[unsafe if isinstance(unsafe, str) else None], private=private is True)
    texts = [one for one in conditions if isinstance(one, str)] if isinstance(conditions, list) else []
    return (*caveats, *(one for one in texts if "CONDITIONAL" in one))


def _maker(provenance: object) -> str | None:
    """The learner's name."""
    learner = provenance.get("learner") if isinstance(provenance, Mapping) else None
    name = learner.get("name") if isinstance(learner, Mapping) else None
    return name if isinstance(name, str) else None
