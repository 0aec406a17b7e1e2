"""What a process says besides its answers: on stdout and stderr, as warnings and in logs."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

from attrs import define, field

__all__ = ["Overheard", "overhearing"]


@define
class Overheard:
    """What was said, once the block is over."""

    text: str = field(default="", repr=False)


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@contextmanager
def overhearing() -> Iterator[Overheard]:
    """Listens in while the block runs; nothing of it is shown.

    What is printed here and by processes that start meanwhile is heard, not what others print that run already.

    >>> with overhearing() as heard:
    ...     print("here")
    >>> heard.text
    'here\\n'
    """
    heard, log = Overheard(), _Kept()
    printed = io.StringIO()
    with ExitStack() as stack:
        files = [stack.enter_context(_diverted(number)) for number in (1, 2)]
        stack.enter_context(contextlib.redirect_stdout(printed))
        stack.enter_context(contextlib.redirect_stderr(printed))
        warned = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        logging.getLogger().addHandler(log)
        try:
            yield heard
        finally:
            logging.getLogger().removeHandler(log)
            texts = [printed.getvalue(), *map(_content, files), *(f"{one.message}" for one in warned), *log.lines]
            heard.text = "\n".join(text for text in texts if text)


@contextmanager
def _diverted(number: int) -> Iterator[IO[bytes]]:
    """A file that takes what is written to this file descriptor."""
    with tempfile.TemporaryFile() as file:
        usual = os.dup(number)
        os.dup2(file.fileno(), number)
        try:
            yield file
        finally:
            os.dup2(usual, number)
            os.close(usual)


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
