"""The differentiated program: the derivative of what an inference makes, whatever was rescaled on the way."""

import numpy as np
import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.inference.junction_tree import probability
from dpgm_core.inference.junction_tree.curvature import TangentExecutor, numpy_tangents
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.junction_tree.lowering import lower
from dpgm_core.inference.junction_tree.probability import ProbabilityExecutor
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables


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
    assert probability.REACH < 350  # what the bounds of `tangents` rest on
