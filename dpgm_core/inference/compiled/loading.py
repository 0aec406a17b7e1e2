"""Which executor an engine runs on, and kernels compiled by numba where it is installed.

numba is an extra, `fast`, never required: it must not hold back the newest Python and numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args

from dpgm_core.errors import OptionError

__all__ = ["Executor", "chosen", "jit", "kernels"]

#: What runs an engine's plan: numpy, kernels compiled by numba, or logarithms throughout; "auto": numba if installed.
Executor: TypeAlias = Literal["auto", "numpy", "numba", "log"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def chosen(executor: Executor) -> Literal["numpy", "numba", "log"]:
    """The executor that is meant; raises OptionError for a name that is none, and for numba that is not installed.

    >>> chosen("numpy")
    'numpy'
    """
    if executor not in get_args(Executor):
        raise OptionError(f"executor must be one of {', '.join(map(repr, get_args(Executor)))}, got {executor!r}")
    if executor == "auto":
        return "numba" if _installed() else "numpy"
    if executor == "numba" and not _installed():
        raise OptionError(
            "executor = 'numba' needs numba, which is not installed: pip install 'dpgm-core[fast]', or use 'auto'"
        )
    return executor


@lru_cache(maxsize=1)
def _installed() -> bool:
    return find_spec("numba") is not None


def kernels(name: str) -> ModuleType:
    """The module `name` of this package, whose functions are compiled; imports numba, so only where it is chosen."""
    return import_module(f"dpgm_core.inference.compiled.{name}")


def jit(function: _Function) -> _Function:
    """Compile a kernel: without the GIL, kept on disk for the next process."""
    from numba import njit

    return cast(
        "_Function",
        njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})(function),
    )
