"""The bins that a session finds before anybody sees it: right without noise, drawn as claimed, paid for, secret."""

import datetime
import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve
from scipy.stats import chisquare

from dpgm_core import Attribute, Budget, Domain, Ledger, SeededRandomness, Structure, Workload, load_release, make
from dpgm_core.counting.rows import Persons
from dpgm_core.counting.scores import rank_scores, ranks_of
from dpgm_core.curator.steps import count_grids, find_bins, grid_attributes
from dpgm_core.errors import BudgetError, DomainError
from dpgm_core.privacy.bins import BinsPlan, RankDistance, nodes_of
from dpgm_core.privacy.selection import MAX_TEMPERATURE, probabilities
from tests.curator.opened import Hooked
from tests.fixtures import Unread, live_curator
from tests.private_columns import private_bins

ONE = Budget.pure(1)


def _asked(column, temperatures):
    return BinsPlan(attribute=column, temperatures=temperatures, rows=1, kind="pure")


def _found(asked, persons, randomness):
    grids = grid_attributes([asked])
    return find_bins([asked], grids, count_grids(grids, persons, Domain(list(grids.values()))), randomness)


def _persons(codes, name="x"):
    return Persons((name,), [np.asarray(codes, np.uint16)], None)


def _curator(data, domain, **more):
    mechanism = make("mechanism", "laplace" if more.get("budget", ONE).kind == "pure" else "gaussian")
    return live_curator(data, Structure(domain, [(name,) for name in domain.names]), mechanism, **more)


def test_bins_are_quantiles_where_noise_is_next_to_nothing():
    """Edges are medians of medians at a huge temperature; a heavy value is a bin of its own, with fewer bins then."""
    codes = np.repeat(np.arange(100), 10)
    (found,) = _found(_asked(private_bins("x", 4), (MAX_TEMPERATURE,) * 2), _persons(codes), SeededRandomness(0))
    assert found.places == (0, 25, 50, 75, 100)
    assert found.attribute.edges == (0, 25, 50, 75, 99.5)
    assert found.attribute.labels == ("0-24", "25-49", "50-74", "75-99", "missing")
    assert found.attribute.private is None
    heavy = np.concatenate([np.full(900, 40), codes[::10]])
    (found,) = _found(_asked(private_bins("x", 4), (MAX_TEMPERATURE,) * 2), _persons(heavy), SeededRandomness(0))
    assert {40, 41} <= set(found.places)


def test_missing_values_take_no_part():
    codes = np.concatenate([np.repeat(np.arange(100), 10), np.full(5000, 100)])
    persons = _persons(codes)
    asked = _asked(private_bins("x", 4), (MAX_TEMPERATURE,) * 2)
    (found,) = _found(asked, persons, SeededRandomness(0))
    assert found.places == (0, 25, 50, 75, 100)
    recoding = {"x": found.recoding(grid_attributes([asked])["x"])}
    ((codes,), _) = next(persons.recoded(recoding, Domain([found.attribute])).pieces(["x"]))
    assert np.bincount(codes).tolist() == [250, 250, 250, 250, 5000]
    assert found.attribute.labels[4] == "missing"


@pytest.mark.landing
def test_choices_are_drawn_with_their_exact_probabilities():
    """3,000 bisections of two levels follow the exponential mechanism (fixed seed; false alarm 1e-6)."""
    table, h = (3, 1, 4, 2), Fraction(1, 4)
    randomness, ranks = SeededRandomness(3), ranks_of(np.array(table))
    asked, persons = _asked(private_bins("x", 4, cells=4), (h, h)), _persons(np.repeat(np.arange(4), table))
    drawn = Counter(_found(asked, persons, randomness)[0].choices for _ in range(3000))
    wanted = {}
    for edge, chance in zip(
        (1, 2, 3), probabilities(rank_scores(ranks, RankDistance(first=0, last=4)), h), strict=True
    ):
        inside = [RankDistance(first=a, last=b) for a, b in nodes_of(4, [[edge]]) if b - a > 1]
        shares = [probabilities(rank_scores(ranks, node), h) for node in inside]
        for picked in itertools.product(*(range(len(one)) for one in shares)):
            second = tuple(node.candidates[number] for node, number in zip(inside, picked, strict=True))
            each = [share[number] for share, number in zip(shares, picked, strict=True)]
            wanted[((edge,), second)] = float(chance * np.prod(each))
    assert set(drawn) <= set(wanted)
    expected = np.array(list(wanted.values())) * 3000
    assert chisquare([drawn[one] for one in wanted], expected).pvalue > 1e-6


@pytest.mark.parametrize("budget", [Budget.pure(1), Budget.zcdp("0.05"), Budget.approx(1, "1e-9")])
def test_a_session_has_the_bins_that_it_paid_for(budget):
    """Domain, workload and codes have the bins, the budget is less their cost, and the session is charged once."""
    domain = Domain([private_bins("age", 8), Attribute.of_size("b", 2)])
    ages = np.random.default_rng(0).integers(0, 100, 4000)
    data = {"age": ages, "b": ages % 2}
    curator = _curator(data, domain, budget=budget, total="public", randomness=SeededRandomness(1))
    workload = Workload.all(domain)
    with curator.session(workload=workload) as session:
        assert not session.domain.undetermined and session.workload.domain == session.domain
        assert session.workload.never == workload.never
        left = session.budget
        noisy = session.measure([("age",), ("age", "b")], session.remaining)
    (found,) = curator.released[0].session.bins
    assert left + found.cost == curator.released[0].session.budget
    assert curator.remaining.is_zero
    truth = np.histogram(ages, bins=np.asarray(found.attribute.edges))[0]
    spread = float(np.sqrt(noisy.variances[0]))
    # noise of 9 tables' cells, a right version fails with probability below 1e-6
    assert np.abs(noisy.tables["age"][: len(truth)] - truth).max() < 14 * spread


def test_the_order_of_records_changes_no_bit():
    domain = Domain([private_bins("age", 8), private_bins("hours", 4)])
    codes = np.random.default_rng(0).integers(0, 100, (500, 2))

    def run(rows):
        curator = _curator(rows, domain, randomness=SeededRandomness(5))
        with curator.session(workload=Workload.all(domain)) as session:
            session.measure([("age", "hours")], session.remaining)
        return curator.released[0]

    one, other = run(codes), run(codes[np.random.default_rng(1).permutation(500)])
    assert one.session.to_dict() == other.session.to_dict()
    assert one.tables.values.tolist() == other.tables.values.tolist()


@pytest.mark.parametrize(
    ("match", "ask", "budget"),
    [
        ("'age'.*session|'age'.*selector", lambda made, _: made.release(), ONE),
        ("'age'", lambda made, _: made.rounds(3, sampling_rate=0.5), ONE),
        ("private bins of 'age' have 0.02", lambda made, all_: made.session(workload=all_), Budget.pure("0.0001")),
        (
            "votes.*'age'",
            lambda made, all_: made.session(workload=all_, votes=Budget.approx("0.5", "1e-10")),
            Budget.approx(1, "1e-9"),
        ),
    ],
    ids=["release", "rounds", "too little", "votes"],
)
def test_what_does_not_go_with_private_bins_is_refused_before_the_charge(tmp_path, match, ask, budget):
    domain = Domain([private_bins("age", 8), Attribute.of_size("b", 2)])
    ledger = Ledger.create(tmp_path / "x.ledger", name="x", budget=budget, neighbours="add-remove")
    made = live_curator(Unread(), Structure(domain, [("age", "b")]), budget=budget, ledger=ledger)
    with pytest.raises((BudgetError, DomainError), match=match):
        ask(made, Workload.all(domain))
    assert ledger.remaining() == made.remaining == budget


def test_what_fails_while_bins_are_found_has_no_record_among_its_variables():
    domain = Domain([private_bins("age", 8)])
    curator = _curator({"age": np.arange(50)}, domain, randomness=Hooked(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt) as caught:
        curator.session(workload=Workload.all(domain))
    assert curator.remaining.is_zero
    frames = [entry.frame for entry in caught.traceback if "dpgm_core" in str(entry.path)]
    held = [value for frame in frames for value in frame.f_locals.values()]
    assert frames
    held += [one for value in held if isinstance(value, (list, tuple)) for one in value]
    assert not [value for value in held if isinstance(value, (Persons, np.ndarray))]


def test_a_person_of_several_rows_costs_as_many_times_as_much(tmp_path):
    """The same share of a level at a temperature as many times lower; of three rows of a key two count."""
    domain, budget = Domain([private_bins("age", 4)]), Budget.pure(200)
    data = {"age": np.array([*range(50), 1, 1, 1, 1]), "id": np.array([*range(50), 90, 90, 90, 91])}
    for rows in (1, 2):
        path = tmp_path / f"{rows}.dpgm"
        curator = _curator(data, domain, budget=budget, person="id", rows_per_person=rows, save_to=path)
        with curator.session(workload=Workload.all(domain)) as session:
            session.measure(["age"], session.remaining)
        (bins,) = curator.released[0].session.bins
        assert float(bins.cost.epsilon) == pytest.approx(4, rel=0.01)
        assert float(bins.search.temperatures[0]) * rows == pytest.approx(0.5, rel=0.01)
        again = load_release(path).session.bins
        assert again == (bins,) and again[0].search.rows == rows
        assert round(curator.released[0].total) == 51 + rows


@pytest.mark.parametrize("wrong", [{"unknown": 0}, {"labels": (*private_bins("age", 8).labels[:-1], "37")}])
def test_unknown_values_on_a_bin_are_refused(wrong):
    """Claim: they would take part in finding the bins, so no session ever gets such a column."""
    with pytest.raises(DomainError, match=r"'age'.*label of their own"):
        evolve(private_bins("age", 8), **wrong)


def test_dates_log_scales_and_capped_numbers_have_private_bins():
    tables = {
        "day": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": {"private": 4}},
        "pay": {"type": "number", "min": 1, "max": 1000, "scale": "log", "cap": True, "bins": {"private": 4}},
    }
    domain = Domain.from_dict({"attributes": tables})
    rng = np.random.default_rng(0)
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(day)) for day in rng.integers(0, 366, 500)]
    pay = [*rng.lognormal(4, 2, 498).round(2).tolist(), None, -5.0]
    table = pa.table({"day": days, "pay": pay})
    curator = _curator(table, domain, budget=Budget.pure(10_000), randomness=SeededRandomness(1))
    with curator.session(workload=Workload.all(domain)) as session:
        noisy = session.measure([("day",), ("pay",)], session.remaining)
    for name, values in (("day", days), ("pay", pay)):
        found = noisy.structure.domain[name]
        codes = [found.code(None if value is None else str(value)) for value in values]
        # the noise has a standard deviation below 0.001 of a record
        assert noisy.tables[name].tolist() == np.bincount(codes, minlength=found.size).tolist()
        assert found.size == 5
