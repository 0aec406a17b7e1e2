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
