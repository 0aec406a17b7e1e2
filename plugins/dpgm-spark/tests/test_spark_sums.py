"""Sums through Spark are the embedded ones, bit for bit: whatever the partitions, types, retries and what is lost."""

import os
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dpgm_spark.source import SparkSource

from dpgm_core import Attribute, Domain
from dpgm_core.sources import Reading, Shipped, SourceRefused, received

SIZES = {"a": 3, "b": 4, "c": 2}
DOMAIN = Domain.from_sizes(SIZES)


class Cells:
    """A reduction: the joint table of some columns, row-major, then each number of rows a person has, up to 4."""

    def __init__(self, *columns):
        self.columns = columns
        self.shape = tuple(SIZES[name] for name in columns)
        self.cells = int(np.prod(self.shape)) + 5

    def partial(self, codes, lengths):
        sums = np.zeros(self.cells, np.int64)
        np.add.at(sums[:-5].reshape(self.shape), tuple(np.asarray(column).astype(int) for column in codes), 1)
        counted = np.ones(len(codes[0]), int) if lengths is None else np.asarray(lengths)
        np.add.at(sums[-5:], np.minimum(counted, 4), 1)
        return sums

    def check(self, sums):
        pass


@pytest.fixture(autouse=True, scope="module")
def by_value(java):
    import sys

    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def table(rows=2000, seed=0):
    """Texts, some of them unknown or null, and keys of which some are null, empty, or shared."""
    rng = np.random.default_rng(seed)
    columns = {name: rng.integers(0, size, rows).astype(str).tolist() for name, size in SIZES.items()}
    keys = [{0: None, 1: ""}.get(key, f"k{key}") for key in rng.integers(0, rows // 3 + 1, rows).tolist()]
    return pa.table(columns | {"id": pa.array(keys, pa.string())})


def embedded(rows, reading, reduction):
    batches = rows.select(list(dict.fromkeys(reading.names))).to_batches()
    return received([Shipped(reading=reading).summed(reduction, batches)], reduction).tolist()


def frame_of(spark, rows, partitions=None):
    from pyspark.sql.types import StringType, StructField, StructType

    schema = StructType([StructField(name, StringType()) for name in rows.column_names])
    made = spark.createDataFrame(list(zip(*rows.to_pydict().values(), strict=True)), schema)
    return made if partitions is None else made.repartition(partitions)


def reading(person=None, several=False, domain=DOMAIN, columns=None):
    return Reading(domain=domain, columns=columns or domain.names, person=person, rows_per_person=2, several=several)


@pytest.mark.parametrize("person", [None, "id"])
@pytest.mark.parametrize("partitions", [1, 7, 64])
def test_partitions_change_no_bit(spark, person, partitions):
    """1, 7 and 64 partitions, rows shuffled: the sums of one partition here. Null and empty keys are one person."""
    rows = table()
    shuffled = rows.take(pa.array(np.random.default_rng(partitions).permutation(rows.num_rows)))
    own, counts = reading(person), Cells("a", "c")
    with SparkSource(data=frame_of(spark, shuffled, partitions)).pinned(own) as pinned:
        actual = pinned.reduce(counts)
    assert actual.dtype == np.int64 and actual.tolist() == embedded(rows, own, counts)


@pytest.mark.parametrize("person", [None, "id"])
def test_several_sums_are_of_the_same_kept_codes(spark, person):
    """Codes are kept while the context is open, and dropped at its end."""
    rows, own = table(), reading(person, several=True)
    before = len(spark.sparkContext._jsc.getPersistentRDDs())
    with SparkSource(data=frame_of(spark, rows, 5)).pinned(own) as pinned:
        for counts in (Cells("a"), Cells("c", "b"), Cells("a", "b", "c")):
            assert pinned.reduce(counts).tolist() == embedded(rows, own, counts)
        assert len(spark.sparkContext._jsc.getPersistentRDDs()) == before + 1
    assert len(spark.sparkContext._jsc.getPersistentRDDs()) == before


def test_wide_sums_are_added_up_by_the_executors(spark, monkeypatch):
    """The driver gets one vector, whatever the number of partitions; here 40 are added in two steps."""
    from dpgm_spark import sums

    monkeypatch.setattr(sums, "_DRIVEN", 1)
    monkeypatch.setattr(sums, "_FAN", 7)
    got = []
    monkeypatch.setattr(sums, "received", lambda parts, reduction: got.append(len(parts)) or received(parts, reduction))
    rows, own, counts = table(300), reading(), Cells("a", "b")
    with SparkSource(data=frame_of(spark, rows, 40)).pinned(own) as pinned:
        assert pinned.reduce(counts).tolist() == embedded(rows, own, counts)
    assert got == [1]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("person", [None, "id"])
def test_no_rows_and_no_partitions(spark, several, person):
    """Zero is what nothing comes to: no rows, no partitions, and partitions of which some are empty."""
    from pyspark.sql.types import StringType, StructField, StructType

    own, counts = reading(person, several), Cells("a")
    schema = StructType([StructField(name, StringType()) for name in (*SIZES, "id")])
    none = spark.createDataFrame(spark.sparkContext.emptyRDD(), schema)
    assert none.rdd.getNumPartitions() == 0
    for frame in (none, spark.createDataFrame([], schema)):
        with SparkSource(data=frame).pinned(own) as pinned:
            assert pinned.reduce(counts).tolist() == [0] * counts.cells
    one = table(1)
    with SparkSource(data=frame_of(spark, one.select([*SIZES, "id"]), 3)).pinned(own) as pinned:
        assert pinned.reduce(counts).tolist() == embedded(one, own, counts)


def test_names_are_taken_letter_by_letter(spark):
    """Dots, quotes, spaces and case: Spark's own rules of names are in nobody's way."""
    names = ["a.b", "`c`", "A", "a", "x y"]
    domain = Domain.from_sizes(dict.fromkeys(names, 2))
    rows = pa.table({name: [str(place >> at & 1) for place in range(32)] for at, name in enumerate(names)})
    rows = rows.slice(3)

    class Ones:
        columns, cells = tuple(names), 5

        def partial(self, codes, lengths):
            return np.array([int(column.sum()) for column in codes], np.int64)

        def check(self, sums):
            pass

    with SparkSource(data=frame_of(spark, rows)).pinned(reading(domain=domain)) as pinned:
        assert pinned.reduce(Ones()).tolist() == [sum(map(int, rows.column(name).to_pylist())) for name in names]


def test_values_of_every_type_have_the_codes_that_files_give_them(spark):
    """Numbers, decimals, booleans, dates, instants and bytes; the session's zone is not UTC."""
    stamp = datetime(2024, 3, 1, 23, 30, 0, 250000)
    cases = {
        "long": (pa.int64(), [1, 2, None], ["1", "2"]),
        "double": (pa.float64(), [1.0, 2.5, float("nan")], ["1", "2.5"]),
        "decimal": (pa.decimal128(38, 18), [Decimal("1.50"), Decimal("2.00"), None], ["1.5", "2"]),
        "bool": (pa.bool_(), [True, False, None], ["true", "false"]),
        "day": (pa.date32(), [date(2024, 3, 1), date(1969, 12, 31), None], ["2024-03-01", "1969-12-31"]),
        "instant": (
            pa.timestamp("us", "UTC"),
            [stamp.replace(tzinfo=UTC), datetime(2024, 3, 2, tzinfo=UTC), None],
            ["2024-03-01T23:30:00.25Z", "2024-03-02T00:00:00Z"],
        ),
        "bytes": (pa.binary(), [b"x", b"", None], ["x", "y"]),
    }
    values = {name: own for name, (_, own, _) in cases.items()}
    labels = {name: own for name, (_, _, own) in cases.items()}
    domain = Domain([Attribute.of_labels(name, own, unknown="?", null="-") for name, own in labels.items()])

    class Places:
        columns, cells = domain.names, 3 * len(labels)

        def partial(self, codes, lengths):
            order = np.argsort(codes[0])
            return np.concatenate([np.asarray(column)[order].astype(np.int64) for column in codes])

        def check(self, sums):
            pass

    rows = pa.table({name: pa.array(own, cases[name][0], from_pandas=False) for name, own in values.items()})
    own = reading(domain=domain)
    want = embedded(rows, own, Places())
    assert want[:18] == [0, 1, 3] * 6
    frame = spark.createDataFrame(list(zip(*values.values(), strict=True)), list(values))
    with SparkSource(data=frame.coalesce(1)).pinned(own) as pinned:
        assert pinned.reduce(Places()).tolist() == want


def test_only_the_columns_that_are_asked_for_are_read(spark, tmp_path):
    """The plan's read schema: columns are pruned down into Parquet."""
    from dpgm_spark.source import _selected

    pq.write_table(table(10), tmp_path / "x.parquet")
    frame = _selected(spark.read.parquet(str(tmp_path)), [2, 0])
    plan = frame.mapInArrow(lambda batches: batches, "c2 string, c0 string")._jdf.queryExecution().toString()
    assert "ReadSchema: struct<a:string,c:string>" in plan


# --- what is tried again, lost, or changed ----------------------------------------------------------------------------


def test_a_worker_that_dies_in_the_middle_counts_once(spark, tmp_path):
    """Each of four partitions kills its Python worker at the first attempt, after having summed some rows."""
    rows, own = table(), reading()
    inner = Cells("a", "b")

    class Killing:
        columns, cells = inner.columns, inner.cells
        folder = str(tmp_path)

        def partial(self, codes, lengths):
            from pyspark import TaskContext

            context = TaskContext.get()
            sums = inner.partial(codes, lengths)
            if context.attemptNumber() == 0:
                os.mkdir(f"{self.folder}/{context.partitionId()}")  # noqa: PTH102
                os._exit(1)
            return sums

        def check(self, sums):
            pass

    with SparkSource(data=frame_of(spark, rows, 4)).pinned(own) as pinned:
        assert pinned.reduce(Killing()).tolist() == embedded(rows, own, inner)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2", "3"]


def test_a_worker_that_always_dies_is_a_refusal(spark):
    """After four attempts there is one sentence, without a word of Spark's."""
    rows, own = table(), reading()

    class Dying:
        columns, cells = ("a",), 1

        def partial(self, codes, lengths):
            os._exit(1)

        def check(self, sums):
            pass

    with SparkSource(data=frame_of(spark, rows, 1)).pinned(own) as pinned, pytest.raises(SourceRefused) as caught:
        pinned.reduce(Dying())
    assert str(caught.value).startswith("Spark could not finish the sum;")
    assert caught.value.__context__ is None and caught.value.__cause__ is None


@pytest.mark.parametrize("person", [None, "id"])
def test_codes_that_are_lost_are_made_again_from_the_same_rows(spark, tmp_path, person):
    """Blocks vanish between two sums: as they were, the sum is the same; of a file that changed there is none."""
    rows, own, counts = table(), reading(person, several=True), Cells("a", "b")
    pq.write_table(rows, tmp_path / "x.parquet", row_group_size=500)
    want = embedded(rows, own, counts)
    with SparkSource(path=str(tmp_path)).pinned(own) as pinned:
        assert pinned.reduce(counts).tolist() == want
        pinned._blocks.unpersist(blocking=True)
        assert pinned.reduce(counts).tolist() == want
        other = rows.to_pydict()
        other["a"][7] = "1" if other["a"][7] == "0" else "0"  # one code of one row
        (tmp_path / "x.parquet").unlink()
        pq.write_table(pa.table(other, rows.schema), tmp_path / "x.parquet", row_group_size=500)
        if person is None:
            with pytest.raises(SourceRefused, match=r"^(the records changed between|Spark could not finish)"):
                pinned.reduce(counts)
        else:  # Spark keeps what it has shuffled, and that is of the rows as they were
            assert pinned.reduce(counts).tolist() == want


def test_rows_that_chance_makes_are_the_same_in_every_sum(spark):
    """A plan that draws anew each time it runs: the codes that are kept are one draw; another draw is refused."""

    def draw(batches):
        for batch in batches:
            drawn = [str(byte % 3) for byte in os.urandom(batch.num_rows)]
            yield pa.record_batch({"a": drawn, "b": drawn, "c": ["0"] * len(drawn)})

    own, counts = reading(several=True), Cells("a", "b")
    drawn = spark.range(0, 500, 1, 4).mapInArrow(draw, "a string, b string, c string")
    with SparkSource(data=drawn).pinned(own) as pinned:
        first = pinned.reduce(counts).tolist()
        assert pinned.reduce(counts).tolist() == first
        pinned._blocks.unpersist(blocking=True)
        with pytest.raises(SourceRefused, match="the records changed between two passes"):
            pinned.reduce(counts)
    with SparkSource(data=drawn).pinned(reading()) as pinned:
        pinned.reduce(counts)
        with pytest.raises(SourceRefused, match="the records changed between two passes"):
            pinned.reduce(counts)


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("struct<x:int>", "column 'a' has a type of nested values"),
        ("map<string,int>", "column 'a' has"),
        ("array<string>", "column 'a' has a type of nested values"),
        ("interval year to month", "column 'a' has Spark's type"),
    ],
)
def test_types_without_codes_are_refused(spark, kind, words):
    """From the schema alone, as the rows are pinned."""
    frame = spark.sql(f"select cast(null as {kind}) as a, '0' as b, '1' as c")
    with pytest.raises(SourceRefused) as caught, SparkSource(data=frame).pinned(reading()):
        pass
    assert str(caught.value).startswith(words) and "\n" not in str(caught.value)


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("way", ["path", "schema", "table", "data"])
def test_a_file_of_another_type_is_refused_with_a_row_and_without(spark, tmp_path, way, rows):
    """One record does not decide: Spark alone would fail at the first row of such a file, in the middle of a sum."""
    folder = tmp_path / "x [1] é"  # neither a pattern nor a URL
    folder.mkdir()
    pq.write_table(table(5), folder / "0.parquet")
    odd = table(5).slice(0, rows)
    pq.write_table(odd.set_column(0, "a", odd["a"].cast(pa.int64())), folder / "1.parquet")
    place = str(folder).replace("[", "\\[").replace("]", "\\]")
    schema = "a string, b string, c string, id string"
    files = spark.read.schema(schema).parquet(place)
    files.createOrReplaceTempView("mixed")
    source = {
        "path": SparkSource(path=place),
        "schema": SparkSource(path=place, schema=schema),
        "table": SparkSource(table="mixed"),
        "data": SparkSource(data=files.where("b >= '0'")),
    }[way]
    with pytest.raises(SourceRefused, match=r"^column 'a' is read as string, and is bigint in a Parquet file; "):
        source.pinned(reading()).__enter__()
    if way == "path":  # of a column that is not read the type does not matter
        with source.pinned(reading(domain=Domain.from_sizes({"b": 4, "c": 2}))) as pinned:
            assert pinned.reduce(Cells("b"))[:4].sum() == 5 + rows


def test_a_file_that_a_filter_leaves_out_may_have_another_type(spark, tmp_path):
    """Folders of partitions; a damaged file is refused as the rows are pinned, one of no bytes is passed over."""
    for year, kind in ((2019, pa.int64()), (2020, pa.string())):
        (tmp_path / f"year={year}").mkdir()
        rows = table(5)
        pq.write_table(rows.set_column(0, "a", rows["a"].cast(kind)), tmp_path / f"year={year}" / "0.parquet")
    (tmp_path / "year=2020" / "1.parquet").touch()
    schema = "a string, b string, c string, id string, year int"
    source = SparkSource(data=spark.read.schema(schema).parquet(str(tmp_path)).where("year = 2020"))
    with source.pinned(reading()) as pinned:
        assert pinned.reduce(Cells("a"))[:3].sum() == 5
    (tmp_path / "year=2020" / "1.parquet").write_bytes(b"PAR1")
    source = SparkSource(data=spark.read.schema(schema).parquet(str(tmp_path)).where("year = 2020"))
    with pytest.raises(SourceRefused, match=r"^Spark cannot read the footers of the Parquet files; "):
        source.pinned(reading()).__enter__()


def test_what_is_not_there_is_refused(spark, tmp_path):
    """Column, person key, path, table and format; a key of floats; a column that is there twice."""
    frame = frame_of(spark, table(3))
    floats = frame.withColumn("id", frame["a"].cast("double"))
    twice = frame.select("a", "a", "b", "c")
    bare = tmp_path / "bare.csv"
    bare.write_text("a,b,c\n0,0,1\n")
    with pytest.raises(SourceRefused, match=r"options = \{ header = true \} takes them from a first line$"):
        SparkSource(path=str(bare), format="csv").pinned(reading()).__enter__()
    for source, own, words in (
        (SparkSource(data=frame.drop("b")), reading(), "the Spark data frame has no column 'b'"),
        (SparkSource(data=frame.withColumnRenamed("a", "A")), reading(), "the Spark data frame has no column 'a'"),
        (SparkSource(data=frame), reading("key"), "the Spark data frame has no column 'key'"),
        (SparkSource(data=twice), reading(), "the Spark data frame has more than one column 'a'"),
        (SparkSource(data=floats), reading("id"), "person key 'id' is a column of floats"),
        (SparkSource(path=str(tmp_path / "no")), reading(), f"Spark cannot open {tmp_path / 'no'}"),
        (SparkSource(path=str(tmp_path), format="nosuch"), reading(), "Spark cannot open"),
        (SparkSource(table="no.such"), reading(), "Spark cannot open table 'no.such'"),
        (SparkSource(path=str(bare), format="csv"), reading(), f"{bare} (format 'csv') has no column 'a'"),
    ):
        with pytest.raises(SourceRefused) as caught, source.pinned(own):
            pass
        assert str(caught.value).startswith(words) and "\n" not in str(caught.value)
        assert caught.value.__context__ is None


def test_the_session_is_as_it_was(spark):
    """Log level, job group and the session itself, also after a refusal."""
    context = spark.sparkContext

    def state():
        root = context._jvm.org.apache.logging.log4j.LogManager.getRootLogger()
        return str(root.getLevel()), context.getLocalProperty("spark.jobGroup.id")

    context.setLogLevel("ERROR")
    context.setJobGroup("mine", "mine")
    before = state()
    with SparkSource(data=frame_of(spark, table(3))).pinned(reading()) as pinned:
        assert state()[0] == "OFF"
        pinned.reduce(Cells("a"))
    with pytest.raises(SourceRefused), SparkSource(table="no.such").pinned(reading()):
        pass
    assert state() == before == ("ERROR", "mine")
    assert spark.range(3).count() == 3
    context.setLogLevel("OFF")
