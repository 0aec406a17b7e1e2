"""The linear algebra of one round without matrices: Krylov methods on products with F, a stochastic diagonal.

No solve is nested in another. With A = N F and V the noise, H d = (A (A + V)^-1 A + Lam) d = g is the second row of
    -(A + V) x + A d = 0,    A x + Lam d = g,
symmetric and indefinite: MINRES, both products with A in one walk. A + V and H are preconditioned by their blocks of
one effect each, which the marginals give exactly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import LinearOperator, minres

from dpgm_core import FloatArray, IntArray
from dpgm_eb_map.contrasts import Basis, Effect, contrasts
from dpgm_eb_map.posterior import Product

__all__ = ["MatrixFree", "conjugate_gradients"]

_LARGEST_BLOCK = 1000  # effects of more parameters are preconditioned by their diagonal alone
# Relative residual norm in the metric of the preconditioner, and iterations: for W r, which the objective holds; for
# Newton's step, which only leads there; for the probes, since a rough answer makes the scales too small.
_WEIGHTS, _STEP, _PROBE = (1e-4, 200), (1e-2, 60), (1e-3, 200)
_PROBES = 12


class MatrixFree:
    """What `Dense` offers, for more parameters; `determined` is estimated from random signs, always the same ones.

    product: V -> F V. marginals: of one record (cells,), total: N, variances and drift: V as in `Dense`. `unsolved`
    counts the products with W that were given up before they were exact.
    """

    def __init__(self, product: Product, basis: Basis, marginals: FloatArray, total: float, drift: FloatArray) -> None:
        self._product, self._basis, self._total, self._drift = product, basis, total, drift
        self._noise = basis.variances[:, None]
        self._blocks = [total * _covariance(basis, effect, marginals) for effect in basis.effects]
        self._ready = self._preconditioner(self._noise_block)
        self._probes = np.random.default_rng(0).choice([-1.0, 1.0], size=(basis.size, _PROBES))
        self.unsolved = 0

    def weighted(self, residual: FloatArray) -> FloatArray:
        """W r."""

        def product(vectors: FloatArray) -> FloatArray:
            return self._information(vectors) + self._scatter(vectors)

        found, solved = conjugate_gradients(product, residual[:, None], self._ready, *_WEIGHTS)
        self.unsolved += not solved
        return found[:, 0]

    def told(self, residual: FloatArray) -> FloatArray:
        """N F W r."""
        return self._information(self.weighted(residual)[:, None])[:, 0]

    def set_prior(self, precision: FloatArray) -> None:
        """Take a prior of this precision (p,)."""
        self._precision = precision[:, None]
        self._prior_ready = self._preconditioner(self._system_block)

    def newton(self, gradient: FloatArray) -> FloatArray:
        """H^-1 g, roughly; always a direction of descent."""
        found = self._inverse(gradient, *_STEP)
        return found if float(found @ gradient) > 0 else self._prior_ready(gradient[:, None])[:, 0]

    def determined(self) -> FloatArray:
        """1 - c Lam of each parameter (p,), up to scatter: 1 less the diagonal of Lam^1/2 H^-1 Lam^1/2 (Hutchinson)."""
        root = np.sqrt(self._precision[:, 0])
        left = [probe * root * self._inverse(probe * root, *_PROBE) for probe in self._probes.T]
        found: FloatArray = 1.0 - np.mean(left, axis=0)
        self._determined = found
        return found

    def spread(self, part: IntArray) -> FloatArray:
        """The diagonal (q,) of H^-1 at `part` (q,), up to scatter."""
        found: FloatArray = np.clip(1.0 - self._determined[part], 1e-6, 1.0) / self._precision[part, 0]
        return found

    def _inverse(self, right: FloatArray, tolerance: float, most: int) -> FloatArray:
        size = len(right)

        def product(both: FloatArray) -> FloatArray:
            hidden, step = both.reshape(2, size)
            told = self._information(np.stack([hidden, step], axis=1))
            upper = told[:, 1] - told[:, 0] - self._scatter(hidden[:, None])[:, 0]
            return np.concatenate([upper, told[:, 0] + self._precision[:, 0] * step])

        def ready(both: FloatArray) -> FloatArray:
            hidden, step = both.reshape(2, size, 1)
            return np.concatenate([self._ready(hidden)[:, 0], self._prior_ready(step)[:, 0]])

        shape = (2 * size, 2 * size)
        system, conditioner = (LinearOperator(shape, matvec=one, dtype=np.float64) for one in (product, ready))
        both, _ = minres(system, np.concatenate([np.zeros(size), right]), M=conditioner, rtol=tolerance, maxiter=most)
        found: FloatArray = both[size:]
        return found

    def _information(self, vectors: FloatArray) -> FloatArray:
        return self._total * self._product(vectors)

    def _scatter(self, vectors: FloatArray) -> FloatArray:
        found: FloatArray = self._noise * vectors + np.outer(self._drift, self._drift @ vectors)
        return found

    def _preconditioner(self, block_of: Callable[[FloatArray, slice], FloatArray]) -> Product:
        """v -> the inverse of each effect's block times its part of v."""
        inverses = []
        for effect, block in zip(self._basis.effects, self._blocks, strict=True):
            made = block_of(block, effect.part)
            inverses.append((effect.part, 1 / made if made.ndim == 1 else np.linalg.inv(made)))

        def ready(vectors: FloatArray) -> FloatArray:
            found = np.empty_like(vectors)
            for part, inverse in inverses:
                found[part] = inverse[:, None] * vectors[part] if inverse.ndim == 1 else inverse @ vectors[part]
            return found

        return ready

    def _noise_block(self, block: FloatArray, part: slice) -> FloatArray:
        return block + _diagonal(self._noise[part, 0], block)

    def _system_block(self, block: FloatArray, part: slice) -> FloatArray:
        noisy = self._noise_block(block, part)
        told = block**2 / noisy if block.ndim == 1 else block @ np.linalg.solve(noisy, block)
        return told + _diagonal(self._precision[part, 0], block)


def conjugate_gradients(
    product: Product, right: FloatArray, ready: Product, tolerance: float, most: int
) -> tuple[FloatArray, bool]:
    """Solve A x = b for every column b of (p, m) at once, and say whether each was solved.

    product: v -> A v. ready: v -> P v, the preconditioner; both symmetric and positive definite. tolerance: of
    (r'P r / b'P b)^(1/2), r the residual. most: iterations. Columns that are solved drop out.

    >>> conjugate_gradients(lambda v: 2 * v, np.ones((3, 1)), lambda v: v, 1e-9, 10)[0].tolist()
    [[0.5], [0.5], [0.5]]
    """
    found = np.zeros_like(right)
    left = np.arange(right.shape[1])
    residual, solution = right, np.zeros_like(right)
    direction = ready(residual)
    size = np.einsum("ij,ij->j", residual, direction)
    goal = tolerance**2 * size
    for _ in range(most):
        open_ = size > goal
        if not open_.all():
            found[:, left[~open_]] = solution[:, ~open_]
            left, goal, size = left[open_], goal[open_], size[open_]
            residual, solution, direction = residual[:, open_], solution[:, open_], direction[:, open_]
        if not len(left):
            return found, True
        image = product(direction)
        length = size / np.einsum("ij,ij->j", direction, image)
        solution = solution + length * direction
        residual = residual - length * image
        conditioned = ready(residual)
        before, size = size, np.einsum("ij,ij->j", residual, conditioned)
        direction = conditioned + size / before * direction
    found[:, left] = solution
    return found, False


def _covariance(basis: Basis, effect: Effect, marginals: FloatArray) -> FloatArray:
    """The covariance of an effect's statistics for one record, (q, q), or its diagonal (q,) where q is large.

    Of tied cliques: as if they were independent of each other.
    """
    structure, holder = basis.structure, effect.holders[0]
    table: FloatArray = marginals[structure.slices[holder.group]].reshape(*structure.shapes[holder.group], 1)
    margin = holder.margin(table).reshape(-1)
    cliques = structure.multiplicities[holder.group]
    matrix: FloatArray = np.ones((1, 1))
    for size in effect.shape:
        matrix = np.asarray(np.kron(matrix, contrasts(size)), dtype=np.float64)
    mean = matrix.T @ margin
    if matrix.shape[1] > _LARGEST_BLOCK:
        return np.maximum((matrix**2).T @ margin - mean**2 / cliques, 0.0)
    block: FloatArray = (matrix.T * margin) @ matrix - np.outer(mean, mean) / cliques
    return block


def _diagonal(values: FloatArray, like: FloatArray) -> FloatArray:
    return values if like.ndim == 1 else np.diag(values)
