"""The distribution behind a model, on codes, and potentials collected from pieces."""

import itertools

import numpy as np
import pytest

from dpgm_core import Domain, Structure, Tables
from dpgm_core.errors import InferenceError
from dpgm_core.models.distribution import Distribution, check_potentials, collect_potentials, expectation
from tests.models.enumerated import DOMAIN

STRUCTURE = Structure(DOMAIN, [("b", "a"), ("c",)], tied=[[("a", "c"), ("d", "a")]])


def distribution() -> Distribution:
    values = np.random.default_rng(0).normal(size=STRUCTURE.cells)
    return Distribution(Tables(STRUCTURE, values), "junction-tree")


def test_answers_on_codes_agree_with_all_records():
    """A margin inside a clique, one of a tied group, one across, one with a code fixed; and the best record."""
    law = distribution()
    joint = law.marginals_of([("a", "b", "c", "d")], {})[0]
    weights = np.zeros((2, 3, 2, 2))
    theta = law.potentials
    for a, b, c, d in itertools.product(range(2), range(3), range(2), range(2)):
        weights[a, b, c, d] = theta.group(0)[b, a] + theta.group(1)[c] + theta.group(2)[a, c] + theta.group(2)[d, a]
    np.testing.assert_allclose(joint, np.exp(weights) / np.exp(weights).sum(), atol=1e-12)
    inside, tied = law.marginals_of([("a",), ("c", "a")], {})
    np.testing.assert_allclose(inside, joint.sum((1, 2, 3)), atol=1e-12)
    np.testing.assert_allclose(tied, joint.sum((1, 3)).T, atol=1e-12)
    fixed = law.marginals_of([("c",)], {"b": 2})[0]
    np.testing.assert_allclose(fixed, joint[:, 2].sum((0, 2)) / joint[:, 2].sum(), atol=1e-12)
    best = law.most_probable({"b": 1})
    assert joint[tuple(best[name] for name in DOMAIN.names)] == joint[:, 1].max()


def test_engines_are_shared_and_few():
    """A second distribution takes the engines of the first, and no more than 16 are kept."""
    law = distribution()
    engine = law.engine(STRUCTURE)
    assert Distribution(law.potentials, "junction-tree", law.engines).engine(STRUCTURE) is engine
    for size in range(2, 20):
        law.engine(Structure(Domain.from_sizes({"a": size}), [("a",)]))
    assert len(law.engines) <= 16


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 2e9, -2e9])
def test_potentials_without_a_distribution_are_refused(wrong):
    """NaN, +inf, and what leaves no digits; -inf is a zero."""
    check_potentials(np.array([0.0, -np.inf]))
    with pytest.raises(InferenceError, match="log-potentials must"):
        check_potentials(np.array([0.0, wrong]))


def test_pieces_on_the_same_attributes_add_up_in_any_order_of_axes():
    """p(x) is the product of all pieces, by enumeration of the records; what is handed in stays as it was."""
    rng = np.random.default_rng(1)
    pieces = [(("a", "b"), rng.normal(size=(2, 3))), (("b", "a"), rng.normal(size=(3, 2))),
              (("c",), rng.normal(size=2)), ((), rng.normal(size=())), (("c",), np.array([0.0, -np.inf]))]  # fmt: skip
    structure, potentials = collect_potentials(DOMAIN, pieces)
    assert [set(clique) for clique in structure.cliques] == [{"a", "b"}, {"c"}, set()]
    for record in np.ndindex(2, 3, 2):
        values = dict(zip("abc", record, strict=True))

        def total(parts, values=values):
            return sum(float(table[tuple(values[name] for name in clique)]) for clique, table in parts)

        assert total(potentials.items()) == pytest.approx(total(pieces))
    table = np.zeros(2)
    collect_potentials(DOMAIN, [(("a",), table), (("a",), np.ones(2))])
    assert table.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("weights", "values", "expected"),
    [
        ([0.5, 0.5], [1.0, 3.0], 2.0),
        ([1.0, 0.0], [2.0, -np.inf], 2.0),
        ([0.5, 0.5], [2.0, -np.inf], -np.inf),
        ([0.0, 0.0], [np.inf, -np.inf], 0.0),
        ([1e16, 1.0, -1e16], [1.0, 1.0, 1.0], 1.0),
    ],
)
def test_weight_zero_silences_what_is_infinite(weights, values, expected):
    """0 log 0 = 0; sums of finite terms are exact to the last digit."""
    assert expectation(np.array(weights), np.array(values)) == expected
