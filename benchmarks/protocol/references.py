"""The two reference learners of Bernstein et al. (2017), Figure 2, the non-private MLE and the random estimator; and
the independent model, below which no learner should fall.

For benchmarks only; none is a component, so that none can be chosen by name on protected records.
"""

import numpy as np

from dpgm_core import Engine, FloatArray, NoisyTables, Structure, Tables
from dpgm_core._util.progress import silent
from dpgm_core.learning import Likelihood, consistent

__all__ = ["independent_model", "non_private_mle", "one_way_margins", "random_estimator"]


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
