"""Ising models learned without privacy: an l1-penalised logistic regression of every attribute on the others."""

from __future__ import annotations

import numpy as np

from dpgm_core import Array, FloatArray

__all__ = ["by_logistic"]

PENALTY, STEPS = 0.2, 200


def by_logistic(codes: Array) -> FloatArray:
    """A, (p, p): the penalty is .2 sqrt(log p / n) on each weight and 0 on constants; (i, j) and (j, i) averaged.

    Accelerated proximal gradient on all attributes at once, z_i = +1 with probability sigma(w . (z, 1)), A = w / 2.
    """
    spins = (1 - 2 * codes.astype(np.float32)).astype(np.float32)
    count, size = spins.shape
    inputs = np.hstack([spins, np.ones((count, 1), dtype=np.float32)])
    step = 4 * count / float(np.linalg.eigvalsh(inputs.T.astype(np.float64) @ inputs)[-1])
    penalty = np.full((size, size + 1), PENALTY * np.sqrt(np.log(size) / count) * step)
    penalty[:, -1] = 0
    allowed = np.hstack([~np.eye(size, dtype=bool), np.ones((size, 1), dtype=bool)])
    weights = ahead = np.zeros((size, size + 1))
    pace = 1.0
    for _ in range(STEPS):
        residual = spins / (1 + np.exp(spins * (inputs @ ahead.T.astype(np.float32))))
        moved = ahead + step * allowed * (residual.T @ inputs) / count
        found = np.sign(moved) * np.maximum(np.abs(moved) - penalty, 0)
        faster = (1 + np.sqrt(1 + 4 * pace**2)) / 2
        ahead = found + (pace - 1) / faster * (found - weights)
        weights, pace = found, faster
    return (weights[:, :size] + weights[:, :size].T) / 4
