"""Running a study: what it reads and writes, what fails, and what is refused before it starts."""

import numpy as np
import pytest
from attrs import evolve

from dpgm.study import Study, generated_truth, run
from dpgm_core import Budget, Domain, TooLarge
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.sources import related as sources


def test_no_source_no_ledger_and_no_file(one, monkeypatch, tmp_path):
    """Only arrays that were drawn are ever taken for records; no ledger is opened; nothing is written without a
    folder, and only runs with one."""
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
    """Three lines at most, also of what came of it."""
    assert len(repr(one)) < 360 and len(repr(run(evolve(one, repeat=1)))) < 360
