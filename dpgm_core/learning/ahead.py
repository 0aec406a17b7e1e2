"""What a learner will measure, before it has a curator: for plans."""

from __future__ import annotations

from dpgm_core.errors import IncompatiblePlugin, OptionError
from dpgm_core.learning.contract import Foreseen
from dpgm_core.noise.split import check_split
from dpgm_core.structure import Structure

__all__ = ["foreseen"]


def foreseen(learner: object, structure: Structure) -> tuple[Structure | None, str | None]:
    """The tables that a learner says it will measure for a model over the structure, and how it divides the budget.

    (None, None) of one that says nothing: it is expected to release the structure's tables, divided as the run says.
    Raises what the learner raises, and IncompatiblePlugin for an answer that no curator would follow.
    """
    if not isinstance(learner, Foreseen):
        return None, None
    wrong = f"learner {type(learner).__name__} foresees "
    answer: object = learner.foreseen(structure)
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[0], Structure):
        raise IncompatiblePlugin(f"{wrong}{type(answer).__name__}, not a pair of a Structure and a split")
    measured, split = answer
    if measured.domain != structure.domain:
        raise IncompatiblePlugin(f"{wrong}tables over another domain than the model's")
    for clique in measured.cliques:
        if structure.covering(clique) is None:
            raise IncompatiblePlugin(f"{wrong}a table of {clique!r}, which no clique of the model contains")
    if split is None:
        return measured, None
    try:
        return measured, check_split(split)
    except OptionError as error:
        raise IncompatiblePlugin(f"{wrong}no split: {error}") from None
