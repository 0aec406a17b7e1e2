"""Random ledgers against an independent account, and wrong ledgers are found out; more from the command line."""

import subprocess
import sys
from pathlib import Path

import pytest

import dpgm_core

ROOT = Path(dpgm_core.__file__).parents[1]


def machine(*words):
    """`python -m tests.ledgers ...`: its exit code and what it printed."""
    command = [sys.executable, "-m", "tests.ledgers", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stdout + done.stderr


def test_every_account_is_the_independent_one():
    """400 ledgers, eight of them through files; `--ledgers 1000000` is for the command line."""
    code, said = machine("--ledgers", "400", "--files", "50", "--seed", "3")
    assert code == 0 and ": 0 faults (" in said and "files 8" in said and "curves" in said, said


@pytest.mark.sampled(4)
@pytest.mark.parametrize("wrong", ["rho", "epsilon", "approx", "doubles"])
def test_a_wrong_ledger_is_found_out(wrong):
    """The machine can fail: rho as mu^2 / 2, epsilon as mu, (epsilon, delta) into B, sums as doubles."""
    code, said = machine("--ledgers", "3000", "--files", "100000", "--wrong", wrong)
    assert code == 1 and ("let through" in said or "comes to" in said or "refused" in said), said
