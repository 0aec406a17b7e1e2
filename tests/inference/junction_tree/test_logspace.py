"""Inference in logarithms, where probabilities do not reach, and what is drawn from it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from attrs import evolve
from scipy import stats

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import InferenceError
from dpgm_core.inference.junction_tree import logspace
from dpgm_core.inference.junction_tree.engine import JunctionTree, Potentials, plan_inference
from dpgm_core.inference.junction_tree.logspace import Logarithms, _states, divide_rows
from dpgm_core.inference.junction_tree.lowering import lower
from dpgm_core.inference.junction_tree.probability import ProbabilityExecutor
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing.oracles import enumerated


@pytest.mark.sampled(5)
@pytest.mark.parametrize("chunk", [2**18, 60])
@pytest.mark.parametrize("inner", [1, 3, 20])
@pytest.mark.parametrize("spread", [1.0, 100.0, 500.0, 1e5])
@pytest.mark.parametrize("zeros", [0.0, 0.5, 0.95])
def test_a_contraction_is_the_sum_of_its_terms(zeros, spread, inner, chunk, monkeypatch):
    """Whatever the span, however few or many terms, with rows and columns of nothing but zeros: to the last digits."""
    monkeypatch.setattr(logspace, "_CHUNK", chunk)
    rng = np.random.default_rng(int(spread) + inner)
    p, q = spread * rng.normal(size=(2, 7, inner)), spread * rng.normal(size=(2, inner, 5))
    for table in (p, q):
        table[rng.random(table.shape) < zeros] = -np.inf
    terms = (p[:, :, :, None] + q[:, None]).astype(np.longdouble)
    top = np.maximum(terms.max(axis=2, keepdims=True), -1e30)
    with np.errstate(divide="ignore"):
        expected = np.log(np.exp(terms - top).sum(axis=2)) + top[:, :, 0]
    expected[(terms == -np.inf).all(axis=2)] = -np.inf
    found = logspace.log_contract(p, q.transpose(0, 2, 1).copy().transpose(0, 2, 1))
    np.testing.assert_allclose(found, expected.astype(float), rtol=1e-13, atol=1e-13)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("block", [40_000, 5])
@pytest.mark.parametrize("name", ["cyclic", "disconnected", "large cliques, odd axes", "tied, disjoint"])
def test_samples_follow_the_model(name, block, lab):
    """Chi-squared over all cells of the joint table, for records drawn together (conditional tables) and a few at a
    time (weights of each record); false alarm 1e-6 per case (fixed seed)."""
    structure = lab.AWKWARD[name]
    theta = Tables(structure, np.random.default_rng(13).normal(size=structure.cells))
    count = 40_000 if block == 40_000 else 3_000
    engine, generator = JunctionTree().compile(structure), np.random.default_rng(17)
    blocks = [engine.sample(theta, block, generator) for _ in range(count // block)]
    records = [np.concatenate(column) for column in zip(*blocks, strict=True)]
    assert [column.dtype for column in records] == [np.dtype(np.uint8)] * 6
    shape = lab.DOMAIN.shape(lab.DOMAIN.names)
    seen = np.bincount(np.ravel_multi_index(records, shape), minlength=math.prod(shape))
    joint = np.exp(lab.log_joint(structure, theta)).reshape(-1)
    expected = count * joint / joint.sum()
    common = expected >= 5
    pooled_seen = np.append(seen[common], seen[~common].sum())
    pooled = np.append(expected[common], expected[~common].sum())
    keep = pooled > 0
    assert stats.chisquare(pooled_seen[keep], pooled[keep]).pvalue > 1e-6


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9, 33])
def test_codes_invert_the_distribution_function(size):
    """The code of a uniform number u is how many codes' weights up to it are at most u of all; never a weight of 0."""
    rng = np.random.default_rng(size)
    weights = rng.normal(size=(50, size)) * 3
    weights[rng.random(weights.shape) < 0.3] = -np.inf
    weights[:, rng.integers(size)] = 0.0
    rows = rng.integers(50, size=400)
    codes = logspace.at_random(np.random.default_rng(1))(weights)(rows)
    upto = np.cumsum(np.exp(weights - weights.max(axis=1, keepdims=True)), axis=1)[rows]
    at = np.random.default_rng(1).random(400) * upto[:, -1]
    assert codes.tolist() == (upto <= at[:, None]).sum(axis=1).tolist()
    assert np.isfinite(weights[rows, codes]).all()


def test_samples_avoid_impossible_codes_and_any_count_will_do(lab):
    """-inf cells are never drawn; 0 records are 0 records; more than one block of records is one array."""
    structure = Structure(lab.DOMAIN, [("a", "b"), ("b", "c")])
    values = np.zeros(structure.cells)
    values[[0, 4, 7, 17]] = -np.inf
    theta = Tables(structure, values)
    engine = JunctionTree().compile(structure)
    assert [len(column) for column in engine.sample(theta, 0, np.random.default_rng(0))] == [0] * 6
    records = engine.sample(theta, 70_000, np.random.default_rng(0))
    counts = np.zeros((2, 3, 4))
    np.add.at(counts, tuple(records[:3]), 1)
    forbidden = lab.log_joint(structure, theta)[:, :, :, 0, 0, 0] == -np.inf
    assert counts.sum() == 70_000 and counts[forbidden].sum() == 0 and (counts[~forbidden] > 0).all()
    with pytest.raises(InferenceError, match="whole number"):
        engine.sample(theta, -1, np.random.default_rng(0))


# --- Exact inference in logarithms, against a sum over all records, also where nothing else would do


def logarithms_of(structure):
    contraction = plan_inference(structure, 2**30).contraction
    free = [structure.domain[name].size for name in structure.uncovered]
    return Logarithms(contraction, structure), float(np.log(free).sum() if free else 0.0)


def test_impossible_records_are_refused_or_answered_by_minus_infinity(lab):
    """`infer` leaves it to whoever asked to say so."""
    structure = lab.AWKWARD["star"]
    made, _ = logarithms_of(structure)
    theta = np.full(structure.cells, -np.inf)
    marginals, total = made.infer(theta)
    assert total == -np.inf and not marginals.any()
    for walk in (lambda: made.forward(theta, logspace.log_contract), lambda: made.curvature(theta)):
        with pytest.raises(InferenceError, match="every record has probability 0"):
            walk()


# --- Rounded records: every table near its expectation, no bias, and nothing that is impossible


SMALL = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 2, "e": 1})
STRUCTURES = [
    Structure(SMALL, [("a", "b"), ("b", "c"), ("c", "d")]),
    Structure(SMALL, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]),
    Structure(SMALL, [("b", "a"), ("d",)]),
    Structure(SMALL, [("d",)], tied=[[("a", "c"), ("c", "d")]]),
]


def potentials_of(structure: Structure, seed: int, zeros: float = 0.0, spread: float = 1.2) -> Tables:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=structure.cells) * spread
    values[rng.random(structure.cells) < zeros] = -np.inf
    return Tables(structure, values)


def table_of(columns, names, structure: Structure) -> np.ndarray:
    places = [structure.domain.names.index(name) for name in names]
    found = np.zeros(structure.domain.shape(names))
    np.add.at(found, tuple(np.asarray(columns[place]) for place in places), 1)
    return found


@pytest.mark.sampled(4)
@pytest.mark.parametrize("number", range(len(STRUCTURES)))
def test_no_record_is_favoured(number):
    """500 samples of 7 rows against all 24 records. The first rows of the samples are independent draws: chi-squared,
    false alarm 1e-6. The mean share of each record with 50 expected: z from the spread of the samples, |z| < 6, false
    alarm 24 * 2e-9 for normal means."""
    structure = STRUCTURES[number]
    theta = potentials_of(structure, number, zeros=0.1 * (number % 2))
    engine, generator = JunctionTree().compile(structure), np.random.default_rng(number)
    chances = enumerated(theta).probabilities
    samples = [engine.rounded(theta, 7, generator) for _ in range(500)]
    rows = np.stack([np.ravel_multi_index(tuple(map(np.int64, one)), (2, 3, 2, 2, 1)) for one in samples])
    assert not np.bincount(rows.reshape(-1), minlength=24)[chances == 0].any()
    common = chances * 500 >= 5
    seen, expected = np.bincount(rows[:, 0], minlength=24), 500 * chances
    tested = [np.append(one[common], one[~common].sum()) for one in (seen, expected)]
    if tested[1][-1] < 1:  # too few for a cell of their own
        tested = [one[:-1] for one in tested]
    statistic = ((tested[0] - tested[1]) ** 2 / tested[1]).sum()
    assert statistic < stats.chi2.ppf(1 - 1e-6, len(tested[0]) - 1)
    counts = np.stack([np.bincount(row, minlength=24) for row in rows])
    z = (counts.mean(axis=0) - 7 * chances) / np.maximum(counts.std(axis=0, ddof=1), 1e-9) * np.sqrt(500)
    assert (np.abs(z[chances * 3500 >= 50]) < 6).all()


def test_tables_err_by_roundings():
    """Of 50,000 rows the mean error is below .1 of that of independent rows inside cliques, below .8 across."""
    sizes = [9, 16, 7, 15, 6, 5, 2, 12, 10, 8, 20, 12, 3, 2]
    domain = Domain.from_sizes({f"x{number}": size for number, size in enumerate(sizes)})
    structure = Structure(domain, [(f"x{number}", f"x{(number - 1) // 2}") for number in range(1, 14)])
    theta = potentials_of(structure, 0)
    engine = JunctionTree().compile(structure)
    across = [("x3", "x4"), ("x5", "x6"), ("x8", "x9"), ("x0", "x7")]
    exact = dict(zip(across, engine.answers(theta, across), strict=True))
    exact |= dict(engine.infer(theta).marginals.items())
    errors = {}
    for method in (engine.sample, engine.rounded):
        columns = method(theta, 50_000, np.random.default_rng(1))
        assert {len(column) for column in columns} == {50_000}
        for names, chances in exact.items():
            apart = np.abs(table_of(columns, names, structure) - 50_000 * chances).sum()
            errors.setdefault(method.__name__, {})[names] = apart
    inside, beside = (
        [sum(found[names] for names in chosen) for found in (errors["rounded"], errors["sample"])]
        for chosen in (structure.cliques, across)
    )
    assert inside[0] < 0.1 * inside[1] and beside[0] < 0.8 * beside[1]


def test_each_state_is_divided_to_the_next_whole_number():
    """Rows of every state get n p of each code, rounded down or up; none where p is 0, at either end too."""
    generator = np.random.default_rng(2)
    shares = generator.dirichlet(np.full(6, 0.5), size=40)
    shares[generator.random(shares.shape) < 0.3] = 0
    shares[:, 2] += 0.01
    shares /= shares.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        law = np.log(shares)
    states = generator.permutation(np.repeat(np.arange(40), generator.integers(1, 60, size=40)))
    order = generator.permutation(len(states))
    codes, after = divide_rows(states, lambda rows: law[states[rows]], 6, order, generator)
    found = np.zeros((40, 6))
    np.add.at(found, (states, codes), 1)
    expected = shares * np.bincount(states)[:, None]
    assert (np.abs(found - expected) < 1 + 1e-9).all() and not found[shares == 0].any()
    assert sorted(after.tolist()) == list(range(len(states)))
    assert (np.diff(states[after]) >= 0).all()


def test_any_count_will_do_and_odd_ones_are_refused():
    """0 and 1 rows; what is no number of rows; attributes of one label and in no clique."""
    structure = STRUCTURES[2]
    theta = potentials_of(structure, 5)
    engine = JunctionTree().compile(structure)
    for count in (0, 1):
        assert [len(column) for column in engine.rounded(theta, count, np.random.default_rng(0))] == [count] * 5
    for count in (-1, True, 2.0):
        with pytest.raises(InferenceError, match="whole number"):
            engine.rounded(theta, count, np.random.default_rng(0))
    columns = engine.rounded(theta, 100, np.random.default_rng(0))
    assert columns[2].sum() == 50 and not columns[4].any()  # uniform, and of one label


def test_states_of_many_attributes_stay_apart():
    """More combinations than a number holds are numbered by those that occur."""
    generator = np.random.default_rng(3)
    columns = [generator.integers(0, 2, 50) * (size - 1) for size in [2**20] * 5]
    found = _states(columns, [2**20] * 5, 50)
    combos = np.unique(np.stack(columns), axis=1, return_inverse=True)[1].reshape(-1)
    assert len(set(zip(found.tolist(), combos.tolist(), strict=True))) == len(set(combos.tolist())) == len(set(found))


# --- The executor on probabilities rescales, and hands over where they underflow --------------------------------------


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
