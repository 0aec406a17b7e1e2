"""How often do intervals hold the truth? Coverage of 90 % intervals on every entry of every clique's marginal.

    python -m benchmarks.coverage [--smoke | --full | --report] [--jobs N] [--cells A,B] [--only-methods A,B]

Truth: the population's marginals, from which the records were drawn. Data sets are those of protocol/trials.py;
each is learned with each learner, untouched, and bootstrapped with 40 replicates. Reported are the mean over data sets
of the share of entries covered, overall and in the lower, middle and upper third of a data set's entries by their true
size, beside what simpler intervals from the same replicates would cover; and what 40 refits cost in fits. --full adds
k = 10. Cells that begin with "selected" are of populations of `benchmarks.research`, whose tables `auto` chose: every
cell of every pair that one of the tables holds. Runs go to benchmarks/results/coverage.jsonl, the tables to coverage.md
beside it.
"""

from __future__ import annotations

import itertools
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import research
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import grouped, having, markdown
from benchmarks.harness.runs import Line, Task
from benchmarks.protocol.trials import POPULATIONS, cells, data_set
from dpgm_core import Budget, FloatArray, Model, SeededRandomness, bootstrap, fit, learn
from dpgm_core.models.intervals import student

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
#: Populations of `benchmarks.research` that need no file, at (epsilon, 1e-6), and draws of each.
SELECTED = {
    f"selected/{name}/eps{epsilon}": (name, epsilon)
    for name in ("health", "triples", "rare")
    for epsilon in ("0.3", "1", "5")
}
SELECTED_DRAWS, AUTO = 10, "auto"
# What is compared: the interval that is shipped, the spread without the bias, and the quantiles of the replicates.
KINDS = ("interval", "spread alone", "percentiles")
PARTS = ("all", "lower third", "middle third", "upper third")


def work(task: Task, asked: Namespace) -> Mapping[str, Any]:
    """One learner on one data set: covered shares by kind and part, and seconds."""
    if task.cell in SELECTED:
        return _selected(*SELECTED[task.cell], task.trial)
    data = data_set(task.cell, task.trial)
    start = time.process_time()
    learned = learn(data.release, task.method, randomness=SeededRandomness(task.trial)).model
    fitted = time.process_time()
    model = bootstrap(learned, REPLICATES, randomness=SeededRandomness(task.trial))
    done = time.process_time()
    return {
        "covered": _covered(model, lambda one: one.marginals().values, data.population.marginals),
        "kl": float(f"{data.population.kl(learned.potentials.values):.4g}"),
        "fit": round(fitted - start, 3),
        "refits": round(done - fitted, 3),
    }


def _selected(name: str, epsilon: str, seed: int) -> Mapping[str, Any]:
    """The same of `auto`, on the pairs that its tables hold."""
    population = research.POPULATIONS[name]
    table, rng = population.read(Path()), np.random.default_rng(seed)
    drawn = table.codes[rng.integers(0, len(table.codes), population.records)]
    start = time.process_time()
    selected = fit(
        drawn,
        "auto",
        Budget.approx(epsilon, research.DELTA),
        workload=table.domain,
        neighbours="add-remove",
        randomness=SeededRandomness(seed),
    ).model
    done = time.process_time()
    model = bootstrap(selected, REPLICATES, randomness=SeededRandomness(seed))
    refitted = time.process_time()
    every = itertools.combinations(table.domain.names, 2)
    pairs = [pair for pair in every if selected.standing(pair) == "measured"]
    truth = np.concatenate([research.shares_of(table.domain, table.codes, pair) for pair in pairs])
    return {
        "covered": _covered(model, lambda one: np.concatenate([one.marginal(pair).ravel() for pair in pairs]), truth),
        "fit": round(done - start, 3),
        "refits": round(refitted - done, 3),
    }


def _covered(model: Model, answers: Callable[[Model], FloatArray], truth: FloatArray) -> Mapping[str, Sequence[float]]:
    """Return the covered shares by kind of interval."""
    found = model.interval_of(answers, level=LEVEL, within=(0.0, 1.0))
    values = np.array([answers(one) for one in model.replicates])
    width = student(LEVEL, REPLICATES - 1) * found.spread
    sides = {
        "interval": (found.low, found.high),
        "spread alone": (found.estimate - width, found.estimate + width),
        "percentiles": tuple(np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)),
    }
    return {kind: _shares(low, high, truth) for kind, (low, high) in sides.items()}


def _shares(low: FloatArray, high: FloatArray, truth: FloatArray) -> list[float]:
    """Of all entries, and of each third by size."""
    held = (low <= truth) & (truth <= high)
    thirds = np.array_split(held[np.argsort(truth, kind="stable")], 3)
    return [round(float(part.mean()), 4) for part in (held, *thirds)]


def tables(lines: Sequence[Line]) -> str:
    """The tables: by learner, by cell, and what the bootstrap costs."""
    parts = []
    head = ["learner", "data sets", "kind", *PARTS, "worst data set"]
    rows = []
    for learner in (*LEARNERS, AUTO):
        mine = [line for line in lines if line["method"] == learner and "/k10/" not in line["cell"]]
        for kind in KINDS if mine else ():
            table = np.array([line["covered"][kind] for line in mine])
            shares = [f"{value:.3f}" for value in table.mean(axis=0)]
            rows.append([learner, len(mine), kind, *shares, f"{table[:, 0].min():.3f}"])
    parts.append(f"Coverage of nominal {LEVEL:.0%} intervals, k = 5\n\n" + markdown(head, rows))
    head = ["cell", "learner", *PARTS, "fit s", "40 refits / fit"]
    rows = []
    for cell, here in grouped(lines, "cell").items():
        for learner in (*LEARNERS, AUTO):
            if mine := having(here, method=learner):
                shares = np.mean([line["covered"]["interval"] for line in mine], axis=0)
                first, refits = (np.median([line[key] for line in mine]) for key in ("fit", "refits"))
                times = [f"{first:.2f}", f"{refits / first:.1f}"]
                rows.append([cell, learner, *(f"{value:.3f}" for value in shares), *times])
    parts.append("Shipped intervals by cell; medians of CPU seconds\n\n" + markdown(head, rows))
    return "\n".join(parts)


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--base", type=int, default=BASE, help="of the seeds; a fresh base is a fresh study")


def _trial(asked: Namespace, cell: str, draw: int) -> int:
    """Neighbouring cells take other populations."""
    if cell in SELECTED:
        return int(asked.base) + draw
    place = [each.name for each in GRIDS[asked.extent]].index(cell)
    return int(asked.base) + place % POPULATIONS + draw


def _cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws."""
    selected = {"selected/rare/eps1": 1} if asked.extent == "smoke" else dict.fromkeys(SELECTED, SELECTED_DRAWS)
    return {cell.name: DRAWS for cell in GRIDS[asked.extent]} | selected


STUDY = Study(
    about=__doc__,
    name="coverage",
    arguments=_arguments,
    cells=_cells,
    methods=(*LEARNERS, AUTO),
    serves=lambda cell, draw, method: (method == AUTO) == (cell in SELECTED),
    trial=_trial,
    work=work,
    text=tables,
)

if __name__ == "__main__":
    main(STUDY)
