"""Where a run writes: names that nobody has, held while it lasts."""

from __future__ import annotations

import itertools
import os
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dpgm_core.errors import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpgm_core.spec import Spec

__all__ = ["free_path", "reserved"]


@contextmanager
def reserved(run: Spec) -> Iterator[tuple[Path, Path]]:
    """Files for the release and the model that nobody has, not even a run of the same spec at the same time.

    A paid release is never overwritten: names are numbered, and one is held by a marker file while the run lasts. The
    name of the ledger, which may still have to be made, is somebody's too.
    """
    from dpgm_core.files import made_folder
    from dpgm_core.releases.discovery import labels_file

    ledger = None if run.ledger is None else os.path.realpath(run.ledger.path)
    with ExitStack() as stack:
        try:
            stack.enter_context(made_folder(run.output))
            for number in itertools.count(1):
                stem = run.name if number == 1 else f"{run.name}-{number}"
                marker = run.output / f".{stem}.reserved"
                release, model = run.output / f"{stem}.release.dpgm", run.output / f"{stem}.dpgm"
                try:
                    marker.touch(exist_ok=False)
                except FileExistsError:
                    continue
                files = (release, model, labels_file(release))
                if not any(os.path.lexists(file) or os.path.realpath(file) == ledger for file in files):
                    break
                marker.unlink()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ModelFileError(f"cannot write to the output folder {run.output}: {reason}") from None
        stack.callback(marker.unlink, missing_ok=True)
        yield release, model


def free_path(path: Path) -> Path:
    """The path, or the first numbered one beside it that nobody has."""
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free
