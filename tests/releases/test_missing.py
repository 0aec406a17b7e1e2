"""Columns that are mostly missing are named, from the noisy tables alone, and noise alone names hardly any."""

import numpy as np
import pyarrow as pa
import pytest

import dpgm_core as dpgm
from dpgm_core._util.randomness import SeededRandomness
from dpgm_core.releases.totals import mostly_missing

DOMAIN = dpgm.Domain.from_dict({"attributes": {"a": {"labels": ["x", "y"]}, "b": {"labels": ["u", "v", "w"]}}})
N = {"a": {"labels": ["x", "y"], "unknown": "N"}, "b": {"labels": ["u", "v"], "unknown": "v"}}


def noisy(share, seed=0, budget=1, domain=DOMAIN, people=1000, cliques=(("a", "b"),)):
    """A release in which that share of column a is missing."""
    codes = np.zeros((people, 2), int)
    codes[: round(share * people), 0] = domain["a"].unknown
    return dpgm.release(
        codes, dpgm.Structure(domain, cliques), dpgm.Budget.pure(budget), neighbours="add-remove",
        randomness=SeededRandomness(seed),
    )  # fmt: skip


@pytest.mark.parametrize(("share", "told"), [(0.4, 0), (0.6, 1), (0.95, 1), (1.0, 1)])
def test_a_column_is_named_from_one_half_on(share, told):
    """The share stands beside its name."""
    found = mostly_missing([noisy(share)])
    assert len(found) == told
    assert all(one.startswith("mostly missing: a (") and f"{share:.0%}"[:2] in one for one in found)


@pytest.mark.landing
def test_noise_alone_names_a_column_rarely():
    """Just half of a column is missing: beyond 3 standard errors are 0.14 % of normal scores, and under 0.5 % of these
    sums of Laplace noise, so of 200 releases one at most on average; 6 or more would come once in 1,700 times."""
    assert sum(bool(mostly_missing([noisy(0.5, seed, 0.3, people=200)])) for seed in range(200)) <= 5


def test_labels_that_may_be_answers_are_not_missing():
    """A label of another name is what its owner says it is."""
    domain = dpgm.Domain.from_dict({"attributes": N})
    assert not mostly_missing([noisy(1.0, domain=domain)])


def test_a_fit_says_it_in_its_notes():
    """In Python, in the model file, and on the command line, which prints the notes."""
    records = pa.table({"a": ["X", "Y"] * 250, "b": ["u"] * 500})
    structure = dpgm.Structure(DOMAIN, [("a",), ("b",)])
    done = dpgm.fit(records, structure, dpgm.Budget.pure(5), neighbours="add-remove")
    (note,) = [one for one in done.notes if one.startswith("mostly missing")]
    assert "a (" in note and "b (" not in note and note in done.model.provenance["notes"]
