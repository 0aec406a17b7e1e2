"""Tables of `benchmarks.mrf`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from benchmarks.harness.output import beginning, grouped, markdown, marked, section
from benchmarks.harness.runs import Line
from benchmarks.protocol.crossing import Crossing, crossing, slope
from benchmarks.protocol.recovery import LABEL_METHODS, METHODS, noise_alone, saved

# --------------------------------------------------------------------------------------------------
# The tables of `benchmarks.mrf`: records needed, slopes beside the theory's.

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
    return "\n".join([*parts, _late(lines), _slopes(lines, stars), _paper(lines, stars)])


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


def _late(lines: Iterable[Line]) -> str:
    ended = [f"{line['method']} on {line['cell']}" for line in lines if line.get("late")]
    return f"\nEnded by the time limit, with the points there were: {'; '.join(ended)}.\n" if ended else ""


# --------------------------------------------------------------------------------------------------
# The tables of `benchmarks.mrf` that no search fills: contrasts, models of order three.


def other_tables(lines: Sequence[Line]) -> str:
    """Errors of t-wise models, and contrasts."""
    kinds = {"known": _known, "walsh": _walsh}
    return "\n".join(table(some) for kind, table in kinds.items() if (some := beginning(lines, kind)))


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
