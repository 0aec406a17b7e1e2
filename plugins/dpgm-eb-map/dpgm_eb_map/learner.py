"""The most probable model under an empirical-Bayes prior: generalised least squares with one scale per clique.

The noisy statistics z have mean N m(phi) and covariance N F + V: sampling and noise together. Under the Gaussian prior
phi ~ N(0, s_g^2 / w) the estimate minimises .5 r'Wr + .5 phi' Lam phi with r = z - N m(phi), Lam = w / s_g^2, and
W = (N F + V)^-1 frozen for one round. After each round the scales s_g are set to what the data support (`scales`), so
that a clique without interaction is switched off and a strong one left alone. No tuning needs the truth.
Sources: MacKay (1992), Bayesian interpolation; Bernstein and Sheldon (2018) for the covariance of noisy statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from dpgm_core import (
    Curator,
    Engine,
    Fit,
    Inference,
    InferenceError,
    Model,
    NoisyTables,
    OptionError,
    Progress,
    Randomness,
    ReplayCurator,
    Structure,
    Tables,
    at_least_zero,
    option,
    positive,
    silent,
    whole,
)
from dpgm_eb_map.contrasts import basis_of, group_count
from dpgm_eb_map.dense import Dense
from dpgm_eb_map.descent import Objective, System
from dpgm_eb_map.matrix_free import MatrixFree
from dpgm_eb_map.posterior import Moments, pilot, statistics_of
from dpgm_eb_map.scales import Scales

__all__ = ["EbMap"]

_SETTLED = 0.03  # rounds end when no log s_g moves further, times the parameters determined if below 1
_STEPS = 50  # descent steps in one round
_REFITTED = 0.015  # a refit, one draw of many, ends when Newton's step is shorter than this times sqrt(p)
_ROUGH_STEPS = 8  # the same where each costs many products; the next round goes on from there


def _scales(instance: object, attribute: Any, value: object) -> None:
    if value is not None and not (isinstance(value, tuple) and value):
        raise ValueError(f"{attribute.name} must be numbers, one per group of parameters, or none; got {value!r}")
    for scale in value or ():
        positive(instance, attribute, scale)


@frozen(kw_only=True)
class EbMap:
    """Generalised least squares with automatic relevance determination (ARD).

    >>> EbMap(widening=0).widening
    0
    """

    widening: float = option(
        1.25,
        help="before the last fit prior scales are multiplied by 1 + widening d^2, d the share of a group's parameters "
        "that the tables determine, as rare cells are both undetermined and far out; 0 fits Gaussian potentials",
        validator=at_least_zero,
    )
    rounds: int = option(12, help="at most this many updates of the prior scales", unit="rounds", validator=whole)
    tolerance: float = option(
        0.01,
        help="a fit ends when Newton's step is shorter",
        unit="posterior standard deviations",
        validator=positive,
    )
    dense_up_to: int = option(
        6000,
        help="with more parameters no matrix is made: conjugate gradients take over, slower and rougher",
        unit="parameters",
        validator=whole,
    )

    scales: tuple[float, ...] | None = option(
        None,
        help="the prior scales of the last fit, main effects' first, then each clique's, as an earlier fit's tuning "
        "has them: nothing is tuned then; none: the tables choose",
        unit="nats",
        validator=_scales,
    )

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Take one release and fit it.

        Raises InferenceError when the engine fails, OptionError for scales that are not the structure's.
        """
        if not isinstance(curator, ReplayCurator):  # it serves its own structure, and spends nothing
            self._check(curator.structure)
        release = curator.release()
        run = _Run(self, release, inference.compile(release.structure), progress)
        run.learn()
        potentials = Tables(release.structure, run.moments.basis.potentials(run.phi)).embed(curator.structure)
        return Fit(
            model=Model(potentials.structure, potentials, release=release),
            release=release,
            trace=run.trace,
            converged=run.settled and run.distance <= self.tolerance,
            certificate=run.certificate(),
            notes=run.notes(),
            tuning={"scales": run.scales.values.tolist()},
        )

    def _check(self, structure: Structure) -> None:
        groups = group_count(structure)
        if self.scales is not None and len(self.scales) != groups:
            raise OptionError(
                f"eb-map: scales has {len(self.scales)} numbers, but {structure} has {groups} groups of parameters "
                "(all main effects, and the interactions of each clique); take scales from the tuning of a fit to the "
                "same cliques"
            )

    def refitter(self, model: Model, inference: Inference) -> Callable[[NoisyTables], Tables]:
        """Fits to releases like the model's, W and H factored once at the model; its scales if none are given.

        W is a function of the model, not of the noise in its tables, so refits are as unbiased as fits. Raises
        InferenceError for a model without its release.
        """
        release = model.release
        if release is None:
            raise InferenceError("eb-map: refits need the release that the model was learned from; this model has none")
        run = _Run(self, release, inference.compile(release.structure), silent)
        if self.scales is None or model.structure != release.structure:
            run.learn()
        else:
            run.start(model.potentials)
        return partial(run.refit, model.structure)


class _Run:
    """The state of one fit."""

    def __init__(self, settings: EbMap, release: NoisyTables, engine: Engine, progress: Progress) -> None:
        settings._check(release.structure)
        self.settings, self.release, self.progress = settings, release, progress
        self.basis = basis_of(release)
        self.moments = Moments(engine, self.basis)
        self.total = release.total
        self.noisy = statistics_of(self.basis, release)
        self.dense = self.basis.size <= settings.dense_up_to
        self.system: System
        self.phi = np.zeros(self.basis.size)
        self.scales = Scales(self.basis)
        self.trace: list[dict[str, float]] = []
        self.distance = 0.0
        self.settled = True

    def learn(self) -> None:
        """Pilot, rounds of fit and update, and the last fit under the widened prior."""
        if not self.basis.size:  # one label everywhere: there is nothing to learn
            return
        self.progress("learning", 0, self.settings.rounds + 1)
        self.phi = pilot(self.moments, self.release, self.progress, cautious=not self.dense)
        if self.settings.scales is None:
            self._tune()
        else:
            self.scales.values = np.array(self.settings.scales)
            for _ in range(2):  # at the pilot W is rough
                self.linearise()
                self._fit()
            self.scales.measure(self.system.determined())
            self._record(0.0)

    def start(self, potentials: Tables) -> None:
        """Take a fit as it is, and what refits need of it."""
        assert self.settings.scales is not None
        self.phi = self.basis.parameters(potentials.values)
        self.scales.values = np.array(self.settings.scales)
        if self.basis.size:
            self.linearise()
            self.system.set_prior(self.scales.precision())

    def refit(self, structure: Structure, release: NoisyTables) -> Tables:
        """The potentials over `structure` of a fit to another release, from this one and with its W and H."""
        if not self.basis.size:
            return Tables.zeros(structure)
        objective = Objective(
            self.moments, self.system, statistics_of(self.basis, release), release.total, self.scales.precision()
        )
        tolerance = max(self.settings.tolerance, _REFITTED * math.sqrt(self.basis.size))
        phi, _ = objective.minimise(self.phi, tolerance, _STEPS if self.dense else _ROUGH_STEPS)
        return Tables(self.basis.structure, self.basis.potentials(phi)).embed(structure)

    def _tune(self) -> None:
        self.linearise()
        for number in range(self.settings.rounds):
            self.progress("learning", number, self.settings.rounds + 1)
            self._fit()
            self.linearise()
            moved = self._update()
            self.settled = moved < _SETTLED
            self._record(moved)
            if self.settled:
                break
        self.scales.widen(self.settings.widening)
        self._fit()
        self._record(0.0)

    def linearise(self) -> None:
        """F, and with it W, at the present parameters."""
        _, marginals, mean = self.moments.mean(self.phi)
        covariance = self.moments.covariance(self.phi)
        drift = math.sqrt(self.release.total_variance) * mean
        if self.dense:
            self.system = Dense(self.total * covariance(np.eye(self.basis.size)), self.basis.variances, drift)
        else:
            self.system = MatrixFree(covariance, self.basis, marginals, self.total, drift)
        self.residual = self.noisy - self.total * mean

    def _fit(self) -> None:
        """Minimise under the present scales."""
        precision = self.scales.precision()
        self.system.set_prior(precision)
        objective = Objective(self.moments, self.system, self.noisy, self.total, precision)
        steps = _STEPS if self.dense else _ROUGH_STEPS
        self.phi, self.distance = objective.minimise(self.phi, self.settings.tolerance, steps)

    def _update(self) -> float:
        self.system.set_prior(self.scales.precision())
        return self.scales.update(self.phi, self.system.determined())

    def _record(self, moved: float) -> None:
        self.trace.append(
            {
                "inference_calls": self.moments.calls,
                "curvature_products": self.moments.products,
                "distance": self.distance,
                "smallest_scale": float(self.scales.values.min()),
                "median_scale": float(np.median(self.scales.values)),
                "largest_scale": float(self.scales.values.max()),
                "moved": moved,
            }
        )

    def certificate(self) -> dict[str, float]:
        """How near the last fit is to its optimum, and what was found."""
        return {
            "distance": self.distance,
            "parameters": self.basis.size,
            "determined_parameters": float(self.scales.determined.sum()),
            "inference_calls": self.moments.calls,
            "curvature_products": self.moments.products,
        }

    def notes(self) -> list[str]:
        """What the user should know."""
        if not self.basis.size:
            return ["every clique has one cell: there is nothing to learn"]
        path = "dense" if self.dense else "matrix-free"
        determined = float(self.scales.determined.sum())
        notes = [f"{path} path: {self.basis.size:,} parameters, {determined:.1f} of them determined by the tables"]
        if not self.dense:
            needed = f"{6 * 8 * self.basis.size**2 / 2**30:.2g} GiB"
            notes.append(f"rougher than with matrices: dense_up_to = {self.basis.size} makes them, in about {needed}")
        if not self.settled:
            notes.append(f"the prior scales still moved after {self.settings.rounds} rounds; raise rounds")
        if self.distance > self.settings.tolerance:
            notes.append(
                f"the last fit ended {self.distance:.2g} posterior standard deviations from its optimum, above "
                f"tolerance = {self.settings.tolerance:g}"
            )
        if self.system.unsolved:
            notes.append(f"{self.system.unsolved} linear systems of the last round were given up; the fit may be rough")
        return notes
