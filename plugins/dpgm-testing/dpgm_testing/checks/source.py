"""Checks of sources."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from dpgm_core.domain.attribute import Attribute, code_dtype
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError, DpgmError
from dpgm_core.sources.contract import Reading, ReducingSource, Source
from dpgm_testing.check import Checklist, Profile, explore, require, require_no_quote
from dpgm_testing.checks import reducing
from dpgm_testing.reductions import PLANTED
from dpgm_testing.sources import (
    DOMAIN,
    ODD_TEXTS,
    Case,
    coded,
    codes_of,
    example_table,
    expected_codes,
    in_one_sum,
    opened,
    rows_of,
    text_table,
)
from dpgm_testing.subjects import SourceSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("source")


# --- Records and errors ---------------------------------------------------------------------------


@in_one_sum("records")
def _example(profile: Profile) -> Mapping[str, Case]:
    return {"the example": Case(table=example_table())}


@CHECKS.add(needs="records")
def codes_are_the_domains(subject: SourceSubject) -> None:
    """Every record becomes the codes that Attribute.code gives its values: labels, bins, codes, unknown and null.
    Cannot show: values of other types than text, float and whole number."""
    for _, case, found in coded(subject, _example):
        expected = case.expected
        require(found.total() == len(expected), f"{found.total()} records were yielded, not {len(expected)}")
        for place, name in enumerate(DOMAIN.names):
            own, right = (sorted(row[place] for row in rows) for rows in (found.elements(), expected))
            require(own == right, f"attribute {name!r} ({DOMAIN[name]}) has other codes")
        require(sorted(found.elements()) == expected, "the columns of a record do not belong together")


@in_one_sum("records")
def _few_labels(profile: Profile) -> Mapping[str, Case]:
    town = Domain([DOMAIN["town"]])
    data = (["Zürich"], ["B", "A"], ["Zürich", "B"], ["C", "A"], [None, "B"])
    return {
        f"records with the labels {labels} only": Case(
            table=pa.table({"town": pa.array(labels * 3, pa.string())}), domain=town
        )
        for labels in data
    }


@CHECKS.add(needs="records")
def codes_do_not_depend_on_the_data(subject: SourceSubject) -> None:
    """A data set without some labels, or in which they come in another order, gets the same codes: categories are never
    read off the records. Cannot show: more than the few data sets tried."""
    for what, case, found in coded(subject, _few_labels):
        require(
            sorted(found.elements()) == case.expected,
            f"{what} get the codes {sorted(set(found))}, not {sorted(set(case.expected))}",
        )


@CHECKS.add(needs="rows")
def batches_are_well_formed(subject: SourceSubject) -> None:
    """Each batch is one unsigned array per column asked for, of one length, of the narrowest type, all codes legal.
    Cannot show: that the codes are right."""
    with opened(subject, example_table()) as source:
        for batch in source.batches(DOMAIN, DOMAIN.names):
            require(len(batch) == len(DOMAIN), f"a batch has {len(batch)} arrays for {len(DOMAIN)} columns")
            require(len({len(part) for part in batch}) == 1, "the arrays of a batch differ in length")
            for part, attribute in zip(batch, DOMAIN, strict=True):
                kind = code_dtype(attribute.size)
                require(part.dtype == kind, f"codes of {attribute.name!r} are {part.dtype}, not {kind}")
                require(bool((np.asarray(part) < attribute.size).all()), f"{attribute.name!r}: a code is too large")


@in_one_sum("records")
def _orders(profile: Profile) -> Mapping[str, Case]:
    table = example_table()
    orders = {
        "in order": np.arange(len(table)),
        "shuffled": np.random.default_rng(1).permutation(len(table)),
        "reversed": np.arange(len(table))[::-1],
    }
    return {what: Case(table=table.take(pa.array(order))) for what, order in orders.items()}


@CHECKS.add(needs="records")
def row_order_changes_nothing(subject: SourceSubject) -> None:
    """Shuffled, and reversed, the records give the same codes. Cannot show: other orders."""
    first = None
    for what, _, found in coded(subject, _orders):
        first = first or found
        require(found == first, f"records {what} get other codes")


def _odd_cases(profile: Profile, claim: Callable[[Case], None]) -> None:
    others = text_table(example_table(12))

    def with_others(texts: tuple[str | None, ...]) -> None:
        odd = pa.table({name: [text] for name, text in zip(others.column_names, texts, strict=True)}, others.schema)
        claim(Case(table=pa.concat_tables([odd, others])))

    text = st.one_of(st.none(), st.sampled_from(ODD_TEXTS), st.sampled_from(["A", "B", "0", "1", "17", "-1"]))
    rows = st.tuples(*[text] * len(others.column_names))
    explore(profile, rows, with_others, worst=[(odd,) * len(others.column_names) for odd in ODD_TEXTS], share=0.5)


@in_one_sum("records")
def _odd(profile: Profile) -> Mapping[str, Case]:
    cases: list[Case] = []
    _odd_cases(profile, cases.append)
    return {f"{number}": case for number, case in enumerate(cases)}


@CHECKS.add(needs="records")
def one_record_changes_only_itself(subject: SourceSubject) -> None:
    """Whatever texts one record is given, all others keep their codes: no type or category is inferred from the data.
    Cannot show: damage to the file's format, such as quotes and line ends (the format's own tests must)."""

    def require_own(case: Case, found: Counter[tuple[int, ...]]) -> None:
        odd = case.table.slice(0, 1).to_pylist()[0]
        require(
            sorted(found.elements()) == case.expected,
            f"a record {tuple(odd.values())!r} changes how others are read, or is not what the domain says",
        )

    def claim(case: Case) -> None:
        with opened(subject, case.table) as source:
            require_own(case, rows_of(source, DOMAIN, DOMAIN.names))

    if "rows" in subject.capabilities:
        _odd_cases(subject.profile, claim)  # one after the other, so that Hypothesis finds a small one
    for _, case, found in coded(subject, _odd, only="reduces"):
        require_own(case, found)


@in_one_sum("labels")
def _types(profile: Profile) -> Mapping[str, Case]:
    table = example_table()
    variants: dict[str, Any] = {"texts": text_table(table)}
    for name, kind in (("int32", pa.int32()), ("int64", pa.int64())):
        variants[name] = table.set_column(3, "coded", table["coded"].cast(kind))
    variants["large texts"] = table.set_column(0, "town", table["town"].cast(pa.large_string()))
    variants["dictionary"] = table.set_column(0, "town", table["town"].dictionary_encode())
    return {name: Case(table=variant) for name, variant in variants.items()}


@CHECKS.add(needs="labels")
def types_change_nothing(subject: SourceSubject) -> None:
    """Numbers as texts, whole numbers of any width, and dictionary-encoded or large texts give the same codes. Cannot
    show: types that the format cannot hold."""
    expected = sorted(expected_codes(example_table()))
    for what, _, found in coded(subject, _types):
        require(sorted(found.elements()) == expected, f"as {what} the records get other codes")


@in_one_sum("labels")
def _declared(profile: Profile) -> Mapping[str, Case]:
    table = pa.table({"town": pa.array(["A", "C", None, "C", None, "B"], pa.string())})
    return {
        f"unknown = {unknown!r}, null = {null!r}": Case(
            table=table, domain=Domain([Attribute.of_labels("town", ["A", "B"], unknown=unknown, null=null)])
        )
        for unknown, null in (("A", "B"), ("B", "B"), ("other", "A"), ("other", "none"))
    }


@CHECKS.add(needs="labels")
def unknown_and_null_go_where_declared(subject: SourceSubject) -> None:
    """The same values land on whichever label the domain declares for unknown and for null. Cannot show: null values of
    other spellings."""
    for what, case, found in coded(subject, _declared):
        require(
            sorted(found.elements()) == case.expected,
            f"{what}: the codes are {sorted(found.elements())}, not {case.expected}",
        )


@CHECKS.add(needs="rows")
def columns_come_as_asked(subject: SourceSubject) -> None:
    """Any subset of the columns, in any order, comes as asked, and reading again gives the same. Cannot show: the
    columns of huge files."""
    table = example_table()
    rows = expected_codes(table)
    with opened(subject, table) as source:
        for columns in (["visits"], ["coded", "town"], list(reversed(DOMAIN.names)), ["visits"]):
            places = [DOMAIN.names.index(name) for name in columns]
            found = rows_of(source, DOMAIN, columns)
            expected = sorted(tuple(row[place] for place in places) for row in rows)
            require(sorted(found.elements()) == expected, f"columns {columns} do not come as asked")


@CHECKS.add(needs="records")
def no_record_is_no_failure(subject: SourceSubject) -> None:
    """An empty data set yields no record and raises nothing. Cannot show: files without a header."""
    with opened(subject, example_table()[:0]) as source:
        require(codes_of(source).total() == 0, "an empty data set yields records")


@CHECKS.add(needs="records")
def missing_columns_are_refused(subject: SourceSubject) -> None:
    """A column that the records lack raises DataError before the first batch, or where records are pinned, and the
    message names it. Cannot show: columns that go missing midway."""
    domain = Domain([*DOMAIN, Attribute.of_size("weight", 2)])
    with opened(subject, example_table()) as source:
        for way, read in _beginnings(source, domain, ["town", "weight"]).items():
            error = _error(read)
            require(
                isinstance(error, DataError), f"{way}, a missing column gives {type(error).__name__}, not DataError"
            )
            require("weight" in str(error), f"{way}, the message does not name the missing column: {error}")


def _beginnings(source: Any, domain: Domain, columns: list[str]) -> dict[str, Callable[[], object]]:
    ways: dict[str, Callable[[], object]] = {}
    if isinstance(source, Source):
        ways["read"] = lambda: next(iter(source.batches(domain, columns)), None)
    if isinstance(source, ReducingSource):
        ways["pinned"] = lambda: source.pinned(Reading(domain=domain, columns=tuple(columns))).__enter__()
    return ways


@CHECKS.add(needs="records")
def errors_quote_no_record(subject: SourceSubject) -> None:
    """No error shows a record's content, in its message, cause or context: a missing column, or a file cut short or
    overwritten. Cannot show: every way of breaking a format."""
    table = pa.table({"town": pa.array([PLANTED] * 400, pa.string()), "visits": pa.array([PLANTED] * 400, pa.string())})
    ways: dict[str, Callable[[bytes], bytes]] = {"whole": lambda content: content}
    if "file" in subject.capabilities:
        ways |= {
            "cut short": lambda content: content[: len(content) // 2],
            "overwritten": lambda content: content[:40] + f"{PLANTED},\0\xff".encode() * 60 + content[700:],
        }
    for what, damage in ways.items():
        with tempfile.TemporaryDirectory() as folder:
            source = subject.open(table, Path(folder))
            for path in Path(folder).rglob("*"):
                if path.is_file():
                    path.write_bytes(damage(path.read_bytes()))
            for columns in (["town", "visits"], ["town", "age"]):
                error = _error(lambda source=source, columns=columns: codes_of(source, DOMAIN, columns))  # type: ignore[misc]
                require_no_quote(error, PLANTED, f"{what}: ")
                require(
                    error is None or isinstance(error, DpgmError), f"{what}: {type(error).__name__}, a foreign error"
                )


def _error(call: Callable[[], object]) -> BaseException | None:
    try:
        call()
    except Exception as error:
        return error
    return None


@CHECKS.add(needs="rows")
def records_are_streamed(subject: SourceSubject) -> None:
    """Of 400,003 records, a count that no batch size divides, no batch holds half of them, and all batches together are
    the records: memory does not grow with the data, and where a batch ends means nothing. Cannot show: what is held
    behind the batches."""
    towns, times = ["A", "C", None, "Zürich", "B"], 80_000
    domain, rows = Domain([DOMAIN["town"]]), len(towns) * times + 3
    last = ["Zürich"] * 3  # the last batch shows in the counts
    table = pa.table({"town": pa.array(towns * times + last), "note": pa.array(["x" * 40] * rows)})
    sizes, counts = [], np.zeros(domain["town"].size, dtype=np.int64)
    with opened(subject, table) as source:
        for (codes,) in source.batches(domain, ["town"]):
            sizes.append(len(codes))
            counts += np.bincount(codes, minlength=len(counts))
    require(sum(sizes) == rows, f"{sum(sizes):,} of {rows:,} records came")
    require(max(sizes) <= rows // 2, f"one batch holds {max(sizes):,} of {rows:,} records")
    expected = np.bincount([domain["town"].code(town) for town in towns], minlength=len(counts)) * times
    expected += np.bincount([domain["town"].code(town) for town in last], minlength=len(counts))
    require(np.array_equal(counts, expected), f"over many batches the counts are {counts}, not {expected}")


# --- Values ---------------------------------------------------------------------------------------

# Numbers that lose their place when they are rounded to single precision, 15 digits, or fewer.
_NUMBERS = (0.1, 0.1 + 0.2, 1 / 3, 2.5, 16777217.0, 123456789.12345679, 1e-5, 1e22)

# Labels that readers take for one another: case, blanks, and one sign written in two ways (composed or not).
_LABELS = (
    *("a", "A", " a", "a ", "a  b", "a b", "\u00e9", "e\u0301", "\u00a0a"),
    *("1", "01", "1.0", "+1", "Basel", "basel"),
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
            table=table, domain=Domain([Attribute.of_labels("x", labels, unknown="?", null=null)])
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
            require(found == expected, f"with one record of the bytes {broken!r} the codes are {found}, not {expected}")


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
                require_no_quote(error, PLANTED, f"{what}: ")
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
    with opened(subject, table) as source:
        return [len(codes) for (codes,) in source.batches(domain, ["town"])]


CHECKS += reducing.CHECKS
