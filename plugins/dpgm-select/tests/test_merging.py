"""Which codes are merged."""

import numpy as np
from dpgm_select.merging import merge_rare_codes


def test_common_codes_stay_alone() -> None:
    """Nothing is merged where at most one code is rare."""
    assert merge_rare_codes(np.array([50.0, 60.0, 1.0]), 5.0) is None


def test_rare_codes_are_gathered_until_they_are_rare_no_more() -> None:
    """In their order, common ones passed over; new codes run from 0 without gaps."""
    actual = merge_rare_codes(np.array([12.0, 90.0, 12.0, 12.0, 3.0, 2.0]), 7.0)
    # 12 + 12 is above 2 * 7 * sqrt(2); the last three are below it together.
    assert actual == (0, 1, 0, 2, 2, 2)


def test_what_noise_made_negative_is_rare() -> None:
    """All codes may be: then they are one."""
    assert merge_rare_codes(np.array([-3.0, -1.0, 1.0]), 5.0) == (0, 0, 0)
