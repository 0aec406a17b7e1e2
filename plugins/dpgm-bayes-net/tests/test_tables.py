"""Conditional tables from noisy counts: least squares by brute force, rows that are distributions whatever comes."""

import itertools

import numpy as np
import pytest
from attrs import evolve
from dpgm_bayes_net.tables import (
    Counts,
    clip,
    conditionals,
    counts_of,
    faint_rows,
    make_tables_agree,
    reorder_families,
    smooth_counts,
)
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dpgm_core as dpgm

DOMAIN = dpgm.Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 1, "e": 4})
#: Its families: (a), (b, a), (c, a, b), (d, e), (e, c); three of them lie in no other one.
DAG = dpgm.Dag(DOMAIN, {"b": ["a"], "c": ["a", "b"], "d": ["e"], "e": ["c"]})
MEASURED = [("b", "a", "c"), ("e", "c"), ("d", "e"), ("b",), ()]

FINITE = st.floats(min_value=-1e15, max_value=1e15)
TABLES = hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=3, max_side=4), elements=FINITE)


def design(structure):
    """Cells of all tables by cells of the joint table: which of them a record of each kind falls into."""
    columns = []
    for record in itertools.product(*map(range, structure.domain.sizes.values())):
        codes = dict(zip(structure.domain.names, record, strict=True))
        column = dpgm.Tables.zeros(structure).values.copy()
        for (group, *_), shape, at in zip(structure.groups, structure.shapes, structure.slices, strict=True):
            cell = np.zeros(shape)
            cell[tuple(codes[name] for name in group)] = 1
            column[at] = cell.reshape(-1)
        columns.append(column)
    return np.stack(columns, axis=1)


def random_release(structure, seed):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, 500) for size in structure.domain.sizes.values()], axis=1)
    source = dpgm.SeededRandomness(seed)
    budget = dpgm.Budget.pure(1)
    return dpgm.release(codes, structure, budget, neighbours="add-remove", split="optimal", randomness=source)


# --- tables that agree ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_agreeing_tables_are_the_dense_weighted_least_squares_solution(seed):
    """With nested and empty cliques and other noise in every table, they are the margins of the joint table nearest by
    generalised least squares; then all of them agree, and doing it again changes nothing."""
    structure = dpgm.Structure(DOMAIN, MEASURED)
    release = random_release(structure, seed)
    tables, variances = make_tables_agree(release)
    assert len(set(variances)) > 1
    matrix, weights = design(structure), 1 / np.sqrt(release.tables.repeat(variances))
    joint = np.linalg.lstsq(matrix * weights[:, None], release.tables.values * weights, rcond=None)[0]
    assert tables.values == pytest.approx(matrix @ joint, abs=1e-8)
    assert tables["b", "a", "c"].sum(axis=(1, 2)) == pytest.approx(tables["b"], abs=1e-8)
    assert float(tables[()]) == pytest.approx(tables["d", "e"].sum(), abs=1e-8)
    again, _ = make_tables_agree(evolve(release, tables=tables))
    assert again.values == pytest.approx(tables.values, abs=1e-8)


def test_counts_are_the_margins_of_all_tables_that_agree():
    """Each family's counts equal the margin of any table that contains it, axes in the family's order."""
    tables, variances = make_tables_agree(random_release(dpgm.Structure(DOMAIN, MEASURED), 7))
    counts = counts_of(tables, variances, DAG.families)
    assert counts["a"].table == pytest.approx(tables["b", "a", "c"].sum(axis=(0, 2)))
    assert counts["b"].table == pytest.approx(tables["b", "a", "c"].sum(axis=2))
    assert counts["c"].table == pytest.approx(tables["c", "a", "b"])
    assert counts["e"].table == pytest.approx(tables["e", "c"])
    assert all(one.measured == family for one, family in zip(counts.values(), DAG.families, strict=True))


def test_the_stated_variance_bounds_that_of_the_estimate():
    """Of one table K times the cell's; of several no less than the true variance of the least squares estimate, from
    its covariance matrix, and less than that of each table alone."""
    structure = dpgm.Structure(DOMAIN, MEASURED)
    variances = np.array([9.0, 2.0, 5.0, 1.0, 3.0])
    counts = counts_of(dpgm.Tables.zeros(structure), variances, [*DAG.families, ("b",)])
    assert counts["e"].variance == 2.0 and counts["a"].variance == 6 * 9.0
    assert counts["b"].variance == pytest.approx(1 / (1 / 1.0 + 1 / (4 * 9.0)))
    matrix, weights = design(structure), np.sqrt(np.repeat(1 / variances, structure.sizes))
    solve = np.linalg.pinv(matrix * weights[:, None])
    for family, one in (*counts.items(), ("c", counts["c"])):
        margin = design(dpgm.Structure(DOMAIN, [one.measured]))
        covariance = margin @ solve @ solve.T @ margin.T
        assert np.diag(covariance).max() <= one.variance * (1 + 1e-9), family


def test_a_family_in_no_table_takes_the_largest_part_that_is_in_one():
    """Counts are spread evenly over what was not measured with the child; a child in no table has none."""
    structure = dpgm.Structure(DOMAIN, [("b", "c"), ("a",)])
    tables = dpgm.Tables(structure, np.arange(8.0))
    counts = counts_of(tables, np.array([2.0, 1.0]), [("c", "a", "b"), ("a",), ("e", "c")])
    assert counts["c"].measured == ("c", "b") and counts["c"].variance == 2.0 / 4
    for a in range(2):
        assert counts["c"].table[:, a, :] == pytest.approx(tables["c", "b"] / 2)
    assert counts["e"].measured == () and not counts["e"].table.any() and counts["e"].table.shape == (4, 2)
    actual = conditionals(counts, 0.25)
    assert actual["e"] == pytest.approx(np.full((4, 2), 0.25))
    assert actual["c"][:, 0] == pytest.approx(actual["c"][:, 1])


def test_tied_tables_are_refused():
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2, "b": 2}), [], tied=[[("a",), ("b",)]])
    release = dpgm.release(np.zeros((9, 2), int), structure, dpgm.Budget.pure(1), neighbours="add-remove")
    with pytest.raises(dpgm.StructureError, match="tied tables, which are of no family; learn with bayes-net"):
        make_tables_agree(release)


def test_noise_that_is_nothing_breaks_no_weight():
    structure = dpgm.Structure(DOMAIN, [("a",), ("a", "b")])
    tables = dpgm.Tables(structure, np.array([6.0, 4.0, 9.0, 9, 9, 1, 1, 1]))
    for variances in (np.zeros(2), np.array([0.0, 4.0])):
        actual = counts_of(tables, variances, [("a",)])["a"]
        assert np.isfinite(actual.table).all() and np.isfinite(actual.variance)
    assert actual.table == pytest.approx([6, 4], abs=1e-6)


# --- rows ----------------------------------------------------------------------------------------------------------


@given(TABLES, st.floats(0, 1e15), st.sampled_from([0.0, 0.25, 3.0]))
@example(np.full((3, 2), -5.0), 0.0, 0.25)
@example(np.zeros((4, 2, 2)), 0.0, 0.25)
@example(np.full((1, 3), -1.0), 2.0, 0.25)
@example(np.array([[1e15, -1e15], [1e15, 1e-300]]), 1.0, 0.0)
@example(np.array([[5e-324], [5e-324]]), 0.0, 0.0)
@example(np.array([[1.7e308], [1.7e308]]), 1.0, 0.25)
def test_rows_are_distributions_for_any_finite_table(table, sd, smoothing):
    """No NaN, nothing negative, sums of 1; with noise no zeros but where a count dwarfs it; without it `clip`."""
    actual = smooth_counts(table, sd, smoothing)
    assert actual.shape == table.shape and (actual >= 0).all()
    assert actual.sum(axis=0) == pytest.approx(np.ones(table.shape[1:]), abs=1e-12)
    if smoothing * sd > 1e-3 and table.max() < 1e15:
        assert (actual > 0).all()
    if smoothing * sd == 0:
        assert np.array_equal(actual, clip(table))


@given(TABLES)
def test_rows_without_counts_are_uniform_and_others_proportional(table):
    """By plain loops."""
    actual = clip(table)
    for state in np.ndindex(table.shape[1:]):
        row = np.maximum(table[(slice(None), *state)], 0)
        expected = row / row.sum() if row.sum() > 1e-250 else None
        if not row.any():
            expected = np.full(len(row), 1 / len(row))
        if expected is not None:
            assert actual[(slice(None), *state)] == pytest.approx(expected, abs=1e-12)


def test_the_pseudo_count_is_a_quarter_of_the_noise():
    """c = max(t, 0) + sd / 4, of the sd of the family's own cells."""
    counts = {"a": Counts(table=np.array([30.0, -7.0]), variance=16.0, measured=("a",))}
    assert conditionals(counts, 0.25)["a"] == pytest.approx([31 / 32, 1 / 32])


def test_faint_rows_are_those_below_the_noise_of_their_sum():
    """A row of four cells with sd 5 each has sd 10; the note says how many of how many, and nothing of none."""
    counts = Counts(table=np.zeros((4, 3)), variance=25.0, measured=("e", "b"))
    note = faint_rows({"a": counts}, {"a": np.array([9.9, 10.1, -3.0])})[0]
    assert note.startswith("2 of 3 rows of the conditional tables expect fewer records")
    assert faint_rows({"a": counts}, {"a": np.array([10.1])}) == []


def test_a_network_over_its_families_in_another_order_is_the_same():
    """Also where two families have the same table but for an attribute with one label."""
    rng = np.random.default_rng(1)
    cpds = {family[0]: rng.random(DOMAIN.shape(family)) for family in DAG.families}
    network = dpgm.Model.from_cpds(DAG, {name: table / table.sum(axis=0) for name, table in cpds.items()})
    structure = dpgm.Structure(DOMAIN, DAG.families[::-1])
    moved = reorder_families(network, structure)
    assert moved.structure == structure and abs(moved.log_partition) < 1e-12 and network.kl(moved) < 1e-12
    assert all((moved.potentials[family] == network.potentials[family]).all() for family in DAG.families)
