"""The mechanism `laplace` of dpgm: exact discrete Laplace noise on counts."""

from collections.abc import Iterable

from dpgm_core.plugin import Component, hookimpl

__all__ = ["dpgm_components"]


@hookimpl
def dpgm_components() -> Iterable[Component]:
    """Yield the one component of this distribution."""
    yield Component(
        kind="mechanism",
        name="laplace",
        target="dpgm_laplace.mechanism:Laplace",
        summary="exact discrete Laplace noise: pure epsilon, or zCDP through it",
    )
