"""The section on analyses that were planned before the release."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from dpgm.analysis import Analysis, analyse
from dpgm.report.inputs import Material
from dpgm.report.parts import cut, data_table, join, listing, paragraph, section
from dpgm_core._util.html import Html
from dpgm_core.errors import DpgmError

__all__ = ["analyses_section"]

_MAX_ANALYSES = 20
#: How the provenance states an analysis: its formula, then what `dpgm.analyse` is told.
_STATED = re.compile(
    r"(?P<formula>.+?)(?:, (?P<family>linear|logistic|poisson|multinomial))?"
    r"""(?:, event (?P<event>'[^'\n]*'|"[^"\n]*"))?(?P<groups>, by groups)?"""
)


@section("analyses", "Analyses that were planned")
def analyses_section(material: Material) -> list[object]:
    """Return the section on the analyses that the selector's options state; nothing without any."""
    selector = material.model.provenance.get("selector")
    options = selector.get("options") if isinstance(selector, Mapping) else None
    stated = options.get("analyses") if isinstance(options, Mapping) else None
    texts = [one for one in stated if isinstance(one, str)] if isinstance(stated, (list, tuple)) else []
    if not texts:
        return []
    intro = paragraph(
        f"These formulas were stated before the release, so that tables were measured for them. Intervals of "
        f"{100 * material.level:g} % include noise and that records are a sample; the learner's bias is corrected. "
        "P-values are not adjusted for their number."
    )
    return [intro, *(_answered(material, text) for text in texts[:_MAX_ANALYSES])]


def _answered(material: Material, text: str) -> Html:
    """One analysis as a table, or why there is none."""
    try:
        found = analyse(material.model, level=material.level, **_read(text))
    except DpgmError as error:
        return paragraph(f"{cut(text)}: no answer, as {cut(error, 500)}.", class_="note")
    return join([_table(found), listing([cut(one, 1000) for one in (*found.sentences(), *found.notes)])])


def _read(text: str) -> dict[str, Any]:
    """Return the arguments that a stated analysis has."""
    match = _STATED.fullmatch(text)
    if match is None:
        return {"formula": text}
    event = None if match["event"] is None else str(ast.literal_eval(match["event"]))
    return {"formula": match["formula"], "family": match["family"], "event": event, "groups": bool(match["groups"])}


def _table(found: Analysis) -> Html:
    header, rows = found.header(), found.rows()
    numbers = set(range(1, len(header) - 1))
    return data_table(
        cut(found.title(), 300), ["number", *header[1:]], [list(map(cut, row)) for row in rows], number_columns=numbers
    )
