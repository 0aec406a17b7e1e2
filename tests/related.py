"""A small world of two related tables, and what each root should become, written down once more and slowly."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
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


# --- The record of a key, in pure Python ----------------------------------------------------------

Raw = Sequence[object]


def mix(state: int) -> int:
    """The finaliser of splitmix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        state = (state ^ state >> shift) * factor % 2**64
    return state


def hash_of(key: str | None, row: Sequence[int], sizes: Sequence[int]) -> int:
    """Of a key and a row of codes that fit into one word."""
    word = 0
    for code, size in zip(row, sizes, strict=True):
        word = word * size + code
    return mix(_digest(key) ^ word)


def _digest(key: str | None) -> int:
    return int.from_bytes(hashlib.sha256((key or "").encode()).digest()[:8], "little")


def _codes(domain: Domain, values: Raw) -> tuple[int, ...]:
    texts = (None if value is None else str(value) for value in values)
    return tuple(attribute.code(text) for attribute, text in zip(domain, texts, strict=True))


def _key(value: object) -> str | None:
    return None if value in (None, "") else str(value)


def _place(value: object) -> tuple[int, float, str]:
    """Numbers, then other texts, then nothing."""
    text = "" if value is None else str(value)
    try:
        number = float(text)
    except ValueError:
        return (1, 0.0, text) if text.strip() else (2, 0.0, "")
    return (2, 0.0, "") if math.isnan(number) else (0, number, "")


def expected(related: Related, roots: Sequence[Raw], children: Sequence[Raw]) -> Counter[tuple[int, ...]]:
    """The records, with their codes in the order of `related.pair`.

    roots: key, then root columns. children: key, the value that orders, then child columns.
    """
    of_root: dict[str | None, set[tuple[int, ...]]] = {}
    of_child: dict[str | None, list[tuple[object, tuple[int, ...]]]] = {}
    sizes = [attribute.size for attribute in related.children]
    for key, *values in roots:
        of_root.setdefault(_key(key), set()).add(_codes(related.root, values))
    for key, order, *values in children:
        of_child.setdefault(_key(key), []).append((order, _codes(related.children, values)))
    found: Counter[tuple[int, ...]] = Counter()
    for key, several in of_root.items():
        root = min(several, key=lambda row: (hash_of(key, row, [one.size for one in related.root]), row))
        own = sorted(
            of_child.get(key, []),
            key=lambda child: (
                (_place(child[0]) if related.order is not None else ()), hash_of(key, child[1], sizes), child[1]
            ),
        )  # fmt: skip
        some = [row for _, row in own][: related.max_children]
        count = len(some)
        drawn = 2 + ((mix(_digest(key) ^ 0x9E3779B97F4A7C15) >> 32) * (count - 1) >> 32) if count > 1 else 1
        nobody = tuple(sizes)  # the codes of absent
        record = [*root, count]
        slots = [some[0] if some else nobody]
        if related.max_children > 1:
            record.append(0 if count < 2 else 1 if drawn == 2 else 2)
            slots.append(some[drawn - 1] if count > 1 else nobody)
        if related.max_children > 2:
            slots.append(some[drawn - 2] if drawn > 2 else nobody)
        found[(*record, *(code for slot in slots for code in slot))] += 1
    return found
