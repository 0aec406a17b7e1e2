"""Buckets of S3 and of Google's storage, each of a server of this process: counts are those of the local files.

Skipped where s3fs and moto, or gcsfs and gcp-storage-emulator, are not installed.
"""

import socket

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

from dpgm_core import Attribute, Domain, Structure
from dpgm_core.counting.table_counts import count
from dpgm_core.errors import SourceRefused
from dpgm_core.sources import as_source

fsspec = pytest.importorskip("fsspec")

DOMAIN = Domain(
    [*(Attribute.of_size(name, 5) for name in "ab"), Attribute.of_labels("year", ["2019", "2020"], unknown="2020")]
)
STRUCTURE = Structure(DOMAIN, [("a", "b"), ("b", "year")])
SECRET = "Zq9planted"


@pytest.fixture
def s3(monkeypatch):
    """A bucket of moto's, which s3fs finds by its environment, as it does one of Amazon's."""
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    settings = {"ENDPOINT_URL": f"http://{host}:{port}", "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": SECRET}
    for name, value in {**settings, "DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    yield from _bucket("s3")
    server.stop()


@pytest.fixture
def gs(monkeypatch):
    """A bucket of the emulator's."""
    pytest.importorskip("gcsfs")
    emulator = pytest.importorskip("gcp_storage_emulator.server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = emulator.create_server("127.0.0.1", port, in_memory=True)
    server.start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
    yield from _bucket("gs")
    server.stop()


def _bucket(protocol):
    fsspec.get_filesystem_class(protocol).clear_instance_cache()
    system = fsspec.filesystem(protocol)
    system.mkdir("clinic")
    yield protocol, system
    system.rm("clinic", recursive=True)
    fsspec.get_filesystem_class(protocol).clear_instance_cache()


@pytest.fixture(params=["s3", "gs"])
def bucket(request):
    """The protocol, and its file system for the tests to write to."""
    return request.getfixturevalue(request.param)


def test_counts_are_those_of_the_local_files(bucket, tmp_path):
    """A Parquet folder with keys, a pattern and a CSV file."""
    protocol, system = bucket
    draw = np.random.default_rng(0)
    for year in (2019, 2020):
        (tmp_path / "visits" / f"year={year}").mkdir(parents=True)
        for part in range(2):
            table = pa.table({name: draw.integers(0, 5, 5000) for name in "ab"})
            path = tmp_path / "visits" / f"year={year}" / f"{part}.parquet"
            pq.write_table(table, path, row_group_size=1000)
    table = pa.table({**{name: draw.integers(0, 5, 5000) for name in "ab"}, "year": draw.integers(2019, 2021, 5000)})
    arrow_csv.write_csv(table, tmp_path / "visits.csv")
    for file in [path for path in tmp_path.rglob("*") if path.is_file()]:
        system.pipe(f"clinic/{file.relative_to(tmp_path)}", file.read_bytes())
    for name in ("visits", "visits/year=*/1.parquet", "visits.csv"):
        mine = count(as_source(f"{protocol}://clinic/{name}"), STRUCTURE).tables.values
        own = count(as_source(tmp_path / name if "*" not in name else str(tmp_path / name)), STRUCTURE).tables.values
        assert mine.tolist() == own.tolist() and mine.sum() > 0, name


def test_what_is_missing_is_one_line(bucket):
    """Neither the server's words nor a credential is shown."""
    protocol, _ = bucket
    for name in ("clinic/none.parquet", "nowhere/none.csv"):
        with pytest.raises(SourceRefused, match=f"^cannot read {protocol}://{name}: there is no such file") as refused:
            as_source(f"{protocol}://{name}").batches(DOMAIN, ["a"])
        assert refused.value.__context__ is None and SECRET not in str(refused.value)
