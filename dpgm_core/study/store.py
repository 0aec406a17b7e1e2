"""Append-only files of JSON lines, which survive a killed process.

A line is written whole, flushed and synced. A partial last line is removed at the next start.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any

__all__ = ["Line", "append", "parse_lines", "rewrite"]

Line = dict[str, Any]


def append(file: IO[str], line: Mapping[str, Any]) -> None:
    """Write a line at the end; ValueError where it holds infinity or NaN, which JSON does not have."""
    file.write(json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n")
    file.flush()
    os.fsync(file.fileno())


def parse_lines(content: bytes, key: Callable[[Line], object]) -> tuple[list[Line], list[int]]:
    """The whole lines, and the numbers of the others. A last line without its end is whole if it can be read.

    key: what tells runs apart; a line of which it raises KeyError, TypeError or ValueError is none.

    >>> parse_lines(b'{"run":1}\\n{"ru', lambda line: line["run"])
    ([{'run': 1}], [2])
    """
    whole, broken = [], []
    for number, text in enumerate(content.split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            key(line)
            whole.append(line)
        except (ValueError, TypeError, KeyError, RecursionError):
            broken.append(number)
    return whole, broken


def rewrite(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """The same file with these lines; at any time it is there as a whole, the old one or the new one."""
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("w", encoding="utf-8") as file:
        for line in lines:
            append(file, line)
    fresh.replace(path)
