"""Domain files that start from another description."""

import json
import re

import pytest

from dpgm.spec import load_spec
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.domain_files import domain_tables, override_tables
from dpgm_core.errors import DomainError

NIST = {
    "AGEP": {"dtype": "int64", "min": 0, "max": 94},
    "SEX": {"dtype": "int64", "values": [1, 2]},
    "MSP": {"dtype": "object", "values": ["N", "1", "2"], "has_null": True, "null_value": "N"},
}


@pytest.fixture
def nist(tmp_path):
    (tmp_path / "nist.json").write_text(json.dumps({"schema": NIST}))
    return tmp_path


def test_columns_are_changed_key_by_key(nist):
    (nist / "d.toml").write_text(
        'from = "nist.json"\n[attributes.AGEP]\nbins = 5\n[attributes.SEX]\nmissing = "not stated"\n'
    )
    base, domain = Domain.load(nist / "nist.json"), Domain.load(nist / "d.toml")
    assert base.sizes == {"AGEP": 96, "SEX": 3, "MSP": 3}
    assert domain["AGEP"].labels == ("0-18", "19-37", "38-56", "57-75", "76-94", "missing")
    assert domain["SEX"].labels == ("1", "2", "not stated") and domain["MSP"] == base["MSP"]


def test_a_spec_changes_columns_in_the_same_way(nist):
    spec = (
        'data = "d.csv"\nneighbours = "add-remove"\nbudget = { epsilon = 1 }\nstructure = { cliques = [["AGEP"]] }\n'
        '[domain]\nfrom = "nist.json"\n[domain.attributes.AGEP]\nbins = [0, 18, 65, 94]\n'
    )
    (nist / "x.toml").write_text(spec)
    assert load_spec(nist / "x.toml").domain["AGEP"].labels == ("0-17", "18-64", "65-94", "missing")


RANGE = {"type": "integer", "min": 0, "max": 94, "unknown": "?"}
LABELS = {"type": "integer", "labels": ["1", "2"], "missing": "N", "numbers": True}


@pytest.mark.parametrize(
    ("base", "change", "found"),
    [
        (RANGE, {"bins": 8}, RANGE | {"bins": 8}),
        (
            RANGE | {"bins": [0, 94]},
            {"bins": 8, "min": 0, "max": 9},
            {"type": "integer", "unknown": "?", "bins": 8, "min": 0, "max": 9},
        ),
        (RANGE | {"bins": 8}, {"max": 50}, RANGE | {"max": 50, "bins": 8}),
        (RANGE, {"bins": {"private": 8}}, RANGE | {"bins": {"private": 8}}),
        (RANGE | {"cap": True}, {"bins": [0, 9]}, {"type": "integer", "unknown": "?", "cap": True, "bins": [0, 9]}),
        (RANGE, {"labels": ["a"]}, {"type": "integer", "unknown": "?", "labels": ["a"]}),
        (RANGE, {"size": 3}, {"unknown": "?", "size": 3}),
        (RANGE, {"cap": True}, RANGE | {"cap": True}),
        (LABELS, {"min": 1, "max": 2}, {"type": "integer", "missing": "N", "numbers": True, "min": 1, "max": 2}),
        (LABELS, {"labels": {"private": True, "keep": 9}}, LABELS | {"labels": {"private": True, "keep": 9}}),
        (LABELS, {"numbers": False}, LABELS | {"numbers": False}),
        ({"todo": "what?"}, {"labels": ["a"]}, {"labels": ["a"]}),
        ({"todo": "what?"}, {"type": "date"}, {"todo": "what?", "type": "date"}),
        ({"bins": [0, 1], "labels": ["x"]}, {"max": 5, "min": 0}, {"max": 5, "min": 0}),
    ],
)
def test_a_new_form_takes_the_place_of_the_old(base, change, found):
    """Keys of the old form go, others stay; a question is settled by a form and by nothing else."""
    assert override_tables({"a": base}, {"a": change}, origin="f") == {"a": found}


def test_a_column_that_is_not_there_is_refused(nist):
    (nist / "d.toml").write_text('from = "nist.json"\n[attributes.AGE]\nbins = 5\n')
    with pytest.raises(DomainError, match=r"\[attributes.AGE\] changes a column that nist.json does not have.*'AGEP'"):
        Domain.load(nist / "d.toml")


def test_files_in_a_circle_and_files_that_are_not_there_are_refused(nist):
    for name, start in (("a.toml", "b.toml"), ("b.toml", "a.toml"), ("c.toml", "c.toml")):
        (nist / name).write_text(f'from = "{start}"\n')
    for name in ("a.toml", "c.toml"):
        with pytest.raises(DomainError, match=r"name one another in a circle, or too deeply"):
            Domain.load(nist / name)
    for number in range(20):
        (nist / f"{number}.toml").write_text(f'from = "{number + 1}.toml"\n')
    with pytest.raises(DomainError, match="too deeply"):
        Domain.load(nist / "0.toml")
    for missing in ("none.toml", "none.csv", "none.json"):
        (nist / "d.toml").write_text(f'from = "{missing}"\n')
        with pytest.raises(DomainError, match=rf"cannot read the domain file .*{missing}"):
            Domain.load(nist / "d.toml")
    (nist / "d.toml").write_text('from = "x.bif"\n')
    with pytest.raises(DomainError, match=r"domain = \{ bif = 'x\.bif' \}"):
        Domain.load(nist / "d.toml")


def test_a_stored_domain_opens_no_file(nist, monkeypatch):
    """A release or a model that says `from` is refused: whoever made it does not choose what is read here."""
    monkeypatch.chdir(nist)
    with pytest.raises(DomainError, match="no folder is given"):
        Domain.from_dict({"from": "nist.json"})
    assert Domain.from_dict({"from": "nist.json"}, folder=nist).names == ("AGEP", "SEX", "MSP")
    assert Domain.from_dict({"from": 3}).sizes == {"from": 4}


def test_constraints_of_the_file_stay_and_are_replaced_by_name(nist):
    """A map beside the file that names it is found from elsewhere."""
    (nist / "deep").mkdir()
    (nist / "deep" / "pairs.csv").write_text("SEX,MSP\n1,1\n2,2\n")
    (nist / "deep" / "base.toml").write_text(
        'from = "../nist.json"\n[constraints.map]\ncolumns = ["SEX", "MSP"]\nmap = "pairs.csv"\n'
        '[constraints.young]\ncolumns = ["AGEP", "SEX"]\nimpossible = [["3", "1"]]\n'
    )
    plain = {"from": "deep/base.toml", "constraints": {"young": {"columns": ["AGEP"], "impossible": [["3"]]}}}
    tables = domain_tables(plain, nist)
    assert tables["constraints"]["map"]["map"] == str(nist / "deep" / "pairs.csv")
    assert tables["constraints"]["young"] == {"columns": ["AGEP"], "impossible": [["3"]]}


def test_a_codebook_and_a_table_schema_are_descriptions_too(tmp_path):
    """Of a CSV file the codebook; what they leave to do is refused by name, unless it is said on top."""
    (tmp_path / "codes.csv").write_text("column;code;label\nsex;1;male\nsex;2;female\nage;;\n")
    fields = [{"name": "sex", "constraints": {"enum": ["1", "2"]}}, {"name": "age", "type": "integer"}]
    (tmp_path / "schema.json").write_text(json.dumps({"fields": fields}))
    for name in ("codes.csv", "schema.json"):
        (tmp_path / "d.toml").write_text(f'from = "{name}"\n')
        with pytest.raises(DomainError, match="1 attribute of the domain is incomplete: 'age'"):
            Domain.load(tmp_path / "d.toml")
        (tmp_path / "d.toml").write_text(f'from = "{name}"\n[attributes.age]\nmin = 0\nmax = 9\nbins = 10\n')
        assert Domain.load(tmp_path / "d.toml").sizes == {"sex": 3, "age": 11}


def test_defaults_hold_for_all_columns_that_do_not_say_otherwise(tmp_path):
    """Own words come first, codes of a size have no texts, and a description beneath keeps its own."""
    plain = {
        "defaults": {"null_values": ["", "NA"], "case": False, "missing": "none"},
        "attributes": {
            "a": {"labels": ["x"]},
            "b": {"labels": ["x"], "null_values": ["-"], "case": True},
            "c": {"size": 2},
            "d": {"labels": ["x", "?"], "unknown": "?", "null": "?"},
        },
    }
    domain = Domain.from_dict(plain)
    assert [domain["a"].code(text) for text in ("X", "NA", "", "none", "y")] == [0, 1, 1, 1, 1]
    assert [domain["b"].labels[domain["b"].code(text)] for text in ("x", "X", "-", "NA")] == ["x", *["none"] * 3]
    assert domain["a"].labels == ("x", "none") and domain["c"].labels == ("0", "1", "missing")
    assert domain["d"].labels == ("x", "?")
    assert Domain.from_dict(domain.to_dict()) == domain
    (tmp_path / "base.toml").write_text(
        "[attributes.a]\nlabels = ['x']\nnull_values = ['-']\n[attributes.b]\nsize = 2\n"
    )
    over = Domain.from_dict({"from": "base.toml", "defaults": {"null_values": ["NA"], "case": False}}, folder=tmp_path)
    assert [over["a"].code(text) for text in ("X", "-")] == [0, 1] and over["a"].null_values == ("-",)


@pytest.mark.parametrize(
    ("defaults", "words"),
    [([], "must be a table"), ({"labels": ["x"]}, "has no setting 'labels'"), ({"cases": True}, "did you mean 'case'")],
)
def test_defaults_that_are_none_are_refused(defaults, words):
    with pytest.raises(DomainError, match=re.escape(words)):
        Domain.from_dict({"attributes": {"a": {"size": 2}}, "defaults": defaults})
