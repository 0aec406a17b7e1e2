"""Exact inference of published competition instances, and of models whose potentials are full of zeros.

    python -m benchmarks.uai [DIR] [--smoke] [--only instances,constraints]

DIR holds instances of the UAI competitions: NAME.uai, and beside it NAME.uai.evid, NAME.uai.PR and NAME.uai.MAR as far
as there are any. Each row is a process of its own on one thread; times are CPU milliseconds, the least of some calls;
memory is the most that is allocated while one inference is compiled and made. `--smoke` needs no data.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.cases.zeros import MADE, beside, constrained, instance
from benchmarks.harness.alone import alone
from benchmarks.harness.main import Measurement, main
from benchmarks.harness.output import markdown
from benchmarks.harness.runs import refuse
from dpgm_core.interop.uai import read_mar, read_pr


def instances(asked: Namespace) -> None:
    """Published instances: errors are against the published answers, which have six digits."""
    paths = sorted(asked.folder.glob("*.uai")) if asked.folder else []
    if not paths:
        print("no instances: give the folder that holds them")
        return
    rows = []
    for path in paths:
        found = alone(instance, str(path), 2 if asked.smoke else 10)
        rows.append([path.stem, *_shown(found), *([] if "refused" in found else _errors(path, found))])
    _print(["log10 Z error", "largest marginal error"], rows)


def constraints(asked: Namespace) -> None:
    """Made-up constraint problems with a solution: hard ones, with penalties, and far beyond the range of doubles."""
    size = 16 if asked.smoke else 100
    _print([], [[name, *_shown(alone(constrained, name, size, 2 if asked.smoke else 10))] for name in MADE])


def _errors(path: Path, found: Mapping[str, object]) -> list[str]:
    partition, marginals = beside(path, ".PR"), beside(path, ".MAR")
    texts = ["-", "-"]
    if partition.is_file():
        texts[0] = f"{abs(found['log10 Z'] - read_pr(partition)):.1e}"
    if marginals.is_file():
        pairs = zip(read_mar(marginals), found["marginals"], strict=True)
        texts[1] = f"{max(float(np.abs(one - np.array(other)).max()) for one, other in pairs):.1e}"
    return texts


SHOWN = {
    "attributes": "{}",
    "tables": "{}",
    "treewidth": "{}",
    "zeros": "{:.0%}",
    "compile ms": "{:.0f}",
    "ms": "{:.2f}",
    "of mild potentials": "{:.2f}",
    "MB": "{:.1f}",
    "log10 Z": "{:.4f}",
}


def _shown(found: Mapping[str, object]) -> list[str]:
    if "refused" in found:
        print(f"refused: {found['refused']}")
        return ["refused", *[""] * (len(SHOWN) - 1)]
    return [pattern.format(found[name]) for name, pattern in SHOWN.items()]


def _print(more: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    head = ["model", *SHOWN, *more]
    print(markdown(head, [[*row, *[""] * (len(head) - len(row))] for row in rows]))


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", type=_folder, metavar="DIR", help="holds the instances")


def _folder(text: str) -> Path:
    if not Path(text).is_dir():
        refuse(f"there is no folder {text}")
    return Path(text)


MEASUREMENT = Measurement(
    about=__doc__, parts={"instances": instances, "constraints": constraints}, arguments=_arguments
)

if __name__ == "__main__":
    main(MEASUREMENT)
