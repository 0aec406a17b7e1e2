"""Private stochastic gradient ascent (DP-SGD, Abadi et al. 2016) on the likelihood of a log-linear model.

The gradient of the mean log-likelihood is E T(x) - mu(theta): the data enter through the clique tables alone. A round
is a noisy release on a fresh Poisson subsample; it costs one inference call, one count and one draw of noise.

* `tables`: theta += eta [ y / (q N) - mu(theta) ], y the noisy tables of the subsample. Nothing needs clipping, because
  the statistics of every person have the norm sqrt(|C|) and mu(theta) depends on no record.
* `clip`: the published recipe: theta += eta y / (q N), y the noisy sum of the persons' scores T(x) - mu(theta), each
  clipped to a norm. Norms below sqrt(2 |C|), the largest a score can have, bias towards mu(theta).

Every round privatises the same linear statistics, so one Gaussian release at the same cost tells more (docs/psgd.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import attrs
import numpy as np
from attrs import frozen

from dpgm_core import (
    ClippedScore,
    Curator,
    Engine,
    Fit,
    FloatArray,
    Inference,
    InferenceError,
    Model,
    NoisyTables,
    Progress,
    Randomness,
    Rounds,
    Structure,
    Tables,
    option,
    positive,
    share,
    whole,
)
from dpgm_core.learning import Resources

__all__ = ["Psgd"]


def _rate(instance: object, attribute: Any, value: float) -> None:
    positive(instance, attribute, value)
    if value > 1:
        raise ValueError(f"{attribute.name} must lie in (0, 1], got {value}")


@frozen(kw_only=True)
class Psgd:
    """Gradient ascent on noisy subsamples; the budget is spent in full when the rounds are opened.

    >>> Psgd(epochs=5, sampling_rate=0.1).steps
    50
    """

    epochs: float = option(
        10.0, help="passes over the records: epochs / sampling_rate steps in all", unit="passes", validator=positive
    )
    sampling_rate: float = option(
        0.1, help="the probability with which each person takes part in a step", unit="probability", validator=_rate
    )
    learning_rate: float = option(
        1.0, help="step length on the log-potentials", unit="nats / probability", validator=positive
    )
    schedule: Literal["constant", "inverse-sqrt", "linear"] = option(
        "constant", help="how the step length falls: not at all, as 1 / sqrt(step), or linearly to 0"
    )
    momentum: float = option(0.0, help="share of the last step that is added to the next", validator=share)
    averaging: float = option(
        0.5, help="the potentials are averaged over this last share of the steps; 0: the last ones", validator=share
    )
    mode: Literal["tables", "clip"] = option(
        "tables", help="privatise the subsample's tables, or each person's gradient clipped to clip_norm"
    )
    clip_norm: float | None = option(
        None,
        help="mode 'clip': the largest norm of a person's gradient; none: sqrt of the number of cliques",
        unit="records",
        validator=attrs.validators.optional(positive),
    )
    grid: int = option(1024, help="mode 'clip': gradients are truncated to whole multiples of 1/grid", validator=whole)

    @property
    def steps(self) -> int:
        """Number of rounds it opens."""
        return max(1, math.ceil(self.epochs / self.sampling_rate - 1e-9))

    def check(self, structure: Structure, inference: Inference) -> None:
        """Refuse what the engine cannot hold; raises TooLarge."""
        inference.compile(structure)

    def estimate_resources(self, structure: Structure, inference: Inference) -> Resources:
        """Estimate by the number of cells, as measured on one table of 1000 x 500 labels; see `ResourceEstimator`."""
        return Resources.by_cells(structure, each=500, cpu_seconds=2e-6 * self.steps, calls=self.steps)

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Open all rounds and climb. Raises BudgetError before any record is read, InferenceError if it runs away."""
        structure = curator.structure
        engine = inference.compile(structure)
        clip = None
        if self.mode == "clip":
            # |T(x)| of a record that hits one cell of each table, with all cliques of its group
            norm = math.sqrt(sum(m * m for m in structure.multiplicities)) if self.clip_norm is None else self.clip_norm
            clip = ClippedScore(norm=norm, grid=self.grid)
        with curator.rounds(self.steps, sampling_rate=self.sampling_rate, clip=clip) as rounds:
            ascent = _Ascent(self, engine, rounds, progress)
            release = ascent.run()
        potentials = Tables(structure, ascent.potentials())
        return Fit(
            model=Model(structure, potentials),
            trace=ascent.trace,
            converged=ascent.unconverged == 0,
            certificate={
                "steps": self.steps,
                "inference_calls": self.steps,
                "noise_per_cell": math.sqrt(release.variances.max()) / (self.grid if clip else 1) / ascent.batch,
            },
            notes=ascent.notes(),
        )


class _Ascent:
    """The state of one run."""

    def __init__(self, settings: Psgd, engine: Engine, rounds: Rounds, progress: Progress) -> None:
        self.settings, self.engine, self.rounds, self.progress = settings, engine, rounds, progress
        self.theta: FloatArray = np.zeros(engine.structure.cells)
        self.velocity: FloatArray = np.zeros(engine.structure.cells)
        self.tail: FloatArray = np.zeros(engine.structure.cells)
        # the tail always holds the last step
        self.first_averaged = min(math.floor((1 - settings.averaging) * settings.steps), settings.steps - 1)
        self.batch = 0.0
        self.unconverged = 0  # steps whose inference had not converged
        self.trace: list[Mapping[str, float]] = []

    def run(self) -> NoisyTables:
        """Take all steps; return the last round."""
        release = None
        for step in range(self.settings.steps):
            self.progress("learning", step, self.settings.steps)
            release = self._step(step)
        assert release is not None
        return release

    def potentials(self) -> FloatArray:
        """The average over the last steps, (cells,), nats."""
        return self.tail / (self.settings.steps - self.first_averaged)

    def notes(self) -> list[str]:
        """Return sentences for the user."""
        if not self.unconverged:
            return []
        return [
            f"inference did not converge in {self.unconverged} of {self.settings.steps} steps, so their gradients may "
            "be wrong; lower learning_rate, or use junction-tree"
        ]

    def _step(self, step: int) -> NoisyTables:
        settings = self.settings
        beliefs = self.engine.infer(Tables(self.engine.structure, self.theta))
        self.unconverged += not beliefs.converged
        clipped = settings.mode == "clip"
        release = self.rounds.next(beliefs if clipped else None)
        # q N: public, or estimated from all rounds so far
        self.batch += (release.total - self.batch) / (step + 1)
        noisy = release.tables.values.astype(np.float64)
        if clipped:
            gradient = noisy / (settings.grid * self.batch)
        else:
            gradient = noisy / self.batch - beliefs.marginals.values
        rate = settings.learning_rate * _decay(settings.schedule, step, settings.steps)
        self.velocity = settings.momentum * self.velocity + gradient
        self.theta = self.theta + rate * self.velocity
        if not np.all(np.abs(self.theta) < 1e100):
            raise InferenceError("the potentials have run away; lower learning_rate or momentum")
        if step >= self.first_averaged:
            self.tail = self.tail + self.theta
        self.trace.append(
            {"step": step + 1, "rate": rate, "gradient": float(np.linalg.norm(gradient)), "inference_calls": 1}
        )
        return release


def _decay(schedule: str, step: int, steps: int) -> float:
    if schedule == "inverse-sqrt":
        return 1 / math.sqrt(step + 1)
    return 1 - step / steps if schedule == "linear" else 1.0
