"""The conformance kit on the selector and the learner `mrf-fw`, with few steps; with all of them it takes minutes."""

from types import MappingProxyType

from dpgm_mrf.frank_wolfe.components import FrankWolfeLearner, FrankWolfeSelector

from dpgm_testing import LearnerConformance, SelectorConformance


class TestFrankWolfeSelector(SelectorConformance):
    """Every check."""

    component = FrankWolfeSelector(width=0.7, steps=5)


class TestFrankWolfeLearner(LearnerConformance):
    """Every check but one; larger and tied cliques, and no pair at all, are refused."""

    component = FrankWolfeLearner(width=3.0, steps=8)
    expected_failures = MappingProxyType(
        {
            "many-records-are-followed": "its parameters are those of regressions, which fit no table",
        }
    )
