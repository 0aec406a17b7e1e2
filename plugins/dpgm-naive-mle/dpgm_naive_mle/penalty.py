"""Choice of the penalty without the truth: by the discrepancy rule, and by a parametric bootstrap of the fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from dpgm_core import FloatArray, NoisyTables, Progress, Randomness, Tables
from dpgm_core.learning import Likelihood, Rehearsal, expected_distance, together
from dpgm_naive_mle.projection import targets

__all__ = ["by_bootstrap", "by_discrepancy", "standard_error"]

# Penalties tried, strongest first, until the fit is as close to the noisy tables as the noise allows.
_PATH = [10.0 ** (-exponent / 2) for exponent in range(2, 15)]
# A weaker penalty that leaves more than this share of the distance to the noisy tables is not worth it.
_MAX_DISTANCE_RATIO = 0.93
# That holds where the distance may be all noise, within so many standard deviations: further off, the fit is still
# setting out.
_MAX_DEVIATIONS = 3.0
# Nats: log-potentials further out, e^43 being more records than can be counted, follow tables that contradict each
# other by more than noise, which no model can, and no weaker penalty is of use. Of honest releases 14 was the most.
_MAX_POTENTIAL = 100.0

# Releases simulated for the bootstrap.
_DRAWS = 8
# The pilot's share of the discrepancy rule's penalty. A fit is smoother than the truth, and the best penalty for a
# smooth truth is too strong; a third makes up for it (docs/decisions/0009).
_PILOT = 1 / 3
# Penalties tried are this factor apart, at most so many from the first; the least mean is interpolated between them.
_FACTOR = 2.0
_MAX_WALK = 12
# Fits along the path end below this share of the tables' standard error: what their distance is compared with.
_PATH_TOLERANCE = 0.1
# Fits to simulated releases end where this share of what the first gained is left, by the model of the Hessian, which
# leaves five times as much of the loss, or after so many steps.
_SIMULATED_TOLERANCE = 1e-4
_SIMULATED_STEPS = 60


def standard_error(release: NoisyTables, marginals: FloatArray) -> float:
    """Return the standard error of a typical cell of the tables per record, noise and sampling: the median over cells.

    marginals: (cells,), about those of the truth.
    """
    variances = np.repeat(release.variances, release.structure.sizes) + release.total * marginals
    return float(np.sqrt(np.median(variances))) / release.total


def by_discrepancy(problem: Likelihood, release: NoisyTables, tolerance: float, steps: int) -> tuple[float, FloatArray]:
    """The strongest penalty whose fit is as close to the noisy tables as the noise would be, and that fit, (cells,).

    Where no penalty brings the fit so close, the one from which on it hardly comes nearer, or the last before the
    potentials run away.
    """
    # What the distance to the noisy tables would be if the model had the true marginals.
    allowed, scatter = expected_distance(release)
    noisy = release.tables.values.astype(np.float64)
    before, nearest = np.zeros(release.structure.cells), np.inf
    tolerance = max(tolerance, 1e-5, _PATH_TOLERANCE * standard_error(release, problem.target.values))
    for number, l2 in enumerate(_PATH):
        theta, _ = problem.minimise(before, l2, tolerance, steps)
        distance = float(np.abs(noisy - release.total * problem.marginals).sum())
        if distance <= allowed:
            return l2, theta
        if np.abs(theta).max() > _MAX_POTENTIAL:
            return _PATH[max(number - 1, 0)], before
        if distance > _MAX_DISTANCE_RATIO * nearest and distance <= allowed + _MAX_DEVIATIONS * scatter:
            # Chance can leave the tables further apart than any model can follow; then only noise is left to fit.
            return _PATH[number - 1], before
        before, nearest = theta, distance
    return _PATH[-1], before


def by_bootstrap(
    problem: Likelihood,
    release: NoisyTables,
    near: tuple[float, FloatArray],
    *,
    project: bool,
    tolerance: float,
    randomness: Randomness,
    progress: Progress,
) -> float:
    """The penalty under which fits to releases simulated from a pilot come nearest to it.

    near: the discrepancy rule's penalty and fit. The measure is KL(pilot || fit), exact, its mean over the releases,
    which are the same for every penalty. Their inference calls are counted with the problem's. Raises InferenceError
    when the engine cannot sample.
    """
    l2, theta = near
    pilot, _ = problem.minimise(theta, _PILOT * l2, max(tolerance, 1e-5), _SIMULATED_STEPS)
    structure = release.structure
    rehearsal = Rehearsal(
        release, problem.engine, Tables(structure, pilot), draws=_DRAWS, randomness=randomness, progress=progress
    )
    engine, drawn = problem.engine, rehearsal.releases
    problems = [Likelihood(engine, targets(one, project=project), progress, "rehearsing") for one in drawn]
    fits = _Fits(rehearsal, pilot, problems, tolerance)
    place = _find_minimum(cache(lambda place: fits.loss(l2 * _FACTOR**place)))
    problem.calls += fits.calls
    return float(l2 * _FACTOR**place)


class _Fits:
    """Fits to the releases of a rehearsal, each going on from its fit under the penalty before."""

    def __init__(self, rehearsal: Rehearsal, pilot: FloatArray, problems: list[Likelihood], tolerance: float) -> None:
        self.rehearsal, self.problems, self.tolerance = rehearsal, problems, tolerance
        self.thetas = [pilot] * len(problems)

    def loss(self, l2: float) -> float:
        """The mean of KL(pilot || fit) over the simulated releases, nats."""
        descents = [
            problem.descent(theta, l2, self.tolerance, _SIMULATED_STEPS, _SIMULATED_TOLERANCE)
            for problem, theta in zip(self.problems, self.thetas, strict=True)
        ]
        self.thetas = [theta for theta, _ in together(self.problems[0].engine, descents)]
        return self.rehearsal.loss(self.thetas)

    @property
    def calls(self) -> int:
        return sum(problem.calls for problem in self.problems)


def _find_minimum(score: Callable[[int], float]) -> float:
    """Return where a function of the whole numbers is least, walking down from 0, between them by a parabola."""
    place = 0
    way = 1 if score(1) < score(0) else -1
    while abs(place) < _MAX_WALK and score(place + way) < score(place):
        place += way
    left, here, right = score(place - 1), score(place), score(place + 1)
    # Nothing to choose where every penalty does equally well, as with one label; beyond the walk's end no parabola.
    inside = max(left, right) < np.inf and here <= min(left, right)
    return place + (Rehearsal.vertex(left, here, right) if inside else 0.0)
