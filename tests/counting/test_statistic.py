"""Sums of pieces add up, and say nothing on the way; products of one-hot matrices count what blocks count."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core import Attribute, Contributions, DataError, Domain, Structure, TooLarge
from dpgm_core.counting import statistic as products
from dpgm_core.counting.clipped_scores import FewCounts
from dpgm_core.counting.descent import GradientSums
from dpgm_core.counting.statistic import CellSums, PairCounts, Sum, pieces, sum_pieces
from dpgm_core.counting.table_counts import Blocks, Counts, TableCounts, count, fastest_sums
from dpgm_core.counting.weights import WeightedCounts
from dpgm_core.privacy.descent import NodeGradients, Regressions
from dpgm_core.sources import as_source


def test_several_batches_and_threads_add_up():
    records = np.random.default_rng(1).integers(0, 7, size=(300_001, 5), dtype=np.uint8)
    structure = Structure.complete(Domain.from_sizes(dict.fromkeys("abcde", 7)))
    tables = count(as_source(records), structure).tables
    for (first, second), table in tables.items():
        pair = records[:, "abcde".index(first)].astype(int) * 7 + records[:, "abcde".index(second)]
        np.testing.assert_array_equal(np.bincount(pair, minlength=49), table.ravel())


def test_no_records_count_zero():
    counted = count(as_source(np.zeros((0, 2), int)), Structure.chain(Domain.from_sizes({"a": 2, "b": 2})))
    assert counted.records == 0 and not counted.tables.values.any()


def test_a_structure_too_large_says_its_size():
    """A table that cannot exist is refused in one line, before records are read."""
    domain = Domain.from_sizes({f"x{i}": 1000 for i in range(5)})
    with pytest.raises(TooLarge, match="1,000,000,000,000,001 cells"):
        count(as_source(np.zeros((1, 5), int)), Structure(domain, [domain.names]))


CHAIN = Structure.chain(Domain.from_sizes({"a": 2, "b": 3}, unknown={"a": 1, "b": 2}))


def test_progress_learns_nothing_of_the_records():
    """The calls are the same for no record and for many."""

    def calls(rows):
        seen = []
        counts, source = Counts.of(CHAIN), as_source(np.zeros((rows, 2), np.uint8))
        sum_pieces(counts, pieces(source, CHAIN.domain, counts.columns), lambda *call: seen.append(call))
        return seen

    assert calls(0) == calls(300_000)


# What may be said of a finished sum.

ABC = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 1})
PAIRS = Structure(ABC, [("a", "b"), ("c", "b"), ("d", "a"), ()])
TIED = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("c",)], tied=[[("a", "b"), ("b", "c")]])
# "none" is left out of shares where all attributes of a clique have it
EMPTY = Structure(
    Domain([Attribute.of_labels(name, ["none", "x"], unknown="x", null="x") for name in "ab"] + [ABC["c"]]),
    [("a", "b"), ("b", "c"), ("c",)],
)


def gradients(loss, structure, clip):
    own = Regressions(candidates=structure, loss=loss)
    weights = own.zeros()
    weights[own.allowed] = np.arange(own.allowed.sum()) % 3 - 1
    return GradientSums(NodeGradients(regressions=own, weights=weights, radius=9, clip=clip), "zcdp")


SUMS: dict[str, Callable[[], Sum]] = {
    "blocks": lambda: Counts(PAIRS, Blocks(columns=ABC.names, sizes=(2, 3, 2, 1), positions=((0, 1), (1, 2), (0, 3)))),
    "blocks of nothing": lambda: Counts.of(Structure(ABC, [()])),
    "tables": lambda: TableCounts(PAIRS),
    "products": lambda: PairCounts(PAIRS),
    "few": lambda: FewCounts(TIED),
    "shares by clique": lambda: WeightedCounts(TIED, Contributions(per="clique", grid=60)),
    "shares by group": lambda: WeightedCounts(PAIRS, Contributions(per="group", grid=61)),
    "shares with nothing": lambda: WeightedCounts(EMPTY, Contributions(per="clique", grid=60, empty="none")),
    "logistic": lambda: gradients("logistic", Structure(TIED.domain, [("a", "b", "c")]), None),
    "softmax": lambda: gradients("softmax", Structure(ABC, [("a", "b"), ("b", "c")]), "0.3"),
    "by pairs": lambda: gradients("pairs", Structure(ABC, [("a", "b"), ("b", "c")]), "0.3"),
}


def sums_of(statistic, domain, persons, seed):
    draws = np.random.default_rng(seed)
    lengths = draws.integers(1, 5, persons)
    codes = [draws.integers(0, domain[name].size, lengths.sum(), dtype=np.uint8) for name in statistic.columns]
    return statistic.partial(codes, lengths)


def domain_of(statistic):
    if isinstance(statistic, GradientSums):
        return statistic.gradients.regressions.candidates.domain
    return statistic.structure.domain


@pytest.mark.parametrize("name", SUMS)
@settings(max_examples=15)
@given(st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_no_true_sum_is_refused(name, persons, seed):
    """Whatever the records are, none among them: `check` is silent, and leaves the sums as they are."""
    statistic = SUMS[name]()
    sums = sums_of(statistic, domain_of(statistic), persons, seed)
    before = sums.copy()
    statistic.check(sums)
    assert np.array_equal(sums, before)
    rows = int(np.random.default_rng(seed).integers(1, 5, persons).sum())
    assert statistic.records(sums) in (None, rows)
    assert (statistic.records(sums) is None) == isinstance(statistic, (CellSums, GradientSums))


def spoilt(name, statistic, sums):
    """The sum with a part of the records missing in one table, there twice in it, or off by one in a cell."""
    half = sums_of(statistic, domain_of(statistic), 30, 99)
    if isinstance(statistic, GradientSums):
        starts = [0, statistic.gradients.weights.shape[1]]  # the first row's, and the other rows'
    elif isinstance(statistic, PairCounts):
        starts = [0, 4]
    elif isinstance(statistic, Counts):
        starts = [0, statistic.blocks.block_cells()[0]]
    else:
        starts = [0, getattr(statistic, "structure", PAIRS).sizes[0]]
    found = {}
    for start, end in itertools.pairwise([*starts, len(sums) - (name in ("blocks", "tables", "products"))]):
        for what, sign in (("lost", -1), ("twice", 1)):
            wrong = sums.copy()
            wrong[start:end] += sign * half[start:end]
            found[f"{what} from {start}"] = wrong
    for place in range(len(sums)):
        for step in (-1, 1):
            wrong = sums.copy()
            wrong[place] += step
            found[f"cell {place} {step:+}"] = wrong
    return found


@pytest.mark.parametrize("name", sorted(set(SUMS) - {"blocks of nothing", "shares with nothing"}))
def test_sums_that_lost_or_repeated_something_are_refused(name):
    """A table without some of the records, with them twice, and one off by one in any cell, in the same words."""
    statistic = SUMS[name]()
    sums = sums_of(statistic, domain_of(statistic), 200, 5)
    if isinstance(statistic, GradientSums):
        assert sums.any()
    passed = set()
    words = set()
    for what, wrong in spoilt(name, statistic, sums).items():
        try:
            statistic.check(wrong)
        except DataError as error:
            words.add(str(error))
        else:
            passed.add(what)
    if isinstance(statistic, GradientSums):  # what all columns of a row lack leaves a sum of other records
        passed = {what for what in passed if "cell" in what}
    if isinstance(statistic, PairCounts):  # one more in all: a record of first labels, which have no lines
        passed -= {f"cell {len(sums) - 1} {step:+}" for step in (-1, 1)}
    assert passed == set()
    assert len(words) == 1 and not any(letter.isdigit() for letter in words.pop())


@pytest.mark.parametrize("name", ["shares with nothing", "blocks of nothing"])
def test_no_count_is_negative(name):
    statistic = SUMS[name]()
    sums = sums_of(statistic, domain_of(statistic), 3, 1)
    sums[-1] = -1
    with pytest.raises(DataError, match="fit together"):
        statistic.check(sums)


def test_a_table_of_the_cells_that_count_is_held_to_nothing():
    """Persons may have nothing in one table and all of them be in the next."""
    statistic = WeightedCounts(EMPTY, Contributions(per="clique", grid=60, empty="none"))
    codes = [np.zeros(4, np.uint8), np.zeros(4, np.uint8), np.ones(4, np.uint8)]
    sums = statistic.partial(codes, np.array([1, 3]))
    assert sums[:4].sum() == 0 and sums[-2:].sum() == 120
    statistic.check(sums)
    sums[-1] += 1
    with pytest.raises(DataError):
        statistic.check(sums)


def test_labels_that_cannot_meet_are_told_from_their_product():
    """Products that are symmetric and whose counts fit, but of no one-hot matrix, are refused."""
    statistic = PairCounts(PAIRS)
    sums = sums_of(statistic, ABC, 50, 3)
    width = round(len(sums) ** 0.5)
    for one, other in itertools.combinations(range(width), 2):  # both halves alike
        wrong = sums.reshape(width, width).copy()
        wrong[one, other] = wrong[other, one] = wrong[one, other] + 1000
        with pytest.raises(DataError):
            statistic.check(wrong.ravel())


BINARY = Domain.from_sizes({f"x{number}": 2 for number in range(46)})
ALL = Structure(BINARY, itertools.combinations(BINARY.names, 2))


@st.composite
def pairs_with_records(draw):
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
def test_products_count_what_blocks_count(given_):
    structure, codes = given_
    names = structure.domain.names
    told = []
    for counts in (PairCounts(structure), Counts.of(structure)):
        columns = [codes[names.index(name)] for name in counts.columns]
        sums = counts.partial(columns, None)
        told.append((counts.tables(sums).values.tolist(), int(sums[-1])))
    assert told[0] == told[1]
    assert told[0][1] == len(codes[0])


def test_sums_are_the_same_in_any_order_and_in_any_pieces(monkeypatch):
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


def test_they_count_where_it_pays():
    """Most pairs of many attributes of few labels; blocks count the rest, and all that has cliques of three."""
    assert isinstance(fastest_sums(ALL), PairCounts)
    assert isinstance(fastest_sums(Structure(BINARY, [*ALL.cliques, BINARY.names[:3]])), Counts)
    assert isinstance(fastest_sums(Structure.chain(BINARY)), Counts)
    many = Domain.from_sizes({f"x{number}": 9 for number in range(46)})
    assert isinstance(fastest_sums(Structure(many, itertools.combinations(many.names, 2))), Counts)
