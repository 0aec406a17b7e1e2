"""BLAS has one thread while dpgm works, and afterwards what it had."""

import os
import signal
import subprocess
import sys
import threading
import time
from typing import ClassVar

import numpy as np
import pytest
from attrs import define, frozen

import dpgm_core._util.blas
from dpgm_core import Budget, Domain, SeededRandomness, Structure, bootstrap, fit, learn, release
from dpgm_core._util.blas import OneThread, one_thread, start_with_one_thread
from dpgm_core.inference.junction_tree.engine import JunctionTree

VARIABLES = dpgm_core._util.blas._VARIABLES


@define
class Library:
    threads: int | None

    def get_num_threads(self):
        return self.threads

    def set_num_threads(self, threads):
        self.threads = threads


@pytest.fixture
def library(monkeypatch):
    """The only library there is, with four threads; no variable is set."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    found = Library(4)
    monkeypatch.setattr(dpgm_core._util.blas, "_blas", lambda: [found])
    monkeypatch.setattr(one_thread, "_libraries", [])
    monkeypatch.setattr(one_thread, "_modules", 0)
    return found


def test_one_thread_inside_and_all_after(library):
    """Nested, entered again, after an error and as a decorator; one thread stays one, no number is left alone."""
    limit = OneThread()
    for _ in range(2):
        with limit:
            assert library.threads == 1
            with limit:
                assert library.threads == 1
            assert library.threads == 1
        assert library.threads == 4

    @OneThread()
    def fails():
        assert library.threads == 1
        raise ValueError

    with pytest.raises(ValueError):
        fails()
    assert library.threads == 4
    for threads in (1, None):
        library.threads = threads
        with OneThread():
            assert library.threads == threads
        assert library.threads == threads


def test_two_threads_hold_one_limit(library):
    """Who leaves first does not lift it for the other, and who leaves last does not leave it behind."""
    limit, left, entered = OneThread(), threading.Event(), threading.Event()

    def other():
        with limit:
            entered.set()
            left.wait(10)
            assert library.threads == 1
        assert library.threads == 4

    worker = threading.Thread(target=other)
    with limit:
        worker.start()
        assert entered.wait(10)
    assert library.threads == 1
    left.set()
    worker.join(10)
    assert library.threads == 4


@pytest.mark.parametrize(("said", "expected"), [("1", 1), ("3", 3), ("8", 4), ("0", 1), ("2,1", 4)])
def test_what_the_environment_says_is_the_limit(library, monkeypatch, said, expected):
    """The most that any variable grants; 0 says nothing, and a list of numbers is not ours to read."""
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    monkeypatch.setenv("MKL_NUM_THREADS", "1")
    with OneThread():
        assert library.threads == expected
    assert library.threads == 4


def test_a_library_that_comes_inside_is_limited_too(library, monkeypatch):
    """From the next entry on, and it goes back to its own number; nobody looks for libraries where no module is new."""
    late, looked = Library(3), []
    found = lambda: looked.append(1) or [library, *[late] * (len(looked) > 1)]  # noqa: E731
    monkeypatch.setattr(dpgm_core._util.blas, "_blas", found)
    limit = OneThread()
    with limit:
        with limit:
            assert (library.threads, late.threads, len(looked)) == (1, 3, 1)
        monkeypatch.setitem(sys.modules, "a_module_that_is_new", None)
        with limit:
            assert (library.threads, late.threads, len(looked)) == (1, 1, 2)
        assert late.threads == 1
    assert (library.threads, late.threads) == (4, 3)


def test_where_looking_for_libraries_fails_the_next_entry_looks_again(library, monkeypatch):
    """An import that failed once must not leave everything after it without a limit."""
    limit, outcomes = OneThread(), iter([ImportError("interrupted"), [library]])

    def look():
        found = next(outcomes)
        if isinstance(found, ImportError):
            raise found
        return found

    monkeypatch.setattr(dpgm_core._util.blas, "_blas", look)
    with pytest.raises(ImportError, match="interrupted"), limit:
        pass
    with limit:
        assert library.threads == 1
    assert library.threads == 4


@frozen
class Watched:
    """Exact inference that notes how many threads there are when it is compiled and called."""

    max_order: ClassVar[None] = None

    library: Library
    seen: set

    def compile(self, structure):
        self.seen.add(self.library.threads)
        return JunctionTree().compile(structure)


def test_the_doors_limit(library):
    """fit, release, learn, refits and a model's answers; none leaves the limit behind."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), [("a", "b"), ("b", "c")])
    codes = np.array([[0, 0, 1], [1, 1, 0]] * 100)
    inference = Watched(library, set())
    watch = {"progress": lambda *_: inference.seen.add(library.threads), "randomness": SeededRandomness(1)}

    def seen(done):
        assert library.threads == 4
        found = set(inference.seen)
        inference.seen.clear()
        return done, found

    done, threads = seen(fit(codes, structure, Budget.pure(1), inference=inference, neighbours="add-remove", **watch))
    assert threads == {1}
    assert seen(learn(done.release, inference=inference, **watch))[1] == {1}
    assert seen(release(codes, structure, Budget.pure(1), neighbours="add-remove", **watch))[1] == {1}
    model = done.model.using(inference)
    for ask in (
        lambda: bootstrap(done.model, 2, inference=inference, **watch),
        lambda: model.marginal(("a", "c"), {"b": "1"}),
        lambda: model.sample(3, given={"a": "0"}),
        lambda: model.map_assignment({"c": "0"}),
    ):
        assert seen(ask())[1] == {1}


def test_real_libraries():
    """In a process of its own, with threads as they come: those of numpy, and scipy's, which come later."""
    code = """
import numpy, os
from threadpoolctl import ThreadpoolController, threadpool_limits
from dpgm_core._util.blas import one_thread
def threads():
    return {one["num_threads"] for one in ThreadpoolController().info() if one["user_api"] == "blas"}
with one_thread:
    import scipy.linalg
    with one_thread:
        inside = threads()
    numpy.ones((300, 300)) @ numpy.ones((300, 300))
after = threads()
with threadpool_limits(1):
    with one_thread:
        pass
    lower = threads()
print(inside, after, lower, os.cpu_count())
"""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    if done.stdout.startswith("set()"):
        pytest.skip("threadpoolctl knows no BLAS here")
    *sets, cores = done.stdout.strip().rsplit(" ", 1)
    assert sets == [f"{{1}} {{{cores}}} {{1}}"]


@pytest.mark.skipif(sys.platform == "win32", reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_works_on(library):
    """Also where another thread was about to enter: the child has no such thread to let go of the lock."""
    held = threading.Event()

    def hold():
        with one_thread.lock:
            held.set()
            time.sleep(0.1)

    worker = threading.Thread(target=hold)
    worker.start()
    held.wait(10)
    child = os.fork()
    if not child:
        signal.alarm(10)  # ends the child where it waits
        with one_thread:
            os._exit(int(library.threads != 1))
    worker.join()
    assert os.waitpid(child, 0)[1] == 0
    with one_thread:
        assert library.threads == 1
    assert library.threads == 4


@pytest.mark.parametrize("name", VARIABLES)
def test_a_program_starts_with_what_the_user_says(monkeypatch, name):
    """A single variable is enough: the others would overrule it. Where numpy is loaded it is too late to say."""
    for each in VARIABLES:
        monkeypatch.delenv(each, raising=False)
    start_with_one_thread()
    assert not any(each in os.environ for each in VARIABLES)
    monkeypatch.delitem(sys.modules, "numpy")
    with monkeypatch.context() as asked:
        asked.setenv(name, "3")
        start_with_one_thread()
        assert [each for each in VARIABLES if each in os.environ] == [name]
