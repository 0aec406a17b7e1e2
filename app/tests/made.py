"""Models, releases and domains that tests of the application are made of."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import dpgm_core as dpgm
from dpgm_core import Domain, Model, NoisyTables, Structure, Tables

LABELS = {"sex": ["F", "M"], "age": ["young", "mid", "old"], "job": ["y", "n"]}
CODES = np.random.default_rng(3).integers(0, [2, 3, 2], (3000, 3))
CODES[:, 2] = np.where(CODES[:, 0] == 1, 1, CODES[:, 2])  # a job depends on sex


def domain_of(**labels: list[str] | str) -> Domain:
    """Labels by attribute, in a list or in a text between blanks; the first is the unknown one."""
    read = {name: given.split() if isinstance(given, str) else given for name, given in labels.items()}
    return Domain.from_dict({"attributes": {name: {"labels": own, "unknown": own[0]} for name, own in read.items()}})


def uniform(over: Structure | Domain | Mapping[str, int], *cliques: tuple[str, ...], **facts: Any) -> Model:
    """A model with potentials of 0; over a domain or sizes it has one clique unless several are named."""
    if not isinstance(over, Structure):
        domain = over if isinstance(over, Domain) else Domain.from_sizes(over)
        over = Structure(domain, cliques or [domain.names])
    return Model(over, Tables.zeros(over), **facts)


def files(folder: Path) -> set[str]:
    """Every file below a folder, those of a database that is open left out."""
    return {one.relative_to(folder).as_posix() for one in folder.rglob("*") if not one.name.endswith(("-wal", "-shm"))}


def model_of(domain: Domain, *cliques: tuple[str, ...], seed: int = 0) -> Model:
    structure = Structure(domain, cliques or [domain.names])
    return Model(structure, Tables(structure, np.random.default_rng(seed).normal(size=structure.cells)))


def release_of(domain: Domain, codes: np.ndarray, *cliques: tuple[str, ...], seed: int = 0, **more: Any) -> NoisyTables:
    """A release of seeded noise, at epsilon = 2."""
    terms = {"neighbours": "add-remove", "randomness": dpgm.SeededRandomness(seed), **more}
    return dpgm.release(codes, Structure(domain, cliques), dpgm.Budget.pure(2), **terms)
