"""Inference in logarithms, where probabilities do not reach, and what is drawn from it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import InferenceError
from dpgm_core.inference.junction_tree import logspace
from dpgm_core.inference.junction_tree.engine import JunctionTree, plan_inference
from dpgm_core.inference.junction_tree.logspace import Logarithms, _states, divide_rows
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
