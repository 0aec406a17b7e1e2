"""Replicates of a model file: made when they are first asked for, then kept in the file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dpgm_core.cli.common import print_err
from dpgm_core.cli.progress import progress_shown

if TYPE_CHECKING:
    from dpgm_core.models.model import Model

__all__ = ["DEFAULT_REPLICATES", "replicates_options", "with_replicates"]

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_REPLICATES = 40


def replicates_options(command: F) -> F:
    """`--replicates` and `--seed`."""
    seeded = click.option("--seed", type=click.IntRange(0), default=None, help="Make replicates that can be repeated.")
    counted = click.option(
        "--replicates",
        type=click.IntRange(2, 1000),
        default=None,
        help=f"Refits behind the error bars, {DEFAULT_REPLICATES} if the file has none; made once and kept in it.",
    )
    return counted(seeded(command))


def with_replicates(model: Model, path: Path, count: int | None, seed: int | None) -> Model:
    """The model with as many replicates as asked for: those of its file, or new ones, which the file then keeps.

    A file that cannot be written stays as it is; stderr says so.
    """
    from dpgm_core.errors import ModelFileError
    from dpgm_core.learning.bootstrap import bootstrap
    from dpgm_core.randomness import SeededRandomness

    have = len(model.replicates)
    if have and seed is None and count in (None, have):
        return model
    with progress_shown() as progress:
        model = bootstrap(
            model,
            count or have or DEFAULT_REPLICATES,
            randomness=None if seed is None else SeededRandomness(seed),
            progress=progress,
        )
    try:
        if not os.access(path, os.W_OK):
            raise ModelFileError(f"{path} is read-only")
        model.save(path.resolve())
    except ModelFileError as error:
        print_err(f"dpgm: the replicates are not kept, so they will be made again: {error}")
    return model
