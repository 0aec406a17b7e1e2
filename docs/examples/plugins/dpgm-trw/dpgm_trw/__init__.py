"""Tree-reweighted belief propagation, as a dpgm plugin."""

from collections.abc import Iterable

from dpgm_core.plugin import Component, hookimpl

__all__ = ["dpgm_components"]


@hookimpl
def dpgm_components() -> Iterable[Component]:
    """The inference `trw-bp`."""
    yield Component(
        kind="inference",
        name="trw-bp",
        target="dpgm_trw.engine:TrwBP",
        summary="tree-reweighted belief propagation on pairwise models: an upper bound on log Z",
    )
