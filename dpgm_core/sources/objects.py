"""Columns of Python objects: every cell keeps the meaning it has in a column of its own type.

Arrow infers one type for such a column from all its values, so one record could change what the others mean, or make
the whole column unreadable. Here each cell is classified by itself, into a dense union with one child per type; what
fits no child is carried as its text.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa

from dpgm_core.sources.reading import BATCH_ROWS
from dpgm_core.sources.texts import as_text, fraction_stripped

__all__ = ["objects", "series"]

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
    """The cells as a chunked array of dense unions, a chunk per batch; never fails, whatever a cell holds.

    >>> objects([1, "a", None, True]).to_pylist()
    [1, b'a', None, True]
    """
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
    for place, value in enumerate(values):
        kind, cell = _classified(value)
        kinds[place], offsets[place] = kind, len(cells[kind])
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
