"""The published algorithm: what it finds, what it costs, that its release holds the model, and what is refused."""

import math

import numpy as np
import pytest
from dpgm_mrf.polynomials import local, transform
from dpgm_mrf.walsh import MrfWalsh

import dpgm_core as dpgm
from dpgm_core.learning import Descent
from dpgm_testing.curators import TrappedRecords

NAMES = ("a", "b", "c", "d")
DOMAIN = dpgm.Domain.from_sizes(dict.fromkeys(NAMES, 2))
TRIPLES = dpgm.Structure.complete(DOMAIN, 3)
LEARNER = {"name": "mrf-walsh", "method": "paper", "width": 0.9, "least": 0.4}
TRUTH = np.zeros(16)
TRUTH[[0b0111, 0b1100]] = 0.5, -0.4


def records(count, seed=1):
    weights = np.exp(transform(TRUTH))
    states = np.random.default_rng(seed).choice(16, count, p=weights / weights.sum())
    return states[:, None] >> np.arange(4) & 1


CODES = records(2000)
ADD = dpgm.Terms(neighbours="add-remove", total=2000)


def fitted(budget=None, terms=ADD, structure=TRIPLES, learner=LEARNER, codes=CODES, seed=3, **more):
    budget = dpgm.Budget.zcdp(2) if budget is None else budget
    return dpgm.fit(
        codes, structure, budget, "gaussian", learner, terms=terms, randomness=dpgm.SeededRandomness(seed), **more
    )


def read_off(model):
    """The polynomial of a model's potentials, (16,), without its constant."""
    actual = np.zeros(16)
    for clique, table in model.potentials.items():
        actual[local(clique, NAMES)] += transform(np.asarray(table).reshape(-1)) / table.size
    actual[0] = 0
    return actual


BUDGETS = {"zcdp": dpgm.Budget.zcdp(2), "pure": dpgm.Budget.pure(60), "approx": dpgm.Budget.approx(8, "1e-6")}


@pytest.mark.parametrize("kind", BUDGETS)
def test_interactions_are_learned_and_a_saved_release_gives_them_again(kind, tmp_path):
    """Within .2 of the truth, its structure, at hardly any noise: what is left is the last steps' size, R mu_T = .1,
    and records; and the same model from the file, whose steps it is made of. The whole budget is charged."""
    fit = fitted(BUDGETS[kind], save_release=tmp_path / "r.dpgm")
    assert fit.model.structure.cliques == (("a", "b", "c"), ("c", "d"))
    actual = read_off(fit.model)
    assert actual[[0b0111, 0b1100]] == pytest.approx([0.5, -0.4], abs=0.2)
    assert fit.model.cost == BUDGETS[kind]
    again = dpgm.learn(dpgm.load_release(tmp_path / "r.dpgm"), LEARNER, structure=TRIPLES)
    assert again.model.potentials.values.tolist() == fit.model.potentials.values.tolist()


def test_the_same_seed_gives_the_same_model():
    few = {"learner": {**LEARNER, "order": 2}, "codes": CODES[:200], "terms": dpgm.Terms(neighbours="add-remove")}
    one, two, other = (fitted(seed=seed, **few).model.potentials.values.tolist() for seed in (1, 1, 2))
    assert one == two != other


def test_half_goes_to_regressions_and_half_to_parities():
    """Declared N: T - 1 descents, T = .25 (R N sqrt(rho / (2 p)))^(2/3), and as many rounds as attributes."""
    steps = fitted().release.steps
    descents = [one for one in steps if isinstance(one, Descent)]
    assert len(descents) == math.ceil(0.25 * (1.8 * 2000 * math.sqrt(1 / 4)) ** (2 / 3)) - 1
    assert float(dpgm.Budget.sum(one.cost for one in descents).rho) == pytest.approx(1, abs=1e-3)
    assert float(dpgm.Budget.sum(one.cost for one in steps if one not in descents).rho) == pytest.approx(1, abs=1e-3)
    assert [type(one).__name__ for one in steps[len(descents) :]] == ["Choice", "NoisyTables"] * 4
    assert all(one.measurement.contrasts for one in steps[len(descents) + 1 :: 2])


@pytest.mark.parametrize("total", ["estimated", "public"])
def test_a_number_of_records_that_is_not_declared_is_measured_first(total):
    """By the attributes alone, a twentieth of the budget; under replace-one too."""
    fit = fitted(terms=dpgm.Terms(neighbours="replace-one" if total == "public" else "add-remove", total=total))
    first = fit.release.steps[0]
    assert isinstance(first, dpgm.NoisyTables) and {len(one) for one in first.structure.cliques} <= {0, 1}
    assert float(first.cost.rho) == pytest.approx(0.1, rel=0.01)
    assert read_off(fit.model)[[0b0111, 0b1100]] == pytest.approx([0.5, -0.4], abs=0.25)


def test_without_a_least_the_model_is_over_the_structure():
    """And attributes alone need no regression."""
    chain = dpgm.Structure.chain(DOMAIN)
    free = {name: value for name, value in LEARNER.items() if name != "least"}
    assert fitted(structure=chain, learner=free).model.structure == chain
    alone = dpgm.Structure(DOMAIN, [(name,) for name in NAMES])
    fit = fitted(structure=alone, learner={**free, "order": 1})
    assert fit.model.structure == alone and not any(isinstance(one, Descent) for one in fit.release.steps)


def test_too_little_is_refused_before_the_charge():
    """By a plan, and by learn, with no record read and nothing spent."""
    learner, tiny = MrfWalsh(method="paper", width=0.9), dpgm.Budget.zcdp("1e-12")
    curator = dpgm.LiveCurator(
        TrappedRecords(CODES), TRIPLES, dpgm.make("mechanism", "gaussian"), terms=ADD, budget=tiny
    )
    with pytest.raises(dpgm.BudgetError, match=r"divides the budget over many choices: .* too little"):
        learner.learn(
            curator, dpgm.make("inference", "junction-tree"), randomness=dpgm.SeededRandomness(1), progress=dpgm.silent
        )
    assert curator.remaining == tiny and not curator.released
    with pytest.raises(dpgm.BudgetError, match="too little"):
        dpgm.plan(TRIPLES, tiny, "gaussian", terms=ADD, learner=learner)
    assert any("step by step" in note for note in dpgm.plan(TRIPLES, tiny * 10**12, terms=ADD, learner=learner).notes)


def test_releases_of_others_are_refused():
    """One of tables, one of another width, and refits, which would need a session each."""
    tables = dpgm.release(CODES, TRIPLES, dpgm.Budget.pure(1), neighbours="add-remove")
    with pytest.raises(dpgm.BudgetError, match="method = 'release', which takes any"):
        dpgm.learn(tables, LEARNER)
    fit = fitted()
    with pytest.raises(dpgm.BudgetError, match="order and width"):
        dpgm.learn(fit.release, {**LEARNER, "width": 1.0}, structure=TRIPLES)
    with pytest.raises(dpgm.OptionError, match="session of its own"):
        dpgm.bootstrap(fit.model, 20)
    other = dpgm.learn(fit.release, "mrf-walsh", structure=TRIPLES)  # of the parities that it measured
    assert other.converged
