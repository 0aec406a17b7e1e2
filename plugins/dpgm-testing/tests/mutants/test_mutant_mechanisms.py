"""Deliberately wrong mechanisms, each killed by the check meant for it."""

import math
import os
from fractions import Fraction

import attrs
import numpy as np
import pytest
from attrs import frozen
from numpy.random import default_rng

from dpgm_core import Budget, BudgetError, DualTerm, PrivacyEvent, Sensitivity, option
from dpgm_core.privacy.gaussian import analytic_delta, least_variance
from dpgm_core.privacy.samplers import bounded_variance, discrete_laplace
from dpgm_testing import checks_of
from dpgm_testing.reference import ReferenceGaussian, ReferenceGaussianNoise, ReferenceLaplace, ReferenceLaplaceNoise
from dpgm_testing.unusual import TruncatedLaplace, TruncatedLaplaceNoise, TwoWidths, TwoWidthsNoise

PERCENT = Fraction(99, 100)


def fields(noise):
    return attrs.asdict(noise, recurse=False)


def laplace_with(noise_class):
    """Reference Laplace calibration with another noise class."""

    @frozen(kw_only=True)
    class Mutant(ReferenceLaplace):
        def noise(self, sensitivity, budget):
            return noise_class(**fields(super().noise(sensitivity, budget)))

    return Mutant


# --- what is claimed ----------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class ScaleOnePercentSmall(ReferenceLaplace):
    """Claims epsilon with a scale of 0.99 L1 / epsilon."""

    def noise(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, scale=good.scale * PERCENT)


@frozen(kw_only=True)
class CalibratedToLinf(ReferenceLaplace):
    """Hides one cell's change only."""

    def noise(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, scale=max(sensitivity.linf, 1) / budget.epsilon)


@frozen(kw_only=True)
class StaircaseNoise(ReferenceLaplaceNoise):
    """log mass falls by epsilon per L1: right for one cell moved by L1, wrong for L1 cells moved by 1."""

    def logpdf(self, residual):
        epsilon = self.l1 / float(self.scale)
        steps = np.floor(np.abs(residual) / self.l1)
        log_normaliser = math.log(2 * self.l1 / -math.expm1(-epsilon) - 1)
        return -epsilon * steps - log_normaliser


@frozen(kw_only=True)
class CutOffNoise(ReferenceLaplaceNoise):
    """No noise beyond 5 scales: an output there betrays the shift."""

    def logpdf(self, residual):
        return np.where(np.abs(residual) > 5 * float(self.scale), -np.inf, super().logpdf(residual))


@frozen(kw_only=True)
class GaussianByLinf(ReferenceGaussian):
    """rho for one cell's change only."""

    def noise(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, sigma_squared=bounded_variance(good.sigma_squared / good.l2_squared))


@frozen(kw_only=True)
class GaussianSigmaOnePercentSmall(ReferenceGaussian):
    """sigma is 0.99 of what rho, or (epsilon, delta), needs."""

    def noise(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, sigma_squared=bounded_variance(good.sigma_squared * PERCENT**2))


@frozen(kw_only=True)
class GaussianByBalleWang(ReferenceGaussian):
    """The continuous Gaussian's (epsilon, delta) for discrete noise."""

    def noise(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        if budget.kind == "zcdp":
            return good
        width = least_variance(analytic_delta, sensitivity, budget.epsilon, budget.delta)
        return attrs.evolve(good, sigma_squared=width)


@frozen(kw_only=True)
class CostsMore(ReferenceLaplace):
    """Rounds its epsilon up."""

    def noise(self, sensitivity, budget):
        if not isinstance(budget, Budget) or budget.is_zero:
            raise BudgetError("no")
        return super().noise(sensitivity, Budget.pure(budget.epsilon + Fraction(1, 10**6)))


@frozen(kw_only=True)
class CostsNothing(ReferenceLaplace):
    """Claims a cost of 0."""

    def noise(self, sensitivity, budget):
        return attrs.evolve(super().noise(sensitivity, budget), cost=Budget.zero("pure"))


@frozen(kw_only=True)
class SilentNoise(ReferenceLaplaceNoise):
    """Adds nothing."""

    def draw(self, shape, randomness):
        return np.zeros(shape, np.int64)


@frozen(kw_only=True)
class CostsNextToNothing(ReferenceLaplace):
    """Claims 1e-300, and adds no noise."""

    def noise(self, sensitivity, budget):
        return SilentNoise(**fields(super().noise(sensitivity, budget)) | {"cost": Budget.pure("1e-300")})


@frozen(kw_only=True)
class AllTalk(ReferenceLaplace):
    """Says in every word that it has a thousand times the noise, at a thousandth of the cost, and adds none."""

    def noise(self, sensitivity, budget):
        return SilentNoise(**fields(super().noise(sensitivity, Budget.pure(budget.epsilon / 1000))))


@frozen(kw_only=True)
class NoVarianceNoise(ReferenceLaplaceNoise):
    """A wide event, next to no variance."""

    @property
    def variance(self):
        return 1e-300


@frozen(kw_only=True)
class BoastfulEventNoise(ReferenceLaplaceNoise):
    """Tells the accountant of 1 % more noise than there is."""

    @property
    def event(self):
        return PrivacyEvent(kind="discrete-laplace", scale=1.01 * float(self.scale), sensitivity=float(self.l1))


@frozen(kw_only=True)
class RefusesAll:
    """Serves nobody."""

    own_randomness = None

    def noise(self, sensitivity, budget):
        raise BudgetError("not today")


@frozen(kw_only=True)
class TakesAnything(ReferenceLaplace):
    """Reads a bare number as epsilon."""

    def noise(self, sensitivity, budget):
        if isinstance(budget, (int, float)) and budget > 0 and math.isfinite(budget):
            budget = Budget.pure(budget)
        return super().noise(sensitivity, budget)


@frozen(kw_only=True)
class MoreBudgetMoreNoise(ReferenceLaplace):
    """Never less noise than at epsilon = 1, and ten times as much above 2."""

    def noise(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, scale=good.scale * (10 if budget.epsilon > 2 else 1))


# --- large changes, large budgets, last digits --------------------------------------------------------------------


@frozen(kw_only=True)
class CapsL1At30(ReferenceLaplace):
    """Believes that nobody changes more than 30 records."""

    def noise(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, scale=min(good.l1, 30) / budget.epsilon)


@frozen(kw_only=True)
class CapsLinfAt16(ReferenceGaussian):
    """Believes that no cell moves by more than 16, whatever the budget."""

    def noise(self, sensitivity, budget):
        super().noise(sensitivity, budget)  # refuses what is no sensitivity
        capped = attrs.evolve(sensitivity, l2_squared=min(sensitivity.l2_squared, 16**2 * sensitivity.l0))
        good = super().noise(capped, budget)
        return attrs.evolve(good, l2_squared=max(sensitivity.l2_squared, 1), cost=budget)


@frozen(kw_only=True)
class CapsCellsAt64(ReferenceGaussian):
    """Believes, for (epsilon, delta) only, that nobody changes more than 64 cells."""

    def noise(self, sensitivity, budget):
        if isinstance(budget, Budget) and budget.kind != "approx":
            raise BudgetError("(epsilon, delta) only")
        super().noise(sensitivity, budget)  # refuses what is no sensitivity
        good = super().noise(attrs.evolve(sensitivity, l2_squared=min(sensitivity.l2_squared, 64)), budget)
        return attrs.evolve(good, l2_squared=max(sensitivity.l2_squared, 1))


@frozen(kw_only=True)
class BoldFromTenOn(ReferenceLaplace):
    """From epsilon = 10 on, where "it hardly matters", 10 % less noise."""

    def noise(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, scale=good.scale * (1 if budget.epsilon < 10 else Fraction(9, 10)))


class LenientBudget(Budget):
    """A budget that is within every other."""

    def __le__(self, other):
        return True


@frozen(kw_only=True)
class CostsLeniently(ReferenceLaplace):
    """Costs twice what was asked, and says that it does not."""

    def noise(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, scale=good.scale / 2, cost=LenientBudget("pure", epsilon=2 * budget.epsilon))


@frozen(kw_only=True)
class CostRoundedDown(ReferenceLaplace):
    """Rounds its cost to ten digits, downwards."""

    def noise(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, cost=Budget.pure(budget.epsilon * (1 - Fraction(1, 10**11))))


@frozen(kw_only=True)
class EventRoundedDownNoise(ReferenceGaussianNoise):
    """The square root of 18 as the nearest double, which is below it."""

    @property
    def event(self):
        return attrs.evolve(super().event, sensitivity=math.sqrt(self.l2_squared))


# --- what is drawn ------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class SamplerOnePercentSmall(ReferenceLaplaceNoise):
    """The claim is right, the draws are 1 % too small."""

    def draw(self, shape, randomness):
        return discrete_laplace(self.scale * PERCENT, math.prod(shape), randomness).reshape(shape)


@frozen(kw_only=True)
class SamplerTooNarrow(ReferenceLaplaceNoise):
    """Draws at 0.7 of the scale."""

    def draw(self, shape, randomness):
        return discrete_laplace(self.scale * Fraction(7, 10), math.prod(shape), randomness).reshape(shape)


@frozen(kw_only=True)
class OneSidedNoise(ReferenceLaplaceNoise):
    """Forgets the sign."""

    def draw(self, shape, randomness):
        return np.abs(super().draw(shape, randomness))


@frozen(kw_only=True)
class OneDrawForAll(ReferenceLaplaceNoise):
    """One draw for every cell of a table."""

    def draw(self, shape, randomness):
        return np.full(shape, super().draw((1,), randomness)[0])


@frozen(kw_only=True)
class SeedReusedNoise(ReferenceLaplaceNoise):
    """A generator with a seed of its own, made anew at each call."""

    def draw(self, shape, randomness):
        return np.rint(np.random.default_rng(0).laplace(scale=float(self.scale), size=shape)).astype(np.int64)


@frozen(kw_only=True)
class GlobalGeneratorNoise(ReferenceLaplaceNoise):
    """numpy's global generator."""

    def draw(self, shape, randomness):
        return np.rint(np.random.laplace(scale=float(self.scale), size=shape)).astype(np.int64)  # noqa: NPY002


@frozen(kw_only=True)
class OwnRandomnessNoise(ReferenceLaplaceNoise):
    """The operating system's bits behind the caller's back."""

    def draw(self, shape, randomness):
        generator = np.random.default_rng(int.from_bytes(os.urandom(16), "big"))
        return np.rint(generator.laplace(scale=float(self.scale), size=shape)).astype(np.int64)


@frozen(kw_only=True)
class GeneratorNoise(ReferenceLaplaceNoise):
    """The generator meant for post-processing."""

    def draw(self, shape, randomness):
        return np.rint(randomness.generator().laplace(scale=float(self.scale), size=shape)).astype(np.int64)


@frozen(kw_only=True)
class SilentFloatNoise(ReferenceLaplaceNoise):
    """Textbook floats that do not say so."""

    def draw(self, shape, randomness):
        return super().draw(shape, randomness).astype(np.float64)


def stretched(generator, scale, shape):
    """Discrete Laplace noise from a numpy generator, as textbooks draw it."""
    p = -math.expm1(-1 / float(scale))
    return np.asarray(generator.geometric(p, shape) - generator.geometric(p, shape))


@frozen(kw_only=True)
class FourWordsForAll(ReferenceLaplaceNoise):
    """All cells from a generator with a good seed of 256 bits: computational privacy, sold as pure."""

    def draw(self, shape, randomness):
        return stretched(np.random.default_rng(randomness.words(4)), self.scale, shape)


@frozen(kw_only=True)
class PretendsToUseWords(ReferenceLaplaceNoise):
    """Takes as many words as it should, and uses the first four."""

    def draw(self, shape, randomness):
        words = randomness.words(math.prod(shape) + 4)
        return stretched(np.random.default_rng(words[:4]), self.scale, shape)


@frozen(kw_only=True)
class SeedOf32Bits(ReferenceLaplaceNoise):
    """Folds all its words into the 32 bits that a seed may have."""

    def draw(self, shape, randomness):
        words = randomness.words(math.prod(shape) + 4)
        seed = int(np.bitwise_xor.reduce(words)) & 0xFFFFFFFF
        return stretched(np.random.RandomState(seed), self.scale, shape)


@frozen(kw_only=True)
class ImportedByName(ReferenceLaplaceNoise):
    """The same, with a maker of generators that was imported by its own name."""

    def draw(self, shape, randomness):
        words = randomness.words(math.prod(shape) + 4)
        return stretched(default_rng(int(np.bitwise_xor.reduce(words)) & 0xFFFFFFFF), self.scale, shape)


@frozen(kw_only=True)
class ShortPeriod(ReferenceLaplaceNoise):
    """Draws 5,000 cells and begins again."""

    def draw(self, shape, randomness):
        count = math.prod(shape)
        return np.resize(super().draw((min(count, 5000),), randomness), shape)


@frozen(kw_only=True)
class AntitheticNoise(ReferenceLaplaceNoise):
    """The second half of the cells is the first with its sign changed, so that sums are exact."""

    def draw(self, shape, randomness):
        count = math.prod(shape)
        half = super().draw(((count + 1) // 2,), randomness)
        return np.concatenate([half, -half])[:count].reshape(shape)


@frozen(kw_only=True)
class RowsRepeat(ReferenceLaplaceNoise):
    """One row for all rows of a table."""

    def draw(self, shape, randomness):
        row = super().draw(shape[-1:], randomness)
        return np.array(np.broadcast_to(row, shape))


@frozen(kw_only=True)
class PoolOfNoise(ReferenceLaplaceNoise):
    """A pool of noise drawn once, handed out slice by slice again and again."""

    def draw(self, shape, randomness):
        pool = POOLS.setdefault(self, super().draw((20_000,), randomness))
        start = int(randomness.words(1)[0] % np.uint64(len(pool)))
        return np.resize(np.roll(pool, -start), shape)


POOLS: dict = {}


@frozen(kw_only=True)
class NarrowTotals(ReferenceLaplaceNoise):
    """A number that is no table gets a third of the noise."""

    def draw(self, shape, randomness):
        scale = self.scale / 3 if shape == () else self.scale
        return discrete_laplace(scale, math.prod(shape), randomness).reshape(shape)


@frozen(kw_only=True)
class FirstCellBare(ReferenceLaplaceNoise):
    """No noise for the first cell of tables with several axes, by a slip of an index."""

    def draw(self, shape, randomness):
        noise = super().draw(shape, randomness)
        if noise.ndim > 1 and noise.size:
            noise[(0,) * noise.ndim] = 0
        return noise


# --- what is said about the law -----------------------------------------------------------------------------------


@frozen(kw_only=True)
class ContinuousVariance(ReferenceLaplaceNoise):
    """2 scale^2, the variance of the continuous law."""

    @property
    def variance(self):
        return 2 * float(self.scale) ** 2


@frozen(kw_only=True)
class ContinuousLogpdf(ReferenceLaplaceNoise):
    """The continuous density for a whole-numbered noise."""

    def logpdf(self, residual):
        return -math.log(2 * float(self.scale)) - np.abs(residual) / float(self.scale)


@frozen(kw_only=True)
class RisingScore(ReferenceLaplaceNoise):
    """The score of -logpdf."""

    def score(self, residual):
        return -super().score(residual)


@frozen(kw_only=True)
class GaussianScoreTwice(ReferenceGaussianNoise):
    """Forgets the 1/2 of the square."""

    def score(self, residual):
        return 2 * super().score(residual)


@frozen(kw_only=True)
class DualOfTheVariance(ReferenceLaplaceNoise):
    """The standard deviation taken for the scale (a slip that has been published)."""

    @property
    def dual(self):
        return DualTerm(bound=1 / math.sqrt(self.variance), curvature=0.0)


@frozen(kw_only=True)
class NanSwallowed(ReferenceLaplaceNoise):
    """NaN counts as no residual."""

    def logpdf(self, residual):
        return super().logpdf(np.nan_to_num(residual, nan=0.0, posinf=np.inf, neginf=-np.inf))


class Unfrozen(ReferenceLaplaceNoise):
    """A noise with state of its own that no file keeps."""

    def __init__(self, **more):
        super().__init__(**more)

    def __eq__(self, other):
        return self is other

    __hash__ = None


@attrs.frozen
class PositionalOptions:
    """Options that are not keyword-only."""

    own_randomness = None

    clamp: bool = option(True, help="does nothing")

    def noise(self, sensitivity, budget):
        return ReferenceLaplace().noise(sensitivity, budget)


@attrs.define(kw_only=True)
class Changeable:
    """Options that can be changed after the component was checked."""

    own_randomness = None

    clamp: bool = option(True, help="does nothing")

    def noise(self, sensitivity, budget):
        return ReferenceLaplace().noise(sensitivity, budget)


@frozen(kw_only=True)
class HidesTheKey(ReferenceLaplace):
    """An option called `name`, which in a spec file says which component is meant."""

    name: str = option("mine", help="what to call it")


@frozen(kw_only=True)
class SecretOptions(ReferenceLaplace):
    """An option nobody explains."""

    clamp: bool = True


@frozen(kw_only=True)
class OptionsThatDrift(ReferenceLaplace):
    """An option that is not what it was set to."""

    factor: float = attrs.field(default=1.0, converter=lambda value: value * 1.5, metadata={"help": "a factor"})


@frozen(kw_only=True)
class BoundKeptQuietNoise(TruncatedLaplaceNoise):
    """Ends at its bound, and claims to have none."""

    @property
    def support(self):
        return -math.inf, math.inf


@frozen(kw_only=True)
class ClampedNoise(ReferenceLaplaceNoise):
    """Draws are cut off at a bound that nothing speaks of."""

    def draw(self, shape, randomness):
        most = round(4 * float(self.scale))
        return np.clip(super().draw(shape, randomness), -most, most)


@frozen(kw_only=True)
class BoundTooTightNoise(ReferenceLaplaceNoise):
    """Says that it ends where it does not."""

    support = (-20.0, 20.0)


@frozen(kw_only=True)
class ConcaveInWordsNoise(TwoWidthsNoise):
    """A mixture that claims to be log-concave."""

    log_concave = True


@frozen(kw_only=True)
class BoundedEventNoise(TruncatedLaplaceNoise):
    """Tells the accountant of a bound twice as far out."""

    @property
    def event(self):
        return attrs.evolve(super().event, bound=2 * self.bound)


def with_noise(mechanism, noise_class):
    """The calibration of any mechanism with another noise class."""

    @frozen(kw_only=True)
    class Mutant(mechanism):
        def noise(self, sensitivity, budget):
            return noise_class(**fields(super().noise(sensitivity, budget)))

    return Mutant


def gaussian_with(noise_class):
    @frozen(kw_only=True)
    class Mutant(ReferenceGaussian):
        def noise(self, sensitivity, budget):
            return noise_class(**fields(super().noise(sensitivity, budget)))

    return Mutant


BY_CHECK = {
    "pure-loss-within-cost": [
        ScaleOnePercentSmall,
        CalibratedToLinf,
        laplace_with(StaircaseNoise),
        laplace_with(CutOffNoise),
        CostsNextToNothing,
    ],
    "renyi-loss-within-cost": [GaussianByLinf, GaussianSigmaOnePercentSmall],
    "hockey-stick-within-delta": [GaussianSigmaOnePercentSmall, GaussianByBalleWang],
    "cost-within-budget": [CostsMore],
    "claims-fit-the-event": [CostsNothing, CostsNextToNothing, laplace_with(NoVarianceNoise)],
    "samples-follow-logpdf": [
        CostsNextToNothing,
        AllTalk,
        laplace_with(SamplerOnePercentSmall),
        laplace_with(OneSidedNoise),
        laplace_with(ClampedNoise),
    ],
    "fresh-noise-every-time": [AllTalk, laplace_with(OneDrawForAll), laplace_with(SeedReusedNoise)],
    "event-never-claims-more-noise": [
        laplace_with(BoastfulEventNoise),
        with_noise(TruncatedLaplace, BoundedEventNoise),
    ],
    "serves-a-budget": [RefusesAll],
    "refuses-nonsense": [TakesAnything],
    "monotone-in-budget-and-sensitivity": [MoreBudgetMoreNoise],
    "audit-finds-no-more-loss": [laplace_with(SamplerTooNarrow)],
    "global-random-state-is-left-alone": [laplace_with(GlobalGeneratorNoise)],
    "randomness-comes-from-the-argument": [laplace_with(OwnRandomnessNoise), laplace_with(GeneratorNoise)],
    "integers-in-integers-out": [laplace_with(SilentFloatNoise)],
    "large-changes-within-cost": [CapsL1At30, CapsLinfAt16, CapsCellsAt64, BoldFromTenOn],
    "costs-compare-as-fractions": [CostsLeniently, CostRoundedDown, gaussian_with(EventRoundedDownNoise)],
    "words-suffice-for-the-noise": [laplace_with(FourWordsForAll), laplace_with(PretendsToUseWords)],
    "no-narrow-seed": [laplace_with(SeedOf32Bits), laplace_with(ImportedByName)],
    "noise-never-repeats": [
        laplace_with(ShortPeriod),
        laplace_with(AntitheticNoise),
        laplace_with(RowsRepeat),
        laplace_with(PoolOfNoise),
    ],
    "shapes-share-one-law": [laplace_with(NarrowTotals), laplace_with(FirstCellBare)],
    "masses-sum-to-one": [laplace_with(ContinuousVariance), laplace_with(ContinuousLogpdf)],
    "score-is-the-slope-of-logpdf": [laplace_with(RisingScore), gaussian_with(GaussianScoreTwice)],
    "dual-is-the-conjugate": [laplace_with(DualOfTheVariance)],
    "nan-is-not-swallowed": [laplace_with(NanSwallowed)],
    "shape-is-as-declared": [
        with_noise(TruncatedLaplace, BoundKeptQuietNoise),
        laplace_with(BoundTooTightNoise),
        with_noise(TwoWidths, ConcaveInWordsNoise),
    ],
    "noise-is-plain-data": [laplace_with(Unfrozen)],
    "keeps-its-contract": [PositionalOptions, Changeable, HidesTheKey],
    "options-are-described": [SecretOptions],
    "options-survive-a-file": [OptionsThatDrift],
}
MUTANTS = [(mutant, check) for check, mutants in BY_CHECK.items() for mutant in mutants]


@pytest.mark.parametrize(
    ("mutant", "check"), MUTANTS, ids=[f"{check}-{number}" for number, (_, check) in enumerate(MUTANTS)]
)
def test_the_check_meant_for_it_kills_the_mutant(verdict, mutant, check):
    """The named check fails; the mutant's docstring says what is wrong with it."""
    assert verdict(mutant, "mechanism", check).startswith(("CheckFailed", "IncompatiblePlugin"))


@pytest.mark.parametrize("check", sorted(BY_CHECK))
@pytest.mark.parametrize("original", [ReferenceLaplace, ReferenceGaussian, TruncatedLaplace, TwoWidths])
def test_the_originals_pass(verdict, original, check):
    """What the mutants were made from passes each of these checks that it declares to be for it."""
    kinds = {"pure-loss-within-cost": (ReferenceLaplace, TwoWidths), "renyi-loss-within-cost": (ReferenceGaussian,),
             "hockey-stick-within-delta": (ReferenceGaussian, TruncatedLaplace)}  # fmt: skip
    if original in kinds.get(check, (original,)):
        assert verdict(original, "mechanism", check, profile="quick") is None


def test_the_staircase_is_a_law_and_right_for_one_cell():
    """The staircase mutant sums to 1 and loses exactly epsilon when one cell takes the whole change."""
    noise = laplace_with(StaircaseNoise)().noise(Sensitivity(l0=3, l1=3, l2_squared=9, linf=3), Budget.pure(1))
    z = np.arange(-500.0, 501.0)
    assert math.isclose(np.exp(noise.logpdf(z)).sum(), 1, rel_tol=1e-9)
    assert math.isclose((noise.logpdf(z) - noise.logpdf(z - 3)).max(), 1.0)


def test_every_check_kills_a_mutant():
    """No check is there for show."""
    assert set(BY_CHECK) == {check.name for check in checks_of("mechanism")}
