"""The conformance kit on naive maximum likelihood."""

from dpgm_naive_mle.learner import NaiveMLE

from dpgm_testing import LearnerConformance


class TestNaiveMLE(LearnerConformance):
    """Every check, default options."""

    component = NaiveMLE
