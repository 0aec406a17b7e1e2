"""Markov random fields whose structure and parameters are known, and records drawn from them.

Code 0 of a binary attribute is z = +1, code 1 is z = -1. Up to 16 attributes are drawn exactly, from all 2^p states,
and so are matchings of any size; other graphs by Gibbs sampling, one chain a record, 60 sweeps from independent coins,
where the influence of the start is gone: it shrinks by |tanh A| (degree - 1), .76 on 3-regular graphs, or faster, a
sweep. Probabilities are rounded to 2^-16 there.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from attrs import field, frozen

from dpgm_core import Array, Domain, FloatArray, Structure
from dpgm_core.structure.graphs import Clique

#: eta, and with the degree the width: |A| of every edge.
COUPLING = 0.4
#: max |W| of every edge where attributes have k labels.
LABEL_COUPLING = 0.8
#: Sweeps of a Gibbs sampler, and attributes up to which all states are listed instead.
SWEEPS, LISTED = 60, 16

Pair = tuple[int, int]


def names_of(count: int) -> list[str]:
    """x0, x1, ..."""
    return [f"x{place}" for place in range(count)]


def walsh(values: FloatArray) -> FloatArray:
    """The Walsh transform of 2^p numbers: state s has z_i = -1 where bit i is set, monomial I has the bits of its set.

    >>> walsh(np.array([1.0, 0, 0, 2.0])).tolist()
    [3.0, -1.0, -1.0, 3.0]
    """
    out = np.array(values, dtype=np.float64)
    half = 1
    while half < len(out):
        pairs = out.reshape(-1, 2, half)
        pairs[:, 0], pairs[:, 1] = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
        half *= 2
    return out


@frozen(kw_only=True, eq=False)
class Ising:
    """P(z) ~ exp(sum over edges of A_ij z_i z_j): couplings of +-.4 with random signs, no fields.

    couplings: A, (p, p), symmetric.
    """

    couplings: FloatArray = field(repr=False)

    @property
    def size(self) -> int:
        """p."""
        return len(self.couplings)

    @property
    def domain(self) -> Domain:
        """Binary attributes."""
        return Domain.from_sizes(dict.fromkeys(names_of(self.size), 2))

    @cached_property
    def edges(self) -> frozenset[Pair]:
        """Pairs i < j with a coupling."""
        return frozenset((i, j) for i, j in np.argwhere(np.triu(self.couplings)).tolist())

    @property
    def structure(self) -> Structure:
        """Its edges as cliques."""
        names = names_of(self.size)
        return Structure(self.domain, [(names[i], names[j]) for i, j in sorted(self.edges)])

    @property
    def degree(self) -> int:
        """The most edges at an attribute; the ratio of `width` and the least coupling."""
        return int((self.couplings != 0).sum(axis=1).max())

    @property
    def width(self) -> float:
        """lambda, the largest sum of |A_ij| over j."""
        return float(np.abs(self.couplings).sum(axis=1).max())

    def records(self, count: int, rng: np.random.Generator) -> Array:
        """Codes, (count, attributes)."""
        if self.degree == 1:
            return _matched(self.couplings, count, rng)
        return _listed(self._log_weights(), count, rng) if self.size <= LISTED else _gibbs(self.couplings, count, rng)

    def _log_weights(self) -> FloatArray:
        polynomial = np.zeros(2**self.size)
        for i, j in self.edges:
            polynomial[2**i + 2**j] = self.couplings[i, j]
        return walsh(polynomial)


@frozen(kw_only=True, eq=False)
class Labels:
    """A matching of attributes of k labels: W of each pair random, its rows and columns centred, max |W| = .8.

    tables: (pairs, k, k); pair m joins attributes 2 m and 2 m + 1.
    """

    tables: FloatArray = field(repr=False)

    @classmethod
    def draw(cls, labels: int, size: int, rng: np.random.Generator) -> Labels:
        """A random one."""
        raw = rng.normal(size=(size // 2, labels, labels))
        centred = raw - raw.mean(axis=1, keepdims=True)
        centred -= centred.mean(axis=2, keepdims=True)
        return cls(tables=LABEL_COUPLING * centred / np.abs(centred).max(axis=(1, 2), keepdims=True))

    @property
    def domain(self) -> Domain:
        """Attributes of k labels."""
        return Domain.from_sizes(dict.fromkeys(names_of(2 * len(self.tables)), self.tables.shape[1]))

    @property
    def edges(self) -> frozenset[Pair]:
        """The pairs."""
        return frozenset((2 * pair, 2 * pair + 1) for pair in range(len(self.tables)))

    @property
    def width(self) -> float:
        """lambda, the largest sum over partners, here one, of a row's max |W|."""
        return float(np.abs(self.tables).max())

    def records(self, count: int, rng: np.random.Generator) -> Array:
        """Codes, (count, attributes)."""
        pairs, labels, _ = self.tables.shape
        codes = np.empty((count, 2 * pairs), dtype=np.uint8)
        for pair, table in enumerate(self.tables):
            law = np.exp(table).ravel()
            cells = np.searchsorted(np.cumsum(law / law.sum())[:-1], rng.random(count), side="right")
            codes[:, 2 * pair], codes[:, 2 * pair + 1] = np.divmod(cells, labels)
        return codes


@frozen(kw_only=True, eq=False)
class Polynomial:
    """P(z) ~ exp(h(z)) for a polynomial h, binary attributes. coefficients: (2^p,), at the bits of each monomial."""

    coefficients: FloatArray = field(repr=False)

    @classmethod
    def draw(cls, size: int, cliques: Sequence[tuple[int, ...]], rng: np.random.Generator) -> Polynomial:
        """+-.4 with a random sign at each clique."""
        coefficients = np.zeros(2**size)
        for clique in cliques:
            coefficients[sum(2**place for place in clique)] = COUPLING * rng.choice([-1, 1])
        return cls(coefficients=coefficients)

    @classmethod
    def triples(cls, rng: np.random.Generator) -> Polynomial:
        """Ten attributes, five triples and four pairs that no triple holds, drawn until the width is 1.6."""
        while True:
            threes = list(itertools.combinations(range(10), 3))
            cliques = [threes[place] for place in rng.choice(len(threes), size=5, replace=False)]
            free = [
                pair for pair in itertools.combinations(range(10), 2) if not any(set(pair) <= set(c) for c in cliques)
            ]
            twos = [free[place] for place in rng.choice(len(free), size=4, replace=False)]
            found = cls.draw(10, [*cliques, *twos], rng)
            if abs(found.width - 4 * COUPLING) < 1e-9:
                return found

    @property
    def size(self) -> int:
        """p."""
        return len(self.coefficients).bit_length() - 1

    @property
    def domain(self) -> Domain:
        """Binary attributes."""
        return Domain.from_sizes(dict.fromkeys(names_of(self.size), 2))

    @property
    def width(self) -> float:
        """lambda, the largest sum of absolute coefficients of a derivative."""
        places = np.arange(len(self.coefficients))
        return max(float(np.abs(self.coefficients[places >> i & 1 == 1]).sum()) for i in range(self.size))

    @property
    def monomials(self) -> dict[Clique, float]:
        """Every set with a coefficient; all of them are maximal."""
        names = names_of(self.size)
        return {
            tuple(names[i] for i in range(self.size) if place >> i & 1): float(self.coefficients[place])
            for place in np.flatnonzero(self.coefficients)
        }

    def records(self, count: int, rng: np.random.Generator) -> Array:
        """Codes, (count, attributes)."""
        return _listed(walsh(self.coefficients), count, rng)


def _matching(size: int, rng: np.random.Generator) -> list[Pair]:
    return [(place, place + 1) for place in range(0, size, 2)]


def _regular(size: int, rng: np.random.Generator) -> list[Pair]:
    """Three edges at each, uniform over such graphs: ends are joined at random until no edge is double or a loop."""
    while True:
        ends = rng.permutation(np.repeat(np.arange(size), 3)).reshape(-1, 2)
        edges = {(int(min(pair)), int(max(pair))) for pair in ends if pair[0] != pair[1]}
        if 2 * len(edges) == 3 * size:
            return sorted(edges)


def _grid(size: int, rng: np.random.Generator) -> list[Pair]:
    side = round(size**0.5)
    across = [(place, place + 1) for place in range(size) if place % side < side - 1]
    return [*across, *((place, place + side) for place in range(size - side))]


_EDGES = {"matching": _matching, "3-regular": _regular, "grid": _grid}
GRAPHS = tuple(_EDGES)


def ising(graph: str, size: int, rng: np.random.Generator) -> Ising:
    """A model on one of `GRAPHS`; a grid's size is a square."""
    couplings = np.zeros((size, size))
    for i, j in _EDGES[graph](size, rng):
        couplings[i, j] = couplings[j, i] = COUPLING * rng.choice([-1, 1])
    return Ising(couplings=couplings)


def _matched(couplings: FloatArray, count: int, rng: np.random.Generator) -> Array:
    """One coin for the first of a pair, and one for whether the second is the same: exact."""
    codes = rng.integers(0, 2, size=(count, len(couplings)), dtype=np.uint8)
    for i, j in np.argwhere(np.triu(couplings)).tolist():
        differ = rng.random(count) >= 1 / (1 + np.exp(-2 * couplings[i, j]))
        codes[:, j] = codes[:, i] ^ differ
    return codes


def parities(size: int, count: int, rng: np.random.Generator) -> tuple[list[Clique], Array]:
    """Triples, no attribute in two of them, of +-.4 with a random sign each; and codes of that law, exactly."""
    codes = rng.integers(0, 2, size=(count, size), dtype=np.uint8)
    for at in range(0, size, 3):
        odd = rng.random(count) >= 1 / (1 + np.exp(-2 * COUPLING * rng.choice([-1, 1])))
        codes[:, at + 2] = codes[:, at] ^ codes[:, at + 1] ^ odd
    names = names_of(size)
    return [tuple(names[at : at + 3]) for at in range(0, size, 3)], codes


def _listed(log_weights: FloatArray, count: int, rng: np.random.Generator) -> Array:
    """States by their probabilities, listed."""
    law = np.cumsum(np.exp(log_weights - log_weights.max()))
    states = np.searchsorted(law[:-1], rng.random(count) * law[-1], side="right")
    size = len(log_weights).bit_length() - 1
    return (states[:, None] >> np.arange(size) & 1).astype(np.uint8)


def _gibbs(couplings: FloatArray, count: int, rng: np.random.Generator) -> Array:
    """One chain a record, all at once. All |A| are alike, so a field is a number of neighbours that agree."""
    size = len(couplings)
    spins = rng.integers(0, 2, size=(size, count), dtype=np.int8) * 2 - 1
    neighbours = [np.flatnonzero(row).tolist() for row in couplings]
    for _ in range(SWEEPS):
        for place, near in enumerate(neighbours):
            field = np.zeros(count, dtype=np.int8)
            for other in near:
                if couplings[place, other] > 0:
                    field += spins[other]
                else:
                    field -= spins[other]
            strength = float(np.abs(couplings[place]).max())
            law = np.round(2**16 / (1 + np.exp(-2 * strength * np.arange(-len(near), len(near) + 1))))
            up = rng.integers(0, 2**16, size=count, dtype=np.uint16) < law.astype(np.uint16)[field + len(near)]
            spins[place] = up.astype(np.int8) * 2 - 1
    return np.ascontiguousarray((spins.T < 0).astype(np.uint8))
