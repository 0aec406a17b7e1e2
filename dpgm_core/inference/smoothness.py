"""Refusal of engines whose marginals jump when potentials move a little."""

from __future__ import annotations

from dpgm_core.errors import OptionError
from dpgm_core.inference.constraining import engine_name
from dpgm_core.inference.contract import Engine

__all__ = ["steady"]


def steady(engine: Engine, learner: str) -> Engine:
    """Return the engine, for a learner that compares objectives or solves for zero gradients.

    Averages over draws jump by their Monte Carlo error where a parameter moves by any amount, so such a learner never
    ends, or ends in the wrong place.

    Raises
    ------
    OptionError
        For an engine with capability "estimate".

    Examples
    --------
    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.inference.exact.junction_tree import JunctionTree
    >>> from dpgm_core.structure import Structure
    >>> steady(JunctionTree().compile(Structure.chain(Domain.from_sizes({"a": 2, "b": 2}))), "mine").exact
    True
    """
    if "estimate" in engine.capabilities:
        raise OptionError(
            f"{learner} cannot learn with {engine_name(engine)}: it follows gradients to their end, and averages "
            "over draws have errors; learn with junction-tree or loopy-bp, and ask the model with this engine "
            "(Model.using, --inference)"
        )
    return engine
