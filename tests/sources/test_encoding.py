"""Raw values become the codes that a domain says, whatever their type."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core.domain import Attribute
from dpgm_core.sources.encoding import encoder


@pytest.mark.parametrize(
    ("labels", "hits"), [(["false", "true"], 1), (["False", "True"], 1), (["1", "0"], 0), (["yes", "no"], 2)]
)
def test_booleans_match_the_pair_the_labels_know(labels: list[str], hits: int) -> None:
    """true/false, else True/False, else 1/0: decided by the domain alone."""
    attribute = Attribute.of_labels("x", labels, unknown="?")
    assert encoder(attribute)(pa.array([True])).tolist() == [hits]


ANY_VALUE = st.one_of(
    st.binary(max_size=6),
    st.integers(-50, 50).map(lambda number: str(number).encode()),
    st.floats(width=32).map(lambda number: repr(number).encode()),
    st.sampled_from([b"", b"NA", b" 1 ", b"1_0", b"+3", b"1e1", b"nan", b"inf", b"0x1", b"1.", b"\x1c1", b"1\0", b"A"]),
    st.none(),
)
ATTRIBUTES = [
    Attribute.of_labels("x", ["A", "3", "03", "-7", ""], unknown="?", null="none", null_values=["NA", "A"]),
    Attribute.of_labels("x", ["A", "B"], unknown="B", null="A", coded=True),
    Attribute.of_bins("x", [-10, 0, 0.5, 10], unknown="?", null="none", null_values=["NA", "", "7"]),
    Attribute.of_bins("x", [float("-inf"), 0, float("inf")], unknown="?"),
    Attribute.of_size("x", 300, unknown=299, null=7),
]


@settings(deadline=None, max_examples=200)
@given(st.lists(ANY_VALUE, max_size=20), st.sampled_from(ATTRIBUTES))
def test_texts_encode_as_the_reference_does(values: list[bytes | None], attribute: Attribute) -> None:
    """`encoder` is `Attribute.code`, for any bytes, with and without a dictionary."""
    wanted = [attribute.code(value) for value in values]
    for kind in (pa.binary(), pa.large_binary()):
        array = pa.array(values, kind)
        assert encoder(attribute)(array).tolist() == wanted
        assert encoder(attribute)(array.dictionary_encode()).tolist() == wanted


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1), st.integers(-12, 12)), max_size=20),
    st.sampled_from(ATTRIBUTES),
)
@example([10, -10, 7, 0], ATTRIBUTES[2])
def test_whole_numbers_encode_as_their_digits(values: list[int | None], attribute: Attribute) -> None:
    """As int32, int64, double and decimal, a whole number means what its digits mean."""
    wanted = [attribute.code(None if value is None else str(value)) for value in values]
    for kind in (pa.int32(), pa.int64(), pa.float64(), pa.decimal128(30, 3)):
        assert encoder(attribute)(pa.array(values, pa.int64()).cast(kind)).tolist() == wanted


@pytest.mark.parametrize(
    "labels", [["5", str(2**63 - 1)], [str(-(2**63)), "5"], [str(2**64 - 1), "5"], ["5", "9" * 19]]
)
def test_labels_at_the_ends_of_the_integers(labels: list[str]) -> None:
    """No wrap-around makes a huge number a label it is not."""
    attribute = Attribute.of_labels("x", labels, unknown="?")
    for kind in (pa.int8(), pa.int64(), pa.uint64()):
        info = np.iinfo(kind.to_pandas_dtype())
        values = [value for value in (5, 0, info.min, info.max, info.max - 1) if info.min <= value]
        assert encoder(attribute)(pa.array(values, kind)).tolist() == [attribute.code(str(value)) for value in values]
