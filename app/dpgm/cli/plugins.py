"""The commands `dpgm plugins`, `dpgm new` and `dpgm check`."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import asdict

from dpgm.cli.common import (
    json_option,
    print_err,
    print_json,
    print_lines,
    print_out,
    print_table,
    progress_option,
    progress_shown,
)
from dpgm_core.errors import OptionError

if TYPE_CHECKING:
    from dpgm_testing.runner import Report

__all__ = ["check", "new", "plugins"]


@click.command()
@click.argument("names", metavar="[KIND] [NAME]...", nargs=-1)
@json_option
def plugins(names: tuple[str, ...], as_json: bool) -> None:
    """List every component with its distribution and version, and plugins that are broken, contested or disabled.

    With names, show every option of these components: dpgm plugins naive-mle eb-map. Write the kind before a name that
    two kinds have. A kind alone lists its components: dpgm plugins learner.
    """
    from dpgm_core.plugin import KINDS

    kind = names[0] if names and names[0] in KINDS else None
    components = names[1:] if kind else names
    if components:
        _show(_named(kind, components), as_json)
    else:
        _list(kind, as_json)


def _list(kind: str | None, as_json: bool) -> None:
    """All components, or those of a kind, on stdout."""
    from dpgm_core.components.registry import default_registry

    registry = default_registry()
    offers = [offer for offer in registry if kind in (None, offer.component.kind)]
    times = Counter((offer.component.kind, offer.component.name) for offer in offers)
    rows = []
    for offer in offers:
        one = offer.component
        state = "contested" if times[one.kind, one.name] > 1 else "ok"
        rows.append([one.kind, one.name, offer.distribution, offer.version, state, one.summary])
    if as_json:
        keys = ("kind", "name", "distribution", "version", "state", "summary")
        print_json(
            {
                "components": [dict(zip(keys, row, strict=True)) for row in rows],
                "broken": [
                    {"distribution": one.distribution, "version": one.version, "cause": one.cause}
                    for one in registry.broken
                ],
                "disabled": list(registry.disabled),
            }
        )
        return
    print_table(["kind", "name", "distribution", "version", "state", "summary"], rows)
    for broken in registry.broken:
        print_out()
        print_out(f"broken: {broken.distribution} {broken.version}: {broken.cause}")
    if registry.disabled:
        print_out()
        print_out(f"disabled by DPGM_DISABLE: {', '.join(registry.disabled)}")


def _named(kind: str | None, names: Sequence[str]) -> list[tuple[str, str]]:
    """Kind and name of the components that are meant. Raises UnknownComponent, or OptionError where it is a file."""
    from dpgm_core.components.registry import default_registry

    if kind is not None:
        return [(kind, name) for name in names]
    file = next((name for name in names if Path(name).is_file()), None)
    if file is not None:
        raise OptionError(f"dpgm plugins shows components, and {file} is a file; dpgm query MODEL says what a model is")
    registry = default_registry()
    return [(one, name) for name in names for one in registry.kinds_of(name)]


def _show(components: Sequence[tuple[str, str]], as_json: bool) -> None:
    """Every option of some components on stdout: in JSON an object of one, a list of several."""
    from dpgm_core.components.options import describe
    from dpgm_core.components.registry import default_registry

    registry = default_registry()
    shown = [(registry.find(kind, name), describe(registry.load(kind, name))) for kind, name in components]
    if as_json:
        descriptions = [
            {
                "kind": offer.component.kind,
                "name": offer.component.name,
                "distribution": offer.distribution,
                "version": offer.version,
                "summary": offer.component.summary,
                "options": [asdict(one) for one in options],
            }
            for offer, options in shown
        ]
        print_json(descriptions if len(descriptions) > 1 else descriptions[0])
        return
    for number, (offer, options) in enumerate(shown):
        if number:
            print_out()
        print_out(f"{offer.component.kind} {offer.component.name}, from {offer}: {offer.component.summary}")
        print_out()
        if options:
            rows = [[one.name, one.type, one.default, one.unit, one.help] for one in options]
            print_table(["option", "type", "default", "unit", "help"], rows)
        else:
            print_out("no options")


@click.command()
@click.argument("kind")
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=".",
    show_default=True,
    help="Where to create the plugin's folder, dpgm-NAME.",
)
def new(kind: str, name: str, folder: Path) -> None:
    """Create a folder with a working plugin. Example: dpgm new mechanism my-noise.

    KIND is mechanism, inference, collective, learner, selector or source; NAME is what users will type. The plugin
    passes the conformance kit, and its TODOs name what to replace.
    """
    from dpgm.scaffold import scaffold

    plugin_folder = scaffold(kind, name, folder)
    where = str(plugin_folder) if plugin_folder.is_absolute() else f"./{plugin_folder}"
    # double quotes are read by every shell, but some letters mean something inside them
    requirement = f"{where}[testing]"
    quoted = shlex.quote(requirement) if set(requirement) & set('"$`\\!%') else f'"{requirement}"'
    print_out(f"made {where}; install it with what the check needs, check it, then replace what says TODO:")
    print_out(f"pip install -e {quoted} && dpgm check {plugin_folder.name}")


@click.command()
@click.argument("distribution")
@click.option(
    "--profile", type=click.Choice(["quick", "default", "thorough"]), default="default", help="How thorough to be."
)
@json_option
@progress_option
def check(distribution: str, profile: str, as_json: bool) -> None:
    """Run the conformance checks on all components of an installed DISTRIBUTION; exit code 1 if one fails.

    The checks refute, they do not prove; see docs/conformance.md. Needs: pip install dpgm-testing.
    """
    try:
        import hypothesis
        import pytest
    except ImportError as error:
        raise OptionError(f"dpgm check needs {error.name}; install it with: pip install dpgm-testing") from None
    del hypothesis, pytest
    from dpgm_testing.runner import check_distribution

    reports: list[Report] = []
    try:
        with progress_shown() as progress:
            for report in check_distribution(distribution, profile=profile, progress=progress):
                reports.append(report)
    finally:  # also where another component could not be loaded
        for report in () if as_json else reports:
            _print_report(report)
    if as_json:
        print_json([report.to_dict() for report in reports])
    failed = sum(len(report.failures) for report in reports)
    ran = sum(one.status != "skipped" for report in reports for one in report.outcomes)
    print_err(f"{ran} checks ran on {len(reports)} component(s), {failed} failed")
    if not all(report.ok for report in reports):
        sys.exit(1)


def _print_report(report: Report) -> None:
    """What the checks of one component found."""
    print_out(report.header)
    print_out()
    rows = [[one.check, one.status, f"{one.seconds:.2f}"] for one in report.outcomes]
    print_table(["check", "result", "seconds"], rows)
    for one in report.outcomes:
        if one.status != "passed":
            print_out()
            print_out(f"{one.check}: {one.claim}")
            print_lines(f"  {one.status}: {one.message}")
    print_out()
