"""The command `dpgm analyse`."""

from __future__ import annotations

from pathlib import Path

import click

from dpgm.cli.common import (
    FILE,
    evidence_option,
    json_option,
    parse_evidence,
    print_evidence_bins,
    print_json,
    print_lines,
    stamp,
)

__all__ = ["analyse"]


@click.command()
@click.argument("model_file", metavar="MODEL", type=FILE)
@click.argument("formula")
@click.option(
    "--family",
    type=click.Choice(["linear", "logistic", "poisson", "multinomial"]),
    default=None,
    help="Type of the regression; by default what fits the outcome.",
)
@click.option("--event", default=None, metavar="LABEL", help="Label of the outcome that counts as 1.")
@click.option(
    "--groups",
    is_flag=True,
    help="Print the outcome's mean, or the probability of the event, in each group, with differences and ratios.",
)
@click.option("--level", type=float, default=0.95, show_default=True, help="Level of the intervals.")
@evidence_option
@click.option(
    "--rows",
    "rows_files",
    type=FILE,
    multiple=True,
    help="Synthetic records that dpgm sample drew from MODEL; they take the model's place; repeatable.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 if an interval is not promised.")
@json_option
def analyse(
    model_file: Path,
    formula: str,
    family: str | None,
    event: str | None,
    groups: bool,
    level: float,
    evidence: tuple[str, ...],
    rows_files: tuple[Path, ...],
    strict: bool,
    as_json: bool,
) -> int:
    """Estimate a regression, means, correlations or a two-way table of the population from MODEL.

    FORMULA is "income ~ age + C(education)" for a regression, "income ~ sex" with --groups for means of groups,
    "~ age + hours" for correlations of columns with numbers, and "~ sex + education" for a two-way table with a test of
    independence. Estimates are corrected from the released tables; their intervals include noise and sampling. The
    standing says whether tables hold what an estimate rests on; by structure, its interval is not promised.
    """
    from typing import cast

    from dpgm.analysis import analyse as answer
    from dpgm.related import refuse_related
    from dpgm_core.models.functionals import Family
    from dpgm_core.models.model_file import load_model
    from dpgm_core.releases.session import caveats_of

    model = load_model(model_file)
    refuse_related(model, "analyses are")
    fixed = parse_evidence(evidence, model)
    found = answer(
        model,
        formula,
        groups=groups,
        family=cast("Family | None", family),
        event=event,
        level=level,
        rows=rows_files or None,
        given=fixed,
    )
    if as_json:
        print_json({**found.to_dict(), "given": fixed})
    else:
        stamp(model_file, caveats_of(model.releases))
        print_evidence_bins(model.domain, fixed)
        print_lines(found)
    return int(strict and bool(found.not_promised))
