"""The tables of `benchmarks.mrf`: records needed, slopes beside the theory's and the prototype."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.harness.output import markdown
from benchmarks.harness.runs import Line
from benchmarks.protocol.crossing import Crossing, crossing, slope
from benchmarks.protocol.prototype import prototype
from benchmarks.protocol.recovery import METHODS
from benchmarks.protocol.recovery_labels import LABEL_METHODS

__all__ = ["SELECT", "Found", "block", "found", "needed_tables"]

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
            parts.append(block(f"{promise}-{graph}", markdown([name, *sizes], rows)))
    return "\n".join([*parts, _late(lines), _slopes(lines, stars), _paper(lines, stars), _prototype(stars)])


_METHODS = [*METHODS, *LABEL_METHODS]
_SAID = "n* for structure / for parameters within .1, and the standard error of log n*.\n"


def _cells(lines: Iterable[Line], promise: str) -> list[str]:
    """In the order of graphs and sizes."""
    cells = dict.fromkeys(line["cell"] for line in lines if line["cell"].startswith(f"{promise} "))
    return sorted(cells, key=lambda cell: (_ORDER.get(cell.split()[1], 0), cell.split()[1], int(cell.split()[2])))


_ORDER = {"matching": 1, "3-regular": 2, "grid": 3}


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
            said = [
                _slope(stars, promise, graph, sizes, method, goal, bound)
                for goal, bound in zip(GOALS, theory, strict=True)
            ]
            if any(said):
                rows.append([PROMISES[promise], graph, method, *(one or "-" for one in said)])
    head = ["promise", "graphs", "method", "structure", "parameters"]
    return f"## Slopes of log n* in log p\n\n{_SAID_SLOPES}\n{block('slopes', markdown(head, rows))}" if rows else ""


_SAID_SLOPES = (
    "With standard errors, over the sizes in brackets; then what the theory's rate gives between the least and the "
    "largest of them.\n"
)


def _slope(stars: Found, promise: str, graph: str, sizes: Sequence[int], method: str, goal: str, bound: str) -> str:
    known = {
        size: one for size in sizes if (one := stars.get((f"{promise} {graph} {size}", method, goal))) and one.records
    }
    if (measured := slope(known)) is None:
        return ""
    low, high = min(known), max(known)
    told = f"; {bound}: {_local(bound, low, high):.2f}" if bound else ""
    return f"{measured[0]:.2f} ± {measured[1]:.2f} ({low} to {high}){told}"


def _local(bound: str, low: int, high: int) -> float:
    return math.log(GROWTH[bound](high) / GROWTH[bound](low)) / math.log(high / low)


def _paper(lines: Sequence[Line], stars: Found) -> str:
    rows = []
    for promise, (structure, parameters, (cell, *methods)) in PAPER.items():
        sizes = [int(one.split()[2]) for one in _cells(lines, cell) if one.split()[1] == "matching"]
        said = [
            _slope(stars, cell, "matching", sizes, method, goal, "") if method else ""
            for method, goal in zip(methods, GOALS, strict=True)
        ]
        rows.append([promise, structure, said[0] or "-", parameters, said[1] or "-", methods[0]])
    if all(row[2] == row[4] == "-" for row in rows):
        return ""
    head = ["promise", "structure", "slope here", "parameters", "slope here", "method here"]
    return f"## Table 1 of the paper, growth in p, beside slopes on matchings\n\n{block('paper', markdown(head, rows))}"


def _prototype(stars: Found) -> str:
    ratios: dict[tuple[str, str], list[str]] = {}
    for (cell, method, goal), ours in stars.items():
        promise, there = cell.split(maxsplit=1)
        theirs = prototype(promise, there, method)[GOALS.index(goal)]
        if ours.records is not None and theirs is not None:
            said = f"{ours.records / theirs:.2f} ({ours.spread:.2f})"
            ratios.setdefault((cell, method), ["-", "-"])[GOALS.index(goal)] = said
    rows = [[*of.split(maxsplit=1), method, *said] for (of, method), said in ratios.items()]
    head = ["promise", "graph, p", "method", *GOALS]
    return f"## n* over the specification's prototype's\n\n{_SAID_PROTOTYPE}\n{markdown(head, rows)}" if rows else ""


_SAID_PROTOTYPE = (
    "With standard errors of the logarithm, ours alone; the prototype's are 15 %. Its `all pairs` and `mrf-select` "
    "measured products, it was told that there are no fields, and it held Frank-Wolfe's weights to no threshold.\n"
)


def _late(lines: Iterable[Line]) -> str:
    ended = [f"{line['method']} on {line['cell']}" for line in lines if line.get("late")]
    return f"\nEnded by the time limit, with the points there were: {'; '.join(ended)}.\n" if ended else ""


def block(name: str, table: str) -> str:
    """A table that pages of the documentation include."""
    return f"<!-- --8<-- [start:{name}] -->\n\n{table}\n<!-- --8<-- [end:{name}] -->\n"
