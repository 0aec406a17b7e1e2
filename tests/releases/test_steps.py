"""Choices and noisy scores as values: what they cost, and what a file has of them."""

from fractions import Fraction

import numpy as np
import pytest

from dpgm_core import Budget, Domain, make
from dpgm_core.privacy.mechanism import calibrate
from dpgm_core.privacy.selection import cost_of, temperature
from dpgm_core.releases.session import score_sensitivity
from dpgm_core.releases.steps import Choice, NoisyScores, SessionTerms, mechanism_of
from dpgm_core.structure.workload import Workload

CLIQUES = (("a",), ("b",), ("a", "b"))
PLACE = {clique: number + 5 for number, clique in enumerate(CLIQUES)}


def choice(**more):
    return Choice(
        **{
            "candidates": CLIQUES,
            "groups": ((0, 1, 2),),
            "chosen": ((2, 0),),
            "temperature": Fraction(1, 64),
            "grid": 16,
            "person": 2,
            "kind": "zcdp",
        }
        | more
    )


@pytest.mark.parametrize("kind", ["pure", "zcdp"])
def test_a_choice_costs_its_picks(kind):
    """As many exponential mechanisms as were picked, over all groups, at h per unit and `grid * person` units."""
    one = choice(kind=kind, chosen=((2, 0), (1, 2)), groups=((0, 1, 2), (1, 2)))
    assert one.cost == cost_of(Fraction(1, 64), 4, 32, kind)
    assert one.cliques == (("a", "b"), ("a",), ("b",), ("a", "b"))
    asked = Budget.pure(3) if kind == "pure" else Budget.zcdp(3)
    again = choice(kind=kind, temperature=temperature(asked, 2, 32))
    assert asked * Fraction(999, 1000) <= again.cost <= asked and len(again.numbers) == 0


@pytest.mark.parametrize(
    ("groups", "written"),
    [(((0, 1, 2),), None), (((0, 2),), [[0, 2]]), (((2, 1, 0),), [[2, 1, 0]]), (((0, 1), (2, 1)), [[0, 1], [2, 1]])],
)
def test_groups_are_written_unless_all_candidates_are_one(groups, written):
    """One group of some of them is not all of them."""
    one = choice(groups=groups, chosen=tuple(group[:1] for group in groups))
    document = one.step_document(PLACE)
    assert document["groups"] == written and document["candidates"] == [5, 6, 7]
    assert (document["kind"], document["temperature"], document["grid"]) == ("select", "1/64", 16)


def test_scores_are_whole_multiples_of_a_1024th():
    """So the numbers of a file are what was drawn, however large."""
    mechanism, sensitivity = make("mechanism", "gaussian"), score_sensitivity(3, 1)
    calibration = calibrate(mechanism, mechanism.noise(sensitivity, Budget.zcdp(1)), sensitivity, Budget.zcdp(1))
    drawn = np.array([1, -(2**47), 2**52 - 1])
    scores = NoisyScores(candidates=CLIQUES, values=drawn / 1024, calibration=calibration)
    assert scores.numbers.tolist() == drawn.tolist() and scores.cost <= Budget.zcdp(1)
    assert scores.deviation == pytest.approx((3 / 2) ** 0.5, rel=1e-3)
    assert scores.step_document(PLACE)["kind"] == "score"


def test_what_a_session_hands_out_is_shown_in_a_line():
    """Not a wall of arrays and fractions: the cliques, how many candidates, what it cost."""
    mechanism, sensitivity = make("mechanism", "gaussian"), score_sensitivity(3, 1)
    calibration = calibrate(mechanism, mechanism.noise(sensitivity, Budget.zcdp(1)), sensitivity, Budget.zcdp(1))
    scores = NoisyScores(candidates=CLIQUES, values=np.zeros(3), calibration=calibration)
    assert repr(scores).startswith("NoisyScores(3 candidates, deviation 1.22") and "Fraction" not in repr(scores)
    one = choice()
    assert repr(one) == f"Choice(a x b, a of 3 candidates, {one.cost})"
    many = choice(candidates=CLIQUES * 9, chosen=(tuple(range(27)),))
    assert "and 23 more of 27 candidates" in repr(many)
    workload = Workload.all(Domain.from_sizes({"a": 2, "b": 2}))
    assert repr(workload) == "Workload(1 cliques, 3 candidates of up to 10,000 cells)"
    assert repr(Budget.pure("1/4")) == "Budget(epsilon = 0.25)"


def test_the_noise_of_a_session():
    """By the kind of its budget, and what it was opened for as plain values."""
    assert (mechanism_of(Budget.pure(1)), mechanism_of(Budget.zcdp(1))) == ("laplace", "gaussian")
    workload = Workload.all(Domain.from_sizes({"a": 2, "b": 2}))
    plain = SessionTerms(workload=workload, budget=Budget.zcdp("1/3"), merges={"a": (0, 0)}).to_dict()
    assert plain == {"workload": workload.to_dict(), "budget": {"rho": "1/3"}, "merges": {"a": [0, 0]}}
