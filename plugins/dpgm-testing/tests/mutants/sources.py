"""Deliberately wrong sources, each killed by the check meant for it."""

import unicodedata
from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import field, frozen

from dpgm_core import DataError
from dpgm_core.domain.attribute import code_dtype

from .family import Family, replaces


def opener(mutant):
    """The function by which the kit hands a source its records."""
    return getattr(mutant, "written", lambda table, folder: mutant(table=table))


source = Family("source", records=opener)
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


@source.each
class PlainFaults(Plain):
    @replaces("coded", "codes-do-not-depend-on-the-data", "Categories numbered as they come, as pandas.factorize does.")
    def order_of_appearance(self, attribute, values):
        known = {}
        codes = [known.setdefault(value, len(known)) for value in values]
        return np.minimum(codes, attribute.size - 1).astype(code_dtype(attribute.size))

    @replaces("coded", "codes-do-not-depend-on-the-data")
    def sorted_categories(self, attribute, values):
        """Numbers categories in the order of values present, as numpy.unique."""
        order = {value: place for place, value in enumerate(sorted(set(map(str, values))))}
        codes = [order[str(value)] for value in values]
        return np.minimum(codes, attribute.size - 1).astype(code_dtype(attribute.size))

    @replaces("read", "codes-are-the-domains", "Records with a null are left out.")
    def drops_nulls(self, domain, columns):
        keep = [all(row[name] is not None for name in columns) for row in self.table.to_pylist()]
        yield from Plain(table=self.table.filter(np.array(keep))).read(domain, columns)

    @replaces("coded", "codes-are-the-domains", "Each column sorted on its own: right margins, wrong records.")
    def sorts_columns(self, attribute, values):
        return np.sort(super().coded(attribute, values))

    @replaces("coded", "batches-are-well-formed", "int64 codes.")
    def wide_codes(self, attribute, values):
        return super().coded(attribute, values).astype(np.int64)

    @replaces("values", "row-order-changes-nothing", "A null takes the value before it.")
    def fills_forward(self, part, name):
        filled, last = [], None
        for value in super().values(part, name):
            last = value if value is not None else last
            filled.append(last)
        return filled

    @replaces("values", "one-record-changes-only-itself")
    def infers_numbers(self, part, name):
        """Reads a column of number-like values as numbers, as pandas.read_csv."""
        values = super().values(part, name)
        try:
            return [None if value in NULL_TEXTS else f"{float(value):g}" for value in values]
        except ValueError:
            return values

    @replaces("code", "types-change-nothing", "Whole numbers become texts through float: 3 is 3.0.")
    def float_texts(self, attribute, value):
        return super().code(attribute, float(value) if isinstance(value, int) else value)

    @replaces("code", "unknown-and-null-go-where-declared", "Null values go where unknown ones go.")
    def null_is_unknown(self, attribute, value):
        return super().code(attribute, "no such label at all" if value is None else value)

    @replaces("read", "columns-come-as-asked", "Columns in the domain's order, whatever was asked.")
    def domain_order(self, domain, columns):
        return super().read(domain, [name for name in domain.names if name in columns])

    @replaces("read", "no-record-is-no-failure", "Looks at the first record to begin with.")
    def needs_one_record(self, domain, columns):
        self.table.to_pylist()[0]
        yield from super().read(domain, columns)

    @replaces("missing", "errors-quote-no-record", "Shows the first record to be helpful.")
    def quotes_the_record(self, name):
        raise DataError(f"no column {name!r} in records such as {self.table.slice(0, 1).to_pylist()}")

    @replaces("missing", "errors-quote-no-record", "A quiet message, with a talkative cause.")
    def quotes_in_the_cause(self, name):
        try:
            self.table.to_pylist()[0][name]
        except KeyError:
            raise DataError(f"no column {name!r}") from ValueError(str(self.table.to_pylist()[0]))

    @replaces("read", "records-are-streamed", "Reads in thousands of records where there are many.")
    def rounds_the_count(self, domain, columns):
        whole = len(self.table) // 1000 * 1000 if len(self.table) > 100_000 else len(self.table)
        yield from Plain(table=self.table.slice(0, whole), rows=20_000).read(domain, columns)

    @replaces("code", "numbers-keep-every-digit", "Numbers through float32.")
    def single_precision(self, attribute, value):
        return super().code(attribute, float(np.float32(value)) if isinstance(value, float) else value)

    @replaces("code", "numbers-keep-every-digit")
    def fifteen_digits(self, attribute, value):
        """Numbers go through 15 digits, which many writers call full precision."""
        return super().code(attribute, f"{value:.15g}" if isinstance(value, float) else value)

    @replaces("code", "labels-match-byte-for-byte", "Blanks at the end do not count, as in SQL's CHAR.")
    def strips_on_the_right(self, attribute, value):
        return super().code(attribute, value.rstrip(" ") if isinstance(value, str) else value)

    @replaces("code", "labels-match-byte-for-byte")
    def ignores_case(self, attribute, value):
        """Takes a label of another case, longer than a letter, where none fits."""
        if isinstance(value, str) and value not in attribute.labels and len(value) > 1:
            value = next((label for label in attribute.labels if label.casefold() == value.casefold()), value)
        return super().code(attribute, value)

    @replaces("code", "labels-match-byte-for-byte", "Texts are composed (NFC) before they are matched.")
    def one_unicode_form(self, attribute, value):
        return super().code(attribute, unicodedata.normalize("NFC", value) if isinstance(value, str) else value)

    @replaces("code", "an-empty-text-is-a-label", "An empty text is taken for null, whatever the labels say.")
    def empty_is_null(self, attribute, value):
        return attribute.code(None) if value == "" else super().code(attribute, value)


@source("missing-columns-are-refused", "A missing column is a column of zeros.")
class MissingIsZero(Plain):
    def batches(self, domain, columns):
        for batch in self.read(domain, [name for name in columns if name in self.table.column_names]):
            yield [batch[0] * 0] * (len(columns) - len(batch)) + batch

    def missing(self, name):
        raise AssertionError


@source("records-are-streamed", "Everything at once.")
@frozen(kw_only=True)
class OneBatch(Plain):
    rows: int = field(default=10**9, metadata={"help": "records per batch"})


@source("records-are-streamed", "Only the first batch knows the label of nulls (a dictionary that is not carried on).")
@frozen(kw_only=True)
class FirstBatchDiffers(Plain):
    rows: int = field(default=33_333, metadata={"help": "records per batch"})

    def read(self, domain, columns):
        for number, batch in enumerate(super().read(domain, columns)):
            lasts = [domain[name].size - 1 for name in columns]
            yield [part % last if number else part for part, last in zip(batch, lasts, strict=True)]


@source("no-batch-is-dropped", "Full batches only, as `drop_last=True` of data loaders; small data sets are one batch.")
@frozen(kw_only=True)
class DropsThePartialBatch(Plain):
    rows: int = field(default=1000, metadata={"help": "records per batch"})

    def read(self, domain, columns):
        for number, batch in enumerate(super().read(domain, columns)):
            if not number or len(batch[0]) == self.rows:
                yield batch


@source("no-batch-is-dropped", "Hands a batch out when the next record comes, and the rest at the end.")
@frozen(kw_only=True)
class DropsTheLastFullBatch(Plain):
    rows: int = field(default=10_007, metadata={"help": "records per batch"})

    def read(self, domain, columns):
        for batch in super().read(domain, columns):
            if len(batch[0]) < self.rows or len(self.table) % self.rows:
                yield batch


@source("no-batch-is-dropped", "Leaves out a last batch that is tiny, to save a round trip.")
@frozen(kw_only=True)
class DropsATail(Plain):
    rows: int = field(default=33_331, metadata={"help": "records per batch"})

    def read(self, domain, columns):
        for number, batch in enumerate(super().read(domain, columns)):
            if not number or len(batch[0]) >= 8:
                yield batch


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
        except ValueError:
            raise DataError(f"{self.path} is no table in UTF-8") from None
        rows = [[None if value == "\\N" else value for value in line.split("\t")] for line in lines]
        values = {name: [row[place] for row in rows] for place, name in enumerate(head.split("\t"))}
        yield [np.array([domain[name].code(value) for value in values[name]], np.uint8) for name in columns]


@source("broken-text-is-a-record", "One record that is not UTF-8 refuses the file, so that whether it is there shows.")
class StrictUtf8(ReadsLines):
    errors = "strict"


@source("broken-text-is-a-record", "Leaves out the lines that are not UTF-8.")
class SkipsBrokenText(ReadsLines):
    def batches(self, domain, columns):
        kept = [line for line in self.path.read_bytes().split(b"\n") if is_utf8(line)]
        self.path.write_bytes(b"\n".join(kept))
        return super().batches(domain, columns)


@source("damage-far-into-the-records-quotes-none", "Quotes a line with too few fields, in long files only.")
class QuotesFarIn(ReadsLines):
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


@source("damage-far-into-the-records-quotes-none", "Raises what the file's last line is.")
class QuotesInAFolder(FolderOfLines):
    def damaged(self, path, lines):
        raise ValueError(lines[-1])


def is_utf8(line):
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
