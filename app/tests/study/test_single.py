"""Truths that are made up, and one run: what it measures, of which records and with which noise."""

import itertools

import numpy as np
import pytest
from attrs import evolve

from dpgm.study import dirichlet_potentials, generated_truth, normal_potentials, run
from dpgm.study.one_run import seed_of
from dpgm_core import (
    Budget,
    Domain,
    Fit,
    Model,
    OptionError,
    SeededRandomness,
    Structure,
    Tables,
    TooLarge,
    fit,
    kl_divergence,
    total_variation,
)


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


DOMAIN = Domain.from_sizes({f"x{number}": 3 for number in range(10)})


def test_structures_have_their_names():
    """A chain, a balanced tree, edges up to three places apart, and a connected graph by the seed."""
    cliques = {
        name: generated_truth(DOMAIN, name, seed=3).structure.cliques for name in ("chain", "tree", "third-order")
    }
    assert {name: len(found) for name, found in cliques.items()} == {"chain": 9, "tree": 9, "third-order": 24}
    assert ("x0", "x2") in cliques["tree"] and ("x0", "x3") in cliques["third-order"]
    first, same, other = (generated_truth(DOMAIN, "random", seed=seed).structure.cliques for seed in (3, 3, 4))
    assert first == same != other
    assert first == Structure.erdos_renyi(DOMAIN, 0.4, 3).cliques
    assert generated_truth(DOMAIN, {"cliques": [["x1", "x4"]]}).structure.cliques == (("x1", "x4"),)


def test_strength_goes_from_nothing_to_the_papers():
    """0 is uniform, 1 the paper's logarithms of Dirichlet(1) tables; potentials are in proportion."""
    structure, rng = Structure.chain(DOMAIN), np.random.default_rng
    paper = np.concatenate([np.log(one.dirichlet(np.ones(9))) for one in [rng(7)] for _ in range(9)])
    assert np.array_equal(dirichlet_potentials(structure, rng(7)).values, paper)
    half = generated_truth(DOMAIN, seed=7, strength=0.5).potentials.values
    assert np.allclose(half, paper / 2)
    assert generated_truth(DOMAIN, strength=0).kl(generated_truth(DOMAIN, seed=1, strength=0)) < 1e-12
    assert np.std(normal_potentials(Structure.complete(DOMAIN), rng(0), 0.3).values) == pytest.approx(0.3, rel=0.1)
    assert generated_truth(DOMAIN, potentials="normal", seed=7).private is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"structure": "chian"}, "did you mean 'chain'"),
        ({"potentials": "normals"}, "did you mean 'normal'"),
        ({"strength": -1}, "strength"),
        ({"strength": True}, "strength"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
    ],
)
def test_what_is_no_truth_is_refused(wrong, said):
    with pytest.raises(OptionError, match=said):
        generated_truth(DOMAIN, **wrong)
