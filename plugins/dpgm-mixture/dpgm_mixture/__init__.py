"""Latent classes fitted to noisy tables, as a dpgm plugin."""

from collections.abc import Iterable

from dpgm_core.plugin import Component, hookimpl

__all__ = ["dpgm_components"]


@hookimpl
def dpgm_components() -> Iterable[Component]:
    """The learner `mixture`."""
    return (
        Component(
            kind="learner",
            name="mixture",
            target="dpgm_mixture.learner:Mixture",
            summary="latent classes within which attributes are independent, fitted to tables of any pairs",
        ),
    )
