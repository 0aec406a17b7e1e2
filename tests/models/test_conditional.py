"""Codes drawn given others, row by row, against the table of all records."""

import numpy as np
import pytest
from scipy import stats

from dpgm_core import Domain, Model, Structure, Tables, TooLarge
from dpgm_core.models import completion as module
from dpgm_core.models.completion import conditional
from tests.models.test_merged import DOMAIN, joint, model_of

SIZES = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 3, "e": 2, "f": 2})
CLIQUES = [("a", "b"), ("b", "c"), ("c", "d", "a"), ("d", "e")]


def plain(zeros: float) -> tuple[Model, np.ndarray]:
    structure = Structure(SIZES, CLIQUES)
    values = np.random.default_rng(5).normal(size=structure.cells)
    values[np.random.default_rng(6).random(structure.cells) < zeros] = -np.inf
    model = Model(structure, Tables(structure, values))
    return model, model.marginal(SIZES.names)


def held(model: Model, table: np.ndarray, allowed: dict[str, np.ndarray], seed: int) -> None:
    """Rows with random gaps: given codes stay, rows are refused just where they are impossible, and the drawn codes of
    each pattern of gaps have the table's conditional law (chi-squared over all patterns, false alarm 1e-6)."""
    rng = np.random.default_rng(seed)
    names, count = model.domain.names, 60_000
    patterns = rng.random((7, len(names))) < np.array([0.2, 0.3, 0.5, 0.5, 0.7, 0.8, 1.1])[:, None]
    which = rng.integers(0, len(patterns), count)
    given = {name: rng.integers(0, model.domain[name].size, count) for name in names}
    codes = {name: np.where(patterns[which, at], -1, given[name]) for at, name in enumerate(names)}
    found, possible = conditional(model._distribution, model.domain, allowed).draw(codes, count, rng)
    statistic, freedom = 0.0, 0
    for number, pattern in enumerate(patterns):
        rows = np.flatnonzero(which == number)
        law = table.copy()
        for at, name in enumerate(names):
            if pattern[at] and name in allowed:
                law *= allowed[name].reshape([-1 if axis == at else 1 for axis in range(len(names))])
        axes = tuple(np.flatnonzero(pattern))
        mass = law.sum(axis=axes, keepdims=True)
        zero = np.broadcast_to(mass, law.shape)[tuple(given[name][rows] for name in names)] == 0
        np.testing.assert_array_equal(possible[rows], ~zero)
        rows = rows[~zero]
        for at, name in enumerate(names):
            if not pattern[at]:
                np.testing.assert_array_equal(found[name][rows], codes[name][rows])
        seen = np.zeros(law.shape)
        np.add.at(seen, tuple(found[name][rows] for name in names), 1)
        share = np.divide(law, mass, out=np.zeros_like(law), where=mass > 0)
        wanted = seen.sum(axis=axes, keepdims=True) * share
        assert not seen[wanted == 0].any()
        large = wanted > 5
        statistic += float(
            ((seen - wanted)[large] ** 2 / wanted[large] / (1 - share[large] * (share[large] < 1))).sum()
        )
        freedom += int((large & (share < 1)).sum())
    # Each cell is scaled by its variance, so the sum has this mean; cells of one row share a total, which widens it.
    assert abs(statistic - freedom) < 6 * np.sqrt(2 * freedom * max(table.shape))


@pytest.mark.landing
@pytest.mark.parametrize("zeros", [0.0, 0.15])
def test_rows_with_gaps_have_the_conditional_law(zeros):
    """With and without impossible cells; one attribute in no clique; some codes not to be drawn."""
    held(*plain(zeros), {}, 1)
    held(*plain(zeros), {"b": np.array([True, True, False]), "f": np.array([False, True])}, 2)


@pytest.mark.parametrize("weight0", [False, True])
def test_merged_codes_have_theirs(weight0):
    """Blocks and the codes in them; codes of weight 0 are impossible; codes not allowed are left out of a block."""
    model = model_of(3, weight0=weight0)
    held(model, joint(model), {}, 4)
    held(model, joint(model), {"a": np.array([True, False, True, True, False])}, 5)
    assert model.domain == DOMAIN


def test_batches_of_states_are_the_same_law(monkeypatch):
    """Where few rows fit at once."""
    monkeypatch.setattr(module, "_CELLS_AT_ONCE", 30)
    held(*plain(0.15), {}, 7)


def test_one_gap_is_drawn_with_its_probability():
    """p(b | a, c) by hand: 40,000 rows with one gap, chi-squared with false alarm 1e-6, seed fixed."""
    model, table = plain(0.0)
    rows = 40_000
    codes = {name: np.zeros(rows, int) for name in SIZES.names} | {"b": np.full(rows, -1)}
    found, _ = conditional(model._distribution, SIZES, {}).draw(codes, rows, np.random.default_rng(0))
    law = table[0, :, 0, 0, 0, 0] / table[0, :, 0, 0, 0, 0].sum()
    assert stats.chisquare(np.bincount(found["b"], minlength=3), rows * law).pvalue > 1e-6


def test_what_is_too_wide_is_refused(monkeypatch):
    """With its size, before it is made."""
    monkeypatch.setattr(module, "_MAX_ROW_CELLS", 5)
    model, _ = plain(0.0)
    codes = {name: np.full(3, -1) for name in SIZES.names}
    with pytest.raises(TooLarge, match="leave fewer attributes out"):
        conditional(model._distribution, SIZES, {}).draw(codes, 3, np.random.default_rng(0))
