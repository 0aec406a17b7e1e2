"""A real cluster: a standalone master and two workers as processes, one of which is killed in the middle of a sum."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SECRET = "Zq9planted"
#: Partitions that are summed before a worker dies.
BEFORE = 4


@pytest.fixture
def cluster(java, tmp_path):
    """The master's address and its workers, whose logs are below `tmp_path`."""
    import pyspark

    home = str(Path(pyspark.__file__).parent)
    env = os.environ | java | {"SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"
    started = []

    def start(name, *arguments):
        with (tmp_path / f"{name}.log").open("wb") as log:
            command = [f"{home}/bin/spark-class", f"org.apache.spark.deploy.{name.rstrip('12')}", *arguments]
            one = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
        started.append(one)
        return one

    try:
        # Each worker is a host of its own: Spark runs no copy of a slow task where the task runs already.
        start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        workers = [
            start(f"worker.Worker{number}", "--host", f"127.0.0.{number}", "-c", "1", "-m", "700m", "--webui-port", "0",
                  "-d", str(tmp_path / f"work{number}"), address)
            for number in (1, 2)
        ]  # fmt: skip
        yield address, workers
    finally:
        for one in started:
            kill(one)


def kill(process):
    """A process and all that it has started: they are one group."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.1)


def waiting(folder):
    """How many tasks began that wait for a worker's death."""
    return sum(int(mark.name.partition("-")[0]) >= BEFORE for mark in folder.iterdir())


@pytest.mark.landing
def test_a_worker_killed_in_the_middle_changes_no_count(cluster, java, tmp_path):
    """Two workers, speculation on. A straggler's copy wins, and both are counted once; a worker dies while it sums, the
    other one does its part again; planted values are in no log of driver, master, workers and executors, nor in the
    event log, also where the records do not fit the domain."""
    address, workers = cluster
    rng = np.random.default_rng(0)
    a, b, person = (rng.integers(0, most, 3000) for most in (3, 4, 1000))
    keys = [f"{SECRET}{key}" for key in person]
    pq.write_table(pa.table({"a": a.astype(str), "b": b.astype(str), "id": keys}), tmp_path / "x.parquet")
    for name in ("events", "late", "marks"):
        (tmp_path / name).mkdir()
    script = Path(__file__).with_name("standalone.py")
    env = os.environ | java | {"SPARK_LOCAL_IP": "127.0.0.1"}
    with (tmp_path / "driver.err").open("wb") as log:
        command = [sys.executable, str(script), address, str(tmp_path / "x.parquet"), str(tmp_path), str(BEFORE)]
        driver = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log, start_new_session=True)
    try:
        # Both workers are in a task that waits, when one of them dies.
        until(lambda: waiting(tmp_path / "marks") >= 2 or driver.poll() is not None, 300)
        kill(workers[0])
        (tmp_path / "killed").touch()
        out = driver.communicate(timeout=300)[0].decode()
    finally:
        kill(driver)
    assert driver.returncode == 0, (tmp_path / "driver.err").read_text()[-3000:]
    actual = json.loads(out)
    want = np.bincount(4 * a + b, minlength=12).tolist()
    assert actual["plain"] == actual["straggler"] == actual["killed"] == want
    assert sum(mark.startswith("0-") for mark in actual["copies"]) >= 2, "no copy of the straggler ran"
    assert sum(actual["persons"]) == len(set(keys))
    assert sum(actual["texts"]) == 3000 or actual["texts"] is None
    assert len(actual["attempts"]) > len({mark.partition("-")[0] for mark in actual["attempts"]}) == 12
    logs = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".parquet"]
    assert any("stderr" in path.name for path in logs) and any("events" in str(path) for path in logs)
    for path in logs:
        assert SECRET.encode() not in path.read_bytes(), path
    assert SECRET not in out
