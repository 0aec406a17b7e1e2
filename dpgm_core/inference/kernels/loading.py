"""Choice of the executor of an engine, and kernels compiled by numba where it is installed.

numba is an extra, `fast`, never required: it must not hold back the newest Python and numpy.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, Literal, TypeAlias, TypeVar, get_args, overload

from attrs import frozen

from dpgm_core.errors import InferenceError, OptionError
from dpgm_core.inference.kernels.cache import KernelCache

__all__ = ["Executor", "check_executor", "jit", "jit_strictly", "jit_without_nan", "kernels", "resolve_executor"]

#: What runs an engine's plan: numpy, kernels compiled by numba, or logarithms throughout; "auto": numba if installed.
Executor: TypeAlias = Literal["auto", "numpy", "numba", "log"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_LOG = logging.getLogger("dpgm")
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
