"""Markov random fields: how many records each method needs to find the structure, and the parameters.

    python -m benchmarks.mrf [--smoke|--full|--report] [--cells "zcdp matching *"] [--seconds 300] [--trials 10]

n* is the number of records at which two of three trials succeed (`protocol/crossing.py`). Truths: couplings of +-.4
with random signs and no fields on matchings, random 3-regular graphs and square grids (`cases/markov.py`), another
graph and other records in each trial, the same for every method. Structure: the very edges, pairs with |A| above
eta / 2 = .2. Parameters: every pair within .1. Add-remove neighbours, N declared; rho = .01 ("zcdp"), (.75, 1e-6)
("delta") and epsilon = .75 ("pure"). What a method is told of the truth: its width, eta, an attribute's most edges, as
the paper has it, and, unless it says "margins unknown", that both codes are equally frequent. Seeds begin at 310000 and
were used for nothing else.

Cells "labels k p" are matchings of k labels, rho = .1; "walsh n rho" binary models of order three; "known" cells beside
contrasts where the structure is known and noise rules. A search that has spent --seconds of the CPU begins no trial
more and is reported with the points it has.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Container, Sequence
from typing import Any

from benchmarks.harness.main import Study, main
from benchmarks.harness.runs import Line, Task, refuse
from benchmarks.protocol.recovery import (
    LABEL_METHODS,
    METHODS,
    WALSH_METHODS,
    known_errors,
    labels_needed,
    needed,
    walsh_error,
)
from benchmarks.protocol.recovery_tables import needed_tables, other_tables

KNOWN = "eb-map"
DRAWS, KNOWN_DRAWS = 7, 12
#: Records at which searches begin, for structure and for parameters.
STARTS = {"structure": 2048, "parameters": 4096}
#: Cell -> its methods, in the order of the table. What is missing here takes too long, and is named under the tables.
FRANK_WOLFE = ("mrf-fw", "mrf-fw clipped")
ALL_PAIRS = ("all pairs, contrasts", "all pairs, tables")
SELECT = ("mrf-select contrasts", "mrf-select tables")
UNKNOWN = ("mrf-select contrasts, margins unknown", "mrf-select tables, margins unknown")
PLAIN, ROUNDS = "non-private", "mrf-select contrasts, in rounds"
SEARCHES: dict[str, tuple[str, ...]] = {
    "zcdp matching 8": (PLAIN, *FRANK_WOLFE, *ALL_PAIRS, *SELECT, *UNKNOWN),
    "zcdp matching 16": (PLAIN, *FRANK_WOLFE, *ALL_PAIRS, *SELECT, *UNKNOWN),
    "zcdp matching 32": (PLAIN, *FRANK_WOLFE, *ALL_PAIRS, *SELECT, *UNKNOWN),
    "zcdp matching 64": (PLAIN, *FRANK_WOLFE, *ALL_PAIRS, *SELECT, *UNKNOWN),
    "zcdp matching 128": SELECT,
    "zcdp 3-regular 8": (PLAIN, *FRANK_WOLFE, *ALL_PAIRS, *SELECT, ROUNDS),
    "zcdp 3-regular 16": (PLAIN, *FRANK_WOLFE, *ALL_PAIRS, *SELECT, *UNKNOWN, ROUNDS),
    "zcdp 3-regular 32": (PLAIN, *FRANK_WOLFE, *SELECT),
    "zcdp 3-regular 64": (PLAIN, *FRANK_WOLFE, *SELECT),
    "zcdp grid 16": (PLAIN, *FRANK_WOLFE, *ALL_PAIRS, *SELECT, ROUNDS),
    "zcdp grid 64": (PLAIN, *FRANK_WOLFE, *SELECT, ROUNDS),
    "delta matching 8": ("votes", "graph", "threshold"),
    "delta matching 16": ("votes", "graph", "threshold"),
    "delta matching 32": ("votes", "graph", "threshold"),
    "delta matching 64": ("votes", "threshold"),
    "delta matching 128": ("threshold",),
    "delta 3-regular 8": ("votes", "graph"),
    "delta 3-regular 16": ("votes",),
    "pure matching 8": ("mrf-fw", "all pairs, contrasts", *SELECT),
    "pure matching 16": ("mrf-fw", "all pairs, contrasts", *SELECT),
    "pure matching 32": SELECT,
}
LABELS = ("labels 3 8", "labels 3 16", "labels 4 8")
WALSH = ("walsh 10000 0.1", "walsh 100000 0.1", "walsh 10000 0.01")
STRUCTURES = ("matching 16", "3-regular 16", "grid 16", "all-pairs 10")
SMOKE = ("zcdp matching 8", "delta matching 8", "known matching 16 add-remove")


def work(task: Task, asked: Namespace) -> Any:
    """One run: its cell is as the help has it."""
    trials, seconds = 3 if asked.extent == "smoke" else asked.trials, asked.seconds
    kind, *rest = task.cell.split()
    if kind == "labels":
        return labels_needed(int(rest[0]), int(rest[1]), task.method, STARTS["structure"], trials, seconds)
    if kind == "walsh":
        return walsh_error(task.method, int(rest[0]), rest[1], task.trial)
    if kind == "known":
        return known_errors(rest[0], int(rest[1]), rest[2], task.trial)
    return needed(rest[0], int(rest[1]), task.method, kind, STARTS, trials, seconds)


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws."""
    if asked.extent == "smoke":
        return dict.fromkeys(SMOKE, 1)
    found = dict.fromkeys([*SEARCHES, *LABELS], 1) | dict.fromkeys(WALSH, DRAWS)
    known = [f"known {one} {relation}" for relation in ("add-remove", "replace-one") for one in STRUCTURES]
    return found | dict.fromkeys(known, KNOWN_DRAWS)


def serves(cell: str, draw: int, method: str) -> bool:
    """What is affordable."""
    if cell in SEARCHES:
        return method in SEARCHES[cell]
    served: dict[str, Container[str]] = {"labels": LABEL_METHODS, "walsh": WALSH_METHODS, "known": [KNOWN]}
    return method in served[cell.split()[0]]


def tables(lines: Sequence[Line]) -> str:
    """The page."""
    left_out = (
        "\nNot in the list, for their time or because other figures say it: all pairs beyond 64 attributes, and beyond "
        "16 where graphs have loops (its states are listed); Frank-Wolfe on matchings beyond 64; graph mode beyond 32; "
        "votes on 3-regular graphs beyond 16; pure budgets beyond 32.\n"
    )
    done = {(line["cell"], line["method"]) for line in lines}
    absent: dict[str, list[str]] = {}
    for cell, methods in [*SEARCHES.items(), *((cell, tuple(LABEL_METHODS)) for cell in LABELS)]:
        for method in methods:
            if (cell, method) not in done:
                absent.setdefault(cell, []).append(method)
    if len(absent) < len(SEARCHES) / 2:  # of a whole run
        names = "; ".join(f"{cell}: {', '.join(methods)}" for cell, methods in absent.items())
        left_out += f"\nIn the list, but not run for want of time: {names}.\n" if absent else ""
    parts = ["# Markov random fields\n", needed_tables(lines), other_tables(lines), left_out]
    return "\n".join(part for part in parts if part)


def arguments(parser: ArgumentParser) -> None:
    """How long a search may take."""
    parser.add_argument("--seconds", type=float, default=300, help="of the CPU for one search")
    parser.add_argument("--trials", type=int, default=10, help="at a point of a search")


def check(asked: Namespace, cell: str) -> None:
    """What a search needs."""
    if asked.trials < 1 or not asked.seconds > 0:
        refuse(
            f"mrf was asked for {asked.trials} trials and {asked.seconds:g} seconds; ask for at least 1 and more than 0"
        )


STUDY = Study(
    about=__doc__,
    name="mrf",
    arguments=arguments,
    check=check,
    cells=cells,
    methods=list(dict.fromkeys([*METHODS, *LABEL_METHODS, *WALSH_METHODS, KNOWN])),
    serves=serves,
    work=work,
    text=tables,
)

if __name__ == "__main__":
    main(STUDY)
