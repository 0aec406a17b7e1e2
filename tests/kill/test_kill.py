"""Whole runs killed at random instants: charges and steps survive, and what loses some is found out."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dpgm_core

ROOT = Path(dpgm_core.__file__).parents[1]

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL") or not hasattr(os, "fork"), reason="needs POSIX")


def machine(*words):
    """`python -m tests.kill ...`: its exit code and what it printed."""
    command = [sys.executable, "-m", "tests.kill", "--processes", "4", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=500)
    return done.returncode, done.stdout + done.stderr


def test_nothing_acknowledged_is_lost_and_nothing_is_overspent():
    """30 kills with four processes on one ledger after another; `--kills 1000` is for the command line."""
    code, said = machine("--kills", "30", "--seed", "9")
    assert code == 0 and ": 0 faults (" in said and "sessions learned from" in said, said


@pytest.mark.parametrize(
    ("wrong", "faults"),
    [
        ("wal", ["the main file alone lacks"]),
        ("late", ["the main file alone lacks", "acknowledged charges are gone", "by the entry of another release"]),
    ],
)
def test_a_wrong_ledger_is_found_out(wrong, faults):
    """One in ten files looked at lacks charges under WAL (250 in vain: below 1e-10), and most of a late ledger."""
    code, said = machine("--kills", "300", "--seed", "5", "--sessions", "0", "--wrong", wrong)
    assert code == 1 and any(fault in said for fault in faults), said


def test_a_session_that_is_saved_late_is_found_out():
    """Steps that are shown before they are saved, at the first kills; `--wrong torn` writes files where they stand."""
    code, said = machine("--kills", "300", "--seed", "8", "--sessions", "1", "--wrong", "unsaved")
    assert code == 1 and "shown" in said, said
