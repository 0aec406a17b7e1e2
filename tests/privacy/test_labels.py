"""What finding labels will cost, told from public facts."""

from fractions import Fraction

from dpgm_core import Budget, Domain, Terms
from dpgm_core.privacy.labels import open_columns, plan_labels, with_placeholders

OPEN = {"labels": {"private": True, "keep": 4}}


def test_each_open_column_has_its_share_and_the_least_threshold():
    """An exchange moves twice as many counts, so it takes twice the noise; a person of r rows r times as much."""
    domain = Domain.from_dict({"attributes": {"a": OPEN, "b": {"size": 2}, "c": OPEN}})
    assert [one.name for one in open_columns(domain)] == ["a", "c"]
    budget = Budget.approx(1, "1e-6")
    asked = plan_labels(domain, budget, Terms(neighbours="add-remove"))
    assert [(one.column, one.keep, one.budget) for one in asked] == [(n, 4, budget * Fraction(1, 10)) for n in "ac"]
    assert asked[0].noise.scale == 10
    twice = plan_labels(domain, budget, Terms(neighbours="replace-one"))[0].noise
    several = plan_labels(domain, budget, Terms(neighbours="add-remove", person="id", rows_per_person=3))[0].noise
    assert (twice.scale, several.scale) == (20, 30)
    assert asked[0].noise.threshold < twice.threshold < several.threshold
    assert f"a label that {asked[0].noise.threshold} persons have" in asked[0].note()


def test_placeholders_hold_the_largest_sizes():
    """As many labels as may be found, `other` and `missing`; constraints on open columns wait until they are."""
    rules = {
        "x": {"columns": ["a", "b"], "impossible": [["cook", "1"]]},
        "y": {"columns": ["b", "c"], "impossible": [["1", "1"]]},
    }
    domain = Domain.from_dict({"attributes": {"a": OPEN, "b": {"size": 2}, "c": {"size": 2}}, "constraints": rules})
    held = with_placeholders(domain)
    assert held.undetermined == () and held["a"].size == 6
    assert [one.name for one in held.constraints] == ["y"]
    assert with_placeholders(held) is held
