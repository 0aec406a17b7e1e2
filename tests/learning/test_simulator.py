"""Simulated releases and tables drawn without records: the distribution they must have."""

import numpy as np
import pytest
from scipy import stats

from dpgm_core import (
    Budget,
    Domain,
    InferenceError,
    NoisyTables,
    SeededRandomness,
    Structure,
    Tables,
    Terms,
    make,
    release,
)
from dpgm_core.learning import Simulator
from dpgm_core.learning import bootstrap as simulate
from dpgm_core.learning.bootstrap import TableDraws
from dpgm_testing.oracles import enumerated, incidence

_STRUCTURE = Structure(Domain.from_sizes({"a": 3, "b": 2, "c": 2}), [("a", "b"), ("b", "c")])
_THETA = Tables(_STRUCTURE, np.random.default_rng(0).normal(size=_STRUCTURE.cells))
_ENGINE = make("inference", "junction-tree").compile(_STRUCTURE)


def _release(
    records: int, structure: Structure = _STRUCTURE, *, total: str = "public", epsilon: int = 2
) -> NoisyTables:
    codes = np.stack([np.arange(records) % size for size in (3, 2, 2)], axis=1)
    terms = Terms(neighbours="add-remove", total=total)
    return release(codes, structure, Budget.pure(epsilon), terms=terms, randomness=SeededRandomness(0))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("records", "a_cell"),
    [(400, np.inf), (200_000, np.inf), (400, 0.0), (200_000, 0.0)],
    ids=["every record", "scaled deviation", "tables", "large tables"],
)
def test_simulated_tables_have_the_mean_and_variance_of_a_release(records, a_cell, monkeypatch):
    """E y = N mu and Var y = N mu (1 - mu) + noise variance, whether records are drawn, or only their tables; false
    alarms below 1e-6 per cell and statistic."""
    monkeypatch.setattr(simulate, "_CODES_PER_CELL", a_cell)
    monkeypatch.setattr(simulate, "_MAX_RECORDS", 2_000)  # the deviation of so many is scaled; fewer are faster drawn
    noisy = _release(records)
    simulator = Simulator(noisy, _ENGINE, _THETA)
    randomness = SeededRandomness(7)
    draws = np.array([simulator.draw(randomness).tables.values for _ in range(400)])
    mu = _ENGINE.infer(_THETA).marginals.values
    variance = records * mu * (1 - mu) + np.repeat(noisy.variances, _STRUCTURE.sizes)
    z = (draws.mean(axis=0) - records * mu) / np.sqrt(variance / len(draws))
    assert np.abs(z).max() < 5.0
    # Laplace noise of scale 1 has excess kurtosis of at most 3, so this is wider than chi-squared needs.
    ratio = draws.var(axis=0, ddof=1) / variance
    width = 5.0 * np.sqrt((2 + 3) / len(draws))
    assert np.abs(ratio - 1).max() < width


@pytest.mark.parametrize("a_cell", [np.inf, 0.0], ids=["records", "tables"])
def test_tables_of_one_draw_come_from_the_same_records(a_cell, monkeypatch):
    """Without noise to speak of, the two tables agree on their shared margin: one sample was counted twice."""
    monkeypatch.setattr(simulate, "_CODES_PER_CELL", a_cell)
    noisy = _release(100, epsilon=10**6)
    drawn = Simulator(noisy, _ENGINE, _THETA).draw(SeededRandomness(1)).tables
    assert drawn["a", "b"].sum(axis=0).tolist() == drawn["b", "c"].sum(axis=1).tolist()


@pytest.mark.parametrize("a_cell", [np.inf, 0.0], ids=["records", "tables"])
@pytest.mark.parametrize("records", [300, 60_000])
def test_a_release_of_smaller_cliques_is_simulated_from_the_model(records, a_cell, monkeypatch):
    """The model may be larger than what was measured; the margins of its records are what is drawn."""
    monkeypatch.setattr(simulate, "_CODES_PER_CELL", a_cell)
    noisy = _release(records, Structure(_STRUCTURE.domain, [("b",), ("c", "b")]), epsilon=100)
    drawn = Simulator(noisy, _ENGINE, _THETA).draw(SeededRandomness(1))
    assert drawn.structure == noisy.structure
    expected = records * _ENGINE.infer(_THETA).marginals["b", "c"].sum(axis=1)
    allowed = stats.norm.isf(1e-7) * np.sqrt(records / 4) + 1
    assert np.abs(drawn.tables["b"] - expected).max() < allowed


def test_an_estimated_total_is_estimated_again_and_a_public_one_kept():
    """How N became known is part of what varies."""
    estimated, public = _release(500, total="estimated"), _release(500)
    totals = {Simulator(estimated, _ENGINE, _THETA).draw(SeededRandomness(seed)).total for seed in range(5)}
    assert len(totals) == 5
    assert Simulator(public, _ENGINE, _THETA).draw(SeededRandomness(0)).total == 500


def test_a_draw_is_stamped_and_repeats_by_its_seed():
    """It is no release of anybody's records, and says so; loopy beliefs give no records."""
    simulator = Simulator(_release(500), _ENGINE, _THETA)
    one, again, other = (simulator.draw(SeededRandomness(seed)) for seed in (3, 3, 4))
    assert one.tables.values.tolist() == again.tables.values.tolist() != other.tables.values.tolist()
    assert not one.private and one.provenance == {"simulated": True}
    assert one.measurement == _release(500).measurement  # and not the one that is quick to draw
    with pytest.raises(InferenceError, match=r"cannot draw records.*junction-tree"):
        Simulator(_release(500), make("inference", "loopy-bp").compile(_STRUCTURE), _THETA)


DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 2, "e": 1})
STRUCTURES = {
    "chain": Structure.chain(DOMAIN),
    "cycle": Structure(DOMAIN, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]),
    "disconnected": Structure(DOMAIN, [("b", "a"), ("d",)]),
    "nested": Structure(DOMAIN, [("c", "b", "a"), ("a",), ("a", "b"), ()]),
    "tied": Structure(DOMAIN, [("b", "a"), ("d",)], tied=[[("a", "c"), ("c", "d"), ("d", "a")]]),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("zeros", [0.0, 0.15])
@pytest.mark.parametrize("name", STRUCTURES)
def test_mean_and_covariance_are_those_of_records(name, zeros):
    """N E T and N Cov T, all cells against all, by enumeration: 4000 draws of 5000 records. A mean is out by 6 sd, or
    an entry of the covariance by .12 of the two deviations' product, with probability below 1e-6."""
    structure = STRUCTURES[name]
    rng = np.random.default_rng(3)
    values = rng.normal(size=structure.cells)
    values[rng.random(structure.cells) < zeros] = -np.inf
    theta = Tables(structure, values)
    p, adds = enumerated(theta).probabilities, incidence(structure).T
    mean = p @ adds
    covariance = (adds - mean).T @ (p[:, None] * (adds - mean))
    draws = TableDraws(theta, structure)
    found = np.array([draws.draw(5000, rng) for _ in range(4000)])
    spread = np.sqrt(5000 * np.diag(covariance)) + 1e-9
    assert np.all(np.abs(found.mean(axis=0) - 5000 * mean) <= 6 * spread / np.sqrt(4000) + 1e-6)
    assert np.all(np.abs(np.cov(found.T) - 5000 * covariance) <= 0.12 * np.outer(spread, spread) + 1e-6)


@pytest.mark.parametrize("name", STRUCTURES)
def test_tables_agree_with_each_other(name):
    """Every draw is the tables of some records: whole numbers, of one total, with equal margins where they overlap."""
    structure = STRUCTURES[name]
    theta = Tables(structure, np.random.default_rng(1).normal(size=structure.cells))
    drawn = Tables(structure, TableDraws(theta, structure).draw(50, np.random.default_rng(2)))
    assert drawn.values.dtype == np.int64 and drawn.values.min() >= 0
    assert drawn.sums().tolist() == [50 * tied for tied in structure.multiplicities]
    if name == "nested":
        assert np.array_equal(drawn["a", "b"], drawn["a", "b", "c"].sum(axis=2))
        assert np.array_equal(drawn["a"], drawn["a", "b"].sum(axis=1))


def test_what_was_measured_may_be_smaller_than_the_model():
    """Other cliques, other order of names, and the cost does not grow with the number of records."""
    structure = STRUCTURES["cycle"]
    theta = Tables(structure, np.random.default_rng(1).normal(size=structure.cells))
    measured = Structure(DOMAIN, [("b", "a"), ("d",)])
    drawn = Tables(measured, TableDraws(theta, measured).draw(10**12, np.random.default_rng(2)))
    adds = incidence(measured).T
    expected = 10**12 * enumerated(theta).probabilities @ adds
    np.testing.assert_allclose(drawn.values, expected, atol=6 * 10**6)
