"""The conformance kit on `mrf-walsh`."""

from dpgm_mrf.walsh import MrfWalsh

from dpgm_core.testing import LearnerConformance


class TestMrfWalsh(LearnerConformance):
    """Every check, default options: attributes of two labels, from tables and from contrasts."""

    component = MrfWalsh
