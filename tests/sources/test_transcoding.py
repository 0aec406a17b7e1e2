"""Files in other encodings: a line means what it means by itself, and what cannot be decoded spoils no other."""

from __future__ import annotations

import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core.sources import csv as module
from dpgm_core.sources.csv import ENCODINGS, Encoding, as_utf8


def decoded(raw: bytes, encoding: str) -> str | None:
    """The text; None where there is none."""
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError:
        return None


UNIT = st.sampled_from(
    [b"a\0", b"\n\0", b"\x00\xd8", b"\x00\xdc", b"\r\0", b"\0\0", b"\xff\xfe", b"\x0a\x0a", b"\xe9\0"]
)


@settings(deadline=None)
@given(st.lists(UNIT, max_size=12), st.sampled_from([b"", b"a"]), st.integers(1, 5))
@example([b"\x00\xd8", b"\n\0"], b"", 1)  # half a pair, then a line end: the line ends there
def test_each_line_of_utf_16_is_decoded_by_itself(units: list[bytes], half: bytes, read: int) -> None:
    """As many lines as there are units 0x000A, each with its own text or, by Python's own decoder, with none."""
    lines = [b""]
    for unit in [*units, *([half] if half else [])]:
        if unit == b"\n\0":
            lines.append(b"")
        else:
            lines[-1] += unit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_READ", read)
        found = as_utf8(io.BytesIO(b"".join(units) + half), "utf-16-le").read()
    assert [decoded(line, "utf-8") for line in found.split(b"\n")] == [decoded(line, "utf-16-le") for line in lines]


@settings(deadline=None)
@given(st.binary(max_size=40), st.sampled_from(["latin-1", "cp1252"]), st.integers(1, 9))
def test_each_line_of_single_bytes_is_decoded_by_itself(raw: bytes, encoding: Encoding, read: int) -> None:
    """Five bytes are no letters of cp1252, and spoil the line that they are in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_READ", read)
        found = as_utf8(io.BytesIO(raw), encoding).read()
    expected = [decoded(line, encoding) for line in raw.split(b"\n")]
    assert [decoded(line, "utf-8") for line in found.split(b"\n")] == expected


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff", b"", b"big"])
def test_the_byte_order_is_that_of_the_mark_or_of_the_first_letter(mark: bytes) -> None:
    """A mark stays, as that of UTF-8."""
    big = mark in (b"\xfe\xff", b"big")
    text = "sex;town\nF;Zürich\n".encode("utf-16-be" if big else "utf-16-le")
    found = as_utf8(io.BytesIO((b"" if mark == b"big" else mark) + text), "utf-16").read()
    assert found.removeprefix(b"\xef\xbb\xbf").decode() == "sex;town\nF;Zürich\n"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_empty_file_is_empty(encoding: Encoding) -> None:
    """Nothing is made of nothing, and closing closes the file."""
    inner = io.BytesIO(b"")
    with as_utf8(inner, encoding) as stream:
        assert stream.read() == b""
    assert inner.closed
