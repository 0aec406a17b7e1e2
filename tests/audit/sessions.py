"""Whole adaptive sessions of two steps, many times: what a table shows decides how the next step chooses."""

from fractions import Fraction

import numpy as np

from dpgm_core import Budget, Domain, FloatArray, LiveCurator, Structure, Terms, make
from dpgm_core.privacy.selection import TableDistance
from dpgm_core.sources import as_source
from dpgm_core.structure.workload import Workload

__all__ = ["WHOLE", "two_steps"]

#: Of one session.
WHOLE = Budget.pure("1/2")


def two_steps(sessions: int, wide: int = 250) -> list[FloatArray]:
    """What two neighbouring data sets show of whole sessions, (sessions * wide, 1) each: a noisy table for half of
    WHOLE, and for the rest a choice between two candidates that the table has made level.

    To have many at once, a session of `wide` times the budget has `wide` pairs of attributes, each a session of its
    own.
    """
    names = [f"{letter}{number}" for number in range(wide) for letter in "ab"]
    domain = Domain.from_sizes(dict.fromkeys(names, 2))
    both, groups = Structure(domain, [(name,) for name in names]), [(2 * one, 2 * one + 1) for one in range(wide)]
    # A record raises the first score of a pair and lowers the second one: its table is predicted beyond all records.
    predicted = np.tile([0.0, 0.0, 1000.0, 0.0], wide)
    found = []
    for records in (101, 100):
        source, shown = as_source(np.zeros((records, 2 * wide), int)), []
        for _ in range(sessions):
            curator = LiveCurator(
                source, both, make("mechanism", "laplace"), terms=Terms(neighbours="add-remove"), budget=WHOLE * wide
            )
            with curator.session(workload=Workload.all(domain, order=1)) as session:
                noisy = session.measure([(name,) for name in names[::2]], session.budget * Fraction(1, 2))
                level = np.clip(noisy.tables.values[::2], 100, 101)
                offsets = np.stack([level, 1000 - level], axis=1).reshape(-1)
                scores = TableDistance(candidates=both, predicted=predicted, offsets=offsets, groups=groups)
                chosen = np.ravel(session.select(scores, session.remaining).chosen) % 2
            shown.append(2.0 * np.clip(noisy.tables.values[::2], 95, 106) + chosen)
        found.append(np.concatenate(shown)[:, None])
    return found
