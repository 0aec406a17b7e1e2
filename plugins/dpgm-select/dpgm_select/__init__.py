"""Structure chosen privately, as a dpgm plugin."""

from collections.abc import Iterable

from dpgm_core.plugin import Component, hookimpl

__all__ = ["dpgm_components"]


@hookimpl
def dpgm_components() -> Iterable[Component]:
    """The selectors `auto`, `grow`, `mst`, `oneshot`, `aim`, `privbayes` and `all-pairs`."""
    return (
        Component(
            kind="selector",
            name="auto",
            target="dpgm_select.auto:Auto",
            summary="decides between the others by size and kind of budget, and says which",
        ),
        Component(
            kind="selector",
            name="grow",
            target="dpgm_select.grow:Grow",
            summary="a spanning forest, then tables as long as they are predicted to be worth their noise",
        ),
        Component(
            kind="selector",
            name="mst",
            target="dpgm_select.mst:Mst",
            summary="a spanning tree of dependent pairs, each edge by the exponential mechanism",
        ),
        Component(
            kind="selector",
            name="oneshot",
            target="dpgm_select.oneshot:Oneshot",
            summary="all scores once, with noise; then the best structure and split of the budget in closed form",
        ),
        Component(
            kind="selector",
            name="aim",
            target="dpgm_select.aim:Aim",
            summary="round by round the table that the model so far gets most wrong",
        ),
        Component(
            kind="selector",
            name="privbayes",
            target="dpgm_select.privbayes:PrivBayes",
            summary="a directed graph: parents of each attribute among those before it, as bayes-net learns from",
        ),
        Component(
            kind="selector",
            name="all-pairs",
            target="dpgm_select.all_pairs:AllPairs",
            summary="every pair of attributes, for learner 'mixture', which needs no junction tree of them",
        ),
    )
