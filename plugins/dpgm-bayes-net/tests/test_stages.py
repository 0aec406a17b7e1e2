"""Two stages on one scale: what pooling keeps, and what a subsample costs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve
from dpgm_bayes_net.two_stage import Stage, pool_stages

import dpgm_core as dpgm
from dpgm_core.privacy import discrete_laplace
from dpgm_core.sources import as_source

ONE = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2}), [("a",)])


def stage(structure, values, noise, rate=1.0):
    return Stage(
        tables=dpgm.Tables(structure, np.asarray(values, dtype=float)),
        noise=np.full(len(structure.groups), float(noise)),
        rate=rate,
    )


def variance_of(mechanism, budget):
    sensitivity = dpgm.Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    return dpgm.make("mechanism", mechanism).noise(sensitivity, budget).variance


@pytest.mark.parametrize("share", [Fraction(1, 10), Fraction(3, 10), Fraction(1, 2)])
def test_two_pooled_laplace_stages_keep_less_precision_than_one(share):
    """With a share f for stage I, f^2 + (1 - f)^2 of one release's: .82 at f = .1, and pooling cannot repair it. Noise
    is wide, so that the discrete Laplace law has the variance of the continuous one."""
    whole = dpgm.Budget.pure(Fraction(1, 100))
    one, two = (stage(ONE, [0, 0], variance_of("laplace", whole * part)) for part in (share, 1 - share))
    _, variances = pool_stages(one, two)
    remaining = variance_of("laplace", whole) / variances[0]
    assert remaining == pytest.approx(float(share**2 + (1 - share) ** 2), rel=1e-4)


def test_two_pooled_gaussian_stages_keep_everything():
    """Precision is proportional to rho, so nothing is lost."""
    whole = dpgm.Budget.zcdp(Fraction(1, 100))
    one, two = (stage(ONE, [0, 0], variance_of("gaussian", whole * Fraction(part, 10))) for part in (1, 9))
    assert pool_stages(one, two)[1][0] == pytest.approx(variance_of("gaussian", whole), rel=1e-3)


def test_the_pooled_variance_is_that_of_drawn_noise():
    """200,000 cells of exact discrete Laplace noise at shares .1 and .9: the variance of the pooled cells is the stated
    one, 1 / .82 of one release's. Laplace noise has kurtosis at most 6, so 2.5 % is five standard errors: a false alarm
    in fewer than 1e-6 of seeds."""
    cells, source = 200_000, dpgm.SeededRandomness(4)
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": cells}), [("a",)])
    one, two = (
        stage(
            structure,
            discrete_laplace(Fraction(20, part), cells, source),
            variance_of("laplace", dpgm.Budget.pure(Fraction(part, 20))),
        )
        for part in (1, 9)
    )
    mean, variances = pool_stages(one, two)
    assert float(np.mean(mean.values**2)) == pytest.approx(float(variances[0]), rel=0.025)
    assert 2 * (20 / 10) ** 2 / float(np.mean(mean.values**2)) == pytest.approx(0.82, abs=0.03)


def test_a_subsample_is_scaled_up_with_its_noise_and_its_chance():
    """A count of a subsample over its rate is unbiased, with variance s^2 / q^2 + n (1 - q) / q: 100,000 binomial draws
    with discrete Laplace noise. The variance's standard error is below .8 %, so 4 % are five of them."""
    rate, scale, draws, count = 0.2, 5, 100_000, 400
    remaining = np.random.default_rng(3).binomial(count, rate, size=draws)
    noisy = remaining + discrete_laplace(Fraction(scale), draws, dpgm.SeededRandomness(3))
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2}), [("a",)])
    noise = variance_of("laplace", dpgm.Budget.pure(Fraction(1, scale)))
    one = stage(structure, [0, 0], noise / rate**2, rate)
    stated = one.variances(np.array([float(count), -5.0]))
    assert float((noisy / rate).var()) == pytest.approx(stated[0], rel=0.04)
    assert float((noisy / rate).mean()) == pytest.approx(count, abs=5 * math.sqrt(stated[0] / draws))
    assert stated[1] == noise / rate**2  # a count is never taken for negative


@pytest.fixture
def released():
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2, "b": 3}), [("b", "a"), ("a",)])
    codes = np.array([[0, 1], [1, 2], [1, 0]] * 30)
    curator = dpgm.LiveCurator(
        as_source(codes),
        structure,
        dpgm.make("mechanism", "laplace"),
        terms=dpgm.Terms(neighbours="add-remove"),
        budget=dpgm.Budget.pure(1),
        randomness=dpgm.SeededRandomness(0),
    )
    return curator.release(budget={("b", "a"): dpgm.Budget.pure("0.9"), ("a",): dpgm.Budget.pure("0.1")})


def test_a_stage_has_the_cliques_in_the_requested_order(released):
    """With the noise of each, and turned where the names stand in another order."""
    one = Stage.of(released, [("a",), ("a", "b")])
    assert one.rate == 1
    assert one.tables.structure.cliques == (("a",), ("a", "b"))
    assert np.array_equal(one.tables["a", "b"], released.tables["b", "a"].T)
    assert one.noise.tolist() == released.variances[::-1].tolist()


def test_a_stage_of_a_round_is_that_of_all_records(released):
    """Tables over the rate, noise over its square; what the release says of itself decides, not an option."""
    sampled = evolve(released, round=dpgm.Round(number=1, of=1, sampling_rate=Fraction(1, 4)))
    one, plain = (Stage.of(release, released.structure.cliques) for release in (sampled, released))
    assert one.rate == 0.25
    assert np.array_equal(one.tables.values, 4 * plain.tables.values)
    assert np.array_equal(one.noise, 16 * plain.noise)


def test_noise_that_underflows_gives_finite_weights(released):
    """At a budget beyond sense one table's variance is next to 0 beside the other's."""
    quiet = evolve(
        released.measurement,
        calibrations=tuple(
            evolve(one, noise=dpgm.make("mechanism", "laplace").noise(one.sensitivity, budget))
            for one, budget in zip(
                released.calibrations, (dpgm.Budget.pure(10**9), dpgm.Budget.pure(Fraction(1, 10))), strict=True
            )
        ),
    )
    one = Stage.of(evolve(released, measurement=quiet), released.structure.cliques)
    assert one.noise.min() == 1e-12 * one.noise.max()
    mean, variances = pool_stages(one, one)
    assert np.allclose(mean.values, one.tables.values)
    assert np.all((variances > 0) & np.isfinite(1 / variances))
