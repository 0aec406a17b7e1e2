"""Writes docs/cli.md from the commands themselves, so that the page says what `--help` says. With --check: compares.

Only what stands below the line `<!-- commands -->` is generated.
"""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from dpgm_core.cli import cli

PAGE = Path(__file__).parents[1] / "cli.md"
MARK = "<!-- commands -->"


def commands(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[tuple[str, click.Context]]:
    """A command and all below it, in the order of `--help`."""
    context = click.Context(command, info_name=name, parent=parent)
    yield context.command_path, context
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from commands(found, below, context)


def section(path: str, context: click.Context) -> str:
    """One command in Markdown: usage, help and options, `--help` apart."""
    command = context.command
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    lines = [f"## {path}", "", f"`{usage}`", ""]
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        # click shows a paragraph that starts with \b as it is written
        verbatim = paragraph.startswith("\b\n")
        lines += ["```text", paragraph.removeprefix("\b\n"), "```", ""] if verbatim else [paragraph, ""]
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    rows = [record for option in options if (record := option.get_help_record(context))]
    if rows:
        cells = [(name.replace("|", "\\|"), " ".join(text.split()).replace("|", "\\|")) for name, text in rows]
        lines += ["| option | |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in cells), ""]
    return "\n".join(lines)


def page() -> str:
    """The whole page as it should be."""
    head = PAGE.read_text(encoding="utf-8").split(MARK)[0]
    return head + MARK + "\n\n" + "\n".join(section(*entry) for entry in commands(cli, "dpgm"))


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(
            0 if PAGE.read_text(encoding="utf-8") == page() else f"{PAGE.name} is out of date: python {sys.argv[0]}"
        )
    PAGE.write_text(page(), encoding="utf-8")
