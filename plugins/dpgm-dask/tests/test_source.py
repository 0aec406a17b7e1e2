"""The source `dask` on threads and on a cluster of processes: the same bits as a plain count, whatever happens."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("dask.dataframe", reason="dask is not installed")
pytest.importorskip("distributed", reason="distributed is not installed")

import cloudpickle
import dask
import dask.dataframe as dd
from distributed import Client, LocalCluster
from dpgm_dask.source import DaskSource

from dpgm_core import Attribute, DataError, Domain
from dpgm_core.sources import Reading, SourceRefused
from dpgm_testing.reductions import embedded, tallies

# What is sent from here is not installed on the workers.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

DOMAIN = Domain(
    [
        Attribute.of_labels("town", ["A", "B", "Zürich"], unknown="?", null="none"),
        Attribute.of_bins("age", [0, 18, 65, float("inf")], unknown="?", null="none"),
        Attribute.of_size("visits", 4, unknown=3),
    ]
)


ALL = tallies(DOMAIN, [DOMAIN.names])


def records(count=500, seed=0):
    """Texts, floats and whole numbers, some unknown, some null; persons with several rows."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "person": rng.integers(0, count // 3, count),
            "town": rng.choice(np.array(["A", "B", "Zürich", "C", None], dtype=object), count),
            "age": rng.choice([0.0, 3.5, 18.0, 64.9, 65.0, 99.0, -1.0, np.nan], count),
            "visits": rng.integers(0, 6, count),
            "unused": "not asked for",
        }
    )


def reading(**more):
    return Reading(domain=DOMAIN, columns=DOMAIN.names, **more)


def expected(frame, spec):
    """The same rows in one piece, without dask."""
    return embedded(pa.Table.from_pandas(frame, preserve_index=False), spec, ALL)


def total(source, spec, times=1):
    with source.pinned(spec) as pinned:
        sums = [pinned.reduce(ALL) for _ in range(times)]
    for other in sums[1:]:
        np.testing.assert_array_equal(sums[0], other)
    assert sums[0].dtype == np.int64
    return sums[0]


@pytest.fixture(params=["threads", "processes"])
def where(request):
    """dask's default scheduler, then an active client."""
    if request.param == "threads":
        yield None
        return
    with Client(request.getfixturevalue("cluster")) as client:
        yield client


KINDS = {
    "pandas": lambda frame: frame,
    "objects": lambda frame: frame.assign(town=frame["town"].astype(object), visits=frame["visits"].astype(object)),
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False).to_pandas(types_mapper=pd.ArrowDtype),
    "categories": lambda frame: frame.assign(town=frame["town"].astype("category")),
}


ASKED = [reading(), reading(person="person", rows_per_person=2, several=True)]


@pytest.mark.parametrize("spec", ASKED)
@pytest.mark.parametrize("partitions", [1, 7, 64])
def test_partitions_change_no_bit(where, partitions, spec):
    """1, 7 and 64 partitions of rows in another order give what one piece gives, with and without a person key."""
    shuffled = records().sample(frac=1, random_state=partitions)
    source = DaskSource(data=dd.from_pandas(shuffled, npartitions=partitions, sort=False))
    np.testing.assert_array_equal(total(source, spec, times=2), expected(records(), spec))


@pytest.mark.parametrize("spec", ASKED)
@pytest.mark.parametrize("kind", KINDS)
def test_values_of_any_type_that_pandas_has_for_them_mean_the_same(kind, spec):
    """Texts as objects, in Arrow's types, in categories that differ between partitions."""
    with dask.config.set({"dataframe.convert-string": False}):
        source = DaskSource(data=dd.from_pandas(KINDS[kind](records()), npartitions=3, sort=False))
        np.testing.assert_array_equal(total(source, spec), expected(records(), spec))


def write(frame, folder, parts=3):
    folder.mkdir(exist_ok=True)
    for number, piece in enumerate(np.array_split(np.arange(len(frame)), parts)):
        pq.write_table(pa.Table.from_pandas(frame.iloc[piece]), folder / f"{number}.parquet")
    return str(folder)


@pytest.mark.parametrize("spec", [reading(), reading(several=True), reading(person="person", rows_per_person=2)])
def test_parquet_folders_are_read_where_the_sum_is_taken(where, tmp_path, spec):
    """Files of a folder, one of them empty, and a pattern of their names; an index that pandas stored is no column."""
    frame = records()
    path = write(frame, tmp_path / "visits")
    pq.write_table(pa.Table.from_pandas(frame.iloc[:0]), tmp_path / "visits/9.parquet")
    whole = expected(frame, spec)
    assert set(frame.columns) <= set(DaskSource(path=path).names())
    np.testing.assert_array_equal(total(DaskSource(path=path), spec, times=2), whole)
    np.testing.assert_array_equal(total(DaskSource(path=f"{path}/*.parquet"), spec), whole)


def test_an_address_will_do_for_a_client(cluster, tmp_path):
    """With `scheduler` no client need be active."""
    source = DaskSource(path=write(records(), tmp_path / "visits"), scheduler=cluster.scheduler_address)
    np.testing.assert_array_equal(total(source, reading()), expected(records(), reading()))


def test_cells_of_mixed_columns_mean_what_each_of_them_means(where):
    """A partition of whole numbers only, one of texts and one with a null: no partition's type is its values' doing."""
    mixed = pd.DataFrame({"town": ["A"] * 3, "age": [1.0] * 3, "visits": pd.Series([1, "1", None], dtype=object)})
    frame = dd.from_delayed(
        [part_of(mixed, 0), part_of(mixed, 1), part_of(mixed, 2)], meta=mixed.iloc[:0], verify_meta=False
    )
    one_piece = DaskSource(data=dd.from_delayed([part_of(mixed, None)], meta=mixed.iloc[:0], verify_meta=False))
    np.testing.assert_array_equal(total(DaskSource(data=frame), reading()), total(one_piece, reading()))
    whole = pd.DataFrame({"town": ["A", "A"], "age": [1.0, 1.0], "visits": [1, 2]})
    became_float = [part_of(whole, 0), part_of(whole.astype({"visits": float}), 1)]
    frame = dd.from_delayed(became_float, meta=whole.iloc[:0], verify_meta=False)
    np.testing.assert_array_equal(total(DaskSource(data=frame), reading()), expected(whole, reading()))


def test_an_interval_in_a_column_of_objects_is_a_cell_like_others(where):
    """Arrow's do not pickle by themselves: one of them must not fail the sum on a cluster alone. It is no label."""
    frame = records(9).astype({"town": object})
    frame.at[4, "town"] = "no label"
    whole = expected(frame, reading())
    frame.at[4, "town"] = pa.MonthDayNano([1, 2, 3])
    parts = [dask.delayed(one, pure=False) for one in (frame.iloc[:3], frame.iloc[3:])]
    source = DaskSource(data=dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False))
    np.testing.assert_array_equal(total(source, reading()), whole)


def part_of(frame, row):
    return dask.delayed(frame if row is None else frame.iloc[[row]].infer_objects(), pure=False)


def test_what_partitions_share_is_made_by_dask(where):
    """After a shuffle a partition is made of all others; and a frame that the cluster holds is used as it stands."""
    frame = dd.from_pandas(records(), npartitions=5).shuffle(on="person")
    whole = expected(records(), reading())
    np.testing.assert_array_equal(total(DaskSource(data=frame), reading()), whole)
    np.testing.assert_array_equal(total(DaskSource(data=frame.persist()), reading(several=True)), whole)


@pytest.mark.parametrize("spec", [reading(), reading(person="person", rows_per_person=2, several=True)])
def test_a_worker_that_is_killed_in_the_middle_changes_no_bit(cluster, tmp_path, spec):
    """At the first attempt of partition 3 its process dies by SIGKILL; dask starts another one and goes on."""
    marker = str(tmp_path / "killed")
    frame = dd.from_pandas(records(), npartitions=7, sort=False)
    deadly = frame.map_partitions(kill_once, marker, meta=frame._meta)
    with Client(cluster):
        sums = total(DaskSource(data=deadly), spec, times=2)
    assert Path(marker).exists()
    np.testing.assert_array_equal(sums, expected(records(), spec))


def test_a_partition_that_no_worker_survives_is_one_line(cluster):
    """dask gives up; what it says of the task is withheld."""
    allowed, cluster.scheduler.allowed_failures = cluster.scheduler.allowed_failures, 0
    frame = dd.from_pandas(records(), npartitions=2)
    try:
        with Client(cluster):
            words = refusal(DaskSource(data=frame.map_partitions(kill_once, "/nowhere/marker", meta=frame._meta)))
    finally:
        cluster.scheduler.allowed_failures = allowed
    assert words.startswith("dask could not sum the records (KilledWorker")


def kill_once(frame, marker):
    if 0 in frame.index and not Path(marker).exists():
        if Path(marker).parent.exists():
            Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return frame


def test_what_was_kept_is_dropped(cluster):
    """While pinned for several sums the cluster holds blocks; afterwards nothing of ours."""
    with Client(cluster) as client:
        source = DaskSource(data=dd.from_pandas(records(), npartitions=4))
        with source.pinned(reading(several=True)) as pinned:
            pinned.reduce(ALL)
            stored = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        assert stored >= 4
        for _ in range(100):
            left = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
            if not left:
                break
            time.sleep(0.05)
        assert left == 0
        with pytest.raises(SourceRefused, match="no longer pinned"):
            pinned.reduce(ALL)


def refusal(source, spec=None):
    with pytest.raises(DataError) as caught, source.pinned(spec or reading()) as pinned:
        pinned.reduce(ALL)
    words = str(caught.value)
    assert "\n" not in words
    return words


def test_an_unreachable_scheduler_is_one_line_in_bounded_time(tmp_path):
    path = write(records(), tmp_path / "visits")
    began = time.monotonic()
    words = refusal(DaskSource(path=path, scheduler="tcp://127.0.0.1:9", timeout=1))
    assert "no dask scheduler answers at tcp://127.0.0.1:9 within 1 seconds; start one there" in words
    assert time.monotonic() - began < 15


def test_a_cluster_without_workers_is_one_line_in_bounded_time(tmp_path):
    path = write(records(), tmp_path / "visits")
    with LocalCluster(n_workers=0, dashboard_address=":0") as empty:
        assert "no worker" in refusal(DaskSource(path=path, scheduler=empty.scheduler_address, timeout=1))


def test_bad_tables_are_refused_as_they_are_pinned(where, tmp_path):
    """A column that is missing, one of a type without codes, a key of floats, no file: said before a row is read."""
    frame = records(30)

    def of(table):
        return DaskSource(data=dd.from_pandas(table, npartitions=2))

    assert "the dask data frame has no column 'age'; names are" in refusal(of(frame.drop(columns="age")))
    assert "floats" in refusal(of(frame), reading(person="age"))
    nested = frame.assign(town=pd.Series([{"a": 1}] * 30, dtype=pd.ArrowDtype(pa.struct([("a", pa.int64())]))))
    assert "nested" in refusal(of(nested))
    assert "no Parquet file" in refusal(DaskSource(path=str(tmp_path / "nowhere")))
    secret = refusal(DaskSource(path="memory://me:hidden@host/x?Signature=hidden"))
    assert "memory://host/x" in secret and "hidden" not in secret
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no")
    assert "cannot be read" in refusal(DaskSource(path=str(tmp_path / "broken.parquet")))


def test_files_that_change_while_pinned_are_refused(tmp_path):
    """One more file between two sums."""
    path = write(records(), tmp_path / "visits")
    with DaskSource(path=path).pinned(reading()) as pinned:
        pinned.reduce(ALL)
        write(records(), tmp_path / "visits", parts=4)
        with pytest.raises(SourceRefused, match="changed while"):
            pinned.reduce(ALL)


def test_workers_of_another_version_are_refused(cluster, monkeypatch, tmp_path):
    """First as a source is pinned; one that comes later, by its own work."""
    path = write(records(), tmp_path / "visits")
    with Client(cluster) as client:
        monkeypatch.setattr("dpgm_dask.source.__version__", "9.9")
        words = refusal(DaskSource(path=path))
        assert "dpgm-core is 9.9 here" in words and "on dask's workers" in words
        monkeypatch.undo()
        with DaskSource(path=path).pinned(reading()) as pinned:
            client.run(be_version, "9.9")
            try:
                with pytest.raises(SourceRefused, match=r"9\.9 where the rows are"):
                    pinned.reduce(ALL)
            finally:
                client.run(be_version, None)


def be_version(version):
    module = sys.modules["dpgm_core.sources.engines"]
    module.__version__ = version or sys.modules["dpgm_core"].__version__


@pytest.mark.parametrize(
    "options",
    [{}, {"path": "x", "data": "y"}, {"data": records(3)}]
    + [{"path": "x", "timeout": value} for value in (0, float("nan"), float("inf"), True, "1", 10**400)],
    ids=lambda options: str(list(options)),
)
def test_wrong_options_are_refused(options):
    """Neither or both of data and path, a frame of pandas, no time at all or more than clocks have."""
    with pytest.raises(DataError):
        DaskSource(**options)


def test_neither_password_nor_signature_of_a_url_is_shown():
    """By repr, as in a debugger or a log of the owner's."""
    shown = repr(DaskSource(path="s3://key:pl4nted@bucket/visits?sig=pl4nted"))
    assert "s3://bucket/visits" in shown and "pl4nted" not in shown


def test_a_person_key_may_be_an_attribute(tmp_path):
    """In files as in frames: its column is read once."""
    rows = records(60)
    rows.to_parquet(tmp_path / "rows.parquet")
    spec = reading(person="town", rows_per_person=3)
    for source in (DaskSource(path=str(tmp_path)), DaskSource(data=dd.from_pandas(rows, npartitions=3))):
        np.testing.assert_array_equal(total(source, spec), expected(rows, spec))


def test_keys_of_folders_are_columns(where, tmp_path):
    """As `town=A/visits=2`, of which one is null; a file in a folder of other keys is refused."""
    frame = records(120).assign(town=["A", "B", None] * 40, visits=[0, 1, 2, 3] * 30)
    for (town, visits), rows in frame.groupby(["town", "visits"], dropna=False):
        name = "__HIVE_DEFAULT_PARTITION__" if pd.isna(town) else town
        folder = tmp_path / f"table/town={name}/visits={visits}"
        folder.mkdir(parents=True)
        pq.write_table(pa.Table.from_pandas(rows[["age", "person"]], preserve_index=False), folder / "0.parquet")
    source = DaskSource(path=str(tmp_path / "table"))
    for spec in ASKED:
        np.testing.assert_array_equal(total(source, spec), expected(frame, spec))
    pq.write_table(pa.table({"age": [1.0]}), tmp_path / "table/stray.parquet")
    assert "folders of different keys" in refusal(source)


def test_each_file_is_read_by_its_own_types(where, tmp_path):
    """Whole numbers in one file, texts that are none in another, dictionaries in a third: as in columns of objects."""
    towns = (pa.array([1, 2]), pa.array(["A", "no number"]), pa.array(["B", None]).dictionary_encode())
    for number, town in enumerate(towns):
        table = pa.table({"town": town, "age": [3.0, 70.0], "visits": [1, 2]})
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=1)
    together = pa.table({"town": ["1", "2", "A", "no number", "B", None], "age": [3.0, 70.0] * 3, "visits": [1, 2] * 3})
    whole = embedded(together, reading(), ALL)
    np.testing.assert_array_equal(total(DaskSource(path=str(tmp_path)), reading()), whole)


@pytest.mark.parametrize("rows", [0, 1])
def test_the_types_of_a_file_are_checked_whether_or_not_it_has_a_row(rows, tmp_path):
    """Keys of floats in the second of two files: nothing but the types may decide, as with core's own reader."""
    for number, (count, key) in enumerate(((2, pa.string()), (rows, pa.float64()))):
        table = pa.table({"town": ["A"] * count, "age": [3.0] * count, "visits": [1] * count, "who": ["1"] * count})
        schema = pa.schema([("town", pa.string()), ("age", pa.float64()), ("visits", pa.int64()), ("who", key)])
        pq.write_table(table.cast(schema), tmp_path / f"{number}.parquet")
    with pytest.raises(SourceRefused, match="a column of floats"):
        total(DaskSource(path=str(tmp_path)), reading(person="who"))
