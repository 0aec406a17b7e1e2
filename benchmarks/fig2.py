"""Figure 2 of Bernstein et al. (2017): KL of every method against N, at four epsilon, with the peers beside.

    python -m benchmarks.fig2 [--smoke | --full | --report] [--jobs N] [--cells A,B] [--only-methods A,B]

Third-order chain and connected Erdos-Renyi graph, T = 10, k = 5 and 10; the paper does not state the k of this figure.
Runs go to benchmarks/results/trials.jsonl, which `benchmarks.selftuning` shares; what is there is not computed again.
At the end, or with --report alone, fig2.md is written beside the store and a figure for each k into docs/plots (from
another store: beside it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.harness.main import main
from benchmarks.harness.output import markdown, marked, pyplot, save
from benchmarks.harness.runs import Line
from benchmarks.protocol.trials import (
    BASE,
    Cell,
    Grid,
    Results,
    Scores,
    cells,
    draws,
    geometric,
    interval,
    kl_of,
    ranks,
    ratios,
    scores,
    spread,
    study,
)

TICKS = (0.7, 1, 1.5, 2, 3, 4)
GRAPHS = {"chain3": "third-order chain", "er": "Erdos-Renyi, 18 edges"}
RECORDS = (10**4, 10**5, 10**6)
EPSILONS = (0.01, 0.1, 0.5, 1.0)

# Methods that anybody can use, and how they are drawn.
USABLE = {
    "eb-map": "C3-o",
    "naive auto": "C0-o",
    "cgm-em auto": "C1-o",
    "naive discrepancy": "C0-^",
    "cgm-em plateau": "C1-^",
    "cgm-em converged": "C1-x",
    "naive tiny": "C0-x",
    "mbi": "C2-o",
    "uniform": "k:",
}
# Methods that were told the truth, in their tuning or altogether.
TOLD = {
    "naive oracle": "C0--",
    "cgm-em oracle": "C1--",
    "soft-sign oracle": "C4--",
    "mbi oracle": "C2--",
    "psgd oracle": "C5--s",
    "non-private": "k--",
    "random": "k-.",
}
# How much slower than naive MLE the paper found them: third-order chain, Erdos-Renyi (section 4).
PAPER = {"cgm-em converged": (4, 8), "psgd oracle": (27, 40)}


def grid(sizes: dict[int, int]) -> Grid:
    """Both graphs at every (N, epsilon); sizes: k -> draws."""
    return {cell: n for k, n in sizes.items() for cell in cells(tuple(GRAPHS), k, product(RECORDS, EPSILONS))}


GRIDS = {
    "smoke": dict.fromkeys(cells(("chain3",), 2, ((3000, 0.5),)), 1),
    "usual": grid({5: 2, 10: 1}),
    "full": grid({5: 10, 10: 5}),
}


def tables(lines: Sequence[Line]) -> str:
    """For each k: ranks, KLs and times."""
    parts = ["# Figure 2\n\nWritten by `python -m benchmarks.fig2 --report`; see benchmarks/README.md.\n"]
    for size, found in by_size(lines).items():
        parts += [f"## k = {size}\n", ranking(found), kls(found), times(size, found)]
    return "\n".join(parts)


def pictures(lines: Sequence[Line], folder: Path) -> list[Path]:
    """A figure for each k."""
    return [figure(found, folder / f"fig2-k{size}") for size, found in by_size(lines).items()]


def by_size(lines: Sequence[Line]) -> dict[int, Scores]:
    """k -> what the figure shows of it."""
    found = scores(lines, lambda cell, base: (cell.truth, cell.noise, base) == ("dirichlet", "laplace", BASE))
    found = {cell: trials for cell, trials in found.items() if cell.graph in GRAPHS}
    sizes = sorted({cell.size for cell in found})
    return {size: {cell: trials for cell, trials in found.items() if cell.size == size} for size in sizes}


def ranking(found: Scores) -> str:
    """Usable methods in the order of their mean KL, with the 90 % interval of the rank."""
    rows = []
    for cell, trials in found.items():
        count, order = ranks(trials, list(USABLE))
        if order:
            texts = (f"{label} {kl:.3g}{_rank(count, low, high)}" for label, kl, low, high in order)
            rows.append([*_where(cell), count, _over(trials, "mbi"), _over(trials, "mbi oracle"), ", ".join(texts)])
    head = ["graph", "N", "epsilon", "draws", "mbi / eb-map", "mbi oracle / eb-map", "KL [rank]"]
    return (
        "Ranking of the methods that need no truth, best first: geometric mean KL and, in brackets, the 90 % interval "
        "of the rank over resampled draws (none for a single draw). mbi is slow: where it has less than half of the "
        "draws it is not ranked; its "
        "KL over eb-map's is the geometric mean over the draws that it has (their number in brackets).\n\n"
        + markdown(head, rows)
    )


def _rank(count: int, low: int, high: int) -> str:
    if count == 1:
        return ""
    return f" [{low}]" if low == high else f" [{low}-{high}]"


def _over(trials: Mapping[int, Results], label: str) -> str:
    both = ratios(trials, label, kl_of("eb-map"))
    return f"{geometric(both):.2f} ({len(both)})" if both else "-"


def kls(found: Scores) -> str:
    """Geometric means with intervals; oracles and references."""
    labels = [label for label in (*USABLE, *TOLD) if any(draws(trials, label) for trials in found.values())]
    rows = [[*_where(cell), *(spread(draws(trials, label), 2) for label in labels)] for cell, trials in found.items()]
    head = ["graph", "N", "epsilon", *labels]
    return f"KL, nats: geometric mean over draws (90 % interval).\n\n{markdown(head, rows)}"


def times(size: int, found: Scores) -> str:
    """CPU seconds of a fit over those of naive MLE at its oracle penalty, on the same data set."""
    rows = []
    for label in (*USABLE, *TOLD):
        ratios = {graph: _slower(found, graph, label) for graph in GRAPHS}
        seconds = [one for trials in found.values() for one in draws(trials, label, "seconds")]
        if seconds and label != "uniform":
            shown = [f"{geometric(each):.2g}" if each else "-" for each in ratios.values()]
            paper = [str(each) for each in PAPER.get(label, ("", ""))]
            rows.append([label, f"{np.median(seconds):.2g}", *shown, *paper])
    head = ["method", "median s", *(f"x naive, {graph}" for graph in GRAPHS), *(f"paper, {graph}" for graph in GRAPHS)]
    return (
        "Time of one fit: CPU seconds, and the geometric mean of its ratio to naive MLE at the oracle penalty.\n\n"
        + marked(f"times-k{size}", markdown(head, rows))
    )


def _slower(found: Scores, graph: str, label: str) -> list[float]:
    seconds = kl_of("naive oracle", "seconds")
    here = [trials for cell, trials in found.items() if cell.graph == graph]
    return [one for trials in here for one in ratios(trials, label, lambda each: seconds(each) or None, "seconds")]


def _where(cell: Cell) -> list[str]:
    return [cell.graph, f"{cell.records:.0e}".replace("e+0", "e"), f"{cell.epsilon:g}"]


def figure(found: Scores, stem: Path) -> Path:
    """A column for each epsilon; for each graph a row of KLs, and one of their ratios to naive MLE's oracle."""
    plt = pyplot()

    rows = [(graph, ratio) for graph in GRAPHS if any(cell.graph == graph for cell in found) for ratio in (False, True)]
    epsilons = sorted({cell.epsilon for cell in found})
    size = (2.0 * len(epsilons) + 0.4, 1.9 * len(rows) + 0.9)  # as wide as a page: texts stay readable
    drawn, panels = plt.subplots(len(rows), len(epsilons), figsize=size, squeeze=False, layout="constrained")
    for (graph, ratio), row in zip(rows, panels, strict=True):
        for axes, epsilon in zip(row, epsilons, strict=True):
            here = {cell: found[cell] for cell in found if (cell.graph, cell.epsilon) == (graph, epsilon)}
            axes.set_visible(bool(here))
            if not here:
                continue
            for label, style in (USABLE | TOLD).items():
                _curve(axes, here, label, style, ratio)
            axes.set(xscale="log", yscale="log", title=f"{GRAPHS[graph].split(',')[0]}, ε = {epsilon:g}")
            axes.title.set_size(8)
            axes.tick_params(labelsize=7)
            if ratio:
                axes.set_ylim(0.7, 4)
                axes.set_yticks(TICKS, map(str, TICKS))
                axes.minorticks_off()
            else:
                _limit(axes, here)
        first = next(axes for axes in row if axes.get_visible())
        first.set_ylabel("KL / naive oracle's" if ratio else "KL(true || learned), nats", fontsize=8)
    for axes in panels[-1]:
        axes.set_xlabel("N", fontsize=8)
    drawn_by = [axes.get_legend_handles_labels() for axes in panels.flat]
    handles = {label: line for lines, labels in drawn_by for line, label in zip(lines, labels, strict=True)}
    drawn.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5, fontsize=8)
    return save(drawn, stem)


def _curve(axes: object, here: Scores, label: str, style: str, ratio: bool) -> None:
    values = {
        cell.records: ratios(trials, label, kl_of("naive oracle")) if ratio else draws(trials, label)
        for cell, trials in here.items()
    }
    values = {records: each for records, each in values.items() if each}
    if values:
        bounds = [interval(each) for each in values.values()]
        means = [geometric(each) for each in values.values()]
        axes.plot(values.keys(), means, style, label=label, markersize=3, linewidth=1)
        colour = style[:2] if style[0] == "C" else "k"
        axes.fill_between(values.keys(), *zip(*bounds, strict=True), color=colour, alpha=0.1, linewidth=0)


def _limit(axes: object, here: Scores) -> None:
    """The unpenalised fit's KL of thousands would hide everything else: the top is ten times the uniform model's."""
    top = [10 * max(draws(trials, "uniform")) for trials in here.values() if draws(trials, "uniform")]
    if top and axes.get_ylim()[1] > max(top):
        axes.set_ylim(top=max(top))


STUDY = study(__doc__, "fig2", GRIDS, tables, pictures)

if __name__ == "__main__":
    main(STUDY)
