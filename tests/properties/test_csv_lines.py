"""One physical line of a CSV file is one record: whatever bytes it is given, no other record changes."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core.counting.table_counts import count
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.sources import csv as module
from dpgm_core.sources.csv import CsvSource
from dpgm_core.structure.structure import Structure

DOMAIN = Domain(
    [
        Attribute.of_labels("p", ["x", "y", '"x"'], unknown="?", null="none"),
        Attribute.of_labels("q", ["x", "é", "x,y"], unknown="?"),
        Attribute.of_bins("r", [0, 1, 5], unknown="?", null="none"),
    ]
)
PLAIN = Structure(DOMAIN, [("p", "q"), ("q", "r"), ("p",), ("p", "q", "r")])
SINGLE = Structure(DOMAIN, [("p",)])
HEADERS = {3: b"p,q,r", 1: b"p"}

QUOTED = [b'"', b'"x"', b'"x', b'x"', b'""', b'"x,y"', b'"""']
ODD = [b"\0", b"\xff", b"\xc3", b"\r", b"\xef\xbb\xbf", b"\x85", b"\x1c", b" ", b"\\", b"#", b"'"]
ODD += [b"x" * 30, b"nan", b"1_0"]
FIELD = st.sampled_from([b"x", b"y", "é".encode(), b"0", b"3", b"", *QUOTED, *ODD])
# A line is any bytes without LF: fields that fit, too few or too many of them, or noise.
LINE = st.one_of(
    st.lists(FIELD, min_size=3, max_size=3).map(b",".join),
    st.lists(FIELD, max_size=6).map(b",".join),
    st.lists(FIELD, max_size=6).map(b"".join),
    st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lines") / "x.csv"


def tables(
    path: Path, structure: Structure, header: bytes, lines: Sequence[bytes], quoting: bool, block: int
) -> np.ndarray:
    """The counted tables of a file of these lines, read in blocks of so many bytes."""
    path.write_bytes(b"".join(line + b"\n" for line in [header, *lines]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_LINE", block)
        counted = count(CsvSource(path=path, quoting=quoting), structure)
    assert counted.records == len(lines)
    return counted.tables.values


def assert_within(change: np.ndarray, structure: Structure, neighbours: str) -> None:
    bound = Sensitivity.of(structure, neighbours)
    size = np.abs(change)
    assert (size > 0).sum() <= bound.l0
    assert size.sum() <= bound.l1
    assert (size**2).sum() <= bound.l2_squared
    assert size.max(initial=0) <= bound.linf


# Alone, each of these makes some CSV reader move a line end, drop a line, or fail.
DANGEROUS = [b'"', b'x,"x', b"\r", b"x\rx,x,x", b"", b"\0", b"\xff", b"\xef\xbb\xbfx,x,0", b'x","x', b",,,", b"x" * 99]


@pytest.mark.landing
@settings(max_examples=300)
@given(
    st.lists(LINE, max_size=6),
    st.integers(0, 6),
    LINE,
    LINE,
    st.booleans(),
    st.sampled_from([12, 20, 2**22]),
    st.sampled_from([3, 1]),
)
def test_one_line_moves_the_tables_by_one_record(
    path: Path, others: list[bytes], place: int, one: bytes, other: bytes, quoting: bool, block: int, width: int
) -> None:
    """Altering a line is replace-one, inserting or deleting it add-remove, with quoting on and off, in any blocks."""
    structure, header = (PLAIN, HEADERS[3]) if width == 3 else (SINGLE, HEADERS[1])
    before = tables(path, structure, header, [*others[:place], one, *others[place:]], quoting, block)
    altered = tables(path, structure, header, [*others[:place], other, *others[place:]], quoting, block)
    deleted = tables(path, structure, header, others, quoting, block)
    assert_within(before - altered, structure, "replace-one")
    assert_within(before - deleted, structure, "add-remove")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("quoting", [False, True])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_dangerous_lines_stay_alone(path: Path, quoting: bool, end: bytes) -> None:
    """Every pair of lines known to confuse readers, replaced one by the other between ordinary lines."""
    found = []
    for line in DANGEROUS:
        path.write_bytes(end.join([b"p,q,r", b"x,x,0", line, b"y,x,3", *[b"x,x,0"] * 3, b""]))
        counted = count(CsvSource(path=path, quoting=quoting), PLAIN)
        assert counted.records == 6
        found.append(counted.tables.values)
    for one, other in itertools.combinations(found, 2):
        assert_within(one - other, PLAIN, "replace-one")


@pytest.mark.landing
@settings(max_examples=100)
@given(st.lists(LINE, min_size=1, max_size=6), st.randoms(use_true_random=False), st.booleans())
@example([b'"x', b'x"', b"x,x,0"], None, False)
def test_the_order_of_lines_means_nothing(path: Path, lines: list[bytes], random: object, quoting: bool) -> None:
    """Shuffled lines in other blocks give the same tables: a line's record depends on its own bytes alone."""
    shuffled = list(reversed(lines))
    if random is not None:
        random.shuffle(shuffled)  # type: ignore[attr-defined]
    first = tables(path, PLAIN, HEADERS[3], lines, quoting, 40)
    np.testing.assert_array_equal(first, tables(path, PLAIN, HEADERS[3], shuffled, quoting, 40))
