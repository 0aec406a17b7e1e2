"""Populations whose shares are known, generated or real, and records drawn from them with replacement."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from attrs import evolve, frozen

from benchmarks.cases.coded import Coded, judged, of_records, shares, wide
from benchmarks.cases.tables import few, skewed_tree, source_table
from dpgm_core import Clique, FloatArray

#: Generated populations of any size: columns, people, seed -> the people.
GENERATED: Mapping[str, Callable[[int, int, int], Coded]] = {
    "mixed": wide,
    "weak": lambda columns, people, seed: few(seed, columns, people, labels=4, name="weak"),
    "skewed": lambda columns, people, seed: skewed_tree(seed, columns, people),
}
#: Sets of one size that answers are judged by.
MOST_SETS = 400


@frozen(kw_only=True, eq=False)
class Population:
    """people: all of them. true: number of attributes -> sets of attributes -> the population's shares."""

    people: Coded
    true: Mapping[int, Mapping[Clique, FloatArray]]

    @classmethod
    def of(cls, people: Coded) -> Population:
        """Count the sets of one, two and three attributes, at most 400 each, that `coded.judged` names."""
        sets = {order: judged(people.domain, order) for order in (1, 2, 3)}
        some = {order: cliques[:: math.ceil(len(cliques) / MOST_SETS)] for order, cliques in sets.items() if cliques}
        return cls(
            people=people,
            true={order: {clique: shares(people, clique) for clique in cliques} for order, cliques in some.items()},
        )

    def draw(self, count: int, seed: int) -> Coded:
        """Return so many records, each of one person, who may be drawn again."""
        rows = np.random.default_rng([seed, count]).integers(len(self.people.codes), size=count)
        return evolve(self.people, codes=self.people.codes[rows])

    def errors(self, marginals: Callable[[list[Clique]], Mapping[Clique, FloatArray]]) -> dict[str, float]:
        """Return the mean total variation distance of singles, pairs and triples: `tv1`, `tv2` and `tv3`."""
        found = {}
        for order, true in self.true.items():
            theirs = marginals(list(true))
            found[f"tv{order}"] = float(np.mean([np.abs(theirs[one] - table).sum() for one, table in true.items()])) / 2
        return found

    def sampling(self, records: Coded) -> dict[str, float]:
        """Return the errors of the shares among the records themselves."""
        return self.errors(of_records(records))

    def independence(self) -> dict[str, float]:
        """Return the errors of the products of the true shares of single attributes."""
        names = self.people.domain.names
        alone = {name: shares(self.people, (name,)) for name in names}
        return self.errors(
            lambda cliques: {
                clique: functools.reduce(np.multiply.outer, [alone[name] for name in clique]) for clique in cliques
            }
        )

    def cells(self) -> dict[str, float]:
        """Return the mean number of cells of the sets: `cells1`, `cells2` and `cells3`."""
        return {
            f"cells{order}": float(np.mean([one.size for one in true.values()])) for order, true in self.true.items()
        }


@functools.lru_cache(maxsize=1)
def population(folder: Path, name: str, columns: int, people: int, seed: int) -> Population:
    """Return a generated population, or that of a real table, which has the same columns and people for every seed."""
    if name in GENERATED:
        return Population.of(GENERATED[name](columns, people, seed))
    return Population.of(source_table(folder, name, 0))
