"""A model against its own tables, and the structure's error from tables it was not learned from."""

import math

import numpy as np
import pytest
from attrs import evolve
from scipy.special import ndtr

from dpgm_core import Budget, Domain, SeededRandomness, Structure, Tables, Terms, release
from dpgm_core.models.misfit import Component, cell_scales, component, joint_score, table_scores
from dpgm_core.releases.views import ScaledNoise

DRAWS = 300


def scores_under_the_truth(mechanism, budget, cells, records, concentration, seed):
    """Scores of the true model on tables that it made itself."""
    rng = np.random.default_rng(seed)
    structure = Structure(Domain.from_sizes({"a": cells}), [("a",)])
    noisy = release(
        np.zeros((records, 1), int),
        structure,
        budget,
        mechanism,
        terms=Terms(neighbours="add-remove", total=records),
        randomness=SeededRandomness(seed),
    )
    noise, found = noisy.noise[0], []
    for draw in range(DRAWS):
        truth = rng.dirichlet(np.full(cells, concentration))
        counts = rng.multinomial(records, truth) + noise.draw((cells,), SeededRandomness(seed + draw))
        found += table_scores(evolve(noisy, tables=Tables(structure, counts)), Tables(structure, truth)).values()
    return np.array(found)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("mechanism", "budget", "cells", "records", "concentration"),
    [
        ("laplace", Budget.pure("0.02"), 4, 50, 1.0),  # the noise is all there is
        ("laplace", Budget.pure("0.2"), 40, 1000, 0.1),  # sparse
        ("laplace", Budget.pure(5), 2, 10**6, 1.0),  # the sampling is all there is
        ("laplace", Budget.pure(5), 40, 60, 0.1),  # counts of 0 and 1
        ("gaussian", Budget.zcdp("0.001"), 4, 1000, 1.0),
        ("gaussian", Budget.zcdp(10), 40, 10**5, 0.1),
    ],
)
def test_the_true_model_is_accused_no_more_often_than_said(mechanism, budget, cells, records, concentration):
    """Scores above z are at most as many as of normal deviates; above the limits once in 10^4 seeds (binomial)."""
    found = scores_under_the_truth(mechanism, budget, cells, records, concentration, seed=5)
    for z in (1.2816, 2.3263):
        share = 1 - ndtr(z)
        assert np.mean(found > z) < share + 3.72 * math.sqrt(share * (1 - share) / DRAWS)


@pytest.mark.landing
def test_contrasts_accuse_the_true_model_no_more_often_than_said():
    """As above, of three sums of a pair of attributes, which share their records; N itself is never accused."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    terms, budget, records = Terms(neighbours="add-remove"), Budget.zcdp("0.05"), 100
    noisy = release(
        np.zeros((records, 2), int), structure, budget, "gaussian", terms=terms, split="contrasts",
        randomness=SeededRandomness(0),
    )  # fmt: skip
    rng, randomness, found = np.random.default_rng(3), SeededRandomness(3), []
    for _ in range(DRAWS):
        truth = rng.dirichlet(np.full(4, 2.0))
        counts, model = (
            np.concatenate([[q.sum()], *(q.reshape(2, 2).sum(axis) for axis in (1, 0)), q])
            for q in (rng.multinomial(records, truth), truth)
        )
        drawn = noisy.measurement.draw(Tables(noisy.structure, counts), randomness)
        scores = table_scores(evolve(noisy, tables=drawn, total=records), Tables(noisy.structure, model))
        assert set(scores) == {("a",), ("b",), ("a", "b")}
        found += scores.values()
    for z in (1.2816, 2.3263):
        share = 1 - ndtr(z)
        assert np.mean(np.array(found) > z) < share + 3.72 * math.sqrt(share * (1 - share) / DRAWS)
    off = Tables(noisy.structure, np.array([1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.5]))
    assert table_scores(noisy, off)["a",] > 5


def test_a_model_that_is_off_is_accused():
    """Off by 8 deviations of noise and sampling together in two of four cells: always found; a test by size."""
    structure = Structure(Domain.from_sizes({"a": 4}), [("a",)])
    codes = np.repeat([0, 1, 2, 3], [4000, 2000, 3000, 1000])[:, None]
    noisy = release(
        codes,
        structure,
        Budget.pure("0.1"),
        terms=Terms(neighbours="add-remove", total="public"),
        randomness=SeededRandomness(1),
    )
    shares = np.array([0.4, 0.2, 0.3, 0.1])
    assert table_scores(noisy, Tables(structure, shares))["a",] < 3
    off = 8 * math.sqrt(200 + 10_000 * 0.4) / 10_000
    assert table_scores(noisy, Tables(structure, shares + np.array([off, 0, -off, 0])))["a",] > 8
    assert table_scores(noisy, Tables(structure, np.array([1.0, 0, 0, 0])))["a",] > 15


def test_one_score_for_many_tables_grows_with_what_was_looked_at():
    """The furthest of many is less of a surprise; what underflows stays as it is."""
    assert joint_score([4.0]) == 4.0
    assert joint_score([4.0] + [0.0] * 99) == pytest.approx(2.729, abs=1e-3)
    assert joint_score([300.0, 1.0]) == 300.0


def drawn(tau, seed, *, records=20_000, noise=80.0, pairs=12, size=4):
    """Tables of pairs whose independent model misses by normal errors of known size."""
    rng = np.random.default_rng(seed)
    tables, answers = [], []
    for _ in range(pairs):
        one, two = rng.dirichlet(np.full(size, 2.0), size=2)
        q = np.outer(one, two)
        error = tau * cell_scales(one, two) * rng.standard_normal(q.shape)
        expected = records * np.maximum(q + error, 0)
        tables.append((rng.poisson(expected) + rng.laplace(scale=noise / math.sqrt(2), size=q.shape), noise**2))
        answers.append(q)
    return component(tables, (float(records), 0.0), answers)


def test_the_component_is_measured_without_bias():
    """Mean of 60 draws: tau squared .09, and 0 for a right structure; beyond 4 standard errors once in 10^4 seeds."""
    for tau in (0.3, 0.0):
        found = np.array([drawn(tau, seed).variance for seed in range(60)])
        assert abs(found.mean() - tau**2) < 4 * found.std(ddof=1) / math.sqrt(60) + 0.02 * tau**2


def test_its_standard_error_is_that_of_the_draws():
    """Within a third of the spread over 60 draws, whose own error is 9 %: not by chance in 10^3 seeds."""
    found = [drawn(0.3, seed) for seed in range(60)]
    spread = float(np.std([one.variance for one in found], ddof=1))
    assert np.mean([one.error for one in found]) == pytest.approx(spread, rel=0.34)


def test_a_right_structure_is_not_accused():
    """The lower end of the 90 % interval is above 0 in at most 5 % of 100 draws; 13 would be once in 10^3 seeds."""
    assert sum(drawn(0.0, seed).limits(0.9)[0] > 0 for seed in range(100)) <= 12
    assert all(drawn(0.6, seed).limits(0.9)[0] > 0 for seed in range(5))


def test_what_is_used_is_never_zero_and_follows_what_is_clear():
    """A clear error is used as it is; one that noise drowns as what may still be there."""
    assert Component(variance=1.0, error=0.01, pairs=12).expected == pytest.approx(1.0)
    drowned = [Component(variance=variance, error=0.5, pairs=12).expected for variance in (-20.0, -0.5, 0.0, 0.5)]
    assert drowned == sorted(drowned)
    assert drowned[0] > 0
    assert drowned[2] == pytest.approx(0.5 * math.sqrt(2 / math.pi))


def test_the_law_of_scaled_noise_is_scaled():
    """A table and its noise in sixtieths have the score of the table itself, off and on the truth."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    noisy = release(
        np.array([[0, 0], [1, 1]] * 300),
        structure,
        Budget.pure("0.1"),
        terms=Terms(neighbours="add-remove", total=600),
        randomness=SeededRandomness(0),
    )
    (plain,) = noisy.measurement.calibrations
    scaled = evolve(plain, noise=ScaledNoise(noise=ScaledNoise(noise=plain.noise, factor=1 / 60), factor=60.0))
    view = evolve(noisy, measurement=evolve(noisy.measurement, calibrations=(scaled,)))
    for q in ([0.5, 0, 0, 0.5], [0.25] * 4):
        marginals = Tables(structure, np.array(q))
        assert table_scores(view, marginals)["a", "b"] == pytest.approx(table_scores(noisy, marginals)["a", "b"])
