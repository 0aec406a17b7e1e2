"""A lower bound on log Z of attractive models of binary attributes in pairs: Bethe's approximation.

Where no pair's potential favours unequal labels (p is log-supermodular), Ruozzi (2012, "The Bethe partition function of
log-supermodular graphical models") shows that the largest value of

    sum theta mu + sum_i H(mu_i) + sum_ij (H(mu_ij) - H(mu_i) - H(mu_j))

over ALL locally consistent mu is at most log Z: any such mu certifies a bound, whether messages converge or not. What
the labels are called is no matter, so a model counts as attractive too if some attributes' labels can be swapped to
make it so. Given p(x_i = 1) = q_i the best tables of pairs are known in closed form (Welling and Teh 2001), so the
search is over q alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
from attrs import frozen
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, logit, xlogy

from dpgm_core.arrays import Array, FloatArray, IntArray
from dpgm_core.inference.bounds.upper import EPSILON
from dpgm_core.tables import Tables

__all__ = ["Attractive"]

# Steps of L-BFGS from each start, and how far from certain it may go, as a logarithm of odds.
STEPS, CERTAIN = 100, 30.0
# What an impossible cell costs, nats, while q is looked for.
PENALTY = 50.0
# Other starts: all attributes near one label, near the other; attractive models have their modes on either side.
SIDES = (0.05, 0.95)


@frozen(kw_only=True, eq=False)
class Attractive:
    """A model of binary attributes, labels swapped where `swapped` says so. names: (n,), those of two labels. first,
    second: (m,), the attributes of each pair. fields: (n, 2), pairs: (m, 2, 2), potentials in nats. constant: nats.
    slack: what it has to lose because a pair that favours unequal labels by a rounding error is taken as neutral.
    """

    names: tuple[str, ...]
    swapped: Array
    first: IntArray
    second: IntArray
    fields: FloatArray
    pairs: FloatArray
    constant: float
    slack: float

    @classmethod
    def of(cls, theta: Tables) -> Attractive | None:
        """The model of these potentials, one clique to a group; None where it has larger cliques, attributes of more
        labels, or cannot be made attractive.

        >>> from dpgm_core.domain import Domain
        >>> from dpgm_core.structure import Structure
        >>> ring = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b"), ("b", "c"), ("c", "a")])
        >>> apart, alike = [0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0]
        >>> Attractive.of(Tables(ring, np.array(apart + alike + apart))).swapped.tolist()
        [False, True, True]
        >>> Attractive.of(Tables(ring, np.array(apart + alike + alike))) is None
        True
        """
        sizes = theta.structure.domain.sizes
        names = tuple(name for name, size in sizes.items() if size > 1)
        if any(sizes[name] != 2 for name in names):
            return None
        place = {name: number for number, name in enumerate(names)}
        fields, constant = np.zeros((len(names), 2)), 0.0
        tables: dict[tuple[int, ...], FloatArray] = {}
        for clique, table in theta.items():
            among = tuple(place[name] for name in clique if name in place)
            if len(among) > 2:
                return None
            if len(among) == 2:
                square = table.reshape(2, 2) if among[0] < among[1] else table.reshape(2, 2).T
                key = tuple(sorted(among))
                tables[key] = tables.get(key, 0.0) + square
            elif among:
                fields[among[0]] += table.reshape(2)
            else:
                constant += float(table.sum())
        edges = np.array(list(tables), dtype=np.int64).reshape(-1, 2)
        pairs = np.array(list(tables.values()), dtype=np.float64).reshape(-1, 2, 2)
        alike, apart = _diagonals(pairs)
        close = 8 * EPSILON * np.where(np.isfinite(pairs), np.abs(pairs), 0.0).sum(axis=(1, 2))
        swapped = _swapped(len(names), edges, alike > apart + close, apart > alike + close)
        if swapped is None:
            return None
        first, second = edges.T
        fields[swapped] = fields[swapped][:, ::-1]
        pairs[swapped[first]] = pairs[swapped[first]][:, ::-1]
        pairs[swapped[second]] = pairs[swapped[second]][:, :, ::-1]
        alike, apart = _diagonals(pairs)
        wrong = apart > alike
        against = float((apart[wrong] - alike[wrong]).sum())
        return cls(
            names=names,
            swapped=swapped,
            first=first,
            second=second,
            fields=fields,
            pairs=pairs,
            constant=constant,
            slack=against,
        )

    def bound(self, starts: Iterable[Mapping[str, FloatArray]]) -> tuple[float, float]:
        """The best bound found and its slack for rounding, nats; -inf where no possible q was found.

        starts: single attributes' marginals to look from, besides some of its own.
        """
        proposals = [np.array([start[name][1] for name in self.names]) for start in starts]
        begins = [np.where(self.swapped, 1 - q, q) for q in proposals]
        begins += [np.full(len(self.names), side) for side in SIDES]
        soft = self._soft()
        best = max(self.value(self._possible(_best(soft, q))) for q in begins)
        cells = self.pairs.size + self.fields.size
        magnitude = sum(
            float(np.where(np.isfinite(one), np.abs(one), 0.0).sum()) for one in (self.pairs, self.fields)
        ) + abs(self.constant)
        # A cell's probability errs by some EPSILON, its part of the entropy by less than 40 times as much.
        return best, self.slack + 64 * EPSILON * (cells + 1 + magnitude)

    def value(self, q: FloatArray) -> float:
        """Bethe's functional at q_i = p(x_i = 1), with the best tables of pairs; -inf where q needs an impossible one.

        q: (n,), of the swapped labels.
        """
        singles, tables = np.stack([1 - q, q], axis=1), self._tables(q)
        degree = np.bincount(self.first, minlength=q.size) + np.bincount(self.second, minlength=q.size)
        energy = 0.0
        for probability, potential in ((singles, self.fields), (tables, self.pairs)):
            with np.errstate(invalid="ignore"):
                energy += float(np.where(probability > 0, probability * potential, 0.0).sum())
        entropy = float((degree - 1) @ xlogy(singles, singles).sum(axis=1)) - float(xlogy(tables, tables).sum())
        return self.constant + energy + entropy

    def _tables(self, q: FloatArray) -> FloatArray:
        """(m, 2, 2): the tables of pairs that are best given q, locally consistent with it."""
        one, two = q[self.first], q[self.second]
        alike, apart = _diagonals(self.pairs)
        with np.errstate(invalid="ignore"):
            weight = np.exp(-np.maximum(np.where(alike == apart, 0.0, alike - apart), 0.0))
        # The smaller root of weight * both * neither = only_one * only_two, written so that nothing cancels.
        linear = weight + (1 - weight) * (one + two)
        root = np.sqrt(np.maximum(linear**2 - 4 * (1 - weight) * one * two, 0.0))
        both = 2 * one * two / np.maximum(linear + root, np.finfo(np.float64).tiny)
        both = np.where(np.isneginf(self.pairs[:, 0, 1]), two, np.where(np.isneginf(self.pairs[:, 1, 0]), one, both))
        both = np.clip(both, np.maximum(one + two - 1, 0.0), np.minimum(one, two))
        neither = np.maximum((1 - one) - (two - both), 0.0)
        return np.stack([neither, two - both, one - both, both], axis=1).reshape(-1, 2, 2)

    def _soft(self) -> Attractive:
        """Return the model with a penalty instead of each -inf, to look for q."""
        finite = np.concatenate([one[np.isfinite(one)] for one in (self.fields, self.pairs)])
        span = float(np.ptp(finite)) if finite.size else 0.0
        low = (float(finite.min()) if finite.size else 0.0) - PENALTY - span
        fields, pairs = (np.where(np.isneginf(one), low, one) for one in (self.fields, self.pairs))
        return Attractive(
            names=self.names,
            swapped=self.swapped,
            first=self.first,
            second=self.second,
            fields=fields,
            pairs=pairs,
            constant=0.0,
            slack=0.0,
        )

    def _possible(self, q: FloatArray) -> FloatArray:
        """q, changed where an impossible cell would have mass: impossible labels get none, and where one label forbids
        another its attribute gets no more than what is left. A contradiction stays, and shows in `value`.
        """
        never = np.isneginf(self.fields)
        np.logical_or.at(never, self.first, np.isneginf(self.pairs).all(axis=2))
        np.logical_or.at(never, self.second, np.isneginf(self.pairs).all(axis=1))
        # x_low = 1 needs x_high = 1.
        right, left = np.isneginf(self.pairs[:, 0, 1]), np.isneginf(self.pairs[:, 1, 0])
        low = np.concatenate([self.second[right], self.first[left]])
        high = np.concatenate([self.first[right], self.second[left]])
        q, sure = np.where(never[:, 1], 0.0, q), never[:, 0].copy()
        for _ in range(q.size):
            before = sure.sum()
            np.logical_or.at(sure, high, sure[low])
            if sure.sum() == before:
                break
        q = np.where(sure & ~never[:, 1], 1.0, q)
        for _ in range(q.size):
            before = q.copy()
            np.minimum.at(q, low, q[high])
            if np.array_equal(before, q):
                break
        return q


def _diagonals(pairs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(m,) each: the potentials of equal labels summed, and of unequal ones."""
    return pairs[:, 0, 0] + pairs[:, 1, 1], pairs[:, 0, 1] + pairs[:, 1, 0]


def _swapped(count: int, edges: IntArray, alike: Array, apart: Array) -> Array | None:
    """Return whose labels to swap so that no pair favours unequal ones; None if impossible (a signed graph's balance).

    Each attribute stands twice in a graph, as it is and swapped; balance means that no component holds both.
    """
    same, other = edges[alike], edges[apart]
    tails = np.concatenate([same, same + count, other, other + count])[:, 0]
    heads = np.concatenate([same, same + count, other + count, other])[:, 1]
    graph = csr_array((np.ones(tails.size), (tails, heads)), shape=(2 * count, 2 * count))
    component = connected_components(graph, directed=False)[1]
    plain, swapped = component[:count], component[count:]
    return None if (plain == swapped).any() else np.asarray(plain > swapped)


def _best(model: Attractive, start: FloatArray) -> FloatArray:
    """Ascent from a start on a model without zeros. start: (n,)."""

    def fall(odds: FloatArray) -> tuple[float, FloatArray]:
        q = expit(odds)
        return -model.value(q), -_slope(model, q) * q * (1 - q)

    begin = logit(np.clip(start, SIDES[0], SIDES[1]))  # nearer to certain the slope is flat
    result = minimize(
        fall, begin, jac=True, method="L-BFGS-B", bounds=[(-CERTAIN, CERTAIN)] * begin.size, options={"maxiter": STEPS}
    )
    best: FloatArray = expit(result.x) if math.isfinite(result.fun) else expit(begin)
    return best


def _slope(model: Attractive, q: FloatArray) -> FloatArray:
    """(n,): derivatives of `value`; those by the tables of pairs are 0, as these are the best."""
    tables = np.maximum(model._tables(q), np.finfo(np.float64).tiny)
    theta, n = model.pairs, q.size
    degree = np.bincount(model.first, minlength=n) + np.bincount(model.second, minlength=n)
    slope: FloatArray = model.fields[:, 1] - model.fields[:, 0] + (1 - degree) * (np.log1p(-q) - np.log(q))
    marked = theta - np.log(tables)
    slope += np.bincount(model.first, marked[:, 1, 0] - marked[:, 0, 0], n)
    slope += np.bincount(model.second, marked[:, 0, 1] - marked[:, 0, 0], n)
    return slope
