"""Markov random fields: how many records each method needs to find the structure, and the parameters.

    python -m benchmarks.mrf [DIR] [--smoke|--full|--report] [--cells "zcdp matching *"] [--seconds 300] [--trials 10]

n* is the number of records at which two of three trials succeed (`protocol/crossing.py`). Truths: couplings of +-.4
with random signs and no fields on matchings, random 3-regular graphs and square grids (`cases/markov.py`), another
graph and other records in each trial, the same for every method. Structure: the very edges, pairs with |A| above
eta / 2 = .2. Parameters: every pair within .1. Add-remove neighbours, N declared; rho = .01 ("zcdp"), (.75, 1e-6)
("delta") and epsilon = .75 ("pure"). What a method is told of the truth: its width, eta, an attribute's most edges, as
the paper has it, and, unless it says "margins unknown", that both codes are equally frequent. Seeds begin at 310000 and
were used for nothing else.

Cells "labels k p" are matchings of k labels, rho = .1; "walsh n rho" binary models of order three; "kept" two learners
behind one selection at 1.5 n*; "known" cells beside contrasts where the structure is known and noise rules; "gibbs p"
the time of Gibbs sampling; "days" real records (DIR/lbs_workweek, by default in $DPGM_SHARED/data or ../shared/data),
left out where they are not there; "wide p n" the scale of `mrf-select`. Stored cells "round p", the time of a round of
gradients, are of an earlier version. A search that has spent --seconds of the CPU
begins no trial more and is reported with the points it has.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Container, Sequence
from typing import Any

from benchmarks.harness.alone import alone
from benchmarks.harness.main import Study, main
from benchmarks.harness.runs import Line, Task, refuse, say
from benchmarks.protocol.crossing import starts
from benchmarks.protocol.recovery import (
    DAYS,
    KEPT,
    LABEL_METHODS,
    METHODS,
    SWEEPERS,
    WALSH_METHODS,
    kept_error,
    known_errors,
    labels_needed,
    needed,
    of_days,
    of_wide,
    seconds_of_gibbs,
    walsh_error,
)
from benchmarks.protocol.recovery_tables import needed_tables, other_tables, targets

DAYS_FOLDER = "lbs_workweek"
KNOWN, WIDE = "eb-map", "mrf-select"
DRAWS, KEPT_DRAWS, KNOWN_DRAWS, SEEDS = 7, 12, 12, 5
#: It takes minutes on 72 attributes.
AIM_SEEDS = 1
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
#: "kept graph p records": 1.5 times the prototype's n* for structure.
LEARNERS = ("kept matching 16 882", "kept matching 64 2223", "kept 3-regular 16 2006", "kept 3-regular 32 5238")
STRUCTURES = ("matching 16", "3-regular 16", "grid 16", "all-pairs 10")
SMOKE = ("zcdp matching 8", "delta matching 8", "known matching 16 add-remove")


def work(task: Task, asked: Namespace) -> Any:
    """One run: its cell is as the help has it."""
    trials, seconds = 3 if asked.extent == "smoke" else asked.trials, asked.seconds
    kind, *rest = task.cell.split()
    if kind == "labels":
        start = starts("labels", " ".join(rest), task.method)[0]
        return labels_needed(int(rest[0]), int(rest[1]), task.method, start, trials, seconds)
    if kind == "walsh":
        return walsh_error(task.method, int(rest[0]), rest[1], task.trial)
    if kind == "kept":
        return kept_error(task.method, rest[0], int(rest[1]), int(rest[2]), task.trial)
    if kind == "known":
        return known_errors(rest[0], int(rest[1]), rest[2], task.trial)
    if kind == "gibbs":
        return alone(seconds_of_gibbs, task.method, int(rest[0]))
    if kind == "days":
        return alone(of_days, task.method, asked.folder / DAYS_FOLDER, rest[0], task.trial)
    if kind == "wide":
        return alone(of_wide, int(rest[0]), int(rest[1]), task.trial)
    goals = dict(zip(("structure", "parameters"), starts(kind, " ".join(rest), task.method), strict=True))
    return needed(rest[0], int(rest[1]), task.method, kind, goals, trials, seconds)


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws."""
    if asked.extent == "smoke":
        return dict.fromkeys(SMOKE, 1)
    found = dict.fromkeys([*SEARCHES, *LABELS], 1) | dict.fromkeys(WALSH, DRAWS) | dict.fromkeys(LEARNERS, KEPT_DRAWS)
    for relation in ("add-remove", "replace-one"):
        found |= {f"known {structure} {relation}": KNOWN_DRAWS for structure in STRUCTURES}
    found |= {"gibbs 64": 1}
    if (asked.folder / DAYS_FOLDER).is_dir():
        found |= {"days 0.01": SEEDS, "days 1": SEEDS}
    else:
        say(f"{asked.folder} has no {DAYS_FOLDER}: cells on real records are left out; name a folder with it")
    return found | {"wide 256 1000000": 1}


def serves(cell: str, draw: int, method: str) -> bool:
    """What is affordable."""
    if cell in SEARCHES:
        return method in SEARCHES[cell]
    kind = cell.split()[0]
    served: dict[str, Container[str]] = {"labels": LABEL_METHODS, "walsh": WALSH_METHODS, "kept": KEPT}
    served |= {"known": [KNOWN], "wide": [WIDE], "days": DAYS, "gibbs": SWEEPERS}
    return method in served[kind] and (method != "aim" or draw < AIM_SEEDS)


def tables(lines: Sequence[Line]) -> str:
    """Targets first."""
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
    parts = ["# Markov random fields\n", targets(lines), needed_tables(lines), other_tables(lines), left_out]
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
    data=f"{DAYS_FOLDER}/",
    arguments=arguments,
    check=check,
    cells=cells,
    methods=list(dict.fromkeys([*METHODS, *LABEL_METHODS, *WALSH_METHODS, *KEPT, *DAYS, *SWEEPERS, KNOWN, WIDE])),
    serves=serves,
    work=work,
    text=tables,
)

if __name__ == "__main__":
    main(STUDY)
