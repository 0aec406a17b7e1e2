"""The conformance kit on latent classes."""

from dpgm_mixture.learner import Mixture

from dpgm_testing import LearnerConformance


class TestMixture(LearnerConformance):
    """Every check, default options."""

    component = Mixture
