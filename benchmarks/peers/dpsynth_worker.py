"""dpsynth's relational synthesis, run in its own virtual environment. Needs nothing of dpgm."""

import time

import numpy as np

from benchmarks.harness.alone import peak_megabytes


def synthetic(problem):
    """Synthetic roots and children, codes; CPU seconds and peak memory.

    problem: root, child (sizes by column), roots, children (codes by column), keys (of children, from 0),
    max_children, mechanism ("aim" or "mst"), rho, seed. Settings are those of its example, but for `aim` it has its
    default of 2 slots. Its own search for rho ends with dp-accounting 0.6.0 at rho = 0, which it refuses.
    """
    import dpsynth
    import pandas
    from dpsynth.relational import domain, synthesizer

    def schema(sizes):
        return {
            name: dpsynth.domain.CategoricalAttribute(possible_values=list(range(size)), out_of_domain_index=0)
            for name, size in sizes.items()
        }

    keys = np.array(problem["keys"])
    count = len(next(iter(problem["roots"].values())))
    frames = {
        "roots": pandas.DataFrame({"id": np.arange(count), **problem["roots"]}),
        "children": pandas.DataFrame({"child": np.arange(len(keys)), "id": keys, **problem["children"]}),
    }
    link = domain.ForeignKeyRelation(
        parent_table="roots",
        parent_primary_key="id",
        child_table="children",
        child_foreign_key="id",
        max_children_per_parent=problem["max_children"],
    )
    made = dpsynth.discrete_mechanisms
    is_aim = problem["mechanism"] == "aim"
    config = synthesizer.MultiTableConfig(
        domains={"roots": schema(problem["root"]), "children": schema(problem["child"])},
        foreign_keys=[link],
        discrete_mechanism=made.AIMConfig() if is_aim else made.MSTConfig(),
        num_permutation_slots=2 if is_aim else 3,
        exploration_strategy="size_sliced",
    )
    start = time.process_time()
    mechanism = config.configure(zcdp_rho=problem["rho"])
    found = mechanism(rng=np.random.default_rng(problem["seed"]), data=frames).synthetic_tables
    roots, children = found["roots"], found["children"]
    number = {key: at for at, key in enumerate(roots["id"].tolist())}
    return {
        "roots": {name: roots[name].astype(int).tolist() for name in problem["root"]},
        "children": {name: children[name].astype(int).tolist() for name in problem["child"]},
        "keys": [number[key] for key in children["id"].tolist()],
        "seconds": time.process_time() - start,
        "peak": peak_megabytes(),
    }
