"""The plan of loopy belief propagation: which parameter each cell of a factor starts from, and how deep a forest is."""

import math

import numpy as np
import pytest

from dpgm_core import Domain, Structure
from dpgm_core.inference.loopy.bp import compile_plan, flatten

SIZES = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 1, "e": 4})


def test_cells_start_from_the_parameters_of_maximal_cliques():
    """Axes by descending size; nested cliques are added to a cell of their host; attributes alone are counted."""
    structure = Structure(SIZES, [("a", "b"), ("b",), ("c", "d", "b"), ()])
    plan = compile_plan(structure)
    numbers = np.arange(structure.cells)
    first, nested, other, empty = (numbers[part] for part in structure.slices)
    (factors,) = plan.factors  # (b, a) and (b, c): one shape, the factors along the last axis
    assert (factors.shape, factors.count, plan.cells) == ((3, 2), 2, 12)
    cells = plan.source.reshape(3, 2, 2)
    assert cells[..., 0].tolist() == first.reshape(2, 3).T.tolist()
    assert cells[..., 1].tolist() == other.reshape(2, 3).T.tolist()
    host = np.isin(plan.source[plan.nested_cell], first)
    assert host.all() or not host.any()
    rows = plan.nested_cell // 4  # of b, the first axis
    assert (plan.nested_source == nested[rows]).all() and plan.constants.tolist() == empty.tolist()
    assert plan.log_free == pytest.approx(math.log(4)) and plan.forest


@pytest.mark.parametrize(
    ("cliques", "depth"),
    [
        ([("a", "b")], 1),
        ([("a", "b"), ("b", "c"), ("c", "e")], 3),
        ([("a", "b"), ("b", "c"), ("c", "a")], 0),
        ([()], 0),
    ],
)
def test_the_depth_of_a_forest_is_its_longest_path(cliques, depth):
    """In factors; 0 with a loop, or without factors."""
    plan = compile_plan(Structure(SIZES, cliques))
    assert (plan.depth, plan.forest) == (depth, len(cliques) != 3 or depth == 3)


def test_the_flat_plan_holds_the_same_messages():
    """Per class of attributes its degree and count, and where each message stands."""
    plan = compile_plan(Structure.grid(Domain.from_sizes({f"x{place}": 2 for place in range(6)}), 2, 3))
    flat = flatten(plan)
    (sizes,) = plan.sizes
    assert [(row[3], row[4]) for row in flat.variables] == [(one.degree, one.count) for one in sizes.classes]
    assert flat.places[0] == plan.cells and flat.places[1] == 2 * (sizes.messages + 1)
    assert flat.memory >= flat.places.max() and len(flat.starts) == len(plan.factors)
