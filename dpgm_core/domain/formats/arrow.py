"""Schemas of Arrow and Parquet files and of data frames: names and types, and nothing that a value decided.

A Parquet footer also holds the least and largest value of each column, how many are null, and whatever the writer left
in its key-value metadata: all of that is computed from records, and none of it is looked at. Nor are the categories of
a dictionary, unless the owner says that they were written down before the data were seen: as a rule they are the values
that occur. Of frames no row is taken, so no type is guessed from objects.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from dpgm_core.domain.attribute import first_repeated
from dpgm_core.domain.metadata import Metadata
from dpgm_core.errors import DataError, DpgmError

__all__ = ["arrow_file", "arrow_object"]

T = TypeVar("T")

_DECIMALS = 15  # that a number in a domain is written with, at most

_PARQUET = (".parquet", ".parq", ".pq")
_HIDDEN = "say labels = [...]: the schema's categories are not read, as a rule they are the values that occur"
_IN_RECORDS = "say labels = [...]: a Parquet file keeps categories among its records"


def arrow_file(path: Path, *, schema_is_public: bool = False) -> Metadata:
    """The schema of a Parquet file (.parquet), of a folder of them, or of an Arrow IPC file.

    Of folders named `key=value` the keys are columns; their values, which records have, are left out. Raises DataError,
    which quotes nothing of the file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    keys: list[str] = []
    first_file = path
    if path.is_dir():
        first_file, keys = _in_folder(path)
    elif not path.is_file():
        raise DataError(f"cannot read {path}: there is no such file")
    what = "Parquet" if first_file.suffix.lower() in _PARQUET else "Arrow IPC"
    if what == "Parquet":
        schema = _quietly(f"{path} cannot be read as {what}", lambda: pq.read_schema(first_file))
        metadata = _described(schema, {}, _IN_RECORDS if schema_is_public else _HIDDEN)
        return Metadata(tables={**metadata.tables, **{key: {"type": "text"} for key in keys}})

    def opened() -> tuple[Any, dict[str, list[str]]]:
        with pa.memory_map(str(path)) as stream:
            try:
                reader = pa.ipc.open_file(stream)
                first = reader.get_batch(0) if schema_is_public and reader.num_record_batches else None
            except pa.ArrowInvalid:
                stream.seek(0)
                reader = pa.ipc.open_stream(stream)
                first = next(iter(reader), None) if schema_is_public else None
            return reader.schema, {} if first is None else _categories(first)

    schema, categories = _quietly(f"{path} cannot be read as {what}", opened)
    return _described(schema, categories, _HIDDEN)


def arrow_object(frame: Any, *, schema_is_public: bool = False) -> Metadata:
    """The schema of a pyarrow Schema, or of a frame with `__arrow_c_stream__`; of pandas and polars without its rows.

    A frame's types are its owner's word only if it was made with them: those of a frame that was read from CSV were
    guessed from the records, so look at them before you take them over.
    """
    import pyarrow as pa

    if isinstance(frame, pa.Schema):
        return _described(frame, {}, _HIDDEN)

    def schema_of() -> tuple[Any, dict[str, list[str]]]:
        library = type(frame).__module__.partition(".")[0]
        # Conversion looks at objects to find their type, so it gets none.
        reader = pa.RecordBatchReader.from_stream(frame.head(0) if library in ("pandas", "polars") else frame)
        if not schema_is_public:
            return reader.schema, {}
        if library in ("pandas", "polars"):
            types = frame.dtypes if library == "pandas" else frame.schema
            # A Categorical of polars shares its categories with all other columns; an Enum has its own.
            listed = (
                (name, kind) for name, kind in types.items() if type(kind).__name__ in ("CategoricalDtype", "Enum")
            )
            return reader.schema, {name: [str(one) for one in kind.categories] for name, kind in listed}
        return reader.schema, _categories(pa.Table.from_batches(list(reader), reader.schema))

    schema, categories = _quietly(f"the schema of a {type(frame).__name__} cannot be read", schema_of)
    return _described(schema, categories, _HIDDEN)


def _in_folder(folder: Path) -> tuple[Path, list[str]]:
    """The first file of a folder of Parquet files, by its name, and the keys of the folders it is in."""
    inside = {one: one.relative_to(folder).parts for one in folder.rglob("*") if one.suffix.lower() in _PARQUET}
    files = [one for one, parts in inside.items() if not any(part.startswith((".", "_")) for part in parts)]
    if not files:
        raise DataError(f"{folder} holds no Parquet file (one ending in .parquet); name the file or its folder")
    first = min(files, key=lambda one: inside[one])
    return first, [key for part in inside[first][:-1] for key, equals, _ in [part.partition("=")] if equals]


def _described(schema: Any, categories: dict[str, list[str]], hidden: str) -> Metadata:
    twice = first_repeated(schema.names)
    if twice is not None:
        raise DataError(f"the schema has two columns {twice!r}; rename one")
    return Metadata(tables={one.name: _table(one.type, categories.get(one.name), hidden) for one in schema})


def _table(kind: Any, categories: list[str] | None, hidden: str) -> dict[str, Any]:
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        table = {key: value for key, value in _table(kind.value_type, None, hidden).items() if key != "todo"}
        # A text of no declared list is to be listed; of a number, a range will do as well.
        return {**table, "labels": categories} if categories is not None else {**table, "todo": hidden}
    if types.is_decimal(kind):
        shown = {"decimals": kind.scale} if kind.scale <= _DECIMALS else {}
        return {"type": "number", **shown} if kind.scale > 0 else {"type": "integer"}
    known = {
        "boolean": types.is_boolean,
        "integer": types.is_integer,
        "number": types.is_floating,
        "date": types.is_date,
        "datetime": types.is_timestamp,
        "time": types.is_time,
    }
    for word, holds in known.items():
        if holds(kind):
            return {"type": word}
    if str(kind) in ("string", "large_string", "string_view"):
        return {"type": "text"}
    if types.is_null(kind):
        return {}
    return {"todo": "this type is no column of a table: delete it, or have it written as text"}


def _categories(rows: Any) -> dict[str, list[str]]:
    """Column -> the categories of its dictionaries, in order."""
    import pyarrow as pa

    categories: dict[str, list[str]] = {}
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            every = [str(one) for chunk in chunks for one in chunk.dictionary.to_pylist() if one is not None]
            categories[name] = list(dict.fromkeys(every))
    return {name: labels for name, labels in categories.items() if labels}


def _quietly(message: str, call: Callable[[], T]) -> T:
    """What `call` gives; what it raises is dropped, as its text may hold anything."""
    try:
        return call()
    except DpgmError:
        raise
    except Exception:
        pass
    raise DataError(message)
