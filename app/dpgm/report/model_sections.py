"""Sections on the model: attributes, pairs, graph and fit."""

from __future__ import annotations

import numpy as np

from dpgm import plots
from dpgm.plots.functions import matrix_of
from dpgm.report.inputs import Material, Shares
from dpgm.report.parts import cut, data_table, figure, fold, join, listing, name, paragraph, per_cent, section, several
from dpgm.report.related_section import child_bars
from dpgm_core._util.html import Html, tag
from dpgm_core.domain.attribute import Attribute
from dpgm_core.errors import DpgmError, InferenceError, TooLarge
from dpgm_core.learning.learner_run import goodness_of_fit
from dpgm_core.models.dependence import Dependence, measure_dependence
from dpgm_core.models.findings import Findings
from dpgm_core.releases.session import merges_of, sessions_of

__all__ = ["attributes_section", "fit_section", "graph_section", "pairs_section"]


# --- Attributes ---

#: Attributes with a picture; labels listed of all attributes together, and of one at least and at most.
_MAX_PICTURES, _MAX_LABELS_LISTED, _MIN_LABELS, _MAX_LABELS = 60, 4000, 10, 200
#: Bytes of all pictures together.
_MAX_BAR_PICTURES_BYTES = 1_500_000
#: Labels whose table is not folded away.
_MAX_UNFOLDED_LABELS = 4


@section("attributes", "Each attribute")
def attributes_section(material: Material) -> list[object]:
    """Return the section on the distribution of each attribute."""
    shares = material.shares
    if not material.columns:
        return [paragraph("No attribute was measured.")]
    if shares is None:
        words = "Exact answers about this model do not fit in memory. Ask for approximate ones: "
        return [paragraph(words, tag("code", f"dpgm report {material.file} --inference loopy-bp"), ".")]
    words = "Shares of records that the model gives each label"
    if any(one.low is not None for one in shares.values()):
        words += (
            f", with {100 * material.level:g} % intervals. They hold the truth with that probability as far as the "
            "structure is right: noise, sampling and the learner's own bias are in them."
        )
        note = material.model.rows_note
        words += "" if note is None else f" {note}"
    else:
        words += (
            ". They have no intervals, as no table tells these attributes by themselves and the model has no "
            "replicates: add [intervals] to the spec of its fit, or call bootstrap(model) in Python."
        )
    related = material.model.related
    if related is not None:
        children = ", ".join(cut(name) for name in material.columns if name in related.children)
        words = words.replace("Shares of records", "Shares of roots, and of children") + f" Of children are {children}."
    parts: list[object] = [paragraph(words)]
    if len(material.columns) > 12:
        box = tag("input", type="search", id="find", autocomplete="off", spellcheck="false")
        label = tag("label", "Find an attribute or label", for_="find")
        parts.append(tag("div", label, box, tag("span", id="found", aria_live="polite"), class_="search", hidden=True))
    if len(material.columns) > _MAX_PICTURES:
        parts.append(
            paragraph(
                f"The first {_MAX_PICTURES} of {len(material.columns)} attributes have pictures; "
                "the others have tables.",
                class_="note",
            )
        )
    most = max(_MIN_LABELS, min(_MAX_LABELS, _MAX_LABELS_LISTED // len(material.columns)))
    cards = [
        _attribute_card(material, at, one, shares[one], most=most, drawn=at < _MAX_PICTURES)
        for at, one in enumerate(material.columns)
    ]
    return [*parts, tag("div", *cards, class_="cards")]


def _attribute_card(material: Material, at: int, attribute: str, shares: Shares, *, most: int, drawn: bool) -> Html:
    of = material.answers.domain[attribute]
    picture, related = Html(""), material.model.related
    if drawn:
        room = _MAX_BAR_PICTURES_BYTES // min(len(material.columns), _MAX_PICTURES)

        def draw() -> plots.Picture:
            if related is not None and attribute in related.children:
                return child_bars(material, of, shares)
            return plots.marginal(material.model, attribute, level=material.level)

        picture = figure(draw, most=room, bare=True)
    table = _shares_table(material, of, shares, most)
    what = "bins" if of.edges is not None else "labels"
    standing = material.answers.standing(attribute)
    note = join([f"{of.size:,} {what if of.size != 1 else what[:-1]} ", tag("span", standing, class_="tag")])
    search_text = " ".join([cut(attribute), *map(cut, of.labels[:20])])[:400]
    return tag(
        "article",
        tag("h3", name(attribute), id=f"attribute-{at + 1}"),
        paragraph(note, class_="note"),
        picture,
        table if not picture and of.size <= _MAX_UNFOLDED_LABELS else fold("As a table", table),
        class_="card",
        data_find=search_text,
        aria_labelledby=f"attribute-{at + 1}",
    )


def _shares_table(material: Material, of: Attribute, shares: Shares, most: int) -> Html:
    """Return a table of the labels in their order; of too many labels only the most probable ones."""
    codes = list(range(of.size))
    if of.size > most:
        codes = sorted(sorted(codes, key=lambda code: -float(shares.estimate[code]))[:most])
    sure = shares.low is not None and shares.high is not None
    header = ["label", "share", *(["from", "to"] if sure else [])]
    rows = []
    for code in codes:
        values = [shares.estimate, *((shares.low, shares.high) if shares.low is not None else ())]
        rows.append(
            [tag("bdi", cut(of.labels[code])), *(per_cent(float(one[code])) for one in values if one is not None)]
        )
    caption = f"Shares of {cut(of.name)}" + (f", with {100 * material.level:g} % intervals" if sure else "")
    table = data_table(caption, header, rows, number_columns={1, 2, 3})
    if len(rows) == of.size:
        return table
    left = several(of.size - len(rows), "rarer label")
    return join([table, paragraph(f"{left} left out; dpgm query has them.", class_="note")])


# --- Pairs ---

#: Pairs in the table, and bytes of the picture.
_MAX_PAIRS_LISTED, _MAX_MATRIX_BYTES = 20, 700_000


@section("pairs", "Pairs of attributes")
def pairs_section(material: Material) -> list[object]:
    """Return the section on pairs."""
    if len(material.names) < 2:
        return [paragraph("There is no pair of measured attributes.")]
    try:
        dependence = measure_dependence(material.model, level=material.level)
    except (TooLarge, InferenceError) as error:
        return [paragraph(f"Exact answers about pairs do not fit: {error}")]
    picture = figure(lambda: matrix_of(material.model, dependence), most=_MAX_MATRIX_BYTES)
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
    if material.findings is not None:
        words += (
            " A measured pair is found if noise and sampling do not explain its dependence: of all that are found at "
            "most 1 in 100 is expected to be noise."
        )
    return [paragraph(words), picture, _dependence_table(dependence, material.findings)]


def _dependence_table(dependence: Dependence, findings: Findings | None) -> Html:
    verdicts = {} if findings is None else {frozenset(one.names): one.found for one in findings.pairs}
    order = np.argsort(-dependence.cramers_v, kind="stable")[:_MAX_PAIRS_LISTED]
    sure = dependence.low is not None and dependence.high is not None
    header = ["pair", "Cramér's V", "mutual information (nats)", *(["from", "to"] if sure else []), "rests on"]
    rows = []
    for at in order.tolist():
        numbers = [f"{dependence.cramers_v[at]:.3f}", _nats(dependence.mutual_information[at])]
        if dependence.low is not None and dependence.high is not None:
            numbers += [_nats(dependence.low[at]), _nats(dependence.high[at])]
        verdict = verdicts.get(frozenset(dependence.pairs[at]))
        standing = dependence.standing[at] + ("" if verdict is None else ", found" if verdict else ", not found")
        rows.append([" × ".join(map(cut, dependence.pairs[at])), *numbers, standing])
    level = (
        ""
        if dependence.level is None or not sure
        else f"; {100 * dependence.level:g} % intervals of the mutual information"
    )
    caption = f"The {len(rows)} pairs that depend most{level}"
    return data_table(caption, header, rows, number_columns=set(range(1, len(header) - 1)))


def _nats(value: float) -> str:
    return "0" if value == 0 else "< 0.0001" if 0 < value < 5e-5 else f"{value:.4f}"


# --- Graph ---

#: Size of each picture, bytes.
_MAX_GRAPH_BYTES = 250_000


@section("graph", "The graph")
def graph_section(material: Material) -> list[object]:
    """Return the section on the graph."""
    shape = material.model.structure.describe()
    latent = material.model.latent
    classes = " and ".join(f"{material.model.structure.domain[name].size:,}" for name in latent)
    words = (
        f"Within each of {classes} latent classes, which no record states, attributes are independent. A line joins "
        "two attributes that one released table holds, and its width shows how much they depend on each other."
        if latent
        else f"Attributes are joined where a clique of the model holds both: {several(shape.cliques, 'clique')} over "
        f"{several(shape.attributes, 'attribute')} in {several(shape.components, 'connected part')}. What no line "
        "joins depends on each other only through what lies between. A line alone is no finding: its width shows how "
        "much it tells."
    )
    words += (
        f" Exact answers work through tables of at most {several(shape.peak_cells, 'cell')} (treewidth "
        f"{shape.treewidth})."
    )
    tree = figure(lambda: plots.graph(material.model, junction_tree=True), most=_MAX_GRAPH_BYTES)
    return [
        paragraph(words),
        figure(lambda: plots.graph(material.model), most=_MAX_GRAPH_BYTES),
        fold("The junction tree", tree) if tree else "",
    ]


# --- Fit ---

_MAX_MISFITS_LISTED = 15


@section("fit", "How well it fits")
def fit_section(material: Material) -> list[Html]:
    """Return the section on goodness of fit."""
    return [*_learner_warnings(material), *_misfit_parts(material), *_structure_parts(material)]


def _learner_warnings(material: Material) -> list[Html]:
    warnings = []
    if not material.model.converged:
        warnings.append(paragraph("The learner did not converge: take what the model says with care.", class_="over"))
    if material.releases and not material.model.potentials.values.any():
        warnings.append(paragraph("The model is uniform: noise explains all that was measured.", class_="over"))
    return warnings


def _misfit_parts(material: Material) -> list[Html]:
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
    worst = sorted(scores.items(), key=lambda one: -one[1])[:_MAX_MISFITS_LISTED]
    rows = [[" × ".join(map(cut, clique)) or "all records", _score_text(score)] for clique, score in worst]
    caption = (
        "The tables furthest from the model"
        if len(scores) > _MAX_MISFITS_LISTED
        else "Tables and their distance from the model"
    )
    table = data_table(caption, ["table", "standard errors"], rows, number_columns={1})
    return [heading, paragraph(words), listing(verdict), table]


def _score_text(score: float) -> str:
    return f"{round(score, 1) + 0.0:.1f}" if score >= -9.95 else "below -10"  # + 0.0: no -0.0


def _structure_parts(material: Material) -> list[Html]:
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
