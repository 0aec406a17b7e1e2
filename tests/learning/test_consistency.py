"""Consistent tables are the nearest ones that agree with each other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core import Domain, Structure, Tables
from dpgm_core.domain import Ordered
from dpgm_core.learning.consistency import consistent

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2})
OVERLAPPING = Structure(DOMAIN, [("a", "b"), ("c", "b"), ("b", "a", "c"), ("a",), ()])


def statistics(structure: Structure) -> np.ndarray:
    """(cells, records): which cells each possible record counts in; its columns span the consistent tables."""
    grid = np.stack(np.meshgrid(*(range(size) for size in structure.domain.sizes.values()), indexing="ij"), axis=-1)
    columns = []
    for record in grid.reshape(-1, len(structure.domain)):
        code = dict(zip(structure.domain.names, record, strict=True))
        column = np.zeros(structure.cells)
        for number, group in enumerate(structure.groups):
            cell = np.ravel_multi_index([code[name] for name in group[0]], structure.shapes[number]) if group[0] else 0
            column[structure.slices[number].start + cell] = 1
        columns.append(column)
    return np.array(columns).T


@given(st.integers(0, 2**32 - 1))
def test_consistent_is_the_orthogonal_projection(seed):
    """On the span of the sufficient statistics, which least squares computes another way."""
    values = np.random.default_rng(seed).normal(size=OVERLAPPING.cells) * 100
    basis = statistics(OVERLAPPING)
    nearest = basis @ np.linalg.lstsq(basis, values, rcond=None)[0]
    assert np.allclose(consistent(Tables(OVERLAPPING, values)).values, nearest, atol=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_consistent_weighs_tables_by_their_noise(seed):
    """Generalised least squares computed another way; equal variances change no digit."""
    generator = np.random.default_rng(seed)
    tables = Tables(OVERLAPPING, generator.normal(size=OVERLAPPING.cells) * 100)
    variances = 10.0 ** generator.uniform(-1, 1, size=len(OVERLAPPING.groups))
    scale = np.repeat(variances**0.5, OVERLAPPING.sizes)
    basis = statistics(OVERLAPPING)
    nearest = basis @ np.linalg.lstsq(basis / scale[:, None], tables.values / scale, rcond=None)[0]
    assert np.allclose(consistent(tables, variances).values, nearest, atol=1e-8)
    same = consistent(tables, np.full(len(OVERLAPPING.groups), 0.3))
    assert np.array_equal(same.values, consistent(tables).values)


def test_cells_that_constraints_rule_out_stay_zero():
    """The nearest tables that agree and are 0 there: a least-squares problem over both says the same."""
    plain = Domain.from_sizes({"a": 3, "b": 3, "c": 2})
    domain = Domain(plain.attributes, [Ordered(name="x", columns=("a", "b"))])
    structure = Structure(domain, [("a", "b"), ("b", "c")])
    values = np.where(structure.impossible, 0.0, np.random.default_rng(0).normal(size=structure.cells))
    agreed = consistent(Tables(structure, values))
    assert not agreed.values[structure.impossible].any()
    np.testing.assert_allclose(agreed["a", "b"].sum(axis=0), agreed["b", "c"].sum(axis=1), atol=1e-8)
    # Rows that say: both margins on b are one, and impossible cells are 0.
    first, second = np.kron(np.ones(3), np.eye(3)), np.kron(np.eye(3), np.ones(2))
    rows = np.vstack([np.hstack([first, -second]), np.eye(structure.cells)[structure.impossible]])
    nearest = values - np.linalg.pinv(rows) @ (rows @ values)
    np.testing.assert_allclose(agreed.values, nearest, atol=1e-8)
