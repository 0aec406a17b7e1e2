"""The conformance kit on empirical-Bayes MAP."""

from dpgm_core.testing import LearnerConformance
from dpgm_eb_map.learner import EbMap


class TestEbMap(LearnerConformance):
    """Every check, default options."""

    component = EbMap
