"""A script that `test_spark_leaks.py` runs: sums over records with planted values, in a session that logs all it does.

    python planted.py EVENTS

What Spark's driver says goes to stderr, in full. At the end a task that is not ours fails aloud, so that it is seen
that one would be.
"""

import contextlib
import json
import sys
import traceback
import warnings

import numpy as np
from dpgm_spark.source import SparkSource

from dpgm_core import DataError, Domain
from dpgm_core.sources import Reading

TEXT, NUMBER = "Zq9planted", 918273645
DOMAIN = Domain.from_sizes({"a": 3, "b": 3})


class Pair:
    """A table of both attributes."""

    columns, cells = ("a", "b"), 9

    def __init__(self, speaking=False, raising=False):
        self.speaking, self.raising = speaking, raising

    def partial(self, codes, lengths):
        if self.speaking:
            warnings.warn(f"met {TEXT}", stacklevel=1)
            np.array([float(NUMBER)]) / 0
        if self.raising:
            raise ValueError(f"met {TEXT} and {NUMBER}")
        return np.bincount(3 * codes[0].astype(np.int64) + codes[1], minlength=9)

    def check(self, sums):
        pass


def sums(frame, reduction, **more):
    """Whatever happens is printed as Python prints what nobody catches."""
    reading = Reading(domain=DOMAIN, columns=("a", "b"), **more)
    try:
        with SparkSource(data=frame).pinned(reading) as pinned:
            return [pinned.reduce(reduction).tolist() for _ in range(2)]
    except DataError:
        traceback.print_exc()
        return None


def main():
    from pyspark import cloudpickle
    from pyspark.sql import SparkSession

    cloudpickle.register_pickle_by_value(sys.modules["__main__"])
    settings = {
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{sys.argv[1]}",
        # Plain text in one file, as in Spark 3.
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.log.level": "INFO",
    }
    builder = SparkSession.builder.master("local[2,2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    rows = [(place % 3, NUMBER if place % 2 else 1, TEXT if place % 5 else None) for place in range(30)]
    frame = spark.createDataFrame(rows, ["a", "b", "id"])
    texts = frame.selectExpr("id as a", "b", "a as id")
    done = [sums(frame, Pair(), **way) for way in ({"several": True}, {"person": "id"})]
    done.append(sums(texts, Pair(speaking=True)))
    done.append(sums(frame, Pair(raising=True)))
    # Their own plan fails, in the JVM: what it says goes no further than Spark's own event log.
    sys.stderr.write("=== theirs\n")
    sys.stderr.flush()
    spark.conf.set("spark.sql.ansi.enabled", "true")
    done.append(sums(texts.selectExpr("cast(a as int) as a", "b"), Pair()))
    sys.stdout.write(json.dumps([one is not None for one in done]))
    sys.stdout.flush()
    sys.stderr.write("=== aloud\n")
    sys.stderr.flush()
    with contextlib.suppress(Exception):
        texts.selectExpr("cast(a as int) as a").collect()
    spark.stop()


if __name__ == "__main__":
    main()
