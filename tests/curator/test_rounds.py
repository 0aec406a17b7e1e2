"""Rounds: what they draw, what they cost, what they refuse, and that they forget."""

import gc
import math
import threading
import time
import weakref
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chi2

import dpgm_core as dpgm
from dpgm_core import Budget, BudgetError, ClippedScore, Domain, SeededRandomness, Structure, load_release, make
from dpgm_core.counting.rows import read_persons
from dpgm_core.counting.table_counts import count
from dpgm_core.sources import as_source
from dpgm_core.sources.persons import PersonSource
from tests.curator.opened import Hooked
from tests.fixtures import Unread, in_threads, live_curator

DOMAIN = Domain.from_sizes({"a": 3, "b": 2, "c": 4})
CHAIN = Structure.chain(DOMAIN)
TIED = Structure(Domain.from_sizes({"a": 3, "b": 3, "c": 3}), [("a",)], tied=[(("a", "b"), ("b", "c"))])
CODES = np.random.default_rng(0).integers(0, [3, 2, 4], (500, 3))


def curator(source=CODES, *, structure=CHAIN, mechanism="laplace", **more):
    settings = {"total": 500, "budget": Budget.pure(10**9), "randomness": SeededRandomness(5)} | more
    return live_curator(source, structure, make("mechanism", mechanism), **settings)


def uniform(structure=CHAIN):
    return make("inference", "junction-tree").compile(structure).infer(dpgm.Tables.zeros(structure))


@pytest.mark.parametrize(
    ("structure", "codes"),
    [(CHAIN, CODES), (TIED, CODES % 3), (CHAIN, np.tile(CODES, (200, 1)))],
    ids=["chain", "tied", "many records"],
)
def test_a_full_round_is_the_whole_count(structure, codes):
    """At rate 1 without noise a round is the exact count, tied or not, by blocks and by single cells."""
    exact = count(as_source(codes), structure).tables.values
    with curator(codes, structure=structure).rounds(2, sampling_rate=1) as rounds:
        for _ in range(2):
            assert rounds.next().tables.values.tolist() == exact.tolist()


def test_rounds_are_fresh():
    with curator().rounds(2, sampling_rate=0.5) as rounds:
        assert rounds.next().tables.values.tolist() != rounds.next().tables.values.tolist()


def test_the_subsample_takes_each_person_with_the_rate():
    """Sizes over 400 rounds are binomial (chi-squared over bins; false alarm 1e-6), on all 400 x 500 coins."""
    rate, n, rounds_drawn = 0.3, 500, 400
    with curator().rounds(rounds_drawn, sampling_rate=rate) as rounds:
        sizes = [int(rounds.next().tables["a", "b"].sum()) for _ in range(rounds_drawn)]
    edges = binom.ppf([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], n, rate)
    chances = np.diff(np.concatenate([[0], binom.cdf(edges, n, rate), [1]]))
    seen = np.bincount(np.searchsorted(edges, sizes), minlength=10)
    statistic = float(((seen - rounds_drawn * chances) ** 2 / (rounds_drawn * chances)).sum())
    assert statistic < chi2.isf(1e-6, 9)


def test_null_keys_are_one_person():
    rows = {"id": np.array(["", "", "x"], object), "a": np.zeros(3, int), "b": np.zeros(3, int), "c": np.zeros(3, int)}
    source = PersonSource(source=as_source(rows), person="id", rows_per_person=5)
    ((codes, lengths),) = read_persons(source, DOMAIN, DOMAIN.names).subsample(Fraction(1), SeededRandomness(1))
    assert sorted(lengths.tolist()) == [1, 2] and len(codes[0]) == 3


def test_no_records_at_all():
    with curator(as_source(CODES[:0])).rounds(1, sampling_rate=0.5) as rounds:
        assert rounds.next().tables.values.tolist() == [0] * CHAIN.cells


def test_a_round_may_measure_chosen_cliques():
    made = curator(budget=Budget.pure(2))
    with made.rounds(1, budget=Budget.pure(1), cliques=[("a",)], sampling_rate=0.5) as rounds:
        noisy = rounds.next()
    assert noisy.structure.cliques == (("a",),)
    assert noisy.cost == Budget.pure(1) and made.remaining == Budget.pure(1)
    assert noisy.round == dpgm.Round(number=1, of=1, sampling_rate=Fraction(1, 2))
    # ln(1 + (e - 1) / q) of base epsilon
    assert noisy.noise[0].cost.epsilon == pytest.approx(math.log(1 + math.expm1(1) / 0.5))


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_subsample_under_replace_one(mechanism, tmp_path):
    """The scale is what presence and exchange ask for, of two tables that move and one of one cell; saved and read."""
    structure = Structure(Domain.from_sizes({"a": 3, "b": 2, "c": 1}), [("a",), ("b",), ("c",)])
    budget = Budget.pure(1) if mechanism == "laplace" else Budget.zcdp(1)
    made = curator(
        as_source(CODES % [3, 2, 1]), structure=structure, mechanism=mechanism, budget=budget,
        neighbours="replace-one", save_to=tmp_path / "r.dpgm",
    )  # fmt: skip
    with made.rounds(4, sampling_rate=0.25) as rounds:
        noisy = rounds.next()
    assert noisy.cost == budget and made.remaining.is_zero
    assert noisy.guarantee() == load_release(tmp_path / "r.dpgm").guarantee()
    assert "replace-one neighbours" in noisy.guarantee() and "Poisson subsample at rate 0.25" in noisy.guarantee()
    scale = noisy.noise[0].event.scale
    if mechanism == "laplace":  # 1/4 = ln (1 - q + q e^(3 / b)) - ln (1 - q + q e^(-1 / b))
        grown = [math.log1p(0.25 * math.expm1(loss / scale)) for loss in (3, -1)]
        assert grown[0] - grown[1] == pytest.approx(0.25, rel=1e-6)
    else:  # rho = 1 of four rounds, 4 / (2 sigma^2) each
        assert scale**2 == pytest.approx(8, rel=1e-6)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("total", "expected"), [("public", 250.0), (800, 400.0), ("estimated", None)])
def test_the_total_is_that_of_the_subsample(total, expected, neighbours):
    """q N for a known N, with the variance of a binomial size; an estimated one is that of the noisy tables."""
    with curator(total=total, neighbours=neighbours).rounds(1, sampling_rate=0.5) as rounds:
        noisy = rounds.next()
    if expected is None:
        assert noisy.total == pytest.approx(noisy.tables["a", "b"].sum(), rel=1e-12)
    else:
        assert (noisy.total, noisy.total_variance) == (expected, expected / 2)


def test_unclipped_scores_add_up_to_the_gradient():
    """With a norm that clips nobody the sum is T - n mu, up to the grid."""
    grid = 2**16
    beliefs = uniform()
    made, clip = curator(mechanism="gaussian", budget=Budget.zcdp(10**12)), ClippedScore(norm=10, grid=grid)
    with made.rounds(1, sampling_rate=1, clip=clip) as rounds:
        noisy = rounds.next(beliefs)
    exact = count(as_source(CODES), CHAIN).tables.values - 500 * beliefs.marginals.values
    assert noisy.tables.values / grid == pytest.approx(exact, abs=500 / grid + 0.1)
    assert noisy.round.clip.grid == grid
    assert "no counts" in noisy.guarantee()


def test_scores_need_beliefs_and_a_public_total_and_counts_take_none():
    """What is refused before any bit is drawn uses no round up."""
    clip = ClippedScore(norm=2)
    with curator().rounds(1, sampling_rate=1, clip=clip) as rounds:
        for odd in ((), (uniform(TIED),)):
            with pytest.raises(dpgm.StructureError, match="beliefs"):
                rounds.next(*odd)
        rounds.next(uniform())
    with curator().rounds(1, sampling_rate=1) as rounds:
        with pytest.raises(BudgetError, match=r"open them with clip=ClippedScore\("):
            rounds.next(uniform())
        assert rounds.next().round.number == 1
    with pytest.raises(BudgetError, match="how many records"):
        curator(Unread(), total="estimated").rounds(1, sampling_rate=1, clip=clip)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("norm", value) for value in (0, -1, math.nan, math.inf, True, "x", None, 1e-9, 1e9)),
        *(("grid", value) for value in (0, -1, 1.5, True, "8", 2**27)),
    ],
)
def test_clips_that_make_no_sense_are_refused(name, value):
    """Norms are positive, finite, and within 26 bits of the grid; grids are whole numbers from 1."""
    with pytest.raises(BudgetError, match={"norm": "clip norm", "grid": "grid"}[name]):
        ClippedScore(**{"norm": 1, name: value})


def with_ledger(tmp_path, source=CODES, budget=3, **more):
    ledger = dpgm.Ledger.create(tmp_path / "x.ledger", name="x", budget=Budget.pure(budget), neighbours="add-remove")
    return ledger, curator(source, **{"budget": Budget.pure(3), "ledger": ledger, "unit": ledger.terms.unit} | more)


def test_everything_is_charged_at_opening(tmp_path):
    """The ledger holds the whole charge before the first round, and no more after the last; leaving marks it."""
    ledger, made = with_ledger(tmp_path, save_to=tmp_path / "r.dpgm")
    with made.rounds(5, sampling_rate=0.5, budget=Budget.pure(2)) as rounds:
        assert ledger.spent() == Budget.pure(2) == made.budget - made.remaining
        assert [entry.status for entry in ledger.history()] == ["charged"]
        rounds.next()
        last = rounds.next()
    assert ledger.spent() == Budget.pure(2)  # stopping early refunds nothing
    assert [entry.status for entry in ledger.history()] == ["released"]
    (kept,) = made.released
    assert kept.tables is last.tables and kept.saved_as == tmp_path / "r.dpgm"
    saved = load_release(tmp_path / "r.dpgm")
    assert saved.tables.values.tolist() == last.tables.values.tolist()
    assert saved.cost == Budget.pure(2) == last.cost and saved.round.number == 2
    assert "round 2 of 5" in saved.guarantee()


def test_a_kill_between_charge_and_noise_leaves_the_charge(tmp_path):
    randomness = Hooked(KeyboardInterrupt(), armed=0)
    _, made = with_ledger(tmp_path, randomness=randomness)
    with pytest.raises(KeyboardInterrupt), made.rounds(5, sampling_rate=0.5) as rounds:
        randomness.armed = 1
        rounds.next()
    assert dpgm.Ledger.open(tmp_path / "x.ledger").spent() == Budget.pure(3)


def test_no_round_beyond_the_last_and_none_after_the_end():
    """Entering the same rounds again gives no more, and leaving once closes them."""
    with curator().rounds(2, sampling_rate=1) as rounds:
        rounds.next()
        with rounds as again:
            again.next()
        with pytest.raises(BudgetError, match="closed"):
            rounds.next()
    with curator().rounds(1, sampling_rate=1) as rounds:
        rounds.next()
        with pytest.raises(BudgetError, match="used up"):
            rounds.next()
    with pytest.raises(BudgetError, match="closed"):
        rounds.next()


def test_leaving_forgets_the_records():
    made = curator()
    with made.rounds(1, sampling_rate=1) as rounds:
        held = weakref.ref(rounds._open_records)
        rounds.next()
    gc.collect()
    assert held() is None, made


def test_reprs_hide_the_records():
    with curator().rounds(3, sampling_rate=1) as rounds:
        assert repr(rounds) == "LiveRounds(0 of 3 taken, sampling rate 1)"
        assert repr(rounds._open_records) == "Persons(hidden)"


REFUSED = {
    "too much": ({}, {"budget": Budget.pure(11)}, dpgm.Overspent),
    "another kind": ({}, {"budget": Budget.zcdp(1)}, BudgetError),
    "no budget": ({}, {"budget": 1.0}, BudgetError),
    "rate 0": ({}, {"sampling_rate": 0}, BudgetError),
    "rate above 1": ({}, {"sampling_rate": 1.01}, BudgetError),
    "rate NaN": ({}, {"sampling_rate": math.nan}, BudgetError),
    "rate True": ({}, {"sampling_rate": True}, BudgetError),
    "rate text": ({}, {"sampling_rate": "half"}, BudgetError),
    "no rounds": ({}, {"n": 0}, BudgetError),
    "rounds True": ({}, {"n": True}, BudgetError),
    "rounds 1.5": ({}, {"n": 1.5}, BudgetError),
    "clip text": ({}, {"clip": "2"}, BudgetError),
    "pure for Gaussian": ({"mechanism": "gaussian"}, {}, BudgetError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_touch_no_record_and_charge_nothing(name):
    terms, call, error = REFUSED[name]
    made = curator(Unread(), budget=Budget.pure(10), **terms)
    arguments = {"n": 3, "sampling_rate": 0.5} | call
    with pytest.raises(error):
        made.rounds(arguments.pop("n"), **arguments)
    assert made.remaining == Budget.pure(10)


def test_a_full_ledger_refuses_before_reading(tmp_path):
    ledger, made = with_ledger(tmp_path, Unread(), budget=1)
    with pytest.raises(dpgm.Overspent):
        made.rounds(3, sampling_rate=0.5)
    assert ledger.history() == ()


def test_a_source_that_fails_costs_nothing():
    """Reading comes before the charge: a file that cannot be read is not paid for, and its words are withheld."""

    class Broken:
        def batches(self, domain, columns):
            raise ValueError("Alice is 42")

    made = curator(Broken(), budget=Budget.pure(1))
    with pytest.raises(dpgm.DataError) as caught:
        made.rounds(3, sampling_rate=0.5)
    assert made.remaining == Budget.pure(1) and "Alice" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_noise_drawn_has_the_variance_it_says(mechanism):
    """Over 40 rounds without records, within 6 standard errors (false alarm below 1e-8; half the noise is 30 off)."""
    made = curator(as_source(CODES[:0]), mechanism=mechanism, budget=Budget.approx(1, 1e-6))
    with made.rounds(40, sampling_rate=0.5) as rounds:
        drawn = [rounds.next() for _ in range(40)]
    values = np.concatenate([noisy.tables.values for noisy in drawn]).astype(float)
    variance = drawn[0].noise[0].variance
    error = variance * math.sqrt(5 / len(values))  # kurtosis 6 of Laplace; 3 of a Gaussian
    assert abs(np.mean(values**2) - variance) < 6 * error


def test_threads_take_each_round_once(tmp_path):
    """Eight threads ask for five rounds, drawn slowly: five come out, and the list and the file hold the last."""

    made = curator(randomness=Hooked(lambda: time.sleep(0.002)), save_to=tmp_path / "r.dpgm")
    taken, refused, start = [], [], threading.Barrier(8)

    def ask():
        start.wait()
        try:
            taken.append(rounds.next())
        except BudgetError as error:
            refused.append(str(error))

    with made.rounds(5, sampling_rate=1, budget=Budget.pure(5)) as rounds:
        in_threads(ask, 8)
    assert sorted(one.round.number for one in taken) == [1, 2, 3, 4, 5]
    assert len(refused) == 3 and all("used up" in words for words in refused)
    (last,) = made.released
    assert last.round.number == 5 and last.tables is next(one for one in taken if one.round.number == 5).tables
    assert load_release(tmp_path / "r.dpgm").tables.values.tolist() == last.tables.values.tolist()


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, MemoryError])
def test_a_round_that_fails_once_bits_were_asked_for_is_spent(error, tmp_path):
    """Two rounds, one fails after its number was given: one comes out, and the list and the file hold that one."""

    randomness = Hooked(error(), armed=0)
    made = curator(randomness=randomness, save_to=tmp_path / "r.dpgm")
    with made.rounds(2, sampling_rate=1, budget=Budget.pure(2)) as rounds:
        randomness.armed = 1
        with pytest.raises(BaseException):  # noqa: B017 - the shield makes errors of the subsample its own
            rounds.next()
        assert made.released == ()
        assert rounds.next().round.number == 2
        with pytest.raises(BudgetError, match="used up"):
            rounds.next()
    assert load_release(tmp_path / "r.dpgm").round.number == 2


@pytest.mark.parametrize("way", ["next", "close"])
def test_a_round_is_not_taken_from_within_a_round(way):
    """What is called while a round is drawn can neither draw another nor close them."""
    said = []

    def again():
        try:
            opened.next() if way == "next" else opened.__exit__(None, None, None)
        except BudgetError as error:
            said.append(str(error))

    randomness = Hooked(again, armed=0)
    with curator(randomness=randomness).rounds(3, sampling_rate=0.5) as opened:
        randomness.armed = 1
        assert opened.next().round.number == 1
        assert opened.next().round.number == 2
    assert said == ["this LiveRounds was used by what is called while one of its steps is drawn; wait until it is"]


def test_closing_waits_for_the_round_under_way(tmp_path):
    begun, left = threading.Event(), []

    def pause():
        begun.set()
        time.sleep(0.05)

    randomness = Hooked(pause, armed=0)
    made = curator(randomness=randomness, save_to=tmp_path / "r.dpgm")
    rounds = made.rounds(3, sampling_rate=1)
    rounds.next()
    randomness.armed = 1
    thread = threading.Thread(target=lambda: left.append(rounds.next()))
    thread.start()
    begun.wait()
    rounds.__exit__(None, None, None)
    thread.join()
    assert load_release(tmp_path / "r.dpgm").round.number == 2 == left[0].round.number
    with pytest.raises(BudgetError, match="closed"):
        rounds.next()
