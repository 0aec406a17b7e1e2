"""`mrf-select` through the door: what it finds, spends, measures and refuses."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from dpgm_mrf.edges import edges, interactions
from dpgm_mrf.pair_selection import partners_of, predict_independent
from dpgm_mrf.select import MrfSelect

import dpgm_core as dpgm
from dpgm_testing.learning import sample_codes

COUPLING = 0.4
TERMS = dpgm.Terms(neighbours="add-remove")


def binary(count: int) -> dpgm.Domain:
    return dpgm.Domain.from_sizes({f"x{number}": 2 for number in range(count)})


def ising(pairs: dpgm.Structure, seed: int) -> dpgm.Model:
    signs = np.random.default_rng(seed).choice([-COUPLING, COUPLING], len(pairs.groups))
    return dpgm.Model(pairs, dpgm.Tables(pairs, np.outer(signs, [1.0, -1.0, -1.0, 1.0]).reshape(-1)))


def matching(count: int) -> dpgm.Structure:
    domain = binary(count)
    return dpgm.Structure(domain, list(zip(domain.names[::2], domain.names[1::2], strict=True)))


def chosen(
    codes: np.ndarray, selector: MrfSelect, budget: dpgm.Budget, **options: object
) -> tuple[dpgm.NoisyTables, set[tuple[str, ...]]]:
    """What a seeded selection measured, and its pairs."""
    workload = dpgm.Workload.all(binary(codes.shape[1]), order=2)
    arguments = {"terms": TERMS, "randomness": dpgm.SeededRandomness(1)} | options
    release, selection = dpgm.select(codes, selector, budget, workload, **arguments)  # type: ignore[arg-type]
    return release, {clique for clique in selection.structure.cliques if len(clique) == 2}


def fitted(codes: np.ndarray, selector: MrfSelect, seed: int, budget: dpgm.Budget | None = None) -> dpgm.Fit:
    return dpgm.fit(
        codes,
        selector,
        budget or dpgm.Budget.zcdp("0.01"),
        workload=dpgm.Workload.all(binary(codes.shape[1]), order=2),
        terms=dpgm.Terms(neighbours="add-remove", total=float(len(codes))),
        randomness=dpgm.SeededRandomness(seed),
    )


@pytest.mark.landing
def test_a_frustrated_grid_takes_more_picks_than_neighbours_or_rounds() -> None:
    """Of a 5 x 5 grid with these signs the weakest edges correlate by .25, and the strongest pairs that are none by
    .33. With a budget that is no limit four picks miss two edges, six picks none, and four rounds of one pick none.

    With other records an edge within .02 of its rivals, 3 standard deviations, could change places; seeds are fixed."""
    truth = ising(dpgm.Structure.grid(binary(25), 5, 5), 7)
    codes = np.stack(
        [np.asarray(one) for one in truth.engine.sample(truth.potentials, 30_000, np.random.default_rng(7))], 1
    )
    missed = {
        (selector.picks, selector.rounds): len(
            set(truth.structure.cliques) - chosen(codes, selector, dpgm.Budget.zcdp(10**6))[1]
        )
        for selector in (MrfSelect(picks=4), MrfSelect(picks=6), MrfSelect(picks=4, rounds=4))
    }
    assert missed == {(4, 1): 2, (6, 1): 0, (4, 4): 0}


@pytest.mark.landing
def test_two_thousand_records_suffice_for_a_matching() -> None:
    """16 attributes, rho = .01: the graph of all couplings above .2 is the true one in 9 of 10 seeds at least. An edge
    is missed at both ends, or a noisy pair comes out above .2, in less than 1 of 100 fits, so 2 of 10 in 1 of 200."""
    pairs = matching(16)
    right = 0
    for seed in range(10):
        codes = sample_codes(ising(pairs, seed), 2000, seed)
        right += set(edges(fitted(codes, MrfSelect(picks=1), seed).model, least=COUPLING)) == set(pairs.cliques)
    assert right >= 9


def test_a_hundred_records_are_no_failure() -> None:
    """Nothing can be found, and there is a model of every attribute whose pairs are no more than noise."""
    done = fitted(sample_codes(ising(matching(16), 3), 100, 3), MrfSelect(), 3)
    assert {name for clique in done.model.structure.cliques for name in clique} == set(binary(16).names)
    assert np.isfinite(done.model.potentials.values).all()
    assert len(edges(done.model)) <= 2


@pytest.mark.sampled(5)
@pytest.mark.parametrize("budget", [dpgm.Budget.pure(2), dpgm.Budget.zcdp("0.5"), dpgm.Budget.approx(1, "1e-6")])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("measure", ["tables", "contrasts"])
def test_it_spends_its_budget_as_planned(budget: dpgm.Budget, neighbours: str, measure: str) -> None:
    """All but a millionth, each share as the plan has it, on one-way tables, one choice of p * picks, and the pairs."""
    terms = dpgm.Terms(neighbours=neighbours)
    selector = MrfSelect(picks=2, measure=measure)
    codes = sample_codes(ising(matching(6), 1), 500, 1)
    plan = dpgm.plan_selection(selector, budget, dpgm.Workload.all(binary(6), order=2), terms=terms)
    release, pairs = chosen(codes, selector, budget, terms=terms)
    alone, choice, last = release.steps
    assert (
        isinstance(choice, dpgm.Choice)
        and len(choice.cliques) == 12
        and {frozenset(one) for one in choice.cliques} == {frozenset(pair) for pair in pairs}
    )
    for step, share in zip((alone, choice, last), plan.shares.values(), strict=True):
        assert step.cost <= share
        assert share * Fraction(999, 1000) <= step.cost
    assert release.contrasts is plan.contrasts is (measure == "contrasts")
    assert math.isclose(plan.deviation, math.sqrt(alone.variances[-1]), rel_tol=0.01)


def test_contrasts_are_the_default_of_binary_attributes_alone() -> None:
    """And a learner that takes none is refused before the charge, with what would do."""
    budget = dpgm.Budget.zcdp(1)
    mixed = dpgm.Workload.all(dpgm.Domain.from_sizes({"a": 2, "b": 3, "c": 2}), order=2)
    assert not MrfSelect().plan(mixed, budget, TERMS).contrasts
    assert MrfSelect().plan(dpgm.Workload.all(binary(3), order=2), budget, TERMS).contrasts
    with pytest.raises(dpgm.OptionError, match="'b' has 3 labels; take measure = 'tables'"):
        MrfSelect(measure="contrasts").plan(mixed, budget, TERMS)
    with pytest.raises(dpgm.OptionError, match="measure = 'tables'"):
        dpgm.plan_selection("mrf-select", budget, dpgm.Workload.all(binary(3)), "naive-mle", terms=TERMS)


def test_an_attribute_in_no_pair_is_measured_too() -> None:
    """It has three labels, so tables are measured; by its pairs alone all would be binary, and the budget lost."""
    domain = dpgm.Domain.from_sizes({"a": 2, "b": 2, "c": 3})
    workload = dpgm.Workload.all(domain, order=2, never=[("a", "c"), ("b", "c")])
    codes = np.zeros((50, 3), int)
    done = dpgm.fit(
        codes, "mrf-select", dpgm.Budget.zcdp(1), workload=workload, terms=TERMS, randomness=dpgm.SeededRandomness(1)
    )
    assert not done.release.contrasts and ("c",) in done.release.structure.cliques
    with pytest.raises(dpgm.OptionError, match="'c' has 3 labels"):
        dpgm.plan_selection({"name": "mrf-select", "measure": "contrasts"}, dpgm.Budget.zcdp(1), workload, terms=TERMS)


def test_what_can_be_detected_is_picked_nine_times_in_ten() -> None:
    """A pair that is this many records from its prediction, all others at none, has probability .9 at least; it is
    nearly as little as would do. Exact probabilities, by the formula of the exponential mechanism."""
    plan = MrfSelect(picks=2).plan(dpgm.Workload.all(binary(9), order=2), dpgm.Budget.zcdp("0.02"), TERMS)
    h = math.sqrt(2 * 0.02 * 0.9 * 0.5 / 18)
    assert 0.9 < 1 / (1 + 7 * math.exp(-h * plan.detectable)) < 0.96


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"picks": 4}, "picks = 4 asks each of 4 attributes for more partners"),
        ({"picks": 2, "rounds": 3}, "rounds = 3 is more than picks = 2"),
        ({"share_one_way": 0}, "share_one_way = 0 predicts tables by a declared number"),
    ],
)
def test_options_that_do_not_go_with_the_workload_are_refused_before_the_charge(
    options: dict[str, object], words: str
) -> None:
    """By the plan, and so by `select` too."""
    workload = dpgm.Workload.all(dpgm.Domain.from_sizes(dict.fromkeys("abcd", 3)), order=2)
    with pytest.raises(dpgm.OptionError, match=words):
        MrfSelect(**options).plan(workload, dpgm.Budget.zcdp(1), TERMS)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["picks", "rounds", "share", "share_one_way", "measure", "max_fit_bytes"])
def test_options_are_checked_on_construction(name: str) -> None:
    for wrong in (0, -1, math.nan, math.inf, True, 1.5, "x", []):
        if (name, wrong) != ("share_one_way", 0) or wrong is True:
            with pytest.raises(dpgm.OptionError):
                dpgm.make("selector", {"name": "mrf-select", name: wrong})


def test_workloads_and_budgets_without_a_choice_are_refused() -> None:
    """One attribute, no pair, and so little budget that choices would be blind."""
    for workload, words in (
        (dpgm.Workload.all(binary(1)), "two attributes or more"),
        (dpgm.Workload.all(binary(3), order=1), "none that may be measured"),
    ):
        with pytest.raises(dpgm.StructureError, match=words):
            MrfSelect().plan(workload, dpgm.Budget.zcdp(1), TERMS)
    with pytest.raises(dpgm.BudgetError, match="as likely as any other"):
        MrfSelect().plan(dpgm.Workload.all(binary(9)), dpgm.Budget.zcdp("1e-14"), TERMS)


def test_nobody_pays_for_a_choice_that_is_none() -> None:
    """Of three attributes each picks both others; where `never` leaves fewer partners than picks, all are taken."""
    codes = sample_codes(ising(matching(4), 1), 200, 1)
    release, pairs = chosen(codes[:, :3], MrfSelect(), dpgm.Budget.zcdp(1))
    assert len(pairs) == 3 and not any(isinstance(step, dpgm.Choice) for step in release.steps)
    workload = dpgm.Workload.all(binary(4), order=2, never=[("x0", "x1"), ("x0", "x2"), ("x0", "x3"), ("x1", "x2")])
    release, selection = dpgm.select(codes, MrfSelect(picks=1), dpgm.Budget.zcdp(1), workload, terms=TERMS)
    choice = next(step for step in release.steps if isinstance(step, dpgm.Choice))
    assert len(choice.groups) == 1  # x3 alone has two partners to choose from
    assert ("x0",) in selection.structure.cliques
    assert {("x1", "x3"), ("x2", "x3")} == {clique for clique in selection.structure.cliques if len(clique) == 2}


def test_pairs_that_an_exact_engine_could_not_hold_are_left_out_by_rank() -> None:
    """The strongest stay, and a note says so; an engine that takes any graph gets all."""
    codes = sample_codes(ising(matching(10), 2), 3000, 2)
    small = MrfSelect(picks=3, max_fit_bytes=16 * 7 * 4)
    workload = dpgm.Workload.all(binary(10), order=2)
    for inference, exact in (("junction-tree", True), ("loopy-bp", False)):
        _, selection = dpgm.select(
            codes,
            small,
            dpgm.Budget.zcdp(5),
            workload,
            inference=inference,
            terms=TERMS,
            randomness=dpgm.SeededRandomness(1),
        )
        pairs = {clique for clique in selection.structure.cliques if len(clique) == 2}
        assert set(matching(10).cliques) <= pairs
        assert any("left out" in note for note in selection.notes) is exact
        assert (len(pairs) < 10) is exact  # a tree at most


def test_attributes_that_are_large_make_no_failure_after_the_charge() -> None:
    """Three of 400 labels fit no engine together, and two fit no model of these limits; so every one stays alone."""
    domain = dpgm.Domain.from_sizes(dict.fromkeys("abc", 400))
    codes = np.random.default_rng(1).integers(0, 400, (50, 3))
    workload = dpgm.Workload.all(domain, order=2, max_cells=10**6)
    _, selection = dpgm.select(
        codes, MrfSelect(picks=1, max_fit_bytes=2**20), dpgm.Budget.zcdp(1), workload, terms=TERMS
    )
    assert selection.structure.cliques == (("a",), ("b",), ("c",))
    assert set(selection.measure) == set(selection.structure.cliques)


def test_predictions_are_not_moved_by_noise_in_lopsided_or_even_tables() -> None:
    """Shares as far from even as noise alone are taken for even; those of many records stay as they are."""
    partners = partners_of(dpgm.Workload.all(dpgm.Domain.from_sizes({"a": 2, "b": 3}), order=2))
    codes = np.column_stack([np.arange(9000) % 10 < 1, np.arange(9000) % 3])
    release, _ = dpgm.select(
        codes, MrfSelect(picks=1), dpgm.Budget.zcdp(1), dpgm.Workload.all(partners.domain, 2), terms=TERMS
    )
    alone = release.steps[0]
    assert isinstance(alone, dpgm.NoisyTables)
    assert np.allclose(predict_independent(partners, alone)["a", "b"], np.outer([0.9, 0.1], [1 / 3] * 3), atol=0.002)
    assert np.allclose(predict_independent(partners, None)["a", "b"], 1 / 6)
    quiet, _ = dpgm.select(
        codes[:9],
        MrfSelect(picks=1),
        dpgm.Budget.zcdp("1e-4"),
        dpgm.Workload.all(partners.domain, 2),
        terms=TERMS,
        randomness=dpgm.SeededRandomness(4),
    )
    noisy = quiet.steps[0]
    assert isinstance(noisy, dpgm.NoisyTables)
    assert np.all(predict_independent(partners, noisy)["a", "b"] >= 0)


def test_interactions_are_centred_and_add_up_over_cliques() -> None:
    """A pair in two cliques has what both say of it; three attributes together say nothing of their pairs."""
    structure = dpgm.Structure(binary(3), [("x0", "x1", "x2"), ("x1", "x0")])
    sign = np.array([1.0, -1.0])
    triple = np.einsum("a,b,c", sign, sign, sign) + 0.3 * np.einsum("a,b", sign, sign)[:, :, None] + np.arange(2.0)
    pair = 0.2 * np.outer(sign, sign) + np.array([[1.0], [5.0]])
    actual = interactions(
        dpgm.Model(structure, dpgm.Tables.from_arrays(structure, {("x0", "x1", "x2"): triple, ("x1", "x0"): pair}))
    )
    assert list(actual) == [("x0", "x1"), ("x0", "x2"), ("x1", "x2")]
    assert np.allclose(actual["x0", "x1"], 0.5 * np.outer(sign, sign))
    assert np.allclose(actual["x0", "x2"], 0) and np.allclose(actual["x1", "x2"], 0)


def test_edges_are_what_noise_does_not_explain() -> None:
    """With 20,000 records at rho = .1 all eight are beyond 3 standard errors; of the pairs that are none one is in 1 of
    15 fits, all in all. Without a release a least interaction is needed."""
    truth = ising(matching(16), 5)
    done = fitted(sample_codes(truth, 20_000, 5), MrfSelect(picks=2), 5, dpgm.Budget.zcdp("0.1"))
    assert set(edges(done.model)) == set(truth.structure.cliques)
    assert len(done.model.structure.cliques) > 24  # and others were measured
    with pytest.raises(dpgm.OptionError, match="state least"):
        edges(truth)
    for wrong in (0, -1, math.nan, math.inf, 10**400, True, "0.4"):
        with pytest.raises(dpgm.OptionError, match="least must be"):
            edges(truth, least=wrong)  # type: ignore[arg-type]
