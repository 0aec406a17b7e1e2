"""From raw Arrow values to codes, by the public domain alone: `Attribute.code`, vectorised.

Texts match labels byte for byte. Other values match by their text: whole numbers (floats that are whole included) by
their decimal digits, other floats by their shortest decimal, dates and times by ISO 8601 (a midnight by its date),
booleans by true/false, True/False or 1/0, whichever the labels know. NaN is null. For an attribute with bins, numbers
stay numbers and texts are parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from dpgm_core.domain import Attribute, Domain, code_dtype, parse_number
from dpgm_core.errors import DataError
from dpgm_core.sources.texts import as_text, is_textual, plain

if TYPE_CHECKING:
    from dpgm_core.protocols import Codes

__all__ = ["RawBatch", "encoder", "encoders"]

CodeArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: Whole-number labels within such a span are looked up in an array, others in a hash table.
_SPAN = 2**16


@frozen(repr=False)
class RawBatch:
    """Raw values of some records, one Arrow array per column, and how many malformed lines came with them."""

    columns: Sequence[Any]
    malformed: int = 0


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


def encoder(attribute: Attribute) -> Callable[[Any], CodeArray]:
    """A function from an Arrow array of raw values to their codes, in `code_dtype(attribute.size)`.

    >>> size = Attribute.of_labels("size", ["1", "2"], unknown="?", null="none")
    >>> encoder(size)(pa.array([1.0, 2.0, 2.5, None])).tolist()
    [0, 1, 2, 3]
    """
    dtype = code_dtype(attribute.size)
    # The texts with a meaning of their own; all others are unknown.
    texts = [*(map(str, range(attribute.size)) if attribute.coded else attribute.labels), *attribute.null_values]
    known = {text.encode(): attribute.code(text) for text in texts} if attribute.edges is None else {}
    whole = {int(text): code for text, code in known.items() if re.fullmatch(rb"0|-?[1-9][0-9]{0,19}", text)}

    @cache
    def known_texts(kind: Any) -> Any:
        return pa.array(list(known), kind)

    def look_up(array: Any, values: Any, codes: Iterable[int]) -> CodeArray:
        # index_in hashes the few public values, so memory does not grow with the distinct values in the data.
        lookup = np.array([*codes, attribute.unknown], dtype)
        found = pc.index_in(array, value_set=values).fill_null(len(lookup) - 1)
        return with_nulls(array, lookup.take(found.to_numpy(zero_copy_only=False)))

    def with_nulls(array: Any, codes: CodeArray) -> CodeArray:
        if array.null_count:
            codes[array.is_null().to_numpy(zero_copy_only=False)] = attribute.null
        return codes

    def of_texts(array: Any) -> CodeArray:
        if attribute.edges is not None:
            return _bins_of_texts(attribute, array.to_pylist()).astype(dtype)
        return look_up(array, known_texts(array.type), known.values())

    @cache
    def whole_within(low: int, high: int) -> dict[int, int]:
        return {value: code for value, code in whole.items() if low <= value <= high}

    @cache
    def table(low: int, high: int) -> tuple[int, int, CodeArray]:
        # The least and largest label, and the codes between them; the last place stands for all other numbers.
        fitting = whole_within(low, high)
        least, most = min(fitting, default=0), max(fitting, default=0)
        codes = np.full(most - least + 2, attribute.unknown, dtype)
        for value, code in fitting.items():
            codes[value - least] = code
        return least, most, codes

    def of_whole_numbers(array: Any) -> CodeArray:
        info = np.iinfo(array.type.to_pandas_dtype())
        fitting = whole_within(info.min, info.max)
        if pa.types.is_uint64(array.type) or (fitting and max(fitting) - min(fitting) >= _SPAN):
            return look_up(array, pa.array(list(fitting), array.type), fitting.values())
        least, most, codes = table(info.min, info.max)
        numbers = _filled(array)
        if len(numbers) and (numbers.min() < least or numbers.max() > most):
            places = np.where(
                (numbers < least) | (numbers > most), np.int64(most - least + 1), numbers - np.int64(least)
            )
        elif np.array_equal(codes[:-1], np.arange(len(codes) - 1)) and least == 0:
            return with_nulls(array, numbers.astype(dtype))  # labels 0, 1, ...: each number is its code already
        else:
            places = numbers - np.int64(least)
        return with_nulls(array, codes.take(places))

    def of_numbers(array: Any) -> CodeArray:
        numbers = array.cast(pa.float64(), safe=False).fill_null(float("nan")).to_numpy(zero_copy_only=False)
        codes = attribute.bin_codes(numbers)
        for text in attribute.null_values:
            if (number := parse_number(text.encode())) is not None:
                codes[numbers == number] = attribute.null
        return codes.astype(dtype)

    def of_booleans(array: Any) -> CodeArray:
        pairs = (("false", "true"), ("False", "True"), ("0", "1"))
        pair = pairs[2] if attribute.edges is not None else next((p for p in pairs if set(p) <= set(texts)), pairs[0])
        codes = np.array([attribute.code(text) for text in pair], dtype)
        return with_nulls(array, codes[_filled(array).astype(np.intp)])

    def through(distinct: Any, codes: CodeArray) -> CodeArray:
        # `codes` of the dictionary's values; a place more, so that indices into an empty dictionary stay legal.
        lookup = np.append(codes, dtype.type(attribute.null))
        return with_nulls(distinct, lookup.take(_filled(distinct.indices)))

    def encode(raw: Any) -> CodeArray:
        array = plain(raw)
        kind = array.type
        if pa.types.is_dictionary(kind):
            return through(array, encode(array.dictionary))
        if pa.types.is_null(kind):
            return np.full(len(array), attribute.null, dtype)
        if pa.types.is_boolean(kind):
            return of_booleans(array)
        if attribute.edges is None:
            if is_textual(kind):
                return of_texts(array)
            if pa.types.is_integer(kind):
                return of_whole_numbers(array)
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return of_numbers(array)
        if pa.types.is_nested(kind):
            raise DataError(f"column {attribute.name!r} holds nested values, which have no labels; give plain values")
        distinct = array.dictionary_encode()
        return through(distinct, of_texts(as_text(distinct.dictionary)))

    return encode


def _filled(array: Any) -> CodeArray:
    # Zeros (or False) for nulls; without nulls a view of Arrow's own memory.
    if array.null_count:
        array = array.fill_null(False if pa.types.is_boolean(array.type) else 0)
    numbers: CodeArray = array.to_numpy(zero_copy_only=False)
    return numbers


def _bins_of_texts(attribute: Attribute, texts: Iterable[bytes | None]) -> CodeArray:
    nulls = {None, *(text.encode() for text in attribute.null_values)}
    numbers = [float("nan") if text in nulls else parse_number(text) for text in texts]  # type: ignore[arg-type]
    codes = attribute.bin_codes(np.array([0.0 if number is None else number for number in numbers], np.float64))
    codes[[number is None for number in numbers]] = attribute.unknown
    return codes
