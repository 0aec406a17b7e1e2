"""One release of a network's largest families, fitted together by another learner, and the network nearest to the fit.

Source of the projection: of all networks over a graph the one with P's own P(child | parents) has the least KL from P.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from attrs import evolve, field, frozen

from dpgm_bayes_net.local import Local
from dpgm_bayes_net.tables import counts_of, faint_rows, reorder_families
from dpgm_bayes_net.two_stage import BayesNetTwoStage
from dpgm_core import (
    Clique,
    Curator,
    Dag,
    Engine,
    Fit,
    Fitter,
    FloatArray,
    Inference,
    Learner,
    Model,
    Noise,
    NoisyTables,
    OptionError,
    Progress,
    Randomness,
    Refitter,
    Registry,
    ReplayCurator,
    Rounds,
    SeededRandomness,
    Session,
    Structure,
    Tables,
    component_option,
    make,
    option,
    project,
    silent,
)
from dpgm_core.learning import ForwardingCurator, MeasuresOtherTables, ResourceEstimator, Resources

__all__ = ["BayesNet", "Engines", "MeasuredCurator"]

#: Nats; potentials of what a network rules out, where another learner starts from them.
_RULED_OUT = -700.0


@frozen(kw_only=True)
class BayesNet:
    """A Bayesian network over the structure's directed graph, from one release.

    >>> BayesNet(learner="local").measure
    'maximal'
    """

    measure: Literal["maximal", "families"] = option(
        "maximal", help="maximal: measure only families that lie in no other one; families: measure each"
    )
    split: Literal["optimal", "even", "curator"] = option(
        "optimal",
        help="how the budget is divided: optimal: more for larger tables; even: equal noise; curator: as the run says",
    )
    learner: Learner | str | Mapping[str, Any] = component_option(
        "eb-map",
        kind="learner",
        help="what learns from the release before the network is read off; local: each table by itself",
    )

    def check(self, structure: Structure, inference: Inference) -> None:
        """Refuse a structure that is no directed graph, or whose conditional tables could not hold the domain's
        constraints, StructureError; a learner that divides a budget itself, OptionError; and what the other learner
        refuses."""
        inner = self._inner()
        Dag.of(structure).check_constraints()  # or the network nearest to the model would be none
        inner.check(self._modelled(inner, structure), inference)

    def planned_tables(self, structure: Structure) -> tuple[Structure, str | None]:
        """Return the tables of the release and the split of the budget. Raises StructureError."""
        return self._measured(Dag.of(structure)), self._over_tables

    def estimate_resources(self, structure: Structure, inference: Inference) -> Resources:
        """Estimate by the other learner; by the number of cells where it has no estimate. See `ResourceEstimator`."""
        inner = self._inner()
        modelled = self._modelled(inner, structure)
        if isinstance(inner, ResourceEstimator):
            return inner.estimate_resources(modelled, inference)
        return Resources.by_cells(modelled, each=300, cpu_seconds=1e-5, calls=0)

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Take one release, let the other learner learn from it, and read the network off.

        Raises StructureError, OptionError and BudgetError before anything is charged.
        """
        inner, structure = self._inner(), curator.structure
        measured, split = self.planned_tables(structure)
        door = MeasuredCurator(curator, self._modelled(inner, structure), measured.cliques, split)
        fit = inner.learn(door, inference, randomness=randomness, progress=progress)
        return self._read_off(inner, fit, structure, inference, door.handed)

    def fitter(self, inference: Inference) -> Callable[[NoisyTables, Structure, Fit | None], Fit]:
        """Fits of the other learner, each from its last one where it can, and the networks nearest to them."""
        inner, engines = self._inner(), Engines(inference)
        own = inner.fitter(engines) if isinstance(inner, Fitter) else None
        last: Fit | None = None

        def fit(release: NoisyTables, structure: Structure, before: Fit | None) -> Fit:
            nonlocal last
            modelled = self._modelled(inner, structure)
            last = (
                _learn_afresh(inner, release, modelled, engines)
                if own is None
                else own(release, modelled, before and (last or before))
            )
            return self._read_off(inner, last, structure, engines, release)

        return fit

    def refitter(self, model: Model, inference: Inference) -> Callable[[NoisyTables], Tables]:
        """Refits of the other learner, started from the network where it can, and the networks nearest to them."""
        inner, engines = self._inner(), Engines(inference)
        if isinstance(inner, Local):
            return inner.refitter(model, engines)
        dag, modelled = Dag.of(model.structure), self._modelled(inner, model.structure)
        own: Callable[[NoisyTables], Tables] | None = None
        if isinstance(inner, Refitter):
            start = Tables(model.structure, np.maximum(model.potentials.values, _RULED_OUT)).embed(modelled)
            facts: dict[str, Any] = {"provenance": model.provenance, "conversion_delta": model.conversion_delta}
            with suppress(OptionError):  # it misses its own fit in a network's potentials; then it learns each time
                own = inner.refitter(Model(modelled, start, releases=model.releases, **facts), engines)

        def refit(release: NoisyTables) -> Tables:
            potentials = (
                _learn_afresh(inner, release, modelled, engines).model.potentials if own is None else own(release)
            )
            nearest = project(Model(potentials.structure, potentials, inference=engines), dag)
            return reorder_families(nearest, model.structure).potentials

        return refit

    @property
    def _over_tables(self) -> str | None:
        return None if self.split == "curator" else self.split

    def _measured(self, dag: Dag) -> Structure:
        return Structure(dag.domain, dag.maximal) if self.measure == "maximal" else dag.structure()

    def _modelled(self, inner: Learner, structure: Structure) -> Structure:
        """Return the structure of the other learner's model: what is measured; `local` makes the network itself."""
        dag = Dag.of(structure)
        return structure if isinstance(inner, Local) else self._measured(dag)

    def _inner(self) -> Learner:
        """The other learner. Raises OptionError for one that is known to ask for more than a single release."""
        inner: Learner = make("learner", self.learner)
        if isinstance(inner, (MeasuresOtherTables, BayesNetTwoStage)):
            name = _registry().name_of("learner", inner) or type(inner).__name__
            raise OptionError(
                f"bayes-net cannot use learner {name}, which divides a budget itself, as bayes-net does; take one that "
                "learns from a single release, such as 'eb-map', 'naive-mle' or 'local'"
            )
        return inner

    def _read_off(
        self, inner: Learner, fit: Fit, structure: Structure, inference: Inference, release: NoisyTables
    ) -> Fit:
        """The other learner's fit, its model replaced by the network over `structure` that is nearest to it."""
        if isinstance(inner, Local):
            return fit
        dag, model = Dag.of(structure), fit.model.using(inference)
        network = reorder_families(project(model, dag), structure)
        certificate, notes = dict(fit.certificate), [*fit.notes, *network.provenance.get("notes", ())]
        joints = model.coarse.using(unmeasured="uniform").marginals_of(dag.families)
        if model.engine.exact:
            certificate |= _divergence(model.coarse, network, joints)
        else:
            notes.append(
                "inference is approximate: the conditional tables are read off approximate marginals, so that the "
                "network is near the fit and not the nearest"
            )
        notes += _note_faint_rows(release, dag, joints)
        tuning = _tuning(inner, fit.tuning)
        return evolve(fit, model=network, certificate=certificate, notes=notes, tuning=tuning)


def _learn_afresh(inner: Learner, release: NoisyTables, modelled: Structure, inference: Inference) -> Fit:
    # Neither loops nor refits hand on randomness, and both are to be repeatable; here it only starts post-processing.
    return inner.learn(ReplayCurator(release, modelled), inference, randomness=SeededRandomness(0), progress=silent)


def _tuning(inner: Learner, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The other learner as a table with what it chose; nothing if it chose nothing."""
    if not chosen:
        return {}
    record = _registry().record("learner", inner)
    named = {"name": record["name"]} if "name" in record else {}
    return {"learner": {**named, **record.get("options", {}), **chosen}}


def _divergence(model: Model, network: Model, joints: Mapping[Clique, FloatArray]) -> dict[str, float]:
    """KL(model || network), nats: -H(model) - sum over families of E[log P(child | parents)]; left out if infinite."""
    divergence = -model.entropy()
    for family, joint in joints.items():
        there = joint > 0
        divergence -= float(joint[there] @ network.potentials[family][there])
    return {"projection_kl": max(0.0, divergence)} if math.isfinite(divergence) else {}


def _note_faint_rows(release: NoisyTables, dag: Dag, joints: Mapping[Clique, FloatArray]) -> list[str]:
    """Return notes on rows that expect little but noise."""
    if max(release.structure.multiplicities) > 1:  # whose tables are of no family
        return []
    counts = counts_of(release.tables, release.variances, dag.families)
    return faint_rows(counts, {family[0]: release.total * joint.sum(axis=0) for family, joint in joints.items()})


@lru_cache(maxsize=1)
def _registry() -> Registry:
    """Return the registry of what is installed, discovered once."""
    return Registry.discover()


# --------------------------------------------------------------------------------------------------
# Engines that are compiled once, for learners that learn repeatedly over the same structures.


@frozen(eq=False)
class Engines:
    """An inference that keeps the engines it has compiled.

    >>> from dpgm_core import Domain, make
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> engines = Engines(make("inference", "junction-tree"))
    >>> engines.compile(structure) is engines.compile(structure)
    True
    """

    inference: Inference
    _made: dict[Structure, Engine] = field(factory=dict, repr=False)

    @property
    def max_order(self) -> int | None:
        """Largest order of the inference."""
        return self.inference.max_order

    def compile(self, structure: Structure) -> Engine:
        """The engine over the structure. Raises what the inference does."""
        if structure not in self._made:
            self._made[structure] = self.inference.compile(structure)
        return self._made[structure]


# --------------------------------------------------------------------------------------------------
# Curator for another learner, which chooses the tables of its one release.


class MeasuredCurator(ForwardingCurator):
    """Hands out one release, of the cliques told, all the budget split over them as told.

    structure: of the other learner's model. split: "optimal", "even" or None, the curator's own. A saved release is
    handed out as it is. What else is asked for is refused, OptionError, before anything is read or charged.
    """

    def __init__(self, curator: Curator, structure: Structure, cliques: Sequence[Clique], split: str | None) -> None:
        super().__init__(curator)
        self._structure, self._cliques, self._split = structure, cliques, split
        self._handed: NoisyTables | None = None

    @property
    def structure(self) -> Structure:
        """The other learner's."""
        return self._structure

    def release(self, *, accept: Callable[[Sequence[Noise]], None] | None = None, **others: Any) -> NoisyTables:
        """The release. Raises OptionError, with nothing paid, for other cliques or budgets and for a second one."""
        if any(value is not None for value in others.values()) or self._handed is not None:
            raise _refusal("asks for other releases than one of all tables and all the budget")
        if self.replayed:
            self._handed = super().release(accept=accept)
        else:
            self._handed = super().release(cliques=self._cliques, split=self._split, accept=accept)
        return self._handed

    @property
    def handed(self) -> NoisyTables:
        """The release that was handed out. Raises OptionError if there was none."""
        if self._handed is None:
            raise _refusal("asked for none")
        return self._handed

    def rounds(self, n: int, **options: Any) -> AbstractContextManager[Rounds]:
        """Raises OptionError: there is one release."""
        raise _refusal("trains on rounds of subsampled records")

    def session(self, **options: Any) -> AbstractContextManager[Session]:
        """Raises OptionError: there is one release."""
        raise _refusal("opens a session")


def _refusal(asks: str) -> OptionError:
    return OptionError(
        f"bayes-net measures once and divides the budget itself, and its own learner {asks}; take one that learns from "
        "a single release, such as 'eb-map'"
    )
