"""One text per raw value: the rule by which labels and person keys of different types compare."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpgm_core.arrays import IntArray
from dpgm_core.errors import DataError
from dpgm_core.sources.reading import attempt

__all__ = ["as_text", "check_key", "fraction_stripped", "is_dense_union", "is_textual", "joined", "key_texts", "plain"]


def is_textual(kind: Any) -> bool:
    """Whether an Arrow type holds texts or bytes in one of the two layouts that `plain` leaves."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def is_dense_union(kind: Any) -> bool:
    """Whether an Arrow type is what `objects` makes: cells of several types, each with its own meaning."""
    return bool(pa.types.is_union(kind) and kind.mode == "dense")


def plain(array: Any) -> Any:
    """Return the same values without extension types, run ends, views and small decimals; texts become bytes."""
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
    if pa.types.is_decimal(kind) and kind.bit_width < 128:  # Arrow can do little with them
        return array.cast(pa.decimal128(38, kind.scale))
    # Nothing is lost, and not every pyarrow we serve can encode halves.
    return array.cast(pa.float32()) if pa.types.is_float16(kind) else array


def as_text(array: Any) -> Any:
    """The values as bytes (binary or large_binary), nulls kept, NaN null. DataError for nested values.

    Numbers that are whole give their digits, other floats the shortest decimal that reads back: in single precision
    if that holds them, else in double, whatever their type. Dates and times are ISO 8601, a timestamp at midnight is
    its date, durations are seconds. Each cell of a dense union has the text of its own type.

    >>> as_text(pa.array([1.0, 0.5, float("nan")])).to_pylist()
    [b'1', b'0.5', None]
    """
    array = plain(array)
    kind = array.type
    if is_textual(kind):
        return array
    if pa.types.is_dictionary(kind):
        return as_text(array.dictionary).cast(pa.large_binary()).take(array.indices)  # beyond 2 GB if need be
    if is_dense_union(kind):
        texts, places = joined(array, lambda child: as_text(child).cast(pa.large_binary()))
        return pa.concat_arrays(texts).take(pa.array(places))
    if pa.types.is_floating(kind):
        return pa.array(_float_texts(array.to_numpy(zero_copy_only=False).astype(np.float64)), pa.large_binary())
    if pa.types.is_decimal(kind):
        return pa.array([_decimal_text(value) for value in array.to_pylist()], pa.large_binary())
    if pa.types.is_duration(kind):
        digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[kind.unit]
        counts = array.cast(pa.int64()).to_pylist()
        texts = [None if count is None else _decimal_text(Decimal(count).scaleb(-digits)) for count in counts]
        return pa.array(texts, pa.large_binary())
    if not (
        pa.types.is_null(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind)
    ):
        raise DataError("a column of nested or otherwise compound values has no labels; give plain values")
    if pa.types.is_timestamp(kind):
        # A zone that nobody knows fails here whatever the records are, and not only where one has a value.
        pa.array([0], kind).cast(pa.string())
    texts = array.cast(pa.string())
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        for pattern, replacement in ((" ", "T"), (r"(\.[0-9]*?)0+(Z?)$", r"\1\2"), (r"\.(Z?)$", r"\1")):
            texts = pc.replace_substring_regex(texts, pattern, replacement)
    if pa.types.is_timestamp(kind):
        texts = pc.replace_substring_regex(texts, r"T00:00:00Z?$", "") if kind.tz is None else texts
    return texts.cast(pa.large_string()).cast(pa.large_binary())


def check_key(key: str, kind: Any) -> None:
    """Refuse, with DataError, a person key of an Arrow type that is no key: floats, and what has no text.

    >>> check_key("id", pa.float64())
    Traceback (most recent call last):
    dpgm_core.errors.DataError: person key 'id' is a column of floats, in which large numbers merge; give texts or ...
    """
    empty = attempt(
        f"person key {key!r} cannot be read as text; give a column of texts or whole numbers",
        lambda: plain(pa.nulls(0, kind)),
    )
    inner = empty.type
    while pa.types.is_dictionary(inner):
        inner = inner.value_type
    if pa.types.is_floating(inner):
        raise DataError(
            f"person key {key!r} is a column of floats, in which large numbers merge; give texts or whole numbers (in "
            "pandas Int64, which can hold missing ids)"
        )
    attempt(
        f"person key {key!r} cannot be read as text; give a column of texts or whole numbers", lambda: as_text(empty)
    )


def key_texts(key: str, raw: Any) -> Any:
    """The person keys as large_binary, null where there is none: an empty text is no key. Raises DataError.

    >>> key_texts("id", pa.array(["7", "", None])).to_pylist()
    [b'7', None, None]
    """
    check_key(key, raw.type)
    texts = attempt(
        f"person key {key!r} cannot be read as text; give a column of texts or whole numbers",
        lambda: as_text(raw).cast(pa.large_binary()),
    )
    # Not if_else: with a null, older pyarrows give a slice of texts the bytes of other rows (apache/arrow issue 49410),
    # and the rows of one person would be several persons'.
    empty, none = pa.scalar(b"", texts.type), pa.scalar(None, texts.type)
    return pc.replace_with_mask(texts, pc.equal(texts, empty), none)


def fraction_stripped(text: str) -> str:
    """A time's text without trailing zeros of its fraction of a second, so that it does not tell the unit.

    >>> fraction_stripped("05:30:00.120"), fraction_stripped("05:30:00.000")
    ('05:30:00.12', '05:30:00')
    """
    return text.rstrip("0").rstrip(".") if "." in text else text


def joined(union: Any, of_child: Callable[[Any], Any]) -> tuple[list[Any], IntArray]:
    """Return `of_child` of each child of a dense union, and each cell's place in their concatenation."""
    children = [union.field(number) for number in range(union.type.num_fields)]
    if not len(union):  # which may have no buffers
        return list(map(of_child, children)), np.zeros(0, np.int64)
    starts = np.cumsum([0, *map(len, children)])
    # From the buffers: a slice's own type_codes and offsets ignore where the slice starts.
    cells = slice(union.offset, union.offset + len(union))
    kinds = np.frombuffer(union.buffers()[1], np.int8)[cells]
    offsets = np.frombuffer(union.buffers()[2], np.int32)[cells]
    numbers = np.zeros(128, np.int64)
    numbers[union.type.type_codes] = starts[:-1]
    return list(map(of_child, children)), numbers[kinds] + offsets


def _float_texts(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[bytes | None]:
    with np.errstate(over="ignore"):
        singles = values.astype(np.float32)
    return [_float_text(value, single) for value, single in zip(values, singles, strict=True)]


def _float_text(value: np.float64, single: np.float32) -> bytes | None:
    if np.isnan(value):
        return None
    if np.isfinite(value) and value == np.floor(value):
        return b"%d" % int(value)
    # pandas widens single precision when a column becomes one of objects, so the precision is told by the value.
    return str(single if single == value else value).encode()


def _decimal_text(value: Decimal | None) -> bytes | None:
    if value is None:
        return None
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return (text if text != "-0" else "0").encode()
