"""What errors to expect of `auto`: shares of labels, pairs and triples, by columns, records and epsilon.

    python -m benchmarks.accuracy [DIR] [--smoke|--full|--report] [--cells "mixed k=10 *"] [--seeds 3]

A cell is a population, its number k of columns, the number N of records and epsilon; delta is 1e-6, add-remove
neighbours, N unknown, everything that `auto` spends included. Records are drawn from the population with replacement,
anew for each seed. Errors are mean total variation distances between the population's shares and the model's exact
answers, over all labels of a column and at most 400 pairs and 400 triples of columns; those of the records' own shares,
and of the products of the true shares of single columns, are beside them.

Three populations are generated for each seed (`cases/sampled.py`). "mixed": columns of 2 to 16 labels, each drawn for
every label, or pair of labels, of one or two of the eight before it. "weak": four labels, three in ten are copies of
the column before. "skewed": 10 to 60 labels, most of them rare, half of them a function of one column before. They have
a million people (200,000 from 30 columns on), or four times N. The real ones, of DIR, are whole tables, of which at
most half is drawn. The rule of thumb is fitted to runs on the generated ones alone. --full adds what was left out for
its cost: all three epsilons for every size.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen
from scipy.optimize import least_squares

from benchmarks.cases.sampled import GENERATED, population
from benchmarks.cases.tables import SOURCES
from benchmarks.harness.main import Study, main
from benchmarks.harness.output import beginning, facts_of, grouped, pyplot, save, section
from benchmarks.harness.runs import Line, Task, say
from benchmarks.protocol.selecting import selection
from dpgm_core import FloatArray

DELTA, SEEDS, METHOD = "1e-6", 3, "auto"
EPSILONS = ("0.1", "1", "10")
#: Columns -> people of a generated population, at least.
PEOPLE = {10: 1_000_000, 30: 200_000, 100: 200_000}
#: Columns -> records -> epsilons; where more would only cost more, sampling decides.
GRID: Mapping[int, Mapping[str, Sequence[str]]] = {
    10: {"1e3": EPSILONS, "1e4": EPSILONS, "1e5": EPSILONS, "1e6": EPSILONS[:2]},
    30: {"1e3": EPSILONS, "1e4": EPSILONS, "1e5": EPSILONS[:2]},
    100: {"1e4": EPSILONS[:2], "1e5": EPSILONS[:2]},
}
#: Real tables -> columns and records.
REAL = {
    "health": (7, ("1e3", "1e4")),
    "adult": (14, ("1e3", "1e4")),
    "nist": (24, ("1e3", "3e3")),
    "lbs": (24, ("1e3", "3e3")),
}
#: Of runs, what says nothing here; memory is that of all runs and of the population, and notes are long.
LEFT_OUT = ("peak", "planted", "lost", "release", "choices", "said")
ORDERS = {1: "singles", 2: "pairs", 3: "triples"}
_EPSILON_HEAD = ("sample", *(f"ε = {epsilon}" for epsilon in EPSILONS))


def work(task: Task, asked: Namespace) -> Mapping[str, Any]:
    """Draw records, learn from them, and compare both with the population."""
    facts = facts_of(task.cell)
    count, columns = int(float(facts["N"])), int(facts["k"])
    people = 4 * count if asked.extent == "smoke" else max(PEOPLE.get(columns, 0), 4 * count)
    whole = population(asked.folder, task.cell.split()[0], columns, people, task.trial)
    records = whole.draw(count, task.trial)
    found = selection(METHOD, records, facts["epsilon"], task.trial, delta=DELTA, judge=whole.errors)
    beside = {"sample": whole.sampling(records), "independent": whole.independence()}
    found |= {f"{name}_{key}": value for name, some in beside.items() for key, value in some.items()}
    return {key: value for key, value in (found | whole.cells()).items() if key not in LEFT_OUT}


def cells(asked: Namespace) -> dict[str, int]:
    """cell -> draws; those of one population together, small ones first, and real tables that are there."""
    if asked.extent == "smoke":
        return {"weak k=10 N=1e3 epsilon=1": 2, "health k=7 N=1e3 epsilon=1": 1}
    grids = {(name, k): grid for k, grid in GRID.items() for name in GENERATED}
    for name, (k, counts) in REAL.items():
        if why := SOURCES[name].missing(asked.folder):
            say(f"{name} is left out: {why}")
        else:
            grids[name, k] = dict.fromkeys(counts, EPSILONS)
    order = sorted(grids, key=lambda one: one[1])
    full = asked.extent == "full"
    return {
        f"{name} k={k} N={count} epsilon={epsilon}": asked.seeds
        for name, k in order
        for count, epsilons in grids[name, k].items()
        for epsilon in (EPSILONS if full else epsilons)
    }


def arguments(parser: ArgumentParser) -> None:
    """How often."""
    parser.add_argument("--seeds", type=int, default=SEEDS, help="draws of a cell")


def tables(lines: Sequence[Line]) -> str:
    """Errors by size, errors by kind of table, and the rule of thumb."""
    runs = grouped(lines, "cell")
    by = ", ".join(sorted({line["by"].split()[1] for line in lines}))
    parts = [f"# Accuracy\n\nPercentage points, mean (least and most of all runs); {by}.\n"]
    for order, title in ORDERS.items():
        parts.append(
            section(title.capitalize(), ["columns", "records", "runs", *_EPSILON_HEAD], _sizes(runs, order), name=title)
        )
    for order, title in ORDERS.items():
        head = ["table", "records", "independent", *_EPSILON_HEAD]
        parts.append(section(f"{title.capitalize()}, by table", head, _kinds(runs, order), name=f"{title}-by-table"))
    return "\n".join(filter(None, [*parts, _rules(lines)]))


def _sizes(runs: Mapping[str, Sequence[Line]], order: int) -> list[list[str]]:
    """One row for each number of columns and of records, over all generated populations."""
    rows = []
    for k, grid in GRID.items():
        for count in grid:
            some = {one: _of(runs, GENERATED, k, count, one) for one in EPSILONS}
            if any(some.values()):
                counts = sorted({str(len(one)) for one in some.values() if one}, key=int)
                rows.append(
                    [
                        str(k),
                        _number(count),
                        " to ".join(dict.fromkeys([counts[0], counts[-1]])),
                        *_by_epsilon(some, order),
                    ]
                )
    return rows


def _kinds(runs: Mapping[str, Sequence[Line]], order: int) -> list[list[str]]:
    """One row for each population, with its columns and labels a column, and number of records."""
    sizes = {(name, k): tuple(grid) for k, grid in GRID.items() for name in GENERATED}
    rows = []
    for (name, k), counts in (sizes | {(name, k): counts for name, (k, counts) in REAL.items()}).items():
        for count in counts:
            some = {one: _of(runs, [name], k, count, one) for one in EPSILONS}
            if every := [line for one in some.values() for line in one]:
                labels = f"{np.mean([line['cells1'] for line in every]):.0f}"
                independent = _points([line[f"independent_tv{order}"] for line in every])
                rows.append([f"{name}, {k} x {labels}", _number(count), independent, *_by_epsilon(some, order)])
    return rows


def _of(runs: Mapping[str, Sequence[Line]], names: Iterable[str], k: int, count: str, epsilon: str) -> list[Line]:
    return [line for name in names for line in runs.get(f"{name} k={k} N={count} epsilon={epsilon}", ())]


def _by_epsilon(some: Mapping[str, Sequence[Line]], order: int) -> list[str]:
    """Errors of the records' own shares, then of answers at each epsilon."""
    every = [line for one in some.values() for line in one]
    own = _points([line[f"sample_tv{order}"] for line in every])
    return [own, *(_spread([line[f"tv{order}"] for line in one]) for one in some.values())]


def _spread(values: Sequence[float]) -> str:
    return f"{_points(values)} ({_points([min(values)])}\N{EN DASH}{_points([max(values)])})" if values else "-"


def _points(values: Sequence[float]) -> str:
    """The mean in percentage points, to two figures below 10.

    >>> _points([0.002, 0.004]), _points([0.034]), _points([0.12])
    ('0.30', '3.4', '12')
    """
    points = 100 * float(np.mean(values))
    return f"{points:.{0 if points >= 9.95 else 1 if points >= 0.995 else 2}f}"


def _number(count: str) -> str:
    return f"{float(count):,.0f}"


# --------------------------------------------------------------------------------------------------
# The rule of thumb: an error is that of a sample, and one of noise, which grows with the root of the columns.


@frozen
class Rule:
    """error = sample * sqrt(m / N) + noise * (m * sqrt(k) / (N * epsilon)) ** power, m labels in each of k columns."""

    order: int
    sample: float
    noise: float
    power: float

    def predict(self, line: Line) -> float:
        """Return the error that a run should have."""
        facts, labels = facts_of(line["cell"]), line["cells1"]
        count, epsilon = float(facts["N"]), float(facts["epsilon"])
        noise = (labels * math.sqrt(int(facts["k"])) / (count * epsilon)) ** self.power
        return self.sample * math.sqrt(labels / count) + self.noise * noise


def fit_rule(lines: Sequence[Line], order: int) -> Rule:
    """Return the rule with the least squares of log errors."""

    def rule(logs: FloatArray) -> Rule:
        sample, noise, power = map(float, np.exp(logs))
        return Rule(order, sample, noise, power)

    def off(logs: FloatArray) -> list[float]:
        one = rule(logs)
        return [math.log(line[f"tv{order}"] / one.predict(line)) for line in lines]

    return rule(least_squares(off, np.log([0.5, 0.5, 0.6])).x)


def _is_generated(line: Line) -> bool:
    return line["cell"].split()[0] in GENERATED


def _rules(lines: Sequence[Line]) -> str:
    """The fitted constants, and how far the rule is off: on what it was fitted to, and on real tables."""
    fitted, real = ([line for line in lines if _is_generated(line) == one] for one in (True, False))
    if len({line["cell"] for line in fitted}) < 4:
        return ""
    rows = []
    for order, title in ORDERS.items():
        rule = fit_rule(fitted, order)
        row = [title, f"{rule.sample:.2g}", f"{rule.noise:.2g}", f"{rule.power:.2g}"]
        rows.append([*row, *(_off(rule, some) for some in (fitted, real)), _worst(rule, real)])
    head = ["of", "a", "b", "c", "off, generated (fitted)", "off, real", "worst of real"]
    return section("Rule of thumb", head, rows, name="rule")


def _off(rule: Rule, lines: Sequence[Line]) -> str:
    """Factors between measured and predicted, typical and largest; the geometric mean of measured over predicted."""
    if not lines:
        return "-"
    logs = np.log([line[f"tv{rule.order}"] / rule.predict(line) for line in lines])
    typical, most = float(np.exp(np.sqrt(np.mean(logs**2)))), float(np.exp(np.abs(logs).max()))
    return f"{typical:.2f}, at most {most:.1f} (mean {float(np.exp(logs.mean())):.2f})"


def _log_ratio(rule: Rule, lines: Sequence[Line]) -> float:
    return float(np.mean([math.log(line[f"tv{rule.order}"] / rule.predict(line)) for line in lines]))


def _worst(rule: Rule, lines: Sequence[Line]) -> str:
    """The table with the geometric mean of measured over predicted that is farthest from 1."""
    names = dict.fromkeys(line["cell"].split()[0] for line in lines)
    ratios = {name: _log_ratio(rule, beginning(lines, name)) for name in names}
    worst = max(ratios, key=lambda name: abs(ratios[name]), default=None)
    return "-" if worst is None else f"{worst} (mean {math.exp(ratios[worst]):.2f})"


# --------------------------------------------------------------------------------------------------


def plot(lines: Sequence[Line], folder: Path) -> list[Path]:
    """Errors against records, of singles to triples and of pairs by columns; and the rule against what was measured."""
    runs = grouped(lines, "cell")
    panels = [(10, order, f"{title}, 10 columns") for order, title in ORDERS.items()]
    drawn = [_against_records(runs, panels, folder / "accuracy")]
    here = {int(facts_of(line["cell"])["k"]) for line in lines if _is_generated(line)}
    if len(panels := [(k, 2, f"pairs, {k} columns") for k in GRID if k in here]) > 1:
        drawn.append(_against_records(runs, panels, folder / "accuracy-columns"))
    return [*drawn, _against_rule(lines, folder / "accuracy-rule")] if _rules(lines) else drawn


def _against_records(runs: Mapping[str, Sequence[Line]], panels: Sequence[tuple[int, int, str]], stem: Path) -> Path:
    """One panel for each number of columns and order; bands reach over all kinds and seeds."""
    figure, grid = pyplot().subplots(1, len(panels), figsize=(7.6, 3.1), layout="constrained", sharey=True)
    for axes, (k, order, title) in zip(grid, panels, strict=True):
        for color, epsilon in enumerate(EPSILONS):
            some = {float(count): _of(runs, GENERATED, k, count, epsilon) for count in GRID[k]}
            values = {at: [100 * line[f"tv{order}"] for line in one] for at, one in some.items() if one}
            if values:
                means = [np.mean(one) for one in values.values()]
                axes.plot(list(values), means, marker="o", ms=4, color=f"C{color}", label=f"ε = {epsilon}")
                low, high = ([function(one) for one in values.values()] for function in (min, max))
                axes.fill_between(list(values), low, high, color=f"C{color}", alpha=0.15, lw=0)
        some = {
            float(count): [line for one in EPSILONS for line in _of(runs, GENERATED, k, count, one)]
            for count in GRID[k]
        }
        own = {at: 100 * np.mean([line[f"sample_tv{order}"] for line in one]) for at, one in some.items() if one}
        axes.plot(list(own), list(own.values()), "k--", label="sample")
        axes.set(xscale="log", yscale="log", xlabel="records", title=title)
    grid[0].set_ylabel("mean error, percentage points")
    grid[0].legend(fontsize=8)
    return save(figure, stem)


def _against_rule(lines: Sequence[Line], stem: Path) -> Path:
    """Measured errors against predicted ones; real tables, to which nothing was fitted, are black."""
    fitted = [line for line in lines if _is_generated(line)]
    figure, grid = pyplot().subplots(1, len(ORDERS), figsize=(7.6, 3.1), layout="constrained")
    for axes, (order, title) in zip(grid, ORDERS.items(), strict=True):
        rule = fit_rule(fitted, order)
        kinds = {name: [line for line in fitted if line["cell"].split()[0] == name] for name in GENERATED}
        kinds["real tables"] = [line for line in lines if not _is_generated(line)]
        for name, some in kinds.items():
            at = [100 * rule.predict(line) for line in some], [100 * line[f"tv{order}"] for line in some]
            look = {"s": 16, "alpha": 0.6} if name in GENERATED else {"s": 22, "color": "k", "marker": "x"}
            axes.scatter(*at, **look, label=name)
        ends = np.array(axes.get_xlim())
        axes.set(xscale="log", yscale="log", xlabel="rule, percentage points", title=title)
        axes.plot(ends, ends, "k-", lw=0.8)
        for factor in (1 / 2, 2):
            axes.plot(ends, factor * ends, "k:", lw=0.8)
    grid[0].set_ylabel("measured, percentage points")
    grid[0].legend(fontsize=8)
    return save(figure, stem)


STUDY = Study(
    about=__doc__,
    name="accuracy",
    data="adult/, nist_acs_ma2019/ and lbs_workweek/",
    arguments=arguments,
    cells=cells,
    methods=[METHOD],
    work=work,
    text=tables,
    pictures=plot,
)

if __name__ == "__main__":
    main(STUDY)
