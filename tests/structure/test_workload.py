"""Workloads: what may be measured for what is wanted, by brute force; limits; and plain values."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core import Domain, DpgmError, OptionError, StructureError, TooLarge
from dpgm_core.domain.related import Related
from dpgm_core.structure.workload import MAX_CANDIDATES, Workload

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 4, "d": 5})
SUBSETS = [names for size in range(1, 5) for names in itertools.combinations(DOMAIN.names, size)]


@given(
    st.lists(st.sampled_from(SUBSETS), min_size=1, max_size=4, unique=True),
    st.lists(st.sampled_from(SUBSETS), max_size=3),
    st.integers(2, 120),
)
def test_candidates_are_the_small_and_allowed_insides(cliques, never, most):
    """Every subset of a clique that has few enough cells and holds none that is never measured; by size, in order."""
    expected = [
        one
        for one in SUBSETS
        if any(set(one) <= set(clique) for clique in cliques)
        and not any(set(barred) <= set(one) for barred in never)
        and math.prod(DOMAIN[name].size for name in one) <= most
    ]
    try:
        workload = Workload.of(DOMAIN, cliques, never=never, max_cells=most)
    except StructureError as error:
        assert not expected and "leaves no table to measure" in str(error)
        return
    assert list(workload.candidates) == expected
    shares = {one: sum(len(set(one) & set(clique)) for clique in cliques) for one in expected}
    for one in expected:
        assert workload.weight(one) == Fraction(shares[one], max(shares.values()))


def test_all_sets_and_those_with_a_target():
    """Of an order, or of all attributes where there are fewer; weights alike."""
    assert list(Workload.all(DOMAIN, 2).weights) == list(itertools.combinations("abcd", 2))
    assert list(Workload.all(DOMAIN, 9).weights) == [("a", "b", "c", "d")]
    assert all("c" in clique for clique in Workload.targeted(DOMAIN, "c").weights)
    assert len(Workload.targeted(DOMAIN, ["c", "d"], 2).weights) == 5
    assert set(Workload.all(DOMAIN).weights.values()) == {Fraction(1)}


def test_weights_are_exact_and_cliques_in_the_order_of_the_domain():
    """Names in any order are one clique; amounts as texts are what they say."""
    workload = Workload.of(DOMAIN, {("b", "a"): "1/3", ("c",): 0.1})
    assert workload.weights == {("a", "b"): Fraction(1, 3), ("c",): Fraction(1, 10)}
    assert workload.weight(("c",)) == Fraction(1, 10) / Fraction(2, 3)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("count", "size"), [(12, 3), (49, 3), (50, 2), (440, 2), (500, 1)])
def test_the_default_is_as_large_as_it_may_be(count, size):
    """Triples where they leave at most 20,000 candidates, else pairs where at most 100,000, else single attributes."""
    domain = Domain.from_sizes({f"x{number}": 2 for number in range(count)})
    workload = Workload.default(domain)
    assert max(map(len, workload.candidates)) == size and len(workload.candidates) <= MAX_CANDIDATES
    targeted = Workload.default(domain, ["x3"])
    assert all("x3" in clique for clique in targeted.weights)


@pytest.mark.parametrize("most", [100, 10**30])
def test_a_wide_clique_is_answered_at_once(most):
    """One of 60 attributes has 2^60 cliques inside: those that are small enough are found without looking at others."""
    domain = Domain.from_sizes({f"x{number}": 7 for number in range(60)})
    if most == 100:
        assert len(Workload.of(domain, [domain.names], max_cells=most).candidates) == 60 + 60 * 59 // 2
    else:
        with pytest.raises(TooLarge, match="more than 100,000"):
            Workload.of(domain, [domain.names], max_cells=most)


@pytest.mark.parametrize("workload", [
    Workload.all(DOMAIN, 2, never=[("b", "a")], max_cells=15), Workload.targeted(DOMAIN, ["c"], 2),
    Workload.of(DOMAIN, {("a", "b"): "1/3", ("c",): 2}, never=[("a", "d")]), Workload.default(DOMAIN),
])  # fmt: skip
def test_plain_values_say_all(workload):
    """Read again they are the same workload."""
    again = Workload.from_dict(DOMAIN, workload.to_dict())
    assert again == workload and again.candidates == workload.candidates and again.to_dict() == workload.to_dict()


WRONG = [
    3,
    {"ordre": 2},
    *({"order": order} for order in (0, True, "2")),
    *({"max_cells": cells} for cells in (0, "many", 1)),  # one table of one cell: all are too large
    *({"order": 2, "targets": targets} for targets in (["z"], [], [3])),
    *({"never": never} for never in ("a", ["a", 3], [["z"]], [["a"], ["b"], ["c"], ["d"]])),
    {"order": 2, "weights": [{"clique": ["a"]}]},
    *({"weights": weights} for weights in ("a", [], [{"clique": ["a", "b"]}, {"clique": ["b", "a"]}])),
    *({"weights": [{"clique": ["a"], "weight": weight}]} for weight in (0, float("nan"))),
    *({"weights": [{"clique": clique}]} for clique in (["a", "a"], "a", [])),
    {"weights": [{"clique": ["a"], "x": 1}]},
]


@pytest.mark.parametrize("plain", WRONG, ids=str)
def test_nonsense_is_refused(plain):
    """One line of our errors each."""
    with pytest.raises(DpgmError) as caught:
        Workload.from_dict(DOMAIN, plain)
    assert "\n" not in str(caught.value)


def test_settings_in_python_are_held_to_the_same():
    """A text is no list of cliques, and nothing is wanted by an empty list."""
    for make in (
        lambda: Workload.of(DOMAIN, []),
        lambda: Workload.all(DOMAIN, 2, never="ab"),
        lambda: Workload.of(DOMAIN, [("a", "b")], max_cells=0),
        lambda: Workload.targeted(DOMAIN, 3),
    ):
        with pytest.raises((StructureError, OptionError)) as caught:
            make()
        assert "\n" not in str(caught.value)


def test_before_merging_pairs_of_any_size_are_candidates():
    """All pairs, with larger sets only where they are few; those of constraints, and under `never`, stay out."""
    domain = Domain.from_sizes({f"x{number}": 101 for number in range(4)})
    assert max(map(len, Workload.all(domain).candidates)) == 1
    assert max(map(len, Workload.all(domain).before_merging().candidates)) == 3
    many = Workload.all(Domain.from_sizes({f"x{number}": 101 for number in range(30)}), never=[("x1", "x2")])
    assert max(map(len, many.before_merging().candidates)) == 2
    assert len(many.before_merging().candidates) == 30 + 30 * 29 // 2 - 1
    small = Workload.all(DOMAIN)
    assert small.before_merging() is small
    plain = {name: {"size": 101, "unknown": 0} for name in "abc"}
    rules = {"r": {"columns": ["a", "b"], "impossible": [["0", "1"]]}}
    ruled = Workload.all(Domain.from_dict({"attributes": plain, "constraints": rules})).before_merging()
    assert [one for one in ruled.candidates if len(one) > 1] == [("a", "c"), ("b", "c")]
    assert ruled.large_pairs() == [("a", "b"), ("a", "c"), ("b", "c")]


def test_more_pairs_than_there_may_be_leave_the_workload_as_it_is():
    """500 columns have 124,750 pairs: without those that are too large there are few."""
    sizes = {f"x{number}": 101 if number > 5 else 2 for number in range(500)}
    workload = Workload.all(Domain.from_sizes(sizes), 2, max_cells=110)
    assert workload.before_merging() is workload
    assert len(workload.large_pairs()) == 124_750 - 15


def test_pairs_that_are_left_out_are_named_with_the_limit_that_admits_them():
    """Both limits hold what they say: the one that admits all, and the one in force."""
    domain = Domain.from_sizes({"a": 200, "b": 99, "c": 102, "d": 3})
    workload = Workload.all(domain, never=[("b", "c")])
    expected = (
        "pairs left out for more than max_cells = 10,000 cells: 2 of 5 (a x b, a x c); max_cells = 21000 admits all"
    )
    assert workload.say_large_pairs() == [expected]
    assert Workload.all(domain, max_cells=21_000).say_large_pairs() == []
    merging = workload.before_merging()
    assert merging.say_large_pairs()[0].startswith("pairs measured only if merging leaves at most max_cells = 10,000")
    merged = Domain.from_sizes({"a": 150, "b": 8, "c": 80, "d": 3})
    assert merging.large_pairs(merged) == [("a", "c")]
    assert ("a", "c") not in merging.measurable(merged) and ("a", "b", "d") in merging.measurable(merged)


def test_singletons_are_added_where_a_workload_leaves_attributes_out():
    """Alone, with the least weight; what is in it already changes nothing, what cannot be measured is named."""
    domain = Domain.from_sizes({"a": 2, "b": 2, "c": 2, "big": 50})
    narrow = Workload.of(domain, {("a", "b"): 2, ("b", "c"): 3})
    wide = narrow.with_singletons()
    assert wide.attributes == ("a", "b", "c", "big") and wide.weights[("big",)] == 2
    assert {clique: wide.weights[clique] for clique in narrow.weights} == dict(narrow.weights)
    assert Workload.all(domain).with_singletons() == Workload.all(domain)
    with pytest.raises(StructureError, match="'big' alone has more than 10 cells"):
        Workload.of(domain, [("a", "b")], max_cells=10).with_singletons()


def test_the_default_of_two_related_tables_covers_all_columns_and_falls_back_to_pairs(monkeypatch):
    """Every attribute of the pairs is a candidate, no set is of the child before alone; of many child columns pairs."""
    root, children = Domain.from_sizes({"own": 2, "town": 3}), Domain.from_sizes({"age": 4, "sex": 2})
    for most in (1, 2, 3, 5):
        related = Related(root=root, children=children, key="id", max_children=most)
        workload = Workload.related(related)
        assert set(workload.attributes) >= set(related.pair.names) - {"position"}
        assert ("position" in workload.attributes) == (most > 2)
        assert not [one for one in workload.weights if all(name.startswith("previous.") for name in one)]
    monkeypatch.setattr("dpgm_core.structure.workload.MAX_CANDIDATES", 1000)
    many = Domain.from_sizes({f"c{at}": 2 for at in range(13)})
    wide = Workload.related(Related(root=root, children=many, key="id", max_children=4))
    assert max(map(len, wide.weights)) == 2 and "size" in wide.attributes
    assert set(wide.attributes) >= {f"{slot}c{at}" for slot in ("", "first.", "previous.") for at in range(13)}
