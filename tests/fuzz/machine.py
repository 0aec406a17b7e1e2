"""Spoils files and reads them: one case after the other, each repeatable by its target, seed and number."""

import contextlib
import random
import resource
import shutil
import signal
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from attrs import define, field

from tests.fuzz.target import Broken, Target
from tests.fuzz.targets import TARGETS

CASES = Path(__file__).parent / "cases"
#: Seconds that reading a small file may take; a loaded machine is slow.
SECONDS = 20.0
#: Bytes of memory for reading a file: some, so many per byte of it, and so many for labels declared by their number.
SOME, PER_BYTE, LABELS = 96 * 10**6, 256, 400 * 2**22


class _TooLong(BaseException):
    """The alarm."""


@define
class Report:
    """What became of the cases. outcomes: how many were read, refused, ...; failures: what broke, by case number."""

    cases: int = 0
    outcomes: Counter[str] = field(factory=Counter)
    odd: Counter[str] = field(factory=Counter)  # edits behind outcomes that are neither a refusal nor a plain reading
    failures: dict[int, str] = field(factory=dict)


def run(
    name: str,
    seed: int,
    first: int,
    count: int,
    folder: Path,
    *,
    seconds: float | None = None,
    keep: Path | None = None,
) -> Report:
    """Cases `first` to `first + count - 1` of a target; stops early after `seconds`. keep: where failing files go."""
    target, report = TARGETS[name], Report()
    sound = target.seeds()
    names = sorted(sound)
    path, end = folder / "case", time.monotonic() + (seconds or float("inf"))
    for number in range(first, first + count):
        if time.monotonic() > end:
            break
        rng = random.Random(f"{name} {seed} {number}")
        chosen, other = rng.choice(names), rng.choice(names)
        content, edits = target.spoil(rng, sound[chosen], sound[other])
        (folder / "number").write_text(f"{number} {chosen}")
        outcome, why = _outcome(target, path, content, sound[chosen])
        report.cases += 1
        report.outcomes[outcome] += 1
        if outcome not in ("read", "refused"):
            report.odd["+".join(edits)] += 1
        if why is not None:
            report.failures[number] = why
            if keep is not None:
                kept(keep, name, seed, number, chosen, content)
    return report


def kept(folder: Path, name: str, seed: int, number: int, chosen: str, content: bytes) -> Path:
    """Keep what failed; the sound file it was made of stands in its name."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    path = folder / name / f"{seed}-{number}-{chosen}.case"
    path.write_bytes(content)
    return path


def replay(case: Path) -> tuple[str, str | None]:
    """Read a kept case again: its outcome, and why it fails if it does."""
    target = TARGETS[case.parent.name]
    chosen = case.stem.split("-", 2)[2]
    with tempfile.TemporaryDirectory() as folder:
        return _outcome(target, Path(folder) / "case", case.read_bytes(), target.seeds()[chosen])


def _outcome(target: Target, path: Path, content: bytes, sound: bytes) -> tuple[str, str | None]:
    path.write_bytes(content)
    before, began, why = {one.name for one in path.parent.iterdir()}, time.monotonic(), None
    start = _fresh_peak()
    with warnings.catch_warnings(record=True) as said, _alarm():
        warnings.simplefilter("always")
        try:
            outcome = target.read(path, sound)
        except target.errors as error:
            outcome = "refused"
            if not str(error) or not str(error).isprintable():
                why = f"the message is not one line of text: {str(error)!r}"
        except (Exception, _TooLong) as error:
            outcome, why = "failed", f"{type(error).__name__}: {error}"
            if isinstance(error, Broken):
                why = f"broken: {error}"
    took, peak = time.monotonic() - began, _peak() - start
    if took > SECONDS:
        why = f"it took {took:.1f} s"
    if peak > SOME + PER_BYTE * len(content) + (LABELS if target.labels else 0):
        why = f"it took {peak / 1e6:.0f} MB"
    if said:
        why = f"warning: {said[0].message}"
    left = {one.name for one in path.parent.iterdir()} - before
    if left:
        why = f"files left: {sorted(left)}"
        for name in left:
            (path.parent / name).unlink()
    path.unlink()
    return ("failed" if why else outcome), why


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise _TooLong(f"more than {SECONDS:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _fresh_peak() -> int:
    """Forget the peak of memory where the system can; the memory in use now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    with contextlib.suppress(OSError, StopIteration):
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def scratch() -> Path:
    """A folder for cases, in memory where there is such a place; `drop` it afterwards."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="dpgm-fuzz-", dir=memory if memory.is_dir() else None))


def drop(folder: Path) -> None:
    """Remove a scratch folder."""
    shutil.rmtree(folder, ignore_errors=True)
