"""Constraints from a domain file to synthetic records: every learner and selector, models on disk, refusals."""

import itertools

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm.interop import read_uai, write_uai
from dpgm_core.domain import Listed
from dpgm_core.inference.loopy.bp import LoopyBP

TOWNS, LANDS = [f"town {n}" for n in range(6)], ["north", "south", "west"]
OF = [0, 0, 1, 1, 2, 2]
PLAIN = {
    "attributes": {
        "town": {"labels": TOWNS, "unknown": TOWNS[0]},
        "land": {"labels": LANDS, "unknown": LANDS[0]},
        "start": {"size": 4, "unknown": 0},
        "end": {"size": 4, "unknown": 0},
        "x": {"size": 3, "unknown": 0},
    },
    "constraints": {
        "where": {"columns": ["town", "land"], "map": {town: LANDS[of] for town, of in zip(TOWNS, OF, strict=True)}},
        "time": {"columns": ["start", "end"], "order": "<="},
        "never": {"columns": ["x", "start"], "impossible": [["2", "3"], ["2", "2"]]},
    },
}
DOMAIN = dpgm.Domain.from_dict(PLAIN)
INSIDE = [("town", "land"), ("start", "end"), ("x", "start"), ("land", "x")]
ACROSS = [("town", "x"), ("x", "end"), ("start",), ("land",)]
NETWORK = {"land": ["town"], "start": ["x"], "end": ["start"], "x": ["town"]}


def people(count=3000, seed=0):
    """Records that break nothing."""
    random = np.random.default_rng(seed)
    town, x = random.integers(0, 6, count), random.integers(0, 3, count)
    start = np.minimum(random.integers(0, 4, count), np.where(x == 2, 1, 3))
    return np.stack([town, np.array(OF)[town], start, np.minimum(3, start + random.integers(0, 3, count)), x], axis=1)


RECORDS = people()


def fitted(structure, learner="eb-map", budget="0.3", records=RECORDS, **more):
    budget = dpgm.Budget.zcdp(budget) if learner == "psgd" else dpgm.Budget.pure(budget)
    more = {"mechanism": "gaussian"} | more if learner == "psgd" else more
    seed = dpgm.SeededRandomness(1)
    return dpgm.fit(records, structure, budget, learner=learner, neighbours="add-remove", randomness=seed, **more)


def opened(folder):
    return dpgm.Ledger.create(folder / "l.ledger", name="l", budget=dpgm.Budget.pure(9), neighbours="add-remove")


def broken(model, table):
    """How many rows of labels break a constraint."""
    domain = model.domain
    codes = {one.name: np.array([one.labels.index(v) for v in table.column(one.name).to_pylist()]) for one in domain}
    return sum(domain.broken(codes).values())


def check(model):
    """Nothing impossible has a probability or is drawn."""
    for names in [("town", "land"), ("end", "start"), ("x", "start"), ("land", "end", "town")]:
        table, mask = model.marginal(names), DOMAIN.impossible(names)
        assert not table[mask].any() and table.sum() == pytest.approx(1)
    for method in ("independent", "rounded"):
        assert broken(model, model.sample(3000, method=method, randomness=dpgm.SeededRandomness(2))) == 0


@pytest.mark.sampled(4)
@pytest.mark.parametrize("cliques", [INSIDE, ACROSS], ids=["inside", "across"])
@pytest.mark.parametrize("learner", ["eb-map", {"name": "naive-mle", "l2": 1e-4}, "cgm-em", "psgd"], ids=str)
def test_a_learner_gives_impossible_records_nothing(learner, cliques):
    """Exactly 0 in every table, none in 6000 records; it converges."""
    held = fitted(dpgm.Structure(DOMAIN, cliques), learner)
    assert held.converged
    check(held.model)


@pytest.mark.parametrize("cliques", [INSIDE, ACROSS], ids=["inside", "across"])
def test_what_is_known_brings_a_model_nearer_to_the_truth(cliques):
    """No further from it than without, and nearer where no clique measured it."""
    structures = (dpgm.Structure(domain, cliques) for domain in (DOMAIN, dpgm.Domain(DOMAIN.attributes)))
    held, free = (fitted(one, {"name": "naive-mle", "l2": 1e-4}) for one in structures)
    truth = np.zeros(DOMAIN.shape(("start", "end")))
    np.add.at(truth, (RECORDS[:, 2], RECORDS[:, 3]), 1 / len(RECORDS))
    far = [np.abs(one.model.marginal(("start", "end")) - truth).sum() for one in (held, free)]
    assert far[0] <= far[1] * (1.05 if cliques is INSIDE else 0.9)


LOCAL = {"name": "bayes-net", "learner": "local"}


@pytest.mark.parametrize("learner", ["bayes-net", LOCAL, "bayes-net-two-stage"], ids=str)
def test_a_network_holds_constraints_inside_its_families(learner):
    """Zeros of conditional tables: log Z is 0, as for every network."""
    model = fitted(dpgm.Dag(DOMAIN, NETWORK).structure(), learner).model
    check(model)
    assert model.engine.infer(model.potentials).log_partition == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("learner", ["bayes-net", "bayes-net-two-stage"])
def test_a_network_that_cannot_hold_them_is_refused_before_the_charge(tmp_path, learner):
    """By the constraint's name; nothing is charged."""
    ledger = opened(tmp_path)
    structure = dpgm.Dag(DOMAIN, {"land": ["town"], "x": ["start"]}).structure()
    with pytest.raises(dpgm.StructureError, match="constraint 'time' lies in no family of the graph"):
        fitted(structure, learner, ledger=ledger)
    assert ledger.spent().is_zero
    with pytest.raises(dpgm.StructureError, match="constraint 'where' lies in no family"):
        fitted("privbayes", learner, workload=DOMAIN, ledger=ledger)
    assert ledger.spent().is_zero


@pytest.mark.sampled(3)
@pytest.mark.parametrize("selector", ["mst", "aim", "privbayes"])
def test_what_a_selector_chooses_holds_them(selector):
    """Constrained columns keep all their codes, and no record drawn breaks a rule."""
    model = fitted(selector, workload=DOMAIN, budget="0.5").model
    assert model.structure.domain == DOMAIN
    check(model)


def test_a_model_keeps_them_on_disk_and_under_conditions(tmp_path):
    """Saved and read, conditioned on labels, and its guarantee says that they are public."""
    done = fitted(dpgm.Structure(DOMAIN, INSIDE), save_release=tmp_path / "tables.dpgm")
    done.model.save(tmp_path / "model.dpgm")
    model = dpgm.load_model(tmp_path / "model.dpgm")
    assert model.domain == DOMAIN and "with its constraints 'where', 'time' and 'never'" in model.guarantee()
    assert model.marginal("land", given={"town": "town 3"}).tolist() == pytest.approx([0, 1, 0])
    assert model.marginal("town", given={"land": "west"})[:4].tolist() == [0, 0, 0, 0]
    most = model.map_assignment({"start": 3})
    assert most["end"] == "3" and most["x"] != "2"
    with pytest.raises(dpgm.DomainError, match="start=3, end=1, is impossible: constraint 'time' rules it out"):
        model.marginal("x", given={"start": 3, "end": 1})
    # What was drawn is kept: only learners see zeros.
    saved = dpgm.load_release(tmp_path / "tables.dpgm")
    assert saved.tables.values[saved.structure.impossible].any()
    again = dpgm.learn(saved, randomness=dpgm.SeededRandomness(1)).model
    np.testing.assert_allclose(again.marginal("x"), model.marginal("x"), atol=1e-6)


def test_what_a_map_tells_needs_no_table():
    """Land was never measured, but the map tells it from the town: it is answered, sampled, and called measured."""
    model = fitted(dpgm.Structure(DOMAIN, [("town", "x"), ("start", "end")])).model
    assert model.unmeasured == () and model.standing(("land", "x")) == "measured"
    towns = model.marginal(("town", "x"))
    lands = np.stack([towns[[code for code, of in enumerate(OF) if of == land]].sum(axis=0) for land in range(3)])
    np.testing.assert_allclose(model.marginal(("land", "x")), lands, atol=1e-12)
    assert not any("land" in clique for clique in model.structure.narrowed.cliques)


def test_a_uai_file_has_them_as_factors(tmp_path):
    """Who reads it without our sidecar gets the same distribution."""
    model = fitted(dpgm.Structure(DOMAIN, ACROSS)).model
    write_uai(tmp_path / "m.uai", model.structure, model.potentials)
    plain, named = (read_uai(tmp_path / "m.uai", names=names).potentials for names in (False, True))
    assert not plain.structure.domain.constraints and named.structure == model.structure
    whole = dpgm.Model(plain.structure, plain).marginal(plain.structure.domain.names)
    np.testing.assert_allclose(whole, model.marginal(DOMAIN.names), atol=1e-9)


class Forgetful(LoopyBP):
    """An engine that knows of no constraints."""

    def compile(self, structure):
        return self._plain(structure)


def test_what_cannot_be_honoured_is_refused_before_the_charge(tmp_path):
    """An engine that ignores constraints, and constraints that only together leave no record."""
    ledger = opened(tmp_path)
    with pytest.raises(dpgm.OptionError, match="inference Forgetful ignores constraints, and the domain has 'where'"):
        fitted(dpgm.Structure(DOMAIN, INSIDE), inference=Forgetful(), ledger=ledger)
    pairs = {"columns": ["a", "b"], "impossible": [[0, 0], [1, 1]]}
    rules = {"one": pairs, "two": {**pairs, "columns": ["b", "c"]}, "three": {**pairs, "columns": ["a", "c"]}}
    plain = {"attributes": {name: {"size": 2, "unknown": 0} for name in "abc"}, "constraints": rules}
    odd = dpgm.Domain.from_dict(plain)
    for structure in (dpgm.Structure(odd, [("a", "b")]), "mst"):
        more = {} if isinstance(structure, dpgm.Structure) else {"workload": odd}
        words = "constraints 'one', 'two', 'three' leave no record possible together"
        with pytest.raises(dpgm.DomainError, match=words):
            fitted(structure, ledger=ledger, records=np.zeros((9, 3), int), **more)
    assert ledger.spent().is_zero


def test_rare_codes_of_constrained_columns_are_not_merged():
    """Of two columns with the same rare codes the one that a rule is about keeps them all, the other does not."""
    plain = dpgm.Domain.from_sizes({"ruled": 12, "free": 12, "x": 2})
    domain = dpgm.Domain(plain.attributes, [Listed(name="x", columns=("ruled", "x"), combinations=(("11", "1"),))])
    column = np.random.default_rng(0).integers(0, 2, 2000)
    records = np.stack([column, column, np.zeros(2000, int)], axis=1)
    model = fitted("mst", workload=domain, budget="0.2", records=records).model
    assert model.structure.domain["ruled"].size == 12 and model.structure.domain["free"].size < 12
    assert model.domain == domain
    assert model.marginal(("ruled", "x"))[11, 1] == 0


@pytest.mark.parametrize("sign", ["<=", "<"])
def test_no_record_breaks_a_chain_of_orders(sign):
    """Bins that fit pair by pair and not together; the model measures none of the orders. Missing values pass."""
    bins = {"a": [0, 5, 10, 20], "b": [0, 10, 20], "c": [0, 5, 12, 20]}
    plain = {
        "attributes": {name: {"type": "integer", "bins": edges} for name, edges in bins.items()},
        "constraints": {pair: {"columns": list(pair), "order": sign} for pair in ("ab", "bc")},
    }
    domain = dpgm.Domain.from_dict(plain)
    structure = dpgm.Structure(domain, [("a",), ("b",), ("c",)])
    model = dpgm.Model(structure, dpgm.Tables.zeros(structure))
    assert domain.scopes[-1] == ("a", "b", "c") and model.marginal(("a", "b", "c"))[1, 0, 0] == 0
    drawn = model.sample(5000, form="values", randomness=dpgm.SeededRandomness(3))
    places = [np.array(drawn.column(name).to_pylist(), float) for name in "abc"]
    for low, high in itertools.pairwise(places):
        assert not (low > high).any() and (sign == "<=" or not (low == high).any())
    assert np.isnan(places[1]).any() and (places[0] > places[2]).any()
