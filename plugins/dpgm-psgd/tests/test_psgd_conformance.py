"""The conformance kit on private stochastic gradient ascent."""

from dpgm_psgd.learner import Psgd

from dpgm_testing import LearnerConformance


class TestPsgd(LearnerConformance):
    """Every check, default options."""

    component = Psgd
