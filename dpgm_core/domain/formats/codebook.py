"""Codebooks: CSV files with a line for each code of each column, or for each column."""

from __future__ import annotations

import codecs
import contextlib
import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpgm_core._util.files import bounded_bytes
from dpgm_core.domain.metadata import Metadata
from dpgm_core.errors import DomainError

__all__ = ["column_of_codes", "is_codebook", "number_of", "read_codebook"]

_MAX_BYTES = 2**26

#: What a codebook's own columns are called, lower case and letters only; the first that is there counts.
_ROLES: Mapping[str, Sequence[str]] = {
    "column": ("column", "columnname", "variable", "variablename", "varname", "var", "field", "fieldname", "attribute",
               "name", "item"),
    "code": ("code", "codes", "value", "values", "category", "level", "answer", "response", "option", "key"),
    "label": ("label", "meaning", "codelabel", "valuelabel", "categorylabel", "text", "means", "title"),
    "description": ("description", "question", "definition", "columnlabel", "variablelabel", "desc", "details"),
    "type": ("type", "datatype", "dtype", "kind"),
    "min": ("min", "minimum", "low", "lower", "from"),
    "max": ("max", "maximum", "high", "upper", "to"),
    "missing": ("missing", "ismissing", "missingcode", "null", "isnull", "na"),
    "format": ("format", "dateformat"),
}  # fmt: skip
_YES, _NO = ("1", "yes", "y", "true", "t", "x", "missing"), ("", "0", "no", "n", "false", "f")
#: What types are called; `None` says nothing of the values: labels do.
_TYPES: Mapping[str, str | None] = {
    **dict.fromkeys(("int", "int32", "int64", "integer", "whole", "count", "discrete"), "integer"),
    **dict.fromkeys(("float", "float64", "double", "real", "decimal"), "number"),
    **dict.fromkeys(("number", "numeric", "num", "continuous"), "number"),
    **dict.fromkeys(("bool", "boolean", "logical"), "boolean"),
    **dict.fromkeys(("text", "string", "str", "char", "character", "varchar"), "text"),
    "date": "date",
    **dict.fromkeys(("datetime", "timestamp"), "datetime"),
    "time": "time",
    **dict.fromkeys(("", "categorical", "category", "nominal", "ordinal", "factor", "enum", "code"), None),
}


def is_codebook(names: Sequence[str]) -> bool:
    """Whether columns are called what a codebook's are; a hint to people, as records may be called the same.

    >>> is_codebook(["Variable", "Code", "Label"]), is_codebook(["name", "age"])
    (True, False)
    """
    roles = _roles(names)
    return "column" in roles and "code" in roles and len(roles) > 2


def read_codebook(path: Path) -> Metadata:
    """Read a codebook; DomainError, naming the line or the column.

    One line for each code (`column`, `code`, and if you like `label`, `missing`), or for each column (`column`, `type`,
    `min`, `max`, `description`); an empty column name repeats the one above. Delimiters are comma, semicolon, tab and
    bar; a byte order mark says the encoding, else it is UTF-8, or cp1252 where it is not UTF-8.
    """
    rows = _rows(path)
    if not rows:
        raise DomainError(
            f"codebook {path} is empty; its first line must name its columns, such as column, code, label"
        )
    roles = _roles(rows[0])
    if "column" not in roles or not {"code", "type", "min", "max", "description"} & set(roles):
        shown = ", ".join(map(repr, rows[0][:20]))
        raise DomainError(f"codebook {path} needs the columns 'column' and 'code' (and 'label'), it has {shown:.200}")
    columns: dict[str, dict[str, Any]] = {}
    column = ""
    for number, row in enumerate(rows[1:], start=2):
        cells = {role: row[place].strip() if place < len(row) else "" for role, place in roles.items()}
        if not any(cells.values()):
            continue
        column = cells["column"] or column
        if not column:
            raise DomainError(f"codebook {path}, line {number}: no column is named; fill it in")
        _add(f"codebook {path}, line {number}", columns.setdefault(column, _empty()), column, cells)
    if not columns:
        raise DomainError(f"codebook {path} describes no column; it holds nothing but its first line")
    return Metadata(
        tables={name: column_of_codes(**one["facts"]) for name, one in columns.items()},
        comments={name: one["comment"] for name, one in columns.items() if one["comment"]},
        meanings={name: one["facts"]["codes"] for name, one in columns.items() if one["facts"]["codes"]},
    )


def column_of_codes(
    *,
    codes: Mapping[str, str],
    missing: Sequence[str] = (),
    low: int | float | str | None = None,
    high: int | float | str | None = None,
    kind: str | None = None,
    form: str | None = None,
) -> dict[str, Any]:
    """The table of a column, of its codes (code -> meaning), those that mean missing, its range and its type.

    With a range, numbers among the codes next to it widen it; a single code that is no number is a missing value.
    """
    table: dict[str, Any] = {"type": kind} if kind is not None else {}
    if form is not None:
        table["format"] = form
    null = list(missing)
    if low is None and high is None:
        if codes:
            table["labels"] = [code for code in codes if code not in null]
    else:
        ends = {"min": low, "max": high}
        table |= {key: end for key, end in ends.items() if end is not None}
        words = [code for code in codes if code not in null and number_of(code) is None]
        if len(words) == 1:
            null += words
        elif words:
            return {**table, "todo": f"{_some(words)} are no numbers: list them in null_values, or say labels = [...]"}
        numbers = sorted(one for code in codes if code not in null and (one := number_of(code)) is not None)
        outside = _widened(table, numbers)
        if outside:
            return {
                **table,
                "todo": f"codes {_some(outside)} lie outside of min and max: widen, or list in null_values",
            }
    if null:
        table |= {"missing": null[0] if len(null) == 1 else "missing", "null_values": null}
    return table


def number_of(text: str) -> int | float | None:
    """A number as it is written; None for another text.

    >>> number_of("7"), number_of("7.0"), number_of("1e3"), number_of("x"), number_of("nan")
    (7, 7.0, 1000.0, None, None)
    """
    if re.fullmatch(r"[-+]?[0-9]{1,18}", text):
        return int(text)
    if re.fullmatch(r"[-+]?([0-9]{1,300}\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,2})?", text):
        return float(text)
    return None


def _widened(table: dict[str, Any], numbers: Sequence[int | float]) -> list[int | float]:
    """Widen a range by whole numbers next to it; what is left outside."""
    low, high = table.get("min"), table.get("max")
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        return []
    for number in numbers:
        if number == high + 1:
            high = number
    for number in reversed(numbers):
        if number == low - 1:
            low = number
    table |= {"min": low, "max": high}
    return [number for number in numbers if not low <= number <= high]


def _some(codes: Sequence[object]) -> str:
    shown = ", ".join(str(code) for code in codes[:3])
    return f"{shown}, ..." if len(codes) > 3 else shown


def _empty() -> dict[str, Any]:
    return {"facts": {"codes": {}, "missing": [], "low": None, "high": None, "kind": None, "form": None}, "comment": ""}


def _add(where: str, one: dict[str, Any], column: str, cells: Mapping[str, str]) -> None:
    """What a line says of a column."""
    facts, code, said = one["facts"], cells.get("code", ""), cells.get("description", "")
    null = cells.get("missing", "").lower()
    if code:
        if code in facts["codes"]:
            raise DomainError(f"{where}: column {column!r} has code {code!r:.80} twice; remove one")
        facts["codes"][code] = cells.get("label", "") or (said if "label" not in cells else "")
    if null in _YES and code:
        facts["missing"].append(code)
    elif null not in (*_YES, *_NO):  # a column that names its missing code in a line of its own
        facts["missing"] += [null] if (null := cells["missing"]) not in facts["missing"] else []
    if said and not (code and "label" not in cells):
        one["comment"] = one["comment"] or said
    elif not code and not one["comment"]:
        one["comment"] = cells.get("label", "")
    kind = cells.get("type", "").lower()
    if kind not in _TYPES:
        known = ", ".join(word for word in dict.fromkeys(_TYPES.values()) if word)
        raise DomainError(f"{where}: column {column!r} has type {kind!r:.80}; known: {known}, categorical")
    facts["kind"] = facts["kind"] or _TYPES[kind]
    facts["form"] = facts["form"] or cells.get("format") or None
    for key, end in (("min", "low"), ("max", "high")):
        text = cells.get(key, "")
        if text:
            number = number_of(text)
            if number is None and facts["kind"] not in ("date", "datetime", "time"):
                raise DomainError(f"{where}: column {column!r} has {key} {text!r:.80}, which is no number")
            facts[end] = text if number is None or facts["kind"] in ("date", "datetime", "time") else number


def _roles(names: Sequence[str]) -> dict[str, int]:
    """Role -> place of the column that has it; no column has two."""
    roles: dict[str, int] = {}
    bare = [re.sub("[^a-z]", "", name.lower()) for name in names]
    for role, words in _ROLES.items():
        place = next((bare.index(word) for word in words if word in bare), None)
        if place is not None and place not in roles.values():
            roles[role] = place
    return roles


def _rows(path: Path) -> list[list[str]]:
    try:
        content = bounded_bytes(path, _MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DomainError(f"cannot read the codebook {str(path)!r}: {reason}") from None
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = None
    for encoding in ("utf-16",) if wide else ("utf-8-sig", "cp1252"):  # as the first line of records is read
        with contextlib.suppress(UnicodeDecodeError):
            text = content.decode(encoding)
            break
    if text is None:
        raise DomainError(f"codebook {path} is not {'UTF-16' if wide else 'UTF-8'}; save it as UTF-8")
    first = re.sub(r'"[^"]*"', "", text.lstrip().split("\n", 1)[0])
    delimiter = max((",", ";", "\t", "|"), key=first.count)
    try:
        return [
            row for row in csv.reader(text.splitlines(keepends=True), delimiter=delimiter, skipinitialspace=True) if row
        ]
    except csv.Error as error:
        raise DomainError(f"codebook {path} is no CSV: {error}") from None
