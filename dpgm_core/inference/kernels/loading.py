"""Choice of the executor of an engine, and kernels: compiled by numba once, then loaded as machine code.

numba is an extra, `fast`, never required: it must not hold back the newest Python and numpy. Importing it takes longer
than everything else that a first answer needs, so it is imported only where something has to be compiled.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import logging
import os
import stat
import sys
import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, cached_property, lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias, TypeVar, get_args, overload

from attrs import frozen

from dpgm_core.errors import InferenceError, OptionError

__all__ = [
    "Executor",
    "Intrinsic",
    "Kernel",
    "has_wide_vectors",
    "jit",
    "jit_strictly",
    "jit_without_nan",
    "kernels",
    "multiply",
    "power_of_two",
    "read_bits",
    "resolve_executor",
]

_LOG = logging.getLogger("dpgm")


# --- Choice of the executor -----------------------------------------------------------------------

#: What runs an engine's plan: numpy, kernels compiled by numba, or logarithms throughout; "auto": numba if installed.
Executor: TypeAlias = Literal["auto", "numpy", "numba", "log"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Ours, around whatever loads or compiles, then numba's own, once it is there. A child must not inherit a lock that a
# thread holds which it does not have, so a fork waits for them.
_LOCKS: list[Any] = [threading.RLock()]
# What `_lack` says, once it has been asked.
_LACKS: list[str | None] = []


def _acquire_locks() -> None:
    for lock in _LOCKS:
        lock.acquire()


def _release_locks() -> None:
    for lock in reversed(_LOCKS):
        lock.release()


if sys.platform != "win32":  # where nothing forks
    os.register_at_fork(before=_acquire_locks, after_in_parent=_release_locks, after_in_child=_release_locks)


def resolve_executor(executor: Executor) -> Literal["numpy", "numba", "log"]:
    """The executor that is meant. Looks for numba for "auto" and "numba", so where a model is compiled, not before.

    Raises OptionError for a name that is none, and where "numba" is asked for and cannot be used; "auto" then does
    without, and says so in the log `dpgm` if numba is installed and broken.

    >>> resolve_executor("numpy")
    'numpy'
    """
    if executor not in get_args(Executor):
        raise OptionError(f"executor must be one of {', '.join(map(repr, get_args(Executor)))}, got {executor!r}")
    if executor == "auto":
        return "numpy" if _lack() else "numba"
    if executor == "numba" and (lack := _lack()):
        raise OptionError(f"executor = 'numba' needs numba, which {lack}, or use 'auto'")
    return executor


def _lack() -> str | None:
    """Why kernels cannot be used and what would do; None if they can."""
    if not _LACKS:  # no lock where this is known: the caller may be importing, and the lock's holder may wait for that
        with _LOCKS[0]:
            if not _LACKS:
                _LACKS.append(_find_lack())
    return _LACKS[0]


def _find_lack() -> str | None:
    """numba is not imported where it has compiled for this environment before."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0") and _has_compiled():
        return None
    try:
        _import_numba()
    except ModuleNotFoundError as error:
        if error.name == "numba":
            return "is not installed: pip install 'dpgm-core[fast]'"
        cause: Exception = error
    except Exception as error:  # numba refuses numpy's version when it is imported, and loads LLVM
        cause = error
    else:
        return "may not compile, as NUMBA_DISABLE_JIT is set: unset it" if _import_numba().config.DISABLE_JIT else None
    lack = f"is installed but fails on import ({_line(cause)}): pip install --upgrade 'dpgm-core[fast]'"
    _LOG.warning("dpgm: numba %s; inference goes on without it, slower", lack)
    return lack


def _import_numba() -> Any:
    import numba
    from numba.core.compiler_lock import global_compiler_lock

    if global_compiler_lock not in _LOCKS:
        _LOCKS.append(global_compiler_lock)
    return numba


def kernels(name: str) -> Any:
    """Return the module `name` of this package, with its kernels compiled or loaded from disk; only with numba.

    Raises InferenceError where numba cannot compile them on this machine, or is not there: an engine may have come from
    another one.
    """
    if lack := _lack():
        raise InferenceError(f"this engine runs on numba, which {lack}; or compile it again with executor = 'numpy'")
    if name not in _NAMESPACES:
        with _LOCKS[0]:
            try:
                module = import_module(f"dpgm_core.inference.kernels.{name}")
                loaded = {kernel.name: kernel.loaded for kernel in _ENTRIES.get(module.__name__, {}).values()}
            except Exception as error:
                raise InferenceError(
                    f"numba cannot compile dpgm's kernels here ({_line(error)}); executor = 'numpy' does without it"
                ) from error
            _NAMESPACES[name] = SimpleNamespace(**vars(module) | loaded)
    return _NAMESPACES[name]


# --- Kernels --------------------------------------------------------------------------------------

#: Module -> name -> the kernels that Python calls; name -> a module with those loaded.
_ENTRIES: dict[str, dict[str, Kernel]] = {}
_NAMESPACES: dict[str, SimpleNamespace] = {}


class Kernel:
    """A function for numba to compile; without numba it runs as it is.

    fastmath: what LLVM may do to its arithmetic. signature: of a kernel that Python calls.
    """

    def __init__(self, function: Callable[..., Any], fastmath: frozenset[str], signature: str | None = None) -> None:
        self.function, self.fastmath, self.signature = function, fastmath, signature
        self.name, self.__module__, self.__doc__ = function.__name__, function.__module__, function.__doc__
        #: Whether it came from disk, once it is loaded.
        self.from_disk: bool | None = None
        if signature:
            _ENTRIES.setdefault(function.__module__, {})[self.name] = self

    def __call__(self, *arguments: Any) -> Any:
        return self.loaded(*arguments)

    def __reduce__(self) -> str:
        return self.name  # of its module

    @cached_property
    def loaded(self) -> Callable[..., Any]:
        """Machine code as a function of Python."""
        if _lack():
            return self.function
        if self.signature is None:
            _import_numba()
            dispatcher: Callable[..., Any] = _compiling().compile_for_python(self)
            return dispatcher
        with _LOCKS[0]:
            return _load_entries(self.function)[self.name]

    @cached_property
    def dispatcher(self) -> Any:
        """numba's, for kernels that call this one."""
        return _compiling().dispatcher_of(self)

    @cached_property
    def _numba_type_(self) -> Any:
        """What numba asks for where a kernel calls this one."""
        return _compiling().type_of(self)


def _compiling() -> Any:
    """The module that imports numba."""
    return import_module("dpgm_core.inference.kernels.compiling")


@frozen(slots=False)
class Intrinsic:
    """An intrinsic of numba for kernels, `name` of a module that imports numba: only compiling imports it."""

    module: str
    name: str

    @cached_property
    def _numba_type_(self) -> Any:
        return _compiling().type_of_intrinsic(getattr(import_module(self.module), self.name))


#: multiply(memory, r, p, q, rows, columns, terms, turned_p, turned_q): r = p q by BLAS. Matrices lie at these places of
#: memory row by row, turned ones column by column.
multiply: Any = Intrinsic("dpgm_core.inference.kernels.compiling", "multiply")
#: power_of_two(near): 2^k for a whole number k that was added to 1.5 * 2^52, where -1023 < k <= 1023.
power_of_two: Any = Intrinsic("dpgm_core.inference.kernels.compiling", "power_of_two")
#: read_bits(array, start): the same memory from there on, whole numbers for doubles and doubles for whole numbers.
read_bits: Any = Intrinsic("dpgm_core.inference.kernels.compiling", "read_bits")


@frozen
class _Jit:
    """Make a kernel of a function: without the GIL, kept on disk for other processes.

    As a mere decorator for what kernels call: compiled for whatever they pass. With a signature for what Python calls:
    arguments of other types raise TypeError. It is one of numba's, such as "float64(float64[::1], int64)", of numbers
    and contiguous arrays of float64 or int64; an array that may be read only, as those of `Tables`, is
    "Array(float64, 1, 'C', readonly=True)". Kernels may not allocate: they write to what they are passed.

    Cached kernels are ignored when any file of the kernel's folder changes. Values from elsewhere are constants to
    numba, and a change of those would go unseen: pass them.
    """

    fastmath: frozenset[str]

    @overload
    def __call__(self, target: str) -> Callable[[_Function], _Function]: ...

    @overload
    def __call__(self, target: _Function) -> _Function: ...

    def __call__(self, target: Any) -> Any:
        if isinstance(target, str):
            return partial(Kernel, fastmath=self.fastmath, signature=target)
        return Kernel(target, self.fastmath)


#: Sums may be taken in any order, so that they may run in vectors; infinities and NaN keep their meaning.
jit = _Jit(frozenset({"reassoc", "contract", "nsz"}))
#: For arithmetic whose order must stay; a product and a sum may still become one operation.
jit_strictly = _Jit(frozenset({"contract"}))
#: For what means nothing where there is a NaN: least and largest numbers become vectors then.
jit_without_nan = _Jit(frozenset({"nnan", "nsz"}))


def _line(error: Exception) -> str:
    """One line of an exception that may have many."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}"


# --- Machine code on disk --------------------------------------------------------------------------
# numba's own cache notices neither a damaged file, which may raise, crash or give wrong numbers, nor a change of a
# function that another one calls, nor who may write to the folder; and loading from it needs numba. Here an object file
# has all kernels of a module. It is named by all that its machine code depends on, holds a checksum of itself, and is
# read only from a folder in which nobody else may write. Whatever does not fit is compiled again: a file is never more
# than time saved. llvmlite alone loads it, as numba would.

_SUFFIX = ".kernel"
_DIGEST = hashlib.sha256().digest_size
#: Files in a folder; beyond them the oldest go when one is written, as those of versions that nobody has any more.
_MAX_FILES = 100


def folders() -> tuple[Path, ...]:
    """Return the folders of kernels: numba's, if NUMBA_CACHE_DIR names one, and the user's folder of caches."""
    parents = [Path(named)] if (named := os.environ.get("NUMBA_CACHE_DIR")) else []
    with suppress(RuntimeError):  # nobody's home is known
        parents.append(_user_cache())
    return tuple(folder / "dpgm" for folder in parents)


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    cache_home = os.environ.get("XDG_CACHE_HOME", "")
    return Path(cache_home) if cache_home.startswith("/") else Path.home() / ".cache"


def _load_entries(function: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """All kernels of a function's module that Python calls, from disk or compiled."""
    entries = _ENTRIES[function.__module__]
    home = Path(function.__code__.co_filename)
    signatures = sorted((name, kernel.signature) for name, kernel in entries.items())
    key = _hash(_environment(), home.stem, _sources(home.parent), signatures)
    paths = [folder / f"{home.stem}-{_environment().hex()[:16]}-{key.hex()[:16]}{_SUFFIX}" for folder in folders()]
    loaded = _read(paths, key, entries)
    from_disk = loaded is not None
    if loaded is None:
        _import_numba()
        machine_code, needed = _compiling().compile_entries(home.stem, entries)
        payload = json.dumps(needed).encode() + b"\n" + machine_code
        loaded = _link(payload, entries)
        _keep(paths, _hash(key, payload) + payload)
    for kernel in entries.values():
        kernel.from_disk = from_disk
    return loaded


def _read(paths: list[Path], key: bytes, entries: Mapping[str, Kernel]) -> dict[str, Callable[..., Any]] | None:
    """What the first file has that fits."""
    for path in paths:
        try:
            with path.open("rb") as file:
                _require_own(path, os.fstat(file.fileno()))
                content = file.read()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            _warn_unused(path.parent, str(error))
            continue
        payload = content[_DIGEST:]
        if content[:_DIGEST] != _hash(key, payload):
            _warn_recompiled(path, "is damaged")
            continue
        try:
            return _link(payload, entries)
        except Exception as error:  # whatever another LLVM thinks of it
            _warn_recompiled(path, f"cannot be loaded ({type(error).__name__})")
    return None


def _keep(paths: list[Path], content: bytes) -> None:
    """Write to the first folder that takes it."""
    failed = []
    for path in paths:
        try:
            _write(path, content)
        except OSError as error:
            failed.append(str(error))
        else:
            return
    _warn_uncached("; ".join(failed) or "the user has no home")


def _has_compiled() -> bool:
    """Whether numba has compiled kernels in this environment, so that it works."""
    try:
        pattern = f"*-{_environment().hex()[:16]}-*{_SUFFIX}"
    except Exception:  # no numba, or no llvmlite
        return False
    return any(any(folder.glob(pattern)) for folder in folders())


@cache
def _environment() -> bytes:
    """Hash all that machine code depends on but its sources: versions, the processor, numba's settings."""
    from llvmlite import binding

    settings = sorted(one for one in os.environ.items() if one[0].startswith("NUMBA_") and one[0] not in _HARMLESS)
    with suppress(OSError):  # numba's settings of a folder
        settings.append(("", _hash(Path(".numba_config.yaml").read_bytes()).hex()))
    processor = (binding.get_process_triple(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten())
    return _hash(_versions(), processor, settings, _sources(Path(__file__).parent))


#: Variables of numba that change no machine code.
_HARMLESS = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_DISABLE_JIT")


def has_wide_vectors() -> bool:
    """Whether the processor, as numba's settings have it, has registers of eight doubles, and many of them."""
    try:
        from llvmlite import binding
    except Exception:  # then nothing is compiled
        return False
    if os.environ.get("NUMBA_ENABLE_AVX", "1") == "0":
        return False
    features = os.environ.get("NUMBA_CPU_FEATURES")
    return "+avx512f" in (binding.get_host_cpu_features().flatten() if features is None else features)


def _versions() -> tuple[Any, ...]:
    import llvmlite
    import numpy as np

    spec = find_spec("numba")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'numba'", name="numba")
    numba = Path(spec.origin).with_name("_version.py").read_bytes()
    return numba, llvmlite.__version__, np.__version__, sys.implementation.cache_tag, sys.abiflags


def _hash(*parts: Any) -> bytes:
    return hashlib.sha256(repr(parts).encode()).digest()


@lru_cache
def _sources(folder: Path) -> str:
    """Hash every file that a kernel may take a function from, since numba puts called functions into the kernel.

    And of ours, which say how it is compiled.
    """
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))).hexdigest()


def _require_own(path: Path, status: os.stat_result) -> None:
    """Raise PermissionError if somebody else could have written it: a kernel is code, and whoever writes it is obeyed.

    The file, its folder and every folder above must belong to the user or to root, and no one else may write to them,
    as ssh asks of its keys: whoever may write to a folder can put another one in the place of what is in it. Above the
    file's own folder a sticky one will do, such as /tmp, as nobody can rename there what is another's. What root has
    written, as when an image was built, is trusted like the installation itself.
    """
    if sys.platform == "win32":  # the folder is the user's own by its place
        return
    folder = path.parent
    above = {*folder.absolute().parents, *Path(os.path.realpath(folder)).parents}  # links and what they point to
    for one, sticky in ((status, False), (folder.stat(), False), *((each.stat(), True) for each in above)):
        writable = one.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not (sticky and one.st_mode & stat.S_ISVTX)
        if one.st_uid not in (os.getuid(), 0) or writable:
            raise PermissionError("others may write there or above, or have written")


def _write(path: Path, content: bytes) -> None:
    """Write in one step, so that no process sees a part; several may write the same."""
    for folder in (*reversed(path.parent.parents), path.parent):  # `parents=True` would leave the rest to the umask
        folder.mkdir(mode=0o755, exist_ok=True)
    _require_own(path, path.parent.stat())
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644), "wb") as file:
            file.write(content)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _thin(path.parent)


def _thin(folder: Path) -> None:
    """Remove the oldest kernels, and parts that a killed process left."""
    ages = []
    for path in folder.glob(f"*{_SUFFIX}*"):
        with suppress(OSError):  # another process was faster
            ages.append((path.stat().st_mtime, path))
    for _, path in sorted(ages, reverse=True)[_MAX_FILES:]:
        path.unlink(missing_ok=True)


def _warn_recompiled(path: Path, what: str) -> None:
    _LOG.warning("dpgm: the compiled kernel %s %s; it is compiled again, which takes some seconds", path, what)


@lru_cache
def _warn_unused(folder: Path, cause: str) -> None:
    _LOG.warning("dpgm: compiled kernels in %s are not used (%s), so they are compiled again", folder, cause)


@lru_cache(maxsize=1)
def _warn_uncached(cause: str) -> None:
    """Once, not for each kernel."""
    _LOG.warning(
        "dpgm: no folder can keep compiled kernels (%s), so every process compiles them, for some seconds; "
        "NUMBA_CACHE_DIR may name a folder of your own",
        cause,
    )


# --- Machine code in a process --------------------------------------------------------------------


class _Definition(ctypes.Structure):
    """PyMethodDef of Python's C API."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_FASTCALL = 0x80
#: Of the names of the functions that Python calls; the table of addresses that the process writes into the object:
#: numpy's type of arrays, BLAS's dgemm, TypeError, SystemError and None.
PREFIX, TABLE = "dpgm_call_", "dpgm_addresses"
#: What machine code needs as long as the process lives.
_KEPT: list[Any] = []


def _link(payload: bytes, entries: Mapping[str, Kernel]) -> dict[str, Callable[..., Any]]:
    """Load an object file, and make its entries functions of Python. payload: symbols that it needs, and the file.

    Raises ValueError for what it lacks: LLVM would end the process.
    """
    import numpy as np
    from llvmlite import binding

    names, _, machine_code = payload.partition(b"\n")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_triple(binding.get_process_triple())
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target.create_target_machine(jit=True))
    lacking = [name for name in json.loads(names) if binding.address_of_symbol(name) is None]  # once there is an engine
    if lacking:
        raise ValueError(f"the process lacks {', '.join(lacking)}")
    engine.add_object_file(binding.ObjectFileRef.from_data(machine_code))
    engine.finalize_object()
    table = (ctypes.c_void_p * 5).from_address(engine.get_global_value_address(TABLE))
    gemm = _Gemm(_find_gemm)
    table[:] = [id(np.ndarray), ctypes.cast(gemm, ctypes.c_void_p).value, id(TypeError), id(SystemError), id(None)]
    _TABLES.append(table)
    _KEPT.extend((engine, gemm))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    loaded = {}
    for name in entries:
        address = engine.get_function_address(PREFIX + name)
        if not address:
            raise ValueError(f"no kernel {name}")
        definition = _Definition(name.encode(), address, _FASTCALL, None)
        _KEPT.append(definition)
        loaded[name] = make(ctypes.addressof(definition), None, None)
    return loaded


_Gemm = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13)
#: Addresses that machine code reads; the second one is of dgemm.
_TABLES: list[Any] = []


def _find_gemm(*arguments: int) -> None:
    """Stand for dgemm until it is called: only then is SciPy's BLAS imported, which takes longer than small answers."""
    try:
        from scipy.linalg import cython_blas

        capsule = cython_blas.__pyx_capi__["dgemm"]
        api = ctypes.pythonapi
        name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
        address_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
            ("PyCapsule_GetPointer", api)
        )
        address = address_of(capsule, name_of(capsule))
    except Exception:  # what is raised here would be lost, with the product
        _multiply_with_numpy(*arguments)
        return
    _Gemm(address)(*arguments)
    for table in _TABLES:
        table[1] = address


def _multiply_with_numpy(*arguments: int) -> None:
    """dgemm with factors 1 and 0, of matrices without gaps."""
    import numpy as np

    turned = [ctypes.c_char.from_address(one).value == b"t" for one in arguments[:2]]
    m, n, k = (ctypes.c_int.from_address(one).value for one in arguments[2:5])
    sizes = ((m, k), (k, n), (m, n))
    first, second, result = (
        np.ctypeslib.as_array(ctypes.cast(arguments[place], ctypes.POINTER(ctypes.c_double)), (one * two,))
        for place, (one, two) in zip((6, 8, 11), sizes, strict=True)
    )
    one = first.reshape(m, k) if turned[0] else first.reshape(k, m).T
    two = second.reshape(k, n) if turned[1] else second.reshape(n, k).T
    np.matmul(two.T, one.T, out=result.reshape(n, m))
