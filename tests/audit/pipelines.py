"""How much of the promised privacy loss an attack on whole pipelines finds: `python -m tests.audit --pipelines`.

Cells are the pipelines of `whole.py`, a trial is a batch of runs, and a method is "as released" or a planted fault. The
attack knows all other persons, sees all that a run draws, and calls a canary present where that is likelier than not.
Its rates of false alarms (a) and misses (b) bound the loss: a promise allows no b below f(a), the trade-off that
follows from its delta at every epsilon. Both are stated as a mu, z(1 - a) - z(b), which for one Gaussian step is that
of the noise. The bound has 95 % confidence, by standard errors between runs, as canaries of one run may share a choice.
Where the loss is pure epsilon, or nearly, an event is chosen by one half of the canaries and its odds are bounded by
the other one (`refute.py`). The promise of one row of the table is the budget as it is given to the run.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any
from unittest import mock

import dpgm_gaussian.mechanism
import numpy as np
from attrs import evolve
from scipy.stats import norm

from benchmarks.harness.main import Study
from benchmarks.harness.output import grouped, section
from benchmarks.harness.runs import Line, Task
from dpgm_core import FloatArray, Terms
from dpgm_core.curator import funds, session, steps
from dpgm_core.privacy import bounded_variance
from dpgm_core.privacy import labels as labels_noise
from tests.audit import whole
from tests.audit.refute import verdict
from tests.audit.whole import Pipeline, draws_of, pipelines

HONEST = "as released"
CONFIDENCE = 0.95
#: Where delta of a promise is taken, to find its trade-off.
_EPSILONS = [Fraction(number, 8) for number in range(121)]
#: Log-likelihood ratios are stored by bins of so many a unit, up to so many units.
_BINS, _MOST = 20, 8


# --------------------------------------------------------------------------------------------------
# Planted faults


@contextmanager
def _narrower() -> Iterator[None]:
    """Noise 10 % narrower than it says."""
    gaussian, laplace = dpgm_gaussian.mechanism.discrete_gaussian, labels_noise.discrete_laplace
    with (
        mock.patch.object(
            dpgm_gaussian.mechanism,
            "discrete_gaussian",
            lambda variance, *more: gaussian(bounded_variance(variance * Fraction(81, 100)), *more),
        ),
        mock.patch.object(
            labels_noise,
            "discrete_laplace",
            lambda scale, *more: laplace((scale * Fraction(9, 10)).limit_denominator(1000), *more),
        ),
    ):
        yield


@contextmanager
def _one_row() -> Iterator[None]:
    """Noise of tables for one row of each person, however many there are."""
    honest = Terms.sensitivity
    with mock.patch.object(
        Terms, "sensitivity", lambda terms, *asked, **more: honest(evolve(terms, rows_per_person=1), *asked, **more)
    ):
        yield


@contextmanager
def _twice_as_sharp() -> Iterator[None]:
    """Choices without the factor 1/2 of the exponential mechanism, and an attack that knows of it."""
    draw, attack = session.draw_candidates, whole.log_softmax
    with (
        mock.patch.object(session, "draw_candidates", lambda scores, h, *more: draw(scores, 2 * h, *more)),
        mock.patch.object(steps, "draw_candidates", lambda scores, h, *more: draw(scores, 2 * h, *more)),
        mock.patch.object(whole, "log_softmax", lambda scores, h: attack(scores, 2 * h)),
    ):
        yield


@contextmanager
def _bare_total() -> Iterator[None]:
    """The number of records as it is, where it is to be estimated from noisy tables."""

    def measure(self: Any, measurement: Any, count: Callable[[], Any], stated: float) -> Any:
        return honest(self, measurement, count, float(count().values[measurement.structure.slices[0]].sum()))

    honest = funds.Measurer._measure
    with mock.patch.object(funds.Measurer, "_measure", measure):
        yield


FAULTS = {
    "noise 10 % narrower": _narrower,
    "rows per person ignored": _one_row,
    "choices without the 1/2": _twice_as_sharp,
    "N without noise": _bare_total,
}


@contextmanager
def planted(method: str) -> Iterator[None]:
    """Run with a fault, or as released."""
    if method == HONEST:
        yield
        return
    with FAULTS[method]():
        yield


def serves(cell: str, draw: int, method: str) -> bool:
    """Each fault where it can show."""
    name, rows = cell.rsplit(", ", 1)
    if method == HONEST:
        return True
    if method == "noise 10 % narrower":
        return rows == "1 row" and name in _NOISY
    if method == "rows per person ignored":
        return draw < 2 and rows == "4 rows" and name in _SELECTING
    if method == "choices without the 1/2":
        return draw < 4 and rows == "1 row" and name in ("mst", "private bins")
    return draw < 2 and rows == "1 row" and name in _SELECTING


_NOISY = ("auto", "oneshot", "mrf-select", "bayes-net-two-stage", "labels")
_SELECTING = ("auto", "aim", "oneshot", "mrf-select", "mst", "privbayes")


# --------------------------------------------------------------------------------------------------
# Bounds


def promised_mu(curve: Iterable[tuple[float, float]], alarms: float) -> float:
    """The greatest z(1 - a) - z(b) that a promise allows at a rate a of false alarms.

    curve: (epsilon, delta) of the promise; b is at least 1 - delta - exp(epsilon) a and exp(-epsilon) (1 - delta - a).
    """
    least = max(
        max(1 - delta - math.exp(epsilon) * alarms, math.exp(-epsilon) * (1 - delta - alarms))
        for epsilon, delta in curve
    )
    return float(norm.isf(alarms) - norm.ppf(max(least, 1e-300)))


def rate_and_error(sums: FloatArray) -> tuple[float, float]:
    """A rate over runs, and its standard error between them. sums: of hits, tries, hits^2, hits tries, tries^2; runs.

    Both ends are kept from 0 by one hit more in two tries more.
    """
    hits, tries, squares, products, others, runs = sums
    rate = hits / tries
    between = (squares - 2 * rate * products + rate**2 * others) / tries**2 * runs / max(runs - 1, 1)
    safe = (hits + 1) / (tries + 2)
    return float(safe), math.sqrt(max(between, safe * (1 - safe) / tries))


def bound_of(near: FloatArray, far: FloatArray) -> tuple[float, float, float]:
    """The rate of false alarms, mu as estimated, and a lower bound of it at CONFIDENCE. near, far: sums of hits (ratios
    at least 0) as `rate_and_error` takes them."""
    power, power_error = rate_and_error(near)
    alarms, alarms_error = rate_and_error(far)
    mu = float(norm.ppf(power) - norm.ppf(alarms))
    error = math.hypot(power_error / norm.pdf(norm.ppf(power)), alarms_error / norm.pdf(norm.ppf(alarms)))
    return alarms, mu, mu - float(norm.ppf(CONFIDENCE)) * error


def epsilon_bound(pipeline: Pipeline, near: FloatArray, far: FloatArray, rng: np.random.Generator) -> float:
    """A lower bound of epsilon at CONFIDENCE, from histograms of ratios."""
    places = (np.arange(2 * _BINS * _MOST + 1) - _BINS * _MOST) / _BINS
    both = [rng.permutation(np.repeat(places, one.astype(int)))[:, None] for one in (near, far)]
    count = min(map(len, both))
    return verdict(pipeline.promise, *(one[:count] for one in both), 1 - CONFIDENCE).bound


# --------------------------------------------------------------------------------------------------
# The study


def _by_name() -> dict[str, Pipeline]:
    return {str(one): one for one in pipelines()}


def work(task: Task, asked: Namespace) -> dict[str, Any]:
    """One batch of runs of one pipeline."""
    pipeline = _by_name()[task.cell]
    runs = 400 if pipeline.canaries == 1 else 10 if pipeline.promise.kind != "approx" or "labels" in task.cell else 40
    if pipeline.promise.kind == "pure":
        runs = 250
    if asked.extent == "smoke":
        runs = 4
    with planted(task.method):
        draws = draws_of(pipeline, runs, np.random.default_rng(task.trial))
    found: dict[str, Any] = {"runs": runs, "canaries": len(draws.near) + len(draws.far)}
    if pipeline.curve is None:
        return found | {"near": _histogram(draws.near), "far": _histogram(draws.far)}
    return found | {
        "near": _sums(draws.near, draws.near_runs),
        "far": _sums(draws.far, draws.far_runs),
        "deltas": [float(f"{pipeline.curve(epsilon):.6g}") for epsilon in _EPSILONS],
    }


def _histogram(ratios: FloatArray) -> dict[str, int]:
    """How many ratios are in each bin that has any."""
    bins = np.clip(np.round(ratios * _BINS), -_BINS * _MOST, _BINS * _MOST).astype(int)
    return {str(one): int(count) for one, count in zip(*np.unique(bins, return_counts=True), strict=True)}


def _sums(ratios: FloatArray, runs: FloatArray) -> list[int]:
    """Hits, tries, hits^2, hits tries, tries^2, and runs."""
    hits, tries = np.bincount(runs, ratios >= 0), np.bincount(runs)
    return [int(one) for one in (hits.sum(), tries.sum(), hits @ hits, hits @ tries, tries @ tries, (tries > 0).sum())]


def _spread(lines: Sequence[Line], side: str) -> FloatArray:
    counts = np.zeros(2 * _BINS * _MOST + 1)
    for line in lines:
        for one, count in line[side].items():
            counts[int(one) + _BINS * _MOST] += count
    return counts


def result(cell: str, lines: Sequence[Line]) -> tuple[float, float, float]:
    """What a promise allows, the estimate and the bound of a cell and method, as mu or epsilon."""
    if "deltas" not in lines[0]:
        pipeline = _by_name()[cell]
        near, far = (_spread(lines, side) for side in ("near", "far"))
        bound = epsilon_bound(pipeline, near, far, np.random.default_rng(1))
        return float(pipeline.promise.epsilon), math.nan, bound
    near, far = (np.sum([line[side] for line in lines], axis=0, dtype=float) for side in ("near", "far"))
    alarms, mu, bound = bound_of(near, far)
    curve = list(zip(map(float, _EPSILONS), lines[0]["deltas"], strict=True))
    return promised_mu(curve, alarms), mu, bound


def cells(asked: Namespace) -> Mapping[str, int]:
    """Each pipeline, and how many batches."""
    names = list(_by_name())
    if asked.extent == "smoke":
        return dict.fromkeys([name for name in names if name.startswith(("mrf-select, 1", "labels, 4"))], 1)
    if asked.extent == "full":
        return dict.fromkeys(names, 16) | {"mst, 1 row": 64}  # after 16 its bound was .87 of what is allowed
    return dict.fromkeys(names, 8)


def text(lines: Sequence[Line]) -> str:
    """Tables of the pipelines, and of planted faults."""
    rows, faults = [], []
    for (cell, method), some in grouped(lines, "cell", "method").items():
        promise, estimate, bound = result(cell, some)
        name, persons = cell.rsplit(", ", 1)
        in_mu = "deltas" in some[0]
        budget = _by_name()[cell].promise
        measured = [
            persons[0],
            f"{'mu' if in_mu else 'epsilon'} {promise:.2f}",
            f"{bound:.2f}",
            f"{bound / promise:.2f}",
        ]
        count = f"{sum(line['canaries'] for line in some):,}"
        if method == HONEST:
            shown = f"{estimate:.2f}" if in_mu else "-"
            rows.append([name, *measured[:1], str(budget), measured[1], shown, *measured[2:], count])
        else:
            faults.append([method, name, *measured, "refuted" if bound > promise else "not refuted", count])
    head = ["pipeline", "rows", "promise", "allows", "seen", "at least", "share", "canaries"]
    planted_head = ["fault", "pipeline", "rows", "promise allows", "at least", "share", "verdict", "canaries"]
    return "\n".join(
        [
            "# Audit of whole pipelines\n",
            section("As released", head, rows, name="pipelines"),
            section("With planted faults", planted_head, sorted(faults), name="faults"),
        ]
    )


STUDY = Study(
    about=__doc__, name="audit", cells=cells, methods=(HONEST, *FAULTS), work=work, text=text, serves=serves
)  # fmt: skip
