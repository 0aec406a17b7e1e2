"""Regressions as values: what is regressed on what, and what fits."""

import numpy as np
import pytest

from dpgm_core import Domain, OptionError, Structure, StructureError, TooLarge
from dpgm_core.privacy.descent import Regressions
from tests.privacy.candidates import regressions


@pytest.mark.parametrize(("loss", "k"), [("logistic", 2), ("softmax", 3), ("pairs", 3), ("pairs", 2)])
def test_an_attribute_is_never_regressed_on_itself_nor_on_pairs_left_out(loss, k):
    """A weight is allowed exactly where row and column together are a candidate, or the column is the constant."""
    own = regressions(loss, k, p=4, cliques=[("b", "a"), ("b", "c")])
    assert own.nodes == ("a", "b", "c")
    for row, (name, _) in enumerate(own.rows):
        for column, (others, _) in enumerate(own.columns):
            meant = not others or {name, *others} in ({"a", "b"}, {"b", "c"})
            assert own.allowed[row, column] == meant
    assert own.columns[-1] == ((), ())


def test_each_regression_has_the_rows_and_the_choices_of_its_loss():
    """One a node; one for each label and a choice over all of them; one for each two labels, and touched by k - 1."""
    logistic, softmax, pairs = regressions("logistic"), regressions("softmax", 3), regressions("pairs", 3)
    assert logistic.rows == (("a", (0, 1)), ("b", (0, 1)), ("c", (0, 1)))
    assert logistic.choices == ((0,), (1,), (2,))
    assert softmax.rows[:4] == (("a", (0,)), ("a", (1,)), ("a", (2,)), ("b", (0,)))
    assert softmax.choices == ((0, 1, 2), (3, 4, 5), (6, 7, 8))
    assert pairs.rows[:4] == (("a", (0, 1)), ("a", (0, 2)), ("a", (1, 2)), ("b", (0, 1)))
    assert pairs.choices == tuple((row,) for row in range(9))
    assert (logistic.touched, softmax.touched, pairs.touched) == (3, 3, 6)


def test_products_are_those_of_the_other_attributes_of_each_clique():
    """A triple gives each of its attributes the product of the two others, and no weight on them one by one."""
    own = regressions("logistic", cliques=[("c", "a", "b")])
    names = [names for names, _ in own.columns]
    assert names == [("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c"), ()]
    assert [names[column] for column in np.flatnonzero(own.allowed[1])] == [("a", "c"), ()]


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: regressions("logistic", 3), StructureError, "3 codes"),
        (lambda: regressions("softmax", 2, cliques=[("a", "b", "c")]), StructureError, "takes pairs"),
        (lambda: regressions("softmax", 1), StructureError, "one code"),
        (lambda: regressions("logistic", cliques=[("a",)]), StructureError, "nothing to be regressed on"),
        (lambda: regressions("hinge"), OptionError, "loss must be"),
        (lambda: regressions(True), OptionError, "loss must be"),
        (lambda: regressions("softmax", 1000, p=6), TooLarge, "6,000 x 6,001"),
        (lambda: Regressions(candidates=[("a", "b")], loss="pairs"), StructureError, "must be a Structure"),
    ],
)
def test_regressions_that_do_not_fit_are_refused(make, error, match):
    """One sentence that says what is wrong."""
    with pytest.raises(error, match=match):
        make()


def test_tied_candidates_are_refused():
    """Tied cliques would share weights."""
    domain = Domain.from_sizes(dict.fromkeys("abc", 2))
    with pytest.raises(StructureError, match="tied"):
        Regressions(candidates=Structure(domain, [], tied=[[("a", "b"), ("b", "c")]]), loss="logistic")
