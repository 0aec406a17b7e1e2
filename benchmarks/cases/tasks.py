"""Tables with an attribute to predict: rows that programs learn from, and rows held out to test on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
from attrs import frozen

from benchmarks.cases.coded import Coded
from benchmarks.cases.tables import SOURCES, source_table
from dpgm_core import Array, Clique, Domain

#: The share of rows that are held out, and the seed that chooses them: the same rows for all programs and seeds.
_HELD_OUT, _SPLIT = 0.25, 38
_GENERATED_ROWS = 20_000


@frozen(kw_only=True)
class PredictionTask:
    """An attribute of a table that is predicted from the others.

    Attributes
    ----------
    target : str
    read : callable
        From the folder of data to all rows.
    source : str
        The source of `cases/tables.py` that the rows come from, "" if they are generated.
    ordered : tuple of str
        Attributes whose codes have an order.
    order : int, optional
        Of the sets of attributes that somebody who knows the task asks for; None for each program's default.
    """

    target: str
    read: Callable[[Path], Coded]
    source: str = ""
    ordered: tuple[str, ...] = ()
    order: int | None = None

    def missing(self, folder: Path) -> str | None:
        """Return why the rows cannot be read."""
        return SOURCES[self.source].missing(folder) if self.source else None


def _columns_of(table: Coded, names: tuple[str, ...]) -> Coded:
    places = [table.domain.names.index(name) for name in names]
    domain = Domain.from_sizes({name: table.domain.sizes[name] for name in names})
    return Coded(domain=domain, codes=table.codes[:, places])


def parity_of_four(seed: int, rows: int = _GENERATED_ROWS) -> Coded:
    """Return binary columns whose target is the parity of four others, but for one row in ten.

    The four are independent and even, so any four of the five columns are independent of each other: nothing of order
    below five shows the dependence. Five further columns follow each other. Planted: the five columns.
    """
    rng = np.random.default_rng([5, seed])
    codes = np.zeros((rows, 10), dtype=np.uint8)
    codes[:, :5] = rng.random((rows, 5)) < 0.5
    for place in range(5, 9):
        codes[:, place] = np.where(rng.random(rows) < 0.3, rng.random(rows) < 0.3, codes[:, place - 1])
    codes[:, 9] = np.logical_xor.reduce(codes[:, :4], axis=1) ^ (rng.random(rows) < 0.1)
    names = (*(f"x{place}" for place in range(9)), "target")
    planted: Clique = (*names[:4], "target")
    return Coded(domain=Domain.from_sizes(dict.fromkeys(names, 2)), codes=codes, planted=(planted,))


#: Columns of the ACS extract without weights, repeated codes, and what is for households alone.
_NIST = (
    *("PUMA", "AGEP", "SEX", "MSP", "HISP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "INDP_CAT", "EDU", "PINCP_DECILE"),
    *("POVPIP", "DREM", "DPHY"),
)

TASKS: Mapping[str, PredictionTask] = {
    "adult": PredictionTask(
        target="income>50K",
        source="adult",
        read=lambda folder: source_table(folder, "adult", 0),
        ordered=("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"),
    ),
    "health": PredictionTask(
        target="health",
        source="health",
        read=lambda folder: source_table(folder, "health", 0),
        ordered=("visits", "incentive", "diseases", "limitation"),
    ),
    "nist14": PredictionTask(
        target="OWN_RENT",
        source="nist",
        read=lambda folder: _columns_of(source_table(folder, "nist", 0), _NIST),
        ordered=("AGEP", "EDU", "PINCP_DECILE", "POVPIP"),
    ),
    "parity10": PredictionTask(target="target", read=lambda folder: parity_of_four(0), order=5),
}


@lru_cache(maxsize=1)
def task_rows(folder: Path, name: str) -> tuple[Coded, Coded]:
    """Return the training rows and the test rows of a task."""
    table = TASKS[name].read(folder)
    shuffled = np.random.default_rng(_SPLIT).permutation(len(table.codes))
    count = round(_HELD_OUT * len(shuffled))
    parts: list[Array] = [np.sort(part) for part in (shuffled[count:], shuffled[:count])]
    train, test = (Coded(domain=table.domain, codes=table.codes[part], planted=table.planted) for part in parts)
    return train, test


def by_name(table: Coded) -> dict[str, Array]:
    """Return the columns of a table by name."""
    return dict(zip(table.domain.names, table.codes.T, strict=True))
