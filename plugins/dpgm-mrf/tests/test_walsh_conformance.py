"""The conformance kit on `mrf-walsh`, over attributes of two labels."""

from dpgm_mrf.walsh import MrfWalsh

from dpgm_testing import LearnerConformance


class TestMrfWalsh(LearnerConformance):
    """Every check, default options."""

    component = MrfWalsh
