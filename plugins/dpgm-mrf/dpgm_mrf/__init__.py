"""Private Markov random fields, as a dpgm plugin."""

from collections.abc import Iterable

from dpgm_core.plugin import Component, hookimpl

__all__ = ["dpgm_components"]


@hookimpl
def dpgm_components() -> Iterable[Component]:
    """The selectors `mrf-select`, `mrf-fw`, `mrf-stable`; the learners `mrf-fw`, `mrf-walsh`; the inference `gibbs`."""
    return (
        Component(
            kind="selector",
            name="mrf-select",
            target="dpgm_mrf.select:MrfSelect",
            summary="every attribute picks partners by the dependence in its pairs; then those are measured once",
        ),
        Component(
            kind="selector",
            name="mrf-fw",
            target="dpgm_mrf.frank_wolfe.components:FrankWolfeSelector",
            summary="private Frank-Wolfe regressions of every attribute on the others, for comparison",
        ),
        Component(
            kind="selector",
            name="mrf-stable",
            target="dpgm_mrf.stable:MrfStable",
            summary="the graph that many blocks of records agree on; (epsilon, delta) only",
        ),
        Component(
            kind="learner",
            name="mrf-fw",
            target="dpgm_mrf.frank_wolfe.components:FrankWolfeLearner",
            summary="the parameters of private Frank-Wolfe regressions as a model",
        ),
        Component(
            kind="learner",
            name="mrf-walsh",
            target="dpgm_mrf.walsh:MrfWalsh",
            summary="binary models of order t over up to 16 attributes, from sums of products",
        ),
        Component(
            kind="inference",
            name="gibbs",
            target="dpgm_mrf.gibbs.engine:Gibbs",
            summary="Gibbs sampling, for models too dense for a junction tree; approximate, and says how much",
        ),
    )
