"""A file is what it says it is; a table of records is synthetic by its stamp alone, and counted over given labels."""

import json

import pyarrow as pa
import pyarrow.parquet
import pytest

import dpgm_core as dpgm
from app.tests.made import model_of
from dpgm.cli import main
from dpgm.comparison import Synthetic, compare, read_subject
from dpgm.comparison.subjects import ModelSide, subject_of
from dpgm_core import DataError, Model, ModelFileError, NoisyTables

STAMP = {"dpgm": "0.2", "guarantee": "epsilon = 1", "synthetic": True, "private": True, "cost": {"epsilon": "1"}}


def test_each_kind_is_told(folder):
    """By what the file holds, and of records by the stamp."""
    assert isinstance(read_subject(folder / "m.dpgm"), Model)
    assert isinstance(read_subject(folder / "m.release.dpgm"), NoisyTables)
    assert isinstance(read_subject(folder / "s.parquet"), Synthetic)
    with pytest.raises(ModelFileError, match="there is no file"):
        read_subject(folder / "none.dpgm")
    with pytest.raises(DataError, match="there is no file"):
        read_subject(folder / "none.csv")


@pytest.mark.parametrize(
    ("stamp", "words"),
    [
        (None, "it may hold records of people"),
        ({**STAMP, "synthetic": False}, "it may hold records of people"),
        ({**STAMP, "synthetic": "yes"}, "it may hold records of people"),
        ({**STAMP, "guarantee": 1}, "it may hold records of people"),
        ({**STAMP, "completed": True}, "rows of people that dpgm complete filled in"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_records_without_a_stamp_are_refused(tmp_path, stamp, words, suffix):
    """Beside a CSV file, in the metadata of a Parquet file; the records are not read."""
    path = tmp_path / f"x{suffix}"
    if suffix == ".csv":
        path.write_bytes(b"\xff\xff")
        if stamp is not None:
            (tmp_path / "x.csv.dpgm.json").write_text(json.dumps(stamp))
    else:
        told = {} if stamp is None else {"dpgm": json.dumps(stamp)}
        pyarrow.parquet.write_table(pa.table({"a": ["x"]}).replace_schema_metadata(told), path)
    with pytest.raises(DataError, match=words):
        read_subject(path)


@pytest.mark.parametrize(
    ("stamp", "caveat"),
    [
        ({}, None),
        ({"private": False}, "NOT PRIVATE"),
        ({"private": "yes"}, "NOT PRIVATE"),
        ({"private": None}, "nothing is known"),
        ({"unsafe": "textbook noise"}, "UNSAFE: textbook noise"),
        ({"conditions": ["It is CONDITIONAL on N.", 3]}, "CONDITIONAL"),
        ({"cost": {"epsilon": []}, "provenance": {"learner": {"name": 3}}}, None),
    ],
)
def test_what_a_stamp_says_is_repeated(tmp_path, stamp, caveat):
    """Its caveats go with all that is computed from the records; what makes no sense is left out."""
    (tmp_path / "x.csv").write_text("a\nx\n")
    (tmp_path / "x.csv.dpgm.json").write_text(json.dumps(STAMP | stamp))
    found = subject_of("x", read_subject(tmp_path / "x.csv"))
    assert bool(found.caveats) is (caveat is not None)
    assert caveat is None or caveat in found.caveats[0]
    assert found.facts["cost"] == (None if "cost" in stamp else "epsilon = 1") and found.facts["learner"] is None


def test_drawn_records_are_held_against_the_model(folder, people):
    """Those of its own are within their errors; those of another are not. Both formats are the same records."""
    found = compare(folder / "m.dpgm", folder / "s.parquet", folder / "s.arrow")
    assert [one.kind for one in found.subjects] == ["model", "synthetic", "synthetic"]
    assert found.subjects[1].facts["records"] == 2000 and found.subjects[1].facts["cost"] == "epsilon = 2"
    parquet, arrow = (pair.to_dict()["differences"] for pair in found.pairs)
    assert parquet == arrow
    assert max(one["score"] for one in parquet) < 3
    away = compare(folder / "s.parquet", model_of(people, seed=4)).pairs[0]
    assert max(one.score for one in away.differences) > 5
    both = compare(folder / "s.parquet", folder / "s.arrow", domain=people).pairs[0]
    assert all(one.total_variation == 0 and one.score == 0 for one in both.differences)


def test_a_csv_file_is_read_as_it_was_written(tmp_path, fitted):
    """Quotes where labels need them; values that are no label count as the unknown one; other columns are named."""
    domain = dpgm.Domain.from_dict({"a": ['x,"y', "z"], "b": ["0", "1"]})
    model = model_of(domain)
    model.save(tmp_path / "m.dpgm")
    main(["sample", str(tmp_path / "m.dpgm"), "-n", "500", "--seed", "1", "-o", str(tmp_path / "s.csv")])
    found = compare(tmp_path / "m.dpgm", tmp_path / "s.csv")
    assert found.subjects[1].facts["records"] == 500
    assert max(one.score for one in found.pairs[0].differences) < 3
    text = (tmp_path / "s.csv").read_text().replace('"b"', '"c"')
    (tmp_path / "s.csv").write_text(text)
    assert compare(tmp_path / "m.dpgm", tmp_path / "s.csv").pairs[0].matching.only_first == ("b",)
    (tmp_path / "s.csv").write_text(text.replace(",", ";"))
    assert compare(tmp_path / "m.dpgm", tmp_path / "s.csv").pairs[0].matching.only_first == ("b",)
    (tmp_path / "s.csv").write_text(text.replace(",", ":"))
    with pytest.raises(DataError, match="say how it is written: --dialect"):
        compare(tmp_path / "m.dpgm", tmp_path / "s.csv")


def test_a_models_errors_are_those_of_its_intervals(fitted):
    """Of tables in any order, asked at once."""
    cliques = [("job", "sex"), ("age",), ("sex", "age")]
    for names, error in zip(cliques, ModelSide(model=fitted[0]).errors(cliques), strict=True):
        assert error == pytest.approx(fitted[0].intervals(names).standard_error)
