"""Models, releases and domains that tests of comparisons are made of."""

from typing import Any

import numpy as np

import dpgm_core as dpgm
from dpgm_core import Domain, Model, NoisyTables, Structure, Tables

LABELS = {"sex": ["F", "M"], "age": ["young", "mid", "old"], "job": ["y", "n"]}
CODES = np.random.default_rng(3).integers(0, [2, 3, 2], (3000, 3))
CODES[:, 2] = np.where(CODES[:, 0] == 1, 1, CODES[:, 2])  # a job depends on sex


def domain_of(**labels: list[str]) -> Domain:
    """Labels by attribute; the first is the unknown one."""
    return Domain.from_dict(
        {"attributes": {name: {"labels": given, "unknown": given[0]} for name, given in labels.items()}}
    )


def model_of(domain: Domain, *cliques: tuple[str, ...], seed: int = 0) -> Model:
    """A model with random potentials and no release."""
    structure = Structure(domain, cliques or [domain.names])
    return Model(structure, Tables(structure, np.random.default_rng(seed).normal(size=structure.cells)))


def release_of(
    domain: Domain, codes: np.ndarray, *cliques: tuple[str, ...], seed: int = 0, **terms: Any
) -> NoisyTables:
    """A release of seeded noise, at epsilon = 2."""
    terms = {"neighbours": "add-remove", "randomness": dpgm.SeededRandomness(seed), **terms}
    return dpgm.release(codes, Structure(domain, cliques), dpgm.Budget.pure(2), **terms)
