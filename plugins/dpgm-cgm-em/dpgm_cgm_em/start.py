"""A start for EM: independent attributes with the release's one-way margins."""

from __future__ import annotations

import numpy as np

from dpgm_core import NoisyTables, OptionError, Tables
from dpgm_core.learning import consistent

__all__ = ["start_from_margins"]


def start_from_margins(release: NoisyTables) -> Tables:
    """Log-potentials of the independent model with the noisy one-way margins, nats.

    Each margin is taken from the tables after they were made to agree; shares below one record are raised to it.
    Raises OptionError for tied structures, whose tables do not tell the margins apart.
    """
    structure = release.structure
    if max(structure.multiplicities) > 1:
        raise OptionError("start = 'margins' needs an untied structure; use start = 'uniform'")
    agreed = consistent(release.tables, release.variances)
    values = np.zeros(structure.cells)
    placed: set[str] = set()
    for number, group in enumerate(structure.groups):
        clique = group[0]
        block = values[structure.slices[number]].reshape(structure.shapes[number])
        for axis, name in enumerate(clique):
            if name in placed:
                continue
            placed.add(name)
            others = tuple(other for other in range(len(clique)) if other != axis)
            share = np.maximum(agreed.group(number).sum(axis=others), 1.0)
            shape = [-1 if other == axis else 1 for other in range(len(clique))]
            block += np.log(share / share.sum()).reshape(shape)
    return Tables(structure, values)
