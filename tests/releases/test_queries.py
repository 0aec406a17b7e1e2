"""What a session hands out besides tables, as values: what it costs, and what a file has of it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve

from dpgm_core import Budget, Domain, Structure, Workload, make
from dpgm_core.privacy.descent import Regressions
from dpgm_core.privacy.mechanism import calibrate
from dpgm_core.privacy.selection import cost_of, temperature
from dpgm_core.privacy.votes import ThresholdVotes
from dpgm_core.releases.session import score_sensitivity, step_facts
from dpgm_core.releases.steps import Choice, Descent, NoisyScores, SessionTerms, Verdict, mechanism_of

CLIQUES = (("a",), ("b",), ("a", "b"))
PLACE = {clique: number + 5 for number, clique in enumerate(CLIQUES)}


def choice(**more):
    made = {
        "candidates": CLIQUES, "groups": ((0, 1, 2),), "chosen": ((2, 0),), "temperature": Fraction(1, 64), "grid": 16,
        "person": 2, "kind": "zcdp",
    }  # fmt: skip
    return Choice(**made | more)


def scores(values):
    """Noisy scores of three candidates at rho = 1."""
    mechanism, sensitivity = make("mechanism", "gaussian"), score_sensitivity(3, 1)
    calibration = calibrate(mechanism, mechanism.noise(sensitivity, Budget.zcdp(1)), sensitivity, Budget.zcdp(1))
    return NoisyScores(candidates=CLIQUES, values=values, calibration=calibration)


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
    drawn = np.array([1, -(2**47), 2**52 - 1])
    found = scores(drawn / 1024)
    assert found.numbers.tolist() == drawn.tolist() and found.cost <= Budget.zcdp(1)
    assert found.deviation == pytest.approx((3 / 2) ** 0.5, rel=1e-3)
    document = found.step_document(PLACE)
    assert document["kind"] == "score" and set(document) == {"kind", "candidates", "calibration"}  # as it ever was


@pytest.mark.parametrize(("groups", "written"), [(((0, 1, 2),), None), (((0, 2), (1,)), [[0, 2], [1]])])
def test_means_are_written_with_their_groups(groups, written):
    """As choices are, and as a step of another kind, which an earlier reader refuses."""
    found = evolve(scores(np.zeros(len(groups))), groups=groups)
    document = found.step_document(PLACE)
    assert (document["kind"], document["groups"], document["candidates"]) == ("mean", written, [5, 6, 7])
    assert repr(found).startswith(f"NoisyScores({len(groups)} means over 3 candidates") and len(found.numbers) == len(
        groups
    )
    assert step_facts(found)["kind"] == "mean" and step_facts(scores(np.zeros(3)))["kind"] == "score"


def test_what_a_session_hands_out_is_shown_in_a_line():
    """Not a wall of arrays and fractions: the cliques, how many candidates, what it cost."""
    said = repr(scores(np.zeros(3)))
    assert said.startswith("NoisyScores(3 candidates, deviation 1.22") and "Fraction" not in said
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


PAIRS = Structure.complete(Domain.from_sizes({"a": 2, "b": 2, "c": 2}))


def descent(**given):
    """Of two labels at a time over three pairs, as a session makes it."""
    made = {
        "regressions": Regressions(candidates=PAIRS, loss="pairs"), "picks": ((0, 2, 1), (1, 6, -1), (2, 0, 1)),
        "temperature": Fraction(1, 100), "radius": Fraction(2), "clip": Fraction(3, 10), "residual_grid": 128,
        "person": 2, "kind": "zcdp",
    }  # fmt: skip
    return Descent(**made | given)


def test_a_descent_tells_where_weights_go_and_what_that_cost():
    """Rows, columns, signs; candidates by number; a constant is of no candidate; twice the persons, 4 times the rho."""
    place = {pair: number for number, pair in enumerate(PAIRS.cliques, start=3)}
    one = descent()
    assert one.sound and one.cliques == (("a", "b"), ("a", "c")) and not len(one.numbers)
    assert one.step_document(place) == {
        "kind": "descend", "candidates": [3, 4, 5], "loss": "pairs", "picks": [[0, 2, 1], [1, 6, -1], [2, 0, 1]],
        "temperature": "1/100", "radius": "2", "clip": "3/10", "residual_grid": 128,
    }  # fmt: skip
    # S = floor(128^2 * .3 * 3), range 2 sqrt(S) a record
    far = 2 * 2 * math.sqrt(math.floor(128**2 * 0.3 * 3))
    assert float(one.cost.rho) == pytest.approx((far / 100) ** 2 / 8, rel=1e-6)
    assert float(one.cost.rho / descent(person=1).cost.rho) == pytest.approx(4, rel=1e-6)
    assert float(descent(kind="pure", clip=None).cost.epsilon) == pytest.approx(2 * 2 * 3 * 112 / 100, rel=1e-6)


@pytest.mark.parametrize("given", [
    {"picks": ((0, 2, 1), (1, 6, -1))}, {"picks": ((0, 0, 1), (1, 6, -1), (2, 0, 1))},
    {"picks": ((1, 0, 1), (1, 6, -1), (2, 0, 1))}, {"picks": ((0, 7, 1), (1, 6, -1), (2, 0, 1))},
    {"picks": ((0, 2, 0), (1, 6, -1), (2, 0, 1))}, {"residual_grid": 1}, {"residual_grid": 2**13},
    {"radius": Fraction(2**21)}, {"clip": Fraction(2)}, {"clip": Fraction(1, 10**6)},
])  # fmt: skip
def test_what_no_session_makes_is_not_sound(given):
    """A choice less, itself as its partner, another's row, no column, no sign; units out of their limits."""
    assert not descent(**given).sound


def test_a_product_that_holds_its_own_attribute_is_no_partner():
    """With pairs and triples among the candidates a x b is a column, and of the row of c alone."""
    own = Regressions(candidates=Structure(PAIRS.domain, [("a", "b"), ("a", "b", "c")]), loss="logistic")
    column = own.columns.index((("a", "b"), ()))
    fair = ((0, 1, 1), (1, 0, 1), (2, column, -1))
    assert descent(regressions=own, picks=fair).sound
    assert not descent(regressions=own, picks=((0, column, 1), *fair[1:])).sound


PART = Budget.approx(1, "1e-6")


@pytest.mark.parametrize(("edges", "numbers"), [(None, None), ((), []), ((("b", "c"),), [5])])
def test_a_verdict_is_told_by_numbers_of_candidates(edges, numbers):
    """No edge is another outcome than nothing, and both cost the same."""
    place = {pair: number for number, pair in enumerate(PAIRS.cliques, start=3)}
    one = Verdict(voter=ThresholdVotes(pairs=PAIRS, tau=0.3), budget=PART, edges=edges)
    assert one.step_document(place) == {
        "kind": "vote", "candidates": [3, 4, 5], "voter": {"by": "threshold", "tau": 0.3}, "budget": PART.to_dict(),
        "edges": numbers,
    }  # fmt: skip
    assert one.cost == PART and one.candidates == PAIRS.cliques and not len(one.numbers)
