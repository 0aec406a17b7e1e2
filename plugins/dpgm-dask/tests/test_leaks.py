"""Planted values appear in nothing that a cluster prints, logs or raises while sums are taken."""

import json
import logging
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

import dpgm_core as dpgm
from dpgm_core.sources import Reading
from dpgm_core.sources.reading import quiet

pytest.importorskip("distributed", reason="distributed is not installed")

SECRET = "Zq9planted"


class Unreadable:
    """A cell that pickles; whoever unpickles it hears its words."""

    def __reduce__(self):
        return fail, (SECRET,)


def fail(words):
    raise ValueError(f"cannot read {words}")


def aloud(frame, salt):
    logging.getLogger("pandas").error("met %s", SECRET)
    fail(SECRET)


@pytest.fixture
def heard(capfd):
    """All that a cluster in this process logs, at any level, or prints; says so when it is asked."""
    logs = []
    listener = logging.Handler()
    listener.emit = lambda record: logs.append(logging.Formatter().format(record))
    loggers = {logging.getLogger(name): logging.getLogger(name).level for name in ("distributed", "tornado", "pandas")}
    for logger in loggers:
        logger.addHandler(listener)
        logger.setLevel(logging.DEBUG)

    def all_of_it():
        printed = capfd.readouterr()
        return "\n".join([*logs, printed.out, printed.err])

    yield all_of_it
    for logger, level in loggers.items():
        logger.removeHandler(listener)
        logger.setLevel(level)


@pytest.fixture(scope="module")
def client():
    """A scheduler and a worker in this process."""
    from distributed import Client

    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as made:
        yield made


def frames(salt):
    """What the scheduler cannot unpickle; what fails and speaks in a task that two partitions share.

    salt: for another name of that task, whose failure dask may remember.
    """
    import dask
    import dask.dataframe as dd
    import pandas as pd

    rows = pd.DataFrame({"a": ["x", "y"] * 4, "b": ["x", "y"] * 4})
    cells = pd.Series(["x"] * 7 + [Unreadable()], dtype=object)
    parts = [dask.delayed(one, pure=False) for one in (rows, rows.assign(a=cells))]
    yield "unreadable", dd.from_delayed(parts, meta=rows.iloc[:0], verify_meta=False)
    whole = dd.from_pandas(rows, npartitions=2).repartition(npartitions=1)
    yield "aloud", dd.concat([part := whole.map_partitions(aloud, salt, meta=whole._meta), part])


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


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("name", ["unreadable", "aloud"])
def test_a_cluster_in_this_process_logs_no_record(name, several, client, heard):
    """As core reads, in one sum or several; dask itself, asked for the same frame, does log the planted value."""
    from dpgm_dask.source import DaskSource

    frame = dict(frames(2 * several))[name]
    domain = dpgm.Domain.from_dict({name: ["x", "y"] for name in "ab"})
    curator = dpgm.LiveCurator(
        DaskSource(data=frame),
        dpgm.Structure(domain, [("a", "b")]),
        dpgm.make("mechanism", "laplace"),
        terms=dpgm.Terms(neighbours="add-remove", total="estimated"),
        budget=dpgm.Budget.pure(1),
    )
    with pytest.raises(dpgm.DataError, match="dask could not sum the records"):
        if several:
            with curator.session(workload=dpgm.Workload.all(domain, 2)):
                pass
        else:
            curator.release()
    assert SECRET not in heard()
    with pytest.raises(Exception):  # noqa: B017 - whatever dask makes of it
        client.compute(dict(frames(2 * several + 1))[name]).result()
    assert SECRET in heard()


@pytest.mark.parametrize("name", ["unreadable", "aloud"])
def test_nothing_goes_on_when_the_records_are_pinned(name, client, heard):
    """Core is silent until they are; what is kept on the workers is there by then, or has failed."""
    from dpgm_dask.source import DaskSource

    domain = dpgm.Domain.from_dict({name: ["x", "y"] for name in "ab"})
    reading = Reading(domain=domain, columns=("a", "b"), several=True)
    with ExitStack() as stack:
        with quiet():
            stack.enter_context(DaskSource(data=dict(frames("pinned"))[name]).pinned(reading))
        time.sleep(0.1)
        assert SECRET not in heard()
