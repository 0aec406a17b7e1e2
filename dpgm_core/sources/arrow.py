"""Arrow tables and data frames as sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from dpgm_core._util.arrays import Codes
from dpgm_core._util.locations import Place, Url, open_regular, place
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError
from dpgm_core.sources.contract import RawBatch
from dpgm_core.sources.encoding import as_text, check_key, check_types, encoders, fraction_stripped, is_textual, plain
from dpgm_core.sources.reading import BATCH_ROWS, KeyedBatches, attempt, locate, opened, shielded
from dpgm_core.sources.remote import remote_file

__all__ = [
    "ArrowIpcSource",
    "ArrowSource",
    "checked_arrow_types",
    "coder",
    "is_relation",
    "is_text",
    "keyed",
    "objects",
    "raw",
    "series",
    "with_key",
]

_PATH = {"help": "the file, or a URL"}

#: What makes a reader of a relation of DuckDB; the second one before 1.4, deprecated since.
_READERS = ("to_arrow_reader", "fetch_arrow_reader")
#: A schema, and the raw batches of the columns that are read.
_Opened: TypeAlias = tuple[Any, Iterator[RawBatch]]


class _Opening(KeyedBatches):
    """Base of sources that are opened as a schema and raw batches."""

    __slots__ = ()

    def _opened(self, columns: Sequence[str]) -> _Opened:
        raise NotImplementedError

    def keyed_batches(self, domain: Domain, columns: Sequence[str], key: str | None) -> Iterator[tuple[Codes, Any]]:
        """Codes and the raw person keys (None without `key`); DataError if a column is missing, or they are damaged."""
        schema, raw = self._opened(with_key(columns, key))
        checked_arrow_types({name: schema.field(name).type for name in with_key(columns, key)}, domain, columns, key)
        return keyed(raw, domain, columns)

    def raw_batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        """The raw values of the named columns."""
        return self._opened(columns)[1]


@frozen(kw_only=True)
class ArrowIpcSource(_Opening):
    """An Arrow IPC file or stream, also known as Feather version 2; files are mapped into memory, not loaded.

    >>> ArrowIpcSource(path="x.arrow").path.name
    'x.arrow'
    """

    path: Place = field(converter=place, metadata=_PATH)

    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(self._reader().schema.names)

    def _opened(self, columns: Sequence[str]) -> _Opened:
        reader = self._reader()
        schema = reader.schema
        places = locate(str(self.path), columns, schema.names)
        if isinstance(self.path, Url):
            reader = self._reader(places)  # only these are fetched
        if isinstance(reader, pa.RecordBatchFileReader):
            reader = map(reader.get_batch, range(reader.num_record_batches))
        return schema, shielded(self._unreadable, raw(columns, reader))

    @property
    def _unreadable(self) -> str:
        lost = ", or the connection to it was lost" if isinstance(self.path, Url) else ""  # Arrow does not tell which
        return f"{self.path} cannot be read as an Arrow IPC file{lost}"

    def _reader(self, places: Sequence[int] = ()) -> Any:
        """Return a reader; of a remote file only of the columns at these places, unless there are none."""
        path = self.path
        if isinstance(path, Url):
            file = remote_file(path)
            is_file = file.part(0, min(6, file.size)) == b"ARROW1"
            options = pa.ipc.IpcReadOptions(included_fields=sorted(set(places)))
            whole = pa.PythonFile(file.open() if is_file else file.stream(), "r")
        else:
            with opened(path, lambda: open_regular(path)) as stream:
                is_file = stream.read(6) == b"ARROW1"
            options = pa.ipc.IpcReadOptions()
            whole = attempt(self._unreadable, lambda: pa.memory_map(str(path)))
        open_one = pa.ipc.open_file if is_file else pa.ipc.open_stream
        return attempt(self._unreadable, lambda: open_one(whole, options=options))


@frozen(kw_only=True)
class ArrowSource(_Opening):
    """Any object with `__arrow_c_stream__`: a pandas or polars frame, a pyarrow Table, a DuckDB relation.

    A stream that can be read only once, such as a RecordBatchReader, serves one release; a second is refused.

    >>> ArrowSource(data=pa.table({"a": [0, 1]}))
    ArrowSource(data=Table)
    """

    data: Any = field(repr=lambda data: type(data).__name__, eq=id, metadata={"help": "an Arrow stream"})
    _read: list[bool] = field(init=False, factory=list, repr=False, eq=False)

    @data.validator
    def _check(self, attribute: object, value: object) -> None:
        if not hasattr(value, "__arrow_c_stream__"):
            raise DataError(f"records given as {type(value).__name__} have no __arrow_c_stream__; give a data frame")

    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        if isinstance(self.data, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)):
            return tuple(self.data.schema.names)
        if hasattr(self.data, "columns"):  # frames and relations, which would be converted just for their names
            return tuple(map(str, self.data.columns))
        return tuple(pa.RecordBatchReader.from_stream(self.data).schema.names)

    def _opened(self, columns: Sequence[str]) -> _Opened:
        where = f"the {type(self.data).__name__}"
        self._check_unread()
        message = f"{where} cannot be read as an Arrow stream; give a frame of plain columns, or a file"
        if (empty := _without_rows(self.data)) is not None:
            schema = attempt(message, lambda: _stream(empty(), columns, where).schema)
            batches = self._streamed(columns, where)
        else:
            reader = attempt(message, lambda: _stream(self.data, columns, where))
            schema, batches = reader.schema, self._once(raw(columns, reader))
        locate(where, columns, schema.names)
        return schema, shielded(message, batches)

    def _streamed(self, columns: Sequence[str], where: str) -> Iterator[RawBatch]:
        reader = _stream(self.data, columns, where)
        try:
            yield from raw(columns, reader)
        finally:
            reader.close()

    def _once(self, batches: Iterator[RawBatch]) -> Iterator[RawBatch]:
        self._check_unread()
        if isinstance(self.data, pa.RecordBatchReader):
            self._read.append(True)
        yield from batches

    def _check_unread(self) -> None:
        if self._read:
            raise DataError(
                f"the {type(self.data).__name__} can be read only once, and has been; give a table, a frame or a file"
            )


def _without_rows(data: Any) -> Callable[[], Any] | None:
    """What makes a frame of the same types without rows, where opening a stream for its types alone costs something.

    pandas converts all rows at once; DuckDB allows one open result for each connection.
    """
    if hasattr(data, "iloc"):
        return lambda: data.iloc[:0]
    if is_relation(data):
        return lambda: _rows_of(data.limit(0)).read_all()
    return None


def is_relation(data: object) -> bool:
    """Whether it is a relation of DuckDB."""
    return any(hasattr(data, name) for name in _READERS)


def _rows_of(relation: Any) -> Any:
    """A reader that streams, where a relation's __arrow_c_stream__ may collect first."""
    return next(getattr(relation, name) for name in _READERS if hasattr(relation, name))(BATCH_ROWS)


def _stream(data: Any, columns: Sequence[str], where: str) -> Any:
    if isinstance(data, pa.RecordBatchReader):
        return data
    if hasattr(data, "iloc"):
        # pandas converts every column at once, whether it is read or not; leave the others out.
        locate(where, columns, [str(name) for name in data.columns])
        data = data[[name for name in data.columns if str(name) in set(columns)]]
        if any(getattr(kind, "kind", "") == "O" for kind in data.dtypes):
            # Not to be left to Arrow, which would infer one type from all values of such a column.
            data = pa.table({str(name): series(data[name]) for name in data.columns})
    if is_relation(data):
        return _rows_of(data)
    return pa.RecordBatchReader.from_stream(data)


def is_text(kind: Any) -> bool:
    """Whether values of an Arrow type are texts, also in a dictionary."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return is_textual(plain(pa.array([], kind)).type)


def _check(array: Any) -> None:
    """Refuse an array that leads out of its own memory, as one of a damaged file may: Arrow would follow it.

    Only what holds the array together is looked at. No value may be a reason to refuse, so texts are taken as bytes.
    """
    array.validate()
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        _check(array.storage)
    elif pa.types.is_dictionary(kind):
        _check(array.dictionary)
        ends = pc.min_max(array.indices).as_py()
        if ends["min"] is not None and (ends["min"] < 0 or ends["max"] >= len(array.dictionary)):
            raise ValueError
    elif pa.types.is_run_end_encoded(kind):
        _check(array.values)
        runs = np.asarray(array.run_ends)
        ascend = len(runs) and (np.diff(runs, prepend=0) > 0).all()
        if len(array) and not (ascend and runs[-1] >= array.offset + len(array)):
            raise ValueError
    elif pa.types.is_union(kind):
        for number in range(kind.num_fields):
            _check(array.field(number))
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        array.view(pa.binary() if pa.types.is_string(kind) else pa.large_binary()).validate(full=True)
    elif str(kind) == "string_view":  # newer than the oldest pyarrow we serve
        array.view(pa.binary_view()).validate(full=True)
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or str(kind) == "binary_view":
        array.validate(full=True)


def raw(columns: Sequence[str], batches: Iterable[Any]) -> Iterator[RawBatch]:
    """The columns of record batches, in parts of at most `BATCH_ROWS` rows, each held together by its own memory."""
    for batch in batches:
        for name in columns:
            _check(batch.column(name))
        for start in range(0, batch.num_rows, BATCH_ROWS):
            part = batch.slice(start, BATCH_ROWS)
            yield RawBatch([part.column(name) for name in columns])


def with_key(columns: Sequence[str], key: str | None) -> list[str]:
    """Return the columns, followed by the person key if there is one."""
    return [*columns, *([key] if key is not None else [])]


def checked_arrow_types(types: Mapping[str, Any], domain: Domain, columns: Sequence[str], key: str | None) -> None:
    """Refuse columns and keys of types that cannot be read, before any batch.

    So a table with records is refused if and only if one without them is.
    """
    check_types(domain, {name: types[name] for name in columns})
    if key is not None:
        check_key(key, types[key])


def keyed(raw: Iterator[RawBatch], domain: Domain, columns: Sequence[str]) -> Iterator[tuple[Codes, Any]]:
    """The codes of raw batches of these columns, and the raw key where one follows them."""
    return coder(domain, columns)(raw)


def coder(domain: Domain, columns: Sequence[str]) -> Callable[[Iterator[RawBatch]], Iterator[tuple[Codes, Any]]]:
    """`keyed` for one stream of raw batches after the other, or for several at once in threads."""
    encode = encoders(domain, columns)
    message = "a column cannot be matched with its labels; give texts, numbers, booleans or dates"
    return lambda raw: ((codes, rest[0] if rest else None) for codes, rest in shielded(message, map(encode, raw)))


# --- Columns of Python objects --------------------------------------------------------------------
# Arrow infers one type for such a column from all its values, so one record could change what the others mean, or make
# the whole column unreadable. Here each cell is classified by itself, into a dense union with one child per type; what
# fits no child is carried as its text.

#: Digits before and after the point that the decimal child holds; longer decimals are carried as texts.
_PLACES: Final = 38
_TYPES = (
    pa.null(),
    pa.large_binary(),
    pa.bool_(),
    pa.int64(),
    pa.uint64(),
    pa.float64(),
    pa.decimal256(2 * _PLACES, _PLACES),
)
_NULL, _TEXT, _BOOL, _INT, _UINT, _FLOAT, _DECIMAL = range(len(_TYPES))


def objects(values: Iterable[object]) -> Any:
    """The cells as a chunked array of dense unions, a chunk per batch; never fails, whatever a cell holds."""
    cells = iter(values)
    chunks = []
    while part := list(islice(cells, BATCH_ROWS)):
        chunks.append(_union(part))
    return pa.chunked_array(chunks or [_union([])])


def series(values: Any) -> Any:
    """A pandas Series or Index as an Arrow array, of one type if its dtype says so and a union if it does not."""
    kind = values.dtype
    if hasattr(kind, "categories"):
        labels = series(kind.categories)
        labels = labels.combine_chunks() if isinstance(labels, pa.ChunkedArray) else labels
        codes = np.asarray(getattr(values, "cat", values).codes)
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32(), mask=codes < 0), labels)
    if (isinstance(kind, np.dtype) and kind.kind == "O") or getattr(kind, "storage", None) == "python":
        return objects(values)
    return pa.Array.from_pandas(values)


def _union(values: list[object]) -> Any:
    cells: list[list[Any]] = [[] for _ in _TYPES]
    kinds, offsets = np.empty(len(values), np.int8), np.empty(len(values), np.int32)
    for number, value in enumerate(values):
        kind, cell = _classified(value)
        kinds[number], offsets[number] = kind, len(cells[kind])
        cells[kind].append(cell)
    children = [pa.array(part, kind) for part, kind in zip(cells, _TYPES, strict=True)]
    return pa.UnionArray.from_dense(pa.array(kinds), pa.array(offsets), children)


def _classified(value: Any) -> tuple[int, Any]:
    try:
        return _by_type(value)
    except Exception:  # a foreign object's own code; its message may quote the record
        return _TEXT, b"\0" + type(value).__name__.encode("utf-8", "surrogatepass")


def _by_type(value: Any) -> tuple[int, Any]:
    if isinstance(value, str):
        return _TEXT, value.encode("utf-8", "surrogatepass")  # halves of characters match no label
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return _NULL, None
    if isinstance(value, (bool, np.bool_)):
        return _BOOL, bool(value)
    if isinstance(value, timedelta | np.timedelta64 | np.datetime64 | date | time):
        return _temporal(value)
    if isinstance(value, (int, np.integer)):
        return _whole(int(value))
    if isinstance(value, (float, np.floating)):
        return _FLOAT, float(value)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, (bytes, bytearray)):
        return _TEXT, bytes(value)
    return _TEXT, str(value).encode("utf-8", "surrogatepass")


def _whole(value: int) -> tuple[int, Any]:
    if -(2**63) <= value < 2**63:
        return _INT, value
    if 0 <= value < 2**64:
        return _UINT, value
    return _TEXT, str(Decimal(value)).encode()  # str(int) refuses long ones


def _decimal(value: Decimal) -> tuple[int, Any]:
    if value.is_nan():
        return _NULL, None
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        return _FLOAT, float(value)
    if value.adjusted() < _PLACES and exponent >= -_PLACES:
        return _DECIMAL, value
    return _TEXT, str(value).encode()


def _temporal(value: Any) -> tuple[int, Any]:
    # Times are no numbers, so a typed column of them is read through its texts, and they can be used at once.
    if isinstance(value, date) and getattr(value, "tzinfo", None) is None:
        return _TEXT, fraction_stripped(value.isoformat()).removesuffix("T00:00:00").encode()
    if isinstance(value, datetime):
        zone = pa.array([value]).type.tz
        # Through numpy, since Arrow drops the nanoseconds of a pandas Timestamp.
        exact = value.to_datetime64() if hasattr(value, "to_datetime64") else None
        array = pa.array([value]) if exact is None else pa.array(np.array([exact]))
        text = as_text(array.view(pa.timestamp(array.type.unit, zone)))[0].as_py()
    elif isinstance(value, time):
        text = as_text(pa.array([value]))[0].as_py()
    else:
        exact = value.to_timedelta64() if hasattr(value, "to_timedelta64") else value
        text = as_text(pa.array(np.array([exact]) if isinstance(exact, np.generic) else [exact]))[0].as_py()
    return (_NULL, None) if text is None else (_TEXT, text)
