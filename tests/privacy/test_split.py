"""Budgets divided over tables, and a share that is set aside for a holdout."""

import itertools
import json
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import optimize

import dpgm_core as dpgm
from dpgm.cli import main
from dpgm_core import Budget, Domain, OptionError, Structure, StructureError
from dpgm_core.pipeline.planning import budget_notes
from dpgm_core.privacy.budget import Split, check_split, holdout_share
from dpgm_core.privacy.holdout import MAX_PAIRS, chosen_pairs, pairs_to_check, unmeasured_pairs
from dpgm_core.privacy.joint_gaussian import together_delta
from dpgm_core.privacy.measurement import optimal_split

DOMAIN = dpgm.Domain.from_sizes({"a": 2, "b": 3, "c": 4, "d": 5, "e": 5})
PLAIN = dpgm.Structure(DOMAIN, [("a",), ("a", "b"), ("b", "c", "d")])
TIED = dpgm.Structure(DOMAIN, [("a", "b")], tied=[[("d", "c"), ("e", "c")]])
CODES = np.random.default_rng(1).integers(0, 2, (400, 5))


def error(structure, mechanism, split, weights=None):
    """Weighted sum of the noise variance over all cells when each table gets its share."""
    total = 0.0
    for group, cells in zip(structure.groups, structure.sizes, strict=True):
        own = dpgm.Structure(structure.domain, group) if len(group) == 1 else None
        own = own or dpgm.Structure(structure.domain, [], tied=[group])
        sensitivity = dpgm.Sensitivity.of(own, "add-remove")
        noise = dpgm.make("mechanism", mechanism).noise(sensitivity, split[group[0]])
        total += (weights or {}).get(group[0], 1) * cells * noise.variance
    return total


@pytest.mark.sampled(5)
@pytest.mark.parametrize("structure", [PLAIN, TIED], ids=["plain", "tied"])
@pytest.mark.parametrize(
    ("mechanism", "budget"),
    [
        ("laplace", dpgm.Budget.pure("0.02")),
        ("laplace", dpgm.Budget.zcdp("1e-4")),
        ("gaussian", dpgm.Budget.zcdp("1e-4")),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_no_optimiser_finds_a_better_split(structure, mechanism, budget, weighted):
    """Nelder-Mead over the shares does not get 0.01 % below the closed form; the even split is clearly above it."""
    groups = [group[0] for group in structure.groups]
    weights = {clique: Fraction(number, 2) for number, clique in enumerate(groups, start=1)} if weighted else None
    found = error(structure, mechanism, optimal_split(structure, budget, weights), weights)

    def objective(logits):
        parts = np.exp(np.append(logits, 0.0))
        shares = [Fraction(part).limit_denominator(10**6) for part in parts / parts.sum()]
        split = {clique: budget * share for clique, share in zip(groups, shares, strict=True)}
        return math.log(error(structure, mechanism, split, weights))

    best = optimize.minimize(
        objective, np.zeros(len(groups) - 1), method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-7}
    )
    assert math.exp(best.fun) * (1 - 1e-4) <= found <= math.exp(best.fun) * (1 + 1e-4)
    even = {clique: budget * Fraction(1, len(groups)) for clique in groups}
    assert error(structure, mechanism, even, weights) > found * 1.02


@settings(max_examples=30)
@given(
    st.lists(st.integers(2, 500), min_size=1, max_size=15),
    st.fractions(min_value=Fraction(1, 1000), max_value=100),
    st.sampled_from(["pure", "zcdp"]),
)
@example([2] * 7, Fraction(1), "pure")
@example([2, 10**6], Fraction(1, 3), "zcdp")
def test_the_shares_sum_to_exactly_the_budget(sizes, amount, kind):
    """All positive, the sum exact; larger tables never get less."""
    names = [f"x{number}" for number in range(len(sizes))]
    structure = dpgm.Structure(
        dpgm.Domain.from_sizes(dict(zip(names, sizes, strict=True))), [(name,) for name in names]
    )
    whole = dpgm.Budget.pure(amount) if kind == "pure" else dpgm.Budget.zcdp(amount)
    shares = optimal_split(structure, whole)
    assert sum(shares.values(), dpgm.Budget.zero(kind)) == whole
    by_size = sorted(zip(sizes, shares.values(), strict=True), key=lambda pair: pair[0])
    unit = whole * Fraction(1, 10 ** (4 + len(str(len(sizes)))))
    assert all(low <= high + unit for (_, low), (_, high) in itertools.pairwise(by_size))


def test_the_closed_forms():
    """Cube roots under pure epsilon, square roots under zCDP; weights multiply cells; tied groups count m^2."""
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 8, "b": 64}), [("a",), ("b",)])
    pure = optimal_split(structure, dpgm.Budget.pure(6))
    assert [float(one.epsilon) for one in pure.values()] == pytest.approx([2, 4], rel=1e-4)
    zcdp = optimal_split(structure, dpgm.Budget.zcdp(3), {("a",): 2})
    assert [float(one.rho) for one in zcdp.values()] == pytest.approx([1, 2], rel=1e-4)
    tied = optimal_split(TIED, dpgm.Budget.zcdp(1))
    assert tied["a", "b"].rho / tied["d", "c"].rho == pytest.approx(math.sqrt(6) / (2 * math.sqrt(20)), rel=1e-3)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("mechanism", "budget"), [("laplace", dpgm.Budget.pure("0.5")), ("gaussian", dpgm.Budget.zcdp("0.125"))]
)
@pytest.mark.parametrize("learner", ["naive-mle", "cgm-em"])
def test_a_fit_with_an_optimal_split_spends_exactly_its_budget(mechanism, budget, learner, tmp_path):
    """Decimal shares cost what they say: the ledger is left empty, each table has its own noise, the file keeps it."""
    arguments = {"neighbours": "add-remove", "randomness": dpgm.SeededRandomness(2), "split": "optimal"}
    ledger = dpgm.Ledger.create(tmp_path / "l", name="x", budget=budget, neighbours="add-remove")
    fit = dpgm.fit(CODES, PLAIN, budget, mechanism, learner, ledger=ledger, save_release=tmp_path / "r", **arguments)
    assert ledger.remaining().is_zero
    assert fit.release.cost == budget
    assert [one.budget for one in fit.release.calibrations] == list(optimal_split(PLAIN, budget).values())
    assert fit.release.variances[0] > fit.release.variances[1] > fit.release.variances[2]
    assert dpgm.load_release(tmp_path / "r").noise == fit.release.noise


def test_the_plan_prices_the_split():
    budget = dpgm.Budget.zcdp("0.1")
    planned = dpgm.plan(PLAIN, budget, "gaussian", neighbours="add-remove", split="optimal")
    release = released(budget, seed=1)
    assert [table.noise**2 for table in planned.tables] == pytest.approx(release.variances)
    assert planned.cost == release.cost <= budget and planned.scale == max(one.event.scale for one in release.noise)


ONE = dpgm.Budget.approx(1, "1e-6")


def released(budget=ONE, seed=2, **more):
    said = {"neighbours": "add-remove", "split": "optimal", "randomness": dpgm.SeededRandomness(seed)} | more
    return dpgm.release(CODES, PLAIN, budget, "gaussian", **said)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_one_release_splits_epsilon_and_delta(neighbours, tmp_path):
    """Noises in the proportions of a zCDP split, 5 % narrower at least; one charge, of what was asked; so the file."""
    terms = {"neighbours": neighbours, "split": "optimal"}
    ledger = dpgm.Ledger.create(tmp_path / "l", name="x", budget=ONE, neighbours=neighbours)
    saved = tmp_path / "r"
    release = released(ledger=ledger, save_release=saved, **terms)
    assert release.cost == release.measurement.budget == ONE and ledger.remaining().is_zero
    assert [entry.cost for entry in ledger.history()] == [ONE] and str(ONE) in release.guarantee()
    planned = dpgm.plan(PLAIN, ONE, "gaussian", **terms)
    assert planned.cost == ONE and [one.noise**2 for one in planned.tables] == pytest.approx(release.variances)
    bought = dpgm.plan(PLAIN, ONE.zcdp_within(), "gaussian", **terms)
    ratios = [one.noise / other.noise for one, other in zip(planned.tables, bought.tables, strict=True)]
    assert ratios == pytest.approx([ratios[0]] * 3, rel=2e-3) and ratios[0] < 0.95
    again = dpgm.load_release(saved)
    assert (again.cost, again.noise, again.measurement) == (ONE, release.noise, release.measurement)
    fit = dpgm.learn(again, "naive-mle")
    assert fit.model.cost == ONE


def test_what_a_split_costs_is_proven_of_what_is_drawn():
    """delta of the noises in the release is what was asked, within 0.2 %, of enumerated sensitivities."""
    release = released(neighbours="replace-one")
    two = dpgm.Sensitivity(l0=2, l1=2, l2_squared=2, linf=1)
    assert [one.sensitivity for one in release.calibrations] == [two] * 3
    drawn = {(one.sigma_squared, two): 1 for one in release.noise}
    assert 0.998e-6 < together_delta(drawn, Fraction(1)) <= 1e-6


def test_tied_and_repeated_rows_are_split_by_the_bound_for_all_shifts():
    """A person with three rows in tied tables: the closed form serves, still narrower than zCDP's."""
    terms = dpgm.Terms(neighbours="add-remove", person="who", rows_per_person=3)
    planned = dpgm.plan(TIED, ONE, "gaussian", terms=terms, split="optimal")
    bought = dpgm.plan(TIED, ONE.zcdp_within(), "gaussian", terms=terms, split="optimal")
    assert all(one.noise < 0.95 * other.noise for one, other in zip(planned.tables, bought.tables, strict=True))


def test_epsilon_and_delta_are_split_for_gaussian_noise_only():
    """Laplace noise is refused in a sentence before any record; one table needs no split."""
    with pytest.raises(dpgm.BudgetError, match=r"for Gaussian noise only, not for Laplace.*'gaussian'.*'even'"):
        dpgm.plan(PLAIN, ONE, "laplace", neighbours="add-remove", split="optimal")
    one = dpgm.Structure(PLAIN.domain, PLAIN.cliques[:1])
    even, best = (dpgm.plan(one, ONE, "gaussian", neighbours="add-remove", split=how) for how in ("even", "optimal"))
    assert best.tables[0].noise == pytest.approx(even.tables[0].noise, rel=1e-3)


def test_tables_paid_for_together_are_not_replayed_as_budgets_of_tables():
    """Each has a rho of its own, and their sum is more than the release says it cost in zCDP: it says nothing there."""
    release = released()
    apart = {group[0]: one.budget for group, one in zip(PLAIN.groups, release.calibrations, strict=True)}
    assert dpgm.Budget.sum(apart.values()).rho > ONE.zcdp_within().rho
    with pytest.raises(dpgm.BudgetError, match="other budgets per clique"):
        dpgm.ReplayCurator(release).release(budget=apart)
    assert dpgm.ReplayCurator(release).release(budget=ONE).cost == ONE


@pytest.mark.parametrize("budget", [None, 1, dpgm.Budget.zero("pure"), dpgm.Budget.approx(1, "1e-6")])
def test_what_cannot_be_split_is_refused_with_what_can(budget):
    """Of (epsilon, delta) 12 digits of the rho that stays within; nothing is named where there is none."""
    with pytest.raises(dpgm.BudgetError, match=r"Budget\.(pure|zcdp)"):
        optimal_split(PLAIN, budget)
    whole = dpgm.Budget.approx(1, "1e-9")
    with pytest.raises(dpgm.BudgetError, match=r"Budget\.zcdp\(0\.0149730576735\), the most that stays within"):
        optimal_split(PLAIN, whole)
    assert dpgm.Budget.zcdp("0.0149730576735").to_approx("1e-9") <= whole
    with pytest.raises(dpgm.BudgetError, match=r"Budget\.zcdp\(rho\)"):
        optimal_split(PLAIN, dpgm.Budget("approx", delta=whole.delta))


@pytest.mark.parametrize(
    "weights", [{("a",): 0}, {("a",): -1}, {("a",): math.nan}, {("a",): True}, {("a", "b"): 1, ("b", "a"): 1}]
)
def test_weights_are_positive_and_named_once(weights):
    """Zero, negative, NaN, bool, and a table named twice raise BudgetError; unknown ones StructureError."""
    with pytest.raises(dpgm.BudgetError):
        optimal_split(PLAIN, dpgm.Budget.pure(1), weights)
    with pytest.raises(dpgm.StructureError):
        optimal_split(PLAIN, dpgm.Budget.pure(1), {("e",): 1})


@pytest.mark.parametrize("split", ["best", "Even", None, True, 1, ["even"]])
def test_unknown_ways_to_split_are_refused_before_any_record(split):
    with pytest.raises(dpgm.OptionError, match="even, optimal"):
        check_split(split)
    with pytest.raises(dpgm.OptionError, match="even, optimal"):
        dpgm.release(CODES, PLAIN, dpgm.Budget.pure(1), neighbours="add-remove", split=split)


def test_a_budget_that_protects_nobody_is_noted():
    """A delta above 1/N, and what bounds a guess less than epsilon = 20 does; at any size of the numbers."""
    approx, pure = dpgm.Budget.approx, dpgm.Budget.pure
    (note,) = budget_notes(approx(1, "1e-4"), 20_000)
    assert "1/20,000" in note
    usual = (approx(1, "5e-5"), pure(1), pure(20), dpgm.Budget.zcdp(5), dpgm.Budget.gdp(5), approx(20, "1e-9"))
    for budget in usual:
        assert budget_notes(budget, 20_000) == [] == budget_notes(approx(1, "1e-4"), None)
    (note,) = budget_notes(approx(1, "0.5"), None)  # of no table that a model is worth learning from
    assert note.startswith("delta = 0.5 is above 1/1,000")
    for budget in (pure(21), pure("1e400"), approx(21, "1e-9"), dpgm.Budget.zcdp("1e400"), dpgm.Budget.gdp("1e400")):
        (note,) = budget_notes(budget, 20_000)
        assert note.startswith(f"{budget} gives no meaningful protection") and "in 100 % of cases" in note


SPEC = """
data = "data.csv"
neighbours = "add-remove"
mechanism = "gaussian"
total = {total}
domain.attributes = {{ a = {{ labels = ["0", "1"], unknown = "0" }}, b = {{ labels = ["0", "1"], unknown = "0" }} }}
budget = {{ epsilon = 5, delta = 0.01 }}
structure.cliques = [["a", "b"]]
"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("command", ["plan", "release", "fit"])
@pytest.mark.parametrize("total", ["500", '"estimated"', '"public"'])
def test_the_command_line_warns_from_the_declared_total_alone(command, total, tmp_path, capsys):
    """stderr warns for total = 500 and delta = 0.01; never from the rows, of which there are 300."""
    (tmp_path / "data.csv").write_text("a,b\n" + "0,1\n1,1\n" * 150)
    (tmp_path / "spec.toml").write_text(SPEC.format(total=total))
    main([command, str(tmp_path / "spec.toml"), "--json"])
    said = capsys.readouterr()
    assert ("above 1/500" in said.err) == (total == "500")
    json.loads(said.out)


def test_the_spec_knows_the_split(tmp_path, capsys):
    text = SPEC.format(total=500).replace("epsilon = 5, delta = 0.01", "rho = 1")
    (tmp_path / "spec.toml").write_text(text.replace('[["a", "b"]]', '[["a"], ["a", "b"]]'))
    noise = {}
    for split in ("even", "optimal"):
        main(["plan", str(tmp_path / "spec.toml"), "--json", "--set", f"split={split}"])
        noise[split] = [table["noise"] for table in json.loads(capsys.readouterr().out)["tables"]]
    assert noise["even"][0] == noise["even"][1] and noise["optimal"][0] > noise["optimal"][1]
    with pytest.raises(SystemExit, match="2"):
        main(["plan", str(tmp_path / "spec.toml"), "--set", "split=odd"])


CHAIN = Structure.chain(Domain.from_sizes(dict.fromkeys("abcdefgh", 2)))


def test_only_measured_attributes_that_no_clique_holds_together_are_paired():
    """Neither pairs inside a clique, tied ones included, nor attributes in no clique, nor those of one label."""
    domain = Domain.from_sizes({"a": 2, "b": 2, "c": 2, "d": 2, "e": 2, "one": 1, "alone": 2})
    structure = Structure(domain, [("a", "b", "c"), ("d", "one")], tied=[[("a", "d"), ("b", "e")]])
    assert unmeasured_pairs(structure) == [("a", "e"), ("b", "d"), ("c", "d"), ("c", "e"), ("d", "e")]


def test_every_pair_is_drawn_as_often():
    """21 pairs, 12 a draw, 2,000 draws: each is drawn 1,143 +- 22 times; beyond 6 deviations once in 10^7 seeds."""
    drawn = Counter(pair for seed in range(2000) for pair in chosen_pairs(CHAIN, np.random.default_rng(seed)).cliques)
    assert set(drawn) == set(unmeasured_pairs(CHAIN))
    assert max(abs(count - 2000 * MAX_PAIRS / 21) for count in drawn.values()) < 6 * 22.2


def test_few_pairs_are_all_measured_and_none_is_refused():
    """What there is is taken; a structure of one clique leaves nothing to check."""
    triple = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2)))
    assert chosen_pairs(triple, np.random.default_rng(0)).cliques == (("a", "c"),)
    with pytest.raises(StructureError, match="leave the holdout out"):
        chosen_pairs(Structure.complete(triple.domain), np.random.default_rng(0))


def test_a_pair_with_very_many_cells_is_left_out():
    """A table of 400 x 400 would fill memory and say little."""
    structure = Structure(Domain.from_sizes({"a": 400, "b": 2, "c": 400}), [("a",), ("b",), ("c",)])
    assert set(chosen_pairs(structure, np.random.default_rng(0)).cliques) == {("a", "b"), ("b", "c")}


@pytest.mark.parametrize(
    "budget", [Budget.pure("1/3"), Budget.zcdp("0.1"), Budget.approx("0.7", "1e-9")], ids=lambda one: one.kind
)
def test_a_budget_is_divided_without_a_rest(budget):
    """Both parts together are exactly the budget, whatever the share."""
    for share in ("0.05", "1/7", 0.3):
        own, left = Split(holdout=share).divide(budget)
        assert own + left == budget
    assert Split().divide(budget) == (None, budget)


@pytest.mark.parametrize("share", [-0.1, 1, 1.5, "nan", True, None, float("inf")])
def test_what_is_no_share_is_refused(share):
    with pytest.raises(OptionError, match="share of the holdout"):
        holdout_share(share)
    with pytest.raises(OptionError, match="share of the holdout"):
        Split.of({"holdout": share})


def test_a_split_says_how_tables_share_and_what_is_set_aside():
    """What else stands in a mapping is refused by name; `check` is the earlier spelling of a holdout."""
    assert Split.of({"tables": "optimal", "holdout": "0.1"}) == Split("optimal", Fraction(1, 10))
    assert Split.of({"check": "0.1"}) == Split.of({"holdout": "0.1"})
    for wrong, words in (
        ({"holdotu": 0.1}, "no 'holdotu'; did you mean 'holdout'"),
        ({"tables": "evn", "holdout": 0.1}, "split must be one of"),
        ({"check": 0.1, "holdout": 0.1}, "both holdout and check"),
    ):
        with pytest.raises(OptionError, match=words):
            Split.of(wrong)


def test_no_pair_of_a_selection_holds_an_attribute_of_one_code():
    """Merging may leave an attribute one; its pairs say nothing of a structure. None is drawn where all are such."""
    merged = Domain.from_sizes({"a": 3, "b": 3, "c": 3, "d": 3}).coarsened({"b": [0, 0, 0], "d": [0, 0, 0]})
    alone = Structure(merged, [("a",), ("b",), ("c",), ("d",)])
    pairs = [("a", "b"), ("a", "c"), ("b", "d")]
    assert pairs_to_check(alone, np.random.default_rng(0), pairs).cliques == (("a", "c"),)
    assert pairs_to_check(alone, np.random.default_rng(0), [("a", "b"), ("b", "d")]) is None
