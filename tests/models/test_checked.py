"""What a holdout does to a model: its error is found, widens answers by structure, and goes with the file."""

import math

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, SeededRandomness, Structure
from dpgm_core.errors import OptionError
from dpgm_core.models.misfit import cell_scales, structure_variance

DOMAIN = Domain.from_sizes(dict.fromkeys("abcdefg", 3))
CHAIN = Structure.chain(DOMAIN)
SPLIT = {"holdout": "0.1"}


def population(seed, wrong):
    """Shares of a chain of attributes; where `wrong`, each depends on the one before the last as well."""
    rng = np.random.default_rng(seed)
    structure = Structure.chain(DOMAIN, 2 if wrong else 1)
    values = rng.normal(scale=0.8, size=structure.cells)
    return dpgm.Model(structure, dpgm.Tables(structure, values))


def fitted(truth, seed, records=20_000, split=SPLIT, epsilon=2):
    table = truth.sample(records, randomness=SeededRandomness(seed + 1000))
    return dpgm.fit(
        table,
        CHAIN,
        Budget.pure(epsilon),
        learner="naive-mle",
        neighbours="add-remove",
        randomness=SeededRandomness(seed),
        split=split,
    ).model


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
    """Within a factor of two of the mean total variation over the pairs, and the interval holds half of it."""
    truth, model = wrong
    pairs = [(one, two) for n, one in enumerate("abcdefg") for two in "abcdefg"[n + 2 :]]
    ours, theirs = model.marginals_of(pairs), truth.marginals_of(pairs)
    distance = np.mean([abs(ours[pair] - theirs[pair]).sum() / 2 for pair in pairs])
    found = model.structure_error()
    assert distance / 2 < found.estimate < 2 * distance
    assert found.low < found.estimate < found.high
    assert found.standard_error > 0


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


def test_measured_answers_are_as_they_were(wrong):
    """Inside a clique the check changes nothing."""
    _, model = wrong
    found = model.intervals(["a", "b"])
    assert found.standing == "measured"
    assert found.structure == 0.0
    assert np.allclose(found.standard_error**2, found.spread**2 + found.bias**2)


def test_the_error_of_a_conditional_is_that_of_its_pair():
    """p(c | a) moves by the pair's error over p(a); one pair of three attributes moves all their cells in proportion;
    what is given cancels out. Against the definition, cell by cell."""
    model = population(3, False)
    answers = model.marginals_of
    joint, a, c = model.marginal(["a", "c"]), model.marginal("a"), model.marginal("c")
    scale = cell_scales(a, c)
    assert np.allclose(structure_variance(CHAIN, ("a", "c"), {}, joint, answers), scale**2)
    assert np.allclose(structure_variance(CHAIN, ("c", "a"), {}, joint.T, answers), scale.T**2)
    given = model.marginal("c", {"a": 1})
    assert np.allclose(structure_variance(CHAIN, ("c",), {"a": 1}, given, answers), (scale[1] / a[1]) ** 2)
    three = model.marginal(["c", "b", "a"])
    expected = (three * (scale / joint).T[:, None, :]) ** 2
    assert np.allclose(structure_variance(CHAIN, ("c", "b", "a"), {}, three, answers), expected)
    assert structure_variance(CHAIN, ("b",), {"a": 0, "c": 0}, model.marginal("b", {"a": 0, "c": 0}), answers) is None
    assert structure_variance(CHAIN, ("a", "b"), {}, model.marginal(["a", "b"]), answers) is None


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
    error = model._error()
    assert error.expected > 0.3 * error.error
    assert math.isfinite(float(model.structure_error().high))
