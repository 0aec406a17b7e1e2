"""Order between columns, through bins and labels, against all pairs of values."""

import itertools

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.domain import Ordered
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.values import Values
from dpgm_core.errors import DomainError


def binned(name, edges, kind="integer"):
    return evolve(Attribute.of_bins(name, edges, unknown="missing"), values=Values(kind=kind))


edges = st.lists(st.integers(0, 12), min_size=2, max_size=5, unique=True).map(sorted)


@given(edges, edges, st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_pair_of_bins_is_impossible_only_if_no_pair_of_whole_values_fits(first, second, strict):
    """Every pair of whole numbers is tried; missing values pass."""
    pair = binned("s", first), binned("e", second)
    fits = np.zeros((pair[0].size, pair[1].size), dtype=bool)
    fits[-1], fits[:, -1] = True, True
    for low, high in itertools.product(range(13), repeat=2):
        if low < high or (low == high and not strict):
            fits[pair[0].code(str(low)), pair[1].code(str(high))] = True
    found = Ordered(name="x", columns=("s", "e"), strict=strict).impossible(pair)
    assert (~found).tolist() == fits.tolist()


def test_other_numbers_fit_between_whole_ones():
    """[1, 2) and [1, 2) hold two of which one is above the other, if they need not be whole; a closed end counts."""
    pair = binned("s", [1, 2, 3], "number"), binned("e", [0, 1, 2], "number")
    assert Ordered(name="x", columns=("s", "e")).impossible(pair).astype(int).tolist() == [
        [1, 0, 0],
        [1, 0, 0],  # [2, 3] and [1, 2]: 2 and 2
        [0, 0, 0],
    ]
    assert Ordered(name="x", columns=("s", "e"), strict=True).impossible(pair).astype(int).tolist() == [
        [1, 0, 0],
        [1, 1, 0],
        [0, 0, 0],
    ]


def test_labels_are_compared_by_number_or_by_place():
    """By their numbers if they have some, in whatever order; else by their places, missing ones passing."""
    numbers = Attribute.of_labels("s", ["10", "9"], unknown="missing"), Attribute.of_size("e", 11)
    found = Ordered(name="x", columns=("s", "e")).impossible(numbers)
    assert found.sum(axis=1).tolist() == [10, 9, 0]
    words = tuple(Attribute.of_labels(name, ["low", "mid", "high"], unknown="missing") for name in "se")
    assert Ordered(name="x", columns=("s", "e"), strict=True).impossible(words).astype(int).tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [0, 0, 0, 0],
    ]


@pytest.mark.parametrize(("other", "said"), [
    (Attribute.of_labels("e", ["no", "yes"], unknown="no"), "whose labels are none"),
    (binned("e", [0, 1], "date"), "compares numbers, s, with date, e"),
])  # fmt: skip
def test_columns_that_cannot_be_compared_are_refused(other, said):
    """Numbers with words, dates with numbers."""
    with pytest.raises(DomainError, match=said):
        Ordered(name="x", columns=("s", "e")).check((binned("s", [0, 1]), other))


def test_words_in_another_order_are_refused():
    """Their places say nothing then."""
    pair = tuple(Attribute.of_labels(n, words, unknown="?") for n, words in (("s", ["a", "b"]), ("e", ["b", "a"])))
    with pytest.raises(DomainError, match="by the places of their labels, which differ"):
        Ordered(name="x", columns=("s", "e")).check(pair)
