"""Conditions of a guarantee: one set of words, in the release's guarantee and in the ledger's entry."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, Ledger, SeededRandomness, Structure, Terms
from dpgm_core.privacy.terms import PUBLIC_N, SEEDED, UNSAFE, charge_conditions
from dpgm_core.sources import as_source

STRUCTURE = Structure(dpgm.Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
CODES = np.array([[0, 0], [1, 1]] * 20)
TEXTBOOK = {"name": "laplace", "exact": False, "allow_unsafe": True}


@pytest.mark.parametrize(
    ("neighbours", "total", "person", "published"),
    [
        ("add-remove", "estimated", None, False),
        ("add-remove", "public", None, True),
        ("add-remove", "public", "id", True),
        ("add-remove", 100, None, False),  # the owner's number, not the data's
        ("replace-one", "public", None, False),
        ("replace-one", "public", "id", True),
        ("replace-one", "estimated", "id", False),
    ],
)
def test_when_the_published_total_is_a_condition(neighbours, total, person, published):
    """Under add-remove, and wherever rows have a person key that can be missing."""
    terms = Terms(neighbours=neighbours, total=total, person=person)
    assert (terms.condition is not None) is published
    assert charge_conditions(terms, unsafe=None, private=True) == ((PUBLIC_N,) if published else ())


@pytest.mark.parametrize(("public", "unsafe", "seeded"), list(itertools.product((False, True), repeat=3)))
def test_the_entry_says_what_the_guarantee_says(tmp_path, public, unsafe, seeded):
    """Each of the three, and all together: in the ledger's entry before, in the release's guarantee after the noise."""
    ledger = Ledger.create(tmp_path / "x.ledger", name="x", budget=Budget.pure(1), neighbours="add-remove")
    release = dpgm.release(
        CODES, STRUCTURE, Budget.pure(1), TEXTBOOK if unsafe else "laplace", ledger=ledger,
        terms=Terms(neighbours="add-remove", total="public" if public else "estimated"),
        randomness=SeededRandomness(1) if seeded else None,
    )  # fmt: skip
    (entry,) = Ledger.open(ledger.path).history()
    said = release.guarantee()
    for condition, there in ((PUBLIC_N, public), (f"{UNSAFE} noise", unsafe), (SEEDED, seeded)):
        assert (condition in entry.conditions) is there
        words = {PUBLIC_N: PUBLIC_N.upper(), f"{UNSAFE} noise": "UNSAFE: "}.get(condition, condition)
        assert (words in said) is there
    assert ("conditional" in ledger.describe()) is bool(entry.conditions)


def test_rounds_are_charged_with_their_conditions(tmp_path):
    """The other way to a charge."""
    ledger = Ledger.create(tmp_path / "x.ledger", name="x", budget=Budget.pure(1), neighbours="add-remove")
    curator = dpgm.LiveCurator(
        as_source(CODES), STRUCTURE, dpgm.make("mechanism", "laplace"),
        terms=Terms(neighbours="add-remove", total="public"), budget=Budget.pure(1), ledger=ledger,
    )  # fmt: skip
    with curator.rounds(2, sampling_rate=0.5) as rounds:
        rounds.next()
    assert [entry.conditions for entry in ledger.history()] == [(PUBLIC_N,)]
