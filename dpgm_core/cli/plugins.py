"""dpgm plugins, show, new, check."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from dpgm_core.cli.common import json_option, print_json, print_table, say, say_lines, talk

__all__ = ["check", "new", "plugins", "show"]


@click.command()
@json_option
def plugins(as_json: bool) -> None:
    """List every component with its distribution and version, and plugins that are broken, contested or disabled."""
    from collections import Counter

    from dpgm_core.components.registry import default_registry

    registry = default_registry()
    offers = list(registry)
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
        say()
        say(f"broken: {broken.distribution} {broken.version}: {broken.cause}")
    if registry.disabled:
        say()
        say(f"disabled by DPGM_DISABLE: {', '.join(registry.disabled)}")


@click.command()
@click.argument("kind")
@click.argument("name", required=False)
@json_option
def show(kind: str, name: str | None, as_json: bool) -> None:
    """Every option of a component, such as: dpgm show learner naive-mle."""
    from attrs import asdict

    from dpgm_core.components.options import describe
    from dpgm_core.components.registry import default_registry
    from dpgm_core.errors import OptionError

    if name is None:
        raise OptionError(
            f"dpgm show needs the kind and the name of a component, such as: dpgm show source csv; got {kind!r} alone "
            "(dpgm plugins lists all of them, and dpgm query MODEL says what a model is)"
        )
    registry = default_registry()
    cls = registry.load(kind, name)
    offer = registry.find(kind, name)
    options = describe(cls)
    if as_json:
        print_json(
            {
                "kind": kind,
                "name": name,
                "distribution": offer.distribution,
                "version": offer.version,
                "summary": offer.component.summary,
                "options": [asdict(one) for one in options],
            }
        )
        return
    say(f"{kind} {name}, from {offer}: {offer.component.summary}")
    say()
    if not options:
        say("no options")
        return
    rows = [[one.name, one.type, one.default, one.unit, one.help] for one in options]
    print_table(["option", "type", "default", "unit", "help"], rows)


@click.command()
@click.argument("kind")
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=".",
    show_default=True,
    help="Where to make the plugin's folder, dpgm-NAME.",
)
def new(kind: str, name: str, folder: Path) -> None:
    """Make a folder with a plugin that works as it stands, such as: dpgm new mechanism my-noise.

    KIND is mechanism, inference, collective, learner, selector or source; NAME is what users will type. The plugin
    passes the conformance kit, and its TODOs say what to replace.
    """
    from dpgm_core.components.scaffold import scaffold

    made = scaffold(kind, name, folder)
    where = str(made) if made.is_absolute() else f"./{made}"
    # double quotes are read by every shell, but some letters mean something inside them
    wanted = f"{where}[testing]"
    quoted = shlex.quote(wanted) if set(wanted) & set('"$`\\!%') else f'"{wanted}"'
    say(f"made {where}; install it with what the check needs, check it, then replace what says TODO:")
    say(f"pip install -e {quoted} && dpgm check {made.name}")


@click.command()
@click.argument("distribution")
@click.option(
    "--profile", type=click.Choice(["quick", "default", "thorough"]), default="default", help="How far the checks go."
)
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
        say(report.header)
        say()
        print_table(
            ["check", "result", "seconds"],
            [[one.check, one.status, f"{one.seconds:.2f}"] for one in report.outcomes],
        )
        for one in report.outcomes:
            if one.status != "passed":
                say()
                say(f"{one.check}: {one.claim}")
                say_lines(f"  {one.status}: {one.message}")
        say()
    if as_json:
        print_json([report.to_dict() for report in reports])
    failed = sum(len(report.failures) for report in reports)
    ran = sum(one.status != "skipped" for report in reports for one in report.outcomes)
    talk(f"{ran} checks ran on {len(reports)} component(s), {failed} failed")
    if not all(report.ok for report in reports):
        sys.exit(1)
