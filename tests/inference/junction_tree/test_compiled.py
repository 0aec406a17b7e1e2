"""The compiled executor: what it leaves to others, what it keeps, how it travels."""

import pickle

import numpy as np
import pytest

pytest.importorskip("numba")

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import InferenceError, StructureError
from dpgm_core.inference.junction_tree.compiled import CompiledExecutor
from dpgm_core.inference.junction_tree.engine import JunctionTree, Potentials
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

CHAIN = Structure.chain(Domain.from_sizes(dict.fromkeys("abcdef", 3)), 2)


def _executor_of(structure):
    return CompiledExecutor(JunctionTree(executor="numpy").compile(structure).contraction, structure, 30.0, 0.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_must_be_refused_is_left_to_who_says_why(bad):
    theta = np.zeros(CHAIN.cells)
    theta[5] = bad
    assert _executor_of(CHAIN)(theta, 1.0) is None
    with pytest.raises(InferenceError, match="NaN or"):
        JunctionTree(executor="numba").compile(CHAIN).infer(Tables(CHAIN, theta))


def test_a_table_of_zeros_and_a_contradiction_have_no_records():
    engine = JunctionTree(executor="numba").compile(CHAIN)
    dead = np.zeros(CHAIN.cells)
    dead[CHAIN.slices[2]] = -np.inf
    opposed = np.zeros(CHAIN.cells)
    for clique in (("a", "b"), ("b", "c")):  # b is 0 and 1
        number, _ = CHAIN.find(clique)
        block = opposed[CHAIN.slices[number]].reshape(3, 3)
        if clique[0] == "a":
            block[:, [1, 2]] = -np.inf
        else:
            block[[0, 2], :] = -np.inf
    for theta in (dead, opposed):
        with pytest.raises(InferenceError, match="every record has probability 0"):
            engine.infer(Tables(CHAIN, theta))


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


@pytest.mark.parametrize("executor", ["numpy", "numba", "log"])
def test_numbers_of_records_that_are_none_are_refused(executor):
    engine, row = JunctionTree(executor=executor).compile(CHAIN), np.zeros(CHAIN.cells)
    for total in (True, -1.0, np.nan, np.inf):
        with pytest.raises(InferenceError, match="the total must be a finite number"):
            engine.infer(Tables(CHAIN, row), total=total)
        with pytest.raises(InferenceError, match="the total must be a finite number"):
            engine.infer_many(np.array([row, row]), total=total)
    for rows in (row, np.zeros((2, 3)), np.array([["a"] * CHAIN.cells]), np.ones((2, CHAIN.cells), dtype=bool)):
        with pytest.raises(StructureError, match="potentials must be numbers of shape"):
            engine.infer_many(rows)


@pytest.mark.parametrize("executor", ["numpy", "numba"])
def test_many_at_once_are_each_alone(executor):
    engine = JunctionTree(executor=executor).compile(CHAIN)
    rows = np.random.default_rng(1).normal(size=(11, CHAIN.cells))
    many = engine.infer_many(rows, total=3.0)
    for row, found in zip(rows, many, strict=True):
        alone = engine.infer(Tables(CHAIN, row), total=3.0)
        np.testing.assert_array_equal(found.marginals.values, alone.marginals.values)
        assert found.log_partition == alone.log_partition
    assert engine.infer_many(np.zeros((0, CHAIN.cells))) == []


def test_nothing_is_read_that_a_call_did_not_write(awkward):
    """What another call left in a memory, one that ended early and one with zeros among them, changes no bit."""
    contraction = JunctionTree(executor="numpy").compile(awkward).contraction
    mild = Potentials(contraction, awkward).mild
    executor = CompiledExecutor(contraction, awkward, mild, 0.0)
    rng = np.random.default_rng(2)
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
