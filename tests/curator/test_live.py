"""The curator: the order of a release, what each failure leaves behind, and that no record reaches a message."""

import contextlib
import math
import threading
import traceback
from fractions import Fraction

import attrs
import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Ledger, PrivacyEvent, SeededRandomness, Structure, Tables, Terms
from dpgm_core.errors import (
    BudgetError,
    DataError,
    DpgmError,
    IncompatiblePlugin,
    LearningFailed,
    ModelFileError,
    OptionError,
    Overspent,
    StructureError,
)
from dpgm_core.privacy.samplers import discrete_laplace
from dpgm_core.releases.release_file import load_release
from tests.fixtures import in_threads, live_curator

DOMAIN = Domain.from_sizes({"a": 2, "b": 2, "c": 2})
STRUCTURE = Structure.chain(DOMAIN)
CODES = np.array([[0, 0, 0], [1, 1, 1], [1, 0, 1], [0, 1, 1]] * 25)
SECRET = "PLANTED-77c1"


class RecordedLedger(Ledger):
    """Logs its stages; `fail` decides whether they happen."""

    log: list
    fail: tuple = ()

    def _stage(self, name):
        if name in self.fail:
            raise RuntimeError(f"killed at {name}")
        self.log.append(name)

    def check(self, budget):
        self._stage("funds")
        super().check(budget)

    def charge(self, budget, *, note="", conditions=()):
        self._stage("charge")
        return super().charge(budget, note=note, conditions=conditions)

    def mark_released(self, entry):
        self._stage("mark")
        super().mark_released(entry)


class Source:
    def __init__(self, log, fail=()):
        self.log, self.fail = log, fail

    def batches(self, domain, columns):
        if "count" in self.fail:
            raise RuntimeError(SECRET)
        self.log.append("count")
        yield [CODES[:, domain.names.index(name)].astype(np.uint8) for name in columns]


class Learner:
    """Takes one release and returns the uniform model, or fails."""

    def __init__(self, log, fail=()):
        self.log, self.fail = log, fail

    def check(self, structure, inference):
        pass

    def learn(self, curator, inference, *, randomness, progress):
        curator.release()
        self.log.append("learn")
        if "learn" in self.fail:
            raise ArithmeticError("no luck")
        return dpgm.Fit(model=dpgm.Model(curator.structure, Tables.zeros(curator.structure)))


@attrs.frozen
class Noise:
    """A third party's noise: an inner exact Laplace noise, logged."""

    inner: object
    log: list = attrs.field(eq=False, factory=list)
    fail: tuple = ()
    cost = property(lambda self: self.inner.cost)
    event = property(lambda self: self.inner.event)
    variance = property(lambda self: self.inner.variance)
    exact, unsafe, support, log_concave = True, None, (-math.inf, math.inf), True
    dual = property(lambda self: self.inner.dual)

    def draw(self, shape, randomness):
        if "noise" in self.fail and shape != (2, 1):
            raise RuntimeError("killed at noise")
        if shape != (2, 1):
            self.log.append("noise")
        return self.inner.draw(shape, randomness)

    def logpdf(self, residual):
        return self.inner.logpdf(residual)

    def score(self, residual):
        return self.inner.score(residual)


class Mechanism:
    """A third party's mechanism that nobody registered; `change` spoils its noise."""

    own_randomness = None

    def __init__(self, log=None, fail=(), make=Noise):
        self.log, self.fail, self.make = [] if log is None else log, fail, make

    def noise(self, sensitivity, budget):
        return self.make(dpgm.make("mechanism", "laplace").noise(sensitivity, budget), self.log, self.fail)


def opened(tmp_path, budget="1"):
    path = tmp_path / "x.ledger"
    return Ledger.create(path, name="x", budget=Budget.pure(budget), neighbours="add-remove", unit="one person")


def run(tmp_path, fail=(), log=None):
    """A fit of fakes that log each stage; returns the log."""
    log = [] if log is None else log
    ledger = RecordedLedger.open(opened(tmp_path).path)
    ledger.log, ledger.fail = log, fail
    dpgm.fit(
        Source(log, fail), STRUCTURE, Budget.pure(1), Mechanism(log, fail), Learner(log, fail),
        neighbours="add-remove", ledger=ledger, save_release=tmp_path / "x.release.dpgm",
    )  # fmt: skip
    return log


def test_the_order_of_a_release(tmp_path):
    """Funds of the run and of the release, count, charge, a draw per table, the file before the ledger's mark."""
    log = run(tmp_path)
    assert log == ["funds", "funds", "count", "charge", "noise", "noise", "mark", "learn"]
    assert (tmp_path / "x.release.dpgm").exists()


@pytest.mark.parametrize(
    ("stage", "reached", "charges", "saved"),
    [
        ("funds", [], 0, False),
        ("count", ["funds", "funds"], 0, False),
        ("charge", ["funds", "funds", "count"], 0, False),
        ("noise", ["funds", "funds", "count", "charge"], 1, False),
        ("mark", ["funds", "funds", "count", "charge", "noise", "noise"], 1, True),
        ("learn", ["funds", "funds", "count", "charge", "noise", "noise", "mark", "learn"], 1, True),
    ],
)
def test_every_failure_leaves_the_right_state(tmp_path, stage, reached, charges, saved):
    log = []
    with pytest.raises(Exception) as caught:
        run(tmp_path, fail=(stage,), log=log)
    assert isinstance(caught.value, LearningFailed) is saved
    assert log == reached
    assert len(Ledger.open(tmp_path / "x.ledger").history()) == charges
    assert {path.name for path in tmp_path.glob("*.dpgm")} == ({"x.release.dpgm"} if saved else set())


def test_the_release_of_a_failed_learner_serves_again(tmp_path):
    ledger = opened(tmp_path)
    path = tmp_path / "x.release.dpgm"
    with pytest.raises(LearningFailed, match="ArithmeticError: no luck; the release is paid for") as caught:
        dpgm.fit(
            CODES, STRUCTURE, Budget.pure(1), "laplace", Learner([], ("learn",)),
            neighbours="add-remove", ledger=ledger, save_release=path,
        )  # fmt: skip
    for release in (*caught.value.releases, load_release(path)):
        assert dpgm.learn(release).model.release is release
    assert len(ledger.history()) == 1


@pytest.mark.parametrize("fault", [SystemExit(0), KeyboardInterrupt()])
def test_a_learner_that_leaves_does_not_lose_the_release(fault):
    """sys.exit in a plugin is its fault, not the end of the program; an interruption passes, the release with it."""

    class Leaves(Learner):
        def learn(self, curator, inference, *, randomness, progress):
            curator.release()
            raise fault

    interrupted = isinstance(fault, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt if interrupted else LearningFailed) as caught:
        dpgm.fit(CODES, STRUCTURE, Budget.pure(1), learner=Leaves([]), neighbours="add-remove")
    failed = caught.value.__cause__ if interrupted else caught.value
    assert [one.cost for one in failed.releases] == [Budget.pure(1)]
    assert interrupted or isinstance(failed.__cause__, IncompatiblePlugin)


def test_a_learner_that_returns_nonsense_is_named():
    class Nonsense(Learner):
        def learn(self, curator, inference, *, randomness, progress):
            return curator.release()

    with pytest.raises(LearningFailed, match="Nonsense returned NoisyTables") as caught:
        dpgm.fit(CODES, STRUCTURE, Budget.pure(1), learner=Nonsense([]), neighbours="add-remove")
    assert isinstance(caught.value.__cause__, IncompatiblePlugin) and caught.value.releases[0].total >= 1


# --- faults of mechanisms -------------------------------------------------------------------------------------------


def spoiled(**members):
    return type("Spoiled", (Noise,), members)


NAN = spoiled(draw=lambda self, shape, randomness: np.full(shape, np.nan))
FLAT = spoiled(draw=lambda self, shape, randomness: np.zeros(3, np.int64))
LIST = spoiled(draw=lambda self, shape, randomness: [0] * math.prod(shape))
TEXT = spoiled(draw=lambda self, shape, randomness: np.full(shape, "x"))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (spoiled(cost=property(lambda self: self.inner.cost * 2)), "asked for epsilon = 1, but its noise costs"),
        (spoiled(cost=1.0), "costs 1.0"),
        (spoiled(cost=Budget.zcdp(1)), "different kinds"),
        (spoiled(variance=math.nan), "variance nan"),
        (spoiled(variance=math.inf), "variance inf"),
        (spoiled(variance=0.0), "variance 0"),
        (spoiled(variance="1"), "variance '1'"),
        (NAN, "NaN or infinite"),
        (FLAT, "shape"),
        (LIST, "got list"),
        (TEXT, "got <U1"),
        (lambda *_: object(), "has no cost"),
    ],
)
def test_a_faulty_mechanism_is_refused_before_anything_is_read_or_charged(tmp_path, make, words):
    """What it costs, its variance, and a trial draw are looked at first."""
    log = []
    ledger = opened(tmp_path)
    with pytest.raises(DpgmError, match=words):
        dpgm.release(
            Source(log), STRUCTURE, Budget.pure(1), Mechanism(make=make), neighbours="add-remove", ledger=ledger
        )
    assert log == []
    assert ledger.history() == ()


def test_a_mechanism_that_fails_late_is_charged_and_leaks_nothing(tmp_path):
    def draw(self, shape, randomness):
        return self.inner.draw(shape, randomness) if shape == (2, 1) else np.full(shape, np.nan)

    ledger = opened(tmp_path)
    with pytest.raises(BudgetError, match="NaN"):
        dpgm.release(
            CODES, STRUCTURE, Budget.pure(1), Mechanism(make=spoiled(draw=draw)),
            neighbours="add-remove", ledger=ledger, save_release=tmp_path / "x.dpgm",
        )  # fmt: skip
    assert len(ledger.history()) == 1
    assert not (tmp_path / "x.dpgm").exists()


def test_an_unregistered_mechanism_works_and_its_release_is_saved(tmp_path):
    """An object nobody registered goes through fit; the paid release lands on disk, and loading says why it cannot."""

    class Bare:  # no attrs class at all
        cost, variance, dual = Budget.pure(1), 8.0, None
        event = PrivacyEvent(kind="discrete-laplace", scale=2.0, sensitivity=2.0)
        exact, unsafe, support, log_concave = True, None, (-math.inf, math.inf), True

        def draw(self, shape, randomness):
            return discrete_laplace(Fraction(2), math.prod(shape), randomness).reshape(shape)

        def logpdf(self, residual):
            return -np.abs(residual) / 2

        def score(self, residual):
            return -np.sign(residual) / 2

    for number, noise in enumerate((None, Bare())):
        mechanism = Mechanism() if noise is None else Mechanism(make=lambda *_: noise)  # noqa: B023
        path = tmp_path / f"{number}.release.dpgm"
        done = dpgm.fit(CODES, STRUCTURE, Budget.pure(1), mechanism, neighbours="add-remove", save_release=path)
        done.model.save(tmp_path / f"{number}.dpgm")
        assert path.exists()
        for file in (path, tmp_path / f"{number}.dpgm"):
            with pytest.raises(ModelFileError, match="not registered"):
                load_release(file)


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"budget": 1.0}, BudgetError, "Budget.pure"),
        ({"budget": Budget.zero("pure")}, BudgetError, "positive"),
        ({"budget": Budget.approx(1, 1e-6)}, BudgetError, "laplace"),
        ({"structure": [("a", "b")]}, StructureError, "Structure"),
        ({"randomness": 7}, OptionError, r"SeededRandomness\(seed\)"),
        ({"randomness": True}, OptionError, "Randomness, got bool"),
        ({"ledger": "x.ledger"}, OptionError, "ledger must be a Ledger"),
        ({"ledger": 7}, OptionError, "ledger must be a Ledger"),
        ({"save_to": 2.5}, OptionError, "a path or a text, got float"),
        ({"save_to": b"x.dpgm"}, OptionError, "a path or a text, got bytes"),
        ({"progress": 5}, OptionError, "progress must be a function"),
        ({"mechanism": "laplace"}, OptionError, "mechanism must be a mechanism object"),
        ({"mechanism": Mechanism}, OptionError, "got the class Mechanism"),
        ({"save_to": "FILE"}, ModelFileError, "exists"),
        ({"save_to": "FILE/x.dpgm"}, ModelFileError, "no folder"),
        ({"save_to": "n" * 300}, ModelFileError, "cannot write"),
    ],
)
def test_wrong_requests_read_and_charge_nothing(tmp_path, change, error, words):
    (tmp_path / "FILE").write_text("paid")
    if isinstance(change.get("save_to"), str):
        change = {"save_to": tmp_path / change["save_to"]}
    log = []
    with pytest.raises(error, match=words):
        curator(Source(log), **change).release()
    assert log == []
    assert (tmp_path / "FILE").read_text() == "paid"


def curator(source=CODES, structure=STRUCTURE, **settings):
    return live_curator(source, structure, **settings)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"budget": {}}, BudgetError, "empty"),
        ({"budget": {("a", "b"): Budget.pure(1), ("b", "a"): Budget.pure(1)}}, BudgetError, "two budgets"),
        ({"budget": {("a", "b"): Budget.pure(1)}, "cliques": [("a", "b"), ("c",)]}, BudgetError, "no budget"),
        ({"budget": {("a", "b"): 1.0}}, BudgetError, "Budget.pure"),
        ({"budget": {("a",): Budget.pure("0.6"), ("b",): Budget.pure("0.6")}}, Overspent, "only epsilon = 1 remains"),
        ({"budget": {("a", "c"): Budget.pure(1)}}, StructureError, "no clique of the model contains"),
        ({"cliques": [("a", "c")]}, StructureError, "no clique of the model contains"),
        ({"cliques": []}, StructureError, "at least one clique"),
        ({"cliques": 5}, StructureError, "a list of cliques, got int"),
        ({"cliques": [5]}, StructureError, "a list of attribute names"),
        ({"budget": {7: Budget.pure(1)}}, StructureError, "a list of attribute names"),
        ({"accept": 5}, OptionError, "accept must be a function"),
        ({"budget": Budget.zcdp(1)}, BudgetError, "different kinds"),
        (
            {"split": "evn"},
            OptionError,
            "split must be one of even, optimal, contrasts, sharper; got 'evn'; did you mean 'even'",
        ),
        ({"split": 2}, OptionError, "split must be one of"),
        ({"split": "even", "budget": {("a", "b"): Budget.pure(1)}}, BudgetError, "each clique was given, and split ="),
    ],
)
def test_wrong_releases_are_refused(arguments, error, words):
    made = curator()
    with pytest.raises(error, match=words):
        made.release(**arguments)
    assert made.remaining == made.budget


def of_two_sizes(**settings):
    return curator(structure=Structure(DOMAIN, [("a",), ("b", "c")]), **settings)


def test_a_learner_may_ask_for_another_split():
    """Either way, for one release; the curator's own is used again after it; the cost is the same."""
    scales = {}
    for own in ("even", "optimal"):
        made = of_two_sizes(split=own, budget=Budget.pure(3))
        for asked in (None, "even", "optimal"):
            release = made.release(budget=Budget.pure(1), split=asked)
            assert release.cost == Budget.pure(1)
            scales[own, asked] = [noise.scale for noise in release.noise]
        assert made.remaining.is_zero
    even, optimal = scales["even", "even"], scales["even", "optimal"]
    # epsilon in proportion to the cube root of the cells
    assert even == [2, 2] and [float(scale) for scale in optimal] == pytest.approx(
        [1 + 2 ** (1 / 3), 1 + 2 ** (-1 / 3)], rel=1e-4
    )
    assert scales == {("even", None): even, ("optimal", None): optimal} | {
        (own, asked): {"even": even, "optimal": optimal}[asked]
        for own in ("even", "optimal")
        for asked in ("even", "optimal")
    }


def test_a_split_that_is_asked_for_holds_for_gaussian_noise_under_epsilon_and_delta():
    """Unequal standard deviations, both charged together as the whole; variances by the square root of the cells."""
    budget = Budget.approx(1, "1e-5")
    release = of_two_sizes(mechanism=dpgm.make("mechanism", "gaussian"), budget=budget).release(split="optimal")
    assert release.cost == budget
    one, two = release.variances
    assert one / two == pytest.approx(2**0.5, rel=1e-3)
    even = of_two_sizes(mechanism=dpgm.make("mechanism", "gaussian"), budget=budget).release()
    assert two < even.variances[0] == even.variances[1] < one


def test_tied_groups_are_measured_whole():
    """A clique inside a group cannot be measured apart; naming one clique of the group measures the group."""
    tied = Structure(DOMAIN, [], tied=[[("a", "b"), ("b", "c")]])
    made = curator(structure=tied)
    with pytest.raises(StructureError, match="tied group"):
        made.release(cliques=[("a",)])
    release = made.release(cliques=[("c", "b")])
    assert release.structure == tied
    assert release.noise[0].scale == 2


# --- totals and stamps ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("neighbours", "total", "policy", "conditional"),
    [
        ("add-remove", "estimated", "estimated", False),
        ("add-remove", "public", "public", True),
        ("replace-one", "public", "public", False),
        ("add-remove", 90, "declared", False),
    ],
)
def test_the_total_and_its_stamp(neighbours, total, policy, conditional):
    release = dpgm.release(CODES, STRUCTURE, Budget.pure(10), terms=dpgm.Terms(neighbours=neighbours, total=total))
    assert release.total_policy == policy
    assert ("CONDITIONAL ON PUBLIC N" in release.guarantee()) is conditional
    if policy == "estimated":
        # P(|error| > 20) < 1e-10: two sums of four cells of scale at most 0.4
        assert release.total == pytest.approx(100, abs=20)
        assert release.total_variance == pytest.approx(sum(release.variances[:1]) * 4 / 2)
    else:
        assert (release.total, release.total_variance) == ({"public": 100, "declared": 90}[policy], 0)
    assert release.private
    assert neighbours in release.guarantee()


def test_a_seed_stamps_everything(tmp_path):
    """private = false on the release, its file, the model, its file, and in the guarantee's first words."""
    done = dpgm.fit(
        CODES, STRUCTURE, Budget.pure(1), neighbours="add-remove", randomness=SeededRandomness(1),
        save_release=tmp_path / "r.dpgm",
    )  # fmt: skip
    done.model.save(tmp_path / "m.dpgm")
    again = dpgm.release(CODES, STRUCTURE, Budget.pure(1), neighbours="add-remove", randomness=SeededRandomness(1))
    assert np.array_equal(done.release.tables.values, again.tables.values)
    for thing in (done.release, load_release(tmp_path / "r.dpgm"), done.model, dpgm.load_model(tmp_path / "m.dpgm")):
        assert thing.private is False
        assert thing.guarantee().startswith("NOT PRIVATE (private = false)")


def test_textbook_noise_is_stamped_unsafe():
    unsafe = {"name": "laplace", "exact": False, "allow_unsafe": True}
    release = dpgm.release(CODES, STRUCTURE, Budget.pure(1), unsafe, neighbours="add-remove")
    assert release.tables.values.dtype == np.float64
    assert release.guarantee().startswith("UNSAFE: textbook floating-point")


# --- no record in a message -----------------------------------------------------------------------------------------


class Quoting:
    """A source that quotes a record in whatever way `how` says."""

    def __init__(self, how):
        self.how = how

    def batches(self, domain, columns):
        yield [np.zeros(2, np.uint8) for _ in columns]
        if self.how == "exit":
            raise SystemExit(f"row {SECRET}")
        if self.how == "base":
            raise BaseException(f"row {SECRET}")
        if self.how == "own":
            raise DataError(f"row {SECRET}")
        try:
            int(SECRET)
        except ValueError as error:
            if self.how == "cause":
                raise DataError("a bad row") from error
            if self.how == "note":
                error.add_note(SECRET)
            raise


@pytest.mark.parametrize("how", ["plain", "note", "cause", "own", "exit", "base"])
@pytest.mark.parametrize("keyed", [False, True])
def test_no_record_reaches_a_message(how, keyed, caplog, capsys):
    """Message, notes, causes, contexts, printed traceback, log and streams: none holds what the source quoted."""
    source = Quoting(how)
    terms = {}
    if keyed:
        source.keyed_batches = lambda domain, columns, key: ((codes, None) for codes in source.batches(domain, columns))
        terms = {"person": "id"}
    with pytest.raises(DataError) as caught:
        dpgm.release(source, STRUCTURE, Budget.pure(1), terms=Terms(neighbours="add-remove", **terms))
    error = caught.value
    shown = "".join(traceback.format_exception(error)) + caplog.text + "".join(capsys.readouterr())
    while error is not None:
        shown += repr(error) + "".join(getattr(error, "__notes__", ()))
        error = error.__cause__ or error.__context__
    assert SECRET not in shown
    assert "Quoting" in shown


def test_cores_own_words_about_data_are_kept():
    """A missing column is named: the header is public, and core said it."""
    with pytest.raises(DataError, match="'c'"):
        dpgm.release({"a": CODES[:, 0], "b": CODES[:, 1]}, STRUCTURE, Budget.pure(1), neighbours="add-remove")


def test_threads_together_spend_no_more_than_the_budget():
    """The cost is set aside before the records are read, so releases under way at once cannot share it."""
    both = threading.Barrier(4)

    class Waiting:
        def batches(self, domain, columns):
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(0.2)
            yield [np.zeros(3, np.uint8) for _ in columns]

    shared, results = curator(Waiting()), []

    def release():
        try:
            results.append(shared.release(budget=Budget.pure(1)))
        except Overspent as error:
            results.append(error)

    in_threads(release, 4)
    assert sorted(type(result).__name__ for result in results) == ["NoisyTables", "Overspent", "Overspent", "Overspent"]
    assert shared.remaining.is_zero


def test_a_message_that_a_plugin_had_core_write_is_withheld():
    """A source that hands a record to core gets core's error about it; its words still do not pass."""
    source = {"__name__": "third_party"}
    code = (
        "class Source:\n    def batches(self, domain, columns):\n"
        "        domain[columns[0]].label_code('Bob Secret')\n        yield []\n"
    )
    exec(code, source)
    with pytest.raises(DataError) as caught:
        curator(source["Source"]()).release()
    assert "Secret" not in str(caught.value) and caught.value.__context__ is None


def test_a_public_total_beside_a_person_key_is_stamped():
    """Under replace-one a person who loses the key joins the keyless ones, so the exact number of rows can change."""
    rows = {"id": np.array([1, 2, 3]), **{name: np.zeros(3, int) for name in "abc"}}
    terms, seed = Terms(neighbours="replace-one", total="public"), SeededRandomness(1)
    plain = dpgm.release(rows, STRUCTURE, Budget.pure(1), terms=terms, randomness=seed)
    keyed = dpgm.release(rows, STRUCTURE, Budget.pure(1), terms=attrs.evolve(terms, person="id"), randomness=seed)
    assert "CONDITIONAL" not in plain.guarantee() and "CONDITIONAL" in keyed.guarantee()
