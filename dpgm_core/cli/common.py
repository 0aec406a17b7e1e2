"""What the commands share: settings, tables on stdout, talk and stamps on stderr.

The one place where commands write. Names and labels come from files, so all that does not print is spelled out here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from dpgm_core.printable import printable

__all__ = [
    "RECORDS",
    "again_option",
    "evidence_option",
    "json_option",
    "print_json",
    "print_table",
    "parse_evidence",
    "print_out",
    "print_evidence_bins",
    "print_left_out",
    "print_lines",
    "settings_option",
    "stamp",
    "print_err",
    "unmeasured_note",
    "validated_option",
]

F = TypeVar("F", bound=Callable[..., Any])


class _Records(click.Path):
    """A path, or the URL of remote records as a text: a Path would lose one of its slashes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from dpgm_core.places import is_url

        return value if is_url(value) else super().convert(value, param, ctx)


RECORDS = _Records(path_type=Path)


def settings_option(command: F) -> F:
    """`--set KEY=VALUE`, repeatable."""
    return click.option(
        "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key: learner.l2=0.001."
    )(command)


def validated_option(command: F) -> F:
    """`--validated FILE`."""
    return click.option(
        "--validated",
        type=click.Path(dir_okay=False, path_type=Path),
        help="The file of dpgm validate; it must name this domain, and nothing else is asked of it.",
    )(command)


def again_option(command: F) -> F:
    """`--again`."""
    text = "Spend again although a paid run of this name did not finish."
    return click.option("--again", is_flag=True, help=text)(command)


def json_option(command: F) -> F:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="JSON for machines.")(command)


def evidence_option(command: F) -> F:
    """`--given ATTRIBUTE=LABEL`, repeatable."""
    text = "Condition on a label, or a number or date, which finds its bin; repeatable."
    return click.option("-g", "--given", "evidence", multiple=True, metavar="ATTRIBUTE=LABEL", help=text)(command)


def parse_evidence(pairs: Sequence[str]) -> dict[str, str]:
    """Attribute -> what is given of it. Raises OptionError."""
    from dpgm_core.errors import OptionError

    fixed: dict[str, str] = {}
    for pair in pairs:
        name, equals, label = pair.partition("=")
        if not equals or not name:
            raise OptionError(f"--given must look like ATTRIBUTE=LABEL, got {pair!r}")
        if name in fixed:
            raise OptionError(f"--given names {name!r} twice; fix each attribute once")
        fixed[name] = label
    return fixed


def print_evidence_bins(bins: Mapping[str, str], evidence: Mapping[str, str]) -> None:
    """On stderr: the bins in which values that were given lie."""
    for name, label in bins.items():
        print_err(f"dpgm: {name}={evidence[name]} is in the bin {label}")


def print_json(value: Any) -> None:
    """One JSON document on stdout; JSON has no infinity, so it is the text "inf".

    A line that prints stays as it is; in others all but ASCII is escaped as JSON escapes it, so a reader gets it back.
    """
    from dpgm_core.files import plain

    encoding = sys.stdout.encoding or "utf-8"
    for line in json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False).split("\n"):
        as_it_is = line.isprintable() and line.encode(encoding, "ignore").decode(encoding) == line
        click.echo(line if as_it_is else "".join(map(_json_letter, line)))


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Aligned columns on stdout: texts to the left, numbers to the right."""
    names, cells = list(map(printable, header)), [list(map(printable, row)) for row in rows]
    widths = [max(len(row[i]) for row in [names, *cells]) for i in range(len(names))]
    numeric = [all(isinstance(row[i], (int, float)) or _is_number(row[i]) for row in rows) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        parts = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        return "  ".join(parts).rstrip()

    print_out(line(names))
    print_out("  ".join("-" * width for width in widths))
    for row in cells:
        print_out(line(row))


def print_out(line: object = "") -> None:
    """One line on stdout."""
    click.echo(_encodable(printable(line), sys.stdout.encoding))


def print_lines(text: object) -> None:
    """Several lines on stdout, of a text that spells out the names in it."""
    for line in str(text).split("\n"):
        print_out(line)


def print_err(message: object) -> None:
    """One line on stderr."""
    click.echo(_encodable(printable(message), sys.stderr.encoding), err=True)


def stamp(path: Path, caveats: Iterable[str]) -> None:
    """Say on stderr why what is shown is less private than the budget of what it was computed from; one line or none.

    path: where that is. caveats: as `caveats_of` words them.
    """
    text = "; ".join(caveats)
    if text:
        print_err(f"dpgm: {path}: {text}")


def unmeasured_note(names: Sequence[str]) -> str:
    """Names of attributes that no table holds, for a line of their own: all of them, as nothing else tells which."""
    return f"not measured, so unknown to the model: {', '.join(names)}"


def print_left_out(names: Sequence[str]) -> None:
    """On stderr, if there are any."""
    if names:
        print_err(f"dpgm: left out, as no release measured them: {', '.join(names)}")


def _json_letter(letter: str) -> str:
    return letter if letter.isascii() and letter.isprintable() else json.dumps(letter)[1:-1]


def _encodable(line: str, encoding: str | None) -> str:
    """The line with letters that the stream lacks spelled out."""
    return line.encode(encoding or "utf-8", "backslashreplace").decode(encoding or "utf-8")


def _is_number(cell: object) -> bool:
    try:
        float(str(cell).rstrip("%"))
    except ValueError:
        return False
    return True
