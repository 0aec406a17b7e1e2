"""The synthetic protocol of Bernstein et al. (2017): populations, releases and KL, for benchmarks and plots."""

import math
from functools import cache
from pathlib import Path

import numpy as np
from attrs import frozen

from benchmarks.protocol.references import non_private_mle
from dpgm_core import (
    Budget,
    Domain,
    FloatArray,
    InferenceError,
    Model,
    NoisyTables,
    SeededRandomness,
    Structure,
    Tables,
    Terms,
)
from dpgm_core import release as release_tables
from dpgm_core.counting.kernel import count
from dpgm_core.inference.contract import Engine
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.sources import as_source
from dpgm_core.spec import load_spec

__all__ = ["TRUTHS", "Population", "draw_release", "structure_of"]

TRUTHS = ("dirichlet", "gaussian", "weak", "sparse", "health")
HEALTH = Path(__file__).parents[2] / "docs" / "examples" / "health" / "health.toml"


def structure_of(graph: str, size: int, attributes: int = 10) -> Structure:
    """ "chain1" or "chain3" (edges up to so many places apart), "er": the first connected graph with 18 edges, or
    "health": that of the example in docs, with its own sizes."""
    if graph == "health":
        return load_spec(HEALTH).structure
    domain = Domain.from_sizes({f"x{place}": size for place in range(attributes)})
    if graph.startswith("chain"):
        return Structure.chain(domain, int(graph.removeprefix("chain")))
    seed = 0
    while len((found := Structure.erdos_renyi(domain, 0.4, seed)).cliques) != 18:
        seed += 1
    return found


@frozen(kw_only=True, eq=False)
class Population:
    """The true model; in the paper potentials are logarithms of Dirichlet(1) tables, one per edge."""

    structure: Structure
    engine: Engine
    potentials: Tables
    marginals: np.ndarray
    log_partition: float

    @classmethod
    def draw(cls, structure: Structure, seed: int, truth: str = "dirichlet") -> "Population":
        """A population by its seed; truth is one of TRUTHS (see `_potentials`)."""
        engine = JunctionTree().compile(structure)
        potentials = Tables(structure, _potentials(truth, structure, np.random.default_rng(seed)))
        beliefs = engine.infer(potentials)
        return cls(
            structure=structure,
            engine=engine,
            potentials=potentials,
            marginals=beliefs.marginals.values,
            log_partition=beliefs.log_partition,
        )

    def kl(self, theta: np.ndarray) -> float:
        """KL(true || model with potentials theta), nats; one inference call. A value below 0 beyond rounding, which
        only a wrong log-partition can give, is an InferenceError and not a result."""
        learned = self.engine.infer(Tables(self.structure, theta)).log_partition
        moved = theta - self.potentials.values
        kl = learned - self.log_partition - math.fsum(self.marginals * moved)
        if not kl >= -1e-9 * max(1.0, float(np.abs(theta).max())):
            raise InferenceError(f"an impossible KL of {kl:.3g}: the engine's log-partition is wrong")
        return max(0.0, kl)

    def records(self, count: int, seed: int) -> np.ndarray:
        """`count` records as codes, (count, attributes)."""
        engine = Model(self.structure, self.potentials).engine
        codes = engine.sample(self.potentials, count, np.random.default_rng(seed))
        return np.stack(codes, axis=1)


def draw_release(
    population: Population, records: int, epsilon: float, seed: int, mechanism: str = "laplace"
) -> NoisyTables:
    """Noisy tables of that many records; N is public, as the paper has it. "gaussian" has delta = 1/N."""
    budget = Budget.pure(epsilon) if mechanism == "laplace" else Budget.approx(epsilon, 1 / records)
    return release_tables(
        population.records(records, seed),
        population.structure,
        budget,
        mechanism,
        terms=Terms(neighbours="add-remove", total="public"),
        randomness=SeededRandomness(seed),
    )


def _potentials(truth: str, structure: Structure, rng: np.random.Generator) -> FloatArray:
    """Log-potentials of a truth: "dirichlet", logarithms of Dirichlet(1) tables; "gaussian", N(0, 1); "weak",
    N(0, .3^2); "sparse", Dirichlet with half of the cliques inactive; "health", fitted to the example's records."""
    if truth == "health":
        return _health()
    if truth in ("gaussian", "weak"):
        return rng.normal(scale=1.0 if truth == "gaussian" else 0.3, size=structure.cells)
    tables = [np.log(rng.dirichlet(np.ones(size))) for size in structure.sizes]
    if truth == "sparse":
        for number in rng.permutation(len(tables))[: len(tables) // 2]:
            tables[number] = np.zeros_like(tables[number])
    return np.concatenate(tables)


@cache
def _health() -> FloatArray:
    """The maximum-likelihood fit to the health example; the penalty keeps cells without records finite."""
    spec = load_spec(HEALTH)
    counts = count(as_source(spec.data), spec.structure).tables
    return non_private_mle(JunctionTree().compile(spec.structure), counts, l2=1e-6)
