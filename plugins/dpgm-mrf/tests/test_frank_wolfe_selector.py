"""The selector `mrf-fw`: what it finds, what it leaves to measure, and what it plans and refuses."""

import numpy as np
import pytest
from dpgm_mrf.frank_wolfe.components import FrankWolfeSelector

import dpgm_core as dpgm

NAMES = [f"a{number}" for number in range(8)]
DOMAIN = dpgm.Domain.from_sizes(dict.fromkeys(NAMES, 2))
MATCHING = {frozenset(pair) for pair in zip(NAMES[::2], NAMES[1::2], strict=True)}
WORKLOAD = dpgm.Workload.all(DOMAIN, order=2)
ONE_LABEL = dpgm.Workload.all(dpgm.Domain.from_sizes({"a": 1, "b": 2}))


def matching(count, seed):
    """Codes of four pairs with couplings of +-.4: the second is the first or not, with probability sigma(.8)."""
    draw = np.random.default_rng(seed)
    first = draw.integers(0, 2, (count, 4))
    same = draw.random((count, 4)) < 1 / (1 + np.exp(-0.8))
    second = np.where(same, first, 1 - first) ^ draw.integers(0, 2, 4)
    return np.stack([first, second], axis=2).reshape(count, 8)


def selected(codes, selector, budget, total="estimated", **more):
    terms = dpgm.Terms(neighbours="add-remove", total=total)
    seeded = {"workload": WORKLOAD, "terms": terms, "randomness": dpgm.SeededRandomness(1), **more}
    return dpgm.select(codes, selector, budget, **seeded)


def edges(structure):
    return {frozenset(clique) for clique in structure.cliques if len(clique) == 2}


def test_the_edges_of_a_matching_are_selected_and_fitted():
    """End to end: at rho = .1 and 6,000 records exactly the four edges, in both fixed seeds, measured with what is left
    and fitted by the learner to .05 of their tables; the model costs the budget."""
    budget = dpgm.Budget.zcdp("1/10")
    for seed in (1, 2):
        codes = matching(6_000, seed)
        seeded = {"neighbours": "add-remove", "randomness": dpgm.SeededRandomness(seed)}
        fits = dpgm.fit(codes, {"name": "mrf-fw", "width": 0.4}, budget, workload=WORKLOAD, **seeded)
        assert edges(fits.model.structure) == MATCHING
        assert fits.model.cost == budget
        for pair in MATCHING:
            places = [NAMES.index(name) for name in sorted(pair)]
            truth = np.bincount(codes[:, places] @ [2, 1], minlength=4).reshape(2, 2) / len(codes)
            np.testing.assert_allclose(fits.model.marginal(sorted(pair)), truth, atol=0.05)


def test_without_edges_the_structure_has_attributes_alone():
    """Without dependence there is no edge above least / 2 = 1, and the rest measures the attributes again."""
    codes = np.random.default_rng(1).integers(0, 2, (2_000, 8))
    release, selection = selected(codes, {"name": "mrf-fw", "width": 2, "least": 2}, dpgm.Budget.zcdp(1))
    assert selection.structure.cliques == tuple((name,) for name in NAMES)
    assert set(selection.measure) == {(name,) for name in NAMES}
    assert release.cost == dpgm.Budget.zcdp(1)


def test_what_the_engine_cannot_hold_is_left_out_weakest_first():
    """An engine of two pairs at most: the two strongest are kept, and a note says how many were not."""

    class Two:
        max_order = None

        def compile(self, structure):
            if sum(len(clique) == 2 for clique in structure.cliques) > 2:
                raise dpgm.TooLarge("two pairs fit here")
            return dpgm.make("inference", "junction-tree").compile(structure)

    codes = matching(6_000, 1)
    strong = codes.copy()
    strong[:, 1] = strong[:, 0]
    strong[:, 5] = np.where(np.random.default_rng(2).random(len(codes)) < 0.9, strong[:, 4], strong[:, 5])
    _, selection = selected(strong, {"name": "mrf-fw", "width": 1.5}, dpgm.Budget.zcdp(10), inference=Two())
    assert edges(selection.structure) == {frozenset(("a0", "a1")), frozenset(("a4", "a5"))}
    assert any("weakest" in note and "loopy-bp" in note for note in selection.notes)


def test_a_plan_is_what_a_selection_does():
    """Shares, the steps of a declared number of records, and what one choice can tell: the temperature's odds."""
    selector = FrankWolfeSelector(width=0.4)
    terms = dpgm.Terms(neighbours="add-remove", total=6_000)
    budget = dpgm.Budget.zcdp("1/10")
    plan = selector.plan(WORKLOAD, budget, terms)
    assert dpgm.Budget.sum(plan.shares.values()) == budget
    release, selection = selected(matching(6_000, 1), selector, budget, total=6_000)
    steps = [row for row in selection.trace if "temperature" in row]
    assert len(steps) == plan.limits["steps"] - 1
    lead = np.log(9 * (2 * 8 - 1)) / steps[0]["temperature"] / 128
    assert plan.detectable == pytest.approx(2 * lead) and plan.candidates == 28
    assert plan.deviation == pytest.approx(np.sqrt(release.steps[0].variances[0]), rel=0.01)
    unknown = selector.plan(WORKLOAD, budget, dpgm.Terms(neighbours="add-remove"))
    assert unknown.limits["steps"] == 8 and any("more steps" in note for note in unknown.notes)


@pytest.mark.parametrize(
    ("workload", "budget", "error", "match"),
    [
        (dpgm.Workload.all(DOMAIN, order=1), dpgm.Budget.zcdp(1), dpgm.StructureError, "chooses between pairs"),
        (ONE_LABEL, dpgm.Budget.zcdp(1), dpgm.StructureError, "two labels and more"),
        (WORKLOAD, dpgm.Budget.zcdp("1e-12"), dpgm.BudgetError, r"give [\d,]+ times the budget"),
    ],
    ids=["alone", "one label", "little"],
)
def test_a_plan_refuses_what_a_selection_would(workload, budget, error, match):
    """Before anything is read, in plans and in selections alike."""
    with pytest.raises(error, match=match):
        dpgm.plan_selection({"name": "mrf-fw", "width": 1}, budget, workload, terms=dpgm.Terms(neighbours="add-remove"))
    codes = np.zeros((10, len(workload.domain)), int)
    with pytest.raises(error, match=match):
        dpgm.fit(codes, {"name": "mrf-fw", "width": 1}, budget, workload=workload, neighbours="add-remove")
