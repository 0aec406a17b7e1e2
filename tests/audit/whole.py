"""Whole pipelines, from records to all that a run draws, with and without each of several persons ("canaries").

Each canary takes part by a coin of its own, and has cells of its own in every table. All that a run draws passes few
places: noise on tables, noise on scores, choices among candidates, choices of bins, published labels. A `Watch` stands
there, knows the true counts, and adds up for each canary the log-likelihood ratio of what came out, with it against
without it: the optimal test of the pair of data sets that differ in this one person and are equal in all coins of the
others. Its errors bound the privacy loss from below.

Ratios are computed from what a run says of its noise and of its choices, by arithmetic of their own, so that a run
that draws otherwise than it says shows more loss than it promises.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Self
from unittest import mock

import numpy as np
import pyarrow as pa
from attrs import define, field, frozen

from dpgm_core import Array, Budget, Dag, Domain, FloatArray, Noise, Structure, Tables, Terms, Workload, fit, select
from dpgm_core.counting.scores import distances, rank_scores, ranks_of, whole_scores
from dpgm_core.curator import funds, labels, session, steps
from dpgm_core.curator.labels import LabelSearch
from dpgm_core.privacy.bins import RankDistance, nodes_of
from dpgm_core.privacy.gdp import gdp_delta
from dpgm_core.privacy.selection import SCORE_GRID, TableDistance
from dpgm_core.privacy.session_account import SessionAccount
from dpgm_core.releases.steps import Choice, NoisyScores
from dpgm_core.sources import as_source

#: The log-likelihood ratio of what tells the data sets apart for certain.
_CERTAIN = 100.0


@define(eq=False)
class Watch:
    """What a run says of each canary. cells: its code in each attribute, (canaries,). present: by its coin.

    rows: of each canary, all in the same cells.
    """

    cells: dict[str, Array]
    present: Array
    rows: int = 1
    losses: FloatArray = field(init=False)
    _scored: tuple[Tables, TableDistance] | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.losses = np.zeros(len(self.present))

    @contextmanager
    def watching(self) -> Iterator[Self]:
        """Stand where a run draws."""
        places = {
            (funds.Measurer, "_measure"): self._measure,
            (session, "distances"): self._distances,
            (session.LiveSession, "_keep"): self._keep,
            (steps, "_bisect_ranks"): self._bisect,
            (labels, "_draw_labels"): self._labels,
            (labels, "draw_columns"): self._columns,
        }
        patches = [mock.patch.object(*place, around(getattr(*place))) for place, around in places.items()]
        for patch in patches:
            patch.start()
        try:
            yield self
        finally:
            for patch in patches:
                patch.stop()

    def _measure(self, honest: Callable[..., object]) -> Callable[..., object]:
        def measure(curator, measurement, count, stated):
            drawn, true = honest(curator, measurement, count, stated), count().values
            if curator.terms.total_policy == "estimated" and not drawn[2]:  # N as it is tells whoever knows the others
                self.losses += np.where(self.present, _CERTAIN, -_CERTAIN)
            merges = getattr(getattr(curator, "_session", None), "merges", {})
            structure = measurement.structure
            for number, noise in enumerate(measurement.noise):
                at = structure.slices[number].start + self._place(structure, number, merges)
                self._add(noise, drawn[0].values[at], true[at])
            return drawn

        return measure

    def _place(self, structure: Structure, number: int, merges: dict[str, Sequence[int]]) -> Array:
        """Where each canary is in a table."""
        clique = structure.groups[number][0]
        codes = [np.asarray(merges[name])[self.cells[name]] if name in merges else self.cells[name] for name in clique]
        return (
            np.ravel_multi_index(codes, structure.domain.shape(clique)) if clique else np.zeros(len(self.losses), int)
        )

    def _add(self, noise: Noise, shown: Array, true: Array) -> None:
        left = np.asarray(shown - (true - self.rows * self.present))  # without the canary
        self.losses += noise.logpdf(left - self.rows) - noise.logpdf(left)

    def _distances(self, honest: Callable[..., object]) -> Callable[..., object]:
        def remembered(tables, scores):
            self._scored = tables, scores
            return honest(tables, scores)

        return remembered

    def _keep(self, honest: Callable[..., object]) -> Callable[..., object]:
        def keep(curator, step):
            if isinstance(step, Choice | NoisyScores):
                assert self._scored is not None
                tables, scores = self._scored
                places = [
                    part.start + self._place(tables.structure, number, curator._session.merges)
                    for number, part in enumerate(tables.structure.slices)
                ]
                for canary, is_in in enumerate(self.present):
                    both = []
                    for there in (True, False):
                        values = tables.values.copy()
                        for place in places:
                            values[place[canary]] += self.rows * (int(there) - int(is_in))
                        both.append(_log_likelihood(step, Tables(tables.structure, values), scores))
                    self.losses[canary] += both[0] - both[1]
            return honest(curator, step)

        return keep

    def _bisect(self, honest: Callable[..., object]) -> Callable[..., object]:
        def bisect(counts, column, randomness):
            levels = honest(counts, column, randomness)
            cell = self.cells[column.attribute.name]
            for canary, is_in in enumerate(self.present):
                with_it, without = counts.copy(), counts.copy()
                with_it[cell[canary]] += self.rows * (1 - int(is_in))
                without[cell[canary]] -= self.rows * int(is_in)
                for depth, (h, level) in enumerate(zip(column.temperatures, levels, strict=True)):
                    wide = [one for one in nodes_of(column.cells, levels[:depth]) if one[1] - one[0] > 1]
                    for (first, last), edge in zip(wide, level, strict=True):
                        node = RankDistance(first=first, last=last)
                        number = node.candidates.index(edge)
                        for counted, sign in ((with_it, 1), (without, -1)):
                            scores = rank_scores(ranks_of(counted), node)
                            self.losses[canary] += sign * log_softmax(scores, h)[number]
            # what is counted from here on is in the bins
            edges = np.unique(np.concatenate([np.asarray(level, int) for level in levels]))
            self.cells = self.cells | {column.attribute.name: np.searchsorted(edges, cell, "right")}
            return levels

        return bisect

    def _labels(self, honest: Callable[..., object]) -> Callable[..., object]:
        def draw(columns, counted, randomness):
            published = honest(columns, counted, randomness)
            for request, counts, one in zip(columns, counted, published, strict=True):
                self._published(counts, dict(zip(one.labels, one.counts, strict=True)), request.noise)
            return published

        return draw

    def _columns(self, honest: Callable[..., object]) -> Callable[..., object]:
        def draw(plan, declared, of_labels, of_shapes, of_cells, randomness):
            drawn = honest(plan, declared, of_labels, of_shapes, of_cells, randomness)
            for counts, column in zip(of_labels, drawn.columns, strict=True):
                shown, variance = dict(column.labels), float(drawn.noise.variance)
                at = [f"label {cell}" for cell in self.cells[column.declared.name]]
                assert all(label in shown for label in at), "labels near the threshold"
                without = np.array([counts[label] for label in at]) - self.present
                residual = np.array([shown[label] for label in at]) - without
                self.losses += (residual - 0.5) / variance
                codes = np.array([column.attribute.labels.index(label) for label in at])
                self.cells = self.cells | {column.declared.name: codes}
            return drawn

        return draw

    def _published(self, counts, shown, noise) -> None:
        """Add what noisy counts of labels say; a label that is not published, or that nobody has, adds nothing."""
        for row in range(self.rows):
            at = [f"label {cell} {row}" for cell in self.cells["label"]]
            without = np.array([counts.get(label, 0) for label in at]) - self.present
            seen = np.array([shown.get(label, -1) for label in at])
            residual = seen - without
            b = float(noise.scale)
            self.losses += np.where(seen < 0, 0.0, (np.abs(residual) - np.abs(residual - 1)) / b)


def _log_likelihood(step: Choice | NoisyScores, tables: Tables, scores: TableDistance) -> float:
    """How likely these tables make the step, but for a constant."""
    apart = distances(tables, scores)
    if isinstance(step, NoisyScores):
        if step.groups is not None:
            weights = scores.whole_weights.astype(float)
            apart = np.array([apart[list(one)] @ weights[list(one)] / weights[list(one)].sum() for one in step.groups])
        return float(step.calibration.noise.logpdf(step.values * SCORE_GRID - apart).sum())
    units, found = whole_scores(apart, scores, step.grid), 0.0
    for group, chosen in zip(step.groups, step.chosen, strict=True):
        left, connected = list(group), list(step.forest or ())
        for number in chosen:
            found += float(log_softmax(units[left], step.temperature)[left.index(number)])
            left.remove(number)
            if step.forest is not None:
                connected.append(step.candidates[number])
                left = [one for one in left if not _joined(step.candidates[one], connected)]
    return found


def log_softmax(scores: Array, h: Fraction) -> FloatArray:
    """The log-probability of each candidate of a choice at temperature h."""
    weights = float(h) * (scores - scores.max())
    return np.asarray(weights - math.log(np.exp(weights).sum()))


def _joined(pair: tuple[str, ...], edges: Sequence[tuple[str, ...]]) -> bool:
    """Whether a path of edges joins both."""
    reached = {pair[0]}
    for _ in edges:
        for edge in edges:
            if reached & set(edge):
                reached |= set(edge)
    return pair[1] in reached


@frozen(kw_only=True)
class Pipeline:
    """A whole run and its promise to a person.

    name: of the run. rows: of each person. canaries: in one run. batch: how many runs are made at once. run: does it
    once, with the canaries that are there, under the watch that it returns. curve: delta of the promise at an epsilon;
    None: `promise` is pure, or nearly.
    """

    name: str
    promise: Budget
    rows: int
    canaries: int
    batch: int
    run: Callable[[Array], Watch]
    curve: Callable[[Fraction], float] | None

    def __str__(self) -> str:
        return f"{self.name}, {self.rows} row{'s' * (self.rows > 1)}"


@frozen(kw_only=True)
class Draws:
    """Log-likelihood ratios of canaries that took part, and of those that did not, with the number of their run."""

    near: FloatArray
    far: FloatArray
    near_runs: Array
    far_runs: Array


def draws_of(pipeline: Pipeline, runs: int, coins: np.random.Generator) -> Draws:
    """Run it so many times. coins: say who is there; all noise is the pipeline's own."""
    losses, there = [], []
    for number in range(runs):
        present = coins.integers(2, size=pipeline.canaries).astype(bool)
        if pipeline.canaries == 1:
            present[0] = number % 2
        losses.append(pipeline.run(present).losses)
        there.append(present)
    every, present = np.array(losses), np.array(there)
    number = np.broadcast_to(np.arange(runs)[:, None], every.shape)
    return Draws(near=every[present], far=every[~present], near_runs=number[present], far_runs=number[~present])


# --------------------------------------------------------------------------------------------------
# The pipelines

#: Of a run whose steps have an exact account, of one whose steps have Gaussian noise alone, of one that is purely
#: private, and of labels.
APPROX, ZCDP, PURE, LABELS = Budget.approx(10, "1e-6"), Budget.zcdp(2), Budget.pure(4), Budget.approx(4, "1e-6")
#: Persons in each cell that selections see, beside canaries.
_BASE = 100
#: What is learned on the way is post-processing, so it is done fast.
_LEARNER = {"name": "naive-mle", "l2": 0.001, "max_iterations": 50}
#: Selectors, and how many canaries a run has: one where choices cost much, as they are then made level.
_SELECTORS = {"auto": 24, "aim": 24, "oneshot": 24, "mrf-select": 24, "mst": 1, "privbayes": 1}


def pipelines() -> Iterator[Pipeline]:
    """Every pipeline, with one row of each person and with four."""
    for rows in (1, 4):
        for name, canaries in _SELECTORS.items():
            yield _selection(name, APPROX, rows, canaries)
        yield _selection("mrf-select", PURE, rows, 48)
        yield _two_stages(rows)
        yield _bins(rows)
        yield _columns(rows)
        yield _labels(rows)


def _terms(rows: int) -> Terms:
    return Terms(neighbours="add-remove", person="id", rows_per_person=rows)


def _persons(columns: Mapping[str, Array], rows: int) -> dict[str, Array]:
    """Columns with so many rows of each person, all alike."""
    count = len(next(iter(columns.values())))
    return {"id": np.repeat(np.arange(count), rows)} | {name: np.repeat(one, rows) for name, one in columns.items()}


def _selection(name: str, budget: Budget, rows: int, canaries: int) -> Pipeline:
    """Columns that depend on each other alike, so that choices are nearly level.

    A canary strengthens some pairs and weakens the others. Of a pure budget there are two columns: where three tables
    or more each have to show the greatest loss, that is seen too seldom. Of one canary there are four, so that whatever
    was picked before, some candidates that are left rise and others fall.
    """
    names, size = "ab" if budget.kind == "pure" else "abcd" if canaries == 1 else "abc", max(2, canaries)
    everybody = dict.fromkeys(names, np.repeat(np.arange(size), _BASE))
    cells = {name: (np.arange(canaries) + number % 2) % size for number, name in enumerate(names)}
    workload = Workload.all(Domain.from_sizes(dict.fromkeys(names, size)), order=2)
    selector = {"name": name, "measure": "tables"} if name == "mrf-select" else name
    account: list[SessionAccount] = []

    def run(present: Array) -> Watch:
        columns = {one: np.concatenate([everybody[one], cells[one][present]]) for one in names}
        with Watch(cells, present, rows).watching() as watch:
            released, _ = select(_persons(columns, rows), selector, budget, workload, _LEARNER, terms=_terms(rows))
        account[:] = filter(None, [released.session.account])
        return watch

    def curve(epsilon: Fraction) -> float:
        return account[0].delta(epsilon)

    pure = budget.kind == "pure"
    label = f"{name}, pure" if pure else name
    return Pipeline(
        name=label,
        promise=budget,
        rows=rows,
        canaries=canaries,
        batch=250 if pure else 500 if canaries == 1 else 40,
        run=run,
        curve=None if pure else curve,
    )


def _two_stages(rows: int) -> Pipeline:
    """A Bayesian network whose first stage divides the budget of the second."""
    canaries = 24
    dag = Dag(Domain.from_sizes(dict.fromkeys("abc", canaries)), {"b": ["a"], "c": ["a"]})
    cells = dict.fromkeys("abc", np.arange(canaries))
    everybody = np.repeat(np.arange(canaries), _BASE)

    def run(present: Array) -> Watch:
        columns = {one: np.concatenate([everybody, cells[one][present]]) for one in "abc"}
        with Watch(cells, present, rows).watching() as watch:
            fit(_persons(columns, rows), dag.structure(), ZCDP, "gaussian", "bayes-net-two-stage", terms=_terms(rows))
        return watch

    return Pipeline(
        name="bayes-net-two-stage",
        promise=ZCDP,
        rows=rows,
        canaries=canaries,
        batch=60,
        run=run,
        curve=_gaussian(2 * ZCDP.rho),
    )


def _bins(rows: int) -> Pipeline:
    """Private bins for a quarter of the budget, then their table and others. The canary is above all others.

    Both levels that it takes part in have a choice between two empty stretches, alike without it, one below the median
    and one above: with it the one falls and the other rises by as much as any can. Of one table alone the noise would
    be so narrow that a count more shows at once, or hardly; the promise has both in it.
    """
    cells, persons, others = 1024, [10, 4, 2, 2, 2, 2, 2], "abcdefg"
    apart = np.repeat(np.arange(len(persons)) * (cells // len(persons)), persons)
    domain = Domain.from_dict(
        {"x": {"type": "integer", "min": 0, "max": cells - 1, "bins": {"private": 4, "share": "1/4"}}}
        | {name: {"size": 2} for name in others}
    )
    known = dict.fromkeys(others, np.array([1]))
    account: list[SessionAccount] = []

    def run(present: Array) -> Watch:
        columns = {"x": np.concatenate([apart, np.full(int(present.sum()), cells - 1)])}
        columns |= dict.fromkeys(others, (columns["x"] == cells - 1).astype(int))
        with Watch({"x": np.array([cells - 1]), **known}, present, rows).watching() as watch:
            made = fit(
                _persons(columns, rows),
                Structure(domain, [(name,) for name in domain.names]),
                APPROX,
                learner=_LEARNER,
                terms=_terms(rows),
            )
        account[:] = [made.releases[0].session.account]
        return watch

    return Pipeline(
        name="private bins",
        promise=APPROX,
        rows=rows,
        canaries=1,
        batch=500,
        run=run,
        curve=lambda one: account[0].delta(one),
    )


def _columns(rows: int) -> Pipeline:
    """Columns of any type, each label of which is that of one canary and of others, then all pairs."""
    canaries, base = 16, 400
    domain = Domain.from_dict({name: {"private": True, "keep": 50} for name in "ab"})
    cells = dict.fromkeys("ab", np.arange(canaries))
    everybody = np.repeat(np.arange(canaries), base)

    def run(present: Array) -> Watch:
        codes = np.concatenate([everybody, np.arange(canaries)[present]])
        columns = _persons(dict.fromkeys("ab", np.array([f"label {code}" for code in codes])), rows)
        with Watch(cells, present, rows).watching() as watch:
            select(pa.table(columns), "all-pairs", APPROX, Workload.all(domain, order=2), _LEARNER, terms=_terms(rows))
        return watch

    return Pipeline(
        name="columns of any type",
        promise=APPROX,
        rows=rows,
        canaries=canaries,
        batch=60,
        run=run,
        curve=_gaussian(APPROX.gdp_within().mu_squared),
    )


def _labels(rows: int) -> Pipeline:
    """Labels found privately, of which each canary has as many as it may, and others too."""
    canaries, base = 1000, 60
    domain = Domain.from_dict({"label": {"labels": {"private": True, "keep": 2 * canaries * rows, "share": "99/100"}}})

    def run(present: Array) -> Watch:
        persons = np.concatenate([np.repeat(np.arange(canaries), base), np.arange(canaries)[present]])
        texts = np.array([f"label {one} {row}" for one in persons for row in range(rows)])
        table = pa.table({"id": np.repeat(np.arange(len(persons)), rows), "label": texts})
        with Watch({"label": np.arange(canaries)}, present, rows).watching() as watch:
            LabelSearch(source=as_source(table), domain=domain, budget=LABELS, terms=_terms(rows)).find(lambda: None)
        return watch

    return Pipeline(
        name="labels", promise=LABELS * Fraction(99, 100), rows=rows, canaries=canaries, batch=10, run=run, curve=None
    )


def _gaussian(mu_squared: Fraction) -> Callable[[Fraction], float]:
    return lambda epsilon: gdp_delta(mu_squared, epsilon)
