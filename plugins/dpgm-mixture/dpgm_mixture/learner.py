"""Latent classes: sum_h pi_h prod_i F_i(x_i | h), by penalised least squares on noisy tables.

Any pairs may be measured, all of them too, as nothing needs a junction tree over the attributes: that of the model has
a cluster for each attribute, with the class. Source: Goodman (1974), Exploratory latent structure analysis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import attrs
import numpy as np
from attrs import frozen

from dpgm_core import (
    Attribute,
    Curator,
    Domain,
    Fit,
    FloatArray,
    Inference,
    InferenceError,
    Model,
    NoisyTables,
    OptionError,
    Progress,
    Randomness,
    Structure,
    Tables,
    option,
    positive,
    silent,
    whole,
)
from dpgm_core.learning import Resources
from dpgm_mixture.objective import Objective

__all__ = ["Mixture"]

_FEWEST, _MOST = 16, 128  # classes, where the learner chooses their number
# Classes are doubled while that lowers the objective by this part of it, and by 1. On Adult at epsilon = 10 16 become
# 32 or 64, with 10 to 20 % less error; on Adult at 1 and on tables of one factor more were not reliably better.
_MIN_FALL, _MIN_FALL_NATS = 0.05, 1.0
_SPREAD = 0.5  # standard deviation of the classes at the start, nats
_STIR = 0.1  # of a refit's start: classes that are alike would stay alike, as the gradient is
_SECANTS = 20
_MAX_EVALUATIONS = 2  # for each step
# Measured on 4,950 pairs of 100 cells on one core of 2026: of a step, for each attribute, cell, and cell and class.
_ATTRIBUTE_SECONDS, _CELL_SECONDS, _CLASS_SECONDS = 4e-5, 2e-8, 6e-10
_PROGRAM_BYTES = 160 * 2**20  # Python, numpy, scipy and the engine
_CELL_NUMBERS, _VECTORS = 12, 2 * _SECANTS + 20  # numbers for each cell of the tables and for each parameter


@frozen(kw_only=True)
class Mixture:
    """Classes within which all attributes are independent.

    >>> Mixture(classes=8).classes
    8
    """

    classes: int | None = option(
        None,
        help="number of classes of a fit; none: 16, doubled up to 128 while that lowers the objective by 5 %",
        validator=attrs.validators.optional(whole),
    )
    starts: int = option(
        2,
        help="fits from so many random starts are averaged: the model has as many times the classes",
        validator=whole,
    )
    steps: int = option(1000, help="at most this many steps of L-BFGS for each fit", validator=whole)
    tolerance: float = option(
        2e-5, help="a fit ends when a step lowers the objective by less than this part of it", validator=positive
    )

    def check(self, structure: Structure, inference: Inference) -> None:
        """Refuse a domain with constraints, OptionError: independent attributes cannot keep them."""
        if structure.domain.scopes:
            raise OptionError(
                "learner mixture cannot keep constraints: within a class attributes are independent; take learner "
                "'eb-map', or leave the constraints out of the domain"
            )

    def estimate_resources(self, structure: Structure, inference: Inference) -> Resources:
        """Estimate by the cells of the tables and the parameters of the classes; see `ResourceEstimator`."""
        runs = [self.classes] if self.classes else _doublings()
        runs += runs[-1:] * (self.starts - 1)
        parameters = max(runs) * sum(structure.domain.sizes.values())
        step = sum(
            _ATTRIBUTE_SECONDS * len(structure.domain) + structure.cells * (_CELL_SECONDS + _CLASS_SECONDS * classes)
            for classes in runs
        )
        memory = _PROGRAM_BYTES + 8 * (_CELL_NUMBERS * structure.cells + _VECTORS * parameters)
        return Resources(memory=memory, cpu_seconds=self.steps * step, calls=0)

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Take one release and fit it."""
        self.check(curator.structure, inference)
        release = curator.release()
        objective, seed = Objective(release), int(randomness.generator().integers(2**63))

        def descend(classes: int, number: int) -> _Found:
            # of its own seed, so that the chosen number of classes repeats the fit that it was chosen by
            start = _start(objective, classes, np.random.default_rng([seed, classes, number]))
            found = _minimise(objective, start, classes, self.steps, self.tolerance, progress)
            trace.append({"classes": classes, "objective": found.value, "misfit": found.misfit, "steps": found.steps})
            return found

        best: _Found | None = None
        trace: list[dict[str, float]] = []
        for classes in [self.classes] if self.classes else _doublings():
            found = descend(classes, 0)
            if best is not None and found.value > best.value - max(_MIN_FALL * best.value, _MIN_FALL_NATS):
                break
            best = found
        assert best is not None
        founds = [best, *(descend(best.classes, number) for number in range(1, self.starts))]
        whole = _average(objective, founds)
        misfit, count = objective.misfit(whole, best.classes * self.starts), best.classes * self.starts
        notes = [f"{count} latent classes, from which a cell is {math.sqrt(misfit):.2f} standard deviations away"]
        converged = all(one.converged for one in founds)
        if not converged:
            notes.append(f"a fit still improved after {self.steps} steps; raise steps or tolerance")
        return Fit(
            model=_model(objective, whole, count, curator.structure.domain),
            trace=trace,
            converged=converged,
            certificate={"misfit": misfit, "gradient": max(one.slope for one in founds), "classes": count},
            notes=notes,
            tuning={"classes": best.classes},
        )

    def refitter(self, model: Model, inference: Inference) -> Callable[[NoisyTables], Tables]:
        """Fits to releases like the model's, each started from the model's own classes, which keep their labels.

        The objective has many optima, so parameters of classes may be compared with the model's but never averaged.
        Raises InferenceError for a model without classes.
        """
        if len(model.latent) != 1:
            raise InferenceError("mixture can refit only a model with one latent class, and this is none")
        (latent,) = model.latent
        count = model.structure.domain[latent].size
        if count % self.starts:
            raise InferenceError(f"mixture cannot part {count} classes into {self.starts} fits; take the fit's starts")
        classes = count // self.starts

        def refit(release: NoisyTables) -> Tables:
            objective = Objective(release)
            logs = [_centred(model.potentials[name, latent]) for name in objective.names]
            theta = np.concatenate([np.empty((0, count)), *logs])
            theta += _STIR * np.random.default_rng(0).standard_normal(theta.shape)
            founds = []
            for first in range(0, count, classes):
                part = slice(first, first + classes)
                start = np.concatenate([model.potentials[latent,][part], theta[:, part].reshape(-1)])
                founds.append(_minimise(objective, start, classes, self.steps, self.tolerance, silent))
            return _potentials(objective, _average(objective, founds), count, latent, model.structure)

        return refit


@frozen(kw_only=True, eq=False)
class _Found:
    """The end of one descent."""

    parameters: FloatArray
    classes: int
    value: float
    misfit: float
    slope: float
    steps: int
    converged: bool


def _doublings() -> list[int]:
    return [_FEWEST * 2**times for times in range((_MOST // _FEWEST).bit_length())]


def _start(objective: Objective, classes: int, generator: np.random.Generator) -> FloatArray:
    """Classes of equal shares around each attribute's own distribution."""
    noise = _SPREAD * generator.standard_normal((objective.rows, classes))
    return np.concatenate([np.zeros(classes), (np.log(objective.shares)[:, None] + noise).reshape(-1)])


def _minimise(
    objective: Objective, start: FloatArray, classes: int, steps: int, tolerance: float, progress: Progress
) -> _Found:
    from scipy.optimize import minimize

    taken = 0

    def count(_: FloatArray) -> None:
        nonlocal taken
        taken += 1
        progress(f"learning {classes} classes", min(taken, steps), steps)

    progress(f"learning {classes} classes", 0, steps)
    found = minimize(
        objective,
        start,
        args=(classes,),
        jac=True,
        method="L-BFGS-B",
        callback=count,
        options={
            "maxiter": steps,
            "maxcor": _SECANTS,
            "maxfun": _MAX_EVALUATIONS * steps,
            "ftol": tolerance,
            "gtol": 0.0,
        },
    )
    return _Found(
        parameters=found.x,
        classes=classes,
        value=float(found.fun),
        misfit=objective.misfit(found.x, classes),
        slope=float(np.abs(found.jac).max()),
        steps=taken,
        converged=found.status == 0,
    )


def _average(objective: Objective, founds: Sequence[_Found]) -> FloatArray:
    """Return the parameters of the mean of several mixtures, which is a mixture with the classes of all."""
    logs = [objective.logs(one.parameters, one.classes) for one in founds]
    shares = np.concatenate([log_shares - math.log(len(founds)) for log_shares, _ in logs])
    return np.concatenate([shares, np.concatenate([tables for _, tables in logs], axis=1).reshape(-1)])


def _centred(table: FloatArray) -> FloatArray:
    """log F of an attribute as theta, (labels, classes), of the form in which the penalty is least."""
    theta: FloatArray = table - table.mean(axis=0)
    return theta


def _model(objective: Objective, parameters: FloatArray, classes: int, domain: Domain) -> Model:
    latent = "h"
    while latent in domain:
        latent += "_"
    whole = Domain([Attribute.of_size(latent, classes), *domain.attributes], domain.constraints)
    structure = Structure(whole, [(latent,), *((name, latent) for name in objective.names)])
    return Model(structure, _potentials(objective, parameters, classes, latent, structure), latent=[latent])


def _potentials(
    objective: Objective, parameters: FloatArray, classes: int, latent: str, structure: Structure
) -> Tables:
    log_shares, logs = objective.logs(parameters, classes)
    tables = {(name, latent): logs[objective.at[name]] for name in objective.names}
    return Tables.from_arrays(structure, {(latent,): log_shares, **tables})
