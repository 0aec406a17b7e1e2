"""Pairs of tables that differ in one row: typed columns in files and frames, columns of Python objects, and codes."""

import datetime
import io
import random
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.neighbours.runs import TERMS, Pair, file_run, python_run

try:  # frames of what is not installed are left out
    import pandas
except ImportError:
    pandas = None
try:
    import polars
except ImportError:
    polars = None

_NEWER: dict[str, tuple[int, ...]] = {"decimal32": (5, 2), "decimal64": (10, 2), "string_view": ()}
KINDS: dict[str, Any] = {
    str(kind): kind
    for kind in (
        pa.null(), pa.bool_(), pa.int8(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(),
        pa.decimal128(20, 2), pa.decimal256(50, -3), pa.date32(), pa.date64(), pa.time32("ms"), pa.time64("ns"),
        pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Berlin"),
        pa.duration("s"), pa.duration("ns"), pa.month_day_nano_interval(), pa.string(), pa.large_string(), pa.binary(),
        pa.binary(3), pa.list_(pa.int8()), pa.struct([("x", pa.int8())]), pa.map_(pa.string(), pa.int8()),
        pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.float64()),
        pa.dictionary(pa.int8(), pa.list_(pa.int8())), pa.dictionary(pa.int8(), pa.month_day_nano_interval()),
        # newer than the oldest pyarrow we serve
        *(vars(pa)[name](*sizes) for name, sizes in _NEWER.items() if name in vars(pa)),
    )
}  # fmt: skip


class _Refuses:
    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        raise ValueError("SECRET")

    def __eq__(self, other: object) -> bool:
        raise ValueError("SECRET")


#: Cells for columns of objects, lists and keys.
OBJECTS: tuple[Any, ...] = (
    None, "F", "", "x", "\ud800", "S\0", b"\xff", bytearray(b"F"), True, 1, 1.5, -0.0, float("nan"), float("-inf"),
    1e308, 10**5000, -(10**400), 2**63, 2**64, 1j, [1], (1, [2]), {"F": 1}, {1, 2}, object(), _Refuses(),
    np.float64("nan"), np.longdouble("1e400"), np.array([1, 2]), np.array("F"), np.void(b"x"), Decimal("sNaN"),
    Decimal("1E+99999999999"), Decimal("-Infinity"), Fraction(1, 3), range(3), type, np.datetime64("NaT"),
    np.frombuffer(b"\x01\0\0\0\0\0\xf4\x7f")[0], np.datetime64("292277026596-12-04", "s"), np.timedelta64(3, "Y"),
    datetime.time(5, 30), datetime.date.min, datetime.datetime.max, datetime.timedelta.max,
)  # fmt: skip


def named_cells() -> Iterator[Pair]:
    """Each type in each format and role, and each odd object."""
    draw = random.Random(0)
    for kind in KINDS:
        for role in ("sex", "age", "id"):
            yield _some_typed(f"typed {kind} {role}", kind, role, draw)
    for cell in OBJECTS:
        yield object_pair(f"object {type(cell).__name__}", ["M", "F"], cell, draw)


def random_cells(name: str, draw: random.Random) -> Pair:
    if draw.random() < 0.6:
        return _some_typed(name, draw.choice(list(KINDS)), draw.choice(["sex", "age", "id"]), draw)
    return object_pair(name, draw.choices(OBJECTS, k=draw.randrange(4)), draw.choice(OBJECTS), draw)


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _ipc(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


#: Files are made of bytes, frames by functions.
_FILES: dict[str, Callable[[Any], bytes]] = {"parquet": _parquet, "arrow": _ipc}
_FRAMES: dict[str, Callable[[Any], Any]] = {"table": lambda table: table, "reader": lambda table: table.to_reader()}
if pandas is not None:
    # pandas keeps Arrow's types only so; what it would make of them by itself depends on the cells, as on nulls
    _FRAMES["pandas"] = lambda table: table.to_pandas(types_mapper=pandas.ArrowDtype)
if polars is not None:
    _FRAMES["polars"] = lambda table: _as_polars(table)
FORMATS = (*_FILES, *_FRAMES)


def _as_polars(table: Any) -> Any:
    if any("interval" in str(kind) for kind in table.schema.types):
        raise NotImplementedError("polars panics, on stderr")
    return polars.from_arrow(table)


def _some_typed(name: str, kind: str, role: str, draw: random.Random) -> Pair:
    while True:
        try:
            return typed_pair(name, kind, role, draw.choice(FORMATS), draw)
        except Exception:  # the format cannot hold this type or this cell
            continue


def typed_pair(name: str, kind: str, role: str, form: str, draw: random.Random) -> Pair:
    """Tables of one schema, in which one column is of this type. role: which."""
    change, rows = draw.choice(list(TERMS)), draw.choice([0, 1, 3])
    rows = max(rows, int(change == "replace"))
    cells = [cell_of(KINDS[kind], draw) for _ in range(rows + 1)]
    place = draw.randrange(rows + (change == "add"))
    sides = [cells[:rows], [*cells[:place], cells[rows], *cells[place + (change == "replace") : rows]]]
    keyed = role == "id" or draw.random() < 0.3
    runs = []
    for side in sides:
        others = {column: pa.array(["F"] * len(side), pa.string()) for column in ("sex", "age", "id")}
        odd = pa.concat_arrays([pa.nulls(0, KINDS[kind]), *side])
        table = pa.table(others | {role: odd})
        if form in _FILES:
            runs.append(file_run(f"data.{form}", _FILES[form](table), f'"data.{form}"', change, keyed))
        else:
            _FRAMES[form](table)  # that it can be made
            runs.append(python_run(lambda table=table: _FRAMES[form](table), change, keyed))
    return Pair(f"{name} {form} {role} {change} {rows}", *runs)


def cell_of(kind: Any, draw: random.Random) -> Any:
    """One cell of a type: null, a value, or any bits."""
    if pa.types.is_null(kind) or draw.random() < 0.15:
        return pa.nulls(1, kind)
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(pa.array([0], kind.index_type), cell_of(kind.value_type, draw))
    if pa.types.is_boolean(kind):
        return pa.array([draw.random() < 0.5])
    if pa.types.is_nested(kind):
        values: dict[Any, Any] = {
            pa.types.is_struct: {"x": 1},
            pa.types.is_map: [("a", 1)],
            pa.types.is_list: [1, None],
        }
        return pa.array([next(value for test, value in values.items() if test(kind))], kind)
    if pa.types.is_fixed_size_binary(kind):
        return pa.array([draw.randbytes(kind.byte_width)], kind)
    try:
        size = kind.bit_width // 8
    except ValueError:  # texts
        raw = draw.choice([b"F", b"", b"3", b"\xff\xfe", b"nan", b"x" * 70_000, draw.randbytes(5)])
        return (
            pa.array([raw], pa.binary()).view(pa.string()).cast(kind)
            if str(kind) == "string_view"
            else _texts(raw, kind)
        )
    bits = [
        bytes(size),
        b"\xff" * size,
        bytes(size - 1) + b"\x80",
        b"\xff" * (size - 1) + b"\x7f",
        draw.randbytes(size),
    ]
    special = {2: "007d", 4: "0000a07f", 8: "000000000000f47f"}.get(size, "")  # a signalling NaN, were it a float
    bits += [bytes.fromhex(special)] * bool(special) * 2
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(draw.choice(bits))])


def _texts(raw: bytes, kind: Any) -> Any:
    large = "large" in str(kind)
    return pa.array([raw], pa.large_binary() if large else pa.binary()).view(kind)


def object_pair(name: str, cells: Sequence[Any], odd: Any, draw: random.Random) -> Pair:
    """Cells without a type: columns of pandas of dtype object, and lists of codes and keys."""
    role = draw.choice(["sex", "age", "id"])
    change = draw.choice(list(TERMS)) if cells else "add"
    place = draw.randrange(len(cells) + (change == "add"))
    sides = [list(cells), [*cells[:place], odd, *cells[place + (change == "replace") :]]]
    framed = pandas is not None and draw.random() < 0.7
    twice = draw.random() < 0.2
    runs = []
    for side in sides:

        def make(side: list[Any] = side) -> Any:
            plain = {column: ["1"] * len(side) if framed else [1] * len(side) for column in ("sex", "age", "id")}
            columns = plain | {role: side}
            if not framed:
                return columns
            frame = pandas.DataFrame({name: series(values) for name, values in columns.items()})
            return pandas.concat([frame, frame[["id"]]], axis=1) if twice else frame

        runs.append(python_run(make, change, role == "id" or draw.random() < 2 * twice))
    return Pair(f"{name} {'pandas' if framed else 'lists'} {role} {change}", *runs)


def series(values: Sequence[Any]) -> Any:
    """A column of pandas of these objects, as they are."""
    column = np.empty(len(values), object)
    for place, value in enumerate(values):  # numpy would spread out cells that are arrays
        column[place] = value
    return pandas.Series(column, dtype=object)
