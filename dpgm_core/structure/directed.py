"""Directed graphs as plain tables, child -> parents: families and cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpgm_core.errors import StructureError, did_you_mean
from dpgm_core.printable import printable
from dpgm_core.structure.graphs import Clique

__all__ = ["directed_cycle", "families", "cycle_text"]

# A cycle of more names is spelled out at its ends only: an error is one line.
_MAX_NAMES_SHOWN = 30


def families(names: Sequence[str], parents: Mapping[str, Sequence[str]]) -> tuple[Clique, ...]:
    """(child, *parents) of every name, in the order of the names; one without an entry is a root.

    Raises StructureError for names that are not there, parents named twice and directed cycles, which it spells out.

    >>> families(["a", "b", "c"], {"c": ["b", "a"]})
    (('a',), ('b',), ('c', 'b', 'a'))
    """
    if not isinstance(parents, Mapping):
        raise StructureError(f"parents must be a table such as {{ b = ['a'] }}, got {parents!r:.80}")
    known = dict.fromkeys(names)
    for child, above in parents.items():
        if child not in known:
            raise StructureError(
                f"parents are given to {child!r:.80}, which is no attribute{did_you_mean(child, names)}"
            )
        if isinstance(above, str) or not isinstance(above, Sequence):
            raise StructureError(f"the parents of {child!r} must be a list of attribute names, got {above!r:.80}")
        for parent in above:
            if not isinstance(parent, str) or parent not in known:
                near = did_you_mean(parent, names)
                raise StructureError(f"{parent!r:.80} is named as a parent of {child!r}, but is no attribute{near}")
        if len(set(above)) < len(above):
            twice = next(parent for at, parent in enumerate(above) if parent in above[:at])
            raise StructureError(f"{twice!r} is named twice as a parent of {child!r}; name it once")
    complete_parents = {name: tuple(parents.get(name, ())) for name in names}
    cycle = directed_cycle(complete_parents)
    if cycle:
        raise StructureError(f"attributes are their own ancestors: {cycle_text(cycle)}; take one of these parents out")
    return tuple((name, *above) for name, above in complete_parents.items())


def directed_cycle(parents: Mapping[str, Sequence[str]]) -> list[str]:
    """Names each the parent of the next, and the last of the first; [] if there is no directed cycle.

    Every name has an entry. Linear in the number of parents: names whose parents are all gone go (Kahn 1962); each
    that stays has a parent that stays, so that walking from parent to parent must come back.

    >>> directed_cycle({"a": ["c"], "b": ["a"], "c": ["b"], "d": ["a"]})
    ['a', 'b', 'c']
    """
    waiting = {child: len(above) for child, above in parents.items()}
    children: dict[str, list[str]] = {name: [] for name in parents}
    for child, above in parents.items():
        for parent in above:
            children[parent].append(child)
    free = [name for name, count in waiting.items() if not count]
    while free:
        name = free.pop()
        del waiting[name]
        for child in children[name]:
            waiting[child] -= 1
            if not waiting[child]:
                free.append(child)
    if not waiting:
        return []
    walked: dict[str, int] = {}
    name = next(iter(waiting))
    while name not in walked:
        walked[name] = len(walked)
        name = next(parent for parent in parents[name] if parent in waiting)
    cycle = list(walked)[walked[name] :][::-1]
    first = min(range(len(cycle)), key=cycle.__getitem__)
    return cycle[first:] + cycle[:first]


def cycle_text(cycle: Sequence[str]) -> str:
    """A cycle in words, from parent to child and back to the first; of a long one the ends.

    >>> cycle_text(["a", "b"])
    'a -> b -> a'
    """
    names = [printable(name[:40]) for name in (*cycle, cycle[0])]
    if len(cycle) > _MAX_NAMES_SHOWN:
        names[5:-5] = [f"... {len(names) - 10:,} more ..."]
    return " -> ".join(names)
