"""The guarantee in words, never more than the release proves; what it cost, release by release."""

import math
import re

import numpy as np
import pyarrow as pa
import pytest

import dpgm_core as dpgm
from app.tests.made import uniform
from dpgm.report import make_report

DOMAIN = dpgm.Domain.from_sizes({"a": 2, "b": 2})
STRUCTURE = dpgm.Structure(DOMAIN, [("a", "b")])
CODES = np.array([[0, 0], [1, 1], [1, 0], [1, 1]] * 50)

ADD_REMOVE = dpgm.Terms(neighbours="add-remove")
_TOTALS = ("estimated", "public")


def told(parsed, budget: dpgm.Budget, terms: dpgm.Terms, **more: object) -> str:
    noisy = dpgm.release(CODES, STRUCTURE, budget, terms=terms, **more)
    model = uniform(STRUCTURE, releases=[noisy])
    return str(parsed(make_report(model)).texts["guarantee"])


def test_pure_budgets(parsed):
    """Presence at epsilon, and values at twice that; under replace-one values alone."""
    text = told(parsed, dpgm.Budget.pure(1), ADD_REMOVE)
    for words in ("at most eε = 2.72 times", "whether a certain unit is in the data or not", "at most 73.2 % of cases"):
        assert words in text
    assert 0.88 < math.exp(2) / (1 + math.exp(2)) < 0.881
    assert "at a loss of at most ε = 2: a guess between the two is right in at most 88.1 %" in text
    text = told(parsed, dpgm.Budget.pure(1), dpgm.Terms(neighbours="replace-one"))
    assert "which of two sets of values a certain unit has" in text
    assert "the number of units is the same and public" in text
    assert "is in the data or not" not in text and "known to be in" not in text


@pytest.mark.parametrize(
    ("split", "total", "rho"),
    [
        ("even", "estimated", "1"),
        ("even", "public", "1"),
        ("contrasts", "estimated", "1"),
        ("contrasts", "public", "1.33334"),
    ],
)
def test_an_exchange_under_rho(parsed, total, split, rho):
    """It costs 2 rho of tables, 8/3 rho of contrasts of two attributes, and 2 rho where N is a contrast too."""
    terms = dpgm.Terms(neighbours="add-remove", total=total)
    text = told(parsed, dpgm.Budget.zcdp("0.5"), terms, mechanism="gaussian", split=split)
    assert (f"at a loss of at most ρ = {rho}:" if total == "estimated" else f"at most αρ, with ρ = {rho} (") in text


@pytest.mark.parametrize(
    ("neighbours", "split", "loss"),
    [("add-remove", "even", "5ρ"), ("add-remove", "contrasts", "9ρ"), ("replace-one", "even", "4ρ")],
)
def test_groups_and_rows_without_a_key_under_rho(parsed, neighbours, split, loss):
    """The bound of r units, and what a person loses of whose rows some have no key, in the terms of the budget."""
    terms = dpgm.Terms(neighbours=neighbours, person="id")
    table = pa.table([["x"] * 200, *CODES.T.tolist()], ["id", "a", "b"])
    noisy = dpgm.release(table, STRUCTURE, dpgm.Budget.zcdp("0.5"), "gaussian", terms=terms, split=split)
    text = str(parsed(make_report(uniform(STRUCTURE, releases=[noisy]))).texts["guarantee"])
    assert "of r units r²ρ." in text and f"and others with the key, loses up to {loss}" in text
    assert "loses up to" not in told(parsed, dpgm.Budget.pure(1), ADD_REMOVE)


def test_delta_and_rho(parsed):
    """Delta is added to every outcome; rho is converted at stated deltas, and has no factor for every outcome."""
    terms = ADD_REMOVE
    assert "plus δ = 1e-06" in told(parsed, dpgm.Budget.approx(1, "1e-6"), terms, mechanism="gaussian")
    text = told(parsed, dpgm.Budget.zcdp("0.5"), terms, mechanism="gaussian")
    assert "at most αρ, with ρ = 0.5" in text
    assert "ε = 5.222" in text
    assert "times that under" not in text


def test_conditions_are_told(parsed):
    text = told(parsed, dpgm.Budget.pure(1), dpgm.Terms(neighbours="add-remove", total="public"))
    assert "CONDITIONAL ON PUBLIC N" in text
    assert "in the data or not" not in text
    assert "known to be in: to exchange them" in text
    assert "at most eε = 7.39 times" in text
    assert "at most 88.1 % of cases" in text
    text = told(parsed, dpgm.Budget.pure(1), dpgm.Terms(neighbours="replace-one", total="public"))
    assert "at most eε = 2.72 times" in text
    assert "estimated from the noisy tables" not in text


@pytest.mark.parametrize("words", ["What the population tells", "families", "Choices made by looking", "Plugins"])
def test_what_is_not_covered_is_told(parsed, words):
    assert words in told(parsed, dpgm.Budget.pure(1), ADD_REMOVE)


def test_what_promises_nothing_says_so(parsed):
    """Epsilon 50 bounds no attacker; of textbook noise the numbers are told as what would hold."""
    text = told(parsed, dpgm.Budget.pure(50), ADD_REMOVE)
    assert "promises next to nothing" in text and "more than a million" in text
    unsafe = {"name": "laplace", "exact": False, "allow_unsafe": True}
    text = told(parsed, dpgm.Budget.pure(1), ADD_REMOVE, mechanism=unsafe)
    assert "would hold if it were, and is proven of nothing" in text
    assert "would hold" not in told(parsed, dpgm.Budget.pure(1), ADD_REMOVE)


def test_one_release_with_a_public_number_is_enough(parsed):
    """What the second release publishes the first does not hide."""
    budget, terms = dpgm.Budget.pure("0.5"), [dpgm.Terms(neighbours="add-remove", total=one) for one in _TOTALS]
    releases = [dpgm.release(CODES, STRUCTURE, budget, terms=one) for one in terms]
    text = parsed(make_report(uniform(STRUCTURE, releases=releases))).texts["guarantee"]
    assert "published exactly" in text and "estimated from the noisy tables" not in text
    assert "at most eε = 7.39 times" in text and "in the data or not" not in text


def test_one_budget_has_one_delta(parsed):
    """Wherever the page tells the delta of a release it is the same text, and so are those of a conversion."""
    for delta in ("1e-6", "1.1e-6", "3e-7"):
        text = told(parsed, dpgm.Budget.approx(1, delta), ADD_REMOVE, mechanism="gaussian")
        # Cells of tables follow each other without a space: an exponent has two digits.
        deltas = re.findall(r"δ = ([0-9.]+e-[0-9]{2})", text)
        of_two = [one for one in deltas if float(one) > 3 * float(delta)]  # groups of two persons and more
        assert len(deltas) > len(of_two) > 1 and {one for one in deltas if one not in of_two} == {f"{float(delta):g}"}
    text = told(parsed, dpgm.Budget.zcdp("0.5"), ADD_REMOVE, mechanism="gaussian")
    assert "δ = 1e-06" in text and "1e-6" not in text


def test_several_releases_are_listed_with_what_they_cost_together(codes, model, parsed):
    """Each has its row; no ledger is named where none paid."""
    structure = dpgm.Structure(model.domain, [("sex", "age")])
    parts = [dpgm.release(codes, structure, dpgm.Budget.pure(one), neighbours="add-remove") for one in ("1", "0.5")]
    seen = parsed(make_report(dpgm.learn(parts).model))
    text = seen.texts["cost"]
    assert "2 releases. Together they cost ε = 1.5" in text
    assert "1: 1 table" in text
    assert "2: 1 table" in text
    assert "nobody adds up" in text
    assert "Together" not in parsed(make_report(model)).texts["cost"]
