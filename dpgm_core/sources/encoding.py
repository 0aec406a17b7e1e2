"""Encoding: raw values and texts as codes of a domain."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpgm_core._util.arrays import Codes, IntArray
from dpgm_core.domain.attribute import Attribute, code_dtype
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.labels import EXACT
from dpgm_core.domain.values import EXACT_WHOLE, NANO, Cut, Values, parse_number
from dpgm_core.errors import DataError
from dpgm_core.sources.contract import RawBatch
from dpgm_core.sources.reading import attempt

__all__ = [
    "as_text",
    "check_key",
    "check_types",
    "encoder",
    "encoders",
    "fraction_stripped",
    "is_dense_union",
    "is_textual",
    "joined",
    "key_texts",
    "plain",
]

# Texts match labels by the attribute's rules, byte for byte unless it has others; rules are applied to distinct texts.
# Other values match by their text: whole numbers (floats that are whole included) by their decimal digits, other
# floats by their shortest decimal (see `as_text`), dates and times by ISO 8601 (a midnight by its date), booleans by
# true/false, True/False or 1/0, whichever the labels know; the signs of a country are for texts alone. NaN is null.
# For an attribute with bins, numbers stay numbers, dates and times stay on their axis, both compared exactly whatever
# their unit, and texts are parsed. Cells of a dense union, which Python objects become, are read each by its own type.

CodeArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: Whole-number labels within such a span are looked up in an array, others in a hash table.
_MAX_LABEL_SPAN = 2**16
#: From so many distinct dates with a time on, Arrow's own reader is tried first.
_MIN_DISTINCT_TIMES = 256
_SECONDS = "^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}$"


def encoders(domain: Domain, columns: Sequence[str]) -> Callable[[RawBatch], tuple[Codes, list[Any]]]:
    """A function from a raw batch to the codes of the named columns, its first ones, and the raw arrays that follow.

    A malformed line is a record whose every attribute is unknown, and whose other columns are null. The function
    keeps no state, so batches can be encoded in parallel.

    >>> encode = encoders(Domain.from_sizes({"a": 2}, unknown=1), ["a"])
    >>> encode(RawBatch([pa.array(["0", "1"])], malformed=1))[0][0].tolist()
    [0, 1, 1]
    """
    attributes = [domain[name] for name in columns]
    functions = [encoder(attribute) for attribute in attributes]

    def encode(batch: RawBatch) -> tuple[Codes, list[Any]]:
        codes = [function(array) for function, array in zip(functions, batch.columns, strict=False)]
        rest = list(batch.columns[len(functions) :])
        if batch.malformed:
            codes = [
                np.append(part, np.full(batch.malformed, attribute.unknown, part.dtype))
                for part, attribute in zip(codes, attributes, strict=True)
            ]
            rest = [pa.concat_arrays([array, pa.nulls(batch.malformed, array.type)]) for array in map(plain, rest)]
        return codes, rest

    return encode


def check_types(domain: Domain, types: Mapping[str, Any]) -> None:
    """Refuse, with DataError, columns of Arrow types that cannot be matched with labels or bins, whatever they hold.

    types: the Arrow type of each column. An empty column is encoded: only the type can make that fail.

    >>> check_types(Domain.from_sizes({"a": 2}), {"a": pa.month_day_nano_interval()})
    Traceback (most recent call last):
    dpgm_core.errors.DataError: column 'a' has a type that cannot be matched with labels; give texts, numbers, ...
    """
    for name, kind in types.items():
        attempt(
            f"column {name!r} has a type that cannot be matched with labels; give texts, numbers, booleans or dates",
            lambda name=name, kind=kind: encoder(domain[name])(pa.nulls(0, kind)),  # type: ignore[misc]
        )


def encoder(attribute: Attribute) -> Callable[[Any], CodeArray]:
    """A function from an Arrow array of raw values to their codes, in `code_dtype(attribute.size)`."""
    of_values = _by_labels(attribute) if attribute.edges is None else _by_bins(attribute)
    booleans = np.array([attribute.typed_code(text) for text in _boolean_texts(attribute)], code_dtype(attribute.size))
    axis = _axis_of(attribute)

    def encode(raw: Any) -> CodeArray:
        array = plain(raw)
        kind = array.type
        if is_dense_union(kind):
            parts, places = joined(array, encode)
            return np.concatenate(parts).take(places)
        if pa.types.is_nested(kind):
            raise DataError(
                f"column {attribute.name!r} has a type of nested values, which have no labels; give plain values"
            )
        if pa.types.is_boolean(kind):
            codes = booleans.take(_filled(array).astype(np.intp))
        elif pa.types.is_dictionary(kind):
            codes = _through(array.indices, encode(array.dictionary))
        elif is_textual(kind) or axis(kind):
            codes = of_values(array)
        else:  # floats as labels, decimals, other dates and times, nulls
            distinct = array.dictionary_encode()
            codes = _through(distinct.indices, _typed(attribute, as_text(distinct.dictionary), of_values))
        if array.null_count:
            codes[array.is_null().to_numpy(zero_copy_only=False)] = attribute.null
        return codes

    return encode


def _axis_of(attribute: Attribute) -> Callable[[Any], bool]:
    """Whether values of an Arrow type have codes without their text: whole numbers, and what the bins cut."""
    if attribute.edges is None:
        return lambda kind: bool(pa.types.is_integer(kind))
    if not attribute.values.is_temporal:
        return lambda kind: bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
    if attribute.values.kind == "time":
        return lambda kind: bool(pa.types.is_time(kind))
    return lambda kind: bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _typed(attribute: Attribute, texts: Any, of_values: Callable[[Any], CodeArray]) -> CodeArray:
    # Texts that we wrote ourselves have none of the signs that raw texts may have.
    if attribute.matching.typed is attribute.matching:
        codes = of_values(texts)
        if texts.null_count:
            codes[texts.is_null().to_numpy(zero_copy_only=False)] = attribute.null
        return codes
    return np.array([attribute.typed_code(text) for text in texts.to_pylist()], code_dtype(attribute.size))


def _by_labels(attribute: Attribute) -> Callable[[Any], CodeArray]:
    """Codes of texts and whole numbers that match labels; those of nulls are left to the caller."""
    dtype = code_dtype(attribute.size)
    known = attribute.forms
    exact = attribute.matching == EXACT
    whole = {int(text): code for text, code in known.items() if re.fullmatch(rb"0|-?[1-9][0-9]{0,19}", text)}

    @cache
    def values_of(kind: Any) -> tuple[Any, CodeArray]:
        # The labels as an array of this type, and their codes; the last code stands for all other values.
        pairs: Mapping[Any, int] = known
        if pa.types.is_integer(kind):
            info = np.iinfo(kind.to_pandas_dtype())
            pairs = {value: code for value, code in whole.items() if info.min <= value <= info.max}
        return pa.array(list(pairs), kind), np.array([*pairs.values(), attribute.unknown], dtype)

    @cache
    def table_of(kind: Any) -> tuple[int, int, CodeArray, bool] | None:
        # The least and the largest label, the codes of the numbers between them and of all others, and whether the
        # labels are 0, 1, 2, ...; None if the labels lie too far apart.
        values, codes = values_of(kind)
        numbers = values.to_pylist()
        least, most = min(numbers, default=0), max(numbers, default=0)
        if most - least >= _MAX_LABEL_SPAN or pa.types.is_uint64(kind):
            return None
        table = np.full(most - least + 2, attribute.unknown, dtype)
        for number, code in zip(numbers, codes[:-1], strict=True):
            table[number - least] = code
        return least, most, table, least == 0 and np.array_equal(table[:-1], np.arange(most + 1))

    def of_values(array: Any) -> CodeArray:
        if is_textual(array.type) and not exact:
            distinct = array.dictionary_encode()
            return _through(distinct.indices, np.array([attribute.code(text) for text in _texts(distinct)], dtype))
        table = table_of(array.type) if pa.types.is_integer(array.type) else None
        if table is None:
            # index_in hashes the few public values, so memory does not grow with the distinct values in the data.
            values, codes = values_of(array.type)
            return codes.take(_filled(pc.index_in(array, value_set=values), len(values)))
        least, most, codes, plain_codes = table
        numbers = _filled(array)
        if len(numbers) and (numbers.min() < least or numbers.max() > most):
            inside = (numbers >= least) & (numbers <= most)
            return codes.take(np.where(inside, numbers - np.int64(least), np.int64(most - least + 1)))
        return numbers.astype(dtype) if plain_codes else codes.take(numbers - np.int64(least))

    return of_values


def _by_bins(attribute: Attribute) -> Callable[[Any], CodeArray]:
    """Codes of numbers, of dates and times, and of texts that are parsed, by the bins; nulls are left to the caller."""
    dtype = code_dtype(attribute.size)
    values, rules = attribute.values, attribute.matching
    cut = Cut(attribute.edges or (), attribute.cap, values.ticks)
    null_texts = attribute.forms
    # Where null is written as a number or a date, values that are it are null too.
    nulls = _null_places(attribute)

    def of_texts(texts: Sequence[bytes]) -> CodeArray:
        if values.is_temporal or rules != EXACT:
            return np.array([attribute.code(text) for text in texts], dtype)
        numbers = [math.nan if text in null_texts else parse_number(text) for text in texts]
        floats = np.array([0.0 if number is None else number for number in numbers], np.float64)
        codes = of_floats(floats)
        codes[[number is None for number in numbers]] = attribute.unknown
        for at in np.nonzero(np.abs(floats) >= EXACT_WHOLE)[0].tolist():  # perhaps whole numbers that no float is
            codes[at] = attribute.code(texts[at])
        return codes

    def of_floats(numbers: CodeArray) -> CodeArray:
        codes = attribute.bin_codes(numbers)
        if values.kind == "integer":
            with np.errstate(invalid="ignore"):
                codes[~np.isnan(numbers) & ~(np.isfinite(numbers) & (np.floor(numbers) == numbers))] = attribute.unknown
        return codes.astype(dtype)

    def of_whole(numbers: CodeArray, units: Fraction) -> CodeArray:
        codes = cut.whole(numbers, units)
        codes[codes < 0] = attribute.unknown
        for null in filter(math.isfinite, nulls):
            # In units of the axis; one that lies between two whole numbers is none of them.
            place = Fraction(null) / values.ticks * units
            if place.denominator == 1 and np.iinfo(numbers.dtype).min <= place <= np.iinfo(numbers.dtype).max:
                codes[numbers == int(place)] = attribute.null
        return codes.astype(dtype)

    def of_values(array: Any) -> CodeArray:
        kind = array.type
        if is_textual(kind):
            distinct = array.dictionary_encode()
            stamps = _stamps(distinct.dictionary, values) if not nulls else None
            if stamps is not None:
                return _through(distinct.indices, of_temporal(stamps))
            return _through(distinct.indices, of_texts([text or b"" for text in _texts(distinct)]))
        if pa.types.is_integer(kind):
            return of_whole(_filled(array), Fraction(1))
        if pa.types.is_temporal(kind):
            return of_temporal(array)
        numbers = _filled(array.cast(pa.float64()))
        codes = of_floats(numbers)
        for null in nulls:
            codes[numbers == null] = attribute.null
        return codes

    def of_temporal(array: Any) -> CodeArray:
        numbers, per_day = _ticks_of(array)
        if values.kind == "time":
            return of_whole(numbers, Fraction(per_day, 86_400))
        codes = (
            of_whole(numbers // per_day, Fraction(1))
            if values.kind == "date"
            else of_whole(numbers, Fraction(per_day, 86_400))
        )
        codes[~values.in_range(numbers, per_day=per_day)] = attribute.unknown  # years that no text of four digits says
        return codes

    return of_values


def _stamps(texts: Any, values: Values) -> Any:
    """Many texts at once as whole seconds, if each is a date and a time in ISO 8601 to the second; None if not."""
    if len(texts) < _MIN_DISTINCT_TIMES or values.kind not in ("date", "datetime") or values.format is not None:
        return None
    try:
        strings = texts.cast(pa.string() if pa.types.is_binary(texts.type) else pa.large_string())
        if not pc.all(pc.match_substring_regex(strings, _SECONDS)).as_py():
            return None
        return strings.cast(pa.timestamp("s"))
    except pa.ArrowInvalid:  # no such day, or no text at all
        return None


def _null_places(attribute: Attribute) -> list[int | float]:
    """The numbers, dates and times that are null, in ticks: those whose own text is a null value."""
    values = attribute.values
    iso = Values(kind=values.kind)
    places: list[int | float] = []
    for text in attribute.null_values:
        place = iso.exact(text.encode())
        if place is None and values.format is not None:
            place = values.exact(text.encode())
        if place is None or place != place:
            continue
        text = str(int(place)) if math.isfinite(place) and place == int(place) else repr(place)
        if values.is_temporal or attribute.typed_code(text) == attribute.null:
            places.append(place)
    return places


def _ticks_of(array: Any) -> tuple[CodeArray, int]:
    """Dates and times as whole numbers from the start of the axis, and how many of them make a day."""
    kind = array.type
    if pa.types.is_date64(kind):  # by its milliseconds: Arrow refuses to make days of those that are none
        return _filled(array.cast(pa.int64())), 86_400 * 10**3
    if pa.types.is_date32(kind):
        return _filled(array.cast(pa.int32())).astype(np.int64), 1
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": NANO}[kind.unit]
    narrow = array.cast(pa.int32()) if pa.types.is_time32(kind) else array
    return _filled(narrow.cast(pa.int64())), 86_400 * per_second


def _texts(distinct: Any) -> list[bytes | None]:
    texts: list[bytes | None] = distinct.dictionary.to_pylist()
    return texts


def _through(indices: Any, codes: CodeArray) -> CodeArray:
    # A place more, so that the null indices into an empty dictionary stay legal.
    return np.append(codes, codes.dtype.type(0)).take(_filled(indices))


def _filled(array: Any, null: int = 0) -> CodeArray:
    # Numbers (or booleans) with `null` in place of nulls; without nulls a view of Arrow's own memory.
    if array.null_count:
        array = array.fill_null(bool(null) if pa.types.is_boolean(array.type) else null)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _boolean_texts(attribute: Attribute) -> tuple[str, str]:
    if attribute.edges is not None:
        return "0", "1"
    pairs = (("false", "true"), ("False", "True"), ("0", "1"))
    forms = attribute.forms
    known = (pair for pair in pairs if all(attribute.matching.form(text.encode()) in forms for text in pair))
    return next(known, pairs[0])


# --- Texts of raw values, by which labels and person keys of different types compare --------------


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
        values = array.to_numpy(zero_copy_only=False).astype(np.float64)
        with np.errstate(over="ignore"):
            singles = values.astype(np.float32)
        return pa.array(list(map(_float_text, values, singles)), pa.large_binary())
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


_UNREADABLE_KEY = "person key {!r} cannot be read as text; give a column of texts or whole numbers"


def check_key(key: str, kind: Any) -> None:
    """Refuse, with DataError, a person key of an Arrow type that is no key: floats, and what has no text.

    >>> check_key("id", pa.float64())
    Traceback (most recent call last):
    dpgm_core.errors.DataError: person key 'id' is a column of floats, in which large numbers merge; give texts or ...
    """
    empty = attempt(_UNREADABLE_KEY.format(key), lambda: plain(pa.nulls(0, kind)))
    inner = empty.type
    while pa.types.is_dictionary(inner):
        inner = inner.value_type
    if pa.types.is_floating(inner):
        raise DataError(
            f"person key {key!r} is a column of floats, in which large numbers merge; give texts or whole numbers (in "
            "pandas Int64, which can hold missing ids)"
        )
    attempt(_UNREADABLE_KEY.format(key), lambda: as_text(empty))


def key_texts(key: str, raw: Any) -> Any:
    """The person keys as large_binary, null where there is none: an empty text is no key. Raises DataError."""
    check_key(key, raw.type)
    texts = attempt(_UNREADABLE_KEY.format(key), lambda: as_text(raw).cast(pa.large_binary()))
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


def _float_text(value: np.float64, single: np.float32) -> bytes | None:
    if np.isnan(value):
        return None
    if np.isfinite(value) and value == np.floor(value):
        return b"%d" % int(value)
    # pandas widens single precision when a column becomes one of objects, so the value shows the precision.
    return str(single if single == value else value).encode()


def _decimal_text(value: Decimal | None) -> bytes | None:
    if value is None:
        return None
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return (text if text != "-0" else "0").encode()
