"""What a structure check says of a model's answers: how far the structure misses, and how much wider that makes them.

A pair of attributes that no clique holds is answered by the model's independences. The check measured some such pairs;
what it found there is taken to hold for all of them, measured by the check or not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.errors import OptionError
from dpgm_core.models.misfit import Component, cell_scales, component, margin_scales
from dpgm_core.noise.check import unmeasured_pairs
from dpgm_core.releases.levelled import levelled
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure import Clique, Structure

__all__ = ["distance_of", "measured_error", "structure_variance"]

#: Answers of a model to several queries at once.
Answers = Callable[[Sequence[Clique]], Mapping[Clique, FloatArray]]


def measured_error(
    structure: Structure,
    releases: Sequence[NoisyTables],
    answers: Answers,
    spreads: Callable[[Sequence[Clique]], Mapping[Clique, FloatArray]] | None,
) -> Component:
    """The structure's error from the check among the releases. Raises OptionError where there is none.

    spreads: variances of answers beside the structure's error, from replicates; None without them.
    """
    checks = [one for one in releases if one.check]
    learned = [one for one in releases if not one.check]
    if not checks or not learned:
        raise OptionError(
            "the model has no structure check to tell how far its structure misses; set a share of the budget aside "
            'for one: fit(..., split={"check": 0.05}), or [check] share = 0.05'
        )
    view = levelled(checks[-1])
    # A wider structure may have been learned since: what a clique holds by now is no longer missed.
    pairs = [clique for clique in view.structure.cliques if structure.covering(clique) is None]
    if not pairs:
        raise OptionError("every pair of the structure check is by now inside a clique of the model; nothing is left")
    found, known = answers(pairs), None if spreads is None else spreads(pairs)
    return component(
        [(view.tables[pair].astype(np.float64), view.noise[view.structure.find(pair)[0]].variance) for pair in pairs],
        # Weighted tables were levelled to their own total.
        min(map(_total, learned), key=lambda one: one[1]) if checks[-1].contributions is None else _total(view),
        [found[pair] for pair in pairs],
        None if known is None else [known[pair] for pair in pairs],
    )


def distance_of(structure: Structure, answers: Answers) -> float:
    """What tau is multiplied with for the total variation between truth and model, the mean over unmeasured pairs.

    For normal errors of the cells: half the sum of their mean absolute values, sqrt(2 / pi) tau scale.
    """
    pairs = unmeasured_pairs(structure)
    names = sorted({name for pair in pairs for name in pair})
    shares = answers([(name,) for name in names])
    sums = {name: float(margin_scales(shares[name,]).sum()) for name in names}
    return math.sqrt(0.5 / math.pi) * float(np.mean([sums[one] * sums[two] for one, two in pairs]))


def structure_variance(
    structure: Structure, names: Clique, given: Mapping[str, int], answer: FloatArray, answers: Answers
) -> FloatArray | None:
    """What tau squared is multiplied with for the variance of p(names | given), entry by entry; None where all is
    measured.

    Errors of pairs are taken as independent, and to first order: that of a pair moves p(x) in the proportion in which
    it moves the pair's own cell. Pairs among what is given cancel out.
    """
    beside = structure.adjacency
    whole = (*names, *given)
    pairs = [
        (one, two)
        for one, two in itertools.combinations(whole, 2)
        if two not in beside[one] and beside[one] and beside[two] and not (one in given and two in given)
    ]
    if not pairs:
        return None
    found = answers([*pairs, *((name,) for name in {name for pair in pairs for name in pair})])
    variance = np.zeros_like(answer)
    for one, two in pairs:
        scale, table = cell_scales(found[one,], found[two,]), found[one, two]
        share = np.divide(scale, table, out=np.zeros_like(scale), where=table > 0)
        # `whole` has the names first and in their order, so the axes of what is left of the pair are in order too.
        share = share[tuple(given.get(name, slice(None)) for name in (one, two))]
        free = [name for name in (one, two) if name not in given]
        shape = [answer.shape[axis] if name in free else 1 for axis, name in enumerate(names)]
        variance += (answer * share.reshape(shape)) ** 2
    return variance


def _total(release: NoisyTables) -> tuple[float, float]:
    """N and its variance; a round's own total is that of its subsample."""
    rate = 1.0 if release.round is None else float(release.round.sampling_rate)
    return release.total / rate, release.total_variance / rate**2
