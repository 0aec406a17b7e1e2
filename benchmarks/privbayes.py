"""A directed graph chosen privately, beside selectors without direction: `privbayes`, `mst`, `aim`, `oneshot` on Adult.

    python -m benchmarks.privbayes [DIR] [--smoke|--full|--report] [--cells "adult 1"] [--seeds 5]

DIR, records, errors and trials are those of `benchmarks.selection`, and so are the rows of `mst`, `aim` and `oneshot`
in its cells: they are read from its store. Cells `pure` are for a pure epsilon, which `oneshot` does not serve. A
number is how many parents there may be, 2 where it is left out; with 3 sets of four attributes may be measured. The
order of the attributes is the domain's, or that of "sense", written down before its own first run
(`protocol/selecting.py`). The learner is `eb-map`, or `bayes-net` around it. The
selector's shares of the budget and its price of a cell were chosen on this table, on seeds 0 to 2.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import selection
from benchmarks.cases.coded import adult
from benchmarks.harness.alone import alone
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import having, markdown, marked
from benchmarks.harness.runs import Line, Task, read
from benchmarks.protocol.selecting import DIRECTED, directed

CELLS = ("adult 0.1", "adult 1", "pure 0.1", "pure 1")
KNOWN = ("mst", "aim", "oneshot")


def work(task: Task, asked: Namespace) -> Any:
    """One run: its cell is "adult 1" or "pure 1"."""
    kind, epsilon = task.cell.split()
    promise = "pure" if kind == "pure" else "approx"
    return alone(directed, task.method, adult(asked.folder / "adult"), promise, epsilon, task.trial)


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws."""
    return {"adult 0.1": 1} if asked.extent == "smoke" else dict.fromkeys(CELLS, asked.seeds)


def serves(cell: str, draw: int, method: str) -> bool:
    """What is in the store of selections is not run again; noisy scores take Gaussian noise."""
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
    return title + marked("table", markdown(head, rows))


STUDY = Study(
    about=__doc__,
    name="privbayes",
    data="adult/",
    arguments=selection.arguments,
    check=lambda asked, cell: adult(asked.folder / "adult"),
    cells=cells,
    methods=list(DIRECTED),
    serves=serves,
    work=work,
    text=tables,
)

if __name__ == "__main__":
    main(STUDY)
