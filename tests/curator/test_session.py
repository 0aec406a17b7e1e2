"""Sessions: what comes in which order, what it costs, what is refused, and what never gets out."""

import copy
import itertools
import math
import pickle
import signal
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpgm_core as dpgm
from dpgm_core import Budget, BudgetError, DpgmError, Overspent, Structure, StructureError, load_release
from dpgm_core.counting.table_counts import count
from dpgm_core.privacy.selection import TableDistance
from dpgm_core.releases.release import NoisyTables
from dpgm_core.sources import as_source
from dpgm_core.structure.workload import Workload
from tests.curator.opened import (
    CODES,
    DOMAIN,
    KINDS,
    PAIRS,
    WORKLOAD,
    Hooked,
    Noted,
    curator,
    flat,
    ledger,
    noted,
    slopes,
    take,
)
from tests.fixtures import Batches, Unread, in_a_fork, in_threads, live_curator

# --- the order ------------------------------------------------------------------------------------------------------


def test_read_then_charged_in_full_then_drawn(tmp_path):
    """Records are read once, the whole budget is charged once, and no word is drawn before: whatever the steps."""
    log = []
    opened, book = noted(tmp_path, log)
    with opened.session(workload=WORKLOAD) as session:
        assert log == ["read", "charge rho = 0.5 (zCDP)"]
        assert opened.remaining.is_zero and book.spent() == Budget.zcdp("1/2")
        take(session)
    assert log.count("read") == 1 and len(log) > 3 and set(log[2:]) == {"words"}
    (entry,) = book.history()
    assert entry.cost == Budget.zcdp("1/2")


def test_a_read_that_fails_costs_nothing_and_quotes_nothing(tmp_path):
    """Nothing is charged or drawn, the budget is there again, and no record is in the error or its frames."""
    log = []
    opened, book = noted(tmp_path, log, fails=True)
    with pytest.raises(dpgm.DataError) as caught:
        opened.session(workload=WORKLOAD)
    assert log == ["read"] and not book.history() and opened.remaining == opened.budget
    assert "Marple" not in str(caught.value) and caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_charge_that_fails_draws_nothing(tmp_path):
    """And gives the budget back; a ledger that has too little is asked before anything is read."""
    log = []
    opened, book = noted(tmp_path, log, refuses=True)
    with pytest.raises(OSError, match="no room"):
        opened.session(workload=WORKLOAD)
    assert log == ["read"] and opened.remaining == opened.budget
    del log[:]
    book.refuses = False
    poor = curator(Batches(CODES, 250, log), ledger=book, budget=Budget.zcdp(9), randomness=Noted(log))
    with pytest.raises(Overspent):
        poor.session(workload=WORKLOAD)
    assert not log


@pytest.mark.parametrize(
    ("more", "asked", "words"),
    [
        ({}, {"workload": DOMAIN}, "must be a Workload"),
        ({}, {"workload": Workload.all(dpgm.Domain.from_sizes({"a": 2}))}, "another domain"),
        ({}, {"budget": Budget.zcdp(9)}, "only rho = 0.5"),
        ({}, {"budget": Budget.pure(1)}, "epsilon"),
        (
            {"person": "id", "rows_per_person": 2, "contributions": dpgm.Contributions(per="clique", grid=12)},
            {},
            "normalised contributions",
        ),
    ],
)
def test_what_no_session_can_serve_is_refused_before_the_records_are_touched(more, asked, words):
    opened = curator(Unread(), **more)
    with pytest.raises(DpgmError, match=words) as caught:
        opened.session(**{"workload": WORKLOAD} | asked)
    assert opened.remaining == opened.budget and "\n" not in str(caught.value)


# --- what is paid ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_budget_serves(tmp_path, kind, neighbours):
    """The release costs what was charged; the steps cost at most what they were asked for, and add up."""
    budget = KINDS[kind]
    opened = curator(
        budget=budget, neighbours=neighbours, save_to=tmp_path / "x.dpgm", randomness=dpgm.SystemRandomness()
    )
    with opened.session(workload=WORKLOAD) as session:
        assert session.budget.kind == ("pure" if kind == "pure" else "zcdp")
        assert session.budget == (budget.zcdp_within() if kind == "approx" else budget)
        if kind == "pure":
            for mean in (False, True):
                with pytest.raises(BudgetError, match="never purely private"):
                    session.score(flat(), session.budget, mean=mean)
        take(session)
        spent = Budget.sum(step.cost for step in session.steps)
        assert session.remaining == session.budget - spent
        assert session.budget * Fraction(24, 100) <= spent <= session.budget * Fraction(35, 100)
    (released,) = opened.released
    assert released.cost == budget and released.private and released.session is not None
    assert load_release(tmp_path / "x.dpgm").guarantee() == released.guarantee()


def test_replacing_one_has_twice_the_variance():
    """Of tables and of one score; the temperature of a choice is half."""
    found = {}
    for neighbours in ("add-remove", "replace-one"):
        with curator(neighbours=neighbours).session(workload=WORKLOAD) as session:
            each = session.budget * Fraction(1, 4)
            measured = session.measure(["a", ("b", "c")], each)
            assert measured.cost <= each
            scored, choice = session.score(flat(), each), session.select(flat(), each)
            found[neighbours] = measured.variances[0], scored.deviation**2, choice.temperature * choice.grid
    one, two = found["add-remove"], found["replace-one"]
    assert two[0] / one[0] == pytest.approx(2, rel=0.01)
    assert two[1] / one[1] == pytest.approx(4, rel=0.01)  # each score moves twice as far: 4 of K D^2
    assert float(two[2] / one[2]) == pytest.approx(0.5, rel=1e-6)


def test_rows_of_a_person_count():
    """Two rows of each person: four times the variance of one, and a half of the temperature; only two rows count."""
    many = pa.table({"id": ["x"] * 6 + ["y"] * 2, **{name: ["0"] * 8 for name in "abcd"}})
    with curator(as_source(many), person="id", rows_per_person=2).session(workload=WORKLOAD) as session:
        each = session.budget * Fraction(1, 4)
        two = session.measure(["a"], each).variances[0], session.select(flat(), each)
        told = session.measure(["a"], session.remaining)
    with curator().session(workload=WORKLOAD) as session:
        one = session.measure(["a"], each).variances[0], session.select(flat(), each)
    assert two[0] / one[0] == pytest.approx(4, rel=0.01) and two[1].person == 2
    assert float(two[1].temperature * two[1].grid / (one[1].temperature * one[1].grid)) == pytest.approx(0.5, rel=1e-6)
    assert abs(told.tables["a"][0] - 4) < 8 * math.sqrt(told.variances[0])


@pytest.mark.parametrize(
    ("terms", "move"),
    [({}, 1), ({"neighbours": "replace-one"}, 2), ({"person": "id", "rows_per_person": 2}, 2)],
    ids=["add-remove", "replace-one", "two rows"],
)
def test_a_mean_costs_as_one_number_whatever_it_is_of(terms, move):
    """rho = (D sqrt(k))^2 / (2 sigma^2) for k means, of any number of tables."""
    source = (
        as_source(pa.table({"id": ["x", "y"], **{name: ["0", "1"] for name in "abcd"}})) if "person" in terms else CODES
    )
    with curator(source, **terms).session(workload=WORKLOAD) as session:
        each = session.budget * Fraction(1, 4)
        two = flat(groups=((0, 1, 2), (2, 0)))
        for scores, count in ((flat(), 1), (flat(Structure(DOMAIN, [("c", "d")])), 1), (two, 2)):
            before = session.remaining
            found = session.score(scores, each, mean=True)
            assert found.deviation**2 == pytest.approx(count * move**2 / (2 * float(each.rho)), rel=1e-4)
            assert found.values.shape == (count,) == (len(found.groups),)
            assert session.remaining == before - found.cost and found.cost <= each


class Programs:
    """Random adaptive programs: what is asked for next depends on the words so far."""

    def __init__(self, session, rng):
        self.session, self.rng = session, rng

    def step(self, share, kind):
        asked = self.session.budget * share
        if kind == "measure":
            numbers = self.rng.choice(len(WORKLOAD.candidates), self.rng.integers(1, 4), replace=False)
            return self.session.measure([WORKLOAD.candidates[number] for number in numbers], asked)
        if kind == "each":
            return self.session.measure({("a",): asked * Fraction(1, 3), ("c", "b"): asked * Fraction(2, 3)})
        if kind == "select":
            return self.session.select(flat(groups=((0, 1), (2,))[: self.rng.integers(0, 3)]), asked)
        if kind == "mean":
            return self.session.score(flat(groups=((0, 1), (2,))[: self.rng.integers(0, 3)]), asked, mean=True)
        return self.session.score(flat(), asked)


@settings(max_examples=25)
@given(
    st.sampled_from(["pure", "zcdp"]),
    st.sampled_from(["add-remove", "replace-one"]),
    st.lists(
        st.tuples(
            st.fractions(Fraction(1, 10**4), Fraction(3, 4)),
            st.sampled_from(["measure", "each", "select", "score", "mean"]),
        ),
        max_size=8,
    ),
    st.integers(0, 2**20),
)
def test_no_program_spends_more_than_the_session_has(kind, neighbours, program, seed):
    """All steps are within the budget, and what does not fit draws no word; the release costs the charge."""
    log = []
    opened = curator(budget=KINDS[kind], neighbours=neighbours, randomness=Noted(log))
    with opened.session(workload=WORKLOAD) as session:
        programs = Programs(session, np.random.default_rng(seed))
        for share, what in program:
            before, drawn, steps = session.remaining, len(log), len(session.steps)
            try:
                step = programs.step(share, what)
            except (Overspent, BudgetError):
                assert (session.remaining, len(log), len(session.steps)) == (before, drawn, steps)
                assert (what in ("score", "mean") and kind == "pure") or not session.budget * share <= before
            else:
                assert step.cost <= session.budget * share and session.remaining == before - step.cost
        assert Budget.sum([Budget.zero(kind), *(step.cost for step in session.steps)]) <= session.budget
    assert opened.remaining.is_zero and all(one.cost == KINDS[kind] for one in opened.released)


def test_the_check_has_its_share_and_no_more():
    """What is set aside is neither in `budget` nor in `remaining`, and its pairs are not in the pool."""
    with curator().session(workload=WORKLOAD) as session:
        session.reserve_holdout(Fraction(1, 20))
        assert session.budget == session.remaining == Budget.zcdp(Fraction(19, 40))
        with pytest.raises(Overspent):
            session.measure(["a"], Budget.zcdp(Fraction(1, 2)))
        session.measure(["a"], session.remaining)
        left = session.remaining
        with pytest.raises(BudgetError, match="before the first step"):
            session.reserve_holdout(Fraction(1, 20))
        session.measure_holdout(Structure(DOMAIN, [("c", "d")]))
        assert session.steps[-1].holdout and Budget.zcdp(0.0249) <= session.steps[-1].cost <= Budget.zcdp(
            Fraction(1, 40)
        )
        assert session.pooled().structure.cliques == (("a",),)
        assert left <= session.remaining <= left + Budget.zcdp(0.0001)


# --- what comes out -------------------------------------------------------------------------------------------------


def test_with_no_noise_to_speak_of_all_is_as_counted():
    """Tables in any order of their names, scores, and the largest distance chosen; groups and picks by number."""
    exact = count(as_source(CODES), Structure(DOMAIN, [("b", "c"), *PAIRS.cliques])).tables
    with curator(budget=Budget.zcdp(10**12)).session(workload=WORKLOAD) as session:
        each = session.budget * Fraction(1, 8)
        tables = session.measure([("c", "b"), "a"], each).tables
        assert (tables["b", "c"] == exact["b", "c"]).all() and tables.structure.cliques == (("b", "c"), ("a",))
        apart = [float(np.abs(exact[pair] - 500 / exact[pair].size).sum()) for pair in PAIRS.cliques]
        assert session.score(flat(), each).values == pytest.approx(apart, abs=0.1)
        weighted = flat(
            weights=(Fraction(1), Fraction(1, 2), Fraction(1, 4)), groups=((0, 1, 2), (2,)), offsets=(9, 9, 9)
        )
        mean = (apart[0] + apart[1] / 2 + apart[2] / 4) / 1.75
        assert session.score(weighted, each, mean=True).values == pytest.approx([mean, apart[2]], abs=0.1)
        order = sorted(range(3), key=lambda number: -apart[number])
        choice = session.select(flat(), each, 3)
        assert choice.chosen == (tuple(order),) and choice.cliques[0] == PAIRS.cliques[order[0]]
        weights = tuple(Fraction(1) if number == order[2] else Fraction(1, 1000) for number in range(3))
        assert session.select(flat(weights=weights), each).chosen == ((order[2],),)
        offsets = [0.0 if number == order[1] else 1000.0 for number in range(3)]
        assert session.select(flat(offsets=offsets), each).chosen == ((order[1],),)
        groups = ((order[2], order[1]), (order[0],), (order[1], order[2]))
        assert session.select(flat(groups=groups), each).chosen == ((order[1],), (order[0],), (order[1],))
        forest = session.select(flat(), each, 2, forest=[("a", "d")])
        assert forest.chosen == (tuple(number for number in order if order.index(number) < 2),)
        assert forest.forest == (("a", "d"),)
        assert session.has_tables and session.pooled().structure.cliques == (("b", "c"), ("a",))


def test_merged_codes_are_counted_merged(tmp_path):
    opened = curator(budget=Budget.zcdp(10**12), save_to=tmp_path / "x.dpgm")
    exact = count(as_source(CODES), Structure(DOMAIN, [("b", "c"), ("c",)])).tables
    with opened.session(workload=WORKLOAD) as session:
        each = session.budget * Fraction(1, 4)
        session.measure(["c"], each)
        with pytest.raises(DpgmError):
            session.coarsen({"z": [0, 1]})
        domain = session.coarsen({"c": [0, 1, 1, np.int64(1)]})
        assert domain == session.domain and domain["c"].size == 2
        with pytest.raises(StructureError, match="merged once"):
            session.coarsen({"b": [0, 0]})
        with pytest.raises(StructureError, match="another domain"):
            session.select(flat(), each)
        coarse = Structure(domain, [("b", "c"), ("c", "d")])
        session.select(flat(coarse), each)
        merged = np.stack([exact["b", "c"][:, 0], exact["b", "c"][:, 1:].sum(axis=1)], axis=1)
        assert (session.measure([("b", "c")], each).tables["b", "c"] == merged).all()
        pooled = session.pooled()
        assert pooled.structure.domain == domain and pooled.tables["c"].sum() == pytest.approx(500, abs=0.01)
    again = load_release(tmp_path / "x.dpgm")
    assert (again.tables.values == pooled.tables.values).all() and again.steps[0].structure.domain == DOMAIN


@pytest.mark.parametrize("code", [True, 1.5, -1, float("nan"), float("inf"), "1", None, 7])
def test_codes_that_are_none_are_refused(code):
    """A bool or a fraction once passed for the code it rounds to. Nothing is merged by what was refused."""
    with curator().session(workload=WORKLOAD) as session:
        for merges in ({"c": [0, code, 1, 1]}, {"c": code}, code, {"c": [0, 1, 1]}):
            with pytest.raises(DpgmError) as caught:
                session.coarsen(merges)
            assert "\n" not in str(caught.value) and session.domain == DOMAIN
        assert session.coarsen({"c": [0, 1, 1, 1]})["c"].size == 2


def test_only_codes_outside_of_measured_pairs_may_be_merged_later():
    """Else its cells would be nobody's; the pair keeps its numbers, and later tables have the merged codes."""
    with curator(budget=Budget.zcdp(10**12)).session(workload=WORKLOAD) as session:
        each = session.budget * Fraction(1, 4)
        before = session.measure([("c", "d")], each).tables["c", "d"]
        with pytest.raises(StructureError, match="before the first table of several"):
            session.coarsen({"c": [0, 1, 1, 1]})
        assert session.domain == DOMAIN
        assert session.coarsen({"b": [0, 0]})["b"].size == 1
        session.measure([("b", "c")], each)
        pooled = session.pooled()
        assert (pooled.tables["c", "d"] == before).all() and pooled.tables["b", "c"].shape[0] == 1


def test_the_number_of_records_is_as_the_terms_say():
    for total, expected, variance in (("estimated", 500, True), (70, 70, False), ("public", 500, False)):
        with curator(budget=Budget.zcdp(10**12), total=total).session(workload=WORKLOAD) as session:
            measured = session.measure(["a"], session.budget)
        assert measured.total == pytest.approx(expected, abs=0.01) and bool(measured.total_variance) is variance


# --- what is refused ------------------------------------------------------------------------------------------------

BAD = {
    "outside": lambda s, b: s.measure([("a", "d")], b),
    "never": lambda s, b: s.measure([("a", "c")], b),
    "above never": lambda s, b: s.measure([("a", "b", "c")], b),
    "unknown": lambda s, b: s.measure(["z"], b),
    "a text": lambda s, b: s.measure("ab", b),
    "a number": lambda s, b: s.measure([3], b),
    "no names": lambda s, b: s.measure([()], b),
    "not hashable": lambda s, b: s.measure([([], "a")], b),
    "a name twice": lambda s, b: s.measure([("a", "a")], b),
    "twice": lambda s, b: s.measure([("a", "b"), ("b", "a")], b),
    "nothing": lambda s, b: s.measure([], b),
    "no budget": lambda s, b: s.measure(["a"]),
    "zero": lambda s, b: s.measure(["a"], Budget.zero("zcdp")),
    "two budgets": lambda s, b: s.measure({"a": b}, b),
    "other kind": lambda s, b: s.measure(["a"], Budget.pure(1)),
    "other kind each": lambda s, b: s.measure({"a": Budget.pure(1)}),
    "a number as budget": lambda s, b: s.measure(["a"], 0.1),
    "too much": lambda s, b: s.measure(["a"], s.budget * 2),
    "too much together": lambda s, b: s.measure({"a": s.budget * Fraction(2, 3), "b": s.budget * Fraction(2, 3)}),
    "a function": lambda s, b: s.select(lambda table: 0, b),
    "unordered": lambda s, b: s.select(flat(Structure(DOMAIN, [("b", "a")])), b),
    "candidate outside": lambda s, b: s.select(flat(Structure(DOMAIN, [("a", "d")])), b),
    "other domain": lambda s, b: s.score(flat(Structure(dpgm.Domain.from_sizes({"a": 3}), [("a",)])), b),
    "no picks": lambda s, b: s.select(flat(), b, 0),
    "too many picks": lambda s, b: s.select(flat(groups=((0, 1), (2,))), b, 2),
    "hardly anything": lambda s, b: s.select(flat(), Budget.zcdp("1e-15")),
    "more edges than a forest has": lambda s, b: s.select(flat(), b, 3, forest=[("a", "d")]),
    "a number as a forest": lambda s, b: s.select(flat(), b, forest=5),
    "numbers as a forest": lambda s, b: s.select(flat(), b, forest=[5]),
    "a forest in groups": lambda s, b: s.select(flat(groups=((0, 1),)), b, forest=[]),
    "a forest of one attribute": lambda s, b: s.select(flat(Structure(DOMAIN, [("a",)])), b, forest=[]),
    "a pair inside a tree": lambda s, b: s.select(flat(), b, forest=[("a", "b")]),
    "a forest of other attributes": lambda s, b: s.select(flat(), b, forest=[("a", "zz")]),
    "choice too dear": lambda s, b: s.select(flat(), s.budget * 2),
    "scores too dear": lambda s, b: s.score(flat(), s.budget * 2),
    "descent too dear": lambda s, b: s.descend(slopes(), s.budget * 2),
    "descent of another kind": lambda s, b: s.descend(slopes(), Budget.pure(1)),
    "descent by hardly anything": lambda s, b: s.descend(slopes(), Budget.zcdp("1e-15")),
    "descent by a function": lambda s, b: s.descend(lambda codes: codes, b),
    "descent outside": lambda s, b: s.descend(slopes(Structure(DOMAIN, [("a", "d")])), b),
    "descent of unordered pairs": lambda s, b: s.descend(slopes(Structure(DOMAIN, [("b", "a")])), b),
    "descent over other codes": lambda s, b: s.descend(
        slopes(Structure(DOMAIN.coarsened({"c": [0, 1, 1, 1]}), [("b", "c")])), b
    ),
    "scores for nothing": lambda s, b: s.score(flat(), Budget.zero("zcdp")),
    "a mean too dear": lambda s, b: s.score(flat(), s.budget * 2, mean=True),
    "neither a mean nor none": lambda s, b: s.score(flat(), b, mean=1),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused_costs_nothing(case):
    log = []
    with curator(randomness=Noted(log)).session(workload=WORKLOAD) as session:
        with pytest.raises(DpgmError) as caught:
            BAD[case](session, session.budget * Fraction(1, 4))
        assert "\n" not in str(caught.value) and not log
        assert session.remaining == session.budget and not session.steps and not session.has_tables
        with pytest.raises(BudgetError, match="measured no table yet"):
            session.pooled()
        session.measure(["a"], session.remaining)


def test_choices_and_scores_by_contrasts():
    """Two attributes that always differ, c = -N, are chosen before two that hardly do; scores are |c - m_c|."""
    ones = np.random.default_rng(1).integers(0, 2, (2, 400))
    codes = np.column_stack([ones[0], 1 - ones[0], ones[1]])
    domain = dpgm.Domain.from_sizes(dict.fromkeys("abc", 2))
    pairs = Structure(domain, [("a", "b"), ("a", "c"), ("b", "c")])
    scores = TableDistance(candidates=pairs, predicted=np.full(pairs.cells, 100.0), contrast=True)
    spun = 1 - 2 * codes
    true = [abs(int(np.prod(spun[:, list(places)], axis=1).sum())) for places in ((0, 1), (0, 2), (1, 2))]
    assert true[0] == 400 and true[1] == true[2]
    asked = live_curator(codes, pairs, budget=Budget.zcdp(1000), randomness=dpgm.SeededRandomness(5))
    with asked.session(workload=Workload.of(domain, pairs.cliques)) as session:
        assert session.select(scores, Budget.zcdp(1)).chosen == ((0,),)
        noisy = session.score(scores, Budget.zcdp(900))
        assert noisy.values == pytest.approx(true, abs=1)  # 1 is 24 standard deviations
    wide = Structure(DOMAIN, [("a", "b")])
    with pytest.raises(StructureError, match="'a' do not have two labels"):
        flat(wide, contrast=True)


def test_a_closed_session_is_closed():
    with curator().session(workload=WORKLOAD) as session:
        session.measure(["a"], session.budget * Fraction(1, 4))
        records = session._open_records
    assert session._open_records is None and records._rows is None and not records._counted._kept
    asks = [
        lambda: session.measure(["a"], session.budget * Fraction(1, 4)),
        lambda: session.select(flat(), session.budget * Fraction(1, 4)),
        lambda: session.score(flat(), session.budget * Fraction(1, 4)),
        lambda: session.coarsen({"c": [0, 1, 1, 1]}),
        lambda: session.measure_holdout(Structure(DOMAIN, [("a", "b")])),
    ]
    for ask in asks:
        with pytest.raises(BudgetError, match="closed"):
            ask()
    assert session.pooled().structure.cliques == (("a",),)
    with session:
        pass  # leaving it again changes nothing


def test_a_session_exists_once():
    """No copy, no pickle, no twin in a forked process: neither may spend."""
    with curator().session(workload=WORKLOAD) as session:
        for work in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(BudgetError, match="copied or pickled"):
                work(session)
        for ask in (lambda: session.measure(["a"], session.budget), session.pooled):
            assert in_a_fork(ask).startswith("BudgetError: this LiveSession was made before the pro")
        assert in_a_fork(lambda: session.__exit__(None, None, None)) == "None"  # leaving the twin is harmless
        assert session.remaining == session.budget


def test_threads_take_turns_and_no_step_begins_another():
    """Of eight threads four are served; randomness that asks the session is refused, and its step stays paid."""
    with curator().session(workload=WORKLOAD) as session:
        done = []

        def work():
            try:
                done.append(session.measure(["a"], session.budget * Fraction(1, 4)).cost)
            except Overspent:
                done.append(None)

        in_threads(work, 8)
        paid = [cost for cost in done if cost is not None]
        assert len(done) == 8 and len(paid) == 4 == len(session.steps) and Budget.sum(paid) <= session.budget

    randomness = Hooked(lambda: session.measure(["a"], Budget.zcdp("1/100")))
    with curator(randomness=randomness).session(workload=WORKLOAD) as session:
        with pytest.raises(DpgmError):
            session.measure(["a"], session.budget * Fraction(1, 4))
        assert not session.steps
        assert session.budget * Fraction(74, 100) <= session.remaining <= session.budget * Fraction(76, 100)


@pytest.mark.parametrize("step", ["measure", "select", "score", "mean", "descend"])
@pytest.mark.parametrize("error", [ValueError("Miss Marple, 1890-09-15"), MemoryError()])
def test_a_step_that_fails_is_paid_and_quotes_nothing(step, error):
    """What fails while it is drawn: the cost is gone, the next step works, and no frame below holds a true count."""

    randomness = Hooked(error)
    with curator(randomness=randomness).session(workload=WORKLOAD) as session:
        each = session.budget * Fraction(1, 4)
        ask = {
            "measure": lambda: session.measure([("b", "c")], each),
            "select": lambda: session.select(flat(), each),
            "score": lambda: session.score(flat(), each),
            "mean": lambda: session.score(flat(), each, mean=True),
            "descend": lambda: session.descend(slopes(), each),
        }[step]
        with pytest.raises(BaseException) as caught:
            ask()
        assert session.remaining <= session.budget * Fraction(76, 100) and not session.steps
        trace = caught.value.__traceback__
        while trace is not None:
            for value in trace.tb_frame.f_locals.values():
                assert not isinstance(value, np.ndarray) or value.size == 0
            trace = trace.tb_next
        randomness.armed = 0
        ask()


# --- files and the ledger -------------------------------------------------------------------------------------------


def test_each_step_is_saved_before_it_is_handed_out(tmp_path):
    """One file that grows; it is not marked as released before the end; another's file is left alone."""
    book = ledger(tmp_path / "x.ledger")
    opened = curator(ledger=book, save_to=tmp_path / "x.dpgm")
    with opened.session(workload=WORKLOAD) as session:
        session.select(flat(), session.budget * Fraction(1, 10))
        assert not (tmp_path / "x.dpgm").exists() and not opened.released  # there is no table to learn from
        for number in range(3):
            step = session.measure(["a"], session.budget * Fraction(1, 10))
            saved = load_release(tmp_path / "x.dpgm")
            assert len(saved.steps) == number + 2 and (saved.steps[-1].numbers == step.numbers).all()
            assert opened.released == (session.pooled(),) and session.pooled().saved_as == tmp_path / "x.dpgm"
        assert book.history()[0].status == "charged"
    assert book.history()[0].status == "released"
    assert sorted(path.name for path in tmp_path.glob("*.dpgm")) == ["x.dpgm"]
    with pytest.raises(dpgm.ModelFileError):
        curator(ledger=book, save_to=tmp_path / "x.dpgm").session(workload=WORKLOAD)
    assert book.spent() == Budget.zcdp("1/2")


def test_what_cannot_be_saved_is_kept_and_not_said_to_be_released(tmp_path, monkeypatch):
    """A disk that is full: the step that was paid for is among `released`, and the ledger is told nothing."""
    book = ledger(tmp_path / "x.ledger")
    opened = curator(ledger=book, save_to=tmp_path / "x.dpgm")

    def full(*_, **__):
        raise dpgm.ModelFileError("no room")

    with opened.session(workload=WORKLOAD) as session, monkeypatch.context() as patched:
        patched.setattr(NoisyTables, "write", full)
        with pytest.raises(dpgm.ModelFileError, match="no room"):
            session.measure(["a"], session.budget * Fraction(1, 10))
        (kept,) = opened.released
        assert kept.structure.cliques == (("a",),)
    assert book.history()[0].status == "charged"


def test_two_sessions_out_of_one_curator(tmp_path):
    book = ledger(tmp_path / "x.ledger")
    opened = curator(ledger=book, save_to=tmp_path / "x.dpgm")
    for _ in range(2):
        with opened.session(workload=WORKLOAD, budget=Budget.zcdp("1/4")) as session:
            session.measure(["a"], session.budget)
    assert [one.cost for one in opened.released] == [Budget.zcdp("1/4")] * 2
    assert len(book.history()) == 2 and len(list(tmp_path.glob("x*.dpgm"))) == 2
    with pytest.raises(Overspent):
        opened.session(workload=WORKLOAD)


_KILLED = """
import os, signal, sys
import numpy as np
from dpgm_core import Budget, Domain, Ledger, LiveCurator, Structure, Terms, make
from dpgm_core.sources import as_source
from dpgm_core.structure.workload import Workload
from fractions import Fraction
folder, steps = sys.argv[1], int(sys.argv[2])
domain = Domain.from_sizes({"a": 2, "b": 2})
budget = Budget.pure(1)
book = Ledger.create(folder + "/x.ledger", name="x", budget=budget, neighbours="add-remove")
curator = LiveCurator(
    as_source(np.array([[0, 0], [1, 1]] * 50)), Structure(domain, [("a",), ("b",)]), make("mechanism", "laplace"),
    terms=Terms(neighbours="add-remove"), budget=budget, ledger=book, save_to=folder + "/x.dpgm")
session = curator.session(workload=Workload.all(domain))
for _ in range(steps):
    session.measure([("a", "b")], session.budget * Fraction(1, 9))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.landing
@pytest.mark.skipif(sys.platform == "win32", reason="nothing is killed like that")
@pytest.mark.parametrize("steps", [0, 2])
def test_a_killed_session_leaves_a_spent_ledger_and_what_it_measured(tmp_path, steps):
    done = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path), str(steps)], check=False)
    assert done.returncode == -signal.SIGKILL
    book = dpgm.Ledger.open(tmp_path / "x.ledger")
    assert book.spent() == Budget.pure(1) and book.history()[0].status == "charged"
    assert (tmp_path / "x.dpgm").exists() is bool(steps)
    if steps:
        release = load_release(tmp_path / "x.dpgm")
        assert len(release.steps) == steps and release.cost == Budget.pure(1) and release.private
        assert dpgm.learn(release).model.cost == Budget.pure(1)


@pytest.mark.parametrize("person", [None, "id"])
@pytest.mark.parametrize("rows", [0, 1])
def test_no_records_are_as_good_as_any(rows, person):
    """Whether there is anybody at all must not show: every step works, in no batches as in empty ones."""
    table = {name: ["0"] * rows for name in "abcd"} | {"id": ["x"] * rows}
    sources = [as_source(pa.table(table, schema=pa.schema([(name, pa.string()) for name in table])))]
    if person is None:
        sources.append(Batches(CODES[:rows]))
    for source in sources:
        opened = curator(source, budget=Budget.zcdp(10**12), person=person, total=5)
        with opened.session(workload=WORKLOAD) as session:
            each = session.budget * Fraction(1, 8)
            assert session.measure(["a"], each).tables.sums().tolist() == [rows]
            session.coarsen({"c": [0, 1, 1, 1]})
            pairs = Structure(session.domain, [("b", "c"), ("c", "d")])
            session.select(flat(pairs), each)
            session.score(flat(pairs), each)
            assert session.measure([("b", "c")], each).tables.sums().tolist() == [rows]


def test_nobody_sees_records_in_a_session():
    with curator().session(workload=WORKLOAD) as session:
        session.measure(["a"], session.budget * Fraction(1, 2))
        assert "500" not in repr(session) and repr(session._open_records) == "HeldRecords(hidden)"
        assert all("array" not in repr(one) for one in itertools.chain([session], session.steps[0].steps))
