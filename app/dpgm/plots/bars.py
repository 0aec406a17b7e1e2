"""Bars and groups of bars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import evolve, frozen

from dpgm.plots.canvas import BAR, Note, cut, label, number, paint, percent
from dpgm.plots.picture import Drawing, disable_math, finish_figure, matplotlib, new_axes, specification
from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core._util.html import Html, tag
from dpgm_core.domain.attribute import Attribute
from dpgm_core.errors import OptionError, printable
from dpgm_core.models.intervals import Interval
from dpgm_core.models.model import Model

__all__ = ["Bars", "Groups", "check_most", "group_labels", "shares_of"]


# --- Pictures ---

_WIDTH, _ROW, _LABELS, _NUMBERS = 420.0, 22.0, 134.0, 62.0


@frozen(kw_only=True)
class Bars(Drawing):
    """Shares with intervals. labels, shares: one per bar, in the order drawn. low, high: of the intervals, or ().

    level: of the intervals. standing: what all of it rests on. notes: lines under the picture, and whether they warn.
    """

    title: str
    standing: str
    labels: tuple[str, ...]
    shares: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    level: float | None = None
    notes: tuple[Note, ...] = ()

    @property
    def most(self) -> float:
        """The end of the axis: the largest share or end of an interval."""
        return max((*self.shares, *self.high, 1e-9))

    def said(self, at: int) -> str:
        """One bar in words."""
        words = f"{self.labels[at]}: {percent(self.shares[at])}"
        if not self.low:
            return words
        return f"{words} ({100 * (self.level or 0):g} % interval {percent(self.low[at])} to {percent(self.high[at])})"

    def _said(self) -> list[str]:
        largest = sorted(range(len(self.shares)), key=lambda at: -self.shares[at])[:10]
        more = "" if len(largest) == len(self.labels) else f"The largest of {len(self.labels)}: "
        return [f"{more}{'; '.join(self.said(at) for at in largest)}."]

    def _content(self) -> tuple[list[Html], float, float]:
        return [self._row(at) for at in range(len(self.labels))], _WIDTH, _ROW * len(self.labels) + 6

    def _row(self, at: int) -> Html:
        top, middle = _ROW * at + 4, _ROW * (at + 0.5) + 4
        scale = (_WIDTH - _LABELS - _NUMBERS - 16) / self.most
        start = _LABELS + 8
        bar = tag(
            "rect",
            x=number(start),
            y=number(top + 3),
            width=number(max(scale * self.shares[at], 0.5)),
            height=number(_ROW - 6),
            rx=2,
            **paint(BAR),
        )
        parts = [label(self.labels[at], _LABELS, middle + 4, _LABELS - 10, text_anchor="end"), bar]
        if self.low:
            low, high = start + scale * self.low[at], start + scale * self.high[at]
            ends = f"M{number(low)} {number(middle)}H{number(high)}M{number(low)} {number(middle - 4)}v8"
            whisker = f"{ends}M{number(high)} {number(middle - 4)}v8"
            parts.append(tag("path", d=whisker, stroke="currentColor", stroke_width=1.5, fill="none"))
        parts.append(label(percent(self.shares[at]), _WIDTH - 8, middle + 4, _NUMBERS, text_anchor="end"))
        return tag("g", tag("title", self.said(at)), *parts)

    def vega(self) -> dict[str, Any]:
        """A Vega-Lite specification with the values in it."""
        names = [printable(one) for one in self.labels]
        values: list[dict[str, Any]] = [
            {"label": name, "share": share} for name, share in zip(names, self.shares, strict=True)
        ]
        y = {"field": "label", "type": "nominal", "sort": None, "title": None}
        x = {"field": "share", "type": "quantitative", "title": "share", "axis": {"format": "%"}}
        layers: list[dict[str, Any]] = [
            {"mark": {"type": "bar", "color": BAR[1], "tooltip": True}, "encoding": {"x": x}}
        ]
        if self.low:
            for value, low, high in zip(values, self.low, self.high, strict=True):
                value |= {"low": low, "high": high}
            ends = {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}}
            layers.append({"mark": {"type": "rule", "tooltip": True}, "encoding": ends})
        return specification(self.title, self.notes, values, layer=layers, encoding={"y": y}, width=400)

    def draw(self, axes: Any = None) -> Any:
        """Draw with matplotlib; see `Picture`."""
        axes = new_axes(axes, 6.0, 1.2 + 0.26 * len(self.labels))
        rows = range(len(self.labels))
        axes.barh(rows, self.shares, color=BAR[1])
        for at in rows if self.low else ():
            axes.plot([self.low[at], self.high[at]], [at, at], color="black", marker="|", markersize=6, linewidth=1.2)
        axes.set_yticks(rows, [cut(one, 9, 180) for one in self.labels], fontsize=9)
        disable_math(axes.get_yticklabels())
        axes.invert_yaxis()
        axes.set_xlim(0, None)
        axes.xaxis.set_major_formatter(matplotlib("ticker").PercentFormatter(1.0))
        axes.spines[["top", "right"]].set_visible(False)
        return finish_figure(axes, self.title, self.notes)

    def __repr__(self) -> str:
        return f"Bars({self.title!r}, {len(self.labels)} bars, {self.standing})"


# --- Groups of labels ---


@frozen(kw_only=True, eq=False)
class Groups:
    """Groups of codes. labels: of each. of: (codes,), the group of each code. whole: whether each code is one."""

    labels: tuple[str, ...]
    of: IntArray
    whole: bool

    def summed(self, table: FloatArray, axis: int) -> FloatArray:
        """A table with an axis of codes as one of groups."""
        if self.whole:
            return table
        rows = np.moveaxis(table, axis, 0)
        sums = np.zeros((len(self.labels), *rows.shape[1:]))
        np.add.at(sums, self.of, rows)
        return np.moveaxis(sums, 0, axis)


def check_most(most: object) -> int:
    """How many labels to show. Raises OptionError."""
    if not isinstance(most, int) or isinstance(most, bool) or most < 2:
        raise OptionError(f"most, how many to show, must be a whole number of at least 2, got {most!r}")
    return most


def group_labels(attribute: Attribute, shares: FloatArray, most: int) -> Groups:
    """At most `most` groups of an attribute's codes, in their order.

    shares: (codes,), their probabilities. Bins are joined with their neighbours; of other labels the most probable
    stand alone, and all others together at the end.

    >>> group_labels(Attribute.of_size("a", 4), np.array([0.1, 0.4, 0.2, 0.3]), 3).labels
    ('1', '3', '2 others')
    """
    labels, count = attribute.labels, attribute.size
    if count <= most:
        return Groups(labels=labels, of=np.arange(count), whole=True)
    if attribute.edges is not None:
        return _neighbours(attribute, most)
    alone = np.sort(np.argsort(-shares, kind="stable")[: most - 1])
    of = np.full(count, most - 1)
    of[alone] = np.arange(most - 1)
    return Groups(labels=(*(labels[at] for at in alone), f"{count - most + 1} others"), of=of, whole=False)


def _neighbours(attribute: Attribute, most: int) -> Groups:
    """Runs of bins; labels that are no bins, such as missing values, stay alone where there is room."""
    assert attribute.edges is not None
    bins = len(attribute.edges) - 1
    others = attribute.size - bins if attribute.size - bins <= most // 2 else 0
    ranges = np.array_split(np.arange(attribute.size - others), most - others)
    of = np.concatenate([np.full(len(one), at) for at, one in enumerate(ranges)])
    labels = attribute.labels
    words = [labels[one[0]] if len(one) == 1 else f"{labels[one[0]]} ... {labels[one[-1]]}" for one in ranges]
    return Groups(
        labels=(*words, *labels[attribute.size - others :]),
        of=np.append(of, len(words) + np.arange(others)),
        whole=False,
    )


def shares_of(
    model: Model, groups: Mapping[str, Groups], evidence: Mapping[str, object] | None, level: float
) -> tuple[FloatArray, Interval | None]:
    """p(attributes | given), by groups, and its intervals; None where these take replicates that the model lacks."""
    names = tuple(groups)

    def marginal_of(one: Model) -> FloatArray:
        table = one.marginal(names, evidence)
        for axis, name in enumerate(names):
            table = groups[name].summed(table, axis)
        return table

    whole = all(one.whole for one in groups.values())
    if not model.replicates and (not whole or model.needs_replicates(names, evidence)):
        return marginal_of(model), None
    if whole:
        interval = model.intervals(names, evidence, level=level)
    else:
        interval = evolve(
            model.interval_of(marginal_of, level=level, within=(0.0, 1.0)), standing=model.standing(names, evidence)
        )
    return interval.estimate, interval
