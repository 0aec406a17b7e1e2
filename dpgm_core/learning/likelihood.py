"""Penalised likelihood of noisy tables and its maximisation, where that must end, and what it may start from."""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Sequence
from typing import TypeAlias

import numpy as np

from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.progress import Progress
from dpgm_core.errors import InferenceError
from dpgm_core.inference.contract import Beliefs, Engine
from dpgm_core.inference.quasi_newton import Secants, infer_all
from dpgm_core.privacy.mechanism import Noise, ScaledNoise
from dpgm_core.releases.pooling import PooledNoise
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = ["Likelihood", "Minimisation", "consistent", "expected_absolute", "expected_distance", "together"]


#: A minimisation under way: it asks for beliefs at log-potentials (cells,), and ends with its answer and whether that
#: is within the tolerance.
Minimisation: TypeAlias = Generator[FloatArray, Beliefs, tuple[FloatArray, bool]]

# Pairs kept; more save few calls and cost each of them more than a small model's inference.
_MAX_SECANTS = 8
# The longest that the first step moves a potential, nats: the metric holds nearby. Each later one may be longer by:
_REACH_NATS, _REACH_GROWTH = 2.0, 4.0
# Of an accepted step: the least decrease as a share of what the slope promises, and the steepest rise at its end as a
# share of the slope at its start.
_MIN_DECREASE, _MAX_RISE = 1e-4, 0.9
# Shortenings of one step, and steps in all that lowered nothing; more tell rounding, or an approximate engine's errors.
_MAX_SHORTENINGS, _MAX_STANDING_STEPS = 10, 10


class Likelihood:
    """Objective A(theta) - theta . target + l2 |theta|^2, per record, with gradient mu(theta) - target + 2 l2 theta.

    Parameters
    ----------
    engine : Engine
        Compiled for the target's structure.
    target : Tables
        Marginals; each group's table sums to its number of cliques.
    task : str
        Name of the task for `progress`.

    Attributes
    ----------
    marginals, slope
        Of the last answer of `minimise`: marginals (cells,) and the largest derivative.
    calls, trace
        Inference calls, and one mapping of numbers per step.
    gained : float
        Largest decrease of the objective in one minimisation, nats.
    """

    def __init__(self, engine: Engine, target: Tables, progress: Progress, task: str = "learning") -> None:
        self.engine, self.target, self.progress, self.task = engine, target, progress, task
        self.trace: list[dict[str, float]] = []
        self.calls = 0
        self.slope = math.inf
        self.gained = 0.0
        self.marginals: FloatArray = np.zeros(target.structure.cells)
        self._mass = np.repeat(np.asarray(target.structure.multiplicities, dtype=np.float64), target.structure.sizes)

    def value(self, theta: FloatArray, l2: float) -> tuple[float, FloatArray]:
        """Return the objective, nats, and its gradient, (cells,)."""
        return self._evaluate(theta, l2, self.engine.infer(Tables(self.target.structure, theta)))

    def minimise(
        self, theta: FloatArray, l2: float, tolerance: float, steps: int, share: float = 0.0
    ) -> tuple[FloatArray, bool]:
        """Minimise by L-BFGS from `theta`; return the minimiser and whether a tolerance was reached.

        It ends when no derivative exceeds `tolerance`, or when the remaining decrease, by the model of the Hessian, is
        below `share` of `gained`.
        """
        return together(self.engine, [self.descent(theta, l2, tolerance, steps, share)])[0]

    def descent(self, theta: FloatArray, l2: float, tolerance: float, steps: int, share: float = 0.0) -> Minimisation:
        """Return `minimise` as a generator, for `together`.

        The metric is the diagonal of the Hessian Cov(T) + 2 l2.
        """
        secants, reach, standing, done = Secants(_MAX_SECANTS), _REACH_NATS, 0, False
        value, gradient = self._evaluate(theta, l2, (yield theta))
        marginals, first = self.marginals, value
        for _ in range(steps):
            if float(np.abs(gradient).max()) <= tolerance:
                break
            direction = secants.descent(gradient, self._metric(marginals, gradient, l2))
            if gradient @ direction >= 0:  # rounding, or an approximate engine: begin anew
                secants = Secants(_MAX_SECANTS)
                direction = secants.descent(gradient, self._metric(marginals, gradient, l2))
            done = -float(gradient @ direction) / 2 <= share * self.gained
            if done:
                break
            step_taken = yield from self._search(theta, l2, value, gradient, direction, reach)
            if step_taken is None:
                break
            step, after, gradient_after, reach = step_taken
            standing += after >= value
            if standing > _MAX_STANDING_STEPS:
                break
            secants.add(step, gradient_after - gradient)
            theta, value, gradient, marginals = theta + step, after, gradient_after, self.marginals
            self.gained = max(self.gained, first - value)
            self.progress(self.task, len(self.trace), None)
            self.trace.append({"inference_calls": self.calls, "l2": l2})
        self.marginals, self.slope = marginals, float(np.abs(gradient).max())
        self.trace.append({"inference_calls": self.calls, "l2": l2, "objective": value, "gradient": self.slope})
        return theta, done or self.slope <= tolerance

    def _search(
        self, theta: FloatArray, l2: float, value: float, gradient: FloatArray, direction: FloatArray, reach: float
    ) -> Generator[FloatArray, Beliefs, tuple[FloatArray, float, FloatArray, float] | None]:
        """Search along the direction; return a step, value and gradient after it, and the next step's reach, or None.

        The objective is convex: a step that ends on a falling slope has not gone too far, and one that ends on too
        steep a rise, or lowers the objective too little, is shortened to where the slope, interpolated, is 0.
        """
        fall, largest = float(gradient @ direction), float(np.abs(direction).max())
        length, rounding = min(1.0, reach / largest), 1e-14 * (1.0 + abs(value))
        for _ in range(_MAX_SHORTENINGS):
            step = length * direction
            point = theta + step
            after, gradient_after = self._evaluate(point, l2, (yield point))
            rise = float(gradient_after @ direction)
            lower = after <= value + _MIN_DECREASE * length * fall + rounding
            if rise <= 0 or (rise <= -_MAX_RISE * fall and lower):
                return step, after, gradient_after, _REACH_GROWTH * reach
            length *= min(max(fall / (fall - rise), 0.05), 0.7)
            reach = max(_REACH_NATS, length * largest)
        return None

    def _evaluate(self, theta: FloatArray, l2: float, beliefs: Beliefs) -> tuple[float, FloatArray]:
        self.calls += 1
        self.marginals = beliefs.marginals.values
        objective = beliefs.log_partition - float(theta @ self.target.values) + l2 * float(theta @ theta)
        gradient = self.marginals - self.target.values + (2 * l2) * theta
        if not math.isfinite(objective):
            raise InferenceError("the likelihood is not a number; the potentials have run away, raise l2")
        return objective, gradient

    def _metric(self, marginals: FloatArray, gradient: FloatArray, l2: float) -> FloatArray:
        """mu (1 - mu / m) + 2 l2, m the cliques of a tied group; raised where a step would go beyond its reach."""
        metric = marginals * (1 - marginals / self._mass) + 2 * l2
        floored: FloatArray = np.maximum(metric, np.abs(gradient) / _REACH_NATS + 1e-300)
        return floored


def together(engine: Engine, descents: Sequence[Minimisation]) -> list[tuple[FloatArray, bool]]:
    """Run the descents to their ends on one engine; return what each returns, in their order.

    engine: compiled for the structure of each.
    """
    results: dict[int, tuple[FloatArray, bool]] = {}
    points = {number: next(descent) for number, descent in enumerate(descents)}
    while points:
        answers = infer_all(engine, list(points.values()))
        for number, beliefs in zip(list(points), answers, strict=True):
            try:
                points[number] = descents[number].send(beliefs)
            except StopIteration as ended:
                results[number] = ended.value
                del points[number]
    return [results[number] for number in range(len(descents))]


# --- Distance of noisy tables from the true ones, which a fit must not undercut -------------------


#: Standard deviations within which noise is summed, and points on either side of 0 on which a sum of noises is.
_REACH_DEVIATIONS = 40.0


_GRID_POINTS = 10_000


def expected_absolute(noise: Noise) -> float:
    """Return E |Z| of one cell's noise, records, from its log-density alone, so that it serves every mechanism.

    It sums over the integers when the noise is narrow, else over a fine grid; the relative error is below 1e-3 for
    log-concave noise.

    Examples
    --------
    >>> class Flat:
    ...     variance = 0.5
    ...     def logpdf(self, residual):
    ...         return np.where(np.abs(residual) <= 1, -np.log(4) + np.log(2) * (residual == 0), -np.inf)
    >>> round(expected_absolute(Flat()), 6)
    0.5
    """
    points, mass = _distribution(noise)
    return float(np.sum(np.abs(points) * mass) / np.sum(mass))


def _distribution(noise: Noise) -> tuple[FloatArray, FloatArray]:
    """Return values of one cell's noise, records, and their masses up to a factor."""
    if isinstance(noise, ScaledNoise):  # its lattice is scaled too
        points, mass = _distribution(noise.noise)
        return noise.factor * points, mass
    spread = math.sqrt(noise.variance)
    if isinstance(noise, PooledNoise):
        return _distribution_of_sum(noise, _REACH_DEVIATIONS * spread)
    reach = _REACH_DEVIATIONS * spread + 1
    points = (
        np.arange(-math.ceil(reach), math.ceil(reach) + 1.0) if spread < 500 else np.linspace(-reach, reach, 40_001)
    )
    log_mass = noise.logpdf(points)
    return points, np.exp(log_mass - log_mass.max())


def _distribution_of_sum(noise: PooledNoise, reach: float) -> tuple[FloatArray, FloatArray]:
    """Convolve on one grid; each value of a part is divided between grid points so that its mean stays."""
    places = np.arange(-_GRID_POINTS, _GRID_POINTS + 1)
    total: FloatArray | None = None
    for part, weight in zip(noise.noises, noise.weights, strict=True):
        points, mass = _distribution(part)
        at = np.clip(weight * points * (_GRID_POINTS / reach), -_GRID_POINTS, _GRID_POINTS - 1) + _GRID_POINTS
        below = np.floor(at).astype(np.intp)
        above = mass * (at - below) / mass.sum()
        own: FloatArray = np.bincount(below, mass / mass.sum() - above, len(places)).astype(np.float64)
        own += np.bincount(below + 1, above, len(places))
        total = own if total is None else np.maximum(_convolved(total, own), 0.0)
    assert total is not None
    return np.asarray(reach / _GRID_POINTS * places, dtype=np.float64), total


def _convolved(one: FloatArray, other: FloatArray) -> FloatArray:
    """The middle of their convolution. scipy.signal would bring scipy.stats, which takes 40 MB."""
    length = -(-(2 * len(one) - 1) // 500) * 500  # of the grid 40,500 = 2^2 3^4 5^3, which takes half of 40,001
    whole = np.fft.irfft(np.fft.rfft(one, length) * np.fft.rfft(other, length), length)
    middle: FloatArray = whole[len(one) // 2 :][: len(one)]
    return middle


def _possible(structure: Structure) -> tuple[int, ...]:
    """Cells of each table that constraints leave possible."""
    if structure.impossible is None:
        return structure.sizes
    return tuple(int(np.count_nonzero(~structure.impossible[part])) for part in structure.slices)


def expected_distance(release: NoisyTables) -> tuple[float, float]:
    """Return mean and standard deviation of |y - n|_1, the distance of the noisy tables from the true ones; records.

    For contrasts it is the distance of the contrasts; where constraints allow no record both are 0. The true tables are
    within the model's reach, so a fit that is much further from the noisy ones has not ended.

    Examples
    --------
    >>> from dpgm_core import Budget, Domain, SeededRandomness, Structure, release
    >>> structure = Structure(Domain.from_sizes({"a": 100}), [("a",)])
    >>> codes = np.zeros((9, 1), int)
    >>> noisy = release(codes, structure, Budget.pure("0.01"), neighbours="add-remove", randomness=SeededRandomness(0))
    >>> [round(number, -1) for number in expected_distance(noisy)]
    [10000.0, 1000.0]
    """
    alike = [expected_absolute(one.noise) for one in release.calibrations]
    means = [alike[number] for number in release.measurement.of_group]
    sizes = (1,) * len(means) if release.contrasts else _possible(release.structure)
    scatter = sum(
        size * max(0.0, noise.variance - mean**2) for size, noise, mean in zip(sizes, release.noise, means, strict=True)
    )
    return float(np.dot(sizes, means)), math.sqrt(scatter)


# --- Noisy tables whose shared margins agree ------------------------------------------------------


#: Projections on tables that agree, and on those without impossible cells, until these hold no more than this part.
_MAX_PROJECTIONS = 200


_ROUNDING_SHARE = 1e-9


def consistent(tables: Tables, variances: FloatArray | None = None) -> Tables:
    """Return the nearest tables (least squares over all cells) whose shared margins agree.

    Parameters
    ----------
    tables : Tables
        One table per clique, any units; tied groups are not changed.
    variances : array (groups,), optional
        Of the noise in a cell of each group, in any common unit; they divide the squares. None: all equal.

    Returns
    -------
    Tables
        May be negative; 0 where constraints of the domain allow no record (by alternating projections, von Neumann
        1950).

    Notes
    -----
    Unweighted this is the orthogonal projection on the span of the model's statistics, so it changes no
    maximum-likelihood fit, but removes the directions along which the likelihood would fall forever; weighted it lets
    tables of little noise count for more. With e_S^C the pure interaction of attributes S in table C, K the cells of C
    outside S and v its variance, the agreed interaction is sum_C e_S^C / (K v) over sum_C 1 / (K v).

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
    >>> from dpgm_core.structure import Structure
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a",), ("a", "b")])
    >>> both = consistent(Tables(structure, np.array([3.0, 1, 1, 1, 1, 1])))
    >>> bool(np.allclose(both["a"], both["a", "b"].sum(axis=1)))
    True
    """
    impossible = tables.structure.impossible
    if impossible is None:
        return _with_agreed_margins(tables, variances)
    scale = float(np.abs(tables.values).max())
    for _ in range(_MAX_PROJECTIONS):
        tables = _with_agreed_margins(tables, variances)
        left = float(np.abs(tables.values[impossible]).max())
        tables = tables.like(np.where(impossible, 0.0, tables.values))
        if left <= _ROUNDING_SHARE * scale:
            break
    return tables


def _with_agreed_margins(tables: Tables, variances: FloatArray | None) -> Tables:
    structure = tables.structure
    values = tables.values.astype(np.float64)
    # Relative to the largest: exactly 1 where all are the same, so that then weights change no digit.
    relative = np.ones(len(structure.groups)) if variances is None else variances / np.max(variances)
    holders: dict[frozenset[str], list[int]] = {}
    for number, group in enumerate(structure.groups):
        if len(group) == 1:
            for count in range(len(group[0]) + 1):
                for subset in itertools.combinations(group[0], count):
                    holders.setdefault(frozenset(subset), []).append(number)
    for shared, numbers in holders.items():
        if len(numbers) < 2:
            continue
        names = tuple(sorted(shared))
        effects = [_interaction(tables.group(number), structure.groups[number][0], names) for number in numbers]
        outside = [structure.sizes[number] // math.prod(structure.domain.shape(names)) for number in numbers]
        spreads = [cells * float(relative[number]) for cells, number in zip(outside, numbers, strict=True)]
        weight = sum(1 / spread for spread in spreads)
        agreed = sum(effect / spread for effect, spread in zip(effects, spreads, strict=True)) / weight
        for number, effect, cells in zip(numbers, effects, outside, strict=True):
            clique = structure.groups[number][0]
            block = values[structure.slices[number]].reshape(structure.shapes[number])
            block += _align_axes((agreed - effect) / cells, names, clique)
    return Tables(structure, values)


def _interaction(table: FloatArray, clique: Clique, names: Clique) -> FloatArray:
    """The margin on `names`, centred along each of its axes: their pure interaction."""
    outside = tuple(axis for axis, name in enumerate(clique) if name not in names)
    left = [name for name in clique if name in names]
    summed: FloatArray = np.asarray(table.sum(axis=outside, dtype=np.float64))
    margin = summed.transpose([left.index(name) for name in names])
    for axis in range(len(names)):
        margin = margin - margin.mean(axis=axis, keepdims=True)
    return margin


def _align_axes(effect: FloatArray, names: Clique, clique: Clique) -> FloatArray:
    """The effect with axes in the clique's order and length-1 axes for the other attributes."""
    order = [names.index(name) for name in clique if name in names]
    ordered = effect.transpose(order)
    sizes = iter(ordered.shape)
    aligned: FloatArray = ordered.reshape([next(sizes) if name in names else 1 for name in clique])
    return aligned
