"""Domains are matched by the names of their attributes, attributes by their labels; a comparison as plain values."""

import json

import numpy as np
import pytest

from app.tests.made import domain_of
from dpgm.comparison import compare
from dpgm.comparison.values import matching
from dpgm_core._util.files import plain


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


def test_the_plain_values_are_json(folder):
    """All kinds; the privacy sentence says what the stamps say."""
    found = compare(folder / "m.dpgm", folder / "n.dpgm", folder / "s.parquet", folder / "m.release.dpgm")
    told = json.loads(json.dumps(plain(found.to_dict())))
    assert [one["kind"] for one in told["subjects"]] == ["model", "model", "synthetic", "release"]
    assert [one["private"] for one in told["subjects"]] == [False] * 4  # all come from a seed
    assert "no more private than they are: NOT PRIVATE (private = false)" in told["privacy"]
    assert [bool(pair["kl"]) for pair in told["pairs"]] == [True, False, False]
