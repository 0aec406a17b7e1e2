"""Runs of a study and the folder of their results."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpgm.study.one_run import MEASURES, Setting, StudyRun, check_limit
from dpgm.study.result import StudyResult
from dpgm.study.store import Line, check_jobs, run_tasks
from dpgm.study.study import KINDS, Study
from dpgm_core._util.files import atomic_write, bounded_bytes, check_writable, plain
from dpgm_core._util.progress import Progress, check_progress, silent
from dpgm_core.errors import ModelFileError, OptionError

__all__ = ["Folder", "RUNS", "run"]


# --- Folder ---

#: Lines of finished runs, and what they have in common.
RUNS, ASKED = "runs.jsonl", "study.json"
#: Beyond it a measure is infinite or was not computed by a run.
_MAX_FINITE = 1e100
_FACT_NAMES = {
    "truth": "truth",
    "structure": "cliques to measure",
    "workload": "workload",
    "terms": "neighbours or other terms",
    "split": "split of the budget",
    "seed": "seed",
    "dpgm-core": "version of dpgm-core",
}


class Folder:
    """The folder of finished runs. facts: `Study.facts`.

    Raises OptionError if the folder holds a study of other facts, ModelFileError if it cannot be used.
    """

    def __init__(self, path: str | Path, facts: Mapping[str, Any]) -> None:
        self.path = Path(path)
        known = self._read_facts()
        if known is None:
            if self.path.is_dir() and any(self.path.iterdir()):
                raise OptionError(f"{self.path} has files in it and no {ASKED} of a study; name a new folder with -o")
            check_writable(self.path / ASKED)
            content = json.dumps({"dpgm-study": 1, **plain(facts)}, indent=1).encode() + b"\n"
            atomic_write(self.path / ASKED, content)
        else:
            self._compare(known, plain(facts))

    def _read_facts(self) -> Any:
        path = self.path / ASKED
        try:
            if not path.exists():
                return None
            known = json.loads(bounded_bytes(path, 2**20))
        except (OSError, ValueError, RecursionError):
            known = None
        if not isinstance(known, dict) or known.get("dpgm-study") != 1:
            raise ModelFileError(f"{path} is not a file of dpgm study; name another folder with -o")
        return known

    def _compare(self, known: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        other = [what for key, what in _FACT_NAMES.items() if known.get(key) != facts[key]]
        if other:
            raise OptionError(
                f"{self.path} holds runs of another study: its {' and its '.join(other)} is not this one's, so "
                "results could not be compared; name another folder with -o, undo the change, or delete the folder. "
                "Other components, budgets, sizes and repeats may change: finished runs are not repeated"
            )


def _key(line: Line) -> tuple[str, int]:
    """Return case and run of a line; raises KeyError, TypeError or ValueError if no run wrote it, as after an edit."""
    texts = [line["key"], *(line[kind] for kind in KINDS)]
    texts += [line["error"], line["message"]] if "error" in line else []
    texts += [line["unanswered"]] if "unanswered" in line else []
    if type(line["run"]) is not int or not all(isinstance(one, str) for one in texts):
        raise TypeError
    for measure in MEASURES:
        value = float(line[measure]) if line.get(measure) is not None else 0.0
        if not (0 <= value < _MAX_FINITE or math.isinf(value)):
            raise ValueError
    return line["key"], line["run"]


# --- Execution ---


def run(
    study: Study,
    folder: str | Path | None = None,
    *,
    jobs: int = 1,
    limit: float | None = None,
    retry: bool = False,
    progress: Progress = silent,
) -> StudyResult:
    """Run all runs of a study that are not in the folder yet, and return all results.

    Parameters
    ----------
    study : Study
    folder : path, optional
        Each finished run is appended to its `runs.jsonl` at once, and a stopped study continues from there. None holds
        all results in memory.
    jobs : int
        Number of processes of one thread each; more than one needs joblib (extra `study`). The numbers do not depend on
        it, except for the seconds.
    limit : float, optional
        Seconds for one run, after which it has failed.
    retry : bool
        Whether to repeat failed runs, which are otherwise results too.
    progress : Progress

    Raises
    ------
    OptionError
        Also for the folder of another study.
    TooLarge
        For a truth from which nothing can be drawn.
    ModelFileError
        If the folder cannot be read or written.

    Notes
    -----
    Records are drawn from the truth and noise from seeds: no data are read, and no ledger is charged.

    Examples
    --------
    >>> from dpgm_core import Budget, Domain
    >>> from dpgm.study import generated_truth
    >>> truth = generated_truth(Domain.from_sizes({"a": 2, "b": 2}))
    >>> learners = ["naive-mle", {"name": "naive-mle", "l2": 0.1}]
    >>> study = Study(
    ...     truth=truth, neighbours="add-remove", budgets=Budget.pure(1), learners=learners, records=500, repeat=2
    ... )
    >>> [(row.method, row.runs, row.failures) for row in run(study).rows]
    [('naive-mle', 2, 0), ('naive-mle(l2=0.1)', 2, 0)]
    """
    check_limit(limit)
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
    # Every case's first run before any case's second, so that an early stop covers all cases.
    tasks = {
        (case.key, number): StudyRun(setting=setting, case=case, run=number)
        for number in range(study.repeat)
        for case in study.cases
    }
    check_progress(progress)
    check_jobs(jobs)
    path = None if folder is None else Folder(folder, study.facts()).path / RUNS
    lines = run_tasks(StudyRun.__call__, tasks, path, key=_key, jobs=jobs, retry=retry, progress=progress)
    return StudyResult.of(study, [lines[case.key, number] for case in study.cases for number in range(study.repeat)])
