"""Folders of Parquet files: their rows, their folders' keys as columns, and what is refused before a record is read."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpgm.validation import validate
from dpgm_core.counting.table_counts import count
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError
from dpgm_core.sources import as_source, parquet
from dpgm_core.sources.parquet import ParquetSource
from dpgm_core.sources.persons import by_person
from dpgm_core.structure.structure import Structure

DOMAIN = Domain(
    [
        Attribute.of_labels("sex", ["F", "M"], unknown="?"),
        Attribute.of_bins("year", [2018, 2020, 2022], unknown="?", null="none"),
        Attribute.of_labels("state", ["a b", "c"], unknown="?", null="none"),
    ]
)


def write(path: Path, **columns: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four files in folders of two keys, one of them null, besides what is no data."""
    table = tmp_path / "table"
    write(table / "year=2019" / "state=a%20b" / "part-0.parquet", sex=["F", "M"], id=["1", "2"])
    write(table / "year=2021" / "state=c" / "part-0.parquet", id=pa.array([1, 3]), sex=["M", "X"])
    write(table / "year=2021" / "state=c" / "part-1.parquet", sex=pa.array(["F"]).dictionary_encode(), id=["2"])
    write(table / "year=__HIVE_DEFAULT_PARTITION__" / "state=c" / "part-0.parquet", sex=["F"], id=["9"])
    write(table / "_temporary" / "part-0.parquet", broken=["F"])
    (table / "_SUCCESS").touch()
    (table / "year=2019" / ".part-0.parquet.crc").touch()
    return table


def rows(data: object, domain: Domain = DOMAIN) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for codes in as_source(data).batches(domain, domain.names):
        found += zip(*(part.tolist() for part in codes), strict=True)
    return found


EXPECTED = [(0, 0, 0), (1, 0, 0), (1, 1, 1), (2, 1, 1), (0, 1, 1), (0, 3, 1)]


def test_keys_of_folders_are_columns(folder: Path) -> None:
    """In the order of the names; a null is null, a blank may be spelled out, and bins cut the keys' numbers."""
    assert rows(folder) == rows(f"{folder}/") == rows({"source": "parquet", "path": str(folder)}) == EXPECTED
    assert as_source(folder).names() == ("sex", "id", "year", "state")
    keys = [key.to_pylist() for _, key in ParquetSource(path=folder).keyed_batches(DOMAIN, ["sex"], "id")]
    assert keys == [["1", "2"], [1, 3], ["2"], ["9"]]
    keys = [key.to_pylist() for _, key in ParquetSource(path=folder).keyed_batches(DOMAIN, ["sex"], "state")]
    assert keys[:2] == [["a b"] * 2, ["c"] * 2]


def test_what_is_asked_for_may_be_in_the_folders_alone(folder: Path) -> None:
    """Each row counts."""
    assert count(as_source(folder), Structure(DOMAIN, [("state",)])).tables[("state",)].tolist() == [2, 4, 0, 0]


def test_a_pattern_names_files_or_folders(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of the folders it goes through count as well."""
    assert rows(ParquetSource(path=folder / "year=202*")) == EXPECTED[2:5]
    assert rows(folder / "**" / "part-1.parquet") == EXPECTED[4:5]
    monkeypatch.chdir(tmp_path)
    assert rows("tab*/year=2019/*/*.parquet") == EXPECTED[:2]


def test_persons_are_found_across_files_and_types(folder: Path) -> None:
    """1 and "1" are one person."""
    kept = by_person(as_source(folder), "id", 1)
    assert sum(len(codes[0]) for codes in kept.batches(DOMAIN, ["sex"])) == 4


def test_rows_do_not_depend_on_how_they_are_cut_into_files(tmp_path: Path) -> None:
    """One file, many files, small row groups."""
    draw = np.random.default_rng(0)
    table = pa.table({name: draw.integers(0, 3, 1000) for name in "ab"})
    structure = Structure(Domain.from_sizes({"a": 3, "b": 3}), [("a", "b")])
    (tmp_path / "many").mkdir()
    pq.write_table(table, tmp_path / "one.parquet")
    for number in range(7):
        pq.write_table(table.slice(150 * number, 150), tmp_path / "many" / f"{number}.parquet", row_group_size=11)
    one, many = (count(as_source(tmp_path / name), structure).tables.values for name in ("one.parquet", "many"))
    assert one.tolist() == many.tolist() and one.sum() == 1000


def test_large_row_groups_are_read_by_and_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is decoded is held whole where it is small alone; the rows are the same."""
    draw = np.random.default_rng(0)
    write(tmp_path / "x.parquet", a=draw.integers(0, 200, 2**20, np.uint8), b=draw.integers(0, 9, 2**20, np.uint8))
    sizes = Domain.from_sizes({"a": 200, "b": 9})
    opened: list[int] = []
    usual = pq.ParquetFile

    def spied(*given: object, **options: int) -> object:
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


def test_only_the_columns_asked_for_are_read(tmp_path: Path) -> None:
    """A damaged column that nobody asked for is no obstacle; one that is asked for is one sentence."""
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


def test_a_file_that_lacks_a_column_is_named_before_any_record(folder: Path, visits: SimpleNamespace) -> None:
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
def test_folders_that_are_no_table(tmp_path: Path, files: dict[str, object], said: str) -> None:
    """One sentence each, before any batch."""
    for name, columns in files.items():
        path = tmp_path / name
        if columns:
            write(path, **columns)  # type: ignore[arg-type]
        else:
            path.write_bytes(b"no Parquet")
    with pytest.raises(DataError, match=said):
        as_source(tmp_path).batches(DOMAIN, ["sex"])


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """Missing folders and patterns that name nothing."""
    with pytest.raises(DataError, match="No such file"):
        ParquetSource(path=tmp_path / "no").names()
    with pytest.raises(DataError, match="holds no Parquet file"):
        ParquetSource(path=tmp_path / "no*.parquet").names()


def test_validate_checks_all_files_of_a_folder(folder: Path) -> None:
    """As one table."""
    report = validate(folder, DOMAIN)
    assert report.records == 6 and [column.unknown for column in report.columns] == [1, 0, 0]
