"""Holdout: a share of the budget, and the pairs of attributes that it measures to test a structure.

The pairs are such that no clique holds both attributes. Nobody learns from their tables; they are compared with what a
model says of them (see `dpgm_core.models.misfit`).

Sensitivity. That of the tables of pairs, `Sensitivity.of`.

Cost. `Split.divide` (`dpgm_core.privacy.budget`): a share of the budget for the holdout, the rest for the tables,
together exactly the budget.

Distribution. The pairs are drawn without replacement, each as likely, and their tables have the noise of any other
measurement.

Proof. The pairs are drawn from public facts, or from what a selection has released, and from random bits, so that
choosing them costs nothing (post-processing); the measurement is one more release, and costs add up (Dwork and Roth,
2014, The algorithmic foundations of differential privacy, Proposition 2.1 and Theorem 3.16).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection

import numpy as np

from dpgm_core.errors import StructureError
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

__all__ = ["candidate_pairs", "chosen_pairs", "pairs_to_check", "unmeasured_pairs"]

#: Most pairs that are measured; see `chosen_pairs`.
MAX_PAIRS = 12
#: A pair with more cells is not drawn: it says little for what it would hold in memory.
_MAX_CELLS = 2**17


def unmeasured_pairs(structure: Structure) -> list[Clique]:
    """Return the pairs of attributes that are each in some clique, but in none together, in the order of the domain."""
    measured = {name for clique in structure.cliques for name in clique}
    names = [name for name in structure.domain.names if name in measured and structure.domain[name].size > 1]
    adjacency = structure.adjacency
    return [(one, two) for one, two in itertools.combinations(names, 2) if two not in adjacency[one]]


def chosen_pairs(structure: Structure, generator: np.random.Generator) -> Structure:
    """Draw the pairs of a holdout: 12 of the unmeasured ones, without replacement, each as likely.

    Few pairs would have less noise each, but misfit sits in some pairs and not in others, and whoever sees few may miss
    those; `python -m benchmarks.misfit` is what the number was chosen by. Raises StructureError where there is no pair
    to draw.
    """
    pairs = [pair for pair in unmeasured_pairs(structure) if math.prod(structure.domain.shape(pair)) <= _MAX_CELLS]
    if not pairs:
        raise StructureError(
            "a holdout needs a pair of measured attributes that no clique holds together, and there is none; leave "
            "the holdout out"
        )
    return _draw_pairs(structure, pairs, generator)


def pairs_to_check(structure: Structure, generator: np.random.Generator, among: Collection[Clique]) -> Structure | None:
    """Draw the pairs of a holdout after a selection: as `chosen_pairs`, among the candidates; None for none."""
    pairs = candidate_pairs(structure, among)
    return _draw_pairs(structure, pairs, generator) if pairs else None


def candidate_pairs(structure: Structure, among: Collection[Clique]) -> list[Clique]:
    """Return the unmeasured pairs that are among the candidates, in the order of the domain."""
    candidates = set(among)
    return [pair for pair in unmeasured_pairs(structure) if pair in candidates]


def _draw_pairs(structure: Structure, pairs: list[Clique], generator: np.random.Generator) -> Structure:
    """Draw at most `MAX_PAIRS` of the pairs, each as likely, in their order."""
    drawn = sorted(generator.permutation(len(pairs))[:MAX_PAIRS].tolist())
    return Structure(structure.domain, [pairs[number] for number in drawn])
