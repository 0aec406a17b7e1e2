"""Start a run from Python, as `dpgm init` does from the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from dpgm.cli.init import init as command
from dpgm_core.errors import OptionError

__all__ = ["init"]


def init(source: str | Path, folder: str | Path, **options: object) -> Path:
    """Write `domain.toml` and `spec.toml` of a run from public metadata, and return the spec's path.

    Parameters
    ----------
    source : str or Path
        A schema, or a file of records, of which only the header is read.
    folder : str or Path
        Where both files are written.
    **options : object
        Those of `dpgm init` by name: `person="id"`, `rows_per_person=5`, `drop=["note"]`, `private=True`, `epsilon=3`,
        `delta="1e-6"`, `codebook=["codes.csv"]`, `overwrite=True`.

    Raises
    ------
    DpgmError
        For what cannot be; nothing is written.

    Examples
    --------
    >>> spec = dpgm.init("visits.csv", "visits", person="id", rows_per_person=5, private=True, epsilon=3,
    ...     delta="1e-6")  # doctest: +SKIP
    """
    words = ["--output", str(folder)]
    known = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    for key, value in options.items():
        option = f"--{key.replace('_', '-')}"
        if option not in known or option in ("--ask", "--output"):
            raise OptionError(f"init has no option {key!r:.60}; those of dpgm init go by name, such as person='id'")
        if isinstance(value, bool):
            words += [option] if value else []
        elif value is not None:
            several = value if isinstance(value, Iterable) and not isinstance(value, str) else [value]
            words += [word for one in several for word in (option, str(one))]
    try:
        command.main([*words, "--", str(source)], prog_name="dpgm init", standalone_mode=False)
    except click.ClickException as error:
        raise OptionError(error.format_message()) from None
    return Path(folder) / "spec.toml"
