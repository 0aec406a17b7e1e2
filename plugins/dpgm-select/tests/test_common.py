"""What the selectors share: room for models."""

import pytest
from dpgm_select.common import check_workload
from dpgm_select.mst import Mst

from dpgm_core import Budget, Domain, StructureError, TooLarge, Workload
from dpgm_core.domain import Ordered


def test_constraints_are_in_every_model_when_room_is_made():
    """A pair that would fit alone does not beside the tables of constraints; that is refused before the charge."""
    plain = Domain.from_sizes({"a": 10, "b": 10, "c": 2})
    workload = Workload.all(Domain(plain.attributes, [Ordered(name="x", columns=("a", "b"))]))
    assert Mst(max_model_cells=120).check_room(workload) == []
    with pytest.raises(TooLarge, match="the tables of constraints among them, so there is nothing to choose"):
        Mst(max_model_cells=99, merge=False).check_room(workload)


def test_a_default_workload_of_very_many_columns_says_what_to_do():
    """`auto` chooses the order itself, and where pairs are too many, order = 2 is no advice."""
    workload = Workload.default(Domain.from_sizes({f"c{number}": 2 for number in range(500)}))
    with pytest.raises(StructureError, match=r"500 of them have too many pairs .* targets = \[\"COLUMN\"\]"):
        check_workload("mst", workload, Budget.pure(1))
    few = Workload.all(Domain.from_sizes({"a": 2, "b": 2}), order=1)
    with pytest.raises(StructureError, match="by order = 2"):
        check_workload("mst", few, Budget.pure(1))
