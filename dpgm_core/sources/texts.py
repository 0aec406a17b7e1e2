"""One text per raw value: the rule by which labels and person keys of different types compare."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpgm_core.errors import DataError

__all__ = ["as_text", "is_textual", "object_texts", "plain"]


def is_textual(kind: Any) -> bool:
    """Whether an Arrow type holds texts or bytes in one of the two layouts that `plain` leaves."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def plain(array: Any) -> Any:
    """The same values without extension types, run ends and views; texts become bytes, unchecked."""
    if isinstance(array, pa.ExtensionArray):
        return plain(array.storage)
    kind = array.type
    name = str(kind)
    if pa.types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(array))
    if pa.types.is_string(kind):
        return array.cast(pa.binary())
    if (
        pa.types.is_large_string(kind)
        or pa.types.is_fixed_size_binary(kind)
        or name in ("string_view", "binary_view")  # newer than the oldest pyarrow we serve
    ):
        return array.cast(pa.large_binary())
    return array


def as_text(array: Any) -> Any:
    """The values as bytes (binary or large_binary), nulls kept, NaN null. DataError for nested values.

    Numbers that are whole give their digits, other floats the shortest decimal that reads back; dates and times are
    ISO 8601, and a timestamp at midnight is its date.

    >>> as_text(pa.array([1.0, 0.5, float("nan")])).to_pylist()
    [b'1', b'0.5', None]
    """
    array = plain(array)
    kind = array.type
    if is_textual(kind):
        return array
    if pa.types.is_dictionary(kind):
        return as_text(array.dictionary).take(array.indices)
    if pa.types.is_floating(kind):
        return pa.array([_float_text(value) for value in array.to_numpy(zero_copy_only=False)], pa.large_binary())
    if pa.types.is_decimal(kind):
        return pa.array([_decimal_text(value) for value in array.to_pylist()], pa.large_binary())
    if pa.types.is_duration(kind):
        array = array.cast(pa.int64())
    elif not (
        pa.types.is_null(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind)
    ):
        raise DataError("a column of nested or otherwise compound values has no labels; give plain values")
    texts = array.cast(pa.string())
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        for pattern, replacement in ((" ", "T"), (r"(\.[0-9]*?)0+(Z?)$", r"\1\2"), (r"\.(Z?)$", r"\1")):
            texts = pc.replace_substring_regex(texts, pattern, replacement)
    if pa.types.is_timestamp(kind):
        texts = pc.replace_substring_regex(texts, r"T00:00:00Z?$", "") if kind.tz is None else texts
    return texts.cast(pa.large_string()).cast(pa.large_binary())


def object_texts(values: Iterable[object]) -> Any:
    """Python objects as bytes, each by itself, under the rule of `as_text`; booleans give true and false.

    >>> object_texts([1, 1.0, "a", None, float("nan"), True, [1]]).to_pylist()
    [b'1', b'1', b'a', None, None, b'true', b'[1]']
    """
    return pa.array([_object_text(value) for value in values], pa.large_binary())


def _object_text(value: object) -> bytes | None:
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, (bool, np.bool_)):
        return b"true" if value else b"false"
    if isinstance(value, (int, np.integer)):
        return b"%d" % int(value)
    if isinstance(value, (float, np.floating)):
        return _float_text(np.float64(value))
    if isinstance(value, Decimal):
        return _decimal_text(value) if value.is_finite() else None
    text = str(value)
    return None if text in ("NaT", "<NA>", "nan") else text.encode("utf-8", "replace")


def _float_text(value: np.floating[Any]) -> bytes | None:
    if np.isnan(value):
        return None
    if np.isfinite(value) and value == np.floor(value):
        return b"%d" % int(value)
    return str(value).encode()  # the shortest decimal of its own precision


def _decimal_text(value: Decimal | None) -> bytes | None:
    if value is None:
        return None
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return (text if text != "-0" else "0").encode()
