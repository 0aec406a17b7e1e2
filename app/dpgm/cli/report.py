"""The command `dpgm report`."""

from __future__ import annotations

from pathlib import Path

import click

from dpgm.cli.common import FILE, RECORDS, print_err, print_out, progress_option, progress_shown, stamp
from dpgm.cli.records import records_of
from dpgm_core.components.builtins import INFERENCE
from dpgm_core.errors import OptionError, require_non_private

__all__ = ["report"]


@click.command()
@click.argument("model_file", metavar="MODEL", type=FILE)
@click.option("-o", "--output", type=FILE, help="The .html file to write; by default MODEL's name with .html.")
@click.option(
    "--ledger", "ledger_file", type=FILE, help="The ledger that was charged; its state and charges are shown."
)
@click.option("--level", type=float, default=0.9, show_default=True, help="Level of the intervals.")
@click.option("--inference", default=INFERENCE, show_default=True, help="Name of the inference engine.")
@click.option(
    "--annex",
    "records",
    type=RECORDS,
    help="Records, or a spec that reads them. Writes a second page of exact comparisons, NOT PRIVATE.",
)
@click.option("--allow-non-private", is_flag=True, help="Allow the page of --annex to be written.")
@progress_option
def report(
    model_file: Path,
    output: Path | None,
    ledger_file: Path | None,
    level: float,
    inference: str,
    records: Path | str | None,
    allow_non_private: bool,
) -> None:
    """Write a page about MODEL for a review board and for readers: guarantee, noise, distributions, errors, origin.

    The page is one HTML file that loads nothing. It is made from MODEL alone, and is as private as MODEL. Only an
    earlier report is replaced. --annex also writes OUTPUT-annex.html, which only the owner may see.
    """
    from dpgm.report.annex import make_annex
    from dpgm.report.page import make_report
    from dpgm_core._util.files import ANNEX_FILE, REPORT_FILE, atomic_write, check_writable
    from dpgm_core.models.model_file import load_model
    from dpgm_core.privacy.ledger import Ledger
    from dpgm_core.releases.session import caveats_of

    page = model_file.with_suffix(".html") if output is None else output
    if page.suffix not in (".html", ".htm"):
        raise OptionError(f"cannot write {page.name}: a report is a page, so the name must end in .html")
    if allow_non_private and records is None:
        raise OptionError("--allow-non-private is for --annex RECORDS; the report itself is made from released values")
    annex = page.with_name(f"{page.stem}-annex{page.suffix}")
    check_writable(page, REPORT_FILE)
    if records is not None:
        require_non_private("an annex, which compares the model with records,", allow_non_private)
        check_writable(annex, ANNEX_FILE)
    model = load_model(model_file).using(inference)
    ledger = None if ledger_file is None else Ledger.open(ledger_file)
    annex_page = None
    with progress_shown() as progress:
        progress("making the report", 0, None)
        report_page = make_report(model, file=model_file, ledger=ledger, level=level).encode()
        if records is not None:
            progress("counting: the annex", 0, None)
            owned = make_annex(model, records_of(records), file=model_file, allow_non_private=allow_non_private)
            annex_page = owned.encode()
    atomic_write(page, report_page, REPORT_FILE)
    stamp(model_file, caveats_of(model.releases))
    print_out(f"report: {page}")
    if annex_page is not None:
        atomic_write(annex, annex_page, ANNEX_FILE, mode=0o600)  # for its owner alone, and not named in the report
        print_err("dpgm: NOT PRIVATE: the annex holds exact functions of the records; keep it where the records are")
        print_out(f"annex:  {annex}")
