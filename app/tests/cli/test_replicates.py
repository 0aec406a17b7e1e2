"""Error bars on the command line: computed once, kept in the file, refused where they make no sense."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import dpgm_core as dpgm
from app.tests.made import uniform
from dpgm.cli import query as replicates


@pytest.fixture
def kept(model, dpgm_command) -> Path:
    """The model file once somebody has asked for intervals."""
    assert dpgm_command("query", model, "sex", "--intervals", 0.9, "--replicates", 5)[0] == 0
    return model


def test_query_adds_error_bars(kept, dpgm_command, facts):
    """Three columns, in text and JSON; they are those of the model, and hold what is conditioned on."""
    shown = facts("query", kept, "age", "-g", "sex=F", "--intervals", "0.8")
    assert (shown["level"], shown["replicates"]) == (0.8, 5)
    found = dpgm.load_model(kept).intervals("age", given={"sex": "F"}, level=0.8)
    rows = zip(found.estimate, found.standard_error, found.low, found.high, strict=True)
    for row, (probability, error, low, high) in zip(shown["rows"], rows, strict=True):
        assert row["probability"] == probability
        assert (row["standard_error"], row["low"], row["high"]) == (error, low, high)
    _, out, _ = dpgm_command("query", kept, "age", "sex", "--intervals", "0.9", "--top", "1")
    header, _, row = out.splitlines()[:3]
    assert header.split() == ["age", "sex", "probability", "standard", "error", "low", "high"]
    probability, error, low, high = map(float, row.split()[2:])
    assert low < probability < high and error > 0


def test_replicates_are_made_once_and_kept(model, dpgm_command):
    """The first question writes them into the file, later ones only read; everything else in the file stays."""
    before = dpgm.load_model(model)
    asked = ("query", model, "sex", "--intervals", "0.9", "--json")
    first = dpgm_command(*asked, "--replicates", 3)[1]
    written = model.read_bytes()
    assert dpgm_command(*asked)[1] == first
    assert dpgm_command(*asked, "--replicates", 3)[1] == first
    assert model.read_bytes() == written
    after = dpgm.load_model(model)
    assert len(after.replicates) == 3
    assert np.array_equal(after.potentials.values, before.potentials.values)
    assert after.release.guarantee() == before.release.guarantee()
    assert json.loads(dpgm_command(*asked, "--replicates", 4)[1])["replicates"] == 4
    assert len(dpgm.load_model(model).replicates) == 4


def test_a_seed_repeats_them_and_a_read_only_file_is_answered_from(model, dpgm_command, monkeypatch):
    """A seed repeats the intervals, whatever the file held; where replicates cannot be saved stderr says so."""
    asked = ("query", model, "sex", "--intervals", "0.9", "--replicates", 3, "--json")
    one, free = dpgm_command(*asked, "--seed", 1)[1], dpgm_command(*asked[:-2], 4, "--json")[1]
    assert one == dpgm_command(*asked, "--seed", 1)[1] != free
    before = model.read_bytes()
    monkeypatch.setattr(replicates.os, "access", lambda path, mode: mode != os.W_OK)
    code, out, err = dpgm_command("query", model, "sex", "--intervals", "0.9", "--replicates", 2)
    assert (code, len(out.splitlines())) == (0, 6)
    assert "not kept" in err and "read-only" in err
    assert model.read_bytes() == before


def test_a_link_stays_a_link_and_permissions_stay(model, dpgm_command):
    """What is replaced is the file behind the name, for those who could read it before."""
    model.chmod(0o640)
    link = model.with_name("link.dpgm")
    link.symlink_to(model)
    assert dpgm_command("query", link, "sex", "--intervals", "0.9", "--replicates", 2)[0] == 0
    assert link.is_symlink()
    assert model.stat().st_mode & 0o777 == 0o640
    assert len(dpgm.load_model(model).replicates) == 2


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--map", "--intervals", "0.9"), "--intervals"),
        (("--intervals", "0.9"), "name attributes"),
        (("sex", "--intervals", "90"), "between 0 and 1"),
        (("sex", "--intervals", "nan"), "between 0 and 1"),
        (("sex", "--intervals", "wide"), "--intervals"),
        (("sex", "--intervals", "0.9", "--replicates", "1"), "--replicates"),
        (("sex", "--replicates", "40"), "--intervals"),
        (("sex", "--seed", "1"), "--intervals"),
        (("sxe", "--intervals", "0.9"), "did you mean 'sex'"),
    ],
)
def test_senseless_questions_are_refused_before_any_work(model, refused, words, hint):
    before = model.read_bytes()
    assert hint in refused("query", model, *words)
    assert model.read_bytes() == before


def test_a_model_that_cannot_be_bootstrapped_says_why(tmp_path, refused):
    uniform({"a": 2}).save(tmp_path / "m.dpgm")
    assert "no release" in refused("query", tmp_path / "m.dpgm", "a", "--intervals", "0.9")
    assert "no release" in refused("sample", tmp_path / "m.dpgm", "-n", 1, "--datasets", 2, "-o", tmp_path / "s.csv")


def test_several_data_sets(kept, refused, ran, facts):
    """OUTPUT-1 and so on, each from another replicate; more of them than there are replicates means more refits."""
    out, _ = ran("sample", kept, "-n", 20, "--datasets", 3, "-o", kept.with_name("s.csv"), "--seed", 1)
    made = [kept.with_name(f"s-{number}.csv") for number in (1, 2, 3)]
    assert out.splitlines() == [f"20 synthetic records: {path}" for path in made]
    contents = [path.read_text() for path in made]
    assert [len(content.splitlines()) for content in contents] == [21] * 3
    assert len(set(contents)) == 3
    assert not kept.with_name("s.csv").exists()
    assert len(dpgm.load_model(kept).replicates) == 5
    assert len(facts("sample", kept, "-n", 1, "--datasets", 41, "-o", kept.with_name("t.arrow"))["files"]) == 41
    assert len(dpgm.load_model(kept).replicates) == 41
    refused("sample", kept, "-n", 1, "--datasets", 1, "-o", kept.with_name("u.csv"))
    assert "must end in" in refused("sample", kept, "-n", 1, "--datasets", 2, "-o", kept.with_name("u.txt"))


# --- fit ----------------------------------------------------------------------------------------------------------


def test_fit_prints_intervals_where_the_spec_asks(spec, dpgm_command, ran):
    """With [intervals] every share has its interval and the file has the replicates; without, neither."""
    words = ("--set", "simulation.seed=1", "--set", "learner=naive-mle", "--set", "learner.l2=0.001")
    _, plain, _ = dpgm_command("fit", spec, *words)
    assert "% interval" not in plain
    out, _ = ran("fit", spec, *words, "--set", "intervals={level=0.8, replicates=3}")
    assert "(80% interval)" in out
    (line,) = [line for line in out.splitlines() if line.startswith("sex")]
    assert line.count("% (") == 2
    model = dpgm.load_model(spec.parent / "out" / "visits-2.dpgm")
    low = 100 * model.intervals("sex", level=0.8).low[0]
    assert f"({low:.1f}-" in line
    assert len(model.replicates) == 3


def test_a_learner_without_a_bootstrap_still_fits(spec, dpgm_command):
    """The model is paid for: it is saved and printed, and stderr says why there are no intervals."""
    code, out, err = dpgm_command(
        "fit", spec, "--set", "learner={name='psgd', epochs=1, sampling_rate=0.5}", "--set", "mechanism=gaussian",
        "--set", "budget={epsilon=1, delta=1e-6}", "--set", "total=120", "--set", "intervals={}",
        "--set", "ledger={path='x.ledger', budget={epsilon=2, delta=1e-5}, create=true}",
    )  # fmt: skip
    assert code == 0, err
    assert "no intervals: learner psgd cannot be bootstrapped" in err
    assert "share of records" in out and "% interval" not in out


@pytest.mark.parametrize(
    "setting", ["level=1", "level=high", "replicates=1", "replicates=2.5", "replicates=5000", "levle=0.9"]
)
def test_wrong_intervals_in_a_spec_are_refused(spec, refused, setting):
    refused("fit", spec, "--set", f"intervals.{setting}")
    assert not (spec.parent / "out").exists()
