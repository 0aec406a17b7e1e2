"""The source `dask`: a graph of tasks for a data frame, and a vector from its one result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import cpu_count
from typing import Any

import dask
import dask.dataframe as dd
from attrs import define, field, frozen
from dask import delayed
from distributed import Client, default_client, futures_of, wait
from numpy.typing import NDArray

from dpgm_core import DataError, __version__, option
from dpgm_core.sources import Reading, Reduction, Shipped, SourceRefused, received
from dpgm_dask import work
from dpgm_dask.files import Files, listed, shown
from dpgm_dask.frames import Frame

__all__ = ["DaskSource"]

#: How many sums one task merges.
_FAN = 8
#: Seconds: 20 days.
_MAX_TIMEOUT = 20 * 86_400
_FAILED = "dask could not sum the records"


@frozen(kw_only=True)
class DaskSource:
    """Records in a dask data frame, or in Parquet files that dask reads; sums are taken where the partitions are.

    Give `data` or `path`. It runs on the scheduler at `scheduler`; without one on the active `distributed.Client`, and
    without a client on dask's default scheduler, which is threads of this process.

    >>> DaskSource(path="visits/").path
    'visits/'
    """

    data: Any = field(
        default=None, repr=lambda data: type(data).__name__, eq=id, metadata={"help": "a dask data frame"}
    )
    path: str | None = field(
        default=None,
        repr=lambda path: repr(path and shown(path)),
        metadata={"help": "Parquet: a file, a folder, a pattern, or a URL that fsspec knows"},
    )
    scheduler: str | None = option(None, help="the address of a scheduler, such as tcp://host:8786")
    timeout: float = option(30.0, help="how long a scheduler and a first worker are waited for", unit="seconds")

    def __attrs_post_init__(self) -> None:
        if (self.data is None) == (self.path is None):
            raise DataError("a dask source needs either data, a dask data frame, or path; give one of the two")
        if self.data is not None and not isinstance(self.data, dd.DataFrame):
            raise DataError(f"the data of a dask source must be a dask data frame, got {type(self.data).__name__}")
        number = isinstance(self.timeout, (int, float)) and not isinstance(self.timeout, bool)
        if not number or not 0 < self.timeout <= _MAX_TIMEOUT:
            raise DataError(
                f"timeout must be a positive number of seconds, at most {_MAX_TIMEOUT}, got {self.timeout!r:.40}"
            )

    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        names: tuple[str, ...] = self._read(lambda: self._table().names())
        return names

    @contextmanager
    def pinned(self, reading: Reading) -> Iterator[_Pinned]:
        """The records as they are now; where several sums will be asked for, codes stay on the workers until the end.

        A frame is held still by dask: what it reads when it makes a partition is the user's to keep. Files that change
        are noticed, and the sum is refused.
        """
        table = self._read(self._table)
        self._read(lambda: table.check(reading))
        with self._client() as client:
            partitions = self._read(lambda: table.partitions(reading))
            shipped = delayed(Shipped(reading=reading), pure=False)
            pinned = _Pinned(client, shipped, partitions, lambda: self._check_same(table))
            try:
                if reading.person is not None:
                    pinned.meet()
                if reading.several:
                    pinned.keep()
                yield pinned
            finally:
                pinned.drop()

    def _table(self) -> Frame | Files:
        return Frame(self.data) if self.path is None else listed(self.path)

    def _check_same(self, table: Frame | Files) -> None:
        if self.path is not None and self._read(self._table) != table:
            raise SourceRefused(f"files at {shown(self.path)} changed while they were read; count when they are whole")

    def _read(self, call: Any) -> Any:
        what = "the dask data frame" if self.path is None else f"the Parquet at {shown(self.path)}"
        hint = "" if self.path is None else "; of other formats make a dask data frame"
        return _guard(f"{what} cannot be read{hint}", call)

    @contextmanager
    def _client(self) -> Iterator[Client | None]:
        client = _active() if self.scheduler is None else self._connected()
        try:
            if client is not None:
                self._check_workers(client)
            yield client
        finally:
            if client is not None and self.scheduler is not None:
                client.close()

    def _connected(self) -> Client:
        return _guard(
            f"no dask scheduler answers at {self.scheduler} within {self.timeout:g} seconds; start one there, or leave "
            "scheduler out",
            lambda: Client(self.scheduler, timeout=self.timeout, set_as_default=False),
        )

    def _check_workers(self, client: Client) -> None:
        _guard(
            f"dask has no worker after {self.timeout:g} seconds; start one",
            lambda: client.wait_for_workers(1, timeout=self.timeout),
        )
        versions = _guard(
            "dask's workers cannot load dpgm-dask; install it there, with the same dpgm-core as here",
            lambda: client.run(work.version),
        )
        others = sorted({version for version in versions.values() if version != __version__})
        if others:
            raise SourceRefused(
                f"dpgm-core is {__version__} here and {', '.join(others)} on dask's workers; install one version on all"
            )


@define
class _Pinned:
    """The partitions of one reading, and the graph that is made of them."""

    client: Client | None
    shipped: Any
    partitions: Sequence[tuple[work.Partition, Any]]
    check_same: Callable[[], None]
    blocks: list[Any] | None = None
    open: bool = True

    def reduce(self, reduction: Reduction) -> NDArray[Any]:
        """The sum over all partitions, merged on the workers: one vector travels."""
        if not self.open:
            raise SourceRefused("the records are no longer pinned; take sums while the source is pinned")
        shared = delayed(reduction, pure=False, traverse=False)
        if self.blocks is None:
            sums = [_task(work.summed, self.shipped, shared, part, frame) for part, frame in self.partitions]
        else:
            sums = [_task(work.summed_blocks, self.shipped, shared, blocks) for blocks in self.blocks]
        while len(sums) > 1:
            sums = [_task(work.merge, *sums[place : place + _FAN]) for place in range(0, len(sums), _FAN)]
        whole = _guard(
            _FAILED,
            lambda: dask.compute(*sums) if self.client is None else self.client.gather(self.client.compute(sums)),
        )
        self.check_same()
        return received(whole, reduction)

    def meet(self) -> None:
        """Bring all rows of a person into one part."""
        # Two for each thread: there are as many pieces as partitions times parts, and a thread holds a part at once.
        threads = cpu_count() or 1 if self.client is None else sum(self.client.nthreads().values())
        parts = max(1, min(len(self.partitions), 2 * threads))
        spread = [_task(work.spread, self.shipped, part, frame, parts) for part, frame in self.partitions]
        self.blocks = [
            _task(work.limit_rows, self.shipped, *(_task(work.part_of, one, number) for one in spread))
            for number in range(parts)
        ]

    def keep(self) -> None:
        """Cache the codes in the memory of the workers."""
        made = self.blocks
        if made is None:
            made = [_task(work.blocks, self.shipped, part, frame) for part, frame in self.partitions]
        client = self.client
        self.blocks = _guard(_FAILED, lambda: list(dask.persist(*made)) if client is None else client.persist(made))
        if (
            client is not None
        ):  # core silences logs until this returns: what the cluster says of records is said by then
            _guard(_FAILED, lambda: wait(self.blocks))

    def drop(self) -> None:
        """Drop what is cached, on the workers too."""
        for future in futures_of(self.blocks or []):
            future.release()
        self.blocks, self.partitions, self.open = None, (), False


def _task(function: Any, *arguments: Any) -> Any:
    # Not pure: dask would name a task by its arguments' hashes, and take an earlier task of that name for it.
    return delayed(function, pure=False)(*arguments)


def _active() -> Client | None:
    try:
        client = default_client()
    except ValueError:
        return None
    if client.asynchronous:
        raise SourceRefused("the active dask client is asynchronous; give scheduler, the address it talks to")
    return client


def _guard(refusal: str, call: Any) -> Any:
    """Return the result of `call`; only the type of an error is shown, raised outside of the except block."""
    words = ""
    try:
        return call()
    except SourceRefused as error:
        words = str(error)
    except Exception as error:
        words = f"{refusal} ({type(error).__name__}; its words are withheld, they may quote records)"
    raise SourceRefused(words)
