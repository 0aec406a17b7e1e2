"""A pair's answer moved towards its measured table, for large budgets."""

from __future__ import annotations

import math

import numpy as np

from dpgm_core import FloatArray, Model, OptionError, StructureError

__all__ = ["correct_pair"]


def correct_pair(model: Model, first: str, second: str) -> FloatArray:
    """Return p(first, second) of a model, moved towards the measured table as far as its noise does not explain.

    Parameters
    ----------
    model : Model
        With the release that it was learned from.
    first, second : str
        Attributes that one table measured alone.

    Returns
    -------
    array
        (labels of the first, labels of the second). It is an answer to this pair: no joint distribution has all of
        them, samples do not follow it, and it has no intervals.

    Raises
    ------
    StructureError
        The pair was not measured.
    OptionError
        The release measured contrasts, or the model is a bootstrap replicate.

    Notes
    -----
    a + t (y / N - a), projected on the distributions, with a the model's table, y the noisy one of K cells and s the
    standard deviation of their noise: t = max(0, 1 - (K + 2 sqrt(2 K)) s^2 / |y - N a|^2). That is the positive-part
    rule of James and Stein (1961), with two standard deviations of the noise's own squared distance on top of its mean
    K s^2, so that noise alone seldom moves an answer: without them the error on a dense table was 15 % more at epsilon
    = 0.1, and 3 % less at 10. Codes that the session merged keep the model's shares of their block.

    Examples
    --------
    >>> from dpgm_core import Budget, Domain, SeededRandomness, Structure, learn, release
    >>> codes = np.array([[0, 0], [1, 1], [1, 1], [0, 1]] * 500)
    >>> pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> noisy = release(codes, pair, Budget.pure(1), neighbours="add-remove", randomness=SeededRandomness(1))
    >>> correct_pair(learn(noisy, "mixture").model, "a", "b").round(2).tolist()
    [[0.25, 0.25], [0.0, 0.5]]
    """
    release = model.release
    group = None if release is None else _group(release.structure.groups, first, second)
    if release is None or group is None:
        raise StructureError(f"no table of the model's release measured ({first}, {second}) alone; ask model.marginal")
    if "learner" not in model.provenance:
        raise OptionError(
            "a bootstrap replicate has no table of its own, so a corrected pair has no interval; ask model.intervals"
        )
    if release.contrasts:
        raise OptionError("the model's release measured contrasts, not tables; ask model.marginal")
    noisy = release.tables[first, second].astype(np.float64) / max(release.total, 1.0)
    answer = np.asarray(model.coarse.marginal((first, second)), dtype=np.float64)
    cells = answer.size
    noise = (cells + 2 * math.sqrt(2 * cells)) * float(release.variances[group]) / max(release.total, 1.0) ** 2
    distance = float(np.sum((noisy - answer) ** 2))
    moved = answer + max(0.0, 1 - noise / distance if distance > 0 else 0.0) * (noisy - answer)
    corrected = _nearest_distribution(moved.reshape(-1)).reshape(answer.shape)
    if model.coarse is model:
        return corrected
    ratio = np.divide(corrected, answer, out=np.zeros_like(answer), where=answer > 0)
    blocks = [_blocks(model, name) for name in (first, second)]
    spread: FloatArray = np.asarray(model.marginal((first, second))) * ratio[np.ix_(*blocks)]
    return spread


def _group(groups: tuple[tuple[tuple[str, ...], ...], ...], first: str, second: str) -> int | None:
    wanted = {first, second}
    return next((at for at, one in enumerate(groups) if len(one) == 1 and set(one[0]) == wanted), None)


def _blocks(model: Model, name: str) -> list[int]:
    """The block of each code, as the sessions of the model's releases merged them."""
    merges = (one.session.merges for one in model.releases if one.session is not None)
    return next((list(one[name]) for one in merges if name in one), list(range(model.domain[name].size)))


def _nearest_distribution(values: FloatArray) -> FloatArray:
    """Return the nearest distribution in Euclidean distance."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    nearest: FloatArray = np.maximum(values - excess[np.flatnonzero(ordered > excess)[-1]], 0.0)
    return nearest
