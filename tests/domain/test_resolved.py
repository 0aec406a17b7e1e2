"""Constraints together: what they leave of each attribute, contradictions by name, and who breaks them."""

import numpy as np
import pytest

from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.resolved_constraints import Resolved
from dpgm_core.errors import DomainError


def domain(sizes, **rules):
    return Domain.from_dict(
        {"attributes": {name: {"size": size, "unknown": 0} for name, size in sizes.items()}, "constraints": rules}
    )


def order(*columns, sign="<"):
    return {"columns": list(columns), "order": sign}


def test_a_circle_of_inequalities_is_an_empty_domain():
    """Arc consistency takes label after label away; the constraints are named, others are not."""
    with pytest.raises(DomainError, match=r"constraints 'one', 'two' leave no label of '[ab]' possible"):
        domain({"a": 9, "b": 9, "c": 2, "d": 2}, one=order("a", "b"), two=order("b", "a"), three=order("c", "d"))


def test_one_constraint_can_leave_an_attribute_without_labels():
    """It is named alone."""
    with pytest.raises(DomainError, match=r"constraint 'x' leaves no label of 'a' possible"):
        domain({"a": 2, "b": 2}, x={"columns": ["a"], "impossible": [["*"]]}, y=order("a", "b"))


def test_what_follows_from_a_chain_is_known_of_each_attribute():
    """a < b < c over three labels leaves one record."""
    chain = domain(dict.fromkeys("abc", 3), one=order("a", "b"), two=order("b", "c"))
    assert [int(np.flatnonzero(~chain.impossible((name,)))[0]) for name in "abc"] == [0, 1, 2]
    assert (~chain.impossible(("c", "a"))).sum() == 1


def test_records_that_break_a_constraint_are_counted_for_each():
    """One record may break two."""
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
    """Without constraints there is no mask to compute."""
    assert Resolved({"a": Attribute.of_size("a", 2)}, ()).impossible(("a",)) is None
