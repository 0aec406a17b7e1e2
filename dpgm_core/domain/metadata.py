"""Metadata: descriptions of the columns of a table as plain values, and their combination."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, get_args

from attrs import evolve, field, frozen

from dpgm_core._util.toml import domain_toml
from dpgm_core.domain.attribute import first_repeated
from dpgm_core.domain.attribute_tables import KEYS, MATCHING
from dpgm_core.domain.values import Kind, Values
from dpgm_core.errors import DomainError, did_you_mean

__all__ = ["BINS", "Metadata", "SINGLE", "apply_defaults", "check_defaults", "combine_metadata", "complete_metadata"]

#: Bins of a numeric column whose description says none, and how many whole numbers have one each.
BINS, SINGLE = 32, 100

#: What may be said once for all columns.
_EVERYWHERE = (*MATCHING, "missing", "null_values")
_KINDS: Sequence[str] = get_args(Kind)
_HOURS = 24  # bins of a time of day
_CALENDAR = ((100, "day"), (3_000, "month"), (math.inf, "year"))  # up to so many days
# What belongs to an answer out of a list, and to one on an axis: where a description says the one, the other goes.
_LISTED, _CUT = ("labels", "coded", "size"), ("min", "max", "bins", "cap", "scale", "decimals", "shape")


@frozen(kw_only=True)
class Metadata:
    """A description of the columns of a table, in plain values; nothing in it comes from a record.

    tables: column -> its table as a domain file has it (`labels`, `type`, `min`, `max`, `bins`, ...); one that is not
    complete holds `todo`, a sentence that says what to fill in. comments: column -> what it is. meanings: column ->
    label -> what it stands for. defaults, constraints: those of a domain file, for all columns and among them. Raises
    DomainError. Whoever reads another format makes one, which `read_metadata` takes like a file.

    >>> from dpgm_core.domain import read_metadata
    >>> mine = Metadata(tables={"sex": {"labels": ["F", "M"]}, "age": {"type": "integer"}}, comments={"age": "years"})
    >>> mine.todo, read_metadata(mine).todo
    ((), ('age',))
    """

    tables: Mapping[str, Mapping[str, Any]]
    comments: Mapping[str, str] = field(factory=dict)
    meanings: Mapping[str, Mapping[str, str]] = field(factory=dict)
    defaults: Mapping[str, Any] = field(factory=dict)
    constraints: Mapping[str, Mapping[str, Any]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        parts = {"tables": self.tables, "comments": self.comments, "meanings": self.meanings}
        for what, value in {**parts, "constraints": self.constraints}.items():
            if not isinstance(value, Mapping):
                raise DomainError(f"the {what} of metadata must be a mapping by column, got {type(value).__name__}")
        check_defaults(self.defaults)
        if not self.tables and not self.defaults and not self.constraints:
            raise DomainError("the metadata name no column")
        for column, table in self.tables.items():
            if not isinstance(column, str) or not column.strip():
                raise DomainError(f"the metadata have a column named {column!r}; a name is a text with letters")
            if not isinstance(table, Mapping):
                raise DomainError(f"column {column!r} must be a table such as {{'labels': ['a']}}, got {table!r:.80}")

    @property
    def todo(self) -> tuple[str, ...]:
        """The columns that still need a word of the owner.

        >>> Metadata(tables={"a": {"todo": "say labels = [...]"}, "b": {"size": 2}}).todo
        ('a',)
        """
        return tuple(column for column, table in self.tables.items() if "todo" in table)

    def to_dict(self) -> dict[str, Any]:
        """As a domain file has it, without comments; `Domain.from_dict` reads it.

        >>> Metadata(tables={"a": {"labels": ["x", "y"]}}).to_dict()
        {'attributes': {'a': {'labels': ['x', 'y']}}}
        """
        more = {"defaults": self.defaults, "constraints": self.constraints}
        tables = {column: dict(table) for column, table in self.tables.items()}
        return {**{key: dict(part) for key, part in more.items() if part}, "attributes": tables}

    def to_toml(self, within: str = "") -> str:
        """The text of a domain file, with comments that say what there is to decide. within: `domain.` in a spec.

        >>> print(Metadata(tables={"a": {"labels": ["x"]}}, comments={"a": "a letter"}).to_toml().split("\\n\\n")[-1])
        # a letter
        [attributes.a]
        labels = ["x"]
        <BLANKLINE>
        """
        return domain_toml(self.tables, self.comments, self.meanings, self.defaults, self.constraints, within)


def combine_metadata(descriptions: Sequence[Metadata]) -> Metadata:
    """Several descriptions of one table as one: a later one overrides an earlier one, key by key.

    Labels and a range exclude each other, so whichever comes later drops the other. A null value named by any of them
    is no label. Defaults and constraints are overridden by their names.
    """
    tables: dict[str, dict[str, Any]] = {}
    others: dict[str, dict[str, Any]] = {key: {} for key in ("comments", "meanings", "defaults", "constraints")}
    for metadata in descriptions:
        for column, table in metadata.tables.items():
            tables[column] = _override(tables.get(column, {}), table)
        for key, part in others.items():
            part |= getattr(metadata, key)
    return Metadata(tables=tables, **others)


def check_defaults(plain: object) -> dict[str, Any]:
    """Return what a domain says once for all columns. Raises DomainError for other settings."""
    if not isinstance(plain, Mapping):
        raise DomainError(f"the defaults of a domain must be a table, [defaults]; got {plain!r:.80}")
    for key in plain:
        if key not in _EVERYWHERE:
            raise DomainError(
                f"[defaults] has no setting {key!r}{did_you_mean(str(key), _EVERYWHERE)}; it may hold "
                f"{', '.join(_EVERYWHERE)}, which are about raw texts in any column"
            )
    return dict(plain)


def apply_defaults(tables: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The tables with the defaults where they say nothing themselves; codes, those of a size, have no other texts."""
    own = {"missing": ("missing", "null"), "null_values": ("null_values",)}

    def with_defaults(table: Any) -> Any:
        if not isinstance(table, Mapping) or "size" in table:
            return table
        new = {key: value for key, value in defaults.items() if not any(one in table for one in own.get(key, (key,)))}
        return {**new, **table}

    return {name: with_defaults(table) for name, table in tables.items()}


def complete_metadata(metadata: Metadata) -> Metadata:
    """With bins where there is a range, and a `todo` where something is missing; a DomainError names the column."""
    return evolve(
        metadata, tables={column: _complete_table(column, table) for column, table in metadata.tables.items()}
    )


def _override(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    if any(key in above for key in _LISTED):
        below = _without(below, (*_CUT, "todo"))
    elif any(key in above for key in _CUT):
        edges = isinstance(above.get("bins"), list)  # they say the bounds as well
        gone = ["min", "max"] if edges else ["bins", "cap"] if {"min", "max"} & set(above) else []
        below = _without(below, (*_LISTED, "todo", *gone))
    table = {**below, **above}
    if "labels" in table and isinstance(table["labels"], list):
        null = {table.get("missing"), *table.get("null_values", ())}
        table["labels"] = [label for label in table["labels"] if label not in null]
    return table


def _without(table: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def _complete_table(column: str, table: Mapping[str, Any]) -> dict[str, Any]:
    where, full = f"column {column!r}", dict(table)
    for key in full:
        if key not in KEYS:
            raise DomainError(f"{where} has no setting {key!r:.80}{did_you_mean(key, KEYS)}")
    kind = full.get("type")
    if kind is not None and kind not in _KINDS:
        raise DomainError(f"{where}: no type {kind!r:.80}{did_you_mean(kind, _KINDS)}")
    if "todo" in full or "size" in full:
        return full
    if "labels" in full:
        _check_labels(where, full["labels"])
        # A column of numbers with gaps is written as 1.0 by many programs, and its codebook says 1.
        return {**full, "numbers": True} if kind in ("integer", "number") and "numbers" not in full else full
    if kind == "boolean":
        return full
    if kind == "text":
        return {**full, "todo": "say labels = [...]"}
    lacking = [end for end in ("min", "max") if end not in full]
    if kind == "time" and len(lacking) > 1:  # a day has its ends
        return {**full, "bins": full.get("bins", _HOURS)}
    if not lacking:
        return _cut(where, full)
    if "bins" in full and not isinstance(full["bins"], (int, str, Mapping)):  # edges say it all
        return full
    if kind is None and len(lacking) > 1:
        return {**full, "todo": "say labels = [...], or type, min, max and bins"}
    todo = f"say {' and '.join(f'{end} = ...' for end in lacking)}"
    usual = {"time": _HOURS, "date": "month", "datetime": "month"}.get(str(kind), BINS)
    return {**full, "bins": full.get("bins", usual), "todo": todo}


def _check_labels(where: str, labels: object) -> None:
    if isinstance(labels, Mapping):  # found privately
        return
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise DomainError(f"{where}: labels must be a list of texts, got {labels!r:.80}")
    if not labels:
        raise DomainError(f"{where} has no label besides its null values; give at least one")
    twice = first_repeated(labels)
    if twice is not None:
        raise DomainError(f"{where} has code {twice!r:.80} twice; remove one")


def _cut(where: str, table: dict[str, Any]) -> dict[str, Any]:
    """Bins between declared ends, and the type if none is declared: whole numbers if both ends are."""
    ends = (table["min"], table["max"])
    if table.get("type") in ("date", "datetime", "time") or any(isinstance(end, (str, date, time)) for end in ends):
        return _calendar(where, table)
    low, high = (_number(where, key, table[key]) for key in ("min", "max"))
    if low > high:
        raise DomainError(f"{where}: min {low} is above max {high}")
    table = {"type": "integer" if isinstance(low, int) and isinstance(high, int) else "number", **table}
    if table["type"] == "integer" and not (float(low).is_integer() and float(high).is_integer()):
        raise DomainError(f"{where} is of whole numbers, but min = {low} and max = {high} are not both whole")
    if low == high:
        return {**table, "bins": BINS, "todo": f"min and max are both {low}; say a range, or labels = [...]"}
    if table["type"] == "integer":
        table |= {"min": int(low), "max": int(high)}
    single = table["type"] == "integer" and high - low < SINGLE and table.get("scale", "linear") == "linear"
    return {**table, "bins": table.get("bins", int(high - low) + 1 if single else BINS)}


def _number(where: str, key: str, value: object) -> int | float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**63 and value == value:
        return value
    raise DomainError(f"{where}: {key} must be a number of less than 2^63, got {value!r:.80}")


def _calendar(where: str, table: dict[str, Any]) -> dict[str, Any]:
    kind = table.setdefault("type", "date")
    if kind not in ("date", "datetime", "time"):
        raise DomainError(
            f"{where} is of type {kind}, but its min and max are {table['min']!r:.40}, {table['max']!r:.40}"
        )
    low, high = (_moment(where, key, table[key], kind, table.get("format")) for key in ("min", "max"))
    if low > high:
        raise DomainError(f"{where}: min {table['min']!s:.40} is after max {table['max']!s:.40}")
    bins = _HOURS if kind == "time" else next(unit for most, unit in _CALENDAR if (high - low).days <= most)
    return {**table, "bins": table.get("bins", bins)}


def _moment(where: str, key: str, value: object, kind: Kind, form: str | None) -> datetime:
    """A declared end as a moment; of times of the day, on a day of no meaning."""
    try:
        Values(kind=kind, format=form)
    except DomainError as error:
        raise DomainError(f"{where}: {error}") from None
    try:
        if isinstance(value, datetime):
            return value.replace(tzinfo=None)
        if isinstance(value, date):
            return datetime.combine(value, time())
        if isinstance(value, time):
            return datetime.combine(date.min, value.replace(tzinfo=None))
        text = str(value)
        if form is not None:
            return datetime.strptime(text, form).replace(tzinfo=None)
        if kind == "time":
            return datetime.combine(date.min, time.fromisoformat(text).replace(tzinfo=None))
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except (ValueError, re.error):  # the latter for a format that says the same twice
        shown = "as in 2024-01-31, 2024-01-31T12:00 or 12:00" if form is None else f"in the format {form!r:.40}"
        raise DomainError(f"{where}: {key} = {value!r:.80} is no {kind}; write it {shown}") from None
