"""The two reference learners of Bernstein et al. (2017), Figure 2: the non-private MLE and the random estimator.

For benchmarks only; neither is a component, so that neither can be chosen by name on protected records.
"""

import numpy as np

from dpgm_core import Engine, FloatArray, Likelihood, Structure, Tables, consistent
from dpgm_core.progress import silent

__all__ = ["non_private_mle", "random_estimator"]


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
