"""Tables in markdown, and pictures that are the same file when they are the same picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dpgm.study import Estimate
from dpgm.study.store import Line


def pyplot() -> Any:
    """matplotlib's, drawing into files only."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    return plt


def having(lines: Iterable[Line], **facts: object) -> list[Line]:
    """Return the lines with these facts, such as cell="adult 1" and method="mst"."""
    return [line for line in lines if all(line.get(name) == value for name, value in facts.items())]


def beginning(lines: Iterable[Line], word: str) -> list[Line]:
    """Return the lines whose cell has this first word."""
    return [line for line in lines if line["cell"].split()[0] == word]


def grouped(lines: Iterable[Line], *facts: str) -> dict[Any, list[Line]]:
    """Return lines by one fact, or by a tuple of several, in the order in which they come first."""
    found: dict[Any, list[Line]] = {}
    for line in lines:
        key = tuple(line[fact] for fact in facts)
        found.setdefault(key if len(facts) > 1 else key[0], []).append(line)
    return found


def facts_of(cell: str) -> dict[str, str]:
    """Return the facts in the name of a cell.

    >>> facts_of("b N=1000 k=5")
    {'N': '1000', 'k': '5'}
    """
    return dict(part.split("=") for part in cell.split() if "=" in part)


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in markdown, readable as it stands; columns of numbers (or nothing) go to the right."""
    body = [[str(value) for value in row] for row in rows]
    columns = list(zip(head, *body, strict=True))
    right = [all(text[:1].isdigit() or text in ("", "-") for text in column[1:]) for column in columns]
    widths = [max(3, *map(len, column)) for column in columns]

    def line(row: Sequence[str]) -> str:
        padded = [text.rjust(w) if r else text.ljust(w) for text, w, r in zip(row, widths, right, strict=True)]
        return f"| {' | '.join(padded)} |"

    rule = "|" + "|".join("-" * (width + 1) + "-:"[r] for width, r in zip(widths, right, strict=True)) + "|"
    return "\n".join([line(head), rule, *map(line, body)]) + "\n"


def mean_and_error(values: Sequence[float], mean: str = "{:.4f}", error: str = " ({:.1g})") -> str:
    """Return the mean and, of more than one value, its standard error, each in its format."""
    found = Estimate.of(values)
    return mean.format(found.mean) + (error.format(found.error) if found.count > 1 else "")


def marked(name: str, text: str) -> str:
    """Return the text as a named part of its file, for pages that include it by `--8<-- "FILE:name"`."""
    return f"<!-- --8<-- [start:{name}] -->\n\n{text}\n<!-- --8<-- [end:{name}] -->\n"


def section(title: str, head: Sequence[str], rows: Sequence[Sequence[object]], name: str = "", said: str = "") -> str:
    """A table under its title and what is said of it; empty without rows. name: that pages include it by."""
    if not rows:
        return ""
    table = marked(name, markdown(head, rows)) if name else markdown(head, rows)
    return "\n".join([f"## {title}", "", *([said] if said else []), table])


def save(figure: Any, stem: Path) -> Path:
    """A matplotlib figure as STEM.png and STEM.svg, then closed; the same picture is the same file. Returns STEM."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    stem.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "dpgm", "svg.fonttype": "none"}):
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(stem.with_suffix(".png"), dpi=110)
    plt.close(figure)
    return stem
