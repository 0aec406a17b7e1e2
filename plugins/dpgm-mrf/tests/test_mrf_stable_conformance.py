"""The conformance kit on `mrf-stable`."""

from dpgm_mrf.stable import MrfStable

from dpgm_core.testing import SelectorConformance


class TestMrfStable(SelectorConformance):
    """Every check, default options; budgets are (epsilon, delta), as it serves no other."""

    component = MrfStable
