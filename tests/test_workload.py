"""Workloads: what may be measured for them, how much each candidate weighs, and what is no workload."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core.domain import Domain
from dpgm_core.errors import DpgmError, OptionError, StructureError, TooLarge
from dpgm_core.workload import Workload

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5}
DOMAIN = Domain.from_sizes(SIZES)
CLIQUES = [one for size in (1, 2, 3) for one in itertools.combinations("abcd", size)]


def cells(clique):
    """Of a table."""
    return math.prod(SIZES[name] for name in clique)


@given(
    st.dictionaries(st.sampled_from(CLIQUES), st.fractions("1/100", 5), min_size=1, max_size=4),
    st.integers(4, 60),
    st.lists(st.sampled_from(CLIQUES), max_size=2),
)
def test_candidates_and_weights_are_what_they_are_defined_to_be(weights, most, never):
    """Against the definitions, by brute force: inside a clique, small enough, none barred; the largest weight is 1."""
    expected = [
        one
        for one in CLIQUES
        if any(set(one) <= set(clique) for clique in weights)
        and cells(one) <= most
        and not any(set(barred) <= set(one) for barred in never)
    ]
    if not expected:
        with pytest.raises(StructureError, match="no table to measure"):
            Workload.of(DOMAIN, weights, max_cells=most, never=never)
        return
    workload = Workload.of(DOMAIN, weights, max_cells=most, never=never)
    assert list(workload.candidates) == expected
    overlap = {one: sum(weight * len(set(one) & set(clique)) for clique, weight in weights.items()) for one in expected}
    for one in expected:
        assert workload.weight(one) == overlap[one] / max(overlap.values())
    assert Workload.from_dict(DOMAIN, workload.to_dict()) == workload


@pytest.mark.parametrize(
    "workload",
    [
        Workload.all(DOMAIN, order=2, never=[("d", "a")], max_cells=12),
        Workload.targeted(DOMAIN, ["b", "c"], order=3),
        Workload.targeted(DOMAIN, "a"),
        Workload.of(DOMAIN, [("b", "a"), ("c",)]),
    ],
)
def test_plain_values_give_it_back(workload):
    """As a file of a session has them."""
    back = Workload.from_dict(DOMAIN, workload.to_dict())
    assert back == workload and back.candidates == workload.candidates and back.to_dict() == workload.to_dict()


@pytest.mark.parametrize(("attributes", "order"), [(2, 2), (49, 3), (50, 2), (200, 1)])
def test_a_workload_without_an_order_has_the_largest_that_fits(attributes, order):
    """Sets of three up to 20,000 candidates; with targets and limits alike."""
    domain = Domain.from_sizes({f"x{number}": 2 for number in range(attributes)})
    workload = Workload.default(domain)
    assert {len(clique) for clique in workload.weights} == {order}
    assert workload == Workload.all(domain, order) == Workload.from_dict(domain, {})
    targeted = Workload.from_dict(domain, {"targets": ["x1"], "max_cells": 4})
    assert targeted == Workload.targeted(domain, ["x1"], 2 if attributes in (2, 200) else 3, max_cells=4)


@pytest.mark.parametrize(
    ("plain", "error", "words"),
    [
        (3, OptionError, "must be a table"),
        ({"ordre": 2}, OptionError, "did you mean 'order'"),
        ({"order": 0}, OptionError, "order"),
        ({"order": "two"}, OptionError, "order"),
        ({"targets": []}, OptionError, "at least one"),
        ({"targets": [3]}, OptionError, "names of attributes"),
        ({"targets": ["e"]}, DpgmError, "no attribute 'e'"),
        ({"max_cells": 0}, OptionError, "max_cells"),
        ({"max_cells": 1}, StructureError, "no table to measure"),
        ({"never": "ab"}, OptionError, "list of lists"),
        ({"never": [["a"], ["b"], ["c"], ["d"]]}, StructureError, "under `never`"),
        ({"weights": [], "order": 2}, OptionError, "not by both"),
        ({"weights": []}, StructureError, "names no clique"),
        ({"weights": [{"clique": ["a", "a"]}]}, StructureError, "names an attribute twice"),
        ({"weights": [{"clique": ["a", "b"]}, {"clique": ["b", "a"]}]}, StructureError, "a x b twice"),
        ({"weights": [{"clique": ["a"], "weight": 0}]}, OptionError, "weight of a"),
        ({"weights": [{"clique": ["a"], "wieght": 1}]}, OptionError, "weights must be a list"),
    ],
)
def test_what_is_no_workload_is_one_line(plain, error, words):
    """Before any record: what was asked, what is wrong, what would do."""
    with pytest.raises(error, match=words) as caught:
        Workload.from_dict(DOMAIN, plain)
    assert "\n" not in str(caught.value)


def test_too_many_candidates_are_refused_before_they_are_listed():
    """The order that would do is said; 500 attributes take no time."""
    domain = Domain.from_sizes({f"x{number}": 2 for number in range(500)})
    for order in (3, 5):
        with pytest.raises(TooLarge, match=f"ask for order = {order - 1}"):
            Workload.all(domain, order)
