"""The conformance kit on `mrf-select`."""

from dpgm_mrf.select import MrfSelect

from dpgm_testing import SelectorConformance


class TestMrfSelect(SelectorConformance):
    """Every check, default options."""

    component = MrfSelect
