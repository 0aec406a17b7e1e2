"""The penalised likelihood, tables made consistent, and how far noisy tables are expected from the truth."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Structure, Tables
from dpgm_core._util.progress import silent
from dpgm_core.domain import Ordered
from dpgm_core.learning.likelihood import Likelihood, consistent, expected_absolute, together
from dpgm_core.releases.pooling import PooledNoise
from dpgm_testing.oracles import incidence

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2})


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_the_gradient_is_that_of_the_value(l2):
    """Central differences of the objective, tied groups included."""
    structure = Structure(DOMAIN, [("a", "b")], tied=[[("a",), ("c",)]])
    rng = np.random.default_rng(4)
    engine = dpgm.make("inference", "junction-tree").compile(structure)
    target = engine.infer(Tables(structure, rng.normal(size=structure.cells)))
    problem = Likelihood(engine, target.marginals, silent)
    theta = rng.normal(size=structure.cells)
    gradient = problem.value(theta, l2)[1]
    step = 1e-5
    for cell in range(structure.cells):
        shift = np.eye(structure.cells)[cell] * step
        slope = (problem.value(theta + shift, l2)[0] - problem.value(theta - shift, l2)[0]) / (2 * step)
        assert gradient[cell] == pytest.approx(slope, abs=1e-8)
    found, converged = problem.minimise(theta, l2, 1e-7, 500)
    assert converged and problem.slope <= 1e-7
    said = problem.slope
    assert np.abs(problem.value(found, l2)[1]).max() == pytest.approx(said, abs=1e-12)


def problems(count: int) -> list[Likelihood]:
    """Of a loop of three tables; targets with empty cells, from far less than a record per cell."""
    structure = Structure(Domain.from_sizes({"a": 4, "b": 5, "c": 3}), [("a", "b"), ("b", "c"), ("a", "c")])
    engine = dpgm.make("inference", "junction-tree").compile(structure)
    rng = np.random.default_rng(5)
    targets = []
    for _ in range(count):
        joint = rng.multinomial(30, rng.dirichlet(np.full(60, 0.2))).reshape(4, 5, 3) / 30
        targets.append(np.concatenate([joint.sum(axis=axis).reshape(-1) for axis in (2, 0, 1)]))
    return [Likelihood(engine, Tables(structure, target), silent) for target in targets]


@pytest.mark.parametrize("l2", [1e-1, 1e-3, 1e-5])
def test_the_minimum_is_another_minimisers(l2):
    """scipy's BFGS, on the same function, started elsewhere; potentials of some 10 nats among them."""
    (problem,) = problems(1)
    theta, converged = problem.minimise(np.zeros(problem.target.structure.cells), l2, 1e-8, 2000)
    other = minimize(problem.value, np.ones(len(theta)), args=(l2,), jac=True, options={"gtol": 1e-9, "maxiter": 5000})
    assert converged
    assert problem.value(theta, l2)[0] <= other.fun + 1e-12 + 1e-15 / l2  # gradient^2 / l2
    np.testing.assert_allclose(theta, other.x, atol=1e-8 / l2)


def test_together_each_ends_where_it_would_alone():
    """However many inferences each takes: the same numbers, calls and derivatives."""
    start = np.zeros(problems(1)[0].target.structure.cells)
    alone, side_by_side = problems(3), problems(3)
    expected = [one.minimise(start, 10.0**-power, 1e-7, 500) for power, one in enumerate(alone, 2)]
    descents = [one.descent(start, 10.0**-power, 1e-7, 500) for power, one in enumerate(side_by_side, 2)]
    found = together(alone[0].engine, descents)
    assert len({one.calls for one in alone}) == 3
    for one, two, (theta, done), (again, ended) in zip(alone, side_by_side, expected, found, strict=True):
        assert (one.calls, one.slope, done) == (two.calls, two.slope, ended)
        assert np.array_equal(theta, again)


def test_a_share_ends_where_that_much_is_left_to_gain():
    """What is left, by the model of the Hessian, is right to a factor of 10 or so."""
    for problem in problems(4):
        start = np.zeros(problem.target.structure.cells)
        best = problem.value(problem.minimise(start, 1e-3, 1e-9, 2000)[0], 1e-3)[0]
        whole, calls = problem.value(start, 1e-3)[0] - best, problem.calls
        theta, done = problem.minimise(start, 1e-3, 1e-9, 2000, share=1e-3)
        assert done and problem.calls - calls < calls / 2
        assert 0 < problem.value(theta, 1e-3)[0] - best < 1e-2 * whole


def test_a_tolerance_beyond_rounding_ends_all_the_same():
    """Where no step lowers anything any more it says that it did not converge, after a few hundred calls."""
    (problem,) = problems(1)
    _, converged = problem.minimise(np.zeros(problem.target.structure.cells), 1e-3, 1e-30, 10**6)
    assert not converged and problem.slope < 1e-7 and problem.calls < 1000


OVERLAPPING = Structure(DOMAIN, [("a", "b"), ("c", "b"), ("b", "a", "c"), ("a",), ()])


@given(st.integers(0, 2**32 - 1))
def test_consistent_weighs_tables_by_their_noise(seed):
    """Generalised least squares computed another way; equal variances change no digit."""
    generator = np.random.default_rng(seed)
    tables = Tables(OVERLAPPING, generator.normal(size=OVERLAPPING.cells) * 100)
    variances = 10.0 ** generator.uniform(-1, 1, size=len(OVERLAPPING.groups))
    scale = np.repeat(variances**0.5, OVERLAPPING.sizes)
    basis = incidence(OVERLAPPING)
    nearest = basis @ np.linalg.lstsq(basis / scale[:, None], tables.values / scale, rcond=None)[0]
    assert np.allclose(consistent(tables, variances).values, nearest, atol=1e-8)
    same = consistent(tables, np.full(len(OVERLAPPING.groups), 0.3))
    assert np.array_equal(same.values, consistent(tables).values)


def test_cells_that_constraints_rule_out_stay_zero():
    """The nearest tables that agree and are 0 there: a least-squares problem over both says the same."""
    plain = Domain.from_sizes({"a": 3, "b": 3, "c": 2})
    domain = Domain(plain.attributes, [Ordered(name="x", columns=("a", "b"))])
    structure = Structure(domain, [("a", "b"), ("b", "c")])
    values = np.where(structure.impossible, 0.0, np.random.default_rng(0).normal(size=structure.cells))
    agreed = consistent(Tables(structure, values))
    assert not agreed.values[structure.impossible].any()
    np.testing.assert_allclose(agreed["a", "b"].sum(axis=0), agreed["b", "c"].sum(axis=1), atol=1e-8)
    # Rows that say: both margins on b are one, and impossible cells are 0.
    first, second = np.kron(np.ones(3), np.eye(3)), np.kron(np.eye(3), np.ones(2))
    rows = np.vstack([np.hstack([first, -second]), np.eye(structure.cells)[structure.impossible]])
    nearest = values - np.linalg.pinv(rows) @ (rows @ values)
    np.testing.assert_allclose(agreed.values, nearest, atol=1e-8)


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "5", "40"])
def test_the_expected_noise_of_discrete_laplace(epsilon):
    """E|Z| = 2 p / (1 - p^2) with p = exp(-epsilon), from narrow to wide."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    sensitivity = dpgm.Sensitivity.of(structure, "add-remove")
    noise = dpgm.make("mechanism", "laplace").noise(sensitivity, Budget.pure(epsilon))
    p = math.exp(-float(epsilon))
    assert expected_absolute(noise) == pytest.approx(2 * p / (1 - p * p), rel=1e-3)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("epsilons", [("0.1", "0.1"), ("0.1", "0.01"), ("0.5", "0.3", "0.4"), ("0.001", "1")], ids=str)
def test_the_expected_noise_of_a_mean(epsilons):
    """Of Laplace noise it is not the Gaussian's: the true law of the mean, lattices and all, by 4e5 draws (.6 per cent
    is four standard errors, of a fixed seed). Of two equal wide ones it is 3/4 of the scale."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    sensitivity = dpgm.Sensitivity.of(structure, "add-remove")
    noises = tuple(dpgm.make("mechanism", "laplace").noise(sensitivity, Budget.pure(one)) for one in epsilons)
    precisions = np.array([1 / noise.variance for noise in noises])
    mean = PooledNoise(noises=noises, weights=tuple(precisions / precisions.sum()))
    drawn = np.abs(mean.draw((400_000,), dpgm.SeededRandomness(1))).mean()
    assert expected_absolute(mean) == pytest.approx(drawn, rel=6e-3)
    if len(set(epsilons)) == 1:
        assert expected_absolute(mean) == pytest.approx(0.75 / float(epsilons[0]), rel=2e-3)
