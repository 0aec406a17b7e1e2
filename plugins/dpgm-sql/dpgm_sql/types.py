"""Types of an engine whose values can be coded in SQL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dpgm_sql.dialect import Column, Engine, quoted

__all__ = ["known_type", "sql_type"]

#: engine -> the declared type -> the Arrow types that its values are streamed as.
_WHOLE = {
    "duckdb": {
        "tinyint": "int8",
        "smallint": "int16",
        "integer": "int32",
        "bigint": "int64",
        "utinyint": "uint8",
        "usmallint": "uint16",
        "uinteger": "uint32",
        "ubigint": "uint64",
    },
    "postgresql": {"smallint": "int16", "integer": "int32", "bigint": "int64"},
}
_OTHERS = {
    "duckdb": {
        "boolean": "bool",
        "float": "float",
        "double": "double",
        "date": "date32[day]",
        "time": "time64[us]",
        "timestamp": "timestamp[us]",
        "timestamp_s": "timestamp[s]",
        "timestamp_ms": "timestamp[ms]",
        "timestamp_ns": "timestamp[ns]",
        "varchar": "string",
    },
    "postgresql": {
        "boolean": "bool",
        "real": "float",
        "double precision": "double",
        "date": "date32[day]",
        "time without time zone": "time64[us]",
        "timestamp without time zone": "timestamp[us]",
        "text": "string",
        "character varying": "string",
    },
}
#: Types of PostgreSQL whose values are texts once they are cast.
_READ_AS_TEXT = {"character", "name", "uuid", "enum"}
_ZONED = "timestamp with time zone"


def known_type(column: Column, engine: Engine) -> Any | None:
    """The Arrow type of the values, where they are streamed as they are and compare as Arrow's do; None for others.

    >>> known_type(Column(name="a", declared="character", read='"a"', kind=pa.string()), "postgresql")
    >>> known_type(Column(name="a", declared="text", read='"a"', kind=pa.string()), "postgresql")
    DataType(string)
    """
    kind, declared = column.kind, column.declared
    if engine == "postgresql" and declared in _READ_AS_TEXT and pa.types.is_string(kind):
        return kind if column.read.startswith("CAST(") else None
    if engine == "sqlite" or column.read != quoted(column.name):
        return None
    if engine == "duckdb" and declared == "enum" and pa.types.is_dictionary(kind):
        return kind.value_type
    if declared == _ZONED and pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz is not None:
        return kind
    if declared == "decimal" and engine == "duckdb" and pa.types.is_decimal(kind) and kind.scale >= 0:
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= 38 else None
    known = _WHOLE[engine].get(declared) or _OTHERS[engine].get(declared)
    return kind if known is not None and str(kind) == known else None


def sql_type(kind: Any, engine: Engine) -> str:
    """Return the name of the type of a literal.

    >>> sql_type(pa.float64(), "duckdb"), sql_type(pa.float64(), "postgresql")
    ('DOUBLE', 'DOUBLE PRECISION')
    """
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_floating(kind):
        return "DOUBLE" if engine == "duckdb" else "DOUBLE PRECISION"
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return _ZONED.upper()
    names = {**_WHOLE[engine], **_OTHERS[engine]}
    return next(name for name, arrow in names.items() if arrow == str(kind)).upper()
