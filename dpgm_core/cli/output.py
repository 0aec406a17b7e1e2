"""Where a run writes: names that nobody has, held while it lasts; and what runs before it left unfinished."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dpgm_core.errors import ModelFileError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpgm_core.spec import Spec

__all__ = ["free_path", "reserved"]

_LONGEST = 2**16  # bytes of a marker
_NAME = "name="  # begins the line of a marker that says whose it is


@contextmanager
def reserved(run: Spec, *, again: bool = False) -> Iterator[tuple[Path, Path]]:
    """Files for the release and the model that nobody has, not even a run of the same spec at the same time.

    A paid release is never overwritten: names are numbered, and one is held by a locked marker file while the run
    lasts. The marker of a run that failed after it had saved something stays, as does that of one that was killed; as
    long as no model of its name is there, that run is unfinished. Raises OptionError, unless `again`, where the output
    folder has an unfinished run of this name; ModelFileError where nothing can be written.
    """
    from dpgm_core.cli.run import releases_of, saved_files
    from dpgm_core.files import make_folder

    left: list[_Names] = []
    with ExitStack() as stack:
        try:
            stack.enter_context(make_folder(run.output))
            left = _left(run)
            names, lock = _taken(run, left)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ModelFileError(f"cannot write to the output folder {run.output}: {reason}") from None
        stack.callback(os.close, lock)
        try:
            asking = [one for one in left if not one.goes_on_as(run)]
            if asking and not again:
                raise OptionError(_unfinished(asking))
            yield names.release, names.model
        except BaseException as error:
            files = [*saved_files(releases_of(error)), *names.saved]
            if files:
                with suppress(OSError):
                    names.marker.write_text(
                        "".join(f"{line}\n" for line in [_NAME + run.name, *map(Path.absolute, files)])
                    )
            else:
                names.clear()
            raise
        for one in (names, *left):  # the owner was told of the others, or has gone on with them
            one.clear()


class _Names:
    """The files of one run. stem: its name with its number."""

    def __init__(self, run: Spec, stem: str) -> None:
        from dpgm_core.releases.discovery import labels_file

        folder = run.output
        self.folder, self.stem, self.ledger = folder, stem, run.ledger
        self.marker, self.model = folder / f".{stem}.reserved", folder / f"{stem}.dpgm"
        self.release = folder / f"{stem}.release.dpgm"
        self.labels = labels_file(self.release)

    @property
    def saved(self) -> list[Path]:
        """What is there of its releases, the first one first, or of its labels where no release is there."""
        start = f"{self.stem}.release"
        releases = [one for one in self._files() if one.name.startswith((f"{start}.", f"{start}-"))]
        labels = [self.labels] if _is_there(self.labels) else []
        return sorted(releases, key=lambda one: (len(one.name), one.name)) or labels

    @property
    def is_taken(self) -> bool:
        """Whether another file has one of its names, or the ledger, which may still have to be made."""
        ledger = None if self.ledger is None else os.path.realpath(self.ledger.path)
        files = (self.release, self.model, self.labels)
        return any(_is_there(file) or os.path.realpath(file) == ledger for file in files)

    def clear(self) -> None:
        """Remove the marker, and what `clear_parts` removes."""
        self.clear_parts()
        _removed(self.marker)

    def clear_parts(self) -> None:
        """Remove hidden files that a killed run has begun: the room for its files."""
        from dpgm_core.files import find_parts, numbered_path

        for file in (self.model, self.labels, self.release, numbered_path(self.release, 2)):
            for part in find_parts(file):
                _removed(part)

    def _said(self) -> list[str]:
        """The lines of the marker; none where it cannot be read."""
        with suppress(OSError, ValueError):
            return self.marker.read_bytes()[:_LONGEST].decode().splitlines()
        return []

    def is_of(self, run: Spec) -> bool:
        """Whether the marker was left under the name of this run: another run may be called as this one's second."""
        said = self._said()
        return not said or not said[0].startswith(_NAME) or said[0] == _NAME + run.name

    def left(self) -> list[Path]:
        """What was paid for and saved by a run that is over, as its files and its marker tell; nothing with a model."""
        saved = self.saved
        if any(one.name.startswith(f"{self.stem}.") and one not in saved for one in self._files()):
            return []
        said = [Path(line) for line in self._said() if not line.startswith(_NAME)]
        return saved + [one for one in said if _is_there(one) and one not in [*map(Path.absolute, saved)]]

    def goes_on_as(self, run: Spec) -> bool:
        """Whether a run takes up the labels that are all that this one has left."""
        return run.labels_from is not None and self.saved == [self.labels] == [_same(self.labels, run.labels_from)]

    def _files(self) -> list[Path]:
        with suppress(OSError):  # it may be what failed
            return [one for one in self.folder.iterdir() if one.name.endswith(".dpgm")]
        return []


def _same(one: Path, other: Path) -> Path | None:
    """The first, if both are one file."""
    with suppress(OSError):
        return one if one.samefile(other) else None
    return None


def _left(run: Spec) -> list[_Names]:
    """The unfinished runs of this name, whatever their number; markers that tell of nothing are removed."""
    pattern = re.compile(rf"\.({re.escape(run.name)}(?:-([0-9]{{1,9}}))?)\.reserved")
    markers = [match for marker in run.output.iterdir() if (match := pattern.fullmatch(marker.name))]
    left = []
    for match in sorted(markers, key=lambda marker: int(marker[2] or 1)):
        names = _Names(run, match[1])
        lock = _locked(names.marker, create=False)
        if lock is None:
            continue
        if _is_same_file(names.marker, lock):  # else it finished meanwhile
            if names.left():
                left += [names] if names.is_of(run) else []
            elif names.is_taken:
                names.clear()
        os.close(lock)
    return left


def _taken(run: Spec, left: Sequence[_Names]) -> tuple[_Names, int]:
    """The first free names, not of a run that is `left`, and the lock on their marker."""
    stems = {one.stem for one in left}
    for number in itertools.count(1):
        names = _Names(run, run.name if number == 1 else f"{run.name}-{number}")
        while names.stem not in stems and not names.is_taken:
            was_there = _is_there(names.marker)
            lock = _locked(names.marker, create=True, was_there=was_there)
            if lock is None:
                break  # of a run that is under way
            is_held = _is_same_file(names.marker, lock)
            if is_held and not names.is_taken:
                names.clear_parts()
                names.marker.write_text(f"{_NAME}{run.name}\n")  # in place of what a run that is over wrote into it
                return names, lock
            if is_held and not was_there:
                _removed(names.marker)
            os.close(lock)
    raise AssertionError


def _locked(marker: Path, *, create: bool, was_there: bool = True) -> int | None:
    """A descriptor of the marker, locked until it is closed or its process is dead; None where another has the lock.

    Without locks of files, as on some network disks, a marker that is there is taken for that of a run under way.
    """
    if sys.platform == "win32":
        try:
            os.close(os.open(marker, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return None
        return os.open(os.devnull, os.O_RDWR)  # an open file could not be removed
    import fcntl

    try:
        descriptor = os.open(marker, os.O_RDWR | os.O_NOFOLLOW | (os.O_CREAT if create else 0), 0o666)
    except FileNotFoundError:
        return None  # it finished meanwhile
    try:
        # Runs that only look do not take each other for one that is under way.
        fcntl.flock(descriptor, (fcntl.LOCK_EX if create else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError as error:
        if was_there or isinstance(error, BlockingIOError):
            os.close(descriptor)
            return None
    return descriptor


def _is_same_file(marker: Path, lock: int) -> bool:
    if sys.platform == "win32":
        return True
    try:
        return os.path.samestat(marker.lstat(), os.fstat(lock))
    except OSError:
        return False


def _is_there(path: Path) -> bool:
    return os.path.lexists(path)


def _removed(marker: Path) -> None:
    with suppress(OSError):
        marker.unlink()


def _unfinished(left: Sequence[_Names]) -> str:
    """What an earlier run has paid for, and how to go on with it."""
    first = left[0]
    files = first.left()
    if files == [first.labels]:
        what = f"the labels in {first.labels} are paid for, and their run of this name did not finish; go on"
        how = f"--set labels_from={shlex.quote(str(first.labels.absolute()))}"
    else:
        what = f"the release {files[0]} is paid for, and its run of this name did not finish; make a model of it, free,"
        how = shlex.join(["dpgm", "learn", *map(str, files), "-o", str(first.model)])
    more = f" ({len(left) - 1} more like it)" if len(left) > 1 else ""
    return f"{what} with: {how}{more}. To spend again all the same, add --again, or give another name (--set name=...)"


def free_path(path: Path) -> Path:
    """The path, or the first numbered one beside it that nobody has."""
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free
