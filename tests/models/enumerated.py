"""Small models of every kind of structure, and the table of all their records by definition."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dpgm_core import Budget, Domain, NoisyTables, Structure, Tables, Workload
from dpgm_core.models.functionals import Regression
from dpgm_core.models.model import Model
from dpgm_core.releases.session import session_release
from dpgm_core.releases.steps import SessionTerms
from dpgm_testing.oracles import enumerated

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


def merge_columns(codes: np.ndarray, domain: Domain, merges: Mapping[str, Sequence[int]]) -> np.ndarray:
    """Records over the domain of merged codes."""
    sizes = enumerate(domain.sizes.items())
    return np.stack([np.array(merges.get(name, range(size)))[codes[:, at]] for at, (name, size) in sizes], axis=1)


def merged_session(
    domain: Domain, merges: Mapping[str, Sequence[int]], steps: Sequence[NoisyTables], epsilon: int = 1
) -> NoisyTables:
    """The release of a session of these steps, which merged codes on its way."""
    terms = SessionTerms(workload=Workload.all(domain, 2), budget=Budget.pure(epsilon), merges=merges)
    return session_release(terms, steps, steps[0].terms, cost=Budget.pure(epsilon), private=False, provenance={})


def cells_of(domain: Domain, names: Sequence[str]) -> np.ndarray:
    """The codes of each cell, (cells, attributes)."""
    shape = domain.shape(names)
    return np.stack(np.unravel_index(np.arange(math.prod(shape)), shape), axis=1)


def coded_regression(
    domain: Domain, names: Sequence[str], family: str = "logistic", terms: Sequence = ()
) -> Regression:
    """The last attribute on the others' codes, and on products of some."""
    codes = cells_of(domain, names).astype(float)
    products = [np.prod([codes[:, names.index(one)] for one in term], axis=0) for term in terms]
    design = np.column_stack([np.ones(len(codes)), codes[:, :-1], *products])
    coefficients = ("1", *names[:-1], *(":".join(term) for term in terms))
    return Regression(attributes=names, names=coefficients, family=family, design=design, outcome=codes[:, -1])
