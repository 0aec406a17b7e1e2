"""The linear algebra of one round with matrices: exact, and cubic in the number of parameters."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, cholesky, lapack

from dpgm_core import FloatArray, InferenceError, IntArray

__all__ = ["Dense"]


class Dense:
    """W = (N F + V)^-1 and H = N^2 F W F + Lam, factored.

    information: N F, the covariance of the statistics of N records (p, p). variances: the diagonal of V (p,).
    drift: (p,), V has drift drift' besides: what an estimated N does to the residual.
    """

    def __init__(self, information: FloatArray, variances: FloatArray, drift: FloatArray) -> None:
        information = (information + information.T) / 2
        try:
            lower = _factor(information + np.diag(variances) + np.outer(drift, drift))
        except InferenceError:  # an approximate engine's covariance need not be one
            values, vectors = np.linalg.eigh(information)
            information = (vectors * np.maximum(values, 0.0)) @ vectors.T
            lower = _factor(information + np.diag(variances) + np.outer(drift, drift))
        self._whiten = _inverted(lower)
        # X = L^-1 N F = L' - L^-1 V, so that N^2 F W F = X'X
        root = lower.T - self._whiten * variances - np.outer(self._whiten @ drift, drift)
        self._data: FloatArray = blas.dsyrk(1.0, root, trans=1, lower=1)
        self._data += np.tril(self._data, -1).T

    def weighted(self, residual: FloatArray) -> FloatArray:
        """W r."""
        return _squared(self._whiten, residual)

    def set_prior(self, precision: FloatArray) -> None:
        """Factor H for a prior of this precision (p,)."""
        self._precision = precision
        self._step = _inverted(_factor(self._data + np.diag(precision)))

    def newton(self, gradient: FloatArray) -> FloatArray:
        """H^-1 g."""
        return _squared(self._step, gradient)

    def determined(self) -> FloatArray:
        """1 - c Lam of each parameter (p,), c the diagonal of H^-1: how far the data fix it, 0 to 1."""
        spread = np.einsum("ij,ij->j", self._step, self._step)
        found: FloatArray = 1.0 - spread * self._precision
        return found

    def spread(self, part: IntArray) -> FloatArray:
        """The block (q, q) of H^-1 of the parameters at `part` (q,)."""
        columns = self._step[:, part]
        found: FloatArray = columns.T @ columns
        return found


def _factor(matrix: FloatArray) -> FloatArray:
    try:
        lower: FloatArray = cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError as error:
        raise InferenceError(
            "eb-map: the information matrix is not positive definite to double precision; the release is out of range"
        ) from error
    return lower


def _squared(lower: FloatArray, vector: FloatArray) -> FloatArray:
    """L'L v; the zeros of L are not read, which is half of the time."""
    found: FloatArray = blas.dtrmv(lower, blas.dtrmv(lower, vector, lower=1), lower=1, trans=1, overwrite_x=1)
    return found


def _inverted(lower: FloatArray) -> FloatArray:
    inverse, info = lapack.dtrtri(lower, lower=1)
    if info:
        raise InferenceError("eb-map: the information matrix is singular to double precision; the noise is too small")
    found: FloatArray = inverse
    return found
