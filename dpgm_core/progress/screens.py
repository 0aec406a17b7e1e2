"""Displays of progress: bars in a terminal, changing text in a notebook, lines in a log."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, Literal, TextIO, TypeAlias, get_args

from dpgm_core.errors import OptionError
from dpgm_core.printable import clipped
from dpgm_core.progress.contract import Progress, silent
from dpgm_core.progress.steps import Screen, Step, Steps

__all__ = ["How", "shown"]

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
