"""A script that `test_spark_cluster.py` runs against a standalone cluster: sums with a straggler, and through a death.

    python standalone.py MASTER PARQUET FOLDER BEFORE

Prints one JSON line: what each sum came to. In the last one tasks of all partitions but the first
BEFORE wait until the other side has killed a worker.
"""

import json
import sys
import time
import traceback
from pathlib import Path

import numpy as np
from dpgm_spark.source import SparkSource

from dpgm_core import DataError, Domain
from dpgm_core.sources import Reading

DOMAIN = Domain.from_sizes({"a": 3, "b": 4})
#: Seconds that a straggler takes, and the most that a task waits for the other side.
LATE, LONGEST = 20.0, 240.0


class Cells:
    """The joint table. Each task leaves a mark, with its own number: where a stage is tried again, so that lost files
    are made again, attempts count from 0 once more. The first attempt of partition 0 may be late, and first attempts
    of partitions from `before` on may wait for a file."""

    columns, cells = ("a", "b"), 12

    def __init__(self, folder="", late=False, awaited="", before=0):
        self.folder, self.late, self.awaited, self.before = folder, late, awaited, before

    def partial(self, codes, lengths):
        from pyspark import TaskContext

        context = TaskContext.get()
        if self.folder:
            mark = f"{context.partitionId()}-{context.attemptNumber()}-{context.taskAttemptId()}"
            (Path(self.folder) / mark).touch()
        if self.late and context.partitionId() == 0 and context.attemptNumber() == 0:
            time.sleep(LATE)
        end = time.monotonic() + LONGEST
        while self.awaited and context.partitionId() >= self.before and context.attemptNumber() == 0:
            if Path(self.awaited).exists() or time.monotonic() > end:
                break
            time.sleep(0.1)
        return np.bincount(4 * codes[0].astype(np.int64) + codes[1], minlength=12)

    def check(self, sums):
        pass


def sums(frame, reduction, **more):
    """Whatever happens is printed as Python prints what nobody catches."""
    try:
        with SparkSource(data=frame).pinned(Reading(domain=DOMAIN, columns=("a", "b"), **more)) as pinned:
            return pinned.reduce(reduction).tolist()
    except DataError:
        traceback.print_exc()
        return None


def named(folder):
    """Partition, attempt and number of each task that began."""
    return sorted(mark.name for mark in Path(folder).iterdir())


def main():
    master, path, folder, before = sys.argv[1:]
    from pyspark import cloudpickle
    from pyspark.sql import SparkSession

    cloudpickle.register_pickle_by_value(sys.modules["__main__"])
    settings = {
        "spark.ui.enabled": "false",
        "spark.executor.memory": "600m",
        "spark.speculation": "true",
        "spark.speculation.interval": "200ms",
        "spark.speculation.quantile": "0.5",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{folder}/events",
        # Plain text in one file, as in Spark 3.
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    builder = SparkSession.builder.master(master).appName("test")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    frame = spark.read.parquet(path).repartition(12, "b", "id")
    actual = {}
    actual["plain"] = sums(frame, Cells())
    actual["straggler"] = sums(frame, Cells(folder=f"{folder}/late", late=True))
    actual["copies"] = named(f"{folder}/late")
    actual["persons"] = sums(frame, Cells(), person="id")
    actual["texts"] = sums(frame.selectExpr("id as a", "b", "a as id"), Cells())
    waiting = Cells(folder=f"{folder}/marks", awaited=f"{folder}/killed", before=int(before))
    actual["killed"] = sums(frame, waiting, several=True)
    actual["attempts"] = named(f"{folder}/marks")
    sys.stdout.write(json.dumps(actual))
    spark.stop()


if __name__ == "__main__":
    main()
