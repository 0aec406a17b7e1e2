"""The learner without inference: maximum likelihood without noise, finite rows with nothing but noise, no engine."""

import numpy as np
import pytest
from dpgm_bayes_net.local import Local

import dpgm_core as dpgm
from dpgm_testing.curators import TrappedRecords

from .networks import curator_of, turned

DOMAIN = dpgm.Domain.from_sizes({"a": 2, "b": 3, "c": 2})
DAG = dpgm.Dag(DOMAIN, {"b": ["a"], "c": ["b", "a"]})
RNG = np.random.default_rng(5)
#: No record has a = 1 and b = 2.
CODES = np.array([row for row in np.stack([RNG.integers(0, n, 900) for n in (2, 3, 2)], axis=1) if row[0] * row[1] < 2])


def learned(budget, codes=CODES, dag=DAG, structure=None, learner="local", **more):
    structure = dag.structure() if structure is None else structure
    more = {"neighbours": "add-remove", "randomness": dpgm.SeededRandomness(2)} | more
    return dpgm.fit(codes, structure, budget, learner=learner, **more)


def by_counting(codes, dag):
    """P(child | parents) by plain loops; NaN where no record has the parents' state."""
    names = dag.domain.names
    actual = {}
    for family in dag.families:
        table = np.zeros(dag.domain.shape(family))
        for row in codes:
            table[tuple(row[names.index(name)] for name in family)] += 1
        with np.errstate(invalid="ignore"):
            actual[family[0]] = table / table.sum(axis=0)
    return actual


@pytest.mark.parametrize("learner", ["local", {"name": "bayes-net", "learner": "local"}])
def test_without_noise_it_is_maximum_likelihood(learner):
    """At a budget so large that noise is nothing every row with data is the records' own; the joint, by enumeration, is
    the product of its rows."""
    model = learned(dpgm.Budget.pure(10**6), learner=learner).model
    actual = dpgm.cpds(model, DAG)
    for child, expected in by_counting(CODES, DAG).items():
        seen = np.isfinite(expected)
        assert actual[child][seen] == pytest.approx(expected[seen], abs=1e-9)
    assert np.isnan(by_counting(CODES, DAG)["c"][:, 2, 1]).all() and actual["c"][:, 2, 1].sum() == pytest.approx(1)
    joint = model.marginal(("a", "b", "c"))
    for a, b, c in np.ndindex(2, 3, 2):
        expected = actual["a"][a] * actual["b"][b, a] * actual["c"][c, b, a]
        assert joint[a, b, c] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("smoothing", [0.0, 0.25, 100.0])
def test_with_nothing_but_noise_rows_are_finite(smoothing):
    """At epsilon = 1e-6 all counts are noise: rows are distributions all the same, and a note says that they drown."""
    fit = learned(dpgm.Budget.pure("0.000001"), learner={"name": "local", "smoothing": smoothing})
    for table in dpgm.cpds(fit.model, DAG).values():
        assert np.isfinite(table).all() and table.sum(axis=0) == pytest.approx(np.ones(table.shape[1:]))
    assert "of 9 rows of the conditional tables expect fewer records" in " ".join(fit.notes)
    assert not any(
        "expect fewer" in note for note in learned(dpgm.Budget.pure(1000), codes=CODES[:, [0, 0, 0]]).notes[1:]
    )


def test_names_and_orders_of_nodes_and_labels_change_nothing():
    """A release with attributes renamed and in another order, families in another order, parents too, and labels
    reversed gives the same conditional tables, in the new order."""
    release = learned(dpgm.Budget.pure(1)).releases[0]
    fit = dpgm.learn(release, learner="local")
    new = {"a": "z", "b": "y", "c": "x"}
    domain = dpgm.Domain.from_sizes({"y": 3, "x": 2, "z": 2})
    structure = dpgm.Structure(domain, [("x", "z", "y"), ("z",), ("y", "z")])
    again = dpgm.cpds(dpgm.learn(turned(release, new, structure), learner="local").model, dpgm.Dag.of(structure))
    first = dpgm.cpds(fit.model, DAG)
    assert again["z"] == pytest.approx(first["a"][::-1])
    assert again["y"] == pytest.approx(first["b"][::-1, ::-1])
    assert again["x"] == pytest.approx(first["c"][::-1, ::-1, ::-1].transpose(0, 2, 1))


class NoInference:
    """An inference that is not to be asked."""

    max_order = None

    def compile(self, structure):
        raise AssertionError("an engine was made")


def test_no_engine_is_made_and_a_graph_too_large_for_one_is_served():
    """60 attributes of three labels, each with three parents at random: checked and learned without an engine, and a
    note says that queries may not fit, as they do not."""
    size = {f"x{at}": 3 for at in range(60)}
    domain, rng = dpgm.Domain.from_sizes(size), np.random.default_rng(1)
    names = domain.names
    parents = {names[at]: [names[one] for one in rng.choice(at, 3, replace=False)] for at in range(4, 60)}
    structure, learner = dpgm.Dag(domain, parents).structure(), Local()
    curator = curator_of(TrappedRecords(np.zeros((50, 60), int)), structure)
    learner.check(structure, NoInference())
    fit = learner.learn(curator, NoInference(), randomness=dpgm.SeededRandomness(1), progress=dpgm.silent)
    assert any("queries may not fit: exact inference over this graph needs" in note for note in fit.notes)
    with pytest.raises(dpgm.TooLarge):
        fit.model.marginal("x1")
    small = learned(dpgm.Budget.pure(1))
    assert not any("may not fit" in note for note in small.notes)


def test_it_reads_what_a_replay_has():
    """A release of two of three families: the third is taken from what was measured with the child, and a note says
    so."""
    release = dpgm.release(
        CODES, dpgm.Structure(DOMAIN, [("a", "b"), ("b", "c")]), dpgm.Budget.pure(1000), neighbours="add-remove"
    )
    fit = dpgm.learn(release, learner="local", structure=DAG.structure())
    actual = dpgm.cpds(fit.model, DAG)
    assert actual["c"][:, :, 0] == pytest.approx(actual["c"][:, :, 1])
    assert any(note.startswith("1 of 3 families are in no table as a whole, c x b x a the first") for note in fit.notes)


def test_smoothing_is_a_finite_number_of_at_least_zero():
    for wrong in (-0.1, float("inf"), True, "much"):
        with pytest.raises(dpgm.OptionError, match="smoothing"):
            dpgm.make("learner", "local", smoothing=wrong)


def test_it_is_bootstrapped():
    model = dpgm.bootstrap(learned(dpgm.Budget.pure(1)).model, 5, randomness=dpgm.SeededRandomness(1))
    assert len(model.replicates) == 5 and all(abs(one.log_partition) < 1e-6 for one in model.replicates)
