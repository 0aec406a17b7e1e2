"""What every contestant of `benchmarks.inference` is: calls by name on one model, each with the parameter set of a
number, and a reader that turns a call's result into marginals."""

import math
from collections import namedtuple

import numpy as np

#: name: of this way to call the library. call: number of a parameter set -> a result, ready when it returns.
#: read: result -> (one array per clique, axes as the clique has them, probabilities; log Z or None).
Variant = namedtuple("Variant", "name call read")
#: sizes: labels by place. cliques: tuples of places. theta: log-potentials, (sets, cells), cliques one after another.
Model = namedtuple("Model", "sizes cliques theta")


def load(path):
    """The model of a file that `benchmarks.speed.models.save` wrote."""
    with np.load(path) as file:
        cliques = [tuple(map(int, clique.split(","))) for clique in file["cliques"]]
        return Model(list(map(int, file["sizes"])), cliques, file["theta"])


def tables(model, row):
    """One parameter set, cut into one array per clique."""
    found, at = [], 0
    for clique in model.cliques:
        shape = [model.sizes[i] for i in clique]
        found.append(row[at : at + math.prod(shape)].reshape(shape))
        at += math.prod(shape)
    return found


def weights(model, row):
    """One parameter set as exp(theta), each table divided by its largest cell: for libraries without logarithms."""
    return [np.exp(array - array.max()) for array in tables(model, row)]


def alone(model, marginals):
    """Marginals of single attributes from those of cliques, for libraries that give no others."""
    found = {}
    for clique, array in zip(model.cliques, marginals, strict=True):
        for axis, place in enumerate(clique):
            found.setdefault(place, array.sum(axis=tuple(other for other in range(array.ndim) if other != axis)))
    return [found[place] for place in sorted(found)]
