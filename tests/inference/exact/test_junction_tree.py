"""The exact engine against brute force over every record, on awkward structures and hostile potentials."""

import itertools
import math
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np
import pytest
from scipy import stats

from dpgm_core.domain import Domain
from dpgm_core.errors import InferenceError, StructureError, TooLarge
from dpgm_core.inference.exact import logspace
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.inference.exact.probability import ProbabilityExecutor
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 4, "d": 1, "e": 2, "f": 3})
AWKWARD = {
    "cyclic": Structure(DOMAIN, [("a", "b"), ("c", "b"), ("a", "c")]),
    "long cycle": Structure(DOMAIN, [("a", "b"), ("b", "c"), ("c", "e"), ("e", "f"), ("f", "a")]),
    "missing attributes": Structure(DOMAIN, [("b", "c")]),
    "duplicate": Structure(DOMAIN, [("b", "c"), ("c", "b"), ("b", "c")]),
    "nested": Structure(DOMAIN, [("f", "a", "b"), ("b",), ("a", "b"), ("b", "f")]),
    "single": Structure(DOMAIN, [("e",)]),
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
    with mock.patch.object(ProbabilityExecutor, "__call__", return_value=None):
        beliefs = engine.infer(theta)
    return beliefs.marginals.values, beliefs.log_partition


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e3])
def test_matches_brute_force(name, scale):
    """Marginals and log Z equal the sum over all records, whatever the cliques and the spread of the potentials."""
    structure = AWKWARD[name]
    theta = Tables(structure, scale * np.random.default_rng(7).normal(size=structure.cells))
    beliefs = JunctionTree().compile(structure).infer(theta)
    marginals, log_partition = brute_force(structure, theta)
    np.testing.assert_allclose(beliefs.marginals.values, marginals, rtol=1e-9, atol=1e-12)
    assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12, abs=1e-12)
    assert beliefs.converged and beliefs.iterations == 1


@pytest.mark.parametrize("name", AWKWARD)
def test_logarithms_equal_probabilities(name):
    """Both executors of a plan give the same answer where both apply, and where tables hold exact zeros."""
    structure = AWKWARD[name]
    engine = JunctionTree().compile(structure)
    rng = np.random.default_rng(3)
    values = rng.normal(size=structure.cells)
    values[rng.random(structure.cells) < 0.2] = -np.inf
    theta = Tables(structure, values)
    try:
        beliefs = engine.infer(theta)
    except InferenceError:
        with pytest.raises(InferenceError):
            in_logarithms(engine, theta)
        return
    marginals, log_partition = in_logarithms(engine, theta)
    np.testing.assert_allclose(beliefs.marginals.values, marginals, rtol=1e-10, atol=1e-14)
    assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12, abs=1e-12)


def test_third_order_chain_matches_brute_force():
    """The papers' model, 10 attributes of 3 labels: 59,049 records."""
    structure = Structure.chain(Domain.from_sizes({f"x{i}": 3 for i in range(10)}), order=3)
    theta = Tables(structure, np.random.default_rng(1).normal(size=structure.cells))
    beliefs = JunctionTree().compile(structure).infer(theta, total=1000)
    marginals, log_partition = brute_force(structure, theta)
    np.testing.assert_allclose(beliefs.marginals.values, 1000 * marginals, rtol=1e-11)
    assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12)


@pytest.mark.parametrize("name", AWKWARD)
def test_marginals_are_the_gradient_of_log_z(name):
    """Central differences of log Z, cell by cell (tied groups: the sum over their cliques)."""
    structure = AWKWARD[name]
    engine = JunctionTree().compile(structure)
    theta = Tables(structure, np.random.default_rng(5).normal(size=structure.cells))
    marginals = engine.infer(theta).marginals.values
    step = 1e-5
    for cell in range(0, structure.cells, max(1, structure.cells // 20)):
        ends = []
        for sign in (step, -step):
            moved = theta.values.copy()
            moved[cell] += sign
            ends.append(engine.infer(theta.like(moved)).log_partition)
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(marginals[cell], abs=1e-8)


@pytest.mark.parametrize("size", [700.0, -700.0, 1e5, 1e15])
def test_no_underflow_in_a_large_chain(size):
    """A chain whose every table spans +-size: log Z by hand."""
    length, labels = 40, 3
    structure = Structure.chain(Domain.from_sizes({f"x{i}": labels for i in range(length)}))
    agree = np.full((labels, labels), -size)
    np.fill_diagonal(agree, size)
    theta = Tables.from_arrays(structure, dict.fromkeys(structure.cliques, agree))
    beliefs = JunctionTree().compile(structure).infer(theta)
    ways_out = labels if size > 0 else labels * (labels - 1) ** (length - 1)
    expected = abs(size) * (length - 1) + math.log(ways_out)
    assert beliefs.log_partition == pytest.approx(expected, rel=1e-12)
    first = np.eye(labels) / labels if size > 0 else (1 - np.eye(labels)) / (labels * (labels - 1))
    np.testing.assert_allclose(beliefs.marginals["x0", "x1"], first, atol=1e-12)


@pytest.mark.parametrize("reach", [100.0, 250.0, 290.0, 310.0, 400.0, 700.0, 800.0])
def test_rescaled_tables_that_cancel(reach):
    """Adversary: each table's largest cells meet the smallest cells of its neighbours, so that rescaling every table
    and message by its maximum loses the records that matter. log Z would be finite and wrong."""
    structure = Structure.chain(Domain.from_sizes({f"x{i}": 2 for i in range(6)}))
    left = np.array([[0.0, -reach], [0.0, -reach + 1]])
    right = np.array([[-reach, -reach - 0.5], [0.0, -0.25]])
    tables = {clique: left if i % 2 else right for i, clique in enumerate(structure.cliques)}
    for flip in itertools.product([False, True], repeat=2):
        turned = {
            clique: table[:: -1 if flip[0] else 1, :: -1 if flip[1] else 1].copy() for clique, table in tables.items()
        }
        theta = Tables.from_arrays(structure, turned)
        beliefs = JunctionTree().compile(structure).infer(theta)
        marginals, log_partition = brute_force(structure, theta)
        assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(beliefs.marginals.values, marginals, atol=1e-12)


@pytest.mark.parametrize("reach", [200.0, 299.0, 301.0, 360.0, 600.0])
def test_only_a_lost_record_is_possible(reach):
    """Exact zeros forbid every record but those whose factors are tiny one by one."""
    structure = Structure(DOMAIN, [("a", "e"), ("e", "b"), ("a", "b")])
    tables = {
        ("a", "e"): np.array([[0.0, -np.inf], [-np.inf, -reach]]),
        ("e", "b"): np.array([[-np.inf, 0.0, -np.inf], [-reach, 0.0, -reach]]),
        ("a", "b"): np.array([[0.0, -np.inf, 0.0], [-reach, -np.inf, -reach + 1]]),
    }
    theta = Tables.from_arrays(structure, tables)
    beliefs = JunctionTree().compile(structure).infer(theta)
    assert beliefs.log_partition == pytest.approx(-3 * reach + math.log(1 + math.e) + math.log(4 * 3), rel=1e-12)
    np.testing.assert_allclose(
        beliefs.marginals["b", "a"][:, 1], [1 / (1 + math.e), 0, math.e / (1 + math.e)], atol=1e-12
    )


def test_an_adjoint_may_overflow_beside_an_exact_zero():
    """y = 0 is impossible, but 29 mild tables favour it by more than e^709: 0 * infinity must not become an answer."""
    domain = Domain.from_sizes({"y": 2} | {f"c{i}": 2 for i in range(29)})
    structure = Structure(domain, [("y",), *(("y", f"c{i}") for i in range(29))])
    tables = {("y",): np.array([-np.inf, 0.0])}
    for i in range(29):
        tables["y", f"c{i}"] = np.array([[29.0, 29.0], [0.0, 0.0]] if i < 9 else [[0.0, 0.0], [-29.0, -29.0]])
    beliefs = JunctionTree().compile(structure).infer(Tables.from_arrays(structure, tables))
    assert beliefs.log_partition == pytest.approx(29 * math.log(2) - 20 * 29, rel=1e-12)
    assert beliefs.marginals["y"].tolist() == [0.0, pytest.approx(1.0)]
    np.testing.assert_allclose(beliefs.marginals["y", "c3"], [[0, 0], [0.5, 0.5]], rtol=1e-12)


def test_a_long_chain_rescales_its_messages(monkeypatch):
    """Ranges that add up past double precision but are small table by table stay on probabilities, and are right."""
    structure = Structure.chain(Domain.from_sizes({f"x{i}": 4 for i in range(400)}))
    engine = JunctionTree().compile(structure)
    theta = Tables(structure, 3 * np.random.default_rng(2).normal(size=structure.cells) - 2)
    marginals, log_partition = in_logarithms(engine, theta)
    monkeypatch.setattr(logspace, "forward", None)  # falling back would raise
    beliefs = engine.infer(theta)
    np.testing.assert_allclose(beliefs.marginals.values, marginals, rtol=1e-9, atol=1e-300)
    assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12)


def test_structural_zeros():
    """-inf potentials forbid records exactly: their cells are exactly 0."""
    structure = AWKWARD["cyclic"]
    theta = Tables.zeros(structure).values.copy()
    theta[[0, 3, 8]] = -np.inf
    beliefs = JunctionTree().compile(structure).infer(Tables(structure, theta))
    marginals, log_partition = brute_force(structure, Tables(structure, theta))
    assert beliefs.marginals.values[[0, 3, 8]].tolist() == [0, 0, 0]
    np.testing.assert_allclose(beliefs.marginals.values, marginals, rtol=1e-12)
    assert beliefs.log_partition == pytest.approx(log_partition)


def test_impossible_everywhere_is_refused():
    """No record with positive probability: an error, not a distribution; also when no single table is all -inf."""
    structure = AWKWARD["cyclic"]
    engine = JunctionTree().compile(structure)
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
def test_not_a_number_is_refused(bad):
    """NaN and +inf potentials name their table."""
    structure = AWKWARD["nested"]
    values = np.zeros(structure.cells)
    values[structure.slices[2]] = bad
    values[0] = -np.inf
    with pytest.raises(InferenceError, match="'a', 'b'"):
        JunctionTree().compile(structure).infer(Tables(structure, values))


def test_potentials_beyond_double_precision_are_refused():
    """A log-partition, or a most probable record, that overflows is an error, not infinity."""
    structure = AWKWARD["cyclic"]
    engine = JunctionTree().compile(structure)
    theta = Tables(structure, np.full(structure.cells, 1e308))
    for ask in (engine.infer, engine.maximize, lambda theta: engine.sample(theta, 1, np.random.default_rng(0))):
        with pytest.raises(InferenceError, match="too large"):
            ask(theta)


@pytest.mark.parametrize("total", [math.nan, math.inf, -1.0])
def test_senseless_totals_are_refused(total):
    """The total is a number of records."""
    structure = AWKWARD["single"]
    with pytest.raises(InferenceError, match="total"):
        JunctionTree().compile(structure).infer(Tables.zeros(structure), total=total)


def test_tables_of_another_structure_are_refused():
    """Potentials must belong to the compiled structure (or an equal one)."""
    engine = JunctionTree().compile(AWKWARD["single"])
    with pytest.raises(StructureError):
        engine.infer(Tables.zeros(AWKWARD["cyclic"]))
    assert engine.infer(Tables.zeros(Structure(DOMAIN, [("e",)]))).log_partition == pytest.approx(math.log(144))


@pytest.mark.parametrize("rows", [14, 60])
def test_what_cannot_fit_is_refused_at_once(rows):
    """A wide grid is refused with its sizes and a way out, before anything is allocated."""
    structure = Structure.grid(Domain.from_sizes({f"x{i}": 10 for i in range(rows**2)}), rows, rows)
    with pytest.raises(TooLarge, match=r"treewidth.*max_bytes = 2\.0 GiB.*loopy-bp"):
        JunctionTree().compile(structure)


def test_the_limit_is_the_memory_taken():
    """A limit of exactly the announced bytes is enough; one byte less is not."""
    structure = Structure.chain(Domain.from_sizes({f"x{i}": 5 for i in range(8)}), order=3)
    engine = JunctionTree().compile(structure)
    assert JunctionTree(max_bytes=engine.needs.peak_bytes).compile(structure).needs == engine.needs
    with pytest.raises(TooLarge, match="treewidth 3"):
        JunctionTree(max_bytes=engine.needs.peak_bytes - 1).compile(structure)


def test_cost_of_a_chain():
    """Sizes by hand: a - b - c of 2, 3, 2 labels; sum a, product with (b, c) summing b, sum c."""
    engine = JunctionTree().compile(Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2})))
    assert (engine.needs.treewidth, engine.needs.cells, engine.needs.largest) == (1, 3 + 2 + 1, 3)
    assert engine.needs.multiply_adds == 2 * 6 + 3 * 6 + 2 * 2


def test_results_own_their_memory_and_calls_share_nothing():
    """Eight threads on one engine get what one call at a time gets; earlier results never change."""
    structure = Structure.chain(Domain.from_sizes({f"x{i}": 6 for i in range(8)}), order=2)
    engine = JunctionTree().compile(structure)
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


def test_a_call_inside_a_call_shares_no_scratch():
    """The worst interleaving of two calls, made certain: the second runs while the first's tables are written."""
    structure = AWKWARD["complete"]
    engine = JunctionTree().compile(structure)
    rng = np.random.default_rng(0)
    one, two = (Tables(structure, rng.normal(size=structure.cells)) for _ in range(2))
    expected = engine.infer(one), engine.infer(two)
    inner = []

    def fill(out):
        np.exp(one.values, out)
        inner.append(engine.infer(two))

    groups = len(structure.groups)
    marginals, log_partition = engine._run(fill, [-9.0] * groups, [9.0] * groups, zeros=False)
    np.testing.assert_array_equal(marginals, expected[0].marginals.values)
    assert log_partition + engine._log_free == pytest.approx(expected[0].log_partition, rel=1e-12)
    np.testing.assert_array_equal(inner[0].marginals.values, expected[1].marginals.values)


def test_engines_travel():
    """A pickled engine gives the same answers."""
    engine = JunctionTree().compile(AWKWARD["complete"])
    theta = Tables(engine.structure, np.random.default_rng(0).normal(size=engine.structure.cells))
    expected = engine.infer(theta)
    travelled = pickle.loads(pickle.dumps(engine)).infer(theta)
    np.testing.assert_array_equal(travelled.marginals.values, expected.marginals.values)
    assert travelled.log_partition == expected.log_partition


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("zeros", [0.0, 0.15])
def test_maximize_matches_brute_force(name, zeros):
    """The record found has the largest log-probability, and its value is the one returned."""
    structure = AWKWARD[name]
    rng = np.random.default_rng(11)
    values = 5 * rng.normal(size=structure.cells)
    if structure.cells > 10:
        values[rng.random(structure.cells) < zeros] = -np.inf
    theta = Tables(structure, values)
    joint = log_joint(structure, theta)
    codes, value = JunctionTree().compile(structure).maximize(theta)
    assert list(codes) == list(structure.domain.names)
    assert value == pytest.approx(joint.max(), rel=1e-12)
    assert joint[tuple(codes.values())] == pytest.approx(joint.max(), rel=1e-12)


@pytest.mark.parametrize("block", [40_000, 5])
@pytest.mark.parametrize("name", ["cyclic", "disconnected", "large cliques, odd axes", "tied, disjoint"])
def test_samples_follow_the_model(name, block):
    """Chi-squared over all cells of the joint table, for records drawn together (conditional tables) and a few at a
    time (weights of each record); false alarm 1e-6 per case (fixed seed)."""
    structure = AWKWARD[name]
    theta = Tables(structure, np.random.default_rng(13).normal(size=structure.cells))
    count = 40_000 if block == 40_000 else 3_000
    engine, generator = JunctionTree().compile(structure), np.random.default_rng(17)
    blocks = [engine.sample(theta, block, generator) for _ in range(count // block)]
    records = [np.concatenate(column) for column in zip(*blocks, strict=True)]
    assert [column.dtype for column in records] == [np.dtype(np.uint8)] * 6
    shape = DOMAIN.shape(DOMAIN.names)
    seen = np.bincount(np.ravel_multi_index(records, shape), minlength=math.prod(shape))
    joint = np.exp(log_joint(structure, theta)).reshape(-1)
    expected = count * joint / joint.sum()
    common = expected >= 5
    pooled_seen = np.append(seen[common], seen[~common].sum())
    pooled = np.append(expected[common], expected[~common].sum())
    keep = pooled > 0
    assert stats.chisquare(pooled_seen[keep], pooled[keep]).pvalue > 1e-6


def test_samples_avoid_impossible_codes_and_any_count_will_do():
    """-inf cells are never drawn; 0 records are 0 records; more than one block of records is one array."""
    structure = Structure(DOMAIN, [("a", "b"), ("b", "c")])
    values = np.zeros(structure.cells)
    values[[0, 4, 7, 17]] = -np.inf
    theta = Tables(structure, values)
    engine = JunctionTree().compile(structure)
    assert [len(column) for column in engine.sample(theta, 0, np.random.default_rng(0))] == [0] * 6
    records = engine.sample(theta, 70_000, np.random.default_rng(0))
    counts = np.zeros((2, 3, 4))
    np.add.at(counts, tuple(records[:3]), 1)
    forbidden = log_joint(structure, theta)[:, :, :, 0, 0, 0] == -np.inf
    assert counts.sum() == 70_000 and counts[forbidden].sum() == 0 and (counts[~forbidden] > 0).all()
    with pytest.raises(InferenceError, match="whole number"):
        engine.sample(theta, -1, np.random.default_rng(0))


def test_a_star_of_many_leaves():
    """A naive-Bayes model: 1,200 messages meet in one bucket, more than Python's stack is deep."""
    domain = Domain.from_sizes({"root": 3} | {f"leaf{i}": 2 for i in range(1200)})
    structure = Structure(domain, [(f"leaf{i}", "root") for i in range(1200)])
    theta = Tables(structure, 4 * np.random.default_rng(4).normal(size=structure.cells))
    beliefs = JunctionTree().compile(structure).infer(theta)
    tables = theta.values.reshape(1200, 2, 3)
    leaves = np.logaddexp(tables[:, 0], tables[:, 1])
    root = leaves.sum(axis=0)
    log_partition = np.logaddexp.reduce(root)
    assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12)
    expected = np.exp(tables - leaves[:, None] + root - log_partition)
    np.testing.assert_allclose(beliefs.marginals.values, expected.reshape(-1), rtol=1e-9, atol=1e-300)
