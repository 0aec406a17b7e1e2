"""Awkward structures, and brute force over every record: what the tests of the exact engine share."""

import math
import sys
from unittest import mock

import numpy as np
import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.inference.junction_tree.contraction import Candidate, Search
from dpgm_core.inference.junction_tree.engine import JunctionTreeEngine, plan_along
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 4, "d": 1, "e": 2, "f": 3})
AWKWARD = {
    "cyclic": Structure(DOMAIN, [("a", "b"), ("c", "b"), ("a", "c")]),
    "long cycle": Structure(DOMAIN, [("a", "b"), ("b", "c"), ("c", "e"), ("e", "f"), ("f", "a")]),
    "missing attributes": Structure(DOMAIN, [("b", "c")]),
    "duplicate": Structure(DOMAIN, [("b", "c"), ("c", "b"), ("b", "c")]),
    "nested": Structure(DOMAIN, [("f", "a", "b"), ("b",), ("a", "b"), ("b", "f")]),
    "single": Structure(DOMAIN, [("e",)]),
    "nothing to learn": Structure(DOMAIN, [("d",)]),
    "empty clique": Structure(DOMAIN, [()]),
    "empty clique among others": Structure(DOMAIN, [("a", "e"), (), ("c",)]),
    "disconnected": Structure(DOMAIN, [("a", "b"), ("e", "f"), ("c",)]),
    "size one": Structure(DOMAIN, [("d",), ("a", "d"), ("b", "d", "c")]),
    "whole domain": Structure(DOMAIN, [("f", "c", "a", "d", "b", "e")]),
    "large cliques, odd axes": Structure(DOMAIN, [("c", "b", "a", "e"), ("f", "b", "c"), ("e", "f", "a")]),
    "complete": Structure.complete(DOMAIN),
    "star": Structure(DOMAIN, [("c", "a"), ("b", "c"), ("c", "e"), ("c", "f"), ("d", "c")]),
    "tied, disjoint": Structure(DOMAIN, [("a", "e")], tied=[[("b", "c"), ("f", "c")]]),
    "tied, overlapping its own": Structure(DOMAIN, [("b",)], tied=[[("b", "f"), ("f", "b")][:1], [("b",), ("f",)]]),
    "tied, transposed twin outside": Structure(DOMAIN, [("f", "b")], tied=[[("b", "a"), ("f", "e")]]),
    "tied scalars": Structure(Domain.from_sizes({"x": 1, "y": 1, "z": 2}), [("z",)], tied=[[("x",), ("y",)]]),
}


def log_joint(structure, theta):
    """Unnormalised log-probabilities of all records, one axis per attribute."""
    names = structure.domain.names
    shape = structure.domain.shape(names)
    joint = np.zeros(shape)
    for number, group in enumerate(structure.groups):
        for clique in group:
            axes = [names.index(name) for name in clique]
            spread = [size if axis in axes else 1 for axis, size in enumerate(shape)]
            joint = joint + theta.group(number).transpose(np.argsort(axes)).reshape(spread)
    return joint


def brute_force(structure, theta):
    """(marginals, log Z) by summing over all records in extended precision."""
    joint = log_joint(structure, theta).astype(np.longdouble)
    weights = np.exp(joint - joint.max())
    log_partition = float(np.log(weights.sum()) + joint.max())
    return project(structure, weights / weights.sum()), log_partition


def project(structure, joint):
    """The tables of a distribution over all records."""
    names = structure.domain.names
    values = np.zeros(structure.cells)
    for number, group in enumerate(structure.groups):
        for clique in group:
            axes = [names.index(name) for name in clique]
            table = joint.sum(axis=tuple(axis for axis in range(len(names)) if axis not in axes))
            order = [sorted(axes).index(axis) for axis in axes]
            values[structure.slices[number]] += table.transpose(order).astype(np.float64).reshape(-1)
    return values


def in_logarithms(engine, theta):
    """What the engine answers when probabilities may not do."""
    with mock.patch.object(engine, "executor", "log"):
        beliefs = engine.infer(theta)
    return beliefs.marginals.values, beliefs.log_partition


def along(structure, executor):
    """An engine that eliminates in the domain's order, whatever the search would find."""
    found = Search(structure)
    played = found.graph.play(range(len(structure.domain)), math.inf)
    candidate = Candidate(heuristic="by hand", played=played, nanoseconds=0.0, bytes=0)
    return JunctionTreeEngine(structure, plan_along(found, candidate), 2**31, executor)


def favoured_but_impossible():
    """Potentials of which y = 0 is impossible, though 29 mild tables favour it by more than e^709."""
    domain = Domain.from_sizes({"y": 2} | {f"c{i}": 2 for i in range(29)})
    structure = Structure(domain, [("y",), *(("y", f"c{i}") for i in range(29))])
    tables = {("y",): np.array([-np.inf, 0.0])}
    for i in range(29):
        tables["y", f"c{i}"] = np.array([[29.0, 29.0], [0.0, 0.0]] if i < 9 else [[0.0, 0.0], [-29.0, -29.0]])
    return Tables.from_arrays(structure, tables)


@pytest.fixture(params=AWKWARD)
def awkward(request):
    """Each awkward structure, one after another."""
    return AWKWARD[request.param]


@pytest.fixture(params=["numpy", "numba", "log"])
def executor(request):
    """Each executor, one after another; numba where it is installed."""
    if request.param == "numba":
        pytest.importorskip("numba")
    return request.param


@pytest.fixture(scope="session")
def lab():
    """This module."""
    return sys.modules[__name__]
