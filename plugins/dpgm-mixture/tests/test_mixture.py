"""Latent classes learned from noisy tables: planted ones, dense tables, refits, and what is refused."""

import functools
import itertools

import numpy as np
import pytest
from dpgm_mixture import learner
from dpgm_mixture.learner import Mixture
from dpgm_mixture.objective import Objective

import dpgm_core as dpgm

NAMES = [f"x{place}" for place in range(6)]
DOMAIN = dpgm.Domain.from_sizes(dict.fromkeys(NAMES, 4))
PAIRS = list(itertools.combinations(NAMES, 2))


def planted(classes: int = 3, seed: int = 1) -> dpgm.Model:
    """A population of latent classes that are far apart."""
    rng = np.random.default_rng(seed)
    whole = dpgm.Domain([dpgm.Attribute.of_size("h", classes), *DOMAIN.attributes])
    structure = dpgm.Structure(whole, [("h",), *(("h", name) for name in NAMES)])
    tables = {("h", name): np.log(rng.dirichlet(np.full(4, 0.5), size=classes) + 1e-3) for name in NAMES}
    return dpgm.Model(
        structure, dpgm.Tables.from_arrays(structure, {("h",): np.zeros(classes), **tables}), latent=["h"]
    )


def records_of(model: dpgm.Model, count: int, seed: int = 2):
    table = model.sample(count, form="labels", randomness=dpgm.SeededRandomness(seed))
    return np.stack([np.array(column.to_pylist(), int) for column in table.columns], axis=1)


def distance(one, other, cliques) -> float:
    first, second = one.marginals_of(cliques), other.marginals_of(cliques)
    return float(np.mean([0.5 * np.abs(first[clique] - second[clique]).sum() for clique in cliques]))


TRUTH = planted()
CODES = records_of(TRUTH, 50_000)


def selected(codes=CODES, epsilon=5, seed=1, **options):
    return dpgm.fit(
        codes,
        "all-pairs",
        dpgm.Budget.approx(epsilon, "1e-9").zcdp_within(),
        learner=Mixture(**{"follow": 1, **options}),
        workload=dpgm.Workload.all(DOMAIN, 2),
        neighbours="add-remove",
        randomness=dpgm.SeededRandomness(seed),
    )


FIT = selected()


def test_planted_classes_are_found():
    """Sampling alone moves the pairs by .005 and the triples by .01; triples were not measured."""
    triples = list(itertools.combinations(NAMES, 3))
    assert distance(FIT.model, TRUTH, PAIRS) < 0.01
    assert distance(FIT.model, TRUTH, triples) < 0.03
    alone = dpgm.learn(
        dpgm.release(
            CODES, dpgm.Structure(DOMAIN, [(name,) for name in NAMES]), dpgm.Budget.pure(5), neighbours="add-remove"
        )
    )
    assert distance(alone.model, TRUTH, PAIRS) > 0.1 and FIT.converged


def test_records_are_those_of_the_domain():
    """And follow the model: 50,000 records of 16 cells a pair are within .01."""
    drawn = records_of(FIT.model, 50_000)
    assert drawn.shape == (50_000, 6) and FIT.model.domain == DOMAIN
    counted = [np.bincount(drawn[:, one] * 4 + drawn[:, two], minlength=16) / 50_000 for one, two in ((0, 1), (2, 5))]
    found = [FIT.model.marginal(pair).reshape(-1) for pair in (("x0", "x1"), ("x2", "x5"))]
    assert max(0.5 * np.abs(one - other).sum() for one, other in zip(counted, found, strict=True)) < 0.01
    with pytest.raises(dpgm.StructureError, match="'h' is a latent class of the model"):
        FIT.model.marginal(["x0", "h"])


def test_the_same_seed_gives_the_same_model_and_a_file_keeps_it(tmp_path):
    """To the last bit; standing, provenance and notes come back."""
    one, two = (selected(classes=4, steps=50).model.potentials.values for _ in range(2))
    np.testing.assert_array_equal(one, two)
    FIT.model.save(tmp_path / "m.dpgm")
    again = dpgm.load_model(tmp_path / "m.dpgm")
    assert again.latent == ("h",) and again.made_by("learner") == "mixture"
    assert {again.standing(pair) for pair in PAIRS} == {"measured"} and again.standing(NAMES[:3]) == "by structure"
    np.testing.assert_array_equal(again.marginal(NAMES[:3]), FIT.model.marginal(NAMES[:3]))


def test_the_number_of_classes_is_chosen_or_given():
    """16 explain three planted ones; a given number is kept, by refits as well."""
    assert FIT.tuning == {"classes": 16} and FIT.certificate["misfit"] < 1.1
    assert FIT.model.structure.domain["h"].size == 32
    few = selected(classes=2, starts=1)
    assert few.model.structure.domain["h"].size == 2 and few.certificate["misfit"] > 1.5
    assert distance(few.model, TRUTH, PAIRS) > 2 * distance(FIT.model, TRUTH, PAIRS)


def test_more_classes_are_taken_where_the_tables_show_them():
    """A diagonal of 24 labels is no mixture of 16 classes; the number that was chosen repeats the fit."""
    domain = dpgm.Domain.from_sizes({"a": 24, "b": 24})
    codes = np.repeat(np.arange(24), 1000)[:, None].repeat(2, axis=1)
    noisy = dpgm.release(codes, dpgm.Structure(domain, [("a", "b")]), dpgm.Budget.pure(10), neighbours="add-remove")
    result = dpgm.learn(noisy, "mixture", randomness=dpgm.SeededRandomness(1))
    assert result.tuning["classes"] >= 32 and [row["classes"] for row in result.trace][:2] == [16, 32]
    again = dpgm.learn(noisy, {"name": "mixture", **result.tuning}, randomness=dpgm.SeededRandomness(1))
    np.testing.assert_array_equal(again.model.potentials.values, result.model.potentials.values)


def one_factor(records: int, columns: int = 6, labels: int = 6, seed: int = 7):
    """Ranks of Gaussians with one factor, and their domain."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((records, 1)) + rng.standard_normal((records, columns))
    ranks = np.argsort(np.argsort(values, axis=0), axis=0)
    return ranks * labels // records, dpgm.Domain.from_sizes({f"x{place}": labels for place in range(columns)})


@functools.cache
def of_factor(epsilon, **options):
    codes, domain = one_factor(2000)
    pairs = list(itertools.combinations(domain.names, 2))
    done = dpgm.fit(
        codes,
        "all-pairs",
        dpgm.Budget.approx(epsilon, "1e-9").zcdp_within(),
        learner=Mixture(**{"steps": 150, **options}),
        workload=dpgm.Workload.all(domain, 2),
        neighbours="add-remove",
        randomness=dpgm.SeededRandomness(1),
    )
    true = {
        (one, two): np.bincount(codes[:, place] * 6 + codes[:, other], minlength=36).reshape(6, 6) / 2000
        for (place, one), (other, two) in itertools.combinations(enumerate(domain.names), 2)
    }
    found = done.model.marginals_of(pairs)
    return done, float(np.mean([0.5 * np.abs(found[pair] - true[pair]).sum() for pair in pairs]))


def test_tables_are_followed_where_noise_is_small():
    """Sampling is .07 of a pair, which classes of the first fit leave and those of the second one follow; with much
    noise there is no second one. What was chosen repeats the fit."""
    first, apart = of_factor(20, follow=1)
    second, nearer = of_factor(20)
    assert "follow" not in first.tuning and nearer < 0.6 * apart
    assert second.tuning["follow"] == second.certificate["classes"] > first.certificate["classes"]
    assert "follow" not in of_factor("0.5")[0].tuning
    again = dpgm.learn(
        second.releases, {"name": "mixture", "steps": 150, **second.tuning}, randomness=dpgm.SeededRandomness(1)
    ).model
    assert again.structure == second.model.structure


def test_parts_of_a_class_start_with_its_tables(monkeypatch):
    """Without noise they are the class; with it, log-weights are the class's in the mean. Labels are unequal."""
    codes = np.minimum(np.random.default_rng(1).geometric(0.7, (500, 2)) - 1, 3)
    domain = dpgm.Domain.from_sizes({"a": 4, "b": 4})
    noisy = dpgm.release(codes, dpgm.Structure(domain, [("a", "b")]), dpgm.Budget.pure(5), neighbours="add-remove")
    objective, rng = Objective(noisy), np.random.default_rng(2)
    parameters = rng.normal(size=3 * (1 + objective.rows)) + 2
    logs = objective.logs(parameters, 3)[1]
    split = learner._split(parameters, 3, 5, rng)
    assert np.abs(objective.logs(split, 15)[1].reshape(8, 3, 5) - logs[:, :, None]).max() > 0.1
    means = split[15:].reshape(8, 3, 5).mean(axis=2)
    np.testing.assert_allclose(means, parameters[3:].reshape(8, 3), atol=1e-12)
    monkeypatch.setattr(learner, "_SPLIT", 0.0)
    same = objective.logs(learner._split(parameters, 3, 5, rng), 15)
    np.testing.assert_allclose(same[1].reshape(8, 3, 5), np.repeat(logs[:, :, None], 5, axis=2), atol=1e-12)


def test_refits_follow_simulated_tables():
    """Of as many classes; answers vary about as much as another sample of the model's records would, .07."""
    model = dpgm.bootstrap(of_factor(20)[0].model, 2, randomness=dpgm.SeededRandomness(3))
    pairs = list(itertools.combinations(model.domain.names, 2))
    assert all(0.03 < distance(one, model, pairs) < 0.1 for one in model.replicates)


def test_a_name_of_the_records_is_not_taken_for_the_class():
    """An attribute that is called h stays what it is."""
    domain = dpgm.Domain.from_sizes({"h": 2, "a": 2})
    noisy = dpgm.release(
        np.zeros((50, 2), int), dpgm.Structure(domain, [("h", "a")]), dpgm.Budget.pure(1), neighbours="add-remove"
    )
    model = dpgm.learn(noisy, "mixture").model
    assert model.latent == ("h_",) and model.domain == domain and model.marginal("h")[0] > 0.8


def test_several_starts_are_averaged():
    """Each fit has its part of the classes, with equal mass; the first one is the fit of a single start."""
    shares = np.exp(FIT.model.potentials["h",])
    np.testing.assert_allclose(shares.reshape(2, 16).sum(axis=1), 0.5, atol=1e-12)
    one = selected(starts=1).model
    for name in NAMES:
        whole = np.exp(FIT.model.potentials[name, "h"])
        np.testing.assert_allclose(np.exp(one.potentials[name, "h"]), whole[:, :16], atol=1e-12)
        halves = [2 * whole[:, part] @ shares[part] for part in (slice(16), slice(16, 32))]
        np.testing.assert_allclose(FIT.model.marginal(name), np.mean(halves, axis=0), atol=1e-12)
    other = dict(FIT.model.provenance) | {"tuning": {"classes": 16, "starts": 5}}
    with pytest.raises(dpgm.InferenceError, match="cannot part 32 classes into 5 fits"):
        dpgm.bootstrap(_with_provenance(FIT.model, other), 2)


def _with_provenance(model, provenance):
    facts = {"releases": model.releases, "provenance": provenance, "latent": model.latent}
    return dpgm.Model(model.structure, model.potentials, **facts)


@pytest.mark.parametrize("cliques", [[()], [("b",)], [("b",), ("a",)]])
def test_tables_that_tell_nothing_of_classes_take_the_fewest(cliques):
    """The number of records, a column of one label, and columns alone; refits are possible."""
    domain = dpgm.Domain.from_sizes({"a": 3, "b": 1})
    noisy = dpgm.release(
        np.zeros((40, 2), int), dpgm.Structure(domain, cliques), dpgm.Budget.pure(1), neighbours="add-remove"
    )
    result = dpgm.learn(noisy, "mixture")
    assert result.tuning == {"classes": 16} and result.converged
    shares = dpgm.bootstrap(result.model, 2).using(unmeasured="uniform").marginal("a")
    assert shares[0] > 0.8 if len(cliques) > 1 else np.allclose(shares, 1 / 3)


def test_noise_of_each_table_counts_and_three_way_tables_are_fitted():
    """An exclusive or of three attributes, which no pair shows, is in the model of their table."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2, (20_000, 3))
    codes[:, 2] = codes[:, 0] ^ codes[:, 1]
    domain = dpgm.Domain.from_sizes(dict.fromkeys("abc", 2))
    noisy = dpgm.release(codes, dpgm.Structure(domain, [("a", "b", "c")]), dpgm.Budget.pure(5), neighbours="add-remove")
    table = dpgm.learn(noisy, "mixture", randomness=dpgm.SeededRandomness(1)).model.marginal(["a", "b", "c"])
    assert sum(table[a, b, a ^ b] for a in (0, 1) for b in (0, 1)) > 0.97


@pytest.mark.landing
def test_intervals_contain_the_truth():
    """Of the population's 144 cells, of two attributes and a measured pair over six fits, .89 lie in intervals of level
    .9, and .91 with six other seeds. Independent cells that are covered with probability .9 are below .8 in fewer
    than one of 1,000 runs."""
    inside = []
    for seed in range(6):
        codes = records_of(TRUTH, 5000, seed=100 + seed)
        model = dpgm.bootstrap(selected(codes, 1, seed=seed).model, 20, randomness=dpgm.SeededRandomness(seed))
        for query in (("x0",), ("x3",), ("x1", "x4")):
            interval, truth = model.intervals(query, level=0.9), TRUTH.marginal(query)
            inside += ((interval.low <= truth) & (truth <= interval.high)).reshape(-1).tolist()
    assert np.mean(inside) > 0.8


def test_refits_keep_the_labels_of_classes():
    """Each refit's class is nearest to the one of its number; answers stay near the model's, and vary."""
    fits = [selected(classes=3, starts=1, seed=seed).model for seed in (1, 2, 3)]
    model = dpgm.bootstrap(fits[0], 4, randomness=dpgm.SeededRandomness(3))

    def nearest(other):
        ours, theirs = (np.concatenate([np.exp(one.potentials[name, "h"]) for name in NAMES]) for one in (model, other))
        return np.abs(ours[:, :, None] - theirs[:, None, :]).sum(axis=0).argmin(axis=1).tolist()

    for one in model.replicates:
        assert nearest(one.coarse) == [0, 1, 2] and distance(one, model, PAIRS) < 0.02
    assert {tuple(nearest(one)) for one in fits[1:]} != {(0, 1, 2)}
    assert (model.intervals(("x0", "x1")).standard_error > 0).all()


def test_constraints_are_refused_before_the_charge():
    rules = {"x": {"columns": ["a", "b"], "order": "<="}}
    binary = {name: {"size": 2, "unknown": 0} for name in "ab"}
    domain = dpgm.Domain.from_dict({"attributes": binary, "constraints": rules})
    codes = np.zeros((50, 2), int)
    with pytest.raises(dpgm.OptionError, match=r"learner mixture cannot keep constraints.*take learner 'eb-map'"):
        dpgm.fit(
            codes, dpgm.Structure(domain, [("a", "b")]), dpgm.Budget.pure(1), learner="mixture", neighbours="add-remove"
        )
    with pytest.raises(dpgm.OptionError, match="cannot keep constraints"):
        dpgm.fit(codes, "all-pairs", dpgm.Budget.pure(1), learner="mixture", workload=domain, neighbours="add-remove")


WIDE = dpgm.Domain.from_sizes({f"x{place}": 10 for place in range(60)})


def test_other_learners_are_refused_all_pairs_before_the_charge(tmp_path):
    """By fit and plan, in one line that names mixture; few small attributes, whose junction tree fits, are learned."""
    ledger = dpgm.Ledger.create(tmp_path / "ledger", name="x", budget=dpgm.Budget.zcdp(1), neighbours="add-remove")
    common = {"workload": dpgm.Workload.all(WIDE, 2)}
    with pytest.raises(
        dpgm.TooLarge, match=r"the 1,830 tables that the selector measures.*take learner = 'mixture'"
    ) as error:
        dpgm.fit(
            np.zeros((50, 60), int), "all-pairs", dpgm.Budget.zcdp(1), neighbours="add-remove", ledger=ledger, **common
        )
    assert "\n" not in str(error.value) and not ledger.history()
    terms = dpgm.Terms(neighbours="add-remove")
    with pytest.raises(dpgm.TooLarge, match="learner = 'mixture'"):
        dpgm.plan_selection("all-pairs", dpgm.Budget.zcdp(1), terms=terms, **common)
    shown = dpgm.plan_selection("all-pairs", dpgm.Budget.zcdp(1), learner="mixture", terms=terms, **common)
    assert shown.candidates == 1770 and shown.structure is not None and shown.learner_memory < 2**30
    small = dpgm.Domain.from_sizes(dict.fromkeys("abc", 2))
    codes = np.random.default_rng(1).integers(0, 2, (500, 3))
    done = dpgm.fit(codes, "all-pairs", dpgm.Budget.pure(1), learner="eb-map", workload=small, neighbours="add-remove")
    assert done.model.standing(("a", "c")) == "measured"


def test_a_plan_of_named_pairs_asks_no_engine():
    """1,770 pairs of 60 attributes, whose junction tree would have 10^60 cells."""
    shown = dpgm.plan(
        dpgm.Structure.complete(WIDE), dpgm.Budget.zcdp(1), "gaussian", neighbours="add-remove", learner="mixture"
    )
    assert shown.seconds_per_inference is None and shown.learner_memory < 2**30


def test_all_pairs_split_the_budget_by_cells():
    """One tenth to the attributes alone; of the rest each pair has (w K)^(2/3), under pure budgets (w K)^(1/2)."""
    domain = dpgm.Domain.from_sizes({"a": 2, "b": 2, "c": 16})
    codes = np.stack([np.arange(4000) % size for size in (2, 2, 16)], axis=1)
    for budget, power in ((dpgm.Budget.zcdp(1), 2 / 3), (dpgm.Budget.pure(1), 1 / 2)):
        done = dpgm.fit(
            codes,
            {"name": "all-pairs", "merge": False},
            budget,
            learner=Mixture(classes=2, starts=1),
            workload=dpgm.Workload.all(domain, 2),
            neighbours="add-remove",
            randomness=dpgm.SeededRandomness(1),
        )
        alone, pairs = done.release.steps
        spent = alone.cost.epsilon if budget.kind == "pure" else alone.cost.rho
        assert abs(float(spent) - 0.1) < 1e-6 and done.model.cost == budget
        noise = {clique: pairs.noise[pairs.structure.find(clique)[0]].variance for clique in pairs.structure.cliques}
        ratio = noise["a", "b"] / noise["a", "c"]
        exponent = 1 if budget.kind == "zcdp" else 2
        assert abs(ratio / 8 ** (power * exponent) - 1) < 0.02


def test_a_failed_fit_keeps_what_was_paid_for(monkeypatch):
    monkeypatch.setattr("dpgm_mixture.learner._minimise", lambda *_: 1 / 0)
    with pytest.raises(dpgm.LearningFailed) as error:
        selected()
    assert len(error.value.releases) == 1
