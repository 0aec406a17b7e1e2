"""Guarantees of several releases add up to one, or the releases are refused."""

import numpy as np
import pytest
from attrs import evolve

import dpgm_core as dpgm
from dpgm_core import Budget, BudgetError, Domain, Structure, Terms
from dpgm_core.releases.pooling import check_alike

STRUCTURE = Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")])


def released(**terms):
    """A release of a few records under these terms."""
    codes = np.array([[0, 1], [1, 2]] * 20)
    stated = Terms(**{"neighbours": "add-remove"} | terms)
    return dpgm.release(codes, STRUCTURE, Budget.pure(1), "laplace", terms=stated)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"neighbours": "replace-one"}, "add-remove and replace-one neighbours do not add up"),
        ({"unit": "one visit"}, "different units .* one record, .* one visit"),
        ({"person": "who"}, "different units"),
        ({"person": "who", "rows_per_person": 2}, "different units"),
        (
            {"person": "who", "rows_per_person": 2, "contributions": dpgm.Contributions(per="clique", grid=12)},
            "weight rows differently",
        ),
    ],
)
def test_guarantees_that_do_not_add_up_are_refused(change, words):
    """Under other terms a second release is about other people, so no sentence is true of both."""
    one = released()
    other = evolve(one, terms=evolve(one.terms, **change))
    for several in ([one, other], [other, one], [one, one, other]):
        with pytest.raises(BudgetError, match="weight rows" if "weight" in words else "do not add up") as caught:
            check_alike(several)
        assert "\n" not in str(caught.value)
    with pytest.raises(BudgetError, match=words):
        check_alike([one, other])


def test_totals_may_become_known_in_different_ways():
    """An estimated and a declared N go together: each release says its own."""
    check_alike([released(), released(total=40)])
