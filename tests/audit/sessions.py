"""Whole adaptive sessions of two steps, many times: what a table shows decides how the next step chooses."""

from fractions import Fraction

import numpy as np

from dpgm_core import Budget, Domain, FloatArray, LiveCurator, Structure, Terms, make
from dpgm_core.privacy.selection import TableDistance
from dpgm_core.privacy.session_account import SessionAccount
from dpgm_core.sources import as_source
from dpgm_core.structure.workload import Workload

#: Of one session.
WHOLE = Budget.pure("1/2")
#: An exact Gaussian account of one session with one planned choice.
EXACT = SessionAccount(mu_squared=Fraction(1, 4), choices=((1, Fraction(1, 10)),))


def two_steps(sessions: int, wide: int = 250, account: SessionAccount | None = None) -> list[FloatArray]:
    """What two neighbouring data sets show of whole sessions, (sessions * wide, 1) each: a noisy table for half of
    WHOLE, and for the rest a choice between two candidates that the table has made level.

    To have many at once, a session of `wide` times the budget has `wide` pairs of attributes, each a session of its
    own. account: of one session, in place of WHOLE: its mu_squared for the table, and its planned choice.
    """
    budget = WHOLE * wide
    if account is not None:
        ((_, rho),) = account.choices
        account = SessionAccount(mu_squared=account.mu_squared * wide, choices=((wide, rho),))
        budget = Budget.approx(25, "1/10")
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
                source, both, make("mechanism", "laplace"), terms=Terms(neighbours="add-remove"), budget=budget
            )
            with curator.session(workload=Workload.all(domain, order=1), account=account) as session:
                for_choices = session.budget * Fraction(1, 2) if account is None else Budget.sum(session.choices_left)
                noisy = session.measure([(name,) for name in names[::2]], session.budget - for_choices)
                level = np.clip(noisy.tables.values[::2], 100, 101)
                offsets = np.stack([level, 1000 - level], axis=1).reshape(-1)
                scores = TableDistance(candidates=both, predicted=predicted, offsets=offsets, groups=groups)
                chosen = np.ravel(session.select(scores, for_choices).chosen) % 2
            shown.append(2.0 * np.clip(noisy.tables.values[::2], 95, 106) + chosen)
        found.append(np.concatenate(shown)[:, None])
    return found
