"""The exact E-step: its value, its certificate, its options and what it refuses."""

import math

import attrs
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from dpgm_core import Domain, InferenceError, NotConverged, OptionError, Structure, StructureError, Tables, make
from dpgm_core.inference.collective.dual import CollectiveDual
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.loopy.bp import LoopyBP

TIGHT = CollectiveDual(tolerance=1e-10, max_calls=20_000)


def three(size=3):
    return Domain.from_sizes(dict.fromkeys("abc", size))


STRUCTURES = {
    "chain": Structure(three(), [("a", "b"), ("b", "c")]),
    "triangle": Structure(three(2), [("a", "b"), ("b", "c"), ("c", "a")]),
    "three-way": Structure(three(2), [("a", "b", "c"), ("b",)]),
    "tied": Structure(three(2), [("a",)], tied=[[("a", "b"), ("b", "c")]]),
}


def solve(release, theta, engine=None, component=TIGHT, **arguments):
    engine = engine or JunctionTree().compile(release.structure)
    return component.compile(engine, release).infer(Tables(release.structure, theta), **arguments)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("kind", ["gaussian", "huber", "mixed"])
def test_the_value_is_that_of_a_generic_solver_for_smooth_noise(lab, name, kind):
    """Without corners the primal is minimised over the logits of the joint distribution by BFGS: the same to 1e-8."""
    structure, total = STRUCTURES[name], 200
    truth, matrix = lab.draw(structure, total, seed=3)
    rng = np.random.default_rng(4)
    count = len(structure.groups)
    noises = {
        "gaussian": [lab.gaussian(6.0 + number) for number in range(count)],
        "huber": [lab.Huber(0.2, 30.0)] * count,
        "mixed": [lab.gaussian(6.0), lab.Huber(0.1, 50.0), lab.gaussian(9.0)][:count],
    }[kind]
    release = lab.released(structure, truth + rng.normal(0, 8, structure.cells), noises, total)
    theta = rng.normal(size=structure.cells)

    def objective(logits):
        log_q = logits - logsumexp(logits)
        q = np.exp(log_q)
        n = total * matrix @ q
        residual = release.tables.values - n
        parts = list(zip(noises, structure.slices, strict=True))
        evidence = sum(float(noise.logpdf(residual[at]).sum()) for noise, at in parts)
        pull = np.concatenate([-noise.score(residual[at]) for noise, at in parts])
        value = -(float(theta @ n) - total * float(q @ log_q) + evidence) / total
        per_record = -(matrix.T @ (theta + pull)) + log_q
        return value, q * (per_record - q @ per_record)

    result = minimize(objective, np.zeros(matrix.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10})
    found = solve(release, theta)
    assert found.converged
    assert found.objective == pytest.approx(-total * result.fun, rel=1e-8)


def test_the_gap_reaches_1e8_on_a_chain(lab):
    """k = 10, N = 1e5, eps = .1 and 1: relative gap of 1e-8, for one EM step and for a merged one of tau 0.5."""
    structure = lab.chain(10, 10)
    engine = JunctionTree().compile(structure)
    rng = np.random.default_rng(5)
    truth = engine.infer(Tables(structure, rng.normal(size=structure.cells)), total=1e5).marginals.values
    for epsilon in (0.1, 1.0):
        noise = lab.Laplace(9 / epsilon)
        release = lab.released(structure, truth + rng.laplace(0, noise.scale, structure.cells), noise, 1e5)
        for weight in (1.0, 0.5 * noise.scale):
            tight = CollectiveDual(tolerance=1e-8)
            found = solve(release, np.zeros(structure.cells), engine, tight, evidence_weight=weight)
            assert found.converged
            assert 0 <= found.gap <= 1.01e-8 * max(1, abs(found.objective))


def test_multipliers_say_where_the_tables_pull(lab):
    """u = +c where n < y, -c where n > y, per clique its own c; in between only where n = y."""
    structure = lab.chain(4, 3)
    truth, _ = lab.draw(structure, 1000, seed=8)
    noises = [lab.Laplace(scale) for scale in (3.0, 10.0, 30.0)]
    rng = np.random.default_rng(9)
    noise = np.concatenate([rng.laplace(0, one.scale, 9) for one in noises])
    release = lab.released(structure, np.round(truth + noise), noises, 1000)
    found = solve(release, np.zeros(structure.cells))
    bound = release.tables.repeat([1 / one.scale for one in noises])
    residual = release.tables.values - found.marginals.values
    assert np.all(np.abs(found.multipliers.values) <= bound * (1 + 1e-12))
    far = np.abs(residual) > 0.1
    assert far.sum() > 5
    assert found.multipliers.values[far] == pytest.approx((np.sign(residual) * bound)[far], abs=1e-3 * bound.max())


@pytest.mark.parametrize("kind", ["laplace", "gaussian", "huber", "one of three"])
def test_noise_without_a_dual_term_gets_the_same_answer(lab, kind):
    """Without the dual term of one table or of all, the path by score and log-density finds the same tables."""
    structure, total = lab.chain(4, 3), 2000
    truth, _ = lab.draw(structure, total, seed=10)
    noise = {"gaussian": lab.gaussian(25.0), "huber": lab.Huber(0.05, 200.0)}.get(kind, lab.Laplace(20.0))
    rest = [lab.gaussian(15.0)] * 2 if kind == "one of three" else []
    count = 3 - len(rest)
    noisy = truth + np.random.default_rng(11).laplace(0, 20, structure.cells)
    theta = np.random.default_rng(12).normal(size=structure.cells)
    tight = CollectiveDual(tolerance=1e-9, max_calls=5000)
    known, hidden = (
        solve(lab.released(structure, noisy, [one] * count + rest, total), theta, component=tight)
        for one in (noise, lab.Hidden(noise))
    )
    assert known.converged
    assert hidden.converged
    assert hidden.objective == pytest.approx(known.objective, rel=1e-8)
    assert hidden.marginals.values == pytest.approx(known.marginals.values, abs=2e-2)


def test_the_weight_of_k_merged_steps_is_noise_k_times_as_sharp(lab):
    """log p(y|n) to the power K: Laplace scale b / K, Gaussian variance s^2 / K."""
    structure, total = STRUCTURES["chain"], 300
    truth, _ = lab.draw(structure, total, seed=14)
    theta = np.random.default_rng(15).normal(size=structure.cells)
    for blunt, sharp in ((lab.Laplace(12.0), lab.Laplace(4.0)), (lab.gaussian(12.0), lab.gaussian(12 / math.sqrt(3)))):
        merged = solve(lab.released(structure, truth + 3.0, blunt, total), theta, evidence_weight=3.0)
        plain = solve(lab.released(structure, truth + 3.0, sharp, total), theta)
        assert merged.objective == pytest.approx(plain.objective, rel=1e-9)
        assert merged.marginals.values == pytest.approx(plain.marginals.values, abs=1e-3)


def test_impossible_cells_stay_empty(lab):
    """A potential of -inf keeps its cell at 0 and the gap still closes."""
    structure = STRUCTURES["chain"]
    truth, _ = lab.draw(structure, 300, seed=17)
    theta = np.zeros(structure.cells)
    theta[4] = -np.inf
    found = solve(lab.released(structure, truth, lab.Laplace(5.0), 300), theta)
    assert found.marginals.values[4] == 0
    assert found.converged


def test_a_start_saves_calls_and_not_the_answer(lab):
    """From its own answer it stops at once; from outside the box it still finds the optimum."""
    engine, release = lab.noisy_chain(6, 4, 1e4, 30.0, seed=18)
    structure, rng = release.structure, np.random.default_rng(18)
    zero = np.zeros(structure.cells)
    cold = solve(release, zero, engine, evidence_weight=60.0)
    assert cold.calls > 10
    assert solve(release, zero, engine, start=cold.multipliers, evidence_weight=60.0).calls == 1
    wild = Tables(structure, rng.normal(scale=100.0, size=structure.cells))
    far = solve(release, zero, engine, start=wild, evidence_weight=60.0)
    assert far.converged
    assert far.objective == pytest.approx(cold.objective, rel=1e-9)
    assert np.all(np.abs(far.multipliers.values) <= 2.0 * (1 + 1e-12))


# noises of the tables, from the fixture `lab`; N; records by which the tables err; weight of a step; steps;
# calls at most of the first, of later ones, and of half of the later ones
FEW_CALLS = {
    "sd 100": ("Gaussian", 1e4, 100.0, 10.0, 12, (200, 80, 10)),
    "sd 40": ("Gaussian", 1e6, 40.0, 4.0, 12, (200, 80, 10)),
    "sd 20": ("Gaussian", 1e6, 20.0, 2.0, 12, (200, 80, 10)),
    "sd 5": ("Gaussian", 1e6, 5.0, 10.0, 12, (200, 80, 10)),
    "one Laplace": ("one Laplace", 1e6, 6.0, 0.4, 6, (80, 80, 40)),
    "every other Laplace": ("every other Laplace", 1e6, 6.0, 0.4, 6, (80, 80, 40)),
    "hidden Gaussian": ("hidden Gaussian", 1e6, 6.0, 0.4, 6, (80, 80, 40)),
}


@pytest.mark.parametrize(
    "case", [pytest.param(one, marks=pytest.mark.landing if "hidden" in one else ()) for one in FEW_CALLS]
)
def test_noise_without_a_box_takes_few_calls(lab, case):
    """Steps of EM, the first leading from the uniform model to near the tables: each converges in few calls, also where
    tables with a box are among those without one, and with a noise that says its score only. Of Gaussian noise alone
    the tables are within their noise at the end. Accelerated gradients took up to 2000 calls without converging."""
    kind, total, sd, weight, steps, (first, most, half) = FEW_CALLS[case]
    structure = Structure.chain(Domain.from_sizes({f"x{place}": 4 for place in range(6)}), 2)
    engine, rng, count = JunctionTree().compile(structure), np.random.default_rng(22), len(structure.groups)
    rough = Tables(structure, np.concatenate([np.log(rng.dirichlet(np.ones(size))) for size in structure.sizes]))
    laplace, gaussian = lab.Laplace(4.0), lab.gaussian(7.0)
    noises = {
        "Gaussian": [lab.gaussian(sd)] * count,
        "one Laplace": [laplace] + [gaussian] * (count - 1),
        "every other Laplace": [(laplace, gaussian)[place % 2] for place in range(count)],
        "hidden Gaussian": [lab.Hidden(gaussian)] * count,
    }[kind]
    noisy = engine.infer(rough, total=total).marginals.values + rng.normal(0, sd, structure.cells)
    e_step = CollectiveDual(max_calls=300).compile(engine, lab.released(structure, noisy, noises, total))
    theta, start, calls = Tables.zeros(structure), None, []
    for _ in range(steps):
        found = e_step.infer(theta, evidence_weight=weight, start=start)
        assert found.converged
        assert 0 <= found.gap <= 1.01e-4 * abs(found.objective)
        start, theta = found.multipliers, theta + found.multipliers
        calls.append(found.calls)
    assert calls[0] <= first and max(calls[1:]) <= most and np.median(calls[1:]) <= half
    error = np.sqrt(np.mean((noisy - found.marginals.values) ** 2))
    assert kind != "Gaussian" or error < 1.5 * sd


def test_a_descent_that_gets_nowhere_ends(lab):
    """N = 2^62 and empty tables: it stops after some 300 of 2000 calls, says so, and returns finite tables."""
    structure = Structure(three(4), [("a", "b"), ("b", "c"), ("a", "c")])
    noisy = np.random.default_rng(0).integers(0, 50, structure.cells)
    release = attrs.evolve(lab.released(structure, noisy, lab.gaussian(1.2), 400), total=2.0**62)
    found = solve(release, np.zeros(structure.cells), component=CollectiveDual(), evidence_weight=0.15)
    assert not found.converged
    assert found.calls < 700
    assert math.isfinite(found.objective) and np.isfinite(found.multipliers.values).all()


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_tables_are_newtons_under_small_gaussian_noise(lab, name):
    """N = 1e6, unequal standard deviations of 5 records and more: Newton's method on the dual, with the joint
    distribution written out, has the same tables to 1e-6 N, and value and gap enclose its optimum."""
    structure, total = STRUCTURES[name], 10**6
    truth, matrix = lab.draw(structure, total, seed=23)
    rng = np.random.default_rng(24)
    noises = [lab.gaussian(5.0 + number) for number in range(len(structure.groups))]
    release = lab.released(structure, truth + np.round(rng.normal(0, 6, structure.cells)), noises, total)
    theta, weight = rng.normal(size=structure.cells), 3.0
    ridge = release.tables.repeat([noise.variance for noise in noises]) / weight / total
    y = release.tables.values / total

    def joint(u):
        logits = matrix.T @ (theta + u)
        return logsumexp(logits), np.exp(logits - logsumexp(logits))

    def dual(u):
        log_partition, q = joint(u)
        return log_partition - u @ y + ridge @ u**2 / 2, matrix @ q - y + ridge * u

    def hessian(u):
        _, q = joint(u)
        return matrix * q @ matrix.T - np.outer(matrix @ q, matrix @ q) + np.diag(ridge)

    zero = np.zeros(structure.cells)
    newton = minimize(dual, zero, jac=True, hess=hessian, method="trust-exact", options={"gtol": 1e-10})
    found = solve(release, theta, evidence_weight=weight)
    assert found.converged
    assert found.marginals.values == pytest.approx(total * matrix @ joint(newton.x)[1], abs=1e-6 * total)
    slack = 1e-9 * total
    assert found.objective - slack <= total * newton.fun <= found.objective + found.gap + slack


def test_a_gaussian_gap_bounds_the_error_however_early_it_ends(lab):
    """Cut short after any number of calls, the value is below the optimum by no more than the gap."""
    structure, total = lab.chain(4, 3), 10**5
    truth, _ = lab.draw(structure, total, seed=25)
    release = lab.released(structure, truth + 9.0 * (np.arange(structure.cells) % 3), lab.gaussian(10.0), total)
    zero = np.zeros(structure.cells)
    best = solve(release, zero)
    for calls in (1, 2, 4, 8, 16):
        early = solve(release, zero, component=CollectiveDual(tolerance=1e-12, max_calls=calls))
        assert early.calls <= calls
        assert 0 < best.objective - early.objective <= early.gap + 1e-6


def test_loopy_bp_on_a_tree_is_exact(lab):
    """The same tables as junction-tree gives, and where loopy-bp calls itself exact, with the same certificate."""
    structure = Structure(three(), [("a", "b"), ("a", "c"), ("b",)])
    truth, _ = lab.draw(structure, 400, seed=19)
    release = lab.released(structure, truth + 6.0, lab.Laplace(8.0), 400)
    exact = solve(release, np.zeros(structure.cells), component=CollectiveDual(tolerance=1e-8))
    engine = LoopyBP(tolerance=1e-12).compile(structure)
    loopy = solve(release, np.zeros(structure.cells), engine, CollectiveDual(tolerance=1e-8))
    assert loopy.converged
    assert loopy.marginals.values == pytest.approx(exact.marginals.values, abs=0.05)
    assert loopy.objective == pytest.approx(exact.objective, rel=1e-6)


def test_an_engine_that_does_not_converge_is_flagged(lab):
    """Beliefs of a loopy-bp that ran out of sweeps are no converged E-step, however small the gap looks."""
    structure = STRUCTURES["triangle"]
    truth, _ = lab.draw(structure, 400, seed=20)
    engine = LoopyBP(max_iterations=1).compile(structure)
    release = lab.released(structure, truth + 6.0, lab.Laplace(8.0), 400)
    found = solve(release, np.random.default_rng(0).normal(size=12), engine, CollectiveDual(max_calls=20))
    assert not found.converged


def test_running_out_of_calls_is_said(lab):
    """converged is False; with require_convergence NotConverged names the calls, the gap and what to try."""
    structure = lab.chain(5, 3)
    truth, _ = lab.draw(structure, 1000, seed=21)
    release = lab.released(structure, truth, lab.Laplace(0.5), 1000)
    zero = np.zeros(structure.cells)
    short = solve(release, zero, component=CollectiveDual(max_calls=2))
    assert not short.converged
    assert short.calls == 2
    with pytest.raises(NotConverged, match=r"after 2 inference calls at a duality gap of .*raise max_calls") as caught:
        solve(release, zero, component=CollectiveDual(max_calls=2, require_convergence=True))
    assert f"{short.gap:.3g}" in str(caught.value)


@pytest.mark.parametrize("name", ["collective-dual", "nlbp", "soft-sign"])
def test_what_does_not_fit_is_refused(lab, name):
    """Another structure, evidence that is no release, weights that are not positive numbers, a NaN start."""
    structure = STRUCTURES["chain"]
    engine = JunctionTree().compile(structure)
    release = lab.released(structure, np.full(18, 10.0), lab.Laplace(5.0), 90)
    component = make("collective", name)
    with pytest.raises(StructureError, match="compile the engine for the release's structure"):
        component.compile(JunctionTree().compile(STRUCTURES["triangle"]), release)
    with pytest.raises(InferenceError, match="needs a release as evidence, got Tables"):
        component.compile(engine, release.tables)
    bound = component.compile(engine, release)
    potentials = Tables.zeros(structure)
    for weight in (0, -1.0, math.nan, math.inf, True, "2"):
        with pytest.raises(InferenceError, match="evidence_weight must be a positive, finite number"):
            bound.infer(potentials, evidence_weight=weight)
    with pytest.raises(StructureError):
        bound.infer(Tables.zeros(STRUCTURES["triangle"]))
    with pytest.raises(InferenceError, match="NaN"):
        bound.infer(Tables(structure, np.full(18, np.nan)))


@pytest.mark.parametrize("name", ["collective-dual", "nlbp"])
def test_a_start_that_does_not_fit_and_a_score_that_is_no_number_are_refused(lab, name):
    """NaN multipliers, multipliers over another structure, and a NaN score, for which the mechanism is named."""
    structure, noise = STRUCTURES["chain"], lab.Laplace(5.0)
    bound, broken = (
        make("collective", name).compile(
            JunctionTree().compile(structure), lab.released(structure, np.full(18, 10.0), one, 90)
        )
        for one in (noise, lab.Broken(noise))
    )
    with pytest.raises(InferenceError, match="start must hold finite multipliers"):
        bound.infer(Tables.zeros(structure), start=Tables(structure, np.full(18, np.nan)))
    with pytest.raises(StructureError, match="the start multipliers are over"):
        bound.infer(Tables.zeros(structure), start=Tables.zeros(STRUCTURES["triangle"]))
    with pytest.raises(InferenceError, match=r"score is NaN.*score\(\) is at fault"):
        broken.infer(Tables.zeros(structure))


@pytest.mark.parametrize("options", [{"tolerance": 0}, {"tolerance": math.nan}, {"max_calls": 0}, {"share": -1.0}])
def test_senseless_options_are_refused(options):
    """Through the registry they are an OptionError that names the option."""
    with pytest.raises(OptionError, match=next(iter(options))):
        make("collective", "collective-dual", **options)
