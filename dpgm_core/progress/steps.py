"""Steps of work under way: progress, rate, remaining time, and how often they are shown."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Protocol

from attrs import define

from dpgm_core.printable import clipped

__all__ = ["Screen", "Step", "Steps", "duration"]

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
        ...

    def close(self) -> None:
        """Nothing more will be shown."""
        ...


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
