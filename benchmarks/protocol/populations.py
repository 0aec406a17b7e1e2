"""Synthetic truths, the records and releases drawn from them, and reference learners.

The protocol is that of Bernstein et al. (2017). Learners of this module see the truth or the records themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, frozen
from dpgm_cgm_em.weighting import score_bound

from dpgm.spec import load_spec
from dpgm.study import dirichlet_potentials, normal_potentials
from dpgm_core import (
    Budget,
    Collective,
    Domain,
    Engine,
    FloatArray,
    InferenceError,
    LiveCurator,
    Model,
    NoisyTables,
    SeededRandomness,
    Structure,
    Tables,
    Terms,
    learn,
    make,
)
from dpgm_core import release as release_tables
from dpgm_core._util.progress import silent
from dpgm_core.counting.table_counts import count
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning import Likelihood, consistent
from dpgm_core.sources import as_source

# --------------------------------------------------------------------------------------------------
# The two reference learners of Bernstein et al. (2017), Figure 2, the non-private MLE and the random estimator; and
# the independent model, below which no learner should fall.
#
# For benchmarks only; none is a component, so that none can be chosen by name on protected records.


def non_private_mle(engine: Engine, counts: Tables, *, l2: float = 0.0) -> FloatArray:
    """Log-potentials, (cells,), that maximise the likelihood of the exact counts. NOT PRIVATE."""
    records = counts.sums()[0] / counts.structure.multiplicities[0]
    problem = Likelihood(engine, counts / float(records), silent)
    return problem.minimise(np.zeros(counts.structure.cells), l2, 1e-8, 5000)[0]


def random_estimator(engine: Engine, structure: Structure, seed: int) -> FloatArray:
    """Log-potentials of the MLE for random marginals: what a learner is worth that saw nothing.

    The paper does not say how its marginals are drawn; here each table is uniform on the simplex (Dirichlet(1)), then
    the tables are made to agree. A penalty of 1e-4 keeps the potentials finite where agreement leaves a cell below 0.
    """
    rng = np.random.default_rng(seed)
    tables = [m * rng.dirichlet(np.ones(k)) for k, m in zip(structure.sizes, structure.multiplicities, strict=True)]
    target = consistent(Tables(structure, np.concatenate(tables)))
    return Likelihood(engine, target, silent).minimise(np.zeros(structure.cells), 1e-4, 1e-6, 2000)[0]


def independent_model(release: NoisyTables) -> FloatArray:
    """Log-potentials, (cells,), of the product of `one_way_margins`; tables are not tied."""
    structure = release.structure
    tables = [np.zeros(structure.domain.shape(clique)) for clique in structure.cliques]
    for name, margin in one_way_margins(release).items():
        number = next(number for number, clique in enumerate(structure.cliques) if name in clique)
        axis = structure.cliques[number].index(name)
        tables[number] += np.log(margin).reshape([-1 if at == axis else 1 for at in range(tables[number].ndim)])
    return np.concatenate([table.reshape(-1) for table in tables])


def one_way_margins(release: NoisyTables) -> dict[str, FloatArray]:
    """A distribution for each attribute: what the tables that hold it say, by inverse variance, at least one record."""
    sums: dict[str, FloatArray] = {}
    weights: dict[str, float] = {}
    tables = zip(release.structure.cliques, release.tables.arrays(), release.variances, strict=True)
    for clique, table, variance in tables:
        for axis, name in enumerate(clique):
            margin = table.sum(axis=tuple(other for other in range(table.ndim) if other != axis), dtype=np.float64)
            weight = margin.size / (table.size * float(variance))
            sums[name] = sums.get(name, np.zeros(margin.size)) + weight * margin
            weights[name] = weights.get(name, 0.0) + weight
    counts = {name: np.maximum(total / weights[name], 1.0) for name, total in sums.items()}
    return {name: count / count.sum() for name, count in counts.items()}


# --------------------------------------------------------------------------------------------------
# The truths that populations are drawn from: log-potentials over a structure that may differ from the measured one.
#
# Those of the paper and of the first study have the measured structure. The families (protocol/families.py) also have
# truths in which most of the measured tables are silent: main effects only, and a loud interaction on a few.

HEALTH = Path(__file__).parents[2] / "docs" / "examples" / "health" / "health.toml"

#: Share of the measured tables that are loud; their interactions have this root mean square, nats.
_SHARES = {"half": 1 / 2, "sixth": 1 / 6, "fourteenth": 1 / 14}
_LOUD, _FAINT = 0.4, 0.05
_DIRICHLET = ("dirichlet", "sparse", "classes", "uneven", "drowned")
_WIDTHS = {"gaussian": 1.0, "weak": 0.3}

#: In the order of the seeds: add at the end.
TRUTHS = ("dirichlet", "gaussian", "weak", "sparse", "health")
TRUTHS += (
    "matched",
    *_SHARES,
    "one",
    "signs",
    "classes",
    "uneven",
    "faint",
    "independent",
    "flat",
    "drowned",
    "patients",
)


def draw_truth(name: str, measured: Structure, seed: int) -> Tables:
    """Log-potentials of a truth over a structure of its own.

    "dirichlet" (also called "classes", "uneven" and "drowned"): logarithms of Dirichlet(1) tables. "gaussian" and
    "weak": N(0, 1) and N(0, .3^2). "sparse": Dirichlet with half of the tables inactive. "health" and "patients": the
    maximum likelihood fit to the example's records.

    "matched": every second attribute with the next, nothing else. "half", "sixth", "fourteenth", "one": so many of the
    measured tables, at random, are loud, and attributes have main effects N(0, .5^2). "signs": all tables are loud.
    "faint": all are hardly there. "independent": main effects N(0, 1) alone. "flat": uniform. Loud is an interaction
    without main effects, of root mean square .4; for two labels each that is .4 with a random sign.
    """
    rng = np.random.default_rng(seed)
    if name in ("health", "patients"):
        return Tables(measured, _fitted(measured))
    if name in _WIDTHS:
        return normal_potentials(measured, rng, _WIDTHS[name])
    if name in _DIRICHLET:
        potentials = dirichlet_potentials(measured, rng)
        if name == "sparse":
            count = len(measured.sizes)
            silent = rng.permutation(count)[: count // 2]
            loud = np.repeat(~np.isin(np.arange(count), silent), measured.sizes)
            potentials = Tables(measured, np.where(loud, potentials.values, 0.0))
        return potentials
    pairs = [measured.cliques[number] for number in _loud(name, measured, rng)]
    structure = Structure(measured.domain, [*pairs, *((attribute,) for attribute in measured.domain.names)])
    effects = {"matched": 0.0, "flat": 0.0, "faint": 0.0, "independent": 1.0}.get(name, 0.5)
    strength = _FAINT if name == "faint" else _LOUD
    return Tables.from_arrays(
        structure,
        {
            clique: _interaction(measured.domain.shape(clique), strength, rng)
            if len(clique) > 1
            else rng.normal(scale=effects, size=measured.domain.shape(clique))
            for clique in structure.cliques
        },
    )


def _loud(name: str, measured: Structure, rng: np.random.Generator) -> list[int]:
    """The numbers of the measured cliques that interact."""
    everything = range(len(measured.cliques))
    if name == "matched":
        names = measured.domain.names
        return [measured.cliques.index(pair) for pair in zip(names[::2], names[1::2], strict=True)]
    if name in ("signs", "faint"):
        return list(everything)
    wanted = {"one": 1.0, "independent": 0.0, "flat": 0.0}.get(name)
    number = round(_SHARES[name] * len(everything)) if wanted is None else int(wanted)
    return sorted(int(one) for one in rng.permutation(len(everything))[:number])


def _interaction(shape: tuple[int, ...], strength: float, rng: np.random.Generator) -> FloatArray:
    """A random table of two attributes whose rows and columns sum to 0, with this root mean square."""
    table = rng.normal(size=shape)
    table -= table.mean(axis=0)
    table -= table.mean(axis=1, keepdims=True)
    scaled: FloatArray = table * (strength / np.sqrt(np.mean(table**2)))
    return scaled


@cache
def _fitted(structure: Structure) -> FloatArray:
    """The maximum-likelihood fit to the health example; the penalty keeps cells without records finite."""
    spec = load_spec(HEALTH)
    counts = count(as_source(spec.data), structure).tables
    return non_private_mle(JunctionTree().compile(structure), counts, l2=1e-6)


# --------------------------------------------------------------------------------------------------
# The synthetic protocol of Bernstein et al. (2017): populations, releases and KL, for benchmarks and plots.
#
# A population may have a structure of its own, another than the tables that are measured. KL is exact all the same:
# from the truth's marginals on the measured cliques, its entropy, and the log-partition of the learned model.

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
    def draw(cls, structure: Structure, seed: int, truth: str = "dirichlet") -> Population:
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


# --------------------------------------------------------------------------------------------------
# Learners tuned by the truth, which nobody has: the path of CGM-EM, and naive MLE at its best penalty.

LAMBDAS = [10.0 ** (-half / 2) for half in range(4, 11)]


def path(
    population: Population, noisy: NoisyTables, e_step: Collective, *, tau: float, step: float
) -> Iterator[tuple[float, float, float, int]]:
    """EM written out: (tau, KL, |y - n|_1, inference calls) after each proximal step."""
    bound = score_bound(noisy)
    engine = e_step.compile(population.engine, noisy)
    theta, start = Tables.zeros(population.structure), None
    for number in range(round(tau / step)):
        beliefs = engine.infer(theta, evidence_weight=step / bound, start=start)
        start = beliefs.multipliers
        theta = theta + start
        distance = float(np.abs(noisy.tables.values - beliefs.marginals.values).sum())
        yield step * (number + 1), population.kl(theta.values), distance, beliefs.calls


def oracle(population: Population, noisy: NoisyTables) -> tuple[float, float]:
    """(lambda, KL) of the naive MLE whose penalty was chosen by the truth."""
    fits = {l2: learn(noisy, make("learner", "naive-mle", l2=l2)) for l2 in LAMBDAS}
    scores = {l2: population.kl(fit.model.potentials.values) for l2, fit in fits.items()}
    best = min(scores, key=scores.__getitem__)
    return best, scores[best]


# --------------------------------------------------------------------------------------------------
# DP-SGD as it is compared: its settings, and the curator of the records that it reads in every step.


def curator(codes: np.ndarray, population: Population, epsilon: float, seed: int) -> LiveCurator:
    """A curator with (epsilon, 1/N) to spend."""
    return LiveCurator(
        as_source(codes),
        population.structure,
        make("mechanism", "gaussian"),
        terms=Terms(neighbours="add-remove", total=float(len(codes))),
        budget=Budget.approx(epsilon, 1 / len(codes)),
        randomness=SeededRandomness(seed),
    )


def descended(population: Population, learner: Any, source: Any, seed: int) -> float:
    """Return the KL of what a learner of gradients finds from a curator; infinite where it diverges."""
    try:
        fit = learner.learn(source, JunctionTree(), randomness=SeededRandomness(seed), progress=silent)
    except InferenceError:
        return math.inf
    return population.kl(fit.model.potentials.values)


def learners() -> dict[str, Any]:
    """What is compared, by name."""
    psgd = make("learner", "psgd", epochs=10, sampling_rate=0.1, momentum=0.9)
    return {
        "DP-SGD, q = .01, 10 epochs": evolve(psgd, sampling_rate=0.01),
        "DP-SGD, q = .1, 10 epochs": psgd,
        "DP-SGD, q = .1, 10 epochs, clipped": evolve(psgd, mode="clip"),
        "DP-SGD, q = 1, 100 epochs": evolve(psgd, sampling_rate=1.0, epochs=100),
        "one release, 100 steps": evolve(psgd, sampling_rate=1.0, epochs=100),
        "one release, 1000 steps": evolve(psgd, sampling_rate=1.0, epochs=1000),
    }
