"""Which learner needs no tuning? Every rule beside the oracles, on many data sets.

    python -m benchmarks.selftuning [--smoke | --full | --families | --report] [--jobs N] [--cells A,B]
        [--only-methods A,B]

Runs go to benchmarks/results/trials.jsonl. At the end, or with --report alone, selftuning.md is written
beside the store, and the plot of docs/plots (beside another store: there). `--base 80000` is a study on fresh seeds;
every base that the store holds is reported on its own. A ratio is the KL of a rule over the best that the truth could
have chosen on the same data set: at k = 5 among all plain learners, elsewhere among the penalties of naive MLE. The
families (protocol/families.py) are kinds of structure that no rule was chosen on, with seeds from 110000 on and a
report of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path

from attrs import frozen

from benchmarks.harness.main import main
from benchmarks.harness.output import markdown, marked, pyplot, save
from benchmarks.harness.runs import Line
from benchmarks.protocol import families
from benchmarks.protocol.trials import (
    ROOM,
    Cell,
    Grid,
    Results,
    Scores,
    cells,
    geometric,
    kl_of,
    plain_oracle,
    ratios,
    scores,
    study,
    summary,
)

DEFAULT = "eb-map"
RULES = ("eb-map", "naive auto", "cgm-em auto", "naive discrepancy", "cgm-em plateau")
FIXED = ("cgm-em converged", "naive tiny", "mbi", "uniform")
ORACLES = (
    "naive oracle",
    "consistent oracle",
    "cgm-em oracle",
    "soft-sign oracle",
    "ridge oracle",
    "one-shot oracle",
    "mbi oracle",
)
TICKS = (0.8, 1, 1.5, 2, 3, 5, 10, 20)

BOTH = ("chain3", "er")
RECORDS = (10**4, 10**5, 10**6)
POINTS = tuple(product(RECORDS, (0.1, 0.5, 1.0)))
FEW = ((10**4, 1.0), (10**5, 0.1), (10**5, 1.0), (10**6, 0.1))


def full() -> Grid:
    """The study: cells and draws."""
    grid: Grid = {}
    grid |= dict.fromkeys(cells(BOTH, 5, POINTS), 10)
    grid |= dict.fromkeys(cells(BOTH, 5, FEW, noise="gaussian"), 5)
    grid |= dict.fromkeys(cells(BOTH, 10, POINTS), 5)
    grid |= dict.fromkeys(cells(BOTH, 10, ((10**4, 0.5), (10**5, 0.1)), noise="gaussian"), 5)
    grid |= dict.fromkeys(cells(("chain1",), 20, FEW), 3)
    for truth in ("gaussian", "weak", "sparse"):
        grid |= dict.fromkeys(cells(BOTH, 5, FEW[:2] + FEW[3:], truth=truth), 5)
    health = ((20_000, 0.1), (20_000, 0.5), (20_000, 1.0), (10**5, 0.1))
    grid |= dict.fromkeys(cells(("health",), 0, health, truth="health"), 5)
    return grid


GRIDS = {
    "smoke": dict.fromkeys(cells(("chain1",), 3, ((3000, 0.5), (10**4, 1.0))), 1),
    "usual": dict.fromkeys(cells(BOTH, 5, POINTS), 2),
    "full": full(),
    "families": families.GRID,
}


@frozen
class Group:
    """Cells that are summed up together, and what their KLs are divided by."""

    title: str
    holds: Callable[[Cell], bool]
    reference: Callable[[Results], float | None]


def _dirichlet(size: int, noise: str) -> Callable[[Cell], bool]:
    return lambda cell: (cell.truth, cell.size, cell.noise) == ("dirichlet", size, noise) and cell.epsilon >= 0.1


def _truth(name: str) -> Callable[[Cell], bool]:
    return lambda cell: cell.truth == name


NAIVE = kl_of("naive oracle")
GROUPS = (
    Group("k = 5", _dirichlet(5, "laplace"), plain_oracle),
    Group("k = 5, Gaussian noise", _dirichlet(5, "gaussian"), plain_oracle),
    Group("k = 10", _dirichlet(10, "laplace"), NAIVE),
    Group("k = 10, Gaussian noise", _dirichlet(10, "gaussian"), NAIVE),
    Group("k = 20, tree", _dirichlet(20, "laplace"), NAIVE),
    Group("Gaussian truth", _truth("gaussian"), plain_oracle),
    Group("weak truth", _truth("weak"), plain_oracle),
    Group("sparse truth", _truth("sparse"), plain_oracle),
    Group("health", _truth("health"), plain_oracle),
)
# What issue 6 asks for: rule, group, largest mean ratio, largest worst ratio.
TARGETS = (
    (DEFAULT, GROUPS[0], 1.02, 1.15),
    (DEFAULT, GROUPS[2], 1.00, 1.10),
    ("naive auto", GROUPS[0], 1.08, 1.25),
    ("cgm-em auto", GROUPS[0], 1.15, 1.40),
)


def tables(lines: Sequence[Line]) -> str:
    """Targets, all groups, and every group cell by cell; then the families."""
    everywhere, lines = lines, [line for line in lines if not Cell.parse(line["cell"]).family]
    bases = sorted({line["trial"] - line["trial"] % ROOM for line in lines})
    by_base = {base: scores(lines, lambda cell, of, base=base: of == base) for base in bases}
    everything = scores(lines)
    parts = [
        "# Self-tuning\n\nWritten by `python -m benchmarks.selftuning --report`; see benchmarks/README.md. Ratios are "
        "mean / worst: the geometric mean and the largest over data sets.\n",
        *([targets(by_base), overview(everything)] if lines else []),
        *(per_cell(everything, group) for group in GROUPS),
        families.report(everywhere),
    ]
    return "\n".join(part for part in parts if part)


def targets(by_base: Mapping[int, Scores]) -> str:
    """Each target of issue 6 as measured, on each base of seeds."""
    rows: list[list[object]] = []
    for base, found in by_base.items():
        for label, group, mean, worst in TARGETS:
            got = summary(_of(found, group), label, group.reference)
            if got.count:
                met = "yes" if got.mean <= mean and got.worst <= worst else "no"
                asked = f"<= {mean:.2f} / {worst:.2f}"
                rows.append([base, f"{label}, {group.title}", asked, str(got), got.count, got.cell.name, met])
        losses, count = _worse_than_uniform(found)
        if count:
            asked = f"{DEFAULT}, never worse than uniform"
            rows.append([base, asked, "0", len(losses), count, ", ".join(losses[:1]), "no" if losses else "yes"])
        beaten, count, where = _beats_mbi(found, DEFAULT)
        if count:
            asked = f"{DEFAULT}, cells where it beats mbi's default"
            rows.append([base, asked, "all", beaten, count, where, "yes" if beaten == count else "no"])
    head = ["seeds", "target", "asked", "measured", "of", "worst at", "met"]
    return f"## Targets\n\n{markdown(head, rows)}"


def overview(found: Scores) -> str:
    """Every rule and oracle on every group."""
    present = [group for group in GROUPS if _of(found, group)]
    rows = []
    for label in (*RULES, *FIXED, *ORACLES):
        sums = [summary(_of(found, group), label, group.reference) for group in present]
        if any(each.count for each in sums):
            beaten, count, _ = _beats_mbi(found, label)
            rows.append([label, *map(str, sums), f"{beaten}/{count}" if count and label != "mbi" else "-"])
    counts = [sum(map(len, _of(found, group).values())) for group in present]
    head = ["", *(f"{group.title} ({count})" for group, count in zip(present, counts, strict=True)), "beats mbi"]
    return (
        "## Every rule, every group\n\nIn brackets the number of data sets; slow methods ran on the first draws of "
        "a cell. Last: in how many cells the mean KL is below that of mbi at its default.\n\n"
        + marked("rules", markdown(head, rows))
    )


def per_cell(found: Scores, group: Group) -> str:
    """The rules cell by cell."""
    here = _of(found, group)
    labels = [label for label in (*RULES, *FIXED) if summary(here, label, group.reference).count]
    rows = []
    for cell, trials in here.items():
        best = [value for value in map(group.reference, trials.values()) if value is not None]
        if best:
            sums = [summary({cell: trials}, label, group.reference) for label in labels]
            rows.append([cell.name, len(best), f"{geometric(best):.3g}", *map(str, sums)])
    what = "naive MLE's oracle" if group.reference is NAIVE else "the plain oracle"
    return f"## {group.title}: ratio to {what}\n\n{markdown(['cell', 'draws', 'KL', *labels], rows)}" if rows else ""


def _of(found: Scores, group: Group) -> Scores:
    return {cell: trials for cell, trials in found.items() if group.holds(cell)}


def _worse_than_uniform(found: Scores) -> tuple[list[str], int]:
    """(cells of the data sets where the default learner lost to the uniform model, number of data sets)."""
    compared = [(cell.name, one) for cell, trials in found.items() for one in ratios(trials, DEFAULT, kl_of("uniform"))]
    return [name for name, ratio in compared if ratio > 1], len(compared)


def _beats_mbi(found: Scores, label: str) -> tuple[int, int, str]:
    """(cells won, cells compared, the first cell lost) on the draws that have both."""
    won, lost = 0, []
    for cell, trials in found.items():
        if both := ratios(trials, label, kl_of("mbi")):
            better = geometric(both) < 1
            won += better
            lost += [] if better else [cell.name]
    return won, won + len(lost), ", ".join(lost[:1])


def plot(lines: Sequence[Line], folder: Path) -> list[Path]:
    """Every data set a dot: ratio to the oracle by rule, k = 5 and k = 10."""
    found = scores(lines, lambda cell, base: not cell.family)
    if not found:
        return []
    plt = pyplot()
    import numpy as np

    groups = [group for group in (GROUPS[0], GROUPS[2]) if _of(found, group)] or [Group("all cells", bool, NAIVE)]
    labels = (*RULES, "mbi", "naive oracle", "cgm-em oracle", "mbi oracle")
    drawn, panels = plt.subplots(1, len(groups), figsize=(4.6 * len(groups), 3.6), squeeze=False, layout="constrained")
    rng = np.random.default_rng(0)
    for axes, group in zip(panels[0], groups, strict=True):
        present = [label for label in labels if summary(_of(found, group), label, group.reference).count]
        for place, label in enumerate(present):
            every = [one for trials in _of(found, group).values() for one in ratios(trials, label, group.reference)]
            colour = "0.6" if label.endswith("oracle") else f"C{place}"
            axes.plot(every, place + rng.uniform(-0.25, 0.25, len(every)), ".", color=colour, markersize=3, alpha=0.6)
            axes.plot(geometric(every), place, "|", color="k", markersize=14)
        axes.set_yticks(range(len(present)), present, fontsize=8)
        axes.invert_yaxis()
        axes.set(xscale="log", title=group.title)
        ticks = [tick for tick in TICKS if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]]
        axes.set_xticks(ticks, map(str, ticks), fontsize=8)
        axes.minorticks_off()
        axes.axvline(1, color="k", linewidth=0.5)
        what = "naive MLE's oracle" if group.reference is NAIVE else "the best plain oracle"
        axes.set_xlabel(f"KL / KL of {what}", fontsize=8)
    return [save(drawn, folder / "selftuning")]


STUDY = study(__doc__, "selftuning", GRIDS, tables, plot)

if __name__ == "__main__":
    main(STUDY)
