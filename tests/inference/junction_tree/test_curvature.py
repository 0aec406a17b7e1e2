"""Second derivatives of the exact engine: against all records, and against its first derivatives."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.domain.domain import Domain
from dpgm_core.inference.junction_tree import curvature as log_curvature
from dpgm_core.inference.junction_tree import logspace, probability
from dpgm_core.inference.junction_tree.curvature import TangentExecutor, TangentLowering, numpy_tangents
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.junction_tree.lowering import lower
from dpgm_core.inference.junction_tree.probability import ProbabilityExecutor
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing import incidence, potentials


def covariance(structure, theta):
    """Cov(T) by summing over all records."""
    told = incidence(structure).T
    with np.errstate(invalid="ignore"):
        score = np.where(told > 0, told * theta, 0.0).sum(axis=1)
    weight = np.exp(score - score.max())
    weight /= weight.sum()
    centred = told - weight @ told
    return (centred * weight[:, None]).T @ centred


def test_potentials_that_probabilities_cannot_hold():
    """At potentials of +-800 nats that cancel nothing is lost: x and y differ surely, and z is free given y."""
    structure = Structure.chain(Domain.from_sizes({"x": 2, "y": 2, "z": 2}))
    theta = np.array([-800.0, 800.0, 800.0, -800.0, 0.0, 0.0, 0.0, 0.0])
    found = JunctionTree().compile(structure).curvature(Tables(structure, theta))(np.eye(8))
    np.testing.assert_allclose(found, covariance(structure, theta), atol=1e-14)


@settings(max_examples=40, deadline=None)
@given(
    potentials(scales=(1.0, 40.0, 700.0)),
    st.sampled_from([1.0, 1e-200, 1e200]),
    st.sampled_from([1, 2, 70]),
    st.integers(0, 2**20),
)
def test_whatever_the_structure_and_the_potentials(theta, size, columns, seed):
    """Cov(T) V over all records, for ties, hard zeros, components, potentials of +-700 and directions of any size."""
    structure = theta.structure
    directions = size * np.random.default_rng(seed).normal(size=(structure.cells, columns))
    found = JunctionTree().compile(structure).curvature(theta)(directions)
    expected = covariance(structure, theta.values) @ directions / size
    np.testing.assert_allclose(found / size, expected, rtol=1e-8, atol=1e-10)


def test_probabilities_and_logarithms_agree_where_tables_are_large():
    """A loop of clusters too large to enumerate, unequal sizes: both ways to the product, and finite differences."""
    domain = Domain.from_sizes({"a": 7, "b": 11, "c": 5, "d": 9, "e": 2, "f": 6})
    structure = Structure(domain, [("a", "b", "c"), ("c", "d"), ("d", "e", "b"), ("e", "f"), ("f", "a")])
    rng = np.random.default_rng(8)
    theta, directions = rng.normal(size=structure.cells), rng.normal(size=(structure.cells, 5))
    engine = JunctionTree().compile(structure)
    found = engine.curvature(Tables(structure, theta))(directions)
    with mock.patch.object(ProbabilityExecutor, "calibrate", return_value=None):
        slow = engine.curvature(Tables(structure, theta))(directions)
    np.testing.assert_allclose(found, slow, rtol=1e-9, atol=1e-14)
    up, down = (engine.infer(Tables(structure, theta + step * directions[:, 3])) for step in (1e-5, -1e-5))
    np.testing.assert_allclose(found[:, 3], (up.marginals.values - down.marginals.values) / 2e-5, atol=1e-9)


def test_what_overflows_beside_an_exact_zero_is_left_to_logarithms(lab):
    """Where y = 0 is impossible the adjoints of 29 mild tables that favour it grow beyond double precision."""
    theta = lab.favoured_but_impossible()
    product = JunctionTree().compile(theta.structure).curvature(theta)(np.eye(theta.structure.cells)[:, 4])
    # c0 is free given y = 1: variance 1/4 of its own table, and nothing of any other.
    expected = np.zeros(theta.structure.cells)
    expected[4:6] = 0.25, -0.25
    np.testing.assert_allclose(product, expected, atol=1e-12)


@pytest.mark.parametrize("columns", [1, 9])
def test_zeros_where_adjoints_would_overflow_need_no_logarithms(columns, lab):
    """x0 = 0 is impossible, though all other tables favour it by more than e^709; the answer is known by hand."""
    length = 40
    domain = Domain.from_sizes({f"x{i}": 2 for i in range(length)} | {"end": 2})
    structure = Structure(domain, [*((f"x{i}", f"x{i + 1}") for i in range(length - 1)), (f"x{length - 1}", "end")])
    stay = np.array([[25.0, -np.inf], [-np.inf, -25.0]])
    tables = dict.fromkeys(structure.cliques, stay)
    tables[structure.cliques[0]] = np.array([[-np.inf, -np.inf], [-np.inf, 0.0]])
    tables[f"x{length - 1}", "end"] = np.zeros((2, 2))
    directions = np.random.default_rng(0).normal(size=(structure.cells, columns))
    with mock.patch.object(logspace, "forward", side_effect=AssertionError("logarithms")):
        found = lab.along(structure, "auto").curvature(Tables.from_arrays(structure, tables))(directions)
    expected = np.zeros((structure.cells, columns))
    expected[-2:] = (directions[-2] - directions[-1]) / 4 * np.array([[1.0], [-1.0]])
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_product_that_is_not_finite_is_made_in_logarithms(lab):
    """Tangents that overflow where nothing else does, here by decree, are found out."""
    structure = lab.AWKWARD["nested"]
    theta = Tables(structure, np.random.default_rng(7).normal(size=structure.cells))
    product = JunctionTree().compile(structure).curvature(theta)
    with mock.patch.object(TangentExecutor, "__call__", return_value=np.full((1, structure.cells), np.nan)):
        found = np.array([product(direction) for direction in np.eye(structure.cells)])
    np.testing.assert_allclose(found, covariance(structure, theta.values), rtol=1e-9, atol=1e-13)


def test_costs_about_two_inferences():
    """In calls of numpy, which small models wait for: 3 for each of an inference's; logarithms are not touched."""
    engine = JunctionTree().compile(Structure.chain(Domain.from_sizes({f"x{i}": 5 for i in range(10)}), 3))
    theta = Tables.zeros(engine.structure)
    with mock.patch.object(logspace, "forward", side_effect=AssertionError("logarithms")):
        engine.curvature(theta)(np.ones(engine.structure.cells))
    plain = lower(engine.contraction, engine.structure)
    walked = TangentLowering(
        engine.contraction, engine.structure, lower(engine.contraction, engine.structure, keep=True), 1
    ).program()
    calls = [sum(map(len, [*program.forward, *program.backward])) for program in (plain, walked)]
    assert calls[1] <= 3 * calls[0]


def test_survives_pickling_and_threads(lab):
    """An engine that has made products can be sent to another process; many threads share one map."""
    structure = lab.AWKWARD["large cliques, odd axes"]
    rng = np.random.default_rng(4)
    theta, directions = Tables(structure, rng.normal(size=structure.cells)), rng.normal(size=(20, structure.cells))
    engine = JunctionTree().compile(structure)
    product = engine.curvature(theta)
    alone = [product(direction) for direction in directions]
    again = pickle.loads(pickle.dumps(engine)).curvature(theta)
    np.testing.assert_allclose(again(directions[0]), alone[0], rtol=1e-12, atol=1e-15)
    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(pool.map(product, directions), alone, strict=True):
            np.testing.assert_array_equal(one, other)


# --- Second derivatives in logarithms: right on their own, with and without weights kept between walks


@pytest.mark.sampled(5)
@pytest.mark.parametrize("zeros", [False, True])
def test_agrees_with_probabilities(awkward, zeros):
    """Where probabilities will do, walks of two columns in logarithms find the same, hard zeros or not."""
    rng = np.random.default_rng(6)
    theta = rng.normal(size=awkward.cells)
    if zeros:
        theta[rng.random(awkward.cells) < 0.1] = -np.inf
        theta[[part.start for part in awkward.slices]] = 0.0  # the record of zeros is possible
    engine = JunctionTree().compile(awkward)
    columns = rng.normal(size=(awkward.cells, 5))
    known = engine.curvature(Tables(awkward, theta))(columns)
    with mock.patch.object(ProbabilityExecutor, "calibrate", return_value=None):
        for kept, at_once in ((2**24, 128), (0, 2)):
            with (
                mock.patch.object(log_curvature, "_MAX_LOG_COLUMNS", at_once),
                mock.patch.object(log_curvature, "_MAX_CACHED_CELLS", kept),
            ):
                found = engine.curvature(Tables(awkward, theta))(columns)
            np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-13)


# --- The differentiated program: the derivative of what an inference makes, whatever was rescaled on the way


def calibrated(structure, theta):
    """An executor that keeps, its program, and what it found."""
    contraction = JunctionTree(executor="numpy").compile(structure).contraction
    program = lower(contraction, structure, keep=True)
    run = ProbabilityExecutor(contraction, program, structure)
    lows, highs = ([float(f(theta[part])) for part in structure.slices] for f in (np.min, np.max))
    with np.errstate(all="ignore"):
        return contraction, program, run.calibrate(lambda out: np.exp(theta, out), lows, highs, zeros=False)


def backend(name):
    """What walks: numpy, or kernels where numba is installed."""
    if name == "numpy":
        return numpy_tangents
    pytest.importorskip("numba")
    from dpgm_core.inference.junction_tree.compiled import compiled_tangents

    return compiled_tangents


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", ["numpy", "numba"])
@pytest.mark.parametrize("columns", [1, 3])
def test_is_the_derivative_of_an_inference(awkward, columns, name):
    """Central differences of the marginals along fewer directions than fit."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=awkward.cells)
    theta[[part.start for part, shape in zip(awkward.slices, awkward.shapes, strict=True) if np.prod(shape) == 1]] = 0.0
    contraction, program, calibration = calibrated(awkward, theta)
    directions = rng.normal(size=(min(columns, 2), awkward.cells))
    found = TangentExecutor(contraction, awkward, program, columns, backend(name))(calibration, directions)
    engine = JunctionTree().compile(awkward)
    for one, direction in zip(found, directions, strict=True):
        up, down = (engine.infer(Tables(awkward, theta + step * direction)) for step in (1e-5, -1e-5))
        np.testing.assert_allclose(one, (up.marginals.values - down.marginals.values) / 2e-5, atol=1e-8)


@pytest.mark.parametrize("name", ["numpy", "numba"])
@pytest.mark.parametrize("columns", [1, 4])
def test_what_a_calibration_divided_is_divided_here(columns, name):
    """A chain of tables near e^200, whose messages are rescaled again and again: as with potentials near 0."""
    structure = Structure.chain(Domain.from_sizes({f"x{i}": 3 for i in range(12)}))
    rng = np.random.default_rng(1)
    theta = rng.normal(size=structure.cells)
    directions = rng.normal(size=(columns, structure.cells))
    near, far = calibrated(structure, theta), calibrated(structure, theta + 200.0)
    assert not near[2].scales and sum(scale != 1.0 for scale in far[2].scales) > 3
    found = [
        TangentExecutor(one[0], structure, one[1], columns, backend(name))(one[2], directions) for one in (near, far)
    ]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-12)


def test_memory_of_calibrations_is_used_again_only_when_they_are_gone():
    """Two at once have two memories, and products with one do not change when the other goes and a third comes."""
    structure = Structure.chain(Domain.from_sizes({f"x{i}": 3 for i in range(6)}))
    rng = np.random.default_rng(2)
    engine = JunctionTree().compile(structure)
    direction = rng.normal(size=structure.cells)
    theta = [Tables(structure, row) for row in rng.normal(size=(3, structure.cells))]
    alone = [engine.curvature(one)(direction) for one in theta]
    first, second = engine.curvature(theta[0]), engine.curvature(theta[1])
    np.testing.assert_array_equal(first(direction), alone[0])
    del first
    third = engine.curvature(theta[2])
    np.testing.assert_array_equal(second(direction), alone[1])
    np.testing.assert_array_equal(third(direction), alone[2])
    assert probability.REACH < 350  # what the bounds of `curvature` rest on
