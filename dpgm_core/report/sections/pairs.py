"""Dependence of attributes: a matrix of all pairs, and the most dependent ones."""

from __future__ import annotations

import numpy as np

from dpgm_core.errors import InferenceError, TooLarge
from dpgm_core.markup import Html
from dpgm_core.models.dependence import Dependence, measure_dependence
from dpgm_core.plots.drawn import matrix_of
from dpgm_core.releases.told import merges_of, sessions_of
from dpgm_core.report.material import Material
from dpgm_core.report.parts import Section, cut, data_table, figure, join, paragraph

__all__ = ["section"]

#: Pairs in the table, and bytes of the picture.
_MAX_ROWS, _MAX_PICTURE_BYTES = 20, 700_000


def section(material: Material) -> Section:
    """The pairs."""
    return Section("pairs", "Pairs of attributes", join(_parts(material)))


def _parts(material: Material) -> list[object]:
    if len(material.names) < 2:
        return [paragraph("There is no pair of measured attributes.")]
    try:
        dependence = measure_dependence(material.model, level=material.level)
    except (TooLarge, InferenceError) as error:
        return [paragraph(f"Exact answers about pairs do not fit: {error}")]
    picture = figure(lambda: matrix_of(material.model, dependence), most=_MAX_PICTURE_BYTES)
    words = (
        "Cramér's V is 0 where two attributes tell nothing of each other and 1 where one tells the other. A pair is "
        "measured where one released table holds both, label by label. All others are answered by structure: they "
        "follow from the measured tables if what no table holds is independent given what some do, and are right as "
        "far as that is."
    )
    if merges_of(sessions_of(material.releases)):
        words += (
            " So are pairs whose table took rare labels together (What was chosen privately): how these differ among "
            "each other no table tells."
        )
    return [paragraph(words), picture, _top(dependence)]


def _top(dependence: Dependence) -> Html:
    order = np.argsort(-dependence.cramers_v, kind="stable")[:_MAX_ROWS]
    sure = dependence.low is not None and dependence.high is not None
    header = ["pair", "Cramér's V", "mutual information (nats)", *(["from", "to"] if sure else []), "rests on"]
    rows = []
    for at in order.tolist():
        numbers = [f"{dependence.cramers_v[at]:.3f}", _nats(dependence.mutual_information[at])]
        if dependence.low is not None and dependence.high is not None:
            numbers += [_nats(dependence.low[at]), _nats(dependence.high[at])]
        rows.append([" × ".join(map(cut, dependence.pairs[at])), *numbers, dependence.standing[at]])
    level = (
        ""
        if dependence.level is None or not sure
        else f"; {100 * dependence.level:g} % intervals of the mutual information"
    )
    caption = f"The {len(rows)} pairs that depend most{level}"
    return data_table(caption, header, rows, numbers=set(range(1, len(header) - 1)))


def _nats(value: float) -> str:
    return "0" if value == 0 else "< 0.0001" if 0 < value < 5e-5 else f"{value:.4f}"
