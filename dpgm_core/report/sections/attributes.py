"""Each attribute's distribution: a picture and a table, with intervals where the model has replicates."""

from __future__ import annotations

from dpgm_core import plots
from dpgm_core.attribute import Attribute
from dpgm_core.markup import Html, tag
from dpgm_core.report.material import Material, Shares
from dpgm_core.report.parts import Section, cut, data_table, figure, fold, join, name, paragraph, per_cent, several

__all__ = ["section"]

#: Attributes with a picture; labels listed of all attributes together, and of one at least and at most.
_MAX_PICTURES, _MAX_ROWS, _MIN_LABELS, _MAX_LABELS = 60, 4000, 10, 200
#: Bytes of all pictures together.
_MAX_PICTURE_BYTES = 1_500_000
#: Labels whose table is not folded away.
_MAX_UNFOLDED_LABELS = 4


def section(material: Material) -> Section:
    """The distributions."""
    return Section("attributes", "Each attribute", join(_parts(material)))


def _parts(material: Material) -> list[object]:
    shares = material.shares
    if not material.names:
        return [paragraph("No attribute was measured.")]
    if shares is None:
        words = "Exact answers about this model do not fit in memory. Ask for approximate ones: "
        return [paragraph(words, tag("code", f"dpgm report {material.file} --inference loopy-bp"), ".")]
    words = "Shares of records that the model gives each label"
    if material.model.replicates:
        words += (
            f", with {100 * material.level:g} % intervals. They hold the truth with that probability as far as the "
            "structure is right: noise, sampling and the learner's own bias are in them."
        )
    else:
        words += (
            ". They have no intervals, as the model has no replicates: add [intervals] to the spec of its fit, or call "
            "bootstrap(model) in Python."
        )
    parts: list[object] = [paragraph(words)]
    if len(material.names) > 12:
        box = tag("input", type="search", id="find", autocomplete="off", spellcheck="false")
        label = tag("label", "Find an attribute or label", for_="find")
        parts.append(tag("div", label, box, tag("span", id="found", aria_live="polite"), class_="search", hidden=True))
    if len(material.names) > _MAX_PICTURES:
        parts.append(
            paragraph(
                f"The first {_MAX_PICTURES} of {len(material.names)} attributes have pictures; the others have tables.",
                class_="note",
            )
        )
    most = max(_MIN_LABELS, min(_MAX_LABELS, _MAX_ROWS // len(material.names)))
    cards = [
        _card(material, at, one, shares[one], most=most, drawn=at < _MAX_PICTURES)
        for at, one in enumerate(material.names)
    ]
    return [*parts, tag("div", *cards, class_="cards")]


def _card(material: Material, at: int, attribute: str, shares: Shares, *, most: int, drawn: bool) -> Html:
    of = material.model.domain[attribute]
    picture = Html("")
    if drawn:
        room = _MAX_PICTURE_BYTES // min(len(material.names), _MAX_PICTURES)
        picture = figure(lambda: plots.marginal(material.model, attribute, level=material.level), most=room, bare=True)
    table = _table(material, of, shares, most)
    what = "bins" if of.edges is not None else "labels"
    standing = material.model.standing(attribute)
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


def _table(material: Material, of: Attribute, shares: Shares, most: int) -> Html:
    """The labels in their order; of too many the most probable ones."""
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
    table = data_table(caption, header, rows, numbers={1, 2, 3})
    if len(rows) == of.size:
        return table
    left = several(of.size - len(rows), "rarer label")
    return join([table, paragraph(f"{left} left out; dpgm query has them.", class_="note")])
