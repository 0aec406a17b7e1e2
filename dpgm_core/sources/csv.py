"""CSV files, read so that one physical line is one record, whatever it holds.

Reading must not let one line change what another means, or the declared sensitivity is wrong (DESIGN section 4). So
types are never inferred, a quote never reaches past its line, and a line that cannot be a record becomes one whose
every attribute is unknown. A line ends at LF; one CR before it belongs to the line end. It is malformed when it has
another number of fields than the header, holds a NUL or another CR, is not of the file's encoding, is longer than
`MAX_LINE` bytes (of UTF-8) or, with `quoting`, begins a field with a quote that does not end with one (RFC 4180). Each
of these depends on the line alone, never on where a block ends.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.csv as arrow_csv
from attrs import evolve, field, frozen

from dpgm_core.arrays import Codes
from dpgm_core.domain import Domain
from dpgm_core.errors import DataError, OptionError, did_you_mean
from dpgm_core.files import open_regular
from dpgm_core.places import Place, Url, place
from dpgm_core.sources.contract import RawBatch
from dpgm_core.sources.dialects import Dialect, best, column_names, most_named, otherwise, unpadded
from dpgm_core.sources.encoding import encoders
from dpgm_core.sources.lines import MAX_LINE, malformed_lines, whole_lines, without
from dpgm_core.sources.reading import attempt, locate, mapped, opened, shielded
from dpgm_core.sources.remote import remote_file
from dpgm_core.sources.transcoding import ENCODINGS, Encoding, as_utf8

__all__ = ["CsvSource"]


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

    path: Place = field(converter=place, metadata={"help": "the file, or a URL; .gz is decompressed"})
    delimiter: str = field(
        default=",",
        converter=_sign,
        validator=_one_byte,
        metadata={"help": "what separates fields, such as ';' or tab"},
    )
    quoting: bool = field(
        default=True,
        validator=_flag,
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
        validator=_flag,
        metadata={"help": "blanks at the start of a field are not part of it, nor of a column's name or a person key"},
    )

    def __attrs_post_init__(self) -> None:
        if self.columns is not None and self.encoding == "utf-16":
            # The mark at the start of the file would decide, and without a header that is the first record's.
            raise OptionError("without a header line encoding must say the byte order: utf-16-le or utf-16-be")

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
        """The column names: those given, or those in the first line; for the owner, as it says why there are none."""
        if self.columns is not None:
            opened(self.path, self._open).close()
            return self.columns
        return column_names(self._first_line(), self.path, self.dialect)

    @property
    def dialect(self) -> Dialect:
        """The dialect that the options state."""
        return Dialect(
            delimiter=self.delimiter, quoting=self.quoting, encoding=self.encoding, skip_blanks=self.skip_blanks
        )

    def fitting(self, columns: Sequence[str]) -> Dialect | None:
        """The dialect, of several common ones, in which the first line names these columns; None: in none of them."""
        if self.columns is not None:
            return None
        return best(columns, self.path, self._first_line_in, self.dialect)

    def naming_most(self, columns: Sequence[str]) -> CsvSource:
        """The same file, read in the one of several common dialects whose first line names the most of these columns:
        for files that are nobody's records."""
        one = most_named(columns, self.path, self._first_line_in, self.dialect)
        return evolve(
            self, delimiter=one.delimiter, quoting=one.quoting, encoding=one.encoding, skip_blanks=one.skip_blanks
        )

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
