"""Scores by the distance of tables: what they are made of, how far a person moves them, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest

from dpgm_core import Domain, Structure, StructureError, Terms
from dpgm_core.privacy.selection import SCORE_GRID, WEIGHT_GRID, TableDistance

DOMAIN = Domain.from_sizes({"a": 2, "b": 2, "c": 2})
PAIRS = Structure(DOMAIN, [("a", "b"), ("b", "c")])


def distance(**more):
    """Of both pairs from a flat table, with changes."""
    return TableDistance(**{"candidates": PAIRS, "predicted": np.full(8, 25.0)} | more)


@pytest.mark.parametrize(
    ("neighbours", "rows", "move"),
    [("add-remove", 1, 1), ("add-remove", 3, 3), ("replace-one", 1, 2), ("replace-one", 3, 6)],
)
def test_how_far_a_person_moves_a_distance(neighbours, rows, move):
    """r rows under add-remove, 2 r under replace-one; whatever weights, offsets and predictions are."""
    terms = Terms(neighbours=neighbours, person="id" if rows > 1 else None, rows_per_person=rows)
    assert distance().move(terms) == move
    assert distance(weights=(Fraction(1, 9), Fraction(900)), offsets=(1e9, 0.0)).move(terms) == move


def test_numbers_are_whole_and_bounded():
    """Predictions and offsets in units of 1/1024 record, weights in units of 1/4096 of the greatest, none of them 0."""
    scores = distance(
        predicted=np.array([0, -3, 0.5, 1e300, 1 / 3, 2, 2, 2]),
        weights=(Fraction(1, 10**9), Fraction(3)),
        offsets=(-1e300, 2.5),
    )
    assert scores.rounded.tolist() == [0, 0, 512, 2**40, 341, 2048, 2048, 2048]
    assert scores.whole_weights.tolist() == [1, WEIGHT_GRID]
    assert scores.whole_offsets.tolist() == [-(2**40), 2560]
    assert (distance().whole_weights.tolist(), distance().whole_offsets.tolist()) == ([4096, 4096], [0, 0])
    assert SCORE_GRID == 1024


def test_predictions_of_contrasts_keep_their_sign():
    """Cells filled up from noisy contrasts may be below 0, and count as they are."""
    scores = distance(predicted=np.array([0, -3, 0.5, -1e300, 1 / 3, 2, 2, 2]), contrast=True)
    assert scores.rounded.tolist() == [0, -3072, 512, -(2**40), 341, 2048, 2048, 2048]


def test_one_choice_of_all_or_one_of_each_group():
    """Candidates may be in several groups; numbers may be numpy's."""
    assert [list(one) for one in distance().choices] == [[0, 1]]
    assert distance(groups=[[np.int64(1)], (0, 1)]).choices == ((1,), (0, 1))
    assert all(type(number) is int for group in distance(groups=[[np.int64(1)]]).groups for number in group)


def test_a_prediction_cannot_change_after_it_was_looked_at():
    """NaN put in later would be a huge whole number that a single record turns around."""
    given = np.full(8, 25.0)
    scores = distance(predicted=given)
    given[:] = np.nan
    assert (scores.predicted == 25).all()
    with pytest.raises(ValueError, match="read-only"):
        scores.predicted[0] = np.nan


def test_no_child_of_an_array_sees_counts():
    """What true counts are subtracted from is a plain array."""

    class Curious(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **more):
            raise AssertionError("shown what it must not see")

    scores = distance(predicted=np.full(8, 25.0).view(Curious))
    assert type(scores.predicted) is np.ndarray and type(scores.rounded) is np.ndarray


WRONG = {
    "too few": {"predicted": np.zeros(7)},
    "another shape": {"predicted": np.zeros((2, 4))},
    "a list": {"predicted": [25.0] * 8},
    "texts": {"predicted": np.array(["1"] * 8)},
    "complex": {"predicted": np.zeros(8, complex)},
    "NaN": {"predicted": np.array([np.nan] * 8)},
    "infinite": {"predicted": np.full(8, np.inf)},
    "no structure": {"candidates": [("a", "b")]},
    "tied": {"candidates": Structure(DOMAIN, [], tied=[(("a", "b"), ("b", "c"))]), "predicted": np.zeros(4)},
    "a number for contrast": {"contrast": 1},
    "contrasts of three labels": {
        "candidates": Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")]),
        "predicted": np.zeros(6),
        "contrast": True,
    },
    "the contrast of nothing": {
        "candidates": Structure(DOMAIN, [("a", "b"), ()]),
        "predicted": np.zeros(5),
        "contrast": True,
    },
    "one weight": {"weights": (Fraction(1),)},
    "a weight for all": {"weights": Fraction(1)},
    "no weight": {"weights": (Fraction(1), Fraction(0))},
    "a negative weight": {"weights": (Fraction(1), Fraction(-1))},
    "float weights": {"weights": (1.0, 0.5)},
    "one offset": {"offsets": (1.0,)},
    "NaN offsets": {"offsets": (1.0, float("nan"))},
    "offsets of text": {"offsets": ("x", "y")},
    "no such candidate": {"groups": ((0, 2),)},
    "a negative number": {"groups": ((-1,),)},
    "an empty group": {"groups": ((0,), ())},
    "twice": {"groups": ((0, 0),)},
    "float numbers": {"groups": ((0.0,),)},
    "a bool for a number": {"groups": ((True,),)},
    "a bool for an offset": {"offsets": (True, 0.0)},
    "no groups": {"groups": 3},
}


@pytest.mark.parametrize("case", WRONG)
def test_nonsense_is_refused(case):
    """One line each, when the scores are made and not when records are looked at."""
    with pytest.raises(StructureError) as caught:
        distance(**WRONG[case])
    assert "\n" not in str(caught.value)


def test_attributes_that_have_no_contrast_are_named():
    """Those of one label and of three, up to five of them."""
    sizes = {"a": 2, "b": 3, "c": 1} | {f"x{place}": 3 for place in range(9)}
    for names, said in ((("a", "b", "c"), "'b', 'c' do"), (tuple(sizes), "'x2' and others do")):
        wide = Structure(Domain.from_sizes({name: sizes[name] for name in names}), [(name,) for name in names])
        with pytest.raises(StructureError, match=said):
            TableDistance(candidates=wide, predicted=np.zeros(wide.cells), contrast=True)


def test_offsets_may_be_an_array():
    """As selectors compute them."""
    assert distance(offsets=np.array([1.0, 2.0])).whole_offsets.tolist() == [1024, 2048]
