"""Domains are matched by the names of their attributes, and attributes by their labels."""

import numpy as np
import pytest

from app.tests.comparison.made import domain_of
from dpgm.comparison.values import matching


def test_other_orders_are_matched():
    """Of attributes and of labels: a table of the other is turned into the first's order, axis by axis."""
    one = domain_of(a=["x", "y", "z"], b=["1", "2"])
    two = domain_of(b=["2", "1"], a=["z", "x", "y"])
    found = matching(one, two)
    assert found.shared == found.reordered == ("a", "b")
    table = np.arange(6).reshape(3, 2)  # axes a, b, the other's labels
    aligned = found.aligned(("a", "b"), table)
    for label, code in {"x": 1, "y": 2, "z": 0}.items():
        for number, place in {"1": 1, "2": 0}.items():
            assert aligned[one["a"].labels.index(label), one["b"].labels.index(number)] == table[code, place]
    assert matching(two, one).aligned(("a", "b"), aligned) == pytest.approx(table)


def test_what_cannot_be_compared_is_named():
    """Other labels under one name, attributes of one side, and what was not measured."""
    found = matching(
        domain_of(a=["x", "y"], b=["1", "2"], c=["0", "1"], d=["0", "1"]),
        domain_of(a=["x", "w"], c=["0", "1"], d=["0", "1"], e=["0", "1"]),
        unknown=("d",),
    )
    assert found.shared == ("c",) and found.reordered == ()
    assert found.labels == {"a": (("y",), ("w",))}
    assert (found.only_first, found.only_other, found.unmeasured) == (("b",), ("e",), ("d",))
    assert found.to_dict()["other_labels"] == {"a": {"only_first": ["y"], "only_other": ["w"]}}
