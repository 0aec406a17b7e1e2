"""What the selectors share: room for models."""

import pytest
from dpgm_select.common import check_workload
from dpgm_select.mst import Mst

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, OptionError, StructureError, TooLarge, Workload
from dpgm_core.domain import Ordered
from dpgm_core.learning import ModelSize


def test_constraints_are_in_every_model_when_room_is_made():
    """A pair that would fit alone does not beside the tables of constraints; that is refused before the charge."""
    plain = Domain.from_sizes({"a": 10, "b": 10, "c": 2})
    workload = Workload.all(Domain(plain.attributes, [Ordered(name="x", columns=("a", "b"))]))
    assert Mst(max_fit_bytes=16 * 120).check_room(workload) == []
    with pytest.raises(TooLarge, match="the tables of constraints among them, so there is nothing to choose"):
        Mst(max_fit_bytes=16 * 99, merge=False).check_room(workload)


def test_candidates_that_take_too_long_alone_are_counted_before_the_charge():
    """Of ten columns of five labels all 120 triples are, at the time of a pair with eight columns alone."""
    workload = Workload.all(Domain.from_sizes(dict.fromkeys("abcdefghij", 5)), order=3)
    pair = ModelSize(workload.domain, [("a", "b")]).seconds()
    [note] = Mst(max_fit_seconds=pair).check_room(workload)
    assert note.startswith("120 of 165 candidates are left out, as with any of them the inferences of a fit would take")
    assert f"max_fit_seconds = {pair:g}" in note and Mst().check_room(workload) == []


@pytest.mark.parametrize("name", ["max_model_cells", "max_clique_cells"])
@pytest.mark.parametrize("selector", ["auto", "grow", "aim", "mst", "oneshot", "privbayes"])
def test_limits_of_cells_are_refused_with_the_name_of_todays(selector, name):
    with pytest.raises(OptionError, match=f"has option 'max_fit_(seconds|bytes)' in place of '{name}'"):
        dpgm.make("selector", {"name": selector, name: 1000})


def test_a_default_workload_of_very_many_columns_says_what_to_do():
    """`auto` chooses the order itself, and where pairs are too many, order = 2 is no advice."""
    workload = Workload.default(Domain.from_sizes({f"c{number}": 2 for number in range(500)}))
    with pytest.raises(StructureError, match=r"500 of them have too many pairs .* targets = \[\"COLUMN\"\]"):
        check_workload("mst", workload, Budget.pure(1))
    few = Workload.all(Domain.from_sizes({"a": 2, "b": 2}), order=1)
    with pytest.raises(StructureError, match="by order = 2"):
        check_workload("mst", few, Budget.pure(1))
