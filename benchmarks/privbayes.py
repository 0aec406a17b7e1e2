"""A directed graph chosen privately, beside selectors without direction: `privbayes`, `mst`, `aim`, `oneshot` on Adult.

    python -m benchmarks.privbayes [DIR] [--smoke|--full|--report] [--cells "adult 1"] [--seeds 5]

DIR, records, errors and trials are those of `benchmarks.selection`, and so are the rows of `mst`, `aim` and `oneshot`
in its cells: they are read from its store. Cells `pure` are for a pure epsilon, which `oneshot` does not serve. A
number is how many parents there may be, 2 where it is left out; with 3 sets of four attributes may be measured. The
order of the attributes is the domain's, or that of "sense", written down before its own first run
(`protocol/selecting.py`). The learner is `eb-map`, or `bayes-net` around it. The
selector's shares of the budget and its price of a cell were chosen on this table, on seeds 0 to 2.

Cells "parity 8 1" are generated networks of 8 attributes at a pure epsilon of 1, a network and 10,000 records of its
own for each seed from 390000 on; KL of the truth to the model, nats. "One at a time" is `privbayes` as it is where
there are too many candidates to choose pairs of parents together; "graph known" pays for no choice.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks import selection
from benchmarks.cases.coded import adult
from benchmarks.cases.networks import drawn_network
from benchmarks.harness.alone import alone
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import having, markdown, marked, section
from benchmarks.harness.runs import Line, Task, read
from benchmarks.protocol.selecting import DIRECTED, directed
from dpgm_core import Budget, SeededRandomness, Terms, Workload, fit

CELLS = ("adult 0.1", "adult 1", "pure 0.1", "pure 1")
KNOWN = ("mst", "aim", "oneshot")
NETWORKS = tuple(
    f"{kind} {size} {at}" for kind in ("parity", "dirichlet") for size in (5, 8, 12) for at in ("1", "100")
)
TOGETHER, BY_ONE, GIVEN = "privbayes + bayes-net", "privbayes + bayes-net, one at a time", "graph known"
NETWORK_METHODS = (TOGETHER, BY_ONE, GIVEN)
BASE, RECORDS, TERMS = 390_000, 10_000, Terms(neighbours="add-remove")


def of_network(method: str, kind: str, size: int, epsilon: str, seed: int) -> dict[str, float]:
    """`kl`, nats, and the CPU seconds of a run on a generated network."""
    network = drawn_network(kind, size, seed)
    domain, start = network.dag.domain, time.process_time()
    with patch("dpgm_select.privbayes._MOST_CANDIDATES", 0) if method == BY_ONE else nullcontext():
        done = fit(
            network.records(RECORDS, seed),
            network.dag.structure() if method == GIVEN else {"name": "privbayes"},
            Budget.pure(epsilon),
            learner="bayes-net",
            workload=None if method == GIVEN else Workload.all(domain, order=3),
            terms=TERMS,
            randomness=SeededRandomness(seed),
        )
    return {"kl": network.model.kl(done.model), "seconds": round(time.process_time() - start, 3)}


def work(task: Task, asked: Namespace) -> Any:
    """One run: its cell is "adult 1", "pure 1" or "parity 8 1"."""
    if task.cell in NETWORKS:
        kind, size, epsilon = task.cell.split()
        return of_network(task.method, kind, int(size), epsilon, task.trial)
    kind, epsilon = task.cell.split()
    promise = "pure" if kind == "pure" else "approx"
    return alone(directed, task.method, adult(asked.folder / "adult"), promise, epsilon, task.trial)


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws."""
    if asked.extent == "smoke":
        return {"adult 0.1": 1, NETWORKS[0]: 1}
    seeds = asked.seeds or selection.SEEDS
    return dict.fromkeys(CELLS, seeds) | dict.fromkeys(NETWORKS, 2 * seeds)


def serves(cell: str, draw: int, method: str) -> bool:
    """What is in the store of selections is not run again; noisy scores take Gaussian noise."""
    if cell in NETWORKS:
        return method in NETWORK_METHODS
    if method in (BY_ONE, GIVEN):
        return False
    return method not in KNOWN or (cell.startswith("pure") and method != "oneshot")


def tables(lines: Sequence[Line]) -> str:
    """Means over the seeds, and over those of `mst` on the same seeds."""
    known = [line for line in read(selection.STUDY.committed) if line["method"] in KNOWN and "error3" in line]
    all_lines = [line for line in [*lines, *known] if "error3" in line]
    rows = []
    for cell in CELLS:
        here = having(all_lines, cell=cell)
        seeds = {line["trial"] for line in having(lines, cell=cell)}
        base = {line["trial"]: line for line in having(here, method="mst")}
        for method in DIRECTED:
            some = [line for line in having(here, method=method) if line["trial"] in seeds]
            if some:
                both = [(line["error3"], base[line["trial"]]["error3"]) for line in some if line["trial"] in base]
                ratio = float(np.exp(np.mean([np.log(ours / theirs) for ours, theirs in both]))) if both else None
                kind, epsilon = cell.split()
                means = [float(np.mean([line[key] for line in some])) for key in ("error3", "error2", "seconds")]
                rows.append([epsilon if kind == "pure" else f"{epsilon}, 1e-9", method, f"{means[0]:.4f}"])
                rows[-1] += ["-" if ratio is None else f"{ratio:.2f}", f"{means[1]:.4f}", f"{means[2]:.1f}"]
                rows[-1] += [str(len(some))]
    head = ["epsilon, delta", "method", "3-way L1", "over mst's", "2-way TV", "CPU s", "seeds"]
    title = "# A directed graph, chosen privately\n\n"
    return title + marked("table", markdown(head, rows)) + "\n" + _networks(lines)


def _networks(lines: Sequence[Line]) -> str:
    """KL on generated networks, means over networks."""
    rows = []
    for cell in NETWORKS:
        found = [[line["kl"] for line in having(lines, cell=cell, method=method)] for method in NETWORK_METHODS]
        if any(found):
            means = [f"{np.mean(some):.4f} ({max(some):.3f})" if some else "-" for some in found]
            rows.append([*cell.split(), *means, str(max(map(len, found)))])
    head = ["truth", "attributes", "epsilon", *NETWORK_METHODS, "networks"]
    said = "KL, nats, mean (largest).\n"
    return section("Generated networks", head, rows, "networks", said)


STUDY = Study(
    about=__doc__,
    name="privbayes",
    data="adult/",
    arguments=selection.arguments,
    check=lambda asked, cell: None if cell in NETWORKS else adult(asked.folder / "adult"),
    trial=lambda asked, cell, draw: BASE + draw if cell in NETWORKS else draw,
    cells=cells,
    methods=[*DIRECTED, BY_ONE, GIVEN],
    serves=serves,
    work=work,
    text=tables,
)

if __name__ == "__main__":
    main(STUDY)
