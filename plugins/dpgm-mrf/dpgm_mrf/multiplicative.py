"""Multiplicative weights over all states of up to 16 binary attributes: what measured means make of a distribution.

Source: Hardt, Ligett and McSherry (2012), A simple and practical algorithm for differentially private data release; the
update D ~ D exp(z_I (measured - current) / 2), gone through several times over all that was measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpgm_core import FloatArray
from dpgm_mrf.polynomials import degrees

__all__ = ["answered"]

_PASSES = 20


def answered(size: int, measured: Sequence[tuple[int, float]], start: FloatArray | None = None) -> FloatArray:
    """The log-probabilities of the distribution over `size` states that the measured means of monomials lead to.

    measured: (monomial, mean), oldest first. start: log-probabilities to begin with, (size,); none: uniform.

    >>> np.exp(answered(4, [(1, 0.5)])).round(3).tolist()
    [0.375, 0.125, 0.375, 0.125]
    """
    logs = np.zeros(size) if start is None else np.array(start, np.float64)
    states, parity = np.arange(size), degrees(size) % 2
    signs = [1.0 - 2.0 * parity[states & monomial] for monomial, _ in measured]
    for _ in range(_PASSES):
        for sign, (_, mean) in zip(signs, measured, strict=True):
            weights = np.exp(logs - logs.max())
            logs += sign * ((mean - float(sign @ weights) / float(weights.sum())) / 2)
    found: FloatArray = logs - (logs.max() + math.log(float(np.exp(logs - logs.max()).sum())))
    return found
