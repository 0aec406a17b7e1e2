"""Redaction of exceptions that are raised while records are read, as they may quote one.

So may its frames, whose variables a debugger or a traceback with locals shows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from dpgm_core.errors import DataError, DpgmError, SourceRefused, printable
from dpgm_core.sources.contract import Source
from dpgm_core.sources.reading import quiet

__all__ = ["redact_source_errors", "strip_traceback"]

T = TypeVar("T")


def redact_source_errors(source: object, call: Callable[[], T]) -> T:
    """Return the result of `call`, which reads from `source`; an exception of a plugin or library becomes a DataError.

    Warnings and logs are muted. The exception is dropped whole, context included, by raising outside of it. Messages
    that core alone wrote are public and stay. So do those of a `SourceRefused`, whose raiser vouches for them; not
    those of its subclasses.
    """
    kind = ""
    public: BaseException | None = None
    with quiet():  # until the error is dropped: finalisers of what it references may warn or log
        try:
            return call()
        except KeyboardInterrupt:
            public = KeyboardInterrupt()
        except BaseException as error:
            kind = type(error).__name__
            if type(error) is SourceRefused:
                public = SourceRefused(printable(error))
            elif isinstance(error, DpgmError) and _is_ours(error):
                public = type(error)(*error.args)
    if public is not None:
        raise public
    where = "run dpgm validate to see them" if isinstance(source, Source) else "the engine may have logged them"
    raise DataError(
        f"the records could not be read: source {type(source).__name__} failed with {kind} "
        f"(details are withheld because they may quote records); {where}"
    )


def strip_traceback(call: Callable[[], T]) -> T:
    """Return the result of `call`, which computes on true counts; an error passes without its frames.

    >>> strip_traceback(lambda: 1 / 0)
    Traceback (most recent call last):
    ZeroDivisionError: division by zero
    """
    try:
        return call()
    except BaseException as error:
        caught = error
    seen: set[int] = set()
    chain: list[BaseException | None] = [caught]
    while chain:
        link = chain.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            link.__traceback__ = None
            chain += [link.__cause__, link.__context__]
    raise caught


def _is_ours(error: BaseException) -> bool:
    """Whether only core and the application took part, so that its words are public.

    A plugin may have passed a record to core.
    """
    trace = error.__traceback__
    while trace is not None:
        package = str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in ("dpgm_core", "dpgm") and package not in sys.stdlib_module_names:
            return False
        trace = trace.tb_next
    return True
