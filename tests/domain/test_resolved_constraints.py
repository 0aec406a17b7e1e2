"""Constraints together: what they leave of each attribute, contradictions by name, and chains of orders."""

import itertools

import numpy as np
import pytest
from attrs import evolve

from dpgm_core.domain import Ordered
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.resolved_constraints import Resolved, chain_rules, chains
from dpgm_core.domain.values import Values
from dpgm_core.errors import DomainError


def domain(sizes, **rules):
    return Domain.from_dict(
        {"attributes": {name: {"size": size, "unknown": 0} for name, size in sizes.items()}, "constraints": rules}
    )


def order(*columns, sign="<"):
    return {"columns": list(columns), "order": sign}


def test_constraints_that_leave_an_attribute_without_labels_are_named():
    """A circle of inequalities by arc consistency, or one constraint alone; others are not named."""
    with pytest.raises(DomainError, match=r"constraints 'one', 'two' leave no label of '[ab]' possible"):
        domain({"a": 9, "b": 9, "c": 2, "d": 2}, one=order("a", "b"), two=order("b", "a"), three=order("c", "d"))
    with pytest.raises(DomainError, match=r"constraint 'x' leaves no label of 'a' possible"):
        domain({"a": 2, "b": 2}, x={"columns": ["a"], "impossible": [["*"]]}, y=order("a", "b"))


def test_what_follows_from_a_chain_is_known_of_each_attribute():
    """a < b < c over three labels leaves one record."""
    chain = domain(dict.fromkeys("abc", 3), one=order("a", "b"), two=order("b", "c"))
    assert [int(np.flatnonzero(~chain.impossible((name,)))[0]) for name in "abc"] == [0, 1, 2]
    assert (~chain.impossible(("c", "a"))).sum() == 1


def test_records_that_break_a_constraint_are_counted_for_each():
    rules = domain({"a": 2, "b": 2}, x=order("a", "b"), y={"columns": ["a"], "impossible": [["1"]]})
    assert rules.broken({"a": np.array([0, 1, 1, 0]), "b": np.array([1, 1, 0, 0])}) == {"x": 3, "y": 2}


def test_codes_that_constraints_are_about_are_never_merged():
    """What is said of a label would be lost; others are merged as before, and the constraints stay."""
    rules = domain({"a": 2, "b": 2, "c": 3}, x=order("a", "b", sign="<="))
    with pytest.raises(DomainError, match="the codes of 'a' cannot be merged: constraint 'x' is about them"):
        rules.coarsened({"a": [0, 0]})
    assert rules.coarsened({"a": [0, 1], "c": [0, 1, 1]}).constraints == rules.constraints


def test_a_column_that_a_map_tells_needs_no_table_unless_it_is_taken():
    """Also through another such column; one that two constraints mention is no such column."""
    to = {"columns": ["a", "b"], "map": [[0, 0], [1, 1], [2, 1]]}
    rules = domain({"a": 3, "b": 2, "c": 2}, x=to, y={"columns": ["b", "c"], "map": [[0, 1], [1, 0]]})
    assert [(one.column, one.of, one.code.tolist()) for one in rules.derived(())] == [
        ("b", "a", [0, 1, 1]),
        ("c", "b", [1, 0]),
    ]
    assert [one.column for one in rules.derived(("c",))] == []
    several = domain({"a": 3, "b": 2, "c": 2}, x=to, y=order("b", "c", sign="<="))
    assert several.derived(()) == ()


def test_resolving_nothing_rules_out_nothing():
    assert Resolved({"a": Attribute.of_size("a", 2)}, ()).impossible(("a",)) is None


TOP = 6
GRAPHS = {
    "chain": ["ab", "bc"],
    "four": ["ab", "bc", "cd"],
    "joined": ["ab", "bc", "ac"],
    "diamond": ["ab", "bd", "ac", "cd"],
    "one above two": ["ac", "bc", "cd"],
}


def column(random, name, kind):
    edges = np.sort(random.choice(np.arange(TOP + 1), random.integers(2, 4), replace=False)).astype(float)
    return evolve(Attribute.of_bins(name, edges.tolist(), unknown="missing"), values=Values(kind=kind))


def grid(kind):
    """Enough values: orders of four columns among any numbers take three small steps."""
    return np.arange(TOP + 1) if kind == "integer" else np.arange(4 * TOP + 1) / 4


def fitting(columns, orders):
    """(codes, ...): whether some values of these codes keep all orders, by enumeration; missing ones bind nothing."""
    values = [grid(one.values.kind) for one in columns]
    keeps = np.ones([len(one) + 1 for one in values], dtype=bool)  # the last place of an axis: no value
    for order in orders:
        axes = [next(at for at, one in enumerate(columns) if one.name == name) for name in order.columns]
        low, high = values[axes[0]][:, None], values[axes[1]][None, :]
        pair = np.ones((low.shape[0] + 1, high.shape[1] + 1), dtype=bool)
        pair[:-1, :-1] = low < high if order.strict else low <= high
        pair = pair if axes[0] < axes[1] else pair.T
        keeps &= pair.reshape([size if at in axes else 1 for at, size in enumerate(keeps.shape)])
    for axis, one in enumerate(columns):
        codes = np.array([*one.bin_codes(values[axis]), one.null])
        keeps = np.stack([keeps.take(np.flatnonzero(codes == code), axis).any(axis) for code in range(one.size)], axis)
    return keeps


def left(columns, orders):
    found = np.ones([one.size for one in columns], dtype=bool)
    names = [one.name for one in columns]
    for rule in Resolved({one.name: one for one in columns}, orders).rules:
        mask = rule.mask.transpose(np.argsort([names.index(name) for name in rule.columns]))
        found &= ~mask.reshape([one.size if one.name in rule.columns else 1 for one in columns])
    return found


@pytest.mark.sampled(4)
@pytest.mark.parametrize("shape", GRAPHS)
@pytest.mark.parametrize("kinds", [["integer"], ["number"], ["integer", "number"]], ids="-".join)
def test_codes_are_left_if_and_only_if_values_fit(shape, kinds):
    """40 domains each: bins at whole edges, orders strict and not; some chains say more than their orders do."""
    random, more = np.random.default_rng(7), 0
    for _ in range(40):
        names = sorted({name for pair in GRAPHS[shape] for name in pair})
        columns = [column(random, name, kinds[at % len(kinds)]) for at, name in enumerate(names)]
        orders = [
            Ordered(name=pair, columns=(pair[0], pair[1]), strict=bool(random.integers(2))) for pair in GRAPHS[shape]
        ]
        np.testing.assert_array_equal(left(columns, orders), fitting(columns, orders))
        more += bool(list(chain_rules(orders, {one.name: one for one in columns})))
    assert more


def test_a_missing_value_in_between_binds_nothing():
    """[5, 10), missing, [0, 5) is possible; where the column between is never missing a pair tells."""
    bins = {"a": [0, 5, 10], "b": [0, 10], "c": [0, 5, 10]}
    orders = [Ordered(name=pair, columns=(pair[0], pair[1])) for pair in ("ab", "bc")]
    columns = {name: Attribute.of_bins(name, edges, unknown="missing") for name, edges in bins.items()}
    (rule,) = chain_rules(orders, columns)
    assert (rule.of, rule.columns) == (("ab", "bc"), ("a", "b", "c"))
    assert [at.tolist() for at in np.nonzero(rule.mask)] == [[1], [0], [0]]
    columns["b"] = Attribute.of_bins("b", bins["b"], unknown="[0, 10]")
    (rule,) = chain_rules(orders, columns)
    assert rule.columns == ("a", "c") and rule.mask.sum() == 1


@pytest.mark.parametrize("make", [
    lambda name: Attribute.of_bins(name, [0, 5, 10, 20], unknown="missing"),
    lambda name: Attribute.of_size(name, 4),
    lambda name: Attribute.of_labels(name, ["low", "mid", "high"], unknown="missing"),
], ids=["bins", "numbers", "words"])  # fmt: skip
def test_columns_alike_need_no_rule_of_a_chain(make):
    """Whose bins ascend pair by pair ascend: no table is made of three columns; labels are single values."""
    columns = {name: make(name) for name in "abcd"}
    orders = [Ordered(name=f"{x}{y}", columns=(x, y)) for x, y in itertools.pairwise("abcd")]
    assert not list(chain_rules(orders, columns))


def test_a_circle_of_strict_orders_leaves_no_values():
    """Its records lack one of the two; where none may, the domain is empty, and says so."""
    orders = [Ordered(name="x", columns=("a", "b"), strict=True), Ordered(name="y", columns=("b", "a"))]
    columns = {name: Attribute.of_bins(name, [0, 5, 10], unknown="missing") for name in "ab"}
    (rule,) = chain_rules(orders, columns)
    assert rule.mask.tolist() == [[True, True, False], [True, True, False], [False, False, False]]
    columns = {name: Attribute.of_bins(name, [0, 5, 10], unknown="[0, 5)") for name in "ab"}
    with pytest.raises(DomainError, match=r"constraints 'x', 'y' leave no label of '[ab]' possible"):
        assert not Resolved(columns, orders).possible


def test_orders_of_all_with_all_are_refused():
    """Ten columns, each below all that follow, have more chains than tables could hold."""
    with pytest.raises(DomainError, match="make more than 10,000 chains; order neighbours only"):
        chains([(low, high, True) for low, high in itertools.combinations("abcdefghijklmnop", 2)])
