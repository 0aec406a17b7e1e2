"""Accuracy and AUC of classifiers: against scikit-learn and a known truth, and where classes are missing."""

import numpy as np
import pytest

from dpgm.comparison import measure_task
from dpgm.comparison.task import LEARNERS, train_learner
from dpgm_core.errors import DataError, OptionError

pytest.importorskip("sklearn")


def table_of(seed: int, rows: int = 2000, classes: int = 2) -> dict[str, np.ndarray]:
    """A target that follows `signal` four times out of five, and a column without information."""
    random = np.random.default_rng(seed)
    signal = random.integers(classes, size=rows)
    target = np.where(random.random(rows) < 0.8, signal, random.integers(classes, size=rows))
    return {"signal": signal, "noise": random.integers(30, size=rows), "target": target}


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_are_those_of_scikit_learn(classes):
    from sklearn.metrics import accuracy_score, roc_auc_score

    train, test = table_of(1, classes=classes), table_of(2, classes=classes)
    for score in measure_task(train, test, "target", seed=5):
        trained = train_learner(score.learner, train, "target", seed=5)
        shares = trained.probabilities(test)
        given = shares[:, 1] if classes == 2 else shares
        assert score.auc == pytest.approx(roc_auc_score(test["target"], given, multi_class="ovr"), abs=1e-12)
        assert score.accuracy == accuracy_score(test["target"], shares.argmax(axis=1))
        assert score.accuracy == pytest.approx(0.8 + 0.2 / classes, abs=0.03)  # what the best classifier has


def test_standard_errors_are_the_spread_over_test_rows():
    """A classifier is fixed and its test rows are drawn 200 times; the errors stated must be the spread of scores."""
    from dpgm.comparison.task import _score

    train = table_of(1)
    trained = train_learner("logistic regression", train, "target", seed=1)
    scores = [_score("x", trained, test, test["target"]) for test in (table_of(seed, 300) for seed in range(100, 300))]
    for what in ("accuracy", "auc"):
        spread = np.std([getattr(one, what) for one in scores])
        assert np.mean([getattr(one, f"{what}_error") for one in scores]) == pytest.approx(spread, rel=0.2)


def test_training_rows_of_one_class_predict_it():
    train, test = table_of(1), table_of(2)
    train["target"] = np.zeros_like(train["target"])
    for score in measure_task(train, test, "target", seed=1):
        assert (score.accuracy, score.auc) == (np.mean(test["target"] == 0), 0.5)


def test_a_class_that_training_rows_lack_is_never_predicted():
    """Its part of the AUC is that of a guess, so the mean over two classes is halfway between."""
    train, test = table_of(1), table_of(2)
    test["target"] = test["target"] + 5  # neither class occurs in training
    for score in measure_task(train, test, "target", seed=1):
        assert (score.accuracy, score.auc) == (0, 0.5)
    train, test = table_of(1, classes=3), table_of(2, classes=3)
    rows = train["target"] != 2
    two = measure_task({name: column[rows] for name, column in train.items()}, test, "target", seed=1)
    for score, whole in zip(two, measure_task(train, test, "target", seed=1), strict=True):
        assert 0.5 < score.auc < whole.auc and 0.5 < score.accuracy < whole.accuracy


def test_test_rows_of_one_class_have_no_auc():
    train, test = table_of(1), table_of(2)
    test["target"] = np.ones_like(test["target"])
    for score in measure_task(train, test, "target", seed=1):
        assert score.auc is None and score.auc_error is None and 0 < score.accuracy < 1
    same = {name: np.zeros_like(column) for name, column in train.items()}  # a target of one label
    for score in measure_task(same, same, "target", seed=1):
        assert (score.accuracy, score.accuracy_error, score.auc) == (1, 0, None)


def test_one_row_of_a_class_and_no_predictors():
    many = table_of(1, 12_000)  # where scikit-learn would hold rows out by class
    many["target"][:] = 0
    many["target"][0] = 1
    assert [one.accuracy > 0.99 for one in measure_task(many, many, "target", seed=1)] == [True, True]
    alone = {"target": np.array([0, 1, 1])}
    assert [(one.accuracy, one.auc) for one in measure_task(alone, alone, "target", seed=1)] == [(2 / 3, 0.5)] * 2


@pytest.mark.parametrize("ordered", [(), ("many",)])
def test_codes_that_are_new_or_many_are_no_fault(ordered):
    """More codes than histograms have room for, and codes that only test rows have, of ordered attributes as well."""
    random = np.random.default_rng(3)
    many = np.concatenate([np.arange(1000), random.integers(10, size=3000)])
    train = {"many": many, "target": (many < 5).astype(int)}
    test = {"many": np.arange(2000), "target": (np.arange(2000) < 5).astype(int)}
    for score in measure_task(train, test, "target", seed=1, ordered=ordered):
        assert score.accuracy > 0.99 and score.auc > 0.99


def test_order_is_used_where_it_is_stated():
    """Codes of bins that training rows lack take the side of their neighbours; those of labels are unknown."""
    train = {"bin": np.repeat([0, 1, 2, 7, 8, 9], 50), "target": np.repeat([0, 1], 150)}
    test = {"bin": np.array([3, 6]), "target": np.array([0, 1])}
    assert measure_task(train, test, "target", seed=1, ordered=("bin",))[0].accuracy == 1
    assert measure_task(train, test, "target", seed=1)[0].accuracy < 1


def test_the_seed_repeats_the_scores():
    train, test = table_of(1), table_of(2)
    assert measure_task(train, test, "target", seed=7) == measure_task(train, test, "target", seed=7)


@pytest.mark.parametrize(
    ("train", "test", "says"),
    [
        ({"a": [0]}, {"a": [0]}, "the training rows have no column 'target'"),
        ({"a": [0], "target": [0]}, {"target": [0]}, "the test rows have no column 'a'"),
        ({"a": [0], "target": [0, 1]}, {"a": [0], "target": [0]}, "the columns of the training rows differ"),
        ({"target": [0]}, {"target": []}, "there are no test rows"),
    ],
)
def test_tables_that_do_not_go_together_are_refused(train, test, says):
    with pytest.raises(DataError, match=says):
        measure_task(train, test, "target", seed=1)


@pytest.mark.parametrize("seed", [-1, True, 1.0, float("nan"), 2**32 - 1, None])
def test_what_is_no_seed_is_refused(seed):
    """In one line, and not by scikit-learn after it was trained."""
    table = table_of(1, rows=20)
    with pytest.raises(OptionError, match="seed of a task must be a whole number from 0 to"):
        measure_task(table, table, "target", seed)


@pytest.mark.parametrize("bad", [np.full(20, np.nan), np.full(20, 0.5), np.full(20, True), np.full(20, "a")])
@pytest.mark.parametrize("side", [0, 1])
def test_what_are_no_codes_are_refused(bad, side):
    """Of either table, by which one it is."""
    tables = [table_of(1, rows=20), table_of(2, rows=20)]
    tables[side] = tables[side] | {"noise": bad}
    with pytest.raises(DataError, match=f"the {('training', 'test')[side]} rows must be arrays of codes"):
        measure_task(*tables, "target", 1)


def test_scikit_learn_is_named_where_it_is_not_installed(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.ensemble", None)
    with pytest.raises(OptionError, match=r'pip install "dpgm\[task\]"'):
        measure_task(table_of(1), table_of(2), "target", seed=1)
    assert len(LEARNERS) == 2
