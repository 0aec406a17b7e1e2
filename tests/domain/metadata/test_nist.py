"""NIST's schemas and data dictionaries, on a made-up table."""

import pytest

from dpgm_core.domain import read_metadata
from dpgm_core.errors import DomainError

SCHEMA = {
    "SEX": {"dtype": "int64", "values": [1, 2]},
    "MSP": {"dtype": "object", "has_null": True, "null_value": "N", "values": ["N", "1", "2"]},
    "AGEP": {"dtype": "int64", "min": 0, "max": 99},
    "PWGTP": {"dtype": "int64", "min": 2, "max": 661},
    "PINCP": {"dtype": "object", "has_null": True, "null_value": "N", "min": -4600, "max": 1341000},
    "DENSITY": {"dtype": "float64", "min": 1457, "max": 3683},
}


def test_a_schema():
    """Null values are a label of their own, the type decides how ranges are cut, and whole ends are capped."""
    assert read_metadata({"schema": SCHEMA}).tables == {
        "SEX": {"type": "integer", "labels": ["1", "2"], "numbers": True, "null_values": []},
        "MSP": {"labels": ["1", "2"], "missing": "N", "null_values": ["N"]},
        "AGEP": {"type": "integer", "min": 0, "max": 99, "bins": 100, "null_values": []},
        "PWGTP": {"type": "integer", "min": 2, "max": 661, "bins": 32, "null_values": []},
        "PINCP": {
            "type": "number", "min": -4600, "max": 1341000, "bins": 32, "cap": True, "missing": "N",
            "null_values": ["N"],
        },
        "DENSITY": {"type": "number", "min": 1457, "max": 3683, "bins": 32, "cap": True, "null_values": []},
    }  # fmt: skip


def test_a_data_dictionary_on_top():
    """Its codes and ranges are wider than those that occur, its texts become comments; the types stay."""
    told = {
        "SEX": {"description": "Gender", "values": {"1": "Male", "2": "Female", "3": "Other"}},
        "MSP": {"description": "Status", "values": {"N": "Under 15", "1": "Married", "2": "Single"}},
        "PINCP": {"description": "Income", "values": {"N": "Under 15", "min": -9000, "max": 2000000}},
        "INDP": {"description": "Industry", "details": "Too many"},
    }
    found = read_metadata({"schema": SCHEMA}, codebooks=[told])
    assert found.tables["SEX"] == {"type": "integer", "labels": ["1", "2", "3"], "numbers": True, "null_values": []}
    assert found.tables["MSP"]["labels"] == ["1", "2"] and found.tables["MSP"]["missing"] == "N"
    assert found.tables["PINCP"]["type"] == "number" and found.tables["PINCP"]["min"] == -9000
    assert "cap" not in found.tables["PINCP"] and found.comments["PINCP"] == "Income"
    assert found.comments["INDP"] == "Industry. Too many" and found.todo == ("INDP",)
    assert found.meanings["SEX"]["3"] == "Other"
    alone = read_metadata(told)
    assert alone.tables["MSP"]["labels"] == ["N", "1", "2"] and "missing" not in alone.tables["MSP"]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"dtype": "int64"}, "neither values nor min and max"),
        (3, "neither values nor min and max"),
        ({"values": "abc"}, "must be a list"),
        ({"values": []}, "an empty list"),
        ({"values": [1, 2, 1]}, "code '1' twice"),
        ({"values": [{}]}, "must be a text or a number"),
        ({"values": [None]}, "must be a text or a number"),
        ({"values": ["N"], "has_null": True, "null_value": "N"}, "no label besides"),
        ({"min": "low", "max": 0}, "is no number|is no date|of type number"),
    ],
)
def test_what_is_wrong_names_the_column(entry, reason):
    with pytest.raises(DomainError, match=reason) as refused:
        read_metadata({"schema": {"COL": entry}})
    assert "'COL'" in str(refused.value) and "\n" not in str(refused.value)
