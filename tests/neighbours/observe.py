"""What an outsider sees of one run: everything it says and leaves, given the noisy tables.

The noisy tables, noisy scores and choices are what privacy is paid for, so they alone may differ between neighbours.
Here the noise is drawn and added as always, but the result is replaced by numbers that depend on the structure alone.
Then everything else must be the same to the last byte: what is printed, raised, warned of, logged, charged and written,
and how many random words a choice takes. So must what whole selectors make of such results.
"""

import io
import logging
import os
import re
import shutil
import sqlite3
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from attrs import field, frozen

import dpgm_core as dpgm
from dpgm.cli import main
from dpgm_core.curator import labels as discovery
from dpgm_core.curator import session, steps
from dpgm_core.privacy import descent, ledger
from dpgm_core.privacy.contrasts import spread
from dpgm_core.privacy.measurement import Measurement
from dpgm_core.privacy.selection import count_forest
from dpgm_core.releases.labels import FoundLabels
from dpgm_core.structure.tables import Tables

#: What the user has asked of warnings and of numpy; each must be heeded everywhere but where records are read.
MODES = ("default", "warnings as errors", "numpy raises")

#: Whose argument `data` is the records themselves, as whoever called them holds them too.
_TAKE_DATA = ("dpgm_core.pipeline.run",)

#: What a ledger says of when it was charged.
_TIME = re.compile(rb"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\.\d+)?")

_DRAW, _CHOSEN, _ADD_NOISE = Measurement.draw, session.draw_candidates, session.add_noise
_PUBLISHED, _DRAWN, _COLUMNS_DRAWN = steps.draw_publication, discovery._draw_labels, discovery.draw_columns


@frozen(kw_only=True)
class Run:
    """One side of a pair: what is run in a folder.

    files: by name. python: instead of `dpgm WORDS`. then: commands that follow, on what the run left. prepare: puts
    records where an engine finds them, unheard. logs: files that an engine elsewhere writes to while the run lasts.
    """

    words: tuple[str, ...] = ()
    files: dict[str, bytes] = field(factory=dict)
    python: Callable[[Path], object] | None = None
    then: tuple[tuple[str, ...], ...] = ()
    prepare: Callable[[], None] | None = None
    logs: tuple[Path, ...] = ()


def observed(run: Run, folder: Path, mode: str = "default") -> dict[str, object]:
    """Do it in a new folder of that name, and say what can be seen, by where."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in run.files.items():
        (folder / name).write_bytes(content)
    if run.prepare is not None:
        run.prepare()
    before = {path: path.stat().st_size for path in run.logs}
    unhurried = patch.object(os, "fsync", lambda descriptor: None)  # nobody pulls the plug
    words: list[object] = []
    replaced = (
        patch.object(Measurement, "draw", _same_for_all),
        patch.object(session, "draw_candidates", partial(_first_of_all, words)),
        patch.object(session, "add_noise", _same_scores_for_all),
        patch.object(descent, "draw_candidates", partial(_first_of_all, words)),
        patch.object(steps, "draw_publication", partial(_never, words)),
        patch.object(steps, "draw_candidates", partial(_first_of_all, words)),
        patch.object(discovery, "_draw_labels", _same_labels_for_all),
        patch.object(discovery, "draw_columns", _same_columns_for_all),
        patch.object(ledger, "new_identity", (f"{number:032x}" for number in count()).__next__),  # random, of no record
        patch.object(discovery, "secrets", SimpleNamespace(token_hex=lambda count: "00" * count)),
    )
    with _heard() as heard, _asked(mode), unhurried, ExitStack() as all_of_them:
        for one in replaced:
            all_of_them.enter_context(one)
        heard["exit"] = [_exit(run, folder), *(_exit(Run(words=command), folder) for command in run.then)]
    heard["words of choices"] = words
    heard["logs of the engine"] = [path.read_bytes()[size:] for path, size in before.items()]
    return heard | {"files": {path.relative_to(folder).as_posix(): _content(path) for path in _left(folder, run)}}


def _exit(run: Run, folder: Path) -> object:
    try:
        if run.python is not None:
            print(run.python(folder))  # noqa: T201 - to what is heard
        else:
            main([word.replace("FOLDER", str(folder)) for word in run.words])
    except SystemExit as left:
        return left.code
    except Exception as error:  # Python's door: all that hangs on it, frames and their variables included
        return said(error)
    return 0


def said(error: BaseException) -> str:
    """What a traceback that shows variables says of an error: words, notes, causes, contexts, our frames' variables.

    All but the data as the caller handed them over: those are among the caller's own variables too.
    """
    shown, waiting, seen = [], [error], set[int]()
    while waiting:
        link = waiting.pop()
        if id(link) in seen:
            continue
        seen.add(id(link))
        shown += [f"{link!r}: {link}", *getattr(link, "__notes__", ())]
        for frame, line in traceback.walk_tb(link.__traceback__):
            module = str(frame.f_globals.get("__name__"))
            if module.startswith("dpgm_"):
                shown.append(f"{module}:{line}")
                shown += [f"{name} = {value!r}" for name, value in frame.f_locals.items()
                          if name != "data" or module not in _TAKE_DATA]  # fmt: skip
        waiting += [more for more in (link.__cause__, link.__context__) if more is not None]
    # Addresses, as text and as the numbers that `id` gives: any few digits stand in one by chance.
    return re.sub(r"0x[0-9a-f]+|\b\d{14,}\b", "0x", "\n".join(shown))


def _same_for_all(self: Measurement, counts: Tables, randomness: Any, total: float = 0.0) -> Tables:
    drawn = _DRAW(self, counts, randomness, total)  # what it would raise is to be seen
    if self.contrasts:
        return spread(drawn.structure, 10 + 7 * np.arange(len(drawn.structure.groups)) % 5, total)
    return Tables(drawn.structure, (10 + 7 * np.arange(drawn.values.size) % 5).astype(drawn.values.dtype))


def _same_scores_for_all(apart: Any, noise: Any) -> Any:
    return 1024 * (10 + 7 * np.arange(_ADD_NOISE(apart, noise).size) % 5)


def _never(words: list[object], distance: int, budget: Any, randomness: Any) -> bool:
    _PUBLISHED(distance, budget, _Counted(randomness, words))
    return False


def _first_of_all(words: list[object], scores: Any, h: Any, picks: int, randomness: Any, ends: Any = None) -> list[int]:
    _CHOSEN(scores, h, picks, _Counted(randomness, words), ends)
    if ends is None:
        return list(range(picks))
    return [number for number in range(len(ends)) if count_forest(ends[: number + 1]) > count_forest(ends[:number])][
        :picks
    ]


def _same_labels_for_all(asked: Any, counted: Any, randomness: Any) -> Any:
    _DRAWN(asked, counted, randomness)
    return tuple(FoundLabels.of(one, {"F": 2**40, "M": 2**39}) for one in asked)


def _same_columns_for_all(plan: Any, declared: Any, labels: Any, shapes: Any, cells: Any, randomness: Any) -> Any:
    _COLUMNS_DRAWN(plan, declared, labels, shapes, cells, randomness)
    same = [{"1": 2**40, "p": 2**39}] * len(labels), [{"text": 2**41}] * len(shapes), [{}] * len(cells)
    return _COLUMNS_DRAWN(plan, declared, *same, dpgm.SeededRandomness(1))


@frozen
class _Counted:
    """Random words of another, and how many were asked for each time."""

    inner: Any
    counts: list[object]

    def words(self, count: int) -> Any:
        self.counts.append(count)
        return self.inner.words(count)


def _left(folder: Path, run: Run) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.name not in run.files)


def _content(path: Path) -> object:
    if path.is_dir():
        return "folder"
    mode, size = oct(path.stat().st_mode), path.stat().st_size
    if path.suffix == ".ledger":  # it holds the time and a digest of it, of which only the lengths are alike
        entries = dpgm.Ledger.open(path).history()
        with closing(sqlite3.connect(path)) as connection:
            rows = [row for table in ("charges", "tally") for row in connection.execute(f"SELECT * FROM {table}")]
        lengths = [[len(str(cell)) for cell in row] for row in rows]
        return mode, size, lengths, [(entry.id, str(entry.cost), entry.status, entry.note) for entry in entries]
    return mode, _TIME.sub(rb"TIME", path.read_bytes())


@contextmanager
def _heard() -> Iterator[dict[str, object]]:
    found: dict[str, object] = {}
    out, err, logs = io.StringIO(), io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(logs)
    logging.getLogger().addHandler(handler)
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as written, warnings.catch_warnings(record=True) as warned:
        kept = {number: os.dup(number) for number in (1, 2)}
        try:
            for number in kept:
                os.dup2(written.fileno(), number)
            with redirect_stdout(out), redirect_stderr(err):
                yield found
        finally:
            for number, old in kept.items():
                os.dup2(old, number)
                os.close(old)
            logging.getLogger().removeHandler(handler)
        written.seek(0)
        found |= {
            "stdout": _TIME.sub(b"TIME", out.getvalue().encode("utf-8", "replace")),
            "stderr": err.getvalue(),
            "descriptors": written.read(),
        }
        found |= {"logs": logs.getvalue(), "warnings": [(one.category.__name__, str(one.message)) for one in warned]}


@contextmanager
def _asked(mode: str) -> Iterator[None]:
    before = np.seterr(all="raise" if mode == "numpy raises" else "warn")
    try:
        with suppress(KeyError):
            warnings.simplefilter("error" if mode == "warnings as errors" else "always")
        yield
    finally:
        np.seterr(**before)
