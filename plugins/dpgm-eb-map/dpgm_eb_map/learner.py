"""The most probable model under an empirical-Bayes prior: generalised least squares with one scale per clique.

The noisy statistics z have mean N m(phi) and covariance N F + V: sampling and noise together. Under the Gaussian prior
phi ~ N(0, s_g^2 / w) the estimate minimises .5 r'Wr + .5 phi' Lam phi with r = z - N m(phi), Lam = w / s_g^2, and
W = (N F + V)^-1 frozen for one round. After each round the scales s_g are set to what the data support (`scales`), so
that a clique without interaction is switched off and a strong one left alone, however many have none. w is less for
long waves along bins of numbers than for short ones (`contrasts`).
Sources: MacKay (1992), Bayesian interpolation; Bernstein and Sheldon (2018) for the covariance of noisy statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

from attrs import define, evolve, frozen

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
    Structure,
    Tables,
    at_least_zero,
    option,
    positive,
    silent,
    whole,
)
from dpgm_core.inference import steady
from dpgm_core.learning import Resources
from dpgm_eb_map.base import Base, engine_of, open_base
from dpgm_eb_map.contrasts import effect_shapes, group_count
from dpgm_eb_map.diagonal import largest_block
from dpgm_eb_map.run import DENSE_AT_MOST, Run, Settings

__all__ = ["BatchRefitter", "EbMap", "LoopFitter", "certificate", "notes", "resources"]


def _scales(instance: object, attribute: Any, value: object) -> None:
    if value is not None and not (isinstance(value, tuple) and value):
        raise ValueError(f"{attribute.name} must be numbers, one per group of parameters, or none; got {value!r}")
    for scale in value or ():
        positive(instance, attribute, scale)


def _even(instance: object, attribute: Any, value: object) -> None:
    if not isinstance(value, tuple) or not all(type(one) is int and one >= 0 for one in value):
        raise ValueError(f"{attribute.name} must be numbers of groups of parameters, from 0 on; got {value!r}")


@frozen(kw_only=True)
class EbMap:
    """Generalised least squares with automatic relevance determination (ARD).

    >>> EbMap(widening=0).widening
    0
    """

    widening: float = option(
        1.25,
        help="before the last fit prior scales are multiplied by 1 + widening d^2, d the share of a group's parameters "
        "that the tables determine; 0 fits Gaussian potentials",
        validator=at_least_zero,
    )
    rounds: int = option(12, help="at most this many updates of the prior scales", unit="rounds", validator=whole)
    tolerance: float = option(
        0.01,
        help="a fit ends when Newton's step is shorter",
        unit="posterior standard deviations, over all parameters (diagonal: per root parameter)",
        validator=positive,
    )
    curvature: Literal["auto", "dense", "diagonal"] = option(
        "auto",
        help="dense: one matrix over all parameters, time cubic in their number; diagonal: a block for each table, "
        "nearly as accurate; auto: dense up to 1,500 parameters, 2,200 where there is little noise",
        replaces=("dense_up_to",),
    )
    target: Literal["auto", "population", "records"] = option(
        "auto",
        help="population: what sampling explains is no effect; records: it is, as far as noise lets it be told; auto: "
        "records where a selector chose the tables; fits within its loop are always the population's",
    )
    scales: tuple[float, ...] | None = option(
        None,
        help="the prior scales of the last fit, main effects' first, as an earlier fit's tuning has them; none: the "
        "tables choose",
        unit="nats",
        validator=_scales,
    )
    even: tuple[int, ...] = option(
        (),
        help="with scales, the groups whose prior is even along bins, as a fit's tuning has them; others are smooth",
        validator=_even,
    )
    base: Model | str | None = option(
        None,
        help="a public model over the same attributes, or its file, on which the prior is centred; its cliques are "
        "added to the model's; none: the uniform model",
        holds=Model,
    )

    @property
    def takes_contrasts(self) -> bool:
        """True: a contrast is a statistic of its own, with noise of its own."""
        return True

    def check(self, structure: Structure, inference: Inference) -> None:
        """Refuse scales that are not the structure's, a base that is not public or is over other attributes, and an
        engine that draws, OptionError; a base's file that is no model, ModelFileError; what the engine cannot hold,
        TooLarge."""
        # first: a table of no size has no number of groups
        steady(engine_of(inference, structure, self._base()), "eb-map")
        self.check_scales(structure)

    def estimate_resources(self, structure: Structure, inference: Inference) -> Resources:
        """Memory and time of a fit, from the numbers of labels; see `ResourceEstimator`."""
        return resources(structure, self.curvature)

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Take one release and fit it.

        Raises InferenceError when the engine fails, OptionError for scales that are not the structure's.
        """
        if not curator.replayed:  # a replay serves a structure of its own, and spends nothing
            self.check_scales(curator.structure)
        release = curator.release()
        run = self._run(release, inference, progress)
        run.learn()
        return _to_fit(run, curator.structure)

    def fitter(self, inference: Inference) -> Callable[[NoisyTables, Structure, Fit | None], Fit]:
        """Fits to releases that grow, each started from the last one's parameters.

        The answer is that of `learn`, nearly: by KL a hundredth of what noise does. Raises OptionError for fixed
        scales, which are of one structure.
        """
        if self.scales is not None:
            raise OptionError(
                "eb-map: scales are those of one structure, and in a loop there are several; leave the option out"
            )
        return LoopFitter(self._settings(), inference, self._base(), _to_fit)

    def refitter(self, model: Model, inference: Inference) -> Callable[[NoisyTables], Tables]:
        """Fits to releases like the model's, W and H factored once at the model; its scales if none are given.

        W is a function of the model, not of the noise in its tables, so refits are as unbiased as fits. Raises
        InferenceError for a model without its release.
        """
        release = model.release
        if release is None:
            raise InferenceError("eb-map: refits need the release that the model was learned from; this model has none")
        run = self._run(release, inference, silent)
        if self.scales is None:
            run.learn()
        else:
            run.start(model.potentials)
            if run.base is not None and not run.explains(model.potentials):
                raise OptionError(
                    f"eb-map: the base, {run.base.name}, is not the one that the model was learned with; give that one"
                )
        return BatchRefitter(run=run, structure=model.structure)

    def _run(self, release: NoisyTables, inference: Inference, progress: Progress) -> Run:
        base = self._base()
        base = None if base is None else base.like(release)
        engine = engine_of(inference, release.structure, base)
        self.check_scales(release.structure)
        return Run(self._settings(), release, engine, progress, base)

    def _base(self) -> Base | None:
        return None if self.base is None else open_base(self.base)

    def _settings(self) -> Settings:
        return Settings(
            widening=self.widening,
            rounds=self.rounds,
            tolerance=self.tolerance,
            curvature=self.curvature,
            target=self.target,
            scales=self.scales,
            even=self.even,
        )

    def check_scales(self, structure: Structure) -> None:
        """Raise OptionError unless the scales, if given, are as many as the structure's groups of parameters."""
        groups = group_count(structure)
        if self.scales is not None and len(self.scales) != groups:
            raise OptionError(
                f"eb-map: scales has {len(self.scales)} numbers, but {structure} has {groups} groups of parameters "
                "(all main effects, and the interactions of each clique); take scales from the tuning of a fit to the "
                "same cliques"
            )
        if self.even and (self.scales is None or max(self.even) >= groups):
            raise OptionError(
                f"eb-map: even names groups of scales, of which there are {groups if self.scales else 'none'}; take "
                "both from the tuning of a fit to the same cliques"
            )


#: A fit that ends above its tolerance counts as converged up to this distance from its optimum, posterior standard
#: deviations, by which no answer changes more (Cauchy-Schwarz, in the norm of the curvature), and up to twice the
#: tolerance, which of many parameters is more, as the distance is the length of a step over all of them.
_MAX_CHANGE, _MAX_TOLERANCES = 1.0, 2.0


def _to_fit(run: Run, structure: Structure) -> Fit:
    """Return the model of a finished run over `structure`, as a fit."""
    potentials = run.potentials(structure)
    return Fit(
        model=Model(potentials.structure, potentials),
        trace=run.trace,
        converged=run.scales_converged and run.distance <= max(_MAX_CHANGE, _MAX_TOLERANCES * run.tolerance),
        certificate=certificate(run),
        notes=notes(run),
        tuning={"scales": run.scales.values.tolist()} | ({"even": run.scales.even} if run.scales.even else {}),
    )


# --------------------------------------------------------------------------------------------------
# Memory and time of a fit, from the numbers of labels alone.


# Measured on one core of 2026 by benchmarks/eb_map.py and on columns of 300 to 10,000 labels: within a factor of 2 of
# memory beyond the program's own, and 3 of time.
_PROGRAM = 128 * 2**20  # bytes: Python, numpy, scipy and the engine
_MATRICES = 12  # of the order of all parameters, that the dense path holds at a time
_OF_BLOCK = 5  # that a block holds
_VECTORS = (600, 60)  # numbers for each parameter and for each cell: L-BFGS, the evidence of scales, several fits
_DENSE_SECONDS = (5e-10, 2e-6)  # times parameters cubed, squared
_BLOCK_SECONDS = 2.5e-6  # times parameters, times those of a block
_CALLS = 400


def resources(structure: Structure, curvature: Literal["auto", "dense", "diagonal"]) -> Resources:
    """Return what a fit over the structure takes; with "auto" for little noise, where the dense path goes furthest.

    >>> from dpgm_core import Domain
    >>> wide = Structure(Domain.from_sizes({"a": 10_000}), [("a",)])
    >>> resources(wide, "auto").memory // 2**20, resources(wide, "dense").memory // 2**20 > 9000
    (216, True)
    """
    shapes = effect_shapes(structure)
    sizes = [math.prod(labels - 1 for labels in shape) for shape in shapes]
    count, cells = sum(sizes), structure.cells
    within = sum(size * min(count, largest_block(shape)) for size, shape in zip(sizes, shapes, strict=True))
    numbers = _VECTORS[0] * count + _VECTORS[1] * cells + _OF_BLOCK * within
    seconds = _BLOCK_SECONDS * within
    if curvature == "dense" or (curvature == "auto" and count <= DENSE_AT_MOST):
        numbers += _MATRICES * count**2 + 3 * cells * count
        seconds += _DENSE_SECONDS[0] * count**3 + _DENSE_SECONDS[1] * count**2
    return Resources(memory=_PROGRAM + 8 * numbers, cpu_seconds=seconds, calls=_CALLS)


# --------------------------------------------------------------------------------------------------
# Certificate and notes of a finished fit.


def certificate(run: Run) -> dict[str, float]:
    """Return the distance of the last fit from its optimum, and counts of parameters and calls."""
    return {
        "distance": run.distance,
        "parameters": run.basis.size,
        "determined_parameters": float(run.scales.determined.sum()),
        "inference_calls": run.moments.calls,
        "curvature_products": run.moments.products,
    }


def notes(run: Run) -> list[str]:
    """Sentences for the user."""
    if not run.basis.size:
        return ["every clique has one cell: there is nothing to learn"]
    path = "dense" if run.dense else "diagonal"
    determined = float(run.scales.determined.sum())
    said = [f"{path} curvature: {run.basis.size:,} parameters, {determined:.1f} of them determined by the tables"]
    like, model = ("uniform ones", "uniform") if run.base is None else ("the base's", "the base")
    if run.base is not None:
        said.append(
            f"the prior is centred on a public model, {run.base.name}: where the tables tell nothing, the model is as "
            "that one; that it is public is its owner's word"
        )
    if run.empty and not run.of_records:
        nearly = "nearly " * run.scales.has_main_effects
        said.append(
            f"the tables hardly tell the records from {like}, so the model is {nearly}{model}; more budget, or "
            "fewer and smaller tables, would tell more"
        )
    if not run.scales_converged:
        said.append(f"the prior scales still moved after {run.settings.rounds} rounds; raise rounds")
    if run.distance > run.tolerance:
        said.append(
            f"the last fit ended {run.distance:.2g} posterior standard deviations from its optimum, which is about the "
            f"most that any answer would change by; tolerance = {run.tolerance:.2g} of all parameters together"
        )
    return said


# --------------------------------------------------------------------------------------------------
# Fits started from another fit: in a selector's loop, each from the last one, and refits of many releases together.


@define(eq=False)
class LoopFitter:
    """Fit a release from the previous fit; see `Fitter`."""

    settings: Settings
    inference: Inference
    base: Base | None
    finished: Callable[[Run, Structure], Fit]
    _engine: Engine | None = None
    _empty: bool = False

    def __call__(self, release: NoisyTables, structure: Structure, previous: Fit | None) -> Fit:
        base = None if self.base is None else self.base.like(release)
        if self._engine is None or self._engine.structure != release.structure:
            self._engine = engine_of(self.inference, release.structure, base)
        # What sampling explains would be taken for what the next tables should tell: with fits to the records in the
        # loop errors were 15 % larger on mobility days and 23 % on sixteen binary columns, at epsilon = 1.
        run = Run(evolve(self.settings, target="population"), release, self._engine, silent, base)
        if previous is None or previous.model.domain != structure.domain or self._empty:
            run.learn()
        else:
            run.resume(previous.model.potentials)
        self._empty = run.empty
        return self.finished(run, structure)


@frozen(kw_only=True, eq=False)
class BatchRefitter:
    """Fits to releases like a run's, over `structure`; see `Refits`."""

    run: Run
    structure: Structure

    def __call__(self, release: NoisyTables) -> Tables:
        """Log-potentials."""
        return self.many([release])[0]

    def many(self, releases: Sequence[NoisyTables]) -> list[Tables]:
        """Return log-potentials for each release, in their order."""
        return self.run.refit(self.structure, releases)
