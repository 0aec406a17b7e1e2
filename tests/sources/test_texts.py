"""Every Arrow type has a text."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from attrs import frozen

from dpgm_core.domain.attribute import Attribute
from dpgm_core.sources.encoding import as_text, encoder, key_texts


@frozen
class Row:
    kind: Any
    value: Any
    text: str | None


ROWS = [
    Row(pa.int8(), 1, "1"),
    Row(pa.uint64(), 2**64 - 1, str(2**64 - 1)),
    Row(pa.int64(), -(2**63), str(-(2**63))),
    Row(pa.float64(), 1.0, "1"),
    Row(pa.float64(), -0.0, "0"),
    Row(pa.float64(), 0.1, "0.1"),
    Row(pa.float32(), 0.1, "0.1"),
    Row(pa.float64(), 1e22, "1" + "0" * 22),
    Row(pa.float64(), float("nan"), None),
    Row(pa.float64(), float("inf"), "inf"),
    Row(pa.float16(), np.float16(1.5), "1.5"),
    Row(pa.decimal128(9, 2), decimal.Decimal("1.00"), "1"),
    Row(pa.decimal128(9, 2), decimal.Decimal("-0.50"), "-0.5"),
    Row(pa.bool_(), True, "true"),
    Row(pa.date32(), datetime.date(2020, 1, 31), "2020-01-31"),
    Row(pa.timestamp("ns"), datetime.datetime(2020, 1, 31), "2020-01-31"),
    Row(pa.timestamp("us"), datetime.datetime(2020, 1, 31, 5, 30, 0, 120000), "2020-01-31T05:30:00.12"),
    Row(pa.timestamp("s", "UTC"), datetime.datetime(2020, 1, 31, tzinfo=datetime.UTC), "2020-01-31T00:00:00Z"),
    Row(pa.time64("us"), datetime.time(5, 30), "05:30:00"),
    Row(pa.string(), "Zürich", "Zürich"),
    Row(pa.large_string(), "Zürich", "Zürich"),
    Row(pa.string_view(), "Zürich", "Zürich"),
    Row(pa.binary(), b"\xff", "\udcff"),
    Row(pa.binary(2), b"ab", "ab"),
    Row(pa.dictionary(pa.int8(), pa.string()), "ab", "ab"),
    Row(pa.dictionary(pa.uint16(), pa.int64()), 7, "7"),
    Row(pa.run_end_encoded(pa.int32(), pa.int64()), 7, "7"),
    Row(pa.null(), None, None),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kind}-{row.text!r}")
def test_every_arrow_type_has_a_text(row: Row) -> None:
    """Labels and person keys of any plain type compare by the documented text; nulls beside it stay null."""
    array = pa.array([row.value, None, row.value], row.kind)
    raw = None if row.text is None else row.text.encode("utf-8", "surrogateescape")
    assert as_text(array).to_pylist() == [raw, None, raw]
    label = row.text if row.text is not None and "\udcff" not in row.text else "other"
    attribute = Attribute.of_labels("x", ["first", label], unknown="?", null="none")
    code = attribute.code(raw)
    assert encoder(attribute)(array).tolist() == [code, 3, code]
    assert encoder(attribute)(array.slice(1)).tolist() == [3, code]
    assert encoder(attribute)(array.slice(0, 0)).tolist() == []


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
def test_keys_of_a_part_are_the_keys_of_its_rows(kind: Any) -> None:
    """A slice has its own keys and no bytes of other rows', as a kernel of pyarrow 18 to 23 would give it."""
    texts = ["", None, *(str(place) * (place % 4) for place in range(300))]
    wanted = [text.encode() if text else None for text in texts]
    for start, stop in ((0, 302), (7, 290), (7, 7), (302, 302)):
        part = key_texts("id", pa.array(texts, pa.string()).cast(kind)[start:stop])
        part.validate(full=True)
        assert part.to_pylist() == wanted[start:stop]
