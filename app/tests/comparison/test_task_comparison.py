"""Classifiers trained on rows of models and tested on real rows: losses by a known truth, and what is refused."""

import numpy as np
import pytest

import dpgm_core as dpgm
from app.tests.made import domain_of
from dpgm.comparison.task import measure_task
from dpgm.comparison.task_comparison import REAL, compare_task, draw_rows, task_domain
from dpgm_core import Domain, Model, Structure, Tables
from dpgm_core.errors import DataError, DomainError, NonPrivateError, OptionError

pytest.importorskip("sklearn")

DOMAIN = domain_of(signal="a b", more="x y z", target="no yes")
#: p(signal, more, target): the target follows the signal four times out of five.
TRUTH = np.multiply.outer([[0.4, 0.1], [0.1, 0.4]], [0.5, 0.3, 0.2]).transpose(0, 2, 1)


def model_of(truth: np.ndarray, domain=DOMAIN) -> Model:
    structure = Structure(domain, [domain.names])
    return Model(structure, Tables(structure, np.log(truth).reshape(-1)))


def rows_of(count: int, seed: int = 0) -> np.ndarray:
    cells = np.random.default_rng(seed).choice(TRUTH.size, count, p=TRUTH.reshape(-1))
    return np.stack(np.unravel_index(cells, TRUTH.shape), axis=1)


def test_the_true_model_loses_nothing_and_one_without_dependence_loses_what_the_truth_says():
    models = {"true": model_of(TRUTH), "uniform": model_of(np.full(TRUTH.shape, 1 / 12))}
    compared = compare_task(models, rows_of(8000), "target", allow_non_private=True)
    assert compared.test_rows == 4000 and compared.rows == {REAL: 4000, "true": 10_000, "uniform": 10_000}
    assert compared.commonest[1] == pytest.approx(0.5, abs=0.03)
    for real, true, none in zip(
        compared.scores[REAL], compared.losses("true"), compared.losses("uniform"), strict=True
    ):
        assert real.accuracy == pytest.approx(0.8, abs=0.02) and real.auc == pytest.approx(0.8, abs=0.02)
        assert abs(true.accuracy) < 0.01 and abs(true.auc) < 0.02
        assert none.auc > 0.2 and none.auc_error < 0.05


def test_errors_of_losses_allow_for_the_same_test_rows():
    """Two classifiers that predict nearly the same differ by far less than either score is off."""
    compared = compare_task({"true": model_of(TRUTH)}, rows_of(2000), "target", allow_non_private=True)
    for score, loss in zip(compared.scores["true"], compared.losses("true"), strict=True):
        assert loss.accuracy_error < 0.5 * score.accuracy_error


def test_halves_share_no_row_and_other_training_rows_leave_all_to_the_test():
    """Each row has a label of its own that tells its target; only whoever trains on test rows could use it."""
    count = 400
    domain = domain_of(row=[f"r{number}" for number in range(count)], target="no yes")
    codes = np.stack([np.arange(count), np.random.default_rng(1).integers(2, size=count)], axis=1)
    model = model_of(np.full((count, 2), 1 / (2 * count)), domain)
    compared = compare_task({"m": model}, codes, "target", seed=3, allow_non_private=True)
    assert (compared.test_rows, compared.rows[REAL]) == (200, 200)
    assert all(one.auc < 0.65 for one in compared.scores[REAL])
    same = compare_task({"m": model}, codes, "target", train_records=codes, seed=3, allow_non_private=True)
    assert (same.test_rows, same.rows[REAL]) == (400, 400)
    assert same.scores[REAL][1].auc > 0.9


def test_models_of_other_bins_read_the_rows_by_their_own():
    """A model that has one column less is compared as well; the baseline has the columns of the first."""
    small = domain_of(signal="a b", target="no yes")
    models = {"whole": model_of(TRUTH), "small": model_of(TRUTH.sum(axis=1), small)}
    rows = dict(zip(DOMAIN.names, rows_of(4000).T, strict=True))
    compared = compare_task(models, rows, "target", allow_non_private=True)
    assert compared.scores["small"][0].accuracy == pytest.approx(0.8, abs=0.03)


def test_rows_without_a_label_are_left_out():
    """Of the test rows, of those that train the baseline, and of what the model draws."""
    domain = domain_of(signal="a b")
    domain = Domain([*domain, Domain.from_dict({"attributes": {"target": {"labels": ["no", "yes"]}}})["target"]])
    model = model_of(np.array([[0.4, 0.0001, 0.1], [0.0001, 0.4, 0.1]]), domain)
    codes = np.repeat([[0, 0], [1, 1], [0, 2]], [100, 100, 900], axis=0)
    compared = compare_task({"m": model}, codes, "target", allow_non_private=True)
    assert (compared.test_rows, compared.rows[REAL]) == (100, 100) and 7500 < compared.rows["m"] < 8500
    assert {one.accuracy for scores in compared.scores.values() for one in scores} == {1}


def test_plain_values_have_every_score():
    plain = compare_task({"m": model_of(TRUTH)}, rows_of(400), "target", allow_non_private=True).to_dict()
    assert [(one["trained_on"], one["loss"] is None) for one in plain["scores"]] == [
        (REAL, True), (REAL, True), ("m", False), ("m", False)
    ]  # fmt: skip


def test_rows_that_are_drawn_are_codes_of_the_model():
    """The codes of 10,000 rows have the model's distribution, and the seed repeats them."""
    model = model_of(TRUTH)
    drawn, again = (draw_rows(model, task_domain(model, "target"), "target", 5) for _ in range(2))
    counts = np.zeros(TRUTH.shape)
    np.add.at(counts, tuple(drawn.values()), 1)
    assert np.abs(counts / 10_000 - TRUTH).max() < 0.02
    assert all(np.array_equal(drawn[name], again[name]) for name in DOMAIN.names)
    mine = measure_task(drawn, again, "target", seed=1)
    assert mine[0].accuracy == pytest.approx(0.8, abs=0.02)


def test_what_cannot_be_compared_is_refused():
    model = model_of(TRUTH)
    with pytest.raises(NonPrivateError, match="a classifier's score on records"):
        compare_task({"m": model}, rows_of(10), "target")
    for target, says in (("targte", "did you mean 'target'"), ("job", "the model has no column 'job'")):
        with pytest.raises(OptionError, match=says):
            compare_task({"m": model}, rows_of(10), target, allow_non_private=True)
    alone = model_of(np.array([0.5, 0.5]), domain_of(target="no yes"))
    with pytest.raises(OptionError, match="nothing to predict it from"):
        task_domain(alone, "target")
    other = model_of(np.full((2, 2), 0.25), domain_of(signal="a b", target="yes no"))
    with pytest.raises(DomainError, match="b has other labels of 'target'"):
        compare_task({"a": model, "b": other}, rows_of(10), "target", allow_non_private=True)
    with pytest.raises(DataError, match="fewer than 2 rows"):
        compare_task({"m": model}, rows_of(1), "target", allow_non_private=True)


def test_a_column_that_no_release_measured_is_no_target_and_no_predictor():
    structure = Structure(domain_of(sex="F M", town="A B", age="young old"), [("sex", "age")])
    codes = np.random.default_rng(0).integers(0, 2, (500, 3))
    model = dpgm.fit(codes, structure, dpgm.Budget.pure(5), neighbours="add-remove").model
    with pytest.raises(OptionError, match="no release measured 'town'"):
        task_domain(model, "town")
    assert task_domain(model, "sex").names == ("sex", "age")
