"""Tables and pictures of the study of Bernstein et al. (2017): what its store says. Reading only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.output import beginning, facts_of, grouped, having, pyplot, save, section
from benchmarks.harness.runs import Line
from benchmarks.papers.bernstein_runs import GRAPHS, HOPELESS, LAMBDAS, TINY
from benchmarks.protocol.trials import Results, draws, geometric, interval, kl_of, ratios, spread

THEORY = ("sensitivity", "stirling", "mode", "algorithm")
#: cell -> seed -> label -> numbers.
Scores = dict[str, dict[int, Results]]

#: The six curves of the paper's figure 2 and their styles; then what is ours, and what was told the truth.
PAPER_VIEW = {
    "random": "k-.",
    "naive tiny": "C0-x",
    "naive auto": "C0-o",
    "cgm-em auto": "C1-o",
    "psgd oracle": "C5-s",
    "non-private": "k--",
}
OUR_VIEW = {
    "eb-map": "C3-o",
    "naive auto": "C0-o",
    "cgm-em auto": "C1-o",
    "cgm-em converged": "C1-x",
    "naive tiny": "C0-x",
    "mbi": "C2-o",
    "gaussian eb-map": "C4-^",
    "psgd untuned": "C5-x",
    "uniform": "k:",
    "naive oracle": "C0--",
    "cgm-em oracle": "C1--",
    "psgd oracle": "C5--s",
    "non-private": "k--",
}
FIGURE_3A = ("noisy tables", "naive tiny", "naive", "cgm-em", "eb-map", "psgd oracle", "mbi", "non-private")
FIGURE_3B = {
    "naive tiny": "C0-x",
    "naive": "C0-o",
    "cgm-em": "C1-o",
    "eb-map": "C3-o",
    "psgd oracle": "C5-s",
    "non-private": "k--",
}


def scored(lines: Iterable[Line]) -> Scores:
    """Return the results of every data set, all groups of methods together; cells by k, N and epsilon."""
    found: Scores = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        found[line["cell"]][line["trial"]] |= line["results"]
    return {cell: dict(found[cell]) for cell in sorted(found, key=_order)}


def _order(cell: str) -> tuple[Any, ...]:
    facts = facts_of(cell)
    return tuple(part for part in cell.split() if "=" not in part), *(
        float(facts.get(name, 0)) for name in ("k", "N", "eps")
    )


def means(some: Mapping[int, Results], what: str) -> dict[str, float]:
    """Return the mean of a number by label, over the draws that have it."""
    labels = {label: None for results in some.values() for label, numbers in results.items() if what in numbers}
    return {label: float(np.mean(draws(some, label, what))) for label in labels}


def records_of(cell: str) -> int:
    """Return N."""
    return int(facts_of(cell)["N"])


def by_records(lines: Sequence[Line], value: Callable[[Line], float]) -> dict[int, float]:
    """Return the mean of a value by N, in order."""
    found: dict[int, list[float]] = defaultdict(list)
    for line in lines:
        found[records_of(line["cell"])].append(value(line))
    return {records: float(np.mean(found[records])) for records in sorted(found)}


def powers(by: Mapping[int, object]) -> str:
    """Say which N these are."""
    return "N = " + ", ".join(f"{records:.0e}".replace("e+0", "e") for records in sorted(by))


# --------------------------------------------------------------------------------------------------
# Tables.


def sections(lines: Sequence[Line]) -> list[str]:
    """A table for each figure; pages include those with a name."""
    two = scored(beginning(lines, "2"))
    parts = [_figure_1(lines), _learned(lines)]
    for size in sorted({int(facts_of(cell)["k"]) for cell in two}):
        found = {cell: some for cell, some in two.items() if int(facts_of(cell)["k"]) == size}
        parts += [_figure_2(size, found), _times(size, found)]
    return [*parts, _figure_3a(lines), _figure_3b(lines), _loopy(lines)]


def _figure_1(lines: Sequence[Line]) -> str:
    rows = []
    for panel, methods in (("1b", ("projected", "unprojected")), ("1c", ("true", "noisy"))):
        here = grouped(beginning(lines, panel), "cell")
        for cell in sorted(here, key=records_of):
            for method in methods:
                if not (some := having(here[cell], method=method)):
                    continue
                kls = np.array([line["kl"] for line in some])
                own = [line["kl_own"] for line in having(here[cell], method=f"{method} own")]
                tiny, at = geometric(kls[:, 0]), LAMBDAS[int(np.median(kls.argmin(axis=1)))]
                text = f"{'> ' * bool(tiny > HOPELESS)}{min(tiny, HOPELESS):.3g}"
                row = [panel, records_of(cell), method, text, f"{geometric(kls.min(axis=1)):.3g}", f"{at:.1e}"]
                rows.append([*row, f"{geometric(own):.3g}" if own else "-", len(some)])
    head = ["panel", "N", "tables", f"KL at {TINY:.0e}", "best KL", "at λ", "KL, own λ", "draws"]
    return section("Figures 1b and 1c: the penalty", head, rows, "penalty")


def _learned(lines: Sequence[Line]) -> str:
    some = having(beginning(lines, "1a"), method="learned")
    rows = []
    for cell, each in sorted(grouped(some, "cell").items(), key=lambda item: records_of(item[0])):
        names = ("mse", "mse_learned", "kl", "kl_true")
        mse, learned, kl, true = (float(np.mean([line[name] for line in each])) for name in names)
        rows.append(
            [records_of(cell), *(f"{one:.3g}" for one in (mse, learned, kl, true)), f"{kl / true:.3g}", len(each)]
        )
    head = ["N", "error of y/N", "of naive MLE's", "KL of naive MLE", "of the MLE", "ratio", "draws"]
    return section("Proposition 4: learned marginals", head, rows, "consistent")


def _figure_2(size: int, found: Scores) -> str:
    labels = [label for label in {**PAPER_VIEW, **OUR_VIEW} if any(draws(some, label) for some in found.values())]
    rows = [
        [
            cell.split()[1], records_of(cell), facts_of(cell)["eps"], len(some), len(draws(some, "psgd oracle")),
            *(spread(draws(some, label), 2) for label in labels),
        ]
        for cell, some in found.items()
    ]  # fmt: skip
    return section(
        f"Figure 2, k = {size}", ["graph", "N", "ε", "draws", "of psgd", *labels], rows,
        said="KL, nats: geometric mean over draws (90 % interval).\n",
    )  # fmt: skip


def _times(size: int, found: Scores) -> str:
    rows = []
    for label in {**PAPER_VIEW, **OUR_VIEW}:
        seconds = [one for some in found.values() for one in draws(some, label, "seconds")]
        if not seconds or label == "uniform":
            continue
        ratio = []
        for graph in GRAPHS:
            here = [some for cell, some in found.items() if cell.split()[1] == graph]
            every = [one for some in here for one in ratios(some, label, kl_of("naive oracle", "seconds"), "seconds")]
            ratio.append(f"{geometric(every):.2g}" if every else "-")
        rows.append(
            [
                label,
                f"{np.median(seconds):.2g}",
                *ratio,
                *{"cgm-em converged": ("4", "8"), "psgd oracle": ("27", "40")}.get(label, ("", "")),
            ]
        )
    head = ["method", "median s", *(f"x naive, {graph}" for graph in GRAPHS), *(f"paper, {graph}" for graph in GRAPHS)]
    said = "CPU seconds of one fit, and the geometric mean of its ratio to naive MLE's, penalty by the truth.\n"
    return section(f"Times, k = {size}", head, rows, f"times-k{size}", said)


def _figure_3a(lines: Sequence[Line]) -> str:
    found = scored(beginning(lines, "3a"))
    rows = []
    for label in FIGURE_3A:
        texts = []
        for some in found.values():
            kl, r = draws(some, label, "kl") if label != "noisy tables" else [], draws(some, label, "correlation")
            texts.append((f"{geometric(kl):.3g} " if kl else "") + f"({np.mean(r):.3f})" if r else "-")
        counts = {len(draws(some, label, "correlation")) for some in found.values()} - {0}
        if counts:
            rows.append([label, *texts, max(counts)])
    head = ["KL (correlation)", *(f"N = {records_of(cell)}, ε = {facts_of(cell)['eps']}" for cell in found), "draws"]
    return section("Figure 3a: true against inferred edge marginals", head, rows, "figure-3a")


def _figure_3b(lines: Sequence[Line]) -> str:
    found = scored(beginning(lines, "3b"))
    known = {records_of(cell): some for cell, some in found.items() if "eps" not in facts_of(cell)}
    rows = []
    for cell, some in found.items():
        if "eps" not in facts_of(cell):
            continue
        here = means(some, "score") | means(known.get(records_of(cell), {}), "score")
        labels = (*FIGURE_3B, "psgd untuned", "naive, not normalised", "uniform")
        texts = [f"{here[label]:.2f}" if label in here else "-" for label in labels]
        rows.append([records_of(cell), facts_of(cell)["eps"], *texts, len(some)])
    head = ["N", "ε", *FIGURE_3B, "psgd untuned", "naive, not normalised", "uniform", "draws"]
    return section("Figure 3b: held-out log-likelihood of a segment, nats", head, rows, "figure-3b")


def _loopy(lines: Sequence[Line]) -> str:
    found = scored(beginning(lines, "loopy"))
    rows = []
    for cell, some in found.items():
        l1, r, seconds = (means(some, what) for what in ("l1", "correlation", "seconds"))
        facts = facts_of(cell)
        rows += [
            [facts["eps"], label, f"{l1[label]:.3f}", f"{r[label]:.4f}", f"{seconds.get(label, 0):.2g}", len(some)]
            for label in l1
        ]
    return section(
        "Loopy belief propagation in the E-step", ["ε", "method", "L1 of an edge", "correlation", "CPU s", "draws"],
        rows, "loopy",
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------
# Pictures.


def pictures(lines: Sequence[Line], folder: Path) -> list[Path]:
    """Figures 1, 2 (the paper's view and ours, for each k), 3a, 3b, and the one of loopy belief propagation."""
    paths = []
    if beginning(lines, "1a"):
        paths.append(_draw_1(lines, folder / "fig1"))
    two = scored(beginning(lines, "2"))
    for size in sorted({int(facts_of(cell)["k"]) for cell in two}):
        found = {cell: some for cell, some in two.items() if int(facts_of(cell)["k"]) == size}
        paths.append(_draw_2(found, PAPER_VIEW, False, folder / f"fig2-paper-k{size}"))
        paths.append(_draw_2(found, OUR_VIEW, True, folder / f"fig2-k{size}"))
    for name, call in (("fig3a", _draw_3a), ("fig3b", _draw_3b), ("loopy", _draw_loopy)):
        if some := beginning(lines, name.removeprefix("fig")):
            paths += call(some, folder / name)
    return paths


def _legend(figure: Any, panels: Iterable[Any], columns: int) -> None:
    """One legend for all panels, below them, where it covers no data."""
    drawn_by = [axes.get_legend_handles_labels() for axes in panels]
    handles = {label: line for lines, labels in drawn_by for line, label in zip(lines, labels, strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns, fontsize=8)


def _draw_1(lines: Sequence[Line], stem: Path) -> Path:
    figure, (one, two, three) = pyplot().subplots(1, 3, figsize=(11, 5.2), layout="constrained")
    tables, learned = (having(beginning(lines, "1a"), method=method) for method in ("tables", "learned"))
    for color, eps in enumerate(sorted({facts_of(line["cell"])["eps"] for line in tables})):
        some = [line for line in tables if facts_of(line["cell"])["eps"] == eps]
        for name, style in (("mse", "o"), ("predicted", "-")):
            curve = by_records(some, lambda line, name=name: line[name])  # type: ignore[misc]
            one.plot(
                curve.keys(),
                curve.values(),
                style,
                color=f"C{color}",
                ms=4,
                label=f"y/N, ε = {eps}" if name == "mse" else None,
            )
    if learned:
        curve = by_records(learned, lambda line: line["mse_learned"])
        one.plot(
            curve.keys(), curve.values(), "k^", ms=5, label=f"naive MLE's, ε = {facts_of(learned[0]['cell'])['eps']}"
        )
    one.set(xlabel="N", ylabel="mean squared error of a marginal", title="(a) chain; lines: Proposition 4")
    for color, (method, style) in enumerate((("projected", "o-"), ("unprojected", "s--"))):
        if some := having(beginning(lines, "1b"), method=method):
            for pick, alpha, what in ((min, 1.0, "best λ"), (lambda kls: kls[0], 0.5, f"λ = {TINY:g}")):
                curve = by_records(some, lambda line, pick=pick: float(np.log(max(pick(line["kl"]), 1e-300))))  # type: ignore[misc]
                two.plot(
                    curve.keys(),
                    np.exp(list(curve.values())),
                    style,
                    color=f"C{color}",
                    ms=4,
                    alpha=alpha,
                    label=f"{method}, {what}",
                )
    two.set(xlabel="N", ylabel="KL(true || learned), nats", title="(b) random graph, k = 20, ε = .5")
    by_cell = grouped(beginning(lines, "1c"), "cell")
    for color, cell in enumerate(sorted(by_cell, key=records_of)):
        for method, style in (("true", "-"), ("noisy", "o--")):
            if some := [line["kl"] for line in having(by_cell[cell], method=method)]:
                label = f"{powers({records_of(cell): 0})}, {method}"
                three.plot(LAMBDAS, np.exp(np.log(some).mean(axis=0)), style, color=f"C{color}", ms=4, label=label)
    three.set(xlabel="λ", ylabel="KL(true || learned), nats", title="(c) chain, k = 10, ε = .1")
    for axes in (one, two, three):
        if axes.lines:
            axes.set(xscale="log", yscale="log")
            axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    return save(figure, stem)


def _draw_2(found: Scores, styles: Mapping[str, str], ratio: bool, stem: Path) -> Path:
    """A column for each epsilon and a row for each graph; with `ratio` a second row of KLs over naive MLE's oracle."""
    graphs = [graph for graph in GRAPHS if any(cell.split()[1] == graph for cell in found)]
    rows = [(graph, each) for graph in graphs for each in ((False, True) if ratio else (False,))]
    epsilons = sorted({float(facts_of(cell)["eps"]) for cell in found})
    size = (2.1 * len(epsilons) + 1.6, 2.1 * len(rows) + 1.1)
    figure, panels = pyplot().subplots(
        len(rows), len(epsilons), figsize=size, squeeze=False, layout="constrained", sharex=True
    )
    for (graph, over), row in zip(rows, panels, strict=True):
        for axes, epsilon in zip(row, epsilons, strict=True):
            here = {
                records_of(cell): some
                for cell, some in found.items()
                if cell.split()[1] == graph and float(facts_of(cell)["eps"]) == epsilon
            }
            for label, style in styles.items():
                _curve(axes, here, label, style, over)
            of_psgd = {records: len(draws(some, "psgd oracle")) for records, some in here.items()}
            counts = f"{max(map(len, here.values()), default=0)} draws, PSGD {'/'.join(map(str, of_psgd.values()))}"
            axes.set(xscale="log", yscale="log")
            axes.set_title(f"{GRAPHS[graph].split(',')[0]}, ε = {epsilon:g}\n{counts}", fontsize=7)
            axes.tick_params(labelsize=7)
            if over:
                ticks = (0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4)
                axes.set_ylim(0.25, 4.2)
                axes.set_yticks(ticks, map(str, ticks))
                axes.minorticks_off()
            elif ratio:
                # The unpenalised fit's KL of thousands would hide everything else in our view.
                top = [10 * max(draws(some, "uniform")) for some in here.values() if draws(some, "uniform")]
                if top and axes.get_ylim()[1] > max(top):
                    axes.set_ylim(top=max(top))
        row[0].set_ylabel("KL / naive oracle's" if over else "KL(true || learned), nats", fontsize=8)
    for axes in panels[-1]:
        axes.set_xlabel("N", fontsize=8)
    _legend(figure, panels.flat, 6 if not ratio else 5)
    return save(figure, stem)


def _curve(axes: Any, here: Mapping[int, Mapping[int, Results]], label: str, style: str, over: bool) -> None:
    values = {
        records: ratios(some, label, kl_of("naive oracle")) if over else draws(some, label)
        for records, some in here.items()
    }
    values = {records: values[records] for records in sorted(values) if values[records]}
    if values:
        axes.plot(values.keys(), [geometric(each) for each in values.values()], style, label=label, ms=3, lw=1)
        bounds = zip(*(interval(each) for each in values.values()), strict=True)
        axes.fill_between(values.keys(), *bounds, color=style[:2] if style[0] == "C" else "k", alpha=0.1, lw=0)


def _draw_3a(lines: Sequence[Line], stem: Path) -> list[Path]:
    found = scored(lines)
    first = {
        cell: {label: one for results in some.values() for label, one in results.items() if "points" in one}
        for cell, some in found.items()
    }
    shown = [cell for cell, some in first.items() if some][:2]
    labels = [label for label in FIGURE_3A if any(label in first[cell] for cell in shown)]
    if not shown:
        return []
    size = (1.7 * len(labels) + 0.4, 2.0 * len(shown))
    figure, panels = pyplot().subplots(
        len(shown), len(labels), figsize=size, layout="constrained", dpi=70, sharex=True, sharey=True, squeeze=False
    )
    for row, cell in zip(panels, shown, strict=True):
        for axes, label in zip(row, labels, strict=True):
            axes.plot([1e-6, 1], [1e-6, 1], "k-", lw=0.7)
            axes.set(xscale="log", yscale="log", xlim=(1e-6, 0.1), ylim=(1e-6, 0.1))
            axes.set(xticks=[1e-5, 1e-3, 1e-1], yticks=[1e-5, 1e-3, 1e-1])
            one = first[cell].get(label)
            if one is None:
                axes.set_title(f"{label}\nnot run", fontsize=8)
                continue
            true, inferred = np.array(one["points"]).T
            # what is below the panel, cells below 0 included, stands on its edge
            axes.plot(true, np.maximum(inferred, 1e-6), ".", ms=3, alpha=0.5, color="C0", rasterized=True)
            kl = f", KL {one['kl']:.3g}" if "kl" in one else ""
            axes.set_title(f"{label}\nr = {one['correlation']:.3f}{kl}", fontsize=8)
        facts = facts_of(cell)
        row[0].set_ylabel(f"inferred\nN = {facts['N']}, ε = {facts['eps']}", fontsize=8)
    for axes in panels[-1]:
        axes.set_xlabel("true marginal", fontsize=8)
    return [save(figure, stem)]


def _draw_3b(lines: Sequence[Line], stem: Path) -> list[Path]:
    """One panel: the score against N at the middle epsilon."""
    found = scored(lines)
    epsilons = sorted({float(facts_of(cell)["eps"]) for cell in found if "eps" in facts_of(cell)})
    if not epsilons:
        return []
    epsilon = epsilons[len(epsilons) // 2]
    here = {records_of(cell): some for cell, some in found.items() if float(facts_of(cell).get("eps", -1)) == epsilon}
    known = {records_of(cell): some for cell, some in found.items() if "eps" not in facts_of(cell)}
    figure, axes = pyplot().subplots(figsize=(6, 4.2), layout="constrained")
    for label, style in FIGURE_3B.items():
        every = {
            records: draws(some, label, "score")
            for records, some in (known if label == "non-private" else here).items()
        }
        every = {records: every[records] for records in sorted(every) if every[records]}
        if every:
            errors = [np.std(each) / np.sqrt(max(1, len(each) - 1)) for each in every.values()]
            count = "" if label == "non-private" else f" ({max(map(len, every.values()))})"
            axes.errorbar(
                list(every), [np.mean(each) for each in every.values()], errors, fmt=style, ms=4, label=label + count
            )
    uniform = [one for some in known.values() for one in draws(some, "uniform", "score")]
    if uniform:  # what is far below the uniform model would hide the rest
        axes.axhline(uniform[0], color="0.6", ls=":", lw=1, label="uniform")
        best = max(one for some in known.values() for one in draws(some, "non-private", "score"))
        axes.set_ylim(max(axes.get_ylim()[0], 1.4 * uniform[0]), best - 0.05 * uniform[0])
    axes.set(
        xscale="log",
        xlabel="person-days learned from",
        ylabel="log-likelihood of a held-out segment, nats",
        title=f"mobility (generated campus), ε = {epsilon:g}; in brackets: draws",
    )
    axes.title.set_size(9)
    _legend(figure, [axes], 4)
    return [save(figure, stem)]


def _draw_loopy(lines: Sequence[Line], stem: Path) -> list[Path]:
    found = scored(lines)
    figure, axes = pyplot().subplots(figsize=(5.5, 3.8), layout="constrained")
    by_label: dict[str, dict[float, float]] = defaultdict(dict)
    for cell, some in found.items():
        for label, one in means(some, "l1").items():
            by_label[label][float(facts_of(cell)["eps"])] = one
    for label, curve in by_label.items():
        axes.plot(sorted(curve), [curve[eps] for eps in sorted(curve)], FIGURE_3B.get(label, "0.5"), label=label, ms=4)
    side = facts_of(next(iter(found)))["side"]
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="ε",
        ylabel="L1 error of edge tables",
        title=f"{side} x {side} grid, loopy belief propagation",
    )
    axes.title.set_size(9)
    _legend(figure, [axes], 3)
    return [save(figure, stem)]
