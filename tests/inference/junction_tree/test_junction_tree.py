"""The exact engine against brute force over every record, on awkward structures and hostile potentials."""

import math
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import InferenceError, StructureError
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.kernels import loading
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables


@pytest.mark.sampled(5)
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e3])
def test_matches_brute_force(awkward, scale, lab, executor):
    """Marginals and log Z equal the sum over all records, whatever the cliques and the spread of the potentials."""
    theta = Tables(awkward, scale * np.random.default_rng(7).normal(size=awkward.cells))
    beliefs = JunctionTree(executor=executor).compile(awkward).infer(theta)
    marginals, log_partition = lab.brute_force(awkward, theta)
    np.testing.assert_allclose(beliefs.marginals.values, marginals, rtol=1e-9, atol=1e-12)
    assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12, abs=1e-12)
    assert beliefs.converged and beliefs.iterations == 1


def test_third_order_chain_matches_brute_force(lab, executor):
    """The papers' model, 10 attributes of 3 labels: 59,049 records."""
    structure = Structure.chain(Domain.from_sizes({f"x{i}": 3 for i in range(10)}), order=3)
    theta = Tables(structure, np.random.default_rng(1).normal(size=structure.cells))
    beliefs = JunctionTree(executor=executor).compile(structure).infer(theta, total=1000)
    marginals, log_partition = lab.brute_force(structure, theta)
    np.testing.assert_allclose(beliefs.marginals.values, 1000 * marginals, rtol=1e-11)
    assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12)


@pytest.mark.sampled(5)
def test_marginals_are_the_gradient_of_log_z(awkward, executor):
    """Central differences of log Z, cell by cell (tied groups: the sum over their cliques)."""
    engine = JunctionTree(executor=executor).compile(awkward)
    theta = Tables(awkward, np.random.default_rng(5).normal(size=awkward.cells))
    marginals = engine.infer(theta).marginals.values
    step = 1e-5
    for cell in range(0, awkward.cells, max(1, awkward.cells // 20)):
        ends = []
        for sign in (step, -step):
            moved = theta.values.copy()
            moved[cell] += sign
            ends.append(engine.infer(theta.like(moved)).log_partition)
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(marginals[cell], abs=1e-8)


def test_structural_zeros(lab, executor):
    """-inf potentials forbid records exactly: their cells are exactly 0."""
    structure = lab.awkward["cyclic"]
    theta = Tables.zeros(structure).values.copy()
    theta[[0, 3, 8]] = -np.inf
    beliefs = JunctionTree(executor=executor).compile(structure).infer(Tables(structure, theta))
    marginals, log_partition = lab.brute_force(structure, Tables(structure, theta))
    assert beliefs.marginals.values[[0, 3, 8]].tolist() == [0, 0, 0]
    np.testing.assert_allclose(beliefs.marginals.values, marginals, rtol=1e-12)
    assert beliefs.log_partition == pytest.approx(log_partition)


def test_impossible_everywhere_is_refused(lab, executor):
    """No record with positive probability: an error, not a distribution; also when no single table is all -inf."""
    structure = lab.awkward["cyclic"]
    engine = JunctionTree(executor=executor).compile(structure)
    contradiction = {
        ("a", "b"): np.array([[0, 0, 0], [-np.inf] * 3]),
        ("c", "b"): np.zeros((4, 3)),
        ("a", "c"): np.array([[-np.inf] * 4, [0] * 4]),
    }
    for theta in (Tables(structure, np.full(structure.cells, -np.inf)), Tables.from_arrays(structure, contradiction)):
        for ask in (engine.infer, engine.maximize, lambda theta: engine.sample(theta, 1, np.random.default_rng(0))):
            with pytest.raises(InferenceError, match="every record has probability 0"):
                ask(theta)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_a_number_is_refused(bad, lab, executor):
    """NaN and +inf potentials name their table."""
    structure = lab.awkward["nested"]
    values = np.zeros(structure.cells)
    values[structure.slices[2]] = bad
    values[0] = -np.inf
    with pytest.raises(InferenceError, match="'a', 'b'"):
        JunctionTree(executor=executor).compile(structure).infer(Tables(structure, values))


def test_potentials_beyond_double_precision_are_refused(lab, executor):
    """A log-partition, or a most probable record, that overflows is an error, not infinity."""
    structure = lab.awkward["cyclic"]
    engine = JunctionTree(executor=executor).compile(structure)
    theta = Tables(structure, np.full(structure.cells, 1e308))
    for ask in (engine.infer, engine.maximize, lambda theta: engine.sample(theta, 1, np.random.default_rng(0))):
        with pytest.raises(InferenceError, match="too large"):
            ask(theta)


@pytest.mark.parametrize("total", [math.nan, math.inf, -1.0])
def test_senseless_totals_are_refused(total, lab, executor):
    """The total is a number of records."""
    structure = lab.awkward["single"]
    with pytest.raises(InferenceError, match="total"):
        JunctionTree(executor=executor).compile(structure).infer(Tables.zeros(structure), total=total)


def test_tables_of_another_structure_are_refused(lab, executor):
    """Potentials must belong to the compiled structure (or an equal one)."""
    engine = JunctionTree(executor=executor).compile(lab.awkward["single"])
    with pytest.raises(StructureError):
        engine.infer(Tables.zeros(lab.awkward["cyclic"]))
    assert engine.infer(Tables.zeros(Structure(lab.domain, [("e",)]))).log_partition == pytest.approx(math.log(144))


@pytest.mark.sampled(3)
def test_results_own_their_memory_and_calls_share_nothing(executor):
    """Eight threads on one engine get what one call at a time gets; earlier results never change."""
    structure = Structure.chain(Domain.from_sizes({f"x{i}": 6 for i in range(8)}), order=2)
    engine = JunctionTree(executor=executor).compile(structure)
    rng = np.random.default_rng(0)
    inputs = [Tables(structure, rng.normal(size=structure.cells)) for _ in range(40)]
    kept = [engine.infer(theta).marginals for theta in inputs]
    expected = [marginals.values.copy() for marginals in kept]
    barrier = threading.Barrier(8)

    def work(worker):
        barrier.wait()
        return [engine.infer(theta).marginals.values for theta in inputs]

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(work, range(8)):
            np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal([marginals.values for marginals in kept], expected)


def test_engines_travel(lab, executor):
    """A pickled engine gives the same answers."""
    engine = JunctionTree(executor=executor).compile(lab.awkward["complete"])
    theta = Tables(engine.structure, np.random.default_rng(0).normal(size=engine.structure.cells))
    expected = engine.infer(theta)
    travelled = pickle.loads(pickle.dumps(engine)).infer(theta)
    np.testing.assert_array_equal(travelled.marginals.values, expected.marginals.values)
    assert travelled.log_partition == expected.log_partition


def test_engines_travel_to_machines_without_numba_and_back(lab, monkeypatch):
    """What was asked for travels, not what it meant: "auto" is chosen again."""
    engine = JunctionTree().compile(lab.awkward["complete"])
    theta = Tables(engine.structure, np.random.default_rng(0).normal(size=engine.structure.cells))
    expected, sent = engine.infer(theta).log_partition, pickle.dumps(engine)
    with monkeypatch.context() as there:
        there.setattr(loading, "_LACKS", ["is not installed"])
        travelled = pickle.loads(sent)
        assert travelled.executor == "numpy"
        assert travelled.infer(theta).log_partition == pytest.approx(expected, rel=1e-12)
        sent = pickle.dumps(travelled)
    assert pickle.loads(sent).executor == engine.executor
