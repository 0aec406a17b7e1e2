"""What a release would cost and how accurate it would be, from public facts alone."""

from __future__ import annotations

import math
import time
from typing import Any

from attrs import asdict, frozen

from dpgm_core.errors import BudgetError
from dpgm_core.privacy import Budget, Neighbours, Sensitivity
from dpgm_core.protocols import Inference, Mechanism
from dpgm_core.structure import Clique, Structure, StructureReport
from dpgm_core.tables import Tables

__all__ = ["Plan", "TableError", "cell_error", "make_plan"]


@frozen(kw_only=True)
class TableError:
    """The expected error of one table: its clique, cells, and root mean squared error per cell.

    noise: standard deviation of the noise, records. relative: root mean squared error of a cell's probability
    (Proposition 4) at the average cell 1/K, or None without a number of records.
    """

    clique: Clique
    cells: int
    noise: float
    relative: float | None


@frozen(kw_only=True)
class Plan:
    """Everything that can be said before any record is read."""

    structure: StructureReport
    neighbours: Neighbours
    sensitivity: Sensitivity
    asked: Budget
    cost: Budget
    scale: float
    tables: tuple[TableError, ...]
    seconds_per_inference: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for `--json`."""
        return {
            "structure": asdict(self.structure),
            "neighbours": self.neighbours.value,
            "sensitivity": asdict(self.sensitivity),
            "asked": self.asked.to_dict(),
            "cost": self.cost.to_dict(),
            "scale": self.scale,
            "tables": [asdict(table) for table in self.tables],
            "seconds_per_inference": self.seconds_per_inference,
        }


def make_plan(
    structure: Structure,
    budget: Budget,
    mechanism: Mechanism,
    inference: Inference,
    *,
    neighbours: Neighbours | str,
    rows_per_person: int = 1,
    records: float | None = None,
) -> Plan:
    """Calibrate, compile and price; touches no data. records: a publicly known or guessed number of records."""
    known = records is None or (isinstance(records, (int, float)) and not isinstance(records, bool))
    if not known or (records is not None and not 1 <= records < math.inf):
        raise BudgetError(f"the number of records must be a number of at least 1, got {records!r}")
    relation = Neighbours.of(neighbours)
    sensitivity = Sensitivity.of(structure, relation, rows_per_person=rows_per_person)
    noise = mechanism.noise(sensitivity, budget)
    engine = inference.compile(structure)
    zeros = Tables.zeros(structure)
    engine.infer(zeros)
    started = time.perf_counter()
    engine.infer(zeros)
    seconds = time.perf_counter() - started
    return Plan(
        structure=structure.describe(),
        neighbours=relation,
        sensitivity=sensitivity,
        asked=budget,
        cost=noise.cost,
        scale=noise.event.scale,
        tables=tuple(
            TableError(
                clique=group[0],
                cells=cells,
                noise=math.sqrt(noise.variance),
                relative=None if records is None else cell_error(1 / cells, noise.variance, records * len(group)),
            )
            for group, cells in zip(structure.groups, structure.sizes, strict=True)
        ),
        seconds_per_inference=seconds,
    )


def cell_error(probability: float, variance: float, records: float) -> float:
    """Root mean squared error of a noisy cell as an estimate of a probability mu from N records.

    MSE = mu (1 - mu) / N + variance / N^2: Proposition 4 of Bernstein et al. (2017), where variance = 2 |C|^2 / eps^2.

    >>> round(cell_error(0.03, 2 * 9**2 / 0.5**2, 1000) ** 2, 7)
    0.0006771
    """
    return math.sqrt(probability * (1 - probability) / records + variance / records**2)
