"""Running a study: what a run measures, what goes on after a kill, what fails, and on how many processes."""

import itertools
import json
import sys

import numpy as np
import pytest
from attrs import evolve

from dpgm_core import (
    Budget,
    Fit,
    Model,
    ModelFileError,
    OptionError,
    SeededRandomness,
    Structure,
    Tables,
    Terms,
    TooLarge,
    fit,
    kl_divergence,
    pipeline,
    total_variation,
)
from dpgm_core.ledger.ledger import Ledger
from dpgm_core.study import generated_truth, run
from dpgm_core.study.single import seed_of


def timeless(lines):
    """Lines without what no two runs share."""
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def test_a_line_is_what_the_library_says(study, done):
    """Run 1 of the second learner at epsilon = 2, made by hand: the same records, noise, KL and total variation."""
    (line,) = [
        line
        for line in done.lines
        if (line["learner"], line["budget"], line["run"]) == ("naive-mle(l2=0.1)", {"epsilon": "2"}, 1)
    ]
    truth = study.truth
    codes = truth.engine.sample(truth.potentials, 200, np.random.default_rng(seed_of(5, "records", 1)))
    learned = fit(
        np.stack(codes, axis=1),
        truth.structure,
        Budget.pure(2),
        learner={"name": "naive-mle", "l2": 0.1},
        neighbours="add-remove",
        randomness=SeededRandomness(seed_of(5, "noise", 1)),
    ).model
    assert line["kl"] == pytest.approx(kl_divergence(truth, learned))
    for measure, asked in (("cliques", None), ("pairs", [("a", "b"), ("a", "c"), ("b", "c")])):
        apart = list(total_variation(learned, truth, asked).values())
        assert line[f"tv_{measure}"] == pytest.approx(np.mean(apart))
        assert line[f"tv_{measure}_worst"] == pytest.approx(max(apart))
    assert line["records"] == 200 and line["mechanism"] == "laplace" and line["converged"] is True


def test_runs_of_a_number_share_records_and_noise(one, registered):
    """Whatever the learner; another run has others. Two learners that do the same differ by exactly nothing."""
    seen = []

    def learn(curator, inference):
        noisy = curator.release()
        seen.append(np.array(noisy.tables.values))
        structure = curator.structure
        return Fit(model=Model(structure, Tables(structure, 0.001 * seen[-1])))

    names = [registered("first", learn), registered("second", learn)]
    found = run(evolve(one, learners=names, records=[200, 300]))
    assert len(seen) == 8
    assert all(np.array_equal(one, other) for one, other in zip(seen[::2], seen[1::2], strict=True))
    assert not any(np.array_equal(one, other) for one, other in itertools.combinations(seen[::2], 2))
    assert [row.differences["kl"].mean for row in found.rows if row.differences] == [0.0] * 2
    assert [row.differences["kl"].error for row in found.rows if row.differences] == [0.0] * 2


def test_no_source_no_ledger_and_no_file(one, monkeypatch, tmp_path):
    """Only arrays that were drawn are ever taken for records; no ledger is opened; nothing is written without a
    folder, and only runs with one."""
    given = []

    def spy(data):
        given.append(data)
        return as_source(data)

    def never(*args, **kwargs):
        raise AssertionError("a study came near a ledger")

    as_source = pipeline.as_source
    monkeypatch.setattr(pipeline, "as_source", spy)
    for name in ("__init__", "open", "create"):
        monkeypatch.setattr(Ledger, name, never)
    monkeypatch.chdir(tmp_path)
    run(one)
    assert len(given) == 2
    assert all(isinstance(column, np.ndarray) and len(column) == 200 for data in given for column in data.values())
    assert not list(tmp_path.iterdir())
    run(one, "kept")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["kept", "runs.jsonl", "study.json"]


def test_a_killed_study_goes_on(study, done, tmp_path):
    """Half a line at the end and lines that are missing are made again, with the same numbers; the others stay."""
    folder = tmp_path / "s"
    run(study, folder)
    file = folder / "runs.jsonl"
    before = file.read_bytes().splitlines(keepends=True)
    assert len(before) == 8
    file.write_bytes(b"".join(before[:5]) + before[5][:40])
    steps = []
    again = run(study, folder, progress=lambda task, number, total: steps.append((task, number, total)))
    assert steps == [("runs", number, 8) for number in (5, 6, 7, 8)]
    assert timeless(again.lines) == timeless(done.lines)
    assert file.read_bytes().splitlines(keepends=True)[:5] == before[:5]
    assert run(study, folder).lines == again.lines


def test_a_study_grows(one, tmp_path):
    """More repeats, learners and budgets make runs that are missing, in the same folder; what was there is kept, and
    what is not asked for is not told."""
    first = run(one, tmp_path / "s").lines
    wider = run(evolve(one, repeat=3, learners=["eb-map", "naive-mle"]), tmp_path / "s")
    assert [row.method for row in wider.rows] == ["eb-map", "naive-mle"]
    assert wider.lines[3:5] == first and len(wider.lines) == 6
    assert run(one, tmp_path / "s").lines == first


def other_truth(study):
    return generated_truth(study.truth.domain, seed=2)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda study: {"truth": other_truth(study), "structure": other_truth(study).structure}, "its truth is not"),
        (lambda study: {"seed": 6}, "its seed is not"),
        (lambda study: {"structure": Structure(study.truth.domain, [("a", "c")])}, "its cliques to measure is not"),
        (lambda study: {"terms": Terms(neighbours="replace-one")}, "its neighbours or other terms is not"),
        (lambda study: {"split": "optimal"}, "its split of the budget is not"),
    ],
)
def test_another_study_is_refused(one, tmp_path, change, what):
    """What would make its numbers incomparable is named, and nothing is run or written."""
    run(one, tmp_path / "s")
    before = (tmp_path / "s/runs.jsonl").read_bytes()
    told = {
        key: value for key, value in change(one).items() if key not in ("truth", "structure", "terms", "split", "seed")
    }
    changed = evolve(one, **(change(one) | told))
    with pytest.raises(OptionError, match=f"{what}.*name another folder"):
        run(changed, tmp_path / "s")
    assert (tmp_path / "s/runs.jsonl").read_bytes() == before


def test_folders_of_others_are_refused(one, tmp_path):
    """One with other files, and one whose study.json is none."""
    (tmp_path / "thesis.txt").write_text("dear")
    with pytest.raises(OptionError, match="has files in it"):
        run(one, tmp_path)
    (tmp_path / "study.json").write_text("[]")
    with pytest.raises(ModelFileError, match="no file of dpgm study"):
        run(one, tmp_path)


def test_failures_are_results(one, registered, tmp_path):
    """A learner that raises is counted and named, the others go on; what failed is tried again only when asked."""
    calls = []

    def learn(curator, inference):
        calls.append(curator.release())
        raise ArithmeticError("not my day")

    broken = evolve(one, learners=[registered("broken", learn), "naive-mle"])
    rows = run(broken, tmp_path / "s").rows
    assert [(row.method, row.failures) for row in rows] == [("broken", 2), ("naive-mle", 0)]
    assert rows[0].reasons == (("ArithmeticError", "not my day", 2),)
    assert rows[0].means["kl"].count == rows[1].differences["kl"].count == 0
    assert rows[1].means["kl"].count == 2
    assert (
        "broken, 200 records, epsilon = 1: 2 of 2 failed, ArithmeticError: not my day"
        in run(broken, tmp_path / "s").text()
    )
    assert len(calls) == 2
    run(broken, tmp_path / "s", retry=True)
    assert len(calls) == 4


def test_what_does_not_go_together_is_said_once(one):
    """A budget that the mechanism cannot spend, and an engine that has no room."""
    budgets = [Budget.pure(1), Budget.zcdp("0.1")]
    found = run(evolve(one, budgets=budgets, mechanisms="laplace", inference={"name": "junction-tree", "max_bytes": 1}))
    assert [(kind, count) for row in found.rows for kind, _, count in row.reasons] == [("TooLarge", 2)] * 2
    found = run(evolve(one, budgets=[Budget.approx(1, "1e-6"), Budget.zcdp("0.1")], mechanisms="laplace"))
    assert [[reason[0] for reason in row.reasons] for row in found.rows] == [["BudgetError"], []]
    assert found.text().count("2 of 2 failed") == 1


def test_a_run_has_its_limit(one, registered):
    """A learner that never ends, and that catches every Exception, is ended and named; the next one is run."""

    def learn(curator, inference):
        try:
            while True:
                pass
        except Exception as error:
            raise AssertionError("a component caught it") from error

    rows = run(evolve(one, learners=[registered("endless", learn), "naive-mle"], repeat=1), limit=0.2).rows
    assert rows[0].reasons == (("OutOfTime", "it took longer than 0.2 seconds", 1),)
    assert rows[1].failures == 0
    with pytest.raises(OptionError, match="positive number of seconds"):
        run(one, limit=0)


def test_processes_change_nothing(study, done, tmp_path):
    """Two of them give the bits of one, in the same order, and the same lines in another one."""
    pytest.importorskip("joblib")
    spread = run(study, tmp_path / "s", jobs=2)
    assert timeless(spread.lines) == timeless(done.lines)
    kept = [json.loads(line) for line in (tmp_path / "s/runs.jsonl").read_text().splitlines()]
    assert sorted(map(str, kept)) == sorted(map(str, spread.lines))


def test_one_job_needs_no_joblib(one, monkeypatch):
    """Several are refused without it, with what to install."""
    monkeypatch.setitem(sys.modules, "joblib", None)
    assert run(one).rows[0].failures == 0
    with pytest.raises(OptionError, match=r"dpgm-core\[study\]"):
        run(one, jobs=2)
    with pytest.raises(OptionError, match="jobs"):
        run(one, jobs=0)


def test_selectors_and_persons(study):
    """A selector draws its own noise, whatever the mechanisms; several rows to a person make more of it."""
    chosen = evolve(study, learners="naive-mle", budgets=Budget.pure(1), selectors=["named", "mst"])
    chosen = evolve(chosen, mechanisms=["laplace", "gaussian"], repeat=1)
    assert [method.label for method in chosen.methods] == ["laplace / named", "mst", "gaussian / named"]
    rows = run(chosen).rows
    assert [row.failures for row in rows] == [0, 0, 1]
    assert rows[1].names["mechanism"] == "laplace"
    alone = evolve(study, learners="naive-mle", repeat=8, budgets=Budget.pure(1))
    several = evolve(alone, terms=Terms(neighbours="add-remove", person="id", rows_per_person=20))
    assert run(several).rows[0].means["kl"].mean > 2 * run(alone).rows[0].means["kl"].mean


def test_models_that_rule_out_the_truth(one, registered):
    """KL is infinite: said so, kept in files, left out of differences, and no warning is met."""

    def learn(curator, inference):
        curator.release()
        structure = curator.structure
        values = np.zeros(structure.cells)
        values[0] = -np.inf
        return Fit(model=Model(structure, Tables(structure, values)))

    found = run(evolve(one, learners=["naive-mle", registered("sure", learn)]))
    assert found.rows[1].means["kl"].mean == float("inf") and found.rows[1].differences["kl"].count == 0
    assert found.lines[-1]["kl"] == "inf"
    assert "inf" in found.text() and "Not shown: 1 that are infinite" in found.svg()


def test_what_does_not_fit_is_not_guessed(one, monkeypatch):
    """Where the truth and a learned model do not fit into memory together there is no KL, and it says why."""

    def too_large(self, other):
        raise TooLarge("2 TB")

    monkeypatch.setattr(Model, "kl", too_large)
    found = run(one)
    assert found.rows[0].means["kl"].count == 0 and found.rows[0].means["tv_pairs"].count == 2
    assert found.rows[0].failures == 0 and found.text().count("not computed for some models: 2 TB") == 1
