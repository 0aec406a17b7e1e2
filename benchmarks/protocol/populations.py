"""The synthetic protocol of Bernstein et al. (2017): populations, releases and KL, for benchmarks and plots.

A population may have a structure of its own, another than the tables that are measured. KL is exact all the same: from
the truth's marginals on the measured cliques, its entropy, and the log-partition of the learned model.
"""

import math

import numpy as np
from attrs import frozen

from benchmarks.protocol.truths import HEALTH, draw_truth
from dpgm.spec import load_spec
from dpgm_core import Budget, Domain, InferenceError, Model, NoisyTables, SeededRandomness, Structure, Tables, Terms
from dpgm_core import release as release_tables
from dpgm_core.inference.contract import Engine
from dpgm_core.inference.junction_tree.engine import JunctionTree

__all__ = ["GRAPHS", "Population", "draw_release", "structure_of"]

#: Graphs, and the least and the most labels that exact inference takes on them; 0: they have their own.
GRAPHS = {"chain1": (1, 50), "chain3": (1, 10), "er": (1, 10), "health": (0, 0)}
GRAPHS |= {"pairs4": (1, 6), "pairs6": (1, 4), "pairs8": (1, 3), "pairs12": (1, 2), "pairs16": (1, 2)}
GRAPHS |= {
    "grid4": (1, 4),
    "grid5": (1, 3),
    "star16": (1, 20),
    "path52": (1, 20),
    "uneven8": (0, 0),
    "patients": (0, 0),
}
_UNEVEN = (2, 100, 3, 40, 5, 20, 8, 12)


def structure_of(graph: str, size: int, attributes: int = 10) -> Structure:
    """What is measured. "chain1" or "chain3" (edges up to so many places apart), "er": the first connected graph with
    18 edges, both over so many attributes. "health": that of the example in docs; "patients": all pairs of its
    attributes. "pairs8": all pairs of eight; "grid5": five by five; "star16": a class and sixteen features; "path52":
    a chain of 52; "uneven8": a chain of eight attributes with 2 to 100 labels."""
    if graph == "health":
        return load_spec(HEALTH).structure
    if graph == "patients":
        return Structure.complete(load_spec(HEALTH).structure.domain)
    if graph == "uneven8":
        return Structure.chain(Domain.from_sizes({f"x{place}": labels for place, labels in enumerate(_UNEVEN)}))
    kind, own = graph.rstrip("0123456789"), int("".join(filter(str.isdigit, graph)) or 0)
    number = {"pairs": own, "grid": own**2, "star": own + 1, "path": own}.get(kind, attributes)
    domain = Domain.from_sizes({f"x{place}": size for place in range(number)})
    match kind:
        case "pairs":
            return Structure.complete(domain)
        case "grid":
            return Structure.grid(domain, own, own)
        case "star":
            return Structure(domain, [("x0", name) for name in domain.names[1:]])
        case "path":
            return Structure.chain(domain)
        case "chain":
            return Structure.chain(domain, own)
    seed = 0
    while len((found := Structure.erdos_renyi(domain, 0.4, seed)).cliques) != 18:
        seed += 1
    return found


@frozen(kw_only=True, eq=False)
class Population:
    """The true model; in the paper potentials are logarithms of Dirichlet(1) tables, one per edge.

    structure, engine: what is measured and learned over. potentials: the truth's, over its own structure. marginals:
    the truth's on the measured cliques, (cells,). entropy: of the truth, nats.
    """

    structure: Structure
    engine: Engine
    potentials: Tables
    marginals: np.ndarray
    entropy: float

    @classmethod
    def draw(cls, structure: Structure, seed: int, truth: str = "dirichlet") -> "Population":
        """A population by its seed, measured over the structure; truth is one of TRUTHS (see `draw_truth`)."""
        potentials = draw_truth(truth, structure, seed)
        model = Model(potentials.structure, potentials)
        own = model.marginals().values
        if potentials.structure == structure:
            marginals = own
        else:
            marginals = Tables.from_arrays(structure, model.marginals_of(structure.cliques)).values
        return cls(
            structure=structure,
            engine=JunctionTree().compile(structure),
            potentials=potentials,
            marginals=marginals,
            entropy=model.log_partition - math.fsum(own * potentials.values),
        )

    def kl(self, theta: np.ndarray) -> float:
        """KL(true || model with potentials theta), nats; one inference call. A value below 0 beyond rounding, which
        only a wrong log-partition can give, is an InferenceError and not a result."""
        learned = self.engine.infer(Tables(self.structure, theta)).log_partition
        kl = learned - math.fsum(self.marginals * theta) - self.entropy
        if not kl >= -1e-9 * max(1.0, float(np.abs(theta).max())):
            raise InferenceError(f"an impossible KL of {kl:.3g}: the engine's log-partition is wrong")
        return max(0.0, kl)

    def records(self, count: int, seed: int) -> np.ndarray:
        """`count` records as codes, (count, attributes)."""
        engine = Model(self.potentials.structure, self.potentials).engine
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
