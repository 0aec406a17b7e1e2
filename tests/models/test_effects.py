"""Effects of noisy tables against dense generalised least squares and direct definitions."""

import itertools
import math

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Structure, Tables, TooLarge
from dpgm_core.models.effects import (
    add_over_axes,
    combine_tables,
    effect,
    effect_norms,
    effects_of,
    means_over_axes,
    subsets,
)
from tests.fixtures import seeded

NAMES = "abcde"


@st.composite
def overlapping(draw):
    """Sizes of up to five attributes, which of them are asked about, and overlapping noisy tables of them all."""
    sizes = draw(st.lists(st.integers(2, 3), min_size=3, max_size=5))
    asked = draw(st.integers(2, len(sizes)))
    sets = st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=3, unique=True)
    cliques = draw(st.lists(sets, min_size=1, max_size=5))
    return sizes, asked, cliques, draw(st.integers(0, 2**32 - 1))


@given(overlapping())
def test_estimates_and_noise_are_those_of_dense_least_squares(case):
    """Also with attributes outside of the question, of which each cell asked about sums several."""
    sizes, asked, cliques, seed = case
    rng = np.random.default_rng(seed)
    cells, rows, values, weights, tables = math.prod(sizes), [], [], [], []
    index = np.indices(sizes).reshape(len(sizes), cells)
    for clique in cliques:
        shape = [sizes[at] for at in clique]
        counts, variance = rng.normal(size=shape), float(rng.uniform(0.5, 3))
        where = np.ravel_multi_index(index[clique], shape)
        rows.append((where == np.arange(math.prod(shape))[:, None]).astype(float))
        values.append(counts.reshape(-1))
        weights.append(np.full(counts.size, 1 / variance))
        tables.append((tuple(NAMES[at] for at in clique), counts, variance, True))
    effects = combine_tables(tuple(NAMES[:asked]), sizes[:asked], tables, (10.0, 0.25))
    shape = tuple(sizes[:asked])
    asked_for = effects.project(rng.normal(size=(3, *shape)))
    asked_for = asked_for - asked_for.mean(axis=tuple(range(1, asked + 1)), keepdims=True)  # N is known apart
    outside = cells // math.prod(shape)
    over_all = np.repeat(asked_for.reshape(3, -1), outside, axis=1)
    matrix, weight = np.concatenate(rows), np.concatenate(weights)
    inverse = np.linalg.pinv(matrix.T @ (weight[:, None] * matrix), rcond=1e-10)
    dense = inverse @ (matrix.T @ (weight * np.concatenate(values)))
    np.testing.assert_allclose(asked_for.reshape(3, -1) @ effects.table.reshape(-1), over_all @ dense, atol=1e-9)
    np.testing.assert_allclose(effects.noise(asked_for), over_all @ inverse @ over_all.T, atol=1e-9)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_effects_sum_to_the_function_and_do_not_overlap(sizes, seed):
    """f is the sum of its effects, whose lengths, times the cells they are repeated over, add up to its own."""
    values = np.random.default_rng(seed).normal(size=(2, *sizes))
    sets = list(subsets(range(len(sizes))))
    parts = {axes: effect(values, axes) for axes in sets}
    np.testing.assert_allclose(add_over_axes(parts, sizes), values, atol=1e-12)
    norms = effect_norms(values, sets)
    repeats = {axes: math.prod(sizes) // math.prod(sizes[at] for at in axes) for axes in sets}
    whole = sum(norms[axes] * repeats[axes] for axes in sets)
    np.testing.assert_allclose(whole, np.sum(values.reshape(2, -1) ** 2, axis=1))


@given(overlapping())
def test_weighted_projections_are_by_their_definition_and_spreads_their_adjoint(case):
    """P_w f sums the effects under w that tables tell, and is idempotent; <f, spread of g> = <P_w f, g>."""
    sizes, _, cliques, seed = case
    rng = np.random.default_rng(seed)
    tables = [
        (tuple(NAMES[at] for at in clique), np.zeros([sizes[at] for at in clique]), 1.0, True) for clique in cliques
    ]
    effects = combine_tables(tuple(NAMES[: len(sizes)]), sizes, tables, (1.0, 1.0))
    weights = [rng.dirichlet(np.full(size, 0.5)) + 1e-3 for size in sizes]
    weights = [one / one.sum() for one in weights]
    values, others = rng.normal(size=(2, 2, *sizes))
    found = effects.project(values, weights)
    direct = np.zeros_like(values)
    for axes in effects.variances:
        part = values
        for at, weight in enumerate(weights):
            mean = np.expand_dims(np.moveaxis(part, at + 1, -1) @ weight, at + 1)
            part = part - mean if at in axes else np.repeat(mean, sizes[at], axis=at + 1)
        direct += part
    np.testing.assert_allclose(found, direct, atol=1e-10)
    np.testing.assert_allclose(effects.project(found), found, atol=1e-9)
    np.testing.assert_allclose(effects.project(effects.project(values), weights), effects.project(values), atol=1e-9)
    adjoint = effects.spread(others, weights)
    np.testing.assert_allclose(np.vdot(values, adjoint), np.vdot(found, others), rtol=1e-7, atol=1e-8)


@given(st.integers(1, 4), st.integers(0, 2**32 - 1), st.data())
def test_means_are_means_and_sums_their_adjoint(axes, seed, data):
    """<sum of broadcast tables, f> = sum of <table, mean of f> times the cells averaged."""
    sizes = [2, 3, 2, 2][:axes]
    targets = data.draw(st.lists(st.sampled_from(list(subsets(range(axes)))), min_size=1, unique=True))
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(1, *sizes))
    means = means_over_axes(values, targets)
    assert set(means) == set(targets)
    tables = {}
    for target, mean in means.items():
        others = tuple(at + 1 for at in range(axes) if at not in target)
        np.testing.assert_allclose(mean, values.mean(axis=others, keepdims=True))
        tables[target] = rng.normal(size=mean.shape)
    spread = add_over_axes(tables, sizes)
    expected = sum(np.sum(tables[one] * means[one]) * values.size / means[one].size for one in targets)
    assert np.sum(spread * values) == pytest.approx(float(expected))


def test_tables_with_too_many_effects_are_refused():
    """Seventeen binary attributes in one table have 131,072 effects."""
    counts = np.zeros((2,) * 17)
    names = tuple(f"x{at}" for at in range(17))
    with pytest.raises(TooLarge, match="hold 131,072 effects of 17 attributes, above 65,536; ask about fewer"):
        combine_tables(names, counts.shape, [(names, counts, 1.0, True)], (1.0, 0.0))


# --- releases -------------------------------------------------------------------------------------

DOMAIN = Domain.from_sizes({"a": 2, "b": 2, "c": 2})
ROWS = np.array(list(itertools.product((0, 1), repeat=3)) * 20 + [[0, 0, 1]] * 40 + [[1, 1, 0]] * 30)


def release_of(structure, **facts):
    """A release with so little noise that its counts are the rows'."""
    return dpgm.release(ROWS, structure, Budget.pure(10**6), **seeded(), **facts)


def counted(*axes):
    """Counts of the rows by some attributes."""
    return np.histogramdd(ROWS[:, axes], bins=[(-0.5, 0.5, 1.5)] * len(axes))[0]


def test_contrasts_tell_one_effect_each():
    """Products of a clique's subsets are its effects, signs and scale included; two cliques share the singles'."""
    whole = Structure(DOMAIN, [("a", "b"), ("b", "c")])
    contrasts = dpgm.release(ROWS, whole, Budget.zcdp(10**6), "gaussian", split="contrasts", **seeded())
    assert contrasts.contrasts
    effects = effects_of([contrasts], ("a", "b", "c"), (2, 2, 2))
    assert set(effects.variances) == {(), (0,), (1,), (2,), (0, 1), (1, 2)}
    np.testing.assert_allclose(effects.table.sum(axis=2), counted(0, 1), atol=1e-6)
    np.testing.assert_allclose(effects.table.sum(axis=0), counted(1, 2), atol=1e-6)
    # The sum of a table's cells with these signs is the product, and has its noise.
    number = next(at for at, group in enumerate(contrasts.structure.groups) if set(group[0]) == {"a", "b"})
    signs = np.multiply.outer([1.0, -1.0], [1.0, -1.0])[None, :, :, None] * np.ones(2)
    assert effects.noise(signs)[0, 0] == pytest.approx(float(contrasts.measurement.sum_variances[number]))


@pytest.mark.landing  # the test above has it exactly
def test_the_noise_of_contrasts_is_that_of_redrawn_releases():
    """Claim: of fixed records, over 300 releases, within 30 %: four standard deviations of such a ratio are 33 %."""
    structure = Structure(DOMAIN, [("a", "b")])
    signs = np.multiply.outer([1.0, -1.0], [1.0, -1.0])
    single = np.multiply.outer([1.0, -1.0], [1.0, 1.0])
    drawn = []
    for seed in range(300):
        release = dpgm.release(ROWS, structure, Budget.zcdp("0.01"), "gaussian", split="contrasts", **seeded(seed))
        effects = effects_of([release], ("a", "b"), (2, 2))
        drawn.append([np.sum(effects.table * one) for one in (signs, single)])
    stated = np.diag(effects.noise(np.stack([signs, single])))
    np.testing.assert_allclose(np.var(drawn, axis=0), stated, rtol=0.3)


def test_tied_tables_rounds_contributions_and_holdouts_tell_nothing():
    """Each leaves only the number of records."""
    tied = release_of(Structure(DOMAIN, [], tied=[[("a", "b"), ("b", "c")]]))
    usual = release_of(Structure(DOMAIN, [("a", "b")]))
    for one in (tied, evolve(usual, holdout=True)):
        assert set(effects_of([one], ("a", "b"), (2, 2)).variances) == {()}
    assert set(effects_of([usual], ("a", "b"), (2, 2)).variances) == {(), (0,), (1,), (0, 1)}


def test_merged_codes_are_summed_and_their_noise_is_that_of_the_largest_block():
    """Three of five codes in one block: a table from before merging has up to three times the noise in a cell."""
    domain = Domain.from_sizes({"a": 5, "b": 2})
    structure = Structure(domain, [("a", "b")])
    counts = np.arange(10.0).reshape(5, 2)
    noisy = dpgm.release(np.zeros((1, 2), int), structure, Budget.pure(1), **seeded())
    noisy = evolve(noisy, tables=Tables(structure, counts.reshape(-1)), total=45.0, total_variance=0.0)
    merges = {"a": [np.array([0, 1, 1, 2, 1])]}
    effects = effects_of([noisy], ("a", "b"), (3, 2), merges)
    np.testing.assert_allclose(effects.table, [[0, 1], [2 + 4 + 8, 3 + 5 + 9], [6, 7]], atol=1e-12)
    assert effects.variances[0, 1] == pytest.approx(3 * float(noisy.variances[0]))
