"""Loopy BP's beliefs lie in the local polytope, whatever the graph, the sizes and the zeros."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core.domain.domain import Domain
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

NAMES = "abcdef"


@st.composite
def structures(draw):
    """Up to six attributes of sizes 1 to 4 and up to eight cliques of order 0 to 4; shrinks to few and small ones."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    names = NAMES[: len(sizes)]
    clique = st.permutations(names).flatmap(lambda order: st.integers(0, 4).map(lambda n: tuple(order[:n])))
    cliques = draw(st.lists(clique, min_size=1, max_size=8))
    return Structure(Domain.from_sizes(dict(zip(names, sizes, strict=True))), cliques)


@st.composite
def models(draw):
    """Log-potentials over such a structure, some cells -inf, the record (0, ..., 0) always possible."""
    structure = draw(structures())
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = generator.normal(scale=draw(st.sampled_from([0.0, 0.5, 3.0, 300.0])), size=structure.cells)
    values[generator.random(structure.cells) < draw(st.sampled_from([0.0, 0.2, 0.7]))] = -np.inf
    for where in structure.slices:
        values[where.start] = 0.0
    return Tables(structure, values)


def margins(tables, name):
    """The margins of every clique that holds an attribute."""
    for clique, table in tables.items():
        if name in clique:
            yield table.sum(axis=tuple(axis for axis, other in enumerate(clique) if other != name))


def strong(seed):
    """A ring whose messages oppose each other by hundreds of nats: entries of e^-170 decide the beliefs, although a
    damped message looks settled long before it is there."""
    structure = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b"), ("b", "c"), ("c", "a")])
    return Tables(structure, np.random.default_rng(seed).normal(scale=100.0, size=12))


RING = Structure(Domain.from_sizes({"a": 1, "b": 2, "c": 3}), [("a", "b"), ("b", "c"), ("c", "a"), ("b",), ()])


@settings(max_examples=150, deadline=None)
@given(models(), st.sampled_from(["flooding", "residual"]), st.sampled_from([0.0, 0.5]), st.sampled_from([1.0, 1e5]))
@example(Tables(RING, np.where(np.arange(RING.cells) % 5 == 4, -np.inf, 0.0)), "residual", 0.5, 1.0)
@example(strong(0), "flooding", 0.5, 1.0)
@example(strong(1), "flooding", 0.5, 1.0)
@example(strong(2), "residual", 0.5, 1.0)
def test_beliefs_are_locally_consistent(potentials, schedule, damping, total):
    """Always: non-negative, zero where the potential is, each table sums to the total. Converged: cliques agree on
    the margin of every attribute they share."""
    structure = potentials.structure
    options = LoopyBP(schedule=schedule, damping=damping, tolerance=1e-10, max_iterations=300)
    beliefs = options.compile(structure).infer(potentials, total=total)
    marginals = beliefs.marginals.values
    assert (marginals >= 0).all() and (marginals[np.isneginf(potentials.values)] == 0).all()
    np.testing.assert_allclose(beliefs.marginals.sums(), total, rtol=1e-12)
    if beliefs.converged:
        for name in structure.domain.names:
            for one, two in itertools.pairwise(margins(beliefs.marginals, name)):
                np.testing.assert_allclose(one, two, rtol=0, atol=1e-6 * total)


@pytest.mark.landing
@settings(max_examples=150, deadline=None)
@given(models())
def test_exact_where_it_says_so(potentials):
    """An engine that calls itself exact gives the junction tree's marginals and log-partition."""
    structure = potentials.structure
    engine = LoopyBP().compile(structure)
    if not engine.exact:
        return
    beliefs, truth = engine.infer(potentials), JunctionTree().compile(structure).infer(potentials)
    np.testing.assert_allclose(beliefs.marginals.values, truth.marginals.values, rtol=0, atol=1e-9)
    np.testing.assert_allclose(beliefs.log_partition, truth.log_partition, rtol=1e-10, atol=1e-10)


@settings(max_examples=60, deadline=None)
@given(models(), st.floats(-1e3, 1e3))
def test_a_constant_moves_only_the_log_partition(potentials, constant):
    """Adding c to every cell of one table adds c to log Z and leaves the beliefs."""
    engine = LoopyBP(max_iterations=200).compile(potentials.structure)
    values = potentials.values.copy()
    values[potentials.structure.slices[0]] += constant
    before, after = engine.infer(potentials), engine.infer(potentials.like(values))
    np.testing.assert_allclose(after.log_partition, before.log_partition + constant, rtol=1e-9, atol=1e-7)
