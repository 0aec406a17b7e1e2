"""The conformance kit on empirical-Bayes MAP."""

from dpgm_eb_map.learner import EbMap

from dpgm_core.testing import LearnerConformance


class TestEbMap(LearnerConformance):
    """Every check, default options."""

    component = EbMap


class TestByBlocks(LearnerConformance):
    """Every check, as with many parameters."""

    component = EbMap(curvature="diagonal")
