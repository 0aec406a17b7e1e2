"""Plots of a model."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from dpgm.plots.bars import Bars, check_most, group_labels, shares_of
from dpgm.plots.canvas import Note, percent, width_of
from dpgm.plots.heat import SHARE, Cell, Heat
from dpgm.plots.network import FONT, Line, Network, Node, place_nodes
from dpgm.plots.picture import Picture
from dpgm_core.errors import OptionError, TooLarge
from dpgm_core.models.dependence import Dependence, measure_dependence
from dpgm_core.models.intervals import Interval, checked_level
from dpgm_core.models.model import Model
from dpgm_core.models.queries import BY_DEFINITION, BY_STRUCTURE, MEASURED, NOT_MEASURED, read_names
from dpgm_core.releases.session import caveats_of

__all__ = [
    "dependence",
    "graph",
    "intervals_of",
    "marginal",
    "matrix_of",
    "notes_of",
    "pair",
    "sum_standings",
    "title_of",
]


# --- Notes and titles ---

_STANDING_NOTES = {
    MEASURED: "Measured: a released table holds it.",
    BY_STRUCTURE: "By structure: no released table holds it; the independences of the model tell it.",
    NOT_MEASURED: "Not measured: as the model's potentials have it, which no release informed.",
    BY_DEFINITION: "By definition: it is as the model was written.",
}


def notes_of(model: Model, standing: str, *more: str) -> tuple[Note, ...]:
    """Return the lines under a picture, among them warnings of releases less private than their budget."""
    counted = f"{standing[:1].upper()}{standing[1:]}."
    plain = [text for text in (_STANDING_NOTES.get(standing, counted), *more) if text]
    return (*((text, False) for text in plain), *((f"{text}.", True) for text in caveats_of(model.releases)))


def intervals_of(model: Model, level: float | None) -> str:
    """Return a line that describes the intervals of a picture."""
    if level is None:
        return "No intervals: the model has no replicates."
    return f"Intervals: {100 * level:g} %, from {len(model.replicates)} refits."


def sum_standings(standings: Sequence[str]) -> str:
    """What many answers rest on: the one standing, or how many of each.

    >>> sum_standings(["measured"] * 2), sum_standings(["measured", "by structure", "measured"])
    ('measured', 'measured: 2, by structure: 1')
    """
    counts = Counter(standings)
    return (
        next(iter(counts), BY_DEFINITION) if len(counts) < 2 else ", ".join(f"{one}: {n}" for one, n in counts.items())
    )


def title_of(names: Sequence[str], evidence: Mapping[str, object] | None) -> str:
    """What is shown, a line.

    >>> title_of(["age"], {"sex": "F"})
    'age given sex = F'
    """
    fixed = ", ".join(f"{name} = {value}" for name, value in (evidence or {}).items())
    return " and ".join(names) + (f" given {fixed}" if fixed else "")


# --- Plots ---

_MEASURES = {"cramers-v": "Cramer's V", "mutual-information": "nats"}
#: The least number that the darkest colour stands for: Cohen's small effect, V = 0.1, which is about 0.005 nats.
_FLOORS = {"cramers-v": 0.1, "mutual-information": 0.005}
_DIGITS = {"cramers-v": 2, "mutual-information": 3}
_ROUNDING = 1e-9  # nats
#: V below this is written as 0.00.
_NO_DEPENDENCE = 0.005
#: Labels of each side of a pair; letters of a name in a box, and names in a cluster's.
_MAX_SIDE_LABELS, _MAX_NAME_LETTERS, _MAX_CLUSTER_NAMES = 30, 14, 5


def marginal(
    model: Model, attribute: str, given: Mapping[str, object] | None = None, *, level: float = 0.9, most: int = 40
) -> Picture:
    """Return bars of p(attribute | given), with intervals from replicates.

    Parameters
    ----------
    model : Model
    attribute : str
    given : mapping, optional
        Evidence: attribute -> label or value.
    level : float
        Level of the intervals.
    most : int
        Number of labels shown; the rest share one bar. Bins are in their order, and of more than `most` bins neighbours
        share a bar.

    Raises
    ------
    OptionError
        For an invalid `level` or `most`. Otherwise as `Model.marginal`.

    Examples
    --------
    >>> from dpgm_core import Domain, Structure, Tables
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> marginal(Model(structure, Tables(structure, np.log([0.25, 0.75]))), "a")
    Bars('a', 2 bars, by definition)
    """
    level, most = checked_level(level), check_most(most)
    names = read_names(model.domain, attribute, given or {}, model.latent)
    if len(names) != 1:
        raise OptionError(f"marginal shows one attribute, got {names!r}; pair shows two")
    (name,) = names
    groups = {name: group_labels(model.domain[name], model.marginal(name, given), most)}
    shares, interval = shares_of(model, groups, given, level)
    standing = model.standing(name, given)
    return Bars(
        title=title_of((name,), given),
        standing=standing,
        labels=groups[name].labels,
        shares=tuple(shares.tolist()),
        low=() if interval is None else tuple(interval.low.tolist()),
        high=() if interval is None else tuple(interval.high.tolist()),
        level=None if interval is None else level,
        notes=notes_of(model, standing, *_interval_notes(model, interval, level)),
    )


def pair(
    model: Model, first: str, second: str, given: Mapping[str, object] | None = None, *, level: float = 0.9
) -> Picture:
    """Return a heat map of p(first, second | given).

    Parameters
    ----------
    model : Model
    first, second : str
    given : mapping, optional
        Evidence: attribute -> label or value.
    level : float
        Level of the intervals.

    Raises
    ------
    OptionError
        For an invalid `level`. Otherwise as `Model.marginal`.

    Notes
    -----
    Of an attribute with more than 30 labels the rest share one row or column.

    Examples
    --------
    >>> from dpgm_core import Domain, Structure, Tables
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")])
    >>> pair(Model(structure, Tables.zeros(structure)), "a", "b")
    Heat('a and b', 2 x 3, by definition)
    """
    level = checked_level(level)
    names = read_names(model.domain, (first, second), given or {}, model.latent)
    alone = model.marginals_of([(name,) for name in names], given)
    groups = {name: group_labels(model.domain[name], alone[name,], _MAX_SIDE_LABELS) for name in names}
    table, interval = shares_of(model, groups, given, level)
    rows, columns = (groups[name].labels for name in names)
    cells = []
    for at in itertools.product(range(len(rows)), range(len(columns))):
        share, said = float(table[at]), f"{first} {rows[at[0]]}, {second} {columns[at[1]]}: "
        shown: tuple[str, ...] = (percent(share),)
        said += shown[0]
        if interval is not None:
            low, high = float(interval.low[at]), float(interval.high[at])
            said += f" ({100 * level:g} % interval {percent(low)} to {percent(high)})"
            shown += (f"{100 * low:.1f} - {100 * high:.1f}",)
        cells.append(Cell(row=at[0], column=at[1], value=share, said=said, shown=shown))
    standing = model.standing(names, given)
    return Heat(
        title=title_of(names, given),
        standing=standing,
        rows=rows,
        columns=columns,
        cells=tuple(cells),
        top=float(table.max()),
        unit=SHARE,
        row_title=first,
        column_title=second,
        notes=notes_of(model, standing, *_interval_notes(model, interval, level)),
    )


def _interval_notes(model: Model, interval: Interval | None, level: float) -> tuple[str, str]:
    """What the intervals are, and in how many replicates the answer is undefined."""
    if interval is None:
        return intervals_of(model, None), ""
    note = interval.note or ""
    return intervals_of(model, level), f"{note[:1].upper()}{note[1:]}." if note else ""


def dependence(
    model: Model,
    attributes: Sequence[str] | None = None,
    *,
    measure: Literal["cramers-v", "mutual-information"] = "cramers-v",
    level: float = 0.9,
    most: int = 60,
) -> Picture:
    """Return a matrix of the dependence of all pairs, in which measured pairs are outlined.

    Of more than `most` attributes the most dependent ones are shown.

    Raises
    ------
    OptionError
        For an unknown measure. Otherwise as `measure_dependence`.

    Examples
    --------
    >>> from dpgm_core import Domain, Structure, Tables
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")])
    >>> dependence(Model(structure, Tables.zeros(structure)))
    Heat('dependence of all pairs', 2 x 2, by definition)
    """
    if measure not in _MEASURES:
        raise OptionError(f"dependence is measured by 'cramers-v' or 'mutual-information', got {measure!r}")
    return matrix_of(model, measure_dependence(model, attributes, level=level), measure=measure, most=check_most(most))


def matrix_of(
    model: Model,
    dependence: Dependence,
    *,
    measure: Literal["cramers-v", "mutual-information"] = "cramers-v",
    most: int = 60,
) -> Picture:
    """The matrix of what was computed before; arguments as of `dependence`."""
    values = dependence.cramers_v if measure == "cramers-v" else dependence.mutual_information
    names, title = dependence.names, "dependence of all pairs"
    if len(names) > most:
        strongest = np.nan_to_num(np.nanmax(np.nan_to_num(dependence.matrix(values)), axis=1))
        selected = sorted(np.argsort(-strongest, kind="stable")[:most].tolist())
        names, title = (
            tuple(names[at] for at in selected),
            f"dependence: the {most} most dependent of {len(names)} attributes",
        )
    place = {name: at for at, name in enumerate(names)}
    shown = [at for at, (one, two) in enumerate(dependence.pairs) if one in place and two in place]
    cells = []
    for at in shown:
        row, column = sorted((place[name] for name in dependence.pairs[at]), reverse=True)
        cells.append(
            Cell(
                row=row,
                column=column,
                value=float(values[at]),
                said=_said(dependence, at),
                shown=() if math.isnan(values[at]) else (f"{values[at]:.{_DIGITS[measure]}f}",),
                outlined=dependence.standing[at] == MEASURED,
            )
        )
    known = [float(values[at]) for at in shown if not math.isnan(values[at])]
    standing = sum_standings([dependence.standing[at] for at in shown])
    none = bool(dependence.pairs) and bool((dependence.cramers_v < _NO_DEPENDENCE).all())
    nothing = f"No dependence found: Cramer's V is below {_NO_DEPENDENCE} for all pairs." if none else ""
    outlined = "Outlined: measured together." if any(one.outlined for one in cells) else ""
    return Heat(
        title=title,
        standing=standing,
        rows=names,
        columns=names,
        cells=tuple(cells),
        top=max([*known, _FLOORS[measure]]),
        unit=_MEASURES[measure],
        paired=True,
        notes=notes_of(model, standing, nothing, outlined, intervals_of(model, dependence.level)),
    )


def _said(dependence: Dependence, at: int) -> str:
    """A pair in words."""
    one, two = dependence.pairs[at]
    if math.isnan(dependence.cramers_v[at]):
        return f"{one} and {two}: not computed, the model is too wide for it; {dependence.standing[at]}"
    words = (
        f"{one} and {two}: V {_v(dependence, at)}, mutual information {_nats(dependence.mutual_information[at])} nats"
    )
    if dependence.low is not None and dependence.high is not None and not math.isnan(dependence.low[at]):
        words += f" ({_nats(dependence.low[at])} to {_nats(dependence.high[at])})"
    return f"{words}; {dependence.standing[at]}"


def _nats(value: float) -> str:
    # What rounding leaves of independence is 0.
    return f"{0.0 if value < _ROUNDING else value:.3g}"


def _v(dependence: Dependence, at: int) -> str:
    if dependence.v_low is None or dependence.v_high is None or math.isnan(dependence.v_low[at]):
        return f"{dependence.cramers_v[at]:.2f}"
    return f"{dependence.cramers_v[at]:.2f} ({dependence.v_low[at]:.2f} to {dependence.v_high[at]:.2f})"


def graph(model: Model, *, junction_tree: bool = False) -> Picture:
    """Return a graph of the attributes with lines as wide as their dependence, or the clusters of the junction tree.

    Notes
    -----
    A line joins two attributes of one clique; it is dashed where no released table holds both. A clique only allows a
    dependence, so a line may be thin. Attributes that no release measured are dashed too. Between clusters a line is as
    wide as the number of attributes that they share.

    Examples
    --------
    >>> from dpgm_core import Domain, Structure, Tables
    >>> structure = Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2}))
    >>> graph(Model(structure, Tables.zeros(structure)))
    Network('attributes that share a clique', 3 nodes, 2 lines, by definition)
    """
    return _clusters(model) if junction_tree else _attributes(model)


def _attributes(model: Model) -> Network:
    names = model.domain.names
    place = {name: at for at, name in enumerate(names)}
    unordered = {
        tuple(sorted(two, key=place.__getitem__))
        for one in model.observed.constrained.cliques
        for two in itertools.combinations(one, 2)
    }
    pairs = sorted(unordered, key=lambda two: (place[two[0]], place[two[1]]))
    dependences = _known(model, pairs)
    lines = []
    for one, two in pairs:
        at = dependences.get((one, two))
        weight = 0.0 if at is None else float(np.nan_to_num(at[0].cramers_v[at[1]]))
        said = f"{one} and {two}: {model.standing((one, two))}" if at is None else _said(*at)
        dashed = model.standing((one, two)) not in (MEASURED, "by definition")
        lines.append(Line(first=place[one], second=place[two], weight=weight, said=said, dashed=dashed))
    unmeasured = set(model.unmeasured)
    texts = [(name,) for name in names]
    labels = [
        f"{name}: {model.domain[name].size} labels" + (", not measured" if name in unmeasured else "") for name in names
    ]
    standing = sum_standings([model.standing(two) for two in pairs])
    level = next((at[0].level for at in dependences.values()), None)
    notes = notes_of(model, standing, "Lines: as wide as Cramer's V.", _merged(model), intervals_of(model, level))
    nodes, width, height = _nodes(
        texts, labels, [(one.first, one.second) for one in lines], [n in unmeasured for n in names]
    )
    return Network(
        title="attributes that share a released table" if model.latent else "attributes that share a clique",
        standing=standing,
        nodes=nodes,
        lines=tuple(lines),
        width=width,
        height=height,
        notes=notes,
    )


def _merged(model: Model) -> str:
    """What lines do not say of attributes that have merged labels."""
    coarse = model.coarse.domain
    names = [one.name for one in model.domain if coarse[one.name].size < one.size]
    if not names:
        return ""
    shown = ", ".join(names[:_MAX_CLUSTER_NAMES]) + (", ..." if len(names) > _MAX_CLUSTER_NAMES else "")
    return f"Rare labels of {shown} were merged; lines tell nothing of how they differ among each other."


def _known(model: Model, pairs: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], tuple[Dependence, int]]:
    """What the model says of pairs; nothing of those it does not answer."""
    left_out = set(model.left_out)
    try:
        dependence = measure_dependence(model, pairs=[two for two in pairs if left_out.isdisjoint(two)])
    except TooLarge:
        return {}
    return {two: (dependence, at) for at, two in enumerate(dependence.pairs)}


def _clusters(model: Model) -> Network:
    clusters, edges = model.structure.constrained.junction_tree
    texts = [
        one
        if len(one) <= _MAX_CLUSTER_NAMES
        else (*one[: _MAX_CLUSTER_NAMES - 1], f"and {len(one) - _MAX_CLUSTER_NAMES + 1} more")
        for one in clusters
    ]
    known = [[name for name in one if name not in model.latent] for one in clusters]
    standings = [model.standing(names) for names in known]
    classes = math.prod(model.structure.domain.shape(model.latent))
    cells = [
        math.prod(model.domain.shape(names)) * (classes if len(names) < len(one) else 1)
        for names, one in zip(known, clusters, strict=True)
    ]
    said = [
        f"{', '.join(one)}: {size} cells; {standing}"
        for one, size, standing in zip(clusters, cells, standings, strict=True)
    ]
    shared = [sorted(set(clusters[one]) & set(clusters[two])) for one, two in edges]
    widest = max(map(len, shared), default=1)
    lines = tuple(
        Line(first=one, second=two, weight=len(both) / widest, said=f"shared: {', '.join(both)}")
        for (one, two), both in zip(edges, shared, strict=True)
    )
    dashed = [standing not in (MEASURED, "by definition") for standing in standings]
    nodes, width, height = _nodes(texts, said, edges, dashed)
    standing = sum_standings(standings)
    return Network(
        title="the junction tree",
        standing=standing,
        nodes=nodes,
        lines=lines,
        width=width,
        height=height,
        notes=notes_of(model, standing, "Lines: as wide as two clusters share attributes."),
    )


def _nodes(
    texts: Sequence[Sequence[str]], said: Sequence[str], edges: Sequence[tuple[int, int]], dashed: Sequence[bool]
) -> tuple[tuple[Node, ...], float, float]:
    """Boxes for texts of some lines each, in their places, and the width and height of all."""
    widest = 0.62 * FONT * _MAX_NAME_LETTERS
    boxes = np.array(
        [
            (min(max(width_of(text, FONT) for text in lines), widest) + 14, 1.2 * FONT * len(lines) + 8)
            for lines in texts
        ]
    )
    centres, width, height = place_nodes(boxes, edges)
    nodes = tuple(
        Node(
            lines=tuple(lines),
            said=words,
            x=float(centre[0]),
            y=float(centre[1]),
            width=float(box[0]),
            height=float(box[1]),
            dashed=apart,
        )
        for lines, words, centre, box, apart in zip(texts, said, centres, boxes, dashed, strict=True)
    )
    return nodes, width, height
