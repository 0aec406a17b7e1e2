"""Exact inference of published competition instances, and of models whose potentials are full of zeros.

    python -m benchmarks.uai [DIR] [--smoke] [--only instances,constraints]

DIR holds instances of the UAI competitions: NAME.uai, and beside it NAME.uai.evid, NAME.uai.PR and NAME.uai.MAR as far
as there are any. Each row is a process of its own on one thread; times are CPU milliseconds, the least of some calls;
memory is the most that is allocated while one inference is compiled and made, of the model and of mild potentials on
the same structure. `--smoke` needs no data.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases.zeros import MADE, beside, constrained, instance
from benchmarks.harness.alone import alone
from benchmarks.harness.main import Measurement, main
from benchmarks.harness.output import markdown
from benchmarks.harness.runs import refuse
from dpgm.interop.uai_tasks import read_mar, read_pr


def instances(asked: Namespace) -> None:
    """Published instances: errors are against the published answers, which have six digits."""
    found = published(asked.folder, 2 if asked.smoke else 10)
    print(table(found) if found else "no instances: give the folder that holds them")


def constraints(asked: Namespace) -> None:
    """Made-up constraint problems with a solution: hard ones, with penalties, and far beyond the range of doubles."""
    size = 16 if asked.smoke else 100
    print(
        table(
            {
                name: alone(constrained, name, size, 2 if asked.smoke else 10)
                for name in list(MADE)[: 1 if asked.smoke else None]
            }
        )
    )


def published(folder: Path | None, calls: int) -> dict[str, dict[str, Any]]:
    """Instance -> what it took and how far it is from what is published, plain values, or why it was refused."""
    found = {}
    for path in sorted(folder.glob("*.uai")) if folder else []:
        one = alone(instance, str(path), calls)
        marginals = one.pop("marginals", [])
        found[path.stem] = one if "refused" in one else one | _errors(path, one["log10 Z"], marginals)
    return found


def _errors(path: Path, log10_z: float, marginals: Sequence[Sequence[float]]) -> dict[str, float]:
    found = {}
    if beside(path, ".PR").is_file():
        found["log10 Z error"] = abs(log10_z - read_pr(beside(path, ".PR")))
    if beside(path, ".MAR").is_file():
        pairs = zip(read_mar(beside(path, ".MAR")), marginals, strict=True)
        found["marginal error"] = max(float(np.abs(one - np.array(other)).max()) for one, other in pairs)
    return found


SHOWN = {
    "attributes": "{}",
    "tables": "{}",
    "treewidth": "{}",
    "zeros": "{:.0%}",
    "compile ms": "{:.0f}",
    "ms": "{:.2f}",
    "of mild potentials": "{:.2f}",
    "MB": "{:.1f}",
    "MB, mild": "{:.1f}",
    "log10 Z": "{:.4f}",
    "log10 Z error": "{:.1e}",
    "marginal error": "{:.1e}",
}


def table(figures: Mapping[str, Mapping[str, Any]]) -> str:
    """A row for each model; what none has is left out, and who was refused is told below."""
    columns = [column for column in SHOWN if any(column in found for found in figures.values())]
    rows = [
        [name, *(SHOWN[column].format(found[column]) if column in found else "-" for column in columns)]
        for name, found in figures.items()
    ]
    refused = [f"\n{name}: {found['refused']}\n" for name, found in figures.items() if "refused" in found]
    return markdown(["model", *columns], rows) + "".join(refused)


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
