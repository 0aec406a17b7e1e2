"""What the commands share: settings, tables on stdout, talk and progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from dpgm_core.progress import Progress
    from dpgm_core.spec import Spec

__all__ = [
    "records_of",
    "json_option",
    "print_json",
    "print_table",
    "progress_bar",
    "settings_option",
    "talk",
]

F = TypeVar("F", bound=Callable[..., Any])


def settings_option(command: F) -> F:
    """`--set KEY=VALUE`, repeatable."""
    return click.option(
        "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key, such as learner.l2=0.001."
    )(command)


def json_option(command: F) -> F:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")(command)


def print_json(value: Any) -> None:
    """One JSON document on stdout; JSON has no infinity, so it is the text "inf"."""
    from dpgm_core.files import plain

    click.echo(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Aligned columns on stdout: texts to the left, numbers to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(header), *cells]) for i in range(len(header))]
    numeric = [all(isinstance(row[i], (int, float)) or _is_number(row[i]) for row in rows) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        parts = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        return "  ".join(parts).rstrip()

    click.echo(line(list(header)))
    click.echo("  ".join("-" * width for width in widths))
    for row in cells:
        click.echo(line(row))


def talk(message: str) -> None:
    """One line on stderr."""
    click.echo(message, err=True)


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A Progress on stderr: a live line on a terminal, silence elsewhere."""
    if not sys.stderr.isatty():
        from dpgm_core.progress import silent

        yield silent
        return
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.fields[step]}"),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def report(task: str, done: int, total: int | None) -> None:
            if task not in tasks:
                tasks[task] = bars.add_task(task, total=None, step="")
            step = f"{done} of {total}" if total else str(done) if done else ""
            bars.update(tasks[task], step=step)

        yield report


def records_of(run: Spec) -> object:
    """What a run's records are read from: the source its spec names, or a file."""
    from dpgm_core.components.registry import make

    return make("source", run.data) if isinstance(run.data, dict) else run.data


def _is_number(cell: object) -> bool:
    try:
        float(str(cell).rstrip("%"))
    except ValueError:
        return False
    return True
