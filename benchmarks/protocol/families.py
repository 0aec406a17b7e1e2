"""The families: kinds of structure that users bring and on which no rule was chosen, and what is reported of them.

Seeds have a base of their own (`FAMILY_BASE`); nobody tunes on it. On each data set the default learner is compared
with the best that the truth could have chosen among naive MLE and ridge, at their best penalties, and EM, at its best
stop, and with a floor: the better of the uniform and the independent model. A ratio is (KL + .01) / (best + .01) nats,
so that nobody wins or loses by what nobody would see.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import product

from attrs import frozen

from benchmarks.harness.output import markdown, marked
from benchmarks.harness.runs import Line
from benchmarks.protocol.trials import ROOM, Cell, Grid, Results, Scores, geometric, scores

DEFAULT = "eb-map"
ORACLES = ("naive oracle", "ridge oracle", "cgm-em oracle")
FLOOR = ("uniform", "independent")
SLACK = 0.01  # nats
# What issue 13 asks for: the mean and the worst ratio of a family, and what no data set may exceed.
MEAN, WORST, NEVER = 1.0, 1.15, 1.5

_TITLES = {
    "matched": "all pairs, p/2 disjoint loud",
    "half": "all pairs, 1/2 loud",
    "sixth": "all pairs, 1/6 loud",
    "fourteenth": "all pairs, 1/14 loud",
    "one": "one loud among 50 silent",
    "signs": "grids, random signs",
    "classes": "naive Bayes stars",
    "uneven": "uneven sizes, 2 to 100",
    "faint": "weak everywhere",
    "independent": "independent truth",
    "flat": "uniform truth",
    "drowned": "drowned in noise, k = 5, 10",
    "patients": "health data, all pairs",
}
_UNEQUAL = "unequal noise"

_GAUSSIAN = "N1e3/rho0.05/zcdp N1e4/rho0.01/zcdp N1e5/rho0.01/zcdp N1e6/rho0.01/zcdp"
_LAPLACE = "N1e3/eps1/laplace N1e4/eps1/laplace N1e5/eps0.1/laplace N1e6/eps0.1/laplace"
_BOTH = f"{_GAUSSIAN} {_LAPLACE}"
_SPLIT = "N1e3/rho0.05/zcdp-split N1e4/eps1/laplace-split N1e5/rho0.01/zcdp-split N1e6/eps0.1/laplace-split"
# The reproduction of issue 13 is the first of these.
_PAIRED = "N5e3/rho0.01/zcdp N1e3/rho0.01/zcdp N2e4/rho0.01/zcdp N1e6/rho0.01/zcdp N5e3/eps1/laplace N5e3/eps5/laplace"
_SHARES = "half sixth fourteenth"
_SILENT = "N1e3/rho0.01/zcdp N1e4/eps1/laplace N1e6/eps0.1/laplace"
_DROWNED = "N1e4/eps0.01/laplace"
# Draws, truths, graphs, points: all products.
_CELLS = (
    (10, "matched", "pairs8/k2 pairs12/k2", _PAIRED),
    (10, _SHARES, "pairs8/k2 pairs8/k3 pairs6/k4 pairs12/k2", _BOTH),
    (4, _SHARES, "pairs16/k2", "N1e3/rho0.05/zcdp N1e4/eps1/laplace N1e5/rho0.01/zcdp"),
    (10, "one", "path52/k2 path52/k3", _BOTH),
    (10, "signs", "grid5/k2 grid4/k3", _BOTH),
    (10, "classes", "star16/k2 star16/k4", _BOTH),
    (5, "uneven", "uneven8/k0", _BOTH),
    (10, "faint", "pairs8/k2 chain3/k5", _BOTH),
    (10, "independent flat", "pairs8/k2 pairs8/k3 path52/k2 chain3/k5", _SILENT),
    (10, "sixth", "pairs8/k2 pairs8/k3", _SPLIT),
    (5, "classes", "star16/k4", _SPLIT),
    (5, "uneven", "uneven8/k0", _SPLIT),
    (10, "drowned", "chain3/k5 er/k5", f"{_DROWNED} N1e3/rho0.001/zcdp"),
    (3, "drowned flat", "chain3/k10", _DROWNED),
    (5, "patients", "patients/k0", "N20190/eps1/laplace N20190/rho0.01/zcdp N1e3/eps1/laplace N1e6/eps1/laplace"),
)


def _grid() -> Grid:
    products = ((draws, product(*map(str.split, axes))) for draws, *axes in _CELLS)
    return {Cell.parse("/".join(names)): draws for draws, cells in products for names in cells}


GRID = _grid()


def family_of(cell: Cell) -> str:
    """The title of the family."""
    return _UNEQUAL if cell.noise.endswith("-split") else _TITLES[cell.truth]


def told_ratio(kl: float, best: float) -> float:
    """(KL + .01) / (best + .01), nats."""
    return (kl + SLACK) / (best + SLACK)


def floor(results: Results) -> float | None:
    """The KL of the better of the models that see no interaction; None where one of them was not run."""
    return min(results[label]["kl"] for label in FLOOR) if set(FLOOR) <= set(results) else None


@frozen(kw_only=True)
class Compared:
    """The default learner on one data set."""

    cell: Cell
    trial: int
    kl: float
    best: float
    floor: float | None
    with_em: bool
    converged: bool

    @property
    def ratio(self) -> float:
        """To the best that the truth could have chosen."""
        return told_ratio(self.kl, self.best)

    @property
    def sunk(self) -> bool:
        """Whether it is more than .01 nats worse than the floor."""
        return self.floor is not None and self.kl > self.floor + SLACK

    def __str__(self) -> str:
        return f"{self.cell.name}, {self.trial}"


def compared(found: Scores) -> list[Compared]:
    """The data sets that have the default learner and naive MLE's oracle; the best is of the oracles that are there."""
    return [
        Compared(
            cell=cell,
            trial=trial,
            kl=results[DEFAULT]["kl"],
            best=min(results[label]["kl"] for label in ORACLES if label in results),
            floor=floor(results),
            with_em=ORACLES[-1] in results,
            converged=bool(results[DEFAULT].get("converged", 1)),
        )
        for cell, trials in found.items()
        for trial, results in sorted(trials.items())
        if {DEFAULT, ORACLES[0]} <= set(results)
    ]


def report(lines: Sequence[Line]) -> str:
    """For each base of seeds the targets, family by family. Empty without runs."""
    lines = [line for line in lines if Cell.parse(line["cell"]).family]
    bases = sorted({line["trial"] - line["trial"] % ROOM for line in lines})
    parts = []
    for base in bases:
        everything = compared(scores(lines, lambda cell, of, base=base: cell.family and of == base))
        if everything:
            parts += [f"## Families, seeds from {base}\n", by_family(everything)]
    return "\n".join(parts)


def by_family(everything: Sequence[Compared]) -> str:
    """What issue 13 asks for, as measured."""
    rows = [_row(title, group) for title, group in _grouped(everything).items()]
    rows.append(_row("all", everything))
    losses = [f"{each} ({each.ratio:.2f})" for each in everything if each.ratio > NEVER]
    sunk = [f"{each} ({each.kl:.3g} against {each.floor:.3g})" for each in everything if each.sunk]
    head = ["family", "data sets", "with EM", "mean", "worst", f"> {WORST}", f"> {NEVER}", "below floor"]
    table = markdown([*head, "not converged", "met", "worst at"], rows)
    return (
        f"Asked: {DEFAULT}, untouched, over the best of naive MLE, ridge and EM told the truth, (KL + .01) / (best + "
        f".01): every family's geometric mean at most {MEAN}, worst {WORST}, nothing above {NEVER}; nowhere more than "
        ".01 nats worse than the floor, the better of the uniform and the independent model. The best is of those of "
        "the three that were run.\n\n"
        + marked(f"families-{everything[0].trial // ROOM * ROOM}", table)
        + f"\nAbove {NEVER}: {'; '.join(losses) or 'none'}.\n\nBelow the floor: {'; '.join(sunk) or 'none'}.\n"
    )


def _row(title: str, group: Sequence[Compared]) -> list[object]:
    mean, worst = geometric(each.ratio for each in group), max(group, key=lambda each: each.ratio)
    sunk = sum(each.sunk for each in group)
    counts = [sum(each.ratio > bound for each in group) for bound in (WORST, NEVER)]
    # A mean of 1 is met as it is printed, to three digits.
    missed = round(mean, 3) > MEAN or worst.ratio > WORST or sunk
    known = [each for each in group if each.floor is not None]
    met = "no" if missed else "yes" if len(known) == len(group) else "-"
    where = "" if worst.ratio <= 1 else str(worst)
    numbers = [len(group), sum(each.with_em for each in group), f"{mean:.3f}", f"{worst.ratio:.2f}", *counts]
    return [title, *numbers, sunk if known else "-", sum(not each.converged for each in group), met, where]


def _grouped(everything: Iterable[Compared]) -> dict[str, list[Compared]]:
    groups: dict[str, list[Compared]] = defaultdict(list)
    for each in sorted(everything, key=lambda each: _order(each.cell)):
        groups[family_of(each.cell)].append(each)
    return dict(groups)


def _order(cell: Cell) -> int:
    return [*_TITLES.values(), _UNEQUAL].index(family_of(cell))
