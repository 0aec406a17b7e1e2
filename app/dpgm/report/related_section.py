"""The section on two related tables."""

from __future__ import annotations

import math

import numpy as np

from dpgm.plots.bars import Bars, group_labels
from dpgm.plots.functions import notes_of
from dpgm.report.inputs import Material, Shares
from dpgm.report.parts import amounts, cut, data_table, facts, name, number, paragraph, section
from dpgm_core._util.html import Html
from dpgm_core._util.randomness import SeededRandomness
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.related import Related
from dpgm_core.errors import InferenceError, TooLarge
from dpgm_core.models.related import RelatedModel
from dpgm_core.pipeline.evaluation import variation_distance
from dpgm_core.privacy.sensitivity import Neighbours

__all__ = ["child_bars", "related_section"]

#: Roots of the sample that answers are compared with, always the same ones, and about how many children at most.
_ROOTS, _CHILDREN = 20_000, 200_000
#: Bars of a picture; further labels share one.
_MAX_BARS = 40


@section("related", "Two related tables")
def related_section(material: Material) -> list[object]:
    """Return the section on roots and their children; nothing for a model of one table."""
    answers = material.answers
    if not isinstance(answers, RelatedModel):
        return []
    related = answers.related
    try:
        size, samples = answers.mean_size, _samples(answers)
    except (TooLarge, InferenceError):
        size, samples = None, []
    pairs: list[tuple[object, object]] = [
        ("Roots and their children", name(related.describe())),
        ("Columns of roots", cut(", ".join(related.root.names))),
        ("Columns of children", cut(", ".join(related.children.names))),
    ]
    if size is not None:
        pairs.append(("Children of a root, on average", number(size, 3)))
    return [facts(pairs), *_one_child(material, related), *samples]


def child_bars(material: Material, of: Attribute, shares: Shares) -> Bars:
    """Return the picture of a column of children, with intervals where each label has a bar."""
    groups = group_labels(of, shares.estimate, _MAX_BARS)
    low, high = (() if one is None or not groups.whole else tuple(one.tolist()) for one in (shares.low, shares.high))
    standing = material.answers.standing(of.name)
    return Bars(
        title=of.name,
        standing=standing,
        labels=groups.labels,
        shares=tuple(groups.summed(shares.estimate, 0).tolist()),
        low=low,
        high=high,
        level=material.level if low else None,
        notes=notes_of(material.model, standing),
    )


def _one_child(material: Material, related: Related) -> list[Html]:
    """What the promise means for one child, such as a person of a household."""
    cost = material.model.cost
    if cost is None or not material.releases:
        return []
    most = f"The promise is about a root with all its children, as far as {related.max_children} of them count. "
    exchange = material.promised.exchange
    if material.releases[0].neighbours is Neighbours.REPLACE_ONE or exchange is None:
        words = "For one child alone, such as a person of a household, the loss is the same"
        return [paragraph(most, words, ": ", amounts(cost), ".")]
    words = (
        "For one child alone, such as a person whose entry in a household changes, the loss is at most that of an "
        "exchange of the household: "
    )
    return [paragraph(most, words, amounts(exchange), ".")]


def _samples(answers: RelatedModel) -> list[Html]:
    """How far samples are from the answers: children are drawn one after the other, from what was fitted to pairs."""
    columns = [one.name for one in answers.domain if one.name in answers.related.children]
    if not columns:
        return []
    roots = min(_ROOTS, math.ceil(_CHILDREN / max(answers.mean_size, 1.0)))
    drawn = answers.sample(roots, form="labels", randomness=SeededRandomness(0)).children
    if not drawn.num_rows:
        return []
    rows = []
    for column in columns:
        labels = answers.domain[column].labels
        counts = dict(zip(*drawn.column(column).value_counts().flatten(), strict=True))
        found = {str(label): int(count.as_py()) / drawn.num_rows for label, count in counts.items()}
        shares = np.array([found.get(label, 0.0) for label in labels])
        rows.append((column, variation_distance(answers.marginal(column), shares)))
    worst = max(rows, key=lambda row: row[1])
    words = (
        "Answers are computed and samples drawn, child after child, so samples need not follow answers exactly. Of "
        f"{roots:,} sampled roots the column of children that is furthest from its answer is {cut(worst[0])}, by "
        f"{worst[1]:.4f} in total variation."
    )
    table = [[cut(column), f"{distance:.4f}"] for column, distance in rows]
    return [
        paragraph(words),
        data_table("Samples and answers", ["column", "total variation"], table, number_columns={1}),
    ]
