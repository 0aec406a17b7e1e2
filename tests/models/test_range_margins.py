"""Margins of attributes whose ranges were measured: against dense least squares, and in models of every kind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, SeededRandomness, Structure
from dpgm_core.models.effects import effects_of
from dpgm_core.models.findings import _chance_of_ranges
from dpgm_core.models.misfit import table_scores
from dpgm_core.models.range_margins import covariance_of, likely_shares, margin_estimate, ranged
from dpgm_core.privacy.ranges import plan_ranges
from dpgm_core.releases.pooling import pool
from tests.fixtures import seeded

SIZE = 48
DOMAIN = Domain.from_sizes({"age": SIZE, "sex": 2, "job": 3})
STRUCTURE = Structure(DOMAIN, [("age",), ("age", "sex"), ("job",)])
RANGES = {"ranges": ["age"]}


def records(seed=0, count=4000):
    rng = np.random.default_rng(seed)
    age = np.minimum(rng.gamma(3, 6, count).astype(int), SIZE - 1)
    return np.column_stack([age, rng.random(count) < 0.2 + age / 80, rng.integers(0, 3, count)]).astype(int)


def released(seed=1, rho="0.05", structure=STRUCTURE, split=RANGES):
    return dpgm.release(records(), structure, Budget.zcdp(rho), "gaussian", split=split, **seeded(seed))


def range_error(shares, truth):
    """The root mean squared error of all ranges, records."""
    edges = np.concatenate([[0], np.cumsum(shares * truth.sum() - truth)])
    return float(np.sqrt(np.mean([(edges[b] - edges[a]) ** 2 for b in range(len(edges)) for a in range(b)])))


def dense_estimate(release):
    """The precision of all cells of age and sex by both tables, and the weighted sum of what these tell."""
    design = np.vstack([np.kron(np.eye(SIZE), np.ones((1, 2))), np.eye(2 * SIZE)])
    noise = np.zeros((3 * SIZE, 3 * SIZE))
    noise[:SIZE, :SIZE] = release.noise[0].covariance
    noise[SIZE:, SIZE:] = release.variances[1] * np.eye(2 * SIZE)
    weighted = design.T @ np.linalg.inv(noise)
    told = np.concatenate([release.tables["age",], release.tables["age", "sex"].reshape(-1)])
    return weighted @ design, weighted @ told


def test_the_margin_is_the_generalised_least_squares_of_all_tables():
    """Written again with one design matrix over the cells of both tables and their whole covariance."""
    release = released()
    cells = np.linalg.solve(*dense_estimate(release))
    precision, weighted = margin_estimate(release, "age")
    np.testing.assert_allclose(np.linalg.solve(precision, weighted), cells.reshape(SIZE, 2).sum(axis=1), rtol=1e-8)
    assert ranged(release) == ["age"]


def test_pooled_releases_know_their_covariance():
    """Of a mean of windows and windows, and of windows and cells; of cells alone there is none."""
    one, other, cells = released(1), released(2), released(3, split="even")
    both, mixed = pool([one, other]), pool([one, cells])
    number = both.structure.find(("age",))[0]
    np.testing.assert_allclose(covariance_of(both.noise[number]), one.noise[0].covariance / 2, rtol=1e-9)
    weights = np.array([1 / one.variances[0], 1 / cells.variances[0]])
    weights /= weights.sum()
    wanted = weights[0] ** 2 * one.noise[0].covariance + weights[1] ** 2 * cells.variances[0] * np.eye(SIZE)
    np.testing.assert_allclose(covariance_of(mixed.noise[number]), wanted, rtol=1e-9)
    assert covariance_of(cells.noise[0]) is None and ranged(cells) == []


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 7), st.integers(0, 10**6), st.floats(0.01, 30))
def test_likely_shares_maximise_the_likelihood_and_the_prior(size, seed, deviation):
    """Positive, of sum 1, and no general optimiser finds better ones."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size)) + 2 * np.eye(size)
    precision, counts, prior = root @ root.T / deviation**2, rng.normal(3, 30, size), rng.dirichlet(np.ones(size))
    total = 50.0

    def objective(free):
        shares = np.exp(free - free.max())
        shares /= shares.sum()
        apart = counts - total * shares
        spread = 0.9 * prior + 0.1 / size
        return float(apart @ precision @ apart / 2 - spread @ np.log(np.maximum(shares, 1e-300)))

    shares = likely_shares(precision, precision @ counts, total, prior)
    assert shares.min() > 0 and shares.sum() == pytest.approx(1)
    best = min(minimize(objective, start, method="BFGS").fun for start in (np.log(shares), np.log(prior + 1e-9)))
    assert objective(np.log(shares)) <= best + 1e-5 * (1 + abs(best))


@pytest.mark.parametrize("size", [64, 250])
def test_likely_shares_arrive_where_most_codes_are_empty(size):
    """The gradient is the same for all codes, to a millionth of a record: Newton's method inside did not get stuck."""
    strategy, rng = plan_ranges(size, gaussian=True), np.random.default_rng(1)
    truth = np.bincount(rng.gamma(2, size / 40, 20_000).astype(int).clip(max=size - 1), minlength=size)
    covariance = strategy.inverse_gram * (50 * strategy.sensitivity("add-remove").l2_squared)
    precision = np.linalg.inv(covariance)
    counts = truth + np.linalg.cholesky(covariance) @ rng.normal(size=size)
    prior = np.full(size, 1 / size)
    shares = likely_shares(precision, precision @ counts, 20_000.0, prior)
    gradient = 20_000.0 * precision @ (20_000.0 * shares - counts) - prior / shares
    assert np.abs((gradient - gradient @ shares) * shares).max() < 1e-6
    assert range_error(shares, truth) < 0.95 * range_error(counts / counts.sum(), truth)


@pytest.mark.parametrize("learner", ["eb-map", pytest.param("naive-mle", marks=pytest.mark.landing)])
def test_models_answer_ranges_as_well_as_the_release_does(learner):
    """Over six releases the error of ranges is .65 of that without at most; the likeliest margin is the model's."""
    truth = np.bincount(records()[:, 0], minlength=SIZE)
    errors = {"even": [], "ranges": []}
    for seed in range(6):
        for split, name in (("even", "even"), (RANGES, "ranges")):
            release = released(seed, split=split)
            model = dpgm.learn(release, learner, structure=STRUCTURE).model
            errors[name].append(range_error(np.asarray(model.marginal("age")), truth))
            if split is RANGES:
                prior = np.full(SIZE, 1 / SIZE)
                wanted = likely_shares(*margin_estimate(pool([release]), "age"), release.total, prior)
                np.testing.assert_allclose(model.marginal("age"), wanted, atol=2e-4)
    assert np.mean(np.square(errors["ranges"])) < 0.65**2 * np.mean(np.square(errors["even"]))


def test_replicates_have_their_own_margins():
    """A refit is brought to the margin of its own simulated release: error bars of a range are as wide as its noise."""
    done = dpgm.learn(released(), "eb-map", structure=STRUCTURE).model
    model = dpgm.bootstrap(done, 30, randomness=SeededRandomness(5))
    below = [np.asarray(one.marginal("age"))[:16].sum() * 4000 for one in model.replicates]
    precision, _ = margin_estimate(pool([released()]), "age")
    noise = np.sqrt(np.linalg.inv(precision)[:16, :16].sum())
    sampling = np.sqrt(4000 * 0.45 * 0.55)
    assert 0.5 * np.hypot(noise, sampling) < np.std(below) < 1.7 * np.hypot(noise, sampling)


def test_merged_codes_keep_the_ranges_of_the_fine_table():
    """Within a block shares are those of the likeliest margin; blocks have the model's."""
    model = dpgm.fit(
        records(), "mst", Budget.zcdp("0.1"), workload=DOMAIN, neighbours="add-remove", learner="eb-map",
        randomness=SeededRandomness(1), split=RANGES,
    ).model  # fmt: skip
    codes = np.array(model.releases[0].session.merges["age"])
    assert codes.max() + 1 < SIZE
    blocks = np.asarray(model.coarse.marginal("age"))
    wanted = likely_shares(*margin_estimate(pool(model.releases), "age"), model.releases[0].total, blocks)
    np.testing.assert_allclose(blocks, wanted, atol=2e-4)
    (first,) = [one for one in model.releases[0].steps if getattr(one, "ranges", ())]
    fine = likely_shares(*margin_estimate(first, "age"), first.tables["age",].sum(), np.full(SIZE, 1 / SIZE))
    inside = fine / np.bincount(codes, weights=fine)[codes]
    np.testing.assert_allclose(model.marginal("age"), blocks[codes] * inside, atol=1e-6)


def test_effects_know_the_covariance_of_ranges():
    """A share of ages, its variance and the noise of sums are those of dense least squares, N known."""
    terms = dpgm.Terms(neighbours="add-remove", total="public")
    release = dpgm.release(
        records(), STRUCTURE, Budget.zcdp("0.05"), "gaussian", terms=terms,
        randomness=SeededRandomness(1), split=RANGES,
    )  # fmt: skip
    effects = effects_of([release], ("age", "sex"), (SIZE, 2))
    cells, ones = 2 * SIZE, np.ones(2 * SIZE)
    precision, weighted = dense_estimate(release)
    free = np.linalg.inv(precision)
    along = free @ ones / (ones @ free @ ones)
    wanted = free @ weighted
    wanted += along * (4000 - wanted.sum())
    covariance = free - np.outer(along, along) * (ones @ free @ ones)
    np.testing.assert_allclose(effects.table.reshape(-1), wanted, atol=1e-6)
    functions = np.stack([
        np.repeat(np.arange(SIZE) < 20, 2), np.random.default_rng(2).normal(size=cells), np.repeat(np.arange(SIZE), 2)
    ]).astype(float)  # fmt: skip
    np.testing.assert_allclose(
        effects.noise(functions.reshape(3, SIZE, 2)), functions @ covariance @ functions.T, rtol=1e-6, atol=1e-6
    )


def test_findings_of_even_columns_are_uniform_chances():
    """Of even columns the chance is below .1 in a tenth of releases; a sloping one is found in all."""
    rng = np.random.default_rng(5)
    alone = Structure(Domain.from_sizes({"age": SIZE}), [("age",)])
    chances = {"even": [], "sloping": []}
    for seed in range(100):
        for name, codes in (
            ("even", rng.integers(0, SIZE, 4000)),
            ("sloping", (rng.random(4000) ** 1.3 * SIZE).astype(int)),
        )[: 2 if seed < 20 else 1]:
            release = dpgm.release(codes[:, None], alone, Budget.zcdp("0.02"), "gaussian", split=RANGES, **seeded(seed))
            chances[name].append(_chance_of_ranges(effects_of([release], ("age",), (SIZE,))))
    assert 0.04 < np.mean(np.array(chances["even"]) < 0.1) < 0.18
    assert 0.4 < np.mean(np.array(chances["even"]) < 0.5) < 0.62
    assert np.max(chances["sloping"]) < 1e-3


def test_goodness_of_fit_of_a_right_model_is_a_normal_deviate():
    """Scores of a range table against the truth, by the whole covariance."""
    truth = np.bincount(records()[:, 0], minlength=SIZE) / 4000
    scores = []
    alone = Structure(Domain.from_sizes({"age": SIZE}), [("age",)])
    rng = np.random.default_rng(6)
    for seed in range(60):
        codes = rng.choice(SIZE, 4000, p=truth)[:, None]
        release = dpgm.release(codes, alone, Budget.zcdp("0.02"), "gaussian", split=RANGES, **seeded(seed))
        scores.append(table_scores(release, dpgm.Tables(alone, truth))["age",])
    assert abs(np.mean(scores)) < 0.4 and 0.75 < np.std(scores) < 1.25


def test_several_range_columns_keep_their_margins_together():
    """Two that depend strongly are brought to their margins in turn until both hold; one pass leaves the first off."""
    first = np.minimum(np.random.default_rng(0).gamma(3, 6, 4000).astype(int), SIZE - 1)
    second = np.minimum(first + np.random.default_rng(1).integers(0, 3, 4000), SIZE - 1)
    domain = Domain.from_sizes({"age": SIZE, "end": SIZE})
    structure = Structure(domain, [("age",), ("end",), ("age", "end")])
    rows, split = np.column_stack([first, second]), {"ranges": ["age", "end"]}
    release = dpgm.release(rows, structure, Budget.zcdp("0.5"), "gaussian", split=split, **seeded(1))
    model = dpgm.learn(release, "eb-map", structure=structure).model
    for name in ("age", "end"):
        margin = np.asarray(model.marginal(name))
        wanted = likely_shares(*margin_estimate(pool([release]), name), release.total, margin)
        np.testing.assert_allclose(margin, wanted, atol=5e-5)
