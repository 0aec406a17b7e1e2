"""What was asked of `benchmarks.mrf`, figure by figure: measured, met or missed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from attrs import frozen

from benchmarks.harness.output import markdown
from benchmarks.harness.runs import Line
from benchmarks.protocol.crossing import Crossing
from benchmarks.protocol.prototype import PROTOTYPE
from benchmarks.protocol.recovery_learners import saved
from benchmarks.protocol.recovery_others import median
from benchmarks.protocol.recovery_tables import SELECT, Found, found

__all__ = ["targets"]

GOALS = ("structure", "parameters")


@frozen
class Ratio:
    """value; spread: standard error of its log. sign: "" as measured, ">" at least that, "<" at most."""

    value: float
    spread: float = math.nan
    sign: str = ""

    def __str__(self) -> str:
        error = "" if math.isnan(self.spread) else f" ± {self.value * self.spread:.2g}"
        return f"{self.sign}{' ' if self.sign else ''}{self.value:.2f}{error}"


def targets(lines: Sequence[Line]) -> str:
    """One row for each figure; what was not run is left out."""
    stars = found(lines)
    rows = [*_recovery(stars), *_votes(stars), *_others(lines), *_prototype(stars)]
    head = ["figure", "measured (± standard error)", "target", ""]
    return f"## Targets\n\n<!-- --8<-- [start:targets] -->\n\n{markdown(head, rows)}\n<!-- --8<-- [end:targets] -->\n"


def _recovery(stars: Found) -> Iterable[list[str]]:
    for goal, least in zip(GOALS, (3.0, 6.0), strict=True):
        for cell in ("matching 16", "matching 32", "3-regular 16", "3-regular 32"):
            cell = f"zcdp {cell}"
            over = _over(stars.get((cell, "mrf-fw clipped", goal)), stars.get((cell, SELECT, goal)))
            yield from _at_least(f"n*(mrf-fw, clipped) / n*(mrf-select), {goal}, {cell[5:]}", over, least)
    for goal in GOALS:
        cell = "zcdp matching 32"
        over = _over(stars.get((cell, "mrf-fw", goal)), stars.get((cell, "mrf-fw clipped", goal)))
        told = f"n*(mrf-fw) / n*(mrf-fw, clipped), {goal}, matching 32"
        yield from _at_least(told, over, 1.3, asked=goal == "structure")
    for goal in GOALS:
        each = [
            _over(stars.get((cell, "all pairs, contrasts", goal)), stars.get((cell, SELECT, goal)))
            for cell in ("zcdp matching 64", "zcdp matching 8")
        ]
        if each[0] and each[1] and not each[1].sign:
            value = Ratio(each[0].value / each[1].value, math.hypot(each[0].spread, each[1].spread), each[0].sign)
            told = f"growth of n*(all pairs) / n*(mrf-select), {goal}, from matching 8 to 64"
            yield from _at_least(told, value, 2.0, asked=goal == "structure")
    for cell in ("3 8", "3 16"):
        printed, touched = (
            stars.get((f"labels {cell}", f"mrf-fw pairs, {split} split", "structure"))
            for split in ("printed", "touched")
        )
        labels, size = cell.split()
        told = f"n*(Algorithm 3, printed split) / n*(touched), structure, k = {labels}, p = {size}"
        yield from _at_least(told, _over(printed, touched), 1.3)


def _votes(stars: Found) -> Iterable[list[str]]:
    for cell in ("matching 8", "matching 16", "matching 32", "3-regular 8"):
        graph, votes = (stars.get((f"delta {cell}", method, "structure")) for method in ("graph", "votes"))
        yield from _at_least(f"n*(graph mode) / n*(votes), {cell}", _over(graph, votes), 1.5)
    large, small = (stars.get((f"delta matching {size}", "votes", "structure")) for size in (64, 8))
    yield from _at_most("n*(votes, p = 64) / n*(votes, p = 8), matching", _over(large, small), 2.5)


def _others(lines: Sequence[Line]) -> Iterable[list[str]]:
    for cell in dict.fromkeys(line["cell"] for line in lines if line["cell"].startswith("kept ")):
        ours, theirs = (
            median(lines, cell, f"mrf-select tables, {learner}", "off") for learner in ("eb-map", "naive-mle")
        )
        if ours and theirs:
            told = f"mean abs error of parameters at 1.5 n*, eb-map / naive-mle, {cell[5:]}"
            yield from _at_most(told, Ratio(ours / theirs), 1.1)
    for line in lines:
        if line["cell"] in ("round 64", "round 256"):
            told = f"a round of gradients / its two products, {line['cell'][6:]} attributes"
            yield from _at_most(told, Ratio(line["round"] / line["products"]), 2.5)
    ours, theirs = (median(lines, "walsh 100000 0.1", f"mrf-walsh {method}", "off") for method in ("release", "paper"))
    if ours and theirs:
        yield from _at_most("mrf-walsh release / paper, largest error, n = 1e5, rho = .1", Ratio(ours / theirs), 0.5)
    for line in lines:
        if line["cell"].startswith("wide 256"):
            yield from _at_most(
                "mrf-select, 256 x 1e6, seconds on the wall, records drawn first", Ratio(line["wall"]), 600
            )
            yield from _at_most("mrf-select, 256 x 1e6, GB", Ratio(line["peak"] / 1000), 4)
    ratios = {
        cell: Ratio(*saved([line for line in lines if line["cell"] == cell]))
        for cell in dict.fromkeys(line["cell"] for line in lines if line["cell"].startswith("known "))
    }
    for cell, ratio in ratios.items():
        yield from _at_least(f"records for cells / for contrasts, eb-map, {cell[6:]}", ratio, 2.0)
    if ratios:
        yield from _at_least("the same, the least of them: never worse", min(ratios.values(), key=_value), 1.0)


def _prototype(stars: Found) -> Iterable[list[str]]:
    for cell in ("matching 16", "matching 64"):
        for goal, theirs in zip(GOALS, PROTOTYPE["zcdp", cell, "mrf-select"], strict=True):
            for method in (SELECT, "mrf-select tables"):
                ours = stars.get((f"zcdp {cell}", method, goal))
                if ours and ours.records and theirs:
                    value = Ratio(ours.records / theirs, ours.spread)
                    told = f"n*({method}) / n*(prototype), {goal}, {cell}"
                    yield from _at_most(told, value, 1.25, asked=method == SELECT)


def _value(ratio: Ratio) -> float:
    return ratio.value


def _over(one: Crossing | None, other: Crossing | None) -> Ratio | None:
    """The ratio of two n*, or a bound where one of them is only bounded."""
    if one is None or other is None:
        return None
    if one.records and other.records:
        return Ratio(one.records / other.records, math.hypot(one.spread, other.spread))
    if one.records is None and one.least and (bound := other.records or other.most):
        return Ratio(one.least / bound, sign=">")
    if one.records and other.most:
        return Ratio(one.records / other.most, sign=">")
    return None


def _at_least(what: str, value: Ratio | None, least: float, *, asked: bool = True) -> Iterable[list[str]]:
    if value is not None:
        met = value.value >= least
        verdict = "met" if met else "not known" if value.sign == ">" else "missed"
        yield [what, str(value), f"at least {least:g}" if asked else "none", verdict if asked else ""]


def _at_most(what: str, value: Ratio | None, most: float, *, asked: bool = True) -> Iterable[list[str]]:
    if value is not None:
        verdict = "met" if value.value <= most else "missed"
        yield [what, str(value), f"at most {most:g}" if asked else "none", verdict if asked else ""]
