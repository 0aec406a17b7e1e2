"""Potentials collected from pieces, and sums in which weight 0 silences -inf."""

import numpy as np
import pytest

from dpgm_core import Domain
from dpgm_core.models.distribution import collect_potentials, expectation

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2})


def test_pieces_on_the_same_attributes_add_up_in_any_order_of_axes():
    """p(x) is the product of all pieces, by enumeration of the records."""
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


def test_pieces_are_copied():
    """What is handed in stays as it was."""
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
