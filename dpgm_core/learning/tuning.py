"""Tuning without the truth: fits to releases simulated from a pilot, and their distance from it."""

from __future__ import annotations

from collections.abc import Iterable

from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.progress import Progress
from dpgm_core._util.randomness import Randomness, SeededRandomness
from dpgm_core.inference.contract import Engine
from dpgm_core.inference.quasi_newton import infer_all
from dpgm_core.learning.bootstrap import Simulator
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.tables import Tables

__all__ = ["Rehearsal"]


class Rehearsal:
    """Simulated releases like `release`, from a pilot fit that plays the truth, to choose a tuning by.

    One number is taken from `randomness`.

    Parameters
    ----------
    engine : Engine
        Of the release's structure, and able to sample; else InferenceError.
    pilot : Tables
        Log-potentials of a first fit.
    draws : int
        Number of releases, the same for every tuning that is tried.

    Attributes
    ----------
    releases : list of NoisyTables
        To be fitted, tuning by tuning.
    marginals : array (cells,)
        The pilot's.

    References
    ----------
    Efron and Tibshirani (1993), section 6.5.

    Examples
    --------
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
        """Return the mean of KL(pilot || fit), nats, exact where inference is; one inference call per fit.

        fits: log-potentials, (cells,), one per release and in their order.
        """
        loss, thetas = 0.0, list(fits)
        for theta, beliefs in zip(thetas, infer_all(self._engine, thetas), strict=True):
            # KL = A(theta) - A(pilot) - mu . (theta - pilot)
            loss += beliefs.log_partition - self._log_partition - float(self.marginals @ (theta - self._pilot.values))
        return loss / len(self.releases)

    @staticmethod
    def vertex(left: float, here: float, right: float) -> float:
        """Return the minimiser of the parabola through the losses of tunings at -1, 0 and 1; 0 if it has no minimum.

        >>> Rehearsal.vertex(4.0, 1.0, 2.0), Rehearsal.vertex(1.0, 1.0, 1.0)
        (0.25, 0.0)
        """
        bend = left - 2 * here + right
        return 0.5 * (left - right) / bend if bend > 0 else 0.0
