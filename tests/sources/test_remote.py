"""Remote files: what is fetched, what is refused, and that no failure quotes a record, a signature or a library.

The server is this process's own, on the loopback. All of it is skipped without fsspec.
"""

import gzip
import logging
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from attrs import define, field

from dpgm_core import Attribute, Budget, Domain, Ledger, Structure, fit
from dpgm_core.counting.table_counts import count
from dpgm_core.errors import DataError, SourceRefused
from dpgm_core.sources import as_source
from dpgm_core.sources.parquet import ParquetSource

fsspec = pytest.importorskip("fsspec")

NAMES = ("a", "b", "c")
DOMAIN = Domain.from_sizes(dict.fromkeys(NAMES, 5))
STRUCTURE = Structure(DOMAIN, [("a", "b")])


def a_table(rows, seed=0):
    draw = np.random.default_rng(seed)
    return pa.table({name: draw.integers(0, 5, rows, np.int8) for name in NAMES})


def counted(data):
    return count(as_source(data), STRUCTURE).tables.values.tolist()


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


def test_every_format_is_read(memory, tmp_path):
    """The counts are those of the local file; a folder's keys are columns, and a pattern names files."""
    table = a_table(3000)
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=700)
    arrow_csv.write_csv(table, tmp_path / "x.csv", arrow_csv.WriteOptions(quoting_style="none"))
    text = (tmp_path / "x.csv").read_bytes().replace(b'"', b"")
    (tmp_path / "x.csv").write_bytes(text)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(text))
    feather.write_feather(table, tmp_path / "x.arrow")
    expected = counted(table)
    for file in tmp_path.iterdir():
        memory.pipe(f"/b/{file.name}", file.read_bytes())
        assert counted(f"memory://b/{file.name}") == counted(file) == expected, file.name
    for number in range(3):
        pq.write_table(table.slice(1000 * number, 1000).drop_columns("b"), tmp_path / "part.parquet")
        memory.pipe(f"/t/b={number}/part.parquet", (tmp_path / "part.parquet").read_bytes())
    memory.pipe("/t/_temporary/x.parquet", b"no Parquet")
    memory.pipe("/t/_SUCCESS", b"")
    domain = Domain([DOMAIN["a"], Attribute.of_labels("b", ["0", "1", "2"], unknown="2")])
    of_b = Structure(domain, [("b",)])
    assert as_source("memory://t").names() == ("a", "c", "b")
    assert count(as_source("memory://t/"), of_b).tables.values.tolist() == [1000, 1000, 1000]
    assert count(as_source("memory://t/b=*/*.parquet"), of_b).tables.values.tolist() == [1000, 1000, 1000]
    assert count(ParquetSource(path="memory://t/b=[01]"), of_b).tables.values.tolist() == [1000, 1000, 0]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("memory://x/none.parquet", "there is no such file, or nobody may know of it"),
        ("memory://x/none.csv", "there is no such file, or nobody may know of it"),
        ("memory://x/none.arrow", "there is no such file, or nobody may know of it"),
        ("nothing://x/none.parquet", "its protocol is not known to fsspec"),
    ],
)
def test_a_file_that_is_not_there_is_one_line(memory, url, said):
    with pytest.raises(SourceRefused, match=f"^cannot read {re.escape(url)}: {said}$"):
        as_source(url).batches(DOMAIN, NAMES)


def test_what_is_no_table_is_one_line(memory):
    memory.pipe("/t/x.parquet", b"no Parquet")
    memory.pipe("/u/x.txt", b"no Parquet")
    with pytest.raises(DataError, match=r"^memory://t/x.parquet cannot be read as Parquet$"):
        as_source("memory://t").batches(DOMAIN, NAMES)
    with pytest.raises(DataError, match=r"^memory://u holds no Parquet file"):
        as_source("memory://u").batches(DOMAIN, NAMES)


@define
class Server:
    url: str = ""
    files: dict[str, bytes] = field(factory=dict, repr=False)
    sent: dict[str, int] = field(factory=dict)
    requests: int = 0
    ranges: bool = True
    lose_after: int | None = None  # requests
    refuse: int | None = None


@pytest.fixture
def server():
    pytest.importorskip("aiohttp")
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.answer(body=False)

        def do_GET(self):
            self.answer(body=True)

        def answer(self, body):
            name = self.path.partition("?")[0]
            if state.refuse or name not in state.files:
                self.send_error(state.refuse or 404, "SECRET reason")
                return
            content, status = state.files[name], 200
            wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            self.close_connection = True
            if wanted and state.ranges:
                content, status = content[int(wanted[1]) : int(wanted[2]) + 1], 206
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if body:
                state.requests += 1
                if state.lose_after is not None and state.requests > state.lose_after:
                    content = content[: len(content) // 2]
                self.wfile.write(content)
                state.sent[name] = state.sent.get(name, 0) + len(content)

        def log_message(self, *words):
            """Nothing."""

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    running.shutdown()
    thread.join()
    running.server_close()


def served(server, tmp_path, table, **how):
    pq.write_table(table, tmp_path / "x.parquet", **how)
    server.files["/x.parquet"] = (tmp_path / "x.parquet").read_bytes()
    return f"{server.url}/x.parquet"


def test_only_the_columns_asked_for_are_fetched(server, tmp_path):
    """Of a wide Parquet file by HTTP, besides footers; of an Arrow file too."""
    draw = np.random.default_rng(0)
    wide = pa.table({f"x{number}": draw.integers(0, 2**31, 50_000) for number in range(40)} | {"a": [1] * 50_000})
    table = wide.append_column("b", pa.array(draw.integers(0, 5, 50_000)))
    url = served(server, tmp_path, table, row_group_size=10_000, use_dictionary=["b"])
    metadata = pq.read_metadata(tmp_path / "x.parquet")
    groups = [metadata.row_group(group) for group in range(5)]
    needed = sum(group.column(number).total_compressed_size for group in groups for number in (40, 41))
    local = counted(tmp_path / "x.parquet")
    assert counted(url) == local and sum(local) == 50_000
    assert server.sent["/x.parquet"] <= 1.2 * needed + 3 * 2**16 < len(server.files["/x.parquet"]) / 20
    feather.write_feather(table, tmp_path / "x.arrow", compression="uncompressed")
    server.files["/x.arrow"] = (tmp_path / "x.arrow").read_bytes()
    assert counted(f"{server.url}/x.arrow") == local
    assert server.sent["/x.arrow"] < len(server.files["/x.arrow"]) / 10


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_a_lost_connection_costs_nothing(server, tmp_path, ending):
    """Wherever it is lost: one line, no charge, and no row counts twice where it is tried again."""
    table = a_table(400_000)
    served(server, tmp_path, table, row_group_size=50_000, compression="none", use_dictionary=False)
    content = tmp_path / "x.csv"
    arrow_csv.write_csv(table, content, arrow_csv.WriteOptions(quoting_style="none"))
    server.files["/x.csv"] = content.read_bytes().replace(b'"', b"")
    feather.write_feather(table, tmp_path / "x.arrow")
    server.files["/x.arrow"] = (tmp_path / "x.arrow").read_bytes()
    url = f"{server.url}/x.{ending}"
    ledger = Ledger.create(tmp_path / "x.ledger", name="x", budget=Budget.pure(1), neighbours="add-remove")
    expected = counted(table)
    assert counted(url) == expected
    whole = server.requests
    for after in (0, 1, whole - 1):
        server.requests, server.lose_after = 0, after
        with pytest.raises(DataError) as caught:
            fit(url, STRUCTURE, budget=Budget.pure(1), ledger=ledger, neighbours="add-remove")
        ours = f"cannot read {url}: it cannot be reached, or the connection was lost"
        arrows = f"{url} cannot be read as an Arrow IPC file, or the connection to it was lost"
        assert str(caught.value) in ([ours, arrows] if ending == "arrow" else [ours])
        assert caught.value.__context__ is None
    assert ledger.remaining() == Budget.pure(1)
    server.lose_after = None
    assert counted(url) == expected


def test_servers_that_cannot_serve_are_one_line(server, tmp_path):
    """One without parts of files, one that refuses, and one that is not there."""
    url = served(server, tmp_path, a_table(100_000), compression="none", use_dictionary=False)
    server.ranges = False
    with pytest.raises(SourceRefused, match="another number of bytes"):
        counted(url)
    server.ranges, server.refuse = True, 403
    with pytest.raises(SourceRefused) as caught:
        counted(url)
    assert str(caught.value) == (
        f"cannot read {url}: permission is refused; credentials come from the environment, as the protocol's library "
        "reads them"
    )
    server.refuse = 503
    with pytest.raises(SourceRefused, match=r"x\.parquet: the server answers 503$"):
        counted(url)
    server.refuse = None
    with pytest.raises(SourceRefused, match=r"none\.parquet: there is no such file, or nobody may know of it$"):
        counted(f"{server.url}/none.parquet")
    with pytest.raises(SourceRefused, match=r"127\.0\.0\.1:1/x\.csv: it cannot be reached, or the"):
        counted("http://127.0.0.1:1/x.csv")


def test_a_signature_is_shown_nowhere(server, tmp_path, caplog, capfd):
    """Not in the source, in errors, in logs at any level, in a release or on the screen; reading works with it."""
    url = served(server, tmp_path, a_table(1000)) + "?X-Amz-Signature=5ECRET"
    source = as_source(url)
    caplog.set_level(logging.DEBUG)
    model = fit(source, STRUCTURE, budget=Budget.pure(1), neighbours="add-remove").model
    model.save(tmp_path / "model.dpgm")
    said = [repr(source), str(source.path), repr(model), caplog.text]
    for wrong in ("none.parquet", "none.csv", "none.arrow"):
        with pytest.raises(DataError) as caught:
            counted(f"{server.url}/{wrong}?X-Amz-Signature=5ECRET")
        said.append(str(caught.value))
    server.files["/bad.csv"] = b"x,y\n1,2\n"
    with pytest.raises(DataError) as caught:
        counted(f"{server.url}/bad.csv?X-Amz-Signature=5ECRET")
    said += [str(caught.value), *capfd.readouterr()]
    assert "?..." in said[0] and not any("5ECRET" in text for text in said)
    assert b"5ECRET" not in (tmp_path / "model.dpgm").read_bytes()


def test_nothing_of_a_planted_value_is_said(server, tmp_path, caplog, capfd):
    """Logs at every level and the screen hold no value of a record, whether reading works or fails."""
    caplog.set_level(logging.DEBUG)
    domain = Domain([Attribute.of_labels("a", ["x"], unknown="?")])
    url = served(server, tmp_path, pa.table({"a": ["PLANTED"] * 100}), compression="none")
    assert count(as_source(url), Structure(domain, [("a",)])).tables.values.tolist() == [0, 100]
    broken = bytearray(server.files["/x.parquet"])
    broken[20:24] = b"\xff\xff\xff\xff"
    server.files["/x.parquet"] = bytes(broken)
    with pytest.raises(DataError) as caught:
        count(as_source(url), Structure(domain, [("a",)]))
    said = [str(caught.value), caplog.text, *capfd.readouterr()]
    assert not any("PLANTED" in text for text in said)


# --- Buckets of S3 and of Google's storage, each of a server of this process: counts are those of the local files.
# Skipped where s3fs and moto, or gcsfs and gcp-storage-emulator, are not installed.


DOMAIN_BUCKETS = Domain(
    [*(Attribute.of_size(name, 5) for name in "ab"), Attribute.of_labels("year", ["2019", "2020"], unknown="2020")]
)
STRUCTURE_BUCKETS = Structure(DOMAIN_BUCKETS, [("a", "b"), ("b", "year")])
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
        mine = count(as_source(f"{protocol}://clinic/{name}"), STRUCTURE_BUCKETS).tables.values
        own = count(
            as_source(tmp_path / name if "*" not in name else str(tmp_path / name)), STRUCTURE_BUCKETS
        ).tables.values
        assert mine.tolist() == own.tolist() and mine.sum() > 0, name


def test_what_is_missing_is_one_line(bucket):
    """Neither the server's words nor a credential is shown."""
    protocol, _ = bucket
    for name in ("clinic/none.parquet", "nowhere/none.csv"):
        with pytest.raises(SourceRefused, match=f"^cannot read {protocol}://{name}: there is no such file") as refused:
            as_source(f"{protocol}://{name}").batches(DOMAIN_BUCKETS, ["a"])
        assert refused.value.__context__ is None and SECRET not in str(refused.value)
