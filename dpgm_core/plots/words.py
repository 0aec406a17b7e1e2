"""Notes below a picture: provenance, intervals, and warnings about the privacy of its release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dpgm_core.models.model import Model
from dpgm_core.models.standing import BY_DEFINITION, BY_STRUCTURE, MEASURED, NOT_MEASURED
from dpgm_core.plots.canvas import Note
from dpgm_core.releases.stamps import caveats_of

__all__ = ["intervals_of", "notes_of", "sum_standings", "title_of"]

_SAID = {
    MEASURED: "Measured: a released table holds it.",
    BY_STRUCTURE: "By structure: no released table holds it; the independences of the model tell it.",
    NOT_MEASURED: "Not measured: as the model's potentials have it, which no release informed.",
    BY_DEFINITION: "By definition: it is as the model was written.",
}


def notes_of(model: Model, standing: str, *more: str) -> tuple[Note, ...]:
    """The lines under a picture; why the release is not as private as its budget says is a warning."""
    counted = f"{standing[:1].upper()}{standing[1:]}."
    plain = [text for text in (_SAID.get(standing, counted), *more) if text]
    return (*((text, False) for text in plain), *((f"{text}.", True) for text in caveats_of(model.releases)))


def intervals_of(model: Model, level: float | None) -> str:
    """What the intervals in a picture are."""
    if level is None:
        return "No intervals: the model has no replicates."
    return f"Intervals: {100 * level:g} %, from {len(model.replicates)} refits."


def sum_standings(standings: Sequence[str]) -> str:
    """What many answers rest on: the one standing, or how many of each.

    >>> sum_standings(["measured"] * 2), sum_standings(["measured", "by structure", "measured"])
    ('measured', 'measured: 2, by structure: 1')
    """
    counts = Counter(standings)
    return (
        next(iter(counts), BY_DEFINITION) if len(counts) < 2 else ", ".join(f"{one}: {n}" for one, n in counts.items())
    )


def title_of(names: Sequence[str], evidence: Mapping[str, object] | None) -> str:
    """What is shown, a line.

    >>> title_of(["age"], {"sex": "F"})
    'age given sex = F'
    """
    fixed = ", ".join(f"{name} = {value}" for name, value in (evidence or {}).items())
    return " and ".join(names) + (f" given {fixed}" if fixed else "")
