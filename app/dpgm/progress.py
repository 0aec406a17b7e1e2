"""Progress bars and lines, on a terminal or in a log."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, Literal, Protocol, TextIO, TypeAlias, get_args

from attrs import define

from dpgm_core._util.progress import Progress, silent
from dpgm_core.errors import OptionError, clipped

__all__ = ["How", "Screen", "Step", "Steps", "duration", "shown"]


# --- Tracking ---

#: Steps that read records: how fast they are says how many there are, so of their times nothing is said.
_TIMELESS = ("counting",)
#: The last line of a log is for steps that have said nothing for so long, seconds.
_QUIET_SECONDS = 1.0


@define(eq=False)
class Step:
    """One kind of work, such as "learning". task: what it is at now. first: how far it was when it was `begun`, seconds
    of the clock. shown_at: when it was last shown; announced: whether it ever was."""

    task: str
    begun: float
    first: int
    done: int
    total: int | None
    shown_at: float
    announced: bool = False

    @property
    def timeless(self) -> bool:
        """Whether nothing may be said of its times."""
        return self.task.partition(":")[0] in _TIMELESS

    @property
    def finished(self) -> bool:
        """Whether all of it is done; never of work without a known end."""
        return self.total is not None and self.done >= self.total

    def rate(self, now: float) -> float | None:
        """Steps a second since it was begun; None before the first one, and where it may not be said."""
        if self.timeless or self.done <= self.first or now <= self.begun:
            return None
        return (self.done - self.first) / (now - self.begun)

    def words(self, now: float) -> str:
        """How far it is, behind the task.

        >>> Step("learning", 0.0, 0, 30, 120, 0.0).words(10.0)
        '30 of 120, 3 a second, 30 s left'
        >>> Step("learning", 0.0, 0, 2, None, 0.0).words(10.0)
        '2, 5 s each'
        """
        if self.timeless or (self.total or 0) == 1 or (self.total is None and not self.done):
            return ""  # the task says it, or there is nothing to say
        parts = [f"{self.done:,}" if self.total is None else f"{self.done:,} of {self.total:,}"]
        rate = self.rate(now)
        if rate is not None:
            pace = f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"
            parts += [f"{pace} a second" if rate >= 1 else f"{1 / rate:.3g} s each"]
            parts += [f"{duration((self.total - self.done) / rate)} left"] if self.total and not self.finished else []
        return ", ".join(parts)

    def line(self, now: float) -> str:
        """The task and how far it is, on one line."""
        words = self.words(now)
        return f"{clipped(self.task, 80)}{': ' if words else ''}{words}"


class Screen(Protocol):
    """Where steps are shown. after: seconds that a step must have lasted; 0: it is shown at once. every: seconds
    between two views of a step."""

    after: float
    every: float

    def show(self, work: str, step: Step, now: float) -> None:
        """Show a step as it is now. work: its name, which stays."""

    def close(self) -> None:
        """Nothing more will be shown."""


class Steps:
    """A Progress that passes on to a screen what is due, and nothing more often; costs a microsecond a call.

    A task that falls back begins anew. A screen that cannot be written to any more is not asked again: work goes on
    without it.
    """

    def __init__(self, screen: Screen, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen: Screen | None = screen
        self._clock = clock
        self._steps: dict[str, Step] = {}
        self._step: Step | None = None  # the last one, of which nothing is due before `_due_at`
        self._due_at = math.inf

    def __call__(self, task: str, done: int, total: int | None) -> None:
        """As `Progress` has it."""
        screen = self._screen
        if screen is None:
            return
        now, last = self._clock(), self._step
        if last is not None and now < self._due_at and task == last.task and last.done <= done != total:
            last.done, last.total = done, total  # most calls of a tight loop end here
            return
        work = task.partition(":")[0]
        step = self._steps.get(work)
        if step is None:
            step = self._steps[work] = Step(task, now, done, done, total, -math.inf if screen.after == 0 else now)
        elif done < step.done:
            step.begun, step.first = now, done
        changed = task != step.task
        step.task, step.done, step.total = task, done, total
        if self._due(screen, step, changed, now):
            step.shown_at, step.announced = now, True
            try:
                screen.show(work, step, now)
            except (OSError, ValueError):  # nobody reads it any more
                self._screen = None
        self._step, self._due_at = step, max(step.shown_at + screen.every, step.begun + screen.after)

    def _due(self, screen: Screen, step: Step, changed: bool, now: float) -> bool:
        if step.timeless:
            # By no clock: when it is shown would be a time too.
            return screen.after == 0 and (changed or not step.announced)
        if step.finished and step.announced:
            return screen.every < _QUIET_SECONDS or now - step.shown_at >= _QUIET_SECONDS
        return now - step.shown_at >= screen.every and now - step.begun >= screen.after

    def close(self) -> None:
        """Take the bars away."""
        if self._screen is not None:
            self._screen.close()


def duration(seconds: float) -> str:
    """Seconds for people.

    >>> duration(0.4), duration(90), duration(3.5 * 3600)
    ('1 s', '90 s', '3 h 30 min')
    """
    if seconds < 120:
        return f"{max(1, math.ceil(seconds))} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60:,} h {minutes % 60} min"


# --- Displays ---

How: TypeAlias = Literal["auto", "bar", "plain", "none"]

#: Seconds between two lines of a log, and how long a step must last to be told where nobody asked for lines.
_LINE_SECONDS = 5.0


@contextmanager
def shown(how: How = "auto") -> Iterator[Progress]:
    """Show progress on standard error, or in the notebook that runs this, until the block ends.

    Parameters
    ----------
    how : {"auto", "bar", "plain", "none"}
        "bar" is one line for each step with its rate and remaining time; "plain" is a line every few seconds, for logs;
        "none" is silent. "auto" is bars in a terminal and a notebook, elsewhere lines for steps of over five seconds.
        "bar" without a terminal is "plain".

    Yields
    ------
    Progress
        To be passed on, as in `fit(..., progress=progress)`.

    Raises
    ------
    OptionError
        For another word.

    Notes
    -----
    The times of counting records are never shown. Steps that read records in between, such as selection in rounds, are
    shown with times, which grow with the number of records: keep such a log where the records are, or use "none".

    Examples
    --------
    >>> with shown() as progress:  # here fit(..., progress=progress)
    ...     progress("learning", 1, 10)
    """
    if how not in get_args(How):
        raise OptionError(f"progress is shown as {', '.join(get_args(How))}; got {how!r}")
    screen = _screen(how, sys.stderr)
    if screen is None:
        yield silent
        return
    steps = Steps(screen)
    try:
        yield steps
    finally:
        with suppress(OSError, ValueError):  # of a stream that is gone
            steps.close()


def _screen(how: How, stream: TextIO) -> Screen | None:
    if how == "none":
        return None
    if how != "plain" and _in_notebook():
        return _Notebook()
    terminal = stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    if how != "plain" and terminal:
        return _Bars()
    return _Lines(stream, _LINE_SECONDS if how == "auto" else 0.0)


def _in_notebook() -> bool:
    """Whether a kernel runs this, whose front end can change what it has shown; a shell in a terminal is none."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class _Lines:
    """Lines in a log."""

    every = _LINE_SECONDS

    def __init__(self, stream: TextIO, after: float) -> None:
        self.after = after
        self._stream = stream

    def show(self, work: str, step: Step, now: float) -> None:
        """A line of its own."""
        line, encoding = f"dpgm: {step.line(now)}", self._stream.encoding or "utf-8"
        self._stream.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Lines stay."""


class _Bars:
    """A line for each step in a terminal, which goes when all is done."""

    after, every = 0.0, 0.1

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn
        from rich.progress import Progress as Bars

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),  # a plugin's words may hold brackets
            BarColumn(bar_width=20),
            TextColumn("{task.fields[words]}", markup=False),
        )
        # What is printed meanwhile belongs to standard output, not to where the bars are.
        self._bars = Bars(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
        self._tasks: dict[str, tuple[Any, Step]] = {}
        self._bars.start()

    def show(self, work: str, step: Step, now: float) -> None:
        """In the line of its name; what is finished goes when something else is told."""
        if work not in self._tasks:
            self._tasks[work] = self._bars.add_task("", total=None, words=""), step
        for task, other in self._tasks.values():
            if other is not step and other.finished:
                self._bars.update(task, visible=False)
        self._bars.update(
            self._tasks[work][0],
            visible=True,
            description=clipped(step.task, 120),
            total=None if step.timeless else step.total,
            completed=step.done,
            words=step.words(now),
        )

    def close(self) -> None:
        """Take the lines away and give the cursor back."""
        self._bars.stop()


class _Notebook:
    """One text that changes below the cell, a line for each step; it needs no widgets."""

    after, every = 0.0, 0.2

    def __init__(self) -> None:
        self._lines: dict[str, tuple[str, Step]] = {}
        self._handle: Any = None

    def show(self, work: str, step: Step, now: float) -> None:
        """In the line of its name; what is finished goes when something else is told."""
        self._lines[work] = step.line(now), step
        self._write("\n".join(line for line, one in self._lines.values() if one is step or not one.finished))

    def _write(self, text: str) -> None:
        if self._handle is None:
            display = import_module("IPython.display").display
            self._handle = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)

    def close(self) -> None:
        """Nothing is left below the cell."""
        if self._handle is not None:
            self._write("")
