"""Fixed releases for inference: tables of a random population with equal or unequal noise."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING

import attrs
import numpy as np

from dpgm_core._util.arrays import Array
from dpgm_core.domain.domain import Domain
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.measurement import Measurement
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing.oracles import incidence
from dpgm_testing.reference import ReferenceGaussian, ReferenceLaplace, example_release
from dpgm_testing.strategies import awkward_structures

if TYPE_CHECKING:
    from dpgm_core.inference.collective.contract import Collective, CollectiveBeliefs
    from dpgm_core.inference.contract import Engine
    from dpgm_core.privacy.mechanism import Mechanism

__all__ = ["EVIDENCE", "NOISES", "evidence_on", "solved", "theta_on", "torn", "uneven_release"]

#: Structures that evidence is taken on, by their names among the awkward ones.
EVIDENCE = ("chain", "cycle", "third order", "nested", "tied", "one label", "empty clique")
#: The noise of that evidence; "uneven": every other table has ten times the noise.
NOISES = ("Laplace", "Gaussian", "uneven Laplace", "uneven Gaussian")

_MECHANISMS: dict[str, tuple[Mechanism, Budget, Budget]] = {
    "Laplace": (ReferenceLaplace(), Budget.pure(1), Budget.pure("1/10")),
    "Gaussian": (ReferenceGaussian(), Budget.zcdp("1/4"), Budget.zcdp("1/400")),
}


def uneven_release(
    structure: Structure, values: Array, *, total: float, loud: Collection[int], noise: str = "Laplace"
) -> NoisyTables:
    """A release of the given noisy values whose tables in the groups `loud` have ten times the noise of the others.

    values: (cells,), records. noise: Laplace or Gaussian.

    >>> release = uneven_release(awkward_structures()["chain"], np.zeros(18, dtype=np.int64), total=9, loud={1})
    >>> [round(one.variance) for one in release.noise]
    [18, 1800, 18]
    """
    mechanism, *budgets = _MECHANISMS[noise]
    quiet, other = (
        example_release(structure, values, total=total, mechanism=mechanism, budget=budget) for budget in budgets
    )
    if not loud:
        return quiet
    measurement = Measurement(
        structure=structure,
        calibrations=quiet.calibrations + other.calibrations,
        of_group=tuple(int(number in loud) for number in range(len(structure.groups))),
    )
    return attrs.evolve(quiet, measurement=measurement, cost=measurement.cost)


@lru_cache(maxsize=128)
def evidence_on(name: str, noise: str = "Laplace", total: int = 500, seed: int = 1) -> NoisyTables:
    """A release over an awkward structure: tables of a random population plus noise of the stated size."""
    structure = awkward_structures()[name]
    generator = np.random.default_rng(seed)
    matrix = incidence(structure)
    true = matrix @ generator.multinomial(total, generator.dirichlet(np.ones(matrix.shape[1])))
    loud = range(1, len(structure.groups), 2) if noise.startswith("uneven ") else ()
    release = uneven_release(structure, true, total=total, loud=loud, noise=noise.removeprefix("uneven "))
    scales = np.repeat(release.variances**0.5, structure.sizes)
    noisy = (true + np.round(scales * generator.normal(size=structure.cells))).astype(np.int64)
    return attrs.evolve(release, tables=Tables(structure, noisy))


def theta_on(structure: Structure, seed: int = 2) -> Tables:
    """Mild potentials."""
    return Tables(structure, np.random.default_rng(seed).normal(scale=0.5, size=structure.cells))


def solved(
    component: Collective, name: str, noise: str = "Laplace", weight: float = 1.0, start: Tables | None = None
) -> CollectiveBeliefs:
    """One call over an exact engine."""
    evidence = evidence_on(name, noise)
    engine: Engine = JunctionTree().compile(evidence.structure)
    return component.compile(engine, evidence).infer(theta_on(evidence.structure), evidence_weight=weight, start=start)


def torn(quiet: int, noise: str = "Laplace", total: int = 5000, measured: Structure | None = None) -> NoisyTables:
    """Two tables on a chain that contradict each other: b = 0 in four of five records, and in one of five.

    quiet: the table, 0 or 1, with a tenth of the other's noise. measured: other tables over a, b and c, in this order;
    those with a and b are as the first, those with b alone or with c are as the second; a and c are even.

    >>> [torn(0).tables[clique].tolist() for clique in torn(0).structure.cliques]
    [[[2000, 500], [2000, 500]], [[500, 500], [2000, 2000]]]
    """
    structure = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2))) if measured is None else measured
    values, loud = [], set()
    for number, clique in enumerate(structure.cliques):
        second = int("a" not in clique)
        share = np.array([0.2, 0.8] if second else [0.8, 0.2])
        along = [-1 if name == "b" else 1 for name in clique]
        of_b = share.reshape(along) if "b" in clique else np.ones(())
        table = np.broadcast_to(of_b, structure.domain.shape(clique))
        values.append(np.rint(total * table / table.sum()).astype(np.int64).reshape(-1))
        if "b" in clique and second != quiet:
            loud.add(number)
    return uneven_release(structure, np.concatenate(values), total=total, loud=loud, noise=noise)
