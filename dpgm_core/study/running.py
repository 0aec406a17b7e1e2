"""Execution of a study's open runs, in sequence or on several processes."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from dpgm_core.progress import Progress, check_progress, silent
from dpgm_core.study.asked import Study
from dpgm_core.study.folder import Folder
from dpgm_core.study.limit import check_limit
from dpgm_core.study.parallel import check_jobs, spread
from dpgm_core.study.result import StudyResult
from dpgm_core.study.single import Setting, Single, judge_of
from dpgm_core.study.store import Line, append

__all__ = ["run"]


def run(
    study: Study,
    folder: str | Path | None = None,
    *,
    jobs: int = 1,
    limit: float | None = None,
    retry: bool = False,
    progress: Progress = silent,
) -> StudyResult:
    """Do all runs of a study that are not in the folder yet, and tell what came of all.

    Records are drawn from the truth and noise from seeds: nobody's data are read, and no ledger is touched. folder:
    each finished run becomes a line of its `runs.jsonl` at once, and a study that was stopped goes on from there; None
    keeps all in memory. jobs: processes of one thread each; more than one needs joblib (extra `study`). The numbers do
    not depend on it, but for the seconds. limit: seconds for one run, after which it has failed. A run that fails is a
    result too, and is not tried again unless retry is True. Raises OptionError, also for a folder of another study,
    TooLarge for a truth that nothing can be drawn from, and ModelFileError.

    >>> from dpgm_core import Budget, Domain
    >>> from dpgm_core.study import generated_truth
    >>> truth = generated_truth(Domain.from_sizes({"a": 2, "b": 2}))
    >>> learners = ["naive-mle", {"name": "naive-mle", "l2": 0.1}]
    >>> study = Study(
    ...     truth=truth, neighbours="add-remove", budgets=Budget.pure(1), learners=learners, records=500, repeat=2
    ... )
    >>> [(row.method, row.runs, row.failures) for row in run(study).rows]
    [('naive-mle', 2, 0), ('naive-mle(l2=0.1)', 2, 0)]
    """
    check_progress(progress)
    check_jobs(jobs)
    check_limit(limit)
    store = None if folder is None else Folder(folder, study.facts())
    lines = [] if store is None else store.lines()
    known = {(line["key"], line["run"]): line for line in lines if not (retry and "error" in line)}
    waiting = _waiting(study, known, limit)
    done, total = len(study.cases) * study.repeat - len(waiting), len(study.cases) * study.repeat
    progress("runs", done, total)
    with nullcontext() if store is None or not waiting else store.writing() as file:
        for line in spread(Single.__call__, waiting, max(1, min(jobs, len(waiting)))):
            if file is not None:
                append(file, line)
            known[line["key"], line["run"]] = line
            done += 1
            progress("runs", done, total)
    ordered = [known[case.key, number] for case in study.cases for number in range(study.repeat)]
    return StudyResult.of(study, ordered)


def _waiting(study: Study, known: dict[tuple[str, int], Line], limit: float | None) -> list[Single]:
    """Every case's first run before any case's second, so that an early end leaves something everywhere."""
    setting = Setting(
        name=str(study.facts()),
        distribution=study.distribution,
        structure=study.structure,
        workload=study.workload,
        terms=study.terms,
        split=study.split,
        seed=study.seed,
        limit=limit,
    )
    missing = [
        Single(setting=setting, case=case, run=number)
        for number in range(study.repeat)
        for case in study.cases
        if (case.key, number) not in known
    ]
    if missing:
        judge_of(setting)  # a truth that nothing can be drawn from is refused, and is no failure of components
    return missing
