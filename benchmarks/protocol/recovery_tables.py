"""Tables of `benchmarks.papers.zhang`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from benchmarks.harness.output import beginning, grouped, markdown, marked, section
from benchmarks.harness.runs import Line
from benchmarks.protocol.crossing import Crossing, crossing, slope
from benchmarks.protocol.recovery import LABEL_METHODS, METHODS, STABLE_METHODS, noise_alone, saved

# --------------------------------------------------------------------------------------------------
# The tables of `benchmarks.papers.zhang`: records needed, slopes beside the theory's.

SELECT = "mrf-select contrasts"
GOALS = ("structure", "parameters")
PROMISES = {
    "zcdp": "rho = .01",
    "delta": "(epsilon, delta) = (.75, 1e-6)",
    "pure": "epsilon = .75, pure",
    "labels": "k labels, matchings, max |W| = .8, rho = .1",
    "stable": "binary models of order three, (epsilon, delta) = (.75, 1e-6)",
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
    ("stable", "votes, order 3"): ("log p", ""),
    ("stable", "graph, order 3"): ("log p", ""),
    ("pure", SELECT): ("p log p", "p log p"),
    ("pure", "mrf-fw"): ("p log p", "p log p"),
}
#: Table 1 of Zhang et al. (2020): what it says of structure and of parameters; then, for each, the promise and method
#: of the runs here, by the paper's methods and by ours. rho = .01 is within (.75, 1e-6), so the parameters of
#: approximate DP are those of zCDP, as in the paper.
PAPER = {
    "non-private": ("log p", "log p", ("zcdp", "non-private"), ("zcdp", "non-private"), None, None),
    "approximate DP": (
        "log p", "sqrt(p)", ("delta", "graph"), ("zcdp", "mrf-fw"), ("delta", "votes"), ("zcdp", SELECT)
    ),
    "zCDP": ("sqrt(p)", "sqrt(p)", ("zcdp", "mrf-fw"), ("zcdp", "mrf-fw"), ("zcdp", SELECT), ("zcdp", SELECT)),
    "pure DP": ("at least p", "at least p", ("pure", "mrf-fw"), ("pure", "mrf-fw"), ("pure", SELECT), ("pure", SELECT)),
}  # fmt: skip

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
    return "\n".join([*parts, _late(lines), _slopes(stars), _paper(stars)])


_METHODS = [*METHODS, *LABEL_METHODS, *STABLE_METHODS]
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


def _slopes(stars: Found) -> str:
    rows = []
    for (promise, method), theory in THEORY.items():
        for graph in ("matching", "3-regular", "disjoint"):
            bounds = zip(GOALS, theory, strict=True)
            said = [_slope(stars, promise, graph, method, goal, bound) for goal, bound in bounds]
            if any(said):
                rows.append([PROMISES[promise], graph, method, *(one or "-" for one in said)])
    said = (
        "With standard errors, over the sizes in brackets; then what the theory's rate gives between the least and the "
        "largest of them.\n"
    )
    head = ["promise", "graphs", "method", "structure", "parameters"]
    return section("Slopes of log n* in log p", head, rows, "slopes", said)


def slope_of(
    stars: Found, promise: str, method: str, goal: str, graph: str = "matching"
) -> tuple[float, float, int, int] | None:
    """The slope of log n* in log p, its standard error, and the least and the largest p."""
    known = {
        int(cell.split()[2]): one
        for (cell, by, wanted), one in stars.items()
        if (*cell.split()[:2], by, wanted) == (promise, graph, method, goal) and one.records
    }
    if (measured := slope(known)) is None:
        return None
    return (*measured, min(known), max(known))


def slope_text(found: tuple[float, float, int, int] | None) -> str:
    """A slope as pages have it."""
    return "-" if found is None else f"{found[0]:.2f} ± {found[1]:.2f} ({found[2]} to {found[3]})"


def _slope(stars: Found, promise: str, graph: str, method: str, goal: str, bound: str) -> str:
    if (measured := slope_of(stars, promise, method, goal, graph)) is None:
        return ""
    text, (_, _, low, high) = slope_text(measured), measured
    if not bound:
        return text
    return f"{text}; {bound}: {math.log(GROWTH[bound](high) / GROWTH[bound](low)) / math.log(high / low):.2f}"


def _paper(stars: Found) -> str:
    rows = []
    for promise, (structure, parameters, *measured) in PAPER.items():
        said = [
            "-" if one is None else f"{one[1]}: {slope_text(slope_of(stars, *one, goal))}"
            for one, goal in zip(measured, (*GOALS, *GOALS), strict=True)
        ]
        rows.append([promise, structure, said[0], said[2], parameters, said[1], said[3]])
    head = ["promise", "structure", "the paper's method", "ours", "parameters", "the paper's method", "ours"]
    title = "Table 1 of the paper, growth in p, beside slopes on matchings"
    said_of = (
        "rho = .01 is within (.75, 1e-6), so under approximate DP parameters are learned by the runs of zCDP, the "
        "paper's and ours.\n"
    )
    return section(title, head, rows if stars else [], "paper", said_of)


def _late(lines: Iterable[Line]) -> str:
    ended = [f"{line['method']} on {line['cell']}" for line in lines if line.get("late")]
    return f"\nEnded by the time limit, with the points there were: {'; '.join(ended)}.\n" if ended else ""


# --------------------------------------------------------------------------------------------------
# The tables of `benchmarks.papers.zhang` that no search fills: contrasts, models of order three.


def other_tables(lines: Sequence[Line]) -> str:
    """Errors of t-wise models, the rate of Frank-Wolfe, and contrasts."""
    kinds = {"known": _known, "walsh": _walsh, "twise": _twise, "rate": _rate}
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


def stars_by_size(lines: Iterable[Line], kind: str) -> dict[str, dict[int, Crossing]]:
    """Method -> p -> n*, of cells that begin so and end with p."""
    stars: dict[str, dict[int, Crossing]] = {}
    for (cell, method, _), one in found(line for line in lines if line["cell"].startswith(f"{kind} ")).items():
        stars.setdefault(method, {})[int(cell.split()[-1])] = one
    return {method: dict(sorted(of.items())) for method, of in sorted(stars.items())}


def _twise(lines: Sequence[Line]) -> str:
    stars = stars_by_size(lines, "twise")
    sizes = sorted({size for of in stars.values() for size in of})
    rows = []
    for method, of in stars.items():
        cells = [f"{of[size]} ({of[size].spread:.2f})" if size in of else "-" for size in sizes]
        measured = slope(of)
        rows.append([method, *cells, "-" if measured is None else f"{measured[0]:.2f} ± {measured[1]:.2f}"])
    said = (
        "n* for all maximal monomials within .1, disjoint triples of ±.4, rho = .1, standard errors of log n* in "
        "brackets. The paper's method here is offline: Frank-Wolfe, then multiplicative weights with the exponential "
        "mechanism (MWEM) over all parities, not the private multiplicative weights of a stream that the theorem is "
        "of.\n"
    )
    head = ["method", *(f"p = {size}" for size in sizes), "slope"]
    return section("Theorem 1.4: binary t-wise models, t = 3", head, rows, "twise", said)


def rate_points(lines: Iterable[Line]) -> dict[float, list[float]]:
    """n sqrt(rho) -> excess risks."""
    points: dict[float, list[float]] = {}
    for line in beginning(lines, "rate"):
        _, records, rho = line["cell"].split()
        points.setdefault(int(records) * math.sqrt(float(rho)), []).append(line["risk"])
    return dict(sorted(points.items()))


def rate_slope(lines: Iterable[Line]) -> tuple[float, float] | None:
    """The slope of the log of the mean excess risk in log(n sqrt(rho)), and its standard error."""
    points = {at: float(np.mean(risks)) for at, risks in rate_points(lines).items()}
    points = {at: risk for at, risk in points.items() if risk > 0}
    if len(points) < 3:
        return None
    x, y = np.log(list(points)), np.log(list(points.values()))
    x = x - x.mean()
    value = float(x @ y / (x @ x))
    return value, float(np.sqrt(np.sum((y - y.mean() - value * x) ** 2) / (len(x) - 2) / (x @ x)))


def _rate(lines: Sequence[Line]) -> str:
    rows = []
    for cell, runs in grouped(lines, "cell").items():
        _, records, rho = cell.split()
        error = float(np.std([line["risk"] for line in runs]) / math.sqrt(len(runs)))
        mean = f"{np.mean([line['risk'] for line in runs]):.4f} ({error:.1g})"
        rows.append([f"{int(records) * math.sqrt(float(rho)):,.0f}", f"{int(records):,}", rho, mean, str(len(runs))])
    rows.sort(key=lambda row: (float(row[0].replace(",", "")), row[1]))
    head = ["n sqrt(rho)", "records", "rho", "excess risk, nats", "draws"]
    title = "Theorem 1.3: excess risk of private Frank-Wolfe, matching of 8"
    return section(title, head, rows, "rate")
