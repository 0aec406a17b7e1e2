"""Second derivatives, ours alone, in inferences: preparing a map, with one product, one product, one of 64 or 500."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness.output import markdown
from benchmarks.harness.timing import cpu_seconds
from benchmarks.speed.models import GENERATED, domain
from dpgm_core.domain.domain import Domain
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables


def trees_and_pairs(count: int = 40) -> Structure:
    """A random tree over attributes of 2 to 5 labels, and a fifth as many pairs besides."""
    rng = np.random.default_rng(0)
    mixed = Domain.from_sizes({f"x{i}": int(rng.choice([2, 2, 2, 3, 4, 5])) for i in range(count)})
    pairs = {(f"x{rng.integers(i)}", f"x{i}") for i in range(1, count)}
    while len(pairs) < count - 1 + count // 5:
        one, two = sorted(rng.choice(count, 2, replace=False))
        pairs.add((f"x{one}", f"x{two}"))
    return Structure(mixed, sorted(pairs))


CURVED: dict[str, Callable[[], Structure]] = {
    "chain3-k5": lambda: Structure.chain(domain(10, 5), 3),
    "chain3-k10": GENERATED["chain3-k10"],
    "chain3-k20": GENERATED["chain3-k20"],
    "chain50-k20": lambda: Structure.chain(domain(50, 20)),
    "tree40": trees_and_pairs,
}
COLUMNS = ("prepare", "with one", "one", "of 64", "of 500")


def measure(asked: Namespace) -> dict[str, Any]:
    """Model -> cells, milliseconds of an inference, and the columns in inferences."""
    found = {}
    for name in list(CURVED)[: 1 if asked.smoke else None]:
        structure = CURVED[name]()
        engine = JunctionTree().compile(structure)
        rng = np.random.default_rng(0)
        theta = Tables(structure, rng.normal(size=structure.cells))
        one, some, many = (rng.normal(size=(structure.cells, count)) for count in (1, 64, 500))
        product = engine.curvature(theta)
        calls: list[tuple[Callable[[], object], int, int]] = [
            (lambda engine=engine, theta=theta: engine.infer(theta), 20, 1),
            (lambda engine=engine, theta=theta: engine.curvature(theta), 20, 1),
            (lambda engine=engine, theta=theta, one=one: engine.curvature(theta)(one), 20, 1),
            (lambda product=product, one=one: product(one), 20, 1),
            (lambda product=product, some=some: product(some), 3, 64),
            (lambda product=product, many=many: product(many), 1, 500),
        ]
        for call, _, _ in calls:
            call()
        infer, *seconds = (cpu_seconds(call, runs) / count for call, runs, count in calls)
        found[name] = {"cells": structure.cells, "infer ms": 1e3 * infer} | {
            column: part / infer for column, part in zip(COLUMNS, seconds, strict=True)
        }
    return found


def table(figures: dict[str, Any]) -> str:
    """A row for each model."""
    rows = [
        [name, found["cells"], f"{found['infer ms']:.3g}", *(f"{found[column]:.2f}" for column in COLUMNS)]
        for name, found in figures.items()
    ]
    return markdown(["model", "cells", "infer, ms", *COLUMNS], rows)
