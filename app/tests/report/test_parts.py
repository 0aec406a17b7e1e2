"""Pieces of sections: bounds are rounded up, names are cut, cells are texts."""

from hypothesis import given
from hypothesis import strategies as st

from dpgm.report.parts import at_most, cut, data_table, name


@given(st.floats(1e-6, 1e9))
def test_a_bound_holds_as_it_reads(value):
    """Three digits, never below the value, and by less than a hundredth above it."""
    read = float(at_most(value).replace(",", ""))
    assert value * (1 - 1e-9) <= read <= value * 1.0101 + 1e-12


def test_names_are_cut_and_isolated():
    """A name of another direction of writing turns nothing around it; a long one leaves its length."""
    assert name("\u05d0") == "<bdi>\u05d0</bdi>"
    assert cut("ab" * 100).endswith("(200 characters)")
    assert cut("a\u202eb") == "a\\u202eb"


def test_cells_of_tables_are_texts():
    """Whatever is in them; the first of a row is its heading."""
    made = data_table("<c>", ["<h>", "n"], [["<a>", "<b>"]], number_columns={1})
    assert "<a>" not in made
    assert '<th scope="row">&lt;a&gt;</th><td class="n">&lt;b&gt;</td>' in made
    assert 'aria-label="&lt;c&gt;"' in made
