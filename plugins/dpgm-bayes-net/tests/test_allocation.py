"""Who gets how much of the second stage: formulas against loops and simulation, and shares that always add up."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from dpgm_bayes_net.allocation import (
    Need,
    assign_tables,
    divide_budget,
    least_share,
    losses_by_table,
    needs_of,
    optimal_shares,
)
from dpgm_bayes_net.tables import Counts, clip
from hypothesis import given
from hypothesis import strategies as st

import dpgm_core as dpgm

DOMAIN = dpgm.Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 1, "e": 4})
DAG = dpgm.Dag(DOMAIN, {"b": ["a"], "c": ["b", "a"], "e": ["b"]})


def seen(dag, tables, variance=1.0):
    return {
        family[0]: Counts(table=np.asarray(table, dtype=float), variance=variance, measured=family)
        for family, table in zip(dag.families, tables, strict=True)
    }


def random_tables(dag, seed, scale=1000.0):
    """Positive tables of every family that need not agree."""
    rng = np.random.default_rng(seed)
    return [scale * rng.random(dag.domain.shape(family)) for family in dag.families]


def needs(dag, tables, noise=1.0, cliques=None):
    """What a first look at these tables says."""
    cliques = dag.families if cliques is None else cliques
    return needs_of(dag, seen(dag, tables), cliques, np.full(len(cliques), noise))


# --- the formulas --------------------------------------------------------------------------------------------------


def test_w_g_and_s_are_the_formulas_loop_by_loop():
    """Each of the three equals what the module's text says, written out with plain loops."""
    tables, noise = random_tables(DAG, 1), 900.0
    counts = {family[0]: table for family, table in zip(DAG.families, tables, strict=True)}
    actual = {need.child: need for need in needs(DAG, tables, noise)}
    for family, table in zip(DAG.families, tables, strict=True):
        child, labels = family[0], len(table)
        error = 0.0
        for state in np.ndindex(table.shape[1:]):
            row = [table[(x, *state)] for x in range(labels)]
            guarded = max(sum(row), math.sqrt(labels * noise))
            error += sum(math.sqrt((1 - n / sum(row)) ** 2 + (labels - 1) * (n / sum(row)) ** 2) for n in row) / guarded
        influence = 0.0
        for other in (one for one in DAG.families if child in one[1:]):
            joint = np.moveaxis(counts[other[0]], other.index(child), 1)
            joint = joint.reshape(joint.shape[0], joint.shape[1], -1).sum(axis=2)
            for y, x in itertools.product(*map(range, joint.shape)):
                moved = joint[y, x] / joint[:, x].sum() - joint[y].sum() / joint.sum()
                influence = max(influence, abs(moved))
        assert actual[child].error == pytest.approx(error)
        assert actual[child].influence == pytest.approx(influence)
        height, out = {"a": (2, 2), "b": (1, 2), "c": (0, 0), "d": (0, 0), "e": (0, 0)}[child]
        assert actual[child].structure == pytest.approx((height + 1) * (out + 1) * (influence + 1))


@pytest.mark.parametrize("outside", [1, 3], ids=["its own table", "a larger table"])
def test_g_is_how_noise_reaches_the_conditional_table(outside):
    """Simulated noise of a small standard deviation, in the family's table or in one with three times the cells, moves
    the entries by G times that. Sums of 12 standard deviations from 4,000 draws each, so that 4 % are more than 4
    standard errors: a false alarm in fewer than 1e-4 of seeds."""
    domain = dpgm.Domain.from_sizes({"x": 3, "u": 2, "w": outside})
    dag = dpgm.Dag(domain, {"x": ["u"]})
    table, sd, draws = np.array([[4000.0, 900.0], [2500.0, 700.0], [1500.0, 3000.0]]), 1.5, 4000
    (need,) = [
        one
        for one in needs_of(
            dag,
            seen(dag, [table, table.sum(axis=0), np.full(outside, table.sum() / outside)]),
            [("x", "u", "w"), ("u",), ("w",)],
            np.full(3, sd**2),
        )
        if one.child == "x"
    ]
    noise = np.random.default_rng(5).normal(scale=sd, size=(draws, *table.shape, outside)).sum(axis=-1)
    moved = np.array([clip(table + one) for one in noise]).std(axis=0).sum()
    assert moved == pytest.approx(need.error * sd, rel=0.04)


def test_rows_that_noise_drowns_do_not_grab_the_budget():
    """A row without records counts as one of sqrt(K) standard deviations; taken as one record, which is what the guard
    replaces, it would weigh as much as 100 times that and its table get most of the budget."""
    dag = dpgm.Dag(dpgm.Domain.from_sizes({"x": 4, "u": 2}), {"x": ["u"]})
    noise, full = 100.0**2, np.full(4, 5000.0)
    empty = [np.stack([full, [-90.0, 40.0, -20.0, 10.0]], axis=1), [20_000.0, 0.0]]
    rich = [np.stack([full, full], axis=1), [20_000.0, 20_000.0]]
    guarded, plenty, naive = (needs(dag, tables, sd**2) for tables, sd in ((empty, 100), (rich, 100), (empty, 0.5)))
    assert needs(dag, rich, noise / 100)[0] == plenty[0]  # where there are records the guard does nothing
    assert guarded[0].error < 200 * plenty[0].error < naive[0].error
    part = [float(optimal_shares(losses_by_table(one, 2, "error"), "pure")[0]) for one in (plenty, guarded, naive)]
    assert part[0] < part[1] < part[2]
    theta = clip(empty[0])
    spread = np.sqrt((1 - theta) ** 2 + 3 * theta**2).sum(axis=0)
    assert guarded[0].error == pytest.approx(spread[0] / 20_000 + spread[1] / (2 * 100))
    # Read off a table with nine times the cells a row has three times the noise, and so has every entry.
    wide = dpgm.Dag(dpgm.Domain.from_sizes({"x": 4, "u": 2, "w": 9}), {"x": ["u"]})
    (far, *_) = needs_of(wide, seen(wide, [*empty, np.ones(9)]), [("x", "u", "w")], np.array([noise]))
    assert far.error == pytest.approx(3 * (spread[0] / 20_000 + spread[1] / (2 * 300)))


def test_a_table_stands_for_all_families_that_are_read_off_it():
    """Of the maximal families each attribute has the smallest that holds its own, and a table's loss is their sum."""
    assert DAG.maximal == (("c", "b", "a"), ("d",), ("e", "b"))
    assert assign_tables(DAG, DAG.maximal) == {"a": 0, "b": 0, "c": 0, "d": 1, "e": 2}
    actual = needs(DAG, random_tables(DAG, 2), cliques=DAG.maximal)
    whole = losses_by_table(actual, 3, "paper")
    assert whole[0] == pytest.approx(sum(one.structure * one.error for one in actual if one.child in "abc"))
    assert losses_by_table(actual, 3, "structure")[2] == pytest.approx(actual[-1].structure)
    assert losses_by_table(actual, 3, "error")[2] == pytest.approx(actual[-1].error)
    assert losses_by_table(actual, 3, "even") == [1.0, 1.0, 1.0]


@given(
    length=st.integers(2, 7),
    joint=st.lists(st.integers(0, 500), min_size=4, max_size=4),
    kind=st.sampled_from(["pure", "zcdp"]),
)
def test_along_a_chain_of_equal_tables_shares_never_rise(length, joint, kind):
    """S16: "root node would typically have a higher privacy budget than leaf", by the weights of the graph alone."""
    names = [f"v{at}" for at in range(length)]
    dag = dpgm.Dag(
        dpgm.Domain.from_sizes(dict.fromkeys(names, 2)), {two: [one] for one, two in itertools.pairwise(names)}
    )
    table = np.array(joint, dtype=float).reshape(2, 2)
    actual = needs(dag, [table.sum(axis=0), *[table] * (length - 1)])
    weights = losses_by_table(actual, length, "structure")
    assert all(one > two for one, two in itertools.pairwise(weights))
    parts = optimal_shares(weights, kind)
    assert all(one >= two for one, two in itertools.pairwise(parts))
    assert parts[0] > parts[-1]


# --- shares --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "power"), [("pure", 1.0), ("zcdp", 0.5)])
def test_the_split_is_the_best_there_is(kind, power):
    """No other split, of 200 at random and of those next to it, has a smaller sum of losses times noise."""
    rng = np.random.default_rng(1)
    weights = np.array([5.0, 0.2, 1.0, 40.0])
    best = np.array([float(one) for one in optimal_shares(list(weights), kind)])
    least = np.sum(weights / best**power)
    others = [*rng.dirichlet(np.ones(4), size=200), *(best + 0.01 * (np.eye(4) - 0.25))]
    assert all(least < np.sum(weights / other**power) for other in others)


#: Anything that a noisy table can hold.
_CELLS = st.sampled_from([0.0, -1.0, 1.0, -1e15, 1e15, 3.0, 250.0, -70.0]) | st.floats(-1e6, 1e6)


@given(
    cells=st.lists(_CELLS, min_size=40, max_size=40),
    noise=st.sampled_from([1e-300, 1e-6, 1.0, 1e4, 1e18]),
    weights=st.sampled_from(["paper", "error", "structure", "even"]),
    maximal=st.booleans(),
    rest=st.sampled_from([dpgm.Budget.pure("0.9"), dpgm.Budget.zcdp("1/7"), dpgm.Budget.pure(Fraction(1, 10**9))]),
)
def test_shares_are_positive_and_sum_exactly_whatever_was_seen(cells, noise, weights, maximal, rest):
    """Each table has a budget above 0 and all sum to the rest exactly, which is the privacy of stage II."""
    stream, cliques = itertools.cycle(cells), DAG.maximal if maximal else DAG.families
    tables = [
        np.array([next(stream) for _ in range(math.prod(DOMAIN.shape(family)))]).reshape(DOMAIN.shape(family))
        for family in DAG.families
    ]
    parts = optimal_shares(losses_by_table(needs(DAG, tables, noise, cliques), len(cliques), weights), rest.kind)
    assert min(parts) >= least_share(len(cliques))
    assert sum(parts) == 1
    budgets = divide_budget(rest, parts, cliques)
    assert list(budgets) == list(cliques)
    assert dpgm.Budget.sum(budgets.values()) == rest


@given(st.lists(st.floats(0, 1e300) | st.sampled_from([0.0, 5e-324]), min_size=1, max_size=60), st.booleans())
def test_shares_of_any_losses_sum_exactly(given_losses, pure):
    """All zero, one table, ratios beyond doubles; larger losses never get less."""
    parts = optimal_shares(given_losses, "pure" if pure else "zcdp")
    assert sum(parts) == 1
    assert min(parts) > 0
    ranked = sorted(zip(given_losses, parts, strict=True))
    assert all(one <= two for (low, one), (high, two) in itertools.pairwise(ranked) if low < high)


# --- nothing but the graph and the tables --------------------------------------------------------------------------


def test_names_and_the_order_of_labels_do_not_matter():
    """Attributes renamed, and every axis turned round: the same numbers."""
    tables = random_tables(DAG, 3)
    names = {name: f"other-{name}" for name in DOMAIN.names}
    renamed = dpgm.Dag(
        dpgm.Domain.from_sizes({names[one.name]: one.size for one in DOMAIN}),
        {names[child]: [names[parent] for parent in above] for child, above in DAG.parents.items()},
    )
    turned = [np.flip(table) for table in tables]
    plain = needs(DAG, tables)
    for one, two, three in zip(plain, needs(renamed, tables), needs(DAG, turned), strict=True):
        assert (two.child, two.structure, two.error, two.influence) == (
            names[one.child],
            one.structure,
            one.error,
            one.influence,
        )
        assert (three.structure, three.error, three.influence) == pytest.approx(
            (one.structure, one.error, one.influence)
        )


def test_the_order_of_attributes_and_parents_does_not_matter():
    """The domain and the parents of each in reverse: the same needs of each attribute."""
    tables = random_tables(DAG, 4)
    by_family = dict(zip(DAG.families, tables, strict=True))
    turned = dpgm.Dag(
        dpgm.Domain.from_sizes({one.name: one.size for one in reversed(list(DOMAIN))}),
        {child: above[::-1] for child, above in DAG.parents.items()},
    )
    moved = [
        np.transpose(by_family[family[0], *family[:0:-1]], (0, *range(len(family) - 1, 0, -1)))
        for family in turned.families
    ]
    plain = {need.child: need for need in needs(DAG, tables)}
    for need in needs(turned, moved):
        one = plain[need.child]
        assert (need.structure, need.error, need.influence) == pytest.approx((one.structure, one.error, one.influence))


def test_a_rule_takes_only_what_its_name_says():
    need = Need(child="a", table=0, structure=6.0, error=0.5, influence=0.0)
    assert [need.loss(rule) for rule in ("paper", "error", "structure")] == [3.0, 0.5, 6.0]
