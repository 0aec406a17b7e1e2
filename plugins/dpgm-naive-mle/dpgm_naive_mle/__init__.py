"""Naive maximum likelihood on noisy tables, as a dpgm plugin."""

from collections.abc import Iterable

from dpgm_core.plugin import Component, hookimpl

__all__ = ["dpgm_components"]


@hookimpl
def dpgm_components() -> Iterable[Component]:
    """The learner `naive-mle`."""
    return (
        Component(
            kind="learner",
            name="naive-mle",
            target="dpgm_naive_mle.learner:NaiveMLE",
            summary="maximum likelihood on the noisy tables as if they were exact, with an L2 penalty",
        ),
    )
