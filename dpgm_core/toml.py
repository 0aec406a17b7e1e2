"""Parsing of TOML; every fault is one ValueError."""

from __future__ import annotations

import re
import tomllib
from typing import Any

__all__ = ["parse_toml"]

_MAX_NESTING = 100
# A key of many parts; tomllib takes time with their square, and half a kilobyte for each.
_LONG_KEY = re.compile(rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_MAX_NESTING}}}""")

_COMMA = re.compile(r"(?<![\w-])([\w-]++)[ \t]*+=[ \t]*+([0-9]++),([0-9]++)")


def parse_toml(content: str | bytes) -> dict[str, Any]:
    """The tables of a TOML text, or of a file's bytes; ValueError for anything else, nested too deeply or beyond 64-bit
    integers included. A byte order mark, which some editors write, is left out.

    >>> parse_toml("a = 1")
    {'a': 1}
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
