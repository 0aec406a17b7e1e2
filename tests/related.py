"""A small world of two related tables, and what each root should become, written down once more and slowly."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from dpgm_core import Domain, Related

ROOT, CHILDREN = Domain.from_sizes({"own": 2}), Domain.from_sizes({"age": 2, "sex": 2})
ABSENT = 2


def small(most: int, **options: object) -> Related:
    return Related(root=ROOT, children=CHILDREN, key="id", max_children=most, **options)  # type: ignore[arg-type]


def pair_rows(root: Sequence[int], children: Sequence[Sequence[int]], most: int) -> Iterator[dict[str, int]]:
    """The records that a root may become, one for each j; children: all of them, in their order."""
    some = list(children[:most])
    nobody = (ABSENT,) * len(CHILDREN)
    for j in range(2, len(some) + 1) if len(some) > 1 else (1,):
        row = dict(zip(ROOT.names, root, strict=True)) | {"size": len(some)}
        slots = {"first.": some[0] if some else nobody}
        if most > 1:
            row["position"] = 0 if len(some) < 2 else 1 if j == 2 else 2
            slots[""] = some[j - 1] if len(some) > 1 else nobody
        if most > 2:
            slots["previous."] = some[j - 2] if j > 2 else nobody
        for slot, child in slots.items():
            row |= {slot + name: code for name, code in zip(CHILDREN.names, child, strict=True)}
        yield row


def all_roots(most: int) -> Iterator[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]]:
    """Each root of the world with each sequence of up to `most` children."""
    kinds = list(itertools.product(range(2), repeat=len(CHILDREN)))
    for root in itertools.product(range(2), repeat=len(ROOT)):
        for size in range(most + 1):
            yield from ((root, children) for children in itertools.product(kinds, repeat=size))
