"""The one function: what describes a table, whatever its form."""

import json
import tomllib

import pytest

from dpgm_core.domain import Metadata, read_metadata
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError, DomainError

PLANTED = "planted-value"


def test_of_a_csv_file_the_names_are_read_and_no_record(tmp_path):
    (tmp_path / "x.csv").write_text(f"town,age\n{PLANTED},271828\n")
    found = read_metadata(tmp_path / "x.csv")
    assert found.todo == ("town", "age")
    assert PLANTED not in found.to_toml() and "271828" not in found.to_toml()


def test_a_data_file_that_looks_like_a_codebook_is_not_read_as_one(tmp_path):
    """Records in long form have a variable and a value; only what is called a codebook is read as one."""
    (tmp_path / "x.csv").write_text(f"variable,code,label\n{PLANTED},1,{PLANTED}\n")
    assert tuple(read_metadata(tmp_path / "x.csv").tables) == ("variable", "code", "label")
    assert tuple(read_metadata(None, codebooks=[tmp_path / "x.csv"]).tables) == (PLANTED,)


def test_our_own_files_and_short_forms(tmp_path):
    for plain in (
        {"a": 3, "b": 2},
        {"a": ["x", "y"], "b": [1, 2.5, True]},
        {"attributes": {"a": {"size": 2}, "b": {"size": 9}}},
    ):
        (tmp_path / "x.json").write_text(json.dumps(plain))
        found = read_metadata(tmp_path / "x.json")
        assert tuple(found.tables) == ("a", "b") and found.todo == ()
        (tmp_path / "x.toml").write_text(found.to_toml())
        assert read_metadata(tmp_path / "x.toml").tables == found.tables
    assert read_metadata({"b": [1, 2.5, True]}).tables["b"]["labels"] == ["1", "2.5", "true"]


@pytest.mark.parametrize(
    "table",
    [
        {"type": "integer", "labels": ["1", "2"], "missing": "N", "null_values": ["N"]},
        {"type": "boolean", "missing": "?"},
        {"type": "integer", "min": 1, "max": 1000, "scale": "log"},
        {"type": "number", "min": -1.5, "max": 3, "cap": True, "decimals": 2, "decimal": ",", "thousands": "."},
        {"type": "date", "min": "01.01.1900", "max": "31.12.2024", "format": "%d.%m.%Y"},
        {"type": "datetime", "min": "2024-01-01T00:00", "max": "2024-02-01 12:30:00"},
        {"type": "time", "min": "08:00", "max": "18:00"},
        {"labels": ["x"], "null_values": ["-", "?"]},
        {"size": 3},
    ],
)
def test_what_is_settled_is_an_attribute_of_a_domain(table):
    found = read_metadata(Metadata(tables={"a": table}))
    assert not found.todo
    assert Domain.from_dict(found.to_dict()) == Domain.from_dict(tomllib.loads(found.to_toml()))


def test_a_domain_file_names_what_is_to_do():
    found = read_metadata(Metadata(tables={"a": {}, "b": {"size": 2}, "c": {"type": "number"}}))
    with pytest.raises(DomainError, match="2 attributes of the domain are incomplete: 'a', 'c'"):
        Domain.from_dict(found.to_dict())


def test_anybody_s_metadata_are_taken_like_a_file(tmp_path):
    mine = Metadata(tables={"a": {"type": "integer"}, "b": {"labels": ["x"]}}, comments={"a": "mine"})
    assert read_metadata(mine).todo == ("a",)
    found = read_metadata(mine, codebooks=[Metadata(tables={"a": {"min": 0, "max": 9}})])
    assert found.tables["a"] == {"type": "integer", "min": 0, "max": 9, "bins": 10} and found.comments == {"a": "mine"}


def test_metadata_that_name_other_columns_than_the_data(tmp_path):
    """By their own names, not by those of a first line, which may be a record."""
    (tmp_path / "x.csv").write_text(f"{PLANTED},age\n")
    with pytest.raises(DomainError, match=r"describe 'ages', which x\.csv does not name") as refused:
        read_metadata(tmp_path / "x.csv", codebooks=[{"ages": 3, "age": 2}])
    assert PLANTED not in str(refused.value)
    with pytest.raises(DomainError, match=r"'c0', .*'c4', \.\.\. \(9 in all\)"):
        read_metadata(tmp_path / "x.csv", codebooks=[{f"c{number}": 2 for number in range(9)}])
    assert tuple(read_metadata({"a": 2}, codebooks=[{"b": 2}]).tables) == (
        "a",
        "b",
    )  # no data, so no columns to keep to


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.json", "", "is not valid JSON"),
        ("x.json", "{", "is not valid JSON"),
        ("x.json", "[1, 2]", "must be a table of columns"),
        ("x.json", "{}", "must be a table of columns"),
        ("x.json", "3", "must be a table of columns"),
        ("x.json", '{"a": 2, "a": 3}', "'a' stands twice"),
        ("x.json", '{"schema": {"a": {"values": [1], "values": [2]}}}', "'values' stands twice"),
        ("x.json", "[" * 100_000, "nested too deeply"),
        ("x.json", '{"a": ' + "9" * 5000 + "}", "is not valid JSON"),
        ("x.json", '{"a": null}', "column 'a' must be a size"),
        ("x.json", '{"a": "yes"}', "column 'a' must be a size"),
        ("x.json", '{"": 3}', "a column named ''"),
        ("x.json", '{"schema": {"a": {"min": NaN, "max": 3}}}', "min must be a number"),
        ("x.json", b"\xff", "it is not UTF-8"),
        ("x.toml", "a = ", "is not valid TOML"),
        ("x.xlsx", "", "the format of .* is not known from its name; .* as CSV"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path, name, content, reason):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DomainError, match=reason) as refused:
        read_metadata(path)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500


def test_what_is_larger_than_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("dpgm_core.domain.domain_files._MAX_FILE_BYTES", 10)
    (tmp_path / "x.json").write_text('{"a": 2, "b": 3}')
    with pytest.raises(DomainError, match="larger than 10 bytes"):
        read_metadata(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("source", "more", "error", "words"),
    [
        *((one, {}, DomainError, "") for one in (3, 2.5, b"x", ["a"], ("a",), int, None)),
        *((one, {}, DataError, "cannot be read") for one in (object(), {"a"})),
        *(({"a": 2}, {"schema_is_public": one}, DomainError, "schema_is_public") for one in (None, 1, "yes")),
        *(({"a": 2}, {"codebooks": one}, DomainError, "must be a list") for one in ("codes.csv", {"a": 2})),
    ],
)
def test_what_describes_nothing_is_refused(source, more, error, words):
    """What is no description or frame, a flag that is none, and a single codebook, read letter by letter otherwise."""
    with pytest.raises(error, match=words or None):
        read_metadata(source, **more)


MINE = """
[defaults]
case = false
null_values = ["-"]
[attributes.b]
labels = ["u", "v"]
case = true
[constraints.rule]
columns = ["a", "b"]
impossible = [["x", "v"]]
"""


def test_defaults_and_constraints_of_a_codebook_hold_for_all_columns(tmp_path):
    """For those of other descriptions as well, and in the file that is written; what a column says itself stays."""
    (tmp_path / "mine.toml").write_text(MINE)
    base = {"attributes": {"a": {"labels": ["x", "y"]}, "b": {"labels": ["t"]}}, "defaults": {"case": True}}
    found = read_metadata(base, codebooks=[tmp_path / "mine.toml"])
    domain = Domain.from_dict(tomllib.loads(found.to_toml()))
    assert domain == Domain.from_dict(found.to_dict())
    assert domain["a"].code("X") == 0 and domain["b"].code("U") == domain["b"].unknown
    assert [domain[name].null_values for name in "ab"] == [("-",), ("-",)]
    assert domain.impossible(("a", "b")).sum() == 1


def test_defaults_may_be_all_that_a_codebook_says(tmp_path):
    """And what has no place in one is refused, not dropped."""
    (tmp_path / "mine.toml").write_text('[defaults]\nblanks = "strip"\n')
    found = read_metadata({"a": ["x"]}, codebooks=[tmp_path / "mine.toml"])
    assert Domain.from_dict(found.to_dict())["a"].code(" x ") == 0
    for text, said in (
        ('from = "nist.json"\n[attributes.a]\nlabels = ["x"]\n', "dpgm init nist.json --codebook"),
        ('[attributes.a]\nlabels = ["x"]\n[default]\ncase = false\n', "has no setting 'default'"),
        ('[attributes.a]\nlabels = ["x"]\n[defaults]\nkase = false\n', "has no setting 'kase'"),
    ):
        (tmp_path / "mine.toml").write_text(text)
        with pytest.raises(DomainError, match=said):
            read_metadata({"a": ["x"]}, codebooks=[tmp_path / "mine.toml"])
