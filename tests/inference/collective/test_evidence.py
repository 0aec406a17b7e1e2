"""Evidence: the closed forms against their definitions, by brute force, and the general path against the closed one."""

import numpy as np
import pytest

from dpgm_core.inference.collective.evidence import evidence_of, gap_of

NOISES = ("Laplace", "Gaussian", "Huber")


@pytest.fixture
def noises(lab):
    """Every shape of psi: a kink, a parabola, both."""
    return {"Laplace": lab.Laplace(2.0), "Gaussian": lab.gaussian(3.0), "Huber": lab.Huber(0.8, 2.5)}


@pytest.fixture
def release(lab):
    """Noisy counts of 300 records over two pairs, under a given noise."""

    def make(noise):
        structure = lab.chain(3, 2)
        return lab.released(structure, [90, 70, 60, 80, 150, -4, 40, 110], noise, 300)

    return make


@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize("name", NOISES)
def test_the_conjugate_is_the_largest_difference(release, noises, name, weight):
    """psi*(u) = max over r of u r - psi(r), over residuals a tenth of a record apart."""
    evidence = evidence_of(release(noises[name]), weight)
    grid = np.linspace(-60, 60, 1201)
    psi = np.concatenate([evidence.misfit(np.full(8, r))[:1] for r in grid])
    u = evidence.pull(np.array([-9.0, -2.0, -0.5, 0.0, 0.25, 1.0, 4.0, 20.0])) * 0.9
    brute = [float(np.max(one * grid - psi)) for one in u]
    np.testing.assert_allclose(evidence.conjugate(u), brute, atol=2e-2)


@pytest.mark.parametrize("name", NOISES)
def test_the_step_is_the_proximal_one(release, noises, name):
    """No multiplier nearby has a smaller psi*(z) - r z + metric (z - start)^2 / 2."""
    evidence = evidence_of(release(noises[name]), 1.0)
    rng = np.random.default_rng(1)
    start, residual = evidence.inside(rng.normal(scale=0.3, size=8)), rng.normal(scale=5, size=8)
    metric = rng.uniform(0.5, 20, 8)

    def value(z):
        return evidence.conjugate(z) - residual * z + metric * (z - start) ** 2 / 2

    best = evidence.step(start, residual, metric)
    assert np.array_equal(best, evidence.inside(best))
    for shift in (1e-3, -1e-3, 0.1, -0.1):
        other = evidence.inside(best + shift)
        assert (value(best) <= value(other) + 1e-12).all()


@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize("name", NOISES)
def test_the_general_path_agrees_with_the_closed_one(lab, release, noises, name, weight):
    """Through score and log-density alone, without the dual term."""
    closed, general = (evidence_of(release(one), weight) for one in (noises[name], lab.Hidden(noises[name])))
    assert type(closed) is not type(general)
    rng = np.random.default_rng(2)
    residual = rng.normal(scale=6, size=8)
    pulled = closed.pull(residual)
    np.testing.assert_allclose(general.pull(residual), pulled, atol=1e-12)
    np.testing.assert_allclose(general.misfit(residual), closed.misfit(residual), atol=1e-9)
    start, metric = closed.inside(rng.normal(scale=0.2, size=8)), rng.uniform(0.5, 20, 8)
    np.testing.assert_allclose(general.step(start, residual, metric), closed.step(start, residual, metric), atol=1e-9)


@pytest.mark.parametrize("name", NOISES)
def test_the_gap_is_zero_where_the_multipliers_are_the_slope(release, noises, name):
    """And positive elsewhere: Fenchel's inequality, cell by cell."""
    evidence = evidence_of(release(noises[name]), 1.0)
    residual = np.random.default_rng(3).normal(scale=6, size=8)
    slope = evidence.pull(residual)
    assert gap_of(evidence, residual, slope)[0] == pytest.approx(0, abs=1e-9)
    assert gap_of(evidence, residual, evidence.inside(slope * 0.5))[0] > 1e-3
