"""dpgm check."""

from __future__ import annotations

import sys

import click

from dpgm_core.cli.common import json_option, print_json, print_table, talk

__all__ = ["check"]


@click.command()
@click.argument("distribution")
@click.option("--profile", type=click.Choice(["default", "thorough"]), default="default", help="How far the checks go.")
@json_option
def check(distribution: str, profile: str, as_json: bool) -> None:
    """Hold all that an installed plugin DISTRIBUTION offers to the conformance checks; exit code 1 if one fails.

    The checks refute, they do not prove; see docs/conformance.md. Needs the extra: pip install dpgm-core[testing].
    """
    from dpgm_core.errors import OptionError

    try:
        import hypothesis
        import pytest
    except ImportError as error:
        raise OptionError(f"dpgm check needs {error.name}; install it with: pip install 'dpgm-core[testing]'") from None
    del hypothesis, pytest
    from dpgm_core.testing.runner import check_distribution

    reports = []
    for report in check_distribution(distribution, profile=profile):
        reports.append(report)
        if as_json:
            continue
        click.echo(f"{report.header}\n")
        print_table(
            ["check", "result", "seconds"],
            [[one.check, one.status, f"{one.seconds:.2f}"] for one in report.outcomes],
        )
        for one in report.outcomes:
            if one.status != "passed":
                click.echo(f"\n{one.check}: {one.claim}\n  {one.status}: {one.message}")
        click.echo()
    if as_json:
        print_json([report.to_dict() for report in reports])
    failed = sum(len(report.failures) for report in reports)
    ran = sum(one.status != "skipped" for report in reports for one in report.outcomes)
    talk(f"{ran} checks ran on {len(reports)} component(s), {failed} failed")
    if not all(report.ok for report in reports):
        sys.exit(1)
