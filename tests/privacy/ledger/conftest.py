"""What tests of the ledger share: ledgers as dpgm wrote them under schema 1."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.privacy.ledger.schema1 import write_old


@pytest.fixture
def old_ledger() -> Callable[..., Path]:
    """Makes a ledger of 1 of schema 1 with charges of 0.1; killed: a process died with its charges in the log."""
    return write_old


@pytest.fixture
def race() -> Callable[[str, Path], list[str]]:
    """Runs a script in four processes at once, its argument a path; returns the words that they print.

    The script prints "ready" and waits for a line before it does what is raced for.
    """

    def run(script: str, path: Path) -> list[str]:
        command = [sys.executable, "-c", script, str(path)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        root = Path(__file__).resolve().parents[3]
        racers = [subprocess.Popen(command, cwd=root, text=True, **pipes) for _ in range(4)]
        for racer in racers:
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            racer.stdin.write("go\n")
            racer.stdin.flush()
        words = []
        for racer in racers:
            out, err = racer.communicate(timeout=60)
            assert racer.returncode == 0, err
            words += out.split()
        return words

    return run
