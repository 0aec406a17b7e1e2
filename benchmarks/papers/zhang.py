"""Zhang, Kamath, Kulkarni and Wu (ICML 2020): the records that each method needs for structure and parameters.

    python -m benchmarks.paper zhang [--smoke|--full|--report] [--cells "zcdp matching *"] [--seconds 150] [--trials 10]

n* is the number of records at which two of three trials succeed (`protocol/crossing.py`). Truths: couplings of +-.4
with random signs and no fields on matchings, random 3-regular graphs and square grids (`cases/markov.py`), another
graph and other records in each trial, the same for every method. Structure: the very edges, pairs with |A| above
eta / 2 = .2. Parameters: every pair within .1. Add-remove neighbours, N declared; rho = .01 ("zcdp"), (.75, 1e-6)
("delta") and epsilon = .75 ("pure"). What a method is told of the truth: its width, eta, an attribute's most edges, as
the paper has it, and, unless it says "margins unknown", that both codes are equally frequent. Seeds begin at 310000 and
were used for nothing else.

Cells "labels k p" are matchings of k labels, rho = .1; "walsh n rho", "twise p" and "stable graph p" binary models of
order three, the last for their graph under (.75, 1e-6); "rate n rho" excess risks of Frank-Wolfe; "known" cells beside
contrasts where the structure is known and noise rules. A search that has spent --seconds of the CPU begins no trial
more and is reported with the points it has.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases.markov import COUPLING
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import beginning, pyplot, save
from benchmarks.harness.runs import Line, Task, refuse
from benchmarks.papers.claims import Claim, claim, report
from benchmarks.protocol.crossing import slope
from benchmarks.protocol.recovery import (
    LABEL_METHODS,
    METHODS,
    STABLE_METHODS,
    WALSH_METHODS,
    WITHIN,
    excess_risk,
    known_errors,
    labels_needed,
    needed,
    stable_needed,
    twise_needed,
    walsh_error,
)
from benchmarks.protocol.recovery_tables import (
    GOALS,
    PAPER,
    PROMISES,
    Found,
    found,
    needed_tables,
    other_tables,
    rate_points,
    rate_slope,
    slope_of,
    slope_text,
    stars_by_size,
)
from benchmarks.protocol.recovery_tables import SELECT as OURS

KNOWN, FITTED = "eb-map", "mrf-fw"
DRAWS, KNOWN_DRAWS, RATE_DRAWS = 7, 12, 5
#: Records at which searches begin, for structure and for parameters.
STARTS = {"structure": 2048, "parameters": 4096}
#: Cell -> its methods, in the order of the table. What is missing here takes too long, and is named under the tables.
FRANK_WOLFE = ("mrf-fw", "mrf-fw clipped")
ALL_PAIRS = ("all pairs, contrasts", "all pairs, tables")
SELECT = ("mrf-select contrasts", "mrf-select tables")
UNKNOWN = ("mrf-select contrasts, margins unknown", "mrf-select tables, margins unknown")
PLAIN, ROUNDS = "non-private", "mrf-select contrasts, in rounds"
SEARCHES: dict[str, tuple[str, ...]] = {
    "zcdp matching 8": (PLAIN, *FRANK_WOLFE, *ALL_PAIRS, *SELECT, *UNKNOWN),
    "zcdp matching 16": (PLAIN, *FRANK_WOLFE, *ALL_PAIRS, *SELECT, *UNKNOWN),
    "zcdp matching 32": (PLAIN, *FRANK_WOLFE, *ALL_PAIRS, *SELECT, *UNKNOWN),
    "zcdp matching 64": (PLAIN, *FRANK_WOLFE, *ALL_PAIRS, *SELECT, *UNKNOWN),
    "zcdp matching 128": SELECT,
    "zcdp 3-regular 8": (PLAIN, *FRANK_WOLFE, *ALL_PAIRS, *SELECT, ROUNDS),
    "zcdp 3-regular 16": (PLAIN, *FRANK_WOLFE, *ALL_PAIRS, *SELECT, *UNKNOWN, ROUNDS),
    "zcdp 3-regular 32": (PLAIN, *FRANK_WOLFE, *SELECT),
    "zcdp 3-regular 64": (PLAIN, *FRANK_WOLFE, *SELECT),
    "zcdp grid 16": (PLAIN, *FRANK_WOLFE, *ALL_PAIRS, *SELECT, ROUNDS),
    "zcdp grid 64": (PLAIN, *FRANK_WOLFE, *SELECT, ROUNDS),
    "delta matching 8": ("votes", "graph", "threshold"),
    "delta matching 16": ("votes", "graph", "threshold"),
    "delta matching 32": ("votes", "graph", "threshold"),
    "delta matching 64": ("votes", "graph", "threshold"),
    "delta matching 128": ("threshold",),
    "delta 3-regular 8": ("votes", "graph"),
    "delta 3-regular 16": ("votes",),
    "pure matching 8": ("mrf-fw", "all pairs, contrasts", *SELECT),
    "pure matching 16": ("mrf-fw", "all pairs, contrasts", *SELECT),
    "pure matching 32": ("mrf-fw", *SELECT),
    "pure matching 64": SELECT,
}
LABELS = ("labels 3 8", "labels 3 16", "labels 4 8")
WALSH = ("walsh 10000 0.1", "walsh 100000 0.1", "walsh 10000 0.01")
TWISE = ("twise 6", "twise 9", "twise 12", "twise 15")
STABLE = ("stable disjoint 6", "stable disjoint 12", "stable disjoint 24", "stable mixed 10")
RATE = tuple(f"rate {records} {rho}" for records in (4096, 16384, 65536) for rho in ("0.001", "0.01", "0.1", "1"))
STRUCTURES = ("matching 16", "3-regular 16", "grid 16", "all-pairs 10")
SMOKE = ("zcdp matching 8", "delta matching 8", "known matching 16 add-remove", "twise 6", STABLE[0], *RATE[:3])


def work(task: Task, asked: Namespace) -> Any:
    """One run: its cell is as the help has it."""
    trials, seconds = 3 if asked.extent == "smoke" else asked.trials, asked.seconds
    kind, *rest = task.cell.split()
    if kind == "labels":
        return labels_needed(int(rest[0]), int(rest[1]), task.method, STARTS["structure"], trials, seconds)
    if kind == "twise":
        return twise_needed(int(rest[0]), task.method, trials, seconds)
    if kind == "stable":
        return stable_needed(rest[0], int(rest[1]), task.method, trials, seconds)
    if kind == "rate":
        return excess_risk(int(rest[0]), rest[1], task.trial)
    if kind == "walsh":
        return walsh_error(task.method, int(rest[0]), rest[1], task.trial)
    if kind == "known":
        return known_errors(rest[0], int(rest[1]), rest[2], task.trial)
    return needed(rest[0], int(rest[1]), task.method, kind, STARTS, trials, seconds)


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws."""
    if asked.extent == "smoke":
        return dict.fromkeys(SMOKE, 1)
    searches = dict.fromkeys([*SEARCHES, *LABELS, *TWISE, *STABLE], 1)
    known = [f"known {one} {relation}" for relation in ("add-remove", "replace-one") for one in STRUCTURES]
    drawn = dict.fromkeys(WALSH, DRAWS) | dict.fromkeys(RATE, RATE_DRAWS)
    return searches | drawn | dict.fromkeys(known, KNOWN_DRAWS)


def serves(cell: str, draw: int, method: str) -> bool:
    """What is affordable."""
    if cell in SEARCHES:
        return method in SEARCHES[cell]
    served: dict[str, Container[str]] = {
        "labels": LABEL_METHODS, "walsh": WALSH_METHODS, "known": [KNOWN], "twise": WALSH_METHODS, "rate": [FITTED],
        "stable": STABLE_METHODS,
    }  # fmt: skip
    return method in served[cell.split()[0]]


def tables(lines: Sequence[Line]) -> str:
    """The page."""
    left_out = (
        "\nNot in the list, for their time or because other figures say it: all pairs beyond 64 attributes, and beyond "
        "16 where graphs have loops (its states are listed); Frank-Wolfe on matchings beyond 64, and beyond 32 for "
        "pure budgets; graph mode beyond 64; votes on 3-regular graphs beyond 16.\n"
    )
    done = {(line["cell"], line["method"]) for line in lines}
    absent: dict[str, list[str]] = {}
    for cell, methods in [*SEARCHES.items(), *((cell, tuple(LABEL_METHODS)) for cell in LABELS)]:
        for method in methods:
            if (cell, method) not in done:
                absent.setdefault(cell, []).append(method)
    if len(absent) < len(SEARCHES) / 2:  # of a whole run
        names = "; ".join(f"{cell}: {', '.join(methods)}" for cell, methods in absent.items())
        left_out += f"\nIn the list, but not run for want of time: {names}.\n" if absent else ""
    return report("Markov random fields", claims(lines), lines, needed_tables(lines), other_tables(lines), left_out)


def claims(lines: Sequence[Line]) -> list[Claim]:
    """What the paper states, and what these runs show of it."""
    stars = found(lines)
    searches = [line for line in lines if line["cell"] in SEARCHES]
    listed = []
    for promise in PAPER:
        for at, goal in enumerate(GOALS):
            says = f"{promise}, {goal}: records grow as {PAPER[promise][at]}"
            judged = _table(stars, promise, at) if searches else ("not attempted", "its runs are not in the store yet")
            name = f"Z{len(listed) + 1}"
            listed.append(Claim(name=name, says=says, status=judged[0], found=judged[1], figure="Table 1"))
    return [
        *listed,
        claim(
            "Z9", "structure under (epsilon, delta) needs fewer records than parameters, from some p on", searches,
            lambda _: _separation(stars),
        ),
        claim(
            "Z10", "the excess risk of private Frank-Wolfe falls as (n sqrt(rho))^(-2/3), Theorem 1.3",
            beginning(lines, "rate"), _rate,
        ),
        claim(
            "Z11", "binary t-wise models: records grow as sqrt(p) with logs, Theorem 1.4", beginning(lines, "twise"),
            _twise,
        ),
        claim("Z12", "k labels: Algorithm 3, k^5 in the records, Theorem 1.2", beginning(lines, "labels"), _labels),
        Claim(
            name="Z13", says="each step of Algorithm 1 as printed is rho/T-zCDP", status="contradicted",
            found="not with L1 = 1 under replace-one: decision 0022 has neighbours; `mrf-fw` draws otherwise",
        ),
        claim("Z14", "lower bound of parameters, sqrt(p) / (alpha epsilon), Theorem 4.1", searches,
              lambda _: _above(stars, "zcdp", "parameters"), "picture"),
        claim("Z15", "lower bounds of structure, pure, Theorem 6.1", searches,
              lambda _: _above(stars, "pure", "structure"), "picture"),
        claim("Z16", "lower bounds of structure, zCDP, Theorem 6.1", searches,
              lambda _: _above(stars, "zcdp", "structure"), "picture"),
        Claim(
            name="Z17", says="lower bounds for k labels, k^2 p in place of p, Theorem 6.2", status="not attempted",
            found="constants are not given, and p and k are too few to see a growth",
        ),
        claim(
            "Z18", "structure of binary t-wise models under (epsilon, delta): records grow as log p",
            beginning(lines, "stable"), lambda _: _stable(stars), "supplement",
        ),
        Claim(
            name="Z19", says="the oracle method FEM in place of multiplicative weights", status="not attempted",
            found="not built",
        ),
    ]  # fmt: skip


def _table(stars: Found, promise: str, at: int) -> tuple[str, str]:
    """A cell of Table 1: whether the slope of the paper's method is one of the rate there, with or without logs."""
    rate, goal = PAPER[promise][at], GOALS[at]
    theirs, ours = PAPER[promise][2 + at], PAPER[promise][4 + at]
    measured = theirs and slope_of(stars, *theirs, goal)
    if not measured:
        return "not attempted", "too few sizes were run"
    status, said, instead = _against(rate, measured, theirs[1])
    if ours and (other := slope_of(stars, *ours, goal)):
        said += f"; ours, {ours[1]}: {slope_text(other)}"
    return status, said + instead


def _against(rate: str, measured: tuple[float, float, int, int], method: str) -> tuple[str, str, str]:
    """A status by whether a slope is one of the rate, with or without logs; what was found; and on which side it is."""
    value, error, low, high = measured
    logs = math.log(math.log(high) / math.log(low)) / math.log(high / low)
    least, most = {"log p": (0, logs), "sqrt(p)": (0.5, 0.5 + 2 * logs), "at least p": (1, 1 + logs)}[rate]
    said = f"slope {slope_text(measured)} by {method}; the rate there, without and with logs: {least:.2f} to {most:.2f}"
    if least - 2 * error <= value <= most + 2 * error:
        return "reproduced", said, ""
    return "with a caveat", said, f"; {'below' if value < least else 'above'} it, at sizes where constants still tell"


def _stable(stars: Found) -> tuple[str, str]:
    """The slope of the paper's method, graph votes, on disjoint triples; no order 2 may find them."""
    theirs, ours, blind = STABLE_METHODS
    measured = slope_of(stars, "stable", theirs, "structure", "disjoint")
    if measured is None:
        return "not attempted", "too few sizes were run"
    status, said, instead = _against("log p", measured, theirs)
    if other := slope_of(stars, "stable", ours, "structure", "disjoint"):
        said += f"; ours, {ours}: {slope_text(other)}"
    said += f"{instead}; the learner is Klivans and Meka's (2017)"
    tried = {cell: one for (cell, method, _), one in stars.items() if method == blind}
    seen = [cell for cell, one in tried.items() if one.most is not None]
    if seen:
        return "with a caveat", f"{said}; {blind}, finds the graph of {', '.join(seen)} too"
    if tried:
        said += f"; {blind}, finds none with {min(one.least or 0 for one in tried.values()):,} records"
    return status, said


def _separation(stars: Found) -> tuple[str, str]:
    """Where votes would need fewer records than Frank-Wolfe does for parameters; the largest p that both have."""
    methods = (("delta", "graph", "structure"), ("zcdp", "mrf-fw", "parameters"))
    sizes = [
        {
            int(cell.split()[2])
            for cell, by, of in stars
            if (*cell.split()[:2], by, of) == (promise, "matching", name, goal)
        }
        for promise, name, goal in methods
    ]
    both = sorted(sizes[0] & sizes[1])
    if not both:
        return "not attempted", "no size was run with both"
    rows = {
        size: [stars[f"{promise} matching {size}", method, goal].records for promise, method, goal in methods]
        for size in both
    }
    rows = {size: pair for size, pair in rows.items() if None not in pair}
    text = ", ".join(f"p = {size}: {one:,.0f} / {other:,.0f}" for size, (one, other) in rows.items())
    less = [size for size, (one, other) in rows.items() if one < other]
    status = "reproduced" if less and less[-1] == max(rows) else "with a caveat"
    return status, f"n* of structure (graph votes) / of parameters (Frank-Wolfe), matchings: {text}"


def _rate(runs: Sequence[Line]) -> tuple[str, str]:
    measured = rate_slope(runs)
    if measured is None:
        return "not attempted", "too few points were run"
    low, high = min(rate_points(runs)), max(rate_points(runs))
    said = (
        f"slope {measured[0]:.2f} ± {measured[1]:.2f} for n sqrt(rho) from {low:,.0f} to {high:,.0f}, {len(runs)} runs"
    )
    return ("reproduced" if measured[0] < -2 / 3 + 2 * measured[1] else "with a caveat"), f"{said}; the bound has -.67"


def _twise(runs: Sequence[Line]) -> tuple[str, str]:
    said, slopes = [], []
    for method, of in stars_by_size(runs, "twise").items():
        measured = slope(of)
        if measured is not None:
            slopes.append(measured)
            said.append(f"{method} {measured[0]:.2f} ± {measured[1]:.2f} ({min(of)} to {max(of)})")
    if not said:
        return "not attempted", "too few sizes were run"
    return "with a caveat", f"slopes of n* in p: {', '.join(said)}; ours is offline MWEM, and p is at most 16"


def _labels(runs: Sequence[Line]) -> tuple[str, str]:
    stars = found(runs)
    text = [
        f"{cell[7:].replace(' ', ' labels, p = ')}: {one}"
        for (cell, method, _), one in stars.items()
        if method == "mrf-fw pairs, printed split"
    ]
    if not text:
        return "not attempted", "its runs are not in the store yet"
    return "with a caveat", f"Algorithm 3 runs, n* of structure: {'; '.join(text)}; too few k to see the power of k"


def bound(promise: str, goal: str, size: float) -> float | None:
    """The lower bounds 4.1 and 6.1 with constant 1, records; None where there is none. alpha = .1, eta = .4."""
    if goal == "parameters":
        return math.sqrt(size) / (WITHIN * 0.75) if promise in ("zcdp", "delta") else None
    if promise == "pure":
        return math.sqrt(size) / (COUPLING * 0.75) + size / 0.75
    return math.sqrt(size / 0.01) if promise == "zcdp" else None


def _above(stars: Found, promise: str, goal: str) -> tuple[str, str]:
    """Every n* is above the bound with constant 1; what is compared is a bound without its constant."""
    ratios = [
        one.records / limit
        for (cell, method, wanted), one in stars.items()
        if (cell.split()[0], wanted) == (promise, goal) and one.records and method != PLAIN
        if (limit := bound(promise, goal, int(cell.split()[2])))
    ]
    if not ratios:
        return "not attempted", "its runs are not in the store yet"
    said = f"least n* of a private method over the bound with constant 1: {min(ratios):.1f}, of {len(ratios)} searches"
    where = "; 4.1 is for alpha below 1/50, and alpha is .1 here" if goal == "parameters" else ""
    return "with a caveat", f"{said}; the paper gives no constant{where}"


COLORS = {
    PLAIN: "0.5", "mrf-fw": "C0", "mrf-fw clipped": "C9", "all pairs, contrasts": "C1", OURS: "C3", "votes": "C4",
    "graph": "C2", "threshold": "C5",
}  # fmt: skip


def pictures(lines: Sequence[Line], folder: Path) -> list[Path]:
    """n* against p on matchings, with slopes and lower bounds; and the rates of Theorems 1.3 and 1.4."""
    plt, stars = pyplot(), found(lines)
    figure, axes = plt.subplots(2, 4, figsize=(17, 9), layout="constrained")
    searched = [("zcdp", 0), ("delta", 0), ("pure", 0), ("zcdp", 1), ("pure", 1)]
    for ax, (promise, at_goal) in zip([*axes[0, :3], *axes[1, :2]], searched, strict=True):
        _draw_needed(ax, stars, promise, GOALS[at_goal])
        ax.set_xlabel("p")
    points = rate_points(lines)
    ax = axes[0, 3]
    ax.set(title="Theorem 1.3", xlabel="n sqrt(rho)", ylabel="excess risk, nats")
    if points:
        means = [float(np.mean(risks)) for risks in points.values()]
        ax.loglog(list(points), means, "o", label="mrf-fw")
        at = np.array([min(points), max(points)])
        ax.loglog(at, means[0] * (at / at[0]) ** (-2 / 3), "--", color="0.4", label="slope -2/3")
        ax.legend()
    for ax, title, kind in (
        (axes[1, 2], "Theorem 1.4, t = 3", "twise"),
        (axes[1, 3], "structure, t = 3, (.75, 1e-6)", "stable disjoint"),
    ):
        ax.set(title=title, xlabel="p", ylabel="n*")
        for method, of in stars_by_size(lines, kind).items():
            known = {size: one.records for size, one in of.items() if one.records}
            if known:
                ax.loglog(list(known), list(known.values()), "o-", label=method)
        if ax.lines:
            sizes = sorted({size for of in stars_by_size(lines, kind).values() for size in of})
            ax.set_xticks(sizes, list(map(str, sizes)))
            ax.minorticks_off()
            ax.legend()
    return [save(figure, folder / "zhang")]


def _draw_needed(ax: Any, stars: Found, promise: str, goal: str) -> None:
    """One panel of n* against p."""
    sizes: set[int] = set()
    ax.set(title=f"{goal}, {PROMISES[promise]}", ylabel="n*")
    for method, color in COLORS.items():
        known = {
            int(cell.split()[2]): one.records
            for (cell, by, wanted), one in stars.items()
            if (*cell.split()[:2], by, wanted) == (promise, "matching", method, goal) and one.records
        }
        if known:
            sizes |= set(known)
            measured = slope_of(stars, promise, method, goal)
            label = method if measured is None else f"{method}: {measured[0]:.2f} ± {measured[1]:.2f}"
            at = sorted(known)
            ax.loglog(at, [known[size] for size in at], "o-", color=color, label=label, markersize=4)
    if sizes and bound(promise, goal, 8) is not None:
        at = sorted(sizes)
        ax.loglog(at, [bound(promise, goal, size) for size in at], ":", color="k", label="lower bound, constant 1")
    if ax.lines:
        low, high = ax.get_ylim()
        ax.set_ylim(low, high * (high / low) ** 0.6)  # room for the legend
        ax.set_xticks(sorted(sizes), [str(size) for size in sorted(sizes)])
        ax.minorticks_off()
        ax.legend(loc="upper left", fontsize=8)


def arguments(parser: ArgumentParser) -> None:
    """How long a search may take."""
    parser.add_argument("--seconds", type=float, default=150, help="of the CPU for one search")
    parser.add_argument("--trials", type=int, default=10, help="at a point of a search")


def check(asked: Namespace, cell: str) -> None:
    """What a search needs."""
    if asked.trials < 1 or not asked.seconds > 0:
        refuse(
            f"paper-zhang was asked for {asked.trials} trials and {asked.seconds:g} seconds; ask for at least 1 and "
            "more than 0"
        )


STUDY = Study(
    about=__doc__,
    name="paper-zhang",
    arguments=arguments,
    check=check,
    cells=cells,
    methods=list(dict.fromkeys([*METHODS, *LABEL_METHODS, *WALSH_METHODS, *STABLE_METHODS, KNOWN])),
    serves=serves,
    work=work,
    text=tables,
    pictures=pictures,
)

if __name__ == "__main__":
    main(STUDY)
