"""One case audited: draws of both data sets, and what they say of the claim."""

import numpy as np

from dpgm_core import Array, FloatArray, Noise
from tests.audit.pipeline import Case, draws
from tests.audit.refute import Verdict, verdict

#: The chance that a run refutes anything that is true, over all its cases.
ALARM = 1e-6


def audited(case: Case, count: int, blocks: int, alarm: float) -> Verdict:
    """Draw `count` times from each of the two data sets and hold the case's claim against what they show."""
    near, shift, noise = draws(case, True, count, blocks)
    far, _, _ = draws(case, False, count, blocks)
    base = np.where(shift < 0, -shift, 0)  # what a block holds in the other state
    return verdict(case.budget, _told(near - base, shift, noise), _told(far - base, shift, noise), alarm)


def _told(residual: Array, shift: Array, noise: Noise) -> FloatArray:
    """Two numbers that tell the states apart: the loss as the noise declares it, and the sum along the change."""
    loss = noise.logpdf(residual - shift) - noise.logpdf(residual)
    return np.stack([loss.sum(axis=1), residual @ shift.astype(np.float64)], axis=1)
