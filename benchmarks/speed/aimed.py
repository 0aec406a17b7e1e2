"""What was aimed at and what was measured, one line each."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from benchmarks.harness.output import markdown


@frozen
class Aim:
    """what: in words, with its unit. most: at most this was aimed at. beside: who or what it is held against."""

    what: str
    measured: float
    most: float
    beside: str = ""

    @property
    def met(self) -> bool:
        """At the three digits that are shown."""
        return float(f"{self.measured:.3g}") <= self.most


def aims_table(aims: Iterable[Aim]) -> str:
    """A row for each."""
    rows = [
        (aim.what, f"{aim.measured:.3g}", f"{aim.most:g}", "met" if aim.met else "missed", aim.beside) for aim in aims
    ]
    return markdown(["figure", "measured", "at most", "", "beside"], rows)
