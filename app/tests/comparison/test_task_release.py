"""A private test of a classifier: what its table depends on, its sensitivity, and scores with intervals."""

from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve

import dpgm_core as dpgm
from app.tests.comparison.test_task_comparison import TRUTH, model_of, rows_of
from app.tests.made import domain_of
from dpgm.comparison import task_release
from dpgm.comparison.task_release import plan_task
from dpgm_core import SeededRandomness, Terms
from dpgm_core.counting.rows import by_person
from dpgm_core.counting.table_counts import count
from dpgm_core.errors import DataError, OptionError
from dpgm_core.sources import as_source

pytest.importorskip("sklearn")

ADD, REPLACE = (Terms(neighbours=relation) for relation in ("add-remove", "replace-one"))


@pytest.fixture(scope="module")
def model():
    return model_of(TRUTH)


@cache
def wide(target: str):
    """A test over many cells, so that scores of rows differ; its model; and the numbers of codes."""
    domain = domain_of(a=list("abcdefgh"), b=list("pqrstuvw"), target="no yes", three="x y z")
    shape = [one.size for one in domain]
    truth = np.exp(np.random.default_rng(4).normal(size=shape))
    model = model_of(truth / truth.sum(), domain)
    return plan_task(model, columns(np.zeros((1, 4), int), ["p"], domain.names), target, ADD), model, np.array(shape)


def columns(rows, keys, names):
    """Codes by name, with a person key."""
    return {**dict(zip(names, np.asarray(rows).T, strict=True)), "id": pa.array([str(key) for key in keys])}


@pytest.mark.parametrize("target", ["target", "three"])
def test_codes_of_a_row_depend_on_that_row_alone(target):
    """In any order, alone or among others, each row has the same two codes."""
    planned, _, shape = wide(target)
    codes = np.random.default_rng(1).integers(0, shape, (3000, 4))

    def derived(rows):
        source = on_rows(planned, rows).source
        batches = list(source.batches(planned.structure.domain, planned.structure.domain.names))
        return np.concatenate([np.stack(batch, axis=1) for batch in batches])

    whole, order = derived(codes), np.random.default_rng(2).permutation(3000)
    assert np.array_equal(derived(codes[order]), whole[order])
    assert all(np.array_equal(derived(codes[place : place + 1])[0], whole[place]) for place in range(0, 3000, 97))
    assert np.array_equal(whole[:, 1], codes[:, 2 if target == "target" else 3])
    assert len(np.unique(whole[:, 0])) > (5 if target == "target" else 1)


def largest_step(target: str, terms: Terms, classify=None) -> tuple[float, float]:
    """The largest L1 and L2 distance of tables of neighbours, of 60 random pairs, over what the terms state."""
    planned, model, shape = wide(target)
    random, names = np.random.default_rng(3), model.domain.names
    source = planned.source if classify is None else evolve(planned.source, classify=classify)
    stated = terms.sensitivity(planned.structure)

    def table(rows, keys):
        own = evolve(source, source=as_source(columns(rows, keys, names)))
        return count(by_person(own, terms.person, terms.rows_per_person), planned.structure).tables.values

    steps = []
    for _ in range(60):
        keys = random.integers(0, 6, 40)
        rows = random.integers(0, shape, (40, 4))
        person = keys == 0 if terms.person else np.arange(40) == 0
        other = rows.copy()
        if terms.neighbours.value == "replace-one":
            other[person] = random.integers(0, shape, (person.sum(), 4))
            moved = table(other, keys) - table(rows, keys)
        else:
            moved = table(rows[~person], keys[~person]) - table(rows, keys)
        steps.append((np.abs(moved).sum() / float(stated.l1), (moved**2).sum() / float(stated.l2_squared)))
    return max(one for one, _ in steps), max(one for _, one in steps)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("target", ["target", "three"])
@pytest.mark.parametrize("persons", [{}, {"person": "id", "rows_per_person": 4}])
def test_neighbours_move_the_table_by_at_most_the_sensitivity(relation, target, persons):
    """A row, or a person whose rows number up to 15 of which 4 count, added or replaced; the bound of L1 is reached."""
    l1, l2 = largest_step(target, Terms(neighbours=relation, **persons))
    assert l2 <= 1 and l1 <= 1
    assert l1 == 1 or persons


def test_scores_that_depend_on_other_rows_exceed_the_sensitivity():
    """A version that ranks a batch's rows, in place of binning each by itself, is found out."""

    def by_rank(rows):
        return (np.arange(len(rows["a"])) * 5 // max(1, len(rows["a"]))).astype(np.int64)

    assert largest_step("target", ADD, by_rank)[0] > 1


def on_rows(planned, codes):
    """The same test of other records."""
    return evolve(planned, source=evolve(planned.source, source=as_source(codes)))


def noiseless(planned, table):
    noisy = dpgm.release(
        planned.source, planned.structure, dpgm.Budget.pure(1000), terms=ADD, randomness=SeededRandomness(1)
    )
    return evolve(noisy, tables=dpgm.Tables(planned.structure, table.reshape(-1)))


def true_table(planned):
    return count(planned.source, planned.structure).tables.values.astype(np.float64)


def test_without_noise_scores_are_those_of_the_classifier():
    """The accuracy is exact; the AUC is that of the bins, by scikit-learn, and close to that of the scores."""
    from sklearn.metrics import roc_auc_score

    planned, model, _ = wide("target")
    drawn = model.sample(5000, form="labels", randomness=SeededRandomness(8))
    codes = np.stack([[one.labels.index(label) for label in drawn[one.name].to_pylist()] for one in model.domain], 1)
    planned = on_rows(planned, codes)
    scored, truth = (np.concatenate(parts) for parts in zip(
        *planned.source.batches(planned.structure.domain, planned.structure.domain.names), strict=True
    ))  # fmt: skip
    found = planned.estimate(noiseless(planned, true_table(planned)))
    trained = task_release.train_learner(
        "gradient boosting", task_release.draw_rows(model, planned.source.domain, "target", 1), "target", 1
    )
    rows = dict(zip(model.domain.names, codes.T, strict=True))
    scores = trained.margins(rows)
    assert found["accuracy"].value == pytest.approx(np.mean((scores > 0) == truth), abs=1e-12)
    assert found["auc"].value == pytest.approx(roc_auc_score(truth, scored), abs=1e-12)
    assert found["auc"].value == pytest.approx(roc_auc_score(truth, scores), abs=0.02)
    assert found["commonest"].value == np.mean(truth == planned.labels.index(planned.commonest))
    three = on_rows(wide("three")[0], codes)
    assert not three.has_auc and three.estimate(noiseless(three, true_table(three)))["auc"] is None
    right = true_table(three).reshape(2, 3)[1].sum() / 5000
    assert three.estimate(noiseless(three, true_table(three)))["accuracy"].value == pytest.approx(right)


@pytest.mark.parametrize("what", ["accuracy", "auc"])
def test_errors_are_those_of_the_derivatives(what):
    """Against finite differences, of labels in the ratio 1 to 4: a cell's variance is that of noise and its count."""
    table = np.random.default_rng(1).integers(5, 200, (7, 2)) * [4.0, 1.0]
    correct = np.eye(2)[[0, 0, 0, 0, 1, 1, 1]]

    def score(cells):
        return task_release._share(correct, cells, 9.0) if what == "accuracy" else task_release._binned_auc(cells, 9.0)

    slopes = np.zeros(table.shape)
    for cell in np.ndindex(table.shape):
        step = np.zeros(table.shape)
        step[cell] = 1e-3
        slopes[cell] = (score(table + step).value - score(table - step).value) / 2e-3
    assert score(table).error == pytest.approx(np.sqrt(np.sum(slopes**2 * (9 + table))), rel=1e-6)


@pytest.mark.parametrize("epsilon", ["0.05", "1"])
@pytest.mark.parametrize("rows", [2000, 20_000])
def test_intervals_cover_the_scores_of_the_population(model, epsilon, rows):
    """Tables of fresh rows with fresh noise, 600 times: 95 % intervals cover in 92 to 98 %, of all three scores."""
    planned = plan_task(model, rows_of(10), "target", ADD)
    shares = true_table(on_rows(planned, rows_of(100_000, seed=5))) / 100_000
    truth = {name: one.value for name, one in planned.estimate(noiseless(planned, shares * 1e9)).items()}
    noisy = dpgm.release(planned.source, planned.structure, dpgm.Budget.pure(epsilon), terms=ADD)
    random, covered = np.random.default_rng(6), dict.fromkeys(truth, 0)
    for seed in range(600):
        table = random.multinomial(rows, shares / shares.sum()) + noisy.noise[0].draw(
            (len(shares),), SeededRandomness(seed)
        )
        for name, one in planned.estimate(evolve(noisy, tables=dpgm.Tables(planned.structure, table))).items():
            covered[name] += one is not None and one.low <= truth[name] <= one.high
    assert all(0.92 <= number / 600 <= 0.98 for number in covered.values()), covered


def test_rows_without_a_label_have_no_score():
    """A column of two labels and missing values has an AUC, and rows that lack it change no score."""
    domain = domain_of(signal="a b")
    domain = dpgm.Domain(
        [*domain, dpgm.Domain.from_dict({"attributes": {"target": {"labels": ["no", "yes"]}}})["target"]]
    )
    model = model_of(np.array([[0.3, 0.1, 0.1], [0.1, 0.3, 0.1]]), domain)
    codes = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [30, 10, 10, 30], axis=0)
    planned, scores = plan_task(model, codes, "target", ADD), []
    for rows in (codes, np.concatenate([codes, [[0, 2]] * 50])):
        one = on_rows(planned, rows)
        scores.append(one.estimate(noiseless(one, true_table(one))))
    assert planned.labels == ("no", "yes") and scores[0] == scores[1]
    assert scores[0]["accuracy"].value == scores[0]["auc"].value == 0.75


def test_scores_that_noise_hides_are_none(model):
    """Where the rows, or those of one label, are no more than the noise there is nothing to divide by."""
    planned = plan_task(model, rows_of(10), "target", ADD)
    table = np.zeros(planned.structure.cells)
    assert set(planned.estimate(noiseless(planned, table)).values()) == {None}
    table[0] = 100
    found = planned.estimate(noiseless(planned, table))
    assert found["auc"] is None and found["accuracy"].value in (0, 1)


def test_what_cannot_be_tested_is_refused(model):
    with pytest.raises(OptionError, match="the same 'target'"):
        never = np.where(np.arange(2) == 0, 1.0, 0.0)
        with np.errstate(divide="ignore"):
            plan_task(model_of(TRUTH.sum(axis=2)[..., None] * never), rows_of(10), "target", ADD)
    with pytest.raises(DataError, match="no column 'more'"):
        plan_task(model, {"signal": np.array([0]), "target": np.array([0])}, "target", ADD)
    with pytest.raises(DataError, match="cannot read a person key"):
        plan_task(model, OnlyCodes(), "target", Terms(neighbours="add-remove", person="id"))
    with pytest.raises(DataError, match="row by row"):
        plan_task(model, Sums(), "target", ADD)


class OnlyCodes:
    def batches(self, domain, columns):
        yield [np.zeros(1, np.uint8) for _ in columns]


class Sums:
    def pinned(self, reading):
        raise AssertionError
