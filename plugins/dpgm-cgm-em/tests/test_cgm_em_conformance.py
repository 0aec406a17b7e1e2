"""The conformance kit on CGM-EM with every collective engine of core."""

import pytest
from dpgm_cgm_em.learner import CgmEm

from dpgm_testing import LearnerConformance


class TestCgmEm(LearnerConformance):
    """Every check, default options."""

    component = CgmEm


@pytest.mark.landing
class TestCgmEmNlbp(LearnerConformance):
    """The papers' fixed point as E-step."""

    component = CgmEm(e_step="nlbp")


@pytest.mark.landing
class TestCgmEmSoftSign(LearnerConformance):
    """The posterior-mean E-step."""

    component = CgmEm(e_step="soft-sign")
