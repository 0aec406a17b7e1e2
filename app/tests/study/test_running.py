"""Running a study: what it reads and writes, what fails or takes too long, several processes, and what is refused."""

import json
import sys

import numpy as np
import pytest
from attrs import evolve

from dpgm.study import Study, generated_truth, run
from dpgm_core import Budget, Domain, OptionError, Terms, TooLarge
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.sources import related as sources


def test_no_source_no_ledger_and_no_file(one, monkeypatch, tmp_path):
    """Records are drawn arrays alone, no ledger is opened, and nothing is written without a folder."""
    given = []

    def spy(data):
        given.append(data)
        return as_source(data)

    def never(*args, **kwargs):
        raise AssertionError("a study came near a ledger")

    as_source = sources.as_source
    monkeypatch.setattr(sources, "as_source", spy)
    for name in ("__init__", "open", "create"):
        monkeypatch.setattr(Ledger, name, never)
    monkeypatch.chdir(tmp_path)
    run(one)
    assert len(given) == 2
    assert all(isinstance(column, np.ndarray) and len(column) == 200 for data in given for column in data.values())
    assert not list(tmp_path.iterdir())
    run(one, "kept")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["kept", "runs.jsonl", "study.json"]


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


def test_a_truth_that_does_not_fit_is_refused():
    """It is no failure of the components."""
    truth = generated_truth(Domain.from_sizes({f"x{number}": 2 for number in range(32)}), {"graph": "complete"})
    study = Study(truth=truth, neighbours="add-remove", budgets=Budget.pure(1))
    with pytest.raises(TooLarge):
        run(study)


def test_reprs_are_short(one):
    assert len(repr(one)) < 360 and len(repr(run(evolve(one, repeat=1)))) < 360


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
    with pytest.raises(OptionError, match="at most 100,000,000"):
        run(one, limit=1e300)


def test_processes_change_nothing(study, done, timeless, tmp_path):
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
    with pytest.raises(OptionError, match=r"dpgm\[study\]"):
        run(one, jobs=2)
    with pytest.raises(OptionError, match="jobs"):
        run(one, jobs=0)


def test_selectors_and_persons(study):
    """A selector draws the noise of each mechanism; several rows to a person make more of it."""
    chosen = evolve(study, learners="naive-mle", budgets=Budget.pure(1), selectors=["named", "mst"])
    chosen = evolve(chosen, mechanisms=["laplace", "gaussian"], repeat=1)
    labels = ["laplace / named", "laplace / mst", "gaussian / named", "gaussian / mst"]
    assert [method.label for method in chosen.methods] == labels
    rows = run(chosen).rows
    assert [row.failures for row in rows] == [0, 0, 1, 1]
    assert rows[1].names["mechanism"] == "laplace"
    alone = evolve(study, learners="naive-mle", repeat=8, budgets=Budget.pure(1))
    several = evolve(alone, terms=Terms(neighbours="add-remove", person="id", rows_per_person=20))
    assert run(several).rows[0].means["kl"].mean > 2 * run(alone).rows[0].means["kl"].mean
