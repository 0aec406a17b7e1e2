"""Vega-Lite specifications."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dpgm_core.plots.canvas import Note
from dpgm_core.printable import printable

__all__ = ["as_json", "finite", "specification"]


def specification(
    title: str, notes: Sequence[Note], values: Sequence[Mapping[str, Any]], **parts: Any
) -> dict[str, Any]:
    """A specification with its values in it; the notes are the title's second lines.

    >>> found = specification("ages", [], [{"label": "old", "share": 1.0}], mark="bar")
    >>> sorted(found), found["data"]["values"]
    (['$schema', 'data', 'mark', 'title'], [{'label': 'old', 'share': 1.0}])
    """
    words: dict[str, Any] = {"text": printable(title), "anchor": "start"}
    if notes:
        words["subtitle"] = [printable(text) for text, _ in notes]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": words,
        "data": {"values": list(values)},
        **parts,
    }


def finite(value: float | None) -> float | None:
    """A number as JSON can say it: None for one that is none.

    >>> finite(0.5), finite(float("nan"))
    (0.5, None)
    """
    return None if value is None or value != value else value


def as_json(plain: Mapping[str, Any]) -> str:
    """The text of a specification's file."""
    return json.dumps(plain, indent=1, allow_nan=False) + "\n"
