"""One table, every way in and the files of other programs: the codes do not depend on format, types or batches."""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpgm_core as dpgm
from dpgm.validation import validate
from dpgm_core import Attribute, Component, DataError, Domain, DpgmError, Registry
from dpgm_core.sources import as_source
from dpgm_core.sources.arrow import ArrowIpcSource
from dpgm_core.sources.codes import CodesSource
from dpgm_core.sources.csv import CsvSource
from dpgm_core.sources.parquet import ParquetSource
from dpgm_core.sources.persons import PersonSource

NAMES = ("town", "age", "visits", "coded")  # of visits.domain


def test_every_way_in_gives_the_reference_codes(way, tmp_path, visits):
    table = visits.table()
    assert visits.codes(as_source(way(table, tmp_path))) == visits.expected(table)


NONE = [np.zeros((3, 4)), np.zeros((3, 4), bool), np.full((3, 4), "SECRET", object)]
NONE += [np.zeros(3, int), np.zeros((3, 5), int), {}, {1: np.zeros(3, int)}, dict.fromkeys(NAMES, np.array(["SECRET"]))]
NONE += [{name: np.zeros(number, int) for number, name in enumerate(NAMES)}, "x.txt", "x", Path("SECRET.gz")]
NONE += [dict.fromkeys(NAMES, np.array([1.0])), None, 7, [1, 2], object(), CsvSource]


@pytest.mark.parametrize("data", NONE, ids=lambda data: type(data).__name__)
def test_what_cannot_hold_records_is_refused(data, visits):
    assert visits.domain.names == NAMES
    with pytest.raises(DataError) as caught:
        visits.codes(as_source(data))
    assert "SECRET" not in str(caught.value).replace("SECRET.gz", "")


def test_a_table_names_a_source_as_in_a_spec_file(tmp_path, visits):
    """With its options; in `fit`, `check`, `validate` and `evaluate` alike, as all of them ask `as_source`."""
    table = visits.table(rows=50)
    path = visits.keyed_ways["csv"](table, tmp_path)
    path.write_bytes(path.read_bytes().replace(b",", b";"))
    source = as_source({"source": "csv", "path": path, "delimiter": ";"})
    assert isinstance(source, CsvSource) and visits.codes(source) == visits.expected(table)
    by_name = {"source": np.array([0, 1]), "path": np.array([1, 1])}  # attributes of such names, as codes
    assert isinstance(as_source(by_name), CodesSource)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            {"path": "x.csv"},
            r"^records given as a mapping with texts in it need a source, as in \{'source': 'csv', 'path'",
        ),
        ({"name": "csv", "path": "x.csv"}, "need a source"),
        ({"source": 3, "path": "x.csv"}, "need a source"),
        ({"source": "cvs", "path": "x.csv"}, "there is no source 'cvs'; did you mean 'csv'"),
        ({"source": "csv"}, "source 'csv' needs option 'path'"),
        ({"source": "csv", "path": "x.csv", "delimeter": ";"}, "no option 'delimeter'; did you mean 'delimiter'"),
        ("x.tsv", r'name the source, as in a spec\'s data = \{ source = "csv", path = "...", delimiter = "\\t" \}$'),
        ("x.xlsx", "read it with pandas.read_excel in Python and give the data frame in place of the path$"),
        ("x.sav", "pandas.read_spss"),
        ("x.sas7bdat", "pandas.read_sas"),
        ("x.dta", "pandas.read_stata"),
        ("x.duckdb", r'if it is a database, name the source and the table, as in .* \{ source = "sql", database'),
        ("duckdb:///x.parquet", r"^the address of a database is no file of records; name the source and the table"),
        ("postgresql://example.org/clinic", r"^the address of a database .*pip install dpgm-sql$"),
    ],
)
def test_what_names_no_source_is_told_what_would(data, said):
    with pytest.raises(DpgmError, match=said):
        as_source(data)


def test_pandas_reads_what_it_is_said_to_read():
    """The functions that messages and documentation name."""
    pandas = pytest.importorskip("pandas")
    for name in ("read_excel", "read_spss", "read_sas", "read_stata"):
        assert callable(vars(pandas)[name])


def test_sources_are_told_by_the_name_of_the_file():
    kinds = {"a.CSV": CsvSource, "a.csv.gz": CsvSource, "a.parquet": ParquetSource, "a.ipc": ArrowIpcSource}
    for name, kind in kinds.items():
        source = as_source(name)
        assert isinstance(source, kind) and as_source(source) is source


def test_memory_does_not_grow_with_the_file():
    """Reading a Parquet file of 64 MB of texts in one row group holds a few batches of it at a time."""
    rows = 2_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.parquet"
        column = pa.array([f"{i:032d}" for i in range(1000)]).take(pa.array(np.arange(rows) % 1000))
        pq.write_table(pa.table({"a": column}), path, row_group_size=rows, use_dictionary=False)
        del column
        before = pa.total_allocated_bytes()
        domain = Domain([Attribute.of_labels("a", [f"{5:032d}"], unknown="?")])
        peak = seen = 0
        for batch in ParquetSource(path=path).batches(domain, ["a"]):
            seen += len(batch[0])
            peak = max(peak, pa.total_allocated_bytes() - before)
    assert seen == rows
    assert peak < 32e6


class Taken:
    """A frame of some engine, which would hand out a stream of all of its rows, too."""

    def __arrow_c_stream__(self, requested_schema=None):
        raise AssertionError


@attrs.frozen(kw_only=True)
class Takes:
    """A source that sums where the rows are."""

    data: Any

    def pinned(self, reading: Any) -> Any:
        raise AssertionError


def test_an_engines_frame_finds_its_source_before_its_rows_are_fetched(monkeypatch):
    """By `Component.takes`; a reducing source is taken as it is, and one by name is made."""
    registry = Registry()
    own = Component(kind="source", name="mine", target="a:B", summary="s", takes=(f"{__name__}:Taken",))
    registry.add(own, Takes)
    monkeypatch.setattr("dpgm_core.components.registry.default_registry", lambda: registry)
    frame = Taken()
    assert as_source(frame) == Takes(data=frame)
    assert as_source({"source": "mine", "data": "x"}) == Takes(data="x")
    source = Takes(data=3)
    assert as_source(source) is source
    assert isinstance(as_source({"a": [0]}), CodesSource)


def test_what_reads_rows_says_so_of_a_source_that_hands_out_none():
    """One line, before anything is asked of the source."""
    with pytest.raises(
        DataError, match=r"^validating reads rows, and source Takes hands out none.*as a file or a data"
    ):
        validate(Takes(data=3), Domain.from_sizes({"a": 2}))
    with pytest.raises(DataError, match=r"source Takes cannot read a person key"):
        PersonSource(source=Takes(data=3), person="id")


def test_codes_ways_in_agree(visits):
    """A 2-d array in either layout, a mapping, and every integer type: codes outside the labels are unknown."""
    rng = np.random.default_rng(0)
    raw = rng.integers(-2, 7, size=(300, 4))
    wanted = Counter(
        tuple(int(code) if 0 <= code < a.size else a.unknown for code, a in zip(row, visits.domain, strict=True))
        for row in raw
    )
    assert visits.codes(as_source(raw)) == visits.codes(as_source(np.asfortranarray(raw.astype(np.int8)))) == wanted
    assert visits.codes(as_source({name: raw[:, i] for i, name in enumerate(visits.domain.names)})) == wanted


pandas = pytest.importorskip("pandas")
ROWS = {"smoker": ["no", "yes", "yes", "no"], "age": [31, 47, 18, 64]}
PAGE = (Path(__file__).resolve().parents[2] / "docs/my-csv.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("reader", "file", "needs"),
    [("read_excel", "a.xlsx", "openpyxl"), ("read_spss", "a.sav", "pyreadstat"), ("read_stata", "a.dta", None)],
)
def test_a_file_of_another_program_has_the_codes_of_the_frame(reader, file, needs, tmp_path, monkeypatch):
    """Written by that program's library, read by the page's line: the codes are those of the rows themselves."""
    monkeypatch.chdir(tmp_path)
    writer = pytest.importorskip(needs) if needs else None
    frame = pandas.DataFrame(ROWS)
    if needs == "pyreadstat":
        writer.write_sav(frame, file)
    elif needs == "openpyxl":
        frame.to_excel(file, index=False)
    else:
        frame.to_stata(file, write_index=False)
    assert f'`frame = pandas.{reader}("{file}")`' in PAGE
    bins = {"type": "number", "bins": [0, 20, 40, 65]}
    attributes = {"smoker": {"labels": ["no", "yes"], "unknown": "no"}, "age": {"unknown": "0-20", **bins}}
    domain = dpgm.Domain.from_dict({"attributes": attributes})
    ((smoker, age),) = as_source(getattr(pandas, reader)(file)).batches(domain, domain.names)
    assert np.array_equal(smoker, [0, 1, 1, 0])
    assert np.array_equal(age, [1, 2, 0, 2])
