"""The conformance kit on learners of Bayesian networks."""

from dpgm_bayes_net.learner import BayesNet
from dpgm_bayes_net.local import Local
from dpgm_bayes_net.two_stage import BayesNetTwoStage

from dpgm_testing import LearnerConformance


class TestBayesNet(LearnerConformance):
    """Every check, default options."""

    component = BayesNet


class TestLocal(LearnerConformance):
    """Every check, default options."""

    component = Local


class TestBayesNetTwoStage(LearnerConformance):
    """Every check, default options."""

    component = BayesNetTwoStage
