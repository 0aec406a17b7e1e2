"""What a release would cost, before any record is read."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, ClippedScore, Contributions, Domain, Structure, Terms

DOMAIN = Domain.from_sizes({"a": 3, "b": 2})
STRUCTURE = Structure(DOMAIN, [("a", "b")])


def test_plan_says_what_proposition_4_says():
    """MSE = mu (1 - mu) / N + 2 (L1/eps)^2 / N^2 at the average cell, with the discrete noise's own variance."""
    planned = dpgm.plan(STRUCTURE, Budget.pure("0.1"), neighbours="replace-one", records=1000)
    assert (planned.sensitivity.l1, planned.scale, planned.cost) == (2, 20.0, Budget.pure("0.1"))
    [table] = planned.tables
    assert table.noise == pytest.approx(20 * 2**0.5, rel=1e-3)
    assert table.relative == pytest.approx((1 / 6 * 5 / 6 / 1000 + 2 * 20**2 / 1000**2) ** 0.5, rel=1e-3)
    for wrong in (0, float("nan"), float("inf"), True, "many"):
        with pytest.raises(dpgm.BudgetError):
            dpgm.plan(STRUCTURE, Budget.pure(1), neighbours="add-remove", records=wrong)


WRONG = [
    2.5,
    Fraction(5, 2),
    Decimal("2.5"),
    "2",
    b"2",
    None,
    True,
    math.nan,
    math.inf,
    -1,
    0,
    1e308,
    10**400,
    2j,
    [2],
    {},
]


def refused(ask):
    """Each wrong number is an error of dpgm in one line."""
    for wrong in WRONG:
        try:
            ask(wrong)
        except dpgm.DpgmError as error:
            assert "\n" not in str(error)
            continue
        yield wrong


@pytest.mark.parametrize("contributions", [None, Contributions(per="clique"), Contributions(per="group")])
def test_rows_are_whole(contributions):
    """A fractional `rows_per_person`, with contributions or without, wherever it is said: no plan."""

    def plan(rows):
        terms = Terms(neighbours="add-remove", person="id", rows_per_person=rows, contributions=contributions)
        dpgm.plan(STRUCTURE, Budget.pure(1), terms=terms)

    assert list(refused(plan)) == []
    if contributions is not None:
        assert list(refused(lambda rows: contributions.check(STRUCTURE, rows))) == []


@pytest.mark.parametrize(
    ("ask", "taken"),
    [
        (lambda one: dpgm.plan(STRUCTURE, Budget.pure(1), neighbours="add-remove", records=one), [2.5, None]),
        (lambda one: dpgm.plan(one, Budget.pure(1), neighbours="add-remove"), []),
        (lambda one: dpgm.plan(STRUCTURE, one, neighbours="add-remove"), []),
        (lambda one: dpgm.plan(STRUCTURE, Budget.pure(1), terms=one), []),
        (lambda one: Terms(neighbours="add-remove", total=one), [2.5]),
        (lambda one: Contributions(per="clique", grid=one), []),
        (lambda one: ClippedScore(norm=one, grid=4), [2.5, Fraction(5, 2), Decimal("2.5"), "2"]),
        (lambda one: ClippedScore(norm=1, grid=one), []),
        (lambda one: dpgm.optimal_split(one, Budget.pure(1)), []),
        (lambda one: dpgm.optimal_split(STRUCTURE, Budget.pure(1), one), [None, {}]),
        (
            lambda one: dpgm.optimal_split(STRUCTURE, Budget.pure(1), {("a", "b"): one}),
            [2.5, Fraction(5, 2), Decimal("2.5"), "2"],
        ),
    ],
    ids=["records", "structure", "budget", "terms", "total", "grid", "norm", "clip grid", "split", "weights", "weight"],
)
def test_numbers_are_taken_or_refused_in_words(ask, taken):
    """Fractions, texts, NaN, bools and what no double holds: numbers where numbers are meant, else an error of ours."""
    assert list(refused(ask)) == taken
