"""What the selectors do alike."""

import attrs
import pytest
from dpgm_mrf.common import inside, limits_of, pairs_of, singles_of

from dpgm_core import Domain, OptionError, StructureError, Workload, option

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 200})


@attrs.frozen(kw_only=True)
class Part:
    """A share."""

    share: float = option(0.5, help="of it", validator=inside)


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.5, float("nan"), float("inf"), True, "0.5", None])
def test_a_share_lies_inside(value):
    assert Part(share=0.999).share == 0.999
    with pytest.raises(OptionError, match="share must be a number"):
        Part(share=value)


def test_pairs_and_singles_are_those_that_may_be_measured():
    """By the workload; without a pair there is nothing to choose."""
    workload = Workload.all(DOMAIN, order=2, max_cells=500)
    assert pairs_of(workload, "x") == [("a", "b"), ("a", "c")] and singles_of(workload) == [("a",), ("b",), ("c",)]
    with pytest.raises(StructureError, match=r"selector 'x' chooses between pairs.*none that may be measured"):
        pairs_of(Workload.all(DOMAIN, order=1), "x")


def test_limits_have_room_for_attributes_alone():
    """Of those that are asked for, and no others."""
    assert (limits_of(DOMAIN, "abc", 1, 8).memory, limits_of(DOMAIN, "abc", 1, 4000).memory) == (16 * 205, 4000)
