"""A tree of CASE that finds the code of a value among n ranges or texts by about log2 n comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import pyarrow as pa
from attrs import frozen

from dpgm_sql.axes import Axis, Place
from dpgm_sql.dialect import Engine
from dpgm_sql.types import sql_type

__all__ = ["Range", "even", "literal", "number_tree", "text_tree", "tree"]

T = TypeVar("T")

#: Texts of a leaf, which are compared one after the other.
_LEAF = 3
#: Ranges of one width, one after the other, from which they are found by a division.
_EVEN = 4


@frozen
class Range:
    """Values from a start up to the next one's, all of one code; of `width` > 0 each so many ticks are a code more."""

    start: Place
    code: int
    width: int = 0


def literal(text: str, engine: Engine) -> str:
    """A text as SQL reads it, whatever is in it but a NUL.

    >>> literal("it's", "duckdb"), literal("a\\\\'; --", "postgresql")
    ("'it''s'", "E'a\\\\\\\\''; --'")
    """
    quoted = text.replace("'", "''")
    if engine == "postgresql" and "\\" in text:  # which means itself or not, as a setting has it, but for E''
        return "E'" + quoted.replace("\\", "\\\\") + "'"
    return f"'{quoted}'"


def even(ranges: Sequence[Range], axis: Axis) -> list[Range]:
    """Runs of ranges of one width, whose codes go up by one, as one each where values are whole numbers.

    >>> from dpgm_core import Attribute
    >>> from dpgm_sql.axes import axis_of
    >>> kind = axis_of(Attribute.of_size("a", 9), pa.int8())
    >>> even([Range(-128, 0), *(Range(n, n) for n in range(1, 9)), Range(9, 0)], kind)
    [Range(start=-128, code=0, width=0), Range(start=1, code=1, width=1), Range(start=9, code=0, width=0)]
    """
    if not pa.types.is_integer(axis.kind) or pa.types.is_uint64(axis.kind):
        return list(ranges)
    merged = list(ranges[:1])  # which starts at the least value of all
    at = 1
    while at < len(ranges):  # the last range has no end to be measured
        end = at + 1
        while end < len(ranges) - 1 and _continues(ranges, at, end):
            end += 1
        many = end - at >= _EVEN and at + 1 < len(ranges)
        if many:
            merged.append(Range(ranges[at].start, ranges[at].code, int(ranges[at + 1].start - ranges[at].start)))
            at = end
        else:
            merged.append(ranges[at])
            at += 1
    return merged


def text_tree(read: str, texts: Mapping[str, int], unknown: int, engine: Engine) -> str:
    """The code of a text, byte for byte, whatever the collation of the column, the database or the session."""
    collated = f'{read} COLLATE "{"C" if engine == "postgresql" else "BINARY"}"'
    if engine == "sqlite":  # which may hold texts in UTF-16, and then orders them by that
        whens = "".join(f" WHEN {literal(text, engine)} THEN {code}" for text, code in texts.items())
        return f"CASE {collated}{whens} ELSE {unknown} END" if texts else str(unknown)
    ordered = sorted(texts.items(), key=lambda pair: pair[0].encode())

    def leaf(pairs: Sequence[tuple[str, int]]) -> str:
        whens = "".join(f" WHEN {collated} = {literal(text, engine)} THEN {code}" for text, code in pairs)
        return f"CASE{whens} ELSE {unknown} END"

    def less(pair: tuple[str, int]) -> str:
        return f"{collated} < {literal(pair[0], engine)}"

    known = [pair for pair in ordered if pair[1] != unknown]
    return tree(known, leaf, less, _LEAF) if known else str(unknown)


def number_tree(read: str, ranges: Sequence[Range], axis: Axis, engine: Engine, *, unknown: int, null: int) -> str:
    """The code of a number, a date or a time; null: that of NaN, unknown: that of fractions where all are whole."""
    kind = axis.kind
    floating = pa.types.is_floating(kind)

    def spelled(place: Place) -> str:
        if pa.types.is_integer(kind) and (place >= 0 or engine == "sqlite"):
            return axis.text(place)
        if engine == "sqlite":
            return _exact(float(place))
        return f"CAST('{axis.text(place)}' AS {sql_type(kind, engine)})"

    def leaf(part: Sequence[Range]) -> str:
        (one,) = part
        if not one.width:
            return str(one.code)
        if one.width == 1 and one.start == one.code:
            return f"CAST({read} AS INTEGER)"
        offset = f"(CAST({read} AS BIGINT) - {spelled(one.start)})"
        if one.width > 1:
            offset = f"({offset} {'//' if engine == 'duckdb' else '/'} {one.width})"
        return f"CAST({offset} AS INTEGER) + {one.code}"

    cases = tree(ranges, leaf, lambda one: f"{read} < {spelled(one.start)}", 1)
    if not floating or engine == "sqlite":  # which has no NaN
        return cases
    if axis.whole:
        most = f"CAST('{axis.text(axis.most)}' AS {sql_type(kind, engine)})"
        cases = f"CASE WHEN floor({read}) = {read} AND abs({read}) <= {most} THEN {cases} ELSE {unknown} END"
    return f"CASE WHEN {read} = CAST('NaN' AS {sql_type(kind, engine)}) THEN {null} ELSE {cases} END"


def _exact(number: float) -> str:
    """A float as whole numbers and their quotient by powers of two: not every SQLite reads decimals to the last bit.

    >>> _exact(0.75), _exact(-float("inf"))
    ('(CAST(3 AS REAL) / CAST(4 AS REAL))', '-9e999')
    """
    if math.isinf(number):
        return "9e999" if number > 0 else "-9e999"
    top, bottom = number.as_integer_ratio()
    spelled = ""
    shift = (top & -top).bit_length() - 1 if top else 0
    for sign, power in (("*", shift), ("/", bottom.bit_length() - 1)):
        while power:
            step = min(power, 62)
            spelled += f" {sign} CAST({2**step} AS REAL)"
            power -= step
    return f"(CAST({top >> shift} AS REAL){spelled})"


def tree(items: Sequence[T], leaf: Callable[[Sequence[T]], str], less: Callable[[T], str], most: int) -> str:
    """Halves that are told apart by whether a value is less than the second's first item, down to `most` items a leaf.

    >>> tree([0, 1], lambda items: f"<{items[0]}>", lambda item: f"x < {item}", 1)
    'CASE WHEN x < 1 THEN <0> ELSE <1> END'
    """
    if len(items) <= most:
        return leaf(items)
    middle = len(items) // 2
    left, right = (tree(half, leaf, less, most) for half in (items[:middle], items[middle:]))
    return f"CASE WHEN {less(items[middle])} THEN {left} ELSE {right} END"


def _continues(ranges: Sequence[Range], first: int, at: int) -> bool:
    width = ranges[first + 1].start - ranges[first].start
    return (
        ranges[at + 1].start - ranges[first].start < 2**62
        and ranges[at].code == ranges[first].code + at - first
        and ranges[at].start == ranges[first].start + width * (at - first)
        and ranges[at + 1].start == ranges[at].start + width
    )
