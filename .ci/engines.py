"""Records in an engine: for each, an environment of its own, its plugin's tests with the conformance kit, and a fit.

    python3 .ci/engines.py [spark] [spark4] [remote] [dask] [sql]

The README's commands install none of them. pip alone makes the environments: of Spark it brings a Java, of PostgreSQL
a server. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from versions import ROOT, attempt

#: Tables that differ in one row, in whichever engine is installed.
_NEIGHBOURS = "tests/neighbours/test_engines.py"
#: What pip installs besides dpgm, and where the tests are.
ENGINES: dict[str, tuple[list[str], str]] = {
    "spark": (["-e plugins/dpgm-spark[spark,jdk]"], f"plugins/dpgm-spark {_NEIGHBOURS}"),
    # Needs a Java of the machine: that of JAVA_HOME, or of the program `java`.
    "spark4": (["-e plugins/dpgm-spark[spark4]"], f"plugins/dpgm-spark {_NEIGHBOURS}"),
    "remote": (
        ["-e .[remote]", "-e app[formats]", "s3fs", "moto[server]>=5", "gcsfs", "gcp-storage-emulator"],
        "tests/sources tests/e2e/test_remote.py -k 'remote or buckets or partitions or another_program'",
    ),
    "dask": (["-e plugins/dpgm-dask"], f"plugins/dpgm-dask/tests {_NEIGHBOURS}"),
    "sql": (["-e plugins/dpgm-sql[duckdb,sqlite,postgresql]", "pgserver"], f"plugins/dpgm-sql {_NEIGHBOURS}"),
}


def main() -> int:
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    wanted = sys.argv[1:] or list(ENGINES)
    needed = ["-r requirements.txt", "-e plugins/dpgm-testing"]
    attempts = []
    for name in wanted:
        extras, tests = ENGINES[name]
        command = f"{_java() if name == 'spark4' else ''} pytest -q -rs -m '' {tests}"
        attempts.append((f"dpgm-{name}", sys.executable, [*needed, *extras], pins, command))
    # Two at a time: pip takes one core and waits much, so that tests run while another environment is made.
    with ThreadPoolExecutor(2) as pool:
        passed = list(pool.map(lambda one: attempt(*one), attempts))
    return 0 if all(passed) else 1


def _java() -> str:
    """Return what names the machine's Java to a command; nothing where that is named already, or there is none."""
    java = shutil.which("java")
    return f"JAVA_HOME='{Path(java).resolve().parents[1]}'" if java and "JAVA_HOME" not in os.environ else ""


if __name__ == "__main__":
    sys.exit(main())
