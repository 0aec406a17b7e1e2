"""What a noise may claim: core computes its cost again, holds it to its word, and has unsafe noise allowed by name."""

import math
from fractions import Fraction
from types import SimpleNamespace

import attrs
import numpy as np
import pytest
from attrs import frozen
from scipy.optimize import linprog

import dpgm_core as dpgm
from dpgm_core import Budget, BudgetError, Domain, OptionError, PrivacyEvent, Sensitivity, Structure, Terms, make
from dpgm_core.components.options import describe
from dpgm_core.errors import IncompatiblePlugin
from dpgm_core.privacy import Exactness, residuals
from dpgm_core.privacy.gaussian import discrete_variance
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.measurement import measure
from dpgm_core.privacy.mechanism import CLAMP, add_noise, calibrate, check_claims, check_cost, check_draw
from dpgm_core.privacy.tabulated import TabulatedNoise
from dpgm_testing.privacy_loss import worst_hockey_stick
from dpgm_testing.reference import ReferenceGaussian, ReferenceGaussianNoise, ReferenceLaplace, ReferenceLaplaceNoise
from dpgm_testing.subjects import BUDGETS, SENSITIVITIES
from dpgm_testing.unusual import Power, TruncatedLaplace, TruncatedLaplaceNoise, TwoWidths
from tests.fixtures import Unread, live_curator

ONE = SENSITIVITIES["one cell"]
NOBODY = Sensitivity(l0=0, l1=0, l2_squared=0, linf=0)
MECHANISMS = {
    "pure": (ReferenceLaplace(), TwoWidths(), Power()),
    "zcdp": (ReferenceGaussian(), Power()),
    "approx": (ReferenceGaussian(), TruncatedLaplace()),
}
NOISES = [
    (f"{type(mechanism).__name__}, {budget}, {what}", mechanism.noise(sensitivity, budget), sensitivity)
    for kind, mechanisms in MECHANISMS.items()
    for mechanism in mechanisms
    for budget in BUDGETS[kind]
    for what, sensitivity in SENSITIVITIES.items()
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("noise", "sensitivity"), [one[1:] for one in NOISES], ids=[one[0] for one in NOISES])
def test_a_cost_is_taken_as_it_is_and_not_a_billionth_less(noise, sensitivity):
    """Every noise of the kit passes; with a part in 10^6 less (10 % of a delta, whose bounds are loose) it does not."""
    check_claims(noise, sensitivity)
    cost = noise.cost
    if cost.kind == "approx":
        less = [attrs.evolve(cost, delta=cost.delta * part) for part in (Fraction(1, 10), Fraction(1, 10**300))]
    else:
        less = [cost * part for part in (Fraction(10**6 - 1, 10**6), Fraction(1, 10**300))]
    for claimed in (*less, Budget.zero(cost.kind)):
        with pytest.raises(BudgetError, match="its noise claims to cost"):
            check_cost(claimed, noise.event, sensitivity)
    check_cost(Budget.zero(cost.kind), noise.event, NOBODY)


@frozen(kw_only=True)
class DrawnElsewhere(TabulatedNoise):
    """A tabulated distribution whose draws are a mechanism's own."""

    def draw(self, shape, randomness):
        return np.zeros(shape, np.int64)


def test_tabulated_noise_is_drawn_by_core():
    """Whoever states the distribution and draws by itself is refused, in one line."""
    good = Power().noise(ONE, Budget.pure(1))
    own = DrawnElsewhere(**attrs.asdict(good, recurse=False))
    with pytest.raises(BudgetError, match=r"drawn by core; leave `draw` out.*return a TabulatedNoise$"):
        check_claims(own, ONE)


@pytest.mark.parametrize(
    ("event", "cost"),
    [
        (PrivacyEvent(kind="discrete-gaussian", scale=1e6, sensitivity=1.0), Budget.pure(100)),
        (PrivacyEvent(kind="gaussian", scale=1e6, sensitivity=1.0), Budget.pure(100)),
        (PrivacyEvent(kind="truncated-discrete-laplace", scale=9.0, sensitivity=1.0, bound=10**6), Budget.pure(100)),
        (PrivacyEvent(kind="truncated-discrete-laplace", scale=9.0, sensitivity=1.0, bound=10**6), Budget.zcdp(100)),
    ],
)
def test_some_noise_has_no_such_cost(event, cost):
    """Gaussian noise is never purely private, truncated noise neither that nor zCDP, whatever the amount."""
    with pytest.raises(BudgetError, match=f"costs no {cost.kind} budget at all"):
        check_cost(cost, event, ONE)


@pytest.mark.parametrize("epsilon", ["1/10", "1/2", "9/10", "1"])
@pytest.mark.parametrize("what", SENSITIVITIES)
def test_the_delta_of_laplace_noise_covers_every_shift(what, epsilon):
    """Of brute force nothing below is accepted; for shifts by 1 it is exact, so 1 % more is."""
    sensitivity = SENSITIVITIES[what]
    noise = ReferenceLaplace().noise(sensitivity, Budget.pure(1))
    delta, _ = worst_hockey_stick(noise, sensitivity, float(Fraction(epsilon)))
    if delta > 1e-9:
        with pytest.raises(BudgetError, match="claims to cost"):
            check_cost(Budget.approx(epsilon, Fraction(delta * 0.99)), noise.event, sensitivity)
    if sensitivity.linf == 1:
        check_cost(Budget.approx(epsilon, Fraction(delta * 1.01 + 1e-9)), noise.event, sensitivity)


@pytest.mark.parametrize("scale", [0.4, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("centre", [0.0, 0.2, 0.5])
def test_no_law_with_that_loss_has_less_variance(scale, centre):
    """A linear program over all laws on -60 to 60 whose neighbouring masses differ by e^(1/scale) at most."""
    values, factor = np.arange(-60.0, 61.0), math.exp(-1 / scale)
    steps = np.arange(len(values) - 1)
    falls = np.zeros((2 * len(steps), len(values)))
    falls[steps, steps], falls[steps, steps + 1] = factor, -1
    falls[len(steps) + steps, steps + 1], falls[len(steps) + steps, steps] = factor, -1
    best = linprog(
        (values - centre) ** 2, A_ub=falls, b_ub=np.zeros(len(falls)), A_eq=np.ones((1, len(values))), b_eq=1
    )
    assert best.status == 0
    least = 2 * factor / (1 - factor) ** 2
    assert best.fun >= least * (1 - 1e-3)  # the solver's tolerance
    if not centre:
        assert best.fun <= least * (1 + 1e-3)


@pytest.mark.parametrize("sigma", [0.2, 0.5, 1.0, 3.0, 40.0])
def test_gaussian_noise_has_the_variance_asked_of_it(sigma):
    """The discrete law is above the bound of Chapman and Robbins, and from sigma = 3 on within 10 % of it."""
    floor = 1 / math.expm1(1 / sigma**2)
    assert floor <= discrete_variance(sigma**2)
    if sigma >= 3:
        assert discrete_variance(sigma**2) <= 1.1 * floor


def lying(noise_class, **lies):
    """A mechanism whose noise says what `lies` tell it to, checks nothing and draws nothing but zeros."""
    fields = {name: lies.pop(name) for name in list(lies) if name in attrs.fields_dict(noise_class)}
    members = {name: property(lambda self, value=value: value) for name, value in lies.items()}
    silent = {"__attrs_post_init__": lambda self: None, "draw": lambda self, shape, _: np.zeros(shape, np.int64)}
    liar = type("Liar", (noise_class,), silent | members)
    inner = {ReferenceLaplaceNoise: ReferenceLaplace(), ReferenceGaussianNoise: ReferenceGaussian()}

    class Mechanism:
        own_randomness = None

        def noise(self, sensitivity, budget):
            honest = inner.get(noise_class, TruncatedLaplace()).noise(sensitivity, budget)
            return liar(**attrs.asdict(honest, recurse=False) | fields)

    return Mechanism()


class Lenient(Budget):
    """A budget that is within every other."""

    def __le__(self, other):
        return True


class Mine(PrivacyEvent):
    """An event of one's own."""


WIDE = PrivacyEvent(kind="discrete-laplace", scale=40.0, sensitivity=2.0)
NORMAL = PrivacyEvent(kind="discrete-gaussian", scale=50.0, sensitivity=2.0)
LIARS = [
    (ReferenceLaplaceNoise, {"cost": Budget.zero("pure")}, "claims to cost epsilon = 0"),
    (ReferenceLaplaceNoise, {"cost": Budget.pure("1e-300")}, "claims to cost epsilon = 1e-300, but discrete-laplace"),
    (ReferenceLaplaceNoise, {"cost": Lenient("pure", epsilon=Fraction(1))}, "mechanism fault"),
    (ReferenceLaplaceNoise, {"event": None}, "states no PrivacyEvent as its event, got NoneType"),
    (ReferenceLaplaceNoise, {"event": {"kind": "laplace"}}, "got dict"),
    (ReferenceLaplaceNoise, {"event": Mine(kind="laplace", scale=9.0, sensitivity=2.0)}, "got Mine"),
    (ReferenceLaplaceNoise, {"event": WIDE}, "variance 7.8.*discrete-laplace noise of scale 40 has 3199"),
    (ReferenceLaplaceNoise, {"event": WIDE, "cost": Budget.pure("1/20"), "variance": 1e-12}, "variance 1e-12, but"),
    (ReferenceLaplaceNoise, {"event": attrs.evolve(WIDE, sensitivity=1.0)}, "of 1, but a person can change 2"),
    (ReferenceLaplaceNoise, {"exact": False}, "does not say in `unsafe` why"),
    (ReferenceLaplaceNoise, {"draw": lambda shape, _: np.zeros(shape)}, "says that it is exact, but draws floating"),
    (ReferenceLaplaceNoise, {"support": (-5.0, 5.0)}, "where it ends it betrays the count"),
    (ReferenceLaplaceNoise, {"support": (0.0, math.inf)}, "where it ends it betrays the count"),
    (ReferenceGaussianNoise, {"cost": Budget.zero("zcdp")}, "claims to cost rho = 0"),
    (ReferenceGaussianNoise, {"cost": Budget.zcdp("1e-300")}, "claims to cost rho = 1e-300"),
    (ReferenceGaussianNoise, {"event": NORMAL}, "variance"),
    (TruncatedLaplaceNoise, {"cost": Budget.approx(1, "1e-300")}, "claims to cost"),
    (TruncatedLaplaceNoise, {"support": (-3.0, 3.0)}, "where it ends it betrays the count"),
]


@pytest.mark.parametrize(("noise_class", "lies", "words"), LIARS)
def test_a_lie_is_refused_with_nothing_read_charged_or_drawn(tmp_path, noise_class, lies, words):
    """By releases and by rounds, in one line that says what is claimed and what it costs."""

    budget = {
        ReferenceLaplaceNoise: Budget.pure(1),
        ReferenceGaussianNoise: Budget.zcdp(1),
        TruncatedLaplaceNoise: Budget.approx(1, "1e-6"),
    }[noise_class]
    ledger = Ledger.create(tmp_path / "x.ledger", name="x", budget=budget, neighbours="add-remove")
    chain = Structure.chain(Domain.from_sizes({"a": 2, "b": 2, "c": 2}))
    curator = live_curator(Unread(), chain, lying(noise_class, **lies), budget=budget, ledger=ledger)
    asked = [curator.release]
    if budget.kind != "approx":  # it is asked for zCDP there
        asked.append(lambda: curator.rounds(1, sampling_rate=1))
    for ask in asked:
        with pytest.raises((BudgetError, IncompatiblePlugin), match=words) as caught:
            ask()
        assert "\n" not in str(caught.value) and str(caught.value).startswith("mechanism fault: ")
    assert ledger.history() == () and curator.remaining == budget


def test_a_noise_without_an_event_is_no_noise():
    """Also where rounds of (epsilon, delta) are sought, which ask the event first."""
    eventless = SimpleNamespace(own_randomness=None, noise=lambda _, budget: SimpleNamespace(cost=budget))
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    curator = live_curator(Unread(), structure, eventless, budget=Budget.approx(1, "1e-6"))
    for ask in (curator.release, lambda: curator.rounds(3, sampling_rate=0.5)):
        with pytest.raises(IncompatiblePlugin, match="event"):
            ask()


def test_where_nobody_can_change_a_thing_the_cost_may_be_nothing():
    """One cell under replace-one, one row each: sensitivity 0, and a cost of 0 is no lie; with two rows it is."""
    one_cell = Structure(Domain.from_sizes({"a": 1}), [("a",)])

    def free(sensitivity):
        return attrs.evolve(ReferenceLaplace().noise(sensitivity, Budget.pure(1)), cost=Budget.zero("pure"))

    assert Terms(neighbours="replace-one").sensitivity(one_cell) == NOBODY
    assert calibrate(ReferenceLaplace(), free(NOBODY), NOBODY, Budget.pure(1)).noise.cost.is_zero
    two_rows = Terms(neighbours="replace-one", person="id", rows_per_person=2).sensitivity(one_cell)
    with pytest.raises(BudgetError, match="claims to cost epsilon = 0"):
        calibrate(ReferenceLaplace(), free(two_rows), two_rows, Budget.pure(1))


def test_values_are_clamped_and_never_an_error_after_the_noise():
    """Counts and integer noise beyond 2^61 meet their bounds, so that their sum fits 64 bits."""
    huge = np.array([2**62, -(2**62), 5])
    assert add_noise(huge, huge).tolist() == [2 * CLAMP, -2 * CLAMP, 10]


@pytest.mark.parametrize(
    "noise",
    [None, [1, 2, 3], np.zeros(2), np.zeros((3, 1)), np.array([1.0, np.nan, 0.0]), np.array([1.0, np.inf, 0.0]),
     np.array(["a", "b", "c"]), np.zeros(3, bool)],
)  # fmt: skip
def test_what_is_no_noise_is_a_fault_of_the_mechanism(noise):
    with pytest.raises(BudgetError, match="mechanism fault"):
        check_draw(noise, (3,))


def test_a_noise_that_costs_more_than_was_asked_is_refused():
    """Before anything is charged, as nothing is charged for a measurement."""
    laplace = make("mechanism", "laplace")
    greedy = SimpleNamespace(own_randomness=None, noise=lambda moved, budget: laplace.noise(moved, budget * 2))
    chain = Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2}))
    with pytest.raises(BudgetError, match="asked for epsilon = 1, but its noise costs epsilon = 2"):
        measure(greedy, chain, Terms(neighbours="add-remove"), Budget.pure(1))


@frozen(kw_only=True)
class Wide(Exactness):
    """A mechanism of one's own."""


def test_unsafe_noise_has_to_be_allowed():
    """Exact by default; textbook floats are refused unless allowed, by the mechanism's name and with what to say."""
    assert Wide().exact and Wide(allow_unsafe=True).exact
    assert not Wide(exact=False, allow_unsafe=True).exact
    with pytest.raises(OptionError, match=r"^mechanism 'wide' .* say allow_unsafe = true"):
        Wide(exact=False)


@pytest.mark.parametrize("name", ["exact", "allow_unsafe"])
def test_a_number_is_no_flag(name):
    """1 and "true" are refused, so that no truthy value allows unsafe noise; both are listed with their help."""
    for wrong in (1, "true", None, np.True_):
        with pytest.raises(OptionError, match=f"option '{name}' of mechanism 'wide' must be true or false"):
            Wide(**{name: wrong})
    assert [(one.name, one.default) for one in describe(Wide)] == [("exact", "true"), ("allow_unsafe", "false")]
    assert all(one.help for one in describe(Wide))


def test_a_residual_is_a_number():
    """Whole numbers become doubles of the same shape; NaN is refused."""
    found = residuals(np.array([[1, -2]]))
    assert found.dtype == np.float64 and found.tolist() == [[1.0, -2.0]]
    with pytest.raises(dpgm.InferenceError, match="a residual is NaN"):
        residuals(np.array([0.0, np.nan]))
