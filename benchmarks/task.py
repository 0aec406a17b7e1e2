"""Task utility: classifiers trained on synthetic rows of whole programs and tested on real rows that were held out.

    DPGM_PEERS=FOLDER python -m benchmarks.task [DIR] [--smoke|--report] [--cells "adult 1"] [--cache FOLDER]

Cells are a table of `cases/tasks.py` and an epsilon, add-remove neighbours, N unknown, delta = 1e-9. A quarter of the
rows is held out, the same ones in all runs; programs see the other rows only. Classifiers are scikit-learn's gradient
boosting and logistic regression with their usual settings (`dpgm.comparison.task`), with the run's seed. `real` is
trained on the real rows that the programs have seen, and a loss is its accuracy less that of a program. `parity10` has
a target that depends on four other attributes jointly and on nothing of lower order; programs that take a workload are
asked for sets of five attributes there, and "dpgm auto (default workload)" is not.

Programs, limits, environments and the cache are those of `benchmarks.peers`.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.cases.coded import Coded
from benchmarks.cases.tasks import TASKS, by_name, task_rows
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import grouped, having, section
from benchmarks.harness.runs import Line, Task, say
from benchmarks.peers.whole_peer import (
    OURS,
    OVER_LIMIT,
    WHOLE,
    add_run_options,
    draws_of,
    synthesize,
    whole_missing,
)
from benchmarks.protocol.selecting import DELTA
from dpgm.comparison.task import LEARNERS, measure_task

EPSILONS = ("0.1", "1", "10")
REAL, DEFAULT = "real", f"{OURS} (default workload)"


def work(task: Task, asked: Namespace) -> Mapping[str, Any]:
    """One run of a program, and what classifiers make of its rows."""
    name, epsilon = task.cell.split()
    train, test = task_rows(asked.folder, name)
    if asked.extent == "smoke":
        train = Coded(domain=train.domain, codes=train.codes[:1000])
    if task.method == REAL:
        return _scores(name, train, test, task.trial)
    order = None if task.method == DEFAULT else TASKS[name].order
    program = OURS if task.method == DEFAULT else task.method
    run = synthesize(program, train, epsilon, DELTA, task.trial, limit=asked.limit, cache=asked.cache, order=order)
    facts = {key: value for key, value in run.facts.items() if key != "exact"}
    return facts if run.records is None else facts | _scores(name, run.records, test, task.trial)


def _scores(name: str, train: Coded, test: Coded, seed: int) -> dict[str, Any]:
    """Return accuracy and AUC of each classifier, with the standard error of the test rows."""
    task = TASKS[name]
    scores = measure_task(by_name(train), by_name(test), task.target, seed, task.ordered)
    found: dict[str, Any] = {}
    for one in scores:
        auc = None if one.auc is None else round(one.auc, 5)
        found[one.learner] = {"accuracy": round(one.accuracy, 5), "auc": auc, "error": round(one.accuracy_error, 5)}
    truth = by_name(test)[task.target]
    return found | {"commonest": round(float(np.bincount(truth).max() / len(truth)), 5)}


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws; those whose tables are there."""
    if asked.extent == "smoke":
        return {"parity10 10": 1}
    found = {}
    for name, task in TASKS.items():
        if why := task.missing(asked.folder):
            say(f"{name} is left out: {why}")
        else:
            found |= {f"{name} {epsilon}": asked.seeds for epsilon in EPSILONS}
    return found


def serves(cell: str, draw: int, method: str) -> bool:
    """Whether a method runs on this draw; real rows are trained on once for each seed, in the cell of epsilon 1."""
    name, epsilon = cell.split()
    if draw >= draws_of(OURS if method in (REAL, DEFAULT) else method, cell):
        return False
    if method == REAL:
        return epsilon == EPSILONS[-1]
    if method == DEFAULT:
        return TASKS[name].order is not None
    return epsilon == "1" or (name, method) not in OVER_LIMIT


def missing(method: str) -> str | None:
    """Return why a method cannot run here."""
    return whole_missing(method) if method in WHOLE else None


def check(asked: Namespace, cell: str) -> None:
    """Read a table."""
    task_rows(asked.folder, cell.split()[0])


# --- The report ---


def tables(lines: Sequence[Line]) -> str:
    """The loss of dpgm beside that of the best peer in each cell, then every program's accuracy and AUC."""
    parts = ["# Task utility\n", _bars(lines)]
    parts += [_learner(lines, learner) for learner in LEARNERS]
    return "\n".join(part for part in parts if part)


def _scored(lines: Sequence[Line], learner: str, **facts: str) -> list[Line]:
    return [line for line in having(lines, **facts) if learner in line]


def _mean(lines: Sequence[Line], learner: str, key: str) -> float:
    return float(np.mean([line[learner][key] for line in lines]))


def _real(lines: Sequence[Line], table: str, learner: str) -> list[Line]:
    return [line for line in _scored(lines, learner, method=REAL) if line["cell"].split()[0] == table]


def _bars(lines: Sequence[Line]) -> str:
    """Losses against real, cell by cell: dpgm's, the best peer's, and whether dpgm's is at most that."""
    rows, counts = [], {"met": 0, "missed within error": 0, "missed": 0}
    for learner in LEARNERS:
        for cell in grouped(lines, "cell"):
            real = _real(lines, cell.split()[0], learner)
            ours = _scored(lines, learner, cell=cell, method=OURS)
            peers = {one: _scored(lines, learner, cell=cell, method=one) for one in WHOLE}
            peers = {one: some for one, some in peers.items() if some}
            if not (real and ours and peers):
                continue
            best = max(peers, key=lambda one: _mean(peers[one], learner, "accuracy"))
            base = _mean(real, learner, "accuracy")
            mine, theirs = _mean(ours, learner, "accuracy"), _mean(peers[best], learner, "accuracy")
            error = max(line[learner]["error"] for line in ours)
            if base <= ours[0]["commonest"] + 2 * error:  # there is nothing to lose
                continue
            met = "met" if mine >= theirs else "missed within error" if theirs - mine <= 2 * error else "missed"
            counts[met] += 1
            losses = [_loss(base, some, learner) for some in (ours, peers[best])]
            rows.append([learner, cell, f"{base:.3f}", losses[0], best, losses[1], f"{error:.3f}", met])
    head = ["classifier", "cell", "real", "loss of dpgm", "best peer", "its loss", "error", "bar"]
    said = (
        "Accuracy lost against training on real rows, means over seeds (least to most). `error` is the standard "
        "error of an accuracy from the number of test rows. `met`: dpgm loses at most what the best peer loses; "
        "`missed within error`: it loses more, by at most two standard errors. Cells in which training on real rows "
        "does not beat the commonest label by as much are left out. Cells that three seeds left missed "
        "within the error were run again, with ten seeds of dpgm and of the best peer; those met within it were not.\n"
        f"Cells: {', '.join(f'{count} {what}' for what, count in counts.items())}.\n"
    )
    return section("The bar, cell by cell", head, rows, name="bar", said=said)


def _loss(base: float, lines: Sequence[Line], learner: str) -> str:
    losses = [base - line[learner]["accuracy"] for line in lines]
    spread = f"({min(losses):.3f} to {max(losses):.3f})" if len(losses) > 1 else "(one seed)"
    return f"{np.mean(losses):.3f} {spread}"


def _learner(lines: Sequence[Line], learner: str) -> str:
    """Accuracy and AUC of every program; the least and the most over seeds in brackets."""
    names = list(grouped([line | {"table": line["cell"].split()[0]} for line in lines], "table"))
    rows = []
    for program in (REAL, OURS, DEFAULT, *WHOLE):
        for epsilon in EPSILONS:
            row = [program, "-" if program == REAL else epsilon]
            for name in names:
                cell = {} if program == REAL else {"cell": f"{name} {epsilon}"}
                some = _scored(lines, learner, method=program, **cell)
                some = [line for line in some if line["cell"].split()[0] == name]
                row.append(_accuracy(some, learner))
            if set(row[2:]) != {"-"}:
                rows.append(row)
            if program == REAL:
                break
    said = f"Commonest label: {', '.join(_commonest(lines, name) for name in names)}. Accuracy (least-most), AUC.\n"
    return section(learner.capitalize(), ["trained on", "epsilon", *names], rows, said=said)


def _accuracy(lines: Sequence[Line], learner: str) -> str:
    if not lines:
        return "-"
    values = [line[learner]["accuracy"] for line in lines]
    spread = f" ({min(values):.3f}-{max(values):.3f})" if len(values) > 1 else " (one seed)"
    areas = [line[learner]["auc"] for line in lines if line[learner]["auc"] is not None]
    return f"{np.mean(values):.3f}{spread}, {np.mean(areas):.3f}" if areas else f"{np.mean(values):.3f}{spread}"


def _commonest(lines: Sequence[Line], name: str) -> str:
    share = next((line["commonest"] for line in lines if line["cell"].split()[0] == name and "commonest" in line), None)
    return f"{name} -" if share is None else f"{name} {share:.3f}"


def arguments(parser: ArgumentParser) -> None:
    """The limit of a run, and the cache."""
    add_run_options(parser, 300)


STUDY = Study(
    about=__doc__,
    name="task",
    data="adult/ and nist_acs_ma2019/",
    arguments=arguments,
    check=check,
    cells=cells,
    methods=[REAL, OURS, DEFAULT, *WHOLE],
    serves=serves,
    missing=missing,
    work=work,
    text=tables,
)

if __name__ == "__main__":
    main(STUDY)
