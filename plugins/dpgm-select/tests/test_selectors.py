"""The selectors through the door: what they choose, spend and refuse."""

import functools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from dpgm_select.aim import Aim
from dpgm_select.auto import Auto
from dpgm_select.grow import Grow
from dpgm_select.mst import Mst
from dpgm_select.oneshot import Oneshot
from dpgm_select.privbayes import PrivBayes

import dpgm_core as dpgm
from dpgm_core.learning import ModelSize
from dpgm_core.releases.session import spend_steps

NAMES = "abcdef"
DOMAIN = dpgm.Domain.from_sizes(dict.fromkeys(NAMES, 3))
#: A tree: what each attribute hangs on.
TREE = {"b": "a", "c": "a", "d": "c", "e": "c", "f": "e"}
EDGES = {tuple(sorted(edge)) for edge in TREE.items()}
TERMS = dpgm.Terms(neighbours="add-remove")


def planted(count: int = 4000) -> np.ndarray:
    """Records of a tree: each attribute copies what it hangs on three times of four."""
    rng = np.random.default_rng(7)
    columns = {"a": rng.integers(3, size=count)}
    for name, parent in TREE.items():
        columns[name] = np.where(rng.random(count) < 0.75, columns[parent], rng.integers(3, size=count))
    return np.column_stack([columns[name] for name in NAMES])


def parity(count: int = 4000) -> np.ndarray:
    """Records in which a, b and c are tied all three together, and nothing else is tied."""
    rng = np.random.default_rng(7)
    codes = rng.integers(2, size=(count, 4))
    codes[:, 2] = codes[:, 0] ^ codes[:, 1]
    return codes


def run(selector: object, budget: dpgm.Budget, codes: np.ndarray | None = None, **options: object) -> dpgm.Fit:
    return dpgm.fit(
        planted() if codes is None else codes,
        selector,
        budget,
        learner=options.pop("learner", "eb-map"),
        workload=options.pop("workload", DOMAIN),
        randomness=dpgm.SeededRandomness(5),
        **({"neighbours": "add-remove"} | options),
    )


def spent(done: dpgm.Fit) -> dpgm.Budget:
    return dpgm.Budget.sum(step.cost for step in done.release.steps)


def pairs_of(done: dpgm.Fit) -> set[tuple[str, ...]]:
    return {clique for clique in done.release.structure.cliques if len(clique) == 2}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("budget", [dpgm.Budget.pure(40), dpgm.Budget.zcdp(40)])
def test_mst_finds_a_planted_tree(budget: dpgm.Budget, neighbours: str) -> None:
    """With much budget the chance of another tree is below 1e-6: the nearest other pair is some 500 records behind."""
    done = run(Mst(), budget, neighbours=neighbours)
    assert pairs_of(done) == EDGES
    assert spent(done) <= budget
    assert Fraction(99, 100) * budget <= spent(done)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("selector", [Grow(), Oneshot(), Aim()])
def test_every_edge_of_a_planted_tree_is_measured(selector: object) -> None:
    """Alone or in a table of three, by the other selectors too; and they spend what there is."""
    done = run(selector, dpgm.Budget.zcdp(10))
    members = done.release.structure.cliques
    assert all(any(set(edge) <= set(clique) for clique in members) for edge in EDGES)
    assert spent(done) <= dpgm.Budget.zcdp(10)
    assert dpgm.Budget.zcdp("9.89") <= spent(done)


def test_a_second_look_finds_what_three_attributes_show_together_only() -> None:
    """One look at pairs cannot: every pair is independent."""
    domain = dpgm.Domain.from_sizes(dict.fromkeys("abcd", 2))
    once, twice = (run(Oneshot(looks=looks), dpgm.Budget.zcdp(2), parity(), workload=domain) for looks in (1, 2))
    assert ("a", "b", "c") in twice.release.structure.cliques
    assert ("a", "b", "c") not in once.release.structure.cliques
    for other in (Aim(), Grow()):
        assert ("a", "b", "c") in run(other, dpgm.Budget.zcdp(2), parity(), workload=domain).release.structure.cliques


def test_aim_ends_after_the_rounds_it_planned_at_most() -> None:
    """Of six attributes it plans 4 * 6; each round is a choice and a table."""
    done = run(Aim(), dpgm.Budget.zcdp("0.005"))
    choices = [step for step in done.release.steps if isinstance(step, dpgm.Choice)]
    assert 2 <= len(choices) <= 24
    assert spent(done) <= dpgm.Budget.zcdp("0.005")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("selector", [Mst, Grow, Oneshot, Aim, PrivBayes])
def test_a_model_stays_within_its_limits_and_says_what_was_left_out(selector: type) -> None:
    """Six attributes alone are 18 cells; each pair puts 9 in the place of 3 to 6."""
    done = run(selector(max_fit_bytes=16 * 30), dpgm.Budget.zcdp(10))
    assert 18 < ModelSize(DOMAIN, done.release.structure.cliques).cells() <= 30
    assert any("left out" in note or "small enough" in note or "grown beyond" in note for note in done.notes)


@functools.cache
def asking_no_pairs() -> list[tuple[dpgm.Workload, str]]:
    """Of one attribute; of two large ones; of 124,750 pairs, too many to ask any. With what is said of each."""
    one, large, wide = {"a": 3}, {"a": 300, "b": 300}, {f"x{number}": 2 for number in range(500)}
    cases = [(one, "domain has one attribute"), (large, "raise max_cells"), (wide, "name targets = ")]
    return [(dpgm.Workload.default(dpgm.Domain.from_sizes(sizes)), words) for sizes, words in cases]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("selector", [Mst(), Grow(), Oneshot(), Aim(), Auto(), PrivBayes()])
def test_a_workload_without_a_pair_is_refused_before_the_charge(selector: object) -> None:
    alone = dpgm.Workload.of(DOMAIN, [("a",), ("b",)])
    with pytest.raises(dpgm.StructureError, match="pairs of attributes"):
        run(selector, dpgm.Budget.zcdp(1), workload=alone)
    for workload, words in asking_no_pairs():
        with pytest.raises(dpgm.StructureError, match=words):
            selector.plan(workload, dpgm.Budget.zcdp(1), TERMS)  # type: ignore[attr-defined]


@pytest.mark.parametrize("selector", [Mst, Grow, Oneshot, Aim, Auto, PrivBayes])
def test_limits_that_no_pair_can_meet_are_refused_before_the_charge(selector: type) -> None:
    """Where merging may yet help it is a note of the plan; a limit that one pair just meets is none."""
    workload = dpgm.Workload.all(DOMAIN, 2)
    just = 3 * (len(NAMES) - 2) + 9
    assert not [note for note in selector().plan(workload, dpgm.Budget.zcdp(1), TERMS).notes if "raise them" in note]
    seconds = ModelSize(DOMAIN, [NAMES[:2]]).seconds()
    least = {"max_fit_bytes": 16 * just, "max_fit_seconds": seconds}
    assert selector(merge=False, **least).plan(workload, dpgm.Budget.zcdp(1), TERMS)
    for less in ({"max_fit_bytes": 16 * just - 1}, {"max_fit_seconds": 0.99 * seconds}):
        with pytest.raises(dpgm.TooLarge, match="nothing to choose; raise them"):
            run(selector(merge=False, **less), dpgm.Budget.zcdp(1), workload=workload)
        notes = selector(**less).plan(workload, dpgm.Budget.zcdp(1), TERMS).notes
        assert any("unless enough rare codes are merged" in note for note in notes)


@pytest.mark.parametrize("selector", [Grow(), Oneshot()])
def test_pure_budgets_are_refused_with_who_serves_them(selector: object) -> None:
    with pytest.raises(dpgm.BudgetError, match="'mst' or 'aim'"):
        run(selector, dpgm.Budget.pure(1))


@pytest.mark.parametrize("selector", [Mst(), Aim(), PrivBayes()])
def test_a_budget_that_chooses_by_chance_is_refused_before_the_charge(selector: object) -> None:
    """And not within the session, where all of it would be lost."""
    with pytest.raises(dpgm.BudgetError, match="as likely as any other"):
        run(selector, dpgm.Budget.pure("0.0001"))


@pytest.mark.parametrize(("neighbours", "moved"), [("add-remove", 1), ("replace-one", 2)])
def test_a_plan_refuses_what_choosing_would(neighbours: str, moved: int) -> None:
    """A choice takes 2 * 28 ln 2 / 2^20 a record that one person moves; of the budget a third goes to five choices."""
    least = 15 * moved * 56 * math.log(2) / 2**20
    workload, terms = dpgm.Workload.all(DOMAIN, order=2), dpgm.Terms(neighbours=neighbours)
    assert Mst().plan(workload, dpgm.Budget.pure(Fraction(1.001 * least)), terms).candidates == 15
    with pytest.raises(dpgm.BudgetError, match="as likely as any other"):
        Mst().plan(workload, dpgm.Budget.pure(Fraction(0.999 * least)), terms)


def test_auto_says_what_it_chose_and_why() -> None:
    workload = dpgm.Workload.all(DOMAIN)
    assert isinstance(Auto().decide(workload, dpgm.Budget.zcdp(1))[0], Grow)
    assert isinstance(Auto().decide(workload, dpgm.Budget.pure(1))[0], (Aim, Mst))
    assert isinstance(Auto(aim_attributes=5).decide(workload, dpgm.Budget.pure(1))[0], Mst)
    assert isinstance(Auto(aim_candidates=9).decide(workload, dpgm.Budget.pure(1))[0], Mst)
    assert Auto(merge=False).decide(workload, dpgm.Budget.zcdp(1))[0].merge is False
    assert any(note.startswith("auto: 'grow'") for note in run("auto", dpgm.Budget.zcdp(1)).notes)
    assert Auto().plan(workload, dpgm.Budget.zcdp(1), TERMS).notes[-1].startswith("auto: 'grow'")


def test_merging_can_be_turned_off() -> None:
    """By default rare codes are merged, and a note says which."""
    codes = planted()
    codes[:, 0] = np.random.default_rng(0).integers(3, size=len(codes)) ** 2 % 4
    domain = dpgm.Domain.from_sizes({"a": 40} | dict.fromkeys("bcdef", 3))
    merged, plain = (run(Mst(merge=merge), dpgm.Budget.zcdp("0.1"), codes, workload=domain) for merge in (True, False))
    assert merged.release.structure.domain["a"].size < 40 == plain.release.structure.domain["a"].size
    assert any("merged" in note for note in merged.notes)
    assert not any("merged" in note for note in plain.notes)


def test_the_registry_has_them_by_name() -> None:
    assert isinstance(dpgm.make("selector", "auto"), Auto)


@pytest.mark.parametrize(
    ("selector", "planned"),
    [("mst", 5), ("aim", 0), ("grow", 5), ("auto", 5), ("privbayes", 5), ("oneshot", 0), ("all-pairs", 0)],
)
def test_selections_of_an_epsilon_and_delta_have_an_exact_account(tmp_path: Path, selector: str, planned: int) -> None:
    """Choices are stated, so noise has the exact curve; only `aim` chooses beyond its plan, and the budget is spent."""
    whole = dpgm.Budget.approx(2, "1e-6")
    done = run(selector, whole, workload=dpgm.Workload.all(DOMAIN, order=2), save_release=tmp_path / "x.dpgm")
    session = done.release.session
    assert session is not None and session.account is not None and session.account.count == planned
    assert 1.03 * whole.zcdp_within().rho < session.budget.rho < 1.2 * whole.zcdp_within().rho
    left = spend_steps(session, whole, done.release.steps)
    assert left.mu_squared < session.account.mu_squared / 10**5
    made = [step for step in done.release.steps if isinstance(step, dpgm.Choice)]
    choices = [step.cost.rho / len(step.cliques) for step in made for _ in step.cliques]
    if selector == "privbayes":  # of which the last attribute's parents are chosen in each round
        assert len(left.choices) == 0
    if selector != "aim":  # whose rounds grow, so that none can be planned
        assert len(left.choices) == planned - len(choices)
        assert all(rho <= max((each for _, each in session.account.choices), default=0) for rho in choices)
    assert dpgm.load_release(tmp_path / "x.dpgm").guarantee() == done.release.guarantee()
