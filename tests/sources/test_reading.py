"""What a source yields is checked, what it raises is dropped whole, and it is silent just as long as it reads."""

import logging
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from attrs import field, frozen

from dpgm_core import DataError, Domain, Structure
from dpgm_core.counting.table_counts import count
from dpgm_core.sources import as_source
from dpgm_core.sources.persons import PersonSource
from dpgm_core.sources.reading import _Muted, mapped, quiet, shielded


@frozen
class Yields:
    """A third party's source that yields what it is told to."""

    batch: object = field()

    def batches(self, domain, columns):
        yield self.batch


CHAIN = Structure.chain(Domain.from_sizes({"a": 2, "b": 3}, unknown={"a": 1, "b": 2}))


@pytest.mark.parametrize("batch", [
    [np.array([0, 1])], [np.array([0, 1]), np.array([0])], [np.array([0.0, 1.0]), np.array([0, 1])],
    [np.array([True, False]), np.array([0, 1])], [np.array(["SECRET", "x"]), np.array([0, 1])], [[0, 1], [0, 1]],
    [np.zeros((2, 2), int), np.zeros(2, int)], np.zeros((2, 2), int), {"a": np.zeros(2, int), "b": np.zeros(2, int)},
    None, "SECRET",
])  # fmt: skip
def test_a_malformed_batch_names_the_source_and_no_content(batch):
    """Structural faults of a third party's source are DataErrors that quote nothing."""
    with pytest.raises(DataError, match="Yields") as caught:
        count(Yields(batch), CHAIN)
    assert "SECRET" not in str(caught.value)


def test_codes_out_of_range_count_as_unknown():
    """A third party's code beyond the labels, negative or huge, hits the unknown label and no other cell."""
    batch = [np.array([0, 2, -1, 255]), np.array([2**40, 0, 1, -7])]
    table = count(Yields(batch), CHAIN).tables["a", "b"]
    assert table.tolist() == [[0, 0, 1], [1, 1, 1]]


class Fails:
    def __init__(self, late):
        self.late = late

    def batches(self, domain, columns):
        if not self.late:
            raise ValueError("SECRET")
        return self._late()

    def _late(self):
        yield [np.zeros(2, np.uint8), np.zeros(2, np.uint8)]
        raise KeyError("SECRET")


@pytest.mark.parametrize("late", [False, True])
def test_a_foreign_error_is_replaced_and_leaves_no_trace(late):
    """Neither message, cause nor context of what a source raises survives."""
    with pytest.raises(DataError, match="Fails failed while reading") as caught:
        count(Fails(late), CHAIN)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


SIGNALLING = np.array([0x7FF4000000000001] * 2, np.uint64).view(np.float64)


def hooks():
    """What `quiet` changes for a while, of the whole process; pytest has hooks of its own for each phase of a test."""
    muted = [isinstance(one, _Muted) for one in (sys.unraisablehook, threading.excepthook)]
    return [*warnings.filters], logging.getLogRecordFactory(), muted, np.geterr()


@pytest.fixture(autouse=True)
def as_before():
    """Every test leaves the process as it was."""
    before = hooks()
    yield
    assert hooks() == before


class Leaves:
    def __del__(self):
        raise ValueError("SECRET")


def fail(*_):
    """In a thread, that is."""
    raise ValueError("SECRET")


def speak(*_):
    """Say what can be said, as a library may."""
    warnings.warn("SECRET", stacklevel=1)
    np.array([1.0]) / np.array([0.0])
    SIGNALLING.astype(np.float32)
    logging.getLogger("somebody.else").critical("SECRET")
    Leaves()
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()


@pytest.mark.parametrize("filters", ["error", "always"])
@pytest.mark.parametrize("floats", ["raise", "warn", "print"])
def test_nothing_is_said_or_raised(filters, floats, capfd, caplog):
    with warnings.catch_warnings(record=True) as seen, np.errstate(all=floats):
        warnings.simplefilter(filters)
        with quiet():
            speak()
        assert list(mapped(speak, [1, 2, 3])) == [None] * 3  # in threads of our own
        list(shielded("cannot read", map(speak, [1])))
    assert not seen and not caplog.records and capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["fsspecIO", "IO loop", "0-Dask-Default-Threads"])
def test_threads_that_read_for_others_log_nothing(name, caplog):
    """Of fsspec, and of a dask cluster in this process; afterwards they are heard again."""

    def log():
        thread = threading.Thread(target=logging.getLogger("somebody.else").critical, args=("SECRET",), name=name)
        thread.start()
        thread.join()

    with quiet():
        log()
    assert not caplog.records
    log()
    assert len(caplog.records) == 1


def test_all_is_heard_elsewhere(caplog):
    """Before, after, and logs of other threads meanwhile: silence must not swallow what is not about records."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with quiet(), ThreadPoolExecutor(1) as pool:
            pool.submit(logging.getLogger("elsewhere").critical, "meanwhile").result()
        logging.getLogger("here").critical("after")
        warnings.warn("after", stacklevel=1)
    assert [str(one.message) for one in seen] == ["after"]
    assert [one.getMessage() for one in caplog.records] == ["meanwhile", "after"]


def test_silence_is_counted():
    """Within each other, and in threads that begin and end in any order: it lasts while anybody reads."""
    others, go = threading.Event(), threading.Event()

    def read():
        with quiet():
            others.set()
            go.wait(10)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        thread = threading.Thread(target=read)
        with quiet():
            thread.start()
            assert others.wait(10)
            with quiet():
                pass
            warnings.warn("SECRET", stacklevel=1)
        warnings.warn("SECRET", stacklevel=1)  # the other thread still reads
        go.set()
        thread.join()
        with pytest.raises(UserWarning):
            warnings.warn("heard", stacklevel=1)


def test_a_filter_that_somebody_else_restores_does_no_harm():
    """`catch_warnings` in another thread may bring ours back for good: it fits only while somebody reads."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with quiet():
            kept = warnings.catch_warnings()
            kept.__enter__()
        kept.__exit__(None, None, None)
        with pytest.raises(UserWarning):
            warnings.warn("heard", stacklevel=1)
        with quiet():
            warnings.warn("SECRET", stacklevel=1)


def test_a_copy_of_the_filters_ignores_warnings_too():
    """As scikit-learn copies them for its workers, by the pattern of each; a filter without one would end the run."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with quiet():
            action, message, *_ = warnings.filters[0]
            with warnings.catch_warnings():
                warnings.resetwarnings()
                warnings.filterwarnings(action, message.pattern)
                warnings.warn("SECRET", stacklevel=1)


@frozen
class Talks:
    def batches(self, domain, columns):
        speak()
        yield [np.zeros(2, np.uint8)]
        speak()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("role", ["label", "bin", "key"])
def test_a_signalling_nan_is_read_as_any_other(kind, role, tmp_path, visits):
    """From every format and frame, under errors for warnings and for floats: no word, and the same codes."""
    pattern = {8: 0x7FF4000000000001, 4: 0x7FA00001, 2: 0x7D01}[np.dtype(kind).itemsize]
    bits = np.array([pattern] * 3, f"u{np.dtype(kind).itemsize}").view(kind)
    column = {"label": "visits", "bin": "age", "key": "id"}[role]
    found = {}
    for name, cells in (("signalling", bits), ("quiet", np.full(3, np.nan, kind))):
        table = visits.table(3)
        cells = pa.array(cells) if role != "key" else pa.array(list(map(str, cells.tolist())))
        table = table.set_column(table.column_names.index(column), column, cells)
        with warnings.catch_warnings(), np.errstate(all="raise"):
            for way, make in visits.keyed_ways.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # writing is not reading
                    try:
                        data = make(table, tmp_path)
                    except Exception:  # the format cannot hold such floats
                        continue
                warnings.simplefilter("error")
                source = PersonSource(source=as_source(data), person="id") if role == "key" else as_source(data)
                found[name, way] = visits.codes(source)
    for _, way in list(found):
        assert found["signalling", way] == found["quiet", way]
    assert len(found) >= 12


def test_a_source_that_speaks_is_not_heard(capfd, caplog):
    """Through counting, the way of every door."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert count(Talks(), structure).records == 2
    assert not caplog.records and capfd.readouterr() == ("", "")
