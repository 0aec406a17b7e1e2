"""Small models of every kind of structure, and the table of all their records by definition."""

from collections.abc import Sequence

import numpy as np

from dpgm_core import Domain, Structure, Tables
from dpgm_core.models.model import Model
from dpgm_testing.oracles import enumerated

__all__ = ["DOMAIN", "NAMES", "STRUCTURES", "joint", "model_of", "random_model", "summed", "uniform_model"]

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 2})
NAMES = DOMAIN.names
STRUCTURES = {
    "chain": Structure.chain(DOMAIN),
    "cycle": Structure(DOMAIN, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]),
    "disconnected": Structure(DOMAIN, [("b", "a"), ("d",)]),
    "nested": Structure(DOMAIN, [("c", "b", "a"), ("a",), ("a", "b")]),
    "tied": Structure(DOMAIN, [("b", "a"), ("d",)], tied=[[("a", "c"), ("c", "d"), ("d", "a")]]),
}


def random_model(structure: Structure, seed: int = 0, zeros: float = 0.0, scale: float = 1.0, **facts) -> Model:
    """Normal potentials; `zeros` is the share of them at -inf."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=structure.cells) * scale
    values[rng.random(structure.cells) < zeros] = -np.inf
    return Model(structure, Tables(structure, values), **facts)


def model_of(name: str, seed: int = 0, zeros: float = 0.0) -> Model:
    """A random model of one of the structures."""
    return random_model(STRUCTURES[name], seed, zeros, 1.5)


def uniform_model(structure: Structure, **facts) -> Model:
    """All potentials are 0."""
    return Model(structure, Tables.zeros(structure), **facts)


def joint(model: Model) -> np.ndarray:
    """All records' probabilities, axes in the domain's order, by definition."""
    return enumerated(model.potentials).probabilities.reshape(model.domain.shape(model.domain.names))


def summed(table: np.ndarray, names: Sequence[str], among: Sequence[str] = NAMES) -> np.ndarray:
    """The margin of some attributes, in their order, of a table of those `among`."""
    return np.einsum(table, range(len(among)), [among.index(name) for name in names])
