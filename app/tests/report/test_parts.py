"""Pieces of sections, what they are written from, the noise of tables, and the owner's annex."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpgm_core as dpgm
from app.tests.made import uniform
from dpgm.report import make_annex
from dpgm.report.inputs import Material
from dpgm.report.noise import measured_tables, noise_matrix
from dpgm.report.parts import amounts, at_most, cut, data_table, guess_text, name, odds_text
from dpgm_core import Budget
from dpgm_core.errors import NonPrivateError
from dpgm_core.privacy.terms import best_guess


@given(st.floats(1e-6, 1e9))
def test_a_bound_holds_as_it_reads(value):
    """Three digits, never below the value, and by less than a hundredth above it."""
    read = float(at_most(value).replace(",", ""))
    assert value * (1 - 1e-9) <= read <= value * 1.0101 + 1e-12


def test_names_and_cells_are_texts():
    """Names of another direction of writing change nothing around them, long ones are cut, and cells are escaped."""
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
    budgets = (Budget.pure(1), Budget.zcdp(1), Budget.approx(1, "1e-6"))
    assert [*map(amounts, budgets)] == ["ε = 1", "ρ = 1", "ε = 1, δ = 1e-06"]


def material_of(model: dpgm.Model) -> Material:
    return Material(model, file="m.dpgm", digest=None, ledger=None, level=0.9)


def test_the_number_of_records_is_told_by_the_release_that_knows_it_best(codes, model):
    """The one with the least noise, and its standard error."""
    structure = dpgm.Structure(model.domain, [("sex", "age")])
    parts = [dpgm.release(codes, structure, dpgm.Budget.pure(one), neighbours="add-remove") for one in (1, 9)]
    held = uniform(structure, releases=parts)
    assert material_of(held).counted == pytest.approx((parts[1].total, parts[1].total_variance ** 0.5))


def test_shares_have_ends_where_tables_tell_them(model):
    """Of measured attributes, with replicates or not; without a release only the estimate."""
    found = material_of(model).shares
    assert found is not None
    assert list(found) == ["sex", "age", "job"]
    assert np.all(found["sex"].low <= found["sex"].estimate)
    alone = material_of(dpgm.Model(model.structure, model.potentials, releases=model.releases)).shares
    assert alone is not None
    np.testing.assert_allclose(alone["sex"].low, found["sex"].low, atol=1e-12)
    bare = material_of(dpgm.Model(model.structure, model.potentials)).shares
    assert bare is not None
    assert bare["sex"].low is None
    np.testing.assert_allclose(bare["sex"].estimate, found["sex"].estimate, atol=1e-12)


DOMAIN = dpgm.Domain.from_sizes({"a": 2, "b": 3, "c": 2})
CODES = np.array([[0, 0, 0], [1, 2, 1], [1, 1, 0]] * 100)


def test_noise_is_held_against_the_average_cell():
    """By hand: discrete Laplace of scale 2, as two tables share epsilon 1, and 300 records in 6 or 4 cells."""
    structure = dpgm.Structure(DOMAIN, [("a", "b"), ("a", "c")])
    terms = dpgm.Terms(neighbours="add-remove", total=300)
    first, second = measured_tables([dpgm.release(CODES, structure, dpgm.Budget.pure(1), terms=terms)])
    p = np.exp(-1 / 2)
    assert first.deviation == pytest.approx(np.sqrt(2 * p) / (1 - p), rel=1e-9)
    assert (first.cells, first.average, second.average) == (6, 50.0, 75.0)
    assert second.relative == pytest.approx(second.deviation / 75)


def test_a_table_of_several_releases_is_there_once_with_its_least_noise():
    """And how often it was measured."""
    structure = dpgm.Structure(DOMAIN, [("a", "b")])
    terms = dpgm.Terms(neighbours="add-remove", total=300)
    parts = [dpgm.release(CODES, structure, dpgm.Budget.pure(amount), terms=terms) for amount in (1, 4, 2)]
    (one,) = measured_tables(parts)
    (best,) = measured_tables(parts[1:2])
    assert (one.times, one.deviation) == (3, best.deviation)


def test_the_matrix_shows_each_pair_once():
    """A table of three attributes holds three pairs; of none there is no matrix."""
    structure = dpgm.Structure(DOMAIN, [("a", "b", "c")])
    noisy = dpgm.release(CODES, structure, dpgm.Budget.pure(1), neighbours="add-remove")
    drawn = noise_matrix(DOMAIN.names, measured_tables([noisy]))
    assert drawn is not None and "3 pairs of attributes lie in a released table" in drawn
    singles = dpgm.Structure(DOMAIN, [("a",)])
    alone = dpgm.release(CODES, singles, dpgm.Budget.pure(1), neighbours="add-remove")
    assert noise_matrix(DOMAIN.names, measured_tables([alone])) is None


def test_it_is_refused_without_consent_and_stamped_on_every_section(model, codes, parsed):
    """As `evaluate` is; NOT PRIVATE, in words; and it says of itself what it is."""
    with pytest.raises(NonPrivateError, match="annex"):
        make_annex(model, codes)
    seen = parsed(make_annex(model, codes, allow_non_private=True))
    assert seen.sections == ["summary", "tables", "pairs", "marginals"]
    assert all("NOT PRIVATE" in text for text in seen.texts.values())
    assert len(seen.inside["script"]) == 1


def test_distances_are_those_of_the_true_table(parsed):
    """By hand: a uniform model against records of which three quarters have one label."""
    flat = uniform({"a": 2, "b": 2}, ("a",), ("b",))
    codes = np.array([[0, 0], [0, 0], [0, 0], [1, 1]])
    seen = parsed(make_annex(flat, codes, allow_non_private=True))
    assert "Against 4 records" in seen.texts["summary"]
    assert "a × b0.5000" in seen.texts["pairs"]
    assert "075.00 %50.00 %-25.00" in seen.texts["marginals"]
