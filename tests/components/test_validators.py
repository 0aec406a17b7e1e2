"""Shared validators take what they say."""

import attrs
import pytest

from dpgm_core.components.options import at_least_zero, build, flag, positive, share, whole
from dpgm_core.errors import OptionError

NUMBERS = (
    -1.0,
    -0.0,
    0,
    0.0,
    0.5,
    1,
    1.0,
    2,
    3.5,
    float("inf"),
    float("-inf"),
    float("nan"),
    10**400,
    True,
    False,
    "1",
    None,
)


@pytest.mark.parametrize(
    ("validator", "taken"),
    [
        (positive, {"0.5", "1", "1.0", "2", "3.5"}),
        (at_least_zero, {"-0.0", "0", "0.0", "0.5", "1", "1.0", "2", "3.5"}),
        (share, {"-0.0", "0", "0.0", "0.5"}),
        (whole, {"1", "2", repr(10**400)}),
        (flag, {"True", "False"}),
    ],
)
def test_a_validator_takes_what_it_says(validator, taken):
    """And nothing else: no NaN, no infinity, no flag for a number, no number for a flag; the option is named."""
    cls = attrs.make_class("Mine", {"level": attrs.field(validator=validator)})
    for value in NUMBERS:
        if repr(value) in taken:
            cls(level=value)
        else:
            with pytest.raises(OptionError, match=r"^level must be .*, got ") as refused:
                cls(level=value)
            assert isinstance(refused.value, ValueError)  # as of attrs' own validators


def test_a_component_made_by_name_is_named_in_the_refusal():
    """The validator knows the option alone; whoever reads a spec's refusal has several components in it."""
    cls = attrs.make_class("Mine", {"level": attrs.field(default=1, validator=whole, type=int)}, kw_only=True)
    with pytest.raises(OptionError, match=r"^learner 'mine' refuses its options: level must be a whole number"):
        build(cls, {"level": 0}, what="learner 'mine'")
