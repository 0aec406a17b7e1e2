"""All pairs from one release: the sparse Ising model of greatest entropy that the noisy products support.

Post-processing, and the benchmark's own. Pairs join while some product is further from the model's than an edge would
have it; several at once, each the best at both of its ends; then all couplings are fitted anew, exactly, by listing the
states of each connected part. Parts of more than 16 attributes do not happen near n* and are refused.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from benchmarks.cases.markov import LISTED, Pair, walsh
from dpgm_core import FloatArray

__all__ = ["TooDense", "by_greatest_entropy"]

#: Of the product of an edge with half the least coupling: smaller residuals are taken for noise.
SHARE = 0.8
ROUNDS = 12


class TooDense(Exception):
    """Edges of noise join too many attributes."""


def by_greatest_entropy(products: FloatArray, least: float) -> FloatArray:
    """A, (p, p), from noisy means of z_i z_j, (p, p), no fields. least: eta. Raises TooDense."""
    size = len(products)
    couplings, model = np.zeros((size, size)), np.zeros((size, size))
    edges: set[Pair] = set()
    for _ in range(ROUNDS):
        residuals = np.abs(products - model)
        np.fill_diagonal(residuals, 0)
        for i, j in edges:
            residuals[i, j] = residuals[j, i] = 0
        best = residuals.argmax(axis=1)
        found = {
            (i, int(j))
            for i, j in enumerate(best)
            if i < j and best[j] == i and residuals[i, j] > SHARE * np.tanh(least / 2)
        }
        if not found:
            break
        edges |= found
        couplings, model = _fitted(products, edges)
    return couplings


def _fitted(products: FloatArray, edges: set[Pair]) -> tuple[FloatArray, FloatArray]:
    """Couplings of the edges, and all products under them."""
    size = len(products)
    couplings, model = np.zeros((size, size)), np.eye(size)
    for part in _parts(size, edges):
        if len(part) > LISTED:
            raise TooDense(f"{len(part)} attributes are joined; at most {LISTED} can be listed")
        place = {attribute: at for at, attribute in enumerate(part)}
        inside = [(i, j) for i, j in edges if i in place]
        bits = np.array([2 ** place[i] + 2 ** place[j] for i, j in inside])
        wanted = np.clip([products[i, j] for i, j in inside], -0.98, 0.98)

        def loss(
            values: FloatArray, bits: np.ndarray = bits, wanted: np.ndarray = wanted, many: int = len(part)
        ) -> tuple[float, FloatArray]:
            law, log_sum = _law(values, bits, many)
            return log_sum - float(values @ wanted) + 1e-4 * float(values @ values), walsh(law)[
                bits
            ] - wanted + 2e-4 * values

        values = minimize(loss, np.arctanh(wanted) / 2, jac=True, method="L-BFGS-B", bounds=[(-2, 2)] * len(bits)).x
        moments = walsh(_law(values, bits, len(part))[0])
        for (i, j), value in zip(inside, values, strict=True):
            couplings[i, j] = couplings[j, i] = value
        for i in part:
            for j in part:
                model[i, j] = moments[2 ** place[i] + 2 ** place[j]] if i != j else 1.0
    return couplings, model


def _law(values: FloatArray, bits: np.ndarray, many: int) -> tuple[FloatArray, float]:
    """Probabilities of all states, and the log of their sum before."""
    polynomial = np.zeros(2**many)
    np.add.at(polynomial, bits, values)
    weights = walsh(polynomial)
    top = float(weights.max())
    law = np.exp(weights - top)
    return law / law.sum(), top + float(np.log(law.sum()))


def _parts(size: int, edges: set[Pair]) -> list[list[int]]:
    """Connected parts with an edge."""
    of = list(range(size))
    for i, j in edges:
        one, two = of[i], of[j]
        of = [one if part == two else part for part in of]
    return [part for name in set(of) if len(part := [at for at in range(size) if of[at] == name]) > 1]
