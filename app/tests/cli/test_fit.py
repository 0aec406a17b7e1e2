"""The command line: exit codes, one-line refusals, what is written and what is not."""

import json
import stat
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.tests.made import files
from dpgm_core import Model, ModelFileError, NoisyTables, StructureError, load_model, load_release
from dpgm_core.curator.funds import Funds


def test_fit_runs_until_the_ledger_is_empty(spec, dpgm_command, refused, ran, facts):
    """Two runs fit, each with its own files; the third is refused and leaves everything as it was."""
    for name, left in (("visits", "1.5"), ("visits-2", "0.5")):
        out, _ = ran("fit", spec)
        assert f"{name}.dpgm" in out
        assert f"left in the ledger: epsilon = {left}" in out
        told = dpgm_command("plan", spec)[1]
        assert f"ledger: epsilon = {left} left" in told and ("would be refused" in told) == (left == "0.5")
        assert "Differential privacy with epsilon = 1" in out
    before = {name: (spec.parent / name).read_bytes() for name in files(spec.parent) if name.endswith(".dpgm")}
    assert len(before) == 4
    assert "only epsilon = 0.5 is left" in refused("fit", spec)
    assert before == {name: (spec.parent / name).read_bytes() for name in files(spec.parent) if name.endswith(".dpgm")}
    assert [entry["status"] for entry in facts("ledger", "show", spec.parent / "out/visits.ledger")["charges"]] == [
        "released",
        "released",
    ]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("data=no-such.csv", "no-such.csv"),
        ("budget.epsilon=0", "epsilon must be a positive number"),
        ("budget.epsilon=nan", "epsilon"),
        ("budget.delta=1e-6", "laplace"),
        ("neighbours=adjacent", "add-remove, replace-one"),
        ("mechanism=laplce", "did you mean 'laplace'"),
        ("learner.l3=1", "no option 'l3'"),
        ("inference.max_bytes=1", "max_bytes"),
        ("structure.graph=chian", "did you mean 'chain'"),
        ("structure.order=0", "order"),
        ("total=-3", "total"),
        ("rows_per_person=2", "person"),
        ("nmae=x", "did you mean 'name'"),
        ("domain=visits.csv", "must end in .toml or .json"),
        ("nonsense", "KEY=VALUE"),
        ("ledger.budget.epsilon=0.5", "holds only epsilon = 0.5"),
    ],
)
def test_wrong_requests_write_nothing(spec, refused, setting, words):
    before = files(spec.parent)
    assert words in refused("fit", spec, "--set", setting)
    assert files(spec.parent) == before


TWO_STAGE = ["learner=bayes-net-two-stage", "structure={parents={age=['sex']}}", "mechanism=gaussian"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["structure={parents={sex=['sex']}}"], "sex -> sex"),
        (["structure={parents={sex=['aeg']}}"], "did you mean 'age'"),
        (["structure={parents={sxe=['age']}}"], "did you mean 'sex'"),
        (["structure={parents={sex=['age', 'age']}}"], "'age' is named twice"),
        (["learner=bayes-net"], "no directed graph: 'age' stands first in no clique"),
        (["learner=local"], "no directed graph"),
        (["learner=bayes-net-two-stage"], "no directed graph"),
        (["learner=bayes-net", "structure={select='mst'}"], "selector = 'privbayes'"),
        (["learner=bayes-net-two-stage", "structure={select='privbayes'}"], "a part of the budget first"),
        (["structure={select={name='privbayes', order='sex'}}"], "must be list of text"),
        ([*TWO_STAGE, "budget.delta=1e-6", "ledger.budget.delta=1e-5"], "ask for rho"),
        (
            [*TWO_STAGE, "learner.sampling_rate=0.1", "budget={rho=0.1}", "ledger.budget={rho=1}"],
            "leave sampling_rate = 1",
        ),
    ],
)
def test_networks_that_cannot_be_learned_cost_nothing(spec, refused, settings, words):
    before = files(spec.parent)
    assert words in refused("fit", spec, *(word for setting in settings for word in ("--set", setting)))
    assert files(spec.parent) == before


def test_one_release_is_not_learned_from_in_two_stages(spec, facts, refused):
    """One line that says what it takes, and nothing is written beside the release."""
    release = facts("release", spec, "--set", "structure={parents={age=['sex']}}")["release"]
    before = files(spec.parent)
    said = refused("learn", release, "--learner", "bayes-net-two-stage")
    assert "from the two releases of one run of its own" in said
    assert files(spec.parent) == before


def test_missing_and_broken_specs(tmp_path, refused):
    assert "no-spec.toml" in refused("fit", tmp_path / "no-spec.toml")
    refused("plan", tmp_path)
    for content, words in (("a = ", "TOML"), ("a = " + "[" * 10**4, "TOML"), ("name = 'x'", "does not say 'data'")):
        (tmp_path / "x.toml").write_text(content)
        assert words in refused("plan", tmp_path / "x.toml")


def test_settings_override_the_spec(spec, facts):
    shown = facts(
        "fit", spec, "--set", "name=other", "--set", "budget={epsilon=2}",
        "--set", "learner=naive-mle", "--set", "learner.l2=0.25",
        "--set", "total=120", "--set", "unit=one visit", "--set", "ledger.path=out/o.ledger",
    )  # fmt: skip
    assert Path(shown["model"]).name == "other.dpgm"
    assert shown["spent"] == {"epsilon": "2"}
    assert shown["records"] == {"total": 120.0, "policy": "declared"}
    assert shown["certificate"]["l2"] == 0.25
    assert "one visit" in shown["guarantee"]
    assert shown["private"] is True


def test_release_then_learn(spec, refused, facts):
    """The two halves; learning costs nothing, never overwrites, and takes settings."""
    path = Path(facts("release", spec)["release"])
    before = path.read_bytes()
    for name in ("visits.naive-mle.dpgm", "visits.naive-mle-2.dpgm"):
        assert Path(
            facts("learn", path, "--learner", "naive-mle", "--set", "learner.l2=0.5")["model"]
        ) == path.with_name(name)
    assert "itself" in refused("learn", path, "-o", path)
    assert "must start with" in refused("learn", path, "--set", "budget.epsilon=1")
    refused("learn", spec)
    assert path.read_bytes() == before


@pytest.mark.parametrize("error", [ZeroDivisionError("not my day"), StructureError("not my day"), SystemExit(0)])
def test_a_failed_learner_leaves_the_paid_release(spec, dpgm_command, facts, registered, error):
    """Exit 1, no traceback, and a last word that works as it is printed: dpgm learn FILE."""

    def fail(curator, inference):
        curator.release()
        raise error

    code, out, err = dpgm_command("fit", spec, "--set", f"learner={registered('failing', fail)}")
    assert (code, out) == (1, "") and "Traceback" not in err
    hint = next(line for line in err.splitlines() if "dpgm learn " in line)
    assert dpgm_command("learn", hint.split("dpgm learn ")[1])[0] == 0
    assert len(facts("ledger", "show", spec.parent / "out/visits.ledger")["charges"]) == 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", ["SECRET1,SECRET2", "sex,SECRET", "SECRET,agee", "age,age", '"SECRET",x', "sexx"])
@pytest.mark.parametrize("command", ["fit", "release"])
def test_no_cell_of_a_first_line_is_shown(spec, refused, dpgm_command, command, first):
    """With a ledger to be made and with one that is there, forgotten headers get one sentence; validate tells why."""
    data = spec.parent / "visits.csv"
    said = []
    for line in (first, "F,30"):
        data.write_text(f"{line}\nM,50\n")
        said.append(refused(command, spec))
        assert files(spec.parent) == {"visits.toml", "domain.toml", "visits.csv"}  # no ledger for nothing
    data.write_text("sex,age\nF,30\n")
    dpgm_command("release", spec)
    for line in ("F,30", first):
        data.write_text(f"{line}\nM,50\n")
        said.append(refused(command, spec))
    assert len(set(said)) == 1 and "'sex', 'age'" in said[0] and "SECRET" not in said[0]
    if not first.startswith('"') and first != "age,age":
        code, out, _ = dpgm_command("validate", spec)
        assert code == 1 and first.split(",")[-1] in out


# --- what is there already ----------------------------------------------------------------------------------------


def test_learn_replaces_a_model_and_nothing_else(spec, dpgm_command, refused):
    """`-o` over the ledger, the records, the spec or a release is refused at once; over a model it is said."""
    assert dpgm_command("fit", spec)[0] == 0
    out = spec.parent / "out"
    release, model = out / "visits.release.dpgm", out / "visits.dpgm"
    other = out / "other.dpgm"
    other.write_bytes(release.read_bytes())
    for path in (out / "visits.ledger", spec, spec.with_name("visits.csv"), spec.with_name("domain.toml"), other):
        before = path.read_bytes()
        assert "only a dpgm model is replaced there: name another file" in refused("learn", release, "-o", path)
        assert path.read_bytes() == before
    before = model.read_bytes()
    code, _, err = dpgm_command("learn", release, "--learner", "naive-mle", "-o", model)
    assert code == 0 and f"{model} is a model, which will be replaced" in err
    assert model.read_bytes() != before


def test_fit_says_where_the_release_really_is(spec, dpgm_command, monkeypatch):
    """Another process takes its name while it counts; the release is saved beside it, and said so, failing or not."""
    taken = spec.parent / "out" / "visits.release.dpgm"
    charge = Funds.charge

    @contextmanager
    def meanwhile(self, cost, conditions=(), **how):
        with charge(self, cost, conditions, **how) as receipt:
            taken.write_text("another's")
            yield receipt

    monkeypatch.setattr(Funds, "charge", meanwhile)
    beside = taken.with_name("visits.release-2.dpgm")
    code, out, err = dpgm_command("fit", spec, "--json")
    assert code == 0 and taken.read_text() == "another's"
    assert json.loads(out)["release"] == str(beside) and load_release(beside)
    assert f"another process wrote {taken} during the run, so the release was saved as {beside}" in err
    for path in (taken, beside, spec.parent / "out" / "visits.dpgm"):
        path.unlink()
    code, out, _ = dpgm_command("release", spec)
    assert code == 0 and f"release: {beside}" in out
    for path in (taken, beside):
        path.unlink()
    monkeypatch.setattr("dpgm_core.models.model.Model.save", failing)
    code, _, err = dpgm_command("fit", spec, "--set", "budget.epsilon=0.5")
    assert code == 1 and f"dpgm learn {beside}" in err and "the disk is full" in err


def failing(self, path):
    raise ModelFileError(f"cannot write {path}: the disk is full")


@pytest.fixture
def checked(spec) -> Path:
    """The spec with a third attribute and a share for a holdout; the job is the sex."""
    with (spec.parent / "domain.toml").open("a") as domain:
        domain.write('[attributes.job]\nlabels = ["no", "yes"]\nunknown = "no"\n')
    (spec.parent / "visits.csv").write_text("sex,age,job\n" + "F,30,no\nM,50,yes\nM,30,yes\nF,60,no\n" * 100)
    spec.write_text(spec.read_text() + "[holdout]\nshare = 0.2\n[simulation]\nseed = 3\n")
    return spec


def test_a_check_is_paid_for_from_the_budget_and_its_finding_printed(checked, ran, facts):
    """One charge of the whole, two releases, a line on what the structure misses; the JSON has the figures."""
    out, _ = ran("fit", checked)
    assert "spent:   epsilon = 1; left in the ledger: epsilon = 1.5" in out
    assert "visits.release-2.dpgm" in out
    assert "holdout: the structure misses about 0." in out
    told = facts("fit", checked)
    assert told["spent"] == {"epsilon": "1"}
    assert len(told["releases"]) == 2
    assert 0 <= told["structure_error"]["low"] <= told["structure_error"]["tv"] <= told["structure_error"]["high"]
    assert {tuple(one["table"]) for one in told["misfit"]} == {("sex", "age"), ("age", "job")}
    folder = checked.parent / "out"
    assert facts("learn", folder / "visits.release.dpgm", folder / "visits.release-2.dpgm")["structure_error"][
        "tv"
    ] == pytest.approx(told["structure_error"]["tv"], abs=0.2)
    out, _ = ran("query", folder / "visits.dpgm", "sex", "job", "--intervals", "0.9", "--seed", "1")
    assert "the holdout" in out
    assert {tuple(one["clique"]) for one in facts("compare", folder / "visits.dpgm")["tables"]} == {
        ("sex", "age"),
        ("age", "job"),
    }
    _, err = ran("plan", checked)
    assert "epsilon = 0.2 of the budget is set aside for a holdout: 1 of the 1 pairs" in err


def test_without_a_check_there_is_no_finding(spec, dpgm_command, facts):
    _, out, _ = dpgm_command("fit", spec)
    assert "check:" not in out
    assert facts("fit", spec)["structure_error"] is None


@pytest.mark.parametrize(
    ("setting", "words"),
    [("holdout.share=1", "below 1"), ("holdout.share=-0.1", "share"), ("holdout.pairs=3", "no setting 'pairs'")],
)
def test_a_check_that_cannot_be_is_refused_before_anything_is_charged(checked, refused, setting, words):
    assert words in refused("fit", checked, "--set", setting)
    assert not (checked.parent / "out").exists()


def test_a_structure_without_such_pairs_and_a_release_alone_refuse_a_check(checked, refused, ran):
    """The line says what would do; a share of 0 is none."""
    every = 'structure.cliques=[["sex", "age", "job"]]'
    assert "leave the holdout out" in refused("fit", checked, "--set", every, "--set", "structure.graph=complete")
    assert "--set holdout.share=0" in refused("release", checked)
    ran("release", checked, "--set", "check.share=0")


def test_fit_says_that_a_model_is_uniform(spec, dpgm_command):
    """Where noise drowns everything the screen says so without being asked, and not where something was found."""
    said = "WARNING: the model is uniform"
    found = dpgm_command("fit", spec, "--set", "simulation.seed=1")
    drowned = dpgm_command("fit", spec, "--set", "budget.epsilon=0.0001", "--set", "simulation.seed=1")
    assert (found[0], drowned[0]) == (0, 0), drowned
    assert said not in found[1] and said in drowned[1]


def test_a_model_that_cannot_be_written_is_saved_beside_the_ledger(spec, dpgm_command, monkeypatch):
    """It is said where and why, on screen and in the JSON; the run is done, and the next one is as any other."""
    save, out = Model.save, spec.parent / "out"

    def full(self, path):
        if Path(path).parent == out:
            raise ModelFileError(f"cannot write {path}: the disk is full")
        save(self, path)

    monkeypatch.setattr(Model, "save", full)
    code, told, err = dpgm_command("fit", spec, "--json", "--set", "ledger.path=visits.ledger")
    path = Path(json.loads(told)["model"])
    assert code == 0 and path.name == "visits.dpgm" and path.parents[1] == spec.parent
    assert f"the disk is full; the model is saved as {path}, which only you can read" in err
    assert load_model(path).releases and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not list(out.glob(".*"))


@pytest.mark.parametrize("command", ["fit", "release"])
def test_a_release_that_cannot_be_written_is_said_to_be_elsewhere(spec, dpgm_command, monkeypatch, command):
    """Exit 1 where the rest of the run fails for the same reason, with a line that learns from what was saved."""
    write, out = NoisyTables.write, spec.parent / "out"

    def full(self, path, *more, **how):
        if Path(path).parent == out:
            raise ModelFileError(f"cannot write {path}: No space left on device")
        write(self, path, *more, **how)

    monkeypatch.setattr(NoisyTables, "write", full)
    monkeypatch.setattr("dpgm_core.models.model.Model.save", failing)
    code, _, err = dpgm_command(command, spec, "--set", "ledger.path=visits.ledger")
    said = next(line for line in err.splitlines() if "WARNING" in line)
    (kept,) = spec.parent.glob("dpgm-*/visits.release.dpgm")
    assert "No space left on device" in said and str(kept) in said and load_release(kept)
    assert code == (1 if command == "fit" else 0) and "another process" not in err
    monkeypatch.undo()
    if command == "fit":
        assert f"dpgm learn {kept}" in err
        code, _, err = dpgm_command(command, spec, "--set", "ledger.path=visits.ledger")
        assert code == 2 and str(kept) in err and "--again" in err


def test_a_fit_ends_with_what_it_found(spec, ran, facts):
    """The verdict is said before the guarantee and stands in the JSON; much noise is told as such."""
    out, _ = ran("fit", spec, "--set", "budget.epsilon=2")
    assert out.index("share of records") < out.index("verdict: ") < out.index("Differential privacy")
    findings = facts("fit", spec, "--set", "budget.epsilon=0.001")["findings"]
    assert findings["verdict"] == "red"
    assert not any(one["found"] for one in (*findings["columns"], *findings["pairs"]))
    assert [one["names"] for one in findings["columns"]] == [["sex"], ["age"]]
