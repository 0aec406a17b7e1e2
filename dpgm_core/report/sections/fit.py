"""Goodness of fit, and the error of the structure."""

from __future__ import annotations

from dpgm_core.errors import DpgmError
from dpgm_core.learning.judgement import goodness_of_fit
from dpgm_core.markup import Html
from dpgm_core.report.material import Material
from dpgm_core.report.parts import Section, cut, data_table, join, listing, paragraph, several

__all__ = ["section"]

_MAX_ROWS = 15


def section(material: Material) -> Section:
    """Return the section on goodness of fit."""
    return Section("fit", "How well it fits", join([*_learner(material), *_misfit(material), *_structure(material)]))


def _learner(material: Material) -> list[Html]:
    warnings = []
    if not material.model.converged:
        warnings.append(paragraph("The learner did not converge: take what the model says with care.", class_="over"))
    if material.releases and not material.model.potentials.values.any():
        warnings.append(paragraph("The model is uniform: noise explains all that was measured.", class_="over"))
    return warnings


def _misfit(material: Material) -> list[Html]:
    if not material.releases:
        return [paragraph("The model carries no release to hold it against.")]
    heading = Html("<h3>Against its own tables</h3>")
    try:
        scores = material.model.misfit()
    except DpgmError:
        return [heading, paragraph("It is not known: exact answers do not fit in memory.")]
    if not scores:
        return [heading, paragraph("Its tables hold no counts to compare with.")]
    notes, _ = goodness_of_fit(material.model)
    words = (
        "Each noisy table is compared with what the model says of it. The distance is in standard errors, cautiously: "
        "of a right model it is above 3 in at most one table of 740, and mostly near or below 0."
    )
    verdict = notes or [f"All {several(len(scores), 'table')} lie as near to the model as their noise lets be seen."]
    worst = sorted(scores.items(), key=lambda one: -one[1])[:_MAX_ROWS]
    rows = [[" × ".join(map(cut, clique)) or "all records", _score(score)] for clique, score in worst]
    caption = (
        "The tables furthest from the model" if len(scores) > _MAX_ROWS else "Tables and their distance from the model"
    )
    table = data_table(caption, ["table", "standard errors"], rows, numbers={1})
    return [heading, paragraph(words), listing(verdict), table]


def _score(score: float) -> str:
    return f"{round(score, 1) + 0.0:.1f}" if score >= -9.95 else "below -10"  # + 0.0: no -0.0


def _structure(material: Material) -> list[Html]:
    if not material.releases:
        return []
    heading = Html("<h3>What the structure misses</h3>")
    if not material.model.checked:
        words = (
            "No table was set aside to tell. Of pairs that no table holds the model says what its structure implies, "
            "and nothing here says how far that is from the truth. A share of the budget for it: [holdout] share = 0.1 "
            "in the spec."
        )
        return [heading, paragraph(words)]
    try:
        error = material.model.structure_error(level=material.level)
    except DpgmError:
        return [heading, paragraph("It was measured, but exact answers do not fit in memory.")]
    words = (
        f"On pairs that no table holds the model is off by about {float(error.estimate):.3f} in total variation, "
        f"between {float(error.low):.3f} and {float(error.high):.3f} at {100 * error.level:g} %: so large a share of "
        "the records would have to be moved to other cells of such a pair's table, on average. Tables that the model "
        "was not learned from tell."
    )
    return [heading, paragraph(words)]
