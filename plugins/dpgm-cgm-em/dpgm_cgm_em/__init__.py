"""EM over the hidden true tables, as a dpgm plugin."""

from collections.abc import Iterable

from dpgm_core.plugin import Component, hookimpl

__all__ = ["dpgm_components"]


@hookimpl
def dpgm_components() -> Iterable[Component]:
    """The learner `cgm-em`."""
    return (
        Component(
            kind="learner",
            name="cgm-em",
            target="dpgm_cgm_em.learner:CgmEm",
            summary="EM that treats the true tables as hidden and knows how the noise is distributed",
        ),
    )
