"""Decoding of codes into values of their column: numbers inside their bin, dates, times, booleans and texts.

A decoder draws each number from the distribution inside its bin; an order that the domain demands of two columns holds
for drawn values too. Missing values, and labels that a typed column cannot have, become null. A column of texts keeps
all its labels except the default label of missing values. Reading a written value gives its code again. Numbers without
declared `decimals` have three digits more than their narrowest bin; more digits would carry no information.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from dpgm_core.arrays import Array, FloatArray, IntArray
from dpgm_core.attribute import Attribute
from dpgm_core.columns.values import Values
from dpgm_core.domain import Domain
from dpgm_core.models.distribution import Distribution
from dpgm_core.models.merged import MergedDistribution
from dpgm_core.models.wide import fit_wide_bins, tables_of_wide
from dpgm_core.models.within import BinDistribution, bin_distribution, missing_code

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Decoder", "decoder", "decoders_of"]

_TRUTH = {"true": True, "1": True, "false": False, "0": False}
#: Directives that Arrow writes as Python does.
_PLAIN_FORMAT = re.compile(r"(%[YmdHMSjy]|[^%])*")
#: Arrow writes smaller decimals with an exponent.
_PLAIN_DECIMALS = 6
#: Whole parts of numbers whose digits are grouped.
_DIGITS = re.compile(r"-?[1-9][0-9]{3,}")
_ISO = {"date": "%Y-%m-%d", "datetime": "%Y-%m-%dT%H:%M:%S", "time": "%H:%M:%S"}


@frozen(kw_only=True, eq=False)
class Decoder:
    """One attribute's codes as Arrow arrays. dist: of its numbers; None for texts and booleans.

    >>> ages = decoder(Attribute.of_bins("age", [0, 10, 30], unknown="missing"))
    >>> ages.values(np.array([0, 2, 1]), ages.places(np.array([0, 2, 1]), np.array([0.5, 0.5, 0.5]))).to_pylist()
    [5, None, 20]
    """

    attribute: Attribute
    dist: BinDistribution | None
    _raw: tuple[str | None, ...]
    _decimals: int | None

    @property
    def empty(self) -> Array:
        """(codes,), which are written as null."""
        if self.dist is not None:
            return ~self.dist.present
        return np.array([text is None for text in self._raw])

    def places(self, codes: IntArray, at: FloatArray) -> FloatArray:
        """A place on the axis for each code, NaN for codes without one. at: in [0, 1), uniform."""
        assert self.dist is not None
        return self.round(codes, self.dist.draw(codes, at))

    def round(self, codes: IntArray, places: FloatArray) -> FloatArray:
        """Places as they are written, still inside of their bins; NaN for codes without any."""
        assert self.dist is not None
        if self.dist.lattice is None and self._decimals is not None and self.attribute.edges is not None:
            edges, bins = np.array(self.attribute.edges), np.minimum(codes, len(self.attribute.edges) - 2)
            parts = 10.0**self._decimals
            scaled = np.rint(places * parts)
            scaled += scaled / parts < edges[bins]
            scaled -= scaled / parts >= edges[bins + 1]
            places = scaled / parts
        return np.where(self.dist.present[codes], places, np.nan)

    def next_written(self, places: FloatArray, *, up: bool) -> FloatArray:
        """The next places, up or down, with as many digits as are written."""
        if self._decimals is None:
            return places
        parts = 10.0**self._decimals
        return (np.ceil(places * parts) if up else np.floor(places * parts)) / parts

    def values(self, codes: IntArray, places: FloatArray | None = None) -> pa.Array:
        """Return values of the column's own type; places: from `places`, where there is a distribution."""
        import pyarrow as pa

        if self.dist is None:
            kind = pa.bool_() if self.attribute.values.kind == "boolean" else pa.string()
            made: Sequence[object] = self._raw
            if kind == pa.bool_():
                made = [None if text is None else _TRUTH[text.lower()] for text in self._raw]
            return pa.array(made, kind).take(pa.array(codes))
        assert places is not None
        return _typed(self.dist.values, places)

    def none(self) -> pa.Array:
        """No values, of the column's own type."""
        return self.values(np.zeros(0, np.int64), np.zeros(0))

    def texts(self, codes: IntArray, places: FloatArray | None = None) -> pa.Array:
        """As they are written in the column's format, for files without types."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.dist is None or self.attribute.edges is None:
            texts = pa.array(self._raw, pa.string()).take(pa.array(codes))
        else:
            assert places is not None
            texts = _written(self.dist.values, places, self._decimals)
            if self.dist.values.decimals is None and self._decimals:
                texts = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
            sign = self.attribute.matching.decimal
            if sign != "." and self.dist.values.kind == "number":
                texts = pc.replace_substring(texts, ".", sign)
            if self.attribute.matching.thousands is not None and not self.dist.values.is_temporal:
                texts = _grouped(texts, self.attribute.matching.thousands, sign)
        nulls = self.attribute.null_values
        return texts.fill_null(nulls[0]) if nulls and "" not in nulls else texts


def decoder(attribute: Attribute, table: FloatArray | None = None) -> Decoder:
    """Return the decoder of an attribute. table: a model's marginal, to which wide bins are fitted."""
    dist = bin_distribution(attribute) if table is None else fit_wide_bins(attribute, table)
    raw: list[str | None] = list(map(str, range(attribute.size)) if attribute.coded else attribute.labels)
    if dist is not None:
        raw = [text if there else None for text, there in zip(raw, dist.present, strict=True)]
    elif attribute.values.kind == "boolean":
        raw = [text if text is not None and text.lower() in _TRUTH else None for text in raw]
    missing = missing_code(attribute)
    if missing is not None:
        raw[missing] = None
    return Decoder(attribute=attribute, dist=dist, raw=tuple(raw), decimals=_decimals(attribute, dist))


def decoders_of(
    distribution: Distribution | MergedDistribution, domain: Domain, names: Sequence[str]
) -> dict[str, Decoder]:
    """Return decoders of some attributes, with wide bins fitted to the distribution."""
    tables = tables_of_wide(distribution, [domain[name] for name in names])
    return {name: decoder(domain[name], tables.get(name)) for name in names}


def _decimals(attribute: Attribute, dist: BinDistribution | None) -> int | None:
    """Return the number of digits written after the decimal point; None for all."""
    if dist is None or dist.values.kind != "number" or dist.values.decimals is not None or attribute.edges is None:
        return None if dist is None else dist.values.decimals
    edges = np.array(attribute.edges)
    widths = np.diff(edges[np.isfinite(edges)])
    digits = max(0, 3 - math.floor(math.log10(widths.min()))) if len(widths) else 0
    largest = float(np.abs(edges[np.isfinite(edges)]).max(initial=0))
    return digits if dist.values.shape != "lower" and digits <= 15 and largest * 10.0**digits < 2**52 else None


def _typed(values: Values, places: FloatArray) -> pa.Array:
    """Places on the axis as Arrow numbers, dates or times; NaN is null."""
    import pyarrow as pa

    null = np.isnan(places)
    if values.kind == "number":
        return pa.array(places, pa.float64(), mask=null)
    whole = np.where(null, 0, places).astype(np.int64)
    if values.kind == "integer":
        return pa.array(whole, pa.int64(), mask=null)
    if values.kind == "datetime":
        return pa.array(whole, pa.timestamp("s"), mask=null)
    kind = pa.date32() if values.kind == "date" else pa.time32("s")
    return pa.array(whole.astype(np.int32), pa.int32(), mask=null).view(kind)


def _written(values: Values, places: FloatArray, decimals: int | None) -> pa.Array:
    """Places on the axis as texts in the column's format; NaN is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    null = np.isnan(places)
    if values.kind == "number" and decimals is not None and decimals <= 15:
        scaled = np.rint(np.where(null, 0, places) * 10.0**decimals)
        if np.abs(scaled).max(initial=0) < 2**53:
            return _fixed(scaled.astype(np.int64), decimals, null)
    typed = _typed(values, places)
    if values.kind == "integer" or (values.kind == "number" and decimals is None):
        return typed.cast(pa.string())
    distinct = typed.dictionary_encode()
    form = values.format or _ISO.get(values.kind)
    if form is not None and _PLAIN_FORMAT.fullmatch(form):
        stamps = distinct.dictionary
        if values.kind == "time":
            stamps = stamps.cast(pa.int32()).cast(pa.int64()).cast(pa.timestamp("s"))
        texts = pc.strftime(stamps, format=form, locale="C").cast(pa.string())
    else:
        stood = distinct.dictionary
        stood = (
            stood if values.kind == "number" else stood.cast(pa.int64() if values.kind == "datetime" else pa.int32())
        )
        texts = pa.array([values.text(float(place)) for place in stood.to_pylist()], pa.string())
    return texts.take(distinct.indices)


def _grouped(texts: pa.Array, sign: str, point: str) -> pa.Array:
    """Numbers with their digits in groups of three; null stays null."""
    import pyarrow as pa

    def grouped(text: str) -> str:
        whole, dot, fraction = text.partition(point)
        return f"{int(whole):,}".replace(",", sign) + dot + fraction if _DIGITS.fullmatch(whole) else text

    distinct = texts.dictionary_encode()
    return pa.array([grouped(text) for text in distinct.dictionary.to_pylist()], pa.string()).take(distinct.indices)


def _fixed(scaled: IntArray, decimals: int, null: Array) -> pa.Array:
    """Return scaled whole numbers as texts with a fixed number of decimals."""
    import pyarrow as pa

    if decimals == 0:
        return pa.array(scaled, pa.int64(), mask=null).cast(pa.string())
    if decimals > _PLAIN_DECIMALS:
        return _padded(scaled, decimals, null)
    # 128 bits each, the low 64 first: the sign fills the high ones.
    words = np.stack([scaled, scaled >> 63], axis=1)
    valid = pa.py_buffer(np.packbits(~null, bitorder="little"))
    kind = pa.decimal128(18, decimals)
    return pa.Array.from_buffers(kind, len(scaled), [valid, pa.py_buffer(words)]).cast(pa.string())


def _padded(scaled: IntArray, decimals: int, null: Array) -> pa.Array:
    """The same for any number of decimals, about half as fast."""
    import pyarrow as pa
    import pyarrow.compute as pc

    digits = pc.utf8_lpad(pa.array(np.abs(scaled), pa.int64(), mask=null).cast(pa.string()), decimals + 1, "0")
    whole, fraction = pc.utf8_slice_codeunits(digits, 0, -decimals), pc.utf8_slice_codeunits(digits, -decimals)
    signs = pa.array(["", "-"]).take(pa.array((scaled < 0).astype(np.int64)))
    return pc.binary_join_element_wise(pc.binary_join_element_wise(signs, whole, ""), fraction, ".")
