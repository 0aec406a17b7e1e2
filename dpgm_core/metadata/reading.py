"""Reading of metadata in any format, for `dpgm init` and `[domain] from`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from dpgm_core.errors import DomainError
from dpgm_core.files import bounded_bytes
from dpgm_core.metadata.arrow import arrow_file, arrow_object
from dpgm_core.metadata.codebook import MAX_BYTES, read_codebook
from dpgm_core.metadata.described import Metadata, combine_metadata, complete_metadata
from dpgm_core.metadata.frictionless import package_schema, table_schema
from dpgm_core.metadata.header import read_header
from dpgm_core.metadata.nist import nist_dictionary, nist_schema
from dpgm_core.toml import parse_toml

__all__ = ["CSV", "resolve_map_path", "check_columns", "is_data", "read_metadata"]

CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt")
_ARROW = (".parquet", ".arrow", ".feather", ".ipc")


def read_metadata(
    source: Any,
    *,
    codebooks: Iterable[Any] = (),
    schema_is_public: bool = False,
    first_line_is_names: bool = False,
) -> Metadata:
    """Read what describes a table: types, ranges and labels as they are declared, and never a record.

    source: a path, or what would stand in the file:

    * a CSV file: its first line, which names the columns; everything else about them is left to do;
    * a Parquet or Arrow IPC file, a folder of Parquet files, a pyarrow Schema, a data frame: names and types;
    * JSON: a NIST schema or data dictionary, a Frictionless table schema or data package, a domain of ours (also TOML);
    * a `Metadata`, of whoever reads another format; None, if the codebooks say it all.

    codebooks: more descriptions, each overriding those before it key by key; here a CSV file is a codebook, with a line
    for each column and code. They may name no column that a source of records lacks. schema_is_public: whether the
    categories in a schema were written down before the data were seen; if not they are not read, as they usually are
    the values that occur. first_line_is_names: of a CSV file, also where some of the names are numbers or dates, which
    is refused else, as the line may be a record. A column with a range and no bins gets one for each of at most 100
    whole numbers, else 32.

    Raises DomainError, and DataError for a source of records that cannot be read.

    >>> read_metadata({"schema": {"age": {"dtype": "int64", "min": 0, "max": 99}}}).tables["age"]
    {'type': 'integer', 'min': 0, 'max': 99, 'null_values': [], 'bins': 100}
    """
    for key, said in (("schema_is_public", schema_is_public), ("first_line_is_names", first_line_is_names)):
        if not isinstance(said, bool):
            raise DomainError(f"{key} must be True or False, got {said!r:.80}")
    if isinstance(codebooks, (str, PathLike, Mapping, Metadata)):
        raise DomainError("codebooks must be a list of descriptions, such as ['codes.csv']")
    described = [] if source is None else [_described(source, schema_is_public, is_names=first_line_is_names)]
    more = [_described(one, schema_is_public, codebook=True) for one in codebooks]
    if not described and not more:
        raise DomainError("there is nothing to read: give a file that describes the columns")
    if described and is_data(source):
        for one in more:
            check_columns(one, described[0].tables, source)
    return complete_metadata(combine_metadata([*described, *more]))


def is_data(source: Any) -> bool:
    """Whether a source holds records besides what describes them, so that it knows all columns.

    >>> is_data("visits.csv"), is_data("schema.json")
    (True, False)
    """
    if isinstance(source, (str, PathLike)):
        return Path(source).name.lower().endswith((*CSV, *_ARROW)) or Path(source).is_dir()
    return not isinstance(source, (Mapping, Metadata))


def check_columns(metadata: Metadata, columns: Iterable[str], data: Any) -> None:
    """Refuse metadata that name other columns than the data; the data's own names are not quoted."""
    known = set(columns)
    others = [column for column in metadata.tables if column not in known]
    if others:
        what = Path(data).name if isinstance(data, (str, PathLike)) else f"the {type(data).__name__}"
        shown = ", ".join(map(repr, others[:5])) + (f", ... ({len(others)} in all)" if len(others) > 5 else "")
        raise DomainError(f"the metadata describe {shown}, which {what} does not name among its columns")


def _described(source: Any, schema_is_public: bool, *, codebook: bool = False, is_names: bool = False) -> Metadata:
    if isinstance(source, Metadata):
        return source
    if isinstance(source, Mapping):
        return _of_tables("the metadata", source)
    if not isinstance(source, (str, PathLike)):
        if isinstance(source, (bytes, int, float, list, tuple, type)):
            raise DomainError(
                f"metadata are read from a file, a schema or a data frame, not from {type(source).__name__}"
            )
        return arrow_object(source, schema_is_public=schema_is_public)
    path = Path(source)
    name = path.name.lower()
    if name.endswith(CSV):
        if codebook:
            return read_codebook(path)
        return Metadata(tables={one: {} for one in read_header(path, is_names=is_names).names})
    if name.endswith(_ARROW) or path.is_dir():
        return arrow_file(path, schema_is_public=schema_is_public)
    if name.endswith((".json", ".toml")):
        return _of_tables(str(path), _loaded(path), path.parent)
    raise DomainError(f"the format of {path} is not known from its name; it must end in .csv, .parquet, .arrow, .json")


def _loaded(path: Path) -> Any:
    kind = path.suffix.lower().removeprefix(".").upper()
    try:
        content = bounded_bytes(path, MAX_BYTES).decode("utf-8-sig")
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path, too large, not UTF-8
        reason = getattr(error, "strerror", None) or ("it is not UTF-8" if isinstance(error, UnicodeError) else error)
        raise DomainError(f"cannot read {str(path)!r}: {reason}") from None
    try:
        return json.loads(content, object_pairs_hook=_once) if kind == "JSON" else parse_toml(content)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise DomainError(f"{path} is not valid {kind}: {reason}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys differ: of two equal ones readers keep the last, and nobody sees it."""
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"{next(key for key in keys if keys.count(key) > 1)!r:.80} stands twice; remove one")
    return table


def resolve_map_path(folder: Path, rule: Any) -> Any:
    """A constraint as a file in this folder states it, with the path of the map that it may name."""
    if isinstance(rule, Mapping) and isinstance(rule.get("map"), str):
        return {**rule, "map": str(folder.absolute() / rule["map"])}
    return rule


def _of_domain(where: str, plain: Mapping[str, Any], folder: Path | None) -> Metadata:
    """The metadata in a domain of ours."""
    for key in plain:
        if key == "from":
            raise DomainError(
                f"{where} starts from another file, {plain[key]!r:.80}; name that one first: dpgm init "
                f"{plain[key]!s:.80} --codebook {where}, and leave `from` out"
            )
        if key not in ("attributes", "constraints", "defaults"):
            raise DomainError(f"{where} has no setting {key!r:.80}; attributes stand under [attributes.NAME]")
    rules = plain.get("constraints", {})
    if folder is not None and isinstance(rules, Mapping):
        rules = {name: resolve_map_path(folder, rule) for name, rule in rules.items()}
    return Metadata(tables=plain.get("attributes", {}), defaults=plain.get("defaults", {}), constraints=rules)


def _of_tables(where: str, plain: Any, folder: Path | None = None) -> Metadata:
    """The metadata in plain values, whatever their form is. folder: of the file that they are from."""
    if not isinstance(plain, Mapping) or not plain:
        raise DomainError(f"{where}: metadata must be a table of columns, got {plain!r:.40}")
    if "resources" in plain:
        plain = package_schema(plain)
    schema = plain.get("schema")
    if isinstance(plain.get("fields"), list):
        return table_schema(plain)
    if isinstance(schema, Mapping) and isinstance(schema.get("fields"), list):
        return table_schema(schema)
    if isinstance(schema, Mapping) and set(plain) == {"schema"}:
        return nist_schema(schema)
    if isinstance(plain.get("attributes"), Mapping) or set(plain) <= {"constraints", "defaults"}:
        return _of_domain(where, plain, folder)
    if all(isinstance(one, Mapping) and _explains(one) for one in plain.values()):
        return nist_dictionary(plain)
    return Metadata(tables={column: _short(column, entry) for column, entry in plain.items()})


def _explains(entry: Mapping[str, Any]) -> bool:
    """Whether this is an entry of a data dictionary, and no table of ours."""
    return "description" in entry or isinstance(entry.get("values"), Mapping)


def _short(column: str, entry: object) -> Mapping[str, Any]:
    """Our short forms: a size, a list of labels, or a table."""
    if isinstance(entry, int) and not isinstance(entry, bool):
        return {"size": entry}
    if isinstance(entry, list) and all(isinstance(one, (str, int, float)) for one in entry):
        return {"labels": [one if isinstance(one, str) else json.dumps(one) for one in entry]}
    if isinstance(entry, Mapping):
        return entry
    raise DomainError(f"column {column!r} must be a size, a list of labels or a table, got {entry!r:.80}")
