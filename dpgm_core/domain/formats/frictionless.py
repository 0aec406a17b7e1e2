"""Table schemas of the Frictionless standards, alone or in a data package of one resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpgm_core.domain.formats.codebook import number_of
from dpgm_core.domain.formats.nist import text_of
from dpgm_core.domain.metadata import Metadata
from dpgm_core.errors import DomainError

__all__ = ["package_schema", "table_schema"]

_TYPES = {
    **{kind: kind for kind in ("integer", "number", "boolean", "date", "datetime", "time")},
    "string": None,
    "any": None,
    "year": "integer",
    "list": None,
}
_NO_LABELS = ("object", "array", "geopoint", "geojson", "duration", "list")


def package_schema(package: Mapping[str, Any]) -> Mapping[str, Any]:
    """The table schema of a data package's only resource. Raises DomainError."""
    resources = package["resources"]
    if not isinstance(resources, list) or len(resources) != 1 or not isinstance(resources[0], Mapping):
        raise DomainError(
            f"a data package must have one resource to be one table, this has "
            f"{len(resources) if isinstance(resources, list) else 'none that is a list'}; give the table schema itself"
        )
    schema = resources[0].get("schema")
    if not isinstance(schema, Mapping):
        raise DomainError("the data package's resource has no schema within the file; give the table schema itself")
    return schema


def table_schema(schema: Mapping[str, Any]) -> Metadata:
    """What a table schema says: types, formats, `enum`, `minimum`, `maximum`, `categories`, missing values.

    Raises DomainError, naming the field.
    """
    fields = schema.get("fields")
    if not isinstance(fields, list) or not fields:
        raise DomainError("the table schema has no list of fields")
    common = _missing("the table schema", schema.get("missingValues", [""]))
    tables: dict[str, Mapping[str, Any]] = {}
    comments, meanings = {}, {}
    for number, field in enumerate(fields, start=1):
        if not isinstance(field, Mapping) or not isinstance(name := field.get("name"), str):
            raise DomainError(f"the table schema's field {number} has no name")
        where = f"table schema: column {name!r}"
        if name in tables:
            raise DomainError(f"{where} stands twice; remove one")
        null = _missing(where, field["missingValues"]) if "missingValues" in field else common
        tables[name], meanings[name] = _table(where, field, null)
        comments[name] = ". ".join(text for key in ("title", "description") if isinstance(text := field.get(key), str))
    return Metadata(tables=tables, comments=comments, meanings=meanings)


def _table(where: str, field: Mapping[str, Any], null: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    stated = field.get("type", "any")
    meanings = dict(null)
    if not isinstance(stated, str) or stated not in (*_TYPES, *_NO_LABELS, "yearmonth"):
        raise DomainError(f"{where} has type {stated!r:.80}, which table schemas do not have")
    if stated in _NO_LABELS:
        return {"todo": f"type {stated!r} is no column of a table; delete it, or say labels = [...]"}, meanings
    table: dict[str, Any] = {"type": kind} if (kind := _TYPES.get(stated)) is not None else {}
    if kind in ("date", "datetime", "time") and field.get("format", "default") not in ("default", "any"):
        table["format"] = text_of(where, field["format"])
    for key, ours, usual in (("decimalChar", "decimal", "."), ("groupChar", "thousands", "")):
        if kind in ("integer", "number") and field.get(key, usual) != usual:
            table[ours] = text_of(where, field[key])
    labels = _labels(where, field, kind, meanings)
    if labels is not None and kind == "boolean":
        del table["type"]  # other words than true and false are texts
    if labels is not None:
        table["labels"] = [label for label in labels if label not in null]
    else:
        table |= _range(where, field, kind)
    words = [text for text in null if text]
    if _constraints(where, field).get("required") is True:
        table["null_values"] = []  # never sampled without a value
    elif words:
        table |= {"missing": words[0] if len(words) == 1 else "missing", "null_values": list(null)}
    return table, meanings


def _labels(where: str, field: Mapping[str, Any], kind: str | None, meanings: dict[str, str]) -> list[str] | None:
    """The listed values: `enum`, `categories`, or how true and false are written."""
    if kind == "boolean":
        truths = [field.get(key, [text]) for key, text in (("falseValues", "false"), ("trueValues", "true"))]
        if truths != [["false"], ["true"]] and all(isinstance(one, list) and one for one in truths):
            return [text_of(where, value) for one in truths for value in one]
        return None
    listed = field.get("categories", _constraints(where, field).get("enum"))
    if listed is None:
        return None
    if not isinstance(listed, list):
        raise DomainError(f"{where}: its enum or categories must be a list, got {listed!r:.80}")
    labels = []
    for one in listed:
        value = one.get("value") if isinstance(one, Mapping) else one
        labels.append(text_of(where, value))
        if isinstance(one, Mapping) and isinstance(one.get("label"), str):
            meanings[labels[-1]] = one["label"]
    return labels


def _range(where: str, field: Mapping[str, Any], kind: str | None) -> dict[str, Any]:
    constraints = _constraints(where, field)
    ends = {ours: constraints[key] for key, ours in (("minimum", "min"), ("maximum", "max")) if key in constraints}
    if kind in ("integer", "number"):  # numbers may stand as the field has them, as texts
        ends = {key: number_of(end) if isinstance(end, str) else end for key, end in ends.items()}
    return ends if kind is not None else {}


def _constraints(where: str, field: Mapping[str, Any]) -> Mapping[str, Any]:
    constraints = field.get("constraints", {})
    if not isinstance(constraints, Mapping):
        raise DomainError(f"{where}: its constraints must be a table, got {constraints!r:.80}")
    return constraints


def _missing(where: str, values: object) -> dict[str, str]:
    """Missing values -> what each means; they are texts, or tables of a value and a label."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise DomainError(f"{where}: missingValues must be a list, got {values!r:.80}")
    labels = {}
    for one in values:
        value = one.get("value") if isinstance(one, Mapping) else one
        label = one.get("label") if isinstance(one, Mapping) else None
        labels[text_of(where, value)] = label if isinstance(label, str) else ""
    return labels
