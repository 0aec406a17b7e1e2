"""The release: noisy tables with everything a reader must know about them. Safe to publish; saves to a file.

When a file is read, its guarantee is computed again from its noise, and a stronger one is refused (`dpgm_core.claims`).
A file is still its author's word: who rewrites the noise's scale, the noisy values, the unit, how N became known or
that a seed was used is not found out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import attrs
import numpy as np

from dpgm_core._version import __version__
from dpgm_core.claims import (
    check_noise_facts,
    check_sensitivities,
    is_round_cost_proven,
    read_rounds,
    stated_unsafe,
)
from dpgm_core.contributions import Contributions
from dpgm_core.domain import Domain
from dpgm_core.errors import IncompatiblePlugin, ModelFileError
from dpgm_core.files import Archive, plain, reading, write_archive
from dpgm_core.options import converter
from dpgm_core.privacy import Budget, Neighbours, Sensitivity, decimal_text, whole
from dpgm_core.protocols import Noise
from dpgm_core.structure import Structure
from dpgm_core.tables import FloatArray, Tables

if TYPE_CHECKING:
    from dpgm_core.registry import Registry

__all__ = ["Calibration", "NoisyTables", "TotalPolicy", "estimate_total", "load_release"]

TotalPolicy: TypeAlias = Literal["estimated", "public", "declared"]

SCHEMA = 1


@attrs.frozen(kw_only=True)
class Calibration:
    """One noise and what it was calibrated from, so that a file can restore it without an import path.

    component: the mechanism's registered name (None if it was passed as an unregistered object). options: its
    fields as plain values.
    """

    noise: Noise
    component: str | None
    options: Mapping[str, Any]
    sensitivity: Sensitivity
    budget: Budget


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


def load_release(path: str | Path, *, registry: Registry | None = None) -> NoisyTables:
    """Read a release from its own file or from the model file that carries it.

    Raises ModelFileError for anything damaged, hostile or too new, and PluginError if the mechanism is missing.
    """
    return reading(path, "release file", lambda archive: read_release(archive, registry))


def read_release(archive: Archive, registry: Registry | None = None) -> NoisyTables:
    """Read the release inside an open archive."""
    document = archive.document("release.json")
    check_format(archive, document, "dpgm-release", SCHEMA)
    structure = read_structure(document)
    tables = Tables(structure, archive.array("tables.npz", structure.cells))
    if not np.all(np.isfinite(tables.values)):
        raise ModelFileError(f"{archive.path}: the tables hold NaN or infinite values")
    calibrations = tuple(_read_calibration(one, registry) for one in document["calibrations"])
    calibration_of = tuple(converter.structure(document["calibration_of"], list[int]))
    total = converter.structure(document["total"], float)
    variance = converter.structure(document["total_variance"], float)
    if len(calibration_of) != len(structure.groups) or not all(0 <= i < len(calibrations) for i in calibration_of):
        raise ModelFileError(f"{archive.path}: the noise does not fit the tables")
    if not (math.isfinite(total) and total >= 1 and math.isfinite(variance) and variance >= 0):
        raise ModelFileError(f"{archive.path}: the total is not a number of at least 1")
    if not calibrations:
        raise ModelFileError(f"{archive.path}: it has no noise")
    neighbours = Neighbours.of(document["neighbours"])
    rows = whole("rows_per_person", document["rows_per_person"], least=1)
    cost, terms = Budget.parse(document["cost"]), document["provenance"].get("rounds")
    number, rate, clip = (1, Fraction(1), None) if terms is None else read_rounds(terms, neighbours)
    # files of older versions do not have the key
    weighted = document.get("contributions")
    contributions = None if weighted is None else Contributions.parse(weighted)
    if contributions is not None and (terms is not None or document["total_policy"] != "estimated"):
        raise ModelFileError(f"{archive.path}: normalised contributions go with an estimated total and without rounds")
    check_sensitivities(calibrations, calibration_of, structure, neighbours, rows, clip, contributions)
    proven = True
    if terms is None:
        if total_cost(calibrations) != cost:
            raise ModelFileError(f"{archive.path}: the cost is not that of the noise")
    elif len(calibrations) > 1:
        raise ModelFileError(f"{archive.path}: rounds have one noise for all tables")
    else:
        proven = is_round_cost_proven(calibrations[0], cost, rounds=number, rate=rate, neighbours=neighbours)
    return NoisyTables(
        tables=tables,
        calibrations=calibrations,
        calibration_of=calibration_of,
        neighbours=neighbours,
        unit=converter.structure(document["unit"], str),
        rows_per_person=rows,
        total=total,
        total_policy=_checked(document["total_policy"], TotalPolicy),
        total_variance=variance,
        cost=cost,
        private=converter.structure(document["private"], bool),
        unsafe=stated_unsafe(
            [one.noise for one in calibrations], tables.values, _checked(document["unsafe"], str | None)
        ),
        provenance=dict(document["provenance"]),
        cost_stated=not proven,
        contributions=contributions,
    )


def check_format(archive: Archive, document: Mapping[str, Any], wanted: str, schema: int) -> None:
    """Refuse other formats and newer schemas with what to do about it."""
    if document.get("format") != wanted:
        raise ModelFileError(f"{archive.path} is not a {wanted} file")
    if document.get("schema") != schema:
        raise ModelFileError(
            f"{archive.path} has schema {document.get('schema')!r}, this dpgm {__version__} reads schema {schema}; "
            f"it was written by dpgm {document.get('dpgm')!r}"
        )


def read_structure(document: Mapping[str, Any]) -> Structure:
    """Domain and structure of a document; sizes are bounded by the document itself, as labels are spelled out."""
    attributes = document["domain"]["attributes"]
    if any("size" in entry for entry in attributes.values()):
        raise ModelFileError("the domain must spell out its labels")
    return Structure.from_dict(Domain.from_dict(document["domain"]), document["structure"])


def noise_fields(noise: Noise) -> dict[str, Any]:
    """The fields of a noise as plain values, exact amounts as texts; its class's name if it is no attrs class."""
    if not attrs.has(type(noise)):
        return {"class": f"{type(noise).__module__}:{type(noise).__qualname__}", "variance": noise.variance}
    fields: dict[str, Any] = converter.unstructure(noise)
    return fields


def check_restorable(noise: Noise, what: str) -> None:
    """Refuse, with IncompatiblePlugin, a registered mechanism's noise that a file could not give back."""
    try:
        fields = json.loads(json.dumps(noise_fields(noise), allow_nan=False))
        restored: object = converter.structure(fields, type(noise))
    except Exception:
        restored = None
    if restored != noise:
        raise IncompatiblePlugin(
            f"{what}: its noise {type(noise).__qualname__} cannot be saved and restored; "
            "make it a frozen attrs class whose fields are numbers, texts, fractions or budgets"
        )


def total_cost(calibrations: Sequence[Calibration]) -> Budget:
    """What a release with these noises costs: their sum."""
    cost = calibrations[0].noise.cost
    for one in calibrations[1:]:
        cost = cost + one.noise.cost
    return cost


def _read_calibration(entry: Mapping[str, Any], registry: Registry | None) -> Calibration:
    from dpgm_core.registry import default_registry

    component = _checked(entry["component"], str | None)
    if component is None:
        raise ModelFileError(
            "its noise was drawn by a mechanism object that is not registered, so it cannot be restored; "
            "register the mechanism (see docs/write-a-plugin.md)"
        )
    sensitivity = converter.structure(entry["sensitivity"], Sensitivity)
    budget = Budget.parse(entry["budget"])
    mechanism = (registry or default_registry()).make("mechanism", {**entry["options"], "name": component})
    # The class comes from the installed mechanism, the numbers from the file: they are what was drawn.
    fresh = mechanism.noise(sensitivity, budget)
    noise: Noise = converter.structure(entry["noise"], type(fresh))
    check_noise_facts(noise, fresh)
    return Calibration(
        noise=noise, component=component, options=dict(entry["options"]), sensitivity=sensitivity, budget=budget
    )


def _checked(value: Any, hint: Any) -> Any:
    return converter.structure(value, hint)


def _budget_from_plain(value: Any, _: Any) -> Budget:
    return Budget.parse(value)


def _budget_to_plain(budget: Budget) -> dict[str, str]:
    return budget.to_dict()


converter.register_structure_hook(Budget, _budget_from_plain)
converter.register_unstructure_hook(Budget, _budget_to_plain)
