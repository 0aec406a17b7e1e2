"""The owner's own check of a table against its domain. It SHOWS VALUES and line numbers: never publish what it says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import evolve, field, frozen

from dpgm_core._util.exact_numbers import whole
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.bins import PrivateLabels
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.related import Related
from dpgm_core.errors import DataError, printable
from dpgm_core.sources import as_source
from dpgm_core.sources.arrow import ArrowSource
from dpgm_core.sources.codes import CodesSource, arrow_column
from dpgm_core.sources.contract import RawValues, ReducingSource
from dpgm_core.sources.csv import MAX_LINE, CsvSource, malformed_lines, number_of_fields, otherwise, unpadded
from dpgm_core.sources.encoding import as_text, encoder, plain
from dpgm_core.sources.reading import attempt
from dpgm_core.sources.related import RelatedSource, count_unsorted

__all__ = [
    "ColumnReport",
    "PersonReport",
    "RelatedReport",
    "ValidationReport",
    "explained",
    "validate",
    "validate_related",
]

#: Examples shown of one kind, and distinct values remembered of one column.
_SHOWN, _REMEMBERED = 5, 10_000


@frozen(kw_only=True)
class ColumnReport:
    """One column against its attribute: how many values are unknown or null, the most frequent unknown ones, hints."""

    name: str
    unknown: int
    null: int
    unknown_values: tuple[tuple[str, int], ...]
    hints: tuple[str, ...]


@frozen(kw_only=True)
class PersonReport:
    """The person key: how many persons, rows without a key, persons with more than r rows, and most rows of one."""

    key: str
    persons: int
    null_rows: int
    truncated_persons: int
    dropped_rows: int
    most_rows: int


@frozen(kw_only=True)
class ValidationReport:
    """The report of `validate`. malformed: (line number, from 1, and why) of the first malformed lines of a CSV file.

    hints: what the file as a whole looks like, and which options would read it. broken: constraint -> how many records,
    malformed lines left out, break it as they are counted. `ok` is true when nothing is wrong;
    str() is a page for the owner.
    """

    records: int
    columns: tuple[ColumnReport, ...] = ()
    missing: tuple[str, ...] = ()
    present: tuple[str, ...] = ()
    malformed_lines: int = 0
    malformed: tuple[tuple[int, str], ...] = ()
    person: PersonReport | None = None
    hints: tuple[str, ...] = ()
    broken: Mapping[str, int] = field(factory=dict)

    @property
    def ok(self) -> bool:
        """There are records, no missing column, malformed line, unknown value or broken constraint, and no person with
        more rows than are kept."""
        return not (
            not self.records
            or self.missing
            or any(self.broken.values())
            or self.malformed_lines
            or any(column.unknown for column in self.columns)
            or (self.person is not None and self.person.truncated_persons)
        )

    def __str__(self) -> str:
        lines = [f"{self.records:,} records; FOR THE OWNER ONLY, this report shows values"]
        for name in self.missing:
            lines.append(f"missing column {name!r}; the data have: {', '.join(self.present)}")
        if self.malformed_lines:
            lines.append(f"{self.malformed_lines:,} malformed lines, each counted as an all-unknown record")
            lines += [f"  line {number}: {why}" for number, why in self.malformed]
            if self.malformed_lines > len(self.malformed):
                lines.append("  ...")
        lines += [f"hint: {hint}" for hint in self.hints]
        for column in self.columns:
            unknown, null = (f"{number:,} {self._share(number)}" for number in (column.unknown, column.null))
            lines.append(f"{column.name}: {unknown} unknown, {null} null")
            if 10 * column.unknown > 9 * self.records:
                lines.append("  nearly all values are unknown: does the domain describe this column?")
            lines += [f"  unknown {value!r}: {times:,} times" for value, times in column.unknown_values]
            lines += [f"  hint: {hint}" for hint in column.hints]
        if self.person is not None:
            one = self.person
            lines.append(
                f"person key {one.key!r}: {one.persons:,} persons, {one.null_rows:,} rows without a key (one person), "
                f"at most {one.most_rows:,} rows of one person"
            )
            if one.truncated_persons:
                lines.append(
                    f"  {one.truncated_persons:,} persons have more rows than are kept; {one.dropped_rows:,} rows go"
                )
        lines += [
            f"constraint {name}: {number:,} {self._share(number)} records break it"
            for name, number in self.broken.items()
        ]
        lines.append("ok" if self.ok else "not all is as the domain says; see above")
        return "\n".join(map(printable, lines))

    def _share(self, number: int) -> str:
        """A part of the records, rounded up so that one of a million still shows."""
        thousandths = -(-1000 * number // self.records) if self.records else 0
        return f"({thousandths / 10:g} %)"


@frozen(kw_only=True)
class RelatedReport:
    """The report of `validate_related`, with that of each table, whose rows without a key have one that is null.

    repeated_roots, null_roots, orphans, surplus: root rows whose key another row has, root rows without a key, children
    without a root, and children beyond r. unsorted: rows whose key stands before that of the row above; None unless the
    tables are stated as sorted. broken: constraint across the tables -> how many roots break it.
    """

    root: ValidationReport
    children: ValidationReport
    repeated_roots: int = 0
    null_roots: int = 0
    orphans: int = 0
    surplus: int = 0
    unsorted: int | None = None
    broken: Mapping[str, int] = field(factory=dict)

    @property
    def ok(self) -> bool:
        """Both tables are as stated, no constraint is broken, and all rows but children beyond r count."""
        lost = self.repeated_roots or self.null_roots or self.orphans or self.unsorted
        return self.root.ok and self.children.ok and not lost and not any(self.broken.values())

    def __str__(self) -> str:
        found = {
            "roots whose key an earlier row has, of which one each counts": self.repeated_roots,
            "roots without a key, which count as one": self.null_roots,
            "children without a root, which do not count": self.orphans,
            "children beyond max_children, which do not count": self.surplus,
        }
        if self.unsorted is not None:
            found["rows whose key stands before that of the row above, which sorted = true refuses"] = self.unsorted
        lines = [f"keys: {number:,} {what}" for what, number in found.items()]
        lines += [f"constraint {printable(name)}: {number:,} roots break it" for name, number in self.broken.items()]
        return "\n".join(["roots:", str(self.root), "", "children:", str(self.children), "", *lines])


def validate_related(data: Mapping[str, Any], related: Related) -> RelatedReport:
    """Read two related tables and report what does not fit, as `validate`, and which rows do not count.

    For the owner of the data only. data: "root" and "children", each as `as_source` takes it, and "sorted". Memory
    grows with the number of keys.

    >>> homes, persons = {"id": [7, 8], "own": [1, 0]}, {"id": [7, 7, 9], "age": [3, 0, 1]}
    >>> two = Related(root=Domain.from_sizes({"own": 2}), children=Domain.from_sizes({"age": 4}), key="id",
    ...     max_children=2)
    >>> tables = {"root": pa.table(homes), "children": pa.table(persons)}
    >>> validate_related(tables, two).orphans
    1
    """
    (roots, of_roots), (children, of_children) = (
        _validated(data[what], domain, key, most, *also)
        for what, domain, key, most, also in (
            ("root", related.root, related.key[0], 1, ()),
            ("children", related.children, related.key[1], related.max_children, filter(None, [related.order])),
        )
    )
    known = {key: rows for key, rows in of_children.items() if key in of_roots}
    complete = not roots.missing and not children.missing
    unsorted = None
    if complete and data.get("sorted"):
        tables = RelatedSource(root=data["root"], children=data["children"], related=related).tables
        unsorted = sum(count_unsorted(*one) for one in tables)
    return RelatedReport(
        broken=_broken_across(data, related) if related.constraints and complete else {},
        root=evolve(roots, person=None),
        children=evolve(children, person=None),
        repeated_roots=sum(rows - 1 for key, rows in of_roots.items() if key is not None),
        null_roots=of_roots[None],
        orphans=sum(of_children.values()) - sum(known.values()),
        surplus=sum(max(0, rows - related.max_children) for rows in known.values()),
        unsorted=unsorted,
    )


def _broken_across(data: Mapping[str, Any], related: Related) -> Counter[str]:
    """How many roots break each constraint across the tables, in the pairs that a run sees."""
    pair = related.pair
    own = {slot + one.name for slot in related.slots for one in related.constraints}
    source, found = RelatedSource(root=data["root"], children=data["children"], related=related), Counter[str]()
    for codes in source.batches(pair, pair.names):
        broken = pair.broken(dict(zip(pair.names, codes, strict=True)))
        found.update({name: number for name, number in broken.items() if name in own})
    return found


def validate(data: Any, domain: Domain, person: str | None = None, rows_per_person: int = 1) -> ValidationReport:
    """Read all records and report what does not fit the domain: unknown values, malformed lines, missing columns.

    For the owner of the data only. data: whatever `as_source` takes. person, rows_per_person: the person key and r.
    Memory grows with the number of persons. Raises DataError if the data cannot be read at all.

    >>> print(validate({"a": pa.array([0, 1, 7])}, Domain.from_sizes({"a": 2})))
    3 records; FOR THE OWNER ONLY, this report shows values
    a: 1 (33.4 %) unknown, 0 (0 %) null
      unknown '7': 1 times
    not all is as the domain says; see above
    """
    return _validated(data, domain, person, rows_per_person)[0]


def _validated(
    data: Any, domain: Domain, person: str | None, rows_per_person: int, *also: str
) -> tuple[ValidationReport, Counter[bytes | None]]:
    """Return the report, and how many rows each key has. also: further columns that must be there."""
    whole("rows_per_person", rows_per_person, least=1)
    source: Any = as_source(data)
    if isinstance(source, CodesSource):  # codes mean positions, whatever the labels are
        positions = Domain(Attribute.of_size(one.name, one.size, unknown=one.unknown) for one in domain)
        source, domain = _as_frame(source, domain), positions
    if not isinstance(source, RawValues):
        if isinstance(source, ReducingSource):
            raise DataError(
                f"validating reads rows, and source {type(source).__name__} hands out none: it sums where they are; "
                "validate an extract of them, as a file or a data frame"
            )
        raise DataError(f"source {type(source).__name__} offers no raw values to check; give a file or a data frame")
    expected = [*domain.names, *([person] if person is not None and person not in domain else []), *also]
    present = _names(source, expected)
    names = [name for name in expected if name in present]
    checks = {name: _Check(domain[name]) for name in names if name in domain}
    keys: Counter[bytes | None] = Counter()
    rules = _Rules(domain, names)
    records = malformed = 0
    for batch in source.raw_batches(names) if names else ():
        records += len(batch.columns[0]) + batch.malformed
        malformed += batch.malformed
        rules.add(dict(zip(names, batch.columns, strict=True)))
        for name, array in zip(names, batch.columns, strict=True):
            if name in checks:
                checks[name].add(array)
            if name == person:
                keys.update(text or None for text in as_text(array).to_pylist())
                keys.update({None: batch.malformed} if batch.malformed else {})
    missing = tuple(name for name in expected if name not in present)
    first = tuple(islice(explained(source), _SHOWN)) if malformed and isinstance(source, CsvSource) else ()
    report = ValidationReport(
        records=records,
        columns=tuple(check.report() for check in checks.values()),
        missing=missing,
        present=present,
        malformed_lines=malformed,
        malformed=first,
        person=_persons(person, keys, rows_per_person) if person in names else None,
        broken=rules.found,
        hints=tuple(_file_hints(source, records, missing, first)) if isinstance(source, CsvSource) else (),
    )
    return report, keys


def _names(source: RawValues, expected: Sequence[str]) -> tuple[str, ...]:
    """Return the columns; DataError where a CSV file's first line names all expected ones in another dialect."""
    if isinstance(source, CsvSource):
        fitting = source.fitting(expected)
        if fitting is not None and fitting != source.dialect:
            raise DataError(otherwise(source.path, source.dialect, fitting))
    return source.names()


def _file_hints(
    source: CsvSource, records: int, missing: Sequence[str], malformed: Sequence[tuple[int, str]]
) -> Iterator[str]:
    if not records and not missing:
        yield "there is no record behind the line that names the columns"
    for name in missing:
        fitting = source.fitting([name])
        if fitting is not None:
            yield otherwise(source.path, source.dialect, fitting).replace("the columns", repr(name))
            break
    if source.encoding == "utf-8" and any(why == "is not UTF-8" for _, why in malformed):
        yield (
            "lines that are not UTF-8 may be in the letters of Windows or in Latin-1; say encoding = 'cp1252' or "
            "'latin-1' where the data are named"
        )
    if any(why.endswith(f"instead of {len(source.names())}") for _, why in malformed):
        yield (
            "a line with another number of fields than the first one cannot be told apart, so a release counts it as a "
            "record that is unknown in every column; mend these lines"
            + ("" if source.quoting else ", or read values in quotes with quoting = true")
        )
    if any(why.startswith("has quotes") for _, why in malformed):
        yield "if quotes are letters in this file, and no field stands in quotes, say quoting = false"


class _Rules:
    """Counts of records that break each constraint, batch by batch, as a release would count them."""

    def __init__(self, domain: Domain, present: Sequence[str]) -> None:
        # Bins and labels that are still to be found say nothing yet of what is impossible.
        determined = [name for name in domain.names if name in present and name not in domain.undetermined]
        self._domain = domain.subset(determined) if domain.constraints and determined else None
        self._encoders = {name: encoder(domain[name]) for name in determined} if self._domain is not None else {}
        self.found: Counter[str] = Counter()

    def add(self, arrays: Mapping[str, Any]) -> None:
        if self._domain is not None:
            self.found.update(
                self._domain.broken({name: encode(arrays[name]) for name, encode in self._encoders.items()})
            )


class _Check:
    """Counts of one column, batch by batch."""

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute
        # Two labels nothing can match tell unknown and null from values that are labels in their own right.
        labels = tuple(map(str, range(attribute.size))) if attribute.coded else attribute.labels
        probe = evolve(
            attribute,
            labels=(*labels, "\0unknown", "\0null"),
            unknown=attribute.size,
            null=attribute.size + 1,
            coded=False,
        )
        self.encode = encoder(probe)
        self.unknown = self.null = 0
        self.values: Counter[bytes] = Counter()

    def add(self, array: Any) -> None:
        codes = self.encode(array)
        unknown = codes == self.attribute.size
        self.null += int((codes == self.attribute.size + 1).sum())
        if isinstance(self.attribute.private, PrivateLabels):
            return  # which values are labels is found by the release
        self.unknown += int(unknown.sum())
        if unknown.any():
            texts = as_text(plain(array).filter(pa.array(unknown)))
            for entry in texts.value_counts().to_pylist():
                if entry["values"] in self.values or len(self.values) < _REMEMBERED:
                    self.values[entry["values"]] += entry["counts"]

    def report(self) -> ColumnReport:
        shown = tuple((value.decode(errors="backslashreplace"), n) for value, n in self.values.most_common(_SHOWN))
        return ColumnReport(
            name=self.attribute.name,
            unknown=self.unknown,
            null=self.null,
            unknown_values=shown,
            hints=tuple(_hints(self.attribute, self.values)),
        )


def _hints(attribute: Attribute, values: Counter[bytes]) -> Iterator[str]:
    if any(len(value) > 1 and value[:1] == value[-1:] == b'"' for value in values):
        yield "values stand in quotes; if the file is quoted, read it with quoting = true"
    if values and attribute.edges is None and not attribute.coded:
        positions = {str(code).encode() for code in range(attribute.size)}
        if set(values) <= positions:
            yield "the unknown values look like codes; if they are positions in the labels, declare coded = true"
    texts = [value.decode(errors="replace") for value in values]
    if any(text.strip() in attribute.labels for text in texts):
        yield "values differ from labels by blanks around them only; say blanks = 'strip' of this column in the domain"
    folded = {label.casefold() for label in attribute.labels}
    if any(text.casefold() in folded for text in texts):
        yield "values differ from labels by upper and lower case only; say case = false of this column in the domain"


def explained(source: CsvSource) -> Iterator[tuple[int, str]]:
    """Line numbers, from 1, of a CSV file's malformed lines, each with what is wrong with it."""
    width, delimiter = len(source.names()), source.delimiter
    for number, whole_line in source.lines():
        line = unpadded(whole_line, source.dialect) if source.skip_blanks else whole_line
        text = line.removesuffix(b"\r").decode(errors="replace")
        if len(whole_line) > MAX_LINE:
            yield number, f"longer than {MAX_LINE:,} bytes"
        elif b"\0" in line:
            yield number, "holds a NUL byte"
        elif "\r" in text:
            yield number, "holds a carriage return"
        elif malformed_lines(line + b"\n", delimiter.encode(), False):
            yield number, f"is not {source.encoding.upper()}"
        elif malformed_lines(line + b"\n", delimiter.encode(), source.quoting):
            yield number, "has quotes out of order; a quoted field must end on its line"
        else:
            fields = number_of_fields(line, delimiter.encode(), source.quoting)
            if fields != width:
                yield number, f"has {fields} fields instead of {width}"


def _persons(key: str | None, rows: Counter[bytes | None], most: int) -> PersonReport:
    over = [count for count in rows.values() if count > most]
    return PersonReport(
        key=str(key),
        persons=len(rows),
        null_rows=rows[None],
        truncated_persons=len(over),
        dropped_rows=sum(over) - most * len(over),
        most_rows=max(rows.values(), default=0),
    )


def _as_frame(source: CodesSource, domain: Domain) -> ArrowSource:
    if isinstance(source.data, Mapping):
        next(source.batches(domain, [name for name in domain.names if name in source.data]), None)
        columns = {
            name: arrow_column(
                [_code_or_text(one) for one in values]
                if name in domain and isinstance(values, list | tuple)
                else values
            )
            for name, values in source.data.items()
        }
        return ArrowSource(data=attempt("the codes mapping is not a table", lambda: pa.table(columns)))
    next(source.batches(domain, domain.names), None)
    return ArrowSource(data=pa.table(dict(zip(domain.names, map(pa.array, source.data.T), strict=True))))


def _code_or_text(value: object) -> object:
    """Return an entry of a list of codes; what is no whole number, such as True or 1.0, as a text that is no code."""
    is_code = value is None or (isinstance(value, int | np.integer) and not isinstance(value, bool))
    return value if is_code else f"{value!r:.80}"
