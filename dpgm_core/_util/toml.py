"""TOML: reading with line numbers, and attribute tables as text."""

from __future__ import annotations

import math
import re
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from types import MappingProxyType
from typing import Any

from dpgm_core.errors import DomainError, printable

__all__ = ["comment", "domain_toml", "parse_toml", "toml_value"]

_MAX_NESTING = 100
# A key of many parts; tomllib takes time with their square, and half a kilobyte for each.
_LONG_KEY = re.compile(rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_MAX_NESTING}}}""")

_COMMA = re.compile(r"(?<![\w-])([\w-]++)[ \t]*+=[ \t]*+([0-9]++),([0-9]++)")


def parse_toml(content: str | bytes) -> dict[str, Any]:
    """The tables of a TOML text, or of a file's bytes; ValueError for anything else, nested too deeply or beyond 64-bit
    integers included. A byte order mark, which some editors write, is left out.
    """
    text = content if isinstance(content, str) else _decoded(content)
    if _LONG_KEY.search(text):
        raise ValueError(f"it holds a key of more than {_MAX_NESTING} parts")
    try:
        plain = tomllib.loads(text)
        _check(plain)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{error}{_point_for_comma(text, str(error))}") from None
    return plain


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8; save it as UTF-8 text") from None


def _point_for_comma(text: str, error: str) -> str:
    """How to write a number with a decimal comma, if one stands in the line that the error names."""
    line = re.search(r"line (\d+)", error)
    match = _COMMA.search(text.split("\n")[int(line[1]) - 1]) if line else _COMMA.search(text)
    return "" if match is None else f"; numbers have a decimal point: write {match[1]} = {match[2]}.{match[3]}"


def _check(value: object) -> None:
    # Python reads hexadecimal integers of any length, which then can be neither converted nor printed.
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("it holds a whole number beyond 64 bits")
    if isinstance(value, (dict, list)):
        for inside in value.values() if isinstance(value, dict) else value:
            _check(inside)


# --- Domain files as TOML text, with comments on open decisions -----------------------------------

_WIDTH = 118
_MAX_COMMENT_LETTERS = 300  # of a comment taken from a file
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ORDER = (
    "todo", "type", "format", "min", "max", "scale", "bins", "cap", "labels", "size", "missing", "unknown",
    "null_values",
)  # fmt: skip
_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}

_HEAD = """\
The domain: what each column may hold. Everything in this file is public, and no record was read to write it: let
nothing into it that is known from the records alone. What is null, or stands nowhere in a column's list, falls on a
label of its own, `missing`; missing = "N" names it otherwise, unknown = LABEL sends what is not listed elsewhere.
Delete a column that you do not want in the model, such as the key of a person.
Any column may also have null_values = ["", "NA"], case = false, blanks = "strip", numbers = true (1.0 is 1).
"""
_TODO = """
What is to do is filled in with one of these, each setting in a line of its own, in place of the line `todo`:
    labels = ["no", "yes"]
    type = "integer" (or number, date, datetime, time), min = 0, max = 99, bins = 100
        besides, where values are written so: format = "%d.%m.%Y", decimals = 2, decimal = ",", cap = true
    labels = { private = true, keep = 100 } (found in the records, for a share of an epsilon and a delta)
"""


def domain_toml(
    tables: Mapping[str, Mapping[str, Any]],
    comments: Mapping[str, str],
    meanings: Mapping[str, Mapping[str, str]],
    defaults: Mapping[str, Any] = MappingProxyType({}),
    constraints: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    within: str = "",
    head: str = _HEAD,
) -> str:
    """The text of a domain file; DomainError for a value that TOML cannot hold. within: `domain.` of one in a spec.

    head: what stands at its top, as a comment.
    """
    parts = [comment(head + (_TODO if any("todo" in table for table in tables.values()) else ""))]
    if defaults:
        parts.append("# Of every column that does not say otherwise.\n" + f"[{within}defaults]\n" + _settings(defaults))
    for column, table in tables.items():
        said = f"{comment(comments[column])}\n" if comments.get(column, "").strip() else ""
        lines = list(_lines(column, table, meanings.get(column, {})))
        parts.append(f"{said}[{within}attributes.{toml_key(column)}]\n" + "\n".join(lines))
    parts += [f"[{within}constraints.{toml_key(name)}]\n" + _settings(rule) for name, rule in constraints.items()]
    return "\n\n".join(parts) + "\n"


def _settings(table: Mapping[str, Any]) -> str:
    return "\n".join(f"{toml_key(key)} = {toml_value(value)}" for key, value in table.items())


def comment(text: str) -> str:
    """A text of any length as comment lines; what a terminal would obey is spelled out.

    >>> print(comment("one\\nand two"))
    # one
    # and two
    """
    lines = [line for part in text.strip().split("\n") for line in textwrap.wrap(printable(part), _WIDTH) or [""]]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def toml_key(name: str) -> str:
    """A key as TOML has it, in quotes where it needs them.

    >>> toml_key("AGEP"), toml_key("date of birth")
    ('AGEP', '"date of birth"')
    """
    return name if _BARE.fullmatch(name) else toml_value(name)


def toml_value(value: Any) -> str:
    """A plain value as TOML has it in one line; DomainError for what TOML has not.

    >>> print(toml_value({"private": 32}), toml_value(["a", 0.5, True]), toml_value("\\x1b"))
    { private = 32 } ["a", 0.5, true] "\\u001B"
    """
    if isinstance(value, str):
        return f'"{"".join(map(_letter, value))}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{toml_key(str(key))} = {toml_value(inside)}' for key, inside in value.items())} }}"
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return f"[{', '.join(map(toml_value, value))}]"
    raise DomainError(f"a domain file cannot hold {value!r:.80}")


def _letter(letter: str) -> str:
    if letter in _SHORT:
        return _SHORT[letter]
    if letter.isprintable():
        return letter
    if "\ud800" <= letter <= "\udfff":
        raise DomainError("a name or label of the metadata is no valid Unicode text; rename it")
    return f"\\u{ord(letter):04X}" if ord(letter) < 2**16 else f"\\U{ord(letter):08X}"


def _lines(column: str, table: Mapping[str, Any], meanings: Mapping[str, str]) -> Iterator[str]:
    for key in sorted(table, key=lambda one: _ORDER.index(one) if one in _ORDER else len(_ORDER)):
        if key == "labels" and isinstance(table[key], list):
            yield from _labels(table[key], meanings)
            continue
        line = f"{toml_key(key)} = {toml_value(table[key])}"
        if key == "bins" and isinstance(table[key], int):
            # What whole numbers have one bin each need no others.
            line += (
                ""
                if table[key] == _whole(table)
                else "  # or { private = 32 }: edges found for a share of the budget, better with a delta or many rows"
            )
        if table[key] == [] and key == "null_values":
            line += "  # never null, so never sampled without a value"
        if key == "todo":
            line += "  # delete this line when it is done"
        yield line
    missing = table.get("missing")
    if isinstance(missing, str) and meanings.get(missing, "").strip():
        yield f"# {toml_value(missing)}: {_short(meanings[missing])}"


def _whole(table: Mapping[str, Any]) -> int | None:
    low, high = table.get("min"), table.get("max")
    return high - low + 1 if isinstance(low, int) and isinstance(high, int) else None


def _labels(labels: Sequence[Any], meanings: Mapping[str, str]) -> Iterator[str]:
    """Labels in one line, in lines of full width, or one a line where each has a meaning to tell."""
    if any(meanings.get(label, "").strip() not in ("", label) for label in labels):
        yield "labels = ["
        for label in labels:
            said = meanings.get(label, "").strip()
            yield f"    {toml_value(label)}," + (f"  # {_short(said)}" if said else "")
        yield "]"
        return
    line = f"labels = {toml_value(labels)}"
    if len(line) <= _WIDTH:
        yield line
        return
    yield "labels = ["
    row = "   "
    for text in (f" {toml_value(label)}," for label in labels):
        if len(row) + len(text) > _WIDTH and row.strip():
            yield row
            row = "   "
        row += text
    yield row
    yield "]"


def _short(text: str) -> str:
    shown = " ".join(printable(text).split())
    return shown if len(shown) <= _MAX_COMMENT_LETTERS else f"{shown[:_MAX_COMMENT_LETTERS]} ..."
