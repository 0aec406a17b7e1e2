"""NAPSU-MQ of twinify, run in an environment of its own. Needs nothing of dpgm.

A problem has codes, names, cliques, epsilon, delta, seed and datasets: how many synthetic data sets of as many rows.
twinify 2.0.0 runs with jax and jaxlib 0.4.13, numpyro 0.11, pandas 1.5, numpy 1.26 and matplotlib 3.8.
"""

import time

import numpy as np


def synthetic_counts(problem):
    """Return how many rows of each synthetic data set lie in each cell of the whole table, and CPU seconds."""
    import d3p.random
    import pandas
    from twinify.napsu_mq.napsu_mq import NapsuMQModel

    start = time.process_time()
    codes = np.array(problem["codes"], dtype=np.int64)
    names, cliques = problem["names"], [tuple(one) for one in problem["cliques"]]
    frame = pandas.DataFrame(dict(zip(names, codes.T, strict=True))).astype("category")
    keys = d3p.random.split(d3p.random.PRNGKey(problem["seed"]), 2)
    model = NapsuMQModel(column_feature_set=[])
    posterior = model.fit(frame, keys[0], problem["epsilon"], problem["delta"], query_sets=cliques)
    made = posterior.generate(keys[1], problem["datasets"], len(frame), single_dataframe=False)
    sizes = [int(one) for one in codes.max(axis=0) + 1]
    counts = []
    for table in made:
        columns = [table[name].astype(np.int64).to_numpy() for name in names]
        cells = np.ravel_multi_index(columns, sizes)
        counts.append(np.bincount(cells, minlength=int(np.prod(sizes))).tolist())
    return {"counts": counts, "seconds": time.process_time() - start}
