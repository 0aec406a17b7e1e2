"""What tests of networks share: a seeded curator over a graph's families, and releases under other names."""

import numpy as np
from attrs import evolve

import dpgm_core as dpgm
from dpgm_core.sources import as_source

DOMAIN = dpgm.Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 2})
#: Families (a), (b, a), (c, a, b), (d, c); the first two lie in the third.
DAG = dpgm.Dag(DOMAIN, {"b": ["a"], "c": ["a", "b"], "d": ["c"]})
ADD = dpgm.Terms(neighbours="add-remove")


def curator_of(source, structure, budget=None, mechanism="laplace", **more):
    """A seeded curator; codes in an array are records too."""
    return dpgm.LiveCurator(
        source if hasattr(source, "batches") else as_source(source),
        structure,
        dpgm.make("mechanism", mechanism),
        budget=budget or dpgm.Budget.pure(1),
        **{"terms": ADD, "randomness": dpgm.SeededRandomness(3)} | more,
    )


def turned(release, names, measured):
    """The release with other names of attributes, over `measured`, and the labels of each in reverse."""
    tables = {
        tuple(names[name] for name in clique): np.flip(table, axis=tuple(range(table.ndim)))
        for clique, table in release.tables.items()
    }
    stated = evolve(release.measurement, structure=measured)
    return evolve(release, tables=dpgm.Tables.from_arrays(measured, tables), measurement=stated)
