"""Edges of a fitted model: pairs whose interaction is more than noise, or than a least one that is stated.

The interaction of two attributes is their part of the log-density, centred: W(a, b) with rows and columns that sum to
0, in nats. Of binary attributes that is A z_a z_b, A the coupling of an Ising model, and its size |A|.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np

from dpgm_core import Clique, FloatArray, Model, NoisyTables, OptionError

__all__ = ["edges", "interactions"]

#: Standard errors beyond which an interaction is no noise.
_SURE = 3.0


def edges(model: Model, least: float | None = None) -> tuple[Clique, ...]:
    """The pairs inside the model's cliques that are edges, in the domain's order.

    least: the least size of an interaction, nats, if it is known beforehand: edges are then those of more than half of
    it. None: those whose interaction is more than 3 of its standard errors. Raises OptionError for a least that is no
    number above 0, and for none where the model has no release that could tell.

    >>> from dpgm_core import Domain, Structure, Tables
    >>> pairs = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b"), ("b", "c")])
    >>> strong, weak = (np.array([size, -size, -size, size]) for size in (0.4, 0.1))
    >>> edges(Model(pairs, Tables(pairs, np.concatenate([strong, weak]))), least=0.4)
    (('a', 'b'),)
    """
    by_pair = interactions(model)
    if least is not None:
        number = isinstance(least, (int, float)) and not isinstance(least, bool)
        if not number or not 0 < least < 1e300:  # a whole number may be beyond all floats
            raise OptionError(f"least must be a finite number above 0, nats, got {least!r}; or leave it out")
        return tuple(pair for pair, table in by_pair.items() if np.abs(table).max() > least / 2)
    release = model.coarse.release
    if release is None:
        raise OptionError("the model has no release that tells how sure its interactions are; state least, in nats")
    return tuple(pair for pair, table in by_pair.items() if _is_sure(pair, table, model.coarse, release))


def interactions(model: Model) -> Mapping[Clique, FloatArray]:
    """W of each pair inside the model's cliques, nats, pairs in the domain's order.

    Of a larger clique it is the mean over the codes of the others; a pair in several has the sum.

    >>> from dpgm_core import Domain, Structure, Tables
    >>> pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> interactions(Model(pair, Tables(pair, np.log([4.0, 1.0, 1.0, 4.0]))))["a", "b"].round(3).tolist()
    [[0.693, -0.693], [-0.693, 0.693]]
    """
    coarse = model.coarse
    structure = coarse.structure.untied()
    potentials = coarse.potentials.embed(structure)
    place = {name: number for number, name in enumerate(structure.domain.names)}
    by_pair: dict[Clique, FloatArray] = {}
    for clique, table in potentials.items():
        for one, other in itertools.combinations(range(len(clique)), 2):
            rest = tuple(axis for axis in range(len(clique)) if axis not in (one, other))
            part = np.asarray(table.mean(axis=rest), np.float64)
            if place[clique[one]] > place[clique[other]]:
                one, other, part = other, one, part.T
            # Potentials of minus infinity rule records out: as strong as can be.
            with np.errstate(invalid="ignore"):
                part = part - part.mean(axis=0) - part.mean(axis=1, keepdims=True) + part.mean()
            pair = (clique[one], clique[other])
            by_pair[pair] = by_pair.get(pair, 0.0) + np.where(np.isfinite(part), part, math.inf)
    return dict(sorted(by_pair.items(), key=lambda item: [place[name] for name in item[0]]))


def _is_sure(pair: Clique, table: FloatArray, model: Model, release: NoisyTables) -> bool:
    """Whether the largest entry of an interaction is beyond 3 standard errors; never, if the pair was not measured."""
    number, axes = np.unravel_index(int(np.abs(table).argmax()), table.shape), table.shape
    host = release.structure.covering(pair)
    if host is None:
        return False
    size = float(abs(table[number]))
    if not math.isfinite(size):
        return True
    # By the delta method from the pair's own table: W is a contrast of the logarithms of its cells, each with the noise
    # of its cell, summed over the host's other codes, and with that of sampling.
    records = max(release.total, 1.0)
    expected = np.maximum(model.marginal(pair) * records, 1.0)
    cells = math.prod(release.structure.domain[name].size for name in host) / table.size
    noise = float(release.variances[release.structure.find(host)[0]]) * cells
    rows, columns = (np.eye(count) - 1 / count for count in axes)
    weights = np.outer(rows[number[0]], columns[number[1]])
    return size > _SURE * math.sqrt(float((weights**2 * (noise / expected**2 + 1 / expected)).sum()))
