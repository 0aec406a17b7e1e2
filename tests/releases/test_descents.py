"""What descents hand out, directions, and what they cost."""

import math
from fractions import Fraction

import pytest

from dpgm_core import Domain, Structure
from dpgm_core.privacy.descent import Regressions
from dpgm_core.releases.steps import Descent

PAIRS = Structure.complete(Domain.from_sizes({"a": 2, "b": 2, "c": 2}))


def descent(**given):
    """Of two labels at a time over three pairs, as a session makes it."""
    own = Regressions(candidates=PAIRS, loss="pairs")
    return Descent(
        **{
            "regressions": own,
            "picks": ((0, 2, 1), (1, 6, -1), (2, 0, 1)),
            "temperature": Fraction(1, 100),
            "radius": Fraction(2),
            "clip": Fraction(3, 10),
            "residual_grid": 128,
            "person": 2,
            "kind": "zcdp",
        }
        | given
    )


def test_a_descent_tells_where_weights_go_and_what_that_cost():
    """Rows, columns, signs; candidates by number; a constant is of no candidate; twice the persons, 4 times the rho."""
    place = {pair: number for number, pair in enumerate(PAIRS.cliques, start=3)}
    one = descent()
    assert one.sound and one.cliques == (("a", "b"), ("a", "c")) and not len(one.numbers)
    assert one.step_document(place) == {
        "kind": "descend",
        "candidates": [3, 4, 5],
        "loss": "pairs",
        "picks": [[0, 2, 1], [1, 6, -1], [2, 0, 1]],
        "temperature": "1/100",
        "radius": "2",
        "clip": "3/10",
        "residual_grid": 128,
    }
    # S = floor(128^2 * .3 * 3), range 2 sqrt(S) a record
    far = 2 * 2 * math.sqrt(math.floor(128**2 * 0.3 * 3))
    assert float(one.cost.rho) == pytest.approx((far / 100) ** 2 / 8, rel=1e-6)
    assert float(one.cost.rho / descent(person=1).cost.rho) == pytest.approx(4, rel=1e-6)
    assert float(descent(kind="pure", clip=None).cost.epsilon) == pytest.approx(2 * 2 * 3 * 112 / 100, rel=1e-6)


@pytest.mark.parametrize(
    "given",
    [
        {"picks": ((0, 2, 1), (1, 6, -1))},
        {"picks": ((0, 0, 1), (1, 6, -1), (2, 0, 1))},
        {"picks": ((1, 0, 1), (1, 6, -1), (2, 0, 1))},
        {"picks": ((0, 7, 1), (1, 6, -1), (2, 0, 1))},
        {"picks": ((0, 2, 0), (1, 6, -1), (2, 0, 1))},
        {"residual_grid": 1},
        {"residual_grid": 2**13},
        {"radius": Fraction(2**21)},
        {"clip": Fraction(2)},
        {"clip": Fraction(1, 10**6)},
    ],
)
def test_what_no_session_makes_is_not_sound(given):
    """A choice less, itself as its partner, another's row, no column, no sign; units out of their limits."""
    assert not descent(**given).sound


def test_a_product_that_holds_its_own_attribute_is_no_partner():
    """With pairs and triples among the candidates a x b is a column, and of the row of c alone."""
    own = Regressions(candidates=Structure(PAIRS.domain, [("a", "b"), ("a", "b", "c")]), loss="logistic")
    column = own.columns.index((("a", "b"), ()))
    fair = ((0, 1, 1), (1, 0, 1), (2, column, -1))
    assert descent(regressions=own, picks=fair).sound
    assert not descent(regressions=own, picks=((0, column, 1), *fair[1:])).sound
