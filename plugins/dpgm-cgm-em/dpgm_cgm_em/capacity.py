"""Choice of tau without the truth: by a parametric bootstrap of the path."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpgm_cgm_em.path import Path
from dpgm_core import Engine, FloatArray, NoisyTables, Progress, Randomness, Tables
from dpgm_core.learning import Rehearsal

__all__ = ["PILOT", "by_bootstrap"]

#: The pilot is the real path's model at this multiple of the plateau rule's tau. A path that ends where it is best is
#: smoother than the truth, and for a smooth truth it is best to end too early (docs/decisions/0009).
PILOT = 1.3

# Releases simulated for the bootstrap.
_DRAWS = 6
# Simulated paths go on until the mean has risen for so many steps.
_MAX_RISES = 3


def by_bootstrap(
    begin: Callable[[NoisyTables], Path],
    release: NoisyTables,
    engine: Engine,
    pilot: FloatArray,
    step: float,
    most: float,
    *,
    randomness: Randomness,
    progress: Progress,
) -> tuple[float, int]:
    """The tau at which paths of releases simulated from a pilot come nearest to it, and inference calls spent.

    begin: a path through a release, at its start. pilot: log-potentials, (cells,). step, most: of tau, as on the real
    path: in longer steps EM gets less far. The measure is KL(pilot || model on the path), exact, its mean over the
    releases. Raises InferenceError when the engine cannot sample.
    """
    rehearsal = Rehearsal(
        release, engine, Tables(release.structure, pilot), draws=_DRAWS, randomness=randomness, progress=progress
    )
    paths = [begin(one) for one in rehearsal.releases]
    losses: list[float] = []
    for number in range(round(most / step)):
        progress("rehearsing", number, None)
        losses.append(rehearsal.loss(_advance(path, step) for path in paths))
        if number - int(np.argmin(losses)) >= _MAX_RISES:
            break
    return step * (1 + _find_minimum(losses)), sum(path.calls + len(losses) for path in paths)


def _advance(path: Path, step: float) -> FloatArray:
    path.advance(step)
    return path.theta


def _find_minimum(losses: list[float]) -> float:
    """The place of the least number, between its neighbours by a parabola."""
    place = int(np.argmin(losses))
    if place in (0, len(losses) - 1):
        return place
    return place + Rehearsal.vertex(*losses[place - 1 : place + 2])
