"""Truths to draw records from: models made up by a seed, as in the synthetic experiments of Bernstein et al. (2017)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.domain import Domain
from dpgm_core.errors import OptionError, did_you_mean
from dpgm_core.models.model import Model
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

__all__ = ["dirichlet_potentials", "generated_truth", "normal_potentials"]

#: Edges of a "random" graph that an attribute has on average; for ten attributes the paper's p = 0.4.
_DEGREE = 3.6


def dirichlet_potentials(structure: Structure, generator: np.random.Generator, strength: float = 1.0) -> Tables:
    """Log-potentials, nats: of each table `strength` times the logarithms of a draw from Dirichlet(1, ..., 1).

    strength: 1 is the paper's; at 0 all records are equally likely.

    >>> structure = Structure.chain(Domain.from_sizes({"a": 2, "b": 2}))
    >>> round(float(np.exp(dirichlet_potentials(structure, np.random.default_rng(0)).values).sum()), 9)
    1.0
    """
    tables = [np.log(generator.dirichlet(np.ones(size))) for size in structure.sizes]
    return Tables(structure, strength * np.concatenate(tables))


def normal_potentials(structure: Structure, generator: np.random.Generator, strength: float = 1.0) -> Tables:
    """Log-potentials, nats, that are independent and normal with mean 0 and standard deviation `strength`.

    >>> structure = Structure.chain(Domain.from_sizes({"a": 2, "b": 2}))
    >>> normal_potentials(structure, np.random.default_rng(0), strength=0).values.tolist()
    [0.0, 0.0, 0.0, 0.0]
    """
    values: FloatArray = generator.normal(scale=strength, size=structure.cells)
    return Tables(structure, values)


_POTENTIALS: Mapping[str, Callable[[Structure, np.random.Generator, float], Tables]] = {
    "dirichlet": dirichlet_potentials,
    "normal": normal_potentials,
}


def generated_truth(
    domain: Domain,
    structure: str | Mapping[str, Any] = "chain",
    *,
    potentials: str = "dirichlet",
    strength: float = 1.0,
    seed: int = 0,
) -> Model:
    """A model made up by a seed, which knows of no records.

    structure: "chain", "tree" (balanced), "third-order" (edges up to three places apart), "random" (a connected graph
    by the seed, 3.6 edges to an attribute), or a table such as [structure] in a spec. potentials: "dirichlet" or
    "normal", of that strength. Raises OptionError, StructureError.

    >>> truth = generated_truth(Domain.from_sizes({"a": 2, "b": 3, "c": 2}), "third-order", seed=1)
    >>> truth.structure.cliques, truth.private
    ((('a', 'b'), ('a', 'c'), ('b', 'c')), None)
    """
    if not isinstance(potentials, str) or potentials not in _POTENTIALS:
        raise OptionError(f"a truth has no potentials {potentials!r}{did_you_mean(str(potentials), _POTENTIALS)}")
    if isinstance(strength, bool) or not isinstance(strength, (int, float)) or not 0 <= strength < 100:
        raise OptionError(f"a truth's strength must be a number from 0 to 100, got {strength!r}")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise OptionError(f"a truth's seed must be a whole number of at least 0, got {seed!r}")
    over = Structure.from_dict(domain, _table(structure, len(domain), seed))
    return Model(over, _POTENTIALS[potentials](over, np.random.default_rng(seed), strength))


def _table(structure: str | Mapping[str, Any], attributes: int, seed: int) -> Mapping[str, Any]:
    """The [structure] table of a name."""
    if isinstance(structure, Mapping):
        return structure
    named: Mapping[str, Mapping[str, Any]] = {
        "chain": {"graph": "chain"},
        "tree": {"graph": "tree"},
        "third-order": {"graph": "chain", "order": 3},
        "random": {"graph": "erdos-renyi", "p": min(1.0, _DEGREE / max(1, attributes - 1)), "seed": seed},
    }
    if not isinstance(structure, str) or structure not in named:
        raise OptionError(f"a truth has no structure {structure!r}{did_you_mean(str(structure), named)}")
    return named[structure]
