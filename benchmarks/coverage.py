"""How often do intervals hold the truth? Coverage of 90 % intervals on every entry of every clique's marginal.

    python -m benchmarks.coverage [--smoke | --full | --report] [--jobs N] [--cells A,B] [--only-methods A,B]

Truth: the population's marginals, from which the records were drawn. Data sets are those of trials.py (cells, seeds);
each is learned with each learner, untouched, and bootstrapped with 40 replicates. Reported are the mean over data sets
of the share of entries covered, overall and in the lower, middle and upper third of a data set's entries by their true
size, beside what simpler intervals from the same replicates would cover; and what 40 refits cost in fits. --full adds
k = 10. Runs go to benchmarks/results/coverage.jsonl, the tables to coverage.md beside it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.runs import Line, Task, arguments, choose, markdown, read, refuse, run
from benchmarks.protocol.trials import POPULATIONS, Cell, cells, data_set
from dpgm_core import FloatArray, SeededRandomness, learn
from dpgm_core.uncertainty import student

__all__ = ["main"]

STORE = Path(__file__).with_name("results") / "coverage.jsonl"
BASE, DRAWS, REPLICATES, LEVEL = 80_000, 2, 40, 0.9
LEARNERS = ("eb-map", "naive-mle", "cgm-em")
BOTH = ("chain3", "er")
LAPLACE = ((10**4, 0.1), (10**4, 0.5), (10**5, 0.1), (10**5, 1.0), (10**6, 0.1))
GAUSSIAN = ((10**4, 0.5), (10**5, 0.1))

USUAL = [*cells(BOTH, 5, LAPLACE), *cells(BOTH, 5, GAUSSIAN, noise="gaussian")]
GRIDS = {
    "smoke": cells(("chain1",), 3, ((3000, 0.5),)),
    "usual": USUAL,
    "full": [*USUAL, *cells(BOTH, 10, ((10**5, 0.5),))],
}
# What is compared: the interval that is shipped, the spread without the bias, and the quantiles of the replicates.
KINDS = ("interval", "spread alone", "percentiles")
PARTS = ("all", "lower third", "middle third", "upper third")


def work(task: Task) -> Mapping[str, Any]:
    """One learner on one data set: covered shares by kind and part, and seconds."""
    data = data_set(task.cell, task.trial)
    start = time.process_time()
    fit = learn(data.release, task.method, randomness=SeededRandomness(task.trial))
    fitted = time.process_time()
    model = fit.model.bootstrap(REPLICATES, randomness=SeededRandomness(task.trial))
    done = time.process_time()
    truth = data.population.marginals
    found = model.interval_of(lambda one: one.marginals().values, level=LEVEL, within=(0.0, 1.0))
    values = np.array([one.marginals().values for one in model.replicates])
    width = student(LEVEL, REPLICATES - 1) * found.spread
    sides = {
        "interval": (found.low, found.high),
        "spread alone": (found.estimate - width, found.estimate + width),
        "percentiles": tuple(np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)),
    }
    return {
        "covered": {kind: _shares(low, high, truth) for kind, (low, high) in sides.items()},
        "kl": float(f"{data.population.kl(fit.model.potentials.values):.4g}"),
        "fit": round(fitted - start, 3),
        "refits": round(done - fitted, 3),
    }


def _shares(low: FloatArray, high: FloatArray, truth: FloatArray) -> list[float]:
    """Of all entries, and of each third by size."""
    held = (low <= truth) & (truth <= high)
    thirds = np.array_split(held[np.argsort(truth, kind="stable")], 3)
    return [round(float(part.mean()), 4) for part in (held, *thirds)]


def tasks(grid: Sequence[Cell], learners: Iterable[str], base: int) -> list[Task]:
    """DRAWS data sets of each cell; neighbouring cells take other populations."""
    return [
        Task(cell.name, base + place % POPULATIONS + draw, learner)
        for draw in range(DRAWS)
        for place, cell in enumerate(grid)
        for learner in learners
    ]


def report(lines: Sequence[Line]) -> str:
    """The tables: by learner, by cell, and what the bootstrap costs."""
    parts = []
    head = ["learner", "data sets", "kind", *PARTS, "worst data set"]
    rows = []
    for learner in LEARNERS:
        mine = [line for line in lines if line["method"] == learner and "/k10/" not in line["cell"]]
        for kind in KINDS if mine else ():
            table = np.array([line["covered"][kind] for line in mine])
            shares = [f"{value:.3f}" for value in table.mean(axis=0)]
            rows.append([learner, len(mine), kind, *shares, f"{table[:, 0].min():.3f}"])
    parts.append(f"Coverage of nominal {LEVEL:.0%} intervals, k = 5\n\n" + markdown(head, rows))
    head = ["cell", "learner", *PARTS, "fit s", "40 refits / fit"]
    rows = []
    for cell in dict.fromkeys(line["cell"] for line in lines):
        for learner in LEARNERS:
            mine = [line for line in lines if (line["cell"], line["method"]) == (cell, learner)]
            if mine:
                shares = np.mean([line["covered"]["interval"] for line in mine], axis=0)
                fit, refits = (np.median([line[key] for line in mine]) for key in ("fit", "refits"))
                rows.append([cell, learner, *(f"{value:.3f}" for value in shares), f"{fit:.2f}", f"{refits / fit:.1f}"])
    parts.append("Shipped intervals by cell; medians of CPU seconds\n\n" + markdown(head, rows))
    return "\n".join(parts)


def main(given: Sequence[str] | None = None) -> None:
    """The command line. given: its arguments."""
    parser = arguments(__doc__, STORE)
    parser.add_argument("--base", type=int, default=BASE, help="of the seeds; a fresh base is a fresh study")
    asked = parser.parse_args(given)
    extent = "smoke" if asked.smoke else "full" if asked.full else "usual"
    # A smoke run never touches the committed store.
    store = STORE.parent / "smoke" / STORE.name if asked.smoke and asked.store == STORE else asked.store
    if not asked.report:
        known = {cell.name: cell for cell in GRIDS[extent]}
        wanted = [known[name] for name in choose("cell", asked.cells, list(known))]
        learners = choose("method", asked.only_methods, LEARNERS)
        run(tasks(wanted, learners, asked.base), work, store, jobs=asked.jobs)
    if not store.exists():
        refuse(f"there is no store {store}; run without --report first")
    text = report(read(store))
    store.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
