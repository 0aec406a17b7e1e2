"""Prior scales, one per group of parameters, from what the noisy tables say of each and of all together.

A group's posterior with its prior taken out again, a *cavity*, is what the tables alone say of it: precision
P = C^-1 - Lam and direction h = C^-1 phi. Where P is lam_i against the prior's weights, the evidence of u = log s^2 is
    log p(tables | u) = sum over i of (h_i^2 s^2 / (1 + s^2 lam_i) - log(1 + s^2 lam_i)) / 2,
exact for a linear model, and known at every u at once: a clique that was switched off by mistake comes back.

Cliques are on or off: off at the least scale, or with a u that is normal around a mean common to those that are on. How
many are off, the mean and the variance are averaged over, weighted by what all cliques together say of them; so cliques
that are alike lean on each other, and strong ones do not lean on those without effect. Main effects are one group more,
judged alone by the same prior, or, where the tables hardly tell of any effect, by one of small effects. The scale taken
is the one that keeps as much of the group's parameters as the average over its u does. Sources: MacKay (1992), Bayesian
interpolation, for the evidence; Mitchell and Beauchamp (1988) for spike and slab; Stephens (2017), False discovery
rates, for scales averaged.

The prior of a group with bins is smooth or even along them, whichever has more evidence: a trend is smooth, and where
two columns say the same, as a week and its month do, no wave is longer than others. Even priors come first, as a fit
far from its optimum is nearer there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
from scipy.special import logsumexp

from dpgm_core import FloatArray, IntArray
from dpgm_eb_map.contrasts import Basis
from dpgm_eb_map.descent import System

__all__ = ["Scales", "combine_chances"]

BoolArray: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]

_OFF = 0.003  # nats: the scale of a group that is off
_RANGE = (0.03, 10.0)  # nats: bounds of the others
_GRID = 2 * np.log(np.concatenate([[_OFF], np.geomspace(*_RANGE, 48)]))  # of u; off is the first
_FARTHEST = 3.0  # that u may move in one step
# Of a fit, the first updates, in which groups become smooth or even: of 1, 2 and all, the fit to 75 columns ended
# nearest to its optimum with 2.
_CHOICES = 2
# Nats by which an even prior must be likelier than a smooth one: without, rank correlations of thirteen generated
# tables erred 5 % more at epsilon = 1.
_FOR_SMOOTH = 3.0
_TINY = 1e-300  # a likelihood, so that its logarithm is a number
_LEAST = 1e-9  # of lam s^2, below which a direction is not told of

# What is averaged over: the share of cliques that are off, all with probability 1/2, and mean and variance of the
# others' u.
_SHARES = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 1.0])
_SHARES_PRIOR = np.where(_SHARES < 1, 0.5 / (len(_SHARES) - 1), 0.5)
_MEANS = 2 * np.log(np.geomspace(0.1, 3.0, 13))
_VARIANCES = np.array([0.02, 0.08, 0.3, 1.0, 2.5, 6.0, 16.0])

# Of main effects where the tables hardly tell any: off with this probability, else with a u that is normal around this
# mean with this variance. Chosen on nine kinds of single columns at five budgets: wider ones told skewed columns by up
# to a tenth better, and uniform ones by up to half worse; at probability .3 uniform ones were worse by 5 %, now by 1.
_FAINT_OFF, _FAINT_MEAN, _FAINT_VARIANCE = 0.6, 2 * np.log(0.2), 0.5
_FAINT_LEAST = 0.1  # parameters; where the tables determine fewer, main effects stay off


class Scales:
    """The scales s_g and how they were last moved.

    values: nats (groups,). smooth: (groups,), whether the prior is, which says nothing of groups without bins.
    determined: parameters of each group that the tables fix (groups,), of `count`.
    """

    def __init__(self, basis: Basis) -> None:
        self._basis = basis
        self.count = np.bincount(basis.group, minlength=basis.groups)
        self.values, self.smooth = np.ones(basis.groups), np.ones(basis.groups, bool)
        self._have_waves = np.bincount(basis.group, basis.waves != 1, basis.groups) > 0
        self._updates = 0
        self.determined = np.zeros(basis.groups)
        self._pace, self._last = np.ones(basis.groups), np.zeros(basis.groups)

    def precision(self) -> FloatArray:
        """Lam = w / s^2 (p,)."""
        return self._weights(self.smooth) / self.values[self._basis.group] ** 2

    @property
    def even(self) -> list[int]:
        """The groups with bins whose prior is even."""
        return np.flatnonzero(self._have_waves & ~self.smooth).tolist()

    def fix(self, values: Sequence[float], even: Sequence[int]) -> None:
        """Take scales, and the groups whose prior is even, from another fit."""
        self.values, self.smooth = np.array(values), np.ones(len(values), bool)
        self.smooth[list(even)] = False

    def start_even(self) -> None:
        """Take even priors until `update` chooses."""
        self.smooth[:] = False

    def measure(self, determined: FloatArray) -> None:
        """Take 1 - c Lam of each parameter (p,); estimates may be outside of 0 to 1."""
        summed = np.bincount(self._basis.group, determined, self._basis.groups)
        self.determined = np.clip(summed, 1e-9 * self.count, self.count)

    def update(self, phi: FloatArray, system: System) -> float:
        """Move the scales to what the fit `phi` (p,) under them supports; the largest change of log s that matters."""
        self.measure(system.determined())
        cavities = self._cavities(phi, system, self.smooth)
        evidence = np.array([evidence_of(lam, squares) for lam, squares in cavities])
        if self._updates < _CHOICES and self._have_waves.any():
            groups = np.flatnonzero(self._have_waves)
            others = self._cavities(phi, system, ~self.smooth, groups)
            evidence_of_others = np.array([evidence_of(lam, squares) for lam, squares in others])
            odds = evidence_of_others.max(axis=1) - evidence[groups].max(axis=1)
            likelier = odds > np.where(self.smooth[groups], _FOR_SMOOTH, -_FOR_SMOOTH)
            for at, group in zip(np.flatnonzero(likelier), groups[likelier], strict=True):
                cavities[group], evidence[group] = others[at], evidence_of_others[at]
                self.smooth[group] = not self.smooth[group]
        self._updates += 1
        chances = np.concatenate([combine_chances(evidence[:1]), combine_chances(evidence[1:])])
        here = 2 * np.log(self.values)
        there = [_log_scale_that_keeps(*one, chance) for one, chance in zip(cavities, chances, strict=True)]
        step = np.clip(np.array(there) - here, -_FARTHEST, _FARTHEST)
        # Back and forth is no progress: such a group goes slower.
        self._pace = np.where(step * self._last < 0, self._pace / 2, self._pace)
        self._last = self._pace * step
        values = np.clip(np.exp((here + self._last) / 2), _OFF, _RANGE[1])
        # The way of a clique's scale to the floor is long, and of no matter once the tables determine none of it.
        moved = float((np.minimum(self.determined, 1.0) * np.abs(np.log(values / self.values))).max())
        self.values = values
        return moved

    def widen(self, widening: float) -> None:
        """Multiply each scale by 1 + widening d^2, d the share of the group's parameters that is determined.

        Where most are, those that are not are the rare cells', whose logarithms lie farther out than the others'.
        """
        self.values = self.values * (1 + widening * (self.determined / np.maximum(self.count, 1)) ** 2)

    def open(self, tables: list[int]) -> bool:
        """Raise the scales of what these tables tell of, to 1/4 or to twice what they are; whether any rose."""
        starts = [part.part.start for part in self._basis.effects if any(one.group in tables for one in part.holders)]
        groups = np.setdiff1d(self._basis.group[starts], [0])
        before = self.values.copy()
        self.values[groups] = np.clip(2 * before[groups], 0.25, _RANGE[1])
        return bool((self.values > before).any())

    def log_odds_of_effects(self, phi: FloatArray, system: System) -> float:
        """Return the log odds that main effects or cliques may be on, against that nothing is."""
        cavities = self._cavities(phi, system, self.smooth)
        evidence = np.array([evidence_of(lam, squares) for lam, squares in cavities])
        return max(log_odds_of_effects(evidence[:1]), log_odds_of_effects(evidence[1:]))

    def keep_main_effects(self, phi: FloatArray, system: System) -> None:
        """Set the scale of main effects to what a fit `phi` (p,) without any supports, small ones being likely."""
        lam, squares = self._cavities(phi, system, self.smooth)[0]
        likely = np.exp(-0.5 * (_GRID - _FAINT_MEAN) ** 2 / _FAINT_VARIANCE)
        likely[0] = 0.0
        likely *= (1 - _FAINT_OFF) / likely.sum()
        likely[0] = _FAINT_OFF
        evidence = evidence_of(lam, squares)
        likely *= np.exp(evidence - evidence.max())
        scale = np.exp(_log_scale_that_keeps(lam, squares, likely / likely.sum()) / 2)
        if (scale**2 * lam / (1 + scale**2 * lam)).sum() > _FAINT_LEAST:
            self.values[0] = scale

    def switch_off(self) -> None:
        """Switch every group off."""
        self.values = np.full(len(self.values), _OFF)

    @property
    def has_main_effects(self) -> bool:
        """Whether the scale of main effects is on."""
        return bool(self.values[0] > _OFF)

    @property
    def has_interactions(self) -> bool:
        """Whether the scale of any clique's interactions is on."""
        return bool((self.values[1:] > _OFF).any())

    def _weights(self, smooth: BoolArray) -> FloatArray:
        """Lam of scale 1 (p,), of groups of which some are smooth (groups,)."""
        basis = self._basis
        return np.where(smooth[basis.group], basis.weights / basis.waves, basis.weights)

    def _cavities(
        self, phi: FloatArray, system: System, smooth: BoolArray, groups: IntArray | None = None
    ) -> list[tuple[FloatArray, FloatArray]]:
        """The cavity of each group, or these, from a fit under the present prior, in units of priors of which some are
        smooth."""
        # Places by group, ascending: a search for each of hundreds of groups took a quarter of a fit's time.
        parts = np.split(np.argsort(self._basis.group, kind="stable"), np.cumsum(self.count)[:-1])
        weights, cavities = self._weights(smooth), list[tuple[FloatArray, FloatArray]]()
        shares = self.precision() / weights
        for group in range(len(parts)) if groups is None else groups:
            part = parts[group]
            own = float(1 / self.values[group] ** 2) if smooth[group] == self.smooth[group] else shares[part]
            cavities.append(_cavity(system.spread(part), phi[part], weights[part], own))
        return cavities


def _cavity(
    spread: FloatArray, phi: FloatArray, weights: FloatArray, own: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """lam (q,) and h^2 (q,) of parameters with posterior covariance C, or its diagonal, in units of a prior of these
    weights. own: the precision of the prior in C, in these units."""
    if not len(phi):
        return np.zeros(0), np.zeros(0)
    root = np.sqrt(weights)
    if spread.ndim == 1:
        widths = spread * weights
        lam, direction = 1 / widths - own, root * phi / widths
    elif isinstance(own, float):
        widths, vectors = np.linalg.eigh(np.outer(root, root) * spread)
        lam, direction = 1 / widths - own, vectors.T @ (root * phi) / widths
    else:
        inverse = np.linalg.inv(np.outer(root, root) * spread)
        lam, vectors = np.linalg.eigh(inverse - np.diag(own))
        direction = vectors.T @ (inverse @ (root * phi))
    seen = lam * _RANGE[1] ** 2 > _LEAST
    return np.asarray(lam[seen], np.float64), np.asarray(direction[seen] ** 2, np.float64)


def combine_chances(evidence: FloatArray) -> FloatArray:
    """Each clique's chances (cliques, grid) of its u, given what all of them tell: evidence (cliques, grid), in logs.

    >>> strong, weak = np.linspace(0, 40, 49), np.linspace(0, -3, 49)
    >>> chances = combine_chances(np.array([strong, *[weak] * 9]))
    >>> bool(chances[0, 0] < 1e-6), bool(chances[1, 0] > 0.5)
    (True, True)
    """
    if not len(evidence):
        return evidence
    likelihood, if_on, if_off, logs = _weigh_evidence(evidence)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    summed = np.zeros_like(likelihood)
    for off, weight in zip(_SHARES, weights, strict=True):
        each = weight / (off * if_off + (1 - off) * if_on)
        summed += likelihood * ((1 - off) * each @ _slabs())
        summed[:, 0] += (off * if_off * each).sum(axis=1)
    chances: FloatArray = summed / summed.sum(axis=1, keepdims=True)
    return chances


def log_odds_of_effects(evidence: FloatArray) -> float:
    """Return the log odds that some cliques may be on, against that all are off.

    >>> nothing, strong = np.zeros((3, 49)), np.array([np.linspace(0, 40, 49)])
    >>> bool(log_odds_of_effects(nothing) < 0.1), bool(log_odds_of_effects(strong) > 20)
    (True, True)
    """
    if not len(evidence):
        return -np.inf
    logs = _weigh_evidence(evidence)[-1]
    none, some = (float(logsumexp(logs[part])) for part in (_SHARES == 1, _SHARES < 1))
    return some - none


def _weigh_evidence(evidence: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Each clique's likelihood on the grid, if it is on (cliques, slabs) and off (cliques, 1), up to a factor of its
    own; and of all, times the prior, in logs (shares, slabs)."""
    prior = np.tile(np.log(_VARIANCES / (1 + _VARIANCES)), len(_MEANS))  # 1 / (1 + variance), on a logarithmic grid
    prior = np.log(_SHARES_PRIOR)[:, None] + prior - logsumexp(prior)
    likelihood = np.maximum(np.exp(evidence - evidence.max(axis=1, keepdims=True)), _TINY)
    if_on, if_off = np.maximum(likelihood @ _slabs().T, _TINY), likelihood[:, :1]
    logs = prior + np.array([np.log(off * if_off + (1 - off) * if_on).sum(axis=0) for off in _SHARES])
    return likelihood, if_on, if_off, logs


@cache
def _slabs() -> FloatArray:
    """The priors of u if a clique is on, one a row: normal for each mean and variance, cut at the range."""
    slabs = np.exp(-0.5 * (_GRID - _MEANS[:, None, None]) ** 2 / _VARIANCES[:, None])
    slabs[..., 0] = 0.0
    priors: FloatArray = (slabs / slabs.sum(axis=2, keepdims=True)).reshape(-1, len(_GRID))
    return priors


def evidence_of(lam: FloatArray, squares: FloatArray) -> FloatArray:
    """log p(tables | u) on the grid, (49,), from a cavity's lam (q,) and h^2 (q,)."""
    scales = np.exp(_GRID)[:, None]
    grown = 1 + scales * lam
    evidence: FloatArray = (scales * squares / grown - np.log(grown)).sum(axis=1) / 2
    return evidence


def _log_scale_that_keeps(lam: FloatArray, squares: FloatArray, chances: FloatArray) -> float:
    """The u that keeps as much of the parameters as the average over u does."""
    scales = np.exp(_GRID)[:, None]
    sizes = (scales * squares / (1 + scales * lam)).sum(axis=1)
    return float(np.interp(chances @ sizes, sizes, _GRID)) if sizes[-1] > sizes[0] else float(_GRID[0])
