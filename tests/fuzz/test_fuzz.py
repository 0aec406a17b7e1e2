"""The fuzzing machine in small, and all that it ever found."""

import importlib
import time
import warnings
from pathlib import Path

import pytest

from dpgm_core import DataError

machine = importlib.import_module("tests.fuzz.machine")
targets = importlib.import_module("tests.fuzz.targets")

KEPT = sorted(path for path in machine.CASES.glob("*/*.case") if path.parent.name in targets.TARGETS)
#: So many cases take a second or two each.
CASES = {"model": 150, "release": 200, "ledger": 200, "spec": 200, "csv": 200, "arrow": 300, "outputs": 40}


@pytest.mark.parametrize("name", targets.TARGETS)
def test_the_sound_files_are_read(tmp_path, name):
    """What is spoiled is sound to begin with, so a refusal is the spoiling's."""
    target = targets.TARGETS[name]
    for content in target.seeds().values():
        path = tmp_path / "case"
        path.write_bytes(content)
        assert target.read(path, content) == "read"


@pytest.mark.parametrize("name", targets.TARGETS)
def test_spoiled_files_are_read_or_refused(tmp_path, name):
    """In one line, without warnings, in bounded time and memory, with no file left. Some cases are read, some not."""
    report = machine.run(name, 0, 0, CASES.get(name, 400), tmp_path, seconds=10)
    assert not report.failures
    assert report.outcomes["read"] and report.outcomes["refused"]


@pytest.mark.parametrize("case", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_found_stays_mended(case: Path):
    """Each of these broke something once."""
    outcome, why = machine.replay(case)
    assert why is None and outcome in ("read", "refused")


def _warns(path: Path, sound: bytes) -> str:
    warnings.warn("careless", stacklevel=1)
    return "read"


def _forgets(path: Path, sound: bytes) -> str:
    path.with_name("left").write_bytes(b"")
    return "read"


def _hoards(path: Path, sound: bytes) -> str:
    bytearray(b"x" * 200 * 10**6)
    return "read"


def _hangs(path: Path, sound: bytes) -> str:
    try:
        time.sleep(60)
    except BaseException:  # as a reader does that turns every failure into one of its own
        raise DataError("damaged") from None
    return "read"


def _says_nothing(path: Path, sound: bytes) -> str:
    raise DataError("")


def _crashes(path: Path, sound: bytes) -> str:
    raise ZeroDivisionError


WRONG = {
    _warns: "warning: careless",
    _forgets: "files left",
    _hoards: "MB",
    _hangs: "it took",
    _says_nothing: "not one line",
    _crashes: "ZeroDivisionError",
}


@pytest.mark.parametrize("read", WRONG, ids=lambda read: read.__name__)
def test_the_machine_finds_out(tmp_path, monkeypatch, read):
    """A reader at fault in each way that is looked for; what it was given is kept under the number of the case."""
    broken = machine.Target(seeds=lambda: {"seed": b"sound"}, spoil=targets.spoil_text, read=read, errors=(DataError,))
    monkeypatch.setitem(machine.TARGETS, "uai", broken)
    monkeypatch.setattr(machine, "SECONDS", 0.5 if read is _hangs else 60.0)
    (tmp_path / "work").mkdir()
    report = machine.run("uai", 3, 7, 1, tmp_path / "work", keep=tmp_path)
    assert WRONG[read] in report.failures[7]
    assert [path.name for path in tmp_path.glob("uai/*")] == ["3-7-seed.case"]
