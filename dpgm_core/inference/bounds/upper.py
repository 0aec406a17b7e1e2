"""An upper bound on log Z: the potentials divided among parts of the model whose junction tree fits.

Let parts t = 1 .. T have potentials phi_t with sum_t phi_t / T = theta. Hoelder's inequality gives

    Z = sum_x prod_t exp(phi_t(x))^(1/T) <= prod_t (sum_x exp(phi_t(x)))^(1/T),   log Z <= sum_t log Z(phi_t) / T,

for ANY such division, so every step of its optimisation is certified. With spanning trees for parts this is the
tree-reweighted bound (Wainwright, Jaakkola, Willsky 2005); here a part holds whatever fits. The bound is convex in the
division, with the marginals of the parts as its gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen
from scipy.optimize import minimize

from dpgm_core.arrays import FloatArray, IntArray
from dpgm_core.inference.exact.junction_tree import JunctionTree, JunctionTreeEngine
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

__all__ = ["EPSILON", "Cover", "Division", "divide"]

EPSILON = float(np.finfo(np.float64).eps)
# Steps of L-BFGS; each takes one inference in every part.
STEPS = 60


@frozen(kw_only=True, eq=False)
class Cover:
    """Parts of a structure that hold all its cliques together. engines: one per part. cells: per part, which cells of
    the structure its own are. holders: (cells,), how many parts hold each cell.
    """

    structure: Structure
    engines: tuple[JunctionTreeEngine, ...]
    cells: tuple[IntArray, ...]
    holders: IntArray

    @classmethod
    def of(cls, structure: Structure, parts: Sequence[Sequence[int]], inference: JunctionTree) -> Cover:
        """parts: numbers of the groups of `structure` that each holds. Raises TooLarge."""
        engines, cells = [], []
        for part in parts:
            engines.append(
                inference.plain(Structure(structure.domain, [structure.groups[number][0] for number in part]))
            )
            cells.append(np.concatenate([np.arange(structure.slices[n].start, structure.slices[n].stop) for n in part]))
        holders = np.bincount(np.concatenate(cells), minlength=structure.cells)
        return cls(structure=structure, engines=tuple(engines), cells=tuple(cells), holders=holders)


@frozen(kw_only=True, eq=False)
class Division:
    """The best division found. bound: nats, certain but for rounding. slack: what rounding may have taken off it, nats.
    potentials, marginals: of each part.
    """

    bound: float
    slack: float
    potentials: tuple[FloatArray, ...]
    marginals: tuple[FloatArray, ...]


def divide(cover: Cover, theta: FloatArray) -> Division:
    """Divide potentials among the parts of a cover so that the bound is low. theta: (cells,), nats, -inf allowed.

    Raises InferenceError where a part finds every record impossible.
    """
    parts, cells = len(cover.engines), cover.cells
    # Of each part first what is fair: phi_t / T = theta / holders, the same in all of them.
    fair = [theta[own] * parts / cover.holders[own] for own in cells]
    ends = np.cumsum([0, *(own.size for own in cells)])
    everything = np.concatenate(cells)
    best: Division | None = None

    def bound(moved: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        # What is moved sums to 0 over the parts that hold a cell.
        centred = moved - (np.bincount(everything, moved, theta.size) / cover.holders)[everything]
        phi = [start + centred[a:b] for start, a, b in zip(fair, ends, ends[1:], strict=False)]
        beliefs = [engine.infer(Tables(engine.structure, own)) for engine, own in zip(cover.engines, phi, strict=True)]
        value = math.fsum(one.log_partition for one in beliefs) / parts
        marginals = tuple(one.marginals.values for one in beliefs)
        if best is None or value < best.bound:
            best = Division(bound=value, slack=_slack(cover, phi, theta), potentials=tuple(phi), marginals=marginals)
        slope = np.concatenate(marginals) / parts
        slope -= (np.bincount(everything, slope, theta.size) / cover.holders)[everything]
        return value, slope

    start = np.zeros(everything.size)
    if parts == 1:
        bound(start)
    else:
        minimize(
            bound, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS, "ftol": 1e-7, "maxfun": 2 * STEPS}
        )
    assert best is not None
    return best


def _slack(cover: Cover, phi: Sequence[FloatArray], theta: FloatArray) -> float:
    """What rounding may have changed: a unit in the last place of every potential that is added or raised to a power,
    and one per cell that an inference adds up.
    """
    shared = sum(_magnitude(own, engine.structure) for own, engine in zip(phi, cover.engines, strict=True)) / len(phi)
    operations = max(engine.needs.cells for engine in cover.engines)
    return 4 * EPSILON * (shared + _magnitude(theta, cover.structure) + operations + 1)


def _magnitude(values: FloatArray, structure: Structure) -> float:
    """The largest finite size of a record's log-weight: summed over the cliques, nats."""
    sizes = np.where(np.isfinite(values), np.abs(values), 0.0)
    return float(np.maximum.reduceat(sizes, [where.start for where in structure.slices]).sum())
