"""Conditional tables: what they are made of, row by row, and what is no probability."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import StructureError
from dpgm_core.models.cpds import cpds_of, log_cpds
from dpgm_core.structure.dag import Dag

DAG = Dag(Domain.from_sizes({"a": 2, "b": 3, "c": 2}), {"c": ["b", "a"]})
CPDS = {
    "a": np.array([0.25, 0.75]),
    "b": np.array([0.5, 0.0, 0.5]),
    "c": np.array([[[0.1, 0.2], [0.3, 0.4], [0.5, 1.0]], [[0.9, 0.8], [0.7, 0.6], [0.5, 0.0]]]),
}
shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
masses = st.sampled_from([0.0, 5e-324, 1e-300, 0.1, 1.0, 3.0, 1e15, 1e300]) | st.floats(0, 1e15)


@given(shapes.flatmap(lambda shape: arrays.arrays(np.float64, shape, elements=masses)))
def test_rows_are_shares_of_their_mass_or_uniform(joint):
    """Row by row in exact fractions; whatever the size of the numbers, a distribution over the child's labels."""
    before = joint.copy()
    found, empty = cpds_of({"a": joint})
    rows, shares = joint.reshape(len(joint), -1).T, found["a"].reshape(len(joint), -1).T
    assert found["a"].shape == joint.shape and (joint == before).all()
    assert empty == sum(not row.any() for row in rows)
    for row, share in zip(rows, shares, strict=True):
        mass = math.fsum(row)
        expected = [value / mass for value in row] if mass else [1 / len(row)] * len(row)
        np.testing.assert_allclose(share, expected, rtol=1e-12, atol=0)
        assert share.sum() == pytest.approx(1, abs=1e-12)


def test_counts_are_taken_too():
    """Whole numbers, as tables of records are; of several children the empty rows are counted together."""
    found, empty = cpds_of({"a": np.array([[3, 0], [1, 0]]), "b": np.array([0, 0, 0])})
    assert found["a"].tolist() == [[0.75, 0.5], [0.25, 0.5]] and found["b"].tolist() == [1 / 3] * 3
    assert empty == 2 and cpds_of({}) == ({}, 0)


def test_logarithms_stand_at_their_cells():
    """Over the structure of the graph, whatever order the tables are named in; zeros are -inf; integers are read."""
    logs = log_cpds(DAG, dict(reversed(CPDS.items())))
    assert logs.structure == DAG.structure()
    for family in DAG.families:
        np.testing.assert_allclose(np.exp(logs[family]), CPDS[family[0]], rtol=1e-15)
    assert logs["b"].tolist()[1] == -math.inf
    certain = log_cpds(Dag(Domain.from_sizes({"a": 2}), {}), {"a": np.array([1, 0], dtype=np.uint8)})
    assert certain.values.tolist() == [0, -math.inf]


def changed(name, table):
    return {**CPDS, name: table}


@pytest.mark.parametrize(
    ("cpds", "words"),
    [
        ({"a": CPDS["a"], "b": CPDS["b"]}, "no conditional table for 'c'"),
        ({**CPDS, "bb": CPDS["b"]}, "for 'bb', which is no attribute; did you mean 'b'"),
        ({**CPDS, 3: CPDS["b"]}, "for 3, which is no attribute"),
        (changed("a", np.array([-0.25, 1.25])), "'a' holds negative, NaN or infinite"),
        (changed("a", np.array([math.nan, 1])), "'a' holds negative, NaN or infinite"),
        (changed("a", np.array([math.inf, 0])), "'a' holds negative, NaN or infinite"),
        (changed("b", np.zeros(3)), "'b' is off from 1 by 1 in sum"),
        (changed("b", np.array([0.5, 0, 0.5 + 2e-9])), "'b' is off from 1 by 2e-09 in sum; its first axis is"),
        # the child's axis last: each slice sums to 1 the wrong way
        (changed("c", CPDS["c"].transpose(1, 2, 0)), r"shape \(2, 3, 2\), axes c x b x a; got float64 of shape \(3, 2"),
        (changed("c", CPDS["c"].transpose(2, 1, 0)), "'c' is off from 1 by"),
        (changed("c", CPDS["c"].reshape(2, 6)), r"must hold numbers of shape \(2, 3, 2\)"),
        (changed("a", np.array([True, False])), "must hold numbers of shape .* got bool"),
        (changed("a", np.array(["1", "0"])), "must hold numbers"),
        (changed("a", np.array([1 + 0j, 0])), "must hold numbers"),
        (changed("a", 1.0), r"got float64 of shape \(\)"),
        (changed("a", None), "must hold numbers"),
        (changed("c", [[0.5], [0.5, 0.5]]), "must hold numbers"),
        ([CPDS["a"]], "a table for each attribute, by its name, got list"),
    ],
)
def test_what_is_no_conditional_table_is_refused(cpds, words):
    """By the child's name, with what is wrong; no row that is off by more than 1e-9 passes."""
    with pytest.raises(StructureError, match=words) as caught:
        log_cpds(DAG, cpds)
    assert "\n" not in str(caught.value)


def test_rounding_is_let_pass():
    """Sums within 1e-9 of 1, as thirds in twelve digits have; they are kept as they were given."""
    thirds = np.array([0.333333333333] * 3)
    assert np.exp(log_cpds(DAG, changed("b", thirds))["b"]) == pytest.approx(thirds, rel=1e-14)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (np.array([2**62, 2**62]), "off from 1 by 9.22e"),
        (np.array([1e308, 1e308]), "off from 1 by inf"),
        (np.full(3, 1 / 3, np.float32), "off from 1 by 2.98e-08"),
    ],
    ids=["whole numbers", "as large as can be", "short floats"],
)
def test_sums_are_taken_in_doubles(table, words):
    """Whole numbers do not wrap, four quarters of 2**64 among them, and short floats are not rounded to 1."""
    dag = Dag(Domain.from_sizes({"a": len(table)}), {})
    with pytest.raises(StructureError, match=words):
        log_cpds(dag, {"a": table})
    with pytest.raises(StructureError, match="off from 1"):
        log_cpds(Dag(Domain.from_sizes({"a": 5}), {}), {"a": np.array([2**62] * 4 + [1])})
