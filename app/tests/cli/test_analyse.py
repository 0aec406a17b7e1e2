"""`dpgm analyse`: the table, its JSON, and requests that are refused."""

import json

import numpy as np
import pytest

import dpgm_core as dpgm
from app.tests.made import domain_of, uniform

pytest.importorskip("formulaic")


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """A model of sex-job and sex-age, whose releases hold no table of age and job."""
    domain = domain_of(sex="F M", age="young mid old", job="y n", town="A B")
    structure = dpgm.Structure(domain, [("sex", "job"), ("sex", "age")])
    codes = np.random.default_rng(3).integers(0, [2, 3, 2, 1], (3000, 4))
    codes[:1000, 2] = codes[:1000, 0]  # a job depends on sex
    path = tmp_path_factory.mktemp("jobs") / "jobs.dpgm"
    dpgm.fit(codes, structure, dpgm.Budget.pure(2), neighbours="add-remove").model.save(path)
    return path


def test_a_regression_prints_a_table(jobs, ran):
    """Title, coefficients with their odds ratios and standing, and what the intervals hold."""
    out, err = ran("analyse", jobs, "job ~ sex")
    lines = out.splitlines()
    assert lines[0].startswith("job ~ sex: logistic regression, event 'n', about ") and not err
    assert " ".join(lines[2].split()) == "coef std err z P>|z| [0.025 0.975] exp(coef) low high standing"
    assert lines[4].startswith("Intercept ") and lines[5].startswith("sex[T.M] ") and lines[5].endswith("  measured")
    assert "Of the variance, noise is " in out and "All coefficients are measured" in out


def test_json_holds_all_of_it(jobs, facts):
    found = facts("analyse", jobs, "job ~ age", "--event", "y", "--level", "0.9", "--given", "sex=F")
    assert (found["kind"], found["family"], found["event"]) == ("regression", "logistic", "y")
    assert (found["level"], found["given"], found["private"]) == (0.9, {"sex": "F"}, True)
    row = found["estimates"][1]
    assert row["name"] == "age[T.mid]" and row["low"] < row["estimate"] < row["high"]
    assert {"exp_estimate", "standing", "unsupported", "missing", "uncorrected"} <= set(row)
    assert found["test"] is None and found["guarantee"]


def test_other_questions(jobs, facts):
    groups = facts("analyse", jobs, "job ~ sex", "--groups")
    assert groups["kind"] == "groups" and groups["estimates"][0]["name"] == "p(n): sex=F"
    assert 0 <= groups["estimates"][2]["p_value"] <= 1 and "p_value" not in groups["estimates"][0]
    table = facts("analyse", jobs, "~ sex + job")
    assert table["kind"] == "table" and table["test"]["degrees_of_freedom"] == 1
    assert len(table["estimates"]) == 4


def test_strict_answers_no_where_an_interval_is_not_promised(jobs, dpgm_command):
    """The answer is printed all the same."""
    code, out, err = dpgm_command("analyse", jobs, "job ~ age", "--strict")
    assert (code, err) == (1, "") and "by structure" in out and "(not promised)" in out
    assert 'put regressions = ["job ~ age"] under [research] in the spec of a new run, in place of cliques' in out
    for more, planned in (
        (["--groups"], "groups = true"),
        (["--event", "y"], 'event = "y"'),
        (["--family", "multinomial"], 'family = "multinomial"'),
    ):
        asked = dpgm_command("analyse", jobs, "job ~ age", *more)[1]
        assert f'put regressions = [{{ formula = "job ~ age", {planned} }}] under [research]' in asked
    for more, planned in (
        (["--groups"], '{ formula = "job ~ age:C(`sex`)", groups = true }'),
        ([], '"job ~ age*C(`sex`)"'),
    ):
        inside = dpgm_command("analyse", jobs, "job ~ age", "--given", "sex=F", *more)[1]
        assert f"put regressions = [{planned}] under [research]" in inside
    assert "name these tables as cliques" in dpgm_command("analyse", jobs, "~ job + age", "--given", "sex=F")[1]
    assert dpgm_command("analyse", jobs, "job ~ age")[:2] == (0, out)
    assert dpgm_command("analyse", jobs, "job ~ sex", "--strict")[0] == 0


def test_rows_that_the_model_drew(jobs, ran, facts, refused, tmp_path):
    expected = facts("analyse", jobs, "job ~ sex")["estimates"][1]
    for name in ("rows.csv", "rows.parquet"):
        ran("sample", jobs, "-n", "2000", "-o", tmp_path / name, "--seed", "1")
        row = facts("analyse", jobs, "job ~ sex", "--rows", tmp_path / name)["estimates"][1]
        assert abs(row["estimate"] - expected["estimate"]) < 0.2 * expected["standard_error"]
        assert row["uncorrected"] != expected["uncorrected"]
    ran("sample", jobs, "-n", "50", "-o", tmp_path / "given.csv", "--given", "sex=F")
    ran("sample", jobs, "-n", "2000", "-o", tmp_path / "more.csv", "--seed", "2")
    both = facts("analyse", jobs, "job ~ sex", "--rows", tmp_path / "rows.csv", "--rows", tmp_path / "more.csv")
    assert both["estimates"][1]["uncorrected"] != row["uncorrected"]
    assert both["estimates"][1]["estimate"] == pytest.approx(row["estimate"], abs=0.2 * row["standard_error"])
    assert "draw rows without --given" in refused("analyse", jobs, "job ~ sex", "--rows", tmp_path / "given.csv")
    uniform(dpgm.load_model(jobs).domain).save(tmp_path / "other.dpgm")
    ran("sample", tmp_path / "other.dpgm", "-n", "50", "-o", tmp_path / "other.csv")
    assert "another model" in refused("analyse", jobs, "job ~ sex", "--rows", tmp_path / "other.csv")
    assert "no table of rows" in refused("analyse", jobs, "job ~ sex", "--rows", jobs)
    assert "there is no file" in refused("analyse", jobs, "job ~ sex", "--rows", tmp_path / "no.csv")
    (tmp_path / "people.csv").write_text("sex,job\nF,y\n")
    assert "may hold records of people" in refused("analyse", jobs, "job ~ sex", "--rows", tmp_path / "people.csv")


def test_a_sample_says_where_standard_errors_come_from(jobs, ran, tmp_path):
    """In its sidecar, whoever reads the rows alone."""
    ran("sample", jobs, "-n", "50", "-o", tmp_path / "rows.csv")
    assert "dpgm analyse MODEL FORMULA --rows" in json.loads((tmp_path / "rows.csv.dpgm.json").read_text())["analysis"]


@pytest.mark.parametrize(
    ("formula", "options", "says"),
    [
        ("job ~ agee", (), "the domain has no column 'agee'; did you mean 'age'?"),
        ("job ~ town", (), "no release behind the model measured 'town'"),
        ("job ~ poly(age, 2)", (), "poly(age, 2) depends on the rows"),
        ("job ~ sex", ("--family", "poisson", "--groups"), "no family"),
        ("job ~ sex", ("--level", "95"), "the level of an interval"),
        ("age ~ sex", ("--event", "ol"), "did you mean 'old'?"),
        ("job ~ sex", ("--family", "gamma"), "--family"),
    ],
)
def test_requests_that_cannot_be_answered(jobs, refused, formula, options, says):
    assert says in refused("analyse", jobs, formula, *options)


def test_a_model_without_a_release(tmp_path, refused):
    uniform(domain_of(sex="F M", job="y n")).save(tmp_path / "u.dpgm")
    line = refused("analyse", tmp_path / "u.dpgm", "job ~ sex")
    assert "the model carries no release, so nothing is known of its noise" in line


def test_formulaic_is_named_where_it_is_not_installed(jobs, refused, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "formulaic", None)
    assert "formulas need formulaic: pip install 'dpgm[research]'" in refused("analyse", jobs, "job ~ sex")
