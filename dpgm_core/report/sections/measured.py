"""The measured tables with their noise, a matrix of the attributes, and the number of records."""

from __future__ import annotations

from collections.abc import Sequence

from dpgm_core.markup import Html
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.told import merges_of, sessions_of
from dpgm_core.report.material import Material
from dpgm_core.report.matrix import noise_matrix
from dpgm_core.report.noise import Measured, drawn_steps, measured_tables
from dpgm_core.report.parts import Section, cut, data_table, fold, join, name, number, paragraph, per_cent, several

__all__ = ["section"]

_ROWS_SHOWN, _MAX_ROWS = 40, 400

_NOISE_NAMES = {
    "discrete-laplace": "discrete Laplace",
    "laplace": "Laplace in floating point",
    "discrete-gaussian": "discrete Gaussian",
    "gaussian": "Gaussian in floating point",
    "truncated-discrete-laplace": "truncated discrete Laplace",
}


def section(material: Material) -> Section:
    """Return the section on measured tables."""
    body = join(_parts(material)) if material.releases else paragraph("The model carries no release.")
    return Section("measured", "What was measured", body)


def _parts(material: Material) -> list[object]:
    tables = measured_tables(material.releases)
    swamped = sum(one.relative > 1 for one in tables)
    noises = dict.fromkeys(_noise_name(one) for one in drawn_steps(material.releases))
    besides = ["the private choices of the next section"] * material.chose
    besides += ["their exact number"] * (material.policy == "public")
    also = " and ".join(besides) or "nothing else"
    words = (
        f"From the records came {several(len(tables), 'noisy table')} and {also}. Each cell is a count with "
        f"independent noise ({'; '.join(list(noises)[:5])}). The last column is the noise of a cell, one standard "
        "deviation, over the records in the average cell of its table: small tables are known well, large ones roughly."
    )
    parts: list[object] = [paragraph(words)]
    if swamped:
        parts.append(
            paragraph(
                f"In {swamped} of {several(len(tables), 'table')}, as they were measured, the noise is larger than the "
                "average cell, so finer detail there is noise.",
                class_="over",
            )
        )
    if merges_of(sessions_of(material.releases)):
        words = "Cells are those of the measurement: in later steps labels that were taken together count as one."
        parts.append(paragraph(words, class_="note"))
    if any(one.contrasts for one in material.releases):
        parts.append(paragraph("Measured were sums of products of attributes coded +1 and -1, and no cells."))
    parts += _tables(tables)
    picture = noise_matrix(material.names, tables)
    if picture is not None:
        parts += [Html("<h3>Which pairs a table holds</h3>"), picture]
    parts += [Html("<h3>Number of records</h3>"), _total(material)]
    if material.model.unmeasured:
        names = [name(one) for one in material.model.unmeasured[:200]]
        parts += [Html("<h3>Not measured</h3>"), _unmeasured(names, len(material.model.unmeasured))]
    return parts


def _noise_name(release: NoisyTables) -> str:
    kinds = dict.fromkeys(_NOISE_NAMES[one.event.kind] for one in release.noise)
    several_widths = " of several widths" if len(set(release.variances.tolist())) > 1 else ""
    return f"{' and '.join(kinds)}{several_widths}"


def _tables(tables: Sequence[Measured]) -> list[object]:
    again = any(one.times > 1 for one in tables)
    header = ["table", "cells", "average cell", "noise (sd)", "noise / average", *(["measured"] if again else [])]
    rows = [_row(one, again) for one in tables]
    numbers = {1, 2, 3, 4, 5}
    parts: list[object] = [
        data_table("Tables and their noise, in records", header, rows[:_ROWS_SHOWN], numbers=numbers)
    ]
    if len(rows) > _ROWS_SHOWN:
        more = data_table("Further tables", header, rows[_ROWS_SHOWN:_MAX_ROWS], numbers=numbers)
        parts.append(fold(f"The other {several(len(rows) - _ROWS_SHOWN, 'table')}", more))
    if len(rows) > _MAX_ROWS:
        parts.append(paragraph(f"The first {_MAX_ROWS} of {len(rows):,} are listed.", class_="note"))
    return parts


def _row(one: Measured, again: bool) -> list[object]:
    first = " × ".join(map(cut, one.group[0])) or "all records"
    tied = "" if len(one.group) == 1 else f" and {len(one.group) - 1} more as one sum"
    holdout = " (holdout)" if one.holdout else ""
    cells = [f"{one.cells:,}", number(one.average), number(one.deviation), per_cent(one.relative)]
    return [f"{first}{tied}{holdout}", *cells, *([f"{one.times} times"] if again else [])]


def _total(material: Material) -> Html:
    counted, surest = material.counted, material.surest
    if counted is None or surest is None:
        return paragraph("It was not measured.")
    total, error = counted
    what = f"{number(total, 4)} {material.counted_as}"
    if surest.total_policy == "estimated":
        return paragraph(
            f"About {what}, estimated from the noisy tables; the noise of the estimate is {number(error, 2)} (one "
            "standard deviation)."
        )
    if surest.total_policy == "public":
        return paragraph(f"{what}, published exactly.")
    return paragraph(f"{what}, which the owner stated as public knowledge.")


def _unmeasured(names: Sequence[Html], count: int) -> Html:
    listed = join(part for one in names for part in (one, ", "))[:-2]
    more = f", and {count - len(names)} more" if count > len(names) else ""
    return paragraph(
        f"Of {several(count, 'attribute')} no table tells anything, and the model leaves them out: ", Html(listed), more
    )
