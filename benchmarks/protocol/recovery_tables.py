"""Tables of `benchmarks.mrf`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from attrs import frozen

from benchmarks.harness.output import beginning, grouped, having, markdown, marked, mean_and_error, section
from benchmarks.harness.runs import Line
from benchmarks.protocol.crossing import PROTOTYPE, Crossing, crossing, prototype, slope
from benchmarks.protocol.recovery import LABEL_METHODS, METHODS, noise_alone, saved

# --------------------------------------------------------------------------------------------------
# The tables of `benchmarks.mrf`: records needed, slopes beside the theory's and the prototype.

SELECT = "mrf-select contrasts"
GOALS = ("structure", "parameters")
PROMISES = {
    "zcdp": "rho = .01",
    "delta": "(epsilon, delta) = (.75, 1e-6)",
    "pure": "epsilon = .75, pure",
    "labels": "k labels, matchings, max |W| = .8, rho = .1",
}
#: Of the theory's bounds: what they grow like in p.
GROWTH = {
    "log p": lambda p: math.log(p),
    "sqrt(p)": lambda p: math.sqrt(p),
    "sqrt(p) log p": lambda p: math.sqrt(p) * math.log(p),
    "sqrt(p) log^2 p": lambda p: math.sqrt(p) * math.log(p) ** 2,
    "p": lambda p: p,
    "p log p": lambda p: p * math.log(p),
}
#: By promise and method: which of them is said of structure, and of parameters.
THEORY = {
    ("zcdp", "non-private"): ("log p", "log p"),
    ("zcdp", "mrf-fw"): ("sqrt(p) log^2 p", "sqrt(p) log^2 p"),
    ("zcdp", "mrf-fw clipped"): ("sqrt(p) log^2 p", "sqrt(p) log^2 p"),
    ("zcdp", "all pairs, contrasts"): ("p log p", "p log p"),
    ("zcdp", "all pairs, tables"): ("p log p", "p log p"),
    ("zcdp", SELECT): ("sqrt(p) log p", "sqrt(p) log p"),
    ("zcdp", "mrf-select tables"): ("sqrt(p) log p", "sqrt(p) log p"),
    ("delta", "votes"): ("log p", ""),
    ("delta", "graph"): ("log p", ""),
    ("delta", "threshold"): ("log p", ""),
    ("pure", SELECT): ("p log p", "p log p"),
    ("pure", "mrf-fw"): ("p log p", "p log p"),
}
#: Table 1 of Zhang et al. (2020): (structure, parameters), and what was measured for it here.
PAPER = {
    "non-private": ("log p", "log p", ("zcdp", "non-private", "non-private")),
    "approximate DP": ("log p", "sqrt(p)", ("delta", "votes", "")),
    "zCDP": ("sqrt(p)", "sqrt(p)", ("zcdp", SELECT, SELECT)),
    "pure DP": ("at least p", "at least p", ("pure", SELECT, SELECT)),
}

#: (cell, method, goal) -> n*.
Found = Mapping[tuple[str, str, str], Crossing]


def found(lines: Iterable[Line]) -> dict[tuple[str, str, str], Crossing]:
    """Of all searches."""
    return {
        (line["cell"], line["method"], goal): crossing({int(at): tuple(one) for at, one in line[goal].items()})
        for line in lines
        for goal in GOALS
        if line.get(goal) and isinstance(line[goal], dict)
    }


def needed_tables(lines: Sequence[Line]) -> str:
    """n* by graph, size and method; slopes; Table 1 of the paper."""
    stars, parts = found(lines), []
    for promise, called in PROMISES.items():
        cells = _cells(lines, promise)
        if not cells:
            continue
        parts.append(f"## Records needed, {called}\n\n{_SAID}")
        for graph in dict.fromkeys(cell.split()[1] for cell in cells):
            here = [cell for cell in cells if cell.split()[1] == graph]
            methods = {line["method"] for line in lines if line["cell"] in here}
            rows = [
                [method, *(_both(stars, cell, method) for cell in here)]
                for method in sorted(methods, key=lambda method: (_METHODS.index(method), method))
            ]
            sizes = [f"p = {cell.split()[2]}" for cell in here]
            name = f"k = {graph}" if promise == "labels" else graph
            parts.append(marked(f"{promise}-{graph}", markdown([name, *sizes], rows)))
    return "\n".join([*parts, _late(lines), _slopes(lines, stars), _paper(lines, stars), _prototype(stars)])


_METHODS = [*METHODS, *LABEL_METHODS]
_SAID = "n* for structure / for parameters within .1, and the standard error of log n*.\n"


def _cells(lines: Iterable[Line], promise: str) -> list[str]:
    """In the order of graphs and sizes."""
    order = {"matching": 1, "3-regular": 2, "grid": 3}
    cells = (cell.split() for cell in grouped(beginning(lines, promise), "cell"))
    return [" ".join(cell) for cell in sorted(cells, key=lambda cell: (order.get(cell[1], 0), cell[1], int(cell[2])))]


def _both(stars: Found, cell: str, method: str) -> str:
    said = []
    for goal in GOALS:
        one = stars.get((cell, method, goal))
        error = f" ({one.spread:.2f})" if one is not None and one.records is not None else ""
        said.append("-" if one is None else f"{one}{error}")
    return " / ".join(said) if said[1] != "-" else said[0]


def _slopes(lines: Sequence[Line], stars: Found) -> str:
    rows = []
    for (promise, method), theory in THEORY.items():
        for graph in ("matching", "3-regular"):
            sizes = [int(cell.split()[2]) for cell in _cells(lines, promise) if cell.split()[1] == graph]
            bounds = zip(GOALS, theory, strict=True)
            said = [_slope(stars, promise, graph, sizes, method, goal, bound) for goal, bound in bounds]
            if any(said):
                rows.append([PROMISES[promise], graph, method, *(one or "-" for one in said)])
    said = (
        "With standard errors, over the sizes in brackets; then what the theory's rate gives between the least and the "
        "largest of them.\n"
    )
    head = ["promise", "graphs", "method", "structure", "parameters"]
    return section("Slopes of log n* in log p", head, rows, "slopes", said)


def _slope(stars: Found, promise: str, graph: str, sizes: Sequence[int], method: str, goal: str, bound: str) -> str:
    known = {
        size: one for size in sizes if (one := stars.get((f"{promise} {graph} {size}", method, goal))) and one.records
    }
    if (measured := slope(known)) is None:
        return ""
    low, high = min(known), max(known)
    text = f"{measured[0]:.2f} ± {measured[1]:.2f} ({low} to {high})"
    if not bound:
        return text
    return f"{text}; {bound}: {math.log(GROWTH[bound](high) / GROWTH[bound](low)) / math.log(high / low):.2f}"


def _paper(lines: Sequence[Line], stars: Found) -> str:
    rows = []
    for promise, (structure, parameters, (cell, *methods)) in PAPER.items():
        sizes = [int(one.split()[2]) for one in _cells(lines, cell) if one.split()[1] == "matching"]
        said = [
            (method and _slope(stars, cell, "matching", sizes, method, goal, "")) or "-"
            for method, goal in zip(methods, GOALS, strict=True)
        ]
        rows.append([promise, structure, said[0], parameters, said[1], methods[0]])
    head = ["promise", "structure", "slope here", "parameters", "slope here", "method here"]
    title = "Table 1 of the paper, growth in p, beside slopes on matchings"
    return section(title, head, rows if any(row[2] != "-" or row[4] != "-" for row in rows) else [], "paper")


def _prototype(stars: Found) -> str:
    ratios: dict[tuple[str, str], list[str]] = {}
    for (cell, method, goal), ours in stars.items():
        promise, there = cell.split(maxsplit=1)
        theirs = prototype(promise, there, method)[GOALS.index(goal)]
        if ours.records is not None and theirs is not None:
            said = f"{ours.records / theirs:.2f} ({ours.spread:.2f})"
            ratios.setdefault((cell, method), ["-", "-"])[GOALS.index(goal)] = said
    rows = [[*of.split(maxsplit=1), method, *said] for (of, method), said in ratios.items()]
    said = (
        "With standard errors of the logarithm, ours alone; the prototype's are 15 %. Its `all pairs` and `mrf-select` "
        "measured products, it was told that there are no fields, and it held Frank-Wolfe's weights to no threshold.\n"
    )
    head = ["promise", "graph, p", "method", *GOALS]
    return section("n* over the specification's prototype's", head, rows, said=said)


def _late(lines: Iterable[Line]) -> str:
    ended = [f"{line['method']} on {line['cell']}" for line in lines if line.get("late")]
    return f"\nEnded by the time limit, with the points there were: {'; '.join(ended)}.\n" if ended else ""


# --------------------------------------------------------------------------------------------------
# The tables of `benchmarks.mrf` that no search fills: contrasts, models of order three, real records, time, scale.


def other_tables(lines: Sequence[Line]) -> str:
    """Errors of t-wise models, contrasts, days held out, scale."""
    kinds = {"known": _known, "walsh": _walsh, "days": _days, "wide": _wide, "round": _rounds, "gibbs": _gibbs}
    return "\n".join(table(some) for kind, table in kinds.items() if (some := beginning(lines, kind)))


def median(lines: Iterable[Line], cell: str, method: str, key: str) -> float | None:
    """Over the draws."""
    values = [line[key] for line in having(lines, cell=cell, method=method) if key in line]
    return float(np.median(values)) if values else None


def _known(lines: Sequence[Line]) -> str:
    rows = []
    for cell, runs in grouped(lines, "cell").items():
        _, graph, size, relation = cell.split()
        ratio, spread = saved(runs)
        alone = f"{noise_alone(graph, int(size), relation):.2f}"
        rows.append([f"{graph} {size}", relation, f"{ratio:.2f} ± {ratio * spread:.2f}", alone, str(len(runs))])
    said = (
        "`eb-map`, equal errors (RMS) of the couplings, rho = .001, where noise is many times the sampling. By the "
        "noise alone: the deviation of a pair's product from four cells over that from contrasts, which measure every "
        "attribute alone besides; 2 where no attribute is measured alone.\n"
    )
    head = ["measured, p", "neighbours", "records for cells / for contrasts", "by the noise alone", "draws"]
    return section("Contrasts of a known structure", head, rows, "known", said)


def _walsh(lines: Sequence[Line]) -> str:
    rows = []
    for (cell, method), some in grouped(lines, "cell", "method").items():
        errors = [f"{np.median([line[key] for line in some]):.3f}" for key in ("off", "cpu")]
        rows.append([*cell.split()[1:], method, *errors, str(len(some))])
    head = ["records", "rho", "method", "largest error of a maximal monomial", "CPU s", "draws"]
    return section("Binary t-wise models, p = 10, t = 3, medians", head, rows, "walsh")


def _days(lines: Sequence[Line]) -> str:
    rows = []
    for (cell, method), some in grouped(lines, "cell", "method").items():
        score = mean_and_error([line["pseudo"] for line in some], "{:.3f}", " ({:.2g})")
        mean = {key: float(np.mean([line[key] for line in some])) for key in ("seconds", "cliques")}
        row = [cell.removeprefix("days "), method, score, f"{mean['cliques']:.0f}", f"{mean['seconds']:.1f}"]
        rows.append([*row, str(len(some))])
    head = ["budget", "method", "log pseudo-likelihood of a day, held out", "cliques", "CPU s", "seeds"]
    return section("Hours of working days, 72 binary attributes", head, rows, "days")


def _wide(lines: Sequence[Line]) -> str:
    rows = [
        [one["cell"].removeprefix("wide "), one["method"], f"{one['seconds']:.0f}", f"{one['peak']:,.0f}", one["said"]]
        for one in lines
    ]
    return section("Scale", ["attributes x records", "method", "CPU s", "peak MB", "edges"], rows, "wide")


def _rounds(lines: Sequence[Line]) -> str:
    rows = []
    for line in lines:
        numbers = f"{line['round']:.3f}", f"{line['products']:.3f}", f"{line['round'] / line['products']:.2f}"
        rows.append([line["cell"].split()[1], *numbers])
    head = ["attributes", "a round of gradients, CPU s", "its two products", "ratio"]
    return section("A round of gradients on 65,536 records", head, rows, "round")


def _gibbs(lines: Sequence[Line]) -> str:
    keys = ("marginals", "records", "compiled")
    rows = [[line["method"], *(f"{line[key]:.2f}" for key in keys)] for line in lines]
    head = ["", "marginals, CPU s", "200,000 records", "to compile, once"]
    return section("Gibbs sampling, 64 attributes, degree 3", head, rows, "gibbs")


# --------------------------------------------------------------------------------------------------
# What was asked of `benchmarks.mrf`, figure by figure: measured, met or missed.


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
    rows = [*_recovery(stars), *_votes(stars), *_others(lines), *_prototype_targets(stars)]
    head = ["figure", "measured (± standard error)", "target", ""]
    return f"## Targets\n\n{marked('targets', markdown(head, rows))}"


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
    for cell in grouped(beginning(lines, "kept"), "cell"):
        ours, theirs = (
            median(lines, cell, f"mrf-select tables, {learner}", "off") for learner in ("eb-map", "naive-mle")
        )
        if ours and theirs:
            told = f"mean abs error of parameters at 1.5 n*, eb-map / naive-mle, {cell[5:]}"
            yield from _at_most(told, Ratio(ours / theirs), 1.1)
    for line in [*having(lines, cell="round 64"), *having(lines, cell="round 256")]:
        told = f"a round of gradients / its two products, {line['cell'][6:]} attributes"
        yield from _at_most(told, Ratio(line["round"] / line["products"]), 2.5)
    ours, theirs = (median(lines, "walsh 100000 0.1", f"mrf-walsh {method}", "off") for method in ("release", "paper"))
    if ours and theirs:
        yield from _at_most("mrf-walsh release / paper, largest error, n = 1e5, rho = .1", Ratio(ours / theirs), 0.5)
    for line in having(lines, cell="wide 256 1000000"):
        yield from _at_most("mrf-select, 256 x 1e6, seconds on the wall, records drawn first", Ratio(line["wall"]), 600)
        yield from _at_most("mrf-select, 256 x 1e6, GB", Ratio(line["peak"] / 1000), 4)
    ratios = {cell: Ratio(*saved(runs)) for cell, runs in grouped(beginning(lines, "known"), "cell").items()}
    for cell, ratio in ratios.items():
        yield from _at_least(f"records for cells / for contrasts, eb-map, {cell[6:]}", ratio, 2.0)
    if ratios:
        yield from _at_least(
            "the same, the least of them: never worse", min(ratios.values(), key=lambda ratio: ratio.value), 1.0
        )


def _prototype_targets(stars: Found) -> Iterable[list[str]]:
    for cell in ("matching 16", "matching 64"):
        for goal, theirs in zip(GOALS, PROTOTYPE["zcdp", cell, "mrf-select"], strict=True):
            for method in (SELECT, "mrf-select tables"):
                ours = stars.get((f"zcdp {cell}", method, goal))
                if ours and ours.records and theirs:
                    value = Ratio(ours.records / theirs, ours.spread)
                    told = f"n*({method}) / n*(prototype), {goal}, {cell}"
                    yield from _at_most(told, value, 1.25, asked=method == SELECT)


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
