"""Forests, loops and random potentials: what the tests of loopy belief propagation share."""

import sys

import numpy as np
import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

TIGHT = LoopyBP(tolerance=1e-13, max_iterations=5000)


def random_potentials(structure, seed, scale=1.0):
    return Tables(structure, np.random.default_rng(seed).uniform(-scale, scale, structure.cells))


def grid(rows, columns, size):
    domain = Domain.from_sizes({f"x{i}": size for i in range(rows * columns)})
    return Structure.grid(domain, rows, columns)


DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 1, "e": 3, "f": 4})
FORESTS = {
    "chain": Structure(DOMAIN, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f")]),
    "star": Structure(DOMAIN, [(other, "a") for other in "bcdef"]),
    "axes in any order, nested, duplicate, unary and empty cliques": Structure(
        DOMAIN, [("b", "a"), ("c", "a", "b"), ("a", "b"), ("e",), (), ("c", "d", "e"), ("f",), ("e", "d")]
    ),
    "disconnected with attributes in no clique": Structure(DOMAIN, [("a", "b"), ("e", "f")]),
    "one attribute": Structure(DOMAIN, [("b",)]),
    "the empty clique alone": Structure(DOMAIN, [()]),
    "one factor of all": Structure(DOMAIN, [tuple("fedcba"), ("a",), ("b", "f")]),
    "size-1 attribute alone": Structure(DOMAIN, [("d",)]),
    "tied": Structure(
        Domain.from_sizes(dict.fromkeys("abcd", 3)), [("b",)], tied=[[("a", "b"), ("b", "c"), ("d", "c")], [("a",)]]
    ),
    "tied and nested in one another": Structure(
        Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b"), ()], tied=[[("b", "a"), ("b", "c")], [("a",), ("c",)]]
    ),
}
LOOPY = {
    "grid": grid(4, 4, 3),
    "higher order": Structure(
        Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 3, "e": 2}),
        [("a", "b", "c"), ("c", "d", "e"), ("e", "a"), ("b", "d"), ("d",)],
    ),
    "tied ring": Structure(
        Domain.from_sizes(dict.fromkeys("abcd", 3)), [], tied=[[("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]]
    ),
}


@pytest.fixture(params=FORESTS)
def forest(request):
    """Each forest, one after another."""
    return FORESTS[request.param]


@pytest.fixture(params=LOOPY)
def loopy(request):
    """Each structure with loops, one after another."""
    return LOOPY[request.param]


@pytest.fixture(scope="session")
def lab():
    """This module."""
    return sys.modules[__name__]
