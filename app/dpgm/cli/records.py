"""Options for records: files, dialects and layouts."""

from __future__ import annotations

import codecs
import gzip
import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from attrs import evolve, frozen

from dpgm_core.errors import DataError, ModelFileError, OptionError, did_you_mean
from dpgm_core.models.model_file import read_stamp, sidecar_path

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "DELIMITERS",
    "Layout",
    "PLAIN",
    "Written",
    "bare",
    "check_output",
    "delimiter_said",
    "is_csv",
    "line_end",
    "quoted",
    "records_of",
    "sink",
    "take_over",
    "transcoded",
    "write_records",
    "written",
]


# --- CSV dialects ---

_ENDS = {"lf": b"\n", "crlf": b"\r\n"}
_KEYS = ("delimiter", "encoding", "quoting", "line_ends")


@frozen(kw_only=True)
class Written:
    """How a CSV file is written, in the words of the csv source that reads it, and what ends its lines.

    quoting: whether all texts stand in quotes; if not, those do that need them.
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    quoting: bool = False
    line_ends: str = "lf"

    def check(self, texts: Iterable[str]) -> None:
        """Refuse, before anything is drawn, names and labels that cannot be written so. Raises OptionError."""
        for text in texts:
            try:
                text.encode(self.encoding)
            except UnicodeEncodeError:
                raise OptionError(f"{text!r:.80} cannot be written in {self.encoding}; use encoding=utf-8") from None
            if self.line_ends == "crlf" and "\n" in text:
                raise OptionError(f"{text!r:.80} holds a line end, so lines must end in lf; leave line_ends")


#: As `dpgm fit` reads it without options.
PLAIN = Written()


def is_csv(path: Path) -> bool:
    """Whether a file is CSV by its name, compressed or not."""
    return path.name.endswith((".csv", ".csv.gz"))


def written(options: Iterable[str]) -> Written:
    """What `--dialect` says: specs, whose csv source is taken, and KEY=VALUE; the last one wins. Raises OptionError.

    >>> written(["delimiter=;", "line_ends=crlf"]).delimiter
    ';'
    """
    from dpgm_core.components.registry import make
    from dpgm_core.sources.csv import CsvSource

    said = PLAIN
    for one in options:
        key, equals, value = one.partition("=")
        if not equals:
            said = _of_spec(Path(one), said)
        elif key == "line_ends":
            if value not in _ENDS:
                raise OptionError(f"--dialect line_ends must be lf or crlf, got {value!r}")
            said = evolve(said, line_ends=value)
        elif key == "quoting" and value in ("true", "false"):
            said = evolve(said, quoting=value == "true")
        elif key == "delimiter":
            said = evolve(said, delimiter=CsvSource(path=Path("x.csv"), delimiter=value).delimiter)  # which checks it
        elif key == "encoding":
            said = evolve(said, encoding=make("source", "csv", path="x.csv", encoding=value).encoding)
        else:
            near = did_you_mean(key, _KEYS) if key not in _KEYS else ""
            raise OptionError(
                f"--dialect takes a spec or one of delimiter=, encoding=, quoting=true|false and line_ends=, got "
                f"{one!r}{near}"
            )
    return said


def delimiter_said(options: Iterable[str]) -> bool:
    """Whether `--dialect` names what separates fields, as specs do.

    >>> delimiter_said(["encoding=utf-16"]), delimiter_said(["spec.toml"])
    (False, True)
    """
    return any("=" not in one or one.startswith("delimiter=") for one in options)


def _of_spec(path: Path, said: Written) -> Written:
    from dpgm.spec import read_spec
    from dpgm_core.sources import as_source
    from dpgm_core.sources.csv import CsvSource

    run = read_spec(path)
    data = run.data if run.terms.related is None else run.data["root"]
    source = as_source(data)
    if not isinstance(source, CsvSource):
        raise OptionError(
            f"the data of {path} are not a CSV file, so they have no dialect; write delimiter=, encoding=, ..."
        )
    quoting = isinstance(data, Mapping) and data.get("quoting") is True  # which `init` says where names are quoted
    return evolve(said, delimiter=source.delimiter, encoding=source.encoding, quoting=quoting)


@contextmanager
def sink(file: IO[bytes], path: Path, how: Written) -> Iterator[IO[bytes]]:
    """Where UTF-8 lines ending in LF are written to, so that the file has them as it is to have them."""
    # No clock and no name in a compressed file: equal records give equal bytes.
    packed = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if path.name.endswith(".gz") else nullcontext(file)
    with packed as open_file:
        as_it_is = how.encoding == "utf-8" and how.line_ends == "lf"
        yield cast(IO[bytes], open_file if as_it_is else _Encoded(cast(IO[bytes], open_file), how))


def transcoded(lines: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Lines that `as_utf8` read, as they stood: letters that their file did not have in its encoding as well.

    Raises OptionError for a letter that was put in and is none of the encoding's.
    """
    spoiled = "surrogatepass" if encoding.startswith("utf-16") else "surrogateescape"
    for line in lines:
        try:
            yield line if encoding == "utf-8" else line.decode("utf-8", "surrogatepass").encode(encoding, spoiled)
        except UnicodeEncodeError:
            raise OptionError(f"a label of the model cannot be written in {encoding}; save the file as UTF-8") from None


class _Encoded(io.RawIOBase):
    """Takes UTF-8 and writes the encoding and line ends asked for, a letter cut in two as well."""

    def __init__(self, file: IO[bytes], how: Written) -> None:
        self._file = file
        self._ends = _ENDS[how.line_ends]
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._encoder = codecs.getincrementalencoder(how.encoding)()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        text = self._decoder.decode(bytes(data).replace(b"\n", self._ends))
        self._file.write(self._encoder.encode(text))
        return len(data)


# --- Writing of records ---


def write_records(tables: Iterable[pa.Table], output: Path, *, quoted: bool, how: Written = PLAIN) -> None:
    """Write tables of `Model.sample_batches`, one after the other; a CSV file has quotes only if told, so that
    `dpgm fit` reads it as it is. how: its dialect.

    Their stamp is in the schema's metadata. A CSV file has none, and a comment in it would be a record to most readers,
    so its stamp is the file NAME.csv.dpgm.json beside it. An earlier sample is replaced, and nothing else.
    """
    from dpgm_core._util.files import atomic_file

    parts = iter(tables)
    first = next(parts)
    with atomic_file(output) as file:
        with _writer(file, first.schema, output, quoted, how) as write:
            for table in itertools.chain([first], parts):
                write(table)
        facts = json.loads(first.schema.metadata[b"dpgm"])
        if (how.delimiter, how.encoding) != (PLAIN.delimiter, PLAIN.encoding):  # for `dpgm compare`
            facts["dialect"] = {"delimiter": how.delimiter, "encoding": how.encoding}
        take_over(output, facts)


def take_over(output: Path, stamp: Mapping[str, Any]) -> None:
    """Make way for records that are ready: an earlier sample goes, and a CSV file's stamp is put beside it.

    The stamp comes first: whatever ends this halfway, no records are without one, nor with another's.
    """
    from dpgm_core._util.files import atomic_write

    check_output(output)
    output.unlink(missing_ok=True)
    if is_csv(output):
        stamp_file = sidecar_path(output)
        stamp_file.unlink(missing_ok=True)
        atomic_write(stamp_file, json.dumps(stamp, indent=2).encode() + b"\n")


@contextmanager
def _writer(
    file: IO[bytes], schema: pa.Schema, output: Path, quoted: bool, how: Written
) -> Iterator[Callable[[pa.Table], object]]:
    """What writes tables of one schema to a file of this kind."""
    if output.suffix == ".parquet":
        import pyarrow.parquet

        with pyarrow.parquet.ParquetWriter(file, schema) as parquet:
            yield parquet.write_table
    elif output.suffix == ".arrow":
        import pyarrow.ipc

        with pyarrow.ipc.new_file(file, schema) as arrow:
            yield arrow.write_table
    else:
        import pyarrow.csv

        # Names in quotes tell whoever reads the file without them that there are some, see `column_names`.
        mixed, quoted, delimiter = quoted and not how.quoting, quoted or how.quoting, how.delimiter
        style = "needed" if quoted else "none"
        names = [f'"{name.replace(chr(34), chr(34) * 2)}"' if quoted else name for name in schema.names]
        options = pyarrow.csv.WriteOptions(include_header=False, quoting_style=style, delimiter=delimiter)
        with sink(file, output, how) as lines:
            lines.write(delimiter.join(names).encode() + b"\n")
            yield (
                lambda table: (
                    _write_lines(table, lines, delimiter) if mixed else pyarrow.csv.write_csv(table, lines, options)
                )
            )


def _write_lines(table: pa.Table, lines: IO[bytes], delimiter: str) -> None:
    """Lines whose fields have quotes where they need them; pyarrow puts all texts in quotes, or none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not table.num_rows:
        return
    mark, nothing, sign = (pa.scalar(text, pa.large_string()) for text in ('"', "", delimiter))
    columns = []
    for column in table.itercolumns():
        cells = column.combine_chunks()
        cells = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
        plain = cells.dictionary.cast(pa.large_string())
        inside = pc.binary_join_element_wise(mark, pc.replace_substring(plain, '"', '""'), mark, nothing)
        needs = pc.match_substring_regex(plain, f'[{re.escape(delimiter)}"\r\n]|^$')  # an empty text is no null
        columns.append(pc.if_else(needs, inside, plain).take(cells.indices).fill_null(""))
    joined = pc.binary_join_element_wise(*columns, sign)
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(joined)], pa.int64()), joined)
    lines.write(pc.binary_join(whole, pa.scalar("\n", pa.large_string()))[0].as_buffer())
    lines.write(b"\n")


def records_of(data: Path | str) -> object:
    """Records named by a file or a URL, or by the spec that says how to read them."""
    if isinstance(data, str) or data.suffix != ".toml":
        return data
    from dpgm.related import records_of as two_tables
    from dpgm.spec import load_spec

    run = load_spec(data)
    return two_tables(run.data, run.terms.related)


def check_output(path: Path) -> None:
    """Refuse, with ModelFileError, a file of samples that would replace anything but an earlier one: its stamp tells.

    The records themselves may stand there, and are no sample.
    """
    from dpgm_core._util.files import check_writable

    stamp = sidecar_path(path) if is_csv(path) else path
    stamped = stamp.is_file() and read_stamp(stamp) is not None
    if stamp != path and stamp.exists() and not stamped:
        raise ModelFileError(
            f"{stamp} exists and is not a stamp of dpgm, so the records' stamp cannot be written; name another file"
        )
    if path.is_symlink() or not stamped:
        check_writable(path)


# --- Lines and fields ---

#: What may separate fields where nobody says it.
DELIMITERS = b",;\t|"
_BOM = b"\xef\xbb\xbf"


class Layout:
    """Where the columns of a CSV file stand, by its first line."""

    def __init__(self, first: bytes, known: Sequence[str], path: Path, delimiters: bytes) -> None:
        from dpgm_core.domain.attribute import first_repeated

        self._first, self._ending = first, line_end(first) or b"\n"
        body = first.removeprefix(_BOM).rstrip(b"\r\n")
        try:
            body.decode()
        except UnicodeDecodeError:
            raise DataError(f"{path}: the first line is not UTF-8; use --dialect encoding=cp1252, or another") from None

        def named(sign: int) -> list[str]:
            return [bare(field).decode().strip() for field in _fields(body, bytes([sign]))]

        # The sign that tells the most of the model's attributes apart.
        best = max(delimiters, key=lambda sign: len({*named(sign)} & {*known}))
        self.delimiter, self.names = bytes([best]), named(best)
        twice = first_repeated(self.names)
        if twice is not None:
            raise DataError(f"{path} has two columns {twice!r}; rename one")
        if not {*self.names} & {*known}:
            shown = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
            raise DataError(f"{path}: the first line names no attribute of the model, which has {shown}")
        self.added = [name for name in known if name not in self.names]

    def header(self) -> bytes:
        """The first line, with the columns that are added."""
        new = [quoted(name.encode(), self.delimiter) for name in self.added]
        return self.delimiter.join([self._first.rstrip(b"\r\n"), *new]) + self._ending

    def fields(self, line: bytes, number: int) -> list[bytes]:
        """The fields of a record, quotes and all. Raises DataError for a line that is none."""
        fields = _fields(line.rstrip(b"\r\n"), self.delimiter)
        if len(fields) != len(self.names):
            raise DataError(f"row {number} has {len(fields)} fields, and the first line {len(self.names)}; correct it")
        return fields


def _fields(line: bytes, delimiter: bytes) -> list[bytes]:
    if b'"' not in line:
        return line.split(delimiter)
    sign = re.escape(delimiter)
    return re.findall(rb'(?:^|(?<=%b))("(?:[^"]|"")*"(?=%b|$)|[^%b]*)(?:%b|$)' % (sign, sign, sign, sign), line)


def bare(field: bytes) -> bytes:
    """A field without the quotes around it."""
    inside = len(field) > 1 and field[:1] == field[-1:] == b'"'
    return field[1:-1].replace(b'""', b'"') if inside else field


def quoted(field: bytes, delimiter: bytes) -> bytes:
    """A field with quotes around it where it needs them."""
    if not any(sign in field for sign in (delimiter, b'"', b"\n", b"\r")):
        return field
    return b'"' + field.replace(b'"', b'""') + b'"'


def line_end(line: bytes) -> bytes:
    """What ends a line: LF, perhaps after CR, or nothing."""
    return line[len(line.rstrip(b"\r\n")) :]
