"""One fit: a pilot, rounds of a fit and an update of the prior scales, and the last fit under the widened prior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from attrs import frozen

from dpgm_core import Engine, FloatArray, NoisyTables, Progress, Structure, Tables
from dpgm_core.privacy import spread
from dpgm_eb_map.base import Base
from dpgm_eb_map.contrasts import basis_of
from dpgm_eb_map.dense import Dense
from dpgm_eb_map.descent import Objective, System, correct_together, minimise_together
from dpgm_eb_map.diagonal import Diagonal, blocks_of
from dpgm_eb_map.posterior import Moments, measured, pilot, statistics_of
from dpgm_eb_map.scales import Scales

__all__ = ["DENSE_AT_MOST", "Run", "Settings", "find_unfitted_tables", "is_empty"]

# Parameters; beyond, blocks are within 1 % of it in a tenth of the time (benchmarks/eb_map.py). Blocks leave out how
# records vary together between them: where that counts beside noise, 2 to 30 % of KL, and dense goes on for longer.
_DENSE_UP_TO, DENSE_AT_MOST = 1500, 2200
# Of what a session measured, by merged codes and with noise of many widths, blocks had 1 to 2 % less error over triples
# on Adult at epsilon = 0.1, and fits in its loop take seconds otherwise.
_DENSE_CHOSEN = 300
_MIN_SIGNAL = 0.05  # the records of an average cell over the variance of its noise
_MAX_SCALE_CHANGE = 0.03  # rounds end when no log s_g moves further, times the parameters determined if below 1
# By blocks rounds end when none moves further than this and the parameters determined change by at most that share: the
# last cliques without effect creep to the floor, which costs rounds and changes nothing.
_MAX_BLOCK_SCALE_CHANGE, _MAX_DETERMINED_CHANGE = 0.75, 0.1
# Parameters; beyond, the second is enough: among hundreds of cliques some creep for rounds of seconds each, which
# lowered errors by .2 to .5 % (120 columns, epsilon = 1).
_LARGE = 20_000
# By blocks, nats: from 1 a KL was 1.1 of the dense path's where little is determined, and from 0.3 lone cells of a
# large table stayed off that were five standard errors from the fit.
_FIRST_SCALE = 0.6
_STEPS = 50  # descent steps in one round
_ROUND_STEPS = 30  # by blocks; the next round goes on from there
_LAST_STEPS = 200
# Rounds from another fit's parameters. Scales that went on from that fit's too stayed near them, a path that erred by 1
# to 3 % more where noise rules (20 to 29 rounds of AIM on Adult); from the first scales three rounds are as good as a
# fit from nothing, and one where parameters are many, rounds dear, and the tables tell more.
_RESUMED_ROUNDS, _RESUMED_ROUNDS_LARGE = 3, 1
# Steps of each descent of such a fit after its rounds: at 16,000 parameters 200 did not reach the tolerance either. How
# often cliques are opened by force there matters: with no opening errors were 1.03 on a million records (epsilon = 1).
_RESUMED_STEPS = 60
_ROUNDING_NATS = 1e-9  # nats: rounding of a model that is its prior's centre
_MAX_REOPENINGS = 4  # at most so often cliques are open_base by force
# For the records: what the likeliest statistics of them tell is shrunk by a prior of at least this width alone, nats,
# which keeps cells without records finite; and the steps of that.
_RECORDS_SCALE, _RECORDS_STEPS = 2.0, 1500
_REFIT_TOLERANCE = 0.015  # a refit, one draw of many, ends when Newton's step is shorter than this times sqrt(p)
# The same by blocks, before the correction of a fit to the records: of 16, 20 and 31 columns, marginals of refits are a
# median of .08 to .13 of their standard deviations off those of refits to the end, at most as from the model with .015.
_RECORDS_REFIT_TOLERANCE = 0.02


@frozen(kw_only=True)
class Settings:
    """The options of `EbMap`, under their names there."""

    widening: float
    rounds: int
    tolerance: float
    curvature: Literal["auto", "dense", "diagonal"]
    target: Literal["auto", "population", "records"]
    scales: tuple[float, ...] | None
    even: tuple[int, ...]


class Run:
    """The state of one fit: parameters `phi`, prior scales, and the linear system of the last round."""

    def __init__(
        self, settings: Settings, release: NoisyTables, engine: Engine, progress: Progress, base: Base | None = None
    ) -> None:
        self.settings, self.release, self.progress, self.base = settings, release, progress, base
        self.basis = basis_of(release)
        self.moments = Moments(engine, self.basis)
        self.total = release.total
        self.noisy = statistics_of(self.basis, release)
        quiet = np.median(release.totals / np.asarray(release.structure.sizes) - _MIN_SIGNAL * release.variances) > 0
        most = _DENSE_CHOSEN if release.session else DENSE_AT_MOST if quiet else _DENSE_UP_TO
        self.dense = settings.curvature == "dense" or (settings.curvature == "auto" and self.basis.size <= most)
        self.blocks = () if self.dense else blocks_of(self.basis)
        # Where noise hides how records vary, at epsilon = 0.1, the correction changes errors by .3 % either way.
        self.of_records = settings.target == "records" or (settings.target == "auto" and release.session is not None)
        self.corrects = self.of_records or (bool(quiet) and not self.dense)
        # The length of a step over many parameters; by blocks the last digits of it are slow to come.
        self.tolerance = settings.tolerance * (1.0 if self.dense else max(1.0, math.sqrt(self.basis.size)))
        self.system: System
        self.phi = np.zeros(self.basis.size)
        self._centre: FloatArray | None = None  # where refits to the records begin
        self.scales = Scales(self.basis)
        if not self.dense:
            self.scales.values *= _FIRST_SCALE
        self.trace: list[dict[str, float]] = []
        self.distance = 0.0
        self.scales_converged = True
        self.empty = False

    def learn(self) -> None:
        """Pilot, rounds of fit and update, and the last fit under the widened prior."""
        if not self.basis.size:  # one label everywhere: there is nothing to learn
            return
        self.progress("learning", 0, self.settings.rounds + 1)
        if self.settings.scales is None and self._is_empty():
            self.empty = True
            if self.scales.has_main_effects:
                self._fit_fixed()
                return
            if self.of_records:
                self.linearise()
                self._correct()
            self._record(0.0)
            return
        self.phi = pilot(self.moments, self.release, self.progress, cautious=not self.dense)
        if self.settings.scales is None:
            self._tune(self.settings.rounds)
        else:
            self.scales.fix(self.settings.scales, self.settings.even)
            self._fit_fixed()

    def resume(self, potentials: Tables) -> None:
        """Fit from another model's potentials, over any cliques of the domain; scales start as in `learn`.

        Whether there is anything to fit is judged only if that model found nothing.
        """
        self.phi = self._deviations(potentials)
        if np.abs(self.phi).max(initial=0.0) < _ROUNDING_NATS:
            self.learn()
            return
        small = self.dense or self.basis.size <= _DENSE_UP_TO
        rounds = min(self.settings.rounds, _RESUMED_ROUNDS if small else _RESUMED_ROUNDS_LARGE)
        self._tune(rounds, _RESUMED_STEPS)
        # The scales go on in the next round of the loop; a fit is at its end when its parameters are, for selectors.
        self.scales_converged = True

    def start(self, potentials: Tables) -> None:
        """Take a fit as it is, and what refits need of it."""
        assert self.settings.scales is not None
        self.phi = self._deviations(potentials)
        self.scales.fix(self.settings.scales, self.settings.even)
        if self.basis.size:
            if not self.scales.has_interactions and self._is_empty():
                # Refits then tell what the noise may hide, and not that nothing is there.
                self.scales.values = np.ones(self.basis.groups)
            self.linearise()
            self.system.set_prior(self.scales.precision())

    def refit(self, structure: Structure, releases: Sequence[NoisyTables]) -> list[Tables]:
        """The potentials over `structure` of fits to other releases, from this one and with its W and H."""
        if not self.basis.size:
            return [self._potentials(self.phi, structure)] * len(releases)
        precision = self.scales.precision()
        objectives = [
            Objective(self.moments, self.system, statistics_of(self.basis, one), one.total, precision)
            for one in releases
        ]
        tolerance = max(self.tolerance, _REFIT_TOLERANCE * math.sqrt(self.basis.size))
        start, nearer = self.phi, tolerance
        if self.of_records:
            self.system.set_prior(precision)
        if self.of_records and not self.dense:
            nearer = max(self.tolerance, _RECORDS_REFIT_TOLERANCE * math.sqrt(self.basis.size))
            if self._centre is None:
                self._centre = self._population_fit(precision, nearer)
            start = self._centre
        ends = minimise_together(objectives, start, nearer, _STEPS)
        if self.corrects:
            ends = self._corrected(objectives, ends, tolerance)
        return [self._potentials(phi, structure) for phi, _ in ends]

    def _population_fit(self, precision: FloatArray, tolerance: float) -> FloatArray:
        """The fit to the population from tables without noise: refits lie around it, a fit to the records does not."""
        noiseless = self.total * self.moments.mean(self.phi)[2]
        return Objective(self.moments, self.system, noiseless, self.total, precision).minimise(
            self.phi, tolerance, _LAST_STEPS
        )[0]

    def potentials(self, structure: Structure) -> Tables:
        """The model's potentials: over `structure`, and the base's cliques."""
        return self._potentials(self.phi, structure if self.base is None else self.base.over(structure))

    def explains(self, potentials: Tables) -> bool:
        """Whether these are of a model of such a run: the base's and deviations, to rounding."""
        return np.allclose(self._potentials(self.phi, potentials.structure).values, potentials.values, atol=1e-6)

    def _potentials(self, phi: FloatArray, structure: Structure) -> Tables:
        potentials = Tables(self.basis.structure, self.basis.potentials(phi)).embed(structure)
        return potentials if self.base is None else potentials + self.base.potentials.embed(structure)

    def _deviations(self, potentials: Tables) -> FloatArray:
        phi = self.basis.parameters(potentials)
        return phi if self.base is None else phi - self.basis.parameters(self.base.potentials)

    def _is_empty(self) -> bool:
        return is_empty(self.moments, self.release, self.scales, main=self.base is None)

    def _tune(self, rounds: int, steps: int = _LAST_STEPS) -> None:
        self.scales.start_even()
        self.linearise()
        for number in range(rounds):
            self.progress("learning", number, self.settings.rounds + 1)
            self._fit(_STEPS if self.dense else _ROUND_STEPS)
            self.linearise()
            before = float(self.scales.determined.sum())
            moved = self._update()
            slow = moved < _MAX_BLOCK_SCALE_CHANGE or self.basis.size > _LARGE
            self.scales_converged = moved < _MAX_SCALE_CHANGE or (not self.dense and slow and self._steady(before))
            self._record(moved)
            if self.scales_converged:
                break
        self.scales.widen(self.settings.widening)
        self._fit(steps)
        for _ in range(_MAX_REOPENINGS):
            if not self.scales.open(find_unfitted_tables(self.moments, self.release, self.phi)):
                break
            self.linearise()
            self._fit(steps)
        self._correct()
        self._record(0.0)

    def _fit_fixed(self) -> None:
        """Fit under the present scales, from anywhere."""
        for _ in range(2):  # where the first begins W is rough
            self.linearise()
            self._fit()
        self.scales.measure(self.system.determined())
        self._correct()
        self._record(0.0)

    def linearise(self) -> None:
        """F, and with it W, at the present parameters."""
        _, marginals, mean = self.moments.mean(self.phi)
        self.drift = drift = math.sqrt(self.release.total_variance) * mean
        self.__dict__.pop("system", None)  # its memory serves the next one
        if self.dense:
            information = self.moments.covariances(self.phi)
            information *= self.total
            self.system = Dense(information, self.basis.variances, drift)
        else:
            self.system = Diagonal(self.blocks, self.basis, marginals, mean, self.total, drift)

    def _steady(self, before: float) -> bool:
        """Whether so many parameters were determined before the last update, nearly."""
        return abs(float(self.scales.determined.sum()) - before) <= _MAX_DETERMINED_CHANGE * before

    def _fit(self, steps: int = _LAST_STEPS) -> None:
        """Minimise under the present scales."""
        self.phi, self.distance = self._objective().minimise(self.phi, self.tolerance, steps)

    def _correct(self) -> None:
        """Take what overlapping tables share into account, which blocks leave out of W: once, from a converged fit.

        Scales updated after it, and a second correction, raised errors on some tables and lowered them on others.
        """
        if self.corrects and self.distance <= self.tolerance:
            ends = [(self.phi, self.distance)]
            [(self.phi, self.distance)] = self._corrected([self._objective()], ends, self.tolerance)

    def _corrected(
        self, objectives: Sequence[Objective], ends: list[tuple[FloatArray, float]], tolerance: float
    ) -> list[tuple[FloatArray, float]]:
        steps = _LAST_STEPS
        if self.of_records:
            steps = _RECORDS_STEPS
            precision = np.minimum(self.scales.precision(), self.basis.weights / _RECORDS_SCALE**2)
            self.system.set_prior(precision)
            objectives = [one.under(precision) for one in objectives]
        return correct_together(objectives, ends, self.phi, self.drift, tolerance, steps, of_records=self.of_records)

    def _objective(self) -> Objective:
        precision = self.scales.precision()
        self.system.set_prior(precision)
        return Objective(self.moments, self.system, self.noisy, self.total, precision)

    def _update(self) -> float:
        self.system.set_prior(self.scales.precision())
        return self.scales.update(self.phi, self.system)

    def _record(self, moved: float) -> None:
        """A line of the trace: after a round, by how much the log scales moved in it."""
        self.trace.append(
            {
                "inference_calls": self.moments.calls,
                "curvature_products": self.moments.products,
                "distance": self.distance,
                "smallest_scale": float(self.scales.values.min()),
                "median_scale": float(np.median(self.scales.values)),
                "largest_scale": float(self.scales.values.max()),
                "moved": moved,
            }
        )


# --------------------------------------------------------------------------------------------------
# Tests that the scales' evidence alone would fail: whether the tables tell anything, and which tables a fit misses.
#
# Scales that are tuned where a fit followed the noise justify themselves, so whether there is anything to fit is
# judged before: at the uniform model, where effects are uncorrelated and nothing needs to be linearised elsewhere.
# And one cell among hundreds without effect hardly moves the evidence of their common scale, however far it is from
# the fit. Source: Kass and Raftery (1995), Bayes factors.


# Nats by which something must be likelier than nothing: a factor of 12. Gaussian noise alone looks so in at most one of
# 12 data sets (Markov's inequality), and in about one of a hundred as simulated; Laplace noise alike.
_MIN_EVIDENCE_NATS = 2.5
# Nats: one cell is significant if noise carries any of them so far in one of e^7 = 1,100 data sets.
_MIN_CELL_NATS = 7.0


def is_empty(moments: Moments, release: NoisyTables, scales: Scales, *, main: bool) -> bool:
    """Return whether the tables tell nothing of the records; every scale is then off, and otherwise as it was.

    main: main effects are likely, if small: theirs is then what the tables make of that.
    """
    basis = moments.basis
    uniform, first = np.zeros(basis.size), scales.values
    _, marginals, mean = moments.mean(uniform)
    residual, unlikely, variances = _residuals(release, marginals)
    scales.switch_off()
    drift = math.sqrt(release.total_variance) * mean
    system = Diagonal(blocks_of(basis), basis, marginals, mean, release.total, drift)
    system.set_prior(scales.precision())
    # No number is farther than makes a Gaussian as unlikely as its own noise: Laplace noise reaches farther.
    sober = np.sign(residual) * np.sqrt(2 * unlikely * variances)
    weighted = system.weighted(basis.statistics(_tables(release, sober)))
    linear = system.newton(release.total * moments.along(uniform, weighted))
    if scales.log_odds_of_effects(linear, system) > _MIN_EVIDENCE_NATS or _is_significant(unlikely).any():
        scales.values = first
        return False
    if main:
        scales.keep_main_effects(linear, system)
    return True


def find_unfitted_tables(moments: Moments, release: NoisyTables, phi: FloatArray) -> list[int]:
    """The tables with a number so far from the fit that noise would hardly carry one there."""
    _, unlikely, _ = _residuals(release, moments.mean(phi)[1])
    significant = _is_significant(unlikely)
    return [number for number, part in enumerate(_parts(release)) if significant[part].any()]


def _is_significant(unlikely: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    significant: np.ndarray[tuple[int], np.dtype[np.bool_]] = unlikely > _MIN_CELL_NATS + math.log(
        max(len(unlikely), 1)
    )
    return significant


def _residuals(release: NoisyTables, marginals: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of each number that was measured, a cell or a contrast: how far it is from the model, records; how unlikely that
    is if the model is right, nats below the peak, by its noise's own distribution or by a Gaussian with the variance of
    noise and sampling, whichever makes it likelier; and that variance."""
    whole = Tables(release.structure, release.total * marginals)
    residual = measured(release, release.tables) - measured(release, whole)
    if release.contrasts:
        variances = release.measurement.sum_variances + release.total
    else:
        variances = release.tables.repeat(release.variances) + whole.values
    unlikely: FloatArray = residual**2 / (2 * variances)
    for part, noise in zip(_parts(release), release.noise, strict=True):
        own = noise.logpdf(np.zeros(1)) - noise.logpdf(residual[part])
        unlikely[part] = np.clip(own, 0.0, unlikely[part])
    return residual, unlikely, variances


def _parts(release: NoisyTables) -> tuple[slice, ...]:
    """Return the places of each table's numbers."""
    structure = release.structure
    return tuple(slice(one, one + 1) for one in range(len(structure.groups))) if release.contrasts else structure.slices


def _tables(release: NoisyTables, numbers: FloatArray) -> FloatArray:
    """Numbers like those measured as cells."""
    return spread(release.structure, numbers, 0.0).values if release.contrasts else numbers
