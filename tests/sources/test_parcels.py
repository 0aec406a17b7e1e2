"""What travels: what was put in comes out, and what was damaged is neither believed nor read out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dpgm_core.errors import SourceRefused
from dpgm_core.sources import engines as parcels

CODES = [np.array([3, 0, 255, 1], np.uint8), np.array([70, 65535, 0, 9], np.uint16)]
KEYS = pa.array([b"one", None, b"", b"a longer key"], pa.large_binary())
SUMS = np.array([0, -1, 2**62, -(2**62)])


def test_what_goes_in_comes_out() -> None:
    """Sums, codes with and without persons, and keys, as slices of larger arrays too, from any buffer."""
    assert parcels.to_sum(parcels.of_sum(SUMS), 4).tolist() == SUMS.tolist()
    for lengths in (None, np.array([1, 3]), np.array([2, 1, 1])):
        codes, found = parcels.to_codes(memoryview(bytearray(parcels.of_codes(CODES, lengths))))
        assert [one.tolist() for one in codes] == [one.tolist() for one in CODES]
        assert [one.dtype for one in codes] == [one.dtype for one in CODES]
        assert (found is None) if lengths is None else found.tolist() == lengths.tolist()
    for keys in (KEYS, pa.concat_arrays([KEYS, KEYS]).slice(2, 4), KEYS.slice(4), pa.nulls(4, pa.large_binary())):
        codes, found = parcels.to_keyed(parcels.of_keyed([one[: len(keys)] for one in CODES], *parcels.flat(keys)))
        assert found.to_pylist() == [key or b"" for key in keys.to_pylist()]
        assert codes[1].tolist() == CODES[1][: len(keys)].tolist()


def test_the_size_of_a_sum_says_nothing_of_it() -> None:
    """Zeros and large numbers are as long."""
    assert len(parcels.of_sum(SUMS)) == len(parcels.of_sum(SUMS * 0))


@pytest.mark.parametrize("kind", ["sum", "reason"])
def test_no_damage_to_a_sum_or_a_reason_is_believed(kind: str) -> None:
    """Each byte changed, each shorter and longer piece, and other lengths: refused, and nothing of it is said."""
    whole = {"sum": parcels.of_sum(SUMS), "reason": parcels.of_reason("SECRET")}[kind]
    damaged = [whole[:at] + bytes([whole[at] ^ 64]) + whole[at + 1 :] for at in range(len(whole))]
    damaged += [whole[:at] for at in range(len(whole))] + [whole + b"\0", whole[1:], b"C" + whole[1:]]
    for part in damaged:
        with pytest.raises(SourceRefused, match="damaged") as caught:
            parcels.to_sum(part)
        assert "SECRET" not in str(caught.value)
    with pytest.raises(SourceRefused, match="damaged" if kind == "sum" else "SECRET"):
        parcels.to_sum(whole, 3)


def test_a_damaged_block_leads_nowhere() -> None:
    """Cut, stretched and of another kind it is refused; whatever its numbers say, nothing beyond it is read."""
    blocks = [
        (parcels.to_codes, parcels.of_codes(CODES, np.array([1, 3]))),
        (parcels.to_codes, parcels.of_codes(CODES, None)),
        (parcels.to_keyed, parcels.of_keyed(CODES, *parcels.flat(KEYS))),
    ]
    for read, block in blocks:
        for part in [block[:at] for at in range(len(block))] + [block + b"\0", b"S" + block[1:], parcels.of_sum(SUMS)]:
            with pytest.raises(SourceRefused, match="damaged"):
                read(part)
        for at in range(len(block)):
            for value in (0, 1, 127, 255):
                try:
                    codes, rest = read(block[:at] + bytes([value]) + block[at + 1 :])
                except SourceRefused:
                    continue
                assert len({len(one) for one in codes}) == 1
                if read is parcels.to_keyed:
                    rest.validate(full=True)  # type: ignore[union-attr]


def test_a_reason_in_place_of_a_block_is_passed_on() -> None:
    """Whoever wanted the block hears why there is none."""
    for read in (parcels.to_codes, parcels.to_keyed, parcels.to_sum):
        with pytest.raises(SourceRefused, match=r"^no such table$"):
            read(parcels.of_reason("no such table"))
