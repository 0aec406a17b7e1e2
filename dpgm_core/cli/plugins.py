"""dpgm plugins, show."""

from __future__ import annotations

import click

from dpgm_core.cli.common import json_option, print_json, print_table

__all__ = ["plugins", "show"]


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
        click.echo(f"\nbroken: {broken.distribution} {broken.version}: {broken.cause}")
    if registry.disabled:
        click.echo(f"\ndisabled by DPGM_DISABLE: {', '.join(registry.disabled)}")


@click.command()
@click.argument("kind")
@click.argument("name")
@json_option
def show(kind: str, name: str, as_json: bool) -> None:
    """Every option of a component, such as: dpgm show learner naive-mle."""
    from attrs import asdict

    from dpgm_core.components.options import describe
    from dpgm_core.components.registry import default_registry

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
    click.echo(f"{kind} {name}, from {offer}: {offer.component.summary}\n")
    if not options:
        click.echo("no options")
        return
    rows = [[one.name, one.type, one.default, one.unit, one.help] for one in options]
    print_table(["option", "type", "default", "unit", "help"], rows)
