"""Sums of gradients: whole numbers against a slow computation by the definition, and how far records reach."""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import attrs
import numpy as np
import pytest

from dpgm_core.counting.descent import GradientSums
from dpgm_core.privacy.descent import NodeGradients
from tests.privacy.candidates import regressions

LOSSES = [("logistic", 2), ("softmax", 2), ("softmax", 3), ("pairs", 2), ("pairs", 3)]


def weighted(own, seed=0, *, radius=2, weights_grid=64, **given):
    """Random weights of each choice that use the radius up."""
    generator = np.random.default_rng(seed)
    weights = own.zeros()
    for rows in own.choices:
        at = [(row, column) for row in rows for column in np.flatnonzero(own.allowed[row])]
        for place in generator.integers(0, len(at), 4):
            weights[at[place]] += int(generator.choice([-1, 1]) * (radius * weights_grid // 4))
    return NodeGradients(regressions=own, weights=weights, radius=radius, weights_grid=weights_grid, **given)


def vertex(own, radius=2, **given):
    """All of each choice's weight on a constant: against the last code of each attribute it is far off."""
    weights = own.zeros()
    for rows in own.choices:
        weights[rows[0], -1] = radius * 64
    return NodeGradients(regressions=own, weights=weights, radius=radius, **given)


def every(own):
    sizes = [own.candidates.domain.sizes[name] for name in own.nodes]
    return np.array(list(itertools.product(*map(range, sizes))), np.uint8).T


def by_definition(gradients, record):
    """What a record adds, unclipped, (rows, columns), by whole numbers and Python's exp."""
    own, grid = gradients.regressions, gradients.residual_grid
    codes = dict(zip(own.nodes, map(int, record), strict=True))
    if own.loss == "logistic":
        features = [math.prod(1 - 2 * codes[name] for name in names) for names, _ in own.columns]
    else:
        features = [int(all(codes[name] == one for name, one in zip(*each, strict=True))) for each in own.columns]
    linear = [sum(w * x for w, x in zip(row.tolist(), features, strict=True)) for row in gradients.weights]
    residuals = []
    for number, (name, labels) in enumerate(own.rows):
        if own.loss == "softmax":
            rows = next(rows for rows in own.choices if number in rows)
            peak = max(linear[row] for row in rows)
            powers = {row: math.floor(2**28 * math.exp((linear[row] - peak) / gradients.weights_grid)) for row in rows}
            share = grid * powers[number] // sum(powers.values())
            residuals.append(grid * (codes[name] == labels[0]) - share)
        else:
            y = {labels[0]: 1, labels[1]: -1}.get(codes[name], 0)
            residuals.append(y * math.floor(grid / (1 + math.exp(y * linear[number] / gradients.weights_grid))))
    return np.outer(residuals, features)


@pytest.mark.parametrize(("loss", "k"), LOSSES)
def test_a_record_adds_its_residuals_times_its_features(loss, k):
    own = regressions(loss, k)
    for seed in range(3):
        made = weighted(own, seed)
        for record in every(own).T:
            found = GradientSums(made, "zcdp").partial(list(record[:, None]), None)
            assert (found.reshape(own.allowed.shape) == by_definition(made, record)).all()


def test_products_of_several_attributes_are_features():
    own = regressions("logistic", 2, p=4, cliques=[("a", "b", "d"), ("b", "c")])
    made = weighted(own)
    expected = sum(by_definition(made, record) for record in every(own).T)
    assert (GradientSums(made, "pure").partial(list(every(own)), None).reshape(expected.shape) == expected).all()


def ranges(made, kind, record):
    """Of each choice the range of the scores that records add, both signs of each allowed weight."""
    own = made.regressions
    grid = GradientSums(made, kind).partial(list(record[:, None]), None).reshape(own.allowed.shape)
    return np.array([[value for row in rows for value in grid[row][own.allowed[row]]] for rows in own.choices])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["zcdp", "pure"])
@pytest.mark.parametrize("clip", [None, "0.3"])
@pytest.mark.parametrize(("loss", "k"), LOSSES)
def test_no_person_moves_the_scores_further_than_is_claimed(loss, k, clip, kind):
    """All records and pairs, both relations: within the bounds, and attained under add-remove without a clip."""
    own = regressions(loss, k)
    power, attained, generator = (2 if kind == "zcdp" else 1), {1: 0, 2: 0}, np.random.default_rng(6)
    for made in (vertex(own, 12, clip=clip), weighted(own, radius=12, clip=clip)):
        reach = made.reach(kind)
        parts = np.array([ranges(made, kind, record) for record in every(own).T])  # records x choices x weights
        for rows in (1, 2):
            persons = np.array([sum(some) for some in itertools.combinations_with_replacement(parts, rows)])
            both = np.array(list(itertools.product(range(len(persons)), repeat=2)))
            one, other = generator.permutation(both)[:500].T
            moves = {"add-remove": persons, "replace-one": persons[one] - persons[other]}
            for relation, found in moves.items():
                person = rows * (2 if relation == "replace-one" else 1)
                # both signs are candidates, so the range is twice the largest
                together = ((2 * np.abs(found).max(axis=2)) ** power).sum(axis=1).max()
                assert together <= reach * (2 * person) ** power
                if relation == "add-remove":
                    attained[rows] = max(attained[rows], together / (reach * (2 * person) ** power))
    if clip is None:
        assert attained == {1: 1, 2: 1}


def records(own, count, seed=3):
    return np.random.default_rng(seed).integers(0, 2, (len(own.nodes), count)).astype(np.uint8)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", ["logistic", "softmax", "pairs"])
@pytest.mark.parametrize("clip", [None, "0.1"])
def test_sums_are_the_same_bits_in_any_order_batch_and_thread(loss, clip):
    """Permuted, one by one, in batches of 7 and 8192, in two threads; sums in floats differ."""
    own = regressions(loss, 2, p=6)
    made = weighted(own, clip=clip)
    sums, codes = GradientSums(made, "zcdp"), records(own, 10_000)
    whole = sums.partial(list(codes), None)
    shuffled = codes[:, np.random.default_rng(4).permutation(codes.shape[1])]
    assert (sums.partial(list(shuffled), None) == whole).all()
    for size, taken in ((1, 300), (7, 3000), (8192, 10_000)):
        some = shuffled[:, :taken]
        parts = [list(some[:, start : start + size]) for start in range(0, taken, size)]
        with ThreadPoolExecutor(2) as threads:
            found = sum(threads.map(lambda part: sums.partial(part, None), parts))
        assert (found == sums.partial(list(some), None)).all()


def test_sums_in_floats_are_not():
    """The same gradient by float32 numbers that are not whole depends on the order: what whole numbers are for."""
    own = regressions("logistic", 2, p=6)
    codes = records(own, 10_000)
    signs = np.vstack([1 - 2.0 * codes, np.ones(codes.shape[1])]).astype(np.float32)
    linear = (weighted(own).weights / 64).astype(np.float32) @ signs
    residuals = (signs[:-1] / (1 + np.exp(signs[:-1] * linear))).astype(np.float32)
    order = np.random.default_rng(4).permutation(codes.shape[1])
    assert (residuals @ signs.T != residuals[:, order] @ signs[:, order].T).any()


@pytest.mark.parametrize("weights_grid", [64, 2**17])
@pytest.mark.parametrize("residual_grid", [2, 4096])
def test_sums_stay_exact_at_the_ends_of_the_grids(residual_grid, weights_grid):
    """60,000 records with residuals of up to 12 bits, far beyond 24 bits together; against each record, multiplied."""
    own = regressions("logistic", 2)
    made = weighted(own, radius=8, weights_grid=weights_grid, residual_grid=residual_grid)
    few = every(own)
    once = sum(by_definition(made, record) for record in few.T[[1, 2, 2]])
    whole = GradientSums(made, "zcdp").partial(list(few[:, [1, 2, 2]].repeat(20_001, axis=1)), None)
    assert (whole.reshape(once.shape) == 20_001 * once).all()
    assert not GradientSums(made, "zcdp").partial([np.zeros(0, np.uint8)] * 3, None).any()


def test_joint_clipping_holds_for_every_record_at_random_states():
    """2,500 states, all records, p = 4: the sum of squares is at most floor(G^2 kappa p), which rounding exceeds."""
    own, generator = regressions("logistic", 2, p=4), np.random.default_rng(8)
    codes, clip, most = list(every(own)), Fraction(3, 10), math.floor(Fraction(3, 10) * 128**2 * 4)
    states = np.where(own.allowed, generator.integers(-150, 151, (2_500, *own.allowed.shape)), 0)
    shortened = rounded = 0
    for number, weights in enumerate(states):
        made = NodeGradients(regressions=own, weights=weights, radius=12, clip=clip)
        clipped = GradientSums(made, "zcdp").parts(codes)[1]
        assert np.einsum("ij,ij->j", clipped, clipped).max() <= most
        if number < 50:
            free = GradientSums(attrs.evolve(made, clip=None), "zcdp").parts(codes)[1].astype(float)
            norms = (free**2).sum(axis=0)
            shortened += (norms > most).sum()
            near = np.rint(free * np.sqrt(np.minimum(most / norms, 1)))
            rounded += ((near**2).sum(axis=0) > most).sum()
    assert shortened > 200
    assert rounded > 50


@pytest.mark.parametrize("kind", ["zcdp", "pure"])
@pytest.mark.parametrize(("loss", "k"), LOSSES)
def test_clipping_shortens_no_more_than_it_must(loss, k, kind):
    """Records within the bound stay as they are; others keep their direction to a unit, and end at the bound."""
    own = regressions(loss, k)
    changed = 0
    for seed in range(5):
        made = weighted(own, seed, radius=12)
        free = GradientSums(made, kind).parts(list(every(own)))[1]
        clipped = attrs.evolve(made, clip="0.2")
        found, most = GradientSums(clipped, kind).parts(list(every(own)))[1], clipped.reach(kind)
        power = 2 if kind == "zcdp" else 1
        for before, after in zip(free.T, found.T, strict=True):
            together, left = (
                sum(max(abs(one[row]) for row in rows) ** power for rows in own.choices) for one in (before, after)
            )
            factor = min(1.0, (most / together) ** (1 / power)) if together else 1.0
            assert left <= most
            assert (np.abs(after) <= np.abs(before) * factor + 1e-6).all()
            assert (np.abs(after) > np.abs(before) * factor - 1.01).all()
            assert (after * before >= 0).all()
            changed += factor < 1
    assert changed
