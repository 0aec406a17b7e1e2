"""Task utility: the tables with a target, their split, and the report of `benchmarks.task`."""

import itertools

import numpy as np
import pytest

pytest.importorskip("joblib")

from benchmarks import task
from benchmarks.cases.coded import Coded, shares, wide
from benchmarks.cases.tasks import PredictionTask, parity_of_four, task_rows


def test_the_planted_dependence_is_of_order_five_and_of_no_lower_one():
    """Any four of the five columns look independent; all five together do not, by what one row in ten leaves."""
    table = parity_of_four(1)
    (planted,) = table.planted
    for four in itertools.combinations(planted, 4):
        assert np.abs(shares(table, four) - 1 / 16).sum() < 4 * np.sqrt(16 / len(table.codes))
    five = shares(table, planted)
    even = np.indices(five.shape).sum(axis=0) % 2 == 0
    assert five[even].sum() == pytest.approx(0.9, abs=0.01)
    others = shares(table, ("x5", "x6"))
    assert np.abs(others - np.outer(others.sum(axis=1), others.sum(axis=0))).sum() > 0.1


def test_rows_are_held_out_once_for_all(monkeypatch, tmp_path):
    """A quarter, the same rows at each call, none of them among the others, none lost."""
    numbered = wide(3, 1000, 1)
    codes = np.arange(3000).reshape(1000, 3)
    table = Coded(domain=numbered.domain, codes=codes)
    monkeypatch.setitem(task.TASKS, "numbered", PredictionTask(target="x0", read=lambda folder: table))
    train, test = task_rows(tmp_path, "numbered")
    assert len(test.codes) == 250 and len(train.codes) == 750
    assert sorted(np.concatenate([train.codes, test.codes])[:, 0].tolist()) == codes[:, 0].tolist()
    task_rows.cache_clear()
    assert np.array_equal(task_rows(tmp_path, "numbered")[1].codes, test.codes)


def test_targets_and_ordered_columns_exist():
    """Of the generated table here; names of others are checked when their data are read."""
    for name in ("parity10", "health"):
        one = task.TASKS[name]
        names = task_rows(None, name)[0].domain.names
        assert one.target in names and set(one.ordered) <= set(names)


def test_real_rows_are_trained_on_once_and_the_default_workload_runs_where_one_is_asked_for():
    """`real` has no epsilon; other tables have the default workload anyway."""
    cells = [f"adult {epsilon}" for epsilon in task.EPSILONS]
    assert [task.serves(cell, 2, task.REAL) for cell in cells] == [False, False, True]
    assert task.serves("parity10 1", 0, task.DEFAULT) and not task.serves("adult 1", 0, task.DEFAULT)
    assert task.serves("adult 0.1", 2, task.OURS) and not task.serves("adult 0.1", 2, "dpmm mst")
    assert task.missing(task.REAL) is None and task.missing(task.DEFAULT) is None


def score(cell, method, seed, accuracy):
    scores = {"accuracy": accuracy, "auc": accuracy + 0.05, "error": 0.01}
    line = {"cell": cell, "trial": seed, "method": method, "commonest": 0.7}
    return line | dict.fromkeys(task.LEARNERS, scores)


def test_the_bar_compares_with_the_best_peer_of_the_cell():
    """By means over seeds: met, within two standard errors of the test rows, or missed; and it says how many."""
    lines = [score("adult 10", task.REAL, seed, 0.9) for seed in range(2)]
    lines += [score("adult 10", task.OURS, seed, accuracy) for seed, accuracy in enumerate((0.84, 0.88))]
    lines += [score("adult 1", task.OURS, 0, 0.80), score("adult 0.1", task.OURS, 0, 0.75)]
    lines += [score("adult 10", "mbi mst", 0, 0.85), score("adult 10", "dpmm mst", 0, 0.70)]
    lines += [score("adult 1", "mbi mst", 0, 0.81), score("adult 0.1", "dpmm mst", 0, 0.78)]
    lines += [{"cell": "adult 1", "trial": 0, "method": "mbi aim", "ended": "no result in 300 CPU seconds"}]
    text = " ".join(task.tables(lines).split())
    theirs = "| mbi mst | 0.050 (one seed) | 0.010 | met |"
    assert f"| adult 10 | 0.900 | 0.040 (0.020 to 0.060) | {theirs[2:]}" in text
    assert "| adult 1 | 0.900 | 0.100 (one seed) | mbi mst | 0.090 (one seed) |" in text
    assert text.count("| missed within error |") == 2 and text.count("| missed |") == 2
    idle = [line | {"commonest": 0.9} for line in lines]
    assert "## The bar" not in task.tables(idle)
    assert "Cells: 2 met, 2 missed within error, 2 missed." in text
    assert "| dpgm auto | 10 | 0.860 (0.840-0.880), 0.910 |" in text
    assert "| mbi mst | 1 | 0.810 (one seed), 0.860 |" in text
