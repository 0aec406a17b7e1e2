"""Drawn records are counted over the labels of a model or a domain."""

import pytest

import dpgm_core as dpgm
from app.tests.comparison.made import model_of
from dpgm.cli import main
from dpgm.comparison import compare
from dpgm.comparison.subjects import ModelSide
from dpgm_core import DataError


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
