"""The two-stage learner: what it asks of a curator, what that costs, and what it makes of the two releases."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve
from dpgm_bayes_net import two_stage
from dpgm_bayes_net.two_stage import BayesNetTwoStage, Stage, pool_stages

import dpgm_core as dpgm
from dpgm_core.privacy import discrete_laplace
from dpgm_core.sources import as_source
from dpgm_testing.learning import sample_codes

from .networks import ADD, DAG, DOMAIN, curator_of

REPLACE = dpgm.Terms(neighbours="replace-one")
#: Of so many digits that a noise cannot cost exactly what it was asked to.
ODD = dpgm.Budget.zcdp("0.0149731234567")


def records(dag=DAG, count=2000, seed=1):
    rng = np.random.default_rng(seed)
    tables = {family[0]: 0.05 + rng.random(dag.domain.shape(family)) for family in dag.families}
    model = dpgm.Model.from_cpds(dag, {child: table / table.sum(axis=0) for child, table in tables.items()})
    return sample_codes(model, count, seed), model


CODES, TRUTH = records()


def curator(codes=CODES, budget=None, mechanism="laplace", dag=DAG, **more):
    return curator_of(codes, dag.structure(), budget, mechanism, **more)


def learned(of, reported=lambda task, done, total: None, **options):
    """What the learner makes of a curator, without the pipeline."""
    made, engine = BayesNetTwoStage(**options), dpgm.make("inference", "junction-tree")
    return made.learn(of, engine, randomness=dpgm.SeededRandomness(1), progress=reported)


def fitted(codes=CODES, budget=None, mechanism="laplace", dag=DAG, options=None, **more):
    return dpgm.fit(
        codes,
        dag.structure(),
        dpgm.Budget.pure(1) if budget is None else budget,
        mechanism,
        {"name": "bayes-net-two-stage", **(options or {})},
        **{"terms": ADD, "randomness": dpgm.SeededRandomness(3)} | more,
    )


class Trap:
    """Records that nobody may read more than so often."""

    def __init__(self, reads=0):
        self.left = reads

    def batches(self, domain, columns):
        if not self.left:
            raise dpgm.DataError("the records were read")
        self.left -= 1
        return as_source(CODES).batches(domain, columns)


class Spy:
    """A curator that notes what is released, and shows what it is told to show in place of the first release.

    shown: from the true first release to what the learner sees of it.
    """

    def __init__(self, inner, shown=lambda release: release):
        self.inner, self.shown, self.calls, self.rehearsed = inner, shown, [], []

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def release(self, *, accept=None, **asked):
        """Note it, unless it is refused before it is paid for."""
        if accept is not None:
            self.rehearsed.append(asked)
        actual = self.inner.release(accept=accept, **asked)
        self.calls.append(asked)
        return self.shown(actual) if len(self.calls) == 1 else actual


# --- what it asks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("measure", "cliques"), [("families", DAG.families), ("maximal", DAG.maximal)])
@pytest.mark.parametrize("budget", [dpgm.Budget.pure(1), ODD], ids=str)
def test_it_releases_twice_and_the_second_budgets_sum_exactly_to_the_rest(measure, cliques, budget):
    """One even release of a tenth, one with a budget for each table; together exactly what was given."""
    spy = Spy(curator(budget=budget, mechanism="laplace" if budget.kind == "pure" else "gaussian", split="optimal"))
    learned(spy, measure=measure)
    first, second = spy.calls
    assert first == {"budget": budget * Fraction(1, 10), "cliques": cliques, "split": "even"}
    assert (second["cliques"], tuple(second["budget"])) == (cliques, cliques)
    assert dpgm.Budget.sum(second["budget"].values()) + first["budget"] == budget
    assert all(not share.is_zero for share in second["budget"].values())
    least = budget * Fraction(9, 10 * 10**5)
    assert spy.rehearsed == [{"budget": dict.fromkeys(cliques, least)}]
    assert all(least <= share for share in second["budget"].values())


def test_the_split_knows_the_first_release_and_nothing_else():
    """Other records, as many or none at all, behind the same first release: the same budgets, to the last digit."""
    shown = curator().release(budget=dpgm.Budget.pure("0.1"), cliques=DAG.families)
    requests = []
    for codes in (CODES, np.zeros((5000, 4), dtype=int), np.zeros((0, 4), dtype=int)):
        spy = Spy(curator(codes), lambda release: shown)
        learned(spy)
        requests.append(spy.calls[1])
    assert requests[0] == requests[1] == requests[2]
    other = Spy(curator(np.zeros((5000, 4), dtype=int)))
    learned(other)
    assert other.calls[1] != requests[0]  # what it saw does matter


def test_a_sampled_first_stage_has_the_noise_that_its_rate_allows():
    """The base mechanism costs e with ln(1 + q (exp(e) - 1)) = epsilon of stage I, so that its scale is m / e: section
    4.4. The stage costs its share of the budget all the same."""
    rate, share = 0.1, 0.2
    done = fitted(options={"sampling_rate": rate, "first_share": share})
    base = math.log1p(math.expm1(share) / rate)
    one = done.releases[0]
    assert one.cost == dpgm.Budget.pure("0.2")
    assert float(one.round.sampling_rate) == pytest.approx(rate)
    assert one.variances[0] == pytest.approx(2 * (4 / base) ** 2, rel=0.01)
    assert done.trace[0]["sd_first"] > math.sqrt(one.variances[0]) / rate  # scaled up, and of a subsample
    assert done.model.cost == dpgm.Budget.pure(1)


def test_a_sampled_first_stage_under_replace_one():
    """The scale is m / e with ln(1 + q (exp(e) - 1)) - ln(1 - q (1 - exp(-e))) = epsilon of stage I: section 4.4."""
    rate, share = 0.1, 0.2
    done = fitted(options={"sampling_rate": rate, "first_share": share}, terms=REPLACE)
    base = 4 / done.releases[0].noise[0].event.scale
    spent = math.log1p(rate * math.expm1(base)) - math.log1p(rate * math.expm1(-base))
    assert spent == pytest.approx(share, rel=1e-6)
    assert done.releases[0].cost == dpgm.Budget.pure("0.2") and done.model.cost == dpgm.Budget.pure(1)


# --- what two stages cost ------------------------------------------------------------------------------------------

PAIR = dpgm.Dag(dpgm.Domain.from_sizes({"a": 2, "b": 2}), {})
_FIRST, _REST = dpgm.Budget.pure("0.3"), dpgm.Budget.pure("0.7")


def second_budgets(shown):
    """What the learner asks of stage II when stage I showed these numbers, (2, 2): a's table and b's."""
    spy = Spy(
        curator(np.array([[0, 0], [1, 1], [1, 0]]), dag=PAIR),
        lambda release: evolve(release, tables=dpgm.Tables(release.structure, np.array(shown).reshape(-1))),
    )
    learned(spy, first_share=0.3, weights="error")
    return list(spy.calls[1]["budget"].values())


def worst_loss(budgets_of):
    """The largest log-ratio of the law of everything that is released with and without one record, by enumeration.

    Of each stage every output within reach is tried; the record is in cell 0 of both tables. budgets_of: of the tables
    in stage II, from the numbers of stage I.
    """
    one_table = dpgm.Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    two_tables = dpgm.Sensitivity(l0=2, l1=2, l2_squared=2, linf=1)
    make, points = dpgm.make("mechanism", "laplace").noise, np.arange(-40.0, 41.0)

    def ratios(noise):
        return noise.logpdf(points - 1) - noise.logpdf(points)

    first = ratios(make(two_tables, _FIRST))
    actual = {}
    for touched in itertools.product((-6, 1, 30), repeat=2):
        for others in itertools.product((0, 40), repeat=2):
            budgets = budgets_of(np.stack([touched, others], axis=1))
            second = sum(float(np.abs(ratios(make(one_table, one))).max()) for one in budgets)
            actual[touched, others] = abs(sum(first[40 + z] for z in touched)) + second
    return max(actual.values())


def test_a_split_that_looks_at_stage_one_costs_no_more_than_both_stages():
    """Two tables, all outputs of stage I from a grid, the learner's own budgets for each, all outputs of stage II: the
    loss never exceeds epsilon_I + epsilon_II, and is attained to a thousandth."""
    worst = worst_loss(second_budgets)
    assert 0.999 <= worst <= 1 + 1e-9


def test_a_split_whose_sum_looks_at_stage_one_is_detected():
    """The same enumeration of a wrong rule: each table's share is right on the average, but they do not sum to one."""

    def wrong(shown):
        return [_REST * Fraction(1, 2) * Fraction(min(3, max(1, int(row.sum()))), 2) for row in shown]

    assert worst_loss(wrong) > 1.1


# --- what is refused, and when -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "more", "message"),
    [
        ({}, {"budget": dpgm.Budget.approx(1, 1e-5), "mechanism": "gaussian"}, r"ask for rho = .*zcdp_within"),
        ({"sampling_rate": 0.5}, {"budget": ODD, "mechanism": "gaussian"}, "costs no less rho.*sampling_rate = 1"),
        ({"sampling_rate": 0.5}, {"split": "optimal"}, "leave split = 'even'"),
        ({}, {"budget": dpgm.Budget.pure("1e-6")}, "no table of stage II could be given as little.*too wide"),
        ({}, {"mechanism": "gaussian"}, "never purely private"),
    ],
    ids=["approx", "sampled zcdp", "sampled optimal", "too little for stage II", "mechanism"],
)
def test_what_cannot_end_well_is_refused_before_anything_is_read_or_paid(tmp_path, options, more, message):
    """One line; the records are not touched, and the ledger is as it was."""
    budget = more.get("budget", dpgm.Budget.pure(1))
    ledger = dpgm.Ledger.create(tmp_path / "a.ledger", name="a", budget=budget, neighbours="add-remove")
    with pytest.raises(dpgm.BudgetError, match=message) as refused:
        fitted(Trap(), options=options, ledger=ledger, **more)
    assert "\n" not in str(refused.value)
    assert ledger.spent().is_zero


def test_a_ledger_that_cannot_pay_for_both_stages_pays_for_none(tmp_path):
    """There is enough for stage I alone: refused before it."""
    ledger = dpgm.Ledger.create(
        tmp_path / "a.ledger", name="a", budget=dpgm.Budget.pure("0.5"), neighbours="add-remove"
    )
    with pytest.raises(dpgm.Overspent, match=r"0\.5"):
        fitted(Trap(), ledger=ledger)
    assert ledger.spent().is_zero


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"first_share": 0}, "first_share"),
        ({"first_share": 1}, "first_share"),
        ({"sampling_rate": 0.0}, "sampling_rate"),
        ({"sampling_rate": 1.5}, "sampling_rate"),
        ({"smoothing": -1}, "smoothing"),
        ({"weights": "naive"}, "weights"),
    ],
)
def test_options_out_of_range_are_named(options, word):
    with pytest.raises(dpgm.OptionError, match=word):
        dpgm.make("learner", {"name": "bayes-net-two-stage", **options})


def test_a_first_stage_that_was_paid_for_survives_a_failure_of_the_second():
    """The records are gone when stage II asks for them: the error has the release of stage I, and says what to do."""
    with pytest.raises(dpgm.LearningFailed, match="paid for and kept") as failed:
        fitted(Trap(reads=1))
    (one,) = failed.value.releases
    assert one.cost == dpgm.Budget.pure("0.1")
    again = dpgm.learn(failed.value.releases, "local", structure=DAG.structure())
    assert again.model.cost == one.cost


def test_both_stages_survive_a_failure_of_the_learning(monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(two_stage, "conditionals", lambda counts, smoothing, dag: 1 / 0)
        with pytest.raises(dpgm.LearningFailed, match="2 releases are paid for and kept") as failed:
            fitted()
    again = dpgm.learn(failed.value.releases, "bayes-net-two-stage")
    assert np.array_equal(again.model.potentials.values, fitted().model.potentials.values)


# --- learning again ------------------------------------------------------------------------------------------------

RUNS = [
    ({}, {}),
    ({}, {"budget": ODD, "mechanism": "gaussian"}),
    ({"measure": "maximal", "first_share": 1 / 3}, {"budget": ODD}),
    ({"sampling_rate": 0.3, "pool": False, "smoothing": 0}, {}),
    ({"sampling_rate": 0.3, "consistency": False, "weights": "structure"}, {}),
]


@pytest.mark.parametrize(("options", "more"), RUNS, ids=str)
def test_the_two_releases_give_the_same_model_again(tmp_path, options, more):
    """Bit for bit, from memory and from files, with the same trace and notes."""
    done = fitted(options=options, save_release=tmp_path / "r.dpgm", **more)
    saved = [dpgm.load_release(tmp_path / name) for name in ("r.dpgm", "r-2.dpgm")]
    for releases in (done.releases, saved):
        again = dpgm.learn(releases, {"name": "bayes-net-two-stage", **options}, structure=DAG.structure())
        assert np.array_equal(again.model.potentials.values, done.model.potentials.values)
        assert again.trace == done.trace
        assert again.notes == done.notes
        assert again.model.cost == done.model.cost


def test_other_releases_than_those_of_one_run_are_refused():
    """One release, either of them, three, the wrong order, another share: one line that says what it takes."""
    one, two = fitted().releases
    three = [one, two, fitted(randomness=dpgm.SeededRandomness(8)).releases[1]]
    for releases_given, learner in (
        ([one], "bayes-net-two-stage"),
        ([two], "bayes-net-two-stage"),
        (three, "bayes-net-two-stage"),
        ([two, one], "bayes-net-two-stage"),
        ([one, two], {"name": "bayes-net-two-stage", "first_share": 0.2}),
        ([one, two], {"name": "bayes-net-two-stage", "measure": "maximal"}),
    ):
        with pytest.raises(dpgm.BudgetError, match="the two releases of one run of its own") as refused:
            dpgm.learn(releases_given, learner, structure=DAG.structure())
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "budgets",
    [
        (dpgm.Budget.approx("0.1", 1e-6), dpgm.Budget.approx("0.9", 1e-6)),
        (dpgm.Budget.zcdp("0.1"), dpgm.Budget.pure(1)),
    ],
    ids=["approx", "mixed"],
)
def test_saved_releases_that_no_run_of_it_can_have_made_are_refused(budgets):
    """Of (epsilon, delta), or of two kinds that only come to one together: there is nothing to ask for instead."""
    parts = [
        curator(budget=one, mechanism="laplace" if one.kind == "pure" else "gaussian").release() for one in budgets
    ]
    with pytest.raises(dpgm.BudgetError, match="two of one run of its own, whose budgets are both pure or both zCDP"):
        dpgm.learn(parts, "bayes-net-two-stage", conversion_delta=1e-6)


def test_three_releases_that_add_up_are_refused_too():
    """A tenth, and two that come to the rest: the first fits, but there are two left for the second."""
    parts = [
        curator(budget=dpgm.Budget.pure(part), randomness=dpgm.SeededRandomness(seed)).release()
        for seed, part in enumerate(("0.1", "0.4", "0.5"))
    ]
    with pytest.raises(dpgm.BudgetError, match=r"the two releases of one run of its own.*2 saved ones are left"):
        dpgm.learn(parts, "bayes-net-two-stage")


# --- what comes out ------------------------------------------------------------------------------------------------


def test_the_model_states_the_sum_of_both_stages(tmp_path):
    """Cost, guarantee and files; error bars are refused with a reason."""
    model = fitted().model
    assert [one.cost for one in model.releases] == [dpgm.Budget.pure("0.1"), dpgm.Budget.pure("0.9")]
    assert model.cost == dpgm.Budget.pure(1)
    assert "epsilon = 1 under add-remove" in model.guarantee()
    assert "It holds for all 2 releases together." in model.guarantee()
    model.save(tmp_path / "m.dpgm")
    again = dpgm.load_model(tmp_path / "m.dpgm")
    assert (again.guarantee(), again.cost, len(again.releases)) == (model.guarantee(), model.cost, 2)
    assert again.kl(model) == pytest.approx(0, abs=1e-12)
    with pytest.raises(dpgm.OptionError, match="cannot be bootstrapped: it learned from 2 releases"):
        dpgm.bootstrap(model, 2)


def test_it_is_a_network_over_the_families_and_says_how_the_budget_went():
    """log Z is 0; a trace row for each attribute with what the split was made of, and what it was."""
    reported = []
    done = learned(curator(), lambda task, at, of: reported.append(task))
    assert reported == ["measuring: stage I, epsilon = 0.1", "measuring: stage II, epsilon = 0.9", "measuring"]
    assert done.model.structure == DAG.structure()
    assert abs(done.model.log_partition) < 1e-9
    assert [set(row) for row in done.trace] == [
        {"node", "table", "W", "G", "S", "share", "sd_first", "sd_second"} for _ in DAG.families
    ]
    assert sum(row["share"] for row in done.trace) == pytest.approx(1)
    assert [row["sd_first"] for row in done.trace] == pytest.approx([math.sqrt(2) * 4 / 0.1] * 4, rel=0.01)
    assert done.notes[0].startswith("stage I cost epsilon = 0.1 and stage II epsilon = 0.9")


@pytest.mark.parametrize("more", [{}, {"sampling_rate": 0.4}], ids=["whole", "sampled"])
@pytest.mark.parametrize(
    ("weights", "of"),
    [
        ("paper", lambda row: row["W"] * row["G"]),
        ("error", lambda row: row["G"]),
        ("structure", lambda row: row["W"]),
        ("even", lambda row: 1.0),
    ],
)
def test_the_budget_is_divided_by_the_requested_weights(weights, of, more):
    """Shares are as the square roots of the weights; those of a root, which is all noise or none here, follow from its
    own table of the first stage, scaled up from a subsample."""
    done = fitted(options={"weights": weights, "consistency": False, **more})
    roots = np.sqrt([of(row) for row in done.trace])
    assert [row["share"] for row in done.trace] == pytest.approx(roots / roots.sum(), abs=1e-4)
    one = done.releases[0]
    rate = 1.0 if one.round is None else float(one.round.sampling_rate)
    counts = np.maximum(one.tables["a",] / rate, 0)
    theta = counts / counts.sum()
    assert done.trace[0]["G"] == pytest.approx(float(np.sqrt((1 - theta) ** 2 + theta**2).sum() / counts.sum()))


def test_rows_are_guarded_by_the_noise_of_the_scaled_up_tables():
    """Without records a subsample's noise over its rate is what a row may hide."""
    done = fitted(np.zeros((0, 4), dtype=int), options={"sampling_rate": 0.4, "consistency": False})
    counts, rate = done.releases[0].tables["a",], float(done.releases[0].round.sampling_rate)
    guard = math.sqrt(2 * done.releases[0].variances[0]) / rate
    assert counts.sum() / rate < guard
    theta = np.maximum(counts, 0) / np.maximum(counts, 0).sum()
    assert done.trace[0]["G"] == pytest.approx(float(np.sqrt((1 - theta) ** 2 + theta**2).sum()) / guard)


def test_the_model_is_over_the_structure_of_the_caller():
    """Families in another order than the domain's: the same numbers over that structure."""
    turned = dpgm.Structure(DOMAIN, DAG.families[::-1])
    release = curator().release(budget=dpgm.Budget.pure("0.1"), cliques=DAG.families)
    rest = curator().release(budget=dpgm.Budget.pure("0.9"), cliques=DAG.families)
    models = [
        dpgm.learn([release, rest], "bayes-net-two-stage", structure=one).model for one in (turned, DAG.structure())
    ]
    assert models[0].structure == turned
    assert models[0].kl(models[1]) == pytest.approx(0, abs=1e-12)


def test_without_pooling_the_first_stage_only_decides():
    """The model is then what `local` makes of the second release alone. Where both stages have half of the budget their
    mean has half the noise of either, so that six fits together are nearer to the truth."""
    done = fitted(options={"pool": False})
    alone = dpgm.learn(done.releases[1], "local", structure=DAG.structure())
    assert np.allclose(alone.model.potentials.values, done.model.potentials.values, atol=1e-12)
    halves = {"weights": "even", "first_share": 0.5}

    def far(pool):
        fits = (fitted(options=halves | {"pool": pool}, randomness=dpgm.SeededRandomness(seed)) for seed in range(6))
        return sum(TRUTH.kl(one.model) for one in fits)

    assert far(True) < 0.8 * far(False)


def test_without_consistency_each_table_speaks_for_itself():
    """A root's probabilities are those of its own table of the second stage, clipped."""
    done = fitted(options={"consistency": False, "pool": False, "smoothing": 0})
    own = np.maximum(done.releases[1].tables["a",], 0)
    assert done.model.marginal("a") == pytest.approx(own / own.sum())
    joint = fitted(options={"consistency": True, "pool": False, "smoothing": 0}).model.marginal("a")
    assert joint != pytest.approx(own / own.sum())


@pytest.mark.parametrize("measure", ["families", "maximal"])
@pytest.mark.parametrize("more", [{}, {"sampling_rate": 0.5}, {"pool": False, "consistency": False}], ids=str)
def test_with_a_budget_beyond_sense_it_is_the_maximum_likelihood_estimate(measure, more):
    """Each row of the conditional tables is the shares of the records: a subsample of half the records weighs nothing
    beside tables without noise."""
    done = fitted(budget=dpgm.Budget.pure(10**7), options={"measure": measure, "smoothing": 0, **more})
    actual = dpgm.cpds(done.model, DAG)
    for family in DAG.families:
        counts = np.zeros(DOMAIN.shape(family))
        np.add.at(counts, tuple(CODES[:, DOMAIN.names.index(name)] for name in family), 1)
        assert actual[family[0]] == pytest.approx(counts / counts.sum(axis=0), abs=1e-4)


@pytest.mark.parametrize("budget", [dpgm.Budget.pure("1e-3"), dpgm.Budget.zcdp("1e-7")], ids=str)
def test_next_to_no_budget_gives_distributions(budget):
    done = fitted(budget=budget)
    assert all(np.all((table > 0) & (table < 1)) for table in dpgm.cpds(done.model, DAG).values())
    assert any("rows of the conditional tables expect fewer records" in note for note in done.notes)


def test_persons_with_weighted_rows_and_replacements_are_served():
    """Normalised contributions come levelled, each table with its own noise; replacing takes twice the noise."""
    plain, double = fitted().trace, fitted(terms=REPLACE).trace
    assert double[0]["sd_first"] == pytest.approx(2 * plain[0]["sd_first"], rel=0.01)
    people = {name: CODES[:600, at] for at, name in enumerate(DOMAIN.names)} | {"id": np.arange(600) // 3}
    done = fitted(
        people,
        terms=dpgm.Terms(
            neighbours="add-remove", person="id", rows_per_person=3, contributions=dpgm.Contributions(per="clique")
        ),
    )
    assert abs(done.model.log_partition) < 1e-9


# --- Two stages on one scale: what pooling keeps, and what a subsample costs ------------------------------------------

ONE = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2}), [("a",)])


def stage(structure, values, noise, rate=1.0):
    return Stage(
        tables=dpgm.Tables(structure, np.asarray(values, dtype=float)),
        noise=np.full(len(structure.groups), float(noise)),
        rate=rate,
    )


def variance_of(mechanism, budget):
    sensitivity = dpgm.Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    return dpgm.make("mechanism", mechanism).noise(sensitivity, budget).variance


@pytest.mark.parametrize("share", [Fraction(1, 10), Fraction(3, 10), Fraction(1, 2)])
def test_two_pooled_laplace_stages_keep_less_precision_than_one(share):
    """With a share f for stage I, f^2 + (1 - f)^2 of one release's: .82 at f = .1, and pooling cannot repair it. Noise
    is wide, so that the discrete Laplace law has the variance of the continuous one."""
    whole = dpgm.Budget.pure(Fraction(1, 100))
    one, two = (stage(ONE, [0, 0], variance_of("laplace", whole * part)) for part in (share, 1 - share))
    _, variances = pool_stages(one, two)
    remaining = variance_of("laplace", whole) / variances[0]
    assert remaining == pytest.approx(float(share**2 + (1 - share) ** 2), rel=1e-4)


def test_two_pooled_gaussian_stages_keep_everything():
    """Precision is proportional to rho, so nothing is lost."""
    whole = dpgm.Budget.zcdp(Fraction(1, 100))
    one, two = (stage(ONE, [0, 0], variance_of("gaussian", whole * Fraction(part, 10))) for part in (1, 9))
    assert pool_stages(one, two)[1][0] == pytest.approx(variance_of("gaussian", whole), rel=1e-3)


def test_the_pooled_variance_is_that_of_drawn_noise():
    """200,000 cells of exact discrete Laplace noise at shares .1 and .9: the variance of the pooled cells is the stated
    one, 1 / .82 of one release's. Laplace noise has kurtosis at most 6, so 2.5 % is five standard errors: a false alarm
    in fewer than 1e-6 of seeds."""
    cells, source = 200_000, dpgm.SeededRandomness(4)
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": cells}), [("a",)])
    one, two = (
        stage(
            structure,
            discrete_laplace(Fraction(20, part), cells, source),
            variance_of("laplace", dpgm.Budget.pure(Fraction(part, 20))),
        )
        for part in (1, 9)
    )
    mean, variances = pool_stages(one, two)
    assert float(np.mean(mean.values**2)) == pytest.approx(float(variances[0]), rel=0.025)
    assert 2 * (20 / 10) ** 2 / float(np.mean(mean.values**2)) == pytest.approx(0.82, abs=0.03)


def test_a_subsample_is_scaled_up_with_its_noise_and_its_chance():
    """A count of a subsample over its rate is unbiased, with variance s^2 / q^2 + n (1 - q) / q: 100,000 binomial draws
    with discrete Laplace noise. The variance's standard error is below .8 %, so 4 % are five of them."""
    rate, scale, draws, count = 0.2, 5, 100_000, 400
    remaining = np.random.default_rng(3).binomial(count, rate, size=draws)
    noisy = remaining + discrete_laplace(Fraction(scale), draws, dpgm.SeededRandomness(3))
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2}), [("a",)])
    noise = variance_of("laplace", dpgm.Budget.pure(Fraction(1, scale)))
    one = stage(structure, [0, 0], noise / rate**2, rate)
    stated = one.variances(np.array([float(count), -5.0]))
    assert float((noisy / rate).var()) == pytest.approx(stated[0], rel=0.04)
    assert float((noisy / rate).mean()) == pytest.approx(count, abs=5 * math.sqrt(stated[0] / draws))
    assert stated[1] == noise / rate**2  # a count is never taken for negative


@pytest.fixture
def released():
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2, "b": 3}), [("b", "a"), ("a",)])
    codes = np.array([[0, 1], [1, 2], [1, 0]] * 30)
    curator = dpgm.LiveCurator(
        as_source(codes),
        structure,
        dpgm.make("mechanism", "laplace"),
        terms=dpgm.Terms(neighbours="add-remove"),
        budget=dpgm.Budget.pure(1),
        randomness=dpgm.SeededRandomness(0),
    )
    return curator.release(budget={("b", "a"): dpgm.Budget.pure("0.9"), ("a",): dpgm.Budget.pure("0.1")})


def test_a_stage_has_the_cliques_in_the_requested_order(released):
    """With the noise of each, and turned where the names stand in another order."""
    one = Stage.of(released, [("a",), ("a", "b")])
    assert one.rate == 1
    assert one.tables.structure.cliques == (("a",), ("a", "b"))
    assert np.array_equal(one.tables["a", "b"], released.tables["b", "a"].T)
    assert one.noise.tolist() == released.variances[::-1].tolist()


def test_a_stage_of_a_round_is_that_of_all_records(released):
    """Tables over the rate, noise over its square; what the release says of itself decides, not an option."""
    sampled = evolve(released, round=dpgm.Round(number=1, of=1, sampling_rate=Fraction(1, 4)))
    one, plain = (Stage.of(release, released.structure.cliques) for release in (sampled, released))
    assert one.rate == 0.25
    assert np.array_equal(one.tables.values, 4 * plain.tables.values)
    assert np.array_equal(one.noise, 16 * plain.noise)


def test_noise_that_underflows_gives_finite_weights(released):
    """At a budget beyond sense one table's variance is next to 0 beside the other's."""
    quiet = evolve(
        released.measurement,
        calibrations=tuple(
            evolve(one, noise=dpgm.make("mechanism", "laplace").noise(one.sensitivity, budget))
            for one, budget in zip(
                released.calibrations, (dpgm.Budget.pure(10**9), dpgm.Budget.pure(Fraction(1, 10))), strict=True
            )
        ),
    )
    one = Stage.of(evolve(released, measurement=quiet), released.structure.cliques)
    assert one.noise.min() == 1e-12 * one.noise.max()
    mean, variances = pool_stages(one, one)
    assert np.allclose(mean.values, one.tables.values)
    assert np.all((variances > 0) & np.isfinite(1 / variances))
