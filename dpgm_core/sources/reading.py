"""Reading of records without traces: which source reads a value, and silence while it does."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numpy as np

from dpgm_core._util.arrays import Codes
from dpgm_core._util.locations import Place
from dpgm_core.domain.attribute import Attribute, code_dtype
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError, DpgmError
from dpgm_core.sources.contract import Source

__all__ = [
    "BATCH_ROWS",
    "KeyedBatches",
    "attempt",
    "checked",
    "checked_batch",
    "locate",
    "mapped",
    "opened",
    "quiet",
    "received",
    "safe_codes",
    "shielded",
]

# A foreign exception raised while records are read may quote a record. `attempt` and `shielded` replace it by a
# `DataError` with a public sentence, raised outside of the `except` block so that not even its context survives. Its
# warnings and logs are dropped as well; see `quiet`.

#: Records per batch: large enough to hide the cost of a call, small enough that a batch stays in cache.
BATCH_ROWS = 2**17

T = TypeVar("T")
S = TypeVar("S")


def attempt(message: str, call: Callable[[], T]) -> T:
    """Return the result of `call`, made in silence; its errors become DataError(message), text and context dropped."""
    try:
        with quiet():
            return call()
    except DpgmError:
        raise
    except Exception:  # whatever it is, its text may hold a record
        pass
    raise DataError(message)


def shielded(message: str, items: Iterable[T]) -> Iterator[T]:
    """The items; whatever the iteration raises becomes DataError(message), as in `attempt`.

    >>> list(shielded("cannot read x.csv", map(int, ["1", "secret"])))
    Traceback (most recent call last):
    dpgm_core.errors.DataError: cannot read x.csv
    """
    end = object()
    iterator = attempt(message, lambda: iter(items))
    while (item := attempt(message, lambda: next(iterator, end))) is not end:
        yield item  # type: ignore[misc]


def received(source: object, call: Callable[[], Iterable[T]]) -> Iterator[T]:
    """What `call` reads of anybody's source; what that raises becomes a DataError that names its class and no more."""
    message = f"source {type(source).__name__} failed while reading; its own message is withheld, it may quote records"
    yield from shielded(message, attempt(message, call))


def opened(path: Place, call: Callable[[], T]) -> T:
    """Return what `call` opens; DataError with the operating system's reason, such as a missing file."""
    try:
        return call()
    except OSError as error:
        reason = error.strerror or "it cannot be opened"
    raise DataError(f"cannot read {path}: {reason}")


def mapped(function: Callable[[S], T], items: Iterable[S], workers: int = 2) -> Iterator[T]:
    """`map` in threads, in order, with at most `workers` + 1 results waiting, so that memory stays bounded."""
    waiting: deque[Future[T]] = deque()
    pool = ThreadPoolExecutor(workers)
    try:
        for item in items:
            waiting.append(pool.submit(_in_silence, function, item))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _in_silence(function: Callable[[S], T], item: S) -> T:
    with quiet():  # numpy's settings and logs are each thread's own
        return function(item)


def locate(where: str, columns: Iterable[str], present: Sequence[str]) -> list[int]:
    """Return the positions of the columns; DataError for one that is missing or occurs twice.

    where: the public name of the data, such as a path. Of the names that are present none is listed or suggested: where
    somebody took the first line of a file for its header, they are a record.

    >>> locate("x.csv", ["b"], ["a", "b"])
    [1]
    """
    positions = []
    for name in columns:
        if name not in present:
            raise DataError(f"{where} has no column {name!r}; for the owner's eyes, dpgm validate shows those it has")
        if list(present).count(name) > 1:
            raise DataError(f"{where} has column {name!r} more than once; rename or drop one of them")
        positions.append(list(present).index(name))
    return positions


class KeyedBatches:
    """Base of sources that define `keyed_batches`: codes with person keys, which are None without a key."""

    __slots__ = ()

    def keyed_batches(self, domain: Domain, columns: Sequence[str], key: str | None) -> Iterator[tuple[Codes, Any]]:
        """Codes of the named columns and the raw person keys. DataError for what is missing or damaged."""
        raise NotImplementedError

    def batches(self, domain: Domain, columns: Sequence[str]) -> Iterator[Codes]:
        """The codes alone."""
        return (codes for codes, _ in self.keyed_batches(domain, columns, None))


def checked(source: Source, domain: Domain, columns: Sequence[str]) -> Iterator[Codes]:
    """Batches of anybody's source, made safe to index with: out of range becomes unknown, other faults DataError.

    What the source raises is shielded; messages name its class.

    >>> from dpgm_core.sources import as_source
    >>> next(checked(as_source(np.array([[0], [1], [7]])), Domain.from_sizes({"a": 2}), ["a"]))[0].tolist()
    [0, 1, 0]
    """
    attributes = [domain[name] for name in columns]
    for batch in received(source, lambda: source.batches(domain, columns)):
        yield checked_batch(attributes, batch, f"source {type(source).__name__}")


def checked_batch(attributes: Sequence[Attribute], batch: Codes, where: str) -> list[np.ndarray[Any, np.dtype[Any]]]:
    """One batch of `checked`; where: the public name of the source."""
    if not isinstance(batch, Sequence) or len(batch) != len(attributes):
        raise DataError(f"{where} must yield one code array per column asked for, {len(attributes)} in a sequence")
    arrays = [
        safe_codes(array, attribute.size, attribute.unknown, f"{where}, column {attribute.name!r}")
        for attribute, array in zip(attributes, batch, strict=True)
    ]
    if len({len(array) for array in arrays}) > 1:
        raise DataError(f"{where} yields columns of different lengths; all columns of a batch must agree")
    return arrays


def safe_codes(array: object, size: int, unknown: int, where: str) -> np.ndarray[Any, np.dtype[Any]]:
    """One-dimensional codes in `code_dtype(size)`; integers outside 0 ... size - 1 become `unknown`.

    Floats, bools and objects are refused: a code that went through a float may have lost its meaning.

    >>> safe_codes(np.array([-1, 0, 300]), 4, 3, "mine").tolist()
    [3, 0, 3]
    """
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "iu":
        actual = f"{array.ndim}-d {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
        raise DataError(f"{where}: codes must be a 1-d array of whole numbers, got {actual}")
    dtype = code_dtype(size)
    if array.dtype.kind == "u" and np.iinfo(array.dtype).max < size:
        return array.astype(dtype, copy=False)
    # One pass each for the extremes, far cheaper than a mask, and almost always enough.
    if not len(array) or (array.max() < size and (array.dtype.kind == "u" or array.min() >= 0)):
        return array.astype(dtype, copy=False)
    codes = np.where((array >= 0) & (array < size), array, 0).astype(dtype)
    codes[(array < 0) | (array >= size)] = unknown
    return codes


# --- Silence while records are read and counted ---------------------------------------------------
# A signalling NaN makes numpy warn and an ordinary one does not, so a warning on stderr, one that `-W error` turns
# into a failure, or a line in a log would reveal something of one record.


class _Own(threading.local):
    """The number of blocks that this thread is in."""

    blocks = 0


class _Readers:
    """Who reads records right now: how many blocks in all threads, and how many in this one."""

    #: What libraries take that copy the filters, such as scikit-learn: a copy ignores all warnings.
    pattern = ""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a finaliser may read, and run anywhere
        self.blocks = 0
        self.own = _Own()

    def count(self, change: int) -> None:
        self.blocks += change
        self.own.blocks += change

    def match(self, text: str) -> bool:
        # As the pattern of a warnings filter. Filters belong to the whole process, and `catch_warnings` of another
        # thread may lose ours or keep it for good; one that fits only while somebody reads does no harm afterwards.
        return self.blocks > 0


_READERS = _Readers()
#: What is in names of threads that read for others: fsspec's, which logs the URLs that it asks for, and those of a dask
#: cluster in this process, whose scheduler logs the graph, rows and all, that it could not unpickle.
_HELPERS = ("fsspecIO", "IO loop", "Dask-")
_FILTER = ("ignore", _READERS, Warning, None, 0)


class _Muted:
    """One of the interpreter's hooks, deaf while records are read; whoever wraps it meanwhile may keep it."""

    def __init__(self, usual: Callable[..., Any]) -> None:
        self.usual = usual

    def __call__(self, *words: Any) -> Any:
        return None if _READERS.blocks else self.usual(*words)


class _MutedLog(_Muted):
    """Makes log records; in a thread that reads empty ones, of a level that no handler takes."""

    def __call__(self, *words: Any, **more: Any) -> Any:
        thread = threading.current_thread().name
        muted = _READERS.own.blocks or (_READERS.blocks and any(part in thread for part in _HELPERS))
        return logging.LogRecord("", -1, "", 0, "", (), None) if muted else self.usual(*words, **more)


@contextmanager
def quiet() -> Iterator[None]:
    """Numpy ignores what floats do, warnings are dropped, this thread logs nothing, finalisers fail in silence.

    Warnings, and what ends other threads, are dropped whoever causes them: a library may read in threads of its own.
    Not to be held over a `yield` of a generator. What is printed outright is not caught.

    >>> with quiet():
    ...     int(np.array(1.5) / 0 > 1)  # a division by zero, of which nobody hears
    1
    """
    with _READERS.lock:
        _READERS.count(1)
        _mute_reader_errors()
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        with _READERS.lock:
            _READERS.count(-1)
            if not _READERS.blocks:
                _unmute_reader_errors()


def _mute_reader_errors() -> None:
    filters = cast("list[Any]", warnings.filters)
    if not filters or filters[0] is not _FILTER:  # the first that fits decides
        filters.insert(0, _FILTER)
    if not isinstance(logging.getLogRecordFactory(), _Muted):
        logging.setLogRecordFactory(_MutedLog(logging.getLogRecordFactory()))
    if not isinstance(sys.unraisablehook, _Muted):
        sys.unraisablehook = _Muted(sys.unraisablehook)
    if not isinstance(threading.excepthook, _Muted):
        threading.excepthook = _Muted(threading.excepthook)


def _unmute_reader_errors() -> None:
    filters = cast("list[Any]", warnings.filters)
    filters[:] = [one for one in filters if one is not _FILTER]
    factory = logging.getLogRecordFactory()
    if isinstance(factory, _Muted):
        logging.setLogRecordFactory(factory.usual)
    if isinstance(sys.unraisablehook, _Muted):
        sys.unraisablehook = sys.unraisablehook.usual
    if isinstance(threading.excepthook, _Muted):
        threading.excepthook = threading.excepthook.usual
