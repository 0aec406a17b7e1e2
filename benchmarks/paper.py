"""The three papers, one command each: every claim, figure and table, with the paper's own baselines.

    python -m benchmarks.paper bernstein|chowdhury|zhang [--smoke|--full|--report] [--jobs N]

Each paper has one resumable store and a list of claims in benchmarks/results (paper-NAME.jsonl and .md), and pictures
in docs/plots. The options after the name are those of a study; `python -m benchmarks.paper NAME --help` lists them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from benchmarks.harness.main import main as run_study
from benchmarks.harness.runs import refuse

FOLDER = Path(__file__).with_name("papers")


def names() -> list[str]:
    """Return the papers that have a study."""
    return [path.stem for path in sorted(FOLDER.glob("*.py")) if "\nSTUDY = " in path.read_text(encoding="utf-8")]


def main(given: Sequence[str]) -> None:
    """Run the study that the first argument names with the other arguments."""
    known = names()
    if given[:1] in ([], ["--help"], ["-h"]):
        print(__doc__)
        return
    if given[0] not in known:
        refuse(f"no paper is called {given[0]!r}; there are: {', '.join(known)}")
    if not find_spec("matplotlib"):
        refuse("the pictures need matplotlib: pip install 'dpgm[plots]'")
    run_study(import_module(f"benchmarks.papers.{given[0]}").STUDY, given[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
