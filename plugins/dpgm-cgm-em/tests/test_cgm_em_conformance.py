"""The conformance kit on CGM-EM with every collective engine of core."""

from dpgm_cgm_em.learner import CgmEm

from dpgm_core.testing import LearnerConformance


class TestCgmEm(LearnerConformance):
    """Every check, default options."""

    component = CgmEm


class TestCgmEmNlbp(LearnerConformance):
    """The papers' fixed point as E-step."""

    component = CgmEm(e_step="nlbp")


class TestCgmEmSoftSign(LearnerConformance):
    """The posterior-mean E-step."""

    component = CgmEm(e_step="soft-sign")
