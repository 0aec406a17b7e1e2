"""Second derivatives of the log-partition from logarithms: slower than `tangents`, and safe whatever the potentials.

Forward over reverse on a contraction, in relative tangents. With t = d log value of each node and s = d log adjoint, a
step out = sum left * right gives t(out) = E[t(left) + t(right) | out], the mean over the letters summed, and its
adjoint s(left) = E[s(out) + t(right) | left]; where nothing is summed both are plain sums. The weights of these means
are probabilities, so nothing over- or underflows whatever the potentials, and zeros are safe. At the root s = -t, and
in the end d marginals = marginals * (t + s). Only nodes that a direction reaches have tangents.
Source: Pearlmutter (1994), on the differential approach of Darwiche (2003).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen

from dpgm_core.arrays import FloatArray
from dpgm_core.inference.exact.contraction import Contraction, Letters
from dpgm_core.structure import Structure

__all__ = ["LogCurvature", "Means", "means_of"]

_MAX_CACHED_CELLS = 2**24  # weights of at most this many cells, 128 MiB, are kept between calls
_MAX_TANGENT_DOUBLES = 2**23  # doubles that the tangents of one walk may take
_COLUMNS = 128  # directions walked at once: enough for matrix products, few enough for the cache


class LogCurvature:
    """Cov(T) of the tables T of one record at fixed potentials, as a linear map.

    means: of the contraction, made once per engine. values, adjoints: the logarithms of every node and of its
    normalised adjoint (`logspace`).
    """

    def __init__(
        self,
        contraction: Contraction,
        structure: Structure,
        means: Means,
        values: Sequence[FloatArray],
        adjoints: Sequence[FloatArray],
    ) -> None:
        self._contraction, self._structure, self._means = contraction, structure, means
        self._values, self._adjoints = values, adjoints
        self._kept: dict[tuple[int, int, int], FloatArray] = {}
        weights = sum(mean.cells for walk in means for step in walk for mean in step if mean.inner)
        self._keep = weights <= _MAX_CACHED_CELLS
        cells = 2 * sum(contraction.cells(node) for node in range(len(contraction.nodes)))
        self._columns = max(1, min(_COLUMNS, _MAX_TANGENT_DOUBLES // max(1, cells)))

    def __call__(self, columns: FloatArray) -> FloatArray:
        """Cov(T) V for V (cells, m), finite."""
        product = np.zeros(columns.shape)
        for low in range(0, columns.shape[1], self._columns):
            part = slice(low, low + self._columns)
            self._walk(np.ascontiguousarray(columns[:, part]), product[:, part])
        return product

    def _walk(self, directions: FloatArray, product: FloatArray) -> None:
        contraction, inputs = self._contraction, len(self._contraction.groups)
        forward, backward = self._means
        # None stands for zero: the direction does not reach the node.
        tangents: list[FloatArray | None] = [None] * len(contraction.nodes)
        adjoints: list[FloatArray | None] = [None] * len(contraction.nodes)
        for node, group in enumerate(contraction.groups):
            block = directions[self._structure.slices[group]]
            if contraction.nodes[node] and block.any():  # a table without letters is constant
                tangents[node] = block.reshape(*contraction.shape(node), -1)
        for step in forward:
            for mean in step:
                self._add(mean, tangents[mean.source], tangents)
        for root in contraction.roots:
            above = tangents[root]
            adjoints[root] = None if above is None else -above
        for step in reversed(backward):
            for mean in step:
                self._add(mean, (adjoints if mean.adjoint else tangents)[mean.source], adjoints)
        for node in range(inputs):
            marginals = np.exp(self._values[node] + self._adjoints[node]).reshape(-1, 1)
            part = product[self._structure.slices[contraction.groups[node]]]
            for relative in (tangents[node], adjoints[node]):
                if relative is not None:
                    part += marginals * relative.reshape(len(part), -1)

    def _add(self, mean: _Mean, tangent: FloatArray | None, into: list[FloatArray | None]) -> None:
        """Add the conditional mean of a tangent to the target's."""
        if tangent is None:
            return
        contraction, last = self._contraction, len(mean.order)
        if not mean.inner:
            term = np.broadcast_to(
                tangent.transpose(*mean.order, last).reshape(*mean.spread, -1),
                (*contraction.shape(mean.target), tangent.shape[-1]),
            )
        else:
            rows = tangent.transpose(*mean.order, last).reshape(mean.batch, mean.inner, -1)
            term = np.matmul(self._weights(mean), rows).reshape(*mean.made, -1)
            term = term.transpose(*mean.placed, len(mean.made))
        before = into[mean.target]
        into[mean.target] = term if before is None else before + term

    def _weights(self, mean: _Mean) -> FloatArray:
        """p(summed letters | target's letters): (batch, free, inner)."""
        key = (mean.step, mean.source, mean.target)
        if key in self._kept:
            return self._kept[key]

        def table(laid: _Laid, adjoint: bool) -> FloatArray:
            node, axes, shape = laid
            return (self._adjoints if adjoint else self._values)[node].transpose(axes).reshape(shape)

        log_weights = sum(table(laid, laid[0] == mean.above) for laid in mean.factors)
        # Where the target is 0 so is every term: weights that nothing reads are set to 0.
        norm = table(mean.norm, mean.above is not None)
        weights = np.exp(log_weights - np.where(norm == -np.inf, 0.0, norm)).reshape(mean.batch, -1, mean.inner)
        if self._keep:
            self._kept[key] = weights
        return weights


# A node, and how its axes are laid over the letters (batch, free, inner) of a mean.
_Laid = tuple[int, tuple[int, ...], tuple[int, ...]]


@frozen(kw_only=True)
class _Mean:
    """One term of a step: the tangent of `source` averaged into that of `target`.

    adjoint: whether the source's tangent is that of its adjoint. above: the step's output, on the way back. order:
    the source's axes as (batch, inner). inner: cells summed, 0 for none; then `spread` is the shape that broadcasts to
    the target. made, placed: shape and axes of the product. factors, norm: the tables the weights are made of.
    """

    step: int
    source: int
    target: int
    adjoint: bool
    above: int | None
    order: tuple[int, ...]
    batch: int
    inner: int
    cells: int
    spread: tuple[int, ...]
    made: tuple[int, ...]
    placed: tuple[int, ...]
    factors: tuple[_Laid, ...]
    norm: _Laid


#: The means of every step, forwards and backwards.
Means = tuple[tuple[tuple[_Mean, ...], ...], tuple[tuple[_Mean, ...], ...]]


def means_of(contraction: Contraction) -> Means:
    """Every mean that a walk over the contraction takes, with its axes settled."""
    forward, backward = [], []
    for number, step in enumerate(contraction.steps):
        operands = (step.left,) if step.right is None else (step.left, step.right)
        forward.append(tuple(_mean(contraction, number, node, step.out, operands, None) for node in operands))
        terms = []
        for target in operands:
            sources = (step.out, *(node for node in operands if node != target))
            terms += [_mean(contraction, number, node, target, sources, step.out) for node in sources]
        backward.append(tuple(terms))
    return tuple(forward), tuple(backward)


def _mean(
    contraction: Contraction, step: int, source: int, target: int, factors: tuple[int, ...], above: int | None
) -> _Mean:
    """above: the step's output when the tangents are those of adjoints, None on the way forward."""
    axes_in, out = contraction.nodes[source], contraction.nodes[target]
    inner = tuple(letter for letter in axes_in if letter not in out)
    batch = tuple(letter for letter in out if letter in axes_in)
    free = tuple(letter for letter in out if letter not in axes_in)
    letters = (*batch, *free, *inner)

    def cells(some: Letters) -> int:
        return math.prod(contraction.sizes[letter] for letter in some)

    def laid(node: int) -> _Laid:
        own = contraction.nodes[node]
        axes = tuple(own.index(letter) for letter in letters if letter in own)
        return node, axes, tuple(contraction.sizes[letter] if letter in own else 1 for letter in letters)

    made = (*batch, *free)
    return _Mean(
        step=step,
        source=source,
        target=target,
        adjoint=source == above,
        above=above,
        order=tuple(axes_in.index(letter) for letter in (*batch, *inner)),
        batch=cells(batch),
        inner=cells(inner) if inner else 0,
        cells=cells(letters),
        spread=tuple(contraction.sizes[letter] if letter in axes_in else 1 for letter in out),
        made=tuple(contraction.sizes[letter] for letter in made),
        placed=tuple(made.index(letter) for letter in out),
        factors=tuple(map(laid, factors)) if inner else (),
        norm=laid(target),
    )
