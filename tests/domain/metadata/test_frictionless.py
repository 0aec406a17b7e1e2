"""Frictionless table schemas and data packages."""

import pytest

from dpgm_core.domain import read_metadata
from dpgm_core.errors import DomainError


def ends(low, high):
    return {"minimum": low, "maximum": high}


FIELDS: list[dict[str, object]] = [
    {"name": "id", "type": "string"},
    {"name": "sex", "type": "string", "title": "Sex", "constraints": {"enum": ["F", "M", "NA"]}},
    {"name": "age", "type": "integer", "constraints": ends(0, "99"), "description": "In years"},
    {"name": "pay", "type": "number", "decimalChar": ",", "groupChar": ".", "constraints": ends(0, 5e5)},
    {"name": "born", "type": "date", "format": "%d.%m.%Y", "constraints": ends("01.01.1900", "31.12.2024")},
    {"name": "alive", "type": "boolean"},
    {"name": "works", "type": "boolean", "trueValues": ["yes"], "falseValues": ["no"]},
    {"name": "plan", "type": "integer", "categories": [{"value": 1, "label": "Basic"}, {"value": 2, "label": "Full"}]},
    {"name": "ward", "type": "string", "constraints": {"enum": ["1", "2"], "required": True}},
    {"name": "where", "type": "geopoint"},
    {"name": "since", "type": "year", "constraints": ends(1990, 2024), "missingValues": ["-", "?"]},
]  # fmt: skip
SCHEMA = {"fields": FIELDS, "missingValues": ["", "NA"]}


def test_fields():
    """Types, formats, lists, ranges, missing values; what is no column, or says too little, is to do."""
    null = {"missing": "NA", "null_values": ["", "NA"]}
    found = read_metadata(SCHEMA)
    assert dict(found.tables) == {
        "id": {**null, "todo": "say labels = [...], or type, min, max and bins"},
        "sex": {"labels": ["F", "M"], **null},
        "age": {"type": "integer", "min": 0, "max": 99, "bins": 100, **null},
        "pay": {"type": "number", "decimal": ",", "thousands": ".", "min": 0, "max": 5e5, "bins": 32, **null},
        "born": {"type": "date", "format": "%d.%m.%Y", "min": "01.01.1900", "max": "31.12.2024", "bins": "year"}
        | null,
        "alive": {"type": "boolean", **null},
        "works": {"labels": ["no", "yes"], **null},
        "plan": {"type": "integer", "labels": ["1", "2"], "numbers": True, **null},
        "ward": {"labels": ["1", "2"], "null_values": []},
        "where": {"todo": "type 'geopoint' is no column of a table; delete it, or say labels = [...]"},
        "since": {
            "type": "integer", "min": 1990, "max": 2024, "bins": 35, "missing": "missing", "null_values": ["-", "?"],
        },
    }  # fmt: skip
    assert found.comments["sex"] == "Sex" and found.comments["age"] == "In years"
    assert found.meanings["plan"] == {"": "", "NA": "", "1": "Basic", "2": "Full"}


def test_wherever_the_schema_stands():
    alone = read_metadata(SCHEMA)
    assert read_metadata({"schema": SCHEMA}) == alone
    assert read_metadata({"name": "x", "resources": [{"path": "x.csv", "schema": SCHEMA}]}) == alone


@pytest.mark.parametrize(
    ("plain", "reason"),
    [
        ({"fields": []}, "no list of fields"),
        ({"fields": [{"type": "string"}]}, "field 1 has no name"),
        ({"fields": [{"name": "a"}, {"name": "a"}]}, "column 'a' stands twice"),
        ({"fields": [{"name": "a", "type": "strng"}]}, "column 'a' has type 'strng'"),
        ({"fields": [{"name": "a", "constraints": {"enum": "xyz"}}]}, "must be a list"),
        ({"fields": [{"name": "a", "constraints": {"enum": ["x", "x"]}}]}, "code 'x' twice"),
        ({"fields": [{"name": "a", "constraints": [1]}]}, "must be a table"),
        ({"fields": [{"name": "a"}], "missingValues": "NA"}, "missingValues must be a list"),
        ({"fields": [{"name": "a", "type": "integer", "constraints": ends(5, 3)}]}, "min 5 is above max 3"),
        ({"resources": [{}, {}]}, "must have one resource to be one table, this has 2"),
        ({"resources": {}}, "must have one resource"),
        ({"resources": [{"schema": "other.json"}]}, "no schema within the file"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(plain, reason):
    with pytest.raises(DomainError, match=reason) as refused:
        read_metadata(plain)
    assert "\n" not in str(refused.value)
