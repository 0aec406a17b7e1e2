"""The command line: exit codes, one-line refusals, what is written and what is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core.cli.output import reserved
from dpgm_core.errors import ModelFileError
from dpgm_core.spec import load_spec


def files(folder: Path) -> set[str]:
    return {one.relative_to(folder).as_posix() for one in folder.rglob("*") if not one.name.endswith(("-wal", "-shm"))}


def test_fit_runs_until_the_ledger_is_empty(spec, dpgm_command, refused):
    """Two runs fit, each with its own files; the third is refused and leaves everything as it was."""
    for name, left in (("visits", "1.5"), ("visits-2", "0.5")):
        code, out, err = dpgm_command("fit", spec)
        assert code == 0, err
        assert f"{name}.dpgm" in out
        assert f"left in the ledger: epsilon = {left}" in out
        assert "Differential privacy with epsilon = 1" in out
    before = {name: (spec.parent / name).read_bytes() for name in files(spec.parent) if name.endswith(".dpgm")}
    assert len(before) == 4
    assert "only epsilon = 0.5 is left" in refused("fit", spec)
    assert before == {name: (spec.parent / name).read_bytes() for name in files(spec.parent) if name.endswith(".dpgm")}
    code, out, _ = dpgm_command("ledger", "history", spec.parent / "out/visits.ledger", "--json")
    assert [entry["status"] for entry in json.loads(out)] == ["released", "released"]


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
        ("name=a/b", "slashes"),
        ("nmae=x", "did you mean 'name'"),
        ("simulation.seed=-1", "seed"),
        ("domain=visits.csv", "must end in .toml or .json"),
        ("nonsense", "KEY=VALUE"),
        ("data.x=1", "not a table"),
        ("ledger.budget.epsilon=0.5", "holds only epsilon = 0.5"),
    ],
)
def test_wrong_requests_write_nothing(spec, refused, setting, words):
    """Exit 2, one line, no release, no model, no folder, no ledger."""
    before = files(spec.parent)
    assert words in refused("fit", spec, "--set", setting)
    assert files(spec.parent) == before


def test_missing_and_broken_specs(tmp_path, refused):
    """No file, a folder, no TOML, deep TOML, a missing key."""
    assert "no-spec.toml" in refused("fit", tmp_path / "no-spec.toml")
    refused("plan", tmp_path)
    for content, words in (("a = ", "TOML"), ("a = " + "[" * 10**4, "TOML"), ("name = 'x'", "does not say 'data'")):
        (tmp_path / "x.toml").write_text(content)
        assert words in refused("plan", tmp_path / "x.toml")


def test_settings_override_the_spec(spec, dpgm_command):
    """Names, tables, numbers and texts, applied in order."""
    code, out, err = dpgm_command(
        "fit", spec, "--json", "--set", "name=other", "--set", "budget={epsilon=2}",
        "--set", "learner=naive-mle", "--set", "learner.l2=0.25",
        "--set", "total=120", "--set", "unit=one visit", "--set", "ledger.path=out/o.ledger",
    )  # fmt: skip
    assert code == 0, err
    shown = json.loads(out)
    assert Path(shown["model"]).name == "other.dpgm"
    assert shown["spent"] == {"epsilon": "2"}
    assert shown["records"] == {"total": 120.0, "policy": "declared"}
    assert shown["certificate"]["l2"] == 0.25
    assert "one visit" in shown["guarantee"]
    assert shown["private"] is True


def test_a_seed_is_stamped_everywhere(spec, dpgm_command):
    """stderr, JSON, guarantee, release file and model file."""
    code, out, err = dpgm_command("fit", spec, "--json", "--set", "simulation.seed=1")
    assert code == 0
    assert "private = false" in err
    shown = json.loads(out)
    assert shown["private"] is False
    assert shown["guarantee"].startswith("NOT PRIVATE")
    assert dpgm.load_release(shown["release"]).private is False
    assert dpgm.load_model(shown["model"]).private is False


def test_plan_needs_no_data_and_writes_nothing(spec, dpgm_command):
    """The data file may be absent; text and JSON agree."""
    (spec.parent / "visits.csv").unlink()
    before = files(spec.parent)
    code, out, _ = dpgm_command("plan", spec, "--records", "1000")
    assert code == 0
    assert "noise scale 1 records" in out
    code, out, _ = dpgm_command("plan", spec, "--records", "1000", "--json")
    assert json.loads(out)["scale"] == 1.0
    assert files(spec.parent) == before


def test_planning_the_impossible_is_one_line_and_fast(spec, refused):
    """All pairs of 200 attributes: TooLarge with sizes, at once."""
    domain = "".join(f"[attributes.x{i}]\nsize = 10\n" for i in range(200))
    (spec.parent / "domain.toml").write_text(domain)
    assert "treewidth 199" in refused("plan", spec, "--set", "structure.graph=complete")


def test_release_then_learn(spec, dpgm_command, refused):
    """The two halves; learning costs nothing, never overwrites, and takes settings."""
    code, out, _ = dpgm_command("release", spec, "--json")
    assert code == 0
    path = Path(json.loads(out)["release"])
    before = path.read_bytes()
    for name in ("visits.naive-mle.dpgm", "visits.naive-mle-2.dpgm"):
        code, out, _ = dpgm_command("learn", path, "--json", "--learner", "naive-mle", "--set", "learner.l2=0.5")
        assert code == 0
        assert Path(json.loads(out)["model"]) == path.with_name(name)
    assert "itself" in refused("learn", path, "-o", path)
    assert "must start with" in refused("learn", path, "--set", "budget.epsilon=1")
    refused("learn", spec)
    assert path.read_bytes() == before


FAILING = """
from dpgm_core.plugin import Component, hookimpl
import attrs

@hookimpl
def dpgm_components():
    yield Component(kind="learner", name="failing", target="failing:Failing", summary="fails")

@attrs.frozen(kw_only=True)
class Failing:
    how: str = "foreign"
    def check(self, structure, inference):
        pass

    def learn(self, curator, inference, *, randomness, progress):
        curator.release()
        if self.how == "exit":
            raise SystemExit(0)
        if self.how == "own":
            import dpgm_core
            raise dpgm_core.StructureError("not my day")
        raise ZeroDivisionError("not my day")
"""


@pytest.mark.parametrize("how", ["foreign", "own", "exit"])
def test_a_failed_learner_leaves_the_paid_release(spec, how):
    """Exit 1, no traceback, and a last word that works as it is printed: dpgm learn FILE."""
    (spec.parent / "failing.py").write_text(FAILING)
    info = spec.parent / "failing-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: failing\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[dpgm]\nfailing = failing\n")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from dpgm_core.cli import main; main()", *words],
            env=os.environ | {"PYTHONPATH": str(spec.parent)}, capture_output=True, text=True,
        )  # fmt: skip

    done = run("fit", str(spec), "--set", "learner=failing", "--set", f"learner.how={how}")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    hint = next(line for line in done.stderr.splitlines() if "dpgm learn " in line)
    release = hint.split("dpgm learn ")[1]
    assert run("learn", release).returncode == 0
    history = run("ledger", "history", str(spec.parent / "out/visits.ledger"), "--json").stdout
    assert len(json.loads(history)) == 1


def test_a_model_that_cannot_be_written_leaves_the_paid_release(spec, dpgm_command, monkeypatch):
    """Exit 1, for the work failed after the charge; the release is saved and stderr says how to learn from it."""

    def full(self, path):
        raise ModelFileError(f"cannot write {path}: the disk is full")

    monkeypatch.setattr("dpgm_core.models.model.Model.save", full)
    code, out, err = dpgm_command("fit", spec)
    assert (code, out) == (1, "")
    assert "the disk is full" in err
    monkeypatch.undo()
    hint = next(line for line in err.splitlines() if "dpgm learn " in line)
    assert dpgm_command("learn", hint.split("dpgm learn ")[1])[0] == 0


def test_an_unwritable_output_is_refused_before_the_charge(spec, refused):
    """A file where the folder should be."""
    (spec.parent / "out2").write_text("")
    words = ("--set", "output.folder=out2/x", "--set", "ledger.path=l.ledger")
    assert "cannot write" in refused("fit", spec, *words)
    assert not (spec.parent / "l.ledger").exists()


def test_planted_values_appear_nowhere(spec, dpgm_command):
    """-v and --debug included, whatever is in the file."""
    secret = "PLANTED-9f"
    with (spec.parent / "visits.csv").open("a") as file:
        file.write(f'{secret},{secret}\n"{secret}\n{secret},1,2,3\n')
    code, out, err = dpgm_command("-v", "--debug", "fit", spec)
    assert code == 0
    (spec.parent / "visits.csv").write_bytes(b"\x1f\x8b" + secret.encode())
    code, more, errors = dpgm_command("-v", "--debug", "fit", spec)
    assert code == 2
    assert secret not in out + err + more + errors


# --- asking -----------------------------------------------------------------------------------------------------------


def test_query(model, dpgm_command, refused):
    """Marginals, conditionals, --top, --map, the description, and JSON of each."""
    code, out, _ = dpgm_command("query", model, "age", "sex", "--json")
    rows = json.loads(out)["rows"]
    assert [row["labels"] for row in rows] == [["young", "F"], ["young", "M"], ["old", "F"], ["old", "M"]]
    assert sum(row["probability"] for row in rows) == pytest.approx(1)
    code, out, _ = dpgm_command("query", model, "sex", "-g", "age=young", "--top", "1")
    assert code == 0
    assert len(out.splitlines()) == 3
    code, out, _ = dpgm_command("query", model, "--map", "--given", "sex=F", "--json")
    assert json.loads(out)["record"]["sex"] == "F"
    assert json.loads(dpgm_command("query", model, "--json")[1])["format"] == "dpgm-model"
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


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_sample(model, dpgm_command, refused, suffix):
    """Records with labels in each format; a seed repeats them; another suffix is refused."""
    made = []
    for name in ("one", "two"):
        path = model.with_name(name + suffix)
        code, out, _ = dpgm_command("sample", model, "-n", 50, "-o", path, "--seed", 3, "--json")
        assert (code, json.loads(out)["records"]) == (0, 50)
        made.append(path.read_bytes())
    assert made[0] == made[1]
    assert "must end in" in refused("sample", model, "-n", 1, "-o", model.with_name("x.txt"))
    refused("sample", model, "-n", -1, "-o", model.with_name("x.csv"))


def test_evaluate(model, dpgm_command, refused):
    """Against its release, another model (infinite KL is JSON too), and records only when allowed."""
    assert dpgm_command("evaluate", model)[0] == 0
    never = model.with_name("never.dpgm")
    structure = dpgm.load_model(model).structure
    values = np.array([0.0, 0.0, 0.0, -np.inf])
    dpgm.Model(structure, dpgm.Tables(structure, values)).save(never)
    code, out, _ = dpgm_command("evaluate", never, "--against", model, "--json")
    assert (code, json.loads(out)["kl"]) == (0, "inf")
    data = model.with_name("d.csv")
    data.write_text("sex,age\nF,old\n")
    assert "--allow-non-private" in refused("evaluate", model, "--data", data)
    code, out, err = dpgm_command("evaluate", model, "--data", data, "--allow-non-private")
    assert code == 0
    assert "NOT PRIVATE" in out
    assert "NOT PRIVATE" in err
    assert "not both" in refused("evaluate", model, "--data", data, "--against", never)
    assert "no release" in refused("evaluate", never)


# --- owner and parts --------------------------------------------------------------------------------------------------


def test_ledgers(tmp_path, dpgm_command, refused):
    """create, show and history; an existing one, no budget and a mixed one are refused."""
    path = tmp_path / "x.ledger"
    create = ("ledger", "create", path, "--name", "x", "--neighbours", "add-remove")
    assert "epsilon" in refused(*create)
    assert dpgm_command(*create, "--epsilon", "0.3")[0] == 0
    refused(*create, "--epsilon", "1")
    refused(*create[:2], tmp_path / "y", *create[3:], "--epsilon", "1", "--rho", "1")
    assert "remaining: epsilon = 0.3" in dpgm_command("ledger", "show", path)[1]
    assert json.loads(dpgm_command("ledger", "show", path, "--json")[1])["budget"] == {"epsilon": "3/10"}
    assert json.loads(dpgm_command("ledger", "history", path, "--json")[1]) == []
    refused("ledger", "show", tmp_path / "none")
    (tmp_path / "text").write_text("hello")
    refused("ledger", "history", tmp_path / "text")


def test_plugins_and_show(dpgm_command, refused):
    """Every component with its origin; every option of one."""
    out = dpgm_command("plugins", "--json")[1]
    names = {(one["kind"], one["name"]) for one in json.loads(out)["components"]}
    assert {("mechanism", "laplace"), ("learner", "naive-mle"), ("inference", "junction-tree")} <= names
    out = dpgm_command("show", "learner", "naive-mle", "--json")[1]
    assert {one["name"] for one in json.loads(out)["options"]} == {"project", "l2", "tolerance", "max_iterations"}
    assert "strength of the L2 penalty" in dpgm_command("show", "learner", "naive-mle")[1]
    assert "did you mean 'naive-mle'" in refused("show", "learner", "naive-mel")
    assert "did you mean 'learner'" in refused("show", "lerner", "naive-mle")


@pytest.mark.parametrize("words", [["fti"], ["fit"], ["fit", "--no-such"], ["query"], ["ledger", "burn"]])
def test_usage_errors_are_one_line(refused, words):
    """Unknown commands and flags, missing arguments."""
    refused(*words)


def test_help_is_no_failure(dpgm_command):
    """dpgm --help, of each command, and --version."""
    for words in (["--help"], ["fit", "--help"], ["ledger", "create", "-h"], ["--version"]):
        code, out, _ = dpgm_command(*words)
        assert code == 0
        assert out


def test_a_reader_that_leaves_early_is_no_traceback(model):
    """dpgm query ... | head: no noise on stderr."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", "from dpgm_core.cli import main; main()", "query", str(model), "sex"],
        stdout=writing, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.close(writing)
    assert done.returncode == 1
    assert done.stderr == ""


def test_runs_at_the_same_time_never_share_a_file(spec):
    """Each of two runs holds its own names until it ends, so neither can overwrite the other's paid release."""
    run = load_spec(spec)
    with reserved(run) as first, reserved(run) as second:
        assert set(first).isdisjoint(second)
    assert not files(run.output)


def test_a_wrong_column_leaves_no_ledger_with_wrong_terms(spec, refused):
    """The header is public and is looked at first: a ledger's terms are for good."""
    assert "no column 'nobody'" in refused("fit", spec, "--set", "person=nobody")
    assert not (spec.parent / "out").exists()


def test_plan_refuses_what_fit_would(spec, refused):
    """A plan of a run that cannot be made is no plan."""
    assert "tolerance" in refused("plan", spec, "--set", "learner.tolerance=nan")
    assert "nobody" in refused("plan", spec, "--set", "learner=nobody")
    assert "total" in refused("plan", spec, "--set", "total=-5")


def test_values_that_are_no_labels_are_noticed(spec, dpgm_command):
    """Nearly all records on the unknown label: said from the model alone, so it costs nothing."""
    text = (spec.parent / "domain.toml").read_text().replace('["F", "M"]', '["female", "male"]')
    (spec.parent / "domain.toml").write_text(text.replace('unknown = "F"', 'unknown = "female"'))
    code, _, err = dpgm_command("fit", spec)
    assert code == 0 and "nearly all of 'sex' is 'female'" in err


def test_the_owner_says_what_to_do_with_a_spent_ledger(spec, dpgm_command, refused):
    """`when_spent` ends the refusal of a ledger that holds too little, and nothing else's; it is one line of text."""
    words = ("fit", spec, "--set", "ledger.when_spent=ask the data board")
    assert dpgm_command(*words, "--set", "ledger.budget.epsilon=1.5")[0] == 0
    for command in ("fit", "release"):
        said = refused(command, *words[1:])
        assert said.endswith(f"the spec says of {spec.parent / 'out/visits.ledger'}: ask the data board\n")
    assert "says of" not in refused("fit", spec)
    assert "data board" not in refused(*words, "--set", "learner=no-such-learner", "--set", "budget.epsilon=0.5")
    assert "when_spent" in refused("fit", spec, "--set", 'ledger.when_spent="a\\nb"')
    assert "when_spent" in refused("fit", spec, "--set", "ledger.when_spent=3")


def test_a_run_that_oversteps_its_own_budget_is_not_told_about_the_ledger(spec, dpgm_command, monkeypatch):
    """Only the ledger's own refusal carries the owner's sentence."""
    from dpgm_core import pipeline
    from dpgm_core.errors import Overspent

    def greedy(*_, **__):
        raise Overspent("epsilon = 2 was asked, but only epsilon = 1 remains")

    monkeypatch.setattr(pipeline, "fit", greedy)
    code, _, err = dpgm_command("fit", spec, "--set", "ledger.when_spent=ask the data board")
    assert code == 2 and "only epsilon = 1 remains" in err and "data board" not in err
