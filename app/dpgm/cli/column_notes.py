"""Notes on columns of a fitted model, of its shares and of released counts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpgm_core._util.arrays import FloatArray
    from dpgm_core.domain.attribute import Attribute
    from dpgm_core.models.model import Model
    from dpgm_core.releases.labels import FoundColumns

__all__ = ["TEXTS_NOTE", "missing_notes", "unknown_notes", "wide_bins_note"]

#: Of every column of numbers, dates or times that was found.
TEXTS_NOTE = "texts among numbers, dates and times count as missing"
#: Of a column of dates with times, of which bins are at least a day.
_TIMES_OF_DAY = "times of day are drawn evenly; to keep them, give dates and times in two columns"
#: Standard deviations of noise of texts that are mentioned.
_MIN_TEXTS = 2.5

#: Columns, and the share without a known value in each, from which on lines that cannot be read are suspected.
_MIN_COLUMNS, _MIN_UNKNOWN = 3, 0.05


def missing_notes(found: FoundColumns) -> dict[str, str]:
    """Return which texts count as missing, of how many persons, which codes may, and whether times of day are lost, by
    column of values."""
    from dpgm_core.domain.shapes import FAR_CODES

    notes = dict[str, str]()
    for one in found.columns:
        edges = one.attribute.edges
        if edges is None:
            continue
        said = [_TIMES_OF_DAY] if one.attribute.values.kind == "datetime" else []
        marks = [repr(text) for text in one.attribute.null_values if text not in one.declared.null_values]
        texts = [count for shape, count in one.shapes if shape in ("text", "word", "code")]
        sigma = found.noise.shapes_sigma
        if marks or sum(texts) > _MIN_TEXTS * sigma * math.sqrt(len(texts)):
            about = f"of about {sum(texts):,} persons (noise {sigma:.0f})"
            said.append(f"{', '.join(marks) or 'texts'} taken as missing, {about}")
        for code in sorted(FAR_CODES) if one.attribute.values.kind in ("integer", "number") else ():
            at, between = (edges[0], edges[1:3]) if code < 0 else (edges[-2], edges[-3:-1])
            if at == code and between[-1] - between[0] > abs(code) / 2:
                said.append(
                    f"{code} is far from other values and has a bin of its own; if it means missing, say null_values = "
                    f'["{code}"] in a domain of later runs'
                )
        if said:
            notes[one.declared.name] = "; ".join(said)
    return notes


def unknown_notes(tables: Sequence[tuple[Attribute, FloatArray]], searched: AbstractSet[str]) -> list[str]:
    """Return notes on columns of nearly all unknown values, and on a table with unknown ones in all columns.

    tables: attributes with p(label) of each, by the model. searched: those whose labels were found privately.
    """
    from dpgm_core.domain.attribute_tables import MISSING
    from dpgm_core.models.findings import UNKNOWN_SHARE

    notes = []
    for attribute, table in tables:
        own_label = attribute.labels[attribute.unknown] == MISSING  # of which the notes of a fit speak
        if attribute.size > 1 and table[attribute.unknown] > UNKNOWN_SHARE and not own_label:
            why = (
                "its values are too rare to be found, or the search does not know their format; describe it in the "
                "domain, or give its search a larger share"
                if attribute.name in searched
                else "if that is a surprise, the file's values are not the domain's labels: see dpgm validate"
            )
            notes.append(
                f"nearly all of {attribute.name!r} is {attribute.labels[attribute.unknown]!r}, where unknown values "
                f"go; {why}"
            )
    # In a described column the label of unknown values may be one that records have.
    if sum(attribute.name in searched for attribute, _ in tables) >= _MIN_COLUMNS:
        least = min(float(table[[*{attribute.unknown, attribute.null}]].sum()) for attribute, table in tables)
        if least >= _MIN_UNKNOWN:
            notes.append(
                f"in every column at least {100 * least:.0f} % of the records have no value or an unknown one, as "
                "lines have that cannot be read in the file's encoding: see dpgm validate, and --encoding"
            )
    return notes


def wide_bins_note(model: Model) -> str | None:
    """Return a note on bins much wider than a neighbour, including bins found privately."""
    from dpgm.related import answering, lacks_size, unanswered
    from dpgm_core.models.within_bins import wide_note

    if lacks_size(model):
        return None
    unmeasured = unanswered(model)
    return wide_note(one for one in answering(model).domain if one.name not in unmeasured)
