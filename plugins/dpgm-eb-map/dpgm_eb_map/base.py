"""Public models as the centre of the prior: where the tables tell nothing, the model is the base."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from attrs import evolve, frozen

from dpgm_core import (
    Beliefs,
    Capability,
    Clique,
    Engine,
    FloatArray,
    Inference,
    Model,
    NoisyTables,
    OptionError,
    SecondOrder,
    Structure,
    Tables,
    load_model,
)

__all__ = ["Base", "engine_of", "open_base"]

_LEAST = 1e-300  # a probability, so that its logarithm is a number


@frozen(kw_only=True, eq=False)
class Base:
    """theta_base, and how it is called in notes; potentials are theta_base + B phi."""

    potentials: Tables
    name: str

    def over(self, structure: Structure) -> Structure:
        """The structure, and the cliques of the base that none of its own holds. Raises OptionError for other domains
        and tied cliques."""
        own = self.potentials.structure
        if own.domain.attributes != structure.domain.attributes:
            raise OptionError(
                f"eb-map: the base, {self.name}, is over other attributes or labels than the model; a base must have "
                "the model's domain"
            )
        if max(structure.multiplicities) > 1:
            raise OptionError("eb-map: a base does not go with tied cliques; leave one of the two out")
        more = [clique for clique in own.cliques if structure.covering(clique) is None]
        return Structure(structure.domain, [*structure.cliques, *more]) if more else structure

    def compile(self, inference: Inference, structure: Structure) -> Engine:
        """An engine whose potentials, over `structure`, are deviations from the base."""
        wide = self.over(structure)
        engine = inference.compile(wide)
        kind = _WithCurvature if isinstance(engine, SecondOrder) else _DeviationEngine
        return kind(engine, structure, self.potentials.embed(wide))

    def like(self, release: NoisyTables) -> Base:
        """The base over the release's domain: coarser, where codes were merged in the session that measured it."""
        merges = {} if release.session is None else release.session.merges
        if not merges or self.potentials.structure.domain == release.structure.domain:
            return self
        return evolve(self, potentials=_merge_codes_of_model(self.potentials, merges))


def open_base(base: Model | str) -> Base:
    """The base that an option names. Raises OptionError for a model that is not public or rules records out, and what
    `load_model` raises."""
    model = load_model(base) if isinstance(base, str) else base
    name = Path(base).name if isinstance(base, str) else "a model given as an object"
    if model.releases:
        raise OptionError(
            f"eb-map: the base, {name}, carries {len(model.releases)} release(s) of records, so it is not public and "
            "what it cost would be missing; a base must be a model without releases"
        )
    if not np.isfinite(model.potentials.values).all():
        raise OptionError(
            f"eb-map: the base, {name}, has potentials of -inf, and no table could make such records possible again; "
            "give them a small probability"
        )
    return Base(potentials=model.potentials.embed(model.structure.untied()), name=name)


def engine_of(inference: Inference, structure: Structure, base: Base | None) -> Engine:
    """For deviations from the base, if there is one."""
    return inference.compile(structure) if base is None else base.compile(inference, structure)


class _DeviationEngine:
    """An engine for a wider structure as one for its first cliques, to whose potentials the base's are added."""

    def __init__(self, engine: Engine, structure: Structure, base: Tables) -> None:
        self._engine, self._structure, self._base = engine, structure, base

    @property
    def structure(self) -> Structure:
        """Structure of the deviations."""
        return self._structure

    @property
    def exact(self) -> bool:
        """Whether the inner engine is exact."""
        return self._engine.exact

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Second derivatives, if it has them, and whether it draws."""
        return self._engine.capabilities & {"curvature", "estimate"}

    @property
    def cost(self) -> str | None:
        """Cost of the inner engine."""
        return self._engine.cost

    def infer(self, potentials: Tables, *, total: float = 1.0) -> Beliefs:
        """Infer with base and deviations together; return marginals of the deviations' cliques."""
        beliefs = self._engine.infer(self._with(potentials), total=total)
        return evolve(beliefs, marginals=Tables(self._structure, self._own(beliefs.marginals.values)))

    def _with(self, potentials: Tables) -> Tables:
        values = self._base.values.copy()
        values[: self._structure.cells] += potentials.values
        return self._base.like(values)

    def _own(self, values: FloatArray) -> FloatArray:
        return np.ascontiguousarray(values[: self._structure.cells])


class _WithCurvature(_DeviationEngine):
    """Deviation engine with second derivatives."""

    def curvature(self, potentials: Tables) -> Callable[[FloatArray], FloatArray]:
        """Return the inner engine's curvature along deviations."""
        assert isinstance(self._engine, SecondOrder)
        product = self._engine.curvature(self._with(potentials))

        def own(directions: FloatArray) -> FloatArray:
            wide = np.zeros((len(self._base.values), *directions.shape[1:]))
            wide[: len(directions)] = directions
            return self._own(product(wide))

        return own


def _merge_codes_of_model(potentials: Tables, merges: Mapping[str, Sequence[int]]) -> Tables:
    """Return the model with codes merged: it keeps the distribution of each cluster of its junction tree and is as
    independent as these allow."""
    structure = potentials.structure
    clusters, edges = structure.constrained.junction_tree
    marginals = [
        _merge_axes(table, cluster, merges)
        for cluster, table in zip(clusters, Model(structure, potentials).marginals_of(clusters).values(), strict=True)
    ]
    theta = [np.log(np.maximum(marginal, _LEAST)) for marginal in marginals]
    for one, other in edges:
        outside = tuple(axis for axis, name in enumerate(clusters[other]) if name not in clusters[one])
        theta[other] -= np.log(np.maximum(marginals[other].sum(axis=outside, keepdims=True), _LEAST))
    coarse = Structure(structure.domain.coarsened(merges), clusters)
    return Tables(coarse, np.concatenate([table.reshape(-1) for table in theta]))


def _merge_axes(table: FloatArray, clique: Clique, merges: Mapping[str, Sequence[int]]) -> FloatArray:
    for axis, name in enumerate(clique):
        if name in merges:
            codes = np.asarray(merges[name])
            sums = np.zeros((codes.max() + 1, *np.moveaxis(table, axis, 0).shape[1:]))
            np.add.at(sums, codes, np.moveaxis(table, axis, 0))
            table = np.moveaxis(sums, 0, axis)
    return table
