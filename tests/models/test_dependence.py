"""Dependence of pairs: against the table of all records, closed forms, and what cannot be computed."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core import Budget, Domain, SeededRandomness, Structure, Tables, release
from dpgm_core.errors import OptionError, StructureError, TooLarge
from dpgm_core.inference.junction_tree.cluster_tree import cluster_tree
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.models import dependence as module
from dpgm_core.models.dependence import Dependence, measure_dependence, pair_tables
from dpgm_core.models.model import Model
from dpgm_testing.strategies import potentials, structures
from tests.models.enumerated import joint, random_model, summed, uniform_model
from tests.models.test_merged import model_of as merged_model

TREE = Structure(
    Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 4, "one": 1}), [("a", "b"), ("b", "c"), ("d",), ("one",)]
)


def expected(table: np.ndarray) -> tuple[float, float]:
    """Mutual information and V of one table, cell by cell."""
    one, two = table.sum(axis=1), table.sum(axis=0)
    information = squares = 0.0
    for i, j in np.ndindex(*table.shape):
        if one[i] > 0 and two[j] > 0:
            squares += (table[i, j] / one[i] - two[j]) ** 2 * one[i] / two[j]
        if table[i, j] > 0:
            information += table[i, j] * (math.log(table[i, j]) - math.log(one[i]) - math.log(two[j]))
    labels = min(np.count_nonzero(one), np.count_nonzero(two))
    return information, math.sqrt(squares / (labels - 1)) if labels > 1 else 0.0


def model_of(structure: Structure, replicates: int = 0, **facts) -> Model:
    model, more = random_model(structure, **facts), np.random.default_rng(1).normal(size=(replicates, structure.cells))
    return model.with_replicates(model.potentials.values + 0.2 * more) if replicates else model


def of_one_table(structure: Structure, table: np.ndarray) -> Model:
    """The same log-potentials in every clique."""
    return Model(structure, Tables.from_arrays(structure, dict.fromkeys(structure.cliques, table)))


@settings(max_examples=60, deadline=None)
@given(theta=potentials(over=structures(max_attributes=5, max_size=3), scales=(0.0, 1.0, 10.0)), data=st.data())
def test_all_pairs_agree_with_the_table_of_all_records(theta, data):
    """Any structure: loops, ties, nested and empty cliques, impossible cells, single labels, any subset."""
    names = theta.structure.domain.names
    asked = data.draw(st.permutations(names).flatmap(lambda some: st.integers(1, len(some)).map(lambda n: some[:n])))
    found = measure_dependence(Model(theta.structure, theta), asked)
    table = joint(Model(theta.structure, theta))
    assert found.pairs == tuple(itertools.combinations(asked, 2))
    for at, (one, two) in enumerate(found.pairs):
        pair = summed(table, (one, two), names)
        information, v = expected(pair)
        assert found.mutual_information[at] == pytest.approx(information, abs=1e-9)
        if min(pair.sum(axis=0).min(), pair.sum(axis=1).min()) > 1e-12:  # else rounding may make a label impossible
            assert found.cramers_v[at] == pytest.approx(v, abs=1e-6)


def test_closed_forms():
    """Independent attributes: 0 exactly across components; copies: log k and 1, impossible labels notwithstanding, and
    with a label of probability 1e-100."""
    found = measure_dependence(model_of(TREE))
    apart = [at for at, pair in enumerate(found.pairs) if {"d", "one"} & set(pair)]
    assert found.mutual_information[apart].tolist() == found.cramers_v[apart].tolist() == [0.0] * len(apart)
    for size, possible in ((2, 2), (5, 5), (5, 3)):
        structure = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", size)))
        copy = np.full((size, size), -np.inf)
        np.fill_diagonal(copy[:possible, :possible], 0.0)
        found = measure_dependence(of_one_table(structure, copy))
        assert found.mutual_information == pytest.approx([math.log(possible)] * 3)
        assert found.cramers_v == pytest.approx([1.0] * 3)
    structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    law = np.array([[0.0, -np.inf], [-np.inf, -100 * math.log(10)]])
    assert measure_dependence(Model(structure, Tables(structure, law.reshape(-1)))).cramers_v == pytest.approx([1.0])


def test_merged_codes_count_as_they_were():
    """The numbers are those of the tables that `marginal` gives, over all codes."""
    model = merged_model(1)
    found = measure_dependence(model)
    for at, pair in enumerate(found.pairs):
        assert (found.mutual_information[at], found.cramers_v[at]) == pytest.approx(expected(model.marginal(pair)))


def test_constraints_join_components():
    """Attributes that only an order joins depend on each other."""
    rules = {"x": {"columns": ["a", "b"], "order": "<="}}
    columns = {name: {"size": 3, "unknown": 0} for name in "ab"}
    domain = Domain.from_dict({"attributes": columns, "constraints": rules})
    structure = Structure(domain, [("a",), ("b",)])
    model = uniform_model(structure)
    assert measure_dependence(model).mutual_information == pytest.approx([expected(model.marginal(("a", "b")))[0]])
    assert measure_dependence(model).mutual_information[0] > 0.1


def test_intervals_are_those_of_the_replicates():
    """Of information and V, each as `interval_of` has it, kept to what is possible; none without replicates."""
    model = model_of(TREE, replicates=8)
    found = measure_dependence(model, list("abcd"), level=0.8)
    assert found.level == 0.8
    for at, pair in enumerate(found.pairs[:3]):
        for which, low, high in ((0, found.low, found.high), (1, found.v_low, found.v_high)):
            one = model.interval_of(lambda m, pair=pair, which=which: expected(m.marginal(pair))[which], level=0.8)
            assert low[at] == pytest.approx(max(one.low, 0.0), abs=1e-9)
            assert high[at] == pytest.approx(min(one.high, 1.0 if which else math.log(2)), abs=1e-9)
    alone = measure_dependence(model_of(TREE))
    assert alone.low is alone.v_high is alone.level is None


def test_intervals_end_where_values_do():
    """No information above log k, no V above 1, however much the replicates differ."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    rows = 9.0 * np.array([[1, -1, -1, 1], [0, 0, 0, 0], [-1, 1, 1, -1]])
    found = measure_dependence(Model(structure, Tables(structure, rows[0])).with_replicates(rows[1:]))
    assert (found.low[0], found.high[0], found.v_high[0]) == (0.0, pytest.approx(math.log(2)), 1.0)


def test_chosen_pairs_are_the_same():
    """In the order asked, with their intervals; replicates of merged codes are answered too."""
    rows = np.random.default_rng(0).normal(size=(3, 15))
    for model in (model_of(TREE, replicates=4), merged_model(2, replicates=rows)):
        every = measure_dependence(model)
        some = measure_dependence(model, pairs=[("c", "a"), ("b", "a")])
        for at, pair in enumerate(some.pairs):
            there = every.pairs.index(pair[::-1])
            for part in ("mutual_information", "cramers_v", "low", "high", "v_low", "v_high"):
                assert getattr(some, part)[at] == pytest.approx(getattr(every, part)[there], abs=1e-12)
        assert np.isnan(some.matrix(some.cramers_v)).sum() == 3 + 2  # the diagonal, and (b, c)


def test_standing_is_that_of_each_pair():
    """Pairs of one released table, pairs of two, and pairs with a single label."""
    records = np.column_stack([np.arange(40) % size for size in (2, 3, 2, 4, 1)])
    noisy = release(records, TREE, Budget.pure(1), neighbours="add-remove", randomness=SeededRandomness(0))
    found = measure_dependence(model_of(TREE, releases=[noisy]))
    standing = dict(zip(found.pairs, found.standing, strict=True))
    assert standing["a", "b"] == "measured" and standing["a", "c"] == standing["a", "d"] == "by structure"


def test_what_was_not_measured_is_left_out_or_refused():
    """By default it is not looked at; by name it is refused; as uniform it tells nothing."""
    records = np.column_stack([np.arange(40) % size for size in (2, 3, 2)])
    domain = Domain.from_sizes({"a": 2, "b": 3, "c": 2})
    noisy = release(records, Structure(domain, [("a", "b")]), Budget.pure(1), neighbours="add-remove")
    model = model_of(Structure(domain, [("a", "b"), ("c",)]), releases=[noisy])
    assert measure_dependence(model).names == ("a", "b")
    with pytest.raises(StructureError, match="no release behind the model measured 'c'"):
        measure_dependence(model, ["a", "c"])
    found = measure_dependence(model.using(unmeasured="uniform"))
    assert (found.names, found.mutual_information[1:].tolist()) == (("a", "b", "c"), [0.0, 0.0])


def wide(size: int = 3) -> Structure:
    """A loop: pairs of neighbours are in cliques, all others are not."""
    names = "abcdefgh"[:size]
    return Structure(Domain.from_sizes(dict.fromkeys(names, 3)), [*zip(names, names[1:] + names[0], strict=True)])


def test_what_does_not_fit_is_left_out_or_refused(monkeypatch):
    """Pairs inside a clique stay exact, others are NaN; with too many replicates only intervals are."""
    model = model_of(wide(6), replicates=3)
    every = measure_dependence(model)
    monkeypatch.setattr(module, "_MAX_CELLS", 10)
    found = measure_dependence(model)
    inside = np.array([model.structure.covering(pair) is not None for pair in found.pairs])
    assert found.mutual_information[inside] == pytest.approx(every.mutual_information[inside])
    assert np.isnan(found.cramers_v[~inside]).all() and inside.sum() == 6
    assert np.isnan(found.low).all()
    monkeypatch.undo()
    monkeypatch.setattr(module, "_MAX_ANSWERS", 20)
    found = measure_dependence(model_of(wide(5), replicates=3))
    assert np.isfinite(found.mutual_information).all() and np.isnan(found.v_high).all()
    monkeypatch.setattr(module, "_MAX_ANSWERS", 40)
    assert np.isfinite(measure_dependence(model_of(wide(5), replicates=3)).high).all()
    monkeypatch.undo()
    model = model_of(wide(6)).using(JunctionTree(max_bytes=64))
    with pytest.raises(TooLarge, match="max_bytes"):
        measure_dependence(model)


def test_an_engine_that_is_not_exact_answers_what_it_would(monkeypatch):
    """Loopy belief propagation: each pair as `marginal` has it; of too many only those in cliques, and 0 across."""
    structure = Structure(Domain.from_sizes(dict.fromkeys("abcde", 3)), [*map(tuple, ("ab", "bc", "ca", "cd", "e"))])
    model = model_of(structure).using("loopy-bp")
    found = measure_dependence(model)
    for at, pair in enumerate(found.pairs):
        assert found.mutual_information[at] == pytest.approx(expected(model.marginal(pair))[0], abs=1e-9)
    monkeypatch.setattr(module, "_MAX_SINGLE_PAIRS", 1)
    fewer = dict(zip(found.pairs, measure_dependence(model).cramers_v, strict=True))
    assert [pair for pair, v in fewer.items() if math.isnan(v)] == [("a", "d"), ("b", "d")]
    assert fewer["d", "e"] == 0.0


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"attributes": ["a", "nobody"]}, StructureError, "no attribute 'nobody'"),
        ({"attributes": ["a", "a"]}, StructureError, "twice"),
        ({"pairs": [("a", "b", "c")]}, StructureError, "between two attributes"),
        ({"pairs": "ab"}, StructureError, "takes a list"),
        ({"attributes": "ab", "pairs": ["ab"]}, OptionError, "either attributes"),
        ({"level": 90}, OptionError, "between 0 and 1"),
    ],
)
def test_bad_questions_are_refused(asked, error, words):
    """What was asked, what is wrong, before anything is computed."""
    with pytest.raises(error, match=words):
        measure_dependence(model_of(TREE), **asked)


def test_one_attribute_has_no_pairs():
    """Nothing to say is no error."""
    found = measure_dependence(model_of(TREE, replicates=2), ["a"])
    assert isinstance(found, Dependence) and found.pairs == () and found.high.shape == (0,)
    assert measure_dependence(model_of(TREE), pairs=[]).names == ()


#: Three arms: wherever the root is, some cluster has two others below it.
ARMS = Structure(
    Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 3, "e": 2, "f": 4}),
    [("a", "b", "c"), ("a", "d"), ("b", "e"), ("c", "f")],
)


@pytest.mark.parametrize("asked", ["abcdef", "df", "eca"])
def test_each_pair_is_met_once_with_the_tables_of_all_models(asked):
    """The walks of two attributes never both make their pair; attributes that are not asked for make none."""
    rng = np.random.default_rng(0)
    models = [Model(ARMS, Tables(ARMS, rng.normal(size=ARMS.cells))) for _ in range(3)]
    tree = cluster_tree(ARMS)
    tables = [np.stack([one.marginal(clique) for one in models]) for clique in tree.structure.cliques]
    met = {}
    for one, two, table in pair_tables(tree, tables, list(asked)):
        assert frozenset((one, two)) not in met
        met[frozenset((one, two))] = True
        assert table == pytest.approx(np.stack([model.marginal((one, two)) for model in models]), abs=1e-12)
    assert met.keys() == set(map(frozenset, itertools.combinations(asked, 2)))


def test_where_a_separator_is_impossible_nothing_is_divided():
    """A label of probability 0 passes on 0."""
    structure = Structure.chain(Domain.from_sizes({"a": 2, "b": 2, "c": 2}))
    tables = [np.array([[[0.5, 0.0], [0.5, 0.0]]]), np.array([[[0.25, 0.75], [0.0, 0.0]]])]
    tree = cluster_tree(structure)
    ((one, two, table),) = pair_tables(tree, tables, ["a", "c"])
    by_a = table if (one, two) == ("a", "c") else table.transpose(0, 2, 1)
    assert by_a.tolist() == [[[0.125, 0.375], [0.125, 0.375]]]
