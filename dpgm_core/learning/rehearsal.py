"""Tuning without the truth: fits to releases simulated from a pilot, and how far from it they end."""

from __future__ import annotations

from collections.abc import Iterable

from dpgm_core.arrays import FloatArray
from dpgm_core.inference.contract import Engine
from dpgm_core.inference.many import infer_all
from dpgm_core.learning.simulator import Simulator
from dpgm_core.progress import Progress
from dpgm_core.randomness import Randomness, SeededRandomness
from dpgm_core.releases.release import NoisyTables
from dpgm_core.tables import Tables

__all__ = ["Rehearsal"]


class Rehearsal:
    """Releases like `release`, simulated from a pilot fit that plays the truth; a parametric bootstrap of a tuning.

    engine: of the release's structure, and able to sample. pilot: log-potentials over it, what a first fit learned.
    draws: how many releases, the same for every tuning that is tried. One number is taken from `randomness`. Raises
    InferenceError when the engine cannot sample. Source: Efron and Tibshirani (1993), section 6.5.

    releases: what to fit, tuning by tuning. marginals: the pilot's, (cells,).

    >>> import numpy as np
    >>> from dpgm_core import Budget, Domain, Structure, make, release, silent
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> codes = np.array([[0, 0], [1, 1]] * 500)
    >>> noisy = release(codes, structure, Budget.pure(1), neighbours="add-remove", randomness=SeededRandomness(0))
    >>> engine, pilot = make("inference", "junction-tree").compile(structure), Tables.zeros(structure)
    >>> rehearsal = Rehearsal(noisy, engine, pilot, draws=3, randomness=SeededRandomness(1), progress=silent)
    >>> len(rehearsal.releases), rehearsal.loss([pilot.values] * 3)
    (3, 0.0)
    """

    def __init__(
        self,
        release: NoisyTables,
        engine: Engine,
        pilot: Tables,
        *,
        draws: int,
        randomness: Randomness,
        progress: Progress,
    ) -> None:
        simulator = Simulator(release, engine, pilot)
        own = SeededRandomness(int(randomness.generator().integers(2**63)))
        self.releases: list[NoisyTables] = []
        for number in range(draws):
            progress("simulating", number, draws)
            self.releases.append(simulator.draw(own))
        progress("simulating", draws, draws)
        beliefs = engine.infer(pilot)
        self.marginals: FloatArray = beliefs.marginals.values
        self._engine, self._pilot, self._log_partition = engine, pilot, beliefs.log_partition

    def loss(self, fits: Iterable[FloatArray]) -> float:
        """The mean of KL(pilot || fit), nats, exact where inference is; one inference call each.

        fits: log-potentials, (cells,), one per release and in their order.
        """
        loss, thetas = 0.0, list(fits)
        for theta, beliefs in zip(thetas, infer_all(self._engine, thetas), strict=True):
            # KL = A(theta) - A(pilot) - mu . (theta - pilot)
            loss += beliefs.log_partition - self._log_partition - float(self.marginals @ (theta - self._pilot.values))
        return loss / len(self.releases)

    @staticmethod
    def vertex(left: float, here: float, right: float) -> float:
        """Where the parabola through the losses of three tunings, at -1, 0 and 1, is least; 0 if it has no least.

        >>> Rehearsal.vertex(4.0, 1.0, 2.0), Rehearsal.vertex(1.0, 1.0, 1.0)
        (0.25, 0.0)
        """
        bend = left - 2 * here + right
        return 0.5 * (left - right) / bend if bend > 0 else 0.0
