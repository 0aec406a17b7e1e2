"""Counting by products of one-hot matrices: the same whole numbers as by blocks, in any order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.counting import statistic as products
from dpgm_core.counting.statistic import PairCounts
from dpgm_core.counting.table_counts import Counts, fastest_sums
from dpgm_core.domain.domain import Domain
from dpgm_core.structure.structure import Structure

BINARY = Domain.from_sizes({f"x{number}": 2 for number in range(46)})
ALL = Structure(BINARY, itertools.combinations(BINARY.names, 2))


@st.composite
def pairs_with_records(draw: st.DrawFn) -> tuple[Structure, list[np.ndarray]]:
    """Cliques of up to two attributes in any order, the empty one and tied ones among them, and a few records."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    domain = Domain.from_sizes({f"x{number}": size for number, size in enumerate(sizes)})
    cliques = draw(st.lists(st.lists(st.sampled_from(domain.names), unique=True, max_size=2), min_size=1, max_size=8))
    tied = []
    for pair in draw(st.lists(st.sampled_from(list(itertools.permutations(domain.names, 2)) or [()]), max_size=2)):
        alike = [
            other for other in itertools.combinations(domain.names, 2) if domain.shape(other) == domain.shape(pair)
        ]
        tied += [alike] if pair and alike else []
    rows = draw(st.integers(0, 20))
    draws = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    structure = Structure(domain, [tuple(clique) for clique in cliques], tied=tied)
    return structure, [draws.integers(0, size, rows, dtype=np.uint8) for size in sizes]


@settings(max_examples=60)
@given(pairs_with_records())
def test_products_count_what_blocks_count(given_: tuple[Structure, list[np.ndarray]]) -> None:
    """Every table of every structure they take, and the number of records; the blocks are held to a dictionary."""
    structure, codes = given_
    names = structure.domain.names
    told = []
    for counts in (PairCounts(structure), Counts.of(structure)):
        columns = [codes[names.index(name)] for name in counts.columns]
        sums = counts.partial(columns, None)
        told.append((counts.tables(sums).values.tolist(), int(sums[-1])))
    assert told[0] == told[1]
    assert told[0][1] == len(codes[0])


def test_sums_are_the_same_in_any_order_and_in_any_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit by bit: each piece is a whole number below 2^24, which float32 adds exactly."""
    codes = list(np.random.default_rng(1).integers(0, 2, (46, 500), dtype=np.uint8))
    counts = PairCounts(ALL)
    whole = counts.partial(codes, None)
    monkeypatch.setattr(products, "_MAX_ROWS", 7)
    assert np.array_equal(counts.partial([column[::-1] for column in codes], None), whole)
    parts = [counts.partial([column[part] for column in codes], None) for part in (slice(0, 3), slice(3, None))]
    assert np.array_equal(parts[0] + parts[1], whole)
    assert whole.dtype == np.int64
    assert products._MAX_ENTRIES < 2**24  # and so are rows, of at least one entry each


def test_they_count_where_it_pays() -> None:
    """Most pairs of many attributes of few labels; blocks count the rest, and all that has cliques of three."""
    assert isinstance(fastest_sums(ALL), PairCounts)
    assert isinstance(fastest_sums(Structure(BINARY, [*ALL.cliques, BINARY.names[:3]])), Counts)
    assert isinstance(fastest_sums(Structure.chain(BINARY)), Counts)
    many = Domain.from_sizes({f"x{number}": 9 for number in range(46)})
    assert isinstance(fastest_sums(Structure(many, itertools.combinations(many.names, 2))), Counts)
