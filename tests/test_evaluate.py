"""What compares a model with records is an exact function of them, right, and asked for by name only."""

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Domain, Model, NonPrivateError, Structure, Tables
from dpgm_core.testing.oracles import all_records, enumerated

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 2})
STRUCTURES = {
    "chain": Structure.chain(DOMAIN),
    "cycle": Structure(DOMAIN, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]),
    "tied": Structure(DOMAIN, [("b", "a"), ("d",)], tied=[[("a", "c"), ("c", "d"), ("d", "a")]]),
}


def model_of(name: str) -> Model:
    """A random model."""
    structure = STRUCTURES[name]
    return Model(structure, Tables(structure, np.random.default_rng(5).normal(size=structure.cells)))


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_log_likelihood_is_the_sum_of_log_p(name):
    """By enumeration of all records; also of no record at all."""
    model = model_of(name)
    probabilities, rows = enumerated(model.potentials).probabilities, all_records(model.structure)
    drawn = np.random.default_rng(1).integers(0, len(rows), 50)
    expected = float(np.log(probabilities[drawn]).sum())
    assert dpgm.log_likelihood(model, rows[drawn], allow_non_private=True) == pytest.approx(expected)
    assert dpgm.log_likelihood(model, rows[:0], allow_non_private=True) == pytest.approx(0)


def test_records_a_model_rules_out_have_no_likelihood():
    """log p = -inf, and no NaN where a cell that is ruled out holds no record."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    model = Model(structure, Tables(structure, np.array([0.0, -np.inf])))
    assert dpgm.log_likelihood(model, np.array([[0], [0]]), allow_non_private=True) == pytest.approx(0)
    assert dpgm.log_likelihood(model, np.array([[0], [1]]), allow_non_private=True) == -np.inf


@pytest.mark.parametrize("wrong", [False, 1, "yes", None])
def test_records_are_compared_by_name_only(wrong):
    """Without allow_non_private = True nothing is read: `object()` is no records."""
    model = model_of("chain")
    for ask in (dpgm.log_likelihood, dpgm.total_variation):
        with pytest.raises(NonPrivateError, match="allow_non_private=True"):
            ask(model, object(), allow_non_private=wrong)
