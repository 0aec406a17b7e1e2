"""The cost model prices a step as its three products, forwards and backwards, each by its own formula."""

import itertools
import math

import pytest

from dpgm_core.inference.junction_tree.contraction import NUMBA, NUMPY

SIZES = (2, 3, 4, 5)
# r = sum p * q: a matrix product, batches of them, an outer product, one table into another, a sum over all
STEPS = [("ab", "bc", "ac"), ("abc", "abd", "acd"), ("a", "b", "ab"), ("abc", "b", "abc"), ("ab", "ab", "")]


@pytest.mark.parametrize("model", [NUMPY, NUMBA])
@pytest.mark.parametrize("step", STEPS)
def test_a_step_costs_its_three_products(model, step):
    """A broadcast product is one pass over half of what is read and written; else blocks, multiply-adds and passes."""

    def cells(letters):
        return math.prod(SIZES["abcd".index(letter)] for letter in letters)

    expected = 0.0
    for one, two, out in [step, (step[2], step[1], step[0]), (step[2], step[0], step[1])]:
        passes = model.cell * sum(map(cells, step))
        if set(one) | set(two) == set(out):
            expected += model.call + passes / 2
        else:
            blocks, union = cells(set.intersection(*map(set, step))), cells(set(one) | set(two))
            expected += model.call + model.block * blocks + model.multiply_add * union + passes / 4
    p, q, r = map(cells, step)
    union, blocks = cells(set(step[0]) | set(step[1])), cells(set.intersection(*map(set, step)))
    assert model.product(p, q, r, union, blocks) == pytest.approx(expected)


def test_compiled_calls_are_cheap():
    """Where tables are small, calls are all that numpy pays for."""
    for model, other in itertools.permutations([NUMPY, NUMBA]):
        if model is NUMPY:
            assert model.product(2, 2, 2, 4, 1) > 10 * other.product(2, 2, 2, 4, 1)
            assert model.sum_out(2) > 10 * other.sum_out(2)
