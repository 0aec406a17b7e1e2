"""The conformance kit, on a cluster of two processes."""

import pytest

pytest.importorskip("distributed", reason="distributed is not installed")

from distributed import Client
from dpgm_dask.records import of_table
from dpgm_dask.source import DaskSource

from dpgm_testing import check_component


def test_the_kit_passes_on_processes(cluster):
    """All checks of a source that sums elsewhere, on the active client's workers."""
    with Client(cluster) as client:
        before = sum(client.run(tasks_done).values())
        report = check_component(DaskSource, records=of_table)
        assert sum(client.run(tasks_done).values()) > before + 100
    assert report.ok, str(report)
    done = {line.split()[0]: line.split()[1] for line in str(report).splitlines() if line.endswith(" s")}
    assert done["partitions-change-nothing"] == done["persons-meet-across-partitions"] == "passed"


def tasks_done(dask_worker):
    return dask_worker.state.transition_counter
