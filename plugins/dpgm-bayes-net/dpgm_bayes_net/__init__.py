"""Private parameters of Bayesian networks, as a dpgm plugin."""

from collections.abc import Iterable

from dpgm_core.plugin import Component, hookimpl

__all__ = ["dpgm_components"]


@hookimpl
def dpgm_components() -> Iterable[Component]:
    """The learners `bayes-net`, `bayes-net-two-stage` and `local`."""
    return (
        Component(
            kind="learner",
            name="bayes-net",
            target="dpgm_bayes_net.learner:BayesNet",
            summary="a network over a public graph from one release of its largest families, fitted together",
        ),
        Component(
            kind="learner",
            name="bayes-net-two-stage",
            target="dpgm_bayes_net.two_stage:BayesNetTwoStage",
            summary="a network over a public graph, the budget divided by a first look (Chowdhury et al. 2020)",
        ),
        Component(
            kind="learner",
            name="local",
            target="dpgm_bayes_net.local:Local",
            summary="conditional tables of a public graph, each from its own counts made consistent; no inference",
        ),
    )
