"""Planted values appear in nothing that a cluster prints, logs or raises while sums are taken."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="distributed is not installed")


def test_planted_values_reach_no_log_and_no_error():
    """Debug logs of scheduler and workers, their stories and keys, stdout, stderr and tracebacks, all through failures.

    The same values in a task that is not ours do appear, so they would be seen.
    """
    script = Path(__file__).with_name("planted.py")
    loud = os.environ | {"DASK_LOGGING__DISTRIBUTED": "debug"}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, env=loud)
    before, _, after = done.stderr.partition("=== aloud")
    made = json.loads(done.stdout.splitlines()[0])["made"]
    assert made == [True] * 6 + [False] * 8
    assert "DEBUG" in before
    assert "Zq9planted" in after and "918273645" in after
    assert before.count("details are withheld") == 8
    for secret in ("Zq9planted", "918273645"):
        assert secret not in before and secret not in done.stdout
