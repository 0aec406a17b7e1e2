"""Domain files, and metadata in other formats that stand for one."""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import IO, Any, cast

from attrs import frozen

from dpgm_core._util.files import bounded_bytes
from dpgm_core._util.locations import open_regular
from dpgm_core._util.toml import parse_toml
from dpgm_core.domain.attribute import first_repeated
from dpgm_core.domain.attribute_tables import FORM, KEYS
from dpgm_core.domain.formats.arrow import arrow_file, arrow_object
from dpgm_core.domain.formats.codebook import read_codebook
from dpgm_core.domain.formats.frictionless import package_schema, table_schema
from dpgm_core.domain.formats.nist import nist_dictionary, nist_schema
from dpgm_core.domain.metadata import Metadata, apply_defaults, check_defaults, combine_metadata, complete_metadata
from dpgm_core.errors import DataError, DomainError, did_you_mean

__all__ = ["CSV", "Header", "check_columns", "domain_tables", "is_data", "plain_file", "read_header", "read_metadata"]

CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt")
_ARROW = (".parquet", ".arrow", ".feather", ".ipc")


def read_metadata(
    source: Any,
    *,
    codebooks: Iterable[Any] = (),
    schema_is_public: bool = False,
    first_line_is_names: bool = False,
    encoding: str | None = None,
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
    is refused else, as the line may be a record. encoding: of a CSV file; None takes it from the first line. A column
    with a range and no bins gets one for each of at most 100 whole numbers, else 32.

    Raises DomainError, and DataError for a source of records that cannot be read.

    >>> read_metadata({"schema": {"age": {"dtype": "int64", "min": 0, "max": 99}}}).tables["age"]
    {'type': 'integer', 'min': 0, 'max': 99, 'null_values': [], 'bins': 100}
    """
    for key, said in (("schema_is_public", schema_is_public), ("first_line_is_names", first_line_is_names)):
        if not isinstance(said, bool):
            raise DomainError(f"{key} must be True or False, got {said!r:.80}")
    if isinstance(codebooks, (str, PathLike, Mapping, Metadata)):
        raise DomainError("codebooks must be a list of descriptions, such as ['codes.csv']")
    read = partial(_described, is_names=first_line_is_names, encoding=encoding)
    described = [] if source is None else [read(source, schema_is_public)]
    more = [_described(one, schema_is_public, codebook=True) for one in codebooks]
    if not described and not more:
        raise DomainError("there is nothing to read: give a file that describes the columns")
    if described and is_data(source):
        for one in more:
            check_columns(one, described[0].tables, source)
    return complete_metadata(combine_metadata([*described, *more]))


def is_data(source: Any) -> bool:
    """Return whether a source holds records as well as their description, so that it knows all columns.

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


def _described(
    source: Any,
    schema_is_public: bool,
    *,
    codebook: bool = False,
    is_names: bool = False,
    encoding: str | None = None,
) -> Metadata:
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
        return Metadata(tables={one: {} for one in read_header(path, is_names=is_names, encoding=encoding).names})
    if name.endswith(_ARROW) or path.is_dir():
        return arrow_file(path, schema_is_public=schema_is_public)
    if name.endswith((".json", ".toml")):
        return _of_tables(str(path), _loaded(path), path.parent)
    raise DomainError(
        f"the format of {path} is not known from its name; it must end in .csv, .parquet, .arrow, .json; save tables "
        "of other programs, such as .xlsx, as CSV"
    )


def _loaded(path: Path) -> Any:
    kind = path.suffix.lower().removeprefix(".").upper()
    try:
        content = bounded_bytes(path, _MAX_FILE_BYTES).decode("utf-8-sig")
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
    # Entries of a data dictionary, and no tables of ours.
    if all(
        isinstance(one, Mapping) and ("description" in one or isinstance(one.get("values"), Mapping))
        for one in plain.values()
    ):
        return nist_dictionary(plain)
    return Metadata(tables={column: _short(column, entry) for column, entry in plain.items()})


def _short(column: str, entry: object) -> Mapping[str, Any]:
    """Our short forms: a size, a list of labels, or a table."""
    if isinstance(entry, int) and not isinstance(entry, bool):
        return {"size": entry}
    if isinstance(entry, list) and all(isinstance(one, (str, int, float)) for one in entry):
        return {"labels": [one if isinstance(one, str) else json.dumps(one) for one in entry]}
    if isinstance(entry, Mapping):
        return entry
    raise DomainError(f"column {column!r} must be a size, a list of labels or a table, got {entry!r:.80}")


# --- Domain files as plain tables -----------------------------------------------------------------

_MAX_FILE_BYTES = 2**26
_MAX_NESTED_FILES = 16  # files that name one another
_TOP = ("attributes", "constraints", "defaults", "from")


def plain_file(path: Path) -> Any:
    """The plain values of a `.toml` or `.json` file. DomainError, with the file's name, if it cannot be read."""
    try:
        content = bounded_bytes(path, _MAX_FILE_BYTES)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise DomainError(f"cannot read the domain file {str(path)!r}: {reason}") from None
    try:
        if path.suffix == ".json":
            return json.loads(content)
        if path.suffix == ".toml":
            return parse_toml(content)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise DomainError(f"domain file {path} is not valid {path.suffix[1:].upper()}: {reason}") from None
    raise DomainError(f"domain file {path}: the name must end in .toml or .json")


def domain_tables(plain: object, folder: Path | None, inside: tuple[Path, ...] = ()) -> dict[str, dict[str, Any]]:
    """`{"attributes": {name: table}, "constraints": {name: table}}` of any shape that `Domain.from_dict` reads.

    `defaults` are rules for raw texts in all columns whose own table does not say otherwise. folder:
    where files are that `from` names; None refuses it, so that nothing stored in a release or a model opens a file.
    inside: the files that led here. Raises DomainError.
    """
    if not isinstance(plain, Mapping) or not plain:
        raise DomainError("a domain must be a non-empty table of attributes")
    if set(plain) == {"schema"} and isinstance(plain["schema"], Mapping):
        return {"attributes": dict(read_metadata(plain).tables)}
    based = isinstance(plain.get("from"), str)
    if not based and not isinstance(plain.get("attributes"), Mapping):
        return {"attributes": {name: _table(name, entry) for name, entry in plain.items()}}
    for key in plain:
        if key not in (_TOP if based else _TOP[:3]):
            raise DomainError(f"a domain has no setting {key!r}; attributes stand under [attributes.NAME]")
    tables = plain.get("attributes", {})
    if not isinstance(tables, Mapping):
        raise DomainError(f"the attributes of a domain must be tables, [attributes.NAME]; got {tables!r:.80}")
    rules = plain.get("constraints", {})
    defaults = check_defaults(plain.get("defaults", {}))
    if not based:
        return {"attributes": apply_defaults(tables, defaults), "constraints": rules}
    if not isinstance(rules, Mapping):
        raise DomainError(f"the constraints of a domain must be tables, [constraints.NAME]; got {rules!r:.80}")
    if folder is None:
        raise DomainError("'from' names a file, and no folder is given for it; use Domain.load, or say folder = ...")
    base = _base(folder, plain["from"], inside)
    changes = {name: _table(name, entry) for name, entry in tables.items()}
    attributes = override_tables(base["attributes"], changes, origin=plain["from"])
    return {"attributes": apply_defaults(attributes, defaults), "constraints": {**base.get("constraints", {}), **rules}}


def override_tables(
    base: Mapping[str, Mapping[str, Any]], changes: Mapping[str, Mapping[str, Any]], *, origin: str
) -> dict[str, Any]:
    """The tables of `base` with some keys changed, column by column.

    A change of form takes the place of the old form: bins that of labels, edges that of bounds; it also settles a
    `todo`. Labels, or bounds, or bins say all of a form but bounds, which stay when only the number of bins changes.
    Raises DomainError for a column that `base` does not have.
    """
    attributes: dict[str, Any] = {name: dict(table) for name, table in base.items()}
    for name, change in changes.items():
        if name not in attributes:
            raise DomainError(
                f"[attributes.{name}] changes a column that {origin} does not have{did_you_mean(name, attributes)}"
            )
        gone = _replaced_keys(attributes[name], change)
        attributes[name] = {key: value for key, value in attributes[name].items() if key not in gone} | dict(change)
    return attributes


def _replaced_keys(base: Mapping[str, Any], change: Mapping[str, Any]) -> set[str]:
    new = {key for key in FORM if key in change}
    if not new or new == {"cap"}:
        return set()
    gone = {*FORM, "todo"}
    if "size" in new:
        return gone | {"type", "format", "decimals", "scale", "shape", "null_values"}
    if isinstance(change.get("bins"), (list, tuple)):
        return gone - {"cap"}
    if new & {"bins", "min", "max"}:
        # Bounds stay unless they are given; a number of bins stays with new bounds, edges do not.
        remaining = (
            {"min", "max", "cap"} if isinstance(base.get("bins"), (list, tuple)) else {"min", "max", "cap", "bins"}
        )
        return gone - remaining
    return gone


def _base(folder: Path, name: str, inside: tuple[Path, ...]) -> dict[str, dict[str, Any]]:
    path = folder / name
    where = path.absolute()
    if where in inside or len(inside) >= _MAX_NESTED_FILES:
        shown = " from ".join(repr(one.name) for one in (*inside[-3:], where))
        raise DomainError(f"domain files name one another in a circle, or too deeply: {shown}")
    if path.suffix.lower() == ".bif":
        raise DomainError(f"from = {name!r} is a network; say domain = {{ bif = {name!r} }} instead")
    if path.suffix not in (".toml", ".json"):
        return {"attributes": dict(_metadata(path))}
    plain = plain_file(path)
    if path.suffix == ".json" and not _is_domain(plain):
        return {"attributes": dict(_metadata(path))}
    loaded = domain_tables(plain, path.parent, (*inside, where))
    rules = loaded.get("constraints", {})
    if isinstance(rules, Mapping):
        # A constraint names files relative to the file that it is in.
        loaded["constraints"] = {key: resolve_map_path(path.parent, rule) for key, rule in rules.items()}
    return loaded


def _metadata(path: Path) -> Mapping[str, Mapping[str, Any]]:
    if not path.exists():
        raise DomainError(f"cannot read the domain file {str(path)!r}: there is no such file")
    # Of a CSV file only a codebook says anything: the first line of records would leave all to do.
    codebook = path.name.lower().endswith(CSV)
    return read_metadata(None if codebook else path, codebooks=[path] if codebook else []).tables


def _is_domain(plain: object) -> bool:
    """Whether JSON is a domain of ours, and no description of somebody else's that only looks like one."""
    if not isinstance(plain, Mapping):
        return False
    if isinstance(plain.get("attributes"), Mapping) or isinstance(plain.get("from"), str) or set(plain) == {"schema"}:
        return True
    return all(
        isinstance(entry, int)
        or (isinstance(entry, list) and not any(isinstance(value, (Mapping, list)) for value in entry))
        or (isinstance(entry, Mapping) and set(entry) <= set(KEYS))
        for entry in plain.values()
    )


def _table(name: str, entry: object) -> dict[str, Any]:
    """One attribute's table, from a size, a list of labels, or itself."""
    if isinstance(entry, int) and not isinstance(entry, bool):
        return {"size": entry}
    if isinstance(entry, list):
        if any(isinstance(value, (Mapping, list)) for value in entry):
            raise DomainError(
                f"attribute {name!r} has a table among its labels; the attributes of a domain stand under "
                "[attributes.NAME], each with its labels or bins"
            )
        return {"labels": [value if isinstance(value, str) else json.dumps(value, default=str) for value in entry]}
    if isinstance(entry, Mapping):
        return dict(entry)
    raise DomainError(f"attribute {name!r} must be a size, a list of labels or a table, got {entry!r:.80}")


# --- Header of a CSV file -------------------------------------------------------------------------
# The line may be a record, if the file names no columns. So no message quotes it, and one that does not look like names
# is refused. Bytes behind it are read by the operating system, as files come in blocks, but looked at by nobody.

MAX_LINE = 2**22  # bytes

_DELIMITERS = (",", ";", "\t", "|")
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
# Numbers, dates and times: what values look like and names do not.
_VALUE = re.compile(r"[-+]?[0-9][-+0-9.,:/eE ]*|[-+]?\.[0-9]+|nan|inf", re.IGNORECASE)


@frozen(kw_only=True)
class Header:
    """Column names, and the dialect of the line that names them.

    quoting: whether a name stands in double quotes. skip_blanks: whether a name stands behind a blank.
    """

    names: tuple[str, ...]
    delimiter: str = ","
    encoding: str = "utf-8"
    quoting: bool = False
    skip_blanks: bool = False


def read_header(path: Path, *, is_names: bool = False, encoding: str | None = None) -> Header:
    """Read the first line of a CSV file, plain or gzipped. Raises DataError, which never quotes the line.

    is_names: somebody who knows says that it names columns, though some of them are numbers or dates, such as years;
    fields without a name of their own are then given by their numbers.

    The delimiter is the one of comma, semicolon, tab and bar that stands most often outside of quotes; the encoding is
    what a byte order mark says, else UTF-8, or cp1252 for a line that is not UTF-8. encoding: of the whole file, where
    somebody knows it: lines behind the first one may have letters that it lacks.
    """
    line, read_as = _first_line(path, encoding)
    if encoding is not None and not read_as.startswith(encoding):
        raise DataError(f"{path} begins with the mark of {read_as.upper()} and is not in {encoding}; leave that out")
    text = _decoded(line, read_as)
    if text is None and encoding is None and read_as == "utf-8":
        text, read_as = _decoded(line, "cp1252"), "cp1252"
    if text is None:
        raise DataError(
            f"{path}: the first line, which must name the columns, is of no encoding known; save it as UTF-8"
            if encoding is None
            else f"{path}: the first line, which must name the columns, is not in {encoding}"
        )
    text = text.removesuffix("\n").removesuffix("\r")
    if not text.strip():
        raise DataError(f"{path} is empty; its first line must name the columns")
    if "\0" in text or "\r" in text:
        raise DataError(f"{path}: the first line does not name columns; is this CSV with lines ending in LF?")
    bare = re.sub(r'"[^"]*"', "", text)
    delimiter = max(_DELIMITERS, key=bare.count)  # the first of equals
    if re.search(rf'(?:^|{re.escape(delimiter)}) *"', bare):
        raise DataError(f"{path}: a quoted name does not end in the first line; put all names into one line")
    try:
        names = tuple(name.strip() for name in next(csv.reader([text], delimiter=delimiter, skipinitialspace=True)))
    except csv.Error:  # a field too long
        names = ()
    values = () if is_names else filter(_VALUE.fullmatch, names)
    wrong = not all(names) or first_repeated(names) is not None
    if is_names and names and wrong:
        unnamed = [at for at, name in enumerate(names, start=1) if not name]
        again = [at for at, name in enumerate(names, start=1) if name and name in names[: at - 1]]
        which, what = (unnamed, "without a name") if unnamed else (again, "that repeat a name")
        shown = ", ".join(map(str, which[:3])) + (", ..." if len(which) > 3 else "")
        raise DataError(
            f"{path}: the first line does not name columns: fields {what}: number {shown}; write a name for each into "
            "the file"
        )
    if not names or wrong or any(values):
        # One sentence for all of these: which of them it is would tell of a record, if the line is one.
        raise DataError(
            f"{path}: the first line does not name columns: a field is empty, a number or a date, or stands twice, so "
            "perhaps it is a record; put a line of names first. If it is the names: write those that are missing or "
            "repeated into the file, and if some are numbers or dates, say --first-line-is-names"
        )
    return Header(
        names=names,
        delimiter=delimiter,
        encoding=encoding or ("utf-16" if read_as.startswith("utf-16") else read_as),  # the mark has the order of bytes
        quoting=bare != text,
        skip_blanks=any(part[:1] == " " for part in bare.split(delimiter)),
    )


def _decoded(line: bytes, encoding: str) -> str | None:
    """The text; None where it is of another encoding or of none known, as the error would hold the line."""
    try:
        return line.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _first_line(path: Path, stated: str | None) -> tuple[bytes, str]:
    """The bytes up to the first line end, without a byte order mark, and the encoding: the mark's or the stated one."""
    try:
        with (
            open_regular(path) as file,
            cast(IO[bytes], gzip.open(file) if path.suffix.lower() == ".gz" else file) as stream,
        ):
            line = stream.readline(MAX_LINE + 1)
            encoding = next((name for mark, name in _MARKS.items() if line.startswith(mark)), stated or "utf-8")
            if encoding == "utf-16":  # without a mark, as the csv source reads it
                encoding = "utf-16-be" if line.startswith(b"\0") else "utf-16-le"
            if encoding.startswith("utf-16"):
                # A unit has two bytes; the byte of LF may be half of another letter.
                end = b"\n\0" if encoding == "utf-16-le" else b"\0\n"
                line += stream.read(len(line) % 2)
                while not line.endswith(end) and len(line) <= MAX_LINE and (more := stream.readline(MAX_LINE)):
                    line += more
                    line += stream.read(len(line) % 2)
    except (OSError, EOFError, ValueError, zlib.error) as error:  # ValueError: a NUL in the path
        reason = (error.strerror if isinstance(error, OSError) else None) or "it is not what its name says"
        raise DataError(f"cannot read {path}: {reason}") from None
    if len(line) > MAX_LINE:
        raise DataError(
            f"{path}: the first line is longer than {MAX_LINE:,} bytes; is this CSV with lines ending in LF?"
        )
    mark = next((mark for mark in _MARKS if line.startswith(mark)), b"")
    return line[len(mark) :], encoding
