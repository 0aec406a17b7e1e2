"""Independent calls in threads: every core and no more, exceptions as in a loop, nothing left behind, safe to fork."""

import contextvars
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from dpgm_core._util import blas
from dpgm_core.errors import OptionError
from dpgm_core.inference import threads
from dpgm_core.inference.threads import cores, in_threads


def in_turn(count):
    """Calls of which no two end before two have begun, so that one thread alone would wait for ever."""
    both = threading.Barrier(2, timeout=20)

    def call(number):
        both.wait()
        return number, threading.get_ident()

    return [lambda number=number: call(number) for number in range(count)]


def test_calls_run_side_by_side_and_keep_their_order():
    """Two threads, the caller's among them, and results as of a loop; afterwards no thread is left."""
    before = threading.active_count()
    found = in_threads(in_turn(10), seconds=1.0, workers=2)
    assert [number for number, _ in found] == list(range(10))
    idents = {ident for _, ident in found}
    assert len(idents) == 2
    assert threading.get_ident() in idents
    assert threading.active_count() == before


@pytest.mark.parametrize(
    "given", [{"seconds": 9e-4, "workers": 2}, {"seconds": 1.0, "workers": 1}], ids=["too short", "one worker"]
)
def test_what_does_not_pay_stays_in_its_thread(given):
    """Batches below a millisecond, and of one worker; none at all is none."""
    assert set(in_threads([threading.get_ident] * 4, **given)) == {threading.get_ident()}
    assert in_threads([], **given) == []


def test_calls_within_calls_make_no_threads_of_their_own():
    """Only the outermost ones; the thread that called may have threads again afterwards."""
    inner = in_threads(
        [lambda: set(in_threads([threading.get_ident] * 4, seconds=1.0, workers=4)) == {threading.get_ident()}] * 8,
        seconds=1.0,
        workers=2,
    )
    assert inner == [True] * 8
    assert len({ident for _, ident in in_threads(in_turn(4), seconds=1.0, workers=2)}) == 2


def test_the_first_exception_of_the_row_is_raised_and_no_more_begin():
    """Whichever came first in time; calls that had begun are done, others are left."""
    second_failed = threading.Event()
    begun = []

    def slow():
        second_failed.wait(20)
        raise ValueError("first of the row")

    def fast():
        second_failed.set()
        raise KeyError("first in time")

    calls = [slow, fast, *[lambda: begun.append(1)] * 100]
    before = threading.active_count()
    with pytest.raises(ValueError, match="first of the row"):
        in_threads(calls, seconds=1.0, workers=2)
    assert not begun
    assert threading.active_count() == before


def test_calls_see_the_callers_context():
    """numpy's errstate, and any other context variable, as in a loop."""
    one = contextvars.ContextVar("one")
    one.set("set")
    with np.errstate(divide="raise"):
        calls = [lambda call=call: (call(), one.get(), np.geterr()["divide"]) for call in in_turn(4)]
        found = in_threads(calls, seconds=1.0, workers=2)
    assert [rest for _, *rest in found] == [["set", "raise"]] * 4


def test_without_threads_of_the_system_all_is_done(monkeypatch):
    """Where it gives none, the thread that called does everything."""

    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert in_threads([lambda: 1, lambda: 2, lambda: 3], seconds=1.0, workers=3) == [1, 2, 3]


INTERRUPTED = """
import os, signal, threading, time
from dpgm_core.inference.threads import in_threads
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit that it is ignored
def call():
    os.write(1, b"begun\\n")
    for _ in range(25):
        time.sleep(0.02)
try:
    in_threads([call] * 50, seconds=1.0, workers=2)
except KeyboardInterrupt:
    print("interrupted", threading.active_count(), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_ends_it():
    """The interrupt comes through when calls that had begun are done, and no thread is left."""
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True) as process:
        assert [process.stdout.readline() for _ in range(2)] == ["begun\n"] * 2
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    assert rest == "interrupted 1\n"


@pytest.mark.skipif(sys.platform == "win32", reason="nothing forks there")
def test_a_forked_process_has_threads_of_its_own():
    """After threads ran: the child makes new ones and ends."""

    def forked():
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if in_threads(in_turn(4), seconds=1.0, workers=2) else 1
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    in_threads(in_turn(2), seconds=1.0, workers=2)
    assert forked() == 0


@pytest.fixture
def usable(monkeypatch):
    """Eight cores and no variable that says otherwise."""
    monkeypatch.delenv("DPGM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    return monkeypatch


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [("", "", 8), ("", "2", 2), ("", "3,1", 3), ("", "99", 8), ("", "many", 8), ("5", "2", 5), ("99", "", 8)],
)
def test_variables_bound_the_threads(usable, ours, theirs, expected):
    """Ours before OMP_NUM_THREADS; never more than the process may use."""
    usable.setenv("DPGM_THREADS", ours)
    usable.setenv("OMP_NUM_THREADS", theirs)
    assert cores() == expected


def test_what_our_programs_set_for_blas_bounds_nothing(usable):
    """They start BLAS with one thread; a user who says 2 afterwards is heard."""
    for name in blas._VARIABLES:
        usable.setenv(name, "")
    with usable.context() as begun:
        begun.delitem(sys.modules, "numpy")
        begun.setattr(blas, "_OURS", set())
        blas.start_with_one_thread()
        assert os.environ["OMP_NUM_THREADS"] == "1"
        assert cores() == 8
        begun.setenv("OMP_NUM_THREADS", "2")
        assert cores() == 2
    usable.setenv("OMP_NUM_THREADS", "1")
    assert cores() == 1


@pytest.mark.parametrize("said", ["0", "-1", "two", "1.5"])
def test_ours_must_be_a_number(usable, said):
    """A number that the user meant is not passed over."""
    usable.setenv("DPGM_THREADS", said)
    with pytest.raises(OptionError, match=f"DPGM_THREADS must be a number of threads, 1 or more, got '{said}'"):
        cores()


def test_a_process_among_siblings_has_one_thread(usable):
    """Of multiprocessing, which says nothing by variables."""
    import multiprocessing.process

    usable.setattr(multiprocessing.process, "_parent_process", object())
    assert cores() == 1
    usable.setenv("DPGM_THREADS", "3")
    assert cores() == 3


def test_threads_take_part_where_calls_release_the_lock():
    """Sleeping calls take turns: the caller does not do all of them."""
    found = in_threads([lambda: (time.sleep(0.002), threading.get_ident())[1]] * 20, seconds=1.0, workers=2)
    assert len(set(found)) == 2
    assert not threads._OWN.shares
