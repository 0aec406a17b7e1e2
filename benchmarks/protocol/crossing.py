"""How many records a method needs for success in two of three trials: the search, the crossing, its standard error.

Points are a grid of records in steps of sqrt(2). A point far from the crossing is given up after three trials that all
fail (which at a rate of 2/3 happens once in 27 times). The rates, made monotone, are joined by lines over log records.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from attrs import define, field, frozen

from benchmarks.harness.runs import Line

WANTED = 2 / 3
FIRST, REFITS = 3, 400

#: Of one goal: place on the grid -> (successes, trials).
Outcomes = Mapping[int, tuple[int, int]]
#: From records and the number of the trial to success in each goal.
Attempt = Callable[[int, int], Mapping[str, bool]]


def records_at(place: int) -> int:
    """Records at a place of the grid.

    >>> [records_at(place) for place in (20, 21, 22)]
    [1024, 1448, 2048]
    """
    return round(2 ** (place / 2))


@frozen(kw_only=True)
class Crossing:
    """records: n*, None where no point on one side of it was reached. spread: the standard error of log n*. least,
    most: points between which it is known to lie, None where there is none. trials: how many were made."""

    records: float | None
    spread: float
    least: int | None
    most: int | None
    trials: int

    def __str__(self) -> str:
        if self.records is not None:
            return f"{self.records:,.0f}"
        return f"> {self.least:,}" if self.least is not None else f"< {self.most:,}" if self.most is not None else "-"


@define
class _Search:
    """attempt: see `Attempt`. trials: at a point. seconds: of the CPU, after which no trial begins."""

    attempt: Attempt
    trials: int
    seconds: float
    found: dict[int, list[Mapping[str, bool]]] = field(factory=dict)
    began: float = field(factory=time.process_time)

    @property
    def late(self) -> bool:
        return time.process_time() - self.began > self.seconds

    def rate(self, place: int, goal: str) -> float:
        """The rate of success at a point, tried now where it was not tried enough. nan: nothing was."""
        here = self.found.setdefault(place, [])
        while len(here) < self.trials and not self.late:
            if len(here) == FIRST and not any(one[goal] for one in here):
                break
            here.append(self.attempt(records_at(place), len(here)))
        return float(np.mean([one[goal] for one in here])) if here else math.nan

    def bracket(self, goal: str, start: int, least: int, most: int) -> None:
        """Steps of two until the rate is on both sides of 2/3, then between, then a point further on each side."""
        low = high = None
        place = start
        while low is None or high is None:
            rate = self.rate(place, goal)
            if self.late:
                return
            if rate >= WANTED:
                high, place = place, place - 2
            else:
                low, place = place, place + 2
            if not least <= place <= most:
                break
        if low is not None and high is not None and high - low == 2:
            low, high = (low, low + 1) if self.rate(low + 1, goal) >= WANTED else (low + 1, high)
        if low is not None and low > least and self.rate(low, goal) > 1 / 3:
            self.rate(low - 1, goal)
        if high is not None and high < most and self.rate(high, goal) < 1:
            self.rate(high + 1, goal)

        # Where rates fall again by chance, or because some truths cannot be found, one side may be gone once more.
        while not self.late:
            tried = sorted(self.found)
            rates = self._smoothed(goal)
            if rates[0] >= WANTED and tried[0] > least:
                self.rate(tried[0] - 1, goal)
            elif rates[-1] < WANTED and tried[-1] < most:
                self.rate(tried[-1] + 1, goal)
            else:
                break

    def _smoothed(self, goal: str) -> np.ndarray:
        """Rates that never fall, at the points there are."""
        tries = [[one[goal] for one in self.found[place]] for place in sorted(self.found)]
        return _monotone(np.array([np.mean(one) for one in tries]), np.array([len(one) for one in tries], dtype=float))

    def outcomes(self, goal: str) -> dict[str, list[int]]:
        """JSON has texts for keys only."""
        return {
            str(place): [sum(one[goal] for one in here), len(here)]
            for place, here in sorted(self.found.items())
            if here
        }


def search(
    attempt: Attempt, goals: Mapping[str, int], *, trials: int, seconds: float, least: int = 8, most: int = 2**18
) -> Line:
    """Points and their outcomes for each goal, and whether the time ran out; plain values.

    goals: name -> records to begin at. least, most: records beyond which nothing is tried.
    """
    first, last = math.ceil(2 * math.log2(least)), math.floor(2 * math.log2(most))
    made = _Search(attempt, trials, seconds)
    for goal, start in goals.items():
        made.bracket(goal, min(max(round(2 * math.log2(start)), first), last), first, last)
    return {goal: made.outcomes(goal) for goal in goals} | {"late": made.late}


def crossing(outcomes: Outcomes, *, seed: int = 0) -> Crossing:
    """n* of one goal. Its error is that of refits on trials drawn anew at each point, with half a success more and half
    a failure more than there were, so that points where all was alike are not taken as certain."""
    places = sorted(outcomes)
    good = np.array([outcomes[place][0] for place in places], dtype=np.float64)
    tried = np.array([outcomes[place][1] for place in places], dtype=np.float64)
    rates = _monotone(good / tried, tried) if places else np.empty(0)
    below = [place for place, rate in zip(places, rates, strict=True) if rate < WANTED]
    above = [place for place, rate in zip(places, rates, strict=True) if rate >= WANTED]
    ends = (records_at(below[-1]) if below else None, records_at(above[0]) if above else None)
    if not (below and above):
        return Crossing(records=None, spread=math.nan, least=ends[0], most=ends[1], trials=int(tried.sum()))
    rng, refits = np.random.default_rng(seed), []
    for _ in range(REFITS):
        drawn = rng.binomial(tried.astype(int), (good + 0.5) / (tried + 1)) / tried
        refits.append(_where(places, _monotone(drawn, tried)))
    half = math.log(2) / 2
    return Crossing(
        records=math.exp(half * _where(places, rates)),
        spread=half * float(np.std(refits)),
        least=ends[0],
        most=ends[1],
        trials=int(tried.sum()),
    )


def _where(places: Sequence[int], rates: np.ndarray) -> float:
    """The place at which lines over the points cross 2/3; half a step outside where all points are on one side."""
    if rates[0] >= WANTED:
        return places[0] - 0.5
    for at in range(1, len(places)):
        if rates[at] >= WANTED:
            along = (WANTED - rates[at - 1]) / (rates[at] - rates[at - 1])
            return float(places[at - 1] + along * (places[at] - places[at - 1]))
    return places[-1] + 0.5


def _monotone(rates: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The nearest rates that never fall: neighbours that do are put together."""
    blocks: list[tuple[float, float, int]] = []
    for rate, weight in zip(rates.tolist(), weights.tolist(), strict=True):
        blocks.append((rate, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (one, w1, n1), (two, w2, n2) = blocks[-2:]
            blocks[-2:] = [((one * w1 + two * w2) / (w1 + w2), w1 + w2, n1 + n2)]
    return np.concatenate([np.full(count, rate) for rate, _, count in blocks])


def slope(found: Mapping[int, Crossing]) -> tuple[float, float] | None:
    """The log-log slope of n* in p by weighted least squares, and its standard error; None of fewer than two."""
    known = {size: one for size, one in found.items() if one.records is not None}
    if len(known) < 2:
        return None
    x = np.log(list(known))
    y = np.log([one.records for one in known.values()])
    weights = np.array([1 / max(one.spread, 0.05) ** 2 for one in known.values()])
    centred = x - np.average(x, weights=weights)
    scale = float((weights * centred**2).sum())
    return float((weights * centred * y).sum() / scale), scale**-0.5


# --------------------------------------------------------------------------------------------------
# What the specification's own prototype needed: n* for structure and parameters; where searches begin, too.
#
# rho = .01, (.75, 1e-6), epsilon = .75; about +-15 %. Its `mrf-select` measured products, knew that there are no fields
# and gave nothing to single attributes.

Both = tuple[int | None, int | None]

PROTOTYPE: Mapping[tuple[str, str, str], Both] = {
    ("zcdp", cell, method): values
    for cell, each in {
        "matching 8": [(102, 790), (1722, 9742), None, (406, 1218), (304, 588)],
        "matching 16": [(164, 724), (3649, 15024), None, (1117, 2521), (588, 861)],
        "matching 32": [(235, 865), (8421, 21384), (4211, 18051), (2950, 6680), (890, 1625)],
        "matching 64": [(269, None), (13529, 39923), (7520, 30253), (5953, None), (1482, 2178)],
        "matching 128": [None, None, None, None, (1905, 3024)],
        "3-regular 8": [(279, 1218), (5405, 27554), None, (861, 2048), None],
        "3-regular 16": [(396, 1850), (9548, 48121), (6480, 29661), (1810, 4000), (1337, 2138)],
        "3-regular 32": [None, (18664, None), (11654, 57613), None, (3492, 4105)],
        "3-regular 64": [None, None, None, None, (3951, 4539)],
        "grid 16": [(445, 2119), None, (6742, 32072), (2060, 5827), (1805, 4277)],
        "grid 64": [(729, None), None, (26970, None), None, (5938, 11672)],
    }.items()
    for method, values in zip(("non-private", "mrf-fw", "mrf-fw clipped", "all pairs", "mrf-select"), each, strict=True)
    if values
} | {
    (promise, cell, method): (value, parameters)
    for promise, cell, each in [
        ("delta", "matching 8", {"graph": (8064, None), "votes": (4416, None), "threshold": (323, None)}),
        ("delta", "matching 16", {"graph": (10752, None), "votes": (5760, None), "threshold": (405, None)}),
        ("delta", "matching 32", {"graph": (12800, None), "votes": (7168, None), "threshold": (507, None)}),
        ("delta", "matching 64", {"threshold": (567, None)}),
        ("delta", "matching 128", {"threshold": (658, None)}),
        ("delta", "3-regular 8", {"graph": (19456, None), "votes": (8832, None)}),
        ("delta", "3-regular 16", {"graph": (40960, None), "votes": (11776, None)}),
        ("delta", "3-regular 32", {"votes": (15360, None)}),
        ("pure", "matching 8", {"mrf-select": (424, 600), "all pairs": (631, 1945), "mrf-fw": (7336, 57018)}),
        ("pure", "matching 16", {"mrf-select": (1100, 1500), "all pairs": (4633, None), "mrf-fw": (25398, None)}),
        ("pure", "matching 32", {"mrf-select": (2626, 2947), "mrf-fw": (52411, None)}),
        ("labels", "3 8", {"printed": (8000, None), "touched": (4000, None), "softmax": (4000, None)}),
        ("labels", "3 16", {"printed": (16000, None), "touched": (8000, None), "softmax": (8000, None)}),
        ("labels", "4 8", {"printed": (32000, None), "touched": (16000, None)}),
    ]
    for method, (value, parameters) in each.items()
}
#: Where nothing was measured.
OTHERWISE = (2048, 4096)


def prototype(promise: str, cell: str, method: str) -> Both:
    """Of the method, or of the one that it is a kind of.

    >>> prototype("zcdp", "matching 16", "mrf-select contrasts")
    (588, 861)
    """
    names = [name for (kind, there, name) in PROTOTYPE if (kind, there) == (promise, cell) and name in method]
    return PROTOTYPE[promise, cell, max(names, key=len)] if names else (None, None)


def starts(promise: str, cell: str, method: str) -> tuple[int, int]:
    """Records to begin a search at, for structure and for parameters.

    >>> starts("zcdp", "matching 64", "all pairs, tables")
    (5953, 23812)
    """
    structure, parameters = prototype(promise, cell, method)
    return structure or OTHERWISE[0], parameters or (4 * structure if structure else OTHERWISE[1])
