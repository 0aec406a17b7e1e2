"""The folder of a study: its definition, and a line for each finished run. An interrupted study can be continued."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dpgm_core.errors import ModelFileError, OptionError
from dpgm_core.files import atomic_write, bounded_bytes, check_writable, plain
from dpgm_core.study.methods import KINDS
from dpgm_core.study.single import MEASURES
from dpgm_core.study.store import Line, parse_lines, rewrite

__all__ = ["RUNS", "Folder"]

#: Lines of finished runs, and what they have in common.
RUNS, ASKED = "runs.jsonl", "study.json"
_MAX_FILE_BYTES = 2**30
#: Beyond it a measure is infinite or was not computed by a run.
_MAX_FINITE = 1e100
_WHAT = {
    "truth": "truth",
    "structure": "cliques to measure",
    "workload": "workload",
    "terms": "neighbours or other terms",
    "split": "split of the budget",
    "seed": "seed",
    "dpgm-core": "version of dpgm-core",
}


class Folder:
    """Where finished runs are kept. facts: `Study.facts`.

    Raises OptionError where the folder holds a study of other facts, ModelFileError where it cannot be used.
    """

    def __init__(self, path: str | Path, facts: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.dropped = 0
        known = self._read_facts()
        if known is None:
            if self.path.is_dir() and any(self.path.iterdir()):
                raise OptionError(f"{self.path} has files in it and no {ASKED} of a study; name a new folder with -o")
            check_writable(self.path / ASKED)
            content = json.dumps({"dpgm-study": 1, **plain(facts)}, indent=1).encode() + b"\n"
            atomic_write(self.path / ASKED, content)
        else:
            self._compare(known, plain(facts))

    @property
    def _runs(self) -> Path:
        return self.path / RUNS

    def lines(self) -> list[Line]:
        """Finished runs. What a kill left of a line, and what no run wrote, is dropped, from the file too; `dropped`
        says how many."""
        if not self._runs.exists():
            return []
        try:
            content = bounded_bytes(self._runs, _MAX_FILE_BYTES)
        except (OSError, ValueError) as error:
            raise ModelFileError(f"cannot read {self._runs}: {error}") from None
        whole, broken = parse_lines(content, _checked)
        self.dropped = len(broken)
        if self.dropped or not content.endswith(b"\n"):
            rewrite(self._runs, whole)
        return whole

    @contextmanager
    def writing(self) -> Iterator[IO[str]]:
        """The file of runs, to append lines to."""
        try:
            with self._runs.open("a", encoding="utf-8") as file:
                yield file
        except OSError as error:
            raise ModelFileError(f"cannot write {self._runs}: {error.strerror or error}") from None

    def _read_facts(self) -> Any:
        path = self.path / ASKED
        try:
            if not path.exists():
                return None
            known = json.loads(bounded_bytes(path, 2**20))
        except (OSError, ValueError, RecursionError):
            known = None
        if not isinstance(known, dict) or known.get("dpgm-study") != 1:
            raise ModelFileError(f"{path} is no file of dpgm study; name another folder with -o")
        return known

    def _compare(self, known: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        other = [what for key, what in _WHAT.items() if known.get(key) != facts[key]]
        if other:
            raise OptionError(
                f"{self.path} holds runs of another study: its {' and its '.join(other)} is not this one's, so the "
                "numbers would not compare; name another folder with -o, take back what was changed, or delete the "
                "folder. Other components, budgets, sizes and repeats may change: what is finished is kept"
            )


def _checked(line: Line) -> None:
    """KeyError, TypeError or ValueError for a line that no run wrote; people can edit the file."""
    texts = [line["key"], *(line[kind] for kind in KINDS)]
    texts += [line["error"], line["message"]] if "error" in line else []
    texts += [line["unanswered"]] if "unanswered" in line else []
    if type(line["run"]) is not int or not all(isinstance(one, str) for one in texts):
        raise TypeError
    for measure in MEASURES:
        value = float(line[measure]) if line.get(measure) is not None else 0.0
        if not (0 <= value < _MAX_FINITE or math.isinf(value)):
            raise ValueError
