"""Tables with more than `max_cells` cells: the limit is on the codes that merging leaves."""

import math

import numpy as np
import pytest
from dpgm_select.aim import Aim
from dpgm_select.all_pairs import AllPairs
from dpgm_select.auto import Auto
from dpgm_select.grow import Grow
from dpgm_select.mst import Mst
from dpgm_select.oneshot import Oneshot
from dpgm_select.privbayes import PrivBayes
from hypothesis import given, settings
from hypothesis import strategies as st

import dpgm_core as dpgm

TERMS = dpgm.Terms(neighbours="add-remove")
SELECTORS = [Mst, Grow, Oneshot, Aim, PrivBayes, Auto, AllPairs]
BUDGET = dpgm.Budget.zcdp("0.02")


def make_scores(rows: int, codes: int) -> np.ndarray:
    """Two columns with correlation .8, and one of three labels that depends on the first."""
    rng = np.random.default_rng(8)
    one, noise, more = rng.normal(size=(3, rows))
    two = 0.8 * one + 0.6 * noise
    third = np.digitize(0.5 * one + more, [-0.5, 0.5])
    scores = np.clip(np.rint((np.stack([one, two]) / 6 + 0.5) * codes), 0, codes - 1).astype(int)
    return np.column_stack([*scores, third])


def domain_of(codes: int) -> dpgm.Domain:
    number = {"type": "integer", "min": 0, "max": codes - 1}
    return dpgm.Domain.from_dict({"maths": number, "physics": number, "school": ["a", "b", "c"]})


def select(selector: object, workload: object, seed: int = 1, codes: int = 101, rows: int = 15_000) -> tuple:
    learner = "mixture" if isinstance(selector, AllPairs) else "eb-map"
    return dpgm.select(
        make_scores(rows, codes), selector, BUDGET, workload, learner, terms=TERMS,
        randomness=dpgm.SeededRandomness(seed),
    )  # fmt: skip


@pytest.mark.parametrize("kind", SELECTORS)
def test_a_pair_that_merging_makes_small_is_measured(kind: type) -> None:
    """102 x 102 codes are more than 10,000 and become a few hundred; the plan says so."""
    workload = dpgm.Workload.all(domain_of(101), order=2)
    release, selection = select(kind(), workload)
    assert ("maths", "physics") in release.structure.cliques
    assert not any("left out for more than" in note for note in selection.notes)
    learner = "mixture" if kind is AllPairs else "eb-map"
    plan = dpgm.plan_selection(kind(), BUDGET, workload, learner, terms=TERMS)
    assert any("only if merging leaves at most max_cells = 10,000 cells: 1 of 3" in note for note in plan.notes)


def test_the_candidates_are_those_of_the_file(tmp_path) -> None:
    """Steps name candidates by their numbers."""
    release, _ = select(Grow(), domain_of(101))
    release.save(tmp_path / "x.dpgm")
    again = dpgm.load_release(tmp_path / "x.dpgm")
    assert again.session.workload.candidates == release.session.workload.candidates
    assert again.session.workload.order_before_merging == 3
    assert again.structure == release.structure


@pytest.mark.parametrize("kind", SELECTORS)
def test_without_merging_the_pair_is_left_out_and_named(kind: type) -> None:
    """In the plan and in the notes of the fit, with the limit that admits it."""
    workload = dpgm.Workload.all(domain_of(101), order=2)
    release, selection = select(kind(merge=False), workload)
    assert ("maths", "physics") not in release.structure.cliques
    learner = "mixture" if kind is AllPairs else "eb-map"
    plan = dpgm.plan_selection(kind(merge=False), BUDGET, workload, learner, terms=TERMS)
    note = (
        "pairs left out for more than max_cells = 10,000 cells: 1 of 3 (maths x physics); max_cells = 11000 admits all"
    )
    assert note in plan.notes and note in selection.notes


@settings(max_examples=40)
@given(
    kind=st.sampled_from(SELECTORS), codes=st.integers(8, 60), limit=st.integers(12, 400), order=st.integers(2, 3),
    rows=st.sampled_from([300, 5_000]), seed=st.integers(0, 9), holdout=st.sampled_from([0, "0.1"]),
)  # fmt: skip
def test_no_table_of_several_attributes_is_larger_than_the_limit(
    kind, codes, limit, order, rows, seed, holdout
) -> None:
    """Neither measured nor scored, nor chosen, nor of the holdout, by the codes that it is counted by."""
    workload = dpgm.Workload.all(domain_of(codes), order=order, max_cells=max(limit, codes + 1))
    learner = "mixture" if kind is AllPairs else "eb-map"
    release, _ = dpgm.select(
        make_scores(rows, codes), kind(), BUDGET, workload, learner, terms=TERMS, split={"holdout": holdout},
        randomness=dpgm.SeededRandomness(seed),
    )  # fmt: skip
    for step in release.steps:
        cliques = step.structure.cliques if isinstance(step, dpgm.NoisyTables) else step.candidates
        domain = step.structure.domain if isinstance(step, dpgm.NoisyTables) else release.structure.domain
        large = [one for one in cliques if len(one) > 1 and math.prod(domain.shape(one)) > workload.max_cells]
        assert not large
