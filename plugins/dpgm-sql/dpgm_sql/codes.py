"""Codes made in SQL, the same for every value as core makes of the column's Arrow values, or none at all.

The values of a type with an order fall into ranges of one code each. Where a range may begin is worked out from the
attribute; which code it has is asked of core itself, at its first value and at its last, and where the two differ
there is no code in SQL. Texts have no ranges: those with a meaning of their own are known, all others are unknown.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pyarrow as pa

from dpgm_core import Attribute, DataError, Domain
from dpgm_core.domain import Matching
from dpgm_core.sources import as_source
from dpgm_sql.axes import Axis, axis_of
from dpgm_sql.dialect import Column, Engine, quoted
from dpgm_sql.numerics import numeric_tree
from dpgm_sql.trees import Range, even, number_tree, text_tree
from dpgm_sql.types import known_type
from dpgm_sql.values import CELLS

__all__ = ["coded"]

#: The most ranges, or texts, that are spelled out for one column; codes of more are made here.
MAX_RANGES = 4096
#: The most values whose codes core is asked for.
MAX_VALUES = 2**18
_EXACT = Matching()


def coded(attribute: Attribute, column: Column, engine: Engine, *, utf8: bool = True) -> str | None:
    """An SQL expression for the code of each value of a column, NULL included; None where SQL might make another.

    utf8: whether the database holds texts in UTF-8. Nothing but what is public is looked at.

    >>> age = Column(name="age", declared="bigint", read='"age"', kind=pa.int64())
    >>> coded(Attribute.of_bins("age", [0, 18, 65], unknown="?"), age, "postgresql")
    'CASE WHEN "age" < 18 THEN CASE WHEN "age" < 0 THEN 2 ELSE 0 END ELSE CASE WHEN "age" < 66 THEN 1 ELSE 2 END END'
    """
    if engine == "sqlite":
        return _by_cell(attribute, column.read) if utf8 else None
    if engine == "postgresql" and column.declared == "numeric" and column.kind == CELLS:
        own = quoted(column.name)
        body = numeric_tree(attribute, own, partial(_codes_of, attribute), MAX_RANGES)
        return None if body is None else f"CASE WHEN {own} IS NULL THEN {attribute.null} ELSE {body} END"
    kind = known_type(column, engine)
    if kind is None:
        return None
    try:
        null = _codes_of(attribute, pa.nulls(1, kind))[0]
    except DataError:  # to be said by those who read them
        return None
    if pa.types.is_string(kind):
        own = f"CAST({column.read} AS VARCHAR)" if column.declared == "enum" and engine == "duckdb" else column.read
        body = _texts(attribute, own, engine, utf8=utf8)
    elif pa.types.is_boolean(kind):
        no, yes = _codes_of(attribute, pa.array([False, True]))
        body = f"CASE WHEN {column.read} THEN {yes} ELSE {no} END"
    else:
        body = _ordered(attribute, column.read, kind, engine)
    if body is None or _falls_to(body, null):
        return body
    return f"CASE WHEN {column.read} IS NULL THEN {null} ELSE {body} END"


def _falls_to(body: str, null: int) -> bool:
    """Whether NULL has this code without a test of its own: no comparison with it is true, so it takes the last ELSE.

    >>> _falls_to('CASE WHEN "a" < 1 THEN 0 ELSE CASE WHEN "a" < 3 THEN 1 ELSE 2 END END', 2)
    True
    """
    return re.sub("( END)+$", "", body).endswith(f" ELSE {null}")


def _texts(attribute: Attribute, read: str, engine: Engine, *, utf8: bool) -> str | None:
    """Texts as labels, byte for byte. Bins of texts, and other rules of matching, are core's alone."""
    if attribute.edges is not None or attribute.matching != _EXACT or len(attribute.forms) > MAX_RANGES:
        return None
    try:
        texts = {form.decode(): code for form, code in attribute.forms.items()}
    except UnicodeDecodeError:
        return None
    if any("\0" in text for text in texts) or not (utf8 or all(text.isascii() for text in texts)):
        return None
    codes = _codes_of(attribute, pa.array(list(texts)))
    if codes != list(texts.values()):
        return None
    return text_tree(read, texts, attribute.unknown, engine)


def _by_cell(attribute: Attribute, read: str) -> str | None:
    """Cells of SQLite, each by its own type, whatever the column's. Any may be a text, so there is nothing for bins."""
    texts = _texts(attribute, f"CAST({read} AS TEXT)", "sqlite", utf8=True)
    if texts is None:
        return None
    whole = _ordered(attribute, read, pa.int64(), "sqlite")
    real = _ordered(attribute, read, pa.float64(), "sqlite")
    if whole is None or real is None:
        return None
    kinds = {"null": str(attribute.null), "integer": whole, "real": real}
    whens = "".join(f" WHEN '{kind}' THEN {code}" for kind, code in kinds.items())
    return f"CASE typeof({read}){whens} ELSE {texts} END"


def _ordered(attribute: Attribute, read: str, kind: Any, engine: Engine) -> str | None:
    """Numbers, dates and times, by ranges."""
    axis = axis_of(attribute, kind)
    if axis is None:
        return None
    ranges = _ranges(attribute, axis)
    if ranges is None:
        return None
    shorter = even(ranges, axis)
    if len(shorter) > MAX_RANGES:
        return None
    return number_tree(read, shorter, axis, engine, unknown=attribute.unknown, null=attribute.null)


def _ranges(attribute: Attribute, axis: Axis) -> list[Range] | None:
    """Return where codes begin; None where core does not give one code to both ends of what should be one range."""
    starts = sorted({axis.least, *(place for place in axis.places(attribute) if axis.least < place <= axis.most)})
    if len(starts) > MAX_VALUES:
        return None
    ends = [*map(axis.before, starts[1:]), axis.most]
    codes = _codes_of(attribute, axis.array([*starts, *ends]))
    firsts, lasts = codes[: len(starts)], codes[len(starts) :]
    if firsts != lasts:
        return None
    changes = [at for at in range(len(starts)) if at == 0 or firsts[at] != firsts[at - 1]]
    return [Range(starts[at], firsts[at]) for at in changes]


def _codes_of(attribute: Attribute, values: Any) -> list[int]:
    """Return the codes that core makes of some values, which are public."""
    source: Any = as_source(pa.table({attribute.name: values}))
    batches = source.batches(Domain([attribute]), [attribute.name])
    return [int(code) for (codes,) in batches for code in codes]
