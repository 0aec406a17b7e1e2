"""The models that inference is measured on: a structure, and sets of log-potentials that calls go through in turn."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import numpy as np
from attrs import field, frozen

from benchmarks.harness.main import choose
from benchmarks.protocol.populations import structure_of
from dpgm.interop.bif import read_bif
from dpgm_core._util.arrays import FloatArray
from dpgm_core.domain.domain import Domain
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

SETS = 5
#: Networks of the bnlearn repository that are read where `--networks` has them.
NETWORKS = ("asia", "sachs", "child", "insurance", "alarm", "hailfinder")


@frozen(kw_only=True, eq=False)
class Case:
    """name: of the model. theta: log-potentials, nats, (SETS, cells)."""

    name: str
    structure: Structure
    theta: FloatArray = field(repr=False)

    @property
    def sets(self) -> list[Tables]:
        """The same as tables."""
        return [Tables(self.structure, row) for row in self.theta]


def domain(count: int, size: int) -> Domain:
    """x0, x1, ... of one size."""
    return Domain.from_sizes({f"x{i}": size for i in range(count)})


GENERATED: dict[str, Callable[[], Structure]] = {
    "chain3-k10": lambda: structure_of("chain3", 10),
    "chain3-k20": lambda: structure_of("chain3", 20),
    "er-k10": lambda: structure_of("er", 10),
    "er-k20": lambda: structure_of("er", 20),
    "chain100-k50": lambda: Structure.chain(domain(100, 50)),
    "grid10-k2": lambda: Structure.grid(domain(100, 2), 10, 10),
    "grid10-k3": lambda: Structure.grid(domain(100, 3), 10, 10),
}


def names_of(networks: Path | None) -> list[str]:
    """All that can be measured here: what is generated, and the networks of that folder."""
    here = [name for name in NETWORKS if networks is not None and (networks / f"{name}.bif").is_file()]
    return [*GENERATED, *here]


def cases(asked: Namespace, among: Collection[str] | None = None) -> Iterator[Case]:
    """The models that are asked for, of these names; of --smoke the first one alone."""
    known = [name for name in names_of(asked.networks) if among is None or name in among]
    for name in choose("model", asked.models, known)[: 1 if asked.smoke else None]:
        yield case(name, asked.networks)


def case(name: str, networks: Path | None) -> Case:
    """A model by name.

    Generated ones have Gaussian potentials. A network has the logarithms of its tables, -inf for zeros, in all sets but
    the first with a tenth of a Gaussian on top.
    """
    rng = np.random.default_rng(0)
    if name in GENERATED:
        structure = GENERATED[name]()
        return Case(name=name, structure=structure, theta=rng.normal(size=(SETS, structure.cells)))
    assert networks is not None
    structure, tables = read_bif(networks / f"{name}.bif")
    noise = 0.1 * rng.normal(size=(SETS, structure.cells))
    noise[0] = 0.0
    return Case(name=name, structure=structure, theta=tables.values + noise)


def save(model: Case, path: Path) -> None:
    """As an .npz file that needs nothing of dpgm to be read: sizes, cliques of places, potentials."""
    place = {attribute: i for i, attribute in enumerate(model.structure.domain.names)}
    np.savez(
        path,
        sizes=list(model.structure.domain.sizes.values()),
        cliques=[",".join(str(place[attribute]) for attribute in clique) for clique in model.structure.cliques],
        theta=model.theta,
    )
