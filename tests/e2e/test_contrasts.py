"""Contrasts all the way: releases, files, pools, sessions, models, bootstraps, plans, and what is refused."""

import json

import numpy as np
import pytest
from attrs import evolve

from dpgm_core import (
    Budget,
    BudgetError,
    Domain,
    Ledger,
    LiveCurator,
    ModelFileError,
    OptionError,
    ReplayCurator,
    SeededRandomness,
    Structure,
    StructureError,
    Terms,
    bootstrap,
    fit,
    learn,
    load_model,
    load_release,
    make,
    plan,
    release,
)
from dpgm_core.learning import Simulator, expected_distance
from dpgm_core.learning.selector import Selection, SelectionPlan
from dpgm_core.privacy.contrasts import products, spread
from dpgm_core.releases.pooling import pool
from dpgm_core.releases.totals import contradictions
from dpgm_core.releases.views import implausible, plausible
from dpgm_core.sources import as_source
from dpgm_core.structure.workload import Workload
from tests.fixtures import dry_run

DOMAIN = Domain.from_sizes(dict.fromkeys("abcd", 2))
PAIRS = Structure(DOMAIN, [("a", "b"), ("b", "c"), ("c", "d")])
NETWORK = Structure(DOMAIN, [("a",), ("b", "a"), ("c", "b"), ("d", "c")])
CODES = np.array([[0, 0, 1, 1], [1, 1, 0, 1], [1, 1, 0, 0], [0, 1, 1, 1]] * 250)
BUDGET = Budget.zcdp("1/10")
TERMS = {
    "estimated": Terms(neighbours="add-remove"),
    "public": Terms(neighbours="replace-one", total="public"),
    "declared": Terms(neighbours="add-remove", total=1000),
}


def noisy(seed=0, structure=PAIRS, **more):
    """A release of contrasts."""
    settings = {"terms": TERMS["estimated"], "randomness": SeededRandomness(seed), "split": "contrasts"} | more
    return release(CODES, structure, BUDGET, "gaussian", **settings)


@pytest.mark.parametrize("kind", TERMS)
def test_a_file_holds_the_whole_numbers_and_gives_the_release_back(tmp_path, kind):
    """Values, N, noise and guarantee are the same again, bit for bit; the file has one number for each set."""
    made = noisy(terms=TERMS[kind], save_release=tmp_path / "x.dpgm")
    again = load_release(tmp_path / "x.dpgm")
    assert again.contrasts and np.array_equal(again.tables.values, made.tables.values)
    assert (again.total, again.noise, again.cost) == (made.total, made.noise, made.cost)
    assert again.guarantee() == made.guarantee() and "sums of products of attributes" in again.guarantee()
    assert made.numbers.dtype == np.int64 and len(made.numbers) == len(made.structure.groups)
    assert np.array_equal(made.numbers, products(made.tables))
    if kind == "estimated":
        assert made.total == made.tables[()] and made.total_variance == made.noise[0].variance
    else:
        assert made.total == 1000 and made.total_variance == 0 and made.structure.cliques[0] == ("a",)


def test_a_release_is_near_the_truth():
    """Every cell within 6 of its standard deviations, as all sets inside a clique were measured: 1e-7 by chance."""
    made = noisy()
    for clique in PAIRS.cliques:
        columns = [DOMAIN.names.index(name) for name in clique]
        true = np.histogramdd(CODES[:, columns], bins=(2, 2))[0]
        assert np.abs(made.tables[clique] - true).max() < 6 * made.noise[0].variance ** 0.5 / 2


LIES = {
    "less sensitivity": (("calibrations", 0, "sensitivity", "l2_squared"), 3),
    "less cost": (("cost", "rho"), "1/1000"),
    "no contrasts": (("contrasts",), False),
    "contrasts as a text": (("contrasts",), "yes"),
    "an older schema": (("schema",), 2),
    "N that was not measured": (("structure", "cliques"), [*map(list, ["a", "b", "c", "d", "ab", "bc", "cd"])]),
    "other sets": (("structure", "cliques", 7), ["a", "b", "c", "d"]),
    "weights": (("terms", "contributions"), {"per": "clique", "most": None, "grid": 5040}),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_claims_less_is_refused(tmp_path, changed, members_of, written, lie):
    """Sensitivity and cost are computed again; what is measured and how N is known must fit them."""
    noisy(save_release=tmp_path / "x.dpgm")
    members = members_of(tmp_path / "x.dpgm")
    keys, value = LIES[lie]
    members["release.json"] = changed(members["release.json"], {keys: value})
    with pytest.raises(ModelFileError):
        load_release(written(tmp_path / "y.dpgm", members))


def test_tables_cannot_be_passed_off_as_contrasts(tmp_path, changed, members_of, written):
    """Under replace-one the sum of a pair moves by 2: its L2^2 is 4, that of its table 2, so the claim is refused."""
    pair = Structure(DOMAIN, [("a", "b")])
    release(CODES, pair, BUDGET, "gaussian", terms=TERMS["public"], save_release=tmp_path / "x.dpgm")
    members = members_of(tmp_path / "x.dpgm")
    members["release.json"] = changed(members["release.json"], {("contrasts",): True, ("schema",): 4})
    with pytest.raises(ModelFileError):
        load_release(written(tmp_path / "y.dpgm", members))


def test_old_versions_are_told_by_the_schema(tmp_path, members_of):
    """Only files of contrasts have the new one."""
    for split, schema in (("contrasts", 4), ("even", 2)):
        noisy(split=split, save_release=tmp_path / f"{split}.dpgm")
        document = json.loads(members_of(tmp_path / f"{split}.dpgm")["release.json"])
        assert document["schema"] == schema and ("contrasts" in document) == (schema == 4)


def test_pools_take_the_mean_of_sums_and_fill_tables_up_again():
    """By inverse variance; what only one release has keeps its number, and no table is pooled with a sum."""
    one, two = noisy(1), noisy(2, Structure(DOMAIN, [("b", "a")]))
    both = pool([one, two])
    assert both.contrasts and both.structure.cliques == one.structure.cliques
    weights = 1 / np.array([one.noise[0].variance, two.noise[0].variance])
    sums = dict(zip(one.structure.cliques, products(one.tables), strict=True))
    for clique, number in zip(two.structure.cliques, products(two.tables), strict=True):
        sums[tuple(sorted(clique))] = np.average([sums[tuple(sorted(clique))], number], weights=weights)
    filled = spread(both.structure, np.array(list(sums.values())), 0.0)
    assert both.tables.values == pytest.approx(filled.values, abs=1e-9)
    assert both.total == pytest.approx(sums[()])
    with pytest.raises(BudgetError, match="contrasts and others tables"):
        pool([one, noisy(3, split="even")])
    with pytest.raises(BudgetError, match="given twice"):
        pool([one, noisy(1)])


def test_what_no_noise_makes_is_moved_and_counted():
    """A sum beyond what N records and the noise allow; the rest stays, bit for bit."""
    made = noisy()
    assert plausible(made) is made and implausible(made) == 0
    sums = products(made.tables)
    sums[-1] = 2.0**39
    moved = plausible(evolve(made, tables=spread(made.structure, sums, 0.0)))
    assert implausible(evolve(made, tables=spread(made.structure, sums, 0.0))) == 1
    found = products(moved.tables)
    assert np.array_equal(found[:-1], sums[:-1]) and abs(found[-1]) < 10_000


def test_a_total_that_contrasts_refute_is_told_once():
    """N of the empty clique speaks, and the tables, all filled up with the same number, do not."""
    stated = noisy(terms=Terms(neighbours="add-remove", total=1200), split="even")
    assert len(contradictions([stated, noisy(1)])) == 1
    assert contradictions([noisy(terms=Terms(neighbours="add-remove", total=1200))]) == []
    assert contradictions([noisy(1), noisy(2, terms=TERMS["declared"])]) == []
    made = noisy(1)  # 5.5 standard errors of N are not told; as those of all tables' sums they would be 8
    for far, told in ((5.5, 0), (8, 1)):
        terms = Terms(neighbours="add-remove", total=made.total - far * made.noise[0].variance ** 0.5)
        assert len(contradictions([made, noisy(2, terms=terms)])) == told


def test_distances_are_expected_of_the_sums():
    """sqrt(2 v / pi) each, to 1 %: those of normal noise."""
    made = noisy()
    wanted = len(made.noise) * (2 * made.noise[0].variance / np.pi) ** 0.5
    assert expected_distance(made)[0] == pytest.approx(wanted, rel=0.01)


def test_models_are_learned_saved_and_bootstrapped(tmp_path):
    """A release learned again gives the same model; refits are drawn as contrasts; what it rests on is measured."""
    settings = {"terms": TERMS["estimated"], "randomness": SeededRandomness(4), "split": "contrasts"}
    done = fit(CODES, PAIRS, BUDGET, "gaussian", **settings)
    done.model.save(tmp_path / "m.dpgm")
    model = load_model(tmp_path / "m.dpgm")
    assert model.release.contrasts and model.release.modelled == PAIRS
    assert learn(model.release).model.potentials.values == pytest.approx(done.model.potentials.values)
    assert model.standing(["a", "b"]) == "measured" and model.standing(["a", "c"]) == "by structure"
    assert np.abs(model.marginal(["a", "b"]) - [[0.25, 0.25], [0, 0.5]]).max() < 0.1
    again = bootstrap(model, 20, randomness=SeededRandomness(1))
    assert 0.001 < again.standard_errors(["a", "b"]).max() < 0.1
    assert max(model.misfit().values()) < 4 and () not in model.misfit()
    drawn = Simulator(model.release, model.engine, model.potentials).draw(SeededRandomness(2))
    assert drawn.contrasts and drawn.total == drawn.tables[()]


def test_an_answer_is_measured_where_all_products_inside_are():
    """A session that measured pairs and no attribute alone tells their correlation, not their table."""
    found = learn(session_of([("a", "b"), ("c", "d"), ("c",), ("d",)])).model
    assert found.standing(["a", "b"]) == "by structure"
    assert found.standing(["c", "d"]) == found.standing(["c"]) == "measured"


# --- refused beforehand -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["naive-mle", "cgm-em", "psgd", "bayes-net", "local"])
def test_learners_of_tables_are_refused_by_name_before_the_charge(tmp_path, learner):
    """In fit, dry run and plan, and with a saved release; the ledger stays as it was."""
    named = rf"learner {learner} learns from tables of cells.*'eb-map'"
    ledger = Ledger.create(tmp_path / "l.db", name="l", budget=Budget.zcdp(1), neighbours="add-remove")
    settings = {"terms": TERMS["estimated"], "ledger": ledger, "split": "contrasts"}
    with pytest.raises(OptionError, match=named):
        fit(CODES, NETWORK, BUDGET, "gaussian", learner, **settings)
    with pytest.raises(OptionError, match=named):
        learn(noisy(), learner)
    assert ledger.remaining() == Budget.zcdp(1)


def test_dry_runs_and_plans_refuse_what_a_fit_does():
    """A learner of tables, and structures that have no contrasts, or none worth it."""
    for ask in (dry_run, fit):
        with pytest.raises(OptionError, match="learner naive-mle learns from tables"):
            ask(CODES, PAIRS, BUDGET, "gaussian", "naive-mle", terms=TERMS["estimated"], split="contrasts")
        with pytest.raises(BudgetError, match="times the noise variance"):
            ask(CODES, PAIRS, Budget.pure(1), terms=TERMS["estimated"], split="contrasts")
    with pytest.raises(OptionError, match="learner naive-mle learns from tables"):
        plan(PAIRS, BUDGET, "gaussian", terms=TERMS["estimated"], split="contrasts", learner="naive-mle")
    with pytest.raises(StructureError, match="'b' has 3"):
        uneven = Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")])
        plan(uneven, BUDGET, terms=TERMS["public"], split="contrasts")


def test_a_plan_shows_the_sums_and_what_they_are_worth():
    """One row a set, the noise of its sum, and of a cell what all sets inside make of it; the curator's own numbers."""
    planned = plan(PAIRS, BUDGET, "gaussian", terms=TERMS["estimated"], split="contrasts", records=1000)
    made = noisy()
    assert [one.clique for one in planned.tables] == list(made.structure.cliques)
    assert [one.noise**2 for one in planned.tables] == pytest.approx([noise.variance for noise in made.noise])
    assert planned.contrasts and planned.to_dict()["contrasts"]
    assert planned.sensitivity == made.calibrations[0].sensitivity and planned.cost == made.cost
    cell = made.noise[0].variance / 4
    assert planned.tables[-1].relative == pytest.approx((0.25 * 0.75 / 1000 + cell / 1000**2) ** 0.5)
    assert "8 sums of products in place of tables" in planned.notes[0] and "0.667 times" in planned.notes[0]


def test_budgets_per_clique_and_rounds_do_not_go_with_contrasts():
    """Nor a split that is neither."""
    made = curator(split="contrasts")
    with pytest.raises(BudgetError, match="one noise for all products"):
        made.release(budget={("a", "b"): Budget.zcdp("0.01")})
    with pytest.raises(BudgetError, match="rounds give every table the same noise"):
        made.rounds(3, sampling_rate=0.5)
    with pytest.raises(OptionError, match="'contrasts'"):
        curator(split="contrast")
    assert made.remaining == BUDGET and made.contrasts and not curator().contrasts


def test_a_curator_may_be_asked_for_contrasts_of_some_cliques():
    """By a learner that takes them, whatever the run's split; a replay serves them as they are."""
    made = curator()
    found = made.release(cliques=[("b", "c")], split="contrasts", budget=Budget.zcdp("0.01"))
    assert found.structure.cliques == ((), ("b",), ("c",), ("b", "c"))
    replay = ReplayCurator(found)
    assert replay.contrasts and np.array_equal(replay.release().tables.values, found.tables.values)


# --- sessions -----------------------------------------------------------------------------------------------------


def curator(**more):
    """Over the records of this file."""
    settings = {"terms": TERMS["estimated"], "budget": BUDGET, "randomness": SeededRandomness(7)} | more
    return LiveCurator(as_source(CODES), PAIRS, make("mechanism", "gaussian"), **settings)


def session_of(*steps, **more):
    """The release of a session that measures contrasts, step by step."""
    made = curator(**more)
    with made.session(workload=Workload.all(DOMAIN)) as session:
        for cliques in steps:
            session.measure(cliques, Budget.zcdp("0.01"), contrasts=True)
        return session.pooled()


@pytest.mark.parametrize("kind", TERMS)
def test_a_session_measures_the_cliques_named_and_n(tmp_path, kind):
    """No other set; two steps are one release, whose file gives it back and refuses a smaller cost."""
    found = session_of(["a", "b"], [("b", "a"), "a"], terms=TERMS[kind], save_to=tmp_path / "s.dpgm")
    named = {frozenset("a"), frozenset("b"), frozenset("ab")}
    assert set(map(frozenset, found.structure.cliques)) == named | ({frozenset()} if kind == "estimated" else set())
    sums = [products(one.tables)[one.structure.find("a")[0]] for one in found.steps]
    noises = [1 / one.noise[one.structure.find("a")[0]].variance for one in found.steps]
    assert products(found.tables)[found.structure.find("a")[0]] == pytest.approx(np.average(sums, weights=noises))
    again = load_release(tmp_path / "s.dpgm")
    assert again.contrasts and again.tables.values == pytest.approx(found.tables.values, abs=1e-12)
    assert all(np.array_equal(one.numbers, two.numbers) for one, two in zip(again.steps, found.steps, strict=True))


def test_a_session_gives_each_clique_its_own_budget():
    """N is paid for like the mean of them, out of what was given."""
    made = curator()
    with made.session(workload=Workload.all(DOMAIN)) as session:
        asked = {("a",): Budget.zcdp("0.01"), ("a", "b"): Budget.zcdp("0.03")}
        found = session.measure(asked, contrasts=True)
        assert session.remaining == BUDGET - Budget.zcdp("0.04")
    costs = dict(zip(found.structure.cliques, [noise.cost for noise in found.noise], strict=True))
    assert costs[("a", "b")] == costs[("a",)] * 3 and costs[()] == costs[("a",)] * 2
    assert found.noise[0].variance == pytest.approx(1 / (2 * (0.04 / 3)), rel=0.01)


def test_a_session_measures_one_way_and_merges_no_label_it_told_apart():
    """Tables after contrasts and contrasts after tables are refused with nothing spent; so is what has none."""
    made = curator()
    with made.session(workload=Workload.all(DOMAIN)) as session:
        with pytest.raises(OptionError, match="contrasts must be true or false"):
            session.measure(["a"], Budget.zcdp("0.01"), contrasts="yes")
        session.measure(["a"], Budget.zcdp("0.01"), contrasts=True)
        left = session.remaining
        with pytest.raises(BudgetError, match="has measured contrasts and was asked for tables"):
            session.measure(["b"], Budget.zcdp("0.01"))
        with pytest.raises(StructureError, match="labels of 'a' cannot be merged"):
            session.coarsen({"a": [0, 0]})
        session.coarsen({"b": [0, 0]})
        with pytest.raises(StructureError, match="'b' has 1"):
            session.measure(["b"], left, contrasts=True)
        assert session.remaining == left
    with curator().session(workload=Workload.all(DOMAIN)) as session:
        session.measure(["a"], Budget.zcdp("0.01"))
        with pytest.raises(BudgetError, match="has measured tables and was asked for contrasts"):
            session.measure(["b"], Budget.zcdp("0.01"), contrasts=True)


class Measures:
    """A selector that leaves all pairs of the structure to be measured, as it says or does."""

    def __init__(self, says=True, does=True):
        self.says, self.does = says, does

    def plan(self, workload, budget, terms, records=None):
        return SelectionPlan(shares={}, deviation=1.0, detectable=None, candidates=3, limits={}, contrasts=self.says)

    def select(self, session, *, inference, fitting, randomness, progress):
        cliques = [*((name,) for name in "abcd"), *PAIRS.cliques]
        return Selection(structure=PAIRS, measure=dict.fromkeys(cliques, 1.0), contrasts=self.does)


def test_what_a_selector_leaves_is_measured_by_its_products():
    """A holdout stays a release of tables; learners of tables are refused before the charge."""
    settings = {"terms": TERMS["estimated"], "workload": DOMAIN, "split": {"holdout": 0.1}}
    done = fit(CODES, Measures(), BUDGET, randomness=SeededRandomness(1), **settings)
    assert done.release.contrasts and [one.contrasts for one in done.release.steps] == [True, False]
    assert done.model.structure_error().estimate >= 0
    with pytest.raises(OptionError, match="learner naive-mle learns from tables"):
        fit(CODES, Measures(), BUDGET, learner="naive-mle", **settings)
    with pytest.raises(Exception, match="planned contrasts, for which the learner was asked, but measures tables"):
        fit(CODES, Measures(does=False), BUDGET, **settings)
