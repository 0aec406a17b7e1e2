"""One run of a study: time limit and stored result."""

from __future__ import annotations

import hashlib
import itertools
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from dpgm.study.store import Line
from dpgm.study.study import Case
from dpgm_core._util.arrays import Array
from dpgm_core._util.randomness import SeededRandomness
from dpgm_core.errors import LearningFailed, OptionError, TooLarge
from dpgm_core.models.distribution import Distribution
from dpgm_core.models.model import Model
from dpgm_core.pipeline.run import Run
from dpgm_core.privacy.budget import Split
from dpgm_core.privacy.terms import Terms
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_core.structure.workload import Workload

__all__ = ["Judge", "MEASURES", "OutOfTime", "Setting", "StudyRun", "check_limit", "judge_of", "seed_of", "time_limit"]


# --- Time limit ---

#: Seconds that timers can keep: a microsecond to three years.
_MIN_SECONDS, _MAX_SECONDS = 1e-6, 10**8


class OutOfTime(BaseException):
    """A run exceeded its time limit. Not an Exception, as components catch those."""


def check_limit(seconds: float | None) -> None:
    """Refuse, with OptionError, a limit that cannot be kept."""
    if seconds is None:
        return
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, (int, float))
        or not _MIN_SECONDS <= seconds <= _MAX_SECONDS
    ):
        raise OptionError(f"a limit must be a positive number of seconds, at most {_MAX_SECONDS:,}, got {seconds!r}")
    if sys.platform == "win32":
        raise OptionError("this system has no timer that could end a run; leave the limit out")
    if threading.current_thread() is not threading.main_thread():
        raise OptionError("a limit can be kept in the main thread only; leave it out, or run the study there")


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise OutOfTime in the block after so many seconds of wall time, between two steps of Python; None: never."""
    if seconds is None:
        yield
        return

    def end(signum: int, frame: object) -> None:
        raise OutOfTime(f"it took longer than {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, end)
    try:
        # Again each second, as what is raised inside a destructor is lost.
        signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# --- Runs ---
#
# Records exist only in the memory of the process that draws them.

#: What is told of each model, smaller is better: nats, probabilities from 0 to 1, and seconds on the wall.
MEASURES = ("kl", "tv_cliques", "tv_cliques_worst", "tv_pairs", "tv_pairs_worst", "seconds")
#: Pairs of attributes that are compared; of more, so many by the study's seed.
MAX_PAIRS = 1000


@frozen(kw_only=True, eq=False)
class Setting:
    """What all runs of a study share; it is sent to other processes. name: identifies it there."""

    name: str
    distribution: Tables
    structure: Structure
    workload: Workload
    terms: Terms
    split: Split
    seed: int
    limit: float | None = None


@frozen(kw_only=True, eq=False)
class StudyRun:
    """Run number `run` of a case; call it for its line of results."""

    setting: Setting
    case: Case
    run: int

    def __call__(self) -> Line:
        """Plain values, errors among them: whatever a component raises is a result.

        Raises TooLarge for a truth from which nothing can be drawn.
        """
        judge_of(self.setting)
        facts = {**self.case.to_dict(), "run": self.run}
        try:
            with time_limit(self.setting.limit):
                return {**facts, **self._measured()}
        except OutOfTime as error:
            return {**facts, "error": "OutOfTime", "message": str(error)}
        except Exception as error:
            return {**facts, **_error_line(error)}

    def _measured(self) -> dict[str, Any]:
        setting, case, method = self.setting, self.case, self.case.method
        judge = judge_of(setting)
        records = judge.records(case.records, seed_of(setting.seed, "records", self.run))
        if setting.terms.person is not None:
            records = {**records, setting.terms.person: np.arange(case.records)}  # everybody has one
        noise = SeededRandomness(seed_of(setting.seed, "noise", self.run))
        start = time.perf_counter()
        named = method.selector is None
        done = Run(
            records,
            setting.structure if named else method.selector,
            case.budget,
            method.mechanism_for(case.budget) if named else method.mechanism,
            method.learner,
            method.inference,
            workload=None if named else setting.workload,
            terms=setting.terms,
            split=setting.split,
            randomness=noise,
        ).fit()
        seconds = time.perf_counter() - start
        return {**judge.errors(done.model), "seconds": round(seconds, 4), "converged": bool(done.converged)}


class Judge:
    """The truth: draws records, and measures the errors of models."""

    def __init__(self, setting: Setting) -> None:
        self._truth, self._distribution = (
            Model(setting.distribution.structure, setting.distribution),
            Distribution(setting.distribution, "junction-tree"),
        )
        names = self._truth.domain.names
        pairs: list[Clique] = list(itertools.combinations(names, 2))
        if len(pairs) > MAX_PAIRS:
            chosen = np.random.default_rng(seed_of(setting.seed, "pairs", 0)).permutation(len(pairs))[:MAX_PAIRS]
            pairs = [pairs[number] for number in sorted(chosen.tolist())]
        cliques = [clique for clique in setting.structure.cliques if clique]
        self._asked: dict[str, list[Clique]] = {"tv_cliques": cliques, "tv_pairs": pairs}
        self._right = self._truth.marginals_of([*cliques, *pairs])
        self._drawn: tuple[tuple[int, int], dict[str, Array]] | None = None

    def records(self, count: int, seed: int) -> dict[str, Array]:
        """Codes of so many records, one array per attribute; the last ones are kept, as methods share them."""
        if self._drawn is None or self._drawn[0] != (count, seed):
            self._drawn = None  # before the next ones are made
            codes = self._distribution.sample(count, np.random.default_rng(seed))
            self._drawn = (count, seed), dict(zip(self._truth.domain.names, codes, strict=True))
        return self._drawn[1]

    def errors(self, model: Model) -> dict[str, Any]:
        """All measures but seconds; None, and why, of what does not fit into memory."""
        model = model.using(unmeasured="uniform")  # KL counts what was not measured so, too
        errors: dict[str, Any] = {}
        if model.latent:
            errors |= {"kl": None, "unanswered": "a model with latent classes has no divergence in closed form"}
        else:
            _add_measures(errors, ("kl",), lambda: (self._truth.kl(model),))
        for measure, cliques in self._asked.items():
            _add_measures(errors, (measure, f"{measure}_worst"), partial(self._distances, model, cliques))
        return errors

    def _distances(self, model: Model, cliques: list[Clique]) -> tuple[float, ...]:
        """Mean and largest total variation."""
        if not cliques:
            return 0.0, 0.0
        ours = model.marginals_of(cliques)
        apart = [0.5 * float(np.abs(ours[clique] - self._right[clique]).sum()) for clique in cliques]
        return math.fsum(apart) / len(apart), max(apart)


def _add_measures(errors: dict[str, Any], names: tuple[str, ...], compute: Callable[[], tuple[float, ...]]) -> None:
    try:
        values: tuple[Any, ...] = compute()
    except TooLarge as error:
        values = (None,) * len(names)
        errors["unanswered"] = str(error)
    # JSON has no infinity
    errors |= {
        name: value if value is None or math.isfinite(value) else str(value)
        for name, value in zip(names, values, strict=True)
    }


def seed_of(study: int, what: str, run: int) -> int:
    """The seed of one thing in one run, by a hash: the same whatever else there is in the study.

    >>> seed_of(0, "records", 1) == seed_of(0, "records", 1), seed_of(0, "noise", 1) == seed_of(0, "noise", 2)
    (True, False)
    """
    return int.from_bytes(hashlib.sha256(f"{study} {what} {run}".encode()).digest()[:8], "big")


_last_judge: dict[str, Judge] = {}


def judge_of(setting: Setting) -> Judge:
    """Return the judge of a study, cached for one study a process. Raises TooLarge if nothing can be drawn from it."""
    if setting.name not in _last_judge:
        _last_judge.clear()
        _last_judge[setting.name] = Judge(setting)
    return _last_judge[setting.name]


def _error_line(error: Exception) -> Line:
    """Return type and first line of an error, without the wrapper that says that a release is paid for."""
    while isinstance(error, LearningFailed) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    lines = str(error).strip().splitlines() or [""]
    return {"error": type(error).__name__, "message": lines[0][:500]}
