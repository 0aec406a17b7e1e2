"""The conformance kit on `mrf-stable`."""

import pytest
from dpgm_mrf.stable import MrfStable

from dpgm_testing import SelectorConformance


@pytest.mark.landing
class TestMrfStable(SelectorConformance):
    """Every check; fewer blocks than by default, each of which takes regressions; (epsilon, delta), as it serves no
    other."""

    component = MrfStable(blocks=60)
