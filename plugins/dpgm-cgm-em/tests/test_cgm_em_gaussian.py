"""CGM-EM under Gaussian noise, whose score has no bound: a first step can lead from the uniform model to the fit."""

import math

import attrs
import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import SeededRandomness, Tables
from dpgm_testing.learning import chain, dirichlet_model, simulated_release

STRUCTURE = chain(6, 4, 2)


def drawn(count, epsilon, seed):
    """A population with Dirichlet(1) potentials, and a release of `count` records under exact Gaussian noise."""
    model = dirichlet_model(STRUCTURE, seed)
    return model, simulated_release(model, count, dpgm.Budget.approx(epsilon, 1 / count), seed, "gaussian")


def learned(noisy, **options):
    return dpgm.learn(noisy, dpgm.make("learner", "cgm-em", **options), randomness=SeededRandomness(1))


@pytest.mark.landing
@pytest.mark.parametrize(("count", "epsilon"), [(10_000, 0.5), (1_000_000, 0.5)])
def test_it_converges_near_the_best_of_its_path(count, epsilon):
    """From noise to signal all steps converge in 3000 calls altogether, and KL is within 15 % of the least on the path
    and 10 % of naive maximum likelihood's."""
    model, noisy = drawn(count, epsilon, 1)
    fit = learned(noisy)
    assert fit.converged
    assert fit.notes == []
    assert fit.certificate["inference_calls"] < 3000
    kl = model.kl(fit.model)
    assert kl < 1.15 * min(model.kl(learned(noisy, tau=tau).model) for tau in (0.4, 0.7, 1.0, 1.4, 2.0))
    assert kl < 1.1 * model.kl(dpgm.learn(noisy, "naive-mle", randomness=SeededRandomness(1)).model)


@pytest.mark.landing
def test_the_plateau_rule_works_too():
    """Within 15 % of the best at N = 1e6, after fewer than 400 calls."""
    model, noisy = drawn(1_000_000, 0.5, 2)
    fit = learned(noisy, stop="plateau")
    assert fit.certificate["inference_calls"] < 400
    assert 0.4 < fit.tuning["tau"] < 2
    assert model.kl(fit.model) < 1.15 * min(
        model.kl(learned(noisy, tau=tau).model) for tau in (0.4, 0.7, 1.0, 1.4, 2.0)
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("values", "total"), [(-50, 100.0), (0, 1.0), (10**8 // 16, 1e8)], ids=["negative", "zero", "a hundred million"]
)
def test_it_survives_hard_releases(values, total):
    """Finite potentials and probabilities that sum to 1."""
    _, noisy = drawn(500, 1, 3)
    tables = np.full(STRUCTURE.cells, values) + np.arange(STRUCTURE.cells)
    fit = learned(attrs.evolve(noisy, tables=Tables(STRUCTURE, tables), total=total))
    assert np.all(np.isfinite(fit.model.potentials.values))
    assert math.isfinite(fit.tuning["tau"])
    assert fit.model.marginal("x0").sum() == pytest.approx(1)
