"""How a command shows its progress: `--progress plain|bar|none`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    import pyarrow as pa

    from dpgm_core.progress import Progress

__all__ = ["counted_rows", "progress_option", "progress_shown"]

F = TypeVar("F", bound=Callable[..., Any])

_KEY = "dpgm_core.cli.progress"


def progress_option(command: F) -> F:
    """`--progress`, for every command that can take over a second; `progress_shown` reads it."""
    return click.option(
        "--progress",
        type=click.Choice(["plain", "bar", "none"]),
        default=None,
        expose_value=False,
        callback=_remember,
        help="How to show progress on stderr; if left out, bars on a terminal, elsewhere lines for steps over 5 s.",
    )(command)


def progress_shown() -> AbstractContextManager[Progress]:
    """A Progress on stderr, as the command that runs was asked to show it."""
    from dpgm_core.progress.screens import shown

    context = click.get_current_context(silent=True)
    return shown("auto" if context is None else context.meta.get(_KEY, "auto"))


def counted_rows(
    tables: Iterable[pa.Table], progress: Progress, task: str, done: int, total: int | None
) -> Iterator[pa.Table]:
    """The same tables; progress is told how many rows were taken, from `done` on. For synthetic records, and rows that
    their owner completes; never for records that are counted."""
    progress(task, done, total)
    for table in tables:
        yield table
        done += table.num_rows
        progress(task, done, total)


def _remember(context: click.Context, _: click.Parameter, how: str | None) -> None:
    context.meta[_KEY] = how or "auto"
