"""How many sets can be odd at once: never more than the bound, by brute force over all flips."""

import itertools
import random

import pytest

from dpgm_core import Domain, Structure
from dpgm_core.privacy.contrasts import most_odd

NAMES = "abcdef"
DOMAIN = Domain.from_sizes(dict.fromkeys(NAMES, 2))


def largest(structure):
    """Over all sets F of attributes, the most cliques with an odd number of members in it."""
    flips = [set(one) for size in range(len(NAMES) + 1) for one in itertools.combinations(NAMES, size)]
    return max(sum(len(flip.intersection(clique)) % 2 for clique in structure.cliques) for flip in flips)


def below(cliques):
    """All sets inside of them, the empty one too."""
    inside = {part for one in cliques for size in range(len(one) + 1) for part in itertools.combinations(one, size)}
    return Structure(DOMAIN, sorted(inside))


def test_the_bound_is_above_the_truth_and_near():
    """300 random structures, the sets inside their cliques too: never below, and 5 % above on average."""
    draw, ratios = random.Random(0), []
    for _ in range(150):
        cliques = [sorted(draw.sample(NAMES, draw.randint(1, 4))) for _ in range(draw.randint(1, 7))]
        for structure in (Structure(DOMAIN, cliques), below(cliques)):
            bound, truth = most_odd(structure), largest(structure)
            assert truth <= bound <= len(structure.groups)
            ratios.append(bound / truth)
    assert sum(ratios) / len(ratios) < 1.05


EXACT = {
    "one clique: half of its sets": (below(["abcd"]), 8),
    "a matching with its attributes: two of three": (below(["ab", "cd", "ef"]), 6),
    "a matching alone: all": (Structure(DOMAIN, [("a", "b"), ("c", "d"), ("e", "f")]), 3),
    "a triangle: two of three": (Structure(DOMAIN, itertools.combinations("abc", 2)), 2),
    "all pairs: the largest cut": (Structure(DOMAIN, itertools.combinations(NAMES, 2)), 9),
    "all sets of one and two: a cut among one more": (below(itertools.combinations(NAMES, 2)), 12),
    "all sets of up to three": (below(itertools.combinations(NAMES, 3)), 26),
    "two triples apart: half of each": (below(["abc", "def"]), 8),
}


@pytest.mark.parametrize("name", EXACT)
def test_where_it_is_exact(name):
    """The cases that the proof names, and that brute force agrees with."""
    structure, wanted = EXACT[name]
    assert most_odd(structure) == largest(structure) == wanted


def test_the_order_of_cliques_and_of_their_names_does_not_matter():
    """A file's reader recomputes it from cliques in the file's order; here they are shuffled twenty times."""
    draw = random.Random(1)
    cliques = [tuple(sorted(draw.sample(NAMES, draw.randint(1, 3)))) for _ in range(12)]
    bound = most_odd(Structure(DOMAIN, cliques))
    for _ in range(20):
        shuffled = [tuple(draw.sample(one, len(one))) for one in draw.sample(cliques, len(cliques))]
        assert most_odd(Structure(DOMAIN, shuffled)) == bound


def test_the_empty_clique_alone_never_moves():
    """The number of records is the same after an exchange."""
    assert most_odd(Structure(DOMAIN, [()])) == 0
