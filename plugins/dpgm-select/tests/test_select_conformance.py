"""The conformance kit on the selectors."""

import pytest
from dpgm_select.aim import Aim
from dpgm_select.all_pairs import AllPairs
from dpgm_select.auto import Auto
from dpgm_select.grow import Grow
from dpgm_select.mst import Mst
from dpgm_select.oneshot import Oneshot
from dpgm_select.privbayes import PrivBayes

from dpgm_testing import SelectorConformance


class TestAim(SelectorConformance):
    """Every check, default options."""

    component = Aim


class TestAllPairs(SelectorConformance):
    """Every check, default options."""

    component = AllPairs


@pytest.mark.landing
class TestAuto(SelectorConformance):
    """Whatever it decides for."""

    component = Auto


class TestGrow(SelectorConformance):
    """Every check, default options."""

    component = Grow


class TestMst(SelectorConformance):
    """Every check, default options."""

    component = Mst


@pytest.mark.landing
class TestOneshot(SelectorConformance):
    """Every check, default options."""

    component = Oneshot


class TestPrivBayes(SelectorConformance):
    """Every check, default options."""

    component = PrivBayes
