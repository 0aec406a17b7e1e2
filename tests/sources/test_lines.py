"""Blocks of lines: nothing is lost between them, and the verdict on a line is its own."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.sources import csv as module
from dpgm_core.sources.csv import malformed_lines, whole_lines, without


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), max_size=12), st.integers(1, 30), st.booleans())
def test_blocks_hold_whole_lines(lengths: list[int], longest: int, finished: bool) -> None:
    """For every block size: all lines that fit, in order, and the right number of those that do not."""
    lines = [bytes([65 + number % 26]) * length for number, length in enumerate(lengths)]
    content = b"\n".join(lines) + (b"\n" if finished and lines else b"")
    expected = content.split(b"\n")
    if not expected[-1]:
        expected.pop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_LINE", longest)
        blocks = list(whole_lines(io.BytesIO(content)))
    assert all(not block or block.endswith(b"\n") for block, _ in blocks)
    assert b"".join(block for block, _ in blocks) == b"".join(line + b"\n" for line in expected if len(line) <= longest)
    assert sum(number for _, number in blocks) == sum(len(line) > longest for line in expected)


@settings(deadline=None)
@given(st.lists(st.text(alphabet='a,"\r\0\x85\u2028é', max_size=5), max_size=8), st.booleans())
def test_a_line_is_malformed_by_itself(texts: list[str], quoting: bool) -> None:
    """The verdict on a line is the same alone and among others, and dropping the bad lines leaves the others."""
    lines = [text.encode() for text in texts]
    block = b"".join(line + b"\n" for line in lines)
    bad = malformed_lines(block, b",", quoting)
    assert bad == [number for number, line in enumerate(lines) if malformed_lines(line + b"\n", b",", quoting)]
    assert without(block, bad) == b"".join(line + b"\n" for number, line in enumerate(lines) if number not in bad)
