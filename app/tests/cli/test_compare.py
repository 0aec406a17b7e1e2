"""`dpgm compare`: which files go together, and what it prints; and what the former `dpgm evaluate` gave."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import dpgm_core as dpgm
from app.tests.made import uniform
from tests.pages import DOCS, run_here


def test_one_model_and_records(model, dpgm_command, refused, facts):
    """A model alone against its release; records only when allowed, and with one model."""
    assert "total variation" in dpgm_command("compare", model)[1]
    never = model.with_name("never.dpgm")
    structure = dpgm.load_model(model).structure
    values = np.array([0.0, 0.0, 0.0, -np.inf])
    dpgm.Model(structure, dpgm.Tables(structure, values)).save(never)
    data = model.with_name("d.csv")
    data.write_text("sex,age\nF,old\n")
    assert "--allow-non-private" in refused("compare", model, "--data", data)
    code, out, err = dpgm_command("compare", model, "--data", data, "--allow-non-private")
    assert code == 0 and "NOT PRIVATE" in out and "NOT PRIVATE" in err
    assert "one model with records" in refused("compare", model, never, "--data", data)
    assert "no release" in refused("compare", never)
    assert facts("compare", model, never)["pairs"][0]["kl"]["first_other"] == "inf"


def test_evaluate_still_works(partial, dpgm_command, facts):
    other = partial.with_name("hand.dpgm")
    structure = dpgm.Structure(dpgm.load_model(partial).domain, [("sex", "town"), ("job",)])
    uniform(structure).save(other)
    for one, against in ((other, partial), (partial, other)):
        code, out, err = dpgm_command("evaluate", one, "--against", against)
        assert code == 0 and "KL(other || model)" in out and "sex x town" not in out
        assert "dpgm evaluate is dpgm compare now" in err
        assert "no release measured town: tables with them are left out, and the KL takes" in err
        shown = facts("evaluate", one, "--against", against)
        assert shown["unmeasured"] == ["town"] and set(shown["models"]) == {str(one), str(against)}
        wanted = [["job"]] if one == other else [["sex", "age"], ["age", "job"]]
        assert [table["clique"] for table in shown["tables"]] == wanted
    code, out, err = dpgm_command("evaluate", partial)
    assert code == 0 and "sex x age" in out and "the KL takes" not in err


def test_synthetic_files_by_a_model_or_a_domain(model, dpgm_command, refused):
    """Drawn by `dpgm sample`; records without its stamp are refused by how they can be compared."""
    folder = model.parent
    for seed, name in ((1, "s.csv"), (2, "t.parquet")):
        assert dpgm_command("sample", model, "-n", 300, "--seed", seed, "-o", folder / name)[0] == 0
    code, out, err = dpgm_command("compare", model, folder / "s.csv", folder / "t.parquet")
    assert (code, err) == (0, "") and "0 of 3 tables differ by more than errors explain" in out
    assert "synthetic" in out and "300" in out
    assert "--domain FILE" in refused("compare", folder / "s.csv", folder / "t.parquet")
    labels = {one.name: {"labels": list(one.labels), "unknown": one.labels[0]} for one in dpgm.load_model(model).domain}
    (folder / "domain.json").write_text(json.dumps({"attributes": labels}))
    words = ("compare", folder / "s.csv", folder / "t.parquet", "--domain", folder / "domain.json")
    assert dpgm_command(*words)[0] == 0
    (folder / "people.csv").write_text("sex,age\nF,old\n")
    said = refused("compare", model, folder / "people.csv")
    assert f"dpgm compare MODEL --data {folder / 'people.csv'} --allow-non-private" in said


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "dialect", ["delimiter=;", "encoding=utf-16", "encoding=latin-1", "quoting=true", "line_ends=crlf"]
)
def test_files_of_every_dialect_of_a_sample_are_read(model, dpgm_command, dialect, facts):
    """By their stamp, or, of an older one, by their first line; other signs are said. All give the same numbers."""
    folder = model.parent

    def shown(*words):
        return [one["differences"] for one in facts("compare", model, *words)["pairs"]]

    for name, words in (("plain.csv", ()), ("s.csv", ("--dialect", dialect)), ("o.csv", ("--dialect", "delimiter=:"))):
        assert dpgm_command("sample", model, "-n", 50, "--seed", 1, "-o", folder / name, *words)[0] == 0
    plain = shown(folder / "plain.csv")
    assert shown(folder / "s.csv") == shown(folder / "o.csv") == plain
    for name in ("s.csv", "o.csv"):
        stamp = folder / f"{name}.dpgm.json"
        older = {key: fact for key, fact in json.loads(stamp.read_text()).items() if key != "dialect"}
        stamp.write_text(json.dumps(older))
    if "latin-1" not in dialect:  # whose names are ASCII: nothing but its records would tell
        assert shown(folder / "s.csv") == plain
    assert shown(folder / "s.csv", *(("--dialect", dialect) if "line" not in dialect else ())) == plain
    assert dpgm_command("compare", model, folder / "o.csv")[0] == 2
    assert shown(folder / "o.csv", "--dialect", "delimiter=:") == plain


def test_a_page_replaces_a_page_only(model, partial, dpgm_command, refused):
    """An earlier one of its kind; another ending, another file or one model alone is refused before any work."""
    page = model.with_name("c.html")
    for _ in range(2):
        code, out, err = dpgm_command("compare", model, partial, "-o", page)
        assert code == 0 and f"page: {page}" in err and "against" in out
        assert page.read_text().startswith("<!doctype html>\n<!-- dpgm comparison -->")
    other = model.with_name("other.html")
    other.write_text("<!doctype html>\n")
    missing = model.with_name("none.dpgm")  # not looked for yet
    assert "only a dpgm comparison is replaced" in refused("compare", model, missing, "-o", other)
    assert "must end in .html" in refused("compare", model, partial, "-o", model.with_name("c.pdf"))
    assert "dpgm report MODEL" in refused("compare", model, "-o", page)


@pytest.mark.landing
def test_the_page_of_the_documentation_runs(tmp_path, monkeypatch, capfd):
    """Its commands and its Python, beside a copy of the example: every table of the two models has a score."""
    shutil.copytree(DOCS / "examples/health", tmp_path / "docs/examples/health", ignore=shutil.ignore_patterns("out"))
    monkeypatch.chdir(tmp_path)
    run_here(DOCS / "compare.md")
    out = capfd.readouterr().out
    assert "half.dpgm against health.dpgm" in out and " of 30 tables differ by more than errors explain" in out
    assert "half.dpgm against health.dpgm" in Path("compare.html").read_text()


def release_to(path, domain: dpgm.Domain, *cliques: tuple[str, ...]) -> None:
    terms = {"neighbours": "add-remove", "randomness": dpgm.SeededRandomness(1)}
    codes = np.zeros((200, len(domain)), dtype=int)
    dpgm.release(codes, dpgm.Structure(domain, cliques), dpgm.Budget.pure(1), save_release=path, **terms)


def test_models_and_releases_side_by_side(model, partial, dpgm_command, ran):
    """Facts in columns, domains, cliques, KL or why not, and differences; two releases by their noise."""
    out, _ = ran("compare", model, partial)
    shown_facts = {line.split("  ")[0]: line.split() for line in out.splitlines()[2:12]}
    assert shown_facts["cost"][-3:] == ["epsilon", "=", "5"] and shown_facts["attributes"][-2:] == ["2", "4"]
    assert "partial.dpgm against m.dpgm" in out and "only in partial.dpgm: town, job" in out
    assert "cliques: 1 in both, 0 in m.dpgm alone, 1 in partial.dpgm alone" in out
    assert "only in partial.dpgm: age x job" in out
    assert "no KL: they are not over the same attributes and labels" in out
    assert "note: whether errors explain these differences is not known" in out
    one, two = model.with_name("a.release.dpgm"), model.with_name("b.release.dpgm")
    release_to(one, dpgm.Domain.from_sizes({"x": 2, "y": 2}), ("x", "y"))
    release_to(two, dpgm.Domain.from_sizes({"x": 2, "y": 3}), ("x",))
    code, out, err = dpgm_command("compare", one, two)
    assert code == 0 and "not compared, other labels: y, 0 only in the first, 1 in the other" in out
    assert "note: no table was measured by both" in out and "with reservations" in out
    assert err.count("NOT PRIVATE (private = false)") == 2


def test_long_lists_end(tmp_path, dpgm_command):
    attributes = 20
    domain = dpgm.Domain.from_sizes({f"x{number}": 2 for number in range(attributes)})
    structure = dpgm.Structure(domain, [(name,) for name in domain.names])
    for number in (0, 1):
        values = np.repeat(np.arange(attributes), 2) * np.tile([0.0, 0.1 * number], attributes)
        dpgm.Model(structure, dpgm.Tables(structure, values)).save(tmp_path / f"{number}.dpgm")
    code, out, _ = dpgm_command("compare", tmp_path / "0.dpgm", tmp_path / "1.dpgm")
    lines = out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("attribute  "))
    assert code == 0 and lines[at + 2].startswith("x19 ") and "... 5 more, closer together; --json has all" in out
