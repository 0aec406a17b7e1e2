"""A script that `test_leaks.py` runs: sums over records with planted values, on a cluster that logs all it does.

It prints what scheduler and workers remember; a last task of its own fails aloud, so that it is seen that one would be.
"""

import contextlib
import json
import logging
import sys
import traceback
import warnings

import cloudpickle
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster
from dpgm_dask.source import DaskSource

from dpgm_core import DataError, Domain
from dpgm_core.sources import Reading

TEXT, NUMBER = "Zq9planted", 918273645
DOMAIN = Domain.from_sizes({"a": 3, "b": 3})


class Pair:
    """A table of both attributes."""

    columns = ("a", "b")
    cells = 9

    def partial(self, codes, lengths):
        return np.bincount(3 * codes[0].astype(np.int64) + codes[1], minlength=9)

    def check(self, sums):
        pass


def raising(frame):
    raise ValueError(f"cannot read {frame.iloc[0].to_dict()} {TEXT} {NUMBER}")


def speaking(frame):
    logging.getLogger("distributed.worker").error("met %s", TEXT)
    warnings.warn(f"met {TEXT}", stacklevel=1)
    np.array([float(NUMBER)]) / 0
    return frame


def sums(frame, **more):
    """Whatever happens is printed as Python prints what nobody catches."""
    reading = Reading(domain=DOMAIN, columns=("a", "b"), **more)
    try:
        with DaskSource(data=frame).pinned(reading) as pinned:
            return [pinned.reduce(Pair()).tolist() for _ in range(2)]
    except DataError:
        traceback.print_exc()
        return None


def main():
    rows = pd.DataFrame({"a": [0, 1, NUMBER] * 10, "b": [2, 1, 0] * 10, "id": [TEXT, "x", str(NUMBER)] * 10})
    texts = rows.assign(a=[TEXT] * 30)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        frame, dirty = dd.from_pandas(rows, npartitions=3), dd.from_pandas(texts, npartitions=3)
        ways = [{}, {"several": True}, {"person": "id"}, {"person": "id", "several": True}]
        done = [sums(frame, **way) for way in ways]
        done.append(sums(dirty))
        done.append(sums(frame.map_partitions(speaking, meta=frame._meta)))
        for way in ways:
            failed = [frame.map_partitions(raising, meta=frame._meta), dirty.assign(a=dirty["a"].astype(int))]
            done += [sums(one, **way) for one in failed]
        said = [client.get_scheduler_logs(), client.get_worker_logs(), client.get_events()]
        said.append(client.run_on_scheduler(lambda dask_scheduler: list(map(str, dask_scheduler.tasks))))
        said.append(client.run(lambda dask_worker: list(map(str, dask_worker.state.log))))
        print(json.dumps({"made": [one is not None for one in done]}))
        print(json.dumps(said, default=str))
        sys.stdout.flush()
        print("=== aloud", file=sys.stderr, flush=True)
        with contextlib.suppress(ValueError):
            client.submit(raising, rows, pure=False).result()


if __name__ == "__main__":
    cloudpickle.register_pickle_by_value(sys.modules["__main__"])
    main()
