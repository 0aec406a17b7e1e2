"""Margins of attributes whose ranges were measured: estimated with the true covariances of their cells.

What reads a table takes the noise of its cells as independent. That of cells estimated from windows is not: a range of
many cells is known nearly as well as one.
"""

from __future__ import annotations

import math

import numpy as np

from dpgm_core._util.arrays import FloatArray
from dpgm_core.privacy.mechanism import Noise
from dpgm_core.privacy.ranges import RangeNoise
from dpgm_core.releases.pooling import PooledNoise
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.tables import margin_of

__all__ = ["covariance_of", "likely_shares", "margin_estimate", "ranged"]

#: Records that the prior counts as, beside the noisy tables, so that no value gets probability 0.
_PRIOR_RECORDS = 1.0
#: Of Newton's method: its steps at each weight of the prior, by which factor that falls, when it has arrived, and the
#: shortest step.
_MAX_STEPS, _FALL, _ENOUGH, _LEAST_LENGTH = 30, 8, 1e-9, 1e-9


def margin_estimate(release: NoisyTables, name: str) -> tuple[FloatArray, FloatArray]:
    """Return the precision P of the counts of an attribute's codes from all tables, and P times their estimate.

    Each table's margin counts with the inverse of its covariance; the cells of all tables but those of ranges have
    independent noise, of merged codes that of the mean cell.
    """
    structure, size = release.structure, release.structure.domain[name].size
    precision, weighted = np.zeros((size, size)), np.zeros(size)
    for number, group in enumerate(structure.groups):
        if len(group) > 1 or name not in group[0] or release.contrasts:
            continue
        table = np.asarray(release.tables.group(number), np.float64)
        margin = margin_of(table, group[0], (name,))
        covariance = covariance_of(release.noise[number]) if table.ndim == 1 else None
        if covariance is None:
            covariance = np.eye(size) * (release.variances[number] * table.size / size)
        own = np.linalg.inv(covariance)
        precision += own
        weighted += own @ margin
    return precision, weighted


def ranged(release: NoisyTables) -> list[str]:
    """Return the attributes whose own tables were estimated from windows."""
    groups = zip(release.structure.groups, release.noise, strict=True)
    return [group[0][0] for group, noise in groups if covariance_of(noise) is not None]


def covariance_of(noise: Noise) -> FloatArray | None:
    """Return the covariance of a table's cells where these were estimated from windows, records**2; else None."""
    if isinstance(noise, RangeNoise):
        return noise.covariance
    if not isinstance(noise, PooledNoise):
        return None
    known = [covariance_of(one) for one in noise.noises]
    size = next((len(one) for one in known if one is not None), None)
    if size is None:
        return None
    pooled = np.zeros((size, size))
    for one, own, weight in zip(noise.noises, known, noise.weights, strict=True):
        pooled += weight**2 * (one.variance * np.eye(size) if own is None else own)
    return pooled


def likely_shares(precision: FloatArray, weighted: FloatArray, total: float, prior: FloatArray) -> FloatArray:
    """Return the most probable shares of the codes.

    They maximise the Gaussian likelihood of the noisy counts times that of one record spread as the prior, sum_i q_i
    log p_i, q the prior with a tenth of it even. The record's weight falls from N to 1 in steps, so that Newton's
    method, whose steps stay inside, has few to take at each.

    precision, weighted: of `margin_estimate`. total: number of records. prior: (codes,), which sum to 1.
    """
    spread = 0.9 * prior / prior.sum() + 0.1 / len(prior)
    shares, curvature, slope = spread.copy(), total**2 * precision, total * weighted

    def objective(p: FloatArray, weights: FloatArray) -> float:
        return float(p @ (curvature @ p) / 2 - slope @ p - weights @ np.log(p))

    steps = max(1, math.ceil(math.log(max(total, 1.0), _FALL)))
    for power in range(steps, -1, -1):
        weights = _PRIOR_RECORDS * float(_FALL) ** power * spread
        for _ in range(_MAX_STEPS):
            gradient = curvature @ shares - slope - weights / shares
            hessian = curvature + np.diag(weights / shares**2)
            solved = np.linalg.solve(hessian, np.column_stack([gradient, np.ones_like(shares)]))
            step = solved[:, 1] * (solved[:, 0].sum() / solved[:, 1].sum()) - solved[:, 0]
            falls = float(-(gradient @ step))
            if falls <= _ENOUGH:
                break
            shrinking = step < 0
            length = min(1.0, 0.95 * float(np.min(-shares[shrinking] / step[shrinking], initial=np.inf)))
            before = objective(shares, weights)
            while length > _LEAST_LENGTH and not objective(shares + length * step, weights) <= before:
                length /= 2
            shares = shares + length * step
    return np.asarray(shares / shares.sum())
