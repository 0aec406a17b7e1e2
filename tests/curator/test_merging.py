"""Steps of a session around a merge of codes: those of merged records after it, whatever was counted before."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from dpgm_core import Attribute, Budget, Domain, NoisyTables, Structure, Terms, Workload
from dpgm_core.counting.descent import GradientSums
from dpgm_core.counting.scores import distances
from dpgm_core.curator.records import HeldRecords
from dpgm_core.releases.steps import Choice, Descent
from dpgm_core.sources import as_source
from dpgm_core.sources.contract import Reading
from tests.curator.merging import CODES, DOMAIN, MERGES, PAIRS, WORKLOAD, gradients, merged, opened, scores, steps
from tests.private_columns import private_bins

COARSE = DOMAIN.coarsened(MERGES)


def told(one):
    """What was measured to the last record, chosen, or gained by the directions taken, of which some are as good."""
    if isinstance(one, Descent):
        own = gradients(COARSE)
        sums = GradientSums(own, one.kind)
        codes = [merged(CODES)[:, DOMAIN.names.index(name)].astype(np.uint8) for name in sums.columns]
        grid = sums.partial(codes, None).reshape(own.regressions.allowed.shape)
        return [sign * int(grid[row, column]) for row, column, sign in one.picks]
    if isinstance(one, Choice):
        return one.chosen
    return np.rint(one.tables.values if isinstance(one, NoisyTables) else one.values).tolist()


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("budget", [Budget.pure(10**7), Budget.zcdp(10**10)], ids=lambda one: one.kind)
def test_steps_after_a_merge_are_those_of_merged_records(budget, before):
    """Without noise to speak of each step costs and gives what it does over records merged before the session."""
    with opened(CODES, DOMAIN, budget).session(workload=WORKLOAD) as session:
        earlier = steps(session, session.domain, pairs=False) if before else []
        assert session.coarsen(MERGES) == COARSE
        after = steps(session, session.domain, pairs=True)
        pooled = session.pooled()
    other = opened(merged(CODES), COARSE, budget)
    with other.session(workload=Workload.all(COARSE, order=2)) as session:
        wanted = steps(session, session.domain, pairs=True)
    assert [told(one) for one in after] == [told(one) for one in wanted]
    assert [one.cost for one in after] == [one.cost for one in wanted]
    assert pooled.structure.domain == COARSE and len(pooled.steps) == len(earlier) + len(after)
    for clique in pooled.structure.cliques:
        places = [DOMAIN.names.index(name) for name in clique]
        exact = np.zeros(COARSE.shape(clique))
        np.add.at(exact, tuple(merged(CODES)[:, places].T), 1)
        np.testing.assert_allclose(pooled.tables[clique], exact, atol=0.5)


def held(rows, counted):
    """Records of a session, merged; counted: whether all tables were counted before."""
    source = as_source(np.array(rows).reshape(-1, 3))
    records = HeldRecords(source, Reading(domain=DOMAIN, columns=DOMAIN.names), WORKLOAD.candidates)
    records.open({})
    if counted:
        records.tables(Structure(DOMAIN, WORKLOAD.candidates))
    records.recode({name: np.array(codes) for name, codes in MERGES.items()}, COARSE)
    return records


@pytest.mark.parametrize("counted", [False, True])
def test_no_neighbours_are_further_apart_after_a_merge_than_is_claimed(counted):
    """Of all neighbours tables move by just what the noise is for, distances and gradients by that at most."""
    every, base = list(itertools.product(range(3), range(2), range(4))), [(2, 0, 1), (0, 1, 3)]
    structure, own, distance = Structure(COARSE, WORKLOAD.candidates), gradients(COARSE), scores(COARSE)
    sums = GradientSums(own, "zcdp")
    found = []
    for rows in [base, *([*base, one] for one in every)]:
        records = held(rows, counted)
        tables = records.tables(structure)
        apart = distances(records.tables(Structure(COARSE, PAIRS)), distance)
        found.append((tables.values, apart, records.rows.total(sums)))
    for relation, pairs in (
        ("add-remove", [(found[0], one) for one in found[1:]]),
        ("replace-one", list(itertools.combinations(found[1:], 2))),
    ):
        terms = Terms(neighbours=relation)
        claimed, moved = terms.sensitivity(structure), 1 if relation == "add-remove" else 2
        changes = [[np.abs(one - other) for one, other in zip(*pair, strict=True)] for pair in pairs]
        assert max(int(change[0].sum()) for change in changes) == claimed.l1
        assert max(int((change[0] ** 2).sum()) for change in changes) == claimed.l2_squared
        assert max(float(change[1].max()) for change in changes) <= 1024 * distance.move(terms)
        for change in changes:  # the largest residual of each choice, squared
            grid = change[2].reshape(own.regressions.allowed.shape)
            largest = [max(int(grid[row].max()) for row in choice) for choice in own.regressions.choices]
            assert sum(one**2 for one in largest) <= moved**2 * own.reach("zcdp")


def test_contrasts_around_a_merge():
    """Claim: contrasts of an attribute that stays before, and after it of one that the merge left two labels."""
    with opened(CODES, DOMAIN, Budget.zcdp(10**10), total=300).session(workload=WORKLOAD) as session:
        first = session.measure([("b",)], session.budget * Fraction(1, 3), contrasts=True)
        session.coarsen({"a": MERGES["a"]})
        later = session.measure([("a",), ("a", "b")], session.budget * Fraction(1, 3), contrasts=True)
    signs = 1 - 2 * merged(CODES)
    exact = [int(signs[:, places].prod(axis=1).sum()) for places in ([1], [0], [0, 1])]
    assert np.rint([*first.measured, *later.measured]).tolist() == exact
    assert session.pooled().structure.cliques == (("b",), ("a",), ("a", "b"))


@pytest.mark.parametrize("before", [False, True])
def test_bins_that_were_found_are_merged(before):
    """Claim: steps after count the merged bins, whether a table of the bins came before or not."""
    domain = Domain([private_bins("x", 4, cells=8), Attribute.of_size("y", 2)])
    data = np.random.default_rng(2).integers(0, [8, 2], (200, 2))
    curator = opened({"x": data[:, 0], "y": data[:, 1]}, domain, Budget.zcdp(10**10))
    with curator.session(workload=Workload.all(domain, order=2)) as session:
        each = session.budget * Fraction(1, 4)
        edges, found = session.domain["x"].edges, session.domain["x"].size
        if before:
            session.measure([("x",)], each)
        merge = [0, *[1] * (found - 1)]
        assert session.coarsen({"x": merge})["x"].size == 2
        table = session.measure([("x", "y")], each).tables["x", "y"]
    low = data[:, 0] < edges[1]
    assert np.rint(table).tolist() == [[int((side & (data[:, 1] == y)).sum()) for y in (0, 1)] for side in (low, ~low)]
