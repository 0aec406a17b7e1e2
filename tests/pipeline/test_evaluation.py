"""What compares a model with records is an exact function of them, right, and asked for by name only."""

from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest

import dpgm_core as dpgm
from dpgm_core import Domain, Model, NonPrivateError, Structure, Tables
from dpgm_core.sources import Shipped, received
from dpgm_testing.oracles import all_records, enumerated
from tests.models.enumerated import DOMAIN, STRUCTURES, model_of, uniform_model


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


def test_distances_leave_out_what_no_release_measured():
    """Of a model's own cliques and of tables, on either side; named, it is refused; taken as uniform where asked."""
    domain = Domain.from_sizes({"a": 2, "b": 2, "c": 2})
    codes = np.zeros((40, 3), dtype=int)
    terms = {"neighbours": "add-remove", "randomness": dpgm.SeededRandomness(0)}
    release = dpgm.release(codes, Structure(domain, [("a", "b")]), dpgm.Budget.pure(1), **terms)
    wide = Structure(domain, [("a", "b"), ("b", "c")])
    learned = uniform_model(wide, releases=[release])
    hand = uniform_model(wide)
    for one, other in ((learned, hand), (hand, learned), (learned, learned), (learned, Tables.zeros(wide))):
        assert list(dpgm.total_variation(one, other)) == [("a", "b")]
        with pytest.raises(dpgm.StructureError, match="measured 'c'"):
            dpgm.total_variation(one, other, [("b", "c")])
    assert list(dpgm.total_variation(learned, codes, allow_non_private=True)) == [("a", "b")]
    assert list(dpgm.total_variation(hand, codes, allow_non_private=True)) == [("a", "b"), ("b", "c")]
    without = learned.sample(5)
    assert without.column_names == ["a", "b"]  # records that lack what was not measured can be compared
    assert list(dpgm.total_variation(learned, without, allow_non_private=True)) == [("a", "b")]
    nothing = uniform_model(Structure(domain, [("c",)]), releases=[release])
    assert dpgm.total_variation(nothing, codes, allow_non_private=True) == {}
    assert dpgm.total_variation(nothing, hand) == {}
    uniform = learned.using(unmeasured="uniform")
    assert dpgm.total_variation(uniform, codes, [("c",)], allow_non_private=True)["c",] == pytest.approx(0.5)
    assert list(dpgm.total_variation(uniform, hand)) == [("a", "b"), ("b", "c")]
    assert dpgm.kl_divergence(hand, learned) == pytest.approx(0, abs=1e-12)


def test_a_tied_table_is_left_out_whole():
    """One clique that no release measured, and the mean over the group says nothing."""
    domain = Domain.from_sizes({"a": 2, "b": 2, "c": 2})
    structure = Structure(domain, [("a", "b")])
    release = dpgm.release(np.zeros((9, 3), int), structure, dpgm.Budget.pure(1), neighbours="add-remove")
    tied = Structure(domain, [("a",)], tied=[[("a", "b"), ("a", "c")]])
    learned = uniform_model(tied, releases=[release])
    assert list(dpgm.total_variation(learned, Tables.zeros(tied))) == [("a",)]


def test_a_table_of_nothing_but_the_records_is_at_no_distance():
    """The empty clique is in no answer, from tables, models and records; its own noisy table has a score like any."""
    structure = Structure(DOMAIN, [("a", "b"), ()])
    codes = np.zeros((50, 4), int)
    model = dpgm.learn(dpgm.release(codes, structure, dpgm.Budget.pure(1), neighbours="add-remove"), "naive-mle").model
    for reference in (model.releases[0].tables, model, codes):
        assert list(dpgm.total_variation(model, reference, allow_non_private=True)) == [("a", "b")]
    assert list(model.misfit()) == [("a", "b"), ()]


class Elsewhere:
    """A source that sums where the rows are, in three partitions, and hands out none."""

    def __init__(self, rows):
        self.rows = rows

    @contextmanager
    def pinned(self, reading):
        self.work = Shipped(reading=reading)
        yield self

    def reduce(self, reduction):
        table = pa.table(dict(zip(DOMAIN.names, self.rows.T, strict=True)))
        parts = [table.slice(start, 9).to_batches() for start in range(0, len(self.rows), 9)]
        return received([self.work.summed(reduction, batches) for batches in parts], reduction)


@pytest.mark.parametrize("name", STRUCTURES)
def test_records_that_stay_where_they_are_compare_as_rows_do(name):
    """To the last bit: both are functions of the counts."""
    model, rows = model_of(name), np.random.default_rng(3).integers(0, 2, (25, 4))
    for compare in (dpgm.log_likelihood, dpgm.total_variation):
        assert compare(model, Elsewhere(rows), allow_non_private=True) == compare(model, rows, allow_non_private=True)
