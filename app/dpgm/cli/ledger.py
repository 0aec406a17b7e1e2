"""The commands `dpgm validate` and `dpgm ledger`, for owners of data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpgm.cli.common import (
    FILE,
    json_option,
    print_err,
    print_json,
    print_lines,
    print_out,
    print_table,
    settings_option,
)
from dpgm_core.errors import OptionError

if TYPE_CHECKING:
    from dpgm.validation import RelatedReport, ValidationReport
    from dpgm_core.domain.related import Related

__all__ = ["ledger", "validate"]


@click.command()
@click.argument("spec", type=FILE)
@settings_option
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="File that records the domain and the day; by default SPEC's name with .validated.json.",
)
def validate(spec: Path, settings: tuple[str, ...], output: Path | None) -> None:
    """Check the data of SPEC against its domain. For the owner only: it SHOWS VALUES and line numbers.

    Writes a small file for `dpgm fit --validated`, which names the domain and the day and holds nothing computed from
    records. The guarantee of a release does not cover a domain that was edited after looking at records. The exit code
    is 1 if some records do not fit the domain.
    """
    from dpgm.spec import read_spec
    from dpgm.validated import write_validated
    from dpgm.validation import validate as check
    from dpgm.validation import validate_related as check_related
    from dpgm_core._util.files import VALIDATED_FILE, check_writable

    # What names an earlier domain must not keep its owner from looking at this one.
    run = read_spec(spec, settings)
    note = spec.with_name(f"{spec.stem}.validated.json") if output is None else output
    check_writable(note, VALIDATED_FILE)
    for remark in run.remarks:
        print_err(f"dpgm: {remark}")
    related = run.terms.related
    report: ValidationReport | RelatedReport
    if related is None:
        report = check(run.data, run.domain, person=run.terms.person, rows_per_person=run.terms.rows_per_person)
    else:
        report = check_related(run.data, related)
    print_lines(report)
    write_validated(note, run.domain)
    print_err(f"dpgm: noted in {note} which domain was looked at, and nothing of what was found")
    if not report.ok:
        raise click.exceptions.Exit(1)


@click.group()
def ledger() -> None:
    """Create and show the budget ledger of a data set."""


@ledger.command()
@click.argument("path", type=FILE)
@click.option("--name", required=True, help="Name of the data set.")
@click.option("--epsilon", help="Total epsilon, as an exact number such as 1 or 0.5.")
@click.option("--delta", help="With --epsilon: total delta, such as 1e-6.")
@click.option("--rho", help="Total zCDP rho, instead of --epsilon.")
@click.option("--mu", help="Total mu of Gaussian privacy (GDP), instead of --epsilon.")
@click.option(
    "--account",
    type=click.Choice(["concentrated", "gaussian"]),
    help="How charges add up, for the ledger's life: as rho and epsilon, or as squares of mu, for --mu and --delta.  "
    "[default: gaussian for --mu, else concentrated]",
)
@click.option(
    "--other",
    nargs=2,
    metavar="EPSILON DELTA",
    help="Of a gaussian account: the part of --epsilon and --delta for what has no mu, such as labels and votes.",
)
@click.option("--neighbours", required=True, help="add-remove or replace-one; cannot be changed later.")
@click.option("--unit", default=None, help="The protected unit; one person with --person, else one record.")
@click.option("--person", default=None, help="Column of the person key, if a person can have several rows.")
@click.option(
    "--rows-per-person", type=click.IntRange(1), default=1, show_default=True, help="Rows that count per person."
)
@click.option("--key", multiple=True, help="Of two related tables: the key; twice if roots and children name it apart.")
@click.option("--max-children", type=click.IntRange(1), default=None, help="With --key: children that count per root.")
@click.option("--order", default=None, help="With --key: column of the children that says who is first.")
def create(
    path: Path,
    epsilon: str | None,
    delta: str | None,
    rho: str | None,
    mu: str | None,
    other: tuple[str, str] | None,
    key: tuple[str, ...],
    max_children: int | None,
    order: str | None,
    **terms: Any,
) -> None:
    """Create the ledger PATH with the whole budget that may ever be spent on a data set."""
    from dpgm_core.privacy.budget import Budget
    from dpgm_core.privacy.ledger import Ledger

    amounts = {"epsilon": epsilon, "delta": delta, "rho": rho, "mu": mu}
    budget = Budget.parse({key: value for key, value in amounts.items() if value is not None})
    made = Ledger.create(
        path,
        budget=budget,
        related=_related(key, max_children, order),
        other=None if other is None else Budget.approx(*other),
        **terms,
    )
    adds = ", adding squares of mu" if made.terms.account == "gaussian" else ""
    print_out(f"created {path} for {made.name!r}: {budget} under {terms['neighbours']}{adds}")


def _related(key: tuple[str, ...], max_children: int | None, order: str | None) -> Related | None:
    """Return the statement about two related tables, of whose columns a ledger holds nothing; None without a key."""
    from dpgm_core.domain.domain import Domain
    from dpgm_core.domain.related import Related

    if not key:
        if max_children is not None or order is not None:
            raise OptionError("--max-children and --order are of two related tables; name their key with --key")
        return None
    if len(key) > 2:
        raise OptionError("two tables can be related, each with one key; give --key once or twice")
    most: Any = max_children  # None is refused with the others
    stands_in = "".join((*key, order or ""))  # longer names are none of these
    root, children = (Domain.from_sizes({table + stands_in: 1}) for table in ("r", "c"))
    return Related(root=root, children=children, key=(key[0], key[-1]), max_children=most, order=order)


@ledger.command(name="show")
@click.argument("path", type=FILE)
@json_option
def show_ledger(path: Path, as_json: bool) -> None:
    """Show the terms of the ledger PATH, the budget spent and left, and every charge."""
    from dpgm_core.privacy.ledger import Ledger

    opened = Ledger.open(path)
    entries = opened.history()
    if as_json:
        print_json({**opened.to_dict(), "charges": [entry.to_dict() for entry in entries]})
        return
    print_lines(opened.describe())
    if entries:
        print_out()
        print_table(
            ["entry", "when (UTC)", "cost", "state", "conditions", "note"],
            [
                [entry.id, entry.when, str(entry.cost), entry.status, "; ".join(entry.conditions) or "none", entry.note]
                for entry in entries
            ],
        )
