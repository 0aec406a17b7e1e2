"""The pairs that were picked, in the order that picks tell, as far as a model of them fits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve

from dpgm_core import Clique, Domain
from dpgm_core.selection import Limits, ModelSize

__all__ = ["Picked", "ranked"]


class Picked:
    """Pairs taken so far. limits: of an exact engine's model of them, in the end; None: whatever is picked is taken.

    >>> domain = Domain.from_sizes(dict.fromkeys("abc", 2))
    >>> picked = Picked(domain, Limits(model=8, clique=4))
    >>> picked.add([("a", "b"), ("b", "c"), ("a", "c")]), picked.pairs, picked.left_out
    ([('a', 'b'), ('b', 'c')], [('a', 'b'), ('b', 'c')], 1)
    """

    def __init__(self, domain: Domain, limits: Limits | None) -> None:
        self.pairs: list[Clique] = []
        self.left_out = 0
        self._limits = limits
        self._size = ModelSize(domain)

    def add(self, pairs: Iterable[Clique], share: float = 1.0) -> list[Clique]:
        """Take those that fit, first come first served; those taken.

        share: of the model's limit, so that the first of several rounds leave room for the others.
        """
        limits = None if self._limits is None else evolve(self._limits, model=math.ceil(self._limits.model * share))
        taken = []
        for pair in pairs:
            if limits is not None:
                if not self._size.fits(pair, limits):
                    self.left_out += 1
                    continue
                self._size.add(pair)
            taken.append(pair)
        self.pairs += taken
        return taken

    def notes(self, what: str, instead: str) -> list[str]:
        """What did not fit, in words. what: the pairs are. instead: what else could be done."""
        if not self.left_out or self._limits is None:
            return []
        return [
            f"{self.left_out} of {self.left_out + len(self.pairs)} {what} were left out, the last ones: with them an "
            f"exact model would have more than {self._limits.model:,} cells, or a cluster of more than "
            f"{self._limits.clique:,}; {instead}"
        ]


def ranked(picks: Mapping[str, Sequence[Clique]]) -> list[Clique]:
    """Each pair once: those that an attribute picked earlier first, and of these those that both ends picked.

    picks: attribute -> its pairs, the first picked first.

    >>> ranked({"a": [("a", "c"), ("a", "b")], "b": [("b", "c")], "c": [("a", "c"), ("b", "c")]})
    [('a', 'c'), ('b', 'c'), ('a', 'b')]
    """
    ranks: dict[Clique, list[int]] = {}
    for pairs in picks.values():
        for rank, pair in enumerate(pairs):
            ranks.setdefault(pair, []).append(rank)
    last = max(map(len, picks.values()), default=0)

    def key(pair: Clique) -> tuple[int, int]:
        first, second, *_ = [*sorted(ranks[pair]), last]
        return first, second

    return sorted(ranks, key=key)
