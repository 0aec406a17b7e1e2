"""TOML as the project's files use it: whatever is wrong with a text is one ValueError."""

from __future__ import annotations

import re
import tomllib
from typing import Any

__all__ = ["parse_toml"]

_DEEP = 100
# A key of many parts; tomllib takes time with their square, and half a kilobyte for each.
_LONG_KEY = re.compile(rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_DEEP}}}""")


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text; ValueError for anything else, nested too deeply or beyond 64-bit integers included.

    >>> parse_toml("a = 1")
    {'a': 1}
    """
    if _LONG_KEY.search(text):
        raise ValueError(f"it holds a key of more than {_DEEP} parts")
    try:
        plain = tomllib.loads(text)
        _check(plain)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return plain


def _check(value: object) -> None:
    # Python reads hexadecimal integers of any length, which then can be neither converted nor printed.
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("it holds a whole number beyond 64 bits")
    if isinstance(value, (dict, list)):
        for inside in value.values() if isinstance(value, dict) else value:
            _check(inside)
