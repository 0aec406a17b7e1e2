"""Structures and a learner for checks: directed, restricted, awkward and constrained."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.progress import silent
from dpgm_core.domain.constraints import Listed, Mapped, Ordered
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import StructureError
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning.contract import Fit
from dpgm_core.learning.likelihood import Likelihood, consistent
from dpgm_core.models.model import Model
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.dag import Dag
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing.check import CheckFailed
from dpgm_testing.sessions import Endless

__all__ = [
    "BINARY_CHAIN",
    "CHAIN",
    "DIRECTED_CHAIN",
    "Learning",
    "SHAPES",
    "awkward_networks",
    "binary_form",
    "constrained_structures",
    "directed_form",
    "fitted",
    "independent",
    "shapes_of",
]


# --- Restricted structures ------------------------------------------------------------------------

#: What most checks of learners learn; no directed graph, because nothing depends on c alone.
CHAIN = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 3)))
#: And what those learn that take attributes of two labels only.
BINARY_CHAIN = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2)))
#: The network whose models are those of the chain.
DIRECTED_CHAIN = Dag(CHAIN.domain, {"b": ["a"], "c": ["b"]}).structure()


def binary_form(structure: Structure) -> Structure:
    """The same cliques, tied as they are, over attributes of two labels each.

    >>> binary_form(CHAIN) == BINARY_CHAIN
    True
    """
    domain = Domain.from_sizes(dict.fromkeys(structure.domain.names, 2))
    plain = [group[0] for group in structure.groups if len(group) == 1]
    return Structure(domain, plain, tied=[group for group in structure.groups if len(group) > 1])


def directed_form(structure: Structure) -> Structure | None:
    """A directed graph over the domain such that every model over the structure is a network over it; None if tied.

    One that is a directed graph stays as it is. Of others the attributes are taken out, the last one first: the parents
    of each are its neighbours that are left, given which it depends on nothing else there; they become neighbours of
    each other. Every clique lies in a family. A chain gets no arc too many, a cycle gets some.

    >>> directed_form(CHAIN) == DIRECTED_CHAIN, directed_form(CHAIN).cliques
    (True, (('a',), ('b', 'a'), ('c', 'b')))
    """
    try:
        return Dag.of(structure).structure()
    except StructureError:
        if max(structure.multiplicities) > 1:
            return None
    beside = {name: set(others) for name, others in structure.adjacency.items()}
    parents = {}
    for name in reversed(structure.domain.names):
        parents[name] = [other for other in reversed(structure.domain.names) if other in beside[name]]
        for other in parents[name]:
            beside[other] |= beside[name] - {other}
            beside[other].discard(name)
    return Dag(structure.domain, parents).structure()


def awkward_networks() -> dict[str, Structure]:
    """Directed graphs that no chain or cycle turns into, by name, small enough to enumerate.

    >>> awkward_networks()["two parents"].cliques
    (('a',), ('b',), ('c', 'b', 'a'), ('d',))
    """
    domain = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 3})
    single = Domain.from_sizes({"a": 2, "b": 1, "c": 2})
    return {
        "two parents": Dag(domain, {"c": ["b", "a"]}).structure(),
        "diamond": Dag(domain, {"b": ["a"], "c": ["a"], "d": ["b", "c"]}).structure(),
        "against the domain's order": Dag(domain, {"a": ["d", "b"], "b": ["c"]}).structure(),
        "a family in another": Dag(domain, {"b": ["a"], "c": ["a", "b"], "d": ["c"]}).structure(),
        "a parent of one label": Dag(single, {"b": ["a"], "c": ["b", "a"]}).structure(),
        "no arcs": Dag(domain, {}).structure(),
    }


# --- Awkward structures ---------------------------------------------------------------------------

_DOMAIN = BINARY_CHAIN.domain
#: What a structure may be or hold that some learners refuse, by name, each as small as can be; in two labels at most.
SHAPES = {
    "a clique of three": Structure(_DOMAIN, [_DOMAIN.names]),
    "tied cliques": Structure(_DOMAIN, [], tied=[[("a", "b"), ("b", "c")]]),
    "no pair": Structure(_DOMAIN, [(name,) for name in _DOMAIN.names]),
    "one label": Structure.chain(Domain.from_sizes({"a": 1, "b": 2, "c": 2})),
}


def shapes_of(structure: Structure) -> frozenset[str]:
    """Which of SHAPES it is or holds.

    >>> sorted(shapes_of(SHAPES["tied cliques"])), sorted(shapes_of(BINARY_CHAIN))
    (['tied cliques'], [])
    """
    sizes = structure.domain.sizes
    orders = [sum(sizes[name] > 1 for name in clique) for clique in structure.cliques]
    found = {
        "a clique of three": max(map(len, structure.cliques)) > 2,
        "tied cliques": max(structure.multiplicities) > 1,
        "no pair": max(orders) < 2,
        "one label": 1 in sizes.values(),
    }
    return frozenset(name for name, holds in found.items() if holds)


# --- Constrained structures -----------------------------------------------------------------------


def constrained_structures() -> dict[str, Structure]:
    """Name -> structure over five attributes, with constraints inside of cliques, across them, and beside them.

    >>> len(constrained_structures()["across"].domain.constraints)
    3
    """
    plain = Domain.from_sizes({"a": 4, "b": 2, "c": 3, "d": 3, "e": 2})
    where = Mapped(name="where", columns=("a", "b"), to=(("0", "0"), ("1", "0"), ("2", "1"), ("3", "1")))
    time = Ordered(name="time", columns=("c", "d"))
    never = Listed(name="never", columns=("a", "d", "e"), combinations=(("0", "2", "*"), ("3", "0", "1")))
    domain = Domain(plain.attributes, [where, time, never])
    alike = Domain(plain.attributes, [evolve(time, strict=True)])
    return {
        "inside": Structure(domain, [("b", "a"), ("d", "c"), ("e", "a", "d")]),
        "across": Structure(domain, [("a", "c"), ("b", "e"), ("c", "e")]),
        "beside": Structure(domain, [("a",), ("e",)]),
        "derived": Structure(domain, [("a", "c"), ("b",)]),
        "tied": Structure(alike, [("c", "e")], tied=[[("c",), ("d",)]]),
    }


# --- A simple learner -----------------------------------------------------------------------------

#: Fits of one run; a loop that waits for better ones goes beyond.
_MOST_FITS = 300


class Learning:
    """A quick learner for loops, which notes how it was called: penalised likelihood on an exact engine.

    settles: whether its fits say that they converged. finds: whether it finds more than main effects, which takes
    longer. wrong: what was wrong with a call. shown: the structures that it was to fit.
    """

    def __init__(self, *, settles: bool = True, finds: bool = True) -> None:
        self._settles, self._finds = settles, finds
        self._last: Fit | None = None
        self.calls = 0
        self.wrong: list[str] = []
        self.shown: list[Structure] = []

    def __call__(self, release: NoisyTables, structure: Structure, previous: Fit | None) -> Fit:
        """The fit; the start is always the same, so that equal releases give equal fits."""
        self.calls += 1
        if self.calls > _MOST_FITS:
            raise Endless(f"it had not stopped after {self.calls:,} fits")
        if previous is not None and previous is not self._last:
            self.wrong.append("the previous fit it hands to the learner is not the one the learner returned last")
        self.shown.append(structure)
        homeless = [clique for clique in release.structure.cliques if structure.covering(clique) is None]
        if homeless:
            self.wrong.append(f"it fits a structure with no clique that holds {homeless[0]!r}, which the release has")
            raise CheckFailed(self.wrong[-1])
        fit = fitted(release, structure) if self._finds else independent(release, structure)
        self._last = evolve(fit, converged=fit.converged and self._settles)
        return self._last


def fitted(release: NoisyTables, structure: Structure, before: Fit | None = None) -> Fit:
    """A model over `structure` from the release's tables, wherever the fit before has got to."""
    tables = [np.maximum(table, 0.0) + 0.5 for table in release.tables.arrays()]
    target = Tables(release.structure, np.concatenate([table.reshape(-1) / table.sum() for table in tables]))
    engine = JunctionTree().compile(release.structure)
    problem = Likelihood(engine, consistent(target, release.variances), silent)
    theta, converged = problem.minimise(np.zeros(release.structure.cells), 1e-3, 1e-3, 50)
    potentials = Tables(release.structure, theta).embed(structure)
    return Fit(model=Model(structure, potentials), converged=converged)


def independent(release: NoisyTables, structure: Structure) -> Fit:
    """The model of main effects alone."""
    shares: dict[Clique, FloatArray] = {}
    for clique, table in release.tables.items():
        for axis, name in enumerate(clique):
            sums = np.maximum(table.sum(axis=tuple(other for other in range(len(clique)) if other != axis)), 0.0) + 0.5
            shares.setdefault((name,), np.log(sums / sums.sum()))
    alone = Tables.from_arrays(Structure(structure.domain, list(shares)), shares)
    return Fit(model=Model(structure, alone.embed(structure)))
