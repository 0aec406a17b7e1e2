"""Rounded records: every table near its expectation, no bias, and nothing that is impossible."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpgm_core import Domain, InferenceError, Structure, Tables
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.junction_tree.logspace import _states, divide_rows
from dpgm_testing.oracles import enumerated

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
    """14 attributes, 50,000 rows: the mean distance from what is expected is below a tenth of that of independent rows
    inside cliques (seen: .06), and below .8 of it across."""
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
