"""Scores from true tables: how far one person moves each, by brute force; the same bits in any order of the records."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core import Domain, Structure, Tables, Terms
from dpgm_core.counting.selection import distances, whole_scores
from dpgm_core.counting.table_counts import count
from dpgm_core.privacy.selection import SCORE_GRID, TableDistance
from dpgm_core.sources import as_source
from dpgm_core.sources.csv import CsvSource

DOMAIN = Domain.from_sizes({"a": 2, "b": 2, "c": 2})
ALL = Structure(DOMAIN, [("a",), ("b", "c"), ("a", "b", "c")])
CELLS = np.array(list(itertools.product(range(2), repeat=3)))
GRIDS = [2**power for power in range(11)]


def tables(codes):
    """True tables of these records."""
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
    """Every person of one or two rows beside 0, 3 and 40 others, all grids, tables and contrasts: at most grid times
    `move`; and somewhere as much, up and down, where weights are 1."""
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


@given(
    st.lists(st.integers(0, 2**62), min_size=ALL.cells, max_size=ALL.cells),
    st.integers(0, ALL.cells - 1),
    st.sampled_from(GRIDS),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_a_cell_more_moves_a_score_by_a_record(counts, place, grid, seed, contrast):
    """Also far beyond any real table, where distances are cut."""
    scores = random_scores(np.random.default_rng(seed), contrast=contrast)
    other = np.array(counts)
    other[place] += 1
    one, two = (distances(Tables(ALL, np.asarray(given, np.int64)), scores) for given in (counts, other))
    assert np.abs(one - two).max() <= SCORE_GRID
    assert np.abs(whole_scores(one, scores, grid) - whole_scores(two, scores, grid)).max() <= grid


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
    """Counts and predictions as large as they come. Of 2^23 cells the cuts alone sum to 2^63; a cut so much wider does
    so of 2^11, without the memory."""
    monkeypatch.setattr("dpgm_core.counting.selection._MAX_CELL_UNITS", cut)
    wide = Structure(Domain.from_sizes({"a": 2**6, "b": 2**5}), [("a", "b")])
    counts = Tables(wide, np.full(wide.cells, most, np.int64))
    scores = TableDistance(candidates=wide, predicted=np.full(wide.cells, 0.0 if most else 1e300), offsets=(-1e300,))
    apart = distances(counts, scores)
    assert apart.tolist() == [2**47]
    assert whole_scores(apart, scores, 1024).tolist() == [2**47 + 2**40]


class Batched:
    """Codes in batches of a size."""

    def __init__(self, codes, rows):
        self.codes, self.rows = codes, rows

    def batches(self, domain, columns):
        wanted = [domain.names.index(name) for name in columns]
        for start in range(0, len(self.codes), self.rows):
            yield [self.codes[start : start + self.rows, place] for place in wanted]


@pytest.mark.parametrize("contrast", [False, True])
def test_scores_are_the_same_bits_in_any_order_and_batches(tmp_path, contrast):
    """Batches of 1, 7 and 8192 records, shuffled, and a CSV file in another order of its rows."""
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 2, (300, 3)).astype(np.uint8)
    scores = random_scores(rng, contrast=contrast)
    expected = whole_scores(distances(tables(codes), scores), scores, 64).tolist()
    for rows in (1, 7, 8192):
        again = count(Batched(codes[rng.permutation(300)], rows), ALL).tables
        assert whole_scores(distances(again, scores), scores, 64).tolist() == expected
    path = tmp_path / "x.csv"
    path.write_text("c,a,b\n" + "".join(f"{c},{a},{b}\n" for a, b, c in codes[rng.permutation(300)]))
    again = count(CsvSource(path=path), ALL).tables
    assert whole_scores(distances(again, scores), scores, 64).tolist() == expected
