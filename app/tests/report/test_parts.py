"""Pieces of sections: bounds are rounded up, names are cut, cells are texts; budgets in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm.report.parts import amounts, at_most, cut, data_table, guess_text, name, odds_text
from dpgm_core import Budget
from dpgm_core.privacy.terms import best_guess


@given(st.floats(1e-6, 1e9))
def test_a_bound_holds_as_it_reads(value):
    """Three digits, never below the value, and by less than a hundredth above it."""
    read = float(at_most(value).replace(",", ""))
    assert value * (1 - 1e-9) <= read <= value * 1.0101 + 1e-12


def test_names_and_cells_are_texts():
    """A name of another direction of writing turns nothing around it; a long one leaves its length. Cells are texts,
    whatever is in them; the first of a row is its heading."""
    assert name("\u05d0") == "<bdi>\u05d0</bdi>"
    assert cut("ab" * 100).endswith("(200 characters)")
    assert cut("a\u202eb") == "a\\u202eb"
    made = data_table("<c>", ["<h>", "n"], [["<a>", "<b>"]], number_columns={1})
    assert "<a>" not in made
    assert '<th scope="row">&lt;a&gt;</th><td class="n">&lt;b&gt;</td>' in made
    assert 'aria-label="&lt;c&gt;"' in made


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "0.7", "1", "3", "5.5", "9"])
def test_what_is_read_is_never_less_than_what_is_proven(epsilon):
    """Tenths of a per cent, and three digits of the factor."""
    budget = Budget.pure(epsilon)
    guess = float(guess_text(budget).removesuffix(" %")) / 100
    assert best_guess(budget) <= guess + 1e-12 <= best_guess(budget) + 0.0011
    factor = odds_text(budget)
    assert factor is not None
    assert float(factor.replace(",", "")) >= 2.718281 ** float(epsilon)


def test_amounts_have_greek_letters():
    """One of each kind."""
    budgets = (Budget.pure(1), Budget.zcdp(1), Budget.approx(1, "1e-6"))
    assert [*map(amounts, budgets)] == ["ε = 1", "ρ = 1", "ε = 1, δ = 1e-06"]
