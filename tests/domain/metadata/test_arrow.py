"""Arrow schemas, Parquet files and data frames: what a value decided never comes out."""

import datetime
import decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpgm_core.domain import read_metadata
from dpgm_core.errors import DataError

PLANTED = "planted-value"


@pytest.fixture
def table():
    """One column of each type, each with a value that must not be seen."""
    return pa.table(
        {
            "flag": [True, False],
            "count": pa.array([271_828, 314_159], pa.int32()),
            "rate": [0.271828, 0.314159],
            "price": [decimal.Decimal("2.71"), decimal.Decimal("3.14")],
            "day": [datetime.date(1871, 3, 14)] * 2,
            "seen": [datetime.datetime(1871, 3, 14, 15)] * 2,
            "at": [datetime.time(15, 9, 26)] * 2,
            "text": [PLANTED, "x"],
            "kind": pa.array([PLANTED, "x"]).dictionary_encode(),
            "several": [[PLANTED], []],
            "nothing": pa.nulls(2),
        },
        metadata={
            "pandas": f'{{"columns": [{{"name": "kind", "metadata": {{"categories": ["{PLANTED}"]}}}}]}}',
            "note": PLANTED,
        },
    )


EXPECTED = {
    "flag": {"type": "boolean"},
    "count": {"type": "integer", "bins": 32, "todo": "say min = ... and max = ..."},
    "rate": {"type": "number", "bins": 32, "todo": "say min = ... and max = ..."},
    "price": {"type": "number", "decimals": 2, "bins": 32, "todo": "say min = ... and max = ..."},
    "day": {"type": "date", "bins": "month", "todo": "say min = ... and max = ..."},
    "seen": {"type": "datetime", "bins": "month", "todo": "say min = ... and max = ..."},
    "at": {"type": "time", "bins": 24},
    "text": {"type": "text", "todo": "say labels = [...]"},
    "nothing": {"todo": "say labels = [...], or type, min, max and bins"},
}


def seen(found):
    return repr(found) + found.to_toml()


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream", "schema", "table", "batches"])
def test_names_and_types_and_nothing_that_a_value_decided(table, tmp_path, form):
    """Statistics in the footer, dictionary pages, key-value metadata, the rows of frames: none of it is told."""
    source = table.schema if form == "schema" else table if form == "table" else tmp_path / f"x.{form}"
    if form == "parquet":
        pq.write_table(table, source)
        footer = pq.read_metadata(source).row_group(0).column(7).statistics
        assert footer.max == "x" and footer.min == PLANTED  # they are there
    if form in ("arrow", "stream"):
        source = tmp_path / "x.arrow"
        with (pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream)(source, table.schema) as writer:
            writer.write(table)
    if form == "batches":
        source = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    found = read_metadata(source)
    assert {name: said for name, said in found.tables.items() if name in EXPECTED} == EXPECTED
    assert "categories are not read" in found.tables["kind"]["todo"]
    assert "no column of a table" in found.tables["several"]["todo"]
    for value in (PLANTED, "271828", "314159", "1871", "15:09", "2.71", "0.27"):
        assert value not in seen(found)


def test_categories_only_where_the_schema_is_said_to_be_public(table, tmp_path):
    """Of Arrow files and frames; Parquet has them among its records, where they are not read even then."""
    path = tmp_path / "x.arrow"
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write(table)
    for source in (path, table):
        found = read_metadata(source, schema_is_public=True)
        assert found.tables["kind"] == {"type": "text", "labels": [PLANTED, "x"]}
        assert "kind" not in found.todo and "text" in found.todo
    pq.write_table(table, tmp_path / "x.parquet")
    found = read_metadata(tmp_path / "x.parquet", schema_is_public=True)
    assert "among its records" in found.tables["kind"]["todo"] and PLANTED not in seen(found)


def test_a_folder_of_parquet_files_gives_its_keys_and_not_their_values(table, tmp_path):
    inner = tmp_path / "x" / f"town={PLANTED}"
    inner.mkdir(parents=True)
    with pytest.raises(DataError, match="holds no Parquet file"):
        read_metadata(tmp_path / "x")
    (inner / "_part.parquet").write_text(PLANTED)
    pq.write_table(table, inner / "part.parquet")
    found = read_metadata(tmp_path / "x")
    assert list(found.tables) == [*table.column_names, "town"] and "town" in found.todo
    assert PLANTED not in seen(found)
    (inner / "a.parquet").write_text(PLANTED)
    with pytest.raises(DataError, match="x cannot be read as Parquet") as refused:
        read_metadata(tmp_path / "x")
    assert PLANTED not in str(refused.value)


def test_two_columns_of_a_name_are_refused():
    with pytest.raises(DataError, match="two columns 'a'"):
        read_metadata(pa.schema([("a", pa.int8()), ("a", pa.string())]))


def test_pandas(tmp_path):
    """A type of objects is not guessed from them; categories are the values that occur, unless said otherwise."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "n": [271_828],
            "o": pd.Series([271_828], dtype=object),
            "c": pd.Categorical([PLANTED], categories=[PLANTED, "x"]),
            "b": [True],
        }
    )
    found = read_metadata(frame)
    assert found.tables["n"]["type"] == "integer" and "type" not in found.tables["o"]
    assert found.todo == ("n", "o", "c") and PLANTED not in seen(found) and "271828" not in seen(found)
    assert read_metadata(frame, schema_is_public=True).tables["c"]["labels"] == [PLANTED, "x"]
    frame.to_parquet(tmp_path / "x.parquet")
    for public in (False, True):
        assert PLANTED not in seen(read_metadata(tmp_path / "x.parquet", schema_is_public=public))


def test_polars():
    """An Enum lists its values, a Categorical keeps those of other columns too, so it is never taken."""
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {"e": [PLANTED], "c": [PLANTED], "n": [1]},
        schema={"e": pl.Enum([PLANTED, "x"]), "c": pl.Categorical, "n": pl.Int8},
    )
    found = read_metadata(frame)
    assert found.todo == ("e", "c", "n") and PLANTED not in seen(found)
    public = read_metadata(frame, schema_is_public=True)
    assert public.tables["e"]["labels"] == [PLANTED, "x"] and public.todo == ("c", "n")


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow"])
def test_files_that_are_something_else_are_refused_unquoted(tmp_path, name):
    with pytest.raises(DataError, match="no such file"):
        read_metadata(tmp_path / name)
    (tmp_path / name).write_text(PLANTED * 100)
    with pytest.raises(DataError, match="cannot be read as") as refused:
        read_metadata(tmp_path / name)
    assert PLANTED not in repr(refused.value) and refused.value.__context__ is None
