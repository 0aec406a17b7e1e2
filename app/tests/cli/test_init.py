"""`dpgm init`: two files from what is public, and no word of a record."""

import json
import subprocess
import sys
import tomllib

import pytest

PLANTED = "planted-value"
SCHEMA = {
    "schema": {
        "SEX": {"dtype": "int64", "values": [1, 2]},
        "MSP": {"dtype": "object", "has_null": True, "null_value": "N", "values": ["N", "1", "2"]},
        "AGEP": {"dtype": "int64", "min": 0, "max": 99},
        "PINCP": {"dtype": "object", "has_null": True, "null_value": "N", "min": -4600, "max": 1341000},
    }
}


@pytest.fixture
def schema(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "people.csv").write_text("SEX,MSP,AGEP,PINCP,ID\n1,N,12,N,77\n2,1,45,5000.0,78\n")
    return tmp_path


def read(path):
    return tomllib.loads(path.read_text(encoding="utf-8"))


def test_from_a_schema_to_two_files(schema, dpgm_command):
    """Columns that nothing describes are left out; a delta is in both budgets; a missing file of records is to do."""
    code, out, err = dpgm_command("init", "schema.json", "--data", "people.csv", "-o", "run", "--epsilon", "0.5")
    assert code == 0 and not err
    assert "4 columns, 4 settled, 0 to do" in out and "left out, as nothing describes them: ID" in out
    assert tuple(read(schema / "run/domain.toml")["attributes"]) == ("SEX", "MSP", "AGEP", "PINCP")
    spec = read(schema / "run/spec.toml")
    assert spec["data"] == "../people.csv" and spec["name"] == "people" and spec["domain"] == "domain.toml"
    assert spec["budget"] == spec["ledger"]["budget"] == {"epsilon": 0.5} and spec["neighbours"] == "add-remove"
    assert spec["structure"] == {"selector": "auto"} and spec["ledger"]["create"] and spec["workload"] == {}
    assert dpgm_command("init", "schema.json", "-o", "other", "--delta", "1e-6")[0] == 0
    spec = tomllib.loads((schema / "other" / "spec.toml").read_text())
    assert spec["budget"] == spec["ledger"]["budget"] == {"epsilon": 1, "delta": 1e-6}
    code, out, _ = dpgm_command("init", "schema.json")
    assert code == 0 and "to do: name the file of records" in out
    assert read(schema / "spec.toml")["data"] == "TODO"


def test_of_a_csv_file_nothing_but_the_header_is_told(tmp_path, dpgm_command):
    """Everything is to do; a codebook settles what it describes."""
    (tmp_path / "x.csv").write_text(f"town;age\n{PLANTED};271828\n")
    code, out, err = dpgm_command("init", tmp_path / "x.csv", "-o", tmp_path)
    assert code == 0 and "2 columns, 0 settled, 2 to do" in out and "to do: town, age: say labels" in out
    assert "taken as names" in err
    assert read(tmp_path / "spec.toml")["data"] == {"source": "csv", "path": str(tmp_path / "x.csv"), "delimiter": ";"}
    assert all("todo" in table for table in read(tmp_path / "domain.toml")["attributes"].values())
    written = out + err + (tmp_path / "domain.toml").read_text() + (tmp_path / "spec.toml").read_text()
    assert PLANTED not in written and "271828" not in written
    (tmp_path / "codes.csv").write_text("column,code,label,min,max\ntown,A,Aarau,,\ntown,B,Bern,,\nage,,,0,120\n")
    words = ("init", tmp_path / "x.csv", "--codebook", tmp_path / "codes.csv", "-o", tmp_path, "--overwrite")
    assert "2 columns, 2 settled, 0 to do" in dpgm_command(*words)[1]
    assert "# Aarau" in (tmp_path / "domain.toml").read_text()


def test_the_dialect_of_the_header_goes_to_the_spec(tmp_path, dpgm_command):
    """Tab, UTF-16, quotes and blanks, as the csv source calls them."""
    (tmp_path / "x.tsv").write_bytes('\ufeff"a"\t b\n'.encode("utf-16-le"))
    assert dpgm_command("init", tmp_path / "x.tsv", "-o", tmp_path)[0] == 0
    assert read(tmp_path / "spec.toml")["data"] == {
        "source": "csv", "path": str(tmp_path / "x.tsv"), "delimiter": "\t", "encoding": "utf-16", "quoting": True,
        "skip_blanks": True,
    }  # fmt: skip


def test_columns_of_years_need_a_word_from_somebody_who_knows(tmp_path, dpgm_command):
    """From the data alone, with a codebook on top, or from a codebook with the data beside it; and a run reads them."""
    data, codes = tmp_path / "wide.csv", tmp_path / "codes.csv"
    data.write_text("id;2018;2019\n" + "1;a;x\n2;b;y\n" * 50)
    codes.write_text("column,code\n2018,a\n2018,b\n2019,x\n2019,y\n")
    ways = ([data], [data, "--codebook", codes], ["--codebook", codes, "--data", data])
    for number, words in enumerate(ways):
        folder = tmp_path / str(number)
        assert dpgm_command("init", *words, "-o", folder)[0] == 2
        assert dpgm_command("init", *words, "-o", folder, "--first-line-is-names")[0] == 0
        assert "[attributes.2018]" in (folder / "domain.toml").read_text()
    assert dpgm_command("validate", tmp_path / "2" / "spec.toml")[0] == 0


def test_a_parquet_file_gives_names_and_types(tmp_path, dpgm_command):
    """Its statistics, dictionaries and key-value metadata stay where they are."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kind = pa.array([PLANTED, "x"]).dictionary_encode()
    table = pa.table({"flag": [True, False], "n": [271_828, 2], "kind": kind}, metadata={"pandas": PLANTED})
    pq.write_table(table, tmp_path / "x.parquet")
    code, out, err = dpgm_command("init", tmp_path / "x.parquet", "-o", tmp_path, "--schema-is-public")
    written = out + err + (tmp_path / "domain.toml").read_text() + (tmp_path / "spec.toml").read_text()
    assert code == 0 and "3 columns, 1 settled, 2 to do" in out
    assert PLANTED not in written and "271828" not in written


def test_names_and_texts_of_a_schema_cannot_command_a_terminal(tmp_path, dpgm_command):
    """Spelled out on the screen and in the files, which read back the same names."""
    name = "\x1b[2J\u202ename\n# x"
    told = {name: {"description": f"{name}\nlabels = 3", "values": {name: name, "b": ""}}, "x": {"description": name}}
    (tmp_path / "s.json").write_text(json.dumps(told))
    code, out, err = dpgm_command("init", tmp_path / "s.json", "-o", tmp_path / "run", "--data", "other.format")
    assert code == 0 and read(tmp_path / "run/domain.toml")["attributes"][name]["labels"] == [name, "b"]
    for text in (out, err, (tmp_path / "run/domain.toml").read_text()):
        assert "\x1b" not in text and "\u202e" not in text


def test_files_are_replaced_only_if_that_is_said(schema, refused, dpgm_command):
    words = ("init", "schema.json", "-o", "run")
    (schema / "run").mkdir()
    (schema / "run/spec.toml").write_text("mine")
    assert "run/spec.toml exists" in refused(*words)
    assert not (schema / "run/domain.toml").exists() and (schema / "run/spec.toml").read_text() == "mine"
    assert dpgm_command(*words, "--overwrite")[0] == 0
    assert "is what is read" in refused("init", "run/domain.toml", "-o", "run", "--overwrite")
    (schema / "plain").write_text("")
    assert "cannot write to the folder" in refused("init", "schema.json", "-o", "plain/run")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "init needs a SOURCE"),
        (("none.json",), "cannot read 'none.json'"),
        (("none.csv",), "cannot read none.csv"),
        (("people.csv", "--data", "people.csv"), "--data is not needed"),
        (("schema.json", "--data", "other.csv"), "describe 'MSP', 'AGEP', 'PINCP', which other.csv does not name"),
        (("other.csv", "--codebook", "twice.csv"), "line 3: column 'SEX' has code '1' twice"),
        (("other.csv", "--codebook", "schema.json"), "describe 'MSP'"),
        *((("schema.json", "--epsilon", wrong), "epsilon") for wrong in ("nan", "-1", "inf", "0", "True")),
        *((("schema.json", "--delta", wrong), "delta") for wrong in ("1", "nan", "0", "-1e-6")),
        (("schema.json", "--neighbours", "add_remove"), "did you mean 'add-remove'"),
        (("schema.json", "--name", "a/b"), "names files"),
        (("schema.json", "--name", ""), "names files"),
        (("ours.json",), "attribute 'a': decimals must be a whole number from 0 to 15"),
        (("data.xlsx",), "format of data.xlsx is not known"),
    ],
)
def test_what_cannot_be_is_one_line_and_writes_nothing(schema, refused, words, reason):
    (schema / "other.csv").write_text("SEX,b\n1,2\n")
    wrong = {"type": "number", "min": 0, "max": 1, "decimals": 99}
    (schema / "ours.json").write_text(json.dumps({"attributes": {"a": wrong, "b": {}}}))
    (schema / "twice.csv").write_text("column,code\nSEX,1\nSEX,1\n")
    assert reason in refused("init", *words, "-o", "run")
    assert not (schema / "run").exists()


@pytest.mark.parametrize(
    "drop",
    [("b,c", "d"), ('"b,c",d',), ("d", '"b,c"'), ("b,c", "d,"), ("d", "b,c", "d")],
)
def test_a_dropped_column_may_have_a_comma_in_its_name(tmp_path, ran, drop):
    """A text that is a column's name is no list of names; elsewhere names stand in quotes as in a CSV file."""
    (tmp_path / "x.csv").write_text('a,"b,c",d,b\n')
    ran("init", tmp_path / "x.csv", "-o", tmp_path, *(word for one in drop for word in ("--drop", one)))
    assert list(tomllib.loads((tmp_path / "domain.toml").read_text())["attributes"]) == ["a", "b"]


def test_an_unknown_column_to_drop_is_named(tmp_path, refused):
    (tmp_path / "x.csv").write_text('a,"b,c",d\n')
    for text in ("b,d", "d\nb"):
        assert "--drop: there is no column 'b'" in refused("init", tmp_path / "x.csv", "-o", tmp_path, "--drop", text)


@pytest.mark.landing
def test_a_hundred_columns_in_less_than_two_seconds(tmp_path):
    """With Python's start; measured 0.4 s of CPU."""
    columns = {f"c{number}": {"dtype": "int64", "values": list(range(20))} for number in range(100)}
    (tmp_path / "s.json").write_text(json.dumps({"schema": columns}))
    program = """
import resource, sys
from dpgm.cli import main
try:
    main(sys.argv[1:])
except SystemExit as done:
    assert not done.code
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, "pyarrow" in sys.modules, "scipy" in sys.modules)
"""
    words = [sys.executable, "-c", program, "init", str(tmp_path / "s.json"), "-o", str(tmp_path)]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
    assert float(told[0]) < 2 and told[1:] == ["False", "False"]
