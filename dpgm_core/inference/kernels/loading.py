"""Choice of the executor of an engine, and kernels compiled by numba where it is installed.

numba is an extra, `fast`, never required: it must not hold back the newest Python and numpy.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import re
import stat
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeAlias, TypeVar, get_args, overload

from attrs import frozen

from dpgm_core.errors import InferenceError, OptionError

__all__ = ["Executor", "check_executor", "jit", "jit_strictly", "jit_without_nan", "kernels", "resolve_executor"]

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
    """The executor that is meant. Imports numba for "auto" and "numba", so where a model is compiled, not before.

    Raises OptionError for a name that is none, and where "numba" is asked for and cannot be used; "auto" then does
    without, and says so in the log `dpgm` if numba is installed and broken.

    >>> resolve_executor("numpy")
    'numpy'
    """
    check_executor(None, None, executor)
    if executor == "auto":
        return "numpy" if _lack() else "numba"
    if executor == "numba" and (lack := _lack()):
        raise OptionError(f"executor = 'numba' needs numba, which {lack}, or use 'auto'")
    return executor


def check_executor(instance: object, attribute: object, value: object) -> None:
    """A validator of options; raises OptionError for what is no executor."""
    if value not in get_args(Executor):
        raise OptionError(f"executor must be one of {', '.join(map(repr, get_args(Executor)))}, got {value!r}")


def _lack() -> str | None:
    """Why numba cannot be used and what would do; None if it can."""
    if not _LACKS:  # no lock where this is known: the caller may be importing, and the lock's holder may wait for that
        with _LOCKS[0]:
            if not _LACKS:
                _LACKS.append(_find_lack())
    return _LACKS[0]


def _find_lack() -> str | None:
    try:
        import numba
        from numba.core.compiler_lock import global_compiler_lock
    except ModuleNotFoundError as error:
        if error.name == "numba":
            return "is not installed: pip install 'dpgm-core[fast]'"
        cause: Exception = error
    except Exception as error:  # numba refuses numpy's version when it is imported, and loads LLVM
        cause = error
    else:
        _LOCKS.append(global_compiler_lock)
        return "may not compile, as NUMBA_DISABLE_JIT is set: unset it" if numba.config.DISABLE_JIT else None
    lack = f"is installed but fails on import ({_line(cause)}): pip install --upgrade 'dpgm-core[fast]'"
    _LOG.warning("dpgm: numba %s; inference goes on without it, slower", lack)
    return lack


def kernels(name: str) -> ModuleType:
    """Return the module `name` of this package, with its kernels compiled or loaded from disk; only with numba.

    Raises InferenceError where numba cannot compile them on this machine, or is not there: an engine may have come from
    another one.
    """
    if lack := _lack():
        raise InferenceError(f"this engine runs on numba, which {lack}; or compile it again with executor = 'numpy'")
    with _LOCKS[0]:
        try:
            return import_module(f"dpgm_core.inference.kernels.{name}")
        except Exception as error:
            raise InferenceError(
                f"numba cannot compile dpgm's kernels here ({_line(error)}); executor = 'numpy' does without it"
            ) from error


@frozen
class _Jit:
    """Compile a kernel: without the GIL, kept on disk for other processes. Without numba it stays what it is.

    As a mere decorator for what kernels call: compiled for whatever they pass. With a signature for what Python calls:
    compiled or loaded at once, and arguments of other types raise TypeError. It is one of numba's, such as
    "float64(float64[::1], int64)"; an array that may be read only, as those of `Tables`, is
    "Array(float64, 1, 'C', readonly=True)".

    Cached kernels are ignored when any file of the kernel's folder changes. Values from elsewhere are constants to
    numba, and a change of those would go unseen: pass them.
    """

    fastmath: frozenset[str]

    @overload
    def __call__(self, target: str) -> Callable[[_Function], _Function]: ...

    @overload
    def __call__(self, target: _Function) -> _Function: ...

    def __call__(self, target: Any) -> Any:
        return partial(self._for_python, target) if isinstance(target, str) else self._for_kernels(target)

    def _for_kernels(self, function: Any) -> Any:
        if _lack():
            return function
        from numba import njit

        # A division by zero gives what numpy gives: raising would keep loops from becoming vectors.
        kernel = njit(nogil=True, fastmath=set(self.fastmath), error_model="numpy")(function)
        kernel._cache = KernelCache(function)
        return kernel

    def _for_python(self, signature: str, function: Any) -> Any:
        kernel = self._for_kernels(function)
        if kernel is not function:
            kernel.compile(signature)
            kernel.disable_compile()
        return kernel


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


# --- Compiled kernels on disk, in place of numba's own cache --------------------------------------
# numba's own notices neither a damaged file, which may raise, crash or give wrong numbers, nor a change of a function
# that another one calls, nor who may write to the folder. Here each kernel's file is named by all that its machine code
# depends on, holds a checksum of itself, and is read only from a folder in which nobody else may write. Whatever does
# not fit is compiled again: a file is never more than time saved.

#: What numba asks of the environment that changes machine code.
_SETTINGS = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "LLVM_PASS_TIMINGS")
_SUFFIX = ".kernel"
_DIGEST = hashlib.sha256().digest_size
#: Files in a folder; beyond them the oldest go when one is written, as those of versions that nobody has any more.
_MAX_FILES = 400


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


class KernelCache:
    """One function's kernels on disk, by the names that numba's dispatcher asks of its cache."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = function.__name__
        home = Path(function.__code__.co_filename)
        self._about = (home.stem, function.__qualname__, _sources(home.parent), _sources(Path(__file__).parent))

    @property
    def cache_path(self) -> str | None:
        """The folder that is looked into first; for numba's statistics."""
        return next(map(str, folders()), None)

    def flush(self) -> None:
        """Nothing is thrown away: what is compiled again takes the place of what is there."""

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return what numba compiled for a signature, or None."""
        from numba.core.compiler import CompileResult

        key = self._key(signature, context.codegen())
        for path in self._paths(key):
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
            if content[:_DIGEST] != _checksum(key, payload):
                _warn_recompiled(path, "is damaged")
                continue
            try:
                called, reduced = pickle.loads(payload)
                _provide(context, called)
                return CompileResult._rebuild(context, *reduced)
            except Exception as error:  # whatever another numba or LLVM thinks of it
                _warn_recompiled(path, f"cannot be loaded ({type(error).__name__})")
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what numba has compiled in the first folder that takes it."""
        from numba.core.serialize import dumps

        try:
            key = self._key(signature, result.codegen)
            payload: bytes = dumps((_symbols_called(result.library), result._reduce()))
        except Exception as error:
            _LOG.warning("dpgm: a compiled kernel is not kept for other processes (%s)", error)
            return
        failed = []
        for path in self._paths(key):
            try:
                _write(path, _checksum(key, payload) + payload)
            except OSError as error:
                failed.append(str(error))
            else:
                return
        _warn_uncached("; ".join(failed) or "the user has no home")

    def _key(self, signature: Any, codegen: Any) -> bytes:
        """Hash all that machine code depends on: our sources, versions of the compilers, the processor, settings."""
        import llvmlite
        import numba
        import numpy as np

        versions = (numba.__version__, llvmlite.__version__, np.__version__, sys.implementation.cache_tag, sys.abiflags)
        settings = [str(vars(numba.config).get(name)) for name in _SETTINGS]
        text = repr((self._about, str(signature), versions, codegen.magic_tuple(), settings))
        return hashlib.sha256(text.encode()).digest()

    def _paths(self, key: bytes) -> Iterator[Path]:
        for folder in folders():
            yield folder / f"{self._name}-{key.hex()[:32]}{_SUFFIX}"


def _symbols_called(library: Any) -> list[str]:
    """The functions that machine code takes from the process."""
    declared = re.findall(r'^declare [^@\n]*@"?([^"(\n]+)"?\(', library.get_llvm_str(), re.MULTILINE)
    return sorted({name for name in declared if not name.startswith("llvm.")})


def _provide(context: Any, called: Iterable[str]) -> None:
    """Make sure that these functions are in the process: LLVM ends it where one is lacking.

    numba's runtime nearly always is enough. Registering all that numba can compile, as its own cache does, would take
    .3 s of each process.
    """
    from llvmlite import binding
    from numba.core.runtime import rtsys

    rtsys.initialize(context)
    if any(binding.address_of_symbol(name) is None for name in called):
        context.refresh()


def _checksum(key: bytes, payload: bytes) -> bytes:
    """Hash payload and key, so that a file under another's name is not taken either."""
    return hashlib.sha256(key + payload).digest()


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
