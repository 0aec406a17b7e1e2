"""Small models of every kind of structure, and the table of all their records by definition."""

import itertools

import numpy as np

from dpgm_core import Domain, Structure, Tables
from dpgm_core.models.model import Model

__all__ = ["DOMAIN", "NAMES", "STRUCTURES", "joint", "model_of", "summed"]

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 2})
NAMES = DOMAIN.names
STRUCTURES = {
    "chain": Structure.chain(DOMAIN),
    "cycle": Structure(DOMAIN, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]),
    "disconnected": Structure(DOMAIN, [("b", "a"), ("d",)]),
    "nested": Structure(DOMAIN, [("c", "b", "a"), ("a",), ("a", "b")]),
    "tied": Structure(DOMAIN, [("b", "a"), ("d",)], tied=[[("a", "c"), ("c", "d"), ("d", "a")]]),
}


def model_of(name: str, seed: int = 0, zeros: float = 0.0) -> Model:
    """A random model; `zeros` is the share of potentials at -inf."""
    structure = STRUCTURES[name]
    rng = np.random.default_rng(seed)
    values = rng.normal(size=structure.cells) * 1.5
    values[rng.random(structure.cells) < zeros] = -np.inf
    return Model(structure, Tables(structure, values))


def joint(model: Model) -> np.ndarray:
    """All records' probabilities, axes in the domain's order, by definition."""
    weights = np.zeros([attribute.size for attribute in model.domain])
    for record in itertools.product(*(range(attribute.size) for attribute in model.domain)):
        code = dict(zip(model.domain.names, record, strict=True))
        for number, group in enumerate(model.structure.groups):
            for clique in group:
                weights[record] += model.potentials.group(number)[tuple(code[name] for name in clique)]
    return np.exp(weights) / np.exp(weights).sum()


def summed(table: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    left = [name for name in NAMES if name in names]
    margin = table.sum(axis=tuple(i for i, name in enumerate(NAMES) if name not in names))
    return margin.transpose([left.index(name) for name in names])
