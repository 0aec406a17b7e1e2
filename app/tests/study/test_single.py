"""One run: what it measures, of which records and with which noise."""

import itertools

import numpy as np
import pytest
from attrs import evolve

from dpgm.study import run
from dpgm.study.one_run import seed_of
from dpgm_core import Budget, Fit, Model, SeededRandomness, Tables, TooLarge, fit, kl_divergence, total_variation


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
