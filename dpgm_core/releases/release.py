"""The release: noisy tables with everything a reader must know about them. Safe to publish; saves to a file.

When a file is read, its guarantee is computed again from its noise, and a stronger one is refused (`dpgm_core.claims`).
A file is still its author's word: who rewrites the noise's scale, the noisy values, the unit, how N became known or
that a seed was used is not found out.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from dpgm_core._version import __version__
from dpgm_core.arrays import FloatArray
from dpgm_core.files import plain, write_archive
from dpgm_core.noise.contract import Noise
from dpgm_core.noise.measurement import Calibration, noise_fields
from dpgm_core.privacy.amounts import decimal_text
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.contributions import Contributions
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import TotalPolicy
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

__all__ = ["NoisyTables", "SCHEMA", "estimate_total"]

SCHEMA = 1


@attrs.frozen(kw_only=True, eq=False)
class NoisyTables:
    """A release: noisy counts y = n + noise over a structure, and the facts a reader needs.

    tables: noisy counts, records (int64 for exact noise); with `contributions` in units of 1/grid of a person, and then
    `total` is in persons. calibrations, calibration_of: the noise of each group, in the unit of the tables.
    total: number of records N as published or estimated, at least 1. total_policy: estimated | public | declared.
    total_variance: of the estimate, records**2 (0 when N is public). cost: budget spent. private: False when a
    seed was involved. unsafe: why the guarantee does not hold to the letter (textbook noise), if so. cost_stated: the
    cost is a file's word, as only its author's accountant could prove it (rounds, tighter than Renyi divergences).
    """

    tables: Tables
    calibrations: tuple[Calibration, ...]
    calibration_of: tuple[int, ...]
    neighbours: Neighbours
    unit: str
    rows_per_person: int
    total: float
    total_policy: TotalPolicy
    total_variance: float
    cost: Budget
    private: bool
    unsafe: str | None = None
    provenance: Mapping[str, Any] = attrs.field(factory=dict)
    cost_stated: bool = False
    contributions: Contributions | None = None

    @property
    def structure(self) -> Structure:
        """The structure that was measured."""
        return self.tables.structure

    @property
    def noise(self) -> tuple[Noise, ...]:
        """The noise of each group, in the structure's order."""
        return tuple(self.calibrations[number].noise for number in self.calibration_of)

    @property
    def variances(self) -> FloatArray:
        """The noise variance of each group, (groups,), records**2 per cell."""
        return np.array([noise.variance for noise in self.noise])

    @property
    def totals(self) -> FloatArray:
        """What each group's table sums to: m_g * N, (groups,), in the unit of the tables.

        With `contributions` tables need not sum to the same, so it is each table's own noisy sum; at least 1, and at
        least the standard deviation of its noise.
        """
        if self.contributions is None:
            return self.total * np.asarray(self.structure.multiplicities, dtype=np.float64)
        spread = np.sqrt(np.asarray(self.structure.sizes) * self.variances)
        return np.maximum(np.maximum(self.tables.sums(), spread), 1.0)

    def guarantee(self) -> str:
        """One paragraph: relation, unit, budget, what is assumed public, what is not covered."""
        who = f"{self.unit}" + (
            f", counted with at most {self.rows_per_person} rows" if self.rows_per_person > 1 else ""
        )
        text = (
            f"Differential privacy with {self.cost} under {self.neighbours.value} neighbours; the protected unit is "
            f"{who}. Assumed public: the domain, the structure and every setting of the run. "
        )
        if self.contributions is not None:
            text += self.contributions.describe()
        rounds = self.provenance.get("rounds")
        if rounds:
            text += (
                f"This is round {rounds['round']} of {rounds['rounds']}; each draws a secret Poisson subsample at rate "
                f"{decimal_text(Fraction(rounds['sampling_rate']))}, and the guarantee holds for all of them together. "
            )
            if "grid" in rounds:
                text += f"The tables hold sums of clipped scores in units of 1/{rounds['grid']}, no counts. "
        if self.cost_stated:
            text += "The cost of the rounds together is as the author of the file states it; it was not recomputed. "
        if self.total_policy == "public" and not self.total_is_covered:
            hidden = (
                "whether a person is in the data; equivalently twice the budget under replace-one"
                if self.neighbours is Neighbours.ADD_REMOVE
                else "how many rows a person has"
            )
            text += (
                "The exact number of records is published too: the guarantee is CONDITIONAL ON PUBLIC N "
                f"(it does not hide {hidden}). "
            )
        elif self.total_policy == "declared":
            text += "The number of records was declared by the owner as public knowledge. "
        if not self.private:
            text = (
                "NOT PRIVATE (private = false): the noise came from a seed, for simulation only. Were it not: " + text
            )
        if self.unsafe:
            text = f"UNSAFE: {self.unsafe}. Were it not: " + text
        return text + (
            "Not covered: side channels such as timing, other releases about the same people that no common ledger "
            "records, and plugins, which run with the owner's rights."
        )

    @property
    def total_is_covered(self) -> bool:
        """Whether publishing the exact N is within the guarantee: replace-one, each row a person.

        With a person key a changed person can lose the key, and rows without it count together as one person.
        """
        one_row = self.rows_per_person == 1 and "person_key" not in self.provenance
        return self.neighbours is Neighbours.REPLACE_ONE and one_row

    def save(self, path: str | Path) -> None:
        """Write the release to one file, atomically. Raises ModelFileError."""
        write_archive(path, {"release.json": self.to_document()}, {"tables.npz": self.tables.values})

    def to_document(self) -> dict[str, Any]:
        """Everything but the tables as JSON values."""
        return {
            "format": "dpgm-release",
            "schema": SCHEMA,
            "dpgm": __version__,
            "private": self.private,
            "unsafe": self.unsafe,
            "guarantee": self.guarantee(),
            "neighbours": self.neighbours.value,
            "unit": self.unit,
            "rows_per_person": self.rows_per_person,
            "contributions": None if self.contributions is None else self.contributions.to_dict(),
            "cost": self.cost.to_dict(),
            "total": self.total,
            "total_policy": self.total_policy,
            "total_variance": self.total_variance,
            "calibrations": [
                {
                    "component": one.component,
                    "options": plain(one.options),
                    "sensitivity": attrs.asdict(one.sensitivity),
                    "budget": one.budget.to_dict(),
                    "noise": noise_fields(one.noise) if one.component else plain(noise_fields(one.noise)),
                }
                for one in self.calibrations
            ],
            "calibration_of": list(self.calibration_of),
            "provenance": plain(self.provenance),
            "structure": self.structure.to_dict(),
            "domain": self.structure.domain.to_dict(),
        }


def estimate_total(
    tables: Tables, variances: FloatArray, contributions: Contributions | None = None
) -> tuple[float, float]:
    """(N_hat, its variance): the minimum-variance estimate from the noisy sums; records, at least 1.

    N_hat = sum_g m_g s_g/(K_g sigma_g^2) / sum_g m_g^2/(K_g sigma_g^2), s_g the noisy sum and K_g the cells of
    group g (DESIGN section 4). Post-processing: free. With contributions N is in persons, and m_g is what one person
    adds to a table at most; some add less, to some tables.

    >>> from dpgm_core.domain import Domain
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a",), ("b",)])
    >>> estimate_total(Tables(structure, np.array([4, 5, 6, 5])), np.array([1.0, 1.0]))
    (10.0, 1.0)
    """
    structure = tables.structure
    cells = np.asarray(structure.sizes, dtype=np.float64)
    tied = (
        np.asarray(structure.multiplicities, np.float64) if contributions is None else contributions.wholes(structure)
    )
    weights = tied / (cells * variances)
    precision = float(np.sum(weights * tied))
    return max(1.0, float(np.sum(weights * tables.sums()) / precision)), 1.0 / precision
