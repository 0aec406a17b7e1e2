"""CSV files as sources: dialects, lines and character encodings."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import product
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, cast, get_args

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from attrs import asdict, evolve, field, frozen

from dpgm_core._util.arrays import Codes
from dpgm_core._util.locations import Place, Url, open_regular, place
from dpgm_core.components.options import flag
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError, OptionError, did_you_mean
from dpgm_core.sources.contract import RawBatch
from dpgm_core.sources.encoding import encoders
from dpgm_core.sources.reading import KeyedBatches, attempt, locate, mapped, opened, shielded
from dpgm_core.sources.remote import remote_file

__all__ = [
    "CsvSource",
    "Dialect",
    "Encoding",
    "MAX_LINE",
    "as_utf8",
    "best",
    "column_names",
    "malformed_lines",
    "number_of_fields",
    "otherwise",
    "unpadded",
    "without",
]

# Reading must not let one line change what another means, or the declared sensitivity is wrong (docs/privacy.md). So
# types are never inferred, a quote never reaches past its line, and a line that cannot be a record becomes one whose
# every attribute is unknown. A line ends at LF; one CR before it belongs to the line end. It is malformed when it has
# another number of fields than the header, holds a NUL or another CR, is not of the file's encoding, is longer than
# `MAX_LINE` bytes (of UTF-8) or, with `quoting`, begins a field with a quote that does not end with one (RFC 4180).
# Each of these depends on the line alone, never on where a block ends.


def _sign(value: object) -> object:
    """A tab may be written as backslash and t, as in a TOML text in single quotes or on a command line."""
    return "\t" if value == "\\t" else value


def _one_byte(instance: object, attribute: Any, value: object) -> None:
    if not isinstance(value, str) or len(value) != 1 or not value.isascii() or value.isalnum() or value in '"\r\n\0':
        raise OptionError(f"delimiter must be one ASCII sign or blank, no letter, digit or quote; got {value!r}")


def _known(instance: object, attribute: Any, value: object) -> None:
    if value not in ENCODINGS:
        near = did_you_mean(value, ENCODINGS) if isinstance(value, str) else ""
        raise OptionError(f"encoding must be one of {', '.join(ENCODINGS)}, got {value!r:.40}{near}")


def _names(value: Sequence[str] | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str) or not value or not all(isinstance(name, str) for name in value):
        raise OptionError(f"columns must be a list of the file's column names, got {value!r}")
    return tuple(value)


@frozen(kw_only=True)
class CsvSource(KeyedBatches):
    """A CSV file, plain or gzipped (.gz), one record per physical line; see the module for what a line may hold.

    >>> CsvSource(path="x.csv", delimiter=";").delimiter
    ';'
    """

    path: Place = field(converter=place, metadata={"help": "the file, or a URL; .gz is decompressed"})
    delimiter: str = field(
        default=",",
        converter=_sign,
        validator=_one_byte,
        metadata={"help": "what separates fields, such as ';' or tab"},
    )
    quoting: bool = field(
        default=True,
        validator=flag,
        metadata={"help": "fields may stand in double quotes, within one line (RFC 4180); false: quotes are letters"},
    )
    columns: tuple[str, ...] | None = field(
        default=None, converter=_names, metadata={"help": "names of all columns, if the file has no header line"}
    )
    encoding: Encoding = field(
        default="utf-8", validator=_known, metadata={"help": "of the file; a line that is not of it is malformed"}
    )
    skip_blanks: bool = field(
        default=False,
        validator=flag,
        metadata={"help": "blanks at the start of a field are not part of it, nor of a column's name or a person key"},
    )

    def __attrs_post_init__(self) -> None:
        if self.columns is not None and self.encoding == "utf-16":
            # The mark at the start of the file would decide, and without a header that is the first record's.
            raise OptionError("without a header line encoding must say the byte order: utf-16-le or utf-16-be")

    def keyed_batches(self, domain: Domain, columns: Sequence[str], key: str | None) -> Iterator[tuple[Codes, Any]]:
        """Codes and the raw person keys (None without `key`); DataError if the file or a column is missing."""
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
        """The column names: those given, or those in the first line; for the owner, as it says why there are none."""
        if self.columns is not None:
            opened(self.path, self._open).close()
            return self.columns
        return column_names(self._first_line(), self.path, self.dialect)

    @property
    def dialect(self) -> Dialect:
        """The dialect that the options state."""
        return Dialect(**{name: getattr(self, name) for name in _DEFAULTS})

    def fitting(self, columns: Sequence[str]) -> Dialect | None:
        """The dialect, of several common ones, in which the first line names these columns; None: in none of them."""
        if self.columns is not None:
            return None
        return best(columns, self.path, self._first_line_in, self.dialect)

    def naming_most(self, columns: Sequence[str]) -> CsvSource:
        """The same file, read in the one of several common dialects whose first line names the most of these columns:
        for files that are nobody's records."""
        return evolve(self, **most_named(columns, self.path, self._first_line_in, self.dialect).options)

    def _first_line_in(self, encoding: Encoding) -> bytes:
        return evolve(self, encoding=encoding)._first_line()

    def _first_line(self) -> bytes:
        return self._start()[0]

    def _start(self) -> tuple[bytes, bool]:
        """The line that names the columns, if the file has one, and whether the file ends there."""
        with opened(self.path, self._open) as stream:
            line = b"" if self.columns else attempt(self._unreadable, lambda: stream.readline(MAX_LINE + 1))
            return line, not attempt(self._unreadable, lambda: stream.read(1))

    def has_header_alone(self, columns: Sequence[str]) -> bool:
        """Return whether the file ends with a line that names these columns; other first lines may be records."""
        line, is_end = self._start()
        if self.columns is None and is_end:
            with suppress(DataError):
                return set(columns) <= set(column_names(line, self.path, self.dialect))
        return False

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
        if isinstance(self.path, Url):
            stream = remote_file(self.path).stream()
            return as_utf8(cast(IO[bytes], gzip.open(stream) if self._zipped else stream), self.encoding)
        file = open_regular(self.path)
        if not self._zipped:
            return as_utf8(file, self.encoding)
        file.close()  # gzip closes only what it has opened
        return as_utf8(cast(IO[bytes], gzip.open(self.path)), self.encoding)

    def _blocks(self) -> Iterator[tuple[bytes, int]]:
        with opened(self.path, self._open) as stream:
            if self.columns is None:
                stream.readline()
            yield from whole_lines(stream)

    def _located(self, columns: Sequence[str]) -> tuple[list[int], int]:
        """Return where the columns are, and how many the file has.

        A first line that does not name them is perhaps a record, so one sentence refuses all of these: it depends on
        the columns that are read, and not on what the line holds. One that names all of them in another dialect is a
        header, and so is one that names more than half of them: no record holds the names of most columns. Headers are
        public, so the message says what is wrong with one.
        """
        if self.columns is not None:
            return locate(str(self.path), columns, self.columns), len(self.columns)
        line, is_end = self._start()
        if is_end and not line:
            raise DataError(f"{self.path} is empty; its first line must name the columns")
        names: tuple[str, ...] = ()
        places: list[int] = []
        with suppress(DataError):
            names = column_names(line, self.path, self.dialect)
            places = locate(str(self.path), columns, names)
        if places:
            return places, len(names)
        fitting = self.fitting(columns)
        if fitting is not None:
            raise DataError(otherwise(self.path, self.dialect, fitting))
        requested = list(dict.fromkeys(columns))
        if 2 * sum(name in names for name in requested) > len(requested):
            locate(str(self.path), requested, names)
        shown = [*map(repr, requested[:20]), *([f"... ({len(requested)} in all)"] if len(requested) > 20 else [])]
        raise DataError(
            f"{self.path}: the first line does not name each of the columns asked for once: {', '.join(shown)}; check "
            "`delimiter` and `quoting`, or give `columns` if there is no header line; dpgm validate tells the owner why"
        )

    def _parser(self, positions: Sequence[int], width: int) -> Callable[[bytes, int], RawBatch]:
        delimiter, dialect = self.delimiter.encode(), self.dialect
        names = [str(position) for position in range(width)]
        # A first line of our own: pyarrow would take a byte order mark at the start of any block for the file's.
        first = delimiter.join(name.encode() for name in names) + b"\n"
        selected = [names[position] for position in positions]
        with_quotes, without_quotes = (
            arrow_csv.ParseOptions(
                delimiter=self.delimiter,
                quote_char='"' if quoting else False,
                double_quote=quoting,
                escape_char=False,
                # An empty line is a null in a file of one column, and no record otherwise.
                ignore_empty_lines=width > 1,
                invalid_row_handler=lambda row: "skip",
            )
            for quoting in (True, False)
        )
        convert_options = arrow_csv.ConvertOptions(
            check_utf8=False,
            column_types=dict.fromkeys(selected, pa.dictionary(pa.int32(), pa.binary())),
            include_columns=list(dict.fromkeys(selected)),
        )

        def parse(block: bytes, malformed: int) -> RawBatch:
            lines = block.count(b"\n")
            if dialect.skip_blanks:
                block = unpadded(block, dialect)
            text = first + without(block, malformed_lines(block, delimiter, self.quoting))
            quoted = self.quoting and b'"' in block  # a block without any quote reads the same and faster without
            table = arrow_csv.read_csv(
                pa.BufferReader(text),
                read_options=arrow_csv.ReadOptions(use_threads=False, block_size=len(text) + 1),
                parse_options=with_quotes if quoted else without_quotes,
                convert_options=convert_options,
            )
            # Whatever was dropped, before or by the parser, was a line and therefore is a record.
            return RawBatch([_chunk(table[name]) for name in selected], malformed + lines - table.num_rows)

        return parse


def _chunk(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


# --- Dialects -------------------------------------------------------------------------------------
# Only the first line is ever looked at, and messages about it depend only on which of the columns it names.

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
        own = {name: value for name, value in self.options.items() if value != _DEFAULTS[name]}
        plain = {"source": "csv", "path": full, **own}
        parts = (f"{key} = {json.dumps(one, ensure_ascii=False)}" for key, one in plain.items())
        return f"data = {{ {', '.join(parts)} }}"

    @property
    def options(self) -> dict[str, Any]:
        """Its parts by name."""
        return asdict(self)


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


# --- Lines, and those that no parser must see -----------------------------------------------------

#: Bytes; the longest line that can be a record, and the size of a block read at once.
MAX_LINE = 2**22


def whole_lines(stream: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    """Blocks of whole lines, each ending in LF, and how many lines longer than `MAX_LINE` were left out of each.

    Memory is bounded by the block size. An unfinished last line is finished; the file's last LF starts no line.
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
    """
    bad: set[int] = set()
    # Whole-block tests first: nearly all blocks pass them, and they run at memory speed.
    if b"\0" in block or block.count(b"\r") != block.count(b"\r\n") or not (block.isascii() or _is_utf8(block)):
        for number, line in enumerate(block.split(b"\n")):
            if b"\0" in line or b"\r" in line.removesuffix(b"\r") or not _is_utf8(line):
                bad.add(number)
    if quoting and b'"' in block:
        suspects = _misquoted(np.frombuffer(block, np.uint8), delimiter[0])
        lines = block.split(b"\n") if suspects else []
        bad.update(one for one in suspects if number_of_fields(lines[one], delimiter, True) is None)
    return sorted(bad)


def number_of_fields(line: bytes, delimiter: bytes, quoting: bool) -> int | None:
    """Return how many fields a line has; None where `quoting` and a quoted field does not end on it, or goes on behind
    its closing quote. A quote inside of a field that does not begin with one is a letter, as for other readers.

    >>> number_of_fields(b'"a;b";5" pipe', b";", True), number_of_fields(b'"a;b', b";", True)
    (2, None)
    """
    if not quoting or b'"' not in line:
        return 1 + line.count(delimiter)
    outside, quoted = _patterns(delimiter)
    return 1 + quoted.sub(b"", line).count(delimiter) if outside.fullmatch(line) else None


def without(block: bytes, lines: Sequence[int]) -> bytes:
    """The block without the lines of these numbers."""
    if not lines:
        return block
    dropped = set(lines)
    return b"\n".join(line for number, line in enumerate(block.split(b"\n")) if number not in dropped)


@cache
def _patterns(delimiter: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return the patterns of a whole line whose quotes are in order, and of its quoted fields."""
    sign, quoted = re.escape(delimiter), rb'"(?:[^"]|"")*+"'
    field = rb'(?:%b|[^"%b][^%b]*+|)' % (quoted, sign, sign)
    return re.compile(rb"%b(?:%b%b)*+\r?" % (field, sign, field)), re.compile(rb"(?:^|(?<=%b))%b" % (sign, quoted))


def _misquoted(data: np.ndarray[Any, np.dtype[np.uint8]], delimiter: int) -> list[int]:
    # Finds all lines with quotes out of order, and some whose quotes are letters, which a slower look tells apart.
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


# --- Files in other encodings, read as UTF-8 while they stream ------------------------------------
# In `utf-16` a line is a run of 16-bit units up to the unit 0x000A, in the others one of bytes up to 0x0A. What cannot
# be decoded stays visible: it is written as bytes that are not UTF-8, inside its own line, which is malformed then.

Encoding: TypeAlias = Literal["utf-8", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252"]
ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)

_READ = 2**20  # bytes that are decoded at once
_SPOILED = b"\xff"  # no part of any UTF-8 text


def as_utf8(stream: IO[bytes], encoding: Encoding) -> IO[bytes]:
    """Return the same file in UTF-8, its byte order mark included; `utf-8` is not changed.

    encoding: "utf-16" takes the byte order of the file's mark; without one, that in which its first letter is an ASCII
    one. Memory is bounded, and the same bytes come out whatever is read at once.
    """
    return stream if encoding == "utf-8" else io.BufferedReader(_Transcoded(stream, encoding), _READ)


class _Transcoded(io.RawIOBase):
    """UTF-8 bytes of a stream in another encoding."""

    def __init__(self, stream: IO[bytes], encoding: Encoding) -> None:
        self._stream = stream
        self._start = b""
        name: str = encoding
        if encoding == "utf-16":
            self._start = stream.read(2)
            big = self._start == codecs.BOM_UTF16_BE or self._start[:1] == b"\0"
            name = "utf-16-be" if big else "utf-16-le"
        # Half a pair of units passes as it is, and is no UTF-8 then; of a single byte the escape is such a half.
        self._wide = name.startswith("utf-16")
        self._decoder = codecs.getincrementaldecoder(name)("surrogatepass" if self._wide else "surrogateescape")
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a part of the buffer; 0 at the end of the file."""
        while not self._ready:
            raw = self._start + self._stream.read(_READ)
            self._start = b""
            self._ready = memoryview(self._utf8(raw) if raw else self._end())
            if not raw:
                break
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def close(self) -> None:
        """Close the file too."""
        self._stream.close()
        super().close()

    def _utf8(self, raw: bytes) -> bytes:
        if not self._wide and raw.isascii():
            return raw
        return self._decoder.decode(raw).encode("utf-8", "surrogatepass")

    def _end(self) -> bytes:
        """Return what spoils the last line if the decoder still waits for half a unit or half a pair."""
        pending, _ = self._decoder.getstate()
        self._decoder.reset()
        return _SPOILED if pending else b""
