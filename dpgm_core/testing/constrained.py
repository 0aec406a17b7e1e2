"""Structures over constrained domains: one for each way in which a constraint can lie to the cliques."""

from __future__ import annotations

from attrs import evolve

from dpgm_core.constraints.forms import Listed, Mapped
from dpgm_core.constraints.order import Ordered
from dpgm_core.domain import Domain
from dpgm_core.structure import Structure

__all__ = ["constrained_structures"]


def constrained_structures() -> dict[str, Structure]:
    """Name -> structure over five attributes, with constraints inside of cliques, across them, and beside them.

    >>> len(constrained_structures()["across"].domain.constraints)
    3
    """
    plain = Domain.from_sizes({"a": 4, "b": 2, "c": 3, "d": 3, "e": 2})
    where = Mapped(name="where", columns=("a", "b"), to=(("0", "0"), ("1", "0"), ("2", "1"), ("3", "1")))
    time = Ordered(name="time", columns=("c", "d"))
    never = Listed(name="never", columns=("a", "d", "e"), combinations=(("0", "2", "*"), ("3", "0", "1")))
    domain = Domain(plain.attributes, [where, time, never])
    alike = Domain(plain.attributes, [evolve(time, strict=True)])
    return {
        "inside": Structure(domain, [("b", "a"), ("d", "c"), ("e", "a", "d")]),
        "across": Structure(domain, [("a", "c"), ("b", "e"), ("c", "e")]),
        "beside": Structure(domain, [("a",), ("e",)]),
        "told": Structure(domain, [("a", "c"), ("b",)]),
        "tied": Structure(alike, [("c", "e")], tied=[[("c",), ("d",)]]),
    }
