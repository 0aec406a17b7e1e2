"""Bayesian networks over a public graph: what one release, read together, is worth beside each table by itself.

    python -m benchmarks.bayes_net [DIR] [--smoke|--report] [--cells "alarm 1"] [--draws 20]

DIR holds `bif/` (asia.bif, sachs.bif, child.bif, alarm.bif, insurance.bif, hailfinder.bif of the bnlearn repository)
and `adult/`, by default $DPGM_SHARED/data or ../shared/data; what is not there is left out. `--smoke` needs neither: a
small made-up network. A cell is a network and an epsilon, a trial is a seed from 260000 on. All methods get the same
10,000 records, drawn anew in each trial; add-remove neighbours, N unknown; Laplace noise at epsilon, Gaussian noise at
(epsilon, 1/N).

The baseline (Zhang et al. 2016, as their summaries have it): every family, one noise, negative counts are 0, one more
in each cell for KL and none for L1. KL: of the truth to the network learned, nats, after q <- (1 - 1e-4) q + 1e-4 / K
in each row, for all methods alike. L1: of conditional tables to the exact ones, a mean over rows with a record.
Queries: mean L1 of single attributes' marginals, and of P(target | two others) for 30 questions, both to the truth.
"Two-stage sampled" is a reading of Chowdhury et al. (2020): a tenth of the budget on a tenth of the records first,
to divide the rest over the families, and the second look alone is learned from. "Two-stage" takes all records first.

Cells `time` are CPU seconds on one thread; `hailfinder` (56 nodes) is one fit. Cells `adult` are real records, of which
nobody knows the graph: one written down from what the attributes mean, before any look (cases/people.py), and the same
with attributes dealt anew; "undirected" measures the same tables and is not moved to the graph; `mst` and `auto` choose
for themselves, all pairs wanted. Their errors: total variation over all pairs, a mean, to the training records, and the
log-likelihood of a held-out record (a fifth), nats, of (1 - 1e-4) p + 1e-4 / states for all. Exact, hence not private.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from benchmarks.cases.census import load
from benchmarks.cases.networks import MADE, network, there
from benchmarks.harness.main import Study, main
from benchmarks.harness.runs import Task, refuse, say
from benchmarks.protocol.directed import (
    EXACT,
    METHODS,
    NO_NOISE,
    PEOPLE,
    REFERENCES,
    judged,
    of_people,
    seconds,
    tables,
)

NETWORKS = ("asia", "sachs", "child", "alarm", "insurance")
#: The first is the one that targets are about.
EPSILONS = ("1", "0.1", "0.5", "3", "0.25")
TIMED = ("alarm", "hailfinder")
RECORDS, FEW = 10_000, 1000
DRAWS, SEEDS, BASE = 20, 5, 260_000


def work(task: Task, asked: Namespace) -> dict[str, Any]:
    """One run: its cell is "alarm 0.5", "time alarm" or "adult 1 pure"."""
    folder, records = asked.folder, FEW if asked.extent == "smoke" else RECORDS
    kind, *rest = task.cell.split()
    if kind == "adult":
        return of_people(task.method, folder, rest[0], rest[1], task.trial)
    if kind == "time":
        return seconds(network(folder / "bif", rest[0]), task.method, "1", records, task.trial)
    return judged(network(folder / "bif", kind), task.method, rest[0], records, task.trial)


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws, of what is here."""
    if asked.extent == "smoke":
        return {f"{MADE} 1": 1}
    bif = asked.folder / "bif"
    here = [name for name in NETWORKS if there(bif, name)]
    found = {f"{name} {epsilon}": asked.draws for epsilon in EPSILONS for name in here}
    found |= {f"time {name}": 1 for name in TIMED if there(bif, name)}
    if (asked.folder / "adult" / "adult.csv").is_file():
        found[f"adult {NO_NOISE}"] = 1
        found |= {
            f"adult {epsilon} {kind}": min(SEEDS, asked.draws) for epsilon in ("0.1", "1") for kind in ("pure", "delta")
        }
    left_out = [name for name in dict.fromkeys((*NETWORKS, *TIMED)) if not there(bif, name)]
    if not any(cell.startswith("adult") for cell in found):
        left_out.append("adult")
    if left_out:
        say(f"{asked.folder} has no {', '.join(left_out)}: left out; name a folder with bif/ and adult/")
    if not found:
        refuse("bayes_net has nothing to run: name a folder with bif/ or adult/, or ask for --smoke")
    return found


def serves(cell: str, draw: int, method: str) -> bool:
    """What needs no epsilon is run at one."""
    kind, *rest = cell.split()
    if kind == "adult":
        return method in (REFERENCES if cell.endswith(NO_NOISE) else PEOPLE)
    if kind == "time":
        return method in ("bayes-net", "bayes-net local")
    return method in METHODS and (method != EXACT or rest[0] == "1")


def arguments(parser: ArgumentParser) -> None:
    """How many draws."""
    parser.add_argument("--draws", type=int, default=DRAWS, help="of records and noise")


def check(asked: Namespace, cell: str) -> None:
    """Read the file of a cell."""
    kind, *rest = cell.split()
    if kind == "adult":
        load(asked.folder, "adult")
    else:
        network(asked.folder / "bif", rest[0] if kind == "time" else kind)


STUDY = Study(
    about=__doc__,
    name="bayes_net",
    data="bif/ and adult/",
    arguments=arguments,
    check=check,
    cells=cells,
    methods=[*METHODS, *PEOPLE, *REFERENCES],
    serves=serves,
    trial=lambda asked, cell, draw: BASE + draw,
    work=work,
    text=tables,
)

if __name__ == "__main__":
    main(STUDY)
