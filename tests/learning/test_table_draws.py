"""Tables drawn without records: their whole distribution, on every kind of structure."""

import numpy as np
import pytest

from dpgm_core import Domain, Structure, Tables
from dpgm_core.learning.bootstrap import TableDraws
from dpgm_testing.oracles import all_records, enumerated

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 2, "e": 1})
STRUCTURES = {
    "chain": Structure.chain(DOMAIN),
    "cycle": Structure(DOMAIN, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]),
    "disconnected": Structure(DOMAIN, [("b", "a"), ("d",)]),
    "nested": Structure(DOMAIN, [("c", "b", "a"), ("a",), ("a", "b"), ()]),
    "tied": Structure(DOMAIN, [("b", "a"), ("d",)], tied=[[("a", "c"), ("c", "d"), ("d", "a")]]),
}


def indicators(structure: Structure) -> np.ndarray:
    """(records, cells): what each possible record adds to the tables, by definition."""
    rows = all_records(structure)
    found = np.zeros((len(rows), structure.cells))
    for number, group in enumerate(structure.groups):
        for clique in group:
            codes = [rows[:, DOMAIN.names.index(name)] for name in clique]
            at = np.ravel_multi_index(codes, DOMAIN.shape(clique)) if clique else np.zeros(len(rows), int)
            np.add.at(found, (np.arange(len(rows)), structure.slices[number].start + at), 1)
    return found


@pytest.mark.sampled(5)
@pytest.mark.parametrize("zeros", [0.0, 0.15])
@pytest.mark.parametrize("name", STRUCTURES)
def test_mean_and_covariance_are_those_of_records(name: str, zeros: float) -> None:
    """N E T and N Cov T, all cells against all, by enumeration: 4000 draws of 5000 records. A mean is out by 6 sd, or
    an entry of the covariance by .12 of the two deviations' product, with probability below 1e-6."""
    structure = STRUCTURES[name]
    rng = np.random.default_rng(3)
    values = rng.normal(size=structure.cells)
    values[rng.random(structure.cells) < zeros] = -np.inf
    theta = Tables(structure, values)
    p, adds = enumerated(theta).probabilities, indicators(structure)
    mean = p @ adds
    covariance = (adds - mean).T @ (p[:, None] * (adds - mean))
    draws = TableDraws(theta, structure)
    found = np.array([draws.draw(5000, rng) for _ in range(4000)])
    spread = np.sqrt(5000 * np.diag(covariance)) + 1e-9
    assert np.all(np.abs(found.mean(axis=0) - 5000 * mean) <= 6 * spread / np.sqrt(4000) + 1e-6)
    assert np.all(np.abs(np.cov(found.T) - 5000 * covariance) <= 0.12 * np.outer(spread, spread) + 1e-6)


@pytest.mark.parametrize("name", STRUCTURES)
def test_tables_agree_with_each_other(name: str) -> None:
    """Every draw is the tables of some records: whole numbers, of one total, with equal margins where they overlap."""
    structure = STRUCTURES[name]
    theta = Tables(structure, np.random.default_rng(1).normal(size=structure.cells))
    drawn = Tables(structure, TableDraws(theta, structure).draw(50, np.random.default_rng(2)))
    assert drawn.values.dtype == np.int64 and drawn.values.min() >= 0
    assert drawn.sums().tolist() == [50 * tied for tied in structure.multiplicities]
    if name == "nested":
        assert np.array_equal(drawn["a", "b"], drawn["a", "b", "c"].sum(axis=2))
        assert np.array_equal(drawn["a"], drawn["a", "b"].sum(axis=1))


def test_what_was_measured_may_be_smaller_than_the_model() -> None:
    """Other cliques, other order of names, and the cost does not grow with the number of records."""
    structure = STRUCTURES["cycle"]
    theta = Tables(structure, np.random.default_rng(1).normal(size=structure.cells))
    measured = Structure(DOMAIN, [("b", "a"), ("d",)])
    drawn = Tables(measured, TableDraws(theta, measured).draw(10**12, np.random.default_rng(2)))
    adds = indicators(measured)
    expected = 10**12 * enumerated(theta).probabilities @ adds
    np.testing.assert_allclose(drawn.values, expected, atol=6 * 10**6)
