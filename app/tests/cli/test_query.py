"""`dpgm query`."""

import os
import subprocess
import sys

import numpy as np
import pytest

import dpgm_core as dpgm
from app.tests.made import domain_of, uniform
from tests.fixtures import seeded
from tests.models.enumerated import merge_columns, merged_session


def test_query(model, dpgm_command, refused, ran, facts):
    rows = facts("query", model, "age", "sex")["rows"]
    assert [row["labels"] for row in rows] == [["young", "F"], ["young", "M"], ["old", "F"], ["old", "M"]]
    assert sum(row["probability"] for row in rows) == pytest.approx(1)
    out, _ = ran("query", model, "sex", "-g", "age=young", "--top", "1")
    assert len(out.splitlines()) == 5  # a header with its line, one row, and the standing
    assert facts("query", model, "--map", "--given", "sex=F")["record"]["sex"] == "F"
    assert facts("query", model)["format"] == "dpgm-model"
    assert "Differential privacy" in dpgm_command("query", model)[1]
    for words, hint in (
        (("sxe",), "did you mean 'sex'"),
        (("sex", "-g", "age=yong"), "did you mean 'young'"),
        (("sex", "-g", "age"), "ATTRIBUTE=LABEL"),
        (("sex", "-g", "age=old", "-g", "age=young"), "twice"),
        (("sex", "--map"), "--map"),
        (("-g", "age=old"), "--given"),
        (("sex", "--top", "0"), "--top"),
        (("sex", "--inference", "loopy"), "loopy-bp"),
    ):
        assert hint in refused("query", model, *words)
    assert "no file" in refused("query", model.with_name("none.dpgm"), "sex")


def test_names_and_labels_with_an_equals_sign(tmp_path, facts, refused):
    """The name is that of the first attribute that the text begins with."""
    path = tmp_path / "m.dpgm"
    uniform(domain_of(**{"a=b": "x y=z", "c": "x=1 y"})).save(path)
    for text, given in (("a=b=x", {"a=b": "x"}), ("a=b=y=z", {"a=b": "y=z"}), ("c=x=1", {"c": "x=1"})):
        asked = "c" if "a=b" in given else "a=b"
        assert [row["probability"] for row in facts("query", path, asked, "-g", text)["rows"]] == [0.5, 0.5]
        assert facts("query", path, asked, "-g", text)["given"] == given
    assert "given names 'a', which" in refused("query", path, "c", "-g", "a=x")


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("words", "standing"),
    [
        (("sex",), "measured"),
        (("age", "sex"), "measured"),
        (("sex", "-g", "age=old"), "measured"),
        (("sex", "job"), "by structure"),
        (("sex", "-g", "job=y"), "by structure"),
        (("--map",), "by structure"),
        (("sex", "-g", "job=y", "--intervals", "0.9"), "by structure"),
        (("town", "--unmeasured", "uniform"), "not measured"),
        (("sex", "-g", "town=A", "--unmeasured", "uniform"), "not measured"),
        (("sex", "town", "--unmeasured", "omit"), "measured"),
    ],
)
def test_answers_say_what_they_rest_on(partial, words, standing, ran, facts):
    """In one line under the table, and in JSON; intervals by structure say what they do not cover."""
    out, _ = ran("query", partial, *words)
    assert f"\nstanding: {standing} (" in out
    assert ("not what the structure misses" in out) is ("--intervals" in words)
    if "--map" not in words:
        assert ("  ~0." in out) is (standing == "by structure")  # two digits, and marked
    assert facts("query", partial, *words)["standing"] == standing


def test_intervals_of_what_was_measured_promise_what_they_hold(partial, dpgm_command, tmp_path, facts):
    """There is no caveat; a model without a release answers by definition."""
    out = dpgm_command("query", partial, "sex", "--intervals", "0.9")[1]
    assert "standing: measured" in out and "misses" not in out
    uniform({"a": 2, "b": 2}, ("a",)).save(tmp_path / "m.dpgm")
    shown = facts("query", tmp_path / "m.dpgm", "b")
    assert shown["standing"] == "by definition"
    assert [row["probability"] for row in shown["rows"]] == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(
    "words",
    [
        ("town",),
        ("sex", "town"),
        ("town", "--intervals", "0.9"),
        ("sex", "-g", "town=A"),
        ("sex", "-g", "town=A", "--unmeasured", "omit"),  # a condition is not dropped
        ("sex", "-g", "town=A", "--intervals", "0.9"),
        ("--map", "-g", "town=A"),
        ("town", "--inference", "loopy-bp"),
        ("town", "--unmeasured", "omit"),
    ],
)
def test_what_was_not_measured_is_refused_by_name(partial, refused, words):
    assert "no release behind the model measured 'town'" in refused("query", partial, *words)


def test_what_was_not_measured_is_marked_where_asked_for(partial, dpgm_command, refused, facts, ran):
    """Uniform or left out, never in silence; the description lists it."""
    shown = facts("query", partial, "town", "--unmeasured", "uniform")
    assert [row["probability"] for row in shown["rows"]] == pytest.approx([0.5, 0.5])
    code, out, err = dpgm_command("query", partial, "town", "sex", "--unmeasured", "omit")
    assert code == 0 and out.split()[:2] == ["sex", "probability"]
    assert "left out, as no release measured them: town" in err
    shown = facts("query", partial, "town", "sex", "--unmeasured", "omit")
    assert (shown["attributes"], shown["left_out"]) == (["sex"], ["town"])
    out, err = ran("query", partial, "--map")
    assert "town" not in out and "measured them: town" in err
    shown = facts("query", partial, "--map")
    assert (set(shown["record"]), shown["left_out"]) == ({"sex", "age", "job"}, ["town"])
    shown = facts("query", partial, "--map", "--unmeasured", "uniform")
    assert (shown["record"]["town"], shown["standing"]) in [("A", "not measured"), ("B,C", "not measured")]
    uniform = ("query", partial, "town", "--unmeasured", "uniform", "--intervals", "0.9")
    assert facts(*uniform)["rows"][0]["standard_error"] == pytest.approx(0)
    assert "unknown to the model: town" in dpgm_command("query", partial)[1]
    assert facts("query", partial)["unmeasured"] == ["town"]
    assert "--unmeasured goes with answers" in refused("query", partial, "--unmeasured", "omit")


@pytest.mark.landing
def test_a_reader_that_leaves_early_is_no_traceback(model):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", "from dpgm.cli import main; main()", "query", str(model), "sex"],
        stdout=writing, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.close(writing)
    assert done.returncode == 1
    assert done.stderr == ""


def test_a_replicate_without_support_is_counted_and_said(tmp_path, dpgm_command, facts):
    """Of probabilities and of statistics, in text and JSON; the model gives a third, one replicate of four nothing."""
    domain = dpgm.Domain.from_dict(
        {"fin": {"labels": ["0", "1"], "unknown": "0"}, "age": {"type": "integer", "bins": [0, 10, 20], "unknown": "?"}}
    )
    structure = dpgm.Structure(domain, [("fin", "age")])
    theta = np.log([2, 2, 0.1, 1, 1, 0.1])
    refits = np.stack([theta, theta + 0.1, theta + 0.1 * np.arange(6), np.where(np.arange(6) < 3, theta, -np.inf)])
    model = tmp_path / "m.dpgm"
    dpgm.Model(structure, dpgm.Tables(structure, theta)).with_replicates(refits).save(model)
    for more in ((), ("-s", "mean", "-s", "sd", "-s", "median")):
        words = ("query", model, "age", "-g", "fin=1", "--intervals", "0.9", *more)
        code, out, err = dpgm_command(*words)
        assert code == 0 and "in 1 of 4 replicates the answer is undefined" in out, err
        said = facts(*words)
        assert (said if not more else said["rows"][0])["undefined_replicates"] == 1
    said = dpgm_command("query", model, "age", "-g", "fin=0", "--intervals", "0.9")[1]
    assert "undefined" not in said


DOMAIN = dpgm.Domain.from_dict(
    {
        "age": {"type": "integer", "min": 0, "max": 99, "bins": 5},
        "seen": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": "month", "format": "%d.%m.%Y"},
        "sex": ["F", "M"],
    }
)


@pytest.fixture
def numeric(tmp_path):
    structure = dpgm.Structure.chain(DOMAIN)
    theta = np.random.default_rng(0).normal(size=structure.cells)
    model = dpgm.Model(structure, dpgm.Tables(structure, theta))
    refits = (theta + np.random.default_rng(1).normal(size=(4, structure.cells)) / 9).astype(np.float32)
    model.with_replicates(refits).save(tmp_path / "n.dpgm")
    return tmp_path / "n.dpgm"


def test_statistics_are_the_models(numeric, dpgm_command, facts):
    """Each of each attribute; dates as their column writes them; JSON has the numbers."""
    model = dpgm.load_model(numeric)
    words = ("-s", "mean", "-s", "sd", "-s", "median", "-s", "0.9", "-s", "correlation", "-g", "sex=F")
    code, out, _ = dpgm_command("query", numeric, "age", "seen", *words)
    assert code == 0 and "of age, missing and unknown values are left out" in out
    day = DOMAIN["seen"].values.text(model.quantile("seen", 0.9, {"sex": "F"}))
    assert any(line.split()[:3] == ["seen", "0.9", day] for line in out.splitlines())
    said = facts("query", numeric, "age", "seen", *words)
    values = {(*row["attributes"], row["statistic"]): row["value"] for row in said["rows"]}
    assert values["age", "mean"] == pytest.approx(model.mean("age", {"sex": "F"}))
    assert values["age", "sd"] == pytest.approx(model.variance("age", {"sex": "F"}) ** 0.5)
    assert values["age", "median"] == model.quantile("age", 0.5, {"sex": "F"})
    assert values["age", "seen", "correlation"] == pytest.approx(
        model.correlation("age", "seen", {"sex": "F"}, calibrated=True)
    )
    assert len(values) == 9 and said["with_a_number"]["age"] < 1


def test_a_correlation_of_merged_codes_is_corrected_and_says_what_records_have(tmp_path, dpgm_command, facts):
    """Codes of a block have a share of its correlation; the pair is in a table, but for what blocks take away."""
    merges = {"age": (0, 0, 1, 1, 2, 2, 3, 3), "wage": (0, 0, 1, 1, 2, 2, 3, 3)}
    domain = dpgm.Domain.from_dict({name: {"type": "integer", "min": 0, "max": 7} for name in merges})
    whole = dpgm.Domain(domain.attributes)
    merges = {name: (*merges[name], *range(4, 4 + one.size - 8)) for name, one in zip(merges, whole, strict=True)}
    age = np.random.default_rng(1).binomial(7, 0.5, 4000)
    codes = np.stack([age, np.clip(age + np.random.default_rng(2).integers(-1, 2, 4000), 0, 7)], axis=1)
    coarse, exact = whole.coarsened(merges), dpgm.Budget.pure(10_000)
    steps = [
        dpgm.release(codes, dpgm.Structure(whole, [("age",), ("wage",)]), exact, **seeded(1)),
        dpgm.release(
            merge_columns(codes, whole, merges), dpgm.Structure(coarse, [("age", "wage")]), exact, **seeded(2)
        ),
    ]
    model = dpgm.learn(merged_session(whole, merges, steps, 30_000)).model
    model.save(tmp_path / "m.dpgm")
    row = facts("query", tmp_path / "m.dpgm", "age", "wage", "-s", "correlation")["rows"][0]
    wanted = np.corrcoef(codes.T)[0, 1]
    assert row["value"] == pytest.approx(wanted, abs=0.05) and row["of_records"] < wanted - 0.1
    out = dpgm_command("query", tmp_path / "m.dpgm", "age", "wage", "-s", "correlation")[1]
    assert f"drawn records have the correlation {row['of_records']:.6g}" in out


def test_error_bars_are_those_of_the_replicates(numeric, dpgm_command, facts):
    code, out, _ = dpgm_command("query", numeric, "age", "-s", "mean", "--intervals", "0.9")
    assert code == 0 and "standard error" in out and "not what the structure misses" in out
    said = facts("query", numeric, "age", "-s", "mean", "--intervals", "0.9")
    found = dpgm.load_model(numeric).interval_of(lambda model: model.mean("age"))
    assert said["rows"][0]["low"] == pytest.approx(float(found.low)) and said["replicates"] == 4


def test_values_that_are_given_find_their_bin(numeric, dpgm_command):
    """And stderr says which; out of bounds is refused."""
    assert "age=37 is in the bin 20-39" in dpgm_command("query", numeric, "sex", "-g", "age=37")[2]
    assert "age=37 is in the bin 20-39" in dpgm_command("query", numeric, "seen", "-s", "mean", "-g", "age=37")[2]
    assert "outside of its bins" in dpgm_command("query", numeric, "sex", "-g", "age=137")[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("age", "-s", "mode"), "got 'mode'"),
        (("age", "-s", "1.5"), "got '1.5'"),
        (("age", "-s", "nan"), "got 'nan'"),
        (("sex", "-s", "mean"), "has no numbers"),
        (("age", "-s", "correlation"), "name both"),
        (("-s", "mean"), "goes with attributes"),
        (("age", "-s", "mean", "--top", "3"), "goes with attributes"),
        (("age", "-s", "mean", "-g", "age=3"), "both asked for and given"),
    ],
)
def test_what_cannot_be_computed_is_refused(numeric, refused, words, message):
    assert message in refused("query", numeric, *words)


def test_intervals_say_that_rows_of_a_person_count_as_independent(spec, ran, dpgm_command):
    """Of shares, of statistics and in the report; without intervals there is nothing to say."""
    ids = "".join(f"{number // 4}\n" for number in range(120)).splitlines()
    lines = (spec.parent / "visits.csv").read_text().splitlines()
    rows = [f"{line},{key}" for line, key in zip(lines[1:], ids, strict=True)]
    (spec.parent / "visits.csv").write_text("\n".join([f"{lines[0]},id", *rows]) + "\n")
    ran("fit", spec, "--set", "person=id", "--set", "rows_per_person=4")
    model = spec.parent / "out" / "visits.dpgm"
    said = "Intervals take rows as independent; where the rows of a person are alike, they are up to 2 times too narrow"
    for words in (("sex",), ("age", "-s", "mean")):
        assert said not in ran("query", model, *words)[0]
        assert said in ran("query", model, *words, "--intervals", "0.9", "--replicates", 3)[0]
    ran("report", model, "-o", spec.parent / "page.html")
    assert said in (spec.parent / "page.html").read_text()
