"""What one block votes: the minimum it should find, every kind of label, and nothing where there is nothing to see."""

import numpy as np
import pytest
from scipy.optimize import minimize

from dpgm_core.counting.votes import _binary, _labelled, block_edges

PAIRS = [(0, 1), (0, 2), (1, 2)]


def chain(count, seed, flips=0.2):
    """Three binary attributes, each a copy of the one before with so many flips."""
    draw = np.random.default_rng(seed)
    columns = [draw.integers(0, 2, count)]
    for _ in range(2):
        columns.append(np.where(draw.random(count) < flips, 1 - columns[-1], columns[-1]))
    return [column.astype(np.uint8) for column in columns]


def test_the_penalised_minimum_is_found():
    """Against L-BFGS on positive and negative parts, from another library; then the average of both directions."""
    columns, penalty = chain(300, 1), 0.05
    signs = 1.0 - 2.0 * np.stack(columns, axis=1)

    def node(i):
        others = [j for j in range(3) if j != i]
        design = np.concatenate([signs[:, others], np.ones((len(signs), 1))], axis=1)

        def loss(parts):
            weights = parts[:3] - parts[3:]
            value = np.log1p(np.exp(-signs[:, i] * (design @ weights))).mean()
            return value + penalty * (parts[:2].sum() + parts[3:5].sum())

        found = minimize(loss, np.zeros(6), method="L-BFGS-B", bounds=[(0, None)] * 6, tol=1e-12).x
        return dict(zip(others, (found[:3] - found[3:])[:2] / 2, strict=True))

    weights = [node(i) for i in range(3)]
    wanted = [abs(weights[i][j] + weights[j][i]) / 2 for i, j in PAIRS]
    assert _binary(columns, [2, 2, 2], PAIRS, penalty) == pytest.approx(wanted, abs=2e-4)
    assert wanted[0] > 0.4 and wanted[1] < 0.2


def test_two_labels_are_labels_like_any_other():
    """The softmax regressions of binary attributes give the same strengths."""
    columns = chain(300, 2)
    one, other = (fit(columns, [2, 2, 2], PAIRS, 0.03) for fit in (_binary, _labelled))
    assert one == pytest.approx(other, abs=2e-3)


def test_labels_of_three_kinds():
    """Sizes 3, 2 and 4: the edge that there is, in a table with an entry of log(4) before centring."""
    draw = np.random.default_rng(3)
    a = draw.integers(0, 3, 1000)
    b = np.where(draw.random(1000) < 0.6, a > 0, draw.integers(0, 2, 1000))
    columns = [a.astype(np.uint8), b.astype(np.uint8), draw.integers(0, 4, 1000).astype(np.uint8)]
    votes = block_edges(columns, [3, 2, 4], PAIRS, least=0.4, penalty=0.2)
    assert votes.tolist() == [True, False, False]


def test_what_an_attribute_is_not_regressed_on_explains_nothing():
    """Without the two pairs between them the ends of a chain look like neighbours."""
    columns = chain(2000, 4, flips=0.1)
    assert block_edges(columns, [2, 2, 2], PAIRS, least=0.6, penalty=0.2).tolist() == [True, False, True]
    assert block_edges(columns, [2, 2, 2], [(0, 2)], least=0.6, penalty=0.2).tolist() == [True]


def test_the_order_of_rows_does_not_matter():
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
        block_edges(shuffled, [2, 2, 2], PAIRS, least=Least(), penalty=0.2)
        unsorted.add(_binary(shuffled, [2, 2, 2], PAIRS, 0.02).tobytes())
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
@pytest.mark.parametrize("sizes", [[2, 2, 2], [2, 3, 2]])
def test_a_block_that_fails_votes_no_edge(columns, sizes):
    """No error comes out, also where floats that overflow are errors."""
    with np.errstate(all="raise"):
        assert not block_edges(columns, sizes, PAIRS, least=0.4, penalty=0.2).any()
