"""What the selectors share: room for models."""

import pytest
from dpgm_select.mst import Mst

from dpgm_core import Domain, TooLarge, Workload
from dpgm_core.constraints import Ordered


def test_constraints_are_in_every_model_when_room_is_made():
    """A pair that would fit alone does not beside the tables of constraints; that is refused before the charge."""
    plain = Domain.from_sizes({"a": 10, "b": 10, "c": 2})
    workload = Workload.all(Domain(plain.attributes, [Ordered(name="x", columns=("a", "b"))]))
    assert Mst(max_model_cells=120).check_room(workload) == []
    with pytest.raises(TooLarge, match="the tables of constraints among them, so there is nothing to choose"):
        Mst(max_model_cells=99, merge=False).check_room(workload)
