"""Engines that are compiled once, for learners that learn repeatedly over the same structures."""

from __future__ import annotations

from attrs import field, frozen

from dpgm_core import Engine, Inference, Structure

__all__ = ["Engines"]


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
