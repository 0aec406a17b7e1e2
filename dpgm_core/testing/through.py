"""Another engine in the place of `junction-tree`, which does for it what it cannot: for tests of what learners make."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from attrs import frozen

from dpgm_core.components.registry import Registry
from dpgm_core.inference.contract import Beliefs, Capability, Engine, Inference
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

__all__ = ["use_engine"]

# What models are asked, method -> capability; the junction tree does it where the engine does not say that it can.
_ASKED: dict[str, Capability] = {
    "answers": "query",
    "maximize": "maximize",
    "rounded": "rounded",
    "sample": "sample",
}
# What learners look for, which nothing stands in for.
_LOOKED_FOR = ("curvature", "infer_many", "estimates", "caveats", "bounds", "explain")


def use_engine(registry: Registry, name: str) -> None:
    """Have the registry offer the inference engine `name` as `junction-tree`.

    What learners call is the engine's alone; samples, queries, rounded records and the most probable record come from
    the junction tree where the engine does not offer them. Raises what `Registry.load` raises.

    >>> from dpgm_core.domain import Domain
    >>> registry = Registry.discover()
    >>> use_engine(registry, "loopy-bp")
    >>> chain = Structure.chain(Domain.from_sizes({"a": 2, "b": 2}))
    >>> engine = registry.make("inference", "junction-tree").compile(chain)
    >>> engine.exact, sorted(engine.capabilities)
    (True, ['bounds', 'maximize', 'query', 'rounded', 'sample'])
    """
    own: Inference = registry.make("inference", name)

    @frozen(kw_only=True)
    class Through:
        max_order: ClassVar[int | None] = own.max_order

        def compile(self, structure: Structure) -> Engine:
            return _Through(own.compile(structure), partial(JunctionTree().compile, structure))

    registry.substitute("inference", "junction-tree", Through)


class _Through:
    """One engine, with the methods that it lacks from another, which is compiled when it is first asked."""

    def __init__(self, engine: Engine, other: Any) -> None:
        self._engine, self._other = engine, other
        for method, capability in _ASKED.items():
            own = capability in engine.capabilities
            setattr(self, method, getattr(engine, method) if own else partial(self._from_other, method))
        for method in _LOOKED_FOR:
            if hasattr(engine, method):
                setattr(self, method, getattr(engine, method))

    def _from_other(self, method: str, *arguments: Any) -> Any:
        return getattr(self._other(), method)(*arguments)

    @property
    def structure(self) -> Structure:
        return self._engine.structure

    @property
    def exact(self) -> bool:
        return self._engine.exact

    @property
    def cost(self) -> str | None:
        return self._engine.cost

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self._engine.capabilities | frozenset(_ASKED.values())

    def infer(self, potentials: Tables, *, total: float = 1.0) -> Beliefs:
        return self._engine.infer(potentials, total=total)
