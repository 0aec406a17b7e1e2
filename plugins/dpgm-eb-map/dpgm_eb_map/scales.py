"""The prior scales, one per group of parameters: what the noisy tables say of each, and of all of them together.

MacKay's fixed point s^2 = E / gamma (E = sum w phi^2; gamma: parameters determined, of n) is where the evidence is
stationary in u = log s^2. A step of log(E / (gamma s^2)) towards it is short where little is determined; if all
parameters of a group are determined alike, n / gamma times that is Newton's, and the curvature is gamma^2 / 2n. So each
group tells about its u like a normal observation, and the cliques' u are taken to be normal around a common mean, with
a variance that they tell themselves: where groups are alike they lean on each other, where half of them are silent
each stands alone. Sources: MacKay (1992), Bayesian interpolation; DerSimonian and Laird (1986) for random effects.
"""

from __future__ import annotations

import numpy as np

from dpgm_core import FloatArray
from dpgm_eb_map.contrasts import Basis

__all__ = ["Scales", "random_effects"]

_RANGE = (0.03, 10.0)  # nats: bounds of a prior scale
_FARTHEST = 3.0  # that u may move in one step
_FASTEST = 2.0  # times MacKay's step
# What the variance of u between cliques may be: from alike to on and off.
_VARIANCES = np.geomspace(0.02, 16.0, 21)


class Scales:
    """The scales s_g and how they were last moved.

    values: nats (groups,). determined: parameters of each group that the tables fix (groups,), of `count`.
    """

    def __init__(self, basis: Basis) -> None:
        self._basis = basis
        self.count = np.bincount(basis.group, minlength=basis.groups)
        self.values = np.ones(basis.groups)
        self.determined = np.zeros(basis.groups)
        self._variance: float | None = None
        self._pace, self._last = np.ones(basis.groups), np.zeros(basis.groups)

    def precision(self) -> FloatArray:
        """Lam = w / s^2 (p,)."""
        found: FloatArray = self._basis.weights / self.values[self._basis.group] ** 2
        return found

    def measure(self, determined: FloatArray) -> None:
        """Take 1 - c Lam of each parameter (p,); estimates may be outside of 0 to 1."""
        summed = np.bincount(self._basis.group, determined, self._basis.groups)
        self.determined = np.clip(summed, 1e-9 * self.count, self.count)

    def update(self, phi: FloatArray, determined: FloatArray) -> float:
        """Move the scales to what parameters `phi` (p,) support; the largest change of log s that matters."""
        basis = self._basis
        self.measure(determined)
        here = 2 * np.log(self.values)
        evidence = np.bincount(basis.group, basis.weights * phi**2, basis.groups) + 1e-300
        share = self.determined / self.count
        step = np.log(evidence / self.determined) - here
        told = here + np.clip(step * np.minimum(1 / share, _FASTEST), -_FARTHEST, _FARTHEST)
        told[1:] = self._together(told[1:], self.determined[1:] * share[1:] / 2)
        step = np.clip(told - here, -_FARTHEST, _FARTHEST)
        # Back and forth is no progress: such a group goes slower.
        self._pace = np.where(step * self._last < 0, self._pace / 2, self._pace)
        self._last = self._pace * step
        scales = np.clip(np.exp((here + self._last) / 2), *_RANGE)
        # The way of a clique's scale to the floor is long, and of no matter once the tables determine none of it.
        moved = float((np.minimum(self.determined, 1.0) * np.abs(np.log(scales / self.values))).max())
        self.values = scales
        return moved

    def widen(self, widening: float) -> None:
        """Multiply each scale by 1 + widening d^2, d the share of the group's parameters that is determined.

        Where most are, those that are not are the rare cells', whose logarithms lie farther out than the others'.
        """
        self.values = self.values * (1 + widening * (self.determined / self.count) ** 2)

    def _together(self, told: FloatArray, information: FloatArray) -> FloatArray:
        """The means of the cliques' u given what all of them tell."""
        if len(told) < 2:
            return told
        variance = random_effects(told, information)
        # The geometric mean with the last one, as `told` depends on it.
        self._variance = variance if self._variance is None else float(np.sqrt(variance * self._variance))
        weights = 1 / (self._variance + 1 / information)
        mean = float(weights @ told) / float(weights.sum())
        found: FloatArray = mean + self._variance * weights * (told - mean)
        return found


def random_effects(told: FloatArray, information: FloatArray) -> float:
    """The most probable variance between normal means that are observed with errors of variance 1 / information.

    The prior on it is 1 / (1 + variance), over a grid of 21 values from .02 to 16.

    >>> random_effects(np.array([0.0, 0.1, 0.0]), np.ones(3))
    0.02
    """
    spreads = _VARIANCES[:, None] + 1 / information
    means = (told / spreads).sum(axis=1) / (1 / spreads).sum(axis=1)
    misfit = np.log(spreads).sum(axis=1) + ((told - means[:, None]) ** 2 / spreads).sum(axis=1)
    best = _VARIANCES[(misfit / 2 + np.log1p(_VARIANCES)).argmin()]
    return round(float(best), 12)
