"""Values of columns that have no one type in Arrow: each cell by its own type, whatever the others are.

They become dense unions, which core reads cell by cell: so no record changes what another means.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import pyarrow as pa

__all__ = ["CELLS", "cells", "numbers"]

#: Digits before and after the point of an exact number; longer ones are carried as texts.
_PLACES: Final = 38
_TYPES = (pa.null(), pa.large_binary(), pa.int64(), pa.float64(), pa.decimal256(2 * _PLACES, _PLACES))
_NULL, _TEXT, _INT, _FLOAT, _DECIMAL = range(len(_TYPES))
#: The Arrow type of what this module makes.
CELLS = pa.dense_union([pa.field(str(number), kind) for number, kind in enumerate(_TYPES)])
_KINDS = {type(None): _NULL, bytes: _TEXT, int: _INT, float: _FLOAT}


def cells(values: Sequence[Any]) -> Any:
    """Values as SQLite stores them (bytes for texts and blobs, whole numbers, floats, None) as one union.

    >>> cells([1, b"a", None, 0.5]).to_pylist()
    [1, b'a', None, 0.5]
    """
    kinds = np.fromiter(map(_KINDS.__getitem__, map(type, values)), np.int8, len(values))
    present = np.flatnonzero(np.bincount(kinds, minlength=len(_TYPES)))
    parts: list[Sequence[Any]] = [()] * len(_TYPES)
    offsets = np.zeros(len(values), np.int32)
    for kind in present.tolist():
        mine = kinds == kind
        offsets[mine] = np.arange(np.count_nonzero(mine), dtype=np.int32)
        parts[kind] = values if len(present) == 1 else [values[place] for place in np.flatnonzero(mine).tolist()]
    return _union(kinds, offsets, parts)


def numbers(texts: Any) -> Any:
    """Exact numbers, given as an Arrow array of their decimal digits, as one union; not-a-number is null.

    >>> numbers(pa.array(["1.50", "7", None, "NaN", "1" + "0" * 40])).to_pylist()[:4]
    [Decimal('1.5000...'), 7, None, None]
    """
    distinct = texts.dictionary_encode()
    parts: list[list[Any]] = [[] for _ in _TYPES]
    parts[_NULL].append(None)
    kinds, offsets = [], []
    for text in distinct.dictionary.to_pylist():
        kind, value = _number(text)
        kinds.append(kind)
        offsets.append(0 if kind == _NULL else len(parts[kind]))
        if kind != _NULL:
            parts[kind].append(value)
    # The last place stands for null.
    places = distinct.indices.fill_null(len(kinds)).to_numpy()
    of_kind, of_offset = np.array([*kinds, _NULL], np.int8), np.array([*offsets, 0], np.int32)
    return _union(of_kind[places], of_offset[places], parts)


def _number(text: str) -> tuple[int, Any]:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return _TEXT, text.encode()
    if value.is_nan():
        return _NULL, None
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        return _FLOAT, float(value)
    if exponent >= 0 and -(2**63) <= value < 2**63:
        return _INT, int(value)
    if value.adjusted() < _PLACES and exponent >= -_PLACES:
        return _DECIMAL, value
    return _TEXT, text.encode()


def _union(kinds: Any, offsets: Any, parts: Sequence[Sequence[Any]]) -> Any:
    children = [pa.array(part, kind) for part, kind in zip(parts, _TYPES, strict=True)]
    union = pa.UnionArray.from_dense(pa.array(kinds), pa.array(offsets), children)
    assert union.type == CELLS
    return union
