"""The linear algebra of one round with matrices: exact, and cubic in the number of parameters.

Of symmetric matrices only the lower triangle is made and read, columns first as LAPACK has them, and nothing is
multiplied in full that a factor already tells.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from dpgm_core import FloatArray, InferenceError, IntArray

__all__ = ["Dense"]

# records**2: with noise beyond it N F - E + E W E leaves too few digits of N^2 F W F beside any prior's precision
_MAX_VARIANCE = 1e7
_AT_ONCE = 32  # columns, which the cache holds


class Dense:
    """W = (N F + V)^-1 and H = N^2 F W F + Lam, factored.

    information: N F, the covariance of the statistics of N records (p, p), symmetric. variances: the diagonal of V
    (p,). drift: (p,), V has drift drift' besides: what an estimated N does to the residual.
    """

    def __init__(self, information: FloatArray, variances: FloatArray, drift: FloatArray) -> None:
        if not np.isfinite(information.sum()):  # LAPACK may pass NaN on without a word
            raise InferenceError("eb-map: the information matrix holds NaN or infinite values; the engine gave them")
        try:
            lower = _factor(_summed(information, variances, drift))
        except InferenceError:  # an approximate engine's covariance need not be one
            values, vectors = np.linalg.eigh(information)
            information = (vectors * np.maximum(values, 0.0)) @ vectors.T
            lower = _factor(_summed(information, variances, drift))
        self._weight, info = lapack.dpotri(lower, lower=1, overwrite_c=1)
        if info:
            raise _singular()
        if float(variances.max(initial=0.0)) > _MAX_VARIANCE:
            self._data = information @ blas.dsymm(1.0, self._weight, information, lower=1)
        else:
            self._data = self._data_term(information, variances, drift)

    def _data_term(self, information: FloatArray, variances: FloatArray, drift: FloatArray) -> FloatArray:
        """N^2 F W F without a product of matrices: with N F = W^-1 - E it is N F - E + E W E, E = V + drift drift'."""
        drawn = self.weighted(drift)
        data = np.zeros(information.shape, order="F")
        for low in range(0, len(data), _AT_ONCE):
            part = slice(low, low + _AT_ONCE)
            block = data[low:, part]
            np.multiply(self._weight[low:, part], variances[low:, None], block)
            block *= variances[part]
            block += information[part, low:].T
        _diagonal(data)[...] -= variances
        # E W E has V W drift drift' and its transpose besides V W V, and drift'W drift times drift drift'.
        across = variances * drawn + 0.5 * (float(drift @ drawn) - 1.0) * drift
        product: FloatArray = blas.dsyr2(1.0, across, drift, lower=1, a=data, overwrite_a=1)
        return product

    def weighted(self, residual: FloatArray) -> FloatArray:
        """W r, of (p,) or of the columns (p, n)."""
        product = blas.dsymv if residual.ndim == 1 else blas.dsymm
        weighted: FloatArray = product(1.0, self._weight, residual, lower=1)
        return weighted

    def set_prior(self, precision: FloatArray) -> None:
        """Factor H for a prior of this precision (p,)."""
        self._precision = precision
        self._inverse: FloatArray | None = None
        self._whole: FloatArray | None = None
        whole = self._data.copy(order="F")
        _diagonal(whole)[...] += precision
        self._lower = _factor(whole)

    def newton(self, gradient: FloatArray) -> FloatArray:
        """H^-1 g, of (p,) or of the columns (p, n)."""
        if gradient.ndim > 1:
            solved: FloatArray = blas.dsymm(1.0, self._whole_inverse(), gradient, lower=1)
            return solved
        half = blas.dtrsv(self._lower, gradient, lower=1)
        direction: FloatArray = blas.dtrsv(self._lower, half, lower=1, trans=1, overwrite_x=1)
        return direction

    def determined(self) -> FloatArray:
        """1 - c Lam of each parameter (p,), c the diagonal of H^-1: how far the data fix it, 0 to 1."""
        step = self._step()
        shares: FloatArray = 1.0 - np.einsum("ij,ij->j", step, step) * self._precision
        return shares

    def spread(self, part: IntArray) -> FloatArray:
        """The block (q, q) of H^-1 of the parameters at `part` (q,)."""
        columns = self._step()[part.min(initial=0) :, part]
        block: FloatArray = columns.T @ columns
        return block

    def _whole_inverse(self) -> FloatArray:
        """H^-1, its lower triangle, which many columns are multiplied with: a third of the time of two solves."""
        if self._whole is None:
            self._whole, info = lapack.dpotri(self._lower, lower=1)
            if info:
                raise _singular()
        return self._whole

    def _step(self) -> FloatArray:
        """The inverse of the factor of H, made when it is first asked for: Newton's steps do without."""
        if self._inverse is None:
            self._inverse, info = lapack.dtrtri(self._lower, lower=1)
            if info:
                raise _singular()
        return self._inverse


def _summed(information: FloatArray, variances: FloatArray, drift: FloatArray) -> FloatArray:
    """The lower triangle of N F + V + drift drift', columns first."""
    whole = information.T.copy(order="F")
    _diagonal(whole)[...] += variances
    summed: FloatArray = blas.dsyr(1.0, drift, lower=1, a=whole, overwrite_a=1)
    return summed


def _diagonal(matrix: FloatArray) -> FloatArray:
    """A view."""
    diagonal: FloatArray = np.einsum("ii->i", matrix)
    return diagonal


def _factor(matrix: FloatArray) -> FloatArray:
    """The Cholesky factor, in the matrix's place; above it zeros."""
    lower: FloatArray
    lower, info = lapack.dpotrf(matrix, lower=1, clean=1, overwrite_a=1)
    if info:
        raise InferenceError(
            "eb-map: the information matrix is not positive definite to double precision; the release is out of range"
        )
    return lower


def _singular() -> InferenceError:
    return InferenceError("eb-map: the information matrix is singular to double precision; the noise is too small")
