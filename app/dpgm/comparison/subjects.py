"""Subjects of a comparison, and their sides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from attrs import evolve, field, frozen

from dpgm.comparison.values import Kind, Subject
from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.files import read_archive
from dpgm_core.components.registry import make
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.related import Related
from dpgm_core.errors import BudgetError, DataError, InferenceError, TooLarge
from dpgm_core.models.model import Model
from dpgm_core.models.model_file import load_model, read_stamp, sidecar_path
from dpgm_core.models.queries import quote_names
from dpgm_core.pipeline.evaluation import column_names, normalise, tabulate
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import flaws
from dpgm_core.releases.release import NoisyTables, total_cost
from dpgm_core.releases.release_file import load_release
from dpgm_core.releases.session import UNKNOWN, caveats_of, stamp_of
from dpgm_core.releases.views import cells_as_drawn
from dpgm_core.sources.related import RelatedSource
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

__all__ = [
    "Content",
    "ModelSide",
    "RecordsSide",
    "Side",
    "Synthetic",
    "kind_of",
    "read_subject",
    "related_of",
    "structure_of",
    "subject_of",
]


# --- Subjects ---

_RECORD_SUFFIXES = (".csv", ".csv.gz", ".parquet", ".arrow")
_STAMP_KEYS = ("private", "unsafe", "conditions", "guarantee")


@frozen(kw_only=True)
class Synthetic:
    """A file of records that were drawn from a model according to its stamp, which is its author's word.

    Attributes
    ----------
    children
        Of two related tables the file of the children; path is that of the roots.
    dialect
        Delimiter and encoding of a CSV file, as options of the csv source. None takes those of the stamp, or else
        guesses from the first line.
    """

    path: Path
    stamp: Mapping[str, Any]
    dialect: Mapping[str, Any] | None = None
    children: Path | None = None


Content: TypeAlias = Model | NoisyTables | Synthetic


def read_subject(path: str | Path) -> Content:
    """Read a model, a release, or records that carry the stamp of `dpgm sample`; of two related tables, their folder.

    Of a table of records nothing but the stamp is read.

    Raises
    ------
    DataError
        For records without that stamp, which may be records of people, and for completed rows.
    ModelFileError
        For files of another kind, and for files that are damaged or too new.
    """
    path = Path(path)
    if path.is_dir():
        return _two_tables(path)
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
            f"{path} has no stamp of dpgm sample ({where}), so it may hold records of people; "
            f"compare a model with records by: dpgm compare MODEL --data {path} --allow-non-private"
        )
    return Synthetic(path=path, stamp=stamp)


def _two_tables(folder: Path) -> Synthetic:
    """The sample of two related tables in a folder, whose stamps say that they belong together."""
    found: dict[str, Synthetic] = {}
    for path in sorted(one for one in folder.iterdir() if one.name.lower().endswith(_RECORD_SUFFIXES)):
        stamp = read_stamp(sidecar_path(path) if path.name.lower().endswith((".csv", ".csv.gz")) else path)
        tables = None if stamp is None else stamp.get("tables")
        if isinstance(tables, Mapping):
            found |= {key: _synthetic(path) for key, name in tables.items() if name == path.name}
    if set(found) != {"root", "children"} or found["root"].stamp.get("sample") != found["children"].stamp.get("sample"):
        raise DataError(f"the folder {folder} does not hold the two tables of one dpgm sample; name what it wrote")
    root = found["root"]
    return Synthetic(path=root.path, stamp=root.stamp, children=found["children"].path)


def related_of(content: Content) -> Related | None:
    """The two related tables that it is of, as its releases state them; None of one table, and of records."""
    if isinstance(content, Model):
        return content.related
    return content.terms.related if isinstance(content, NoisyTables) else None


def kind_of(content: Content) -> Kind:
    """Its kind, in a word."""
    return "model" if isinstance(content, Model) else "release" if isinstance(content, NoisyTables) else "synthetic"


def structure_of(content: Content) -> Structure | None:
    """The structure that it has tables over; synthetic records have none."""
    if isinstance(content, Synthetic):
        return None
    return content.observed if isinstance(content, Model) else content.structure


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


def _table_facts(**known: Any) -> dict[str, Any]:
    """The same names for every kind, in the order in which they are shown."""
    names = ("cost", "neighbours", "unit", "records", "attributes", "tables", "cells", "noise", "replicates")
    return {name: known.get(name) for name in (*names, "learner", "converged", "entropy")}


def _model_facts(model: Model) -> dict[str, Any]:
    made = _release_facts(model.release) if model.release is not None else {}
    noise = [number for one in model.learned for number in _deviations(one)]
    return _table_facts(
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
    return _table_facts(
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
    return _table_facts(cost=cost, learner=_maker(stamp.get("provenance")))


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


# --- Sides, which answer about tables ---


class Side(Protocol):
    """Probabilities of tables, over a domain of its own."""

    @property
    def domain(self) -> Domain:
        """Domain of its answers."""

    def tables(self, cliques: Sequence[Clique]) -> list[FloatArray]:
        """p(clique) of each, axes in the order of its names."""

    def standing(self, clique: Clique) -> str:
        """Return the basis of such an answer, in a word or two."""


@frozen(kw_only=True)
class ModelSide:
    """A model's answers."""

    model: Model

    @property
    def domain(self) -> Domain:
        """The model's, with all codes."""
        return self.model.domain

    def tables(self, cliques: Sequence[Clique]) -> list[FloatArray]:
        """Its marginals."""
        return list(self.model.marginals_of(cliques).values())

    def errors(self, cliques: Sequence[Clique]) -> list[FloatArray]:
        """The standard errors of these tables, with what a holdout found."""
        return [self.model.intervals(names).standard_error for names in cliques]

    def standing(self, clique: Clique) -> str:
        """The model's own word."""
        return self.model.standing(clique)


@frozen(kw_only=True, slots=False)
class RecordsSide:
    """Synthetic records, counted over a domain that a model or its owner gave.

    A value that is no label of the domain counts as what its column takes for unknown. Raises DataError for a file that
    cannot be read as `dpgm sample` writes it. related: what two related tables are, which count as pairs.
    """

    content: Synthetic
    whole: Domain = field(repr=False)
    related: Related | None = None

    @cached_property
    def _data(self) -> object:
        if self.content.children is None:
            return self._file(self.content.path)
        assert self.related is not None  # the comparison has refused it
        return RelatedSource(
            root=self._file(self.content.path), children=self._file(self.content.children), related=self._counted
        )

    @cached_property
    def _counted(self) -> Related:
        """The two tables with the columns that the files have, without constraints."""
        related = self.related
        assert related is not None and self.content.children is not None
        root, children = (
            Domain(one for one in domain if one.name in column_names(self._file(path)))
            for path, domain in ((self.content.path, related.root), (self.content.children, related.children))
        )
        return evolve(related, root=root, children=children, constraints=())

    def _file(self, path: Path) -> object:
        if not path.name.lower().endswith((".csv", ".csv.gz")):
            return path
        said = self.content.stamp.get("dialect") if self.content.dialect is None else self.content.dialect
        if isinstance(said, Mapping):
            return make(
                "source", "csv", path=path, **{key: said[key] for key in ("delimiter", "encoding") if key in said}
            )
        related = self.related
        names = self.whole.names if related is None else (*related.root.names, *related.children.names)
        return make("source", "csv", path=path).naming_most(names)

    @cached_property
    def domain(self) -> Domain:
        """The attributes that the file has columns of, without constraints: a drawn record that breaks one counts."""
        if self.content.children is not None:
            return Domain(self._counted.pair)
        columns = set(column_names(self._data))
        attributes = [one for one in self.whole if one.name in columns]
        if not attributes:
            raise DataError(
                f"{self.content.path} has no column of the domain ({quote_names(self.whole.names)}); say how it is "
                "written: --dialect delimiter=, encoding="
            )
        return Domain(attributes)

    @cached_property
    def records(self) -> int:
        """Number of records in the file."""
        first = self.domain.names[:1]
        return int(self.counts([first])[0].sum())

    def tables(self, cliques: Sequence[Clique]) -> list[FloatArray]:
        """Shares of the records, from one pass over the file."""
        return [normalise(table) for table in self.counts(cliques)]

    def standing(self, clique: Clique) -> str:
        """Return "drawn": a file of records does not state the basis of its model."""
        return "drawn"

    def counts(self, cliques: Sequence[Clique]) -> list[FloatArray]:
        """Records in each cell, from one pass over the file."""
        # These are nobody's records: their stamp says that a model drew them.
        counted = tabulate(self._data, Structure(self.domain, cliques), allow_non_private=True)
        return [np.asarray(counted[clique], dtype=np.float64) for clique in cliques]
