"""Which tables are worth their noise, and how a budget is best divided over them; in closed form.

Measuring a table c of K_c cells with standard deviation s_c leaves an error of about f K_c sqrt(2/pi) s_c instead of
the e_c that the model has without it; f, below 1, as learners shrink noise. Under sum 1 / s_c^2 = B the least weighted
sum of such errors is f (sum y_c)^1.5 / sqrt(B), y_c = (w_c K_c sqrt(2/pi))^(2/3), at shares of the budget proportional
to y_c. Tables are taken by w_c e_c / y_c as long as what they save grows. Source: SWIFT, as the selectors of dpsynth
have it; the sum is Lagrange's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from attrs import frozen

from dpgm_core import Clique

__all__ = ["Worth", "best_subset"]

#: f, by measurement: at 1 tables are left out that a learner has use for.
SHRUNKEN = 0.5


@frozen(kw_only=True)
class Worth:
    """What measuring some tables saves: weighted records, and each one's share of the budget."""

    saved: float
    shares: Mapping[Clique, float]


def best_subset(
    cliques: Sequence[Clique], errors: Mapping[Clique, float], costs: Mapping[Clique, float], precision: float
) -> Worth:
    """The tables that save most together.

    errors: w_c e_c, weighted records. costs: w_c K_c. precision: B, 1 / records**2.

    >>> worth = best_subset([("a",), ("b",)], {("a",): 900.0, ("b",): 1.0}, {("a",): 4.0, ("b",): 4.0}, 0.01)
    >>> worth.shares, round(worth.saved)
    ({('a',): 1.0}, 884)
    """
    y = {clique: (costs[clique] * math.sqrt(2 / math.pi)) ** (2 / 3) for clique in cliques}
    saved, error, together, count = 0.0, 0.0, 0.0, 0
    order = sorted(cliques, key=lambda clique: -errors[clique] / y[clique])
    for number, clique in enumerate(order, 1):
        error, together = error + errors[clique], together + y[clique]
        now = error - SHRUNKEN * together**1.5 / math.sqrt(precision)
        if now > saved:
            saved, count = now, number
    taken = order[:count]
    whole = sum(y[clique] for clique in taken)
    return Worth(saved=saved, shares={clique: y[clique] / whole for clique in taken})
