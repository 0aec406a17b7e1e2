"""Scores from true tables: how far one person moves each, by brute force; the same bits in any order of the records."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core import Domain, Structure, Tables, Terms
from dpgm_core.counting.scores import distances, mean_distances, whole_scores
from dpgm_core.counting.table_counts import count
from dpgm_core.privacy.selection import SCORE_GRID, TableDistance
from dpgm_core.sources import as_source
from dpgm_core.sources.csv import CsvSource
from tests.fixtures import Batches

DOMAIN = Domain.from_sizes({"a": 2, "b": 2, "c": 2})
ALL = Structure(DOMAIN, [("a",), ("b", "c"), ("a", "b", "c")])
CELLS = np.array(list(itertools.product(range(2), repeat=3)))
GRIDS = [2**power for power in range(11)]


def tables(codes):
    return count(as_source(np.asarray(codes).reshape(-1, 3)), ALL).tables


def random_scores(rng, weighted=True, contrast=False):
    """Of all three candidates, with a prediction, weights and offsets that have nothing round about them."""
    more = {"contrast": contrast}
    if weighted:
        more |= {
            "weights": tuple(Fraction(int(one), 997) for one in rng.integers(1, 997, 3)),
            "offsets": tuple(rng.normal(0, 9, 3)),
        }
    return TableDistance(candidates=ALL, predicted=rng.normal(3, 5, ALL.cells), **more)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("contrast", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("neighbours", "rows"), [("add-remove", 1), ("add-remove", 2), ("replace-one", 1), ("replace-one", 2)]
)
def test_one_person_moves_each_score_by_what_the_temperature_counts_with(neighbours, rows, weighted, contrast):
    """Every person beside 0, 3 and 40 others: at most grid times `move`, and somewhere as much, up and down."""
    terms = Terms(neighbours=neighbours, person="id" if rows > 1 else None, rows_per_person=rows)
    rng = np.random.default_rng(5)
    persons = [np.array(one) for one in itertools.combinations_with_replacement(CELLS, rows)]
    reached = set()
    for others in (rng.integers(0, 2, (size, 3)) for size in (0, 3, 40)):
        scores = random_scores(rng, weighted, contrast)
        grid, person = int(rng.choice(GRIDS)), scores.move(terms)
        apart = [distances(tables(np.concatenate([others, one])), scores) for one in persons]
        before = [distances(tables(others), scores)] if neighbours == "add-remove" else apart
        for one, other in itertools.product(apart, before):
            assert np.abs(one - other).max() <= SCORE_GRID * person
            for unit in {grid, 1, 1024}:
                moved = whole_scores(one, scores, unit) - whole_scores(other, scores, unit)
                assert np.abs(moved).max() <= unit * person
            reached |= set(np.sign(moved)) | ({"all"} if np.abs(one - other).max() == SCORE_GRID * person else set())
    assert reached >= {1, -1, "all"}


@pytest.mark.parametrize(("neighbours", "person"), [("add-remove", 1), ("replace-one", 2)])
def test_means_over_four_rows_move_as_one_record(neighbours, person):
    """Tables in quarters, as of two related tables: a person of four rows moves a mean by at most what one row does."""
    rng, reached = np.random.default_rng(6), 0
    persons = [np.array(one) for one in itertools.combinations_with_replacement(CELLS[::3], 4)]
    others = rng.integers(0, 2, (20, 3))
    scores = random_scores(rng)
    means = [count(as_source(np.concatenate([others, one])), ALL).mean(4).tables for one in [*persons, CELLS[:0]]]
    *apart, without = (distances(mean, scores) for mean in means)
    exact = [
        abs(Fraction(float(cell)) * 1024 - int(m)) for cell, m in zip(means[0].values, scores.rounded, strict=True)
    ]
    assert [sum(exact[part]) for part in ALL.slices] == apart[0].tolist()
    for one, other in itertools.product(apart, [without] if person == 1 else apart):
        assert np.abs(one - other).max() <= SCORE_GRID * person
        reached = max(reached, np.abs(one - other).max())
    assert reached == SCORE_GRID * person


@given(
    st.lists(st.integers(0, 2**62), min_size=ALL.cells, max_size=ALL.cells),
    st.integers(0, ALL.cells - 1),
    st.sampled_from(GRIDS),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_a_cell_more_moves_a_score_and_a_mean_by_a_record(counts, place, grid, seed, contrast):
    """Also far beyond any real table, where distances are cut."""
    other = np.array(counts)
    other[place] += 1
    both = [Tables(ALL, np.asarray(given, np.int64)) for given in (counts, other)]
    scores, means = random_scores(np.random.default_rng(seed), contrast=contrast), mean_scores(1)
    one, two = (distances(given, scores) for given in both)
    assert np.abs(one - two).max() <= SCORE_GRID
    assert np.abs(whole_scores(one, scores, grid) - whole_scores(two, scores, grid)).max() <= grid
    one, two = (mean_distances(distances(given, means), means) for given in both)
    assert np.abs(one - two).max() <= SCORE_GRID


def test_scores_are_what_they_say():
    """w (|n - m|_1 - b) in units of 1/16, rounded down, worked out with fractions."""
    rng = np.random.default_rng(6)
    scores, counts = random_scores(rng), tables(rng.integers(0, 2, (200, 3)))
    most = max(scores.weights)
    expected = []
    for number, part in enumerate(ALL.slices):
        apart = sum(
            abs(int(n) - Fraction(round(max(0.0, m) * 1024), 1024))
            for n, m in zip(counts.values[part], scores.predicted[part], strict=True)
        )
        weight = Fraction(max(1, round(scores.weights[number] / most * 4096)), 4096)
        offset = Fraction(round(scores.offsets[number] * 1024), 1024)
        expected.append((weight * (apart - offset) * 16).__floor__())
    assert whole_scores(distances(counts, scores), scores, 16).tolist() == expected


def every_table(scores, mean, rows):
    """The means of all tables of up to 3 rows over 2 x 2 x 2 codes, without another person and with every person of up
    to so many rows, (tables, 1 + persons, groups)."""
    of_row = np.stack([tables(cell).values for cell in CELLS])  # counts add up
    multisets = [
        list(places) for size in range(4) for places in itertools.combinations_with_replacement(range(8), size)
    ]
    persons = [[], *(one for one in multisets if 0 < len(one) <= rows)]
    found = {}

    def of(places):
        counts = of_row[places].sum(axis=0)
        if counts.tobytes() not in found:
            found[counts.tobytes()] = mean(distances(Tables(ALL, counts), scores), scores)
        return found[counts.tobytes()]

    return np.array([[of(others + person) for person in persons] for others in multisets])


def worst_moves(scores, mean, rows):
    """How far one person of up to so many rows moves the means: one more, and one in place of another; and the L2 norm
    of the first."""
    means = every_table(scores, mean, rows)
    more = means[:, 1:] - means[:, :1]
    return np.abs(more).max(), np.ptp(means, axis=1).max(), np.sqrt((more.astype(float) ** 2).sum(axis=-1)).max()


def mean_scores(seed, contrast=False):
    """Two groups of candidates, with weights that 1/4096 does not divide."""
    groups = ((0, 1, 2), (2, 1))
    rng = np.random.default_rng(seed)
    weights = tuple(Fraction(int(one), 997) for one in rng.integers(1, 997, 3))
    predicted = rng.normal(1, 2, ALL.cells)
    return TableDistance(candidates=ALL, predicted=predicted, weights=weights, groups=groups, contrast=contrast)


@pytest.mark.parametrize("contrast", [False, True])
@pytest.mark.parametrize("rows", [1, 2])
def test_one_person_moves_a_mean_by_what_the_noise_counts_with(rows, contrast):
    """All neighbours of all tables of up to 3 rows: by at most `move`, k of them by sqrt(k) times that; attained."""
    more, other = (
        SCORE_GRID * TableDistance.move(Terms(neighbours=how, person="id", rows_per_person=rows))
        for how in ("add-remove", "replace-one")
    )
    reached = [worst_moves(mean_scores(seed, contrast), mean_distances, rows) for seed in range(2)]
    assert all(one <= more and two <= other and l2 <= more * 2**0.5 for one, two, l2 in reached)
    near = TableDistance(candidates=ALL, predicted=np.zeros(ALL.cells), contrast=contrast)
    assert worst_moves(near, mean_distances, rows)[0] == more
    apart = TableDistance(candidates=Structure(DOMAIN, [("a",)]), predicted=np.array([0.0, 9.0]), contrast=contrast)
    counts = [Tables(apart.candidates, np.array(values)) for values in ([rows, 0], [0, rows])]
    one, two = (mean_distances(distances(one, apart), apart)[0] for one in counts)
    assert abs(one - two) == other


def a_sum(apart, scores):
    return np.array([(apart * scores.whole_weights)[list(group)].sum() // 4096 for group in scores.choices])


def table_by_table(apart, scores):
    """Each table's part rounded by itself."""
    weighted, weights = apart * scores.whole_weights, scores.whole_weights
    return np.array([(weighted[list(group)] // weights[list(group)].sum()).sum() for group in scores.choices])


def by_exact_weights(apart, scores):
    """Divided by the sum of the weights as they were given."""
    exact = [one / max(scores.weights) * 4096 for one in scores.weights]
    weighted = [int(one) for one in apart * scores.whole_weights]
    return np.array(
        [sum(weighted[n] for n in group) // sum(exact[number] for number in group) for group in scores.choices]
    )


@pytest.mark.parametrize("wrong", [a_sum, table_by_table, by_exact_weights])
def test_a_mean_that_is_taken_otherwise_moves_further(wrong):
    assert any(worst_moves(mean_scores(seed), wrong, 1)[0] > SCORE_GRID for seed in range(12))


def test_means_are_what_they_say():
    """sum w |n - m|_1 / sum w with weights rounded to 1/4096, in units of 1/1024, rounded down; without offsets."""
    rng = np.random.default_rng(9)
    scores = random_scores(rng)
    apart = distances(tables(rng.integers(0, 2, (200, 3))), scores)
    weights = [Fraction(round(one / max(scores.weights) * 4096), 4096) for one in scores.weights]
    expected = sum(w * int(d) for w, d in zip(weights, apart, strict=True)) / sum(weights)
    assert mean_distances(apart, scores).tolist() == [expected.__floor__()]


def test_no_mean_overflows():
    """1,770 tables at the cut and the greatest weight, whose weighted sum has 70 bits."""
    pairs = Structure.complete(Domain.from_sizes({f"x{place}": 2 for place in range(60)}))
    scores = TableDistance(candidates=pairs, predicted=np.zeros(pairs.cells))
    assert mean_distances(np.full(len(pairs.cliques), 2**47), scores).tolist() == [2**47]


def test_contrasts_are_sums_of_products():
    """|sum of products - that of the prediction| from records one by one; predictions may be below 0."""
    rng = np.random.default_rng(8)
    codes = rng.integers(0, 2, (200, 3))
    scores, signs = random_scores(rng, contrast=True), 1 - 2 * codes
    expected = []
    for clique, part in zip(ALL.cliques, ALL.slices, strict=True):
        products = np.prod([signs[:, "abc".index(name)] for name in clique], axis=0)
        cells = np.prod(list(itertools.product((1, -1), repeat=len(clique))), axis=1)
        predicted = sum(int(sign) * round(m * 1024) for sign, m in zip(cells, scores.predicted[part], strict=True))
        expected.append(abs(1024 * int(products.sum()) - predicted))
    assert (scores.predicted < 0).any()
    assert distances(tables(codes), scores).tolist() == expected


def test_no_contrast_overflows():
    """All records in cells of one sign, of 2^16 cells, and the prediction in those of the other: cut at 2^47 units."""
    names = [f"x{place}" for place in range(16)]
    wide = Structure(Domain.from_sizes(dict.fromkeys(names, 2)), [tuple(names)])
    odd = np.array([bin(cell).count("1") % 2 for cell in range(wide.cells)])
    counts = Tables(wide, np.where(odd, 0, np.int64(2**62)))
    scores = TableDistance(candidates=wide, predicted=np.where(odd, 1e300, -1e300), offsets=(-1e300,), contrast=True)
    apart = distances(counts, scores)
    assert apart.tolist() == [2**47]
    assert whole_scores(apart, scores, 1024).tolist() == [2**47 + 2**40]


@pytest.mark.parametrize(("most", "cut"), [(2**62, 2**40), (0, 2**40), (2**62, 2**52)])
def test_nothing_overflows(most, cut, monkeypatch):
    """Also where the cuts of 2^23 cells sum to 2^63: here 2^11 cells with a cut as much wider."""
    monkeypatch.setattr("dpgm_core.counting.scores._MAX_CELL_UNITS", cut)
    wide = Structure(Domain.from_sizes({"a": 2**6, "b": 2**5}), [("a", "b")])
    counts = Tables(wide, np.full(wide.cells, most, np.int64))
    scores = TableDistance(candidates=wide, predicted=np.full(wide.cells, 0.0 if most else 1e300), offsets=(-1e300,))
    apart = distances(counts, scores)
    assert apart.tolist() == [2**47]
    assert whole_scores(apart, scores, 1024).tolist() == [2**47 + 2**40]


@pytest.mark.parametrize("contrast", [False, True])
def test_scores_are_the_same_bits_in_any_order_and_batches(tmp_path, contrast):
    """Batches of 1, 7 and 8192 records, shuffled, and a CSV file in another order of its rows."""
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 2, (300, 3)).astype(np.uint8)
    scores = random_scores(rng, contrast=contrast)
    expected = whole_scores(distances(tables(codes), scores), scores, 64).tolist()
    for rows in (1, 7, 8192):
        again = count(Batches(codes[rng.permutation(300)], rows), ALL).tables
        assert whole_scores(distances(again, scores), scores, 64).tolist() == expected
    path = tmp_path / "x.csv"
    path.write_text("c,a,b\n" + "".join(f"{c},{a},{b}\n" for a, b, c in codes[rng.permutation(300)]))
    again = count(CsvSource(path=path), ALL).tables
    assert whole_scores(distances(again, scores), scores, 64).tolist() == expected
