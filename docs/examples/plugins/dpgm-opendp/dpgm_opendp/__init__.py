"""Noise drawn by OpenDP, as a dpgm plugin."""

from collections.abc import Iterable

from dpgm_core.plugin import Component, hookimpl

__all__ = ["dpgm_components"]


@hookimpl
def dpgm_components() -> Iterable[Component]:
    """The two mechanisms of this distribution; OpenDP is imported when one of them is used."""
    yield Component(
        kind="mechanism",
        name="opendp-laplace",
        target="dpgm_opendp.laplace:OpendpLaplace",
        summary="discrete Laplace noise drawn by OpenDP: pure epsilon, or zCDP through it",
    )
    yield Component(
        kind="mechanism",
        name="opendp-gaussian",
        target="dpgm_opendp.gaussian:OpendpGaussian",
        summary="discrete Gaussian noise drawn by OpenDP: zCDP, or (epsilon, delta) through it",
    )
