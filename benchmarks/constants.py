"""Constants of the selector `grow`, varied over unlike tables: errors in ratio to those of its present constants.

    python -m benchmarks.constants [DIR] [--smoke|--full|--report] [--cells "adult 0.1"] [--only-methods "_STOP=*"]

Cells are sources of `cases/tables.py` and an epsilon, as in `benchmarks.selection`; those that end in `report` have
other seeds, from 1000 on, on which nothing may be chosen. A method is `present`, or constants of `dpgm_select.grow`
with other values, and runs where it can matter: at epsilon .1 the selector mostly picks (on `adult` and `health` it
looks), at 1 it looks, and on small tables it asks whether pairs can be told at all; `singles` are single columns
without a selector. `SETTINGS` is the record of all that was tried. A store is of one state of the selector; start
another with --store after a change of it.

A run is `auto` with the library's defaults, seeded, so that settings share their noise until they part. Ratios of a
cell are geometric means over its seeds, those of a setting geometric means over its cells. In brackets: the standard
error of the mean, from the variation between seeds of a cell.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import Any
from unittest import mock

import numpy as np
from dpgm_select import grow

from benchmarks.cases.tables import REPORT, SOURCES, source_table
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import facts_of, grouped, having, section
from benchmarks.harness.runs import Line, Task, say
from benchmarks.protocol.selecting import selection

PRESENT, SINGLES = "present", "singles"
SEEDS = {"picks": 2, "looks": 1, "small": 40}
_SMALL = ("small9", "free12", "copies6", "chain15")
#: Source and epsilon of each cell, by what the selector does there.
CELLS = {
    "picks": [
        f"{name} 0.1" for name in ("adult", "nist", "lbs", "health", "sparse16", "mixed14", "skewed12", "blocks24")
    ],
    "looks": [f"{name} 1" for name in ("nist", "lbs", "health", "sparse16", "skewed12", "blocks24")],
    "small": [f"{name} {epsilon}" for name in _SMALL for epsilon in SOURCES[name].epsilons],
}
#: What was tried, by the cells where it can matter.
SETTINGS: Mapping[str, Sequence[str]] = {
    "picks": [
        *("_STOP=0.3", "_STOP=0.7", "_PICKS=0.2", "_PICKS=0.6", "_MORE_PICKS=1", "_MORE_PICKS=2"),
        *(
            "_ROUND_PART=0.15",
            "_ROUND_PART=0.4",
            "_ROUND_CHOICE=0.05",
            "_ROUND_CHOICE=0.2",
            "_OFFSET=0.25",
            "_OFFSET=1",
        ),
        *("_FOREST_NOISE=0.05", "_FOREST_NOISE=0.2", "_CHOICE=0.03", "_ALONE=0.1", "_ALONE=0.2"),
    ],
    "looks": ["_LOOKS=3", "_LOOKS=6", "_SCORES=0.01", "_SCORES=0.04", "_LOOK_PART=0.25", "_LOOK_PART=0.5"],
    "small": [
        SINGLES,
        "_HOPELESS=0.01 _DOUBTFUL=0.01",
        *("_DOUBTFUL=0.2", "_DOUBTFUL=0.8", "_HOPELESS=1", "_TEST=0.04", "_TEST_DEVIATIONS=1.5", "_TEST_DEVIATIONS=3"),
        *("_TEST_GAIN=0.15", "_TEST_GAIN=0.6", "_ALONE=0.1", "_ALONE=0.25"),
    ],
}
KEYS = {"error1": "1-way", "error2": "2-way", "error3": "3-way"}


def work(task: Task, asked: Namespace) -> Mapping[str, Any]:
    """Run `auto` once, with other constants."""
    name, epsilon, *_ = task.cell.split()
    table = source_table(asked.folder, name, task.trial)
    if task.method == SINGLES:
        measured = selection(SINGLES, table, epsilon, task.trial)
    else:
        with mock.patch.dict(vars(grow), constants(task.method)):
            measured = selection("auto", table, epsilon, task.trial)
    return {key: measured[key] for key in ("error1", "error2", "error3", "seconds", "tables", "cells", "release")}


def constants(setting: str) -> dict[str, float]:
    """Return the constants that a setting names, each of the type that it has in the module.

    >>> constants("_LOOKS=3 _STOP=0.7"), constants("present")
    ({'_LOOKS': 3, '_STOP': 0.7}, {})
    """
    return {name: type(getattr(grow, name))(value) for name, value in facts_of(setting).items()}


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws; those of sources that are there."""
    if asked.extent == "smoke":
        return {"small9 0.5": 2, "copies6 2": 2}
    found = dict[str, int]()
    for end in ("", " report"):
        for kind, some in CELLS.items():
            for cell in some:
                if why := SOURCES[cell.split()[0]].missing(asked.folder):
                    say(f"{cell} is left out: {why}")
                else:
                    found[cell + end] = asked.seeds or SEEDS[kind]
    return found


def serves(cell: str, draw: int, method: str) -> bool:
    """Whether a setting can matter in a cell."""
    kind = next(kind for kind, some in CELLS.items() if cell.removesuffix(" report") in some)
    return method == PRESENT or method in SETTINGS[kind]


def tables(lines: Sequence[Line]) -> str:
    """Ratios of all settings on development seeds, then on those for reports."""
    by = sorted({line["by"].split()[1] for line in having(lines, method=PRESENT)})
    said = f"Errors in ratio to the constants of {', '.join(by)}; below 1 is better. Worst: the cell.\n"
    parts = []
    for title, report in (("Development seeds", False), ("Report seeds", True)):
        some = [line for line in lines if line["cell"].endswith(" report") == report]
        rows = [row for method in grouped(some, "method") if method != PRESENT for row in _rows(some, method)]
        head = [
            "setting",
            "where",
            "cells",
            "runs",
            *(f"{way}{end}" for way in KEYS.values() for end in ("", ", worst")),
        ]
        parts.append(section(title, head, rows, said=said))
    return "\n".join(["# Constants of the selector `grow`\n", *filter(None, parts)])


def _rows(lines: Sequence[Line], method: str) -> list[list[str]]:
    """One row for each kind of cells that the setting has runs in."""
    rows = []
    for kind, some in CELLS.items():
        ratios = {key: _ratios(lines, method, key, some) for key in KEYS}
        if counts := [len(one) for one in ratios["error2"].values()]:
            shown = [text for one in ratios.values() for text in (_mean(one), _worst(one))]
            rows.append([method, kind, str(len(counts)), str(sum(counts)), *shown])
    return rows


def _ratios(lines: Sequence[Line], method: str, key: str, some: Sequence[str]) -> dict[str, list[float]]:
    """Return the logarithms of the ratios of each cell, on the seeds that both have."""
    found: dict[str, list[float]] = {}
    present = {(line["cell"], line["trial"]): line[key] for line in having(lines, method=PRESENT)}
    for line in having(lines, method=method):
        cell = line["cell"].removesuffix(" report")
        if cell in some and (line["cell"], line["trial"]) in present:
            found.setdefault(cell, []).append(math.log(line[key] / present[line["cell"], line["trial"]]))
    return found


def _mean(ratios: Mapping[str, Sequence[float]]) -> str:
    """The geometric mean over cells, and its standard error."""
    mean = float(np.mean([np.mean(one) for one in ratios.values()]))
    return _shown(mean, _spread(ratios) * math.sqrt(sum(1 / len(one) for one in ratios.values())) / len(ratios))


def _worst(ratios: Mapping[str, Sequence[float]]) -> str:
    """The worst cell."""
    worst = max(ratios, key=lambda cell: float(np.mean(ratios[cell])))
    return f"{_shown(float(np.mean(ratios[worst])), _spread(ratios) / math.sqrt(len(ratios[worst])))} {worst}"


def _shown(mean: float, error: float) -> str:
    return f"{math.exp(mean):.3f} ({'-' if math.isnan(error) else f'{error:.3f}'})"


def _spread(ratios: Mapping[str, Sequence[float]]) -> float:
    """The standard deviation between seeds of a cell, over all cells; none known of single seeds."""
    free = sum(len(one) - 1 for one in ratios.values())
    squares = sum(((np.array(one) - np.mean(one)) ** 2).sum() for one in ratios.values())
    return math.sqrt(squares / free) if free else math.nan


def arguments(parser: ArgumentParser) -> None:
    """How often."""
    parser.add_argument("--seeds", type=int, help="draws of a cell")


def trial(asked: Namespace, cell: str, draw: int) -> int:
    """The seed of a draw."""
    return draw + REPORT * cell.endswith(" report")


STUDY = Study(
    about=__doc__,
    name="constants",
    data="adult/, nist_acs_ma2019/, lbs_workweek/ and bif/",
    arguments=arguments,
    cells=cells,
    methods=[PRESENT, *dict.fromkeys(one for some in SETTINGS.values() for one in some)],
    serves=serves,
    trial=trial,
    work=work,
    text=tables,
)

if __name__ == "__main__":
    main(STUDY)
