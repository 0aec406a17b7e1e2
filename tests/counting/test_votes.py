"""Votes: distances that one person moves by one at most, blocks that nobody else changes, and what one block votes."""

import hashlib
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from dpgm_core import Budget, Domain, Structure, Terms
from dpgm_core.counting import votes as module
from dpgm_core.counting.rows import Persons
from dpgm_core.counting.votes import (
    _binary,
    _labelled,
    _products,
    agreed_edges,
    agreed_graph,
    agreement_by_threshold,
    block_edges,
    blocks_of,
    find_agreement,
    pair_sums,
    votes_of,
)
from dpgm_core.privacy.votes import EdgeVotes, ThresholdVotes, publication_odds

ROWS = list(itertools.product([False, True], repeat=3))


def law(found, odds):
    q = odds[min(found.distance, len(odds) - 1)]
    return {found.edges: q, None: 1 - q}


def broken(agree, budget=("1", "1/10")):
    """Pairs of vote matrices of 3 blocks and 3 pairs that differ in one row and break what is claimed of them."""
    epsilon, delta = map(Fraction, budget)
    odds = publication_odds(Budget.approx(*budget))
    e = sum((epsilon**k / math.factorial(k) for k in range(80)), Fraction(0))
    found = {rows: agree(np.array(rows)) for rows in itertools.product(ROWS, repeat=3)}
    laws = {rows: law(one, odds) for rows, one in found.items()}
    for rows, one in found.items():
        for place, other in itertools.product(range(3), ROWS):
            near = (*rows[:place], other, *rows[place + 1 :])
            next_door = found[near]
            apart = abs(one.distance - next_door.distance) > 1
            flips = one.edges != next_door.edges and max(one.distance, next_door.distance) > 1
            excess = sum(max(Fraction(0), p - e * laws[near].get(what, Fraction(0))) for what, p in laws[rows].items())
            if apart or flips or excess > delta:
                yield rows, near


@pytest.mark.sampled(2)
@pytest.mark.parametrize("agree", [agreed_edges, agreed_graph])
def test_one_person_moves_the_distance_by_one(agree):
    """All 512 votes and their neighbours: Lipschitz, no new graph but from 1 to 1, and (1, 1/10)-DP, in fractions."""
    assert not list(broken(agree))


@pytest.mark.parametrize(
    ("agree", "wrong"),
    [(agreed_graph, lambda d: 2 * d), (agreed_edges, lambda d: 2 * d), (agreed_edges, lambda d: d + 1)],
)
def test_wrong_distances_are_found_out(agree, wrong):
    """The gap instead of half of it; a distance that counts votes twice; one that is a vote too large."""
    assert next(broken(lambda votes: evolve(agree(votes), distance=wrong(agree(votes).distance))), None)


def test_the_distance_of_edge_votes_is_the_true_one():
    """So many blocks, and no fewer, must change their votes for another graph, for 2 to 5 blocks: no larger one is."""
    for blocks in (2, 3, 4, 5):
        for votes in itertools.product(list(itertools.product([False, True], repeat=2)), repeat=blocks):
            found = agreed_edges(np.array(votes))
            least = min(
                sum(one != other for one, other in zip(column, changed, strict=True))
                for column, edge in zip(zip(*votes, strict=True), found.edges, strict=True)
                for changed in itertools.product([False, True], repeat=blocks)
                if (2 * sum(changed) > blocks) != edge
            )
            assert found.distance == least


@pytest.mark.parametrize("move", [1, 2, 4])
def test_one_person_moves_a_threshold_by_one(move):
    """Every two sums within 12 and every change of a person's, at any threshold; a gap divided by less is found out."""
    for threshold in (Fraction(5), Fraction(17, 4)):
        sums = range(-12, 13)
        found = {s: agreement_by_threshold(np.array([s]), threshold, move) for s in sums}
        for one, other in itertools.product(sums, sums):
            if abs(one - other) <= move:
                near, far = found[one], found[other]
                assert abs(near.distance - far.distance) <= 1
                assert near.edges == far.edges or near.distance == far.distance == 1
        for s in sums:
            assert found[s].edges == (abs(s) > threshold,)
        if move > 1:
            less = {s: agreement_by_threshold(np.array([s]), threshold, move - 1) for s in sums}
            assert any(
                abs(less[s].distance - less[s + move].distance) > 1
                or (less[s].edges != less[s + move].edges and max(less[s].distance, less[s + move].distance) > 1)
                for s in range(-12, 13 - move)
            )


DOMAIN = Domain.from_sizes({"a": 2, "b": 2, "c": 2})
PAIRS = Structure.complete(DOMAIN)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("rows", [1, 2])
def test_neighbours_of_threshold_votes(neighbours, rows):
    """All persons of up to r rows: the distance moves by at most 1, and the graph changes from 1 to 1."""
    terms = Terms(neighbours=neighbours, total=6, person="id" if rows > 1 else None, rows_per_person=rows)
    voter = ThresholdVotes(pairs=PAIRS, tau=0.3)
    one_row = list(itertools.product([0, 1], repeat=3))
    persons = [list(some) for count in range(1, rows + 1) for some in itertools.product(one_row, repeat=count)]
    base = [[(0, 0, 0)], [(1, 1, 0)], [(0, 0, 1)], [(0, 1, 1)], [(1, 1, 1)]]

    def found(people):
        lengths = np.array([len(one) for one in people])
        codes = np.array([row for one in people for row in one], np.uint8)
        return find_agreement(voter, Persons(DOMAIN.names, list(codes.T), lengths), np.zeros(0, np.uint64), terms)

    results = [found([*base, one]) for one in persons]
    others = results if neighbours == "replace-one" else [found(base)]
    for one, other in itertools.product(results, others):
        assert abs(one.distance - other.distance) <= 1
        assert one.edges == other.edges or one.distance == other.distance == 1


def test_sums_of_signs_are_exact(monkeypatch):
    """Against integers, in batches of 7 and all at once."""
    codes = np.random.default_rng(0).integers(0, 2, (500, 3))
    signs = 1 - 2 * codes
    wanted = [int(signs[:, i] @ signs[:, j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    part = [(list(codes.T.astype(np.uint8)), None)]
    assert pair_sums(PAIRS, part).tolist() == wanted
    monkeypatch.setattr(module, "_BATCH_ROWS", 7)
    assert pair_sums(PAIRS, part).tolist() == wanted and pair_sums(PAIRS, []).tolist() == [0, 0, 0]


def fingerprint(codes, sizes, pairs, **_):
    """Votes that differ wherever the rows of a block differ as a multiset (but for one in 2^28)."""
    rows = sorted(zip(*(column.tolist() for column in codes), strict=True))
    bits = hashlib.sha256(repr(rows).encode()).digest()
    return np.unpackbits(np.frombuffer(bits, np.uint8))[: len(pairs)].astype(bool)


WIDE = Structure.complete(Domain.from_sizes({f"x{number}": 2 for number in range(8)}))


@pytest.fixture
def seen(monkeypatch):
    """Codes of sixty persons, where each begins, their words, and the votes of nine blocks; all of them, and others."""
    monkeypatch.setattr(module, "block_edges", fingerprint)
    draw = np.random.default_rng(1)
    lengths = draw.integers(1, 4, 60)
    codes = draw.integers(0, 2, (int(lengths.sum()), 8)).astype(np.uint8)
    words = draw.integers(0, 2**64, 60, np.uint64)
    voter = EdgeVotes(pairs=WIDE, blocks=9)

    def votes(codes, lengths, words=None):
        blocks = np.arange(len(lengths)) % 9 if words is None else blocks_of(words, 9)
        return votes_of(voter, list(codes.T), lengths, blocks)

    return codes, lengths, np.concatenate([[0], np.cumsum(lengths)]), words, votes


def test_a_person_less_or_replaced_changes_one_block(seen):
    """The others keep their coins and their blocks (by position nearly all blocks would change), and the newcomer, of
    more rows, has the coin of the one who left."""
    codes, lengths, ends, words, votes = seen
    whole, by_place = votes(codes, lengths, words), votes(codes, lengths)
    for person in range(60):
        first, last = ends[person : person + 2]
        rest, fewer = np.delete(codes, np.s_[first:last], axis=0), np.delete(lengths, person)
        assert (whole != votes(rest, fewer, np.delete(words, person))).any(axis=1).sum() == 1
        if person < 40:
            assert (by_place != votes(rest, fewer)).any(axis=1).sum() > 5
        if person % 7 == 0:
            other = np.concatenate([codes[:first], 1 - codes[first:last], codes[:1], codes[last:]])
            longer = lengths + (np.arange(60) == person)
            assert (whole != votes(other, longer, words)).any(axis=1).sum() == 1


def test_the_order_of_persons_does_not_matter(seen):
    codes, lengths, ends, words, votes = seen
    order = np.random.default_rng(2).permutation(60)
    rows = np.concatenate([np.arange(ends[one], ends[one + 1]) for one in order])
    assert (votes(codes, lengths, words) == votes(codes[rows], lengths[order], words[order])).all()


def test_blocks_are_about_alike():
    """Chi-square of 90 blocks of 45,000 persons: below the 1 - 1e-6 quantile of 89 degrees of freedom, 165."""
    words = np.random.default_rng(3).integers(0, 2**64, 45_000, np.uint64)
    counts = np.bincount(blocks_of(words, 90), minlength=90)
    assert len(counts) == 90 and ((counts - 500) ** 2 / 500).sum() < 165


def test_no_records_are_no_graph():
    none = Persons(DOMAIN.names, [np.zeros(0, np.uint8)] * 3, None)
    for voter in (EdgeVotes(pairs=PAIRS, blocks=3), ThresholdVotes(pairs=PAIRS, tau=0.3)):
        found = find_agreement(voter, none, np.zeros(0, np.uint64), Terms(neighbours="add-remove", total=100))
        assert not any(found.edges)


def test_a_matching_is_recovered():
    """8 attributes in 4 pairs of .4, at a distance near 20; the paper's mode on the same votes stays below 10."""
    draw = np.random.default_rng(1)
    codes = draw.integers(0, 2, (90 * 48, 8))
    for i in range(0, 8, 2):
        codes[:, i + 1] = np.where(draw.random(len(codes)) < 1 / (1 + np.exp(-0.8)), codes[:, i], 1 - codes[:, i])
    words = draw.integers(0, 2**64, len(codes), np.uint64)
    votes = votes_of(EdgeVotes(pairs=WIDE, blocks=90), list(codes.astype(np.uint8).T), None, blocks_of(words, 90))
    found = agreed_edges(votes)
    edges = [pair for pair, edge in zip(WIDE.cliques, found.edges, strict=True) if edge]
    assert edges == [("x0", "x1"), ("x2", "x3"), ("x4", "x5"), ("x6", "x7")] and found.distance >= 15
    assert agreed_graph(votes).distance < 10


PLACES = [(0, 1), (0, 2), (1, 2)]
TRIANGLE = _products(3, tuple(PLACES), 2)


def chain(count, seed, flips=0.2):
    """Three binary attributes, each a copy of the one before with so many flips."""
    draw = np.random.default_rng(seed)
    columns = [draw.integers(0, 2, count)]
    for _ in range(2):
        columns.append(np.where(draw.random(count) < flips, 1 - columns[-1], columns[-1]))
    return [column.astype(np.uint8) for column in columns]


def strengths_by_another_library(columns, pairs, order, penalty):
    """|A| of each pair by L-BFGS on positive and negative parts; products by the definition, all subsets looked at."""
    p = len(columns)
    signs = 1.0 - 2.0 * np.stack(columns, axis=1)
    sets = [
        one
        for size in range(2, order + 1)
        for one in itertools.combinations(range(p), size)
        if all(pair in pairs for pair in itertools.combinations(one, 2))
    ]

    def node(i):
        mine = [tuple(j for j in one if j != i) for one in sets if i in one]
        design = np.stack([*(signs[:, rest].prod(axis=1) for rest in mine), np.ones(len(signs))], axis=1)
        free = len(mine)

        def loss(parts):
            weights = parts[: free + 1] - parts[free + 1 :]
            value = np.log1p(np.exp(-signs[:, i] * (design @ weights))).mean()
            return value + penalty * (parts[:free].sum() + parts[free + 1 : -1].sum())

        count = 2 * (free + 1)
        found = minimize(loss, np.zeros(count), method="L-BFGS-B", bounds=[(0, None)] * count, tol=1e-12).x
        return {tuple(sorted((i, *rest))): found[k] - found[free + 1 + k] for k, rest in enumerate(mine)}

    weights = [node(i) for i in range(p)]
    strength = {one: abs(sum(weights[i][one] for i in one)) / (2 * len(one)) for one in sets}
    return [max(value for one, value in strength.items() if set(pair) <= set(one)) for pair in pairs]


@pytest.mark.parametrize("order", [2, 3, 4])
def test_the_penalised_minimum_is_found(order):
    """Of a chain of three and a fourth that is their product, mostly; without the pair (1, 3) no product has both."""
    columns, penalty = chain(300, 1), 0.05
    flips = np.random.default_rng(2).random(300) < 0.2
    columns.append(columns[0] ^ columns[1] ^ columns[2] ^ flips)
    for left_out in ((), ((1, 3),)):
        pairs = [pair for pair in itertools.combinations(range(4), 2) if pair not in left_out]
        wanted = strengths_by_another_library(columns, pairs, order, penalty)
        assert _binary(columns, _products(4, tuple(pairs), order), penalty) == pytest.approx(wanted, abs=3e-4)
        assert wanted[0] > 0.3 and (left_out or order < 4 or min(wanted) > 0.3)


@pytest.mark.parametrize("coupling", [0.4, -0.7])
def test_a_parity_of_three_is_found_by_order_3_alone(coupling):
    """Rows of exp(A x y z), where no pair correlates: A as in closed form; a coin beside is in no edge."""
    shares = np.array(
        [1 / (1 + np.exp(-2 * coupling * (-1) ** sum(row[:3]))) for row in itertools.product([0, 1], repeat=4)]
    )
    times = np.round(1000 * shares).astype(int)
    rows = np.repeat(np.array(list(itertools.product([0, 1], repeat=4)), np.uint8), times, axis=0)
    pairs, penalty = list(itertools.combinations(range(4), 2)), 0.03
    share = times[shares > 0.5].sum() / times.sum() - penalty
    wanted = [math.log(share / (1 - share)) / 2 * (3 not in pair) for pair in pairs]
    assert _binary(list(rows.T), _products(4, tuple(pairs), 3), penalty) == pytest.approx(wanted, abs=1e-6)
    for order, found in (
        (2, [False] * 6),
        (3, [3 not in pair for pair in pairs]),
        (4, [3 not in pair for pair in pairs]),
    ):
        votes = block_edges(list(rows.T), [2] * 4, pairs, least=0.4, penalty=0.2, order=order)
        assert votes.tolist() == found
    without = [pair for pair in pairs if pair != (1, 2)]  # no candidate, so no product has both
    assert not block_edges(list(rows.T), [2] * 4, without, least=0.4, penalty=0.2, order=3).any()


@settings(max_examples=40)
@given(data=st.data())
def test_one_person_changes_one_block_of_order_3(data):
    """A person who leaves, or is replaced: regressions on products, of three blocks."""
    count = data.draw(st.integers(2, 12))
    seed, person = data.draw(st.integers(0, 2**32 - 1)), data.draw(st.integers(0, count - 1))
    draw = np.random.default_rng(seed)
    codes, words = draw.integers(0, 2, (count, 3)).astype(np.uint8), draw.integers(0, 2**64, count, np.uint64)
    voter = EdgeVotes(pairs=PAIRS, blocks=3, least=0.05, order=3)
    whole = votes_of(voter, list(codes.T), None, blocks_of(words, 3))
    left = votes_of(voter, list(np.delete(codes, person, 0).T), None, blocks_of(np.delete(words, person), 3))
    replaced = codes.copy()
    replaced[person] = data.draw(st.tuples(*[st.integers(0, 1)] * 3))
    other = votes_of(voter, list(replaced.T), None, blocks_of(words, 3))
    order = draw.permutation(count)
    same = votes_of(voter, list(codes[order].T), None, blocks_of(words[order], 3))
    assert all((whole != one).any(axis=1).sum() <= 1 for one in (left, other)) and (whole == same).all()


def test_two_labels_are_labels_like_any_other():
    columns = chain(300, 2)
    one, other = _binary(columns, TRIANGLE, 0.03), _labelled(columns, [2, 2, 2], PLACES, 0.03)
    assert one == pytest.approx(other, abs=2e-3)


def test_labels_of_three_kinds():
    """Sizes 3, 2 and 4: the edge that there is, in a table with an entry of log(4) before centring."""
    draw = np.random.default_rng(3)
    a = draw.integers(0, 3, 1000)
    b = np.where(draw.random(1000) < 0.6, a > 0, draw.integers(0, 2, 1000))
    columns = [a.astype(np.uint8), b.astype(np.uint8), draw.integers(0, 4, 1000).astype(np.uint8)]
    votes = block_edges(columns, [3, 2, 4], PLACES, least=0.4, penalty=0.2)
    assert votes.tolist() == [True, False, False]


def test_what_an_attribute_is_not_regressed_on_explains_nothing():
    """Without the two pairs between them the ends of a chain look like neighbours."""
    columns = chain(2000, 4, flips=0.1)
    assert block_edges(columns, [2, 2, 2], PLACES, least=0.6, penalty=0.2).tolist() == [True, False, True]
    assert block_edges(columns, [2, 2, 2], [(0, 2)], least=0.6, penalty=0.2).tolist() == [True]


@pytest.mark.parametrize("order", [2, 3])
def test_the_order_of_rows_does_not_matter(order):
    """To the last bit of what is compared with least / 2."""
    columns, seen = chain(301, 5), []

    class Least:
        """A bound that notes what is compared with it, and its half."""

        __array_ufunc__ = None

        def __truediv__(self, other):
            return self

        def __lt__(self, strengths):
            seen.append(strengths.tobytes())
            return strengths > 0.2

    unsorted = set()
    for seed in range(4):
        rows = np.random.default_rng(seed).permutation(301)
        shuffled = [column[rows] for column in columns]
        block_edges(shuffled, [2, 2, 2], PLACES, least=Least(), penalty=0.2, order=order)
        unsorted.add(_binary(shuffled, _products(3, tuple(PLACES), order), 0.02).tobytes())
    assert len(seen) == 4 and len(set(seen)) == 1
    assert len(unsorted) > 1  # left as they are, rows in another order do make other bits


class Broken:
    """A column that fails when it is looked at."""

    def __len__(self):
        return 5

    def __array__(self, *args, **kwargs):
        raise MemoryError("what the record says")


@pytest.mark.parametrize(
    "columns",
    [
        [np.zeros(0, np.uint8)] * 3,
        [np.zeros(1, np.uint8)] * 3,
        [np.zeros(40, np.uint8)] * 3,
        [np.arange(40) % 2, np.ones(40, np.uint8), np.ones(40, np.uint8)],
        [Broken()] * 3,
        [np.arange(40) % 2, np.arange(39) % 2, np.arange(40) % 2],
        [np.full(40, np.nan), np.full(40, np.inf), np.arange(40) % 2],
    ],
    ids=["empty", "one row", "constant", "one varies", "broken", "ragged", "no numbers"],
)
@pytest.mark.parametrize(("sizes", "order"), [([2, 2, 2], 2), ([2, 3, 2], 2), ([2, 2, 2], 3)])
def test_a_block_that_fails_votes_no_edge(columns, sizes, order):
    """No error comes out, also where floats that overflow are errors."""
    with np.errstate(all="raise"):
        assert not block_edges(columns, sizes, PLACES, least=0.4, penalty=0.2, order=order).any()
