"""Runs of a study: workers and the folder of results."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, TypeVar

from dpgm.study.one_run import MEASURES, Line, Setting, StudyRun, append, check_limit, judge_of, parse_lines, rewrite
from dpgm.study.result import StudyResult
from dpgm.study.study import KINDS, Study
from dpgm_core._util.files import atomic_write, bounded_bytes, check_writable, plain
from dpgm_core._util.progress import Progress, check_progress, silent
from dpgm_core.errors import ModelFileError, OptionError

__all__ = ["Folder", "RUNS", "check_jobs", "run", "spread"]


# --- Workers ---

Task = TypeVar("Task")
Result = TypeVar("Result")


def check_jobs(jobs: int) -> None:
    """Refuse, with OptionError, a number of processes that cannot be had here."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise OptionError(f"jobs must be a whole number of at least 1, got {jobs!r}")
    if jobs > 1:
        _joblib()


def spread(call: Callable[[Task], Result], tasks: Iterable[Task], jobs: int) -> Iterator[Result]:
    """Yield the result of `call` for each task: in order and in this process with one job, otherwise as each is done.

    call, tasks: picklable if there are several jobs. Processes have one thread each, and end with this one.
    """
    if jobs == 1:
        yield from map(call, tasks)
        return
    joblib = _joblib()
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        # One task at a time and unordered, so that a result is kept as soon as it is there; nothing goes through files.
        parallel = joblib.Parallel(
            n_jobs=jobs, batch_size=1, pre_dispatch=2 * jobs, return_as="generator_unordered", max_nbytes=None
        )
    yield from parallel(joblib.delayed(call)(task) for task in tasks)


def _joblib() -> Any:
    try:
        import joblib
    except ImportError:
        raise OptionError(
            "several jobs need joblib, which is not installed: pip install 'dpgm[study]', or take one job"
        ) from None
    return joblib


# --- Folder ---

#: Lines of finished runs, and what they have in common.
RUNS, ASKED = "runs.jsonl", "study.json"
_MAX_FILE_BYTES = 2**30
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
        self.dropped = 0
        known = self._read_facts()
        if known is None:
            if self.path.is_dir() and any(self.path.iterdir()):
                raise OptionError(f"{self.path} has files in it and no {ASKED} of a study; name a new folder with -o")
            check_writable(self.path / ASKED)
            content = json.dumps({"dpgm-study": 1, **plain(facts)}, indent=1).encode() + b"\n"
            atomic_write(self.path / ASKED, content)
        else:
            self._compare(known, plain(facts))

    @property
    def _runs(self) -> Path:
        return self.path / RUNS

    def lines(self) -> list[Line]:
        """Finished runs. What a kill left of a line, and what no run wrote, is dropped, from the file too; `dropped`
        says how many."""
        if not self._runs.exists():
            return []
        try:
            content = bounded_bytes(self._runs, _MAX_FILE_BYTES)
        except (OSError, ValueError) as error:
            raise ModelFileError(f"cannot read {self._runs}: {error}") from None
        whole, broken = parse_lines(content, _check_line)
        self.dropped = len(broken)
        if self.dropped or not content.endswith(b"\n"):
            rewrite(self._runs, whole)
        return whole

    @contextmanager
    def writing(self) -> Iterator[IO[str]]:
        """The file of runs, to append lines to."""
        try:
            with self._runs.open("a", encoding="utf-8") as file:
                yield file
        except OSError as error:
            raise ModelFileError(f"cannot write {self._runs}: {error.strerror or error}") from None

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


def _check_line(line: Line) -> None:
    """Raise KeyError, TypeError or ValueError for a line that no run wrote; people can edit the file."""
    texts = [line["key"], *(line[kind] for kind in KINDS)]
    texts += [line["error"], line["message"]] if "error" in line else []
    texts += [line["unanswered"]] if "unanswered" in line else []
    if type(line["run"]) is not int or not all(isinstance(one, str) for one in texts):
        raise TypeError
    for measure in MEASURES:
        value = float(line[measure]) if line.get(measure) is not None else 0.0
        if not (0 <= value < _MAX_FINITE or math.isinf(value)):
            raise ValueError


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
    check_progress(progress)
    check_jobs(jobs)
    check_limit(limit)
    store = None if folder is None else Folder(folder, study.facts())
    lines = [] if store is None else store.lines()
    known = {(line["key"], line["run"]): line for line in lines if not (retry and "error" in line)}
    waiting = _runs_left(study, known, limit)
    done, total = len(study.cases) * study.repeat - len(waiting), len(study.cases) * study.repeat
    progress("runs", done, total)
    with nullcontext() if store is None or not waiting else store.writing() as file:
        for line in spread(StudyRun.__call__, waiting, max(1, min(jobs, len(waiting)))):
            if file is not None:
                append(file, line)
            known[line["key"], line["run"]] = line
            done += 1
            progress("runs", done, total)
    ordered = [known[case.key, number] for case in study.cases for number in range(study.repeat)]
    return StudyResult.of(study, ordered)


def _runs_left(study: Study, known: dict[tuple[str, int], Line], limit: float | None) -> list[StudyRun]:
    """Return the open runs: every case's first run before any case's second, so that an early stop covers all cases."""
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
        StudyRun(setting=setting, case=case, run=number)
        for number in range(study.repeat)
        for case in study.cases
        if (case.key, number) not in known
    ]
    if missing:
        judge_of(setting)  # a truth that nothing can be drawn from is refused, and is no failure of components
    return missing
