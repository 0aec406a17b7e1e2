"""Contrasts against brute force over records, how tables are filled up from them, and how many are odd at once."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core import Domain, Structure, StructureError, Tables
from dpgm_core.counting.table_counts import count
from dpgm_core.privacy.contrasts import (
    MAX_ORDER,
    MAX_SUM,
    check_contrasts,
    has_all_contrasts,
    monomials,
    most_odd,
    noise_ratios,
    products,
    spread,
)
from dpgm_core.sources.codes import CodesSource

NAMES = "abcd"
DOMAIN = Domain.from_sizes(dict.fromkeys(NAMES, 2))
LONG = Domain.from_sizes(dict.fromkeys("abcdefghijk", 2))
CLIQUES = st.lists(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True).map(tuple), min_size=1, max_size=4
)
RECORDS = st.lists(st.tuples(*[st.integers(0, 1)] * len(NAMES)), min_size=1, max_size=9)


def true_tables(records, structure):
    return count(CodesSource(data=np.array(records)), structure).tables


def true_sum(records, clique):
    return sum(int(np.prod([1 - 2 * row[NAMES.index(name)] for name in clique])) for row in records)


@settings(max_examples=40)
@given(CLIQUES, st.booleans())
def test_monomials_are_all_sets_inside_the_cliques(cliques, empty):
    """Each once, smallest first, the empty one where N is measured, whatever the order of names."""
    found = monomials(Structure(DOMAIN, cliques), empty=empty).cliques
    inside = {one for one in map(frozenset, powerset(NAMES)) if one and any(one <= set(other) for other in cliques)}
    assert sorted(map(sorted, found)) == sorted(map(sorted, inside | ({frozenset()} if empty else set())))
    assert list(map(len, found)) == sorted(map(len, found))


@settings(max_examples=40)
@given(RECORDS, CLIQUES, st.booleans())
def test_contrasts_are_sums_of_products_and_tell_the_tables(records, cliques, empty):
    """Of counts they are the brute-force sums, whole; all inside a clique, or all but N and N, give the counts back."""
    structure = monomials(Structure(DOMAIN, cliques), empty=empty)
    counts = true_tables(records, structure)
    sums = products(counts)
    assert sums.dtype == np.int64
    assert sums.tolist() == [true_sum(records, clique) for clique in structure.cliques]
    assert spread(structure, sums, float(len(records))).values.tolist() == counts.values.tolist()


@settings(max_examples=30)
@given(st.data(), CLIQUES)
def test_spread_is_the_sum_over_sets_and_products_take_it_back(data, cliques):
    """n(x) = sum of c_T z_T(x) / 2^k, what was not measured 0 and the empty one N, for numbers up to the clamp."""
    structure = Structure(DOMAIN, cliques)
    whole = st.integers(-MAX_SUM, MAX_SUM)
    sums = np.array(data.draw(st.lists(whole, min_size=len(structure.groups), max_size=len(structure.groups))))
    total = data.draw(st.integers(1, MAX_SUM))
    known = {frozenset(): total} | dict(zip(map(frozenset, structure.cliques), sums.tolist(), strict=True))
    tables = spread(structure, sums, float(total))
    for clique, table in tables.items():
        for cell in itertools.product((0, 1), repeat=len(clique)):
            signs = {name: 1 - 2 * code for name, code in zip(clique, cell, strict=True)}
            terms = [known.get(frozenset(part), 0) * np.prod([signs[n] for n in part]) for part in powerset(clique)]
            assert table[cell] == sum(terms) / 2 ** len(clique)
    assert products(tables).tolist() == sums.tolist()


@settings(max_examples=5)
@given(st.integers(0, 2**32))
def test_the_longest_cliques_give_back_the_largest_sums(seed):
    """1,024 sums of up to 2^40 records, with signs at random or all the same: the same whole numbers, bit by bit."""
    names = [f"x{number}" for number in range(MAX_ORDER)]
    structure = monomials(Structure(Domain.from_sizes(dict.fromkeys(names, 2)), [names]), empty=True)
    generator = np.random.default_rng(seed)
    for sums in (generator.integers(-MAX_SUM, MAX_SUM, 2**MAX_ORDER), np.full(2**MAX_ORDER, MAX_SUM)):
        assert np.array_equal(products(spread(structure, sums, 0.0)), sums)


@pytest.mark.parametrize(
    ("structure", "words"),
    [
        (Structure(Domain.from_sizes({"a": 2, "b": 3, "c": 4}), [("a", "b"), ("c",)]), "'b' has 3 and 1 more"),
        (Structure(DOMAIN, [], tied=[[("a", "b"), ("c", "d")]]), "a x b is tied to c x d"),
        (Structure(LONG, [tuple("abcdefghijk")]), "has 11"),
    ],
    ids=["labels", "tied", "long"],
)
def test_what_has_no_contrasts_is_refused_by_name(structure, words):
    """Other than two labels, tied cliques and cliques of 2,048 products; what would do is said."""
    for ask in (check_contrasts, lambda one: monomials(one, empty=False), lambda one: products(Tables.zeros(one))):
        with pytest.raises(StructureError, match=f"{words}.*; leave split = 'even', or "):
            ask(structure)


def test_a_table_is_told_by_all_products_inside():
    """Without one of them its cells are not known."""
    pairs = list(itertools.combinations("abc", 2))
    whole = Structure(DOMAIN, [("a",), ("b",), ("c",), *pairs, ("a", "b", "c")])
    assert all(has_all_contrasts(whole, clique) for clique in whole.cliques)
    assert not has_all_contrasts(Structure(DOMAIN, [("a",), ("b",), *pairs, ("a", "b", "c")]), ("a", "b", "c"))


def test_ratios_are_to_the_best_that_tables_would_do():
    """Weighted least squares over all cells of a chain, each table's noise its own: the same variances to 1e-9."""
    tables = Structure.chain(DOMAIN)
    cells, sums = np.array([1.0, 2.0, 5.0]), monomials(tables, empty=True)
    variances = np.arange(1.0, len(sums.groups) + 1)
    design = []
    for unit in np.eye(len(sums.groups)):
        full = spread(sums, unit, 0.0)
        design.append(np.concatenate([full[clique].reshape(-1) for clique in tables.cliques]))
    weighted = np.array(design) / np.repeat(cells, 4)
    best = np.diag(np.linalg.inv(weighted @ np.array(design).T))
    assert noise_ratios(sums, variances, tables, cells) == pytest.approx(variances / best, rel=1e-9)


def powerset(names):
    return [part for size in range(len(names) + 1) for part in itertools.combinations(names, size)]


SIX = "abcdef"
OF_SIX = Domain.from_sizes(dict.fromkeys(SIX, 2))


def largest(structure):
    """Over all sets F of attributes, the most cliques with an odd number of members in it."""
    flips = [set(one) for size in range(len(SIX) + 1) for one in itertools.combinations(SIX, size)]
    return max(sum(len(flip.intersection(clique)) % 2 for clique in structure.cliques) for flip in flips)


def below(cliques):
    """All sets inside of them, the empty one too."""
    inside = {part for one in cliques for size in range(len(one) + 1) for part in itertools.combinations(one, size)}
    return Structure(OF_SIX, sorted(inside))


def test_the_bound_is_above_the_truth_and_near():
    """300 random structures, the sets inside their cliques too: never below, and 5 % above on average."""
    draw, ratios = random.Random(0), []
    for _ in range(150):
        cliques = [sorted(draw.sample(SIX, draw.randint(1, 4))) for _ in range(draw.randint(1, 7))]
        for structure in (Structure(OF_SIX, cliques), below(cliques)):
            bound, truth = most_odd(structure), largest(structure)
            assert truth <= bound <= len(structure.groups)
            ratios.append(bound / truth)
    assert sum(ratios) / len(ratios) < 1.05


EXACT = {
    "one clique: half of its sets": (below(["abcd"]), 8),
    "a matching with its attributes: two of three": (below(["ab", "cd", "ef"]), 6),
    "a matching alone: all": (Structure(OF_SIX, [("a", "b"), ("c", "d"), ("e", "f")]), 3),
    "a triangle: two of three": (Structure(OF_SIX, itertools.combinations("abc", 2)), 2),
    "all pairs: the largest cut": (Structure(OF_SIX, itertools.combinations(SIX, 2)), 9),
    "all sets of one and two: a cut among one more": (below(itertools.combinations(SIX, 2)), 12),
    "all sets of up to three": (below(itertools.combinations(SIX, 3)), 26),
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
    cliques = [tuple(sorted(draw.sample(SIX, draw.randint(1, 3)))) for _ in range(12)]
    bound = most_odd(Structure(OF_SIX, cliques))
    for _ in range(20):
        shuffled = [tuple(draw.sample(one, len(one))) for one in draw.sample(cliques, len(cliques))]
        assert most_odd(Structure(OF_SIX, shuffled)) == bound


def test_the_empty_clique_alone_never_moves():
    """The number of records is the same after an exchange."""
    assert most_odd(Structure(OF_SIX, [()])) == 0
