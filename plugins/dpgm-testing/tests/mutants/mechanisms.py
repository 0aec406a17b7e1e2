"""Deliberately wrong mechanisms, each killed by the check meant for it."""

import math
import os
from fractions import Fraction
from unittest import mock

import attrs
import numpy as np
from attrs import frozen
from numpy.random import default_rng
from scipy.special import ndtri

from dpgm_core import Budget, BudgetError, DualTerm, PrivacyEvent, option
from dpgm_core.privacy import tabulated
from dpgm_core.privacy.gaussian import analytic_delta, least_variance
from dpgm_core.privacy.samplers import bounded_variance, discrete_laplace
from dpgm_core.privacy.tabulated import TabulatedNoise, calibrate_tabulated, tabulated_variance
from dpgm_testing.reference import ReferenceGaussian, ReferenceGaussianNoise, ReferenceLaplace, ReferenceLaplaceNoise
from dpgm_testing.unusual import Power, TruncatedLaplace, TruncatedLaplaceNoise, TwoWidths, TwoWidthsNoise

from .family import Family, replaces

PERCENT = Fraction(99, 100)


def fields(noise):
    return attrs.asdict(noise, recurse=False)


CALIBRATED = {
    ReferenceLaplaceNoise: ReferenceLaplace,
    ReferenceGaussianNoise: ReferenceGaussian,
    TruncatedLaplaceNoise: TruncatedLaplace,
    TwoWidthsNoise: TwoWidths,
    TabulatedNoise: Power,
}


def calibrated(mutant):
    """A mechanism as it is; of a noise, the mechanism that calibrates its base and hands out this noise."""
    calibrations = [calibration for noise, calibration in CALIBRATED.items() if issubclass(mutant, noise)]
    if not calibrations:
        return mutant

    @frozen(kw_only=True)
    class Mutant(calibrations[0]):
        def noise(self, sensitivity, budget):
            return mutant(**fields(super().noise(sensitivity, budget)))

    return Mutant


mechanism = Family("mechanism", calibrated)


# --- what is claimed ----------------------------------------------------------------------------------------------


@mechanism.each
class LaplaceClaims(ReferenceLaplace):
    @replaces("noise", "pure-loss-within-cost", "Claims epsilon with a scale of 0.99 L1 / epsilon.")
    def scale_one_percent_small(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, scale=good.scale * PERCENT)

    @replaces("noise", "pure-loss-within-cost", "Hides one cell's change only.")
    def calibrated_to_linf(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, scale=max(sensitivity.linf, 1) / budget.epsilon)

    @replaces("noise", "cost-within-budget", "Rounds its epsilon up.")
    def costs_more(self, sensitivity, budget):
        if not isinstance(budget, Budget) or budget.is_zero:
            raise BudgetError("no")
        return super().noise(sensitivity, Budget.pure(budget.epsilon + Fraction(1, 10**6)))

    @replaces("noise", "claims-fit-the-event", "Claims a cost of 0.")
    def costs_nothing(self, sensitivity, budget):
        return attrs.evolve(super().noise(sensitivity, budget), cost=Budget.zero("pure"))

    @replaces("noise", ("claims-fit-the-event", "pure-loss-within-cost", "samples-follow-logpdf"))
    def costs_next_to_nothing(self, sensitivity, budget):
        """Claims 1e-300, and adds no noise."""
        return SilentNoise(**fields(super().noise(sensitivity, budget)) | {"cost": Budget.pure("1e-300")})

    @replaces("noise", ("fresh-noise-every-time", "samples-follow-logpdf"))
    def all_talk(self, sensitivity, budget):
        """Claims 1000 times the noise, and adds none."""
        return SilentNoise(**fields(super().noise(sensitivity, Budget.pure(budget.epsilon / 1000))))

    @replaces("noise", "refuses-nonsense", "Reads a bare number as epsilon.")
    def takes_anything(self, sensitivity, budget):
        if isinstance(budget, (int, float)) and budget > 0 and math.isfinite(budget):
            budget = Budget.pure(budget)
        return super().noise(sensitivity, budget)

    @replaces("noise", "monotone-in-budget-and-sensitivity")
    def more_budget_more_noise(self, sensitivity, budget):
        """Never less noise than at epsilon = 1, and ten times as much above 2."""
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, scale=good.scale * (10 if budget.epsilon > 2 else 1))


@mechanism("pure-loss-within-cost", "Its log mass falls by epsilon per L1: right for one cell, wrong for several.")
class StaircaseNoise(ReferenceLaplaceNoise):
    def logpdf(self, residual):
        epsilon = self.l1 / float(self.scale)
        steps = np.floor(np.abs(residual) / self.l1)
        log_normaliser = math.log(2 * self.l1 / -math.expm1(-epsilon) - 1)
        return -epsilon * steps - log_normaliser


@mechanism.each
class GaussianClaims(ReferenceGaussian):
    @replaces("noise", "renyi-loss-within-cost", "rho for one cell's change only.")
    def gaussian_by_linf(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, sigma_squared=bounded_variance(good.sigma_squared / good.l2_squared))

    @replaces("noise", ("hockey-stick-within-delta", "renyi-loss-within-cost"))
    def gaussian_sigma_one_percent_small(self, sensitivity, budget):
        """sigma is 0.99 of what rho, or (epsilon, delta), needs."""
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, sigma_squared=bounded_variance(good.sigma_squared * PERCENT**2))

    @replaces("noise", "hockey-stick-within-delta", "The continuous Gaussian's (epsilon, delta) for discrete noise.")
    def gaussian_by_balle_wang(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        if budget.kind == "zcdp":
            return good
        width = least_variance(analytic_delta, sensitivity, budget.epsilon, budget.delta)
        return attrs.evolve(good, sigma_squared=width)

    @replaces("noise", "gaussian-curve-within-mu")
    def gaussian_by_continuous_mu(self, sensitivity, budget):
        """mu^2 = L2^2 / sigma^2, as of continuous noise."""
        good = super().noise(sensitivity, budget)
        if budget.kind != "gdp":
            return good
        width = bounded_variance(good.l2_squared / budget.mu_squared)
        return attrs.evolve(good, sigma_squared=width, cost=budget)


class SilentNoise(ReferenceLaplaceNoise):
    """Adds nothing."""

    def draw(self, shape, randomness):
        return np.zeros(shape, np.int64)


@mechanism("serves-a-budget", "Serves nobody.")
@frozen(kw_only=True)
class RefusesAll:
    own_randomness = None

    def noise(self, sensitivity, budget):
        raise BudgetError("not today")


# --- large changes, large budgets, last digits --------------------------------------------------------------------


@mechanism.each
class LargeChanges(ReferenceLaplace):
    @replaces("noise", "large-changes-within-cost", "Believes that nobody changes more than 30 records.")
    def caps_l1_at30(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, scale=min(good.l1, 30) / budget.epsilon)

    @replaces("noise", "large-changes-within-cost")
    def bold_from_ten_on(self, sensitivity, budget):
        """Has 10 % less noise from epsilon = 10 on, where it hardly matters."""
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, scale=good.scale * (1 if budget.epsilon < 10 else Fraction(9, 10)))

    @replaces("noise", "costs-compare-as-fractions", "Costs twice what was asked, and says that it does not.")
    def costs_leniently(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, scale=good.scale / 2, cost=LenientBudget("pure", epsilon=2 * budget.epsilon))

    @replaces("noise", "costs-compare-as-fractions", "Rounds its cost to ten digits, downwards.")
    def cost_rounded_down(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        return attrs.evolve(good, cost=Budget.pure(budget.epsilon * (1 - Fraction(1, 10**11))))


@mechanism("large-changes-within-cost", "Believes that no cell moves by more than 16, whatever the budget.")
class CapsLinfAt16(ReferenceGaussian):
    def noise(self, sensitivity, budget):
        super().noise(sensitivity, budget)  # refuses what is no sensitivity
        capped = attrs.evolve(sensitivity, l2_squared=min(sensitivity.l2_squared, 16**2 * sensitivity.l0))
        good = super().noise(capped, budget)
        return attrs.evolve(good, l2_squared=max(sensitivity.l2_squared, 1), cost=budget)


@mechanism("large-changes-within-cost", "Believes, for (epsilon, delta) only, that nobody changes more than 64 cells.")
class CapsCellsAt64(ReferenceGaussian):
    def noise(self, sensitivity, budget):
        if isinstance(budget, Budget) and budget.kind != "approx":
            raise BudgetError("(epsilon, delta) only")
        super().noise(sensitivity, budget)  # refuses what is no sensitivity
        good = super().noise(attrs.evolve(sensitivity, l2_squared=min(sensitivity.l2_squared, 64)), budget)
        return attrs.evolve(good, l2_squared=max(sensitivity.l2_squared, 1))


class LenientBudget(Budget):
    """A budget that is within every other."""

    def __le__(self, other):
        return True


@mechanism("costs-compare-as-fractions", "The square root of 18 as the nearest double, which is below it.")
class EventRoundedDownNoise(ReferenceGaussianNoise):
    @property
    def event(self):
        return attrs.evolve(super().event, sensitivity=math.sqrt(self.l2_squared))


# --- what is drawn ------------------------------------------------------------------------------------------------


@mechanism.each
class LaplaceDraws(ReferenceLaplaceNoise):
    @replaces("draw", "samples-follow-logpdf", "The claim is right, the draws are 1 % too small.")
    def sampler_one_percent_small(self, shape, randomness):
        return discrete_laplace(self.scale * PERCENT, math.prod(shape), randomness).reshape(shape)

    @replaces("draw", "audit-finds-no-more-loss", "Draws at 0.7 of the scale.")
    def sampler_too_narrow(self, shape, randomness):
        return discrete_laplace(self.scale * Fraction(7, 10), math.prod(shape), randomness).reshape(shape)

    @replaces("draw", "samples-follow-logpdf", "Forgets the sign.")
    def one_sided_noise(self, shape, randomness):
        return np.abs(super().draw(shape, randomness))

    @replaces("draw", "fresh-noise-every-time", "One draw for every cell of a table.")
    def one_draw_for_all(self, shape, randomness):
        return np.full(shape, super().draw((1,), randomness)[0])

    @replaces("draw", "fresh-noise-every-time", "A generator with a seed of its own, made anew at each call.")
    def seed_reused_noise(self, shape, randomness):
        return np.rint(np.random.default_rng(0).laplace(scale=float(self.scale), size=shape)).astype(np.int64)

    @replaces("draw", "global-random-state-is-left-alone", "numpy's global generator.")
    def global_generator_noise(self, shape, randomness):
        return np.rint(np.random.laplace(scale=float(self.scale), size=shape)).astype(np.int64)  # noqa: NPY002

    @replaces("draw", "randomness-comes-from-the-argument", "The operating system's bits behind the caller's back.")
    def own_randomness_noise(self, shape, randomness):
        generator = np.random.default_rng(int.from_bytes(os.urandom(16), "big"))
        return np.rint(generator.laplace(scale=float(self.scale), size=shape)).astype(np.int64)

    @replaces("draw", "randomness-comes-from-the-argument", "The generator meant for post-processing.")
    def generator_noise(self, shape, randomness):
        return np.rint(randomness.generator().laplace(scale=float(self.scale), size=shape)).astype(np.int64)

    @replaces("draw", "integers-in-integers-out", "Textbook floats that do not say so.")
    def silent_float_noise(self, shape, randomness):
        return super().draw(shape, randomness).astype(np.float64)

    @replaces("draw", "words-suffice-for-the-noise")
    def four_words_for_all(self, shape, randomness):
        """All cells come from a generator seeded with 256 bits, sold as pure."""
        return stretched(np.random.default_rng(randomness.words(4)), self.scale, shape)

    @replaces("draw", "words-suffice-for-the-noise", "Takes as many words as it should, and uses the first four.")
    def pretends_to_use_words(self, shape, randomness):
        words = randomness.words(math.prod(shape) + 4)
        return stretched(np.random.default_rng(words[:4]), self.scale, shape)

    @replaces("draw", "no-narrow-seed", "Folds all its words into the 32 bits that a seed may have.")
    def seed_of32_bits(self, shape, randomness):
        words = randomness.words(math.prod(shape) + 4)
        seed = int(np.bitwise_xor.reduce(words)) & 0xFFFFFFFF
        return stretched(np.random.RandomState(seed), self.scale, shape)

    @replaces("draw", "no-narrow-seed", "The same, with a maker of generators that was imported by its own name.")
    def imported_by_name(self, shape, randomness):
        words = randomness.words(math.prod(shape) + 4)
        return stretched(default_rng(int(np.bitwise_xor.reduce(words)) & 0xFFFFFFFF), self.scale, shape)

    @replaces("draw", "noise-never-repeats", "Draws 5,000 cells and begins again.")
    def short_period(self, shape, randomness):
        count = math.prod(shape)
        return np.resize(super().draw((min(count, 5000),), randomness), shape)

    @replaces("draw", "noise-never-repeats")
    def antithetic_noise(self, shape, randomness):
        """The second half of the cells is the first negated, so that sums are exact."""
        count = math.prod(shape)
        half = super().draw(((count + 1) // 2,), randomness)
        return np.concatenate([half, -half])[:count].reshape(shape)

    @replaces("draw", "noise-never-repeats", "One row for all rows of a table.")
    def rows_repeat(self, shape, randomness):
        row = super().draw(shape[-1:], randomness)
        return np.array(np.broadcast_to(row, shape))

    @replaces("draw", "noise-never-repeats", "A pool of noise drawn once, handed out slice by slice again and again.")
    def pool_of_noise(self, shape, randomness):
        pool = POOLS.setdefault(self, super().draw((20_000,), randomness))
        start = int(randomness.words(1)[0] % np.uint64(len(pool)))
        return np.resize(np.roll(pool, -start), shape)

    @replaces("draw", "shapes-share-one-law", "A number that is no table gets a third of the noise.")
    def narrow_totals(self, shape, randomness):
        scale = self.scale / 3 if shape == () else self.scale
        return discrete_laplace(scale, math.prod(shape), randomness).reshape(shape)

    @replaces("draw", "shapes-share-one-law")
    def first_cell_bare(self, shape, randomness):
        """No noise for the first cell of tables with several axes, by a slip of an index."""
        noise = super().draw(shape, randomness)
        if noise.ndim > 1 and noise.size:
            noise[(0,) * noise.ndim] = 0
        return noise


def stretched(generator, scale, shape):
    """Discrete Laplace noise from a numpy generator, as textbooks draw it."""
    p = -math.expm1(-1 / float(scale))
    return np.asarray(generator.geometric(p, shape) - generator.geometric(p, shape))


POOLS: dict = {}


# --- what is said about the law -----------------------------------------------------------------------------------


@mechanism.each
class LaplaceFormulas(ReferenceLaplaceNoise):
    @replaces("logpdf", "pure-loss-within-cost", "No noise beyond 5 scales: an output there betrays the shift.")
    def cut_off_noise(self, residual):
        return np.where(np.abs(residual) > 5 * float(self.scale), -np.inf, super().logpdf(residual))

    @replaces("variance", "claims-fit-the-event", "A wide event, next to no variance.")
    def no_variance_noise(self):
        return 1e-300

    @replaces("event", "event-never-claims-more-noise", "Tells the accountant of 1 % more noise than there is.")
    def boastful_event_noise(self):
        return PrivacyEvent(kind="discrete-laplace", scale=1.01 * float(self.scale), sensitivity=float(self.l1))

    @replaces("variance", "masses-sum-to-one", "2 scale^2, the variance of the continuous law.")
    def continuous_variance(self):
        return 2 * float(self.scale) ** 2

    @replaces("dual", "dual-is-the-conjugate")
    def dual_of_the_variance(self):
        """The standard deviation taken for the scale (a slip that has been published)."""
        return DualTerm(bound=1 / math.sqrt(self.variance), curvature=0.0)

    @replaces("logpdf", "masses-sum-to-one", "The continuous density for a whole-numbered noise.")
    def continuous_logpdf(self, residual):
        return -math.log(2 * float(self.scale)) - np.abs(residual) / float(self.scale)

    @replaces("score", "score-is-the-slope-of-logpdf", "The score of -logpdf.")
    def rising_score(self, residual):
        return -super().score(residual)

    @replaces("logpdf", "nan-is-not-swallowed", "NaN counts as no residual.")
    def nan_swallowed(self, residual):
        return super().logpdf(np.nan_to_num(residual, nan=0.0, posinf=np.inf, neginf=-np.inf))

    @replaces("draw", "samples-follow-logpdf", "Draws are cut off at a bound that nothing speaks of.")
    def clamped_noise(self, shape, randomness):
        most = round(4 * float(self.scale))
        return np.clip(super().draw(shape, randomness), -most, most)


@mechanism("score-is-the-slope-of-logpdf", "Forgets the 1/2 of the square.")
class GaussianScoreTwice(ReferenceGaussianNoise):
    def score(self, residual):
        return 2 * super().score(residual)


@mechanism("noise-is-plain-data", "A noise with state of its own that no file keeps.")
class Unfrozen(ReferenceLaplaceNoise):
    def __init__(self, **more):
        super().__init__(**more)

    def __eq__(self, other):
        return self is other

    __hash__ = None


@mechanism("keeps-its-contract", "Options that are not keyword-only.")
@attrs.frozen
class PositionalOptions:
    own_randomness = None

    clamp: bool = option(True, help="does nothing")

    def noise(self, sensitivity, budget):
        return ReferenceLaplace().noise(sensitivity, budget)


@mechanism("keeps-its-contract", "Options that can be changed after the component was checked.")
@attrs.define(kw_only=True)
class Changeable:
    own_randomness = None

    clamp: bool = option(True, help="does nothing")

    def noise(self, sensitivity, budget):
        return ReferenceLaplace().noise(sensitivity, budget)


@mechanism("keeps-its-contract", "An option called `name`, which in a spec file says which component is meant.")
@frozen(kw_only=True)
class HidesTheKey(ReferenceLaplace):
    name: str = option("mine", help="what to call it")


@mechanism("options-are-described", "An option nobody explains.")
@frozen(kw_only=True)
class SecretOptions(ReferenceLaplace):
    clamp: bool = True


@mechanism("options-survive-a-file", "An option that is not what it was set to.")
@frozen(kw_only=True)
class OptionsThatDrift(ReferenceLaplace):
    factor: float = attrs.field(default=1.0, converter=lambda value: value * 1.5, metadata={"help": "a factor"})


@mechanism("shape-is-as-declared", "Ends at its bound, and claims to have none.")
class BoundKeptQuietNoise(TruncatedLaplaceNoise):
    @property
    def support(self):
        return -math.inf, math.inf


@mechanism("shape-is-as-declared", "Says that it ends where it does not.")
class BoundTooTightNoise(ReferenceLaplaceNoise):
    support = (-20.0, 20.0)


@mechanism("shape-is-as-declared", "A mixture that claims to be log-concave.")
class ConcaveInWordsNoise(TwoWidthsNoise):
    log_concave = True


@mechanism("event-never-claims-more-noise", "Tells the accountant of a bound twice as far out.")
class BoundedEventNoise(TruncatedLaplaceNoise):
    @property
    def event(self):
        return attrs.evolve(super().event, bound=2 * self.bound)


# --- tabulated noise: core's losses with a fault, or a distribution that is not the one drawn from ----------------


def stairs(values, scale):
    """Log weights of steps three records wide; not log-concave."""
    return -np.floor((values + 1) / 3) * 3 / scale


@frozen(kw_only=True)
class Stairs(Power):
    """Priced by core, as every noise of the kit that passes."""

    def noise(self, sensitivity, budget):
        return calibrate_tabulated(stairs, sensitivity, budget)


def thresholds_alone(distribution, sensitivity):
    """mu^2 by the events W >= t, which are the best ones of log-concave noise alone."""
    weights, tail = np.array(distribution.weights, float), float(distribution.tail)
    beyond = weights[-1] * tail / (1 - tail)
    tails = np.append(np.cumsum(weights[::-1])[::-1] + beyond, beyond)
    z = -ndtri(tails / (2 * tails[0] - weights[0]))
    z[0] = -z[1]
    return Fraction(float(np.diff(z).max()) ** 2) * sensitivity.l2_squared


def of_the_variance(distribution, sensitivity):
    """mu^2 as of continuous Gaussian noise."""
    return Fraction(sensitivity.l2_squared / tabulated_variance(distribution))


@mechanism("renyi-loss-within-cost", "Priced at L2^2 / variance, as if every noise were Gaussian.")
class PricedByVariance(Power):
    def noise(self, sensitivity, budget):
        with mock.patch.object(tabulated, "_mu_squared", of_the_variance):
            return super().noise(sensitivity, budget)


@mechanism("hockey-stick-within-delta", "Not log-concave, and priced by thresholds.")
class PricedByThresholds(Stairs):
    def noise(self, sensitivity, budget):
        with mock.patch.object(tabulated, "_mu_squared", thresholds_alone):
            return super().noise(sensitivity, budget)


@mechanism("pure-loss-within-cost", "The tail is a quarter as heavy as the one that was paid for.")
class TailTooLight(Power):
    def noise(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        light = attrs.evolve(good.distribution, tail=(good.distribution.tail / 4).limit_denominator(2**40))
        free = {name: lambda *_: Fraction(1, 10**9) for name in ("_pure_epsilon", "_mu_squared")}
        with mock.patch.multiple(tabulated, **free):
            return attrs.evolve(good, distribution=light)


@mechanism("shape-is-as-declared", "Ends where its table ends.")
class EndedTableNoise(TabulatedNoise):
    def logpdf(self, residual):
        return np.where(np.abs(residual) < len(self.distribution.weights), super().logpdf(residual), -np.inf)


@mechanism("claims-fit-the-event", "Draws by itself, a tenth narrower than its distribution.")
class DrawnElsewhereNoise(TabulatedNoise):
    def draw(self, shape, randomness):
        return np.round(super().draw(shape, randomness) * 0.9).astype(np.int64)
