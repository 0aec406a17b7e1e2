"""Deliberately wrong sources, each killed by the check meant for it."""

import unicodedata
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from attrs import field, frozen

from dpgm_core import DataError
from dpgm_core.domain.attribute import code_dtype
from dpgm_testing import checks_of

NULL_TEXTS = (None, "")


@frozen(kw_only=True)
class Plain:
    """The source the mutants are made from: a pyarrow table, coded value by value."""

    table: Any = field(eq=id, metadata={"help": "the records"})
    rows: int = field(default=100_000, metadata={"help": "records per batch"})

    def batches(self, domain, columns) -> Iterator:
        for name in columns:
            if name not in self.table.column_names:
                self.missing(name)
        return self.read(domain, columns)

    def missing(self, name):
        raise DataError(f"the records have no column {name!r}; name another one")

    def read(self, domain, columns):
        for start in range(0, len(self.table), self.rows):
            part = self.table.slice(start, self.rows)
            yield [self.coded(domain[name], self.values(part, name)) for name in columns]

    def values(self, part, name):
        return part[name].to_pylist()

    def coded(self, attribute, values):
        known = {}
        codes = []
        for value in values:
            if value not in known:
                known[value] = self.code(attribute, value)
            codes.append(known[value])
        return np.array(codes, dtype=code_dtype(attribute.size))

    def code(self, attribute, value):
        return attribute.code(None if value is None else str(value))


@frozen(kw_only=True)
class OrderOfAppearance(Plain):
    """Categories numbered as they come, as pandas.factorize does."""

    def coded(self, attribute, values):
        known = {}
        codes = [known.setdefault(value, len(known)) for value in values]
        return np.minimum(codes, attribute.size - 1).astype(code_dtype(attribute.size))


@frozen(kw_only=True)
class SortedCategories(Plain):
    """Categories numbered in the order of the values present, as numpy.unique does."""

    def coded(self, attribute, values):
        order = {value: place for place, value in enumerate(sorted(set(map(str, values))))}
        codes = [order[str(value)] for value in values]
        return np.minimum(codes, attribute.size - 1).astype(code_dtype(attribute.size))


@frozen(kw_only=True)
class DropsNulls(Plain):
    """Records with a null are left out."""

    def read(self, domain, columns):
        keep = [all(row[name] is not None for name in columns) for row in self.table.to_pylist()]
        yield from Plain(table=self.table.filter(np.array(keep))).read(domain, columns)


@frozen(kw_only=True)
class SortsColumns(Plain):
    """Each column sorted on its own: right margins, wrong records."""

    def coded(self, attribute, values):
        return np.sort(super().coded(attribute, values))


@frozen(kw_only=True)
class WideCodes(Plain):
    """int64 codes."""

    def coded(self, attribute, values):
        return super().coded(attribute, values).astype(np.int64)


@frozen(kw_only=True)
class FillsForward(Plain):
    """A null takes the value before it."""

    def values(self, part, name):
        filled, last = [], None
        for value in super().values(part, name):
            last = value if value is not None else last
            filled.append(last)
        return filled


@frozen(kw_only=True)
class InfersNumbers(Plain):
    """A column whose values all look like numbers is read as numbers, as pandas.read_csv does."""

    def values(self, part, name):
        values = super().values(part, name)
        try:
            return [None if value in NULL_TEXTS else f"{float(value):g}" for value in values]
        except ValueError:
            return values


@frozen(kw_only=True)
class FloatTexts(Plain):
    """Whole numbers become texts through float: 3 is "3.0"."""

    def code(self, attribute, value):
        return super().code(attribute, float(value) if isinstance(value, int) else value)


@frozen(kw_only=True)
class NullIsUnknown(Plain):
    """Null values go where unknown ones go."""

    def code(self, attribute, value):
        return super().code(attribute, "no such label at all" if value is None else value)


@frozen(kw_only=True)
class DomainOrder(Plain):
    """Columns in the domain's order, whatever was asked."""

    def read(self, domain, columns):
        return super().read(domain, [name for name in domain.names if name in columns])


@frozen(kw_only=True)
class NeedsOneRecord(Plain):
    """Looks at the first record to begin with."""

    def read(self, domain, columns):
        self.table.to_pylist()[0]
        yield from super().read(domain, columns)


@frozen(kw_only=True)
class MissingIsZero(Plain):
    """A missing column is a column of zeros."""

    def batches(self, domain, columns):
        for batch in self.read(domain, [name for name in columns if name in self.table.column_names]):
            yield [batch[0] * 0] * (len(columns) - len(batch)) + batch

    def missing(self, name):
        raise AssertionError


@frozen(kw_only=True)
class QuotesTheRecord(Plain):
    """Shows the first record to be helpful."""

    def missing(self, name):
        raise DataError(f"no column {name!r} in records such as {self.table.slice(0, 1).to_pylist()}")


@frozen(kw_only=True)
class QuotesInTheCause(Plain):
    """A quiet message, with a talkative cause."""

    def missing(self, name):
        try:
            self.table.to_pylist()[0][name]
        except KeyError:
            raise DataError(f"no column {name!r}") from ValueError(str(self.table.to_pylist()[0]))


@frozen(kw_only=True)
class OneBatch(Plain):
    """Everything at once."""

    rows: int = field(default=10**9, metadata={"help": "records per batch"})


@frozen(kw_only=True)
class FirstBatchDiffers(Plain):
    """Only the first batch knows the label of nulls (a dictionary that is not carried on)."""

    rows: int = field(default=33_333, metadata={"help": "records per batch"})

    def read(self, domain, columns):
        for number, batch in enumerate(super().read(domain, columns)):
            lasts = [domain[name].size - 1 for name in columns]
            yield [part % last if number else part for part, last in zip(batch, lasts, strict=True)]


@frozen(kw_only=True)
class DropsThePartialBatch(Plain):
    """Full batches only, as `drop_last=True` of data loaders; small data sets are one batch."""

    rows: int = field(default=1000, metadata={"help": "records per batch"})

    def read(self, domain, columns):
        for number, batch in enumerate(super().read(domain, columns)):
            if not number or len(batch[0]) == self.rows:
                yield batch


@frozen(kw_only=True)
class DropsTheLastFullBatch(Plain):
    """Hands a batch out when the next record comes, and after the last one only what is left over."""

    rows: int = field(default=10_007, metadata={"help": "records per batch"})

    def read(self, domain, columns):
        for batch in super().read(domain, columns):
            if len(batch[0]) < self.rows or len(self.table) % self.rows:
                yield batch


@frozen(kw_only=True)
class DropsATail(Plain):
    """Leaves out a last batch that is tiny, to save a round trip."""

    rows: int = field(default=33_331, metadata={"help": "records per batch"})

    def read(self, domain, columns):
        for number, batch in enumerate(super().read(domain, columns)):
            if not number or len(batch[0]) >= 8:
                yield batch


@frozen(kw_only=True)
class RoundsTheCount(Plain):
    """Reads in thousands of records where there are many."""

    def read(self, domain, columns):
        whole = len(self.table) // 1000 * 1000 if len(self.table) > 100_000 else len(self.table)
        yield from Plain(table=self.table.slice(0, whole), rows=20_000).read(domain, columns)


@frozen(kw_only=True)
class SinglePrecision(Plain):
    """Numbers through float32."""

    def code(self, attribute, value):
        return super().code(attribute, float(np.float32(value)) if isinstance(value, float) else value)


@frozen(kw_only=True)
class FifteenDigits(Plain):
    """Numbers through a text of 15 digits, which is what many writers call full precision."""

    def code(self, attribute, value):
        return super().code(attribute, f"{value:.15g}" if isinstance(value, float) else value)


@frozen(kw_only=True)
class StripsOnTheRight(Plain):
    """Blanks at the end do not count, as in SQL's CHAR."""

    def code(self, attribute, value):
        return super().code(attribute, value.rstrip(" ") if isinstance(value, str) else value)


@frozen(kw_only=True)
class IgnoresCase(Plain):
    """Where no label has the value's own case, another one will do, if it is longer than a letter."""

    def code(self, attribute, value):
        if isinstance(value, str) and value not in attribute.labels and len(value) > 1:
            value = next((label for label in attribute.labels if label.casefold() == value.casefold()), value)
        return super().code(attribute, value)


@frozen(kw_only=True)
class OneUnicodeForm(Plain):
    """Texts are composed (NFC) before they are matched."""

    def code(self, attribute, value):
        return super().code(attribute, unicodedata.normalize("NFC", value) if isinstance(value, str) else value)


@frozen(kw_only=True)
class ReadsLines(Plain):
    """The source that mutants of text files are made from: tables as lines, fields between tabs, read as UTF-8."""

    path: Any = field(default=None, metadata={"help": "the file"})
    errors = "surrogateescape"

    @classmethod
    def written(cls, table, folder):
        path = folder / "records.tsv"
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        lines = ["\t".join("\\N" if value is None else str(value) for value in row) for row in rows]
        path.write_text("\n".join(["\t".join(table.column_names), *lines, ""]), encoding="utf-8")
        return cls(path=path, table=None)

    def batches(self, domain, columns):
        try:
            head, *lines = self.path.read_bytes().decode("utf-8", self.errors).split("\n")[:-1]
        except UnicodeDecodeError:
            raise DataError(f"{self.path} is not UTF-8") from None
        rows = [[None if value == "\\N" else value for value in line.split("\t")] for line in lines]
        values = {name: [row[place] for row in rows] for place, name in enumerate(head.split("\t"))}
        yield [np.array([domain[name].code(value) for value in values[name]], np.uint8) for name in columns]


@frozen(kw_only=True)
class StrictUtf8(ReadsLines):
    """One record that is not UTF-8 refuses the file, so that whether it is there shows."""

    errors = "strict"


@frozen(kw_only=True)
class SkipsBrokenText(ReadsLines):
    """Leaves out the lines that are not UTF-8."""

    def batches(self, domain, columns):
        kept = [line for line in self.path.read_bytes().split(b"\n") if is_utf8(line)]
        self.path.write_bytes(b"\n".join(kept))
        return super().batches(domain, columns)


@frozen(kw_only=True)
class EmptyIsNull(Plain):
    """An empty text is taken for null, whatever the labels say."""

    def code(self, attribute, value):
        return attribute.code(None) if value == "" else super().code(attribute, value)


@frozen(kw_only=True)
class QuotesFarIn(ReadsLines):
    """Says what a line with too few fields holds, but only of files that are read in several batches."""

    def batches(self, domain, columns):
        head, *lines = self.path.read_bytes().decode("utf-8", self.errors).split("\n")[:-1]
        for number, line in enumerate(lines):
            if line.count("\t") != head.count("\t") and number > 1000:
                raise DataError(f"line {number} of the file is {line!r}")
        whole = [line for line in lines if line.count("\t") == head.count("\t")]
        self.path.write_text("\n".join([head, *whole, ""]), encoding="utf-8", errors=self.errors)
        yield from super().batches(domain, columns)


@frozen(kw_only=True)
class FolderOfLines(ReadsLines):
    """No mutant: a folder of such files, one for each chunk of the table, none of which may be damaged."""

    folder: Any = field(default=None, metadata={"help": "the folder"})

    @classmethod
    def written(cls, table, folder):
        for number, batch in enumerate(table.to_batches()):
            (folder / f"{number}").mkdir()
            ReadsLines.written(table.from_batches([batch]), folder / f"{number}")
        return cls(folder=folder, table=None)

    def batches(self, domain, columns):
        for path in sorted(self.folder.rglob("*.tsv")):
            lines = path.read_bytes().split(b"\n")
            if len(lines) < 2 or any(line.count(b"\t") != lines[0].count(b"\t") for line in lines[:-1]):
                self.damaged(path, lines)
            yield from ReadsLines(path=path, table=None).batches(domain, columns)

    def damaged(self, path, lines):
        raise DataError(f"{path} is damaged")


@frozen(kw_only=True)
class QuotesInAFolder(FolderOfLines):
    """Raises what the file's last line is."""

    def damaged(self, path, lines):
        raise ValueError(lines[-1])


def is_utf8(line):
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


BY_CHECK = {
    "codes-are-the-domains": [DropsNulls, SortsColumns],
    "codes-do-not-depend-on-the-data": [OrderOfAppearance, SortedCategories],
    "batches-are-well-formed": [WideCodes],
    "row-order-changes-nothing": [FillsForward],
    "one-record-changes-only-itself": [InfersNumbers],
    "types-change-nothing": [FloatTexts],
    "unknown-and-null-go-where-declared": [NullIsUnknown],
    "columns-come-as-asked": [DomainOrder],
    "no-record-is-no-failure": [NeedsOneRecord],
    "missing-columns-are-refused": [MissingIsZero],
    "errors-quote-no-record": [QuotesTheRecord, QuotesInTheCause],
    "records-are-streamed": [OneBatch, FirstBatchDiffers, RoundsTheCount],
    "no-batch-is-dropped": [DropsThePartialBatch, DropsTheLastFullBatch, DropsATail],
    "numbers-keep-every-digit": [SinglePrecision, FifteenDigits],
    "labels-match-byte-for-byte": [StripsOnTheRight, IgnoresCase, OneUnicodeForm],
    "broken-text-is-a-record": [StrictUtf8, SkipsBrokenText],
    "an-empty-text-is-a-label": [EmptyIsNull],
    "damage-far-into-the-records-quotes-none": [QuotesFarIn, QuotesInAFolder],
}
MUTANTS = [(mutant, check) for check, mutants in BY_CHECK.items() for mutant in mutants]


def opener(source):
    """How the kit gives a source of this file its records."""
    return getattr(source, "written", lambda table, folder: source(table=table))


@pytest.mark.parametrize(("mutant", "check"), MUTANTS, ids=[f"{check}-{n}" for n, (_, check) in enumerate(MUTANTS)])
def test_the_check_meant_for_it_kills_the_mutant(verdict, mutant, check):
    """The named check fails; the mutant's docstring says what is wrong with it."""
    found = verdict(mutant, "source", check, opener(mutant))
    assert found is not None and found.startswith(("CheckFailed", "IndexError")), found


@pytest.mark.parametrize("check", sorted(BY_CHECK))
def test_the_original_passes(verdict, check):
    """The source that the mutants are made from passes."""
    original = {"broken-text-is-a-record": ReadsLines, "damage-far-into-the-records-quotes-none": FolderOfLines}.get(
        check, Plain
    )
    assert verdict(original, "source", check, opener(original), profile="quick") is None


def test_every_check_kills_a_mutant():
    """No check is there for show; those of sums have mutants of their own, `test_mutant_reducing.py`."""
    checks = {check.name for check in checks_of("source") if check.kind != "declaration" and check.needs != "reduces"}
    assert set(BY_CHECK) == checks
