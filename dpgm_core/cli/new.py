"""dpgm new."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

__all__ = ["new"]


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

    KIND is mechanism, inference, collective, learner or source; NAME is what users will type. The plugin passes the
    conformance kit, and its TODOs say what to replace.
    """
    from dpgm_core.components.scaffold import scaffold

    made = scaffold(kind, name, folder)
    where = str(made) if made.is_absolute() else f"./{made}"
    # double quotes are read by every shell, but some letters mean something inside them
    wanted = f"{where}[testing]"
    quoted = shlex.quote(wanted) if set(wanted) & set('"$`\\!%') else f'"{wanted}"'
    click.echo(f"made {where}; install it with what the check needs, check it, then replace what says TODO:")
    click.echo(f"pip install -e {quoted} && dpgm check {made.name}")
