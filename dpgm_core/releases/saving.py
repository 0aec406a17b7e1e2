"""Disk space reserved before a charge, and other places to save where the first fails after it."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from dpgm_core._util.files import part_path, plain
from dpgm_core.errors import ModelFileError
from dpgm_core.privacy.mechanism import Noise, noise_fields
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.workload import Workload

__all__ = ["NOISY_STEPS", "Room", "release_size", "save_elsewhere", "saved_text", "session_size"]

_BLOCK_BYTES = 2**20  # bytes written at once
_SLACK_BYTES = 2**13  # bytes: headers, and numbers that are longer in a document than those it was measured with
#: Steps with a noise of their own that few sessions have more of.
NOISY_STEPS = 32
_MAX_TABLE_CELLS = 2**17  # of a session's tables of several attributes, at most: few sessions measure as many

#: What is said of a release whose file could not be written anywhere.
_UNSAVED = "paid for and could NOT be saved ({}): it is in error.releases alone, and lost when this program ends"


class Room:
    """Space for a file, taken before its content is known: a hidden file of `size` bytes next to it, synced.

    `part` is handed to whatever writes the file, which then needs no other space; what exceeds it is at risk. Closed or
    forgotten, it is removed. Raises ModelFileError where there is not so much space, or no file can be written.
    """

    def __init__(self, path: Path, size: int) -> None:
        folder = next((one for one in path.absolute().parents if one.is_dir()), path.parent)
        self.part = part_path(folder / path.name)
        # A forked process must not remove it as it ends.
        self._remove = weakref.finalize(self, _remove, self.part, os.getpid())
        try:
            with self.part.open("xb") as file:
                for start in range(0, size, _BLOCK_BYTES):
                    file.write(os.urandom(min(_BLOCK_BYTES, size - start)))  # zeros take no space on some disks
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self.close()
            reason = error.strerror or type(error).__name__
            raise ModelFileError(
                f"there is no room for {path}, which may take {size:,} bytes ({reason}); nothing was charged for it: "
                "make room, or write to another disk"
            ) from None

    def close(self) -> None:
        """Give the space back."""
        self._remove()


def release_size(release: NoisyTables) -> int:
    """Return how many bytes the file of a release takes at most; its numbers may be those of a plan.

    Numbers of a plan are all 0; facts of the payment that are not known yet are short.
    """
    numbers = len(release.numbers)
    return _document_size(release.to_document()) + 8 * numbers + numbers // 1000 + _SLACK_BYTES


def session_size(workload: Workload, noise: Noise | None = None) -> int:
    """Return how many bytes the file of a session over this workload takes, unless it measures unusually much.

    noise: of a table for a small share of the budget, where it is a third party's: each step writes its own. Twice
    over, as each step writes the file anew while that of the step before is still there.
    """
    sizes = {one.name: one.size for one in workload.domain}
    alone = sum(sizes[name] for name in workload.attributes)
    several = (clique for clique in workload.candidates if len(clique) > 1)
    cells = (min(math.prod(sizes[name] for name in clique), workload.max_cells) for clique in several)
    tables = min(sum(cells), _MAX_TABLE_CELLS)
    facts = [workload.domain.to_dict(), [list(clique) for clique in workload.candidates]]
    noises = 0 if noise is None else NOISY_STEPS * _document_size(plain(noise_fields(noise)))
    return 2 * (_document_size(facts) + 8 * (alone + tables) + noises + _SLACK_BYTES)


def save_elsewhere(path: Path, why: Exception, ledger: Path | None, save: Callable[[Path], object]) -> Path:
    """Save what could not be written to its own place in a new folder that only its owner can enter; return its path.

    path: where it was to be; the file keeps its name. why: what that place said. The folder is made next to the file of
    the ledger, else in the system's temporary folder. save: writes to the path that it is called with. Raises
    ModelFileError with the reason of each place where none takes it.
    """
    said = [str(why)]
    for place in (None,) if ledger is None else (ledger.parent, None):
        folder: Path | None = None
        try:
            folder = Path(tempfile.mkdtemp(prefix="dpgm-", dir=place))
            save(folder / path.name)
            (folder / path.name).chmod(0o600)
        except (OSError, ModelFileError) as error:
            said.append(str(error))
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
        else:
            return folder / path.name
    raise ModelFileError("; ".join(said)) from why


def saved_text(releases: Sequence[NoisyTables]) -> str | None:
    """Return what is true of releases some of which could not be saved anywhere; None where there is none."""
    lost = [one.save_error for one in releases if one.save_error is not None and one.saved_as is None]
    return _UNSAVED.format(lost[0]) if lost else None


def _document_size(document: object) -> int:
    return len(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"))


def _remove(part: Path, process: int) -> None:
    if os.getpid() == process:
        with suppress(OSError):
            part.unlink(missing_ok=True)
