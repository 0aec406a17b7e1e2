"""Parts of a model: narrow, complete together, and as full as they can be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.inference.bounds import blocks, cover
from dpgm_core.structure.structure import Structure

CASES = {
    "grid": Structure.grid(Domain.from_sizes({f"x{i}": 2 + i % 2 for i in range(36)}), 6, 6),
    "random": Structure.erdos_renyi(Domain.from_sizes({f"x{i}": 3 for i in range(20)}), 0.3, seed=1),
    "triples": Structure(
        Domain.from_sizes(dict.fromkeys("abcdefgh", 2)),
        [("a", "b", "c"), ("c", "d", "e"), ("e", "f", "a"), ("b", "d", "f"), ("g",)],
    ),
}


@pytest.fixture(params=CASES)
def structure(request):
    return CASES[request.param]


@pytest.mark.parametrize("cells", [9, 64, 10**6])
def test_parts_hold_every_clique_and_fit(structure, cells):
    """An elimination of each part along its clusters needs no more cells than the limit, or than one clique has."""
    sizes = structure.domain.sizes
    limit = max([cells, *(math.prod(structure.domain.shape(clique)) for clique in structure.cliques)])
    parts = cover(structure.cliques, sizes, limit)
    assert set().union(*parts) == set(range(len(structure.cliques)))
    assert (len(parts) == 1) == (len(parts[0]) == len(structure.cliques))
    for part in parts:
        clusters = Structure(structure.domain, [structure.cliques[n] for n in part]).elimination.clusters
        assert max(math.prod(structure.domain.shape(one)) for one in clusters) <= 3 * limit


@pytest.mark.parametrize("cells", [9, 64, 10**6])
def test_blocks_are_disjoint_and_fit(structure, cells):
    """Every attribute is in one block, whose induced cliques fit."""
    found = blocks(structure.cliques, structure.domain.sizes, max(cells, 9))
    assert sorted(name for block in found for name in block) == sorted(structure.domain.names)
    assert cells < 10**6 or len(found) <= len(CASES)
    for block in found:
        inside = [tuple(name for name in clique if name in block) for clique in structure.cliques]
        induced = Structure(structure.domain.subset(block), [clique for clique in dict.fromkeys(inside) if clique])
        widest = max(math.prod(structure.domain.shape(one)) for one in induced.elimination.clusters)
        assert widest <= 3 * max(cells, 9)


def test_trees_are_one_part():
    """A random tree, a star and a chain, whatever the order of names."""
    draws = np.random.default_rng(0)
    for _ in range(5):
        edges = [(f"x{draws.integers(i)}", f"x{i}") for i in range(1, 40)]
        order = draws.permutation(39)
        assert len(cover([edges[i] for i in order], {f"x{i}": 2 for i in range(40)}, 4)) == 1
