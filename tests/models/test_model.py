"""Models and the distribution behind them against the table of all records."""

import itertools
import math
from unittest import mock

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Domain, SeededRandomness, Structure, Tables
from dpgm_core.errors import DomainError, DpgmError, InferenceError, OptionError, TooLarge
from dpgm_core.inference.junction_tree.engine import JunctionTree, JunctionTreeEngine
from dpgm_core.models.distribution import Distribution, collect_potentials, expectation
from dpgm_core.models.model import Model
from tests.models.enumerated import DOMAIN, NAMES, STRUCTURES, joint, model_of, summed, uniform_model

NO_LIST = "list of cliques|names of attributes"
CASES = [(name, zeros) for name in STRUCTURES for zeros in (0.0, 0.15)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "zeros"), CASES)
def test_queries_agree_with_the_table_of_all_records(name, zeros):
    """Marginals across cliques, given labels or codes, conditionals, entropy and the most probable record."""
    model = model_of(name, zeros=zeros, seed=3)
    table = joint(model)
    for count in (1, 2, 3):
        for names in itertools.permutations(NAMES, count):
            assert np.allclose(model.marginal(names), summed(table, names), atol=1e-12), names
    for given in ({"b": 1}, {"d": "0", "a": 1}):
        fixed = {NAMES.index(key): int(value) for key, value in given.items()}
        kept = np.zeros_like(table)
        index = tuple(fixed.get(i, slice(None)) for i in range(4))
        kept[index] = table[index]
        for names in itertools.permutations([name for name in NAMES if name not in given], 2):
            if kept.sum() == 0:
                with pytest.raises(InferenceError):
                    model.marginal(names, given=given)
            else:
                assert np.allclose(model.marginal(names, given=given), summed(kept / kept.sum(), names), atol=1e-12)
        if kept.sum() > 0:
            best = model.map_assignment(given)
            assert kept[tuple(int(best[name]) for name in NAMES)] == pytest.approx(kept.max())
    best = model.map_assignment()
    assert table[tuple(int(best[name]) for name in NAMES)] == pytest.approx(table.max())
    pair, alone = summed(table, ("d", "a", "b")), summed(table, ("a", "b"))
    expected = np.divide(pair, alone, out=np.zeros_like(pair), where=alone > 0)
    assert np.allclose(model.conditional("d", on=("a", "b")), expected, atol=1e-12)
    positive = table[table > 0]
    assert model.entropy() == pytest.approx(-float(positive @ np.log(positive)))


@pytest.mark.sampled(7)
@pytest.mark.parametrize("inference", ["junction-tree", "one by one", "no room for clusters"])
@pytest.mark.parametrize(("name", "zeros"), CASES)
def test_many_marginals_agree_with_the_table_of_all_records(name, zeros, inference, monkeypatch):
    """Every subset in every order, given labels or nothing, through answers at once and one by one."""
    model = model_of(name, zeros=zeros, seed=3)
    if inference == "one by one":
        monkeypatch.setattr(JunctionTreeEngine, "capabilities", frozenset())
    if inference == "no room for clusters":
        monkeypatch.setattr(JunctionTreeEngine, "answers", mock.Mock(side_effect=TooLarge("for this test")))
    everything = joint(model)
    queries = [query for order in (1, 2, 3, 4) for query in itertools.permutations(NAMES, order)]
    found = model.marginals_of(queries)
    assert list(found) == queries
    for query, table in found.items():
        np.testing.assert_allclose(table, summed(everything, query), atol=1e-12)
    held = everything[:, 1:2] / everything[:, 1].sum()
    for query, table in model.marginals_of(itertools.combinations("dca", 2), given={"b": 1}).items():
        np.testing.assert_allclose(table, summed(held, query), atol=1e-12)


def test_many_marginals_take_one_inference_and_are_keyed_as_asked(monkeypatch):
    """All pairs take one inference more and compile two structures; a clique asked for twice is there once."""
    compiled, inferred = mock.Mock(side_effect=JunctionTree.plain), mock.Mock(side_effect=JunctionTreeEngine.infer)
    monkeypatch.setattr(JunctionTree, "plain", lambda self, structure: compiled(self, structure))
    monkeypatch.setattr(JunctionTreeEngine, "infer", lambda self, potentials: inferred(self, potentials))
    model = model_of("chain")
    pairs = list(itertools.combinations(NAMES, 2))
    model.marginals_of(pairs)
    assert (compiled.call_count, inferred.call_count) == (2, 2)
    model.marginals_of(pairs)
    assert (compiled.call_count, inferred.call_count) == (2, 3)
    model = model_of("chain")
    found = model.marginals_of(["a", ("a", "d"), ["d", "a"], ("a",)])
    assert list(found) == [("a",), ("a", "d"), ("d", "a")]
    np.testing.assert_array_equal(found["a", "d"], found["d", "a"].T)
    assert model.marginals_of([]) == {}
    found["a",][:] = 7  # the answer is the caller's
    assert model.marginal("a").sum() == pytest.approx(1)


def test_samples_repeat():
    """The same seed, the same rows, in labels; the kit and test_sampling.py hold that they follow the model."""
    model = model_of("tied", seed=7)
    drawn = model.sample(2000, randomness=SeededRandomness(11))
    assert drawn.equals(model.sample(2000, randomness=SeededRandomness(11)))
    assert drawn.column_names == list(NAMES) and model.sample(0).num_rows == 0


def test_rounded_samples_repeat_and_are_refused_by_name():
    """The same seed, the same rows; single attributes within a record or so; an engine that cannot; another method."""
    model = model_of("chain", seed=7)
    drawn = model.sample(900, method="rounded", randomness=SeededRandomness(3))
    assert drawn.equals(model.sample(900, method="rounded", randomness=SeededRandomness(3)))
    found = np.bincount(drawn["b"].to_numpy().astype(int), minlength=3)
    assert np.abs(found - 900 * model.marginal("b")).max() < 3
    with pytest.raises(InferenceError, match="LoopyEngine cannot round expected counts; use junction-tree"):
        model.using("loopy-bp").sample(9, method="rounded")
    with pytest.raises(OptionError, match="'independent' or 'rounded', got 'neat'"):
        model.sample(9, method="neat")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda model: model.marginal([]), "at least one"),
        (lambda model: model.marginal(["a", "a"]), "twice"),
        (lambda model: model.marginal("aa"), "no attribute 'aa'"),
        (lambda model: model.marginal(5), "names of attributes, got int"),
        (lambda model: model.marginal("a", given={"a": 0}), "both asked for and given"),
        (lambda model: model.marginal("a", given={"e": 0}), "'e', which the model lacks"),
        (lambda model: model.marginal("a", given={"b": 3}), "codes 0 to 2"),
        (lambda model: model.marginal("a", given={"b": "x"}), "no label 'x'"),
        *((lambda model, wrong=wrong: model.marginals_of(wrong), NO_LIST) for wrong in (5, None, "ab", [5], [None])),
        (lambda model: model.marginals_of("ab"), r"write \['ab'\] for one"),
        (lambda model: model.marginals_of([("a", "b"), ("c", "e")]), "no attribute 'e'"),
        (lambda model: model.marginals_of([("a", "b"), "d"], given={"b": 0}), "both asked for and given"),
        (lambda model: model.conditional("a", on="a"), "twice"),
        (lambda model: model.sample(-1), "at least 0"),
        (lambda model: model.sample(True), "at least 0"),
        (lambda model: model.sample(1.5), "at least 0"),
        (lambda model: model.using("loopy-bp").map_assignment(), "cannot maximise"),
        (lambda model: model.using("loopy-bp").sample(1), "cannot sample"),
    ],
)
def test_wrong_queries_are_refused(call, words):
    """Each says what was asked and what is wrong."""
    with pytest.raises((DomainError, DpgmError, OptionError), match=words):
        call(model_of("chain"))


@pytest.mark.parametrize(("one", "other"), list(itertools.product(STRUCTURES, ["cycle", "tied"])))
def test_kl_agrees_with_its_sum(one, other):
    """Between models of different structures, tied ones included; 0 with itself."""
    p, q = model_of(one, seed=1), model_of(other, seed=2)
    table = joint(p)
    assert p.kl(q) == pytest.approx(float((table * np.log(table / joint(q))).sum()))
    assert p.kl(p) == pytest.approx(0, abs=1e-12)
    assert dpgm.kl_divergence(p, q) == p.kl(q)


def test_kl_is_infinite_where_the_other_rules_out():
    """One way infinite, the other way finite; models over other attributes are refused."""
    structure = Structure(DOMAIN, [("a",), ("b",)])
    free = uniform_model(structure)
    values = np.zeros(structure.cells)
    values[0] = -np.inf
    never = Model(structure, Tables(structure, values))
    assert free.kl(never) == math.inf
    assert never.kl(free) == pytest.approx(math.log(2))
    with pytest.raises(DpgmError, match="same domain"):
        free.kl(uniform_model(Structure(Domain.from_sizes({"a": 2}), [("a",)])))


def test_potentials_without_a_distribution_are_refused():
    """NaN and +inf at once; all -inf and impossible evidence when asked."""
    structure = Structure(DOMAIN, [("a",)])
    for wrong in (np.nan, np.inf, 2e9, -2e9):
        with pytest.raises(InferenceError, match="log-potentials must"):
            Model(structure, Tables(structure, np.array([0, wrong])))
    with pytest.raises(InferenceError):
        Model(structure, Tables(structure, np.full(2, -np.inf))).marginal("a")
    with pytest.raises(InferenceError, match="within 1e\\+09 nats"):  # marginals would sum to nothing, unsaid
        Model(structure, Tables(structure, np.array([0, -1e18])))
    model = Model(structure, Tables(structure, np.array([0, -np.inf])))
    for impossible in ({"a": 1}, dict.fromkeys(NAMES, 1)):
        with pytest.raises(InferenceError, match="probability 0"):
            model.map_assignment(impossible)
    with pytest.raises(InferenceError, match="probability 0"):
        model.marginal("b", given={"a": 1})
    assert model.map_assignment(dict.fromkeys(NAMES, 0)) == dict.fromkeys(NAMES, "0")


def test_what_does_not_fit_is_never_approximated():
    """TooLarge, before and after loading, unless another engine is named."""
    domain = Domain.from_sizes({f"x{i}": 10 for i in range(20)})
    model = uniform_model(Structure.complete(domain))
    for call in (lambda: model.marginal("x0"), model.entropy, model.map_assignment, lambda: model.sample(1)):
        with pytest.raises(TooLarge):
            call()
    assert np.allclose(model.using("loopy-bp").marginal("x0"), 0.1)
    for inference in ("junction-tree", "loopy-bp"):
        with pytest.raises(TooLarge):
            uniform_model(Structure.chain(domain), inference=inference).marginal(domain.names)


def test_total_variation_by_hand():
    """Against a model, tables (tied ones by their mean), and records."""
    p, q = model_of("chain", 1), model_of("tied", 2)
    distances = dpgm.total_variation(p, q)
    assert set(distances) == set(p.structure.cliques)
    for clique, value in distances.items():
        assert value == pytest.approx(0.5 * np.abs(summed(joint(p), clique) - summed(joint(q), clique)).sum())
    tables = Tables(q.structure, np.arange(1.0, q.structure.cells + 1))
    group = q.structure.groups[-1]
    mean = np.mean([summed(joint(p), clique) for clique in group], axis=0)
    wanted = 0.5 * np.abs(mean - tables.group(2) / tables.group(2).sum()).sum()
    for clique in (group[0], tuple(reversed(group[0]))):
        assert dpgm.total_variation(p, tables, [clique])[clique] == pytest.approx(wanted)
    codes = np.zeros((10, 4), int)
    exact = dpgm.total_variation(p, codes, [("a",)], allow_non_private=True)
    assert exact["a",] == pytest.approx(1 - p.marginal("a")[0])


STRUCTURE = Structure(DOMAIN, [("b", "a"), ("c",)], tied=[[("a", "c"), ("d", "a")]])


def test_engines_are_shared_and_few():
    """A second distribution takes the engines of the first, and no more than 16 are kept."""
    law = Distribution(Tables.zeros(STRUCTURE), "junction-tree")
    engine = law.engine(STRUCTURE)
    assert Distribution(law.potentials, "junction-tree", law.engines).engine(STRUCTURE) is engine
    for size in range(2, 20):
        law.engine(Structure(Domain.from_sizes({"a": size}), [("a",)]))
    assert len(law.engines) <= 16


def test_pieces_on_the_same_attributes_add_up_in_any_order_of_axes():
    """p(x) is the product of all pieces, by enumeration of the records; what is handed in stays as it was."""
    rng = np.random.default_rng(1)
    pieces = [(("a", "b"), rng.normal(size=(2, 3))), (("b", "a"), rng.normal(size=(3, 2))),
              (("c",), rng.normal(size=2)), ((), rng.normal(size=())), (("c",), np.array([0.0, -np.inf]))]  # fmt: skip
    structure, potentials = collect_potentials(DOMAIN, pieces)
    assert [set(clique) for clique in structure.cliques] == [{"a", "b"}, {"c"}, set()]
    for record in np.ndindex(2, 3, 2):
        values = dict(zip("abc", record, strict=True))

        def total(parts, values=values):
            return sum(float(table[tuple(values[name] for name in clique)]) for clique, table in parts)

        assert total(potentials.items()) == pytest.approx(total(pieces))
    table = np.zeros(2)
    collect_potentials(DOMAIN, [(("a",), table), (("a",), np.ones(2))])
    assert table.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("weights", "values", "expected"),
    [
        ([0.5, 0.5], [1.0, 3.0], 2.0),
        ([1.0, 0.0], [2.0, -np.inf], 2.0),
        ([0.5, 0.5], [2.0, -np.inf], -np.inf),
        ([0.0, 0.0], [np.inf, -np.inf], 0.0),
        ([1e16, 1.0, -1e16], [1.0, 1.0, 1.0], 1.0),
    ],
)
def test_weight_zero_silences_what_is_infinite(weights, values, expected):
    """0 log 0 = 0; sums of finite terms are exact to the last digit."""
    assert expectation(np.array(weights), np.array(values)) == expected
