"""Folders of Parquet files: which files, in which order, their keys, what is refused, and streams in threads."""

import asyncio
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpgm.validation import validate
from dpgm_core import Attribute, DataError, Domain, Structure
from dpgm_core._util.locations import Url
from dpgm_core.counting.rows import by_person
from dpgm_core.counting.table_counts import count
from dpgm_core.sources import as_source, parquet
from dpgm_core.sources.parquet import ParquetSource, in_lanes, parts_of
from dpgm_core.sources.reading import attempt

DOMAIN = Domain(
    [
        Attribute.of_labels("sex", ["F", "M"], unknown="?"),
        Attribute.of_bins("year", [2018, 2020, 2022], unknown="?", null="none"),
        Attribute.of_labels("state", ["a b", "c"], unknown="?", null="none"),
    ]
)


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


@pytest.fixture
def folder(tmp_path):
    table = tmp_path / "table"
    write(table / "year=2019" / "state=a%20b" / "part-0.parquet", sex=["F", "M"], id=["1", "2"])
    write(table / "year=2021" / "state=c" / "part-0.parquet", id=pa.array([1, 3]), sex=["M", "X"])
    write(table / "year=2021" / "state=c" / "part-1.parquet", sex=pa.array(["F"]).dictionary_encode(), id=["2"])
    write(table / "year=__HIVE_DEFAULT_PARTITION__" / "state=c" / "part-0.parquet", sex=["F"], id=["9"])
    write(table / "_temporary" / "part-0.parquet", broken=["F"])
    (table / "_SUCCESS").touch()
    (table / "year=2019" / ".part-0.parquet.crc").touch()
    return table


def rows(data, domain=DOMAIN):
    found = []
    for codes in as_source(data).batches(domain, domain.names):
        found += zip(*(part.tolist() for part in codes), strict=True)
    return found


EXPECTED = [(0, 0, 0), (1, 0, 0), (1, 1, 1), (2, 1, 1), (0, 1, 1), (0, 3, 1)]


def test_keys_of_folders_are_columns(folder):
    """In the order of the names; a null is null, a blank may be spelled out, and bins cut the keys' numbers."""
    assert rows(folder) == rows(f"{folder}/") == rows({"source": "parquet", "path": str(folder)}) == EXPECTED
    assert as_source(folder).names() == ("sex", "id", "year", "state")
    keys = [key.to_pylist() for _, key in ParquetSource(path=folder).keyed_batches(DOMAIN, ["sex"], "id")]
    assert keys == [["1", "2"], [1, 3], ["2"], ["9"]]
    keys = [key.to_pylist() for _, key in ParquetSource(path=folder).keyed_batches(DOMAIN, ["sex"], "state")]
    assert keys[:2] == [["a b"] * 2, ["c"] * 2]


def test_a_folder_is_one_table_for_whoever_counts(folder):
    """Columns that are in the folders alone, persons across files and types, and what validate looks at."""
    assert count(as_source(folder), Structure(DOMAIN, [("state",)])).tables[("state",)].tolist() == [2, 4, 0, 0]
    kept = by_person(as_source(folder), "id", 1)
    assert sum(len(codes[0]) for codes in kept.batches(DOMAIN, ["sex"])) == 4
    report = validate(folder, DOMAIN)
    assert report.records == 6 and [column.unknown for column in report.columns] == [1, 0, 0]
    for missing, said in (("no", "No such file"), ("no*.parquet", "holds no Parquet file")):
        with pytest.raises(DataError, match=said):
            ParquetSource(path=folder / missing).names()


def test_a_pattern_names_files_or_folders(folder, tmp_path, monkeypatch):
    assert rows(ParquetSource(path=folder / "year=202*")) == EXPECTED[2:5]
    assert rows(folder / "**" / "part-1.parquet") == EXPECTED[4:5]
    monkeypatch.chdir(tmp_path)
    assert rows("tab*/year=2019/*/*.parquet") == EXPECTED[:2]


def test_rows_do_not_depend_on_how_they_are_cut_into_files(tmp_path):
    draw = np.random.default_rng(0)
    table = pa.table({name: draw.integers(0, 3, 1000) for name in "ab"})
    structure = Structure(Domain.from_sizes({"a": 3, "b": 3}), [("a", "b")])
    (tmp_path / "many").mkdir()
    pq.write_table(table, tmp_path / "one.parquet")
    for number in range(7):
        pq.write_table(table.slice(150 * number, 150), tmp_path / "many" / f"{number}.parquet", row_group_size=11)
    one, many = (count(as_source(tmp_path / name), structure).tables.values for name in ("one.parquet", "many"))
    assert one.tolist() == many.tolist() and one.sum() == 1000


def test_large_row_groups_are_read_by_and_by(tmp_path, monkeypatch):
    """What is decoded is held whole where it is small alone; the rows are the same."""
    draw = np.random.default_rng(0)
    write(tmp_path / "x.parquet", a=draw.integers(0, 200, 2**20, np.uint8), b=draw.integers(0, 9, 2**20, np.uint8))
    sizes = Domain.from_sizes({"a": 200, "b": 9})
    opened = []
    usual = pq.ParquetFile

    def spied(*given, **options):
        opened.append(options["buffer_size"])
        return usual(*given, **options)

    found = []
    monkeypatch.setattr(pq, "ParquetFile", spied)
    for held in (2**25, 2**18):
        monkeypatch.setattr(parquet, "_MAX_GROUP_BYTES", held)
        batches = list(ParquetSource(path=tmp_path / "x.parquet").batches(sizes, ["a", "b"]))
        found.append([np.concatenate([batch[column] for batch in batches]) for column in (0, 1)])
    assert opened[0] == 0 < opened[-1]
    assert np.array_equal(found[0], found[1])


def test_only_the_columns_asked_for_are_read(tmp_path):
    path = tmp_path / "folder" / "x.parquet"
    write(path, a=pa.array([1, 0, 1]), secret=["SECRET0", "SECRET1", "SECRET2"])
    chunk = pq.read_metadata(path).row_group(0).column(1)
    start = chunk.dictionary_page_offset
    content = path.read_bytes()
    size = chunk.total_compressed_size
    path.write_bytes(content[:start] + b"\xff" * size + content[start + size :])
    sizes = Domain.from_sizes({"a": 2})
    assert rows(path.parent, sizes) == [(1,), (0,), (1,)]
    with pytest.raises(DataError) as caught:
        rows(path.parent, Domain([Attribute.of_labels("secret", ["x"], unknown="x")]))
    assert str(caught.value) == f"{path.parent} cannot be read as Parquet"


def test_a_file_that_lacks_a_column_is_named_before_any_record(folder, visits):
    """With its name and the keys of its folders, and without their values, which are records' own."""
    write(folder / "year=SECRET" / "state=c" / "part-7.parquet", id=["1"])
    said = visits.refusal(lambda: ParquetSource(path=folder).batches(DOMAIN, ["sex"]))
    assert said == (
        f"{folder}/year=.../state=.../part-7.parquet has no column 'sex'; for the owner's eyes, dpgm validate shows "
        "those it has"
    )
    write(folder / "year=SECRET" / "state=c" / "part-7.parquet", sex=pa.array([["F"]]))
    assert "nested" in visits.refusal(lambda: ParquetSource(path=folder).batches(DOMAIN, ["sex"]))


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "holds no Parquet file"),
        ({"a.csv": {}}, "holds no Parquet file"),
        ({"year=1/a.parquet": {"sex": ["F"]}, "b.parquet": {"sex": ["F"]}}, r"has the folder keys \['year'\], but .*"),
        ({"year=1/year=2/a.parquet": {"sex": ["F"]}}, "inside each other with the key 'year'"),
        ({"sex=1/a.parquet": {"sex": ["F"]}}, "column 'sex' more than once"),
        ({"a.parquet": {"sex": ["F"]}, "b.parquet": None}, "b.parquet cannot be read as Parquet"),
    ],
)
def test_folders_that_are_no_table(tmp_path, files, said):
    for name, columns in files.items():
        path = tmp_path / name
        if columns:
            write(path, **columns)
        else:
            path.write_bytes(b"no Parquet")
    with pytest.raises(DataError, match=said):
        as_source(tmp_path).batches(DOMAIN, ["sex"])


FILES = ["b=2/x.parquet", "b=1/z.parquet", "b=1/y.PQ", "b=1/.y.parquet", "b=1/notes.txt", "_old/b=3/x.parquet"]
FILES += ["b=a%2Fb/x.parquet", "b=__HIVE_DEFAULT_PARTITION__/x.parquet"]


@pytest.fixture(params=["here", "remote"])
def place(request, tmp_path):
    if request.param == "here":
        for name in FILES:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        yield tmp_path
        return
    memory = pytest.importorskip("fsspec").filesystem("memory")
    for name in FILES:
        memory.pipe(f"/t/{name}", b"")
    yield Url("memory://t")
    memory.store.clear()


def inside(place, name):
    return place / name if isinstance(place, Path) else Url(f"{place}/{name}")


def test_files_stand_in_the_order_of_their_names(place):
    """Hidden ones and other kinds left out; keys without escapes, null for null, and never in what is shown."""
    parts = parts_of(place)
    assert [part.values["b"] for part in parts] == ["1", "1", "2", None, "a/b"]
    names = ["y.PQ", "z.parquet", "x.parquet", "x.parquet", "x.parquet"]
    assert [part.shown for part in parts] == [f"{place}/b=.../{name}" for name in names]


def test_a_pattern_and_a_file(place):
    """A pattern's folders below its plain start have keys; a file that is named is just that file, by its own name."""
    assert [part.values for part in parts_of(inside(place, "b=[12]/[xz].*"))] == [{"b": "1"}, {"b": "2"}]
    assert [part.values for part in parts_of(inside(place, "b=*"))][:3] == [{"b": "1"}, {"b": "1"}, {"b": "2"}]
    (alone,) = parts_of(inside(place, "b=1/z.parquet"))
    assert alone.values == {} and alone.shown == f"{place}/b=1/z.parquet"
    with pytest.raises(DataError, match="holds no Parquet file"):
        parts_of(inside(place, "c=*"))


@pytest.mark.parametrize("lanes", [1, 2, 5])
@pytest.mark.parametrize("ahead", [1, 7, 10**6])
def test_the_order_is_that_of_one_after_the_other(lanes, ahead):
    """Whichever lane is faster, and however little room there is; empty streams included."""
    draw = random.Random(lanes)
    lengths = [draw.randrange(6) for _ in range(25)]

    def stream(number):
        for item in range(lengths[number]):
            time.sleep(draw.random() / 3000)
            yield number, item

    made = in_lanes([lambda n=n: stream(n) for n in range(25)], lambda item: 2, lanes, ahead)
    assert list(made) == [(number, item) for number, length in enumerate(lengths) for item in range(length)]


def test_lanes_wait_where_nobody_takes():
    """What is made and not taken stays within the room, and one item that is being made for each lane."""
    made = []

    def stream(number):
        for item in range(1000):
            made.append(number)
            yield item

    items = in_lanes([lambda n=n: stream(n) for n in range(9)], lambda item: 10, 2, 300)
    next(items)
    time.sleep(0.05)
    assert 3 <= len(made) <= 1 + 300 // 10 + 2
    items.close()


def test_an_item_larger_than_the_room_passes():
    """Alone; else nothing would ever move."""
    assert list(in_lanes([lambda: iter("ab"), lambda: iter("c")], lambda item: 10**9, 2, 8)) == ["a", "b", "c"]


def test_an_error_comes_behind_the_items_before_it():
    """As it would without threads, also where a later stream fails first; and what follows it is not handed out."""

    def failing():
        yield 1
        attempt("it is damaged", lambda: 1 // 0)

    taken = []
    with pytest.raises(DataError, match=r"^it is damaged$"):
        for item in in_lanes([lambda: iter([0]), failing, lambda: iter([2])], lambda item: 1, 2):
            taken.append(item)
    assert taken == [0, 1]


@pytest.mark.parametrize("kind", [SystemExit, asyncio.CancelledError, KeyboardInterrupt])
def test_what_is_no_ordinary_error_ends_the_lane_too(kind):
    """Such as an event loop's cancellation: whoever takes the items gets it, and does not wait for ever."""

    def failing():
        yield 1
        raise kind("it ended")

    caught = []

    def take():
        try:
            list(in_lanes([failing, failing], lambda item: 1, 2))
        except BaseException as error:
            caught.append(error)

    taker = threading.Thread(target=take, daemon=True)
    taker.start()
    taker.join(20)
    assert not taker.is_alive()
    assert [type(error) for error in caught] == [kind]


def test_no_thread_outlives_an_iterator_that_is_dropped():
    """Full lanes end at their next item."""
    before = threading.active_count()
    items = in_lanes([lambda: iter(range(10**9)) for _ in range(4)], lambda item: 1, 3, 30)
    next(items)
    assert threading.active_count() == before + 3
    del items
    assert threading.active_count() == before


def test_an_iterator_that_is_kept_lets_the_interpreter_end():
    """Though its lanes are full and wait."""
    code = (
        "from dpgm_core.sources.parquet import in_lanes\n"
        "kept = in_lanes([lambda: iter(range(10**9)) for _ in range(4)], lambda item: 1, 2, 30)\n"
        "print(next(kept))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "0\n" and not done.stderr


def test_row_groups_in_threads_change_no_code_and_no_order(tmp_path):
    draw = np.random.default_rng(0)
    rows = 2**21
    table = pa.table({"a": draw.integers(0, 250, rows, np.uint8), "b": draw.integers(-1, 3, rows, np.int8)})
    (tmp_path / "t").mkdir()
    pq.write_table(table, tmp_path / "t" / "1.parquet", row_group_size=2**18)
    pq.write_table(table.slice(0, 1000), tmp_path / "t" / "2.parquet")
    domain = Domain.from_sizes({"a": 250, "b": 2})
    batches = list(as_source(tmp_path / "t").batches(domain, ["b", "a"]))
    first, second = (np.concatenate([batch[column] for batch in batches]) for column in (0, 1))
    a, b = (np.concatenate([table[name].to_numpy(), table[name].to_numpy()[:1000]]) for name in "ab")
    assert np.array_equal(second, a) and np.array_equal(first, np.where((b < 0) | (b > 1), 0, b))
