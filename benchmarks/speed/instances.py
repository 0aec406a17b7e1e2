"""The part of `benchmarks.inference` on instances of competitions, which are full of zeros."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases.zeros import beside, instance
from benchmarks.harness.alone import alone
from benchmarks.harness.output import markdown
from benchmarks.speed.page import Part
from dpgm.interop.uai_tasks import read_mar, read_pr


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


def _instances(asked: Namespace) -> dict[str, dict[str, Any]]:
    """The files of a folder: NAME.uai, and beside it NAME.uai.evid, NAME.uai.PR and NAME.uai.MAR as far as they are."""
    found = published(asked.instances, 2 if asked.smoke else 10)
    return dict(list(found.items())[:1]) if asked.smoke else found


INSTANCES = Part(
    """\
Instances of the UAI competitions with their evidence, ours alone: CPU milliseconds and memory of one inference.

Beside it how many times the same structure takes with mild potentials and no zeros. Each instance is a process of its
own; errors are against the published answers, which have six digits.
""",
    _instances,
    table,
)
