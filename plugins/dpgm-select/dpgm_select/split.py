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

__all__ = ["Worth", "best_subset", "level_up", "pull"]

#: f, by measurement: at 1 tables are left out that a learner has use for.
SHRUNKEN = 0.5


@frozen(kw_only=True)
class Worth:
    """Tables to be measured, and what that saves: weighted records."""

    saved: float = 0.0
    taken: tuple[Clique, ...] = ()


def pull(cost: float) -> float:
    """y_c of a table with this w_c K_c: its part of the budget is proportional to it."""
    return math.pow(cost * math.sqrt(2 / math.pi), 2 / 3)


def best_subset(
    cliques: Sequence[Clique],
    errors: Mapping[Clique, float],
    costs: Mapping[Clique, float],
    precision: float,
    committed: float = 0.0,
) -> Worth:
    """The tables that save most together.

    errors: w_c e_c, weighted records. costs: w_c K_c. precision: B, 1 / records**2. committed: summed y_c of
    tables that the budget is for as well, whatever else is taken.

    >>> worth = best_subset([("a",), ("b",)], {("a",): 900.0, ("b",): 1.0}, {("a",): 4.0, ("b",): 4.0}, 0.01)
    >>> worth.taken, round(worth.saved)
    ((('a',),), 884)
    """

    def noise(together: float) -> float:
        return SHRUNKEN * math.pow(together, 1.5) / math.sqrt(precision)

    saved, error, together, count = 0.0, 0.0, committed, 0
    order = sorted(cliques, key=lambda clique: -errors[clique] / pull(costs[clique]))
    for number, clique in enumerate(order, 1):
        error, together = error + errors[clique], together + pull(costs[clique])
        now = error - noise(together) + noise(committed)
        if now > saved:
            saved, count = now, number
    return Worth(saved=saved, taken=tuple(order[:count]))


def level_up(wanted: Mapping[Clique, float], had: Mapping[Clique, float], left: float) -> dict[Clique, float]:
    """Divide the rest of a budget so that each table's whole part comes as near its share as can be; sums to `left`.

    wanted: what the parts are to be proportional to, y_c. had: what tables have had. All in one unit of rho.

    >>> {name: round(part, 3) for name, part in level_up({"a": 1.0, "b": 4.0}, {"a": 5.0}, 5.0).items()}
    {'b': 5.0}
    """
    wanting = dict(wanted)
    while True:
        level = (left + sum(had.get(clique, 0.0) for clique in wanting)) / sum(wanting.values())
        full = [clique for clique, y in wanting.items() if level * y <= had.get(clique, 0.0)]
        if not full:
            return {clique: level * y - had.get(clique, 0.0) for clique, y in wanting.items()}
        for clique in full:
            del wanting[clique]
