"""What a release would cost, before any record is read."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, ClippedScore, Contributions, Dag, Domain, Structure, StructureError, Terms, TooLarge
from dpgm_core.sources import as_source

DOMAIN = Domain.from_sizes({"a": 3, "b": 2})
STRUCTURE = Structure(DOMAIN, [("a", "b")])


def test_plan_says_what_proposition_4_says():
    """MSE = mu (1 - mu) / N + 2 (L1/eps)^2 / N^2 at the average cell, with the discrete noise's own variance."""
    planned = dpgm.plan(STRUCTURE, Budget.pure("0.1"), neighbours="replace-one", records=1000)
    assert (planned.sensitivity.l1, planned.scale, planned.cost) == (2, 20.0, Budget.pure("0.1"))
    [table] = planned.tables
    assert table.noise == pytest.approx(20 * 2**0.5, rel=1e-3)
    assert table.relative == pytest.approx((1 / 6 * 5 / 6 / 1000 + 2 * 20**2 / 1000**2) ** 0.5, rel=1e-3)
    for wrong in (0, float("nan"), float("inf"), True, "many"):
        with pytest.raises(dpgm.BudgetError):
            dpgm.plan(STRUCTURE, Budget.pure(1), neighbours="add-remove", records=wrong)


WRONG = [
    2.5,
    Fraction(5, 2),
    Decimal("2.5"),
    "2",
    b"2",
    None,
    True,
    math.nan,
    math.inf,
    -1,
    0,
    1e308,
    10**400,
    2j,
    [2],
    {},
]


def refused(ask):
    """Each wrong number is an error of dpgm in one line."""
    for wrong in WRONG:
        try:
            ask(wrong)
        except dpgm.DpgmError as error:
            assert "\n" not in str(error)
            continue
        yield wrong


@pytest.mark.parametrize("contributions", [None, Contributions(per="clique"), Contributions(per="group")])
def test_rows_are_whole(contributions):
    """A fractional `rows_per_person`, with contributions or without, wherever it is said: no plan."""

    def plan(rows):
        terms = Terms(neighbours="add-remove", person="id", rows_per_person=rows, contributions=contributions)
        dpgm.plan(STRUCTURE, Budget.pure(1), terms=terms)

    assert list(refused(plan)) == []
    if contributions is not None:
        assert list(refused(lambda rows: contributions.check(STRUCTURE, rows))) == []


@pytest.mark.parametrize(
    ("ask", "taken"),
    [
        (lambda one: dpgm.plan(STRUCTURE, Budget.pure(1), neighbours="add-remove", records=one), [2.5, None]),
        (lambda one: dpgm.plan(one, Budget.pure(1), neighbours="add-remove"), []),
        (lambda one: dpgm.plan(STRUCTURE, one, neighbours="add-remove"), []),
        (lambda one: dpgm.plan(STRUCTURE, Budget.pure(1), terms=one), []),
        (lambda one: Terms(neighbours="add-remove", total=one), [2.5]),
        (lambda one: Contributions(per="clique", grid=one), []),
        (lambda one: ClippedScore(norm=one, grid=4), [2.5, Fraction(5, 2), Decimal("2.5"), "2"]),
        (lambda one: ClippedScore(norm=1, grid=one), []),
        (lambda one: dpgm.optimal_split(one, Budget.pure(1)), []),
        (lambda one: dpgm.optimal_split(STRUCTURE, Budget.pure(1), one), [None, {}]),
        (
            lambda one: dpgm.optimal_split(STRUCTURE, Budget.pure(1), {("a", "b"): one}),
            [2.5, Fraction(5, 2), Decimal("2.5"), "2"],
        ),
    ],
    ids=["records", "structure", "budget", "terms", "total", "grid", "norm", "clip grid", "split", "weights", "weight"],
)
def test_numbers_are_taken_or_refused_in_words(ask, taken):
    """Fractions, texts, NaN, bools and what no double holds: numbers where numbers are meant, else an error of ours."""
    assert list(refused(ask)) == taken


class Largest:
    """A learner of directed graphs that measures the largest families alone; `fits`: what its engine must hold."""

    def __init__(self, split="optimal", fits=True):
        self.split, self.fits = split, fits

    def check(self, structure, inference):
        Dag.of(structure)
        if self.fits:
            inference.compile(structure)

    def learn(self, curator, inference, *, randomness, progress):
        raise NotImplementedError

    def planned_tables(self, structure):
        return Structure(structure.domain, Dag.of(structure).maximal), self.split


NETWORK = Dag(Domain.from_sizes({"a": 2, "b": 3, "c": 4, "d": 2}), {"c": ["a", "b"], "d": ["b"]})


def test_a_plan_shows_what_the_learner_will_measure():
    """Tables, noise and cost are those of a release that it will ask for; the model's structure stays."""
    structure, budget = NETWORK.structure(), Budget.pure(1)
    planned = dpgm.plan(structure, budget, neighbours="add-remove", learner=Largest())
    assert [table.clique for table in planned.tables] == [("c", "a", "b"), ("d", "b")]
    curator = dpgm.LiveCurator(
        as_source(np.zeros((10, 4), int)),
        structure,
        dpgm.make("mechanism", "laplace"),
        terms=Terms(neighbours="add-remove"),
        budget=budget,
        randomness=dpgm.SeededRandomness(1),
    )
    release = curator.release(cliques=NETWORK.maximal, split="optimal")
    assert [table.noise**2 for table in planned.tables] == pytest.approx(list(release.variances))
    assert planned.cost == release.cost and planned.sensitivity.l1 == 2
    assert planned.structure == structure.describe()
    even = dpgm.plan(structure, budget, neighbours="add-remove", learner=Largest("even")).tables
    assert even[0].noise == even[1].noise > planned.tables[0].noise
    as_told = dpgm.plan(structure, budget, neighbours="add-remove", learner=Largest(None), split="optimal")
    assert as_told.tables == planned.tables
    assert len(dpgm.plan(structure, budget, neighbours="add-remove", learner="naive-mle").tables) == 4


def test_records_per_row_and_the_rows_that_noise_leaves_unknown():
    """N / parents' states; a row is unknown where its mean count is below the noise of that count."""
    asked = {"neighbours": "add-remove", "learner": Largest("even")}
    planned = dpgm.plan(NETWORK.structure(), Budget.pure(1), records=60, **asked)
    assert [table.records_per_row for table in planned.tables] == [10.0, 20.0]
    assert planned.notes == () and planned.to_dict()["tables"][0]["records_per_row"] == 10.0
    # Noise of variance about 8: a row of c sums 4 cells, its sd is 5.6; one of d 2 cells, 4; a, b all of a table.
    few = dpgm.plan(NETWORK.structure(), Budget.pure(1), records=30, **asked)
    assert "6 of the 11 rows" in few.notes[0]  # 5 records in a row of c, 10 in one of d
    none = dpgm.plan(NETWORK.structure(), Budget.pure(1), **asked)
    assert none.notes == () and {table.records_per_row for table in none.tables} == {None}
    plain = dpgm.plan(NETWORK.structure(), Budget.pure(1), records=30, neighbours="add-remove")
    assert plain.notes == () and {table.records_per_row for table in plain.tables} == {None}


def test_a_plan_refuses_what_the_learner_refuses():
    """And nothing else: what it learns without an engine is planned without one."""
    chain, ask = Structure.chain(NETWORK.domain), {"neighbours": "add-remove"}
    with pytest.raises(StructureError, match="no directed graph"):
        dpgm.plan(chain, Budget.pure(1), learner=Largest(), **ask)
    names = [f"x{i}" for i in range(60)]
    wide = Dag(
        Domain.from_sizes(dict.fromkeys(names, 10)),
        {two: names[max(0, at - 40) : at][::13] for at, two in enumerate(names)} | {"x59": names[:3]},
    ).structure()
    with pytest.raises(TooLarge):
        dpgm.plan(wide, Budget.pure(1), learner=Largest(), **ask)
    planned = dpgm.plan(wide, Budget.pure(1), learner=Largest(fits=False), **ask)
    assert planned.seconds_per_inference is planned.inference_cost is None
    with pytest.raises(TooLarge):
        dpgm.plan(wide, Budget.pure(1), **ask)


def test_pairs_to_check_are_those_that_no_family_holds():
    """Of the model's structure, whatever is measured; what is left of the budget is the learner's."""
    asked = {"neighbours": "add-remove", "learner": Largest(), "split": {"tables": "even", "holdout": "0.1"}}
    planned = dpgm.plan(NETWORK.structure(), Budget.pure(1), **asked)
    assert "2 of the 2 pairs that no clique holds" in planned.notes[0]  # a and d, c and d
    bare = dpgm.plan(NETWORK.structure(), Budget.pure("0.9"), neighbours="add-remove", learner=Largest())
    assert planned.tables == bare.tables and planned.cost == Budget.pure(1)


def test_a_column_that_a_map_tells_is_not_said_to_be_unmeasured():
    """A model knows it as it knows the column that tells it; where that is in no table either, it does not."""
    columns = {name: {"size": 2, "unknown": 0} for name in ("fine", "coarse", "other")}
    rules = {"x": {"columns": ["fine", "coarse"], "map": {"0": "0", "1": "1"}}}
    domain = dpgm.Domain.from_dict({"attributes": columns, "constraints": rules})
    for cliques, unmeasured in (([("fine",)], ("other",)), ([("other",)], ("fine", "coarse"))):
        planned = dpgm.plan(dpgm.Structure(domain, cliques), dpgm.Budget.pure(1), neighbours="add-remove")
        assert planned.unmeasured == unmeasured
