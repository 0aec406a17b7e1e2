"""Codebooks as people keep them."""

import pytest

from dpgm_core.domain.formats.codebook import column_of_codes, read_codebook
from dpgm_core.domain.metadata import complete_metadata
from dpgm_core.errors import DomainError

PLAIN = """\
Variable,Description,Code,Label,Missing
sex,Gender,1,Male,
,,2,Female,
,,9,Not asked,yes
job,,A,"Farming, fishing",
,,B,,
"""


def read(tmp_path, content):
    path = tmp_path / "codes.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return complete_metadata(read_codebook(path))


def other(delimiter):
    return PLAIN.replace('"Farming, fishing"', "Farming/fishing").replace(",", delimiter).replace("/", ", ").encode()


@pytest.mark.parametrize(
    "content",
    [PLAIN, other(";"), other("\t"), PLAIN.encode("utf-16"), PLAIN.encode("utf-8-sig"), PLAIN.replace("\n", "\r\n")],
)
def test_a_line_for_each_code(tmp_path, content):
    """In any delimiter and encoding; a name that is left out is that of the line above."""
    found = read(tmp_path, content)
    assert found.tables == {
        "sex": {"labels": ["1", "2"], "missing": "9", "null_values": ["9"]},
        "job": {"labels": ["A", "B"]},
    }
    assert found.comments == {"sex": "Gender"}
    assert found.meanings["sex"] == {"1": "Male", "2": "Female", "9": "Not asked"}
    assert found.meanings["job"]["A"] == "Farming, fishing"


def test_a_line_for_each_column(tmp_path):
    found = read(
        tmp_path,
        "name;type;min;max;format\nage;int;0;120;\nincome;Float;-1,5;9;\n".replace("-1,5", "-1.5")
        + "born;date;01.01.1900;31.12.2024;%d.%m.%Y\nalive;bool;;;\ntown;string;;;\n",
    )
    assert found.tables["age"] == {"type": "integer", "min": 0, "max": 120, "bins": 32}
    assert found.tables["income"] == {"type": "number", "min": -1.5, "max": 9, "bins": 32}
    assert found.tables["born"]["bins"] == "year" and found.tables["born"]["format"] == "%d.%m.%Y"
    assert found.tables["alive"] == {"type": "boolean"}
    assert found.todo == ("town",)


def test_the_meaning_of_a_code_may_be_called_its_description(tmp_path):
    """Where there is no other column for it."""
    found = read(tmp_path, "field,value,description\na,1,one\na,2,two\n")
    assert found.meanings == {"a": {"1": "one", "2": "two"}} and found.comments == {}


def test_codes_beside_a_range():
    """A number next to it widens it, a word is a missing value, what is apart is to do."""
    codes = {"N": "no answer", "0": "none", "501": "more"}
    assert column_of_codes(codes=codes, low=1, high=500) == {"min": 0, "max": 501, "missing": "N", "null_values": ["N"]}
    assert "-9 lie outside" in column_of_codes(codes={"-9": "refused"}, low=0, high=99)["todo"]
    assert column_of_codes(codes={"-9": "refused"}, missing=["-9"], low=0, high=99)["missing"] == "-9"
    assert "K, L are no numbers" in column_of_codes(codes={"K": "", "L": ""}, low=0, high=99)["todo"]
    two = column_of_codes(codes={"1": "", "-8": "", "-9": ""}, missing=["-8", "-9"])
    assert two == {"labels": ["1"], "missing": "missing", "null_values": ["-8", "-9"]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("column,code,label\nsex,1,a\nsex,2,b\nsex,1,c\n", "line 4: column 'sex' has code '1' twice"),
        ("", "is empty"),
        ("column,code,label\n", "describes no column"),
        ("colour,size\nred,3\n", "needs the columns 'column' and 'code'"),
        ("column,code,label\n,1,a\n", "line 2: no column is named"),
        ("column,type\na,intger\n", "line 2: column 'a' has type 'intger'; known: integer"),
        ("column,type,min,max\na,int,low,9\n", "line 2: column 'a' has min 'low', which is no number"),
        (b"column,code\na,\x81\n", "is not UTF-8; save it as UTF-8"),
        ("column,code\na," + "x" * 200_000, "is no CSV"),
        ("column,code,missing\na,9,yes\n", "no label besides its null values"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(tmp_path, content, reason):
    with pytest.raises(DomainError, match=reason) as refused:
        read(tmp_path, content)
    assert "\n" not in str(refused.value)


def test_files_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(DomainError, match="cannot read"):
            read_codebook(path)


def test_codes_of_windows_are_read_as_its_records_are(tmp_path):
    """A spreadsheet saves both in cp1252, with semicolons."""
    path = tmp_path / "codes.csv"
    path.write_bytes("column;code;label\nBeruf;Bäcker;€\n".encode("cp1252"))
    found = read_codebook(path)
    assert found.tables["Beruf"]["labels"] == ["Bäcker"] and found.meanings["Beruf"] == {"Bäcker": "€"}
