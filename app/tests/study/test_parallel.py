"""Several processes: the same numbers, and what they need."""

import json
import sys

import pytest

from dpgm.study import run
from dpgm_core import OptionError


def test_processes_change_nothing(study, done, timeless, tmp_path):
    """Two of them give the bits of one, in the same order, and the same lines in another one."""
    pytest.importorskip("joblib")
    spread = run(study, tmp_path / "s", jobs=2)
    assert timeless(spread.lines) == timeless(done.lines)
    kept = [json.loads(line) for line in (tmp_path / "s/runs.jsonl").read_text().splitlines()]
    assert sorted(map(str, kept)) == sorted(map(str, spread.lines))


def test_one_job_needs_no_joblib(one, monkeypatch):
    """Several are refused without it, with what to install."""
    monkeypatch.setitem(sys.modules, "joblib", None)
    assert run(one).rows[0].failures == 0
    with pytest.raises(OptionError, match=r"dpgm\[study\]"):
        run(one, jobs=2)
    with pytest.raises(OptionError, match="jobs"):
        run(one, jobs=0)
