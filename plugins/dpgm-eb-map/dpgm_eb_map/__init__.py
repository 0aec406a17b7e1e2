"""Empirical Bayes on noisy tables, as a dpgm plugin."""

from collections.abc import Iterable

from dpgm_core.plugin import Component, hookimpl

__all__ = ["dpgm_components"]


@hookimpl
def dpgm_components() -> Iterable[Component]:
    """The learner `eb-map`."""
    return (
        Component(
            kind="learner",
            name="eb-map",
            target="dpgm_eb_map.learner:EbMap",
            summary="the most probable model given the noise, under a prior that the noisy tables themselves choose",
        ),
    )
