"""The mechanism `gaussian` of dpgm: exact discrete Gaussian noise on counts."""

from collections.abc import Iterable

from dpgm_core.plugin import Component, hookimpl

__all__ = ["dpgm_components"]


@hookimpl
def dpgm_components() -> Iterable[Component]:
    """Yield the one component of this distribution."""
    yield Component(
        kind="mechanism",
        name="gaussian",
        target="dpgm_gaussian.mechanism:Gaussian",
        summary="exact discrete Gaussian noise: zCDP, or (epsilon, delta) from its exact mass",
    )
