"""Deliberately wrong sources that sum where the rows are, each killed by the check meant for it."""

import functools
import itertools
import logging
import sys
import warnings
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field, frozen

from dpgm_core import DataError
from dpgm_core.sources import Grouped, Shipped, SourceRefused, as_source, received
from dpgm_testing.reductions import PartitionedSource, PartitionPin, partitions_of, sent
from dpgm_testing.sources import DOMAIN

from .family import Family, replaces


def opener(mutant):
    """The function by which the kit hands a source its records."""
    return rereads if mutant is Rereads else lambda table, folder: mutant(table=table)


source = Family("source", records=opener)


@frozen(kw_only=True)
class Plain(PartitionedSource):
    """The honest source with joints where mutants are wrong."""

    pin = PartitionPin

    @contextmanager
    def pinned(self, reading):
        work = Shipped(reading=reading)
        self.check(work)
        pin = self.pin(work, list(self.coded(work)))
        try:
            yield pin
        finally:
            self.leave(pin)

    def check(self, work):
        work.check(self.table.schema)

    def leave(self, pin):
        pin.partitions = None


def pinned_by(pin):
    """The source of a pin."""
    return type(pin.__name__, (Plain,), {"pin": pin})


class InParts(PartitionPin):
    """Sums that come back one for each partition, and are merged here."""

    def reduce(self, reduction):
        if self.partitions is None:
            raise SourceRefused("gone")
        return self.merge([received([self.partial(reduction, one)], reduction) for one in self.partitions], reduction)

    def merge(self, parts, reduction):
        return sum(parts, np.zeros(reduction.cells, np.int64))


def larger_alone(one, other):
    return one + other if one[-1] >= other[-1] else other


@functools.partial(source.each, made=pinned_by)
class MergeFaults(InParts):
    @replaces("merge", "partitions-change-nothing", "Of many partitions one never comes back.")
    def loses_a_partition(self, parts, reduction):
        return super().merge(parts[:-2] + parts[-1:] if len(parts) > 8 else parts, reduction)

    @replaces("merge", "partitions-change-nothing", "A task that was tried again is added again.")
    def counts_a_retry_twice(self, parts, reduction):
        return super().merge([*parts, *parts[10:11]], reduction)

    @replaces("merge", "partitions-change-nothing", "A partition larger than all before it takes their place.")
    def order_matters(self, parts, reduction):
        return functools.reduce(larger_alone, parts)

    @replaces("merge", "partitions-change-nothing", "An empty last partition takes the one before it along.")
    def drops_the_partition_before_an_empty_one(self, parts, reduction):
        lost = len(self.partitions) > 1 and not self.partitions[-1]
        return super().merge(parts[:-2] if lost else parts, reduction)


@functools.partial(source.each, made=pinned_by)
class SumFaults(PartitionPin):
    @replaces("reduce", "sums-are-those-of-the-rows", "Cells of what comes back lie one further.")
    def off_by_one(self, reduction):
        sums = super().reduce(reduction)
        return np.roll(sums, 1) if sums.sum() else sums

    @replaces("reduce", "sums-are-whole-numbers", "Sums come back as doubles.")
    def floats(self, reduction):
        return super().reduce(reduction).astype(float)

    @replaces("reduce", "sums-are-those-of-the-rows")
    def through_floats(self, reduction):
        """Sums were doubles on their way, in which large whole numbers merge."""
        return super().reduce(reduction).astype(float).astype(np.int64)

    @replaces("reduce", "sums-are-those-of-the-rows", "Sums were of 32 bits on their way.")
    def narrow(self, reduction):
        return super().reduce(reduction).astype(np.int32).astype(np.int64)

    @replaces("reduce", "sums-are-whole-numbers", "The array is a view of a message's bytes.")
    def read_only(self, reduction):
        return np.frombuffer(super().reduce(reduction).tobytes(), np.int64)

    @replaces("reduce", "sums-are-whole-numbers", "The number of rows is left out of counts.")
    def one_cell_short(self, reduction):
        return super().reduce(reduction)[:-1]

    @replaces("reduce", "a-pin-that-was-left-sums-no-more", "A pin that was left has nothing to iterate over.")
    def fails_foreignly(self, reduction):
        return received([self.partial(reduction, blocks) for blocks in self.partitions], reduction)

    @replaces("reduce", "a-failure-where-the-rows-are-says-nothing", "A partition that fails counts for nothing.")
    def swallows(self, reduction):
        try:
            return super().reduce(reduction)
        except DataError:
            return np.zeros(reduction.cells, np.int64)


@define
class CachingPin(PartitionPin):
    """Hands out the array that it keeps."""

    kept: dict = field(factory=dict)

    def reduce(self, reduction):
        return self.kept.setdefault(reduction.cells, super().reduce(reduction))


@source("sums-are-whole-numbers", "The same array for the same sum.")
class Caches(Plain):
    pin = CachingPin


@define
class AccumulatorPin(PartitionPin):
    """Adds up in an accumulator that is made once."""

    sums: dict = field(factory=dict)

    def reduce(self, reduction):
        self.sums[reduction.cells] = self.sums.get(reduction.cells, 0) + super().reduce(reduction)
        return self.sums[reduction.cells].copy()


@source("sums-of-one-pin-are-of-the-same-records", "An accumulator that is not reset: the second sum holds the first.")
class Accumulates(Plain):
    pin = AccumulatorPin


class InDomainOrder(PartitionPin):
    """Codes in the order of the reading, whatever the sum asks for."""

    def partial(self, reduction, blocks):
        return sent(self.work).partial(Reordered(reduction, self.work.reading.columns), blocks)


@frozen
class Reordered:
    """Another sum that is handed codes in the wrong order."""

    inner: Any
    order: tuple

    @property
    def columns(self):
        return tuple(name for name in self.order if name in self.inner.columns)

    @property
    def cells(self):
        return self.inner.cells

    def partial(self, codes, lengths):
        most = [DOMAIN[name].size - 1 for name in self.inner.columns]
        within = [np.minimum(one, top).astype(np.uint8) for one, top in zip(codes, most, strict=True)]
        return self.inner.partial(within, lengths)


@source("sums-take-columns-as-asked", "Columns come in the table's order.")
class ColumnsOutOfOrder(Plain):
    pin = InDomainOrder


class ColumnMajorPin(PartitionPin):
    """Counts groups itself, and lays the tables out the wrong way round."""

    def reduce(self, reduction):
        sums = super().reduce(reduction)
        if not isinstance(reduction, Grouped):
            return sums
        found, end = [], 0
        sizes = self.work.reading.domain.sizes
        for names in reduction.groupings:
            shape = [sizes[name] for name in names]
            table = sums[end : end + np.prod(shape)].reshape(shape)
            found.append(table.T.ravel())
            end += table.size
        return np.concatenate([*found, sums[end:]])


@source("counting-in-its-own-way-changes-nothing", "`groupings` answered column-major.")
class ColumnMajor(Plain):
    pin = ColumnMajorPin


@source.each
class PlainFaults(Plain):
    @replaces("coded", "codes-do-not-depend-on-the-data", "Numbers labels anew in each partition, as they come.")
    def categories_of_a_partition(self, work):
        for part in partitions_of(self.table):
            for one in work.reading.domain:
                if one.edges is None and not one.coded and one.name in work.reading.names:
                    words = part[one.name].to_pylist()
                    order = {word: number for number, word in enumerate(dict.fromkeys(words))}
                    labels = [one.labels[min(order[word], one.size - 1)] for word in words]
                    place = part.column_names.index(one.name)
                    part = part.set_column(place, one.name, pa.array(labels, pa.string()))
            yield list(work.blocks(part.to_batches()))

    @replaces("coded", "persons-meet-across-partitions", "Each partition keeps its own r rows of a person.")
    def persons_apart(self, work):
        for part in partitions_of(self.table):
            yield list(sent(work).blocks(part.to_batches()))

    @replaces("coded", "persons-meet-across-partitions")
    def first_rows(self, work):
        """Takes the first r rows of a person, not those that hashes choose."""
        own = work.reading
        if own.person is None:
            yield from PartitionedSource.coded(self, work)
            return
        seen, rows = {}, []
        for row, key in enumerate(self.table[own.person].to_pylist()):
            seen[key or ""] = seen.get(key or "", 0) + 1
            if seen[key or ""] <= own.rows_per_person:
                rows.append(row)
        yield list(work.blocks(self.table.take(pa.array(rows)).combine_chunks().to_batches()))

    @replaces("leave", "a-pin-that-was-left-sums-no-more", "What was kept for a pin stays.")
    def sums_afterwards(self, pin):
        pass

    @replaces("check", "what-has-no-codes-is-refused-when-pinned")
    def looks_at_rows(self, work):
        """Checks types with the rows: no empty table is refused."""
        if len(self.table):
            super().check(work)

    @replaces("check", ("missing-columns-are-refused", "what-has-no-codes-is-refused-when-pinned"))
    def looks_later(self, work):
        """Types are looked at by whoever sums."""

    @replaces("check", "no-record-is-no-failure", "Looks at the first row to begin with.")
    def needs_a_row(self, work):
        self.table.to_pylist()[0]
        super().check(work)

    @replaces("check", "errors-quote-no-record", "Shows the first row where a column is missing, to be helpful.")
    def quotes_a_row(self, work):
        for name in work.reading.names:
            if name not in self.table.column_names:
                raise SourceRefused(f"no column {name!r} in rows such as {self.table.slice(0, 1).to_pylist()}")

    @replaces("batches", "codes-are-the-domains", "Hands out rows too, but not all of them.")
    def halved(self, domain, columns):
        return as_source(self.table.slice(0, len(self.table) // 2)).batches(domain, columns)


@source("persons-meet-across-partitions", "As many parts as there are persons, of which one is asked for its columns.")
class NeedsAPerson(Plain):
    def coded(self, work):
        made = list(PartitionedSource.coded(self, work))
        if work.reading.person is not None:
            self.kind(list(itertools.chain(*made)))
        return made

    def kind(self, blocks):
        return blocks[0][:1]


class KeyedParts(Plain):
    """Persons are brought together by a part of their own."""

    def coded(self, work):
        own = work.reading
        if own.person is None:
            yield from PartitionedSource.coded(self, work)
            return
        parts = {}
        for row, key in enumerate(self.table[own.person].to_pylist()):
            parts.setdefault(self.part(key), []).append(row)
        for rows in parts.values():
            yield list(work.blocks(self.table.take(pa.array(rows)).combine_chunks().to_batches()))

    def part(self, key):
        return str(key or "")[:1]


@source("persons-meet-across-partitions", "A null key is in another part than an empty one.")
class NullApart(KeyedParts):
    def part(self, key):
        return "null" if key is None else key


@source("persons-meet-across-partitions", "Parts by Python's hash, so that types and nulls make a difference.")
class BucketsByPython(KeyedParts):
    def part(self, key):
        return type(key).__name__, hash(key) % 3 if isinstance(key, int) else len(key or "") % 2


class WithKeys(Plain):
    """Keys are changed before anything is done with them."""

    def coded(self, work):
        person = work.reading.person
        if person is None:
            yield from PartitionedSource.coded(self, work)
            return
        place = self.table.column_names.index(person)
        changed = self.table.set_column(place, person, self.changed(self.table[person]))
        yield from PartitionedSource(table=changed.combine_chunks()).coded(work)

    def changed(self, keys):
        return keys


@source("persons-meet-across-partitions", "Whole numbers beside nulls became doubles, and then whole numbers again.")
class KeysAsDoubles(WithKeys):
    def changed(self, keys):
        if not pa.types.is_integer(keys.type):
            return keys
        return pa.array([None if key is None else int(float(key)) for key in keys.to_pylist()], pa.int64())


@source("persons-meet-across-partitions", "Keys that look like numbers are numbers.")
class NumbersInTexts(WithKeys):
    def changed(self, keys):
        if not pa.types.is_string(keys.type):
            return keys
        texts = keys.to_pylist()
        return pa.array([text and (text.strip().lstrip("0") or "0") for text in texts], pa.string())


@source("sums-of-one-pin-are-of-the-same-records", "Reads its file anew for each sum.")
@frozen(kw_only=True)
class Rereads(Plain):
    path: Any = field(default=None, metadata={"help": "the file"})

    @contextmanager
    def pinned(self, reading):
        class Lazy(PartitionPin):
            def reduce(own, reduction):
                table = pa.ipc.open_file(str(self.path)).read_all()
                with Plain(table=table).pinned(reading) as pin:
                    return pin.reduce(reduction)

        yield Lazy(Shipped(reading=reading), [])


def rereads(table, folder):
    path = folder / "records.arrow"
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    return Rereads(table=table, path=path)


@source("no-record-is-no-failure", "Merges what comes back without a beginning.")
class SumOfNone(Plain):
    class pin(InParts):
        def merge(self, parts, reduction):
            return sum(parts[1:], parts[0])

    def coded(self, work):
        return (blocks for blocks in PartitionedSource.coded(self, work) if blocks)


class Talking(PartitionPin):
    """Sums without the work that core ships, and lets what fails out."""

    def partial(self, reduction, blocks):
        try:
            reduction.partial([np.zeros(1, np.uint8)] * len(reduction.columns), None)
        except Exception as error:
            self.told(error)
        return super().partial(reduction, blocks)

    def told(self, error):
        raise error


source("a-failure-where-the-rows-are-says-nothing", "The error of the partition comes through.")(pinned_by(Talking))


@functools.partial(source.each, made=pinned_by)
class TalkFaults(Talking):
    @replaces("told", "a-failure-where-the-rows-are-says-nothing", "A DataError with the words of what failed.")
    def quotes_what_failed(self, error):
        raise DataError(f"a task failed: {error}") from None

    @replaces(
        "told", "a-failure-where-the-rows-are-says-nothing", "A quiet DataError, with what failed as its context."
    )
    def quotes_in_the_context(self, error):
        raise DataError("a task failed") from error

    @replaces("told", "a-failure-where-the-rows-are-says-nothing", "Where the rows are what fails is printed.")
    def prints(self, error):
        sys.stdout.write(str(error))

    @replaces("told", "a-failure-where-the-rows-are-says-nothing", "Where the rows are what fails is logged.")
    def logs(self, error):
        logging.getLogger("executor").warning("lost task: %s", error)

    @replaces("told", "a-failure-where-the-rows-are-says-nothing", "Where the rows are what fails is warned of.")
    def warns(self, error):
        warnings.warn(str(error), stacklevel=1)


class Cast(Plain):
    """An engine with types of its own."""

    def coded(self, work):
        columns = {name: self.cast(self.table[name]) for name in self.table.column_names}
        yield from PartitionedSource(table=pa.table(columns)).coded(work)

    def cast(self, column):
        return column


@source.each
class CastFaults(Cast):
    @replaces("cast", "numbers-keep-every-digit", "Floats of 32 bits.")
    def single_precision(self, column):
        return column.cast(pa.float32(), safe=False) if pa.types.is_floating(column.type) else column

    @replaces("cast", "labels-match-byte-for-byte", "Texts without blanks at their ends, as CHAR has them.")
    def trims(self, column):
        return pc.utf8_rtrim_whitespace(column) if pa.types.is_string(column.type) else column

    @replaces("cast", "unknown-and-null-go-where-declared", "Nulls of texts are written as texts.")
    def null_is_empty(self, column):
        return pc.fill_null(column, "NULL") if pa.types.is_string(column.type) else column

    @replaces("cast", "types-change-nothing", "Whole numbers become texts through doubles: 3 is 3.0.")
    def texts_of_floats(self, column):
        if not pa.types.is_integer(column.type):
            return column
        return pc.binary_join_element_wise(column.cast(pa.string()), "0", ".")

    @replaces("cast", "one-record-changes-only-itself", "A column of texts that are all numbers is one of numbers.")
    def infers_numbers(self, column):
        try:
            return column.cast(pa.float64()) if pa.types.is_string(column.type) else column
        except pa.ArrowInvalid:
            return column


@source("a-source-shows-nothing-of-the-records", "A repr as attrs makes it.")
@frozen(kw_only=True)
class ShowsItsTable(Plain):
    table: Any = field(eq=id, repr=str, metadata={"help": "the records"})


class Both(Plain):
    """Hands out rows too, with the keys of their persons."""

    def batches(self, domain, columns):
        return as_source(self.table).batches(domain, columns)

    def keyed_batches(self, domain, columns, key):
        return as_source(self.table).keyed_batches(domain, columns, key)


@source("persons-meet-across-partitions", "Keys that are handed out begin anew with each batch.")
class OtherKeys(Both):
    def keyed_batches(self, domain, columns, key):
        for codes, keys in as_source(self.table).keyed_batches(domain, columns, key):
            yield codes, pa.array(range(len(keys)))
