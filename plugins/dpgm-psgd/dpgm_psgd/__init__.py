"""Private stochastic gradient ascent on the likelihood, as a dpgm plugin."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dpgm_core.plugin import Component, hookimpl

if TYPE_CHECKING:
    from dpgm_psgd.search import Trial, oracle_grid_search

__all__ = ["Trial", "dpgm_components", "oracle_grid_search"]


@hookimpl
def dpgm_components() -> Iterable[Component]:
    """The learner `psgd`."""
    return (
        Component(
            kind="learner",
            name="psgd",
            target="dpgm_psgd.learner:Psgd",
            summary="DP-SGD on the likelihood: many noisy subsampled rounds, for comparison with one release",
        ),
    )


def __getattr__(name: str) -> Any:
    if name in ("Trial", "oracle_grid_search"):
        from dpgm_psgd import search

        return getattr(search, name)
    raise AttributeError(f"module 'dpgm_psgd' has no attribute {name!r}")
