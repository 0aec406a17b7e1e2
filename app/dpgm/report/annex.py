"""The owner's annex: distances between the model and the true tables. Exact functions of the records, NOT PRIVATE."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from dpgm.report.page import page
from dpgm.report.parts import Section, cut, data_table, join, paragraph, per_cent, several, stamp
from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.html import tag
from dpgm_core._util.version import __version__
from dpgm_core.errors import require_non_private
from dpgm_core.models.model import Model
from dpgm_core.models.queries import MEASURED
from dpgm_core.pipeline.evaluation import true_shares
from dpgm_core.structure.graphs import Clique

__all__ = ["make_annex"]

_STAMP = "NOT PRIVATE: exact functions of the records. For the owner alone: never publish, send or enclose it."
#: Pairs that are compared; cells of all tables that are counted, and of one.
_MAX_PAIRS, _MAX_CELLS, _MAX_TABLE_CELLS = 1000, 2 * 10**7, 10**6
_MAX_ROWS, _MAX_LABELS = 200, 4000


def make_annex(
    model: Model, records: object, *, file: str | Path | None = None, allow_non_private: bool = False
) -> str:
    """Return a page that compares the model with the records it was learned from. NOT PRIVATE.

    It has the total variation on each table of the model and on pairs that no table contains, and all one-way
    marginals side by side.

    Parameters
    ----------
    model : Model
    records : path, data frame, code array or Source
    file : path, optional
        Where the model is saved, for the title.
    allow_non_private : bool
        Must be True.

    Raises
    ------
    NonPrivateError
        `allow_non_private` is not True.
    """
    require_non_private("an annex, which compares the model with records,", allow_non_private)
    names = [one for one in model.domain.names if one not in set(model.unmeasured)]
    tables = _fitting(model, [clique for clique in model.observed.cliques if len(clique) > 1])
    known = {frozenset(clique) for clique in tables}
    pairs = [pair for pair in combinations(names, 2) if frozenset(pair) not in known]
    unheld = _some(_fitting(model, [pair for pair in pairs if model.standing(pair) != MEASURED]))
    singles: list[Clique] = [(name,) for name in names]
    queries = [*singles, *tables, *unheld]
    truth, count = true_shares(model.domain, records, queries, allow_non_private=True)
    ours = model.marginals_of(queries)
    distances = {clique: 0.5 * float(np.abs(ours[clique] - truth[clique]).sum()) for clique in queries}
    what = "the model" if file is None else Path(file).stem
    sections = [
        _summary(distances, singles, tables, unheld, count),
        _distances("tables", "Tables of the model", tables, distances),
        _distances("pairs", "Pairs that no table holds", unheld, distances),
        _marginals(model, singles, ours, truth),
    ]
    return page(
        kind="dpgm annex",
        title=f"Owner's annex to {cut(what)}: not private",
        opening=join([stamp(_STAMP)]),
        sections=sections,
        mark=stamp(_STAMP),
        footer=f"Made by dpgm {__version__} from the model and the records themselves.",
    )


def _fitting(model: Model, cliques: Sequence[Clique]) -> list[Clique]:
    """Return the cliques whose tables are small enough to be counted together; each set of attributes once."""
    sizes, selected, cells = model.domain.sizes, [], 0
    unmeasured = set(model.unmeasured)
    for clique in {frozenset(one): one for one in reversed(cliques)}.values():
        size = math.prod(sizes[name] for name in clique)
        if size <= _MAX_TABLE_CELLS and cells + size <= _MAX_CELLS and unmeasured.isdisjoint(clique):
            cells += size
            selected.append(clique)
    return sorted(selected, key=cliques.index)


def _some(pairs: Sequence[Clique]) -> list[Clique]:
    """Return all pairs, or `_MAX_PAIRS` of them at even distances."""
    if len(pairs) <= _MAX_PAIRS:
        return list(pairs)
    return [pairs[number * len(pairs) // _MAX_PAIRS] for number in range(_MAX_PAIRS)]


def _summary(
    distances: Mapping[Clique, float],
    singles: Sequence[Clique],
    tables: Sequence[Clique],
    pairs: Sequence[Clique],
    count: int,
) -> Section:
    rows = []
    for what, cliques in (("single attributes", singles), ("tables", tables), ("pairs that no table holds", pairs)):
        values = [distances[clique] for clique in cliques]
        if values:
            rows.append([what, f"{len(values):,}", f"{np.mean(values):.4f}", f"{max(values):.4f}"])
    words = (
        f"Against {several(count, 'record')}. Total variation is the share of records that would have to be moved to "
        "other cells: 0 where model and records agree, 1 where they have nothing in common."
    )
    header = ["compared", "how many", "mean", "largest"]
    table = data_table("Total variation between model and records", header, rows, number_columns={1, 2, 3})
    return Section("summary", "How near the model is", join([paragraph(words), table]))


def _distances(key: str, title: str, cliques: Sequence[Clique], distances: Mapping[Clique, float]) -> Section:
    if not cliques:
        return Section(key, title, paragraph("There are none."))
    worst = sorted(cliques, key=lambda clique: -distances[clique])[:_MAX_ROWS]
    rows = [[" × ".join(map(cut, clique)), f"{distances[clique]:.4f}"] for clique in worst]
    left = f"The {_MAX_ROWS} furthest of {len(cliques):,} are listed." if len(cliques) > _MAX_ROWS else ""
    table = data_table("The furthest first", ["table", "total variation"], rows, number_columns={1}, label=title)
    return Section(key, title, join([paragraph(left, class_="note") if left else "", table]))


def _marginals(
    model: Model, singles: Sequence[Clique], ours: Mapping[Clique, FloatArray], truth: Mapping[Clique, FloatArray]
) -> Section:
    most = max(10, _MAX_LABELS // max(1, len(singles)))
    parts: list[object] = []
    for (name,) in singles:
        labels, one, two = model.domain[name].labels, ours[name,], truth[name,]
        order = sorted(range(len(labels)), key=lambda code: -float(two[code]))[:most]
        rows = [
            [
                tag("bdi", cut(labels[code])),
                per_cent(float(two[code]), 2),
                per_cent(float(one[code]), 2),
                f"{100 * float(one[code] - two[code]):+.2f}",
            ]
            for code in (sorted(order) if len(order) == len(labels) else order)
        ]
        caption = f"{cut(name)}: shares in the records and in the model"
        parts.append(data_table(caption, ["label", "records", "model", "difference"], rows, number_columns={1, 2, 3}))
        if len(order) < len(labels):
            parts.append(paragraph(f"The {most} commonest of {len(labels):,} labels.", class_="note"))
    return Section("marginals", "Attributes side by side", join(parts))
