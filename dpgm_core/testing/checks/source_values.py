"""What a source must keep to the last digit, byte and record: numbers, texts, texts that are none, and odd counts."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dpgm_core.domain import Attribute, Domain
from dpgm_core.errors import DpgmError
from dpgm_core.testing.check import Checklist, Profile, require
from dpgm_core.testing.reductions import PLANTED
from dpgm_core.testing.source_cases import Case, coded, in_one_sum
from dpgm_core.testing.source_records import DOMAIN, codes_of, expected_codes
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


@in_one_sum("labels")
def _around(profile: Profile) -> Mapping[str, Case]:
    cases = {}
    for number in _NUMBERS:
        below, above = math.nextafter(number, -math.inf), math.nextafter(number, math.inf)
        table = pa.table({"x": pa.array([below, number, above], pa.float64())})
        for edge in (number, above):
            bins = Attribute.of_bins("x", [-1e300, edge, 1e300], unknown="?", null="none")
            cases[f"of {[below, number, above]} and the edge {edge!r}"] = Case(table=table, domain=Domain([bins]))
    return cases


@in_one_sum("labels")
def _fractions(profile: Profile) -> Mapping[str, Case]:
    fractions = [number for number in _NUMBERS if not number.is_integer()]
    domain = Domain([Attribute.of_labels("x", [repr(number) for number in fractions], unknown="?", null="none")])
    table = pa.table({"x": pa.array([*fractions, *(math.nextafter(number, 0) for number in fractions)], pa.float64())})
    return {"floats as labels": Case(table=table, domain=domain)}


@CHECKS.add(needs="labels")
def numbers_keep_every_digit(subject: SourceSubject) -> None:
    """A float lies in the bin that its value says, also where an edge is the next double, and matches the label that
    is its shortest decimal. Cannot show: other doubles than those tried."""
    for what, case, hits in coded(subject, _around):
        found, right = hits[0,], sum(code == (0,) for code in case.expected)
        require(sorted(hits.elements()) == case.expected, f"{what}: {found} are below, not {right}")
    for what, case, hits in coded(subject, _fractions):
        codes = sorted(hits.elements())
        require(
            codes == case.expected, f"{what} get the codes {codes}, not {case.expected}: digits are lost or made up"
        )


@in_one_sum("labels")
def _byte_for_byte(profile: Profile) -> Mapping[str, Case]:
    table = pa.table({"x": pa.array(_LABELS, pa.string())})
    return {f"{list(known)!a}": _known(known, table) for known in (_LABELS, *((label,) for label in _LABELS))}


def _known(labels: Sequence[str], table: Any) -> Case:
    return Case(table=table, domain=Domain([Attribute.of_labels("x", labels, unknown="no such label", null="none")]))


@CHECKS.add(needs="labels")
def labels_match_byte_for_byte(subject: SourceSubject) -> None:
    """Labels that differ in case, blanks, leading zeros or Unicode form are different labels, and a value that differs
    from all of them in one of these is unknown. Cannot show: other ways of taking texts for one another."""
    for known, case, hits in coded(subject, _byte_for_byte):
        if sorted(hits.elements()) == case.expected:
            continue
        labels = case.domain["x"].labels[:-2]

        def alone(profile: Profile, labels: Sequence[str] = labels) -> Mapping[str, Case]:
            return {f"{one!a}": _known(labels, pa.table({"x": pa.array([one, one], pa.string())})) for one in _LABELS}

        for value, one, found in coded(subject, alone):
            require(
                sorted(found.elements()) == one.expected,
                f"the value {value} is not matched byte for byte with the labels {known}",
            )
        require(False, f"values among {list(_LABELS)!a} are not matched byte for byte with the labels {known}")


@in_one_sum("labels")
def _empty(profile: Profile) -> Mapping[str, Case]:
    table = pa.table({"x": pa.array(["a", "", " ", "", "b"], pa.string())})
    return {
        f"the labels {list(labels)!r}": Case(
            table=table,
            domain=Domain([Attribute.of_labels("x", labels, unknown="?", null=null)]),
        )
        for labels, null in ((("", "a"), "none"), (("a", ""), ""), (("a", " ", ""), "none"))
    }


@CHECKS.add(needs="labels")
def an_empty_text_is_a_label(subject: SourceSubject) -> None:
    """Where "" is a label an empty text gets its code, and is neither null, nor unknown, nor a blank. Cannot show:
    null values beside it, which some formats cannot tell from it."""
    for what, case, hits in coded(subject, _empty):
        found = sorted(hits.elements())
        require(found == case.expected, f'with {what} the texts a, "", " ", "" and b are {found}, not {case.expected}')


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


@CHECKS.add(needs="files")
def damage_far_into_the_records_quotes_none(subject: SourceSubject) -> None:
    """Of 60,000 records in three chunks the last file, or the end of the only one, is cut short, overwritten or
    emptied: errors are dpgm's and quote no record, and no record comes twice. Cannot show: every way of breaking a
    format."""
    texts = pa.chunked_array([pa.array([PLANTED] * 20_000, pa.string())] * 3)
    table, domain = pa.table({"town": texts, "visits": texts}), Domain([DOMAIN["town"], DOMAIN["visits"]])
    ways: dict[str, Callable[[bytes], bytes]] = {
        "cut short": lambda content: content[: len(content) * 7 // 10],
        "overwritten": lambda content: _overwritten(content, len(content) * 7 // 10),
        "emptied": lambda content: b"",
    }
    for what, damage in ways.items():
        with tempfile.TemporaryDirectory() as folder:
            source: Any = subject.open(table, Path(folder))
            files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
            if not files:
                return
            files[-1].write_bytes(damage(files[-1].read_bytes()))
            try:
                rows = codes_of(source, domain).total()
            except Exception as error:
                seen: BaseException | None = error
                while seen is not None:
                    require(PLANTED not in f"{seen!s}{seen!r}", f"{what}: {type(seen).__name__} quotes a record")
                    seen = seen.__cause__ or seen.__context__
                require(isinstance(error, DpgmError), f"{what}: {type(error).__name__}, a foreign error")
            else:
                require(rows <= len(table), f"{what}: {rows:,} records come of {len(table):,}")


def _overwritten(content: bytes, start: int) -> bytes:
    junk = f"{PLANTED},\0\xff".encode()
    return content[:start] + (junk * (1 + (len(content) - start) // len(junk)))[: len(content) - start]


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


@CHECKS.add(needs="rows")
def no_batch_is_dropped(subject: SourceSubject) -> None:
    """Whatever the count, every record comes: one, a few, and, with B the records in the first batch of a long read, B
    and B + 1, whose last batches are full and of one record. Cannot show: what batches of over 100,000 records
    hide."""
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
        source: Any = subject.open(table, Path(folder))
        return [len(codes) for (codes,) in source.batches(domain, ["town"])]
