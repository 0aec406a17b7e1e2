"""Tests that the scales' evidence alone would fail: whether the tables tell anything, and which tables a fit misses.

Scales that are tuned where a fit followed the noise justify themselves, so whether there is anything to fit is judged
before: at the uniform model, where effects are uncorrelated and nothing needs to be linearised elsewhere. And one cell
among hundreds without effect hardly moves the evidence of their common scale, however far it is from the fit. Source:
Kass and Raftery (1995), Bayes factors.
"""

from __future__ import annotations

import math

import numpy as np

from dpgm_core import FloatArray, NoisyTables, Tables
from dpgm_core.privacy import spread
from dpgm_eb_map.diagonal import Diagonal, blocks_of
from dpgm_eb_map.posterior import Moments, measured
from dpgm_eb_map.scales import Scales

__all__ = ["find_unfitted_tables", "is_empty"]

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
