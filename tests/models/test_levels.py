"""Merged codes: how blocks are split, and what a session's file says of them."""

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Structure, StructureError
from dpgm_core.models.merged_codes import MergedAttribute, MergedCodes, block_weights, find_merged_codes
from tests.fixtures import seeded
from tests.models.enumerated import merge_columns, merged_session, uniform_model

DOMAIN = Domain.from_sizes({"a": 6, "b": 3, "c": 2})
MERGES = {"a": (0, 1, 2, 2, 1, 2)}
COARSE = DOMAIN.coarsened(MERGES)
RNG = np.random.default_rng(0)
CODES = np.stack([np.minimum(RNG.geometric(0.5, 500) - 1, size - 1) for size in (6, 3, 2)], axis=1)


def measured(structure: Structure, codes: np.ndarray, seed: int) -> dpgm.NoisyTables:
    """One step; its own cost does not matter here."""
    return dpgm.release(codes, structure, Budget.pure("1/2"), **seeded(seed))


def session(merges=MERGES, singles=(("a",), ("b",), ("c",))) -> dpgm.NoisyTables:
    """One-way tables as they are, then pairs over merged codes."""
    pairs = Structure(DOMAIN.coarsened(merges), [("a", "b"), ("b", "c")])
    steps = [measured(Structure(DOMAIN, singles), CODES, 1), measured(pairs, merge_columns(CODES, DOMAIN, merges), 2)]
    return merged_session(DOMAIN, merges, steps)


def test_weights_come_from_the_one_way_tables_of_a_session():
    """Each block sums to 1; two tables of one attribute count by their precision."""
    release = session()
    levels = find_merged_codes(COARSE, [release])
    assert levels.fine == DOMAIN and set(levels.of) == {"a"}
    level = levels.of["a"]
    np.testing.assert_array_equal(level.counts, release.steps[0].tables["a"])
    np.testing.assert_allclose(np.bincount(level.codes, weights=level.weights), 1)
    np.testing.assert_allclose(level.weights, block_weights(level.counts, level.variance, level.codes))
    again = evolve(release, steps=(*release.steps, measured(Structure(DOMAIN, [("a",)]), CODES, 3)))
    both = find_merged_codes(COARSE, [again]).of["a"]
    one, two = again.steps[0], again.steps[2]
    expected = (one.tables["a"] / one.variances[0] + two.tables["a"] / two.variances[0]) * both.variance
    np.testing.assert_allclose(both.counts, expected)
    assert both.variance == pytest.approx(1 / (1 / one.variances[0] + 1 / two.variances[0]))
    # what a check measured is compared with, and a table over merged codes does not tell them apart
    others = evolve(release, steps=(evolve(release.steps[0], holdout=True), release.steps[1]))
    assert find_merged_codes(COARSE, [others]).of["a"].counts is None


def test_what_was_not_measured_is_even():
    """No one-way table, no difference between the codes of a block; the standing says so."""
    release = session(singles=[("b",), ("c",)])
    weights = find_merged_codes(COARSE, [release]).of["a"].weights
    np.testing.assert_allclose(weights, [1, 1 / 2, 1 / 3, 1 / 3, 1 / 2, 1 / 3])
    model = uniform_model(Structure(COARSE, [("a", "b")]), releases=[release])
    assert model.standing("a") == "by structure"


def test_merges_that_are_none_or_lead_elsewhere():
    """Nothing is merged for plain releases; other codes than the session's, and sessions that differ, are refused."""
    plain = measured(Structure(DOMAIN, [("a",)]), CODES, 1)
    assert find_merged_codes(DOMAIN, [plain]) is None and find_merged_codes(DOMAIN, []) is None
    assert find_merged_codes(DOMAIN, [session(merges={"a": tuple(range(6))})]) is None
    assert find_merged_codes(Domain.from_sizes({"b": 3}), [session()]) is None
    release = session()
    with pytest.raises(StructureError, match="merged the codes of 'a' to others"):
        find_merged_codes(DOMAIN, [release])
    other = evolve(release, session=evolve(release.session, merges={"a": (0, 2, 1, 1, 2, 1)}))
    with pytest.raises(StructureError, match="merged the codes of 'a' to others"):
        find_merged_codes(COARSE, [release, other])


def test_shrinkage_is_a_distribution_and_between_the_counts_and_even():
    """Whatever the counts, also negative: above 0, blocks sum to 1; no noise, no shrinkage but by sampling."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        codes = np.concatenate([np.arange(3), rng.integers(0, 3, size=9)])
        weights = block_weights(rng.normal(2, 8, size=12), float(rng.uniform(0.1, 50)), codes)
        assert (weights > 0).all()
        np.testing.assert_allclose(np.bincount(codes, weights=weights), 1)
    counts, codes = np.array([9000.0, 3000.0, 0.0]), np.zeros(3, dtype=int)
    np.testing.assert_allclose(block_weights(counts, 1e-9, codes), counts / 12000, atol=1e-3)
    rare = block_weights(np.array([900.0, 300.0, -50.0]), 16.0, codes)
    assert rare[2] > 0  # a code that may occur is never ruled out
    np.testing.assert_allclose(block_weights(np.array([3.0, -1.0, 0.0]), 100.0, codes), 1 / 3)
    np.testing.assert_allclose(block_weights(np.array([-3.0, -1.0, 0.0]), 1.0, codes), 1 / 3)


def test_shrinkage_beats_raw_counts_where_noise_hides_them():
    """200 blocks of 20 rare codes: the squared error of shrunk weights is less than half of that without shrinkage."""
    rng, codes = np.random.default_rng(1), np.zeros(20, dtype=int)
    errors = np.zeros(2)
    for _ in range(200):
        truth = rng.dirichlet(np.full(20, 3.0)) * 200
        noisy = truth + rng.normal(0, 10, size=20)
        for at, variance in enumerate((100.0, 0.0)):
            errors[at] += ((block_weights(noisy, variance, codes) - truth / 200) ** 2).sum()
    assert errors[0] < 0.5 * errors[1]


@pytest.mark.parametrize(
    ("truth", "most"),
    [
        (np.append(np.zeros(48), [499.0, 488.0]), 0.03),  # months without anybody, before two in which all came
        (np.tile([0.0, 0.0, 0.0, 0.0, 120.0], 6), 0.08),  # ages that are rounded to five years
        (np.linspace(0.0, 300.0, 8), 0.03),  # a slope stays one
        (np.full(12, 40.0), 0.06),
    ],
)
def test_codes_that_nobody_has_get_little(truth, most):
    """Mean total variation from the truth over 20 draws of noise of deviation 11; shrunk toward a line alone the first
    two are .14 and .11. The draws are seeded, so this never fails by chance."""
    rng, codes = np.random.default_rng(2), np.zeros(len(truth), dtype=int)
    errors = []
    for _ in range(20):
        weights = block_weights(truth + rng.normal(0, 11, size=len(truth)), 121.0, codes, np.ones(len(truth)))
        assert (weights > 0).all()
        errors.append(0.5 * np.abs(weights - truth / truth.sum()).sum())
    assert np.mean(errors) < most


@pytest.mark.parametrize(
    ("widths", "common", "most"),
    [
        (np.tile([0.2, 0.3, 0.1, 0.2], 8), (), 0.03),  # as of one decimal, cut at halves: lines in blocks have .054
        (np.ones(32), (), 0.03),  # .038
        (np.ones(32), (8, 23), 0.033),  # two bins that many have draw no others to them: .041
        (np.repeat([64.0, 1.0, 64.0], [2, 28, 2]), (), 0.033),  # .036
    ],
)
def test_bins_of_numbers_follow_their_density(widths, common, most):
    """Mean total variation of normal numbers in bins of these widths, noise of deviation 20 on 4,000 records, in blocks
    of four, over 20 draws. The draws are seeded, so this never fails by chance."""
    places, codes = (np.cumsum(widths) - widths / 2) / widths.sum(), np.arange(len(widths)) // 4
    truth = widths * np.exp(-(((places - 0.5) / 0.2) ** 2) / 2)
    truth[list(common)] *= 4
    truth *= 4000 / truth.sum()
    whole, rng, errors = np.bincount(codes, weights=truth)[codes], np.random.default_rng(5), []
    for _ in range(20):
        weights = block_weights(truth + rng.normal(0, 20, size=len(truth)), 400.0, codes, widths)
        errors.append(0.5 * np.abs(whole * weights - truth).sum() / 4000)
    assert np.mean(errors) < most


@given(st.integers(2, 40), st.integers(0, 2**32 - 1))
def test_shares_of_bins_are_distributions(bins, seed):
    """Of any counts, also negative or all 0, and widths, also infinite or of any scale: above 0, blocks sum to 1."""
    rng = np.random.default_rng(seed)
    counts = rng.normal(0, 10.0 ** rng.integers(-2, 8), bins + 2).round(int(rng.integers(-3, 3)))
    widths = 10.0 ** rng.uniform(-1, 1, bins) ** int(rng.integers(1, 9)) * 10.0 ** rng.integers(-200, 200)
    widths[[0, -1]] = np.where(rng.random(2) < 0.3, np.inf, widths[[0, -1]])
    codes = np.append(np.sort(rng.integers(0, 4, bins)), [4, 4])
    codes = np.unique(codes, return_inverse=True)[1]
    with np.errstate(all="raise", under="ignore"):
        weights = block_weights(counts, 10.0 ** rng.uniform(-3, 6), codes, widths)
    assert (weights > 0).all() and np.isfinite(weights).all()
    np.testing.assert_allclose(np.bincount(codes, weights=weights), 1)


def test_drawn_codes_follow_the_weights_and_never_have_weight_0():
    """Every place in [0, 1), its ends included; shares of a fine grid."""
    level = MergedAttribute(codes=np.array([1, 0, 1, 0, 1, 0]), weights=np.array([0.0, 0.0, 0.7, 0.25, 0.3, 0.75]))
    at = np.concatenate([(np.arange(1000) + 0.5) / 1000, [0.0, np.nextafter(1.0, 0.0)]])
    for block, expected in ((0, {3: 0.25, 5: 0.75}), (1, {2: 0.7, 4: 0.3})):
        drawn = level.draw(np.full(1002, block), at)
        assert set(drawn.tolist()) == set(expected)
        for code, share in expected.items():
            assert np.mean(drawn[:1000] == code) == pytest.approx(share, abs=1e-9)
    assert level.likeliest.tolist() == [5, 2]


def test_weights_drawn_anew_keep_blocks_and_vary_as_the_noise_does():
    """Their spread in probability is that of the noise: between a third and 1.2 of it, as none can be negative."""
    codes, weights = np.array([0, *[1] * 8]), np.array([1.0, *[1 / 8] * 8])
    level = MergedAttribute(codes=codes, weights=weights, counts=np.zeros(9), variance=100.0)
    levels = MergedCodes(fine=Domain.from_sizes({"a": 9}), of={"a": level})
    shares = {"a": np.array([0.92, *[0.01] * 8])}
    drawn = np.stack([levels.redraw(shares, 1000.0, np.random.default_rng(n)).of["a"].weights for n in range(200)])
    np.testing.assert_allclose(drawn[:, 1:].sum(axis=1), 1)
    spread = 0.08 * drawn[:, 1:].std(axis=0).mean() * 1000
    assert 10 / 3 < spread < 12
    np.testing.assert_array_equal(drawn[3], levels.redraw(shares, 1000.0, np.random.default_rng(3)).of["a"].weights)
