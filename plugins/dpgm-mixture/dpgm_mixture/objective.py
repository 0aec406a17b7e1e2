"""The distance of a mixture from noisy tables, and its gradient.

p(x) = sum_h pi_h prod_i F_i(x_i | h), so the table of a pair is F_i diag(pi) F_j'. Tables with the same first
attribute stand side by side, and value and gradient take three matrix products for each attribute. Minimised is

    sum over tables of |y / N - p|^2 N^2 / (2 s^2)  +  |theta - mean_h theta|^2 / 2

over theta, F = softmax(theta) per attribute and class, and log pi. s^2 is the variance of a cell's noise and N / K,
which sampling adds on average to a cell of a table of K: a closer fit would follow the sample. The second term is a
Gaussian prior with a standard deviation of one nat on how a class differs from the mean of all.

Where noise is small beside what such a fit leaves, `Objective.following` has in place of y the table that is nearest to
the records in expectation, the fit's own q and what noise does not explain of the rest,

    q + t (y / N - q),    t = max(0, 1 - K s^2 / |y - N q|^2),

the positive-part rule of James and Stein (1961), with s^2 that of noise alone and a prior that is wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from attrs import evolve, frozen

from dpgm_core import Array, FloatArray, NoisyTables

__all__ = ["Objective", "split_parameters"]

#: Rows of one attribute's codes, or of several attributes'.
_Rows: TypeAlias = slice | Array

_FOLLOWING_PRIOR = 0.03  # precision of the prior on a class where the tables are followed
_SMALLEST = 1e-9  # of a table's noise, beside sampling


@frozen(kw_only=True, eq=False)
class _Pairs:
    """The tables of one attribute with others, side by side. starts: the first column of each. weight: N^2 / s^2 of
    each column. noise: the part of 1 / weight that is not sampling."""

    at: slice
    others: _Rows
    starts: Array
    target: FloatArray
    weight: FloatArray
    noise: FloatArray


@frozen(kw_only=True, eq=False)
class _Sum:
    """A table of one attribute, of three or more, or a tied one, which is a sum over its cliques."""

    cliques: tuple[tuple[slice, ...], ...]
    target: FloatArray
    weight: float
    noise: float


class Objective:
    """The objective over a release's tables; the empty clique, which is N, says nothing about the classes."""

    prior = 1.0

    def __init__(self, release: NoisyTables) -> None:
        structure, domain = release.structure, release.structure.domain
        measured = {name for clique in structure.cliques for name in clique}
        self.names = tuple(name for name in domain.names if name in measured)
        self.sizes = np.array([domain[name].size for name in self.names], dtype=np.int64)
        ends = np.concatenate([[0], np.cumsum(self.sizes)])
        self.starts, self.rows = ends[:-1], int(ends[-1])
        self.at = {name: slice(*two) for name, two in zip(self.names, pairwise(ends.tolist()), strict=True)}
        total = max(release.total, 1.0)
        self._tops, self._bottoms = np.zeros(self.rows), np.zeros(self.rows)
        self.cells = 0
        self._sums: list[_Sum] = []
        beside: dict[str, dict[str, tuple[FloatArray, float, float]]] = {}
        for number, group in enumerate(structure.groups):
            if group[0] == ():
                continue
            table = release.tables.group(number).astype(np.float64) / total
            variance, sampling = float(release.variances[number]), total * len(group) / table.size
            weight, noise = total**2 / (variance + sampling), max(variance, _SMALLEST * sampling) / total**2
            self.cells += table.size
            self._add_margins(group[0], table / len(group), weight)
            if len(group) == 1 and len(group[0]) == 2:
                one, two = group[0]
                if self.at[one].start > self.at[two].start:
                    one, two, table = two, one, table.T
                beside.setdefault(one, {})[two] = table, weight, noise
            else:
                places = tuple(tuple(self.at[name] for name in clique) for clique in group)
                self._sums.append(_Sum(cliques=places, target=table.reshape(-1), weight=weight, noise=noise))
        self._pairs = [self._side_by_side(name, tables) for name, tables in beside.items()]

    def _add_margins(self, clique: Sequence[str], table: FloatArray, weight: float) -> None:
        for axis, name in enumerate(clique):
            margin = table.sum(axis=tuple(other for other in range(table.ndim) if other != axis))
            precision = weight * len(margin) / table.size
            self._tops[self.at[name]] += precision * margin
            self._bottoms[self.at[name]] += precision

    def _side_by_side(self, name: str, tables: dict[str, tuple[FloatArray, float, float]]) -> _Pairs:
        others = sorted(tables, key=lambda other: self.at[other].start)
        rows = np.concatenate([np.arange(self.at[other].start, self.at[other].stop) for other in others])
        together = rows[-1] - rows[0] + 1 == len(rows)
        widths = [tables[other][0].shape[1] for other in others]
        return _Pairs(
            at=self.at[name],
            others=slice(int(rows[0]), int(rows[-1]) + 1) if together else rows,
            starts=np.cumsum([0, *widths[:-1]]),
            target=np.concatenate([tables[other][0] for other in others], axis=1),
            weight=np.repeat([tables[other][1] for other in others], widths),
            noise=np.repeat([tables[other][2] for other in others], widths),
        )

    @cached_property
    def shares(self) -> FloatArray:
        """(rows,): each attribute's shares, the mean of all margins by precision, above 0."""
        means = np.divide(self._tops, self._bottoms, out=np.zeros(self.rows), where=self._bottoms > 0)
        shares = np.maximum(means, 1e-3 / np.repeat(self.sizes, self.sizes))
        return np.asarray(shares / np.repeat(np.add.reduceat(shares, self.starts), self.sizes))

    def logs(self, parameters: FloatArray, classes: int) -> tuple[FloatArray, FloatArray]:
        """Return log pi, (classes,), and log F, (rows, classes)."""
        weights, theta = split_parameters(parameters, classes)
        log_shares = weights - weights.max()
        log_shares = log_shares - np.log(np.exp(log_shares).sum())
        highest = np.repeat(np.maximum.reduceat(theta, self.starts), self.sizes, axis=0)
        masses = np.log(np.add.reduceat(np.exp(theta - highest), self.starts))
        return log_shares, theta - highest - np.repeat(masses, self.sizes, axis=0)

    def misfit(self, parameters: FloatArray, classes: int) -> float:
        """Return the mean squared distance of a cell from the model, in variances of noise and sampling."""
        log_shares, logs = self.logs(parameters, classes)
        distance = self._distance(np.exp(log_shares), np.exp(logs))[0]
        return 2 * distance / max(self.cells, 1)

    def __call__(self, parameters: FloatArray, classes: int) -> tuple[float, FloatArray]:
        """Return the objective and its gradient."""
        log_shares, logs = self.logs(parameters, classes)
        shares, tables = np.exp(log_shares), np.exp(logs)
        value, by_shares, by_tables = self._distance(shares, tables)
        theta = split_parameters(parameters, classes)[1]
        apart = theta - theta.mean(axis=1, keepdims=True)
        moved = tables * by_tables
        moved -= tables * np.repeat(np.add.reduceat(moved, self.starts), self.sizes, axis=0)
        moved += self.prior * apart
        outer = shares * (by_shares - shares @ by_shares)
        value += self.prior * float(np.vdot(apart, apart)) / 2
        return value, np.concatenate([outer, moved.reshape(-1)])

    def following(self, parameters: FloatArray, classes: int) -> tuple[Objective, float]:
        """Return the objective whose tables are between a fit and the noisy ones, and t over all tables together."""
        log_shares, logs = self.logs(parameters, classes)
        shares, tables = np.exp(log_shares), np.exp(logs)
        pairs, sums, distance = list[_Pairs](), list[_Sum](), 0.0
        for one in self._pairs:
            answer = (tables[one.at] * shares) @ tables[one.others].T
            apart = one.target - answer
            squares = np.add.reduceat((apart**2).sum(axis=0) / one.noise, one.starts)
            widths = np.diff([*one.starts, answer.shape[1]])
            distance += float(squares.sum())
            part = np.maximum(0.0, 1 - len(answer) * widths / np.maximum(squares, 1.0))
            pairs.append(evolve(one, target=answer + apart * np.repeat(part, widths), weight=1 / one.noise))
        for table in self._sums:
            rest = table.target - sum(_product([tables[at] for at in clique]) @ shares for clique in table.cliques)
            square = float(rest @ rest) / table.noise
            distance += square
            kept = min(1.0, rest.size / max(square, 1.0))
            sums.append(evolve(table, target=table.target - kept * rest, weight=1 / table.noise))
        moved = copy(self)
        moved._pairs, moved._sums, moved.prior = pairs, sums, _FOLLOWING_PRIOR
        return moved, max(0.0, 1 - self.cells / max(distance, 1.0))

    def _distance(self, shares: FloatArray, tables: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Half the weighted squares, and their derivatives by pi and by F."""
        value, by_shares, by_tables = 0.0, np.zeros(len(shares)), np.zeros_like(tables)
        scaled = tables * shares
        for one in self._pairs:
            others = tables[one.others]
            residual = scaled[one.at] @ others.T - one.target
            slope = residual * one.weight
            value += float(np.vdot(slope, residual)) / 2
            inner = slope @ others
            by_shares += np.einsum("ah,ah->h", tables[one.at], inner)
            by_tables[one.at] += inner
            by_tables[one.others] += slope.T @ tables[one.at]
        by_tables *= shares
        for table in self._sums:
            products = [_product([tables[at] for at in clique]) for clique in table.cliques]
            residual = sum(product @ shares for product in products) - table.target
            slope = table.weight * residual
            value += float(slope @ residual) / 2
            for clique, product in zip(table.cliques, products, strict=True):
                by_shares += slope @ product
                around = slope.reshape([at.stop - at.start for at in clique])
                for axis, at in enumerate(clique):
                    rest = _product([tables[other] for place, other in enumerate(clique) if place != axis])
                    turned = np.moveaxis(around, axis, 0).reshape(at.stop - at.start, -1)
                    by_tables[at] += (turned @ rest) * shares if len(clique) > 1 else np.outer(slope, shares)
        return value, by_shares, by_tables


def split_parameters(parameters: FloatArray, classes: int) -> tuple[FloatArray, FloatArray]:
    """Return the parameters of pi, (classes,), and theta, (rows, classes)."""
    return parameters[:classes], parameters[classes:].reshape(-1, classes)


def _product(tables: Sequence[FloatArray]) -> FloatArray:
    """(cells, classes): the product of the tables' rows in every combination, the last table's fastest."""
    product: FloatArray = np.ones((1, 1))
    for table in tables:
        product = (product[:, None, :] * table[None, :, :]).reshape(-1, table.shape[1])
    return product
