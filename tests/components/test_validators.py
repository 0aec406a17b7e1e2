"""Shared validators take what they say."""

from __future__ import annotations

import attrs
import pytest

from dpgm_core.components.validators import at_least_zero, flag, positive, share, whole

NUMBERS = (-1.0, -0.0, 0, 0.0, 0.5, 1, 1.0, 2, 3.5, float("inf"), float("-inf"), float("nan"), True, False, "1", None)


@pytest.mark.parametrize(
    ("validator", "taken"),
    [
        (positive, {"0.5", "1", "1.0", "2", "3.5"}),
        (at_least_zero, {"-0.0", "0", "0.0", "0.5", "1", "1.0", "2", "3.5"}),
        (share, {"-0.0", "0", "0.0", "0.5"}),
        (whole, {"1", "2"}),
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
            with pytest.raises(ValueError, match=r"^level must be .*, got "):
                cls(level=value)
