"""The conformance kit on all components of dpgm-mrf."""

from types import MappingProxyType

import pytest
from dpgm_mrf.frank_wolfe.components import FrankWolfeLearner, FrankWolfeSelector
from dpgm_mrf.gibbs.engine import Gibbs
from dpgm_mrf.select import MrfSelect
from dpgm_mrf.stable import MrfStable
from dpgm_mrf.walsh import MrfWalsh

from dpgm_testing import InferenceConformance, LearnerConformance, Profile, SelectorConformance


class TestFrankWolfeSelector(SelectorConformance):
    """Every check, with few steps; with all of them it takes minutes."""

    component = FrankWolfeSelector(width=0.7, steps=5)


class TestFrankWolfeLearner(LearnerConformance):
    """Every check but one, with few steps; larger and tied cliques, and no pair at all, are refused."""

    component = FrankWolfeLearner(width=3.0, steps=8)
    expected_failures = MappingProxyType(
        {"many-records-are-followed": "its parameters are those of regressions, which fit no table"}
    )


@pytest.mark.landing
class TestGibbs(InferenceConformance):
    """Every check, with few and short chains; statistical ones with few examples: each takes some hundred sweeps."""

    component = Gibbs(chains=60, annealing=4, burn_in=12, thinning=2, draws=8)
    profile = Profile(name="short", examples=3, draws=1000, shrink=False)


class TestMrfSelect(SelectorConformance):
    """Every check, default options."""

    component = MrfSelect


@pytest.mark.landing
class TestMrfStable(SelectorConformance):
    """Every check; fewer blocks than by default, each of which takes regressions; (epsilon, delta), as it serves no
    other."""

    component = MrfStable(blocks=60)


class TestMrfWalsh(LearnerConformance):
    """Every check, default options, over attributes of two labels."""

    component = MrfWalsh
