"""The coefficients of a polynomial model from the logistic regressions of its attributes and its parities.

Given all others, z_i = 1 has probability sigma(2 d_i h), a polynomial of order t - 1: so a regression's weight of the
monomial I is v_i(I) = 2 h(I + i). Where I + i is maximal, E[d_I v_i] / 2 = 1/2 sum over I' that hold I of
v_i(I') Q(I' - I) is h(I + i) too, Q the parities; it averages what noise puts on I's larger neighbours. Source: Zhang,
Kamath, Kulkarni and Wu (2020), t-wise models; Klivans and Meka (2017).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpgm_core import FloatArray, IntArray

__all__ = ["recovered"]


def recovered(weights: Sequence[FloatArray], parities: FloatArray, inside: IntArray, above: float) -> FloatArray:
    """The polynomial, (2^p,).

    weights: of each attribute's regression, at the monomials of the others, (2^p,). parities: Q, of all monomials,
    (2^p,). inside: the monomials that may have a coefficient. above: the largest monomials whose coefficient is above
    it in absolute value are kept, with all inside them, and the rest is 0. A maximal monomial's coefficient is the mean
    over its attributes of the sum above, one inside another the mean of v_i(I) / 2.

    >>> weights = [np.array([0.0, 0, 0.8, 0]), np.array([0.0, 0.8, 0, 0])]
    >>> recovered(weights, np.array([1.0, 0, 0, 0.3]), np.array([1, 2, 3]), 0.2).tolist()
    [0.0, 0.0, 0.0, 0.4]
    """
    size = len(parities)
    averaged = [_expected(one, parities) for one in weights]
    found = np.zeros(size)
    covered = np.zeros(size, np.bool_)
    may = set(inside.tolist())
    for monomial in sorted(may, key=lambda one: (-one.bit_count(), one)):
        places = [place for place in range(len(weights)) if monomial >> place & 1]
        of = weights if covered[monomial] else averaged
        value = sum(float(of[place][monomial ^ 1 << place]) for place in places) / (2 * len(places))
        if covered[monomial]:
            found[monomial] = value
        elif abs(value) > above:
            found[monomial], within = value, monomial
            while within:  # all that lie in it
                covered[within] = True
                within = (within - 1) & monomial
    return found


def _expected(weights: FloatArray, parities: FloatArray) -> FloatArray:
    """E[d_I v] for all I, (2^p,): the sum over I' that hold I of v(I') Q(I' - I)."""
    found = np.zeros_like(weights)
    everything = np.arange(len(weights))
    for larger in np.flatnonzero(weights).tolist():
        parts = everything[everything & ~larger == 0]
        found[parts] += weights[larger] * parities[larger ^ parts]
    return found
