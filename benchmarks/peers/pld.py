"""dp-accounting as a peer, and the curves themselves: epsilon at a delta, of noises that are drawn together.

It lives in an environment of its own (`pip install dp-accounting`), whose interpreter DPGM_DP_ACCOUNTING_PYTHON names,
or in this one (extra `accounting`). Called there through `benchmarks.harness.alone`: nothing of dpgm is imported.

A part is (kind, scale, shift, cells, rate): noise of one kind and scale in so many cells, each of which is moved by the
shift; or so many rounds of one cell, on Poisson subsamples at the rate.
"""

import math

import numpy as np


def epsilons(parts, deltas, step):
    """dp-accounting's upper and lower bounds at these deltas, its losses on a grid of this step, and its version."""
    from importlib.metadata import version

    from dp_accounting.pld import privacy_loss_distribution

    found = {"version": version("dp-accounting")}
    for name, upper in (("upper", True), ("lower", False)):
        whole = None
        for kind, scale, shift, cells, rate in parts:
            make = getattr(privacy_loss_distribution, f"from_{kind}_mechanism")
            # Laplace noise of integers takes 1/scale.
            how = {"sampling_prob": rate, "value_discretization_interval": step, "pessimistic_estimate": upper}
            one = make(1 / scale if kind == "discrete_laplace" else scale, sensitivity=shift, **how)
            one = one.self_compose(cells)
            whole = one if whole is None else whole.compose(one)
        found[name] = [whole.get_epsilon_for_delta(delta) for delta in deltas]
    return found


def exact(parts, deltas):
    """The curve itself at these deltas, without subsamples.

    Continuous noise: Balle and Wang (2018), Theorem 8, with 60 digits. Noise on whole numbers: every loss and its
    probability, summed; all terms are positive, so that eleven digits are right.
    """
    curve = _normal(parts) if parts[0][0] == "gaussian" else _summed(parts)
    return [_solved(curve, delta) for delta in deltas]


def _normal(parts):
    from mpmath import mp, mpf, ncdf

    mp.dps = 60
    mu = mp.sqrt(sum(cells * (mpf(shift) / mpf(scale)) ** 2 for _, scale, shift, cells, _ in parts))
    return lambda epsilon: ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * ncdf(-mu / 2 - epsilon / mu)


def _summed(parts):
    losses, masses = np.zeros(1), np.ones(1)
    for kind, scale, shift, cells, _ in parts:
        # A loss is a whole multiple of a unit: (s^2 + 2 s z) / (2 v), or (|z + s| - |z|) / t.
        reach = math.ceil(13 * scale) if kind == "discrete_gaussian" else math.ceil(40 * scale)
        z = np.arange(-reach, reach + 1)
        if kind == "discrete_gaussian":
            unit, multiple, law = shift / (2 * scale**2), shift + 2 * z, np.exp(-np.square(z) / (2 * scale**2))
        else:
            unit, multiple, law = 1 / scale, np.abs(z + shift) - np.abs(z), np.exp(-np.abs(z) / scale)
        one = np.bincount(multiple - multiple.min(), law / law.sum())
        total, start = np.ones(1), 0
        for _ in range(cells):
            total, start = np.convolve(total, one), start + multiple.min()
            keep = np.flatnonzero(total > 1e-40)  # what is left out is far below each delta
            total, start = total[keep[0] : keep[-1] + 1], start + keep[0]
        losses = np.add.outer(losses, unit * (start + np.arange(len(total)))).ravel()
        masses = np.multiply.outer(masses, total).ravel()
    return lambda epsilon: float(masses @ -np.expm1(np.minimum(epsilon - losses, 0.0)))


def _solved(curve, delta):
    """The epsilon at which a falling curve is delta, to 1e-13 or one unit of its digits."""
    low, high = 0.0, 1.0
    while curve(high) > delta:
        low, high = high, 2 * high
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if curve(middle) > delta else (low, middle)
    return high
