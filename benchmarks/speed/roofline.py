"""What this machine does at most, and what each model cannot cost less than.

An inference takes exp of every log-potential, makes each multiply-add of its plan, once forwards and once backwards per
operand, and touches its arrays at least once. Rates: exp of numpy on an array that stays in the cache, multiply-adds
of a large product of matrices, bytes of a copy in memory and in the cache. The limit is the longer of arithmetic and
bytes; interpreting, checking and waiting for a step's operands come on top of it.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from benchmarks.harness.main import choose
from benchmarks.harness.output import markdown
from benchmarks.harness.timing import wall_seconds
from benchmarks.peers.exact_dpgm import engine_of
from benchmarks.speed.models import case, names_of

#: A working set of so many bytes is taken to stay in the cache of one core.
CACHED = 2**20


def rates(runs: int = 30) -> dict[str, float]:
    """exp and multiply-adds per second; bytes per second of a copy, read and written, in memory and in the cache."""
    large, small = np.ones(2**23), np.ones(2**14)
    into_large, into_small = np.empty_like(large), np.empty_like(small)
    matrix = np.ones((512, 512))
    product = np.empty_like(matrix)
    return {
        "exp": small.size / wall_seconds(lambda: np.exp(small, out=into_small), 10 * runs),
        "multiply-add": matrix.size * 512 / wall_seconds(lambda: np.matmul(matrix, matrix, out=product), runs),
        "memory": 2 * large.nbytes / wall_seconds(lambda: np.copyto(into_large, large), runs),
        "cache": 2 * small.nbytes / wall_seconds(lambda: np.copyto(into_small, small), 10 * runs),
    }


def limit(cells: int, multiply_adds: int, bytes_touched: int, rate: dict[str, float]) -> float:
    """Milliseconds."""
    arithmetic = cells / rate["exp"] + multiply_adds / rate["multiply-add"]
    moving = bytes_touched / rate["cache" if bytes_touched <= CACHED else "memory"]
    return 1e3 * max(arithmetic, moving)


def measure(asked: Namespace) -> dict[str, Any]:
    """Rates of the machine, and of each model what it takes and its limit, ms."""
    rate = rates(3 if asked.smoke else 30)
    found: dict[str, Any] = {"rates": rate, "models": {}}
    for name in choose("model", asked.models, names_of(asked.networks))[: 1 if asked.smoke else None]:
        structure = case(name, asked.networks).structure
        needs = engine_of(structure, "").needs
        found["models"][name] = {
            "cells": structure.cells,
            "multiply-adds": needs.multiply_adds,
            "bytes": needs.peak_bytes,
            "limit ms": limit(structure.cells, needs.multiply_adds, needs.peak_bytes, rate),
        }
    return found


def table(figures: dict[str, Any]) -> str:
    """The rates, then a row for each model."""
    rate = figures["rates"]
    rows = [
        (
            name,
            f"{one['cells']:,}",
            f"{one['multiply-adds'] / 1e6:.3g}",
            f"{one['bytes'] / 1e6:.3g}",
            f"{1e3 * one['cells'] / rate['exp']:.2g}",
            f"{1e3 * one['multiply-adds'] / rate['multiply-add']:.2g}",
            f"{one['limit ms']:.2g}",
        )
        for name, one in figures["models"].items()
    ]
    head = ["model", "exp", "M multiply-adds", "MB", "exp, ms", "multiply-adds, ms", "limit, ms"]
    return (
        f"A second: {rate['exp'] / 1e9:.2g} billion exp, {rate['multiply-add'] / 1e9:.3g} billion multiply-adds, "
        f"copies of {rate['memory'] / 1e9:.3g} GB in memory and of {rate['cache'] / 1e9:.3g} in the cache.\n\n"
        + markdown(head, rows)
    )
