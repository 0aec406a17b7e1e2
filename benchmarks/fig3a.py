"""Figure 3a of Bernstein et al. (2017): true against inferred edge marginals, connected Erdos-Renyi graph, T=10 k=20.

    DPGM_MBI_PYTHON=VENV/bin/python python -m benchmarks.fig3a [--smoke|--full|--report] [--jobs 2]

Inferred by the naive MLE (at a tiny fixed penalty, at the one the truth would choose and at its own), CGM-EM, eb-map
and mbi, from one release each; beside them the noisy tables themselves. The graph has 18 edges and our junction tree
holds it exactly, so all marginals are exact; no loopy belief propagation is involved. True marginals are the
population's. Add-remove neighbours, public N. A trial is a population with its own records and noise. What we have of
the paper says neither N nor eps for this panel: several are shown.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from dpgm_naive_mle.projection import targets

from benchmarks.fig1 import LAMBDAS, path
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import facts_of, grouped, having, markdown, pyplot, save
from benchmarks.harness.runs import Line, Task
from benchmarks.peers.mbi_peer import mbi_fit, mbi_missing
from benchmarks.protocol.populations import Population, draw_release, structure_of
from dpgm_core import FloatArray, NoisyTables, SeededRandomness, Tables, learn, make

SHOWN = ("N=100000 eps=0.1 k=20", "N=100000 eps=0.5 k=20")  # in the scatter plots
POINTS = 400  # of the cells, drawn once, in the scatter plots

LEARNERS: dict[str, dict[str, Any]] = {
    # the maximum-likelihood estimate proper does not exist; 100 steps on the way to nowhere
    "naive tiny": {"name": "naive-mle", "l2": 1e-6, "max_iterations": 100},
    "naive": {"name": "naive-mle"},
    "cgm-em": {"name": "cgm-em"},
    "eb-map": {"name": "eb-map"},
}
METHODS = ["noisy tables", "naive tiny", "naive oracle", "naive", "cgm-em", "eb-map", "mbi"]


def agreement(true: FloatArray, inferred: FloatArray, edges: int) -> dict[str, float]:
    """Correlation over all cells, the mean L1 distance of an edge's table, and the correlation of logarithms.

    The last leaves out cells that are not above 0, which only noisy tables have; "positive" is the share of the others.

    >>> agreement(np.array([0.2, 0.8]), np.array([0.3, 0.7]), 1)["l1"].__round__(9)
    0.2
    """
    above = inferred > 0
    return {
        "correlation": float(np.corrcoef(true, inferred)[0, 1]),
        "log_correlation": float(np.corrcoef(np.log(true[above]), np.log(inferred[above]))[0, 1]),
        "l1": float(np.abs(true - inferred).sum() / edges),
        "positive": float(above.mean()),
    }


def work(task: Task, asked: Namespace) -> dict[str, Any]:
    """One learner on one release."""
    facts = facts_of(task.cell)
    population = Population.draw(structure_of("er", int(facts["k"])), task.trial)
    noisy = draw_release(population, int(facts["N"]), float(facts["eps"]), task.trial)
    before = time.process_time()
    theta, more = potentials(task, population, noisy)
    seconds = time.process_time() - before
    if theta is None:
        inferred = noisy.tables.values / noisy.total
    else:
        inferred = population.engine.infer(Tables(population.structure, theta)).marginals.values
        more = {"kl": population.kl(theta), "seconds": seconds} | more
    found = agreement(population.marginals, inferred, len(population.structure.cliques)) | more
    if task.trial == 0 and task.cell in SHOWN:
        cells = np.random.default_rng(0).choice(len(inferred), POINTS, replace=False)
        pairs = zip(population.marginals[cells], inferred[cells], strict=True)
        found["points"] = [[float(f"{value:.3g}") for value in pair] for pair in pairs]
    return found


def potentials(task: Task, population: Population, noisy: NoisyTables) -> tuple[FloatArray | None, dict[str, float]]:
    """What the method learned, and what else it has to say."""
    if task.method == "noisy tables":
        return None, {}
    if task.method == "mbi":
        # mbi's own choice of oracle needs minutes for this graph; this one gives the same potentials
        found = mbi_fit(noisy, oracle="fast")
        return found.potentials, {"seconds": found.seconds}
    options = LEARNERS.get(task.method)
    if options is None:  # the penalty the truth would choose
        kls = path(population, targets(noisy, project=True))
        options = {"name": "naive-mle", "l2": LAMBDAS[int(np.argmin(kls))]}
    fit = learn(noisy, make("learner", options), randomness=SeededRandomness(task.trial))
    return fit.model.potentials.values, {"converged": fit.converged}


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws."""
    if asked.extent == "smoke":
        return {"N=10000 eps=1.0 k=3": 1}
    full = asked.extent == "full"
    epsilons = (0.1, 0.5, 1.0) if full else (0.1, 0.5)
    return {f"N={n} eps={eps} k=20": 5 if full else 2 for n in (10**5, 10**6) for eps in epsilons}


def tables(lines: Sequence[Line]) -> str:
    """Means over the trials; KL is a geometric mean."""
    rows = []
    for cell in sorted(grouped(lines, "cell"), key=_order):
        for method in METHODS:
            if some := having(lines, cell=cell, method=method):
                means = [np.mean([line[key] for line in some]) for key in ("correlation", "log_correlation", "l1")]
                kl, seconds = "-", "-"
                if method != "noisy tables":
                    kl = f"{np.exp(np.mean(np.log([line['kl'] for line in some]))):.4f}"
                    seconds = f"{np.median([line['seconds'] for line in some]):.2f}"
                facts = facts_of(cell)
                row = [method, facts["N"], facts["eps"], *(f"{value:.4f}" for value in means)]
                rows.append([*row, kl, seconds, str(len(some))])
    head = ["method", "N", "eps", "correlation", "of logarithms", "L1 per edge", "KL", "CPU s", "trials"]
    return f"# Figure 3a: true against inferred edge marginals\n\n{markdown(head, rows)}"


def plot(lines: Sequence[Line], folder: Path) -> list[Path]:
    """A scatter for each method and shown cell; points, not lines, are stored as a bitmap."""
    points = {(line["cell"], line["method"]): line for line in lines if "points" in line}
    shown = [cell for cell in SHOWN if any(cell == there for there, _ in points)]
    if not shown:
        return []
    methods = [method for method in METHODS if any((cell, method) in points for cell in shown)]
    size = (2.0 * len(methods), 2.1 * len(shown))
    figure, panels = pyplot().subplots(
        len(shown), len(methods), figsize=size, layout="constrained", dpi=60, sharex=True, sharey=True, squeeze=False
    )
    for row, cell in zip(panels, shown, strict=True):
        for axes, method in zip(row, methods, strict=True):
            axes.plot([1e-6, 0.1], [1e-6, 0.1], "k-", lw=0.7)
            axes.set(xscale="log", yscale="log", xlim=(1e-6, 0.1), ylim=(1e-6, 0.1))
            axes.set(xticks=[1e-5, 1e-3, 1e-1], yticks=[1e-5, 1e-3, 1e-1])
            axes.set_title(method, fontsize=9)
            if (cell, method) in points:
                line = points[cell, method]
                true, inferred = np.array(line["points"]).T
                # what is below the panel, cells below 0 included, stands on its edge
                axes.plot(true, np.maximum(inferred, 1e-6), ".", ms=3, alpha=0.5, color="C0", rasterized=True)
                axes.text(2e-6, 0.03, f"r = {line['correlation']:.3f}", fontsize=8)
        row[0].set_ylabel(f"inferred\n{cell.rsplit(' ', 1)[0]}", fontsize=8)
    for axes in panels[-1]:
        axes.set_xlabel("true marginal", fontsize=8)
    return [save(figure, folder / "fig3a")]


def _order(cell: str) -> tuple[float, ...]:
    return tuple(float(facts_of(cell)[name]) for name in ("k", "N", "eps"))


STUDY = Study(
    about=__doc__,
    name="fig3a",
    cells=cells,
    methods=METHODS,
    missing=lambda method: mbi_missing() if method == "mbi" else None,
    work=work,
    text=tables,
    pictures=plot,
)

if __name__ == "__main__":
    main(STUDY)
