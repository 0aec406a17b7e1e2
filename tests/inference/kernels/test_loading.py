"""Which executor runs, with numba, without it and with a broken one; kernels in threads and forked processes."""

import builtins
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dpgm_core.errors import InferenceError, OptionError
from dpgm_core.inference.kernels import loading
from dpgm_core.inference.kernels.loading import jit, kernels, resolve_executor

HAS_NUMBA = resolve_executor("auto") == "numba"
needs_numba = pytest.mark.skipif(not HAS_NUMBA, reason="needs numba")


@pytest.fixture
def numba_import(monkeypatch):
    """numba_import(error): what comes of `import numba` from now on, with nothing known before."""
    usual = builtins.__import__

    def raising(error):
        def imported(name, *others):
            if name.partition(".")[0] == "numba":
                raise error
            return usual(name, *others)

        monkeypatch.setattr(loading, "_LACKS", [])
        monkeypatch.setattr(loading, "_has_compiled", lambda: False)
        monkeypatch.setattr(builtins, "__import__", imported)

    return raising


def test_each_executor_is_itself():
    """Only "auto" is decided."""
    assert resolve_executor("numpy") == "numpy"
    assert resolve_executor("log") == "log"


@pytest.mark.parametrize("executor", ["Numba", "", None, 1])
def test_another_name_is_refused(executor):
    """With those there are."""
    with pytest.raises(OptionError, match="executor must be one of 'auto', 'numpy', 'numba', 'log', got "):
        resolve_executor(executor)


def test_without_numba_numpy_runs_in_silence(numba_import, caplog):
    """It is an extra; who asks for it by name reads how to get it."""
    numba_import(ModuleNotFoundError("No module named 'numba'", name="numba"))
    assert resolve_executor("auto") == "numpy"
    with pytest.raises(OptionError, match=r"needs numba, which is not installed: pip install 'dpgm-core\[fast\]'"):
        resolve_executor("numba")
    assert not caplog.text


@pytest.mark.parametrize(
    "error",
    [
        ImportError("Numba needs NumPy 2.3 or less.\nGot NumPy 2.9."),
        ModuleNotFoundError("No module named 'llvmlite'", name="llvmlite"),
        OSError("Could not find/load shared object file"),
        SystemError("initialization of _internal failed"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_broken_numba_is_told_once_and_done_without(numba_import, caplog, error):
    """The cause in one line, and what would do; asked for by name it is an error."""
    numba_import(error)
    assert [resolve_executor("auto") for _ in range(3)] == ["numpy"] * 3
    (record,) = caplog.records
    assert record.name == "dpgm"
    told = f"{type(error).__name__}: {str(error).replace(chr(10), ' ')}"
    assert record.getMessage() == (
        f"dpgm: numba is installed but fails on import ({told}): pip install --upgrade 'dpgm-core[fast]'; "
        "inference goes on without it, slower"
    )
    with pytest.raises(OptionError, match="installed but fails on import"):
        resolve_executor("numba")


def test_without_numba_a_kernel_runs_as_a_function(numba_import):
    """Modules of kernels can be imported, and read by tests and documentation."""
    numba_import(ModuleNotFoundError("No module named 'numba'", name="numba"))

    def one(x):
        return x

    assert jit(one)("x") == "x"
    assert jit("float64(float64)")(one)("x") == "x"


@pytest.mark.landing
def test_numba_that_may_not_compile_is_not_chosen():
    """NUMBA_DISABLE_JIT runs kernels as Python: for who looks for an error in them, not for inference."""
    code = "from dpgm_core.inference.kernels.loading import resolve_executor; print(resolve_executor('auto'))"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "numpy\n"


def test_kernels_that_cannot_be_compiled_say_so(monkeypatch):
    """What would do, not a traceback of a compiler."""

    def failing(_):
        raise ValueError("LLVM knows\nno such processor")

    monkeypatch.setattr(loading, "_LACKS", [None])
    monkeypatch.setattr(loading, "import_module", failing)
    with pytest.raises(
        InferenceError,
        match=r"cannot compile dpgm's kernels here \(ValueError: LLVM knows no such processor\); executor = 'numpy'",
    ):
        kernels("any")


def test_an_engine_from_a_machine_with_numba_says_what_is_lacking(monkeypatch):
    """It was pickled there; kernels as plain Python would run for ever."""
    monkeypatch.setattr(loading, "_LACKS", ["is not installed: pip install it"])
    with pytest.raises(
        InferenceError, match=r"runs on numba, which is not installed: pip install it; or compile it again"
    ):
        kernels("contractions")


@needs_numba
def test_dgemm_is_scipys_or_numpys(monkeypatch):
    """What stands for it until it is called multiplies too, where SciPy cannot be imported."""
    from ctypes import addressof, c_char, c_double, c_int

    rng = np.random.default_rng(0)
    m, n, k = 3, 4, 5
    for turned in ((b"n", b"n"), (b"t", b"n"), (b"n", b"t"), (b"t", b"t")):
        one, two = rng.normal(size=(k, m)), rng.normal(size=(n, k))  # BLAS's columns are numpy's rows
        first = np.ascontiguousarray(one.T if turned[0] == b"t" else one)
        second = np.ascontiguousarray(two.T if turned[1] == b"t" else two)
        flags, sizes, factors = [c_char(x) for x in turned], [c_int(x) for x in (m, n, k)], [c_double(1), c_double(0)]
        leads = [c_int(first.shape[1]), c_int(second.shape[1])]
        for broken in (False, True):
            if broken:
                monkeypatch.setitem(sys.modules, "scipy.linalg", None)
            result = np.full((n, m), np.nan)
            loading._find_gemm(
                *map(addressof, (*flags, *sizes, factors[0])),
                first.ctypes.data,
                addressof(leads[0]),
                second.ctypes.data,
                addressof(leads[1]),
                addressof(factors[1]),
                result.ctypes.data,
                addressof(sizes[0]),
            )
            monkeypatch.undo()
            np.testing.assert_allclose(result, two @ one, rtol=1e-12)


@needs_numba
def test_a_signature_is_the_only_one(cache, load):
    """Arrays that may be read only and others; anything else is an error, not another compilation."""

    @jit("float64(Array(float64, 1, 'C', readonly=True), int64)")
    def one(x, at):
        return x[at]

    fixed = np.arange(3.0)
    fixed.setflags(write=False)
    assert one(fixed, 1) == one(np.arange(3.0), 1) == 1.0
    for wrong in (np.arange(3), np.arange(6.0)[::2], np.ones((2, 2))):
        with pytest.raises(TypeError, match="No matching definition"):
            one(wrong, 1)
    for wrong in ((fixed,), (fixed, 1, 1), (list(fixed), 1), (fixed.astype(">f8"), 1), (None, 1)):
        with pytest.raises(TypeError, match="No matching definition"):
            one(*wrong)
    with pytest.raises(TypeError, match="interpreted as an integer"):
        one(fixed, 1.5)
    with pytest.raises(OverflowError):
        one(fixed, 2**64)


@needs_numba
def test_division_and_infinities_are_numpys(cache):
    """A division by zero is no error, infinities and NaN are seen, though sums have no order."""

    @jit("float64(float64[::1], float64)")
    def ratio(x, y):
        total = 0.0
        for one in x:
            total += one
        return total / y

    assert ratio(np.ones(3), 0.0) == np.inf
    assert ratio(np.array([np.inf, 1.0]), 1.0) == np.inf
    assert np.isnan(ratio(np.array([np.inf, -np.inf]), 1.0))


@pytest.mark.landing
@needs_numba
@pytest.mark.skipif(sys.platform == "win32", reason="nothing forks there")
def test_kernels_run_in_forked_processes(cache, load):
    """One that ran before the fork, and one that is compiled after it."""
    kernel = load()
    assert kernel(3.0) == 8.0
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(kernel, [0.0, 1.0, 2.0]) == [2.0, 4.0, 6.0]


@needs_numba
@pytest.mark.skipif(sys.platform == "win32", reason="nothing forks there")
def test_a_fork_waits_for_the_compiler():
    """While another thread compiles no child is made, which would wait for its lock for ever."""
    resolve_executor("numba")
    began, ends = threading.Event(), []

    def compiling():
        with loading._LOCKS[-1]:
            began.set()
            time.sleep(0.3)
            ends.append(time.monotonic())

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(compiling)
        began.wait(20)
        child = os.fork()
        if child == 0:
            if not ends:  # and would wait below
                os._exit(1)
            for lock in loading._LOCKS:
                lock.acquire()
            os._exit(0)
        done.result()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_numba_is_loaded_only_where_it_is_chosen():
    """Neither by importing dpgm nor by choosing another executor; then from disk or not, numbers are the same."""
    code = """
import sys
import dpgm_core
from dpgm_core.inference.kernels.loading import resolve_executor
resolve_executor("numpy"), resolve_executor("log")
print("numba" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@needs_numba
@pytest.mark.parametrize("engine", ["JunctionTree", "LoopyBP"])
def test_numba_is_not_imported_where_kernels_are_on_disk(engine):
    """A later process makes the same marginals, bit by bit, from machine code alone."""
    code = f"""
import hashlib, sys
import numpy as np
from dpgm_core import Domain, Structure, Tables
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.loopy.bp import LoopyBP
structure = Structure.grid(Domain.from_sizes({{f"x{{i}}": 3 for i in range(9)}}), 3, 3)
tables = Tables(structure, np.random.default_rng(0).normal(size=structure.cells))
beliefs = {engine}().compile(structure).infer(tables)
print("numba" in sys.modules, hashlib.sha256(beliefs.marginals.values).hexdigest())
"""
    made = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert made[1] == ["False", made[0][1]]
