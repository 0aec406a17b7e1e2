"""The state of Frank-Wolfe, how many steps it takes, and what it refuses."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from dpgm_mrf.frank_wolfe.components import FrankWolfeLearner
from dpgm_mrf.frank_wolfe.course import Course, FrankWolfe, move_weights, regressions_of

from dpgm_core import Budget, BudgetError, Domain, OptionError, Structure, Terms, make

BINARY = Domain.from_sizes(dict.fromkeys("abcd", 2))
PAIRS = Structure.complete(BINARY).cliques
TERMS = Terms(neighbours="add-remove")


def course(domain=BINARY, pairs=PAIRS, budget=None, terms=TERMS, **options):
    chosen = FrankWolfe(**{"width": 1.2, **options})
    return Course.of(chosen, regressions_of(chosen, domain, pairs), terms, budget or Budget.zcdp("1/100"))


def directions(of, draw):
    """One direction of each choice, at random among those allowed."""
    actual = []
    for rows in of.regressions.choices:
        places = [(row, int(column)) for row in rows for column in np.flatnonzero(of.regressions.allowed[row])]
        row, column = places[draw.integers(len(places))]
        actual.append((row, column, int(draw.choice([1, -1]))))
    return actual


@pytest.mark.parametrize("regression", ["logistic", "softmax", "pairs"])
def test_weights_stay_in_the_radius_and_near_the_exact_path(regression):
    """After each of 60 random steps the absolute sum of a choice is at most its radius, weights are allowed ones, and
    none is further from Frank-Wolfe without rounding than a unit a step, faded as steps are. Absolute sums keep their
    size to 2 %; truncated weights lose more, and fail."""
    sizes = {"a": 2, "b": 2, "c": 2} if regression == "logistic" else {"a": 2, "b": 3, "c": 4}
    domain = Domain.from_sizes(sizes)
    own = course(
        domain, Structure.complete(domain).cliques, **({} if regression == "logistic" else {"regression": regression})
    )
    draw = np.random.default_rng(1)
    weights, exact, reach, shrunk = own.regressions.zeros(), own.regressions.zeros().astype(float), 0.0, []
    for step in range(1, 61):
        picks = directions(own, draw)
        weights, mu = move_weights(weights, own, step, picks), 2 / (step + 2)
        exact *= 1 - mu
        for (row, column, sign), units in zip(picks, own.units, strict=True):
            exact[row, column] += mu * sign * units
        reach = reach * (1 - mu) + 1
        assert weights.dtype == np.int64 and not weights[~own.regressions.allowed].any()
        for rows, units in zip(own.regressions.choices, own.units, strict=True):
            assert np.abs(weights[list(rows)]).sum() <= units
        assert np.abs(weights - exact).max() <= reach
        shrunk.append(np.abs(weights).sum() / max(np.abs(exact).sum(), 1))
    assert shrunk[-1] == pytest.approx(1, abs=0.02)


def test_a_step_by_hand():
    """From (0, 30, -20) units, radius 76, step 2 goes half of the way to (76, 0, 0): (38, 15, -10)."""
    own = course(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")], width=0.6)
    assert own.units == (76, 76)
    weights = np.array([[0, 30, -20], [10, 0, 66]])
    actual = move_weights(weights, own, 2, [(0, 1, 1), (1, 2, -1)])
    assert actual.tolist() == [[0, 15 + 38, -10], [5, 0, 33 - 38]]


def test_radii_hold_every_model_of_the_width():
    """For 200 random models, scaled to a width of 1, the weights of each regression lie in its radius: 2 width for
    Ising models; k width times 2 for two labels, times k for all."""
    draw = np.random.default_rng(2)
    domain = Domain.from_sizes({"a": 2, "b": 3, "c": 4})
    pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    by_loss = {loss: course(domain, pairs, width=1, regression=loss) for loss in ("softmax", "pairs")}
    for _ in range(200):
        tables = {
            pair: draw.normal(size=domain.shape(pair)) * draw.choice([0, 1], size=domain.shape(pair)) for pair in pairs
        }
        fields = {name: draw.normal(size=domain.sizes[name]) for name in domain.names}
        rows = {
            name: [table if pair[0] == name else table.T for pair, table in tables.items() if name in pair]
            for name in domain.names
        }
        sums = {
            name: sum(np.abs(table).max(axis=1) for table in rows[name]) + np.abs(fields[name]) for name in domain.names
        }
        width = max(one.max() for one in sums.values())
        for name, radius in zip(domain.names, by_loss["softmax"].radii, strict=True):
            weight = sum(np.abs(table).sum() for table in rows[name]) + np.abs(fields[name]).sum()
            assert weight / width <= radius + 1e-9
        for (name, (u, v)), radius in zip(by_loss["pairs"].regressions.rows, by_loss["pairs"].radii, strict=True):
            weight = sum(np.abs(table[u] - table[v]).sum() for table in rows[name]) + abs(
                fields[name][u] - fields[name][v]
            )
            assert weight / width <= radius + 1e-9
    assert course(width=1.5).radii == (Fraction(3),) * 4


def test_steps_grow_with_records_and_budget():
    """T is the formula's without clipping and under add-remove; twice the noise of replace-one takes as many as half
    the records; it is 8 at least, and at most 250 or as many as move a weight by a unit."""
    plain = course(clip=None)
    rho = 0.01 / 4
    for records in (2_000, 50_000):
        expected = 0.25 * (2.4 * records * math.sqrt(rho)) ** (2 / 3)
        bound = math.floor(128 / (1 + math.exp(-2.4))) / 128 * (1 + math.exp(-2.4))  # residuals are cut to the grid
        assert plain.steps(records) == math.ceil(expected / bound ** (2 / 3))
    exchanged = course(clip=None, terms=Terms(neighbours="replace-one"))
    assert exchanged.steps(100_000) == plain.steps(50_000)
    assert course(clip=0.3).steps(50_000) > plain.steps(50_000)
    pure = course(clip=None, budget=Budget.pure(1))
    assert pure.steps(10_000) == math.ceil(0.5 * math.sqrt(2.4 * 10_000 / 4 / bound))
    assert plain.steps(1) == 8 and plain.steps(1e12) == 250 and course(weights_grid=8).steps(1e12) == 38
    assert course(steps=17).steps(1e12) == 17


def test_a_paper_split_spends_less():
    """Of k = 3 labels rho / (9 p) each leaves 2/9 of the budget in use; other losses use all of it."""
    domain = Domain.from_sizes(dict.fromkeys("abc", 3))
    pairs = Structure.complete(domain).cliques
    budget = Budget.zcdp("1/2")
    assert course(domain, pairs, budget, regression="pairs", budget_split="paper").budget == budget * Fraction(2, 9)
    assert course(domain, pairs, budget, regression="pairs").budget == budget
    assert course(BINARY, PAIRS, budget, regression="pairs", budget_split="paper").budget == budget  # Algorithm 2's


def test_clips_shorten_few_records():
    """Of records of unrelated attributes, at weights that are right, "auto" shortens fewer than 1 in 200 of 16 and 64
    attributes, 1 in 50 of 3, for every P; .3 shortens more than 1 in 10 of 3. 20,000 records a case, seed fixed."""
    draw = np.random.default_rng(3)
    for count in (3, 16, 64):
        kappa = {kind: float(FrankWolfe(width=1).kappa(kind, [2] * count, "logistic")) for kind in ("zcdp", "pure")}
        for probability in (0.1, 0.15, 0.2, 0.3, 0.5):
            wrong = np.where(draw.random((20_000, count)) < probability, 1 - probability, probability)
            assert ((wrong**2).mean(axis=1) > kappa["zcdp"]).mean() < (0.02 if count == 3 else 5e-3)
            assert (wrong.mean(axis=1) > kappa["pure"] + 1e-9).mean() < (0.02 if count == 3 else 5e-3)
    wrong = np.where(draw.random((100_000, 3)) < 0.3, 0.7, 0.3)
    assert ((wrong**2).mean(axis=1) > 0.3).mean() > 0.1


NAN, INF = math.nan, math.inf
WRONG = {
    "width": [0, -1, NAN, INF, True, "wide", None, 1e9],
    "steps": [1, 2.5, True, "many"],
    "clip": [0, 1.5, NAN, True, "some"],
    "residual_grid": [0],
    "weights_grid": [1.5],
    "least": [0, INF],
    "regression": ["logistic"],
    "budget_split": ["even", "paper"],
    "share_one_way": [0, 1, NAN, None],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
@pytest.mark.parametrize("kind", ["learner", "selector"])
def test_options_refuse_what_makes_no_sense(kind, name, value):
    for options in ({"width": 1, name: value}, {}):
        with pytest.raises(OptionError) as refused:
            make(kind, {"name": "mrf-fw", **options})
        assert (name if options else "width") in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "options", [{"residual_grid": 2**20}, {"weights_grid": 2**40}, {"clip": 1e-9}, {"width": 0.001, "weights_grid": 1}]
)
def test_units_that_no_budget_mends_are_refused(options):
    """At once, with what is wrong: more budget was tried for ever before."""
    with pytest.raises(OptionError, match=r"cannot take these options: (the grid|a radius|a clip)"):
        course(**options).check()


def test_too_little_to_choose_by_says_what_would_do():
    """A budget without a table is refused with how much more has one: that much is taken, a quarter of it not."""
    for budget, options in ((Budget.zcdp("1e-12"), {}), (Budget.pure("1/1000"), {"steps": 1000})):
        with pytest.raises(BudgetError, match=r"too little for mrf-fw: .* give [\d,]+ times the budget") as refused:
            course(budget=budget, **options).check()
        times = int(re.search(r"give ([\d,]+) times", str(refused.value)).group(1).replace(",", ""))
        course(budget=budget * times, **options).check()
        with pytest.raises(BudgetError):
            course(budget=budget * Fraction(times, 4), **options).check()
    tight = course(budget=Budget.zcdp("1e-4"))  # "auto" takes as many as it can pay
    assert 8 <= tight.steps(1e9) < course(budget=Budget.zcdp(1)).steps(1e9)
    tight.temperature(tight.steps(1e9))


def test_grids_that_core_refuses_are_refused_by_check():
    """A weights' grid too fine for exact sums is refused before any record."""
    learner = FrankWolfeLearner(width=1000, weights_grid=10**6)
    with pytest.raises(BudgetError, match="units"):
        learner.check(Structure(BINARY, PAIRS), make("inference", "junction-tree"))
