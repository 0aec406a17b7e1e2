"""Two related tables on the command line: from two CSV files to two, and all that is refused on the way."""

import csv
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import dpgm_core as dpgm
from app.tests.made import files
from dpgm.cli import main
from dpgm.spec import load_spec
from dpgm.validation import validate_related
from dpgm_core.models.related import RelatedModel

SPEC = """
name = "household"
data = { root = "households.csv", children = "persons.csv" }
key = "home"
max_children = 3
order = "line"
neighbours = "add-remove"
unit = "one household with all its members"
budget = { epsilon = 20 }
structure = { cliques = [["own", "size"], ["size", "first.age"], ["size", "age"], ["first.sex", "sex", "size"]] }
ledger = { path = "out/household.ledger", budget = { epsilon = 50 }, create = true }
output = { folder = "out" }
simulation = { seed = 5 }
[domain.root.attributes]
own = { labels = ["no", "yes"], null_values = [] }
[domain.children.attributes]
age = { bins = [0, 18, 60, 100], type = "integer", null_values = [] }
sex = { labels = ["F", "M"], null_values = [] }
[domain.constraints.adult-head]
columns = ["first.age"]
impossible = [["0-17"]]
"""


def write(folder: Path, homes: int = 400) -> Path:
    """A spec and its two files: a head, a partner of the other sex, a child; some homes have nobody."""
    draw = np.random.default_rng(0)
    roots, children = [["home", "own"]], [["home", "line", "age", "sex"]]
    for home in range(homes):
        roots.append([f"h{home}", "yes" if home % 3 else "no"])
        sex = int(draw.integers(2))
        for line in range(int(draw.integers(4))):
            age = draw.integers(0, 17) if line == 2 else draw.integers(18, 99)
            children.append([f"h{home}", line, int(age), "FM"[(sex + line) % 2]])
    draw.shuffle(children[1:])
    for name, rows in (("households.csv", roots), ("persons.csv", children)):
        with (folder / name).open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    (folder / "household.toml").write_text(SPEC)
    return folder / "household.toml"


@pytest.fixture
def household(tmp_path) -> Path:
    return write(tmp_path)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> Path:
    """A model file beside its spec and data, in a folder where tests only read."""
    spec = write(tmp_path_factory.mktemp("household"))
    main(["fit", str(spec)])
    return spec.parent / "out/household.dpgm"


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def assert_resolve(folder: Path, key: str = "home", most: int = 3) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Every key of the children is one of the roots', which differ; nobody is absent, and nobody has too many."""
    roots, children = table(folder / "households.csv"), table(folder / "persons.csv")
    keys = [one[key] for one in roots]
    assert len(set(keys)) == len(keys) and {one[key] for one in children} <= set(keys)
    assert max(Counter(one[key] for one in children).values()) <= most
    assert "absent" not in {cell for one in (*roots, *children) for cell in one.values()}
    return roots, children


# --- The way from two files to two ---------------------------------------------------------------------------------


def test_a_new_user_goes_from_two_files_to_two(tmp_path, monkeypatch, ran):
    """What `init` writes names the key itself and is finished by stating r and the labels; then plan to sample."""
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    out, _ = ran("init", "households.csv", "persons.csv", "-o", "run", "--epsilon", "20")
    text = (tmp_path / "run/spec.toml").read_text()
    assert "to do: max_children" in out and 'key = "home"' in text
    for column in ("own", "age", "sex"):
        assert f".attributes.{column}]\ntodo" in text
    head, _, _ = text.partition("# The domain:")
    done = head.replace("# max_children = 5", "max_children = 3").replace("# order =", "order =")
    # The example takes the selector, and longer.
    named = "cliques = [['own', 'size'], ['size', 'first.age', 'first.sex'], ['size', 'age', 'sex']]"
    done = done.replace('selector = "aim"', named).replace("[workload]\n", "")
    (tmp_path / "run/spec.toml").write_text(
        done.replace('"COLUMN"', '"line"', 1) + SPEC[SPEC.index("[domain.root") : SPEC.index("[domain.constraints")]
    )
    out, _ = ran("plan", "run/spec.toml", "--records", 400)
    assert "own x size" in out and "each root is one record, with at most 3 children" in out
    assert "keys: 0 children without a root" in ran("validate", "run/spec.toml")[0]
    out, _ = ran("fit", "run/spec.toml", "--set", "simulation.seed=1")
    assert "one root with all its children" in out and "roots:" in out
    ran("sample", "run/households.dpgm", "-o", "out", "--seed", 2)
    roots, children = assert_resolve(tmp_path / "out")
    assert 350 < len(roots) < 450 and list(roots[0]) == ["home", "own"]
    assert list(children[0]) == ["home", "line", "age", "sex"]
    several = [one["line"] for one in children if one["home"] == max(one["home"] for one in children)]
    assert several == ["1", "2", "3"][: len(several)]


def test_init_says_what_it_cannot_know(tmp_path, monkeypatch, ran, refused):
    """Two columns in common are no key; a third table is refused; nothing is written by what is refused."""
    monkeypatch.chdir(tmp_path)
    for name, first in (("a.csv", "id,x"), ("b.csv", "id,x,y"), ("c.csv", "id")):
        Path(name).write_text(f"{first}\n")
    out, _ = ran("init", "a.csv", "b.csv", "-o", "two")
    assert "the two tables have id, x in common; name the key" in out
    assert 'key = "TODO"' in Path("two/spec.toml").read_text()
    assert "c.csv is a third" in refused("init", "a.csv", "b.csv", "c.csv", "-o", "three")
    assert "--data is for one SOURCE" in refused("init", "a.csv", "b.csv", "--data", "c.csv", "-o", "three")
    assert not Path("three").exists()


def test_two_files_have_one_stamp(fitted, tmp_path, ran):
    for name in ("one", "two"):
        ran("sample", fitted, "-n", 50, "-o", tmp_path / name, "--seed", 3)
    one, two = tmp_path / "one", tmp_path / "two"
    assert files(one) == {f"{name}.csv{end}" for name in ("households", "persons") for end in ("", ".dpgm.json")}
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in files(one))
    roots, children = assert_resolve(one)
    assert len(roots) == 50 and 0 < len(children) <= 150
    stamps = [json.loads((one / f"{name}.csv.dpgm.json").read_text()) for name in ("households", "persons")]
    assert stamps[0] == stamps[1] and stamps[0]["tables"] == {"root": "households.csv", "children": "persons.csv"}
    assert "household with all its members" in stamps[0]["guarantee"]


def test_tables_of_two_samples_of_one_seed_are_not_one(fitted, tmp_path, ran, refused):
    """Where a sample was interrupted between its files, those of another size do not belong together."""
    for name, count in (("one", 50), ("two", 60)):
        ran("sample", fitted, "-n", count, "-o", tmp_path / name, "--seed", 3)
    for file in (tmp_path / "two").glob("persons*"):
        file.replace(tmp_path / "one" / file.name)
    assert "does not hold the two tables of one dpgm sample" in refused("compare", fitted, tmp_path / "one")


def test_keys_of_two_names(household, ran):
    roots = household.parent / "households.csv"
    roots.write_text(roots.read_text().replace("home,", "id,", 1))
    ran("fit", household, "--set", "key={root='id', children='home'}")
    ran("sample", household.parent / "out/household.dpgm", "-o", household.parent / "s", "--seed", 1)
    known = {one["id"] for one in table(household.parent / "s/households.csv")}
    assert {one["home"] for one in table(household.parent / "s/persons.csv")} <= known


def test_domains_in_files_and_no_structure(household):
    """Each table's domain may be a file; without [structure] the budget decides the selector."""
    folder = household.parent
    (folder / "c.toml").write_text("[attributes]\nage.size = 3\nsex.size = 2\n")
    (folder / "r.toml").write_text("[attributes]\nown.size = 2\n")
    head = [line for line in SPEC[: SPEC.index("[domain")].splitlines() if not line.startswith("structure")]
    household.write_text("\n".join([*head, 'domain = { root = "r.toml", children = "c.toml" }']))
    run = load_spec(household)
    assert run.selector == "aim" and run.workload is not None and run.terms.related is not None
    assert run.workload == dpgm.Workload.related(run.terms.related)
    assert load_spec(household, ["budget={rho=1}"]).selector == "auto"
    assert run.domain.names[:4] == ("own", "size", "position", "first.age")


def test_a_release_is_enough(household, ran):
    """Named cliques released and learned later; what is learned again does not know the files' names."""
    out, _ = ran("release", household)
    assert "household with all its members" in out
    out, _ = ran("learn", household.parent / "out/household.release.dpgm", "-o", household.parent / "again.dpgm")
    assert "roots:" in out and "position" not in out
    ran("sample", household.parent / "again.dpgm", "-n", 20, "-o", household.parent / "s", "--seed", 1)
    assert files(household.parent / "s") > {"root.csv", "children.csv"}


def test_one_child_for_each_root(household, ran, refused):
    """There are no others to speak of, and siblings are refused."""
    ran("fit", household, "--set", "max_children=1", "--set", 'structure={cliques=[["own", "size", "first.age"]]}')
    model, out = household.parent / "out/household.dpgm", household.parent / "s"
    ran("sample", model, "-o", out, "--seed", 1)
    roots, _ = assert_resolve(out, most=1)
    ran("complete", model, out / "households.csv", "-o", household.parent / "p.csv", "--seed", 1)
    drawn = table(household.parent / "p.csv")
    assert list(drawn[0]) == ["home", "line", "age"] and 0 < len(drawn) < len(roots)
    assert "no child has siblings" in refused("query", model, "age", "sibling.age")
    ran("report", model, "-o", household.parent / "r.html")


def test_names_and_labels_with_delimiters(household, ran):
    """They stand in quotes, so the sample is read again as it is."""
    folder = household.parent
    for path in (household, folder / "households.csv"):
        text = path.read_text().replace('"yes"', '"of, course"').replace(",yes", ',"of, course"')
        path.write_text(text.replace("own = {", '"has, it" = {').replace('["own"', '["has, it"'))
    roots = folder / "households.csv"
    roots.write_text(roots.read_text().replace("home,own", 'home,"has, it"'))
    ran("fit", household)
    ran("sample", folder / "out/household.dpgm", "-o", folder / "s", "--seed", 1)
    drawn = table(folder / "s/households.csv")
    assert list(drawn[0]) == ["home", "has, it"] and {one["has, it"] for one in drawn} >= {"no", "of, course"}
    ran("compare", folder / "out/household.dpgm", folder / "s")


def test_sorted_files(household, ran, refused):
    """They give the same release; files that are not sorted are refused before the charge."""
    folder = household.parent
    for name in ("households", "persons"):
        head, *rows = (folder / f"{name}.csv").read_text().splitlines()
        (folder / f"{name}.csv").write_text("\n".join([head, *sorted(rows, key=lambda row: row.split(",")[0])]) + "\n")
    ran("fit", household)
    ran("fit", household, "--set", "data.sorted=true")
    one, two = (dpgm.load_model(folder / f"out/household{end}.dpgm").releases[0] for end in ("", "-2"))
    assert np.array_equal(one.tables.values, two.tables.values)
    household.write_text(SPEC.replace("simulation = { seed = 5 }\n", ""))
    persons = folder / "persons.csv"
    head, *rows = persons.read_text().splitlines()
    persons.write_text("\n".join([head, *rows[::-1]]) + "\n")
    left = dpgm.Ledger.open(folder / "out/household.ledger").remaining()
    assert "sorted" in refused("fit", household, "--set", "data.sorted=true", "--set", "budget.epsilon=5")
    assert dpgm.Ledger.open(folder / "out/household.ledger").remaining() == left


def test_validate_counts_rows_that_are_not_sorted(household, dpgm_command):
    """Where tables are stated as sorted: two rows come after those of a later home."""
    folder, words = household.parent, ("validate", household, "--set", "data.sorted=true")
    (folder / "households.csv").write_text("home,own\n2,yes\n10,yes\nh1,no\nh2,no\n")
    persons = "home,line,age,sex\n2,1,30,F\n10,1,30,F\nh1,1,30,F\n"
    for rows, number in (("h2,1,40,F\n", 0), ("2,2,40,F\nh2,1,40,F\n10,2,40,M\n", 2)):
        (folder / "persons.csv").write_text(persons + rows)
        code, out, _ = dpgm_command(*words)
        assert code == bool(number) and f"keys: {number} rows whose key stands before" in out
    assert "whose key stands before" not in dpgm_command("validate", household)[1]


def test_other_formats(household, ran):
    """Parquet files in, Parquet files out, with numbers as numbers and the stamp inside; public roots too."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    import pyarrow.csv

    folder = household.parent
    for name in ("households", "persons"):
        pq.write_table(pyarrow.csv.read_csv(folder / f"{name}.csv"), folder / f"{name}.parquet")
    ran("fit", household, "--set", "data.root=households.parquet", "--set", "data.children=persons.parquet")
    model = folder / "out/household.dpgm"
    ran("sample", model, "-n", 40, "-o", folder / "s", "--seed", 1)
    drawn = pq.read_table(folder / "s/persons.parquet")
    assert pa.types.is_integer(drawn.schema.field("age").type) and b"dpgm" in drawn.schema.metadata
    ran("complete", model, folder / "s/households.parquet", "-o", folder / "p.parquet", "--seed", 1)
    assert set(pq.read_table(folder / "p.parquet")["home"].to_pylist()) <= set(range(1, 41))
    assert "attributes: 6 compared" in ran("compare", model, folder / "s")[0]


def test_samples_follow_the_model(fitted, tmp_path, ran):
    """Rounded roots: shares of roots and sizes are the model's to one root of 2000; heads are adults, by constraint."""
    ran("sample", fitted, "-n", 2000, "-o", tmp_path, "--seed", 1)
    roots, children = assert_resolve(tmp_path)
    model = RelatedModel.load(fitted)
    sizes = Counter(Counter(one["home"] for one in children).values())
    for size in (1, 2, 3):
        assert sizes[size] / 2000 == pytest.approx(model.marginal("size")[size], abs=2e-3)
    owners = sum(one["own"] == "yes" for one in roots) / 2000
    assert owners == pytest.approx(model.marginal("own")[1], abs=2e-3)
    assert all(int(one["age"] or 99) >= 18 for one in children if one["line"] == "1")


def test_a_sample_replaces_only_samples(fitted, tmp_path, ran, refused):
    """A file of somebody else stays, and so does what is beside it."""
    (tmp_path / "persons.csv").write_text("mine\n")
    assert "persons.csv" in refused("sample", fitted, "-o", tmp_path)
    assert files(tmp_path) == {"persons.csv"}
    assert "--output x, not x.csv" in refused("sample", fitted, "-n", 3, "-o", tmp_path / "x.csv")
    assert "--given is for models of one table" in refused("sample", fitted, "-o", tmp_path / "x", "-g", "own=yes")


# --- What is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("key=own", "key 'own' is a column of the domain"),
        ("key=nothing", "nothing"),
        ("order=nothing", "nothing"),
        ("order=age", "order 'age' is a column of the domain"),
        ("max_children=0", "max_children must be a whole number"),
        ('key=["a", "b", "c"]', "a third table has no place here"),
        ("data.third=x.csv", "'third' has no place here"),
        ("data.children=households.csv", "one and the same table"),
        ("data.root=nothing.csv", "nothing.csv"),
        ("person=home", "leave person out"),
        ("total=public", "publishes the number of their keys"),
        ("domain.children.attributes.own.size=2", "column 'own' is in both tables"),
        ("domain.root.attributes.size.size=2", "column 'size' has a name that the model of two tables uses itself"),
        ('domain.children.attributes.sex.labels=["absent", "F"]', "which marks children that do not exist"),
        ('structure.cliques=[["own"]]', "no clique holds 'size'"),
        ('structure={selector="mst"}', "use 'aim'"),
        ('research.regressions=["age ~ sex"]', "[research] is for one table"),
        ("labels_from=labels.dpgm", "which two related tables cannot have"),
        ("rows_per_person=2", "leave rows_per_person out"),
    ],
)
def test_what_cannot_be_is_refused_before_any_charge(household, refused, setting, said):
    before = files(household.parent)
    message = refused("fit", household, "--set", setting)
    assert said in message and message.count("\n") == 1
    assert files(household.parent) == before


@pytest.mark.parametrize("key", ["max_children", "key"])
def test_what_must_be_stated(household, refused, key):
    """r is known without the records, and nobody guesses a key."""
    household.write_text("\n".join(line for line in SPEC.splitlines() if not line.startswith(key)))
    assert key in refused("fit", household) and not (household.parent / "out").exists()


def test_roots_without_a_record_are_refused(household, refused):
    (household.parent / "households.csv").write_text("home,own\n")
    assert "no record behind the line" in refused("fit", household)


def test_homes_without_children_have_a_model(household, ran):
    (household.parent / "persons.csv").write_text("home,line,age,sex\n")
    ran("fit", household, "--set", "budget.epsilon=50")
    ran("sample", household.parent / "out/household.dpgm", "-n", 30, "-o", household.parent / "s", "--seed", 1)
    assert len(table(household.parent / "s/households.csv")) == 30


@pytest.mark.parametrize(
    "setting", ["max_children=2", "key={root='own_id', children='home'}", "unit=a flat", "order=sex2"]
)
def test_a_ledger_has_one_unit(household, ran, refused, setting):
    """A second run with another r, key, order or unit is refused before it reads, and charges nothing."""
    household.write_text(SPEC.replace("simulation = { seed = 5 }\n", ""))
    ran("fit", household)
    ledger = dpgm.Ledger.open(household.parent / "out/household.ledger")
    before = ledger.remaining()
    assert "guarantees of different kinds do not add up" in refused("fit", household, "--set", setting)
    assert ledger.remaining() == before


def test_a_ledger_that_was_created_before(household, ran, refused):
    """With the key, r and order of the spec it pays for its run; what it shows is no person key."""
    path = household.parent / "own.ledger"
    create = ("ledger", "create", path, "--name", "h", "--epsilon", 50, "--neighbours", "add-remove")
    for words, said in [
        (("--max-children", 3), "name their key with --key"),
        (("--key", "home"), "max_children is missing"),
        (("--key", "a", "--key", "b", "--key", "c", "--max-children", 3), "--key once or twice"),
        (("--key", "home", "--max-children", 3, "--rows-per-person", 2), "one unit"),
    ]:
        assert said in refused(*create, *words) and not path.exists()
    unit = ("--unit", "one household with all its members")
    ran(*create, *unit, "--key", "home", "--max-children", 3, "--order", "line")
    shown = "all its members, at most 3 children for each key 'home', ordered by 'line', neighbours add-remove"
    assert shown in ran("ledger", "show", path)[0]
    household.write_text(SPEC.replace("simulation = { seed = 5 }\n", ""))
    ran("fit", household, "--set", f"ledger={{path='{path}'}}")
    assert len(dpgm.Ledger.open(path).history()) == 1


def test_a_fit_whose_tables_lack_the_size_says_so(household, ran, monkeypatch):
    """A selector may leave it out, which is known after the charge alone; what is paid for is saved and shown."""
    monkeypatch.setattr("dpgm.spec._check_measured", lambda *_: [])
    cliques = 'structure={cliques=[["own"], ["first.age", "age"]]}'
    out, _ = ran("fit", household, "--set", cliques)
    assert "holds 'size', the number of children" in out and (household.parent / "out/household.dpgm").is_file()
    assert json.loads(ran("fit", household, "--again", "--set", cliques, "--json")[0])["model"]


def test_no_record_is_in_what_is_said(household, dpgm_command):
    """Orphans, repeated and null keys, surplus children and broken lines change no message, exit code or file."""
    folder, secret = household.parent, "SECRET"
    with (folder / "households.csv").open("a") as file:
        file.write(f"{secret},yes\n{secret},no\n,yes\n,{secret}\n")
    with (folder / "persons.csv").open("a") as file:
        file.writelines([f"{secret},{line},{secret},F\n" for line in range(9)])
        file.write(f"{secret}2,1,30,M\n,1,30,M\n{secret}\n")
    code, out, err = dpgm_command("fit", household)
    assert code == 0 and secret not in out + err
    assert files(folder / "out") == {"household.dpgm", "household.release.dpgm", "household.ledger"}
    for words in (("plan", household), ("fit", household, "--set", "order=nothing", "--set", "ledger.path=other")):
        _, out, err = dpgm_command(*words)
        assert secret not in out + err
    run = load_spec(household)
    found = validate_related(run.data, run.terms.related)
    assert (found.repeated_roots, found.null_roots, found.orphans, found.surplus) == (1, 2, 1, 6) and not found.ok
    code, out, err = dpgm_command("validate", household)
    assert code == 1 and "keys: 1 children without a root" in out and "adult-head: 0 roots" in out


def test_validate_counts_broken_constraints_across_the_tables(household, dpgm_command):
    """Two homes whose first member is a child, and a column that orders and is not there."""
    (household.parent / "persons.csv").write_text("home,line,age,sex\nh1,1,30,F\nh2,1,3,F\nh3,2,40,F\nh3,1,4,M\n")
    code, out, _ = dpgm_command("validate", household)
    assert code == 1 and "constraint adult-head: 2 roots break it" in out
    code, out, _ = dpgm_command("validate", household, "--set", "order=rank")
    assert code == 1 and "missing column 'rank'" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("export", "MODEL", "--bif", "x.bif"), "--bif is a network of one table"),
        (("analyse", "MODEL", "~ age + sex"), "analyses are of one table"),
        (("study", "SPEC", "--truth", "MODEL"), "a study draws records of one"),
        (("query", "MODEL", "--map"), "--map is of one table"),
        (("query", "MODEL", "age", "-s", "mean"), "--statistic is of one table"),
        (("query", "MODEL", "sex", "sibling.sex", "age"), "age sibling.age"),
        (("query", "MODEL", "first.age"), "no column 'first.age'"),
    ],
)
def test_what_is_about_one_table(fitted, refused, words, said):
    places = {"MODEL": fitted, "SPEC": fitted.parents[1] / "household.toml"}
    assert said in refused(*(places.get(word, word) for word in words))


# --- Answers -------------------------------------------------------------------------------------------------------


def test_queries_are_the_model_s(fitted, ran):
    """Of roots, of children, across, given either, of siblings, with intervals around them."""
    model = RelatedModel.load(fitted)

    def asked(*words: object) -> list[float]:
        rows = json.loads(ran("query", fitted, *words, "--json")[0])["rows"]
        assert all(row["low"] <= row["high"] for row in rows if "low" in row)
        return [row["probability"] for row in rows]

    assert asked("size") == pytest.approx(model.marginal("size").tolist())
    assert asked("own", "age", "--intervals", ".9") == pytest.approx(
        model.marginal(("own", "age")).reshape(-1).tolist()
    )
    assert asked("own", "-g", "age=30") == pytest.approx(model.marginal("own", {"age": "18-59"}).tolist())
    siblings = model.marginal(siblings=("sex", "sex")).reshape(-1).tolist()
    assert asked("sex", "sibling.sex", "--intervals", ".9") == pytest.approx(siblings)
    out, _ = ran("query", fitted)
    assert "at most 3 children for each key 'home', ordered by 'line'" in out and "previous" not in out.split("\n\n")[0]


def test_children_of_public_roots(fitted, tmp_path, ran, refused):
    """They have the roots' keys, and as many as these say; the stamp says that no guarantee covers the rows."""
    rows = tmp_path / "rows.csv"
    rows.write_text('home;own;size;note\n"x;1";yes;2;a\ny;no;0;b\nz;no;;c\n')
    ran("complete", fitted, rows, "-o", tmp_path / "persons.csv", "--seed", 1)
    with (tmp_path / "persons.csv").open(newline="") as file:
        children = list(csv.DictReader(file))
    counts = Counter(one["home"] for one in children)
    assert counts["x;1"] == 2 and counts["y"] == 0 and set(counts) <= {"x;1", "z"}
    assert list(children[0]) == ["home", "line", "age", "sex"]
    stamp = json.loads((tmp_path / "persons.csv.dpgm.json").read_text())
    assert stamp["completed"] and stamp["private"] is False
    rows.write_text("home,own,size\nä,yes,2\n", encoding="utf-16")
    ran("complete", fitted, rows, "-o", tmp_path / "wide.csv", "--dialect", "encoding=utf-16", "--seed", 2)
    assert "\nä,1," in (tmp_path / "wide.csv").read_text(encoding="utf-16")
    rows.write_text("home,own,size,first.age,first.sex\n" + "".join(f"{at},yes,,61,M\n" for at in range(40)))
    ran("complete", fitted, rows, "-o", tmp_path / "known.csv", "--seed", 1)
    heads = [one for one in table(tmp_path / "known.csv") if one["line"] == "1"]
    assert len(heads) == 40 and all(int(one["age"]) >= 60 and one["sex"] == "M" for one in heads)
    rows.write_text("home,own,first.age\nx,yes,3\n")
    assert "probability 0" in refused("complete", fitted, rows, "-o", tmp_path / "p.csv")
    rows.write_text("home,own,age\nx,yes,3\n")
    assert "the column 'age', which children have" in refused("complete", fitted, rows, "-o", tmp_path / "p.csv")
    rows.write_text("home,own\nx,yes\nx,no\n")
    assert "must differ" in refused("complete", fitted, rows, "-o", tmp_path / "p.csv")
    assert not (tmp_path / "p.csv").exists()


def test_comparisons(fitted, tmp_path, ran, refused):
    """A model with the folder of its sample, with its tables and with the records; half a sample is refused."""
    ran("sample", fitted, "-o", tmp_path / "s", "--seed", 1)
    found = json.loads(ran("compare", fitted, tmp_path / "s", "--json")[0])
    far = {tuple(one["attributes"]): one["total_variation"] for one in found["pairs"][0]["differences"]}
    assert far["size",] < 0.01 and far["own", "size"] < 0.01 and far["first.age",] < 0.01
    assert "own x size" in ran("compare", fitted)[0]
    out, err = ran("compare", fitted, "--data", fitted.parents[1] / "household.toml", "--allow-non-private")
    assert "NOT PRIVATE" in out + err
    assert "name the folder of both" in refused("compare", fitted, tmp_path / "s/persons.csv")
    (tmp_path / "s/persons.csv.dpgm.json").unlink()
    assert "does not hold the two tables" in refused("compare", fitted, tmp_path / "s")


def test_the_report_is_of_both_tables(fitted, tmp_path, ran):
    """As the model is; what it says stands in the tests of the report."""
    ran("report", fitted, "-o", tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert '<section id="related"' in text and "Of children are age, sex." in text


def test_python_does_the_same(household):
    """Two data sets and the statement in the terms give the release that the spec gives."""
    run = load_spec(household)
    related, structure = run.terms.related, run.structure
    assert related is not None and structure is not None and related.pair == run.domain
    terms = dpgm.Terms(neighbours="add-remove", unit=run.terms.unit, related=related)
    two = {"root": household.parent / "households.csv", "children": household.parent / "persons.csv"}
    made = dpgm.fit(two, structure, run.budget, terms=terms, randomness=dpgm.SeededRandomness(5))
    assert np.array_equal(made.releases[0].tables.values, run.to_run().fit().releases[0].tables.values)
    assert made.model.related == related


def test_reading_the_spec_is_light(household):
    code = f"import sys; from dpgm.spec import load_spec; load_spec({str(household)!r}); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"scipy", "pyarrow", "numba"} & set(loaded)


@pytest.mark.landing
def test_the_example_runs(tmp_path, monkeypatch, ran):
    """Its records are those of its script; a household's siblings are told apart from independent persons."""
    import importlib.util

    place = Path(__file__).parents[3] / "docs/examples/households"
    spec = importlib.util.spec_from_file_location("households_make", place / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.write(tmp_path)
    for name in ("households.csv", "persons.csv"):
        assert (tmp_path / name).read_bytes() == (place / name).read_bytes()
    (tmp_path / "household.toml").write_text((place / "household.toml").read_text())
    ran("fit", tmp_path / "household.toml", "--set", "simulation.seed=1")
    model = tmp_path / "out/household.dpgm"
    ran("sample", model, "-o", tmp_path / "s", "--seed", 1)
    _, children = assert_resolve(tmp_path / "s", "household_id", 5)
    sexes: dict[str, list[str]] = {}
    for one in children:
        sexes.setdefault(one["household_id"], []).append(one["sex"])
    couples = [two for two in sexes.values() if len(two) >= 2]
    assert sum(one != other for one, other, *_ in couples) / len(couples) > 0.8
