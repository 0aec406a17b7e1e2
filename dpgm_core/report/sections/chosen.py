"""Private choices: labels, bins, the structure, merged codes, and the steps of the sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpgm_core.markup import Html
from dpgm_core.privacy.budget import Budget
from dpgm_core.releases.release import discoveries
from dpgm_core.releases.told import bins_of, merges_of, sessions_of, step_facts
from dpgm_core.report.material import Material
from dpgm_core.report.parts import Section, cut, data_table, fold, join, listing, name, paragraph, several
from dpgm_core.report.wording import amounts

__all__ = ["section"]

_ROWS_SHOWN, _MAX_ROWS, _MAX_NOTE_LETTERS = 20, 300, 400

_STEP_NAMES = {
    "measure": "measure tables",
    "check": "measure tables, to check the structure",
    "select": "choose among candidates",
    "score": "score candidates",
    "vote": "vote on the structure",
    "descend": "choose directions of regressions",
}


def section(material: Material) -> Section:
    """Return the section on private choices."""
    sessions = sessions_of(material.releases)
    parts = [*_labels(material), *_bins(material), *_structure(material), *_merged(material)]
    if not parts:
        parts = [
            paragraph(
                "No private choice is part of the releases: cliques, labels and bins were named beforehand. The "
                "guarantee assumes that they were known from elsewhere and not read off these records."
            )
        ]
    steps = [step_facts(step) for one in sessions for step in one.steps]
    if steps:
        parts.append(_steps(steps))
    return Section("chosen", "What was chosen privately", join(parts))


def _labels(material: Material) -> list[Html]:
    rows = []
    for discovery in discoveries(material.releases):
        for one in discovery.columns:
            shown = ", ".join(map(cut, one.labels[:_ROWS_SHOWN])) + (", ..." if len(one.labels) > _ROWS_SHOWN else "")
            rows.append(
                [cut(one.column), f"{len(one.labels):,}", f"{one.noise.threshold:,}", amounts(one.budget), shown]
            )
    if not rows:
        return []
    header = ["column", "labels found", "persons needed, about", "cost", "the commonest"]
    words = "Which labels occur in these columns was found from the records, for a share of the budget."
    return [
        Html("<h3>Labels</h3>"),
        paragraph(words),
        data_table("Labels found privately", header, rows, numbers={1, 2}),
    ]


def _bins(material: Material) -> list[Html]:
    rows = [
        [
            cut(one.name),
            f"{len(one.edges) - 1}",
            amounts(one.cost),
            ", ".join(map(cut, one.attribute.labels[: len(one.edges) - 1])),
        ]
        for one in bins_of(sessions_of(material.releases))
    ]
    if not rows:
        return []
    words = "The edges of these bins were chosen from the records, for a share of the budget."
    table = data_table("Bins found privately", ["column", "bins", "cost", "they are"], rows, numbers={1})
    return [Html("<h3>Bins</h3>"), paragraph(words), table]


def _structure(material: Material) -> list[Html]:
    sessions = [one for one in sessions_of(material.releases) if one.session is not None and not one.session.named]
    if not sessions:
        return []
    provenance = material.model.provenance
    chooser = dict(provenance.get("selector") or {}).get("name")
    notes = list(dict(provenance.get("selection") or {}).get("notes", []))
    cliques = material.model.structure.cliques
    of = len(sessions[0].session.workload.candidates) if sessions[0].session is not None else 0
    by = "" if chooser is None else f" by the selector {chooser}"
    steps = several(sum(len(one.steps) for one in sessions), "step")
    words = (
        f"The structure was chosen{by} within the stated budget, in {steps}: {several(len(cliques), 'clique')} out of "
        f"{several(of, 'candidate')}. Those that lie inside no other:"
    )
    whole = [set(clique) for clique in cliques]
    listed = [" × ".join(map(cut, clique)) for clique in cliques if not any(set(clique) < one for one in whole)]
    shown = paragraph(", ".join(listed[:_ROWS_SHOWN]) + (", ..." if len(listed) > _ROWS_SHOWN else ""))
    more = fold(f"All {len(listed)} of them", paragraph(", ".join(listed[:1000]))) if len(listed) > _ROWS_SHOWN else ""
    remarks = listing([cut(note, _MAX_NOTE_LETTERS) for note in notes[:_ROWS_SHOWN]]) if notes else ""
    return [Html("<h3>Structure</h3>"), join([paragraph(words), shown, more, remarks])]


def _merged(material: Material) -> list[Html]:
    merged = merges_of(sessions_of(material.releases))
    if not merged:
        return []
    items = [
        join([name(one), f": {len(codes)} labels as {max(codes) + 1} in larger tables"])
        for one, codes in list(merged.items())[:200]
    ]
    words = (
        "Labels too rare to be told from noise were taken together, as released tables told; the model tells them "
        "apart again."
    )
    return [Html("<h3>Merged labels</h3>"), paragraph(words), listing(items)]


def _steps(steps: list[dict[str, Any]]) -> Html:
    rows = [_row(number, step) for number, step in enumerate(steps, start=1)]
    header = ["step", "what", "candidates", "cost", "tables"]
    numbers = {0, 2}
    parts: list[object] = [Html("<h3>Step by step</h3>")]
    parts.append(
        data_table(
            "Each step could depend on what came out of those before it", header, rows[:_ROWS_SHOWN], numbers=numbers
        )
    )
    if len(rows) > _ROWS_SHOWN:
        further = data_table("Further steps", header, rows[_ROWS_SHOWN:_MAX_ROWS], numbers=numbers)
        parts.append(fold(f"The other {several(len(rows) - _ROWS_SHOWN, 'step')}", further))
    return join(parts)


def _row(number: int, step: Mapping[str, Any]) -> list[object]:
    tables = [" × ".join(map(cut, clique)) or "all records" for clique in step["cliques"]]
    more = f", and {len(tables) - 4} more" if len(tables) > 4 else ""
    if step["kind"] == "vote" and not step["stable"]:
        tables, more = ["not stable enough to tell"], ""
    candidates = f"{step['candidates']:,}" if "candidates" in step else "-"
    cost = amounts(Budget.parse(step["cost"]))
    return [f"{number}", _STEP_NAMES[step["kind"]], candidates, cost, ", ".join(tables[:4]) + more]
