"""Whole programs of peers beside dpgm: error of synthetic records, CPU seconds and memory, on unlike tables.

    python -m benchmarks.peers --install FOLDER        # one environment for each peer, by pip
    DPGM_PEERS=FOLDER python -m benchmarks.peers [DIR] [--smoke|--report] [--cells "adult 1"] [--cache FOLDER]

Cells are a table and an epsilon, add-remove neighbours, N unknown, delta = 1e-9. `adult`, `health` and `nist14` are the
training rows of `benchmarks.task`, which are three quarters of each table, so that both studies judge the same run;
`parity10` is generated and theirs too. `sparse16` and `small9` are generated anew for each seed. DIR holds `adult/` and
`nist_acs_ma2019/`, by default in $DPGM_SHARED/data or ../shared/data; what is not there is left out. Each program has
its defaults, but for public labels where it would read them off the records, and in `parity10` workloads of order 5
where it takes one. Rows of SmartNoise and OpenDP are sampled; those that they make by default, "rounded", have a fault
of mbi 1.1.0 (`whole_worker.py`) and are measured in one cell. Records are as many as a program makes of so many rows;
those of dpgm have the model's expected counts, rounded, which is what mbi does.

Each run is a process of its own on one thread, ended after --limit CPU seconds. Errors are to the records: mean total
variation distances of attributes and pairs, and mean |p - q|_1 of three attributes (`off` in `cases/coded.py`). CPU
seconds include imports, compiling, fitting and sampling; peak memory is of the whole process.
"""

from __future__ import annotations

import argparse
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases.coded import Coded
from benchmarks.cases.tables import SOURCES, source_table
from benchmarks.cases.tasks import TASKS, task_rows
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import grouped, having, section
from benchmarks.harness.runs import Line, Task, say
from benchmarks.peers.environments import FOLDER, make_environments
from benchmarks.peers.whole_peer import (
    OURS,
    OVER_LIMIT,
    ROUNDED,
    WHOLE,
    add_run_options,
    draws_of,
    errors_of,
    synthesize,
    whole_missing,
)
from benchmarks.peers.whole_worker import PROGRAMS
from benchmarks.protocol.selecting import DELTA

EPSILONS = ("0.1", "1", "10")
GENERATED = ("sparse16", "small9")
ERRORS = {"error1": "1-way TV", "error2": "2-way TV", "error3": "3-way L1"}


def table_of(folder: Path, name: str, seed: int) -> Coded:
    """Return the records of a cell."""
    return source_table(folder, name, seed) if name in GENERATED else task_rows(folder, name)[0]


def work(task: Task, asked: Namespace) -> Mapping[str, Any]:
    """One run of a program on a table."""
    name, epsilon = task.cell.split()
    table = table_of(asked.folder, name, task.trial)
    order = TASKS[name].order if name in TASKS else None
    run = synthesize(task.method, table, epsilon, DELTA, task.trial, limit=asked.limit, cache=asked.cache, order=order)
    return errors_of(run, table)


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws; those whose tables are there."""
    if asked.extent == "smoke":
        return {"small9 1": 1}
    found = {}
    for name in (*TASKS, *GENERATED):
        if why := (SOURCES if name in GENERATED else TASKS)[name].missing(asked.folder):
            say(f"{name} is left out: {why}")
        else:
            found |= {f"{name} {epsilon}": asked.seeds for epsilon in EPSILONS}
    return found


def serves(cell: str, draw: int, method: str) -> bool:
    """Whether a program runs on this draw; what was over its limit at epsilon 1 is not tried at others."""
    name, epsilon = cell.split()
    if method in ROUNDED and cell != "health 1":
        return False
    return draw < draws_of(method, cell) and (epsilon == "1" or (name, method) not in OVER_LIMIT)


def check(asked: Namespace, cell: str) -> None:
    """Read a table that is a file."""
    table_of(asked.folder, cell.split()[0], 0)


# --- The report ---


def tables(lines: Sequence[Line]) -> str:
    """Errors of each program by table, then what each took, with what version, and what did not end."""
    parts = ["# Whole programs side by side\n"]
    for key, title in ERRORS.items():
        parts.append(_errors(lines, key, title))
    parts += [_spent(lines), _seeds(lines)]
    return "\n".join(part for part in parts if part)


def _names(lines: Sequence[Line]) -> list[str]:
    return list(grouped([line | {"table": line["cell"].split()[0]} for line in lines], "table"))


def _errors(lines: Sequence[Line], key: str, title: str) -> str:
    """Means over seeds for each epsilon; the best program of a cell is bold, dpgm's exact answers have a row."""
    names = _names(lines)
    rows = []
    rated = [(OURS, "exact answers of its model", lambda line: line["exact"][key])]
    rated += [(program, program, lambda line: line[key]) for program in PROGRAMS]
    means = {
        (label, cell): _mean(having(lines, cell=cell, method=program), value)
        for program, label, value in rated
        for cell in grouped(lines, "cell")
    }
    best = {}
    for cell in grouped(lines, "cell"):
        known = [mean for one in PROGRAMS if (mean := means[one, cell]) is not None]
        best[cell] = min(known) if len(known) > 1 else None
    for program, label, _ in sorted(rated, key=lambda one: (one[0] != OURS, one[1] != OURS)):
        if having(lines, method=program):
            columns = [[f"{name} {epsilon}" for epsilon in EPSILONS] for name in names]
            rows.append(
                [
                    label,
                    *(
                        " ".join(_figure(means.get((label, one)), best.get(one), label) for one in cell)
                        for cell in columns
                    ),
                ]
            )
    said = f"Mean {title} over seeds at epsilon {', '.join(EPSILONS)}; the best of several programs is bold.\n"
    return section(title, ["program", *names], rows, name=key, said=said)


def _mean(lines: Sequence[Line], value: Any) -> float | None:
    values = [value(line) for line in lines if "ended" not in line]
    return float(np.mean(values)) if values else None


def _figure(mean: float | None, best: float | None, label: str) -> str:
    if mean is None:
        return "-"
    text = f"{mean:.4f}".removeprefix("0")
    return f"**{text}**" if mean == best and label in PROGRAMS else text


def _spent(lines: Sequence[Line]) -> str:
    """CPU seconds and memory over all runs that ended, versions, and where there is no result."""
    rows = []
    for program in PROGRAMS:
        some = having(lines, method=program)
        ended = [line for line in some if "ended" not in line]
        failed = grouped([line for line in some if "ended" in line], "ended")
        why = "; ".join(f"{', '.join(_cells(group))}: {_short(reason)}" for reason, group in failed.items())
        spent = [_range([line[key] for line in ended]) for key in ("seconds", "peak")]
        rows.append([program, some[-1]["version"] if some else "", str(len(ended)), *spent, why if some else "not run"])
    head = ["program", "versions", "runs", "CPU s", "peak MB", "without a result"]
    said = "Median, least and most over all runs that ended.\n"
    return section("Versions, time and memory", head, rows, name="spent", said=said)


def _cells(lines: Sequence[Line]) -> list[str]:
    return list(grouped(lines, "cell"))


def _short(reason: str) -> str:
    """Return a reason that fits into a table."""
    return reason.replace("|", "/").replace("`", "'")[:160]


def _range(values: Sequence[float]) -> str:
    return f"{np.median(values):.0f} ({min(values):.0f}-{max(values):.0f})" if values else "-"


def _seeds(lines: Sequence[Line]) -> str:
    """The least and the most of the seeds of each cell."""
    rows = []
    for cell, group in grouped(lines, "cell").items():
        for program, some in grouped([line for line in group if "ended" not in line], "method").items():
            spread = [f"{min(v):.4f}-{max(v):.4f}" for v in ([line[key] for line in some] for key in ERRORS)]
            rows.append([cell, program, str(len(some)), *spread])
    said = "The least and the most over seeds.\n"
    return section("Spread", ["cell", "program", "seeds", *ERRORS.values()], rows, said=said)


# --- The command line ---


class _Install(argparse.Action):
    """Make environments and leave."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, option: str | None = None) -> None:
        names = dict.fromkeys(environment for environment, _ in PROGRAMS.values() if environment)
        failed = make_environments(values, tuple(names))
        for name in names:
            say(f"{name}: {failed.get(name, values / name)}")
        say(f"set {FOLDER}={values} for the studies")
        parser.exit(1 if failed else 0)


def arguments(parser: ArgumentParser) -> None:
    """Installation, the limit of a run, and the cache."""
    parser.add_argument(
        "--install",
        action=_Install,
        type=lambda text: Path(text).absolute(),
        metavar="FOLDER",
        help="make the environments of peers in this folder, and leave",
    )
    add_run_options(parser, 300)


STUDY = Study(
    about=__doc__,
    name="peers",
    data="adult/ and nist_acs_ma2019/",
    arguments=arguments,
    check=check,
    cells=cells,
    methods=[OURS, *WHOLE, *ROUNDED],
    serves=serves,
    missing=whole_missing,
    work=work,
    text=tables,
)

if __name__ == "__main__":
    main(STUDY)
