"""What the store of trials says: ratios to an oracle, ranks and their uncertainty. Reading only.

Draws of a cell are not many: intervals are 90 % bootstrap percentiles over them, with a fixed seed. Means of KL and of
ratios are geometric.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from attrs import frozen

from benchmarks.harness.runs import Line
from benchmarks.protocol.contenders import PLAIN_ORACLES, Results
from benchmarks.protocol.trials import ROOM, Cell

__all__ = [
    "Scores",
    "Summary",
    "draws",
    "geometric",
    "interval",
    "plain_oracle",
    "ranks",
    "scores",
    "spread",
    "summary",
]

# cell -> trial -> label -> kl, seconds, ...
Scores = dict[Cell, dict[int, Results]]
_RESAMPLES = 2000


@frozen(kw_only=True)
class Summary:
    """Ratios of one method's KL to a reference: on how many data sets, geometric mean, worst, and where."""

    count: int
    mean: float
    worst: float
    cell: Cell | None

    def __str__(self) -> str:
        return f"{self.mean:.3f} / {self.worst:.2f}" if self.count else "-"


def scores(lines: Iterable[Line], keep: Callable[[Cell, int], bool] = lambda cell, trial: True) -> Scores:
    """The results of every data set that `keep` wants (cell, base of its seed), cells in order."""
    found: Scores = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        cell, trial = Cell.parse(line["cell"]), line["trial"]
        if keep(cell, trial - trial % ROOM):
            found[cell][trial] |= line["results"]
    return {cell: dict(found[cell]) for cell in sorted(found)}


def plain_oracle(results: Results) -> float | None:
    """The best plain learner at the best tuning; None unless those were run that ever win (see contenders.py)."""
    if not {"naive oracle", "consistent oracle", "cgm-em oracle", "soft-sign oracle"} <= set(results):
        return None
    return min(results[label]["kl"] for label in PLAIN_ORACLES if label in results)


def kl_of(label: str) -> Callable[[Results], float | None]:
    """The KL of a method as a reference."""
    return lambda results: results[label]["kl"] if label in results else None


def summary(found: Scores, label: str, reference: Callable[[Results], float | None]) -> Summary:
    """Of one method over all data sets that have both it and the reference."""
    ratios = {}
    for cell, trials in found.items():
        for trial, results in trials.items():
            best = reference(results)
            if label in results and best is not None:
                ratios[cell, trial] = results[label]["kl"] / max(best, 1e-300)
    if not ratios:
        return Summary(count=0, mean=math.nan, worst=math.nan, cell=None)
    where = max(ratios, key=ratios.__getitem__)
    return Summary(count=len(ratios), mean=geometric(ratios.values()), worst=ratios[where], cell=where[0])


def draws(trials: Mapping[int, Results], label: str, what: str = "kl") -> list[float]:
    """One number of one method from each draw that has it."""
    return [results[label][what] for results in trials.values() if label in results]


def geometric(values: Iterable[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(np.maximum(list(values), 1e-300)))))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """A 90 % interval of the geometric mean over draws; the point itself when there is one draw."""
    logs = np.log(np.maximum(values, 1e-300))
    picks = np.random.default_rng(0).integers(len(logs), size=(_RESAMPLES, len(logs)))
    low, high = np.exp(np.quantile(logs[picks].mean(axis=1), [0.05, 0.95]))
    return float(low), float(high)


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Geometric mean and its interval, as text."""
    if not values:
        return "-"
    low, high = interval(values)
    text = f"{geometric(values):.{digits}g}"
    return text if len(values) == 1 else f"{text} ({low:.{digits}g}-{high:.{digits}g})"


def ranks(trials: Mapping[int, Results], labels: Sequence[str]) -> tuple[int, list[tuple[str, float, int, int]]]:
    """(draws, (method, mean KL, best rank, worst rank) from the best mean on); a 90 % interval over resampled draws.

    Only methods that were run on half of the draws, and only the draws that have all of these: few draws of one slow
    method shall not decide between the others.
    """
    counts = {label: len(draws(trials, label)) for label in labels}
    present = [label for label in labels if 2 * counts[label] >= max(1, *counts.values())]
    whole = [results for results in trials.values() if set(present) <= set(results)]
    if not present or not whole:
        return 0, []
    logs = np.log([[max(results[label]["kl"], 1e-300) for label in present] for results in whole])
    picks = np.random.default_rng(0).integers(len(logs), size=(_RESAMPLES, len(logs)))
    order = logs[picks].mean(axis=1).argsort(axis=1).argsort(axis=1) + 1
    low, high = np.quantile(order, [0.05, 0.95], axis=0, method="nearest")
    means = np.exp(logs.mean(axis=0))
    return len(whole), [(present[at], float(means[at]), int(low[at]), int(high[at])) for at in means.argsort()]
