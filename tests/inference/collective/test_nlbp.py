"""Algorithm 1 of Bernstein et al. (2017): where the printed form stalls, and where the damped multipliers converge."""

import numpy as np
import pytest

from dpgm_core import NotConverged, Tables
from dpgm_core.inference.collective.dual import CollectiveDual
from dpgm_core.inference.collective.evidence import evidence_of
from dpgm_core.inference.collective.nlbp import Nlbp
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_testing.evidence import evidence_on, theta_on


@pytest.fixture(scope="module")
def small(lab):
    """A 3-node chain, k = 3, N = 500, with Laplace noise of scale 6: release, engine, potentials and exact answer."""
    structure, total = lab.chain(3, 3), 500
    truth, _ = lab.draw(structure, total, seed=1)
    rng = np.random.default_rng(2)
    release = lab.released(structure, truth + np.round(rng.laplace(0, 6, structure.cells)), lab.Laplace(6.0), total)
    engine = JunctionTree().compile(structure)
    theta = Tables(structure, rng.normal(size=structure.cells))
    exact = CollectiveDual(tolerance=1e-11, max_calls=20_000).compile(engine, release).infer(theta)
    return release, engine, theta, exact


def distance(small, **options):
    """max |n - n*| and what nlbp returned."""
    release, engine, theta, exact = small
    found = Nlbp(**options).compile(engine, release).infer(theta)
    return float(np.abs(found.marginals.values - exact.marginals.values).max()), found


@pytest.mark.parametrize("damp", ["multipliers", "marginals"])
def test_the_diminishing_schedule_approaches_the_exact_answer(small, damp):
    """After 3000 calls the tables are within .05 records of the exact ones, after 100 within 2."""
    near, _ = distance(small, damp=damp, iterations=3000, tolerance=1e-12)
    coarse, _ = distance(small, damp=damp, iterations=100, tolerance=1e-12)
    assert near < 0.05
    assert near < coarse < 2.0


def test_the_printed_schedule_stalls(small):
    """A constant alpha is as far off after 2000 calls as after 200 and says so; the distance is of its order."""
    stalls = {"damp": "marginals", "schedule": "constant", "tolerance": 1e-9}
    early, _ = distance(small, rate=0.5, iterations=200, **stalls)
    late, found = distance(small, rate=0.5, iterations=2000, **stalls)
    assert late > 0.5
    assert late > 0.5 * early
    assert not found.converged
    assert found.gap is None
    assert found.calls == 2000
    assert distance(small, rate=0.02, iterations=3000, **stalls)[0] < late / 4


def test_the_certificate_bounds_the_error(small):
    """Objective <= optimum <= objective + gap, at every number of iterations; converged once the gap is small."""
    exact = small[3].objective
    for iterations in (1, 3, 30, 1000):
        _, found = distance(small, iterations=iterations, tolerance=1e-12)
        assert found.objective <= exact + 1e-6
        assert exact <= found.objective + found.gap + 1e-6
        assert not found.converged
    _, found = distance(small, tolerance=1e-3, iterations=5000)
    assert found.converged
    assert found.gap <= 1e-3 * abs(found.objective)
    assert found.calls < 5000


def test_residual_is_the_distance_to_a_fixed_point(small):
    """Damped multipliers reproduce their own marginals; damped marginals are those of no potentials."""
    assert distance(small, iterations=10)[1].residual == 0
    _, found = distance(small, damp="marginals", schedule="constant", iterations=10)
    assert found.residual > 1e-4


def test_stalling_raises_when_convergence_is_required(small):
    """NotConverged names the calls, the measure, and what to try."""
    with pytest.raises(
        NotConverged, match=r"stalled: after 20 inference calls .*damp = 'multipliers'.*collective-dual"
    ):
        distance(small, damp="marginals", schedule="constant", iterations=20, tolerance=1e-9, require_convergence=True)


def test_it_starts_where_it_is_told_to(small):
    """From the exact multipliers it needs a single call."""
    release, engine, theta, exact = small
    again = Nlbp(tolerance=1e-6).compile(engine, release).infer(theta, start=exact.multipliers)
    assert again.calls == 1
    assert again.converged


def test_it_serves_noise_without_a_dual_term(small, lab):
    """The general path gives the same iterates and the same certificate."""
    release, engine, theta, _ = small
    hidden = lab.released(release.structure, release.tables.values, lab.Hidden(lab.Laplace(6.0)), release.total)
    known = Nlbp(iterations=40).compile(engine, release).infer(theta)
    found = Nlbp(iterations=40).compile(engine, hidden).infer(theta)
    assert found.marginals.values == pytest.approx(known.marginals.values, abs=1e-9)
    assert found.gap == pytest.approx(known.gap, rel=1e-6)


def test_over_loopy_bp_a_tree_gives_the_same_tables(small, lab):
    """On a tree both engines lead to the same iterates."""
    release, engine, theta, _ = small
    tree = Nlbp(iterations=30).compile(engine, release).infer(theta)
    loopy = Nlbp(iterations=30).compile(LoopyBP(tolerance=1e-12).compile(release.structure), release).infer(theta)
    assert loopy.marginals.values == pytest.approx(tree.marginals.values, abs=1e-3)


@pytest.mark.parametrize("damp", ["multipliers", "marginals"])
@pytest.mark.parametrize("schedule", ["diminishing", "constant"])
@pytest.mark.parametrize("noise", ["Gaussian", "Laplace"])
def test_no_option_leads_away_from_the_tables(damp, schedule, noise):
    """A rate that overshoots is halved: log p(y|n) is at least the model's own, the objective is finite and not above
    the best. With constant rates under Gaussian noise the old code ended 1100 nats and more below where it began."""
    release = evidence_on("chain", noise)
    structure, weight = release.structure, 5.0
    engine, theta = JunctionTree().compile(structure), theta_on(structure)
    component = Nlbp(damp=damp, schedule=schedule, iterations=120)
    found = component.compile(engine, release).infer(theta, evidence_weight=weight)
    before = engine.infer(theta, total=release.total).marginals.values
    evidence = evidence_of(release, 1.0)

    def misfit(tables):
        return float(np.sum(evidence.misfit(release.tables.values - tables)))

    assert misfit(found.marginals.values) <= misfit(before) + 1e-9
    exact = CollectiveDual(tolerance=1e-9, max_calls=5000).compile(engine, release).infer(theta, evidence_weight=weight)
    assert found.objective <= exact.objective + exact.gap + 1e-6
    assert found.objective >= release.total * engine.infer(theta).log_partition - weight * misfit(before) - 1e-6


def expected_share(release, marginals):
    """|y - n|_1 over what the noise alone would leave."""
    scale = release.noise[0].scale
    return float(np.abs(release.tables.values - marginals).sum()) / (scale * release.structure.cells)


@pytest.mark.parametrize(("total", "scale", "chatters"), [(1e6, 4.0, True), (1e3, 40.0, False)])
def test_undamped_signs_chatter_where_sampling_dominates(lab, total, scale, chatters):
    """theta <- theta + c sign(y - N mu), one NLBP step per EM round, overshoots when N mu eps^2 / |C|^2 >> 1 and stays
    far from the tables, where the dual does not; below 1 both follow the same path. Chain of 5, k = 4."""
    engine, release = lab.noisy_chain(5, 4, total, scale, seed=5)
    # N mu eps^2 / |C|^2 with mu = 1 / k^2
    criterion = total / 16 / scale**2
    assert criterion > 100 if chatters else criterion < 0.1
    shares = []
    for component in (Nlbp(schedule="constant", rate=1.0, iterations=2), CollectiveDual()):
        e_step, theta = component.compile(engine, release), Tables.zeros(release.structure)
        for _ in range(12):
            found = e_step.infer(theta)
            theta = theta + found.multipliers
        shares.append(expected_share(release, found.marginals.values))
    undamped, exact = shares
    if chatters:
        assert exact < 1.0
        assert undamped > 5 * exact
    else:
        assert undamped == pytest.approx(exact, rel=0.15)
