"""The executor on probabilities rescales, and hands over where they underflow."""

import itertools
import math

import numpy as np
import pytest
from attrs import evolve

from dpgm_core.domain.domain import Domain
from dpgm_core.inference.junction_tree import logspace
from dpgm_core.inference.junction_tree.engine import JunctionTree, Potentials
from dpgm_core.inference.junction_tree.lowering import lower
from dpgm_core.inference.junction_tree.probability import ProbabilityExecutor
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables


@pytest.mark.parametrize("size", [700.0, -700.0, 1e5, 1e15])
def test_no_underflow_in_a_large_chain(size):
    """A chain whose every table spans +-size: log Z by hand."""
    length, labels = 40, 3
    structure = Structure.chain(Domain.from_sizes({f"x{i}": labels for i in range(length)}))
    agree = np.full((labels, labels), -size)
    np.fill_diagonal(agree, size)
    theta = Tables.from_arrays(structure, dict.fromkeys(structure.cliques, agree))
    beliefs = JunctionTree(executor="numpy").compile(structure).infer(theta)
    ways_out = labels if size > 0 else labels * (labels - 1) ** (length - 1)
    expected = abs(size) * (length - 1) + math.log(ways_out)
    assert beliefs.log_partition == pytest.approx(expected, rel=1e-12)
    first = np.eye(labels) / labels if size > 0 else (1 - np.eye(labels)) / (labels * (labels - 1))
    np.testing.assert_allclose(beliefs.marginals["x0", "x1"], first, atol=1e-12)


@pytest.mark.parametrize("reach", [100.0, 250.0, 290.0, 310.0, 400.0, 700.0, 800.0])
def test_rescaled_tables_that_cancel(reach, lab):
    """Rescaling each table and message by its maximum would lose the records that matter; log Z would be wrong."""
    structure = Structure.chain(Domain.from_sizes({f"x{i}": 2 for i in range(6)}))
    left = np.array([[0.0, -reach], [0.0, -reach + 1]])
    right = np.array([[-reach, -reach - 0.5], [0.0, -0.25]])
    tables = {clique: left if i % 2 else right for i, clique in enumerate(structure.cliques)}
    for flip in itertools.product([False, True], repeat=2):
        turned = {
            clique: table[:: -1 if flip[0] else 1, :: -1 if flip[1] else 1].copy() for clique, table in tables.items()
        }
        theta = Tables.from_arrays(structure, turned)
        beliefs = JunctionTree(executor="numpy").compile(structure).infer(theta)
        marginals, log_partition = lab.brute_force(structure, theta)
        assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(beliefs.marginals.values, marginals, atol=1e-12)


@pytest.mark.parametrize("reach", [200.0, 299.0, 301.0, 360.0, 600.0])
def test_only_a_lost_record_is_possible(reach, lab):
    """Exact zeros forbid every record but those whose factors are tiny one by one."""
    structure = Structure(lab.DOMAIN, [("a", "e"), ("e", "b"), ("a", "b")])
    tables = {
        ("a", "e"): np.array([[0.0, -np.inf], [-np.inf, -reach]]),
        ("e", "b"): np.array([[-np.inf, 0.0, -np.inf], [-reach, 0.0, -reach]]),
        ("a", "b"): np.array([[0.0, -np.inf, 0.0], [-reach, -np.inf, -reach + 1]]),
    }
    theta = Tables.from_arrays(structure, tables)
    beliefs = JunctionTree(executor="numpy").compile(structure).infer(theta)
    assert beliefs.log_partition == pytest.approx(-3 * reach + math.log(1 + math.e) + math.log(4 * 3), rel=1e-12)
    np.testing.assert_allclose(
        beliefs.marginals["b", "a"][:, 1], [1 / (1 + math.e), 0, math.e / (1 + math.e)], atol=1e-12
    )


@pytest.fixture
def no_logarithms(monkeypatch):
    """Falling back on logarithms raises."""
    monkeypatch.setattr(logspace, "forward", None)


def test_an_adjoint_may_overflow_beside_an_exact_zero(lab):
    """y = 0 is impossible, but 29 mild tables favour it by more than e^709: 0 * infinity must not become an answer."""
    theta = lab.favoured_but_impossible()
    beliefs = JunctionTree(executor="numpy").compile(theta.structure).infer(theta)
    assert beliefs.log_partition == pytest.approx(29 * math.log(2) - 20 * 29, rel=1e-12)
    assert beliefs.marginals["y"].tolist() == [0.0, pytest.approx(1.0)]
    np.testing.assert_allclose(beliefs.marginals["y", "c3"], [[0, 0], [0.5, 0.5]], rtol=1e-12)


def test_a_long_chain_rescales_its_messages(monkeypatch, lab):
    """Ranges that add up past double precision but are small table by table stay on probabilities, and are right."""
    structure = Structure.chain(Domain.from_sizes({f"x{i}": 4 for i in range(400)}))
    engine = JunctionTree(executor="numpy").compile(structure)
    theta = Tables(structure, 3 * np.random.default_rng(2).normal(size=structure.cells) - 2)
    marginals, log_partition = lab.in_logarithms(engine, theta)
    monkeypatch.setattr(logspace, "forward", None)  # falling back would raise
    beliefs = engine.infer(theta)
    np.testing.assert_allclose(beliefs.marginals.values, marginals, rtol=1e-9, atol=1e-300)
    assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12)


@pytest.mark.parametrize("scale", [25.0, 29.9])
def test_an_adjoint_is_not_needed_where_its_value_is_zero(scale, no_logarithms, lab):
    """x0 = 0 is impossible, though all tables eliminated later favour it by far more than e^709."""
    length = 60
    structure = Structure.chain(Domain.from_sizes({f"x{i}": 2 for i in range(length)}))
    stay = np.array([[scale, -np.inf], [-np.inf, -scale]])
    tables = dict.fromkeys(structure.cliques, stay)
    tables[structure.cliques[0]] = np.array([[-np.inf, -np.inf], [-np.inf, 0.0]])
    beliefs = lab.along(structure, "numpy").infer(Tables.from_arrays(structure, tables))
    assert beliefs.log_partition == pytest.approx(-scale * (length - 2), rel=1e-12)
    for table in beliefs.marginals.values.reshape(-1, 4):
        np.testing.assert_allclose(table, [0, 0, 0, 1], rtol=1e-12)


@pytest.mark.parametrize("depth", [299.0, 400.0, 1e4, 1e15])
def test_cells_too_small_to_matter_need_no_logarithms(depth, no_logarithms, lab):
    """Penalties beyond doubles on records without weight are raised, and marginals that small are 0."""
    structure = Structure(lab.DOMAIN, [("a", "b"), ("b", "c"), ("c", "e"), ("e", "f"), ("f", "a")])
    rng = np.random.default_rng(5)
    values = rng.normal(size=structure.cells)
    values[rng.random(structure.cells) < 0.2] -= depth
    values[rng.random(structure.cells) < 0.1] = -np.inf
    values[[part.start for part in structure.slices]] = 0.0
    theta = Tables(structure, values)
    marginals, log_partition = lab.brute_force(structure, theta)
    beliefs = JunctionTree(executor="numpy").compile(structure).infer(theta)
    assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12)
    np.testing.assert_allclose(beliefs.marginals.values, marginals, rtol=1e-12, atol=1e-37)
    assert not beliefs.marginals.values[marginals == 0].any()


def test_a_small_cell_that_matters_is_left_to_logarithms(lab):
    """The only possible record passes through a cell 400 nats below its table's largest."""
    structure = Structure(lab.DOMAIN, [("a", "e"), ("e",)])
    theta = Tables.from_arrays(
        structure, {("a", "e"): np.array([[0.0, -401.0], [0.0, -400.0]]), ("e",): np.array([-np.inf, 0.0])}
    )
    engine = JunctionTree(executor="numpy").compile(structure)
    ready = engine._potentials.ready(*engine._potentials.checked(theta))
    assert engine._run(ready.fill, ready.lows, ready.highs, zeros=ready.zeros) is None
    beliefs = engine.infer(theta)
    assert beliefs.log_partition == pytest.approx(-400 + math.log(1 + math.exp(-1)) + math.log(3 * 4 * 3), rel=1e-12)


def test_a_call_inside_a_call_shares_no_scratch(lab):
    """The worst interleaving of two calls, made certain: the second runs while the first's tables are written."""
    structure = lab.AWKWARD["complete"]
    engine = JunctionTree(executor="numpy").compile(structure)
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
    shift = engine._potentials.ready(*engine._potentials.checked(one)).shift
    assert log_partition + shift == pytest.approx(expected[0].log_partition, rel=1e-12)
    np.testing.assert_array_equal(inner[0].marginals.values, expected[1].marginals.values)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("turned", [lambda letters: letters[::-1], lambda letters: letters[1:] + letters[:1]])
def test_axes_may_lie_in_any_order(awkward, turned, lab):
    """What is laid out for other kernels runs on numpy too: where a sum's axes turn, tables are turned."""
    contraction = JunctionTree(executor="numpy").compile(awkward).contraction
    made = {step.out for step in contraction.steps}
    nodes = tuple(turned(one) if node in made else one for node, one in enumerate(contraction.nodes))
    contraction = evolve(contraction, nodes=nodes)
    theta = np.random.default_rng(4).normal(size=awkward.cells)
    marginals, _ = lab.brute_force(awkward, Tables(awkward, theta))
    ready = Potentials(contraction, awkward).ready(theta, np.maximum.reduceat(theta, [s.start for s in awkward.slices]))
    for keep in (False, True):
        executor = ProbabilityExecutor(contraction, lower(contraction, awkward, keep=keep), awkward)
        found = executor(ready.fill, ready.lows, ready.highs, zeros=ready.zeros)
        np.testing.assert_allclose(found[0], marginals, atol=1e-13)


@pytest.mark.parametrize("sign", [1, -1])
def test_tables_that_cancel_only_at_the_end(executor, sign):
    """Half the tables at 29 nats, half at -29: log Z is near 0, and products on the way reach beyond doubles."""
    names = [f"x{i}" for i in range(61)]
    chain = Structure.chain(Domain.from_sizes(dict.fromkeys(names, 2)))
    theta = 0.1 * np.random.default_rng(0).normal(size=chain.cells)
    potentials = Tables(chain, theta + sign * np.repeat([29.0, -29.0], chain.cells // 2))
    beliefs = JunctionTree(executor=executor).compile(chain).infer(potentials)
    expected = JunctionTree(executor="log").compile(chain).infer(Tables(chain, theta))
    np.testing.assert_allclose(beliefs.marginals.values, expected.marginals.values, atol=1e-11)
    assert beliefs.log_partition == pytest.approx(expected.log_partition, abs=1e-11)
