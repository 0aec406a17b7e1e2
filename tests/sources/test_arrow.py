"""Arrow files and streams: each type has a text, damage is refused without content."""

import subprocess
import sys
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from dpgm_core import Attribute, DataError, Domain
from dpgm_core.sources import as_source
from dpgm_core.sources.persons import PersonSource


def test_a_missing_column_is_named_and_no_other(tmp_path, visits):
    """Every way in names the missing column and none that is there: a frame may have a record for its header."""
    table = visits.table(5)
    renamed = table.rename_columns(["id", "town", "age", "visitz", "coded", "note"])
    for make in visits.keyed_ways.values():
        message = visits.refusal(lambda make=make: visits.codes(as_source(make(renamed, tmp_path))))
        assert "'visits'" in message
        assert "visitz" not in message and "note" not in message
    nobody = PersonSource(source=as_source(table), person="person")
    assert "no column 'person'" in visits.refusal(lambda: visits.codes(nobody))
    assert "no column 'town'" in visits.refusal(lambda: visits.codes(as_source({"a": np.zeros(2, int)})))


class OneResult:
    """A DuckDB relation of a connection that allows one open result, as DuckDB 2.0.1 does."""

    def __init__(self, table, state):
        self.table, self.state, self.columns = table, state, table.column_names

    def __arrow_c_stream__(self, requested_schema=None):
        raise AssertionError("read through to_arrow_reader")

    def limit(self, rows):
        return OneResult(self.table.slice(0, rows), self.state)

    def to_arrow_reader(self, rows):
        if self.state["open"]:
            raise ValueError("connection has an open result")
        self.state["open"] = self.table.num_rows > 0
        return self

    @property
    def schema(self):
        return self.table.schema

    def read_all(self):
        self.close()
        return self.table

    def __iter__(self):
        return iter(self.table.to_batches(max_chunksize=2))

    def close(self):
        self.state["open"] = False


def test_a_reading_leaves_no_result_open(visits):
    """Neither the check of types nor a reading that ends early holds the connection, whoever keeps the reading."""
    state = {"open": False}
    source = as_source(OneResult(visits.table(5), state))
    never = source.batches(visits.domain, visits.domain.names)
    early = source.batches(visits.domain, visits.domain.names)
    next(early)
    assert state["open"]
    early.close()
    assert not state["open"]
    assert visits.codes(source) == visits.codes(as_source(visits.table(5)))
    wrong = visits.table(5).set_column(1, "town", pa.array([[1]] * 5))
    with pytest.raises(DataError) as kept:
        visits.codes(as_source(OneResult(wrong, state)))
    assert not state["open"]
    del never, kept


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_a_damaged_file_is_refused_without_content(suffix, tmp_path, visits):
    """Not the format at all, cut short, or bytes overwritten in the middle: the file is named, nothing is quoted."""
    garbage = tmp_path / f"garbage{suffix}"
    garbage.write_bytes(b"SECRET" * 100)
    assert str(garbage) in visits.refusal(lambda: visits.codes(as_source(garbage)))
    table = pa.table({name: pa.array([f"SECRET{i % 7000}" for i in range(20_000)]) for name in visits.domain.names})
    whole = tmp_path / f"whole{suffix}"
    (visits.write_parquet if suffix == ".parquet" else visits.write_ipc)(table, whole)
    content = whole.read_bytes()
    damaged = tmp_path / f"damaged{suffix}"
    damaged.write_bytes(content[: len(content) // 2])
    assert str(damaged) in visits.refusal(lambda: visits.codes(as_source(damaged)))
    assert "No such file" in visits.refusal(lambda: visits.codes(as_source(tmp_path / f"no{suffix}")))


def test_a_damaged_row_group_quotes_nothing(tmp_path, visits):
    path = tmp_path / "x.parquet"
    table = pa.table({name: pa.array([f"SECRET{i}" for i in range(3000)]) for name in visits.domain.names})
    pq.write_table(table, path, compression="zstd", use_dictionary=False, row_group_size=1000)
    start = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + 300] = b"\xff" * 300
    path.write_bytes(content)
    assert visits.refusal(lambda: visits.codes(as_source(path))) == f"{path} cannot be read as Parquet"


def test_one_odd_value_in_an_object_column_changes_one_record(visits):
    """A pandas column of mixed types is read value by value: neither a refusal nor another reading of the others."""
    pandas = pytest.importorskip("pandas")
    plain = pandas.DataFrame({"town": ["A", "B", "A"], "age": 1, "visits": [1, 2, 1], "coded": 1}).astype(object)
    odd = plain.copy()
    odd.at[1, "town"], odd.at[1, "visits"] = ["SECRET"], object()
    before, after = visits.codes(as_source(plain)), visits.codes(as_source(odd))
    assert sum((before - after).values()) == sum((after - before).values()) == 1


def test_nested_columns_are_refused(visits):
    table = pa.table({name: pa.array([["SECRET"]]) for name in visits.domain.names})
    assert "nested values" in visits.refusal(lambda: visits.codes(as_source(table)))


def test_a_stream_that_was_read_is_not_an_empty_data_set(visits):
    """The second release from a RecordBatchReader is refused instead of counting no records."""
    source = as_source(visits.table().to_reader())
    assert visits.codes(source)
    assert "only once" in visits.refusal(lambda: visits.codes(source))


#: Of types that differ in what can be done with them, two cells each, as a column of one of them would have them.
TYPED = {
    str(kind): (kind, cells)
    for kind, cells in (
        (pa.null(), [None, None]),
        (pa.bool_(), [True, False]),
        (pa.float64(), [1.0, 1.5]),
        (pa.float32(), [1.0, 1.5]),
        (pa.decimal128(9, 2), [Decimal("1"), Decimal("1.5")]),
        (pa.date32(), [date(2020, 1, 1)] * 2),
        (pa.timestamp("ns", "UTC"), [0, 1]),
        (pa.duration("us"), [0, 1]),
        (pa.month_day_nano_interval(), [(1, 1, 1)] * 2),
        (pa.string(), ["1", "2"]),
        (pa.list_(pa.int8()), [[1], []]),
        (pa.struct([("x", pa.int8())]), [{"x": 1}, {}]),
        *((vars(pa)[name](*size), [Decimal("1"), Decimal("1.5")])
          for name, size in (("decimal32", (9, 2)), ("decimal64", (9, 2))) if name in vars(pa)),
    )
}  # fmt: skip


def dictionaries(table, _):
    return pa.table({name: pa.chunked_array(pa.DictionaryArray.from_arrays(pa.array(range(len(table)), pa.int8()),
                    table[name].combine_chunks())) for name in table.column_names})  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", TYPED)
@pytest.mark.parametrize("role", ["visits", "age", "id"])
def test_a_type_is_judged_before_any_batch(kind, role, tmp_path, visits):
    """As labels, bins and keys, from every format and frame: with no row, a null or values it is refused or none is."""
    arrow_type, cells = TYPED[kind]
    tried = 0
    for way, make in {**visits.keyed_ways, "dictionaries": dictionaries}.items():
        if way.startswith("csv") or (way.startswith("polars") and "interval" in kind):  # no types; it panics
            continue
        said = []
        for column in ([], [None], cells, [*cells, None]):
            table = visits.table(len(column))
            odd = pa.array(column, arrow_type)
            table = table.set_column(table.column_names.index(role), role, odd)
            try:
                made = pandas_typed(table) if way == "pandas" else make(table, tmp_path)
            except Exception:  # the format cannot hold this type
                continue
            source = as_source(made)
            try:
                batches = source.keyed_batches(visits.domain, visits.domain.names, "id")
            except DataError as error:
                said.append(str(error))
                continue
            said.append("")
            rows = list(PersonSource(source=Read(list(batches)), person="id").batches(visits.domain, ["town"]))
            assert sum(len(part[0]) for part in rows) <= len(column)
        assert len(set(said)) <= 1, (way, said)
        tried += len(said)
    assert tried >= 8


class Read:
    def __init__(self, read):
        self.read = read

    def batches(self, domain, columns):
        raise NotImplementedError

    def keyed_batches(self, domain, columns, key):
        return iter(self.read)


def pandas_typed(table):
    """A frame that keeps Arrow's types: by itself pandas makes its own of the cells."""
    return table.to_pandas(types_mapper=pytest.importorskip("pandas").ArrowDtype)


def test_a_stream_is_read_at_its_first_batch_only(visits):
    """To look at names and types before anything is paid does not use it up."""
    source = as_source(visits.table(5).to_reader())
    for _ in range(2):
        batches = source.batches(visits.domain, visits.domain.names)
    assert sum(len(part[0]) for part in batches) == 5
    assert "only once" in visits.refusal(lambda: source.batches(visits.domain, visits.domain.names))


def test_pandas_is_converted_at_its_first_batch_only(visits):
    """Names and types are told by none of its rows."""
    pandas = pytest.importorskip("pandas")

    class Counting(pandas.DataFrame):
        converted = 0

        def __getitem__(self, key):
            Counting.converted += len(self)
            return super().__getitem__(key)

    frame = Counting(visits.table(50).to_pandas().astype({"id": "Int64"}))
    batches = as_source(frame).batches(visits.domain, visits.domain.names)
    assert Counting.converted == 0
    assert sum(len(part[0]) for part in batches) == 50 and Counting.converted > 0


@pytest.mark.parametrize("index", [pa.int8(), pa.uint8(), pa.int32()])
@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.binary()])
def test_no_text_makes_a_parquet_dictionary_unreadable(text, index, tmp_path):
    """Neither bytes that are not UTF-8 nor one distinct text more than the declared indices can count."""
    large = pa.types.is_large_string(text)
    raw = [b"A", b"\xff\xfe", b"", *(b"%d" % number for number in range(400))]
    chunks = [
        pa.DictionaryArray.from_arrays(
            pa.array(range(len(part)), index), pa.array(part, pa.large_binary() if large else pa.binary()).view(text)
        )
        for part in (raw[start : start + 100] for start in range(0, len(raw), 100))
    ]
    pq.write_table(pa.table({"town": pa.chunked_array(chunks)}), tmp_path / "x.parquet")
    domain = Domain([Attribute.of_labels("town", ["A", "399"], unknown="?")])
    (codes,) = next(as_source(tmp_path / "x.parquet").batches(domain, ["town"]))
    assert np.bincount(codes).tolist() == [1, 1, len(raw) - 2]


READ = """
import sys
from dpgm_core import Domain
from dpgm_core.errors import DataError
from dpgm_core.sources import as_source
domain = Domain.from_dict({"a": {"labels": ["x", "y"], "unknown": "?"}})
for path in sys.argv[1:]:
    try:
        print([int(code) for (codes,) in as_source(path).batches(domain, ["a"]) for code in codes], flush=True)
    except DataError:
        print("refused", flush=True)
"""


def read_alone(*paths):
    """What a process of its own makes of files: wild memory is a signal, no exception."""
    done = subprocess.run([sys.executable, "-c", READ, *map(str, paths)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.splitlines()


@pytest.mark.landing
def test_places_outside_of_a_file_are_not_read(tmp_path):
    """A damaged file may say that a text begins gigabytes behind its end: Arrow went there, and the process died."""
    paths = []
    for kind in (pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())):
        for new in (pa.ipc.new_stream, pa.ipc.new_file):
            sound, damaged = tmp_path / f"{len(paths)}.arrow", tmp_path / f"{len(paths)}-damaged.arrow"
            array = pa.array(["x", "y", "x", "zz"], pa.string()).cast(kind)
            with new(sound, pa.schema([("a", kind)])) as writer:
                writer.write_batch(pa.record_batch([array], ["a"]))
            ends = [0, 1, 2, 4] if pa.types.is_dictionary(kind) else [0, 1, 2, 3, 5]
            before = np.array(ends, np.int64 if pa.types.is_large_string(kind) else np.int32)
            after = before.copy()
            after[1:-1] = 2**30
            assert sound.read_bytes().count(before.tobytes()) == 1
            damaged.write_bytes(sound.read_bytes().replace(before.tobytes(), after.tobytes()))
            paths += [sound, damaged]
    assert read_alone(*paths) == ["[0, 1, 0, 2]", "refused"] * 8


@pytest.mark.parametrize("place", [-1, 3, 2**31 - 1])
def test_keys_outside_of_a_dictionary_are_refused(visits, place):
    """They are no value that somebody could have; -1 was read as the last one."""
    keys = pa.array([0, 1, place, None], pa.int32())
    array = pa.DictionaryArray.from_arrays(keys, pa.array(["x", "y", "zz"]), safe=False)
    domain = Domain.from_dict({"a": {"labels": ["x", "y"], "unknown": "?"}})
    assert "cannot be read" in visits.refusal(lambda: list(as_source(pa.table({"a": array})).batches(domain, ["a"])))


def test_no_text_is_a_reason_to_refuse_a_file():
    """Letters that are no UTF-8 make one record unknown, also where the type promises UTF-8."""
    odd = pa.array([b"x", b"\xff\xfe", b"y"]).view(pa.string())
    domain = Domain.from_dict({"a": {"labels": ["x", "y"], "unknown": "?"}})
    for array in (odd, pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), odd)):
        ((codes,),) = as_source(pa.table({"a": array})).batches(domain, ["a"])
        assert codes.tolist() == [0, 2, 1]
