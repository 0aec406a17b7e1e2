"""Files of samples are named as the data, whatever a model file claims of them."""

from pathlib import Path

import numpy as np
import pytest

import dpgm
from app.tests.made import uniform
from dpgm.related import answering, by_table, data_files, file_names, refuse_related, unanswered
from dpgm_core.errors import OptionError

RELATED = dpgm.Related(
    root=dpgm.Domain.from_sizes({"own": 2}), children=dpgm.Domain.from_sizes({"age": 3}), key="id", max_children=2
)


@pytest.mark.parametrize(
    ("stated", "names"),
    [
        (["homes.csv", "people.csv"], ("homes.csv", "people.csv")),
        (["homes.csv.gz", "people.csv.gz"], ("homes.csv.gz", "people.csv.gz")),
        (["homes.parquet", "people.csv"], ("homes.csv", "people.csv")),
        (["homes.tsv", "people.tsv"], ("homes.csv", "people.csv")),
        (["../../homes.csv", "/etc/people.csv"], ("homes.csv", "people.csv")),
        (["data.csv", "data.parquet"], ("root.csv", "children.csv")),
        (["..", "people.csv"], ("root.csv", "children.csv")),
        (["a\nb.csv", "people.csv"], ("root.csv", "children.csv")),
        (["homes*.csv", "people*.csv"], ("root.csv", "children.csv")),
        (["homes.csv"], ("root.csv", "children.csv")),
        ([1, None], ("root.csv", "children.csv")),
        ("homes.csv", ("root.csv", "children.csv")),
        (None, ("root.csv", "children.csv")),
    ],
)
def test_names_of_files(stated, names):
    """They stay in the folder, differ, and end in what can be written."""
    assert file_names(uniform({"a": 2}).noted((), files=stated)) == names


def test_what_a_model_is_told_of_its_data():
    """Names without folders and without what is secret in a URL; nothing of data without a file."""
    two = {"root": Path("/secret/homes.csv"), "children": {"source": "csv", "path": "x/people.csv", "delimiter": ";"}}
    assert data_files(two) == {"files": ["homes.csv", "people.csv"]}
    assert data_files({"root": "s3://bucket/homes.parquet", "children": "y.csv"})["files"] == ["homes.parquet", "y.csv"]
    assert data_files({"root": {"source": "sql", "table": "homes"}, "children": "y.csv"}) == {}


def test_models_of_one_table_answer_themselves():
    model = uniform({"a": 2})
    assert answering(model) is model and unanswered(model) == ()
    refuse_related(model, "a mean is")


def test_models_of_two_tables_answer_about_both():
    """A column that is told of the first child alone has no answer."""
    structure = dpgm.Structure(RELATED.pair, [("own", "size"), ("size", "first.age")])
    terms = dpgm.Terms(neighbours="add-remove", related=RELATED)
    homes, persons = {"id": np.array([1, 2]), "own": np.array([0, 1])}, {"id": np.array([2]), "age": np.array([1])}
    model = dpgm.fit({"root": homes, "children": persons}, structure, dpgm.Budget.pure(1), terms=terms).model
    assert answering(model).domain.names == ("own", "size") and unanswered(model) == ("age",)
    assert by_table(RELATED, ["own", "age", "size"]) == (["own", "size"], ["age"])
    with pytest.raises(OptionError, match="a mean is of one table"):
        refuse_related(model, "a mean is")
