"""What every source must keep: codes that the public domain alone decides, record by record, and silent errors."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from dpgm_core.domain import Attribute, Domain, code_dtype
from dpgm_core.errors import DataError, DpgmError
from dpgm_core.sources.contract import Source
from dpgm_core.testing.check import Checklist, explore, require
from dpgm_core.testing.checks import source_values as checks_source_values
from dpgm_core.testing.source_records import DOMAIN, ODD_TEXTS, codes_of, example_table, expected_codes, text_table
from dpgm_core.testing.subjects import SourceSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("source")

_CANARY = "CANARY7291"


@contextmanager
def _opened(subject: SourceSubject, table: Any) -> Iterator[Source]:
    with tempfile.TemporaryDirectory() as folder:
        yield subject.open(table, Path(folder))


def _codes(subject: SourceSubject, table: Any, domain: Domain = DOMAIN) -> Any:
    with _opened(subject, table) as source:
        return codes_of(source, domain)


@CHECKS.add(needs="records")
def codes_are_the_domains(subject: SourceSubject) -> None:
    """Every record becomes the codes that Attribute.code gives its values: labels, bins, codes, unknown and null.
    Cannot show: values of other types than text, float and whole number."""
    table = example_table()
    found, expected = _codes(subject, table), expected_codes(table)
    require(found.total() == len(expected), f"{found.total()} records were yielded, not {len(expected)}")
    for place, name in enumerate(DOMAIN.names):
        one = sorted(row[place] for row in found.elements())
        require(one == sorted(row[place] for row in expected), f"attribute {name!r} ({DOMAIN[name]}) has other codes")
    require(sorted(found.elements()) == sorted(expected), "the columns of a record do not belong together")


@CHECKS.add(needs="records")
def codes_do_not_depend_on_the_data(subject: SourceSubject) -> None:
    """A data set without some labels, or in which they come in another order, gets the same codes: categories are never
    read off the records. Cannot show: more than the few data sets tried."""
    town = Domain([DOMAIN["town"]])
    for labels in (["Zürich"], ["B", "A"], ["Zürich", "B"], ["C", "A"], [None, "B"]):
        table = pa.table({"town": pa.array(labels * 3, pa.string())})
        found, expected = _codes(subject, table, town), expected_codes(table, town)
        require(
            sorted(found.elements()) == sorted(expected),
            f"records with the labels {labels} only get the codes {sorted(set(found))}, not {sorted(set(expected))}",
        )


@CHECKS.add(needs="records")
def batches_are_well_formed(subject: SourceSubject) -> None:
    """Each batch is one unsigned array per column asked for, of one length, of the narrowest type, all codes legal.
    Cannot show: that the codes are right."""
    with _opened(subject, example_table()) as source:
        for batch in source.batches(DOMAIN, DOMAIN.names):
            require(len(batch) == len(DOMAIN), f"a batch has {len(batch)} arrays for {len(DOMAIN)} columns")
            require(len({len(part) for part in batch}) == 1, "the arrays of a batch differ in length")
            for part, attribute in zip(batch, DOMAIN, strict=True):
                kind = code_dtype(attribute.size)
                require(part.dtype == kind, f"codes of {attribute.name!r} are {part.dtype}, not {kind}")
                require(bool((np.asarray(part) < attribute.size).all()), f"{attribute.name!r}: a code is too large")


@CHECKS.add(needs="records")
def row_order_changes_nothing(subject: SourceSubject) -> None:
    """Shuffled, and reversed, the records give the same codes. Cannot show: other orders."""
    table = example_table()
    expected = _codes(subject, table)
    for order in (np.random.default_rng(1).permutation(len(table)), np.arange(len(table))[::-1]):
        require(_codes(subject, table.take(pa.array(order))) == expected, "records in another order get other codes")


@CHECKS.add(needs="records")
def one_record_changes_only_itself(subject: SourceSubject) -> None:
    """Whatever texts one record is given, all others keep their codes: no type or category is inferred from the data.
    Cannot show: damage to the file's format, such as quotes and line ends (the format's own tests must)."""
    others = text_table(example_table(12))

    def claim(texts: tuple[str | None, ...]) -> None:
        odd = pa.table({name: [text] for name, text in zip(others.column_names, texts, strict=True)}, others.schema)
        both = pa.concat_tables([odd, others])
        require(
            sorted(_codes(subject, both).elements()) == sorted(expected_codes(both)),
            f"a record {texts!r} changes how others are read, or is not what the domain says",
        )

    text = st.one_of(st.none(), st.sampled_from(ODD_TEXTS), st.sampled_from(["A", "B", "0", "1", "17", "-1"]))
    rows = st.tuples(*[text] * len(others.column_names))
    explore(subject.profile, rows, claim, worst=[(odd,) * len(others.column_names) for odd in ODD_TEXTS], share=0.5)


@CHECKS.add(needs="labels")
def types_change_nothing(subject: SourceSubject) -> None:
    """Numbers as texts, whole numbers of any width, and dictionary-encoded or large texts give the same codes. Cannot
    show: types that the format cannot hold."""
    table = example_table()
    expected = sorted(expected_codes(table))
    variants: dict[str, Any] = {"texts": text_table(table)}
    for name, kind in (("int32", pa.int32()), ("int64", pa.int64())):
        variants[name] = table.set_column(3, "coded", table["coded"].cast(kind))
    variants["large texts"] = table.set_column(0, "town", table["town"].cast(pa.large_string()))
    variants["dictionary"] = table.set_column(0, "town", table["town"].dictionary_encode())
    for name, variant in variants.items():
        require(sorted(_codes(subject, variant).elements()) == expected, f"as {name} the records get other codes")


@CHECKS.add(needs="labels")
def unknown_and_null_go_where_declared(subject: SourceSubject) -> None:
    """The same values land on whichever label the domain declares for unknown and for null. Cannot show: null values of
    other spellings."""
    table = pa.table({"town": pa.array(["A", "C", None, "C", None, "B"], pa.string())})
    for unknown, null in (("A", "B"), ("B", "B"), ("other", "A"), ("other", "none")):
        domain = Domain([Attribute.of_labels("town", ["A", "B"], unknown=unknown, null=null)])
        found, expected = _codes(subject, table, domain), expected_codes(table, domain)
        require(
            sorted(found.elements()) == sorted(expected),
            f"unknown = {unknown!r}, null = {null!r}: the codes are {sorted(found.elements())}, not {sorted(expected)}",
        )


@CHECKS.add(needs="records")
def columns_come_as_asked(subject: SourceSubject) -> None:
    """Any subset of the columns, in any order, comes as asked, and reading again gives the same. Cannot show: the
    columns of huge files."""
    table = example_table()
    rows = expected_codes(table)
    with _opened(subject, table) as source:
        for columns in (["visits"], ["coded", "town"], list(reversed(DOMAIN.names)), ["visits"]):
            places = [DOMAIN.names.index(name) for name in columns]
            found = codes_of(source, DOMAIN, columns)
            expected = sorted(tuple(row[place] for place in places) for row in rows)
            require(sorted(found.elements()) == expected, f"columns {columns} do not come as asked")


@CHECKS.add(needs="records")
def no_record_is_no_failure(subject: SourceSubject) -> None:
    """An empty data set yields no record and raises nothing. Cannot show: files without a header."""
    require(_codes(subject, example_table()[:0]).total() == 0, "an empty data set yields records")


@CHECKS.add(needs="records")
def missing_columns_are_refused(subject: SourceSubject) -> None:
    """A column that the records lack raises DataError before the first batch, and the message names it. Cannot show:
    columns that go missing midway."""
    domain = Domain([*DOMAIN, Attribute.of_size("weight", 2)])
    with _opened(subject, example_table()) as source:
        error = _error(lambda: next(iter(source.batches(domain, ["town", "weight"])), None))
    require(isinstance(error, DataError), f"a missing column gives {type(error).__name__}, not DataError")
    require("weight" in str(error), f"the message does not name the missing column: {error}")


@CHECKS.add(needs="records")
def errors_quote_no_record(subject: SourceSubject) -> None:
    """No error shows a record's content, in its message, cause or context: a missing column, or a file cut short or
    overwritten. Cannot show: every way of breaking a format."""
    table = pa.table({"town": pa.array([_CANARY] * 400, pa.string()), "visits": pa.array([_CANARY] * 400, pa.string())})
    ways: dict[str, Callable[[bytes], bytes]] = {"whole": lambda content: content}
    if "file" in subject.capabilities:
        ways |= {
            "cut short": lambda content: content[: len(content) // 2],
            "overwritten": lambda content: content[:40] + f"{_CANARY},\0\xff".encode() * 60 + content[700:],
        }
    for what, damage in ways.items():
        with tempfile.TemporaryDirectory() as folder:
            source = subject.open(table, Path(folder))
            for path in Path(folder).rglob("*"):
                if path.is_file():
                    path.write_bytes(damage(path.read_bytes()))
            for columns in (["town", "visits"], ["town", "age"]):

                def read(source: Source = source, columns: list[str] = columns) -> None:
                    for _ in source.batches(DOMAIN, columns):
                        pass

                error = _error(read)
                seen: BaseException | None = error
                while seen is not None:
                    require(_CANARY not in f"{seen!s}{seen!r}", f"{what}: {type(seen).__name__} quotes a record")
                    seen = seen.__cause__ or seen.__context__
                require(
                    error is None or isinstance(error, DpgmError), f"{what}: {type(error).__name__}, a foreign error"
                )


def _error(call: Callable[[], object]) -> BaseException | None:
    try:
        call()
    except Exception as error:
        return error
    return None


@CHECKS.add(needs="records")
def records_are_streamed(subject: SourceSubject) -> None:
    """Of 400,003 records, a count that no batch size divides, no batch holds half of them, and all batches together are
    the records: memory does not grow with the data, and where a batch ends means nothing. Cannot show: what is held
    behind the batches."""
    towns, times = ["A", "C", None, "Zürich", "B"], 80_000
    domain, rows = Domain([DOMAIN["town"]]), len(towns) * times + 3
    last = ["Zürich"] * 3  # the last batch shows in the counts
    table = pa.table({"town": pa.array(towns * times + last), "note": pa.array(["x" * 40] * rows)})
    sizes, counts = [], np.zeros(domain["town"].size, dtype=np.int64)
    with _opened(subject, table) as source:
        for (codes,) in source.batches(domain, ["town"]):
            sizes.append(len(codes))
            counts += np.bincount(codes, minlength=len(counts))
    require(sum(sizes) == rows, f"{sum(sizes):,} of {rows:,} records came")
    require(max(sizes) <= rows // 2, f"one batch holds {max(sizes):,} of {rows:,} records")
    expected = np.bincount([domain["town"].code(town) for town in towns], minlength=len(counts)) * times
    expected += np.bincount([domain["town"].code(town) for town in last], minlength=len(counts))
    require(np.array_equal(counts, expected), f"over many batches the counts are {counts}, not {expected}")


CHECKS += checks_source_values.CHECKS
