"""Models of two related tables in commands and reports: what answers for them, and the files of their samples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from glob import has_magic
from pathlib import Path
from typing import Any

from dpgm_core._util.locations import place
from dpgm_core.domain.related import SIZE, Related
from dpgm_core.errors import OptionError
from dpgm_core.models.model import Model
from dpgm_core.models.related import RelatedModel
from dpgm_core.sources.related import RelatedSource

__all__ = [
    "RelatedModel",
    "answering",
    "by_table",
    "data_files",
    "file_names",
    "lacks_size",
    "records_of",
    "refuse_related",
    "unanswered",
]

#: Of the provenance: the names of the two data files.
_FILES = "files"
_ENDING = re.compile(r"\.(csv|tsv|txt|parquet|arrow|feather|ipc)(\.gz)?$", re.IGNORECASE)
_WRITTEN = (".csv", ".csv.gz", ".parquet", ".arrow")


def answering(model: Model) -> Model | RelatedModel:
    """The model, or of two related tables what answers about their columns."""
    if model.related is None:
        return model
    return RelatedModel(model)


def lacks_size(model: Model) -> bool:
    """Whether no table of two related tables holds the number of children, without which nothing can be said."""
    return model.related is not None and SIZE in model.left_out


def unanswered(model: Model) -> tuple[str, ...]:
    """The columns that a model has no answer about."""
    if model.related is None:
        return tuple(model.unmeasured)
    answers = answering(model).domain
    return tuple(name for name in (*model.related.root.names, *model.related.children.names) if name not in answers)


def refuse_related(model: Model, what: str) -> None:
    """Refuse, with OptionError, what is about one table. what: `a linear regression is`."""
    if model.related is not None:
        raise OptionError(
            f"{what} of one table, and the model is of two related ones; dpgm query answers about these, dpgm sample "
            "draws them"
        )


def by_table(related: Related, names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The names of columns of roots, `size` among them, and of children."""
    named = list(names)
    return [one for one in named if one not in related.children], [one for one in named if one in related.children]


def records_of(data: Any, related: Related | None) -> Any:
    """The records of a spec, as `as_source` takes them."""
    return data if related is None else RelatedSource(related=related, **data)


def data_files(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a model's provenance states of the data of a spec: of two related tables the names of their files."""
    tables = (data["root"], data["children"])
    paths = [one.get("path") if isinstance(one, Mapping) else one for one in tables]
    known = [place(one).name for one in paths if isinstance(one, (str, Path))]
    return {_FILES: known} if len(known) == len(tables) else {}


def file_names(model: Model) -> tuple[str, str]:
    """What the two files of a sample are named: as the data files, where these are known and can be told apart."""
    stated = model.provenance.get(_FILES)
    names = [Path(one).name for one in stated if isinstance(one, str)] if isinstance(stated, list) else []
    stems = [_ENDING.sub("", one) for one in names]
    if len(set(stems)) != 2 or not all(one.isprintable() and one.strip(".") and not has_magic(one) for one in stems):
        return "root.csv", "children.csv"
    endings = [name[len(stem) :].lower() for name, stem in zip(names, stems, strict=True)]
    alike = endings[0] == endings[1] and endings[0] in _WRITTEN
    first, second = (stem + (endings[0] if alike else ".csv") for stem in stems)
    return first, second
