"""dpgm study: a run's spec with a truth, a study's own file, what is refused, written and never read."""

import csv
import sys

import numpy as np
import pytest

from dpgm.study import generated_truth
from dpgm_core import Budget, Domain, SeededRandomness, Structure, fit
from dpgm_core.privacy.ledger import Ledger

STUDY = """
neighbours = "add-remove"
budget = { epsilon = [0.5, 2] }
records = 200
repeat = 2
learner = ["naive-mle", "eb-map"]
truth = { attributes = 3, labels = 2 }
"""


@pytest.fixture
def truth(spec):
    """A model of the run's domain; the run's records are gone, so that whoever opens them fails."""
    path = spec.parent / "truth.dpgm"
    generated_truth(Domain.load(spec.parent / "domain.toml")).save(path)
    (spec.parent / "visits.csv").unlink()
    return path


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_runs_spec_with_a_truth(spec, truth, monkeypatch, ran):
    """Its domain, structure, budget and learner are taken; its data and its ledger are neither opened nor made."""
    for name in ("__init__", "open", "create"):
        monkeypatch.setattr(Ledger, name, lambda *args, **kwargs: pytest.fail("a ledger was touched"))
    before = names(spec.parent)
    words = ("study", spec, "--truth", truth, "--records", 200, "--repeat", 2, "--learner", "naive-mle")
    out, err = ran(*words, "--learner", "{name = 'naive-mle', l2 = 0.1}")
    told = err.splitlines()
    assert told[0] == "dpgm: data and ledger of visits.toml left alone: records are drawn from the truth"
    assert len(told) == 2 and "truth.dpgm: This model carries no release" in told[1]
    assert out.startswith("visits: 2 runs of each, mean ± standard error; 200 records; epsilon = 1\n")
    assert "naive-mle(l2=0.1)" in out and "0 of 2" in out and "nothing was charged" in out
    made = [f"out/visits.study/{name}" for name in ("runs.jsonl", "study.csv", "study.json", "study.svg")]
    assert names(spec.parent) == sorted([*before, *made])


def test_it_goes_on_and_says_so_in_json(spec, truth, tmp_path, facts):
    """The second time more repeats are asked for; the runs of the first stand in the file as they were."""
    drawn = ("--truth", truth, "--records", 200, "--learner", "naive-mle")
    words = ("study", spec, *drawn, "-o", tmp_path / "s")
    facts(*words, "--repeat", 1)
    first = (tmp_path / "s/runs.jsonl").read_text()
    found = facts(*words, "--repeat", 2, "--budget", "epsilon=1", "--budget", "rho=1/2")
    assert (tmp_path / "s/runs.jsonl").read_text().startswith(first)
    rows = [(row["budget"], row["runs"], row["mechanism"]) for row in found["rows"]]
    assert rows == [({"epsilon": "1"}, 2, "laplace"), ({"rho": "1/2"}, 2, "gaussian")]
    assert found["folder"] == str(tmp_path / "s")
    with (tmp_path / "s/study.csv").open() as file:
        written = [float(row["kl"]) for row in csv.DictReader(file)]
    assert written == pytest.approx([row["kl"]["mean"] for row in found["rows"]], rel=1e-5)


def test_a_study_has_its_own_file(tmp_path, dpgm_command, registered):
    """A truth that is made up; what fails is counted, and is no failure of the study."""

    def fail(curator, inference):
        curator.release()
        raise ArithmeticError("not my day")

    (tmp_path / "s.toml").write_text(STUDY)
    registered("unlucky", fail)
    code, out, err = dpgm_command("study", tmp_path / "s.toml", "--set", "learner=['naive-mle', 'unlucky']")
    assert (code, err) == (0, "")
    assert "unlucky, 200 records, epsilon = 2: 2 of 2 failed, ArithmeticError: not my day" in out
    assert (tmp_path / "s.study/study.svg").read_text().startswith("<svg")


def test_real_records_are_refused(spec, refused, tmp_path):
    """A run's spec alone; a study that names records beside its truth."""
    said = refused("study", spec)
    assert "names data of real rows, and a study never reads those" in said and "--truth" in said
    (tmp_path / "s.toml").write_text('data = "visits.csv"\n' + STUDY)
    assert "has a truth and also data" in refused("study", tmp_path / "s.toml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--learner", "eb-mpa"), "did you mean 'eb-map'"),
        (("--budget", "1"), "--budget must look like epsilon=1"),
        (("--budget", "epsilon=no"), "epsilon must be a positive number"),
        (("--records", "0"), "records must be a whole number"),
        (("--repeat", "0"), "repeat must be a whole number"),
        (("--jobs", "0"), "jobs must be a whole number"),
        (("--limit", "-1"), "positive number of seconds"),
        (("--select", "mts"), "did you mean 'mst'"),
        (("--set", "seeed=1"), "did you mean 'seed'"),
    ],
)
def test_wrong_requests_are_refused(tmp_path, refused, words, said):
    (tmp_path / "s.toml").write_text(STUDY)
    assert said in refused("study", tmp_path / "s.toml", *words)
    assert names(tmp_path) == ["s.toml"]


def test_another_truth_is_noticed(tmp_path, refused, dpgm_command, monkeypatch):
    """A folder of another study, a truth of another domain, and several jobs without joblib."""
    (tmp_path / "s.toml").write_text(STUDY)
    assert dpgm_command("study", tmp_path / "s.toml", "--learner", "naive-mle", "--budget", "epsilon=1")[0] == 0
    said = refused("study", tmp_path / "s.toml", "--set", "truth.seed=1")
    assert "holds runs of another study: its truth is not this one's" in said
    generated_truth(Domain.from_sizes({"x": 2})).save(tmp_path / "x.dpgm")
    (tmp_path / "run.toml").write_text(STUDY.replace("truth = { attributes = 3, labels = 2 }", "domain = { a = 2 }"))
    assert "has other attributes or labels" in refused("study", tmp_path / "run.toml", "--truth", tmp_path / "x.dpgm")
    monkeypatch.setitem(sys.modules, "joblib", None)
    assert "pip install 'dpgm[study]'" in refused("study", tmp_path / "s.toml", "--jobs", 2, "-o", tmp_path / "o")


def test_a_truth_that_was_not_released_privately_says_so(tmp_path, dpgm_command):
    """A model learned from a seeded release is no safe thing to show, and neither is what is drawn from it."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    terms = {"neighbours": "add-remove", "randomness": SeededRandomness(1)}
    seeded = fit(np.eye(2, dtype=int), structure, Budget.pure(1), **terms)
    seeded.model.save(tmp_path / "seeded.dpgm")
    (tmp_path / "s.toml").write_text('neighbours = "add-remove"\nbudget = { epsilon = 1 }\ntruth = "seeded.dpgm"\n')
    code, _, err = dpgm_command("study", tmp_path / "s.toml", "--repeat", 1, "--learner", "naive-mle")
    assert code == 0 and "NOT PRIVATE" in err
