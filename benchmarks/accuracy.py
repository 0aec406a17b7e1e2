"""What errors to expect of `auto`: shares of labels, pairs and triples, by columns, records and epsilon.

    python -m benchmarks.accuracy [DIR] [--smoke|--full|--report] [--cells "mixed k=10 *"] [--seeds 3]

A cell is a population, its number k of columns, the number N of records and epsilon; delta is 1e-6, add-remove
neighbours, N unknown, everything that `auto` spends included. Records are drawn from the population with replacement,
anew for each seed. Errors are mean total variation distances between the population's shares and the model's exact
answers, over all labels of a column and at most 400 pairs and 400 triples of columns; those of the records' own shares,
and of the products of the true shares of single columns, are beside them.

Three populations are generated for each seed (`cases/sampled.py`). "mixed": columns of 2 to 16 labels, each drawn for
every label, or pair of labels, of one or two of the eight before it. "weak": four labels, three in ten are copies of
the column before. "skewed": 10 to 60 labels, most of them rare, half of them a function of one column before. They have
a million people, or four times N. The real ones, of DIR, are whole tables, of which at most half is drawn. The rule of
thumb is fitted to runs on the generated ones alone.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases.sampled import GENERATED, population
from benchmarks.cases.tables import SOURCES
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import beginning, facts_of, grouped, markdown, marked, pyplot, save, section
from benchmarks.harness.runs import Line, Task, say
from benchmarks.protocol.selecting import selection

DELTA, SEEDS, METHOD = "1e-6", 3, "auto"
EPSILONS = ("0.1", "1", "10")
#: Columns -> records -> epsilons; where more would only cost more, sampling decides.
GRID: Mapping[int, Mapping[str, Sequence[str]]] = {
    10: {"1e3": EPSILONS, "1e4": EPSILONS, "1e5": EPSILONS, "1e6": EPSILONS[:2]},
    30: {"1e3": EPSILONS, "1e4": EPSILONS, "1e5": EPSILONS[:2]},
    100: {"1e4": EPSILONS[:2], "1e5": EPSILONS[:2]},
}
#: Real tables -> columns and records.
REAL = {
    "health": (7, ("1e3", "1e4")),
    "adult": (14, ("1e3", "1e4")),
    "nist": (24, ("1e3", "3e3")),
    "lbs": (24, ("1e3", "3e3")),
}
#: Of runs, what says nothing here; memory is that of all runs and of the population, and notes are long.
LEFT_OUT = ("peak", "planted", "lost", "release", "choices", "said")
ORDERS = {1: "singles", 2: "pairs", 3: "triples"}


def work(task: Task, asked: Namespace) -> Mapping[str, Any]:
    """Draw records, learn from them, and compare both with the population."""
    facts = facts_of(task.cell)
    count, columns = int(float(facts["N"])), int(facts["k"])
    people = max(asked.people, 4 * count)
    whole = population(asked.folder, task.cell.split()[0], columns, people, task.trial)
    records = whole.draw(count, task.trial)
    found = selection(METHOD, records, facts["epsilon"], task.trial, delta=DELTA, judge=whole.errors)
    beside = {"sample": whole.sampling(records), "independent": whole.independence()}
    found |= {f"{name}_{key}": value for name, some in beside.items() for key, value in some.items()}
    return {key: value for key, value in (found | whole.cells()).items() if key not in LEFT_OUT}


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws; those of one population together, small ones first, and real tables that are there."""
    if asked.extent == "smoke":
        return {"weak k=4 N=200 epsilon=1": 2, "health k=7 N=200 epsilon=1": 1}
    grids = {(name, k): grid for k, grid in GRID.items() for name in GENERATED}
    for name, (k, counts) in REAL.items():
        if why := SOURCES[name].missing(asked.folder):
            say(f"{name} is left out: {why}")
        else:
            grids[name, k] = dict.fromkeys(counts, EPSILONS)
    order = sorted(grids, key=lambda one: one[1])
    return {
        f"{name} k={k} N={count} epsilon={epsilon}": asked.seeds
        for name, k in order
        for count, epsilons in grids[name, k].items()
        for epsilon in epsilons
    }


def arguments(parser: ArgumentParser) -> None:
    """How often, and of how many people."""
    parser.add_argument("--seeds", type=int, default=SEEDS, help="draws of a cell")
    parser.add_argument("--people", type=int, default=1_000_000, help="of a generated population, at least")


def tables(lines):
    return str(len(lines))


STUDY = Study(
    about=__doc__,
    name="accuracy",
    data="adult/, nist_acs_ma2019/ and lbs_workweek/",
    arguments=arguments,
    cells=cells,
    methods=[METHOD],
    work=work,
    text=tables,
)

if __name__ == "__main__":
    main(STUDY)
