"""The schemas and data dictionaries of NIST's excerpts: JSON with values, or a range, for each column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpgm_core.domain.formats.codebook import column_of_codes
from dpgm_core.domain.metadata import Metadata
from dpgm_core.errors import DomainError

__all__ = ["nist_dictionary", "nist_schema", "text_of"]

_DTYPES = {
    "int": "integer",
    "uint": "integer",
    "Int": "integer",
    "UInt": "integer",
    "float": "number",
    "bool": "boolean",
}


def nist_schema(columns: Mapping[str, Any]) -> Metadata:
    """What stands under "schema": column -> `values`, or `min` and `max`; `dtype`; `null_value` where `has_null`.

    A declared null value is the label of what is null or unknown, and no other. A range of dtype "object" is one of
    numbers. Whole ends of numbers are taken as rounded, so what lies beyond falls into the bin next to it. Raises
    DomainError.
    """
    tables, comments = {}, {}
    for column, entry in columns.items():
        where = f"NIST schema: column {column!r}"
        if not isinstance(entry, Mapping) or not ("values" in entry or {"min", "max"} <= set(entry)):
            raise DomainError(f"{where} has neither values nor min and max")
        dtype = str(entry.get("dtype", ""))
        kind = next((kind for start, kind in _DTYPES.items() if dtype.startswith(start)), None)
        null = text_of(where, entry["null_value"]) if entry.get("has_null") and "null_value" in entry else ""
        table: dict[str, Any] = {"type": kind} if kind is not None else {}
        if "values" in entry:
            if not isinstance(entry["values"], list):
                raise DomainError(f"{where}: its values must be a list, got {entry['values']!r:.80}")
            if not entry["values"]:
                raise DomainError(f"{where} has an empty list of values")
            table["labels"] = [text for value in entry["values"] if (text := text_of(where, value)) != null]
        else:
            table |= {"type": kind or "number", "min": entry["min"], "max": entry["max"]}
            if table["type"] == "number" and isinstance(entry["min"], int) and isinstance(entry["max"], int):
                # NIST's own have 3683 for a largest 3683.9: without a cap those would be unknown.
                table["cap"] = True
                comments[column] = (
                    "The schema rounds the ends to whole numbers: what lies beyond is in the bin next to it."
                )
        # A column without null values is never sampled without a value.
        table |= {"missing": null, "null_values": [null]} if null else {"null_values": []}
        tables[column] = table
    return Metadata(tables=tables, comments=comments)


def nist_dictionary(columns: Mapping[str, Any]) -> Metadata:
    """A data dictionary: column -> `description`, and `values`: code -> meaning, with `min` and `max` for a range."""
    tables: dict[str, Mapping[str, Any]] = {}
    comments, meanings = {}, {}
    for column, entry in columns.items():
        where = f"data dictionary: column {column!r}"
        values = entry.get("values", {})
        if not isinstance(values, Mapping):
            raise DomainError(f"{where}: its values must be a table of codes and meanings, got {values!r:.80}")
        said = [str(entry[key]) for key in ("description", "details") if isinstance(entry.get(key), str)]
        comments[column] = ". ".join(said)
        codes = {str(code): str(meaning) for code, meaning in values.items() if code not in ("min", "max")}
        meanings[column] = codes
        tables[column] = column_of_codes(codes=codes, low=values.get("min"), high=values.get("max"))
    return Metadata(tables=tables, comments=comments, meanings=meanings)


def text_of(where: str, value: object) -> str:
    """A value of JSON as CSV files have it: a label. Raises DomainError for a table or a list.

    >>> text_of("", 1), text_of("", True), text_of("", "a")
    ('1', 'true', 'a')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise DomainError(f"{where}: a value must be a text or a number, got {value!r:.80}")
