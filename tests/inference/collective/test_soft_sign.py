"""The posterior-mean E-step against quadrature, and its damping."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from dpgm_core import Domain, InferenceError, OptionError, Structure, Tables, make
from dpgm_core.inference.collective.dual import CollectiveDual
from dpgm_core.inference.collective.evidence import DualEvidence
from dpgm_core.inference.collective.soft_sign import SoftSign, soft_sign
from dpgm_core.inference.junction_tree.engine import JunctionTree


def posterior_mean_score(noise, residual, spread):
    """-E[score(r - s Z)] with Z ~ N(0, 1) weighted by the noise's density at r - s Z, by adaptive quadrature."""

    def weight(z, factor):
        left = residual - spread * z
        log_weight = -(z**2) / 2 + float(noise.logpdf(np.array(left))) - top
        return (factor(left) if factor else 1.0) * math.exp(log_weight)

    grid = np.linspace(-12, 12, 4001)
    top = float(np.max(-(grid**2) / 2 + noise.logpdf(residual - spread * grid)))
    kink = [min(max(residual / spread, -12.0), 12.0)]
    below = quad(weight, -12, 12, args=(None,), points=kink, limit=500, epsabs=1e-13)[0]
    above = quad(
        weight, -12, 12, args=(lambda left: -float(noise.score(np.array(left))),), points=kink, limit=500, epsabs=1e-13
    )[0]
    return above / below


def terms(noise):
    """One cell of evidence at weight 1."""
    dual = noise.dual
    return DualEvidence(noisy=np.zeros(1), bound=np.array([dual.bound]), curvature=np.array([dual.curvature]))


@pytest.mark.parametrize("residual", [0.0, 0.4, -3.0, 12.0, -40.0])
@pytest.mark.parametrize("spread", [0.5, 3.0, 20.0])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_it_is_the_posterior_mean_of_the_score(lab, kind, spread, residual):
    """Single cells: the closed form equals quadrature to 1e-7 of its bound."""
    noise = {"laplace": lab.Laplace(5.0), "gaussian": lab.gaussian(5.0)}[kind]
    found = soft_sign(np.array([residual]), np.array([spread]), terms(noise))[0]
    assert found == pytest.approx(posterior_mean_score(noise, residual, spread), abs=1e-7)


def test_without_sampling_error_it_is_the_sign(lab):
    """As s goes to 0 it tends to c sign(r); far out it stays below c, without overflow."""
    one = terms(lab.Laplace(5.0))
    assert soft_sign(np.array([2.0]), np.array([1e-6]), one)[0] == pytest.approx(0.2)
    for residual, spread in ((1e12, 1.0), (-1e12, 1e3), (1e6, 1e6), (5.0, 1e9)):
        found = soft_sign(np.array([residual]), np.array([spread]), one)[0]
        assert np.isfinite(found)
        assert abs(found) <= 0.2 * (1 + 1e-12)


@pytest.mark.landing
def test_the_step_is_damped_where_signs_would_chatter(lab):
    """N mu eps^2 / |C|^2 >> 1: rounds of the soft-sign step settle, where plain signs overshoot for ever."""
    engine, release = lab.noisy_chain(5, 4, 1e6, 4.0, seed=1)
    e_step, theta = SoftSign().compile(engine, release), Tables.zeros(release.structure)
    distances = []
    for _ in range(60):
        found = e_step.infer(theta)
        theta = theta + found.multipliers
        distances.append(float(np.abs(release.tables.values - found.marginals.values).sum()))
    assert np.all(np.diff(distances) <= 1e-2 * distances[0])
    assert distances[-1] < 0.05 * distances[0]


def test_multipliers_explain_the_marginals(lab):
    """n = N mu(theta + u), with |u| <= w c, no gap, and its inference calls counted; the objective is the mode's."""
    structure = lab.chain(4, 3)
    engine = JunctionTree().compile(structure)
    truth, _ = lab.draw(structure, 500, seed=2)
    release = lab.released(structure, truth + 5.0, lab.Laplace(10.0), 500)
    theta = Tables(structure, np.random.default_rng(3).normal(size=structure.cells))
    found = SoftSign(power_iterations=3).compile(engine, release).infer(theta, evidence_weight=2.0)
    again = engine.infer(theta + found.multipliers, total=500.0).marginals.values
    assert found.marginals.values == pytest.approx(again)
    assert np.abs(found.multipliers.values).max() <= 0.2 * (1 + 1e-12)
    assert found.calls == 1 + 2 * 3 + 1
    assert found.gap is None
    tight = CollectiveDual(tolerance=1e-10, max_calls=5000).compile(engine, release)
    mode = tight.infer(theta, evidence_weight=2.0)
    assert found.objective <= mode.objective + mode.gap
    misfit = 2.0 * np.abs(release.tables.values - again).sum() / 10.0
    log_partition = engine.infer(theta + found.multipliers).log_partition
    assert found.objective == pytest.approx(500 * log_partition - found.multipliers.values @ again - misfit)


def test_a_large_weight_is_gone_through_in_stable_steps(lab):
    """K merged rounds end where K rounds do, up to 5 % of the way on average, and running out of steps is said."""
    engine, release = lab.noisy_chain(5, 4, 1e5, 40.0, seed=4)
    e_step, theta = SoftSign().compile(engine, release), Tables.zeros(release.structure)
    merged = e_step.infer(theta, evidence_weight=8.0)
    for _ in range(8):
        found = e_step.infer(theta)
        theta = theta + found.multipliers
    assert merged.converged
    moved = np.abs(theta.values).max()
    assert moved > 0.15
    assert np.abs(merged.multipliers.values - theta.values).mean() < 0.05 * moved
    assert not SoftSign(max_steps=1).compile(engine, release).infer(theta, evidence_weight=1e4).converged


@pytest.mark.parametrize("order", [1, 2])
def test_no_step_overshoots_under_gaussian_noise(lab, order):
    """N = 1e5 and 1e6, far from the uniform model, weights of 2 sd: the evidence rises in every call, and where the
    steps did not reach the weight it says so. The old code fell by several times the log evidence."""
    structure = Structure.chain(Domain.from_sizes({f"x{place}": 4 for place in range(6)}), order)
    engine = JunctionTree().compile(structure)
    rng = np.random.default_rng(22)
    rough = Tables(structure, np.concatenate([np.log(rng.dirichlet(np.ones(size))) for size in structure.sizes]))
    for total, sd in ((1e5, 100.0), (1e6, 40.0)):
        noisy = engine.infer(rough, total=total).marginals.values + rng.normal(0, sd, structure.cells)
        e_step = SoftSign().compile(engine, lab.released(structure, noisy, lab.gaussian(sd), total))
        theta, before = Tables.zeros(structure), math.inf
        for _ in range(4):
            found = e_step.infer(theta, evidence_weight=2.0 * sd)
            distance = float(np.sum((noisy - found.marginals.values) ** 2))
            assert distance < 1.01 * before
            assert math.isfinite(found.objective)
            theta, before = theta + found.multipliers, distance


def test_other_noise_is_refused(lab):
    """Noise without a dual term, or with box and curvature at once, is sent to collective-dual."""
    structure = lab.chain(3, 2)
    engine = JunctionTree().compile(structure)
    for noise in (lab.Hidden(lab.Laplace(5.0)), lab.Huber(0.2, 30.0)):
        with pytest.raises(InferenceError, match="Laplace and Gaussian noise only; use collective-dual"):
            SoftSign().compile(engine, lab.released(structure, np.full(8, 10.0), noise, 40))


def test_senseless_options_are_refused():
    """At least one power iteration."""
    with pytest.raises(OptionError, match="power_iterations"):
        make("collective", "soft-sign", power_iterations=0)
