"""The conformance kit on the two-stage learner."""

from dpgm_bayes_net.two_stage import BayesNetTwoStage

from dpgm_testing import LearnerConformance


class TestBayesNetTwoStage(LearnerConformance):
    """Every check, default options."""

    component = BayesNetTwoStage
