"""The synthetic protocol of Bernstein et al. (2017): populations, releases and KL, for benchmarks and plots."""

import math

import numpy as np
from attrs import frozen

from dpgm_core import Budget, Domain, Model, NoisyTables, SeededRandomness, Structure, Tables, release
from dpgm_core.inference.junction_tree import JunctionTree
from dpgm_core.protocols import Engine

__all__ = ["Population", "draw_release", "structure_of"]


def structure_of(graph: str, size: int, attributes: int = 10) -> Structure:
    """ "chain1" or "chain3" (edges up to so many places apart), or "er": the first connected graph with 18 edges."""
    domain = Domain.from_sizes({f"x{place}": size for place in range(attributes)})
    if graph.startswith("chain"):
        return Structure.chain(domain, int(graph.removeprefix("chain")))
    seed = 0
    while len((found := Structure.erdos_renyi(domain, 0.4, seed)).cliques) != 18:
        seed += 1
    return found


@frozen(kw_only=True, eq=False)
class Population:
    """The true model: potentials are logarithms of Dirichlet(1) tables, one per edge."""

    structure: Structure
    engine: Engine
    potentials: Tables
    marginals: np.ndarray
    log_partition: float

    @classmethod
    def draw(cls, structure: Structure, seed: int) -> "Population":
        """A population by its seed."""
        rng = np.random.default_rng(seed)
        tables = [np.log(rng.dirichlet(np.ones(size))) for size in structure.sizes]
        engine = JunctionTree().compile(structure)
        potentials = Tables(structure, np.concatenate(tables))
        beliefs = engine.infer(potentials)
        return cls(
            structure=structure,
            engine=engine,
            potentials=potentials,
            marginals=beliefs.marginals.values,
            log_partition=beliefs.log_partition,
        )

    def kl(self, theta: np.ndarray) -> float:
        """KL(true || model with potentials theta), nats; one inference call."""
        learned = self.engine.infer(Tables(self.structure, theta)).log_partition
        moved = theta - self.potentials.values
        return max(0.0, learned - self.log_partition - math.fsum(self.marginals * moved))

    def records(self, count: int, seed: int) -> np.ndarray:
        """`count` records as codes, (count, attributes)."""
        model = Model(self.structure, self.potentials)
        engine = model._engine(self.structure)
        codes = engine.sample(self.potentials, count, np.random.default_rng(seed))
        return np.stack(codes, axis=1)


def draw_release(population: Population, records: int, epsilon: float, seed: int) -> NoisyTables:
    """Noisy tables of that many records; N is public, as the paper has it."""
    return release(
        population.records(records, seed),
        population.structure,
        Budget.pure(epsilon),
        neighbours="add-remove",
        total="public",
        randomness=SeededRandomness(seed),
    )
