"""Sessions: what comes in which order, what it costs, what is refused, and what never gets out."""

import copy
import itertools
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
from fractions import Fraction

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core import (
    Budget,
    BudgetError,
    Contributions,
    DataError,
    Domain,
    DpgmError,
    Ledger,
    LiveCurator,
    ModelFileError,
    OptionError,
    Overspent,
    SeededRandomness,
    Structure,
    StructureError,
    SystemRandomness,
    Terms,
    learn,
    load_release,
    make,
)
from dpgm_core.counting.kernel import count
from dpgm_core.counting.votes import Agreed
from dpgm_core.curator import session as module
from dpgm_core.privacy.gradients import NodeGradients, Regressions
from dpgm_core.privacy.scores import TableDistance
from dpgm_core.privacy.votes import EdgeVotes, ThresholdVotes
from dpgm_core.releases.release import NoisyTables
from dpgm_core.sources import as_source
from dpgm_core.workload import Workload

DOMAIN = Domain.from_sizes({"a": 3, "b": 2, "c": 4, "d": 2})
MERGED = DOMAIN.coarsened({"c": [0, 1, 1, 1]})
WORKLOAD = Workload.of(DOMAIN, [("a", "b", "c"), ("c", "d")], never=[("a", "c")])
CODES = np.random.default_rng(0).integers(0, [3, 2, 4, 2], (500, 4))
PAIRS = Structure(DOMAIN, [("a", "b"), ("b", "c"), ("c", "d")])
KINDS = {"pure": Budget.pure(2), "zcdp": Budget.zcdp("1/2"), "approx": Budget.approx(1, "1e-6")}


def flat(candidates=PAIRS, **more):
    """Distances from the uniform table of 500 records."""
    sizes = np.repeat([500 / size for size in candidates.sizes], candidates.sizes)
    return TableDistance(**{"candidates": candidates, "predicted": sizes} | more)


def slopes(candidates=PAIRS, **more):
    """The gradient of regressions of labels on labels, at no weights."""
    own = Regressions(candidates=candidates, loss="softmax")
    return NodeGradients(**{"regressions": own, "weights": own.zeros(), "radius": 2, "clip": "0.3"} | more)


def curator(source=None, *, budget=KINDS["zcdp"], **terms):
    """A curator over 500 records."""
    settings = {name: terms.pop(name) for name in ("randomness", "ledger", "save_to") if name in terms}
    return LiveCurator(
        as_source(CODES) if source is None else source,
        Structure(DOMAIN, [("a",), ("b",), ("c",), ("d",)]),
        make("mechanism", "laplace"),
        terms=Terms(**{"neighbours": "add-remove"} | terms),
        budget=budget,
        **{"randomness": SeededRandomness(5)} | settings,
    )


def ledger(path, budget=None, neighbours="add-remove"):
    """A new ledger, of 3 times the usual zCDP budget."""
    return Ledger.create(path, name="x", budget=budget or Budget.zcdp("3/2"), neighbours=neighbours)


class Noted(SeededRandomness):
    """Random words that are noted in a log."""

    def __init__(self, log):
        super().__init__(5)
        self.log = log

    def words(self, count):
        self.log.append("words")
        return super().words(count)


class NotedSource:
    """Records that note when they are read, and fail in the middle if told to."""

    def __init__(self, log, fails=False):
        self.log, self.fails = log, fails

    def batches(self, domain, columns):
        self.log.append("read")
        wanted = [CODES[:, domain.names.index(name)] for name in columns]
        yield [column[:250] for column in wanted]
        if self.fails:
            raise ValueError("Miss Marple, 1890-09-15")
        yield [column[250:] for column in wanted]


class NotedLedger(Ledger):
    """Tells when it is charged, or refuses."""

    log, refuses = [], False

    def charge(self, budget, **more):
        if self.refuses:
            raise OSError("no room")
        self.log.append(f"charge {budget}")
        return super().charge(budget, **more)


def noted(tmp_path, log, **more):
    """A session's curator, its ledger and its words, all in one log."""
    ledger(tmp_path / "x.ledger")
    book = NotedLedger.open(tmp_path / "x.ledger")
    book.log, book.refuses = log, more.pop("refuses", False)
    source = NotedSource(log, more.pop("fails", False))
    return curator(source, ledger=book, randomness=Noted(log), **more), book


def take(session, share=Fraction(1, 20)):
    """One step of each kind that the session can pay."""
    each = session.budget * share
    session.measure(["a", ("c", "b")], each)
    session.measure({("b", "a"): each, "d": each * 2})
    session.select(flat(), each)
    session.select(flat(groups=((0, 1), (1, 2))), each, 2)
    if session.budget.kind == "zcdp":
        session.score(flat(), each)


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
    with pytest.raises(DataError) as caught:
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
    poor = curator(NotedSource(log), ledger=book, budget=Budget.zcdp(9), randomness=Noted(log))
    with pytest.raises(Overspent):
        poor.session(workload=WORKLOAD)
    assert not log


@pytest.mark.parametrize(
    ("more", "asked", "words"),
    [
        ({}, {"workload": DOMAIN}, "must be a Workload"),
        ({}, {"workload": Workload.all(Domain.from_sizes({"a": 2}))}, "another domain"),
        ({}, {"budget": Budget.zcdp(9)}, "only rho = 0.5"),
        ({}, {"budget": Budget.pure(1)}, "epsilon"),
        (
            {"person": "id", "rows_per_person": 2, "contributions": Contributions(per="clique", grid=12)},
            {},
            "normalised contributions",
        ),
    ],
)
def test_what_no_session_can_serve_is_refused_before_the_records_are_touched(more, asked, words):
    """By name, in one line, with nothing read or charged."""
    log = []

    class Keyed(NotedSource):
        def keyed_batches(self, domain, columns, person):
            raise AssertionError("the records were touched")

    opened = curator(Keyed(log), **more)
    with pytest.raises(DpgmError, match=words) as caught:
        opened.session(**{"workload": WORKLOAD} | asked)
    assert not log and opened.remaining == opened.budget and "\n" not in str(caught.value)


# --- what is paid ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_budget_serves(tmp_path, kind, neighbours):
    """The release costs what was charged; the steps cost at most what they were asked for, and add up."""
    budget = KINDS[kind]
    opened = curator(budget=budget, neighbours=neighbours, save_to=tmp_path / "x.dpgm", randomness=SystemRandomness())
    with opened.session(workload=WORKLOAD) as session:
        assert session.budget.kind == ("pure" if kind == "pure" else "zcdp")
        assert session.budget == (budget.zcdp_within() if kind == "approx" else budget)
        if kind == "pure":
            with pytest.raises(BudgetError, match="never purely private"):
                session.score(flat(), session.budget)
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
        return self.session.score(flat(), asked)


@settings(max_examples=25)
@given(
    st.sampled_from(["pure", "zcdp"]),
    st.sampled_from(["add-remove", "replace-one"]),
    st.lists(
        st.tuples(
            st.fractions(Fraction(1, 10**4), Fraction(3, 4)), st.sampled_from(["measure", "each", "select", "score"])
        ),
        max_size=8,
    ),
    st.integers(0, 2**20),
)
def test_no_program_spends_more_than_the_session_has(kind, neighbours, program, seed):
    """Whatever is asked: the sum of all steps is within the budget, what does not fit draws no word and costs nothing,
    and the release costs what was charged."""
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
                assert (what == "score" and kind == "pure") or not session.budget * share <= before
            else:
                assert step.cost <= session.budget * share and session.remaining == before - step.cost
        assert Budget.sum([Budget.zero(kind), *(step.cost for step in session.steps)]) <= session.budget
    assert opened.remaining.is_zero and all(one.cost == KINDS[kind] for one in opened.released)


def test_the_check_has_its_share_and_no_more():
    """What is set aside is neither in `budget` nor in `remaining`; then pairs are measured with it, and nobody sees
    them in the pool."""
    with curator().session(workload=WORKLOAD) as session:
        session.set_aside(Fraction(1, 20))
        assert session.budget == session.remaining == Budget.zcdp(Fraction(19, 40))
        with pytest.raises(Overspent):
            session.measure(["a"], Budget.zcdp(Fraction(1, 2)))
        session.measure(["a"], session.remaining)
        left = session.remaining
        with pytest.raises(BudgetError, match="before the first step"):
            session.set_aside(Fraction(1, 20))
        session.check(Structure(DOMAIN, [("c", "d")]))
        assert session.steps[-1].check and Budget.zcdp(0.0249) <= session.steps[-1].cost <= Budget.zcdp(Fraction(1, 40))
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
        order = sorted(range(3), key=lambda number: -apart[number])
        choice = session.select(flat(), each, 3)
        assert choice.chosen == (tuple(order),) and choice.cliques[0] == PAIRS.cliques[order[0]]
        weights = tuple(Fraction(1) if number == order[2] else Fraction(1, 1000) for number in range(3))
        assert session.select(flat(weights=weights), each).chosen == ((order[2],),)
        offsets = [0.0 if number == order[1] else 1000.0 for number in range(3)]
        assert session.select(flat(offsets=offsets), each).chosen == ((order[1],),)
        groups = ((order[2], order[1]), (order[0],), (order[1], order[2]))
        assert session.select(flat(groups=groups), each).chosen == ((order[1],), (order[0],), (order[1],))
        assert session.has_tables and session.pooled().structure.cliques == (("b", "c"), ("a",))


def test_tables_are_counted_once_and_again_if_there_is_no_room(monkeypatch):
    """With room for no table at all each step counts what it needs, and says the same."""
    kept = []
    for room in (module._MOST_KEPT, 64):
        monkeypatch.setattr(module, "_MOST_KEPT", room)
        with curator(budget=Budget.zcdp(10**12)).session(workload=WORKLOAD) as session:
            each = session.budget * Fraction(1, 4)
            session.measure(["a", ("b", "c")], each)
            session.score(flat(), each)
            kept.append(
                [session.measure(["a", ("c", "d")], each).tables.values.tolist(), session.steps[1].values.round()]
            )
    assert kept[0][0] == kept[1][0] and (kept[0][1] == kept[1][1]).all()


def test_merged_codes_are_counted_merged(tmp_path):
    """Steps before keep their codes, later ones have fewer, the pool has both, and the file all of it."""
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


def test_a_pair_must_not_be_measured_before_codes_are_merged():
    """Its cells would be nobody's."""
    with curator().session(workload=WORKLOAD) as session:
        session.measure([("c", "d")], session.budget * Fraction(1, 2))
        with pytest.raises(StructureError, match="before the first table of several"):
            session.coarsen({"c": [0, 1, 1, 1]})
        assert session.domain == DOMAIN


def test_the_number_of_records_is_as_the_terms_say():
    """Estimated, declared, or published."""
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
    "other domain": lambda s, b: s.score(flat(Structure(Domain.from_sizes({"a": 3}), [("a",)])), b),
    "no picks": lambda s, b: s.select(flat(), b, 0),
    "too many picks": lambda s, b: s.select(flat(groups=((0, 1), (2,))), b, 2),
    "hardly anything": lambda s, b: s.select(flat(), Budget.zcdp("1e-15")),
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
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused_costs_nothing(case):
    """One line from our errors; nothing is drawn, spent or kept, and the session goes on."""
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
    domain = Domain.from_sizes(dict.fromkeys("abc", 2))
    pairs = Structure(domain, [("a", "b"), ("a", "c"), ("b", "c")])
    scores = TableDistance(candidates=pairs, predicted=np.full(pairs.cells, 100.0), contrast=True)
    spun = 1 - 2 * codes
    true = [abs(int(np.prod(spun[:, list(places)], axis=1).sum())) for places in ((0, 1), (0, 2), (1, 2))]
    assert true[0] == 400 and true[1] == true[2]
    terms, noise = Terms(neighbours="add-remove"), make("mechanism", "gaussian")
    asked = LiveCurator(
        as_source(codes), pairs, noise, terms=terms, budget=Budget.zcdp(1000), randomness=SeededRandomness(5)
    )
    with asked.session(workload=Workload.of(domain, pairs.cliques)) as session:
        assert session.select(scores, Budget.zcdp(1)).chosen == ((0,),)
        noisy = session.score(scores, Budget.zcdp(900))
        assert noisy.values == pytest.approx(true, abs=1)  # 1 is 24 standard deviations
    wide = Structure(DOMAIN, [("a", "b")])
    with pytest.raises(StructureError, match="'a' do not have two labels"):
        flat(wide, contrast=True)


def test_a_child_of_a_score_is_none():
    """It could say that nobody moves it, and every choice would be nearly free."""

    class Still(TableDistance):
        def move(self, terms):
            return 1

    still = Still(candidates=PAIRS, predicted=np.zeros(PAIRS.cells))
    opened = curator(neighbours="replace-one").session(workload=WORKLOAD)
    with opened as session, pytest.raises(OptionError, match="core alone knows"):
        session.select(still, session.budget)


def test_a_child_of_gradients_is_none():
    """It could say that its residuals reach less far than they do."""

    class Short(NodeGradients):
        def reach(self, kind):
            return 1

    short = Short(**{name: getattr(slopes(), name) for name in ("regressions", "weights", "radius")})
    with curator().session(workload=WORKLOAD) as session, pytest.raises(OptionError, match="core alone knows"):
        session.descend(short, session.budget)


class Alike(Domain):
    """Equal to every domain, whatever it says of the labels."""

    __slots__ = ()

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __hash__ = Domain.__hash__


def test_a_child_of_a_domain_does_not_say_how_far_a_person_moves():
    """It could call codes 0 to 3 binary: their products would be up to 25, and one person is charged for 1."""
    binary = Alike(Domain.from_sizes(dict.fromkeys("abcd", 2)).attributes)
    pairs = Structure(binary, PAIRS.cliques)
    own = Regressions(candidates=pairs, loss="logistic")
    steps = NodeGradients(regressions=own, weights=own.zeros(), radius=2)
    votes, part = Budget.approx("0.5", "5e-7"), Budget.zcdp("0.001")
    asked = {
        "vote": lambda session: session.vote(ThresholdVotes(pairs=pairs, tau=0.3), votes),
        "descend": lambda session: session.descend(steps, part),
        "select": lambda session: session.select(flat(pairs, contrast=True), part),
        "score": lambda session: session.score(flat(pairs), part),
    }
    for step in asked.values():
        with curator(budget=KINDS["approx"], total=500).session(workload=WORKLOAD, votes=votes) as session:
            with pytest.raises((StructureError, OptionError)):
                step(session)
            assert (session.remaining, session.votes) == (session.budget, votes)


@pytest.mark.parametrize("kind", ["pure", "zcdp"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_descents_out_of_one_budget(kind, neighbours):
    """Ten of them and a table spend what they were given and no more; merged codes have regressions of their own."""
    budget = {"pure": Budget.pure(200), "zcdp": Budget.zcdp(100)}[kind]
    with curator(budget=budget, neighbours=neighbours).session(workload=WORKLOAD) as session:
        session.measure(["a"], budget * Fraction(1, 11))
        domain = session.coarsen({"c": [0, 1, 1, 1]})
        for _ in range(10):
            descent = session.descend(slopes(Structure(domain, PAIRS.cliques)), budget * Fraction(1, 11))
            assert budget * Fraction(9, 100) <= descent.cost <= budget * Fraction(1, 11)
        assert len(session.steps) == 11 and session.pooled().steps == session.steps
        with pytest.raises(Overspent):
            session.descend(slopes(Structure(domain, PAIRS.cliques)), budget * Fraction(1, 1000))


def test_with_no_noise_to_speak_of_a_descent_goes_the_steepest_way():
    """Sign and place of the largest gradient of each attribute, from the counts: own code less its share."""
    with curator(budget=Budget.zcdp(10**6)).session(workload=WORKLOAD) as session:
        descent = session.descend(slopes(clip=None), Budget.zcdp(10**5))
    own = descent.regressions
    hot = np.column_stack([CODES[:, DOMAIN.names.index(name)] == code for (name,), (code,) in own.columns[:-1]])
    hot = np.column_stack([hot, np.ones(len(hot), bool)])
    for rows, (row, column, sign) in zip(own.choices, descent.picks, strict=True):
        size = len(rows)
        sums = {
            (one, other): sum((128 * hot[:, one] - 128 // size) * hot[:, other])
            for one in rows
            for other in np.flatnonzero(own.allowed[one])
        }
        assert row in rows and sign * sums[row, column] == max(map(abs, sums.values()))


def test_a_closed_session_is_closed():
    """Its records are gone, what it handed out stays."""
    with curator().session(workload=WORKLOAD) as session:
        session.measure(["a"], session.budget * Fraction(1, 4))
    asks = [
        lambda: session.measure(["a"], session.budget * Fraction(1, 4)),
        lambda: session.select(flat(), session.budget * Fraction(1, 4)),
        lambda: session.score(flat(), session.budget * Fraction(1, 4)),
        lambda: session.coarsen({"c": [0, 1, 1, 1]}),
        lambda: session.check(Structure(DOMAIN, [("a", "b")])),
    ]
    for ask in asks:
        with pytest.raises(BudgetError, match="closed"):
            ask()
    assert session.pooled().structure.cliques == (("a",),) and not session._counted
    with session:
        pass  # leaving it again changes nothing


def test_a_session_exists_once():
    """No copy, no pickle, no twin in a forked process: neither may spend."""
    with curator().session(workload=WORKLOAD) as session:
        for work in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(BudgetError, match="copied or pickled"):
                work(session)
        read, write = os.pipe()
        child = os.fork()
        if not child:
            said = []
            for ask in (lambda: session.measure(["a"], session.budget), session.pooled):
                try:
                    said.append(repr(ask()))
                except BudgetError as error:
                    said.append(str(error)[:40])
            with session:
                pass  # leaving the twin is harmless
            os.write(write, "|".join(said).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            assert pipe.read() == "|".join(["this LiveSession was made before the pro"] * 2)
        os.waitpid(child, 0)
        assert session.remaining == session.budget


def test_threads_take_turns_and_no_step_begins_another():
    """Eight threads ask for an eighth each of what 4 can have; and randomness that asks the session is refused, while
    the step that it was drawing for stays paid."""
    with curator().session(workload=WORKLOAD) as session:
        done = []

        def work():
            try:
                done.append(session.measure(["a"], session.budget * Fraction(1, 4)).cost)
            except Overspent:
                done.append(None)

        threads = [threading.Thread(target=work) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        paid = [cost for cost in done if cost is not None]
        assert len(done) == 8 and len(paid) == 4 == len(session.steps) and Budget.sum(paid) <= session.budget

    class Nested(SeededRandomness):
        session = None

        def words(self, count):
            return self.session.measure(["a"], Budget.zcdp("1/100")) or super().words(count)

    randomness = Nested(1)
    with curator(randomness=randomness).session(workload=WORKLOAD) as randomness.session:
        session = randomness.session
        with pytest.raises(DpgmError):
            session.measure(["a"], session.budget * Fraction(1, 4))
        assert not session.steps
        assert session.budget * Fraction(74, 100) <= session.remaining <= session.budget * Fraction(76, 100)


@pytest.mark.parametrize("step", ["measure", "select", "score", "descend"])
@pytest.mark.parametrize("error", [ValueError("Miss Marple, 1890-09-15"), MemoryError()])
def test_a_step_that_fails_is_paid_and_quotes_nothing(step, error):
    """What fails while it is drawn: the cost is gone, the next step works, and no frame below holds a true count."""

    class Failing(SeededRandomness):
        fails = True

        def words(self, count):
            if self.fails:
                raise error
            return super().words(count)

    randomness = Failing(1)
    with curator(randomness=randomness).session(workload=WORKLOAD) as session:
        each = session.budget * Fraction(1, 4)
        ask = {
            "measure": lambda: session.measure([("b", "c")], each),
            "select": lambda: session.select(flat(), each),
            "score": lambda: session.score(flat(), each),
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
        randomness.fails = False
        ask()


def test_counting_that_runs_out_of_memory_says_so_and_stays_paid(monkeypatch):
    """Whether there is memory may depend on the records; so the step is paid for, and the words are ours."""

    def summed(*_):
        raise MemoryError

    with curator().session(workload=WORKLOAD) as session:
        with monkeypatch.context() as patched:
            patched.setattr(module, "summed", summed)
            with pytest.raises(DpgmError) as caught:
                session.measure(["a"], session.budget * Fraction(1, 2))
        assert "\n" not in str(caught.value)
        assert session.remaining <= session.budget * Fraction(51, 100)


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
    with pytest.raises(ModelFileError):
        curator(ledger=book, save_to=tmp_path / "x.dpgm").session(workload=WORKLOAD)
    assert book.spent() == Budget.zcdp("1/2")


def test_what_cannot_be_saved_is_kept_and_not_said_to_be_released(tmp_path, monkeypatch):
    """A disk that is full: the step that was paid for is among `released`, and the ledger is told nothing."""
    book = ledger(tmp_path / "x.ledger")
    opened = curator(ledger=book, save_to=tmp_path / "x.dpgm")

    def full(*_, **__):
        raise ModelFileError("no room")

    with opened.session(workload=WORKLOAD) as session, monkeypatch.context() as patched:
        patched.setattr(NoisyTables, "write", full)
        with pytest.raises(ModelFileError, match="no room"):
            session.measure(["a"], session.budget * Fraction(1, 10))
        (kept,) = opened.released
        assert kept.structure.cliques == (("a",),)
    assert book.history()[0].status == "charged"


def test_two_sessions_out_of_one_curator(tmp_path):
    """Each has its part of the budget, its entry and its file."""
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
from dpgm_core.workload import Workload
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


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is killed like that")
@pytest.mark.parametrize("steps", [0, 2])
def test_a_killed_session_leaves_a_spent_ledger_and_what_it_measured(tmp_path, steps):
    """Killed after its k-th step: all is charged, and a file of k steps can be learned from."""
    done = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path), str(steps)], check=False)
    assert done.returncode == -signal.SIGKILL
    book = Ledger.open(tmp_path / "x.ledger")
    assert book.spent() == Budget.pure(1) and book.history()[0].status == "charged"
    assert (tmp_path / "x.dpgm").exists() is bool(steps)
    if steps:
        release = load_release(tmp_path / "x.dpgm")
        assert len(release.steps) == steps and release.cost == Budget.pure(1) and release.private
        assert learn(release).model.cost == Budget.pure(1)


@pytest.mark.parametrize("person", [None, "id"])
@pytest.mark.parametrize("rows", [0, 1])
def test_no_records_are_as_good_as_any(rows, person):
    """Whether there is anybody at all must not show: every step works, in no batches as in empty ones."""
    table = {name: ["0"] * rows for name in "abcd"} | {"id": ["x"] * rows}
    sources = [as_source(pa.table(table, schema=pa.schema([(name, pa.string()) for name in table])))]
    if person is None:
        sources.append(Batches([CODES[:rows]] if rows else []))
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


class Batches:
    """Codes in these batches."""

    def __init__(self, batches):
        self._batches = batches

    def batches(self, domain, columns):
        for batch in self._batches:
            yield [batch[:, domain.names.index(name)] for name in columns]


def test_nobody_sees_records_in_a_session():
    """Neither its text nor that of what it keeps says a count."""
    with curator().session(workload=WORKLOAD) as session:
        session.measure(["a"], session.budget * Fraction(1, 2))
        assert "500" not in repr(session) and repr(session._persons) == "Persons(hidden)"
        assert all("array" not in repr(one) for one in itertools.chain([session], session.steps[0].steps))


# --- votes ----------------------------------------------------------------------------------------------------------

VOTED = Domain.from_sizes({"x": 2, "y": 2, "z": 3})
VOTES_ON = Workload.all(VOTED, order=2)
BINARY = Structure(VOTED, [("x", "y")])
MANY = np.random.default_rng(2).integers(0, 2, (3000, 3))
MANY[:, 1] = np.where(np.random.default_rng(3).random(3000) < 0.85, MANY[:, 0], 1 - MANY[:, 0])
TWICE = Budget.approx(2, "2e-6")
HALF = Budget.approx(1, "1e-6")


def voting(data=MANY, *, budget=TWICE, **settings):
    """A curator over 3,000 records of which x and y go together."""
    terms = Terms(**{"neighbours": "add-remove"} | settings.pop("terms", {}))
    return LiveCurator(
        as_source(data),
        Structure(VOTED, [("x",), ("y",), ("z",)]),
        make("mechanism", "laplace"),
        terms=terms,
        budget=budget,
        **{"randomness": SeededRandomness(5)} | settings,
    )


def edge_votes(**more):
    """The pair of two labels each, by 60 blocks."""
    return EdgeVotes(**{"pairs": BINARY, "blocks": 60} | more)


def test_votes_and_tables_are_the_sum_that_is_charged(tmp_path):
    """One charge of all when the session opens; rho is of what the votes leave, and neither takes of the other."""
    book = Ledger.create(tmp_path / "x.ledger", name="x", budget=TWICE, neighbours="add-remove")
    with voting(ledger=book).session(workload=VOTES_ON, votes=HALF) as session:
        assert [one.cost for one in book.history()] == [TWICE]
        assert session.budget == HALF.zcdp_within() == session.remaining and session.votes == HALF
        verdict = session.vote(edge_votes(), HALF)
        assert verdict.edges == (("x", "y"),) and session.steps == (verdict,) and verdict.cost == HALF
        assert session.votes.is_zero and session.remaining == HALF.zcdp_within()
        session.measure([("x", "y")], session.remaining)
        release = session.pooled()
    assert release.cost == TWICE and len(book.history()) == 1
    assert f"the sum of {HALF} for votes" in release.guarantee() and f"with {TWICE}" in release.guarantee()
    assert learn(release).model.cost == TWICE


def test_a_session_left_early_has_paid_for_its_votes(tmp_path):
    """One charge, of all."""
    book = Ledger.create(tmp_path / "x.ledger", name="x", budget=TWICE, neighbours="add-remove")
    with voting(ledger=book).session(workload=VOTES_ON, votes=HALF):
        pass
    assert [one.cost for one in book.history()] == [TWICE]


@pytest.mark.parametrize(
    ("budget", "votes", "why"),
    [
        (Budget.pure(1), HALF, "votes cost an"),
        (Budget.zcdp(1), HALF, "votes cost an"),
        (TWICE, Budget.pure(1), "votes cost an"),
        (TWICE, Budget.zcdp(1), "votes cost an"),
        (TWICE, TWICE, "leave nothing"),
        (TWICE, Budget.approx(1, "2e-6"), "leave nothing"),
        (TWICE, Budget.approx(2, "1e-6"), "leave nothing"),
        (TWICE, 1, "must be a Budget"),
    ],
)
def test_votes_that_no_session_opens_with(tmp_path, budget, votes, why):
    """Refused before a record is read or anything is charged."""
    book = Ledger.create(tmp_path / "x.ledger", name="x", budget=budget, neighbours="add-remove")
    watched = voting(LoggedRows([]), budget=budget, ledger=book)
    with pytest.raises(BudgetError, match=why):
        watched.session(workload=VOTES_ON, votes=votes)
    assert not book.history()


class LoggedRows:
    """A source that must not be read."""

    def __init__(self, log):
        self.log = log

    def batches(self, domain, columns):
        raise AssertionError("the records were touched")


class Sly(EdgeVotes):
    """A voter of somebody else's."""


OTHER = Domain.from_sizes({"x": 2, "y": 2})
REFUSED = {
    "more than there is": (edge_votes(), TWICE, Overspent, "left for votes"),
    "a bit more": (edge_votes(), Budget.approx("1.001", "1e-6"), Overspent, "left for votes"),
    "more delta": (edge_votes(), Budget.approx("0.5", "1.001e-6"), Overspent, "left for votes"),
    "of rho": (edge_votes(), Budget.zcdp("0.01"), Overspent, "left for votes"),
    "no budget": (edge_votes(), 1, BudgetError, "must be a Budget"),
    "too little": (edge_votes(), Budget.approx("1e-7", "1e-9"), BudgetError, "too little for votes"),
    "a child": (Sly(pairs=BINARY, blocks=3), HALF, OptionError, "core alone knows"),
    "a text": ("votes", HALF, OptionError, "core alone knows"),
    "another domain": (EdgeVotes(pairs=Structure.complete(OTHER), blocks=3), HALF, StructureError, "another domain"),
    "another order": (edge_votes(pairs=Structure(VOTED, [("y", "x")])), HALF, StructureError, "in the order"),
    "N that is not known": (ThresholdVotes(pairs=BINARY, tau=0.3), HALF, OptionError, "declare the number"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_votes_cost_nothing(case):
    """No word is drawn, and all that was for votes is still there."""
    voter, budget, error, why = REFUSED[case]
    log = []
    with voting(randomness=Noted(log)).session(workload=VOTES_ON, votes=HALF) as session:
        with pytest.raises(error, match=why):
            session.vote(voter, budget)
        assert not log and session.votes == HALF and not session.steps


def test_votes_come_before_everything_else():
    """After a table, a choice or merged codes it is too late; several votes in a row share what there is."""
    quarter = Budget.approx("0.5", "5e-7")
    pairs = Structure.complete(VOTED)
    flat = TableDistance(candidates=pairs, predicted=np.full(pairs.cells, 500.0))
    firsts = (
        lambda session: session.measure(["x"], session.budget * Fraction(1, 2)),
        lambda session: session.select(flat, session.budget * Fraction(1, 2)),
        lambda session: session.coarsen({"z": [0, 1, 1]}),
    )
    for first in firsts:
        with voting().session(workload=VOTES_ON, votes=HALF) as session:
            session.vote(edge_votes(blocks=3), quarter)
            session.vote(edge_votes(blocks=3), quarter)
            with pytest.raises(Overspent):
                session.vote(edge_votes(blocks=3), quarter)
        with voting().session(workload=VOTES_ON, votes=HALF) as session:
            session.vote(edge_votes(blocks=3), quarter)
            first(session)
            with pytest.raises(BudgetError, match="before every other step"):
                session.vote(edge_votes(blocks=3), quarter)
            assert session.votes == quarter


def test_a_session_without_votes_casts_none():
    """Whatever it was opened with."""
    for budget in (TWICE, Budget.pure(1), Budget.zcdp(1)):
        with voting(budget=budget).session(workload=VOTES_ON) as session:
            assert session.votes is None
            with pytest.raises(BudgetError, match="nothing for votes"):
                session.vote(edge_votes(), HALF)


def test_nothing_stable_costs_as_much_and_shows_nothing():
    """3 blocks are never sure; what comes out is None, and nothing of how many voted stands in it or in the session."""
    with voting().session(workload=VOTES_ON, votes=HALF) as session:
        verdict = session.vote(edge_votes(blocks=3), HALF)
        assert verdict.edges is None and verdict.cost == HALF and session.votes.is_zero
        assert set(attrs.asdict(verdict, recurse=False)) == {"voter", "budget", "edges"}
        assert repr(verdict) == f"Verdict(not stable enough to tell, {HALF})"
        assert not [name for name, value in vars(session).items() if isinstance(value, Agreed)]


@pytest.mark.parametrize("lengths", [1, 3])
def test_a_word_for_each_person_and_two_for_the_coin(lengths):
    """Whatever the codes are, and however many rows a person has: all rows of one are in one block."""
    for codes in (MANY, 1 - np.minimum(MANY, 1), np.zeros_like(MANY)):
        asked = []

        class Counting(SeededRandomness):
            def words(self, count):
                asked.append(count)  # noqa: B023 - read before the next one
                return super().words(count)

        keys = np.arange(3000) // lengths
        data = pa.table({"x": codes[:, 0], "y": codes[:, 1], "z": codes[:, 2], "id": keys})
        terms = {"terms": {"person": "id", "rows_per_person": lengths}}
        with voting(data, randomness=Counting(1), **terms).session(workload=VOTES_ON, votes=HALF) as session:
            session.vote(edge_votes(blocks=3), HALF)
        assert asked == [3000 // lengths, 2]
        asked.clear()
        known = {"terms": {"person": "id", "rows_per_person": lengths, "total": 3000}}
        with voting(data, randomness=Counting(1), **known).session(workload=VOTES_ON, votes=HALF) as session:
            session.vote(ThresholdVotes(pairs=BINARY, tau=0.3), HALF)
        assert asked == [0, 2]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("total", [3000, "public"])
def test_single_records_vote_against_a_known_total(neighbours, total):
    """x and y correlate by .7, so tau = .3 is 600 persons away for a sum that one moves by 1, and 300 by 2."""
    terms = {"terms": {"neighbours": neighbours, "total": total}}
    with voting(**terms).session(workload=VOTES_ON, votes=HALF) as session:
        assert session.vote(ThresholdVotes(pairs=BINARY, tau=0.3), HALF).edges == (("x", "y"),)


def test_a_source_of_words_that_fails_costs_the_votes():
    """Spent before the first bit is drawn; no other vote can be had for it."""

    class Dry(SeededRandomness):
        def words(self, count):
            raise OSError("no more words")

    with voting(randomness=Dry(1)).session(workload=VOTES_ON, votes=HALF) as session:
        with pytest.raises(OSError, match="no more words"):
            session.vote(edge_votes(blocks=3), HALF)
        assert session.votes.is_zero and not session.steps
