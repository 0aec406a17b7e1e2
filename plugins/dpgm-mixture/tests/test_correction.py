"""Pairs moved towards their measured tables."""

import numpy as np
import pytest
from dpgm_mixture.correction import correct_pair
from scipy.optimize import minimize

import dpgm_core as dpgm

DOMAIN = dpgm.Domain.from_sizes({"a": 3, "b": 4, "c": 2})
CODES = np.stack([np.random.default_rng(1).integers(0, size, 5000) for size in DOMAIN.sizes.values()], axis=1)
CODES[:, 1] = np.where(np.arange(5000) % 2, CODES[:, 0], CODES[:, 1])


def learned(budget, **options):
    noisy = dpgm.release(
        CODES,
        dpgm.Structure(DOMAIN, [("a", "b"), ("c",)]),
        budget,
        neighbours="add-remove",
        randomness=dpgm.SeededRandomness(1),
    )
    return dpgm.learn(noisy, {"name": "mixture", "follow": 1, **options}, randomness=dpgm.SeededRandomness(1)).model


def test_the_answer_is_the_shrunken_table_projected():
    """By the formula, with the projection from a general minimiser, in either order of the names."""
    model = learned(dpgm.Budget.pure("0.5"), classes=1)
    noisy = model.release
    answer, table = model.marginal(("a", "b")), noisy.tables["a", "b"] / noisy.total
    noise = (12 + 2 * np.sqrt(24)) * float(noisy.variances[0]) / noisy.total**2
    t = max(0, 1 - noise / float(((table - answer) ** 2).sum()))
    assert 0 < t < 1
    target = np.asarray(answer + t * (table - answer)).reshape(-1)
    found = minimize(
        lambda p: 1e4 * ((p - target) ** 2).sum(),
        np.full(12, 1 / 12),
        jac=lambda p: 2e4 * (p - target),
        bounds=[(0, 1)] * 12,
        constraints=[{"type": "eq", "fun": lambda p: p.sum() - 1, "jac": np.ones_like}],
        method="SLSQP",
    )
    np.testing.assert_allclose(correct_pair(model, "a", "b").reshape(-1), found.x, atol=1e-5)
    np.testing.assert_allclose(correct_pair(model, "b", "a"), correct_pair(model, "a", "b").T, atol=1e-15)


def test_much_noise_leaves_the_model_and_little_noise_the_table():
    """Independence is wrong for this pair by .25; at epsilon = 50 the table is right to .001."""
    true = np.bincount(CODES[:, 0] * 4 + CODES[:, 1], minlength=12).reshape(3, 4) / 5000
    far = learned(dpgm.Budget.pure("0.001"), classes=1)
    np.testing.assert_allclose(correct_pair(far, "a", "b"), far.marginal(("a", "b")), atol=1e-12)
    near = learned(dpgm.Budget.pure(50), classes=1)
    assert 0.5 * np.abs(near.marginal(("a", "b")) - true).sum() > 0.2
    assert 0.5 * np.abs(correct_pair(near, "a", "b") - true).sum() < 0.001


def test_merged_codes_keep_their_shares_of_a_block():
    """A rare label's block is corrected, and split as the model splits it."""
    domain = dpgm.Domain.from_sizes({"a": 6, "b": 3})
    rng = np.random.default_rng(2)
    codes = np.stack([np.minimum(rng.geometric(0.7, 4000) - 1, 5), rng.integers(0, 3, 4000)], axis=1)
    model = dpgm.fit(
        codes,
        "all-pairs",
        dpgm.Budget.pure("0.2"),
        learner={"name": "mixture", "classes": 1},
        workload=dpgm.Workload.all(domain, 2),
        neighbours="add-remove",
        randomness=dpgm.SeededRandomness(4),
    ).model
    blocks = np.array(model.release.session.merges["a"])
    assert len(set(blocks)) < 6
    fine = correct_pair(model, "a", "b")
    assert fine.shape == (6, 3) and abs(fine.sum() - 1) < 1e-9
    for block in set(blocks):
        inside = model.marginal(("a", "b"))[blocks == block]
        mine = fine[blocks == block]
        np.testing.assert_allclose(mine * inside.sum(axis=0), inside * mine.sum(axis=0), atol=1e-12)


def test_what_was_not_measured_is_refused():
    """A pair of two tables, a replicate, which carries its model's table, and a model without a release."""
    with pytest.raises(dpgm.StructureError, match=r"measured \(a, c\) alone; ask model.marginal"):
        correct_pair(learned(dpgm.Budget.pure(1)), "a", "c")
    replicated = dpgm.bootstrap(learned(dpgm.Budget.pure(1)), 2, randomness=dpgm.SeededRandomness(1))
    with pytest.raises(dpgm.OptionError, match="a corrected pair has no interval"):
        replicated.interval_of(lambda model: correct_pair(model, "a", "b"))
    alone = dpgm.Structure(DOMAIN, [("a", "b")])
    with pytest.raises(dpgm.StructureError, match="no table"):
        correct_pair(dpgm.Model(alone, dpgm.Tables.zeros(alone)), "a", "b")
