"""Tasks that resume: a file with a line of JSON for each finished run, and the processes that make missing ones."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

from dpgm_core._util.files import bounded_bytes
from dpgm_core._util.progress import Progress, check_progress, silent
from dpgm_core.errors import ModelFileError, OptionError

__all__ = ["Line", "check_jobs", "read_lines", "run_tasks"]

Line = dict[str, Any]
Key = TypeVar("Key", bound=Hashable)
Task = TypeVar("Task")
Result = TypeVar("Result")

_MAX_FILE_BYTES = 2**30


def run_tasks(
    call: Callable[[Task], Line],
    tasks: Mapping[Key, Task],
    path: str | Path | None = None,
    *,
    key: Callable[[Line], Key],
    jobs: int = 1,
    retry: bool = False,
    progress: Progress = silent,
    notify: Callable[[str], None] = lambda message: None,
) -> dict[Key, Line]:
    """Run every task that has no line in a file yet, and return the lines of all tasks.

    `run` does so with the runs of a study; call it for an experiment of your own.

    Parameters
    ----------
    call : function
        From a task to its line, a dict of plain values. A line with the key "error" is that of a failed run. An error
        that it raises ends the others too.
    tasks : mapping
        Tasks by key, in the order in which they run.
    path : path, optional
        File of JSON lines. Each line is appended, flushed and synced as soon as its run has finished, so that tasks
        that were stopped continue from there. None holds all lines in memory.
    key : function
        From a line to the key of its task. Raises KeyError, TypeError or ValueError for a line that no run wrote.
    jobs : int
        Number of processes of one thread each; more than one needs joblib (extra `study`), and tasks that pickle.
    retry : bool
        Whether to repeat failed runs.
    progress : Progress
    notify : function
        Receives one sentence where lines of the file were dropped.

    Raises
    ------
    OptionError
        For an invalid number of jobs, and where another process is writing to the file.
    ModelFileError
        If the file cannot be read or written.

    Notes
    -----
    A kill loses the runs under way and no finished line. Lines that are broken or that no run wrote are dropped once
    the file has been copied to NAME.broken-TIME. Of two lines with one key the later counts.

    Examples
    --------
    >>> def square(number):
    ...     return {"number": number, "square": number**2}
    >>> run_tasks(square, {2: 2, 3: 3}, key=lambda line: line["number"])
    {2: {'number': 2, 'square': 4}, 3: {'number': 3, 'square': 9}}
    """
    check_progress(progress)
    check_jobs(jobs)
    path = None if path is None else Path(path)

    def found_in(lines: Iterable[Line]) -> dict[Key, Line]:
        return {key(line): line for line in lines if not (retry and "error" in line)}

    known = {} if path is None else found_in(read_lines(path, key)[0])
    if any(name not in known for name in tasks):
        opened: AbstractContextManager[tuple[list[Line], Callable[[Line], None]]]
        opened = nullcontext(([], _in_memory)) if path is None else _opened(path, key, notify)
        with opened as (lines, append):
            known |= found_in(lines)
            waiting = [(name, task) for name, task in tasks.items() if name not in known]
            done = len(tasks) - len(waiting)
            progress("runs", done, len(tasks))
            for name, line in _spread(partial(_with_name, call), waiting, max(1, min(jobs, len(waiting)))):
                append(line)
                known[name] = line
                done += 1
                progress("runs", done, len(tasks))
    else:
        progress("runs", len(tasks), len(tasks))
    return {name: known[name] for name in tasks}


def _with_name(call: Callable[[Task], Line], task: tuple[Key, Task]) -> tuple[Key, Line]:
    return task[0], call(task[1])


def _in_memory(line: Line) -> None:
    """Write no line."""


# --- File ---


def read_lines(path: Path, key: Callable[[Line], Hashable]) -> tuple[list[Line], list[int]]:
    """Return the whole lines of a file, and the numbers of the others; none if there is no file.

    A last line without its end is whole if it can be read.
    """
    if not path.exists():
        return [], []
    try:
        content = bounded_bytes(path, _MAX_FILE_BYTES)
    except (OSError, ValueError) as error:
        raise ModelFileError(f"cannot read {path}: {error}") from None
    whole, broken = [], []
    for number, text in enumerate(content.split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            key(line)
            whole.append(line)
        except (ValueError, TypeError, KeyError, RecursionError):
            broken.append(number)
    return whole, broken


@contextmanager
def _opened(
    path: Path, key: Callable[[Line], Hashable], notify: Callable[[str], None]
) -> Iterator[tuple[list[Line], Callable[[Line], None]]]:
    """Lock a file, and yield its lines and a function that appends one."""
    with ExitStack() as opened:
        with _errors_named(path):
            file = opened.enter_context(path.open("a", encoding="utf-8"))
        _lock(file, path)
        lines, broken = read_lines(path, key)
        if broken:
            copy = path.with_name(f"{path.name}.broken-{time.strftime('%Y%m%dT%H%M%S')}")
            part = path.with_name(f".{path.name}.part")
            with _errors_named(path):
                shutil.copy2(path, copy)
                # Locked before it has the name, and the old one stays locked: nobody can write between them.
                file = opened.enter_context(part.open("w", encoding="utf-8"))
                _lock(file, path)
                _append(file, *lines)
                part.replace(path)
            numbers = ", ".join(map(str, broken))
            notify(f"{path.name}: line {numbers} is broken and dropped; the old file is {copy.name}")
        elif lines and not path.read_bytes().endswith(b"\n"):
            file.write("\n")

        def append(line: Line) -> None:
            with _errors_named(path):
                _append(file, line)

        yield lines, append


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    """Name the file in errors of the system."""
    try:
        yield
    except OSError as error:
        raise ModelFileError(f"cannot write {path}: {error.strerror or error}") from None


def _lock(file: IO[str], path: Path) -> None:
    """Lock the file until it is closed or the process ends; raises OptionError where another process has the lock."""
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OptionError(f"another run is writing to {path}; wait for it, or name another file or folder") from None
    except OSError:  # some network disks have no locks
        return


def _append(file: IO[str], *lines: Mapping[str, Any]) -> None:
    """Write whole lines. Raises ValueError for infinity or NaN, which JSON does not have."""
    file.writelines([json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n" for line in lines])
    file.flush()
    os.fsync(file.fileno())


# --- Processes ---


def check_jobs(jobs: int) -> None:
    """Refuse, with OptionError, a number of processes that cannot be had here."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise OptionError(f"jobs must be a whole number of at least 1, got {jobs!r}")
    if jobs > 1:
        _joblib()


def _spread(call: Callable[[Task], Result], tasks: Iterable[Task], jobs: int) -> Iterator[Result]:
    """Yield the result of `call` for each task: in order and in this process with one job, otherwise as each is done.

    Processes have one thread each, and end with this one.
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
