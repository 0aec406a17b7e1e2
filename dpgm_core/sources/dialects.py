"""CSV dialects: delimiter, quotes, encoding and blanks of a file, and which of them a first line fits.

Only the first line is ever looked at, and messages about it depend only on which of the columns it names.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path

from attrs import evolve, frozen

from dpgm_core.errors import DataError
from dpgm_core.places import Place, Url
from dpgm_core.sources.lines import MAX_LINE
from dpgm_core.sources.reading import attempt
from dpgm_core.sources.transcoding import Encoding

__all__ = ["Dialect", "best", "column_names", "most_named", "otherwise", "unpadded"]

_BOM = b"\xef\xbb\xbf"
_DELIMITERS = (",", ";", "\t", "|")
# Of files that are no UTF-8, Windows' letters are far more frequent than Latin-1, which agrees with them on letters.
_ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "cp1252")


@frozen(kw_only=True)
class Dialect:
    """The options of a CSV source that say how a file is written.

    >>> Dialect(delimiter=";", encoding="utf-16").stated(Path("x.csv"))
    'data = { source = "csv", path = "x.csv", delimiter = ";", encoding = "utf-16" }'
    """

    delimiter: str = ","
    quoting: bool = True
    encoding: Encoding = "utf-8"
    skip_blanks: bool = False

    def stated(self, path: Place) -> str:
        """The line of a spec that says so. A path in a folder is spelled out, as a spec's are relative to the spec."""
        full = str(path) if isinstance(path, Url) else path.name if path.parent == Path() else str(path.absolute())
        plain = {"source": "csv", "path": full} | {
            name: value for name, value in self.options.items() if value != _DEFAULTS[name]
        }
        return (
            f"data = {{ {', '.join(f'{key} = {json.dumps(one, ensure_ascii=False)}' for key, one in plain.items())} }}"
        )

    @property
    def options(self) -> dict[str, str | bool]:
        """Its parts by name."""
        return {
            "delimiter": self.delimiter,
            "quoting": self.quoting,
            "encoding": self.encoding,
            "skip_blanks": self.skip_blanks,
        }


_DEFAULTS = Dialect().options


def column_names(line: bytes, path: Place, dialect: Dialect) -> tuple[str, ...]:
    """The names in a file's first line, which is UTF-8 by now; DataError says, for the owner, why there are none.

    Names in quotes are refused unless `quoting` is on: the values then stand in quotes as well, as a rule, and would
    all be unknown; with `quoting` on, values without quotes are read just as well.
    """
    if not line.strip():
        raise DataError(f"{path} is empty; its first line must name the columns")
    line = line.removesuffix(b"\n").removesuffix(b"\r").removeprefix(_BOM)
    if len(line) > MAX_LINE or b"\0" in line or b"\r" in line:
        raise DataError(f"{path}: the first line does not name columns; is this CSV with lines ending in LF?")
    if dialect.skip_blanks:
        line = unpadded(line, dialect)
    text = attempt(
        f"{path}: the first line, which must name the columns, is not {dialect.encoding.upper()}; see `encoding`",
        line.decode,
    )
    if dialect.quoting:
        return attempt(
            f"{path}: the first line does not name columns; its fields cannot be told apart",
            lambda: tuple(next(csv.reader([text], delimiter=dialect.delimiter))),
        )
    names = tuple(text.split(dialect.delimiter))
    if any(len(name) > 1 and name[0] == name[-1] == '"' for name in names):
        raise DataError(
            f"{path}: the column names stand in quotes, so values in quotes are to be expected, which quoting = false "
            "takes for letters; say " + evolve(dialect, quoting=True).stated(path)
        )
    return names


def best(columns: Sequence[str], path: Place, first_line: Callable[[Encoding], bytes], own: Dialect) -> Dialect | None:
    """The dialect nearest to `own` in which the first line names each of these columns once; None if there is none.

    first_line: the line in UTF-8, of a file read in that encoding.
    """
    required = set(columns)
    for one, names in _readings(path, first_line, own):
        if required <= set(names) and all(names.count(name) == 1 for name in required):
            return one
    return None


def most_named(columns: Sequence[str], path: Place, first_line: Callable[[Encoding], bytes], own: Dialect) -> Dialect:
    """The dialect nearest to `own` in which the first line names the most of these columns; of files that are nobody's
    records. first_line: as in `best`."""
    required = set(columns)
    numbers = [(one, len(required & set(names))) for one, names in _readings(path, first_line, own)]
    return max(numbers, key=lambda one: one[1])[0] if numbers else own  # the first of equals


def _readings(
    path: Place, first_line: Callable[[Encoding], bytes], own: Dialect
) -> Iterator[tuple[Dialect, tuple[str, ...]]]:
    """Common dialects, the nearest to `own` first, with the names in the first line; those without names left out."""
    line_in = cache(first_line)
    choices = product(
        dict.fromkeys([own.encoding, *_ENCODINGS]),
        dict.fromkeys([own.delimiter, *_DELIMITERS]),
        (own.quoting, not own.quoting),
        (own.skip_blanks, not own.skip_blanks),
    )
    dialects = [
        Dialect(encoding=encoding, delimiter=delimiter, quoting=quoting, skip_blanks=blanks)
        for encoding, delimiter, quoting, blanks in choices
    ]

    def changes(one: Dialect) -> int:
        return sum(value != own.options[name] for name, value in one.options.items())

    for one in sorted(dialects, key=changes):
        try:
            names = column_names(line_in(one.encoding), path, one)
        except DataError:
            continue
        yield one, names


def otherwise(path: Place, own: Dialect, fitting: Dialect) -> str:
    """Return the message for a file that is read in one dialect, and whose first line names the columns in another."""
    differences = {
        f"in {fitting.encoding.upper()}": fitting.encoding != own.encoding,
        f"with {fitting.delimiter!r} between fields": fitting.delimiter != own.delimiter,
        "with quotes" if fitting.quoting else "without quotes": fitting.quoting != own.quoting,
        "with blanks around" if own.skip_blanks else "without blanks before names": fitting.skip_blanks
        != own.skip_blanks,
    }
    how = ", ".join(part for part, holds in differences.items() if holds)
    return f"{path}: read {how}, the first line names the columns; say {fitting.stated(path)}"


def unpadded(block: bytes, dialect: Dialect) -> bytes:
    """Lines without the blanks at the start of their fields. What stands in quotes keeps its own.

    >>> unpadded(b'a,  b, " c, d"\\n', Dialect(quoting=True))
    b'a,b," c, d"\\n'
    """
    sign = dialect.delimiter.encode()
    if dialect.quoting and b'"' in block:
        return _quoted_padding(sign).sub(rb"\1", block)
    # One blank after each delimiter is by far the most frequent, and a plain replacement is the fastest way to drop it.
    block = block.replace(sign + b" ", sign)
    if sign + b" " in block or b"\n " in block or block.startswith(b" "):
        block = _padding(sign).sub(b"", block)
    return block


@cache
def _padding(sign: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?m)(?:^|(?<=" + re.escape(sign) + rb")) +")


@cache
def _quoted_padding(sign: bytes) -> re.Pattern[bytes]:
    # Blanks at the start of a field, and the quoted text behind them, which is kept with all that is in it.
    return re.compile(rb"(?m:^|(?<=" + re.escape(sign) + rb')) *("(?:[^"\n]|"")*+"|)')
