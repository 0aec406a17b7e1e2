"""What a run prints when it is done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpgm_core.cli.common import print_table, talk

if TYPE_CHECKING:
    from dpgm_core.learning.contract import Fit
    from dpgm_core.models.model import Model
    from dpgm_core.privacy.budget import Budget
    from dpgm_core.releases.release import NoisyTables

__all__ = ["print_fit", "_print_margins", "_records", "summary", "_swamped"]


def summary(done: Fit, path: Path, saved: Path, left: Any) -> dict[str, Any]:
    """A fit as plain values, for `--json`."""
    release, cost = _paid(done)
    return {
        "model": str(path),
        "release": str(saved),
        "private": done.model.private,
        "unsafe": release.unsafe,
        "spent": cost.to_dict(),
        "left": None if left is None else left.to_dict(),
        "records": {"total": _records(release), "policy": release.total_policy},
        "converged": done.converged,
        "replicates": len(done.model.replicates),
        "certificate": dict(done.certificate),
        "notes": list(done.notes),
        "guarantee": done.model.guarantee(),
    }


def _paid(done: Fit) -> tuple[NoisyTables, Budget]:
    """The last release of a fit, and what all of them cost."""
    assert done.release is not None and done.model.cost is not None  # the pipeline fills them in
    return done.release, done.model.cost


def _records(release: NoisyTables) -> float:
    """The number of records behind a release; a round's own total is that of its subsample."""
    return release.total / float(1 if release.round is None else release.round.sampling_rate)


def print_fit(
    done: Fit,
    path: Path,
    saved: Path,
    left: Any,
    *,
    verbose: bool,
    learned_again: bool = False,
    level: float | None = None,
) -> None:
    """A fit for people: files, cost, margins, guarantee."""
    from dpgm_core.errors import TooLarge

    release, cost = _paid(done)
    click.echo(f"model:   {path}")
    click.echo(f"release: {saved}")
    paid = "" if learned_again else "" if left is None else f"; left in the ledger: {left}"
    click.echo(("paid before: " if learned_again else "spent:   ") + f"{cost}{paid}")
    what = "records: " if release.contributions is None else "persons: "
    click.echo(f"{what}{_records(release):,.0f} ({release.total_policy})")
    if not done.converged:
        click.echo("WARNING: the learner did not converge; the model carries this flag")
    for note in done.notes if verbose or not done.converged else ():
        talk(f"note: {note}")
    click.echo("")
    try:
        _print_margins(done.model, level if done.model.replicates else None)
    except TooLarge:
        click.echo("exact answers do not fit in memory; ask with: dpgm query --inference loopy-bp")
    swamped = _swamped(release)
    if swamped:
        talk(
            f"dpgm: the noise is larger than the average cell in {swamped} of {len(release.noise)} tables, so finer "
            "detail there is noise; use fewer or smaller tables, or more budget"
        )
    click.echo("")
    click.echo(done.model.guarantee())


def _swamped(release: NoisyTables) -> int:
    """How many tables have more noise in a cell than records in the average one; public facts alone."""
    return sum(
        noise.variance * cells**2 > total**2
        for noise, cells, total in zip(release.noise, release.structure.sizes, release.totals, strict=True)
    )


def _print_margins(model: Model, level: float | None) -> None:
    """Each attribute's most likely labels, in per cent, as the model has them, with intervals if a level is given.

    What was not measured is named.
    """
    rows = []
    measured = {name for clique in model.structure for name in clique}
    for attribute in model.domain:
        if attribute.name not in measured:
            continue
        found = None if level is None else model.intervals(attribute.name, level=level)
        shares = model.marginal(attribute.name) if found is None else found.estimate
        if attribute.size > 1 and shares[attribute.unknown] > 0.95:
            talk(
                f"dpgm: nearly all of {attribute.name!r} is {attribute.labels[attribute.unknown]!r}, where unknown "
                "values go; if that is a surprise, the file's values are not the domain's labels: see dpgm validate"
            )
        order = (
            sorted(range(attribute.size), key=lambda code: -shares[code])[:6]
            if attribute.size > 6
            else range(attribute.size)
        )
        text = ", ".join(
            f"{attribute.labels[code]}: {100 * shares[code]:.1f}%"
            + ("" if found is None else f" ({100 * found.low[code]:.1f}-{100 * found.high[code]:.1f})")
            for code in order
        )
        rows.append([attribute.name, text + (", ..." if attribute.size > 6 else "")])
    sure = "" if level is None else f" ({100 * level:g}% interval)"
    print_table(["attribute", f"share of records in the model{sure}"], rows[:40])
    left_out = [name for name in model.domain.names if name not in measured]
    if left_out:
        click.echo(f"not measured, so unknown to the model: {', '.join(left_out)}")
