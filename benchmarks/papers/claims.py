"""Claims of a paper: what it says, whether our runs show it, and the page that says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
from attrs import frozen

from benchmarks.harness.output import markdown, marked
from benchmarks.harness.runs import Line

#: What a claim can be, from agreement to silence.
STATUSES = ("reproduced", "with a caveat", "contradicted", "not attempted")


@frozen(kw_only=True)
class Claim:
    """One claim of a paper.

    name: the paper's letter and a number, "B4". says: the claim, in a few words. status: one of `STATUSES`. found: what
    was found, or why nothing was tried; its numbers are computed from the store. figure: the picture or table of the
    paper, with a link to ours where there is one.
    """

    name: str
    says: str
    status: str = attrs.field(validator=attrs.validators.in_(STATUSES))
    found: str
    figure: str = ""


def claim(
    name: str,
    says: str,
    lines: Sequence[Line],
    judge: Callable[[Sequence[Line]], tuple[str, str]],
    figure: str = "",
) -> Claim:
    """Return the claim as (status, found) of its lines; without any it is not attempted in this store."""
    status, found = judge(lines) if lines else ("not attempted", "its runs are not in the store yet")
    return Claim(name=name, says=says, status=status, found=found, figure=figure)


def report(title: str, found: Sequence[Claim], lines: Sequence[Line], *sections: str) -> str:
    """Return the page of a paper: the runs, the claims (snippets `runs` and `claims` for pages), and other sections."""
    head = ["", "the paper", "status", "found", "in the paper"]
    rows = [[one.name, one.says, f"**{one.status}**", one.found, one.figure] for one in found]
    counts = {status: sum(one.status == status for one in found) for status in STATUSES}
    summary = ", ".join(f"{number} {status}" for status, number in counts.items() if number)
    parts = [f"# {title}\n", marked("runs", runs(lines)), marked("claims", f"{summary}.\n\n{markdown(head, rows)}")]
    return "\n".join([*parts, *filter(None, sections)])


def runs(lines: Sequence[Line]) -> str:
    """Say how many runs there are, what they took, and which commit and versions made them."""
    hours = sum(line["cpu"] for line in lines) / 3600
    stamps = sorted({line["by"] for line in lines})
    return f"{len(lines)} runs, {hours:.2f} CPU hours, made by {'; '.join(stamps)}.\n"
