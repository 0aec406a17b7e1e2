"""The most probable model under an empirical-Bayes prior: generalised least squares with one scale per clique.

The noisy statistics z have mean N m(phi) and covariance N F + V: sampling and noise together. Under the Gaussian prior
phi ~ N(0, s_g^2 / w) the estimate minimises .5 r'Wr + .5 phi' Lam phi with r = z - N m(phi), Lam = w / s_g^2, and
W = (N F + V)^-1 frozen for one round. After each round the scales s_g are set to what the data support (`scales`), so
that a clique without interaction is switched off and a strong one left alone, however many have none.
Sources: MacKay (1992), Bayesian interpolation; Bernstein and Sheldon (2018) for the covariance of noisy statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from attrs import frozen

from dpgm_core import (
    Curator,
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
from dpgm_eb_map.contrasts import group_count
from dpgm_eb_map.report import certificate, notes
from dpgm_eb_map.resources import resources
from dpgm_eb_map.run import Run, Settings
from dpgm_eb_map.warm_start import BatchRefitter, LoopFitter

__all__ = ["EbMap"]


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


def _to_fit(run: Run, structure: Structure) -> Fit:
    """Return the model of a finished run over `structure`, as a fit."""
    potentials = run.potentials(structure)
    return Fit(
        model=Model(potentials.structure, potentials),
        trace=run.trace,
        converged=run.scales_converged and run.distance <= run.tolerance,
        certificate=certificate(run),
        notes=notes(run),
        tuning={"scales": run.scales.values.tolist()},
    )
