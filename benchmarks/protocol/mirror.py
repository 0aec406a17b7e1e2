"""Mirror descent on noisy tables, as mbi 2.0.0 does it, on dpgm's engine: the fit that our loops are compared with.

mbi itself compiles a program for each structure, so whole loops of selection around it take hours. Its answer is what
counts here, and this is its answer: `benchmarks.selection` compares both on one release, to four digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from attrs import field, frozen

from dpgm_core import (
    Clique,
    Curator,
    Fit,
    FloatArray,
    Inference,
    Model,
    NoisyTables,
    Progress,
    Randomness,
    Structure,
    Tables,
)

__all__ = ["MirrorDescent", "descend", "smoothness"]


@frozen(kw_only=True)
class MirrorDescent:
    """Least squares on the noisy tables, sum |y_t - N mu_t|^2 / (2 sigma_t^2), by mirror descent with Armijo steps.

    steps: of a fit; mbi takes 1,000, and what is left of the distance to the optimum is its only regulariser. Fits
    start where the last one of this object ended, as those of AIM do; a fitter that is given no previous fit starts at
    the uniform model. Source: McKenna, Sheldon, Miklau (2019), Algorithm 1; the settings are those of mbi 2.0.0.
    """

    steps: int = 1000
    _last: dict[Clique, FloatArray] = field(factory=dict, repr=False, eq=False, init=False)

    def check(self, structure: Structure, inference: Inference) -> None:
        """Refuse what the engine cannot hold; raises TooLarge."""
        inference.compile(structure)

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Take one release and fit it."""
        return self._fit(inference, curator.release(), curator.structure)

    def fitter(self, inference: Inference) -> Callable[[NoisyTables, Structure, Fit | None], Fit]:
        """Fits in a loop, each from where the last one ended."""

        def fit(release: NoisyTables, structure: Structure, previous: Fit | None) -> Fit:
            if previous is None:
                self._last.clear()
            return self._fit(inference, release, structure)

        return fit

    def _fit(self, inference: Inference, release: NoisyTables, structure: Structure) -> Fit:
        start = _start(release.structure, self._last)
        theta, trace = descend(inference, release, start, self.steps)
        self._last.clear()
        self._last.update((clique, np.array(table)) for clique, table in theta.items())
        # Tables are those that were measured; the model may be asked for wider cliques.
        potentials = theta if structure == release.structure else theta.embed(structure)
        return Fit(model=Model(potentials.structure, potentials), trace=(trace,), certificate=trace)


def descend(
    inference: Inference, release: NoisyTables, start: FloatArray, steps: int
) -> tuple[Tables, dict[str, float]]:
    """Log-potentials, one table per measured clique, after so many steps from `start`, (cells,); and how it went.

    A step along the negative gradient in the potentials is taken where the loss falls by half of what its slope
    promises, and the next is 1 % longer; else the next is half as long.
    """
    structure, total = release.structure, release.total
    engine = inference.compile(structure)
    precisions = np.repeat(1 / release.variances, structure.sizes)
    noisy = release.tables.values.astype(np.float64)

    def at(potentials: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Expected counts, the gradient with regard to them, and the loss."""
        counts = engine.infer(Tables(structure, potentials), total=total).marginals.values
        gradient = precisions * (counts - noisy)
        return counts, gradient, float(gradient @ (counts - noisy)) / 2

    theta, length, taken = start, 2 / (smoothness(release) * total), 0
    counts, gradient, loss = at(theta)
    for _ in range(steps):
        candidate = theta - length * gradient
        moved = at(candidate)
        if loss - moved[2] >= 0.5 * length * float(gradient @ (counts - moved[0])):
            theta, (counts, gradient, loss), length, taken = candidate, moved, 1.01 * length, taken + 1
        else:
            length *= 0.5
    return Tables(structure, theta), {"loss": loss, "taken": taken, "step": length}


def smoothness(release: NoisyTables) -> float:
    """An upper bound of the loss's curvature in expected counts, from which mbi sets its first step.

    Each table counts towards the smallest largest clique that holds it, with the cells of that one per cell of its own.
    """
    structure = release.structure
    nested = set(structure.nested)
    largest = [clique for clique in structure.cliques if clique not in nested]
    cells = {clique: math.prod(structure.domain.shape(clique)) for clique in structure.cliques}
    found = dict.fromkeys(largest, 0.0)
    for (clique, *_), variance in zip(structure.groups, release.variances, strict=True):
        inside = min((one for one in largest if set(clique) <= set(one)), key=cells.__getitem__)
        found[inside] += cells[inside] / cells[clique] / variance
    return max(found.values())


def _start(structure: Structure, last: Mapping[Clique, FloatArray]) -> FloatArray:
    """The last fit's potentials on the tables that are there still, 0 on new ones; 0 where one is gone."""
    found = {clique: np.zeros(structure.domain.shape(clique)) for clique in structure.cliques}
    if all(clique in found and found[clique].shape == table.shape for clique, table in last.items()):
        found |= last
    return Tables.from_arrays(structure, found).values
