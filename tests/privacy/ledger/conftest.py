"""What tests of the ledger share: ledgers as dpgm wrote them under schema 1."""

import subprocess
import sys
from pathlib import Path

import pytest

#: What scripts of other processes begin with.
HEAD = """
import os, signal, sys
from dpgm_core.errors import BudgetError, DpgmError, Overspent
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ledger import Ledger
"""


@pytest.fixture
def path(tmp_path):
    """Where a ledger may be made."""
    return tmp_path / "survey.ledger"


@pytest.fixture
def race():
    """Runs a script, after HEAD, in four processes at once, its argument a path; returns the words that they print."""

    def run(script, path):
        wait = 'print("ready", flush=True)\nsys.stdin.readline()\n'
        command = [sys.executable, "-c", f"{HEAD}{wait}{script}", str(path)]
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
