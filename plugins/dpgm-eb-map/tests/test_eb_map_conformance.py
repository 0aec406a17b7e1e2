"""The conformance kit on empirical-Bayes MAP."""

import pytest
from dpgm_eb_map.learner import EbMap

from dpgm_testing import LearnerConformance


class TestEbMap(LearnerConformance):
    """Every check, default options."""

    component = EbMap


@pytest.mark.landing
class TestByBlocks(LearnerConformance):
    """Every check, as with many parameters."""

    component = EbMap(curvature="diagonal")
