"""SDNist's report on synthetic records of NIST's Massachusetts excerpt: its k-marginal score and inconsistent rows.

    python -m benchmarks.sdnist [DIR] [--smoke|--full|--report] [--cells "ten 1"] [--seeds 3] [--limit 600]

DIR holds `nist_acs_ma2019`. SDNist has an environment of its own, as `python -m benchmarks.peers --install FOLDER`
makes it (2.4, on Python 3.11). A cell is a set of columns and an epsilon, at delta = 1e-6 and under
add-remove neighbours; a trial is a seed. "ten" are the columns of SDNist's sample reports, "all" all 24, "more" the ten
of 27,253 rows drawn with replacement from the excerpt, as many as national2019 has, by the trial's seed; these rows are
then what SDNist compares with.

The columns are those of `cases/acs.py`, with the survey's rules as constraints, the workload is what the score is the
mean of, the learner is `eb-map` for the records themselves, and rows are drawn "rounded", as many as there are true
ones. `dpgm` finds the bins of incomes and weights privately, for a share of the budget; "public bins" has those by hand
for them too, which the peers get, whose rows get numbers inside the bins as dpgm's do. mbi's AIM and MST are those of
`peers/whole_peer.py`, without constraints. "Fresh sample" is no release: as many rows drawn from the excerpt with
replacement, so that its score is what the sampling of as many persons costs.

Scores are computed by SDNist's own classes; at the first seed of `dpgm`, epsilon = 1, its whole report of "ten" and
"all" is made, whose file must say the same. `score` is the report's, rounded down, `exact` the same before that,
`subsample` the per cent of the true rows that score as much, and `inconsistent` how many rows break one of its rules.
Rules and labels are those that are published. That ages stand in bins of five years, that incomes and weights have
private bins and that areas are part of the workload was settled before the first reported run, after looks at the
scores of seeds 1 and 2.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.cases.acs import TEN, acs_domain, acs_table, acs_workload, as_published, decode, encode
from benchmarks.cases.coded import Coded
from benchmarks.harness.alone import alone
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import having, section
from benchmarks.harness.runs import Line, Task, say
from benchmarks.peers import sdnist_worker
from benchmarks.peers.environments import FOLDER, python_of
from benchmarks.peers.whole_peer import synthesize, whole_missing
from dpgm_core import Budget, SeededRandomness, fit

DPGM, PUBLIC, FRESH = "dpgm", "dpgm, public bins", "fresh sample"
PEERS = ("mbi mst", "mbi aim")
METHODS = (DPGM, PUBLIC, *PEERS, FRESH)
#: What of a report is printed, and digits after the point.
FACTS = {"exact": 1, "inconsistent": 0}
COLUMNS = {"ten": "10, 7,634", "all": "24, 7,634", "more": "10, 27,253 drawn"}
CELLS = ("ten 1", "ten 10", "all 1", "all 10", "more 1")
#: Cells of which SDNist's whole report is made once.
REPORTED = ("ten 1", "all 1")
DELTA, NATIONAL, SMOKE_ROWS = "1e-6", 27_253, 500
#: Trials of reported runs begin here.
BASE = 1000


def make_records(
    table: pa.Table, method: str, epsilon: str, seed: int, folder: Path, limit: int
) -> tuple[pa.Table | None, dict[str, Any]]:
    """Return synthetic records as texts, with CPU seconds; or no records, and `ended`."""
    names, generator = table.column_names, np.random.default_rng(seed + 1)
    start = time.process_time()
    if method == FRESH:
        return table.take(generator.integers(table.num_rows, size=table.num_rows)), {}
    domain = acs_domain(folder, names, private=method == DPGM)
    if method in PEERS:
        coded = Coded(domain=domain, codes=encode(table, domain))
        run = synthesize(method, coded, epsilon, DELTA, seed, limit=limit)
        return None if run.records is None else decode(run.records.codes, domain, generator), run.facts
    model = fit(
        table,
        "auto",
        Budget.approx(epsilon, DELTA),
        learner={"name": "eb-map", "target": "records"},
        workload=acs_workload(domain),
        neighbours="add-remove",
        randomness=SeededRandomness(seed),
    ).model
    made = model.sample(table.num_rows, method="rounded", form="texts", randomness=SeededRandomness(seed))
    return as_published(made), {"seconds": round(time.process_time() - start, 1)}


def measure(
    cell: str, seed: int, method: str, folder: Path, rows: int | None = None, limit: int = 600
) -> dict[str, Any]:
    """Return what the report says of one run, with CPU seconds; or `ended`, what happened instead. rows: drawn."""
    kind, epsilon = cell.split()
    target, whole = None, acs_table(folder)
    if kind == "more":
        whole = whole.take(np.random.default_rng(seed).integers(whole.num_rows, size=rows or NATIONAL))
        target = [whole.column_names, *rows_of(whole)]
    made, found = make_records(whole if kind == "all" else whole.select(TEN), method, epsilon, seed, folder, limit)
    python = python_of("sdnist")
    if made is None or python is None:  # without SDNist only a smoke run comes here
        return found
    full = seed == BASE and method == DPGM and cell in REPORTED
    given = (str(folder), made.column_names, target, rows_of(made), full)
    return found | alone(sdnist_worker.report, *given, python=str(python), limit=1200)


def rows_of(table: pa.Table) -> list[list[str]]:
    """Return the records as lists of texts."""
    return [list(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def work(task: Task, asked: Namespace) -> Any:
    """One run, in a process of its own."""
    from benchmarks.sdnist import measure as run  # by its module, which is __main__ here

    rows = SMOKE_ROWS if asked.extent == "smoke" else None
    return alone(run, task.cell, task.trial, task.method, _excerpt(asked), rows, asked.limit)


def _excerpt(asked: Namespace) -> Path:
    return Path(asked.folder, "nist_acs_ma2019")


def cells(asked: Namespace) -> dict[str, int]:
    """Return cell -> seeds."""
    if asked.extent != "smoke":
        return dict.fromkeys(CELLS, asked.seeds)
    if not _excerpt(asked).is_dir():
        say(f"left out: there is no {_excerpt(asked)}")
        raise SystemExit(0)
    return {"more 1": 1}


def serves(cell: str, draw: int, method: str) -> bool:
    """Bins differ where all columns are; AIM is slow there, and a fresh sample has no epsilon."""
    kind, epsilon = cell.split()
    if method == FRESH:
        return epsilon == "1"
    return kind == "all" or method != PUBLIC


def missing(method: str) -> str | None:
    """Return why a method cannot run here."""
    return whole_missing(method) if method in PEERS else None


def check(asked: Namespace, cell: str) -> None:
    """Read the excerpt, and refuse what would not be scored."""
    acs_domain(_excerpt(asked))
    if asked.extent != "smoke" and python_of("sdnist") is None:
        raise ValueError(f"{FOLDER} names no folder with sdnist; python -m benchmarks.peers --install FOLDER makes it")


def arguments(parser: ArgumentParser) -> None:
    """How often, and for how long."""
    parser.add_argument("--seeds", type=int, default=3, help="seeds of a cell")
    parser.add_argument("--limit", type=int, default=600, help="CPU seconds for a run of a peer")


def tables(lines: Sequence[Line]) -> str:
    """Return the scores, means with least and most."""
    rows = [
        _row(cell, method, scored)
        for cell in CELLS
        for method in METHODS
        if (scored := [line for line in having(lines, cell=cell, method=method) if "score" in line])
    ]
    ended = [[line["cell"], line["method"], line["trial"], line["ended"]] for line in lines if "ended" in line]
    head = ["columns, rows", "epsilon", "method", "k-marginal", "inconsistent rows", "CPU s", "seeds"]
    said = f"delta = {DELTA}. Means, with the least and the most of the seeds; CPU seconds are the most.\n"
    parts = [
        section("Scores of SDNist's report", head, rows, "table", said),
        section("Without a result", ["cell", "method", "seed", "what happened"], ended),
    ]
    return "\n".join(filter(None, parts))


def _row(cell: str, method: str, scored: Sequence[Line]) -> list[object]:
    kind, epsilon = cell.split()
    columns = [_spread([line[key] for line in scored], digits) for key, digits in FACTS.items()]
    seconds = max(line.get("seconds", 0) for line in scored)
    real = method == FRESH
    return [COLUMNS[kind], "-" if real else epsilon, method, *columns, "-" if real else f"{seconds:.0f}", len(scored)]


def _spread(values: Sequence[float], digits: int = 1) -> str:
    least, most = min(values), max(values)
    mean = f"{np.mean(values):.{digits}f}"
    return mean if least == most else f"{mean} ({least:.{digits}f} to {most:.{digits}f})"


STUDY = Study(
    about=__doc__, name="sdnist", data="nist_acs_ma2019", arguments=arguments, check=check, cells=cells,
    methods=METHODS, serves=serves, missing=missing, work=work, text=tables,
    trial=lambda asked, cell, draw: BASE + draw,
)  # fmt: skip

if __name__ == "__main__":
    main(STUDY)
