"""`dpgm sample`."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import dpgm_core as dpgm
from dpgm_core.sources import as_source


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_sample(model, facts, refused, suffix):
    made = []
    for name in ("one", "two"):
        path = model.with_name(name + suffix)
        assert facts("sample", model, "-n", 50, "-o", path, "--seed", 3)["records"] == 50
        made.append(path.read_bytes())
    assert made[0] == made[1]
    assert "must end in" in refused("sample", model, "-n", 1, "-o", model.with_name("x.txt"))
    for count in (-1, 0):  # which wrote a file of names
        assert "-n" in refused("sample", model, "-n", count, "-o", model.with_name("x.csv"))


@pytest.fixture
def typed(tmp_path):
    table = {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": "quarter", "format": "%d.%m.%Y"}
    domain = dpgm.Domain.from_dict(
        {"age": {"type": "integer", "min": 0, "max": 99, "bins": 5}, "seen": table, "sex": ["F", "M,X"]}
    )
    structure = dpgm.Structure.chain(domain)
    theta = np.random.default_rng(0).normal(size=structure.cells)
    dpgm.Model(structure, dpgm.Tables(structure, theta)).save(tmp_path / "t.dpgm")
    return tmp_path / "t.dpgm"


def test_samples_have_the_columns_own_types(typed, dpgm_command):
    """Values in a typed file, as they are written in a CSV file, and labels where asked for; the same codes in each."""
    domain = dpgm.load_model(typed).domain
    for name, words in (("s.parquet", ()), ("s.csv", ()), ("l.parquet", ("--labels",))):
        assert dpgm_command("sample", typed, "-n", 200, "-o", typed.with_name(name), "--seed", 1, *words)[0] == 0
    values = pyarrow.parquet.read_table(typed.with_name("s.parquet"))
    assert values.schema.types == [pa.int64(), pa.date32(), pa.string()]
    nulls = {"strings_can_be_null": True, "quoted_strings_can_be_null": False}
    convert = pyarrow.csv.ConvertOptions(column_types={"age": pa.string(), "seen": pa.string()}, **nulls)
    texts = pyarrow.csv.read_csv(typed.with_name("s.csv"), convert_options=convert)
    labels = pyarrow.parquet.read_table(typed.with_name("l.parquet"))
    for one in domain:
        codes = [one.labels.index(label) for label in labels[one.name].to_pylist()]
        assert [one.code(text) for text in texts[one.name].to_pylist()] == codes
    days = [None if day is None else day.strftime("%d.%m.%Y") for day in values["seen"].to_pylist()]
    assert days == texts["seen"].to_pylist()


def test_samples_of_what_is_given(typed, dpgm_command, refused):
    """The value that was given stands in every row, stderr says its bin, the stamp too; what is no value is refused."""
    path = typed.with_name("g.csv")
    code, _, err = dpgm_command("sample", typed, "-n", 40, "-o", path, "-g", "age=37", "-g", "sex=M,X")
    assert code == 0 and "age=37 is in the bin 20-39" in err
    lines = path.read_text().splitlines()[1:]
    assert all(line.replace('"', "").startswith("37,") and "M,X" in line for line in lines)
    assert json.loads(path.with_name("g.csv.dpgm.json").read_text())["given"] == {"age": "20-39", "sex": "M,X"}
    assert "outside of its bins" in refused("sample", typed, "-n", 1, "-o", path, "-g", "age=137")
    assert "no label 'X'" in refused("sample", typed, "-n", 1, "-o", path, "-g", "sex=X")
    assert "must look like" in refused("sample", typed, "-n", 1, "-o", path, "-g", "sex")


def test_rounded_samples(model, dpgm_command, refused):
    """Other rows than independent ones; said in JSON; not for several data sets."""
    path, files = model.with_name("r.csv"), []
    for method in ("rounded", "independent"):
        words = ("sample", model, "-n", 400, "-o", path, "--seed", 3, "--method", method, "--json")
        assert json.loads(dpgm_command(*words)[1])["method"] == method
        files.append(path.read_bytes())
    assert files[0] != files[1]
    several = ("sample", model, "-n", 1, "-o", path, "--datasets", 2)
    assert "go with independent records" in refused(*several, "--method", "rounded")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_sampled_files_leave_out_what_was_not_measured(partial, dpgm_command, suffix, facts):
    """stderr, JSON and the stamp say which; a label with a comma that is left out needs no quotes."""
    path = partial.with_name(f"s{suffix}")
    code, _, err = dpgm_command("sample", partial, "-n", 5, "-o", path)
    assert code == 0 and "left out, as no release measured them: town" in err
    assert as_source(path).names() == ("sex", "age", "job")
    shown = facts("sample", partial, "-n", 5, "-o", path, "--datasets", 2)
    assert (shown["unmeasured"], shown["unmeasured_as"]) == (["town"], "omit")
    assert all(as_source(file).names() == ("sex", "age", "job") for file in shown["files"])
    if suffix == ".csv":
        assert '"' not in path.read_text()
        stamp = json.loads(path.with_name("s.csv.dpgm.json").read_text())
        assert (stamp["unmeasured"], stamp["unmeasured_as"]) == (["town"], "omit")
    code, _, err = dpgm_command("sample", partial, "-n", 5, "-o", path, "--unmeasured", "uniform")
    assert code == 0 and "uniform, as no release measured them: town" in err
    drawn = dpgm.make("source", {"name": "csv", "path": path, "quoting": True}) if suffix == ".csv" else path
    assert as_source(drawn).names() == ("sex", "town", "age", "job")
    shown = facts("sample", partial, "-n", 5, "-o", path, "--unmeasured", "uniform")
    assert (shown["unmeasured"], shown["unmeasured_as"]) == (["town"], "uniform")


def test_samples_of_what_was_measured_say_nothing(model, dpgm_command):
    for how in ("omit", "uniform"):
        words = ("sample", model, "-n", 5, "-o", model.with_name("s.csv"), "--unmeasured", how)
        assert "measured" not in dpgm_command(*words)[2]


def test_sample_replaces_samples_only(model, refused):
    """Neither the model nor what may be the records; nothing is drawn, and of several files none is written."""
    records = model.with_name("people.csv")
    records.write_text("sex,age\nF,old\n")
    model.rename(hidden := model.with_suffix(".csv"))
    for path in (records, hidden):
        before = path.read_bytes()
        assert "nothing is replaced there: name another file" in refused("sample", hidden, "-n", 3, "-o", path)
        assert path.read_bytes() == before
    model.with_name("s-2.csv").write_text("sex,age\n")
    assert "s-2.csv exists" in refused("sample", hidden, "-n", 3, "--datasets", 2, "-o", model.with_name("s.csv"))
    assert not model.with_name("s-1.csv").exists()


def test_columns_are_made_up_by_public_generators(typed, dpgm_command):
    """At the end, named in the stamp and on stderr, the same with a seed; the columns of the model do not change."""
    pytest.importorskip("faker")
    words = ("--made-up", "name=name:de_DE", "--made-up", "town=city", "--seed", 1)
    made = {}
    for name in ("a.csv", "b.csv", "a.parquet"):
        code, _, err = dpgm_command("sample", typed, "-n", 60, "-o", typed.with_name(name), *words)
        assert code == 0 and "dpgm: made up, independent of the records: name, town" in err
        made[name] = typed.with_name(name).read_bytes()
    assert made["a.csv"] == made["b.csv"]
    told = dpgm_command("sample", typed, "-n", 5, "-o", typed.with_name("c.csv"), *words, "--json")[1]
    assert json.loads(told)["made_up"] == ["name", "town"]
    table = pyarrow.parquet.read_table(typed.with_name("a.parquet"))
    assert table.column_names == ["age", "seen", "sex", "name", "town"] and len(set(table["name"].to_pylist())) > 50
    stamp = json.loads(typed.with_name("a.csv.dpgm.json").read_text())
    assert stamp["made_up"] == {"name": "name", "town": "city"} == json.loads(table.schema.metadata[b"dpgm"])["made_up"]
    assert dpgm_command("sample", typed, "-n", 60, "-o", typed.with_name("plain.parquet"), "--seed", 1)[0] == 0
    plain = pyarrow.parquet.read_table(typed.with_name("plain.parquet"))
    assert plain.columns == table.drop_columns(["name", "town"]).columns


def test_each_dataset_has_made_up_values_of_its_own(model, dpgm_command):
    pytest.importorskip("faker")
    path = model.with_name("d.csv")
    dpgm_command("sample", model, "-n", 5, "-o", path, "--datasets", 2, "--seed", 1, "--made-up", "name=name")
    lines = [path.with_name(f"d-{number}.csv").read_text().splitlines()[1:] for number in (1, 2)]
    assert not {line.split(",")[-1] for line in lines[0]} & {line.split(",")[-1] for line in lines[1]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["age=name"], "the records have a column 'age' already"),
        (["a=name", "a=city"], "have a column 'a' already"),
        (["a"], "say COLUMN=GENERATOR"),
        (["a=nam"], "Faker makes no 'nam'; did you mean 'name'?"),
        (["a=seed_instance"], "Faker makes no 'seed_instance'"),
        (["a=name:nowhere"], "Faker knows no locale 'nowhere'"),
        (["a=binary"], "makes no text, whole number or date"),
        (["a=name:zh_CN"], "cannot be written in latin-1"),
    ],
)
def test_what_cannot_be_made_up_is_refused(typed, refused, words, message):
    pytest.importorskip("faker")
    options = [part for word in words for part in ("--made-up", word)]
    named = ("-n", 5, "-o", typed.with_name("x.csv"), "--dialect", "encoding=latin-1")
    assert message in refused("sample", typed, *named, *options)
    assert not typed.with_name("x.csv").exists()
