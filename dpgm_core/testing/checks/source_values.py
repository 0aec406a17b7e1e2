"""What a source must keep to the last digit, byte and record: numbers, texts, texts that are none, and odd counts."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dpgm_core.domain import Attribute, Domain
from dpgm_core.errors import DpgmError
from dpgm_core.testing.check import Checklist, require
from dpgm_core.testing.source_records import codes_of, expected_codes
from dpgm_core.testing.subjects import SourceSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("source")

# Numbers that lose their place when they are rounded to single precision, 15 digits, or fewer.
_NUMBERS = (0.1, 0.1 + 0.2, 1 / 3, 2.5, 16777217.0, 123456789.12345679, 1e-5, 1e22)

# Labels that readers take for one another: case, blanks, and one sign written in two ways (composed or not).
_LABELS = (
    "a",
    "A",
    " a",
    "a ",
    "a  b",
    "a b",
    "\u00e9",
    "e\u0301",
    "\u00a0a",
    "1",
    "01",
    "1.0",
    "+1",
    "Basel",
    "basel",
)

# 16 bytes in a file that is text, and what no UTF-8 holds in their place.
_MARK = b"QXZJWVKYQXZJWVKY"
_BROKEN = (b"\xff" * 16, b"QXZJWVKY\xc3(\xe2\x82Q\xed\xa0\x80", b"QXZJWVKYQXZJWVK\xc3")


def _codes(subject: SourceSubject, table: Any, domain: Domain) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return sorted(codes_of(subject.open(table, Path(folder)), domain).elements())


@CHECKS.add(needs="labels")
def numbers_keep_every_digit(subject: SourceSubject) -> None:
    """A float lies in the bin that its value says, also where an edge is the next double, and matches the label that is
    its shortest decimal. Cannot show: other doubles than those tried."""
    for number in _NUMBERS:
        below, above = math.nextafter(number, -math.inf), math.nextafter(number, math.inf)
        around = [below, number, above]
        for edge in (number, above):
            domain = Domain([Attribute.of_bins("x", [-1e300, edge, 1e300], unknown="?", null="none")])
            table = pa.table({"x": pa.array(around, pa.float64())})
            found, expected = _codes(subject, table, domain), sorted(expected_codes(table, domain))
            seen, right = (sum(code == (0,) for code in codes) for codes in (found, expected))
            require(found == expected, f"of {around}, {seen} are below {edge!r}, not {right}")
    fractions = [number for number in _NUMBERS if not number.is_integer()]
    domain = Domain([Attribute.of_labels("x", [repr(number) for number in fractions], unknown="?", null="none")])
    table = pa.table({"x": pa.array([*fractions, *(math.nextafter(number, 0) for number in fractions)], pa.float64())})
    found, expected = _codes(subject, table, domain), sorted(expected_codes(table, domain))
    require(found == expected, f"floats as labels get the codes {found}, not {expected}: digits are lost or made up")


@CHECKS.add(needs="labels")
def labels_match_byte_for_byte(subject: SourceSubject) -> None:
    """Labels that differ in case, blanks, leading zeros or Unicode form are different labels, and a value that differs
    from all of them in one of these is unknown. Cannot show: other ways of taking texts for one another."""
    for known in (_LABELS, *((label,) for label in _LABELS)):
        domain = Domain([Attribute.of_labels("x", known, unknown="no such label", null="none")])
        table = pa.table({"x": pa.array(_LABELS, pa.string())})
        found = _codes(subject, table, domain)
        if found == sorted(expected_codes(table, domain)):
            continue
        for value in _LABELS:
            one = pa.table({"x": pa.array([value, value], pa.string())})
            require(
                _codes(subject, one, domain) == sorted(expected_codes(one, domain)),
                f"the value {value!a} is not matched byte for byte with the labels {list(known)!a}",
            )
        require(False, f"values among {list(_LABELS)!a} are not matched byte for byte with the labels {list(known)!a}")


@CHECKS.add(needs="file")
def broken_text_is_a_record(subject: SourceSubject) -> None:
    """In a file of text, a record with bytes that are not UTF-8 is one record, its broken value unknown; all others
    come as they are, and nothing is raised. Cannot show: formats that are not text, whose bytes are not touched."""
    domain = Domain([Attribute.of_labels("town", ["A", "B"], unknown="?", null="none")])
    towns = ["A", "B", _MARK.decode(), "B", "A", "A"]
    table = pa.table({"town": pa.array(towns, pa.string()), "note": pa.array(["x"] * len(towns), pa.string())})
    expected = sorted(expected_codes(table, domain))
    for broken in _BROKEN:
        with tempfile.TemporaryDirectory() as folder:
            source = subject.open(table, Path(folder))
            if not sum(_damaged(path, broken) for path in Path(folder).rglob("*") if path.is_file()):
                return
            try:
                found = sorted(codes_of(source, domain).elements())
            except DpgmError as error:
                require(False, f"one record with the bytes {broken!r} refuses the whole file: {type(error).__name__}")
            require(
                found == expected,
                f"with one record of the bytes {broken!r} the codes are {found}, not {expected}",
            )


def _damaged(path: Path, broken: bytes) -> bool:
    """Whether the file is text that holds the mark; then it is overwritten with bytes of the same length."""
    content = path.read_bytes()
    try:
        text = "\0" not in content.decode()
    except UnicodeDecodeError:
        text = False
    if not text or _MARK not in content:
        return False
    path.write_bytes(content.replace(_MARK, broken))
    return True


@CHECKS.add(needs="records")
def no_batch_is_dropped(subject: SourceSubject) -> None:
    """Whatever the count, every record comes: one, a few, and, with B the records in the first batch of a long read, B
    and B + 1, whose last batches are full and of one record. Cannot show: what batches of over 100,000 records hide."""
    rows = 100_003
    towns = pa.array(np.resize(np.array(["A", "C", None, "Zürich", "B"], dtype=object), rows + 1), pa.string())
    table = pa.table({"town": towns, "note": pa.array(["x" * 40] * (rows + 1))})
    domain = Domain([Attribute.of_labels("town", ["A", "B", "Zürich"], unknown="?", null="none")])
    first = _sizes(subject, table[:rows], domain)[0]
    for count in sorted({1, 2, 3, 97, 1009, first, min(first, rows) + 1}):
        found = sum(_sizes(subject, table[:count], domain))
        require(found == count, f"of {count:,} records {found:,} came (the first batch of many holds {first:,})")


def _sizes(subject: SourceSubject, table: Any, domain: Domain) -> list[int]:
    with tempfile.TemporaryDirectory() as folder:
        return [len(codes) for (codes,) in subject.open(table, Path(folder)).batches(domain, ["town"])]
