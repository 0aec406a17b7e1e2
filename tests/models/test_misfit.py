"""A model against its own tables; and the structure's error from a holdout, which widens answers by structure."""

import math

import numpy as np
import pytest
from attrs import evolve
from scipy.special import ndtr

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, SeededRandomness, Structure, Tables, Terms, Workload, release
from dpgm_core.errors import OptionError
from dpgm_core.models.misfit import Component, cell_scales, component, joint_score, structure_variance, table_scores
from dpgm_core.releases.views import ScaledNoise
from tests.models.enumerated import random_model

DRAWS = 300


def scores_under_the_truth(mechanism, budget, cells, records, concentration, seed):
    """Scores of the true model on tables that it made itself."""
    rng = np.random.default_rng(seed)
    structure = Structure(Domain.from_sizes({"a": cells}), [("a",)])
    terms = {"terms": Terms(neighbours="add-remove", total=records), "randomness": SeededRandomness(seed)}
    noisy = release(np.zeros((records, 1), int), structure, budget, mechanism, **terms)
    noise, found = noisy.noise[0], []
    for draw in range(DRAWS):
        truth = rng.dirichlet(np.full(cells, concentration))
        counts = rng.multinomial(records, truth) + noise.draw((cells,), SeededRandomness(seed + draw))
        found += table_scores(evolve(noisy, tables=Tables(structure, counts)), Tables(structure, truth)).values()
    return np.array(found)


def assert_not_accused(scores):
    """Scores above z are at most as many as of normal deviates; above the limits once in 10^4 seeds (binomial)."""
    for z in (1.2816, 2.3263):
        share = 1 - ndtr(z)
        assert np.mean(scores > z) < share + 3.72 * math.sqrt(share * (1 - share) / DRAWS)


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
    """Whether noise or sampling is all there is, counts are sparse, or only 0 and 1."""
    found = scores_under_the_truth(mechanism, budget, cells, records, concentration, seed=5)
    assert_not_accused(found)


@pytest.mark.landing
def test_contrasts_accuse_the_true_model_no_more_often_than_said():
    """As above, of three sums of a pair of attributes, which share their records; N itself is never accused."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    terms, budget, records = Terms(neighbours="add-remove"), Budget.zcdp("0.05"), 100
    more = {"terms": terms, "split": "contrasts", "randomness": SeededRandomness(0)}
    noisy = release(np.zeros((records, 2), int), structure, budget, "gaussian", **more)
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
    assert_not_accused(np.array(found))
    off = Tables(noisy.structure, np.array([1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.5]))
    assert table_scores(noisy, off)["a",] > 5


def test_a_model_that_is_off_is_accused():
    """Off by 8 deviations of noise and sampling together in two of four cells: always found; a test by size."""
    structure = Structure(Domain.from_sizes({"a": 4}), [("a",)])
    codes = np.repeat([0, 1, 2, 3], [4000, 2000, 3000, 1000])[:, None]
    terms = {"terms": Terms(neighbours="add-remove", total="public"), "randomness": SeededRandomness(1)}
    noisy = release(codes, structure, Budget.pure("0.1"), **terms)
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
        error = tau * cell_scales(one, two, False) * rng.standard_normal(q.shape)
        expected = records * np.maximum(q + error, 0)
        tables.append((rng.poisson(expected) + rng.laplace(scale=noise / math.sqrt(2), size=q.shape), noise**2))
        answers.append(q)
    return component(tables, (float(records), 0.0), answers)


def test_the_component_is_measured_without_bias():
    """Mean of 60 draws: tau squared .09, and 0 for a right structure; beyond 4 standard errors once in 10^4 seeds. Its
    standard error is within a third of the spread, whose own error is 9 %. A right structure's 90 % interval is above 0
    in at most 5 % of 100 draws; 13 would be once in 10^3 seeds."""
    for tau in (0.3, 0.0):
        draws = [drawn(tau, seed) for seed in range(60)]
        found = np.array([one.variance for one in draws])
        assert abs(found.mean() - tau**2) < 4 * found.std(ddof=1) / math.sqrt(60) + 0.02 * tau**2
        if tau:
            assert np.mean([one.error for one in draws]) == pytest.approx(float(found.std(ddof=1)), rel=0.34)
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
    terms = {"terms": Terms(neighbours="add-remove", total=600), "randomness": SeededRandomness(0)}
    noisy = release(np.array([[0, 0], [1, 1]] * 300), structure, Budget.pure("0.1"), **terms)
    (plain,) = noisy.measurement.calibrations
    scaled = evolve(plain, noise=ScaledNoise(noise=ScaledNoise(noise=plain.noise, factor=1 / 60), factor=60.0))
    view = evolve(noisy, measurement=evolve(noisy.measurement, calibrations=(scaled,)))
    for q in ([0.5, 0, 0, 0.5], [0.25] * 4):
        marginals = Tables(structure, np.array(q))
        assert table_scores(view, marginals)["a", "b"] == pytest.approx(table_scores(noisy, marginals)["a", "b"])


# --- what a holdout does to a model -----------------------------------------------------------------------------------


DOMAIN = Domain.from_sizes(dict.fromkeys("abcdefg", 3))
CHAIN = Structure.chain(DOMAIN)
SPLIT = {"holdout": "0.1"}


def population(seed, wrong):
    """Shares of a chain of attributes; where `wrong`, each depends on the one before the last as well."""
    return random_model(Structure.chain(DOMAIN, 2 if wrong else 1), seed, scale=0.8)


def fitted(truth, seed, records=20_000, split=SPLIT, epsilon=2):
    table = truth.sample(records, randomness=SeededRandomness(seed + 1000))
    terms = {"neighbours": "add-remove", "randomness": SeededRandomness(seed), "split": split}
    return dpgm.fit(table, CHAIN, Budget.pure(epsilon), learner="naive-mle", **terms).model


@pytest.fixture(scope="module")
def wrong():
    truth = population(0, True)
    return truth, dpgm.bootstrap(fitted(truth, 0), 20, randomness=SeededRandomness(5))


@pytest.mark.landing
def test_a_wrong_structure_is_found_and_a_right_one_is_not():
    """4 wrong structures, off by .023 to .044, are said to be by more than .02; of 12 right ones at most 3 have a lower
    end above 0 (5 % each: 4 once in 400 seeds)."""
    wrong = [fitted(population(seed, True), seed, epsilon=10).structure_error() for seed in range(4)]
    assert min(float(one.estimate) for one in wrong) > 0.02
    assert sum(float(one.low) > 0 for one in wrong) >= 3
    right = [fitted(population(seed, False), seed, epsilon=10).structure_error() for seed in range(12)]
    assert sum(float(one.low) > 0 for one in right) <= 3
    assert max(float(one.estimate) for one in right) < 0.01


def test_the_distance_is_about_that_of_the_truth(wrong):
    """It is within a factor of two of the mean total variation; inside a clique the check changes nothing."""
    truth, model = wrong
    pairs = [(one, two) for n, one in enumerate("abcdefg") for two in "abcdefg"[n + 2 :]]
    ours, theirs = model.marginals_of(pairs), truth.marginals_of(pairs)
    distance = np.mean([abs(ours[pair] - theirs[pair]).sum() / 2 for pair in pairs])
    found = model.structure_error()
    assert distance / 2 < found.estimate < 2 * distance
    assert found.low < found.estimate < found.high
    assert found.standard_error > 0
    found = model.intervals(["a", "b"])
    assert found.standing == "measured"
    assert found.structure == 0.0
    assert np.allclose(found.standard_error**2, found.spread**2 + found.bias**2)


def test_answers_by_structure_are_widened_and_hold_the_truth(wrong):
    """Cells of pairs that no clique holds, one wrong structure: 90 % intervals hold .80 to .98 of them, .2 to .6 bare.
    One fixed data set, a test of size."""
    truth, model = wrong
    bare, held = [], []
    for n, one in enumerate("abcdefg"):
        for two in "abcdefg"[n + 2 :]:
            found, right = model.intervals([one, two]), truth.marginal([one, two])
            assert found.standing == "by structure"
            held.append((found.low <= right) & (right <= found.high))
            width = np.sqrt(found.spread**2 + found.bias**2) * 1.729
            bare.append(abs(found.estimate - right) <= width)
    assert 0.8 < np.mean(held) < 0.98
    assert np.mean(bare) < 0.6


def test_the_error_of_a_conditional_is_that_of_its_pair():
    """Cell by cell: p(c | a) moves by the pair's error over p(a), and one pair moves all cells in proportion."""
    model = population(3, False)
    answers = model.marginals_of
    joint, a, c = model.marginal(["a", "c"]), model.marginal("a"), model.marginal("c")
    scale = cell_scales(a, c, False)
    assert np.allclose(structure_variance(CHAIN, ("a", "c"), {}, joint, answers, False), scale**2)
    assert np.allclose(structure_variance(CHAIN, ("c", "a"), {}, joint.T, answers, False), scale.T**2)
    given = model.marginal("c", {"a": 1})
    assert np.allclose(structure_variance(CHAIN, ("c",), {"a": 1}, given, answers, False), (scale[1] / a[1]) ** 2)
    three = model.marginal(["c", "b", "a"])
    expected = (three * (scale / joint).T[:, None, :]) ** 2
    assert np.allclose(structure_variance(CHAIN, ("c", "b", "a"), {}, three, answers, False), expected)
    assert (
        structure_variance(CHAIN, ("b",), {"a": 0, "c": 0}, model.marginal("b", {"a": 0, "c": 0}), answers, False)
        is None
    )
    assert structure_variance(CHAIN, ("a", "b"), {}, model.marginal(["a", "b"]), answers, False) is None


def test_pairs_that_a_selection_left_miss_as_much_total_variation_each():
    """Factors of tau add up to 1 in each pair, whatever its margins; of a named structure they do not."""
    few, even = np.array([0.98, 0.02]), np.full(5, 0.2)
    for one, two in ((few, even), (even, even), (few, few)):
        scales = cell_scales(one, two, True)
        assert scales.sum() == pytest.approx(1.0)
        deviations = np.outer(np.sqrt(one * (1 - one)), np.sqrt(two * (1 - two)))
        assert np.allclose(scales, deviations / deviations.sum())
        assert np.allclose(cell_scales(one, two, False), np.outer(one * (1 - one), two * (1 - two)) ** 0.75)
    assert not cell_scales(np.array([1.0, 0.0]), even, True).any()


def test_what_is_widened_after_a_selection_is_by_its_own_scale():
    """A session whose scores chose the tables; named cliques, and bins that were searched, choose nothing."""
    rng = np.random.default_rng(4)
    a, b, noise = (rng.integers(0, 3, 4000) for _ in range(3))
    codes = np.stack([a, b, (a + b) % 3, noise % 2, (a + noise) % 3], axis=1)
    domain = Domain.from_sizes({"a": 3, "b": 3, "c": 3, "d": 2, "e": 3})
    common = {"neighbours": "add-remove", "split": {"holdout": "0.1"}, "randomness": SeededRandomness(3)}
    chosen = dpgm.fit(codes, "mst", Budget.zcdp("0.05"), workload=Workload.default(domain), **common).model
    named = dpgm.fit(codes, Structure.chain(domain), Budget.zcdp("0.05"), mechanism="gaussian", **common).model
    assert chosen.is_selected and not named.is_selected
    for model in (chosen, named):
        pair = model._missed[0]
        scale = cell_scales(model.marginal(pair[0]), model.marginal(pair[1]), model.is_selected)
        expected = np.sqrt(model._error.expected) * scale
        assert np.allclose(model.intervals(pair).structure, expected)
    # Each pair misses the total variation of normal errors whose factors add up to 1.
    variation = math.sqrt(max(chosen._error.variance, 0.0) / (2 * math.pi))
    assert chosen.structure_error().estimate == pytest.approx(min(variation, 1.0))


def test_a_check_is_saved_and_loaded_and_bootstrapped_again(wrong, tmp_path):
    """The file gives back cost, check and figures; replicates are made as if there were none."""
    _, model = wrong
    model.save(tmp_path / "one.dpgm")
    loaded = dpgm.load_model(tmp_path / "one.dpgm")
    assert loaded.cost == model.cost == Budget.pure(2)
    assert loaded.checked
    assert float(loaded.structure_error().estimate) == pytest.approx(float(model.structure_error().estimate), rel=1e-4)
    again = dpgm.bootstrap(loaded, 5, randomness=SeededRandomness(1))
    assert len(again.replicates) == 5
    assert "releases together" in loaded.guarantee()
    with pytest.raises(dpgm.ModelFileError):
        dpgm.load_release(tmp_path / "one.dpgm")  # carries two


def test_without_a_check_nothing_is_widened_and_the_error_is_unknown():
    """The message says how to have one."""
    model = dpgm.bootstrap(fitted(population(0, True), 0, split="even"), 5, randomness=SeededRandomness(5))
    assert model.intervals(["a", "c"]).structure == 0.0
    with pytest.raises(OptionError, match="reserve a share of the budget"):
        model.structure_error()


def test_pairs_that_a_wider_model_holds_no_longer_count():
    """Learned again with cliques for what the check saw, only the other pairs are left; with all of them, none is."""
    truth = population(0, True)
    model = fitted(truth, 0)
    wider = Structure.chain(DOMAIN, 2)
    again = dpgm.learn(model.releases, "naive-mle", structure=wider).model
    assert again.structure_error().high > 0
    whole = Structure.complete(DOMAIN)
    with pytest.raises(OptionError, match="cannot be estimated"):
        dpgm.learn(model.releases, "naive-mle", structure=whole).model.structure_error()


def test_a_noisy_check_widens_rather_more_than_less():
    """At a tenth of the budget of few records the check sees nothing; what is used is its own noise, not 0."""
    model = fitted(population(1, False), 1, records=300)
    error = model._error
    assert error.expected > 0.3 * error.error
    assert math.isfinite(float(model.structure_error().high))
