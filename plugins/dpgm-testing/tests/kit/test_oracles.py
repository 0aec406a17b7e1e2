"""The kit's own oracles and strategies, against closed forms and by what they must be able to tell apart."""

import math

import numpy as np
import pytest

from dpgm_core import Domain, Sensitivity, Structure, StructureError, Tables
from dpgm_testing import (
    awkward_structures,
    enumerated,
    in_local_polytope,
    in_marginal_polytope,
    incidence,
    worst_change,
)


def test_enumeration_is_the_model():
    """A pair of attributes by hand, with an impossible cell; too many records are refused."""
    pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    found = enumerated(Tables(pair, np.log(np.array([1.0, 2.0, 0.5, 0.5])) + np.array([0, 0, 0, -np.inf])))
    np.testing.assert_allclose(found.marginals.values, np.array([1, 2, 0.5, 0]) / 3.5)
    assert math.isclose(found.log_partition, math.log(3.5))
    with pytest.raises(StructureError, match="enumeration"):
        incidence(Structure(Domain.from_sizes(dict.fromkeys("abcdefgh", 10)), [("a",)]))
    with pytest.raises(StructureError, match="probability 0"):
        enumerated(Tables(pair, np.full(4, -np.inf)))


def test_the_marginal_polytope_is_inside_the_local_one():
    """Frustrated triangle margins agree on every attribute, and no distribution has them."""
    triangle = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b"), ("b", "c"), ("c", "a")])
    odd = Tables(triangle, np.array([0, 0.5, 0.5, 0] * 3))
    assert in_local_polytope(odd) and not in_marginal_polytope(odd)
    even = Tables(triangle, np.array([0.5, 0, 0, 0.5] * 3))
    assert in_local_polytope(even) and in_marginal_polytope(even)
    assert not in_local_polytope(Tables(triangle, np.array([0.5, 0, 0, 0.5] * 2 + [0.4, 0, 0, 0.6])))
    assert not in_local_polytope(Tables(triangle, np.array([-0.1, 0.6, 0.6, -0.1] * 3)))


@pytest.mark.parametrize("name", sorted(awkward_structures()))
def test_models_lie_in_both_polytopes(name):
    """The margins of any model, tied groups included, are in both; moved by 1e-3 in one cell they are in neither."""
    structure = awkward_structures()[name]
    margins = enumerated(Tables(structure, np.random.default_rng(1).normal(size=structure.cells))).marginals
    assert in_local_polytope(margins) and in_marginal_polytope(margins)
    moved = margins.values.copy()
    moved[-1] += 1e-3
    assert not in_local_polytope(margins.like(moved)) and not in_marginal_polytope(margins.like(moved))


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", sorted(awkward_structures()))
def test_the_worst_change_is_what_core_declares(name, relation):
    """L1, L2 and Linf of Sensitivity.of by brute force over all pairs of records."""
    structure = awkward_structures()[name]
    declared = Sensitivity.of(structure, relation)
    l0, *rest = worst_change(structure, relation)
    assert rest == [declared.l1, declared.l2_squared, declared.linf] and l0 <= declared.l0


# --- strategies ---------------------------------------------------------------------------------------------------
