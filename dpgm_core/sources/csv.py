"""CSV files, read so that one physical line is one record, whatever it holds.

Reading must not let one line change what another means, or the declared sensitivity is wrong (DESIGN section 4). So
types are never inferred, a quote never reaches past its line, and a line that cannot be a record becomes one whose
every attribute is unknown. A line ends at LF; one CR before it belongs to the line end. It is malformed when it has
another number of fields than the header, holds a NUL or another CR, is not UTF-8, is longer than `MAX_LINE` bytes or,
with `quoting`, has quotes against RFC 4180. Each of these depends on the line alone, never on where a block ends.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from attrs import field, frozen

from dpgm_core.arrays import Codes
from dpgm_core.domain import Domain
from dpgm_core.errors import DataError, OptionError
from dpgm_core.sources.contract import RawBatch
from dpgm_core.sources.encoding import encoders
from dpgm_core.sources.reading import attempt, locate, mapped, opened, shielded

__all__ = ["MAX_LINE", "CsvSource", "malformed_lines"]

#: Bytes; the longest line that can be a record, and the size of a block read at once.
MAX_LINE = 2**22

_BOM = b"\xef\xbb\xbf"


def _one_byte(instance: object, attribute: Any, value: object) -> None:
    if not isinstance(value, str) or len(value) != 1 or not value.isascii() or value.isalnum() or value in '"\r\n\0':
        raise OptionError(f"delimiter must be one ASCII sign or blank, no letter, digit or quote; got {value!r}")


def _flag(instance: object, attribute: Any, value: object) -> None:
    if not isinstance(value, bool):
        raise OptionError(f"{attribute.name} must be true or false, got {value!r}")


def _names(value: Sequence[str] | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str) or not value or not all(isinstance(name, str) for name in value):
        raise OptionError(f"columns must be a list of the file's column names, got {value!r}")
    return tuple(value)


@frozen(kw_only=True)
class CsvSource:
    """A CSV file, plain or gzipped (.gz), one record per physical line; see the module for what a line may hold.

    >>> CsvSource(path="x.csv", delimiter=";").delimiter
    ';'
    """

    path: Path = field(converter=Path, metadata={"help": "the file; .gz is decompressed"})
    delimiter: str = field(default=",", validator=_one_byte, metadata={"help": "what separates fields"})
    quoting: bool = field(
        default=False,
        validator=_flag,
        metadata={"help": "fields may stand in double quotes, within one line (RFC 4180)"},
    )
    columns: tuple[str, ...] | None = field(
        default=None, converter=_names, metadata={"help": "names of all columns, if the file has no header line"}
    )

    def batches(self, domain: Domain, columns: Sequence[str]) -> Iterator[Codes]:
        """Codes of the named columns; DataError if the file or a column is missing."""
        return (codes for codes, _ in self.keyed_batches(domain, columns, None))

    def keyed_batches(self, domain: Domain, columns: Sequence[str], key: str | None) -> Iterator[tuple[Codes, Any]]:
        """Codes and the raw person keys (None without `key`)."""
        parse = self._parser(*self._located([*columns, *([key] if key is not None else [])]))
        encode = encoders(domain, columns)

        def work(block: tuple[bytes, int]) -> tuple[Codes, Any]:
            codes, rest = encode(parse(*block))
            return codes, rest[0] if rest else None

        return shielded(self._unreadable, mapped(work, self._blocks()))

    def raw_batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        """The raw values, for the owner's own check."""
        names = self.names()
        parse = self._parser(locate(str(self.path), columns, names), len(names))
        return shielded(self._unreadable, (parse(*block) for block in self._blocks()))

    def names(self) -> tuple[str, ...]:
        """The column names: those given, or those in the first line, with the reason if it names none; for the owner.

        Names in quotes are refused unless `quoting` is on: the values then stand in quotes as well, as a rule, and
        would all be unknown; with `quoting` on, values without quotes are read just as well.
        """
        if self.columns is not None:
            opened(self.path, self._open).close()
            return self.columns
        return self._named(self._first_line())

    def _first_line(self) -> bytes:
        with opened(self.path, self._open) as stream:
            return attempt(self._unreadable, lambda: stream.readline(MAX_LINE + 1))

    def _named(self, line: bytes) -> tuple[str, ...]:
        if not line.strip():
            raise DataError(f"{self.path} is empty; its first line must name the columns")
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        if len(line) > MAX_LINE or b"\0" in line or b"\r" in line:
            raise DataError(f"{self.path}: the first line does not name columns; is this CSV with lines ending in LF?")
        text = attempt(
            f"{self.path}: the first line, which must name the columns, is not UTF-8",
            lambda: line.removeprefix(_BOM).decode(),
        )
        if self.quoting:
            return attempt(
                f"{self.path}: the first line does not name columns; its fields cannot be told apart",
                lambda: tuple(next(csv.reader([text], delimiter=self.delimiter))),
            )
        names = tuple(text.split(self.delimiter))
        if any(len(name) > 1 and name[0] == name[-1] == '"' for name in names):
            raise DataError(
                f"{self.path}: the column names stand in quotes, so values in quotes are to be expected; say quoting = "
                'true (in a spec: data = { source = "csv", path = "...", quoting = true })'
            )
        return names

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Every line that is a record, without its LF, and its number from 1; for the owner's own check."""
        with opened(self.path, self._open) as stream:
            numbered = enumerate(shielded(self._unreadable, stream), start=1)
            for number, line in numbered:
                if number > 1 or self.columns is not None:
                    yield number, line.removesuffix(b"\n")

    @property
    def _unreadable(self) -> str:
        return f"{self.path} cannot be read as {'gzipped ' if self._zipped else ''}CSV"

    @property
    def _zipped(self) -> bool:
        return self.path.suffix.lower() == ".gz"

    def _open(self) -> IO[bytes]:
        return cast(IO[bytes], gzip.open(self.path) if self._zipped else self.path.open("rb"))

    def _blocks(self) -> Iterator[tuple[bytes, int]]:
        with opened(self.path, self._open) as stream:
            if self.columns is None:
                stream.readline()
            yield from whole_lines(stream)

    def _located(self, columns: Sequence[str]) -> tuple[list[int], int]:
        """Where the columns stand, and how many the file has.

        A first line that does not name them is perhaps a record, so one sentence refuses all of these: it depends on
        what is asked for, and not on what the line holds.
        """
        if self.columns is not None:
            return locate(str(self.path), columns, self.names()), len(self.columns)
        line = self._first_line()
        try:
            names = self._named(line)
            return locate(str(self.path), columns, names), len(names)
        except DataError:
            pass
        asked = list(dict.fromkeys(columns))
        shown = [*map(repr, asked[:20]), *([f"... ({len(asked)} in all)"] if len(asked) > 20 else [])]
        raise DataError(
            f"{self.path}: the first line does not name each of the columns asked for once: {', '.join(shown)}; check "
            "`delimiter` and `quoting`, or give `columns` if there is no header line; dpgm validate tells the owner why"
        )

    def _parser(self, positions: Sequence[int], width: int) -> Callable[[bytes, int], RawBatch]:
        delimiter = self.delimiter.encode()
        names = [str(position) for position in range(width)]
        # A first line of our own: pyarrow would take a byte order mark at the start of any block for the file's.
        first = delimiter.join(name.encode() for name in names) + b"\n"
        wanted = [names[position] for position in positions]
        parse_options = arrow_csv.ParseOptions(
            delimiter=self.delimiter,
            quote_char='"' if self.quoting else False,
            double_quote=self.quoting,
            escape_char=False,
            # An empty line is a null in a file of one column, and no record otherwise.
            ignore_empty_lines=width > 1,
            invalid_row_handler=lambda row: "skip",
        )
        convert_options = arrow_csv.ConvertOptions(
            check_utf8=False,
            column_types=dict.fromkeys(wanted, pa.dictionary(pa.int32(), pa.binary())),
            include_columns=list(dict.fromkeys(wanted)),
        )

        def parse(block: bytes, malformed: int) -> RawBatch:
            lines = block.count(b"\n")
            text = first + without(block, malformed_lines(block, delimiter, self.quoting))
            table = arrow_csv.read_csv(
                pa.BufferReader(text),
                read_options=arrow_csv.ReadOptions(use_threads=False, block_size=len(text) + 1),
                parse_options=parse_options,
                convert_options=convert_options,
            )
            # Whatever was dropped, before or by the parser, was a line and therefore is a record.
            return RawBatch([_chunk(table[name]) for name in wanted], malformed + lines - table.num_rows)

        return parse


def whole_lines(stream: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    """Blocks of whole lines, each ending in LF, and how many lines longer than `MAX_LINE` were left out of each.

    Memory is bounded by the block size. An unfinished last line is finished; the file's last LF starts no line.

    >>> import io
    >>> list(whole_lines(io.BytesIO(b"a\\nb")))
    [(b'a\\n', 0), (b'b\\n', 0)]
    """
    rest, skipping = b"", False
    while chunk := stream.read(MAX_LINE):
        too_long = 0
        if skipping:
            end = chunk.find(b"\n") + 1
            if not end:
                continue
            chunk, skipping, too_long = chunk[end:], False, 1
        block = rest + chunk
        end = block.rfind(b"\n") + 1
        rest = block[end:]
        if end and (first := block.find(b"\n")) > MAX_LINE:  # only the first line can be longer than a read
            block, end, too_long = block[first + 1 :], end - first - 1, too_long + 1
        if len(rest) > MAX_LINE:
            rest, skipping = b"", True
        if end or too_long:
            yield block[:end], too_long
    if rest or skipping:
        yield (rest + b"\n", 0) if rest else (b"", 1)


def malformed_lines(block: bytes, delimiter: bytes, quoting: bool) -> list[int]:
    """The numbers, from 0, of lines that pyarrow must not see: NUL, lone CR, not UTF-8, quotes out of order.

    A line with a wrong number of fields is not among them. block: whole lines, each ending in LF.

    >>> malformed_lines(b"a,b\\na\\rb\\n", b",", False)
    [1]
    """
    bad: set[int] = set()
    # Whole-block tests first: nearly all blocks pass them, and they run at memory speed.
    if b"\0" in block or block.count(b"\r") != block.count(b"\r\n") or not (block.isascii() or _is_utf8(block)):
        for number, line in enumerate(block.split(b"\n")):
            if b"\0" in line or b"\r" in line.removesuffix(b"\r") or not _is_utf8(line):
                bad.add(number)
    if quoting and b'"' in block:
        bad.update(_misquoted(np.frombuffer(block, np.uint8), delimiter[0]))
    return sorted(bad)


def without(block: bytes, lines: Sequence[int]) -> bytes:
    """The block without the lines of these numbers."""
    if not lines:
        return block
    dropped = set(lines)
    return b"\n".join(line for number, line in enumerate(block.split(b"\n")) if number not in dropped)


def _misquoted(data: np.ndarray[Any, np.dtype[np.uint8]], delimiter: int) -> list[int]:
    # RFC 4180 in one line: quotes alternate between opening and closing, an even number of them; an opening one
    # follows a delimiter or line start, a closing one precedes a delimiter or line end; "" inside counts as both.
    quotes, ends = np.flatnonzero(data == ord('"')), np.flatnonzero(data == ord("\n"))
    line = np.searchsorted(ends, quotes)
    before = np.searchsorted(quotes, np.concatenate([[0], ends]))  # quotes before each line
    opening = (np.arange(len(quotes)) - before[line]) % 2 == 0
    outer = np.zeros(256, bool)
    outer[[delimiter, ord("\n"), ord('"')]] = True
    previous = np.where(quotes > 0, data[quotes - 1], ord("\n"))
    following = data[quotes + 1]  # a block ends in LF
    good = np.where(opening, outer[previous], outer[following] | (following == ord("\r")))
    odd = np.flatnonzero(np.bincount(line, minlength=len(ends)) % 2)
    return [*np.unique(line[~good]).tolist(), *odd.tolist()]


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _chunk(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
