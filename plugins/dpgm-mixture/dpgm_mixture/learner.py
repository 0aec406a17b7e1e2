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
from dpgm_mixture.objective import Objective, split_parameters

__all__ = ["Mixture"]

_FEWEST, _MOST = 16, 128  # classes, where the learner chooses their number
# Classes are doubled while that lowers the objective by this part of it, and by 1. On Adult at epsilon = 10 16 become
# 32 or 64, with 10 to 20 % less error; on Adult at 1 and on tables of one factor more were not reliably better.
_MIN_FALL, _MIN_FALL_NATS = 0.05, 1.0
# A second fit follows the tables where more than this part t of their distance from the first one is not noise: its
# error is then predicted to be less by 1 - sqrt(1 - t), .11. It has so many parameters for each number that tables tell
# beyond their attributes, and at most so many classes times cells, which is about a minute.
_LEAST_PART, _FOLLOWING_PARAMETERS, _MOST_WORK = 0.2, 4.0, 2**26
# It ends after so many steps: the next 400 moved the error by 0 to 10 % on three generated tables.
_FOLLOWING_STEPS = 600
_SPREAD = 0.5  # standard deviation of the classes at the start, nats
_SPLIT = 0.3  # of the parts of a class at the start of the second fit
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
    follow: int | None = option(
        None,
        help="number of classes of a second fit, which follows the tables as far as noise does not explain them; 1, or "
        "no more than the first fit has: no such fit; none: chosen if that is predicted to lower the error by a tenth",
        validator=attrs.validators.optional(whole),
    )
    starts: int = option(
        2,
        help="fits from so many random starts are averaged: the model has as many times the classes",
        validator=whole,
    )
    steps: int = option(
        1000, help="at most this many steps of L-BFGS for each fit, and at most 600 for the second one", validator=whole
    )
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
        runs.append(self.follow or _following_classes(structure))
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
        tried = list[_Found]()
        best: _Found | None = None
        for classes in [self.classes] if self.classes else _doublings():
            found = self._begin(objective, classes, 0, seed, progress)
            tried.append(found)
            if best is not None and found.value > best.value - max(_MIN_FALL * best.value, _MIN_FALL_NATS):
                break
            best = found
        assert best is not None
        founds = [best]
        for number in range(1, self.starts):
            founds.append(self._begin(objective, best.classes, number, seed, progress))
        tried += founds[1:]
        whole, count, tuning = _average(objective, founds), best.classes * self.starts, {"classes": best.classes}
        target, part = objective.following(whole, count)
        follow = self.follow or (_following_classes(release.structure) if part > _LEAST_PART else 1)
        if follow > count:
            times = -(-follow // count)
            start = _split(whole, count, times, np.random.default_rng([seed, count]))
            found = self._follow(target, start, times * count, progress)
            tried.append(found)
            if found.value < target(whole, count)[0]:
                whole, count = found.parameters, found.classes
                tuning["follow"] = count
        misfit = objective.misfit(whole, count)
        what = f"{count} latent classes, " + "which follow what noise does not explain, " * ("follow" in tuning)
        notes = [f"{what}from which a cell is {math.sqrt(misfit):.2f} standard deviations away"]
        converged = all(one.converged for one in founds)  # the second fit ends early
        if not converged:
            notes.append(f"a fit still improved after {self.steps} steps; raise steps or tolerance")
        return Fit(
            model=_model(objective, whole, count, curator.structure.domain),
            trace=[
                {"classes": one.classes, "objective": one.value, "misfit": one.misfit, "steps": one.steps}
                for one in tried
            ],
            converged=converged,
            certificate={"misfit": misfit, "gradient": max(one.slope for one in founds), "classes": count},
            notes=notes,
            tuning=tuning,
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
        follows = count == self.follow
        parts = 1 if follows else self.starts
        if count % parts:
            raise InferenceError(f"mixture cannot part {count} classes into {parts} fits; take the fit's starts")
        classes = count // parts

        def refit(release: NoisyTables) -> Tables:
            objective = Objective(release)
            logs = [_centred(model.potentials[name, latent]) for name in objective.names]
            theta = np.concatenate([np.empty((0, count)), *logs])
            theta += _STIR * np.random.default_rng(0).standard_normal(theta.shape)
            starts = [
                np.concatenate([model.potentials[latent,][part], theta[:, part].reshape(-1)])
                for part in (slice(first, first + classes) for first in range(0, count, classes))
            ]
            if follows:
                firsts = [self._begin(objective, self.classes or _FEWEST, number) for number in range(self.starts)]
                target = objective.following(_average(objective, firsts), firsts[0].classes * self.starts)[0]
                founds = [self._follow(target, starts[0], count)]
            else:
                founds = [_minimise(objective, start, classes, self.steps, self.tolerance, silent) for start in starts]
            return _potentials(objective, _average(objective, founds), count, latent, model.structure)

        return refit

    def _begin(
        self, objective: Objective, classes: int, number: int, seed: int = 0, progress: Progress = silent
    ) -> _Found:
        """A fit from a start of its own seed, so that the chosen number of classes repeats the fit it was chosen by."""
        start = _start(objective, classes, np.random.default_rng([seed, classes, number]))
        return _minimise(objective, start, classes, self.steps, self.tolerance, progress)

    def _follow(self, target: Objective, start: FloatArray, classes: int, progress: Progress = silent) -> _Found:
        return _minimise(target, start, classes, min(self.steps, _FOLLOWING_STEPS), self.tolerance, progress)


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


def _split(parameters: FloatArray, classes: int, times: int, generator: np.random.Generator) -> FloatArray:
    """Classes that each fall into so many, whose log-weights are its own in the mean."""
    weights, theta = split_parameters(parameters, classes)
    noise = _SPLIT * generator.standard_normal((*theta.shape, times))
    parts = theta[:, :, None] + noise - noise.mean(axis=2, keepdims=True)
    return np.concatenate([np.repeat(weights, times), parts.reshape(-1)])


def _following_classes(structure: Structure) -> int:
    """Return how many classes can follow the tables of a structure in the time that there is."""
    sizes = structure.domain.sizes
    told = sum(math.prod(sizes[name] - 1 for name in clique) for clique in structure.cliques if len(clique) > 1)
    classes = _FOLLOWING_PARAMETERS * told / max(1, sum(size - 1 for size in sizes.values()))
    return int(min(classes, _MOST_WORK / structure.cells))


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
