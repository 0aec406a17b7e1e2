"""The selector `grow`: what it measures, what it leaves alone, and its parts against simpler computations."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from dpgm_select import grow
from dpgm_select.common import Growth
from dpgm_select.grow import Grow, _Worth, lasting_noise, shrink_scores
from hypothesis import given
from hypothesis import strategies as st

import dpgm_core as dpgm
from dpgm_core import make
from dpgm_core.domain import Ordered
from dpgm_core.pipeline.run import Run
from dpgm_testing.runner import subject_of
from dpgm_testing.selecting import again, choose
from dpgm_testing.unusual import Power

TERMS = dpgm.Terms(neighbours="add-remove")


def select(
    codes: np.ndarray, sizes: list[int], budget: dpgm.Budget, *, order: int = 3, seed: int = 3, **options: object
) -> tuple[dpgm.NoisyTables, dpgm.Selection]:
    domain = dpgm.Domain.from_sizes({f"x{place:02d}": size for place, size in enumerate(sizes)})
    return dpgm.select(
        codes,
        Grow(),
        budget,
        dpgm.Workload.all(domain, order=order),
        "eb-map",
        terms=TERMS,
        randomness=dpgm.SeededRandomness(seed),
        **options,
    )


def copies(records: int = 3000) -> np.ndarray:
    """Six columns that copy one another nine times of ten, and four that hang on one of them each."""
    rng = np.random.default_rng(1)
    source = rng.integers(3, size=records)
    many = [np.where(rng.random(records) < 0.9, source, rng.integers(3, size=records)) for _ in range(6)]
    few = [np.where(rng.random(records) < 0.5, many[place], rng.integers(3, size=records)) for place in range(4)]
    return np.column_stack([*many, *few])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("epsilon", ["0.5", "2"])  # picks; looks
def test_columns_that_copy_one_another_leave_none_without_a_pair(epsilon: str) -> None:
    """The forest comes first, so that gains which explain one another cannot fill the model."""
    release, selection = select(copies(), [3] * 10, dpgm.Budget.approx(epsilon, "1e-9"))
    paired = {name for clique in release.structure.cliques if len(clique) > 1 for name in clique}
    assert paired == set(release.structure.domain.names)
    assert len(selection.trace) > 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("holdout", ["0", "0.1"])
def test_the_whole_budget_reaches_its_steps(holdout: str) -> None:
    """Whatever rounds there are, and with a share set aside for a structure check."""
    release, _ = select(copies(1000), [3] * 10, dpgm.Budget.zcdp("0.01"), split={"holdout": holdout})
    spent = dpgm.Budget.sum(step.cost for step in release.steps)
    assert release.session.budget * Fraction(999_990, 1_000_000) <= spent <= release.session.budget


def test_looks_end_where_scores_would_cost_more_than_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the charge nothing may be asked for that the session has not got."""
    monkeypatch.setattr(grow, "_LOOK_PART", 0.97)
    rng = np.random.default_rng(2)
    codes = np.cumsum(rng.integers(2, size=(1000, 6)), axis=1) % 4
    release, selection = select(codes, [4] * 6, dpgm.Budget.zcdp("0.1"))
    looks = [row for row in selection.trace if "deviation" in row]
    assert len(looks) == 1 and looks[0]["chosen"]
    assert dpgm.Budget.sum(step.cost for step in release.steps) <= release.session.budget


def test_no_two_tables_of_a_round_of_picks_share_a_pair() -> None:
    """What one tells the other would tell again; the next model says what is left of it."""
    release, _ = select(copies(), [3] * 10, dpgm.Budget.approx("0.3", "1e-9"))
    measured = [
        step.structure.cliques
        for before, step in itertools.pairwise(release.steps)
        if isinstance(before, dpgm.Choice) and len(before.cliques) > 1 and isinstance(step, dpgm.NoisyTables)
    ]
    assert measured
    for cliques in measured:
        pairs = [pair for clique in cliques for pair in itertools.combinations(clique, 2)]
        assert len(set(pairs)) == len(pairs)


@pytest.mark.sampled(2)
def test_where_pairs_are_lost_in_noise_everything_goes_to_single_columns() -> None:
    """300 rows of 9 columns at epsilon .1: a pair's noise is five times the records. The plan says so before, the notes
    first of all, and the attributes have the noise of all the budget."""
    rng = np.random.default_rng(2)
    codes, budget = rng.integers(3, size=(300, 9)), dpgm.Budget.approx("0.1", "1e-9")
    release, selection = select(codes, [3] * 9, budget)
    assert selection.notes[0].startswith("only single columns were measured")
    assert {len(clique) for clique in release.structure.cliques} == {1}
    account = release.session.account
    alone = math.sqrt(9 / float(account.mu_squared))
    assert np.allclose(np.sqrt(release.variances), alone, rtol=1e-3)
    domain = release.structure.domain
    workload = dpgm.Workload.all(dpgm.Domain.from_sizes(dict.fromkeys(domain.names, 3)))
    few, some, many = (
        Grow().plan(workload, budget.zcdp_within(), TERMS, records).notes for records in (300, 1500, 10**6)
    )
    assert "only single columns can be told" in few[0]
    assert "times the epsilon" in few[0]
    assert "only if most depend strongly" in some[0]
    assert not any("single columns" in note for note in many)
    assert not any(
        "single columns" in note for note in Grow().plan(workload, budget.zcdp_within(), TERMS, math.nan).notes
    )
    assert not any("single columns" in note for note in Grow().plan(workload, budget.zcdp_within(), TERMS).notes)


def few(seed: int, strength: float, records: int, columns: int, labels: int) -> np.ndarray:
    """Columns of uneven labels, each of which copies the one before it this often."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack(
        [rng.choice(labels, size=records, p=rng.dirichlet(np.full(labels, 3.0))) for _ in range(columns)]
    )
    for place in range(1, columns):
        codes[:, place] = np.where(rng.random(records) < strength, codes[:, place - 1], codes[:, place])
    return codes


def is_tested_is_alone(codes: np.ndarray, labels: int, epsilon: str, seed: int) -> tuple[bool, bool]:
    """Whether the mean distance of pairs was paid for, and whether single columns alone were measured."""
    budget = dpgm.Budget.approx(epsilon, "1e-9")
    release, _ = select(codes, [labels] * codes.shape[1], budget, order=2, seed=seed)
    tested = any(isinstance(step, dpgm.NoisyScores) and step.groups is not None for step in release.steps)
    return tested, all(len(clique) == 1 for clique in release.structure.cliques)


@pytest.mark.landing
def test_independent_columns_seldom_pass_for_dependent_ones() -> None:
    """80 tables of 300 rows and 9 columns, at the noise at which pairs are tested. With a false alarm in one of fifty,
    more than 6 in 80 have probability .001; at epsilon .7 most tables of columns that copy one another pass."""
    found = [is_tested_is_alone(few(seed, 0.0, 300, 9, 3), 3, "0.5", seed) for seed in range(80)]
    assert sum(tested for tested, _ in found) > 40
    assert sum(tested and not alone for tested, alone in found) <= 6
    strong = [is_tested_is_alone(few(seed, 0.9, 300, 9, 3), 3, "0.7", seed) for seed in range(12)]
    assert 0 < sum(tested for tested, _ in strong) < 2 * sum(tested and not alone for tested, alone in strong)


def test_a_test_that_nothing_could_pass_costs_nothing() -> None:
    """Two labels, and noise by which even columns that are all the same would not stand out."""
    copies = np.repeat(np.random.default_rng(1).integers(2, size=(300, 1)), 9, axis=1)
    assert is_tested_is_alone(copies, 2, "0.2", 1) == (False, True)
    assert is_tested_is_alone(copies, 2, "0.6", 1) == (True, False)


@pytest.mark.sampled(2)
def test_labels_that_are_rare_do_not_count_as_noise_of_pairs() -> None:
    """Fifteen labels, of which two are frequent: with all of them a pair's noise would be above the records."""
    codes = few(4, 0.8, 3000, 8, 2)
    rng = np.random.default_rng(5)
    codes = np.where(rng.random(codes.shape) < 0.02, rng.integers(2, 15, codes.shape), codes)
    release, selection = select(codes, [15] * 8, dpgm.Budget.approx("0.2", "1e-9"))
    assert any(len(clique) == 2 for clique in release.structure.cliques)
    assert selection.notes[0].startswith("codes rarer than")


def test_noise_that_lasts_falls_with_the_interactions_that_tell_it() -> None:
    lasting = [lasting_noise(count) for count in range(1, 300)]
    assert lasting[0] == 1.0
    assert all(one >= other for one, other in itertools.pairwise(lasting))
    assert min(lasting) == 0.3


@given(
    st.lists(st.floats(-1e4, 1e4), min_size=2, max_size=40),
    st.floats(0, 1e4),
    st.lists(st.integers(2, 500), min_size=40, max_size=40),
)
def test_scores_are_shrunk_towards_what_their_size_has(values: list[float], deviation: float, cells: list[int]) -> None:
    """Without noise they stay, or are 0; with nothing but noise they are what tables of their size have on average."""
    noisy = np.array(values)
    alike = [4] * len(noisy)
    assert np.allclose(shrink_scores(noisy, 0.0, alike), np.maximum(noisy, 0), atol=1e-6)
    assert np.allclose(shrink_scores(noisy, 1e12, alike), max(0.0, noisy.mean()), atol=1e-6)
    shrunk = shrink_scores(noisy, deviation, cells[: len(noisy)])
    assert (shrunk >= 0).all()
    assert shrunk.max(initial=0) <= max(0.0, np.abs(noisy).max()) * 3 + 1e-6


def worth(gains: dict[tuple[str, ...], float], level: float = 1.0, *, careful: bool = False) -> _Worth:
    same = dict.fromkeys(gains, 1.0)
    return _Worth(
        gains=gains,
        pulls=same,
        lasting=dict.fromkeys(gains, 0.5),
        weights=same,
        committed=0.0,
        level=level,
        careful=careful,
    )


@given(st.lists(st.floats(0.0, 20.0), min_size=1, max_size=7), st.floats(0.1, 5.0))
def test_of_tables_that_share_nothing_the_best_set_is_taken(gains: list[float], level: float) -> None:
    """Against all subsets: what is saved is the gains less the noise that the tables have together."""
    cliques = {(f"a{place}", f"b{place}"): gain for place, gain in enumerate(gains)}
    saved, taken = worth(cliques, level).best(cliques, lambda _: True, {})
    best = max(
        sum(few) - 0.5 * level * len(few) ** 1.5
        for count in range(len(gains) + 1)
        for few in itertools.combinations(gains, count)
    )
    assert saved == pytest.approx(best, abs=1e-9)
    assert saved == pytest.approx(sum(cliques[one] for one in taken) - 0.5 * level * len(taken) ** 1.5, abs=1e-9)


def test_a_gain_that_others_explain_is_not_counted_again() -> None:
    """A table of three is worth what it tells beyond its pair; a careful look leaves the third side of a triangle."""
    gains = {("a", "b"): 10.0, ("a", "b", "c"): 10.2, ("a", "c"): 8.0, ("b", "c"): 6.0}
    assert worth(gains).best([("a", "b"), ("a", "b", "c")], lambda _: True, {})[1] == [("a", "b", "c")]
    twice = worth({**gains, ("a", "b", "c"): 9.9})
    assert twice.best([("a", "b"), ("a", "b", "c")], lambda _: True, {})[1] == [("a", "b")]
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    assert worth(gains).best(pairs, lambda _: True, {})[1] == pairs
    assert worth(gains, careful=True).best(pairs, lambda _: True, {})[1] == pairs[:2]
    assert worth(gains).best(pairs, lambda clique: "b" not in clique, {})[1] == [("a", "c")]


def test_choices_cost_no_more_than_the_plan_says() -> None:
    """Twelve columns of nine labels, whose pairs are doubtful: all looks and the test of pairs are choices."""
    rng = np.random.default_rng(1)
    source = rng.integers(9, size=3000)
    codes = np.column_stack([np.where(rng.random(3000) < 0.7, source, rng.integers(9, size=3000)) for _ in range(12)])
    release, _ = select(codes, [9] * 12, dpgm.Budget.approx("1.3", "1e-9"), seed=4)
    planned = Grow(classes=False).plan(release.session.workload, release.session.budget, TERMS).shares
    most = dpgm.Budget.sum(share for what, share in planned.items() if what.startswith(("choosing", "asking")))
    spent = dpgm.Budget.sum(step.cost for step in release.steps if not isinstance(step, dpgm.NoisyTables))
    assert Fraction(99, 100) * most <= spent <= most


def factor(columns: int = 9, records: int = 4000, labels: int = 4) -> np.ndarray:
    """Columns of equally frequent labels that all hang on one hidden number, correlated by 2 / 3."""
    rng = np.random.default_rng(2)
    values = math.sqrt(2) * rng.standard_normal((records, 1)) + rng.standard_normal((records, columns))
    return np.argsort(np.argsort(values, axis=0), axis=0) * labels // records


def chain(columns: int = 6, records: int = 4000) -> np.ndarray:
    rng = np.random.default_rng(3)
    codes = rng.integers(4, size=(records, columns))
    for place in range(1, columns):
        codes[:, place] = np.where(rng.random(records) < 0.7, codes[:, place - 1], codes[:, place])
    return codes


def fitted(codes: np.ndarray, **options: object) -> dpgm.Fit:
    domain = dpgm.Domain.from_sizes({f"x{place:02d}": 4 for place in range(codes.shape[1])})
    options = {"workload": domain, "terms": TERMS, "randomness": dpgm.SeededRandomness(5), **options}
    return dpgm.fit(codes, "auto", dpgm.Budget.approx(1, "1e-9"), **options)


def pair_error(model: dpgm.Model, codes: np.ndarray) -> float:
    pairs = list(itertools.combinations(range(codes.shape[1]), 2))
    found = model.marginals_of([(f"x{one:02d}", f"x{two:02d}") for one, two in pairs])
    counts = [np.bincount(codes[:, one] * 4 + codes[:, two], minlength=16).reshape(4, 4) for one, two in pairs]
    return float(
        np.mean([np.abs(one - n / len(codes)).sum() / 2 for one, n in zip(found.values(), counts, strict=True)])
    )


@pytest.mark.sampled(4)
def test_where_all_columns_hang_together_latent_classes_are_fitted() -> None:
    """And nearer, as long as no learner is named; along a chain they are not."""
    codes = factor()
    switched, kept = fitted(codes), fitted(codes, learner="eb-map")
    assert switched.model.latent == ("h",) and not kept.model.latent and not fitted(chain()).model.latent
    assert switched.notes[0].startswith("all pairs were measured")
    assert switched.model.provenance["learner"]["name"] == "mixture"
    assert {clique for clique in switched.release.structure.cliques if len(clique) == 2} == set(
        itertools.combinations(switched.model.domain.names, 2)
    )
    assert switched.model.cost.rho == pytest.approx(kept.model.cost.rho, rel=1e-5)
    assert pair_error(switched.model, codes) < 0.8 * pair_error(kept.model, codes)


def test_the_plan_names_the_other_learner_unless_it_cannot_serve() -> None:
    """Constraints, too many cells, or a learner of the user's own: then it is not asked for."""
    domain = dpgm.Domain.from_sizes(dict.fromkeys("abcd", 3))
    budget = dpgm.Budget.zcdp("0.1")
    plan = Grow().plan(dpgm.Workload.all(domain), budget, TERMS)
    assert plan.learner == "mixture" and plan.switched is not None and len(plan.switched.cliques) == 4 + 6
    assert any("latent classes" in note for note in plan.notes)
    assert dpgm.Budget.sum(plan.shares.values()) == budget
    tied = dpgm.Domain(domain.attributes, [Ordered(name="x", columns=("a", "b"))])
    large = dpgm.Domain.from_sizes({f"x{place}": 100 for place in range(30)})
    for other, without in [(Grow().without_switch(), domain), (Grow(), large), (Grow(), tied)]:
        plan = other.plan(dpgm.Workload.all(without, 2), budget, TERMS)
        assert plan.learner is None and plan.switched is None
        assert not any("latent classes" in note for note in plan.notes)
        assert dpgm.Budget.sum(plan.shares.values()) == budget


@pytest.mark.sampled(1)
def test_next_to_nothing_is_not_spent_on_a_table_by_itself() -> None:
    """Noise of little budget may be too wide to be drawn at all, as that of a table of weights is: then the selection
    would fail when it is paid for. Here two tables would have had 3e-8 of rho between them."""
    rng = np.random.default_rng(1)
    first = rng.integers(0, 3, (3000, 1))
    codes = np.hstack([first, (first + rng.integers(0, 2, (3000, 4))) % 3])
    done = dpgm.fit(
        codes,
        "grow",
        dpgm.Budget.approx("0.2", "1e-8"),
        Power(),
        workload=dpgm.Domain.from_sizes(dict.fromkeys("abcde", 3)),
        neighbours="replace-one",
        randomness=dpgm.SeededRandomness(1),
    )
    assert done.release.session is not None and done.release.session.account is None
    spent = dpgm.Budget.sum(step.cost for step in done.release.steps)
    assert done.release.session.budget * Fraction(999_999, 1_000_000) <= spent


@pytest.mark.sampled(1)
def test_of_all_pairs_the_small_ones_are_measured_too() -> None:
    """Seven columns of a hundred labels and three of two: the least tables get less than a hundredth of the mean."""
    rng = np.random.default_rng(2)
    values = math.sqrt(2) * rng.standard_normal((20000, 1)) + rng.standard_normal((20000, 10))
    sizes = [100] * 7 + [2] * 3
    ranks = np.argsort(np.argsort(values, axis=0), axis=0)
    domain = dpgm.Domain.from_sizes({f"x{place:02d}": size for place, size in enumerate(sizes)})
    noisy, selection = dpgm.select(
        ranks * np.array(sizes) // 20000,
        "grow",
        dpgm.Budget.approx(10, "1e-9"),
        dpgm.Workload.all(domain, order=2),
        terms=TERMS,
        randomness=dpgm.SeededRandomness(5),
    )
    assert selection.learner == "mixture"
    assert set(itertools.combinations(domain.names, 2)) <= set(noisy.structure.cliques)


def columns(odd: bool) -> np.ndarray:
    """Eight binary columns, the first two related; with `odd` the last is at most times the parity of three."""
    rng = np.random.default_rng(4)
    codes = rng.integers(2, size=(20_000, 8))
    codes[:, 1] = codes[:, 0] ^ (rng.random(20_000) < 0.2)  # else pairs are told from independence first
    if odd:
        codes[:, 7] = (codes[:, 2] ^ codes[:, 3] ^ codes[:, 4]) ^ (rng.random(20_000) < 0.1)
    return codes


def test_looks_at_sets_of_four_are_decided_by_released_values_alone() -> None:
    """With the same answers and without records it says the same, and it has asked about sets of four."""
    subject, _ = subject_of("grow", "selector")
    workload = dpgm.Workload.all(dpgm.Domain.from_sizes({f"x{at}": 2 for at in range(8)}), order=4)
    selected = choose(subject, columns(odd=True), workload=workload, budget=dpgm.Budget.zcdp("0.1"))
    assert any(len(clique) == 4 for clique in selected.selection.structure.cliques)
    assert again(subject, selected) == selected.said
    assert not selected.trespassers and selected.paid <= selected.budget


def test_a_set_of_four_is_measured_where_it_stands_out_and_only_there() -> None:
    """A parity of three columns shows in the four together alone; where all are independent none is taken."""
    for table, wanted in ((columns(odd=True), {("x02", "x03", "x04", "x07")}), (columns(odd=False), set())):
        release, _ = select(table, [2] * 8, dpgm.Budget.approx("1", "1e-9"), order=4)
        assert {clique for clique in release.structure.cliques if len(clique) > 3} == wanted


def test_sets_of_four_are_candidates_where_they_are_few_and_small_and_nobody_says_what_is_asked() -> None:
    """For Gaussian noise, and without a learner, as some take no tables of four."""

    def order(sizes: list[int], *, selector: str = "auto", **more: object) -> int:
        domain = dpgm.Domain.from_sizes({f"x{place}": size for place, size in enumerate(sizes)})
        given: dict[str, object] = {"budget": dpgm.Budget.zcdp(1), "workload": domain, **more}
        run = Run(None, make("selector", selector), terms=TERMS, **({"may_switch": True} | given))  # type: ignore[arg-type]
        return max(map(len, run.workload.candidates))

    assert [order([2] * count) for count in (3, 4, 16, 17)] == [3, 4, 4, 3]  # 1,820 sets and 2,380
    assert [order([2, 2, 2, 2, size]) for size in (1, 2, 3)] == [4, 4, 3]  # of 16 cells and 24
    assert order([2] * 8, selector="grow") == 4
    assert order([2] * 8, selector="aim") == order([2] * 8, budget=dpgm.Budget.pure(1)) == 3
    assert order([2] * 8, may_switch=False) == 3
    few = dpgm.Domain.from_sizes({f"x{place}": 2 for place in range(8)})
    narrow = dpgm.Workload.default(few, never=[("x0", "x1")])
    assert order([2] * 8, workload=dpgm.Workload.all(few)) == 3
    assert order([2] * 8, workload=narrow) == 4
    widened = Grow().widen(narrow, dpgm.Budget.zcdp(1))
    assert (widened.never, widened.max_cells) == (narrow.never, narrow.max_cells)
    assert not any({"x0", "x1"} <= set(clique) for clique in widened.candidates)


def test_a_model_of_tables_learned_already_is_not_learned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[float] = []
    fitted = Growth.fitted

    def count(growth: Growth, *given: object) -> dpgm.Fit:
        release = growth.session.pooled()
        learned.append(float((1 / release.variances).sum()) + len(release.structure.domain.sizes))
        return fitted(growth, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Growth, "fitted", count)
    codes = np.random.default_rng(5).integers(2, size=(3000, 6))
    codes[:, 3:] = np.where(np.random.default_rng(6).random((3000, 3)) < 0.3, codes[:, :3], codes[:, 3:])
    domain = dpgm.Domain.from_sizes(dict.fromkeys("abcdef", 2))
    dpgm.select(
        codes, Grow(), dpgm.Budget.approx("2", "1e-9"), domain, terms=TERMS, randomness=dpgm.SeededRandomness(1)
    )  # which asks whether to measure all pairs, as no learner is named
    assert len(learned) > 2
    assert len(set(learned)) == len(learned)
