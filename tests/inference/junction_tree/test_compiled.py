"""The compiled executor: loops, orders of axes, flat programs; what it leaves to others, what it keeps."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import InferenceError
from dpgm_core.inference.junction_tree.compiled import (
    CompiledExecutor,
    arrange_loops,
    flatten,
    lay_out_axes,
    loops_of,
    packings,
    price,
)
from dpgm_core.inference.junction_tree.engine import JunctionTree, Potentials
from dpgm_core.inference.kernels import format as layout
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

CHAIN = Structure.chain(Domain.from_sizes(dict.fromkeys("abcdef", 3)), 2)


def _executor_of(structure):
    pytest.importorskip("numba")
    contraction = JunctionTree(executor="numpy").compile(structure).contraction
    return CompiledExecutor(contraction, structure, Potentials(contraction, structure).mild, 0.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_must_be_refused_is_left_to_who_says_why(bad):
    theta = np.zeros(CHAIN.cells)
    theta[5] = bad
    assert _executor_of(CHAIN)(theta, 1.0) is None
    with pytest.raises(InferenceError, match="NaN or"):
        JunctionTree(executor="numba").compile(CHAIN).infer(Tables(CHAIN, theta))


STAR = Structure(Domain.from_sizes(dict.fromkeys("abcdefghi", 2)), [("a", other) for other in "bcdefghi"])


def _leaning(sides):
    """Each table of the star against a = 1 (-1) or a = 0 (1) by 290 nats: what a double can hold, but not their sum."""
    theta = np.random.default_rng(2).normal(size=STAR.cells)
    for part, side in zip(STAR.slices, sides, strict=True):
        theta[part].reshape(2, 2)[:] += 145.0 * side * np.array([[-1.0], [1.0]])
    return theta


@pytest.mark.parametrize("case", ["tables", "tables with zeros", "steps", "steps with zeros"])
def test_cells_beyond_doubles_are_raised_where_they_do_not_matter(lab, case):
    if "tables" in case:
        structure, theta = CHAIN, np.zeros(CHAIN.cells)
        theta[::2] = -2000.0
    else:
        structure, theta = STAR, _leaning([-1] * 8)
    if "zeros" in case:
        theta[1] = -np.inf
    marginals, log_partition = lab.brute_force(structure, Tables(structure, theta))
    found = _executor_of(structure)(theta, 1.0)
    np.testing.assert_allclose(found[0], marginals, rtol=1e-12)  # what is below doubles is 0
    assert found[1] == pytest.approx(log_partition, rel=1e-12)


def test_where_raised_cells_matter_it_gives_up_and_the_engine_does_not(lab):
    opposed = np.zeros(CHAIN.cells)  # one table against b = 1, the next against all else
    number, other = CHAIN.find(("a", "b"))[0], CHAIN.find(("b", "c"))[0]
    opposed[CHAIN.slices[number]].reshape(3, 3)[:, 1] = -2000.0
    opposed[CHAIN.slices[other]].reshape(3, 3)[[0, 2]] = -2000.0
    for structure, theta in ((CHAIN, opposed), (STAR, _leaning([-1] * 4 + [1] * 4))):
        assert _executor_of(structure)(theta, 1.0) is None
        potentials = Tables(structure, theta)
        marginals, log_partition = lab.brute_force(structure, potentials)
        beliefs = JunctionTree(executor="numba").compile(structure).infer(potentials)
        np.testing.assert_allclose(beliefs.marginals.values, marginals, atol=1e-12)
        assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12)


def test_it_travels_and_keeps_no_more_memories_than_calls():
    executor = _executor_of(CHAIN)
    theta = np.random.default_rng(0).normal(size=CHAIN.cells)
    first, again = executor(theta, 1.0), pickle.loads(pickle.dumps(executor))(theta, 1.0)
    np.testing.assert_array_equal(first[0], again[0])
    for _ in range(5):
        executor(theta, 1.0)
    assert len(executor._pool) == 1


def test_nothing_is_read_that_a_call_did_not_write(awkward):
    """What another call left in a memory, one that ended early and one with zeros among them, changes no bit."""
    executor, rng = _executor_of(awkward), np.random.default_rng(2)
    for scale, zeros in ((1.0, False), (1.0, True), (90.0, False), (90.0, True)):
        theta = scale * rng.normal(size=awkward.cells)
        if zeros:
            theta[rng.random(awkward.cells) < 0.2] = -np.inf
            theta[[part.start for part in awkward.slices]] = 0.0
        executor._pool.clear()
        first = executor(theta, 3.0)
        (memory,) = executor._pool
        start, stop = executor._program.ones
        assert (memory[start:stop] == 1.0).all()
        memory[:start] = memory[stop:] = np.nan
        again = executor(theta, 3.0)
        assert (first is None) == (again is None)
        if first is not None:
            np.testing.assert_array_equal(again[0], first[0])
            assert again[1] == first[1]


# --- The flat program stays within the memory that it states


def test_every_place_is_within_memory(awkward):
    contraction = JunctionTree(executor="numpy").compile(awkward).contraction
    program = flatten(contraction, awkward, 30.0)
    plan, at, seen = program.plan, int(program.plan[layout.FORWARD]), 0
    while at < plan[layout.END]:
        length, kind, _, clear, r, p, q, outer = map(int, plan[at : at + layout.HEADER])
        limit = awkward.cells if kind == layout.FINISH else program.memory
        loops = plan[at + layout.HEADER : at + length].reshape(-1, layout.DIMENSION)
        assert len(loops) == (3 + outer if kind not in (layout.MASK, layout.FINISH) else 0)
        ends = [int(((loops[:, 0] - 1) * loops[:, table]).sum()) for table in (1, 2, 3)] or [clear - 1] * 3
        assert 0 <= r <= r + max(ends[0], clear - 1) < limit
        assert 0 <= p <= p + ends[1] < program.memory and 0 <= q <= q + ends[2] < program.memory
        at, seen = at + length, seen + 1
    assert (at == plan[layout.END] == plan[layout.AT_LOGS] and seen > 0) or not contraction.steps
    logs = plan[plan[layout.AT_LOGS] :].view(np.float64)
    assert len(logs) == len(contraction.steps) + 2 and logs[-1] == 30.0


def test_a_table_of_many_unmerged_axes_has_an_instruction():
    """22 labels of two codes; every other one is also in a table of its own, so no two lie side by side in all."""
    names = [f"x{number:02d}" for number in range(22)]
    structure = Structure(
        Domain.from_sizes(dict.fromkeys(names, 2)), [tuple(names), tuple(names[::2]), tuple(names[1::2])]
    )
    program = flatten(JunctionTree(executor="numpy").compile(structure).contraction, structure, 30.0)
    plan, at, most = program.plan, int(program.plan[layout.FORWARD]), 0
    while at < plan[layout.END]:
        most = max(most, int(plan[at + layout.HEADER - 1]))
        at += int(plan[at])
    assert 16 < most <= layout.LOOPS


# --- Loops cover every cell once, and packings are orders of the same axes


SIZES = (2, 3, 4, 5, 6)
TABLES = st.lists(st.sampled_from([(0, 1), (0, 2), (1, 2), (0, 1, 2)]), min_size=5, max_size=5)


def _tables(draw):
    r, p, q = ([letter for letter, tables in enumerate(draw) if table in tables] for table in range(3))
    return tuple(r), tuple(reversed(p)), tuple(q)


@settings(max_examples=60, deadline=None)
@given(TABLES)
def test_loops_are_all_of_the_sum(draw):
    tables = _tables(draw)
    loops = loops_of(*tables, SIZES)
    found = arrange_loops(loops)
    assert sorted(found.inner + found.outer) != [] and math.prod(loop[0] for loop in loops) == math.prod(SIZES)
    ordered = [loop if not found.swap else (*loop[:2], loop[3], loop[2]) for loop in found.inner + found.outer]
    assert sorted(loop for loop in ordered if loop[0] > 1) == sorted(loop for loop in loops if loop[0] > 1)
    for orders in packings(*tables):
        assert [sorted(order) for order in orders] == [sorted(table) for table in tables]


def test_long_runs_are_cheaper():
    """Of the same work: a product along runs of 64, and one whose runs are of 8."""
    long, short = ((2, 0, 1), (3, 0, 1), (3, 2)), ((0, 1, 2), (3, 0, 1), (3, 2))
    assert price(*long, (8, 8, 8, 8)) < price(*short, (8, 8, 8, 8))


# --- Other orders of axes leave the contraction what it is


def test_only_orders_of_what_is_made_change(awkward):
    contraction = JunctionTree(executor="numpy").compile(awkward).contraction
    other = lay_out_axes(contraction)
    inputs = len(contraction.groups)
    assert other.nodes[:inputs] == contraction.nodes[:inputs]
    assert [sorted(one) for one in other.nodes] == [sorted(one) for one in contraction.nodes]
    assert (other.steps, other.roots, other.buckets) == (contraction.steps, contraction.roots, contraction.buckets)


def _forwards(contraction):
    nodes, total = contraction.nodes, 0.0
    for step in contraction.steps:
        summed = tuple(letter for letter in nodes[step.left] if letter not in nodes[step.out])
        other = summed if step.right is None else nodes[step.right]
        total += price(nodes[step.out], nodes[step.left], other, contraction.sizes)
    return total


def test_other_orders_are_cheaper():
    """Of a grid, whose messages have many axes."""
    domain = Domain.from_sizes({f"a{number}": 3 for number in range(64)})
    contraction = JunctionTree(executor="numpy").compile(Structure.grid(domain, 8, 8)).contraction
    assert _forwards(lay_out_axes(contraction)) < 0.6 * _forwards(contraction)
