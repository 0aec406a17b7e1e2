"""Tasks over processes; results are yielded as they finish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from dpgm_core.errors import OptionError

__all__ = ["check_jobs", "spread"]

Task = TypeVar("Task")
Result = TypeVar("Result")


def check_jobs(jobs: int) -> None:
    """Refuse, with OptionError, a number of processes that cannot be had here."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise OptionError(f"jobs must be a whole number of at least 1, got {jobs!r}")
    if jobs > 1:
        _joblib()


def spread(call: Callable[[Task], Result], tasks: Iterable[Task], jobs: int) -> Iterator[Result]:
    """What `call` returns for each task: in order with one job, which is this process; else as soon as each is done.

    call, tasks: picklable where there are several jobs. Processes have one thread each, and end with this one.
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
            "several jobs need joblib, which is not installed: pip install 'dpgm-core[study]', or take one job"
        ) from None
    return joblib
