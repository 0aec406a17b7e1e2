"""What models answer: every query against the table of all records."""

import itertools
from unittest import mock

import numpy as np
import pytest
from scipy import stats

from dpgm_core import Domain, SeededRandomness, Structure, Tables
from dpgm_core.errors import DomainError, DpgmError, InferenceError, OptionError, TooLarge
from dpgm_core.inference.junction_tree.engine import JunctionTree, JunctionTreeEngine
from dpgm_core.models.model import Model
from tests.models.enumerated import DOMAIN, NAMES, STRUCTURES, joint, model_of, summed

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


def test_many_marginals_take_one_inference(monkeypatch):
    """All pairs of a model take one inference on its clusters besides the model's own, and compile two structures."""
    compiled, inferred = mock.Mock(side_effect=JunctionTree.plain), mock.Mock(side_effect=JunctionTreeEngine.infer)
    monkeypatch.setattr(JunctionTree, "plain", lambda self, structure: compiled(self, structure))
    monkeypatch.setattr(JunctionTreeEngine, "infer", lambda self, potentials: inferred(self, potentials))
    model = model_of("chain")
    pairs = list(itertools.combinations(NAMES, 2))
    model.marginals_of(pairs)
    assert (compiled.call_count, inferred.call_count) == (2, 2)
    model.marginals_of(pairs)
    assert (compiled.call_count, inferred.call_count) == (2, 3)


def test_many_marginals_are_keyed_as_asked():
    """Names alone stand for themselves, a clique asked for twice is there once, and nothing asked is nothing."""
    model = model_of("chain")
    found = model.marginals_of(["a", ("a", "d"), ["d", "a"], ("a",)])
    assert list(found) == [("a",), ("a", "d"), ("d", "a")]
    np.testing.assert_array_equal(found["a", "d"], found["d", "a"].T)
    assert model.marginals_of([]) == {}
    found["a",][:] = 7  # the answer is the caller's
    assert model.marginal("a").sum() == pytest.approx(1)


@pytest.mark.parametrize("name", STRUCTURES)
def test_samples_follow_the_model_and_repeat(name):
    """Chi-squared over all 24 records (false alarm 1e-6 each); the same seed, the same rows; labels, not codes."""
    model = model_of(name, seed=7)
    drawn = model.sample(20_000, randomness=SeededRandomness(11))
    assert drawn.equals(model.sample(20_000, randomness=SeededRandomness(11)))
    assert drawn.column_names == list(NAMES)
    codes = np.stack([drawn[column].to_numpy().astype(int) for column in NAMES])
    seen = np.zeros([attribute.size for attribute in DOMAIN])
    np.add.at(seen, tuple(codes), 1)
    expected = joint(model) * 20_000
    many = expected >= 5
    observed = np.append(seen[many], seen[~many].sum())
    wanted = np.append(expected[many], expected[~many].sum())
    keep = wanted > 0
    statistic = float(((observed[keep] - wanted[keep]) ** 2 / wanted[keep]).sum())
    assert stats.chi2.sf(statistic, int(keep.sum()) - 1) > 1e-6
    assert model.sample(0).num_rows == 0


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


def test_labels_come_back():
    """A model over labels answers in labels."""
    domain = Domain.from_dict(
        {"sex": {"labels": ["F", "M"], "unknown": "F"}, "town": {"labels": ["A", "B"], "unknown": "A"}}
    )
    structure = Structure(domain, [("sex", "town")])
    model = Model(structure, Tables.from_arrays(structure, {("sex", "town"): np.log([[0.1, 0.2], [0.3, 0.4]])}))
    assert model.map_assignment() == {"sex": "M", "town": "B"}
    assert model.marginal("sex", given={"town": "A"}).tolist() == pytest.approx([0.25, 0.75])
    assert set(model.sample(100)["sex"].to_pylist()) <= {"F", "M"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda model: model.marginal([]), "at least one"),
        (lambda model: model.marginal(["a", "a"]), "twice"),
        (lambda model: model.marginal("aa"), "no attribute 'aa'"),
        (lambda model: model.marginal("a", given={"a": 0}), "both asked for and given"),
        (lambda model: model.marginal("a", given={"e": 0}), "'e', which the model lacks"),
        (lambda model: model.marginal("a", given={"b": 3}), "codes 0 to 2"),
        (lambda model: model.marginal("a", given={"b": "x"}), "no label 'x'"),
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


@pytest.mark.parametrize("wrong", [5, None, "ab", [5], [None]])
def test_what_is_no_list_of_queries_is_refused(wrong):
    """In words, whatever it is."""
    with pytest.raises(DpgmError, match=r"list of cliques|names of attributes"):
        model_of("chain").marginals_of(wrong)
