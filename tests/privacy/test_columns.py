"""What finding columns of any type costs: its exact delta over neighbours, and budgets that are kept."""

import math
from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve
from scipy import special, stats

from dpgm_core import Attribute, Budget, BudgetError, Contributions, Domain, OptionError, SeededRandomness, Terms
from dpgm_core.domain.shapes import CELLS, COMMON_LABELS, SHAPES, cell_of, shape_of
from dpgm_core.privacy.columns import ColumnsPlan, plan_columns
from dpgm_core.privacy.gaussian import gaussian_variance
from dpgm_core.privacy.labels import plan_labels
from dpgm_core.privacy.samplers import bounded_variance
from dpgm_core.releases.labels import draw_columns

BUDGET = Budget.approx("0.8", "0.02")
BOTH = ["add-remove", "replace-one"]


def plan(columns=1, whole=BUDGET, labels=1, neighbours="add-remove", share=Fraction(1, 2)):
    names = tuple(f"c{number}" for number in range(columns))
    return ColumnsPlan(columns=names, whole=whole, share=share, labels=labels, neighbours=neighbours)


def masses(variance, width):
    """P(Z = z) of discrete Gaussian noise for z from -width to width."""
    z = np.arange(-width, width + 1)
    mass = np.exp(-(z**2) / (2 * float(variance)))
    return mass / mass.sum()


def law_of_shape(count, variance, width):
    """Of a shape every noisy count may be published."""
    return np.concatenate([np.zeros(count), masses(variance, width), np.zeros(2 - count)])


def law_of_label(count, threshold, variance, width):
    """Of a label nothing or its noisy count from the threshold on; the first entry is nothing."""
    above = np.zeros(width + 2)
    if not count:
        return np.concatenate([[1.0], above])
    values, mass = np.arange(-width, width + 1) + count, masses(variance, width)
    shown = values >= threshold
    above[values[shown] - threshold] = mass[shown]
    return np.concatenate([[mass[~shown].sum()], above])


def worst_delta(noise, epsilon, moves, table=None, cells=0):
    """The largest delta of one column: a shape moves, and labels of one person, own or not, as `moves` says.

    moves: pairs (labels that move by one and that others have, labels that the person alone has); values where these
    are searched. table: the variance of a table's cell that moves too. cells: how many cells of columns do.
    """
    threshold, variance = noise.threshold, noise.variance
    if noise.valued:
        threshold, variance = noise.values_threshold, noise.values_variance
    width = math.ceil(9 * math.sqrt(max(variance, noise.shapes_variance)))
    shapes = [law_of_shape(count, noise.shapes_variance, width) for count in (0, 1)]
    worst = 0.0
    for shared, own in moves:
        pairs = [shapes]
        wide = math.ceil(9 * noise.cells_sigma)
        pairs += [[law_of_shape(up, noise.cells_variance, wide) for up in (0, 1)]] * cells
        pairs += [[law_of_shape(up, table, math.ceil(9 * math.sqrt(table))) for up in (0, 1)]] if table else []
        pairs += [[law_of_label(threshold - 1 + up, threshold, variance, width) for up in (0, 1)]] * shared
        pairs += [[law_of_label(up, threshold, variance, width) for up in (0, 1)]] * own
        for order in (1, -1):
            one, other = np.ones(1), np.ones(1)
            for pair in pairs:
                first, second = pair[::order]
                one, other = np.kron(one, first), np.kron(other, second)
            worst = max(worst, float(np.maximum(one - math.exp(epsilon) * other, 0).sum()))
    return worst


def test_no_neighbours_tell_more_than_is_paid_for():
    """A person comes or goes, of the search alone and with a table after it; noise for less is seen at once."""
    asked, moves = plan(), [(1, 0), (0, 1)]
    noise, table = asked.noise(1), gaussian_variance(asked.tables.mu_squared, 1)
    # Of the delta that the search is charged, two ninths are its own; the rest is for what follows.
    for budget, cell, of_delta in ((asked.budget, None, 2 / 9), (asked.whole, float(table), 0.8)):
        epsilon, delta = float(budget.epsilon), float(budget.delta) * of_delta
        stated = float(noise.delta(budget.epsilon, asked.tables.mu_squared if cell else Fraction(0)))
        assert worst_delta(noise, epsilon, moves, cell) <= stated <= delta
        # The price of Gaussian noise is most of the delta, but for what values would cost.
        assert worst_delta(noise, epsilon, [(1, 0)], cell) > 0.35 * delta
        wrong = [{"threshold": noise.threshold // 2}, {"variance": bounded_variance(noise.variance / 3)}]
        wrong.append({"shapes_variance": bounded_variance(noise.shapes_variance / 6)})
        for values in wrong:
            assert worst_delta(evolve(noise, **values), epsilon, moves, cell) > delta
    assert worst_delta(noise, epsilon, moves, cell / 2) > delta


def test_cells_cost_what_is_stated():
    """Of a column with labels and cells, of four times the variance; less noise on cells is seen at once."""
    asked = plan()
    noise, epsilon = asked.noise(1, 1), float(asked.budget.epsilon)
    stated = float(noise.delta(asked.budget.epsilon))
    assert worst_delta(noise, epsilon, [(1, 0), (0, 1)], cells=1) <= stated <= float(asked.budget.delta) * 2 / 9
    less = evolve(noise, cells_variance=bounded_variance(noise.cells_variance / 6))
    assert worst_delta(less, epsilon, [(1, 0)], cells=1) > stated
    assert float(noise.cells_variance) == pytest.approx(4 * float(noise.variance), rel=0.1)
    for labelled in (0, 1):
        for celled in (0, 1, 2):
            of = asked.noise(labelled, celled)
            assert of.mu_squared <= asked.tables.mu_squared * asked.share / (1 - asked.share)
            counts = (1 / of.shapes_variance, labelled / of.variance, celled / of.cells_variance)
            assert float(of.mu_squared) == pytest.approx(float(sum(counts)), rel=0.01)


def test_values_cost_what_is_stated():
    """Of a column of numbers, after its cells; a lower threshold, and less noise on values, are seen at once."""
    asked, moves = plan(), [(1, 0), (0, 1)]
    noise, epsilon = asked.noise(0, 1, 1), float(asked.budget.epsilon)
    stated = float(noise.delta(asked.budget.epsilon))
    assert worst_delta(noise, epsilon, moves, cells=1) <= stated <= float(asked.budget.delta) * 2 / 9
    wrong = [{"values_threshold": noise.values_threshold // 2}]
    wrong.append({"values_variance": bounded_variance(noise.values_variance / 12)})
    for values in wrong:
        assert worst_delta(evolve(noise, **values), epsilon, moves, cells=1) > stated
        assert noise.delta(asked.budget.epsilon) < evolve(noise, **values).delta(asked.budget.epsilon)
    both = [asked.noise(labelled, 1, valued) for labelled, valued in ((0, 0), (0, 1), (1, 0))]
    assert len({one.cells_variance for one in both[:2]}) == len({one.shapes_variance for one in both}) == 1
    share = asked.tables.mu_squared * asked.share / (1 - asked.share)
    assert all(one.mu_squared <= share for one in both)
    assert float(both[1].mu_squared) == pytest.approx(float(share), rel=1e-6)


def test_values_that_few_have_stay_with_them():
    """Numbers of which few are common: these have bins of their own, and a value of one person is never published."""
    asked = plan(1, whole=Budget.approx(3, "1e-6"), share=Fraction(1, 20))
    attribute = Attribute.from_dict("a", {"private": True})
    texts = {"7.8958": 900, "26.55": 700, "8.3711": 1}
    shapes, cells = (dict.fromkeys(every, 0) for every in (SHAPES, CELLS))
    for text, count in texts.items():
        shapes[shape_of(text.encode())] += count
        cells[cell_of(text.encode())] += count
    for seed in range(20):
        found = draw_columns(asked, [attribute], [texts], [shapes], [cells], SeededRandomness(seed)).columns[0]
        assert found.has_values and {label for label, _ in found.labels} == {"7.8958", "26.55"}
        edges = found.attribute.edges
        for value in (7.8958, 26.55):
            at = edges.index(value)
            assert edges[at + 1] - value == pytest.approx(10.0**-found.attribute.values.digits)


def test_common_labels_have_noise_whether_they_occur_or_not():
    """One that nobody has is published as often as noise says; one person's own never is."""
    asked = plan(1, whole=Budget.approx(3, "1e-6"), share=Fraction(1, 20))
    attribute, times = Attribute.from_dict("a", {"private": True, "keep": 1000, "null_values": ["NA"]}), 40
    shown = [
        dict(
            draw_columns(asked, [attribute], [{"own": 1}], [{"text": 9000}], [{}], SeededRandomness(seed))
            .columns[0]
            .labels
        )
        for seed in range(times)
    ]
    common = len(set(COMMON_LABELS) - {"NA"})
    often = sum(map(len, shown)) / (times * common)
    assert abs(often - stats.norm.sf(1.5)) < 5 * math.sqrt(0.06 / (times * common))
    assert set().union(*shown) <= {*COMMON_LABELS} - {"NA"}
    assert min(min(one.values()) for one in shown) >= asked.noise(1).low


def spent_after_a_look(asked, charged):
    """The delta of Gaussian noise where what is found decides what follows: the tables, or what the ledger has left.

    The latter is the worst of its epsilon and delta. charged: before the search.
    """
    epsilon, left = float(asked.whole.epsilon), float(asked.whole.epsilon - charged.epsilon)
    delta, tables = float(asked.whole.delta - charged.delta), math.sqrt(float(asked.tables.mu_squared))
    search = math.sqrt(float(asked.tables.mu_squared * asked.share / (1 - asked.share)))
    loss = np.linspace(search**2 / 2 - 9 * search, search**2 / 2 + 9 * search, 100_001)
    mass = stats.norm.pdf(loss, search**2 / 2, search) * (loss[1] - loss[0])
    rest = epsilon - loss
    of_tables = special.ndtr(tables / 2 - rest / tables) - np.exp(rest) * special.ndtr(-tables / 2 - rest / tables)
    above = np.abs(rest)
    other = delta + (1 - delta) * np.maximum(math.exp(left) - np.exp(above), 0) / (1 + math.exp(left))
    other = np.where(rest < 0, 1 - np.exp(rest) + np.exp(rest) * other, other)
    return float(mass @ np.maximum(of_tables, other))


@pytest.mark.parametrize(("epsilon", "share"), [(1, "1/20"), (3, "1/20"), (3, "1/2")])
def test_what_follows_may_depend_on_what_is_found(epsilon, share):
    """Even then the ledger's sum holds; not so if half of the delta is charged before, or four parts are for it."""
    asked = plan(2, whole=Budget.approx(epsilon, "1e-6"), share=Fraction(share))
    delta, own = float(asked.whole.delta), 0.1 * float(asked.whole.delta)
    assert 0.8 * delta < spent_after_a_look(asked, asked.budget) + own <= delta
    search = Budget("gdp", mu_squared=asked.tables.mu_squared * asked.share / (1 - asked.share))
    wrong = evolve(search.to_approx(asked.whole.delta * Fraction(4, 10)), delta=asked.whole.delta / 2)
    assert spent_after_a_look(asked, wrong) + own > delta


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("labels", [1, 3])
def test_the_cost_is_within_the_budget_whatever_shapes_say(neighbours, labels):
    """For each number of columns whose labels are searched; fewer of them have less noise, and one less is refused."""
    whole = plan(5, labels=labels, neighbours=neighbours)
    noises = [whole.noise(count) for count in range(6)]
    for noise in noises:
        assert noise.delta(BUDGET.epsilon, whole.tables.mu_squared) <= BUDGET.delta
        assert noise.delta(whole.budget.epsilon) <= whole.budget.delta
    assert len({noise.shapes_variance for noise in noises}) == 1
    thresholds = [noise.threshold for noise in noises[1:]]
    assert thresholds == sorted(thresholds)
    lower = evolve(noises[5], threshold=noises[5].threshold - 1)
    own = (1 + Fraction(math.exp(0.8))) * labels * 5
    assert (
        own * noises[5].published
        <= BUDGET.delta / 20 * (1 + Fraction(1, 10**9))
        < own * lower.published * (1 + Fraction(1, 10**9))
    )
    moved = 5 * labels * (1 if neighbours == "add-remove" else 2)
    assert float(noises[5].shapes_variance) == pytest.approx(1.9 * float(noises[5].variance), rel=0.1)
    valued = whole.noise(0, 5, 5)
    assert own * evolve(valued, threshold=valued.values_threshold, variance=valued.values_variance).published <= (
        BUDGET.delta / 20 * (1 + Fraction(1, 10**9))
    )
    assert float(noises[5].mu_squared) == pytest.approx(
        moved * (1 / float(noises[5].variance) + 1 / float(noises[5].shapes_variance)), rel=0.05
    )


def test_draws_pass_the_threshold_as_often_as_stated():
    """A label of `likely` persons in .9 of 100,000 draws, to 5 standard deviations; that of one person never here."""
    noise = plan(3).noise(3)
    drawn = noise.draw_labels(100_000, SeededRandomness(3))
    share = float(np.mean(drawn + noise.likely() >= noise.threshold))
    assert 0.9 - 5 * math.sqrt(0.09 / 1e5) < share < 0.97
    assert float(np.mean(drawn + 1 >= noise.threshold)) < float(noise.published) + 5 * math.sqrt(
        float(noise.published) / 1e5
    )


def test_a_run_plans_a_twentieth_of_mu_squared_for_all():
    """One plan for all columns of any type, out of what columns with a share of their own leave."""
    open_one = {"labels": {"private": True, "keep": 4, "share": 0.1}}
    tables = {"a": {"private": True}, "b": open_one, "c": {"private": True}, "d": {"size": 2}}
    domain = Domain.from_dict({"attributes": tables})
    budget, terms = Budget.approx(2, "1e-6"), Terms(neighbours="add-remove")
    listed, together = plan_labels(domain, budget, terms)
    assert listed.column == "b" and together.columns == ("a", "c")
    assert together.whole == Budget.approx("1.8", "9e-7") and together.budget <= together.whole * Fraction(9, 10)
    search = together.noise(0, 2, 2).mu_squared
    found = float(search / (search + together.tables.mu_squared))
    assert found == pytest.approx(0.05, rel=0.01)
    assert "types, ranges and labels of 2 columns are found first" in together.notes()[0]
    more = Domain.from_dict({"attributes": {**tables, "c": {"private": True, "share": "1/5"}}})
    assert plan_labels(more, budget, terms)[1].share == Fraction(1, 5)
    with pytest.raises(BudgetError, match="give it a delta"):
        plan_labels(domain, Budget.pure(1), terms)
    with pytest.raises(OptionError, match="normalised contributions"):
        plan_labels(
            domain,
            budget,
            evolve(terms, person="id", rows_per_person=2, contributions=Contributions(per="group", grid=60)),
        )


def test_too_little_is_refused_before_anything_is_read():
    """Where so few records are declared that no label could be found, and where noise could not be drawn."""
    terms = Terms(neighbours="replace-one", total=300)
    with pytest.raises(BudgetError, match="300 records are declared; give a larger epsilon or fewer columns"):
        plan_columns(tuple("abcdefgh"), Budget.approx(1, "1e-6"), terms, Fraction(1, 20))
    for budget in (Budget.pure(1), Budget.approx("1e-14", "1e-14")):
        with pytest.raises(BudgetError):
            plan(whole=budget)
    with pytest.raises(BudgetError, match="or fewer columns, or fewer rows of a person than 100,000"):
        plan(2, Budget.approx("1e-6", "1e-6"), 10**5, share=Fraction(1, 20))
    for share in (Fraction(0), Fraction(1), 0.1):
        with pytest.raises(BudgetError, match="share of columns of any type"):
            plan(share=share)


@pytest.mark.parametrize(("delta", "most"), [("1e-9", 12), ("1e-4", 11.72)])
def test_an_epsilon_that_buys_nothing_more_is_noted(delta, most):
    """Above 12, or where mu^2 is 6: the noise is that of the epsilon in the note, up to its two digits."""
    below, above = (plan(3, Budget.approx(epsilon, delta)) for epsilon in (most, 25))
    assert len(below.notes()) == 1 and len(above.notes()) == 2
    assert above.notes()[1].startswith(f"only {most} of epsilon = 25 buys less noise in a search of columns")
    assert float(below.tables.mu_squared) == pytest.approx(float(above.tables.mu_squared), rel=2e-3)
