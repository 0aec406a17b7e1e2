"""Planted values appear in nothing that Spark prints, logs or raises while sums are taken."""

import json
import os
import subprocess
import sys
from pathlib import Path

SECRETS = ("Zq9planted", "918273645")


def test_planted_values_reach_no_log_and_no_error(java, tmp_path):
    """The driver's log at level INFO, tracebacks, stdout and the event log, through sums that are made and sums that
    fail in Python and in the JVM. The same failure in a job that is not ours does appear, so it would be seen."""
    script = Path(__file__).with_name("planted.py")
    command = [sys.executable, str(script), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | java)
    assert json.loads(done.stdout) == [True, True, True, False, False]
    before, _, after = done.stderr.partition("=== aloud")
    assert "Zq9planted" in after
    assert before.count("SourceRefused: ") == 2
    for secret in SECRETS:
        assert secret not in before and secret not in done.stdout
    (log,) = tmp_path.iterdir()
    events = [json.loads(line) for line in log.read_text().splitlines()]
    jobs = [place for place, event in enumerate(events) if event["Event"] == "SparkListenerJobStart"]
    assert len(jobs) > 8
    # The last two jobs are a plan that fails by itself, whose text Spark keeps, ours or not.
    ours = "\n".join(map(json.dumps, events[: jobs[-2]]))
    assert not any(secret in ours for secret in SECRETS)
    assert any("Zq9planted" in json.dumps(event) for event in events[jobs[-2] :])
