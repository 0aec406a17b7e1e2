"""Descriptions as plain values: how several become one, what is settled, and what is left to do."""

import tomllib
from datetime import date

import pytest

from dpgm_core.domain import Metadata
from dpgm_core.domain.metadata import combine_metadata, complete_metadata
from dpgm_core.errors import DomainError


def one(table):
    return complete_metadata(Metadata(tables={"a": table})).tables["a"]


@pytest.mark.parametrize(
    ("said", "bins"),
    [
        ({"type": "integer", "min": 0, "max": 99}, 100),
        ({"type": "integer", "min": 1, "max": 101}, 32),
        ({"min": 0, "max": 9}, 10),
        ({"min": 0, "max": 9.0}, 32),
        ({"type": "number", "min": 0, "max": 1}, 32),
        ({"type": "integer", "min": 0, "max": 9, "bins": 5}, 5),
        ({"type": "integer", "min": 1, "max": 90, "scale": "log"}, 32),
        ({"type": "date", "min": "2024-01-01", "max": "2024-02-01"}, "day"),
        ({"type": "date", "min": "2019-01-01", "max": "2024-12-31"}, "month"),
        ({"type": "date", "min": "31.12.1900", "max": "31.12.2024", "format": "%d.%m.%Y"}, "year"),
        ({"type": "datetime", "min": "2024-01-01T00:00", "max": "2024-02-01 12:30:00"}, "day"),
        ({"type": "time", "min": "08:00", "max": "18:00"}, 24),
        ({"min": date(1900, 1, 1), "max": date(2024, 1, 1)}, "year"),
    ],
)
def test_a_range_is_cut_by_its_size_and_type(said, bins):
    """One bin for each of at most 100 whole numbers, else 32; dates by their span; what is said stays."""
    found = one(said)
    assert found["bins"] == bins and "todo" not in found
    assert {**found, **said} == found


def test_types_are_those_of_the_ends_where_none_is_declared():
    kinds = [
        one(ends)["type"]
        for ends in ({"min": 0, "max": 9}, {"min": 0.5, "max": 9}, {"min": "2024-01-01", "max": "2024-01-02"})
    ]
    assert kinds == ["integer", "number", "date"]
    assert one({"type": "boolean"}) == {"type": "boolean"}


@pytest.mark.parametrize(
    ("said", "todo"),
    [
        ({}, "labels = [...], or type, min, max and bins"),
        ({"type": "text"}, "say labels = [...]"),
        ({"type": "integer"}, "say min = ... and max = ..."),
        ({"type": "number", "min": 0}, "say max = ..."),
        ({"type": "date"}, "say min = ... and max = ..."),
        ({"type": "number", "min": 1, "max": 1}, "are both 1"),
        ({"type": "integer", "min": 1, "max": 1}, "are both 1"),
        ({"labels": ["a"], "todo": "ask Anna"}, "ask Anna"),
    ],
)
def test_what_is_missing_is_to_do(said, todo):
    assert todo in one(said)["todo"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"type": "integer", "min": 94, "max": 0}, "column 'a': min 94 is above max 0"),
        ({"type": "number", "min": float("nan"), "max": 0}, "min must be a number"),
        ({"type": "number", "min": 0, "max": float("inf")}, "max must be a number"),
        ({"type": "number", "min": True, "max": 5}, "min must be a number"),
        ({"type": "integer", "min": 0, "max": 10**30}, "max must be a number of less than 2\\^63"),
        ({"type": "integer", "min": 0.5, "max": 5}, "not both whole"),
        ({"type": "integer", "min": "2024-01-01", "max": "2024-01-02"}, "type integer, but"),
        ({"type": "date", "min": "2024-02-30", "max": "2024-03-01"}, "is no date; write it as in 2024-01-31"),
        ({"type": "date", "min": "2024-02-03", "max": "2024-02-01"}, "is after max"),
        ({"type": "date", "min": "1", "max": "2", "format": "%d%d"}, "format '%d%d' does not tell a date"),
        ({"type": "date", "min": "1", "max": "2", "format": "%d.%m.%Y"}, "write it in the format '%d.%m.%Y'"),
        ({"type": "integr"}, "no type 'integr'; did you mean 'integer'"),
        ({"labels": ["x", "y", "x"]}, "column 'a' has code 'x' twice"),
        ({"lables": ["x"]}, "column 'a' has no setting 'lables'; did you mean 'labels'"),
        ({"labels": []}, "no label besides its null values"),
        ({"labels": "yes"}, "must be a list of texts"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_that_names_the_column(said, reason):
    with pytest.raises(DomainError, match=reason) as refused:
        one(said)
    assert "'a'" in str(refused.value) and "\n" not in str(refused.value)


def test_a_later_description_overrides_an_earlier_one_key_by_key():
    """Labels drop a range and the other way round, a range drops the bins of another; null values are no labels."""
    below = Metadata(
        tables={
            "a": {"type": "integer", "min": 0, "max": 94, "bins": 95},
            "b": {"labels": ["1", "2"], "missing": "N", "null_values": ["", "N"]},
            "c": {"type": "integer", "todo": "say min"},
            "d": {"type": "number", "min": 0, "max": 9, "bins": 3},
        },
        comments={"a": "age", "b": "sex"},
    )
    above = Metadata(
        tables={
            "a": {"max": 99},
            "b": {"labels": ["N", "1"]},
            "c": {"labels": ["x"]},
            "d": {"labels": ["low", "high"]},
        },
        comments={"b": "gender"},
        meanings={"b": {"1": "male"}},
    )
    found = complete_metadata(combine_metadata([below, above]))
    assert found.tables == {
        "a": {"type": "integer", "min": 0, "max": 99, "bins": 100},
        "b": {"labels": ["1"], "missing": "N", "null_values": ["", "N"]},
        "c": {"type": "integer", "labels": ["x"], "numbers": True},
        "d": {"type": "number", "labels": ["low", "high"], "numbers": True},
    }
    assert found.comments == {"a": "age", "b": "gender"} and found.meanings == {"b": {"1": "male"}}
    back = combine_metadata([Metadata(tables={"b": {"labels": ["1"]}}), Metadata(tables={"b": {"min": 0, "max": 1}})])
    assert back.tables["b"] == {"min": 0, "max": 1}


def test_what_is_to_do_is_named_and_written_down():
    found = complete_metadata(Metadata(tables={"a": {}, "b": {"size": 2}, "c": {"type": "number"}}))
    assert found.todo == ("a", "c")
    assert tomllib.loads(found.to_toml()) == found.to_dict()


@pytest.mark.parametrize("tables", [{}, {"": {}}, {1: {}}, {"a": 3}, [("a", {})]])
def test_metadata_that_are_no_tables_of_columns_are_refused(tables):
    """A name is a text, a column is a table, and there is one at least."""
    with pytest.raises(DomainError):
        Metadata(tables=tables)
