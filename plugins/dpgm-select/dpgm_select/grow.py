"""A spanning forest first; then the tables whose predicted gain exceeds the loss by their noise, on refitted models.

1. Every attribute alone, the more precisely the more its noise weighs beside the records.
2. If no pair can rise above its noise, all that is left goes to the attributes, and nothing else is measured. Otherwise
   rare codes are merged, and bins that are too fine for pairs, after one more table of their attributes.
3. A spanning forest of pairs by Kruskal's algorithm, each edge by the exponential mechanism, and its tables. If pairs
   are nearly as far from its model, in the mean, as the forest's own pairs are from independence, most columns depend
   on most others: then all pairs are measured, for latent classes.
4. Rounds, each on the model of what was measured so far. Where Gaussian noise in the scores of all candidates is small
   beside the records, a round is a *look*: all are scored, the scores shrunk to what tables of their size have, and the
   best set of tables is taken. Otherwise a round is *picks* by the exponential mechanism, whose noise grows with the
   number picked and not with that of the candidates; it is the last one if it teaches too little beside its noise.
5. What is left goes to all tables, and to the attributes as far as the tables do not tell them already.

A gain is not believed twice in one round: a set that shares a pair with one taken waits for the next model, and so does
the third side of a triangle. Sources: Kruskal's forest from McKenna, Miklau and Sheldon (2021), MST; scores less by a
part of the noise from McKenna et al. (2022), AIM; the division of a budget from SWIFT. The rest was chosen on the
development tables of `benchmarks.selection`.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

from dpgm_core import (
    Budget,
    BudgetError,
    Clique,
    Fit,
    Fitting,
    FloatArray,
    Inference,
    NoisyTables,
    PluginError,
    Progress,
    Randomness,
    Selection,
    SelectionPlan,
    Session,
    Structure,
    TableDistance,
    Terms,
    Workload,
    flag,
    make,
    option,
)
from dpgm_core.learning import Limits, ModelSize, fit_bytes, fit_seconds, share_of
from dpgm_select.common import (
    Growth,
    Options,
    check_choice,
    check_workload,
    choose_forest,
    clique_text,
    count_edges,
    informative_candidates,
    larger_candidates,
    noise_alone,
    predict_tables,
    score_candidates,
    single_candidates,
)
from dpgm_select.merging import find_merges, measured_before, merge_session_codes
from dpgm_select.spending import LEFT, absolute, detectable, epsilon_of, ratio
from dpgm_select.split import level_up, pull

__all__ = ["Grow"]

#: Of the budget: to every attribute alone at least and at most, and the error of an attribute, total variation, at
#: which it has enough.
_ALONE, _ALONE_AT_MOST, _ALONE_ERROR = 0.15, 0.35, 0.01
#: If all have bins that will be merged, to these once more: single columns had 3 to 9 % less error, and pairs as much
#: as before; at .2 columns had 10 to 15 % less, and pairs up to 15 % more.
_WITHIN = 0.1
#: To the choice of the forest; to its tables at least and at most; the noise of a table, part of the records, at which
#: they have enough.
_CHOICE, _FOREST, _FOREST_AT_MOST, _FOREST_NOISE = 0.05, 0.12, 0.3, 0.1
#: Noise of a table of the forest, part of the records, beyond which pairs are left alone, and from which their mean
#: distance from independence is tested; for which part of the budget; what that must be beyond chance, beside the
#: table's noise; and by how many standard deviations of its own noise it must exceed chance: 2 are a false alarm of
#: probability .023 for independent columns.
_HOPELESS, _DOUBTFUL, _TEST, _TEST_GAIN, _TEST_DEVIATIONS = 2.0, 0.35, 0.02, 0.3, 2.0
#: Latent classes: the learner; the most cells of all pairs; the budget of the mean distance, at most, and its noise,
#: part of the records, at which it has enough; what it must be beside the dependence of the forest's pairs; and beside
#: the records where all pairs have much noise.
_CLASSES, _CLASSES_CELLS, _MEAN, _MEAN_NOISE, _DENSE, _CLASSES_ERROR = "mixture", 2**22, 0.01, 0.01, 0.5, 0.2
#: Looks: how many, the budget of each, the part of what is left that its tables have, and the noise of a score, part of
#: the records, up to which there are looks. Sets of all orders are scored at once if they are at most so many times the
#: pairs, which is what raises the noise.
_LOOKS, _SCORES, _LOOK_PART, _SCORE_NOISE, _MANY = 4, 0.02, 0.35, 0.1, 7.0
#: Sets of more attributes than this have looks of their own, at most so many, after the others: most of them tell no
#: more than noise, so one is taken only if it stands out from the rest by so many standard deviations of its score.
_LOOK_ORDER, _DEEP_LOOKS, _DEEP_DEVIATIONS = 3, 2, 4.0
#: Up to so many such sets, each of so many cells at most, are candidates where nobody says what the model is for.
_WIDE_ORDER, _WIDE_SETS, _WIDE_CELLS = 4, 2_000, 16
#: How the limit of a fit's seconds grows from look to look.
_RAMP = 1.5
#: What a cell costs in the greedy search for a structure, in standard deviations of the noise if there were one table.
_PENALTIES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
#: Candidates from which those that no structure would be worth are left out of that search.
_SEARCHED = 400
#: Rounds of picks: how many at most, the part of what is left that each has, of that the part of its choice, picks of
#: the first for each attribute and by how much they grow, the part of the noise that scores are less by, and the gain
#: beside the noise below which a round is the last.
_ROUNDS, _ROUND_PART, _ROUND_CHOICE, _PICKS, _MORE_PICKS, _OFFSET, _STOP = 7, 0.25, 0.1, 0.34, 1.5, 0.5, 0.45
#: Millionths that rounding might take too much.
_ROUNDED = 1 - 1e-6
_MEAN_NORMAL = math.sqrt(2 / math.pi)
_SWITCH_NOTE = (
    "if most columns depend on most others, all {pairs:,} pairs are measured and latent classes fitted to them "
    f"(learner {_CLASSES!r}); name a learner to rule that out"
)
_SWITCHED_NOTE = (
    f"all pairs were measured, for latent classes, as most depend nearly as strongly as the strongest: learner "
    f"{_CLASSES!r}, which is to be named when this release is learned from again"
)
_ALONE_NOTE = "only single columns were measured"


def lasting_noise(parameters: int) -> float:
    """Return the part of a table's noise that a learner which shrinks it leaves, by the table's interactions.

    A learner judges a table by all its interactions together: many that hold nothing but noise are told for what they
    are, and one alone is not.

    >>> [round(lasting_noise(count), 2) for count in (1, 16, 10_000)]
    [1.0, 0.5, 0.3]
    """
    return max(0.3, math.pow(parameters, -0.25))


@frozen(kw_only=True)
class Grow(Options):
    """A spanning forest, then tables as long as they are predicted to be worth their noise.

    Serves zCDP budgets.

    >>> Grow(merge=False).merge
    False
    """

    max_fit_seconds: float = fit_seconds(
        2.0,
        "tables with which a fit's exact inferences are predicted to take longer are left out",
    )
    max_fit_bytes: int = fit_bytes(2**23)
    classes: bool = option(
        True,
        help="where most attributes depend on most others, measure all pairs and fit latent classes, if the run names "
        "no learner",
        validator=flag,
    )

    def without_switch(self) -> Grow:
        """See `SwitchingSelector`."""
        return evolve(self, classes=False)

    def widen(self, workload: Workload, budget: Budget) -> Workload:
        """See `WideningSelector`: sets of four where all of them are small and they are not many."""
        largest = sorted(workload.domain.sizes.values())[-_WIDE_ORDER:]
        few = math.comb(len(workload.domain), _WIDE_ORDER) <= _WIDE_SETS
        if len(largest) < _WIDE_ORDER or not few or math.prod(largest) > _WIDE_CELLS or budget.kind == "pure":
            return workload
        return Workload.all(workload.domain, _WIDE_ORDER, max_cells=workload.max_cells, never=workload.never)

    def plan(self, workload: Workload, budget: Budget, terms: Terms, records: float | None = None) -> SelectionPlan:
        """See `Selector.plan`."""
        check_workload("grow", workload, budget)
        notes = self.check_room(workload)
        if budget.kind == "pure":
            raise BudgetError(
                f"selector 'grow' scores with Gaussian noise, which {budget} does not allow; use 'mst' or 'aim', or "
                "a zCDP or (epsilon, delta) budget"
            )
        edges, pairs = count_edges(workload), larger_candidates(workload, 2)
        each = share_of(budget, _CHOICE / edges)
        check_choice("grow", each, terms)
        shares = {
            "every attribute alone": share_of(budget, _ALONE),
            f"choosing {edges} pairs": share_of(budget, _CHOICE),
            "asking whether pairs can be told, at most": share_of(budget, _TEST),
            "choosing more tables, at most": share_of(
                budget, (_LOOKS + _DEEP_LOOKS * any(len(one) > _LOOK_ORDER for one in workload.candidates)) * _SCORES
            ),
        }
        switched = None
        if self.classes and _classes_serve(workload):
            shares["asking whether all pairs are to be measured"] = share_of(budget, _MEAN)
            switched = Structure(workload.forecast_domain(), [*single_candidates(workload), *pairs])
            notes = [_SWITCH_NOTE.format(pairs=len(pairs)), *notes]
        return SelectionPlan(
            shares={**shares, "the tables chosen, and attributes again": budget - Budget.sum(shares.values())},
            deviation=noise_alone(shares["every attribute alone"], terms, workload),
            detectable=detectable(each, len(pairs), terms),
            candidates=len(larger_candidates(workload)),
            limits=self.limits_by_name(),
            learner=None if switched is None else _CLASSES,
            switched=switched,
            choices=((edges, each),),
            notes=[*_foretell(workload, budget, terms, records), *notes],
        )

    def select(
        self, session: Session, *, inference: Inference, fitting: Fitting, randomness: Randomness, progress: Progress
    ) -> Selection:
        """See `Selector.select`."""
        growing = _Growing(self, session, fitting, progress)
        growing.measure_alone()
        if growing.pairs_are_hopeless():
            growing.spend_rest()
            return growing.selection()
        growing.merge_codes()
        growing.join_forest()
        if self.classes and growing.is_dense():
            growing.measure_all_pairs()
            return growing.selection(_CLASSES)
        if growing.score_noise(len(growing.pairs)) <= _SCORE_NOISE:
            growing.look_around()
            growing.look_deeper()
        else:
            growing.pick_rounds()
        growing.spend_rest()
        return growing.selection()


def _foretell(workload: Workload, budget: Budget, terms: Terms, records: float | None) -> list[str]:
    """Say, before anything is paid for, that pairs cannot be told where the number of records is known."""
    if records is None or not records > 0:  # nor for what is no number
        return []
    pairs, edges = larger_candidates(workload, 2), count_edges(workload)
    sizes = workload.domain.sizes
    cells = [min(math.prod(sizes[name] for name in pair), workload.max_cells) for pair in pairs]
    each = absolute(share_of(budget, 0.5 / edges), terms, workload) / records
    noise = _typical(cells) * each
    if noise <= _DOUBTFUL:
        return []
    factor = noise / _DOUBTFUL
    columns = math.floor(edges / factor**2)
    enough = f"or at most {columns + 1} columns" if columns else "or columns of fewer labels"
    lead = (
        "at this budget only single columns can be told"
        if min(4, *cells) * each > _HOPELESS  # even if rare labels are merged until two are left
        else "at this budget pairs can be told only if most depend strongly or have few labels that are not rare, and "
        "else single columns alone are measured"
    )
    return [f"{lead}: pairs need about {factor:.2g} times the epsilon, {enough}"]


def _classes_serve(workload: Workload) -> bool:
    """Whether latent classes can be fitted to all pairs: installed, without constraints, and not too many cells."""
    try:
        make("learner", _CLASSES)
    except PluginError:
        return False
    sizes = workload.domain.sizes
    cells = sum(min(sizes[one] * sizes[two], workload.max_cells) for one, two in larger_candidates(workload, 2))
    return not workload.domain.scopes and cells <= _CLASSES_CELLS


def _typical(cells: Sequence[int]) -> float:
    """Return the cells of a pair that is among the smaller ones, as those that a small budget can afford are."""
    return float(np.quantile(cells, 0.25))


@frozen(kw_only=True, eq=False)
class _Worth:
    """What a look predicts: of each candidate its gain, what it costs and how much of its noise stays."""

    gains: Mapping[Clique, float]
    pulls: Mapping[Clique, float]
    lasting: Mapping[Clique, float]
    weights: Mapping[Clique, float]
    committed: float
    level: float
    careful: bool

    def best(self, candidates: Iterable[Clique], fits: Callable[[Clique], bool], fines: Mapping[Clique, float]) -> Any:
        """Return what is saved, weighted records, and the tables taken, by a lazy greedy search.

        fines: what the cells of a table cost in the search, weighted records, none if left out. A gain that taken
        tables explain is not counted again, so that gains fall only and an entry of the heap is an upper bound.
        """
        explained: set[Clique] = set()
        near: defaultdict[str, set[str]] = defaultdict(set)
        together, saved, taken = self.committed, 0.0, list[Clique]()

        def gain(clique: Clique) -> float:
            if clique in explained:
                return 0.0
            known = [pair for pair in itertools.combinations(clique, 2) if pair in explained]
            if self.careful and (known or (len(clique) == 2 and near[clique[0]] & near[clique[1]])):
                return 0.0
            return self.weights[clique] * max(
                self.gains[clique] - sum(self.gains.get(pair, 0.0) for pair in known), 0.0
            )

        def rank(clique: Clique) -> float:
            return (gain(clique) - fines.get(clique, 0.0)) / self.pulls[clique]

        heap = [(-rank(clique), clique) for clique in candidates]
        heapq.heapify(heap)
        while heap and heap[0][0] < 0:
            before, clique = heapq.heappop(heap)
            now = -rank(clique)
            if now > before + 1e-12:
                heapq.heappush(heap, (now, clique))
                continue
            grown = together + self.pulls[clique]
            loss = self.lasting[clique] * self.level * (grown**1.5 - together**1.5)
            if gain(clique) <= loss or not fits(clique):
                continue
            saved, together = saved + gain(clique) - loss, grown
            taken.append(clique)
            for one, two in itertools.combinations(clique, 2):
                explained.add((one, two))
                near[one].add(two)
                near[two].add(one)
            explained.add(clique)
        return saved, taken


class _Growing:
    """One selection: what was measured, with which part of the budget, and the model of it."""

    def __init__(self, options: Grow, session: Session, fitting: Fitting, progress: Progress) -> None:
        self.options, self.session, self.fitting, self.progress = options, session, fitting, progress
        self.workload, self.whole = session.workload, session.budget
        self.alone = single_candidates(self.workload)
        self.growth = Growth(session=session, size=ModelSize(session.domain))
        self.had: dict[Clique, float] = {}  # parts of the budget, of every table
        self.trace, self.notes = list[dict[str, Any]](), list[str]()
        self.pairs: list[Clique] = []
        self._merges: dict[str, tuple[int, ...]] = {}
        self.fit: Fit
        self.records, self._measurements, self._learned = 1.0, 0, 0

    # ----------------------------------------------------------------------------------------------
    # What things cost

    def noise(self, part: float) -> float:
        """Return the expected absolute noise of a cell of a table with this part of the budget, records."""
        return absolute(share_of(self.whole, part), self.session.terms, self.workload)

    def score_noise(self, candidates: int) -> float:
        """Return the standard deviation of noisy scores of so many candidates, part of the records."""
        rho = float(share_of(self.whole, _SCORES).rho)
        return TableDistance.move(self.session.terms) * math.sqrt(candidates / (2 * rho)) / self.records

    def cells(self, clique: Clique) -> int:
        """Return the cells of a table, by the codes as they are counted now."""
        sizes = self.session.domain.sizes
        return math.prod(sizes[name] for name in clique)

    def pull(self, clique: Clique) -> float:
        """Return what a table's part of the budget is proportional to."""
        return pull(float(self.workload.weight(clique)) * self.cells(clique))

    @property
    def left(self) -> float:
        """The part of the budget that is left."""
        return ratio(self.session.remaining, self.whole)

    def measure(self, parts: Mapping[Clique, float]) -> NoisyTables:
        """Measure tables for these parts of the budget."""
        measured = self.session.measure({clique: share_of(self.whole, part) for clique, part in parts.items()})
        for clique, part in parts.items():
            self.had[clique] = self.had.get(clique, 0.0) + part
        self._measurements += 1
        return measured

    def measure_together(self, cliques: Sequence[Clique], part: float) -> NoisyTables:
        """Measure tables so that their noise, summed over cells, is least."""
        whole = sum(map(self.pull, cliques))
        return self.measure({clique: part * self.pull(clique) / whole for clique in cliques})

    # ----------------------------------------------------------------------------------------------
    # Steps

    def learn_measured(self) -> None:
        """Learn from the tables measured so far, unless `fit` is of these already; scores teach a learner nothing."""
        if self._learned != self._measurements:
            self.fit, self._learned = self.growth.fitted(self.fitting, self.fit), self._measurements

    def measure_alone(self) -> None:
        """Every attribute alone, in one step or two, and a model of that."""
        count = len(self.alone)
        self.session.measure(self.alone, share_of(self.whole, _ALONE))
        self.records = max(1.0, float(self.session.pooled().total))
        labels = sum(map(self.cells, self.alone)) / count
        error = labels * self.noise(_ALONE / count) / (2 * self.records)
        part = min(_ALONE_AT_MOST, _ALONE * max(1.0, error / _ALONE_ERROR) ** 2)
        if part > _ALONE * 1.05:
            self.session.measure(self.alone, share_of(self.whole, part - _ALONE))
        self.had = dict.fromkeys(self.alone, max(part, _ALONE) / count)
        self.growth.add(*self.alone, *measured_before(self.session))
        self.fit = self.growth.fitted(self.fitting)

    def merge_codes(self) -> None:
        """Merge rare codes, and learn anew. Bins that are merged are measured once more before: no later table tells
        those of a block apart."""
        binned: list[Clique] = [(name,) for name in self._merges if self.session.domain[name].edges is not None]
        if binned:
            self.measure_together(binned, _WITHIN * len(binned) / len(self.alone))
            self._merges = find_merges(self.session.pooled(), self.session)
        if self._merges:
            self.notes += merge_session_codes(self.session, self._merges)
            self.growth = Growth(session=self.session, size=ModelSize(self.session.domain))
            self.growth.add(*self.alone, *measured_before(self.session))
            self.fit = self.growth.fitted(self.fitting)
        self.pairs = informative_candidates(self.session, 2)

    def pairs_are_hopeless(self) -> bool:
        """Whether no pair can rise above the noise that its table would have; decided by released values alone.

        Rare codes are not merged yet, as single columns are better told with all their codes.
        """
        self._merges = find_merges(self.session.pooled(), self.session) if self.options.merge else {}
        sizes = {**self.session.domain.sizes, **{name: max(codes) + 1 for name, codes in self._merges.items()}}
        cells = {
            pair: cells
            for pair in larger_candidates(self.workload, 2)
            if min(sizes[name] for name in pair) > 1
            and (cells := math.prod(sizes[name] for name in pair)) <= self.workload.max_cells
        }
        if not cells:
            least = f"more than one label that is not rare, and at most {self.workload.max_cells:,} cells together"
            self.notes.insert(0, f"{_ALONE_NOTE}: no two have {least}")
            return True
        noise = _typical([*cells.values()]) * self.noise(0.5 / count_edges(self.workload)) / self.records
        small = set(self.workload.measurable(self.session.domain))  # before codes are merged
        self.pairs = [pair for pair in cells if pair in small]
        if noise <= _DOUBTFUL or (noise <= _HOPELESS and self._pairs_stand_out(noise)):
            return False
        self.notes.insert(
            0, f"{_ALONE_NOTE}: at this budget the noise in tables of two is greater than what they could show"
        )
        return True

    def _pairs_stand_out(self, noise: float) -> bool:
        """Whether the mean distance of the pairs from independence, one noisy number, is more than chance and noise.

        noise: of a table of two, part of the records. Where columns that copy one another could not pass either,
        nothing is spent; nor where all pairs have too many cells before codes are merged.
        """
        if not self.pairs:
            return False
        sizes, told = self.session.domain.sizes, predict_tables(self.fit, self.pairs)
        weights = [float(self.workload.weight(pair)) for pair in self.pairs]
        chance, test = self._distance_by_chance(told), share_of(self.whole, _TEST)
        deviation = TableDistance.move(self.session.terms) / math.sqrt(2 * float(test.rho))
        enough = max(chance + _TEST_DEVIATIONS * deviation, math.hypot(chance, _TEST_GAIN * noise * self.records))
        copies = [2 * self.records * (1 - 1 / min(map(sizes.__getitem__, pair))) for pair in self.pairs]
        if enough > np.average(copies, weights=weights):
            return False
        scores = score_candidates(self.session, self.pairs, told, self.records)
        return float(self.session.score(scores, test, mean=True).values[0]) >= enough

    def _distance_by_chance(self, told: Mapping[Clique, FloatArray]) -> float:
        """Return the mean distance of the pairs' tables from a right model by sampling and by the noise of their
        attributes' tables, records."""
        weights = [float(self.workload.weight(pair)) for pair in self.pairs]
        sampling = [_MEAN_NORMAL * np.sqrt(self.records * told[pair] * (1 - told[pair])).sum() for pair in self.pairs]
        own = self._errors_alone()
        alone = [math.hypot(*(own[name] for name in pair)) for pair in self.pairs]
        return math.hypot(np.average(sampling, weights=weights), np.average(alone, weights=weights))

    def _errors_alone(self) -> dict[str, float]:
        """Return the expected distance of each attribute from the model, records.

        A learner shrinks noisy counts, so it is that of the best linear estimate: the noise v of a cell becomes
        v s / (v + s), where s, the variance of the true counts, is that of the noisy ones less v. Where it seems to be
        less than that of the attributes on average, it is taken for that: what is 0 by chance is no error of 0.
        """
        pooled = self.session.pooled()
        alone = {clique[0]: place for place, clique in enumerate(pooled.structure.cliques) if len(clique) == 1}
        tables = [pooled.tables.group(place).reshape(-1) for place in alone.values()]
        variances = pooled.variances[list(alone.values())]
        noisy = np.array([counts.var(ddof=min(1, counts.size - 1)) for counts in tables])
        spread = np.maximum(noisy - variances, 0.0)
        spread = np.maximum(spread, spread.mean())
        cell = np.sqrt(variances * spread / (variances + spread))
        sizes = np.array([counts.size for counts in tables])
        return dict(zip(alone, (_MEAN_NORMAL * sizes * cell).tolist(), strict=True))

    def join_forest(self) -> None:
        """Choose the edges of a spanning forest on the model of single attributes, and measure them."""
        told, edges = predict_tables(self.fit, self.pairs), count_edges(self.workload)
        each = share_of(self.whole, _CHOICE / edges)
        offset = _OFFSET * self.noise(_FOREST_AT_MOST / edges)

        def scored(fitting: Sequence[Clique]) -> TableDistance:
            return score_candidates(self.session, fitting, told, self.records, offset)

        tree = choose_forest(self.growth, self.pairs, self._fitting_forest, scored, each)
        self.progress("selecting: a forest of pairs", len(tree), edges)
        if not tree:
            return
        noise = float(np.mean([self.cells(pair) for pair in tree])) * self.noise(1 / len(tree)) / self.records
        self.measure_together(tree, min(_FOREST_AT_MOST, max(_FOREST, (noise / _FOREST_NOISE) ** 2)))
        self._record(tree, epsilon=epsilon_of(each))

    def _fitting_forest(self, pairs: Sequence[Clique]) -> list[Clique]:
        """Return the pairs that the forest may have; under constraints their tables are in the model too."""
        if self.workload.domain.scopes:
            return [pair for pair in pairs if self.growth.size.fits(pair, self.options.limits())]
        room, sizes = self.growth.size.room(self.options.limits()), self.session.domain.sizes
        return [(one, two) for one, two in pairs if room.allows(sizes[one] * sizes[two], 2)]

    def is_dense(self) -> bool:
        """Whether pairs are nearly as far from the forest's model as the forest's own pairs are from independence."""
        tree = [clique for clique in self.had if len(clique) > 1]
        if not 0 < len(tree) < len(self.pairs):
            return False
        self.learn_measured()
        told = predict_tables(self.fit, [*self.alone, *self.pairs])
        move = TableDistance.move(self.session.terms) / (_MEAN_NOISE * self.records)
        part = min(_MEAN, move**2 / (2 * float(self.whole.rho)))
        scores = score_candidates(self.session, self.pairs, told, self.records)
        mean = self.session.score(scores, share_of(self.whole, part), mean=True)
        by_chance = self._distance_by_chance(told)
        apart = math.sqrt(max(0.0, float(mean.values[0]) ** 2 - by_chance**2)) - _TEST_DEVIATIONS * mean.deviation
        depends = [np.abs(told[pair] - np.outer(told[pair[:1]], told[pair[1:]])).sum() for pair in tree]
        beside, whole = self.records * float(np.mean(depends)), sum(map(self.pull, self.pairs))
        noise = np.mean([self.cells(pair) * self.noise(self.left * self.pull(pair) / whole) for pair in self.pairs])
        # A fifth to a third of the noise of all pairs stays where it is small, and hardly more than a tenth of the
        # records where it is not.
        enough = max(_DENSE * beside, min(float(noise) / 4, _CLASSES_ERROR * self.records))
        self._record([], apart=apart / self.records, enough=enough / self.records)
        return apart > enough

    def measure_all_pairs(self) -> None:
        """Measure all pairs with what is left, so that their noise, summed over cells, is least."""
        self.growth.add(*(pair for pair in self.pairs if pair not in self.growth.cliques))
        self._level_up({pair: self.pull(pair) for pair in self.pairs}, self.left * _ROUNDED)
        self.notes.insert(0, _SWITCHED_NOTE)

    def look_around(self) -> None:
        """Score all candidates with noise and take the best set of tables, a few times."""
        for look in range(1, _LOOKS + 1):
            limits = self.options.limits((look / _LOOKS) ** _RAMP, least=self.growth.size)
            candidates = [clique for clique in self._candidates(limits) if len(clique) <= _LOOK_ORDER]
            pairs: list[Clique] = [clique for clique in candidates if len(clique) == 2]
            if look == 1 and len(candidates) > _MANY * len(pairs) > 0:
                candidates = pairs
            if not candidates or self.left <= _SCORES:
                return
            self.learn_measured()
            scores = score_candidates(
                self.session, candidates, predict_tables(self.fit, candidates), self.session.pooled().total
            )
            noisy = self.session.score(scores, share_of(self.whole, _SCORES))
            gains = shrink_scores(noisy.values, noisy.deviation, [self.cells(clique) for clique in candidates])
            taken = self._best(dict(zip(candidates, gains.tolist(), strict=True)), limits, careful=look < _LOOKS - 1)
            self.growth.add(*taken)
            self._record(taken, deviation=noisy.deviation)
            self.progress(f"selecting: {len(taken)} tables", look, _LOOKS)
            if not taken:
                return
            tables = [*(clique for clique in self.had if len(clique) > 1), *taken]
            part = _LOOK_PART * (1.0 if look < _LOOKS else 0.2)
            self._level_up({clique: self.pull(clique) for clique in tables}, self.left * part)

    def look_deeper(self) -> None:
        """Score sets of more than three attributes, and take those that stand out from the others."""
        for look in range(1, _DEEP_LOOKS + 1):
            limits = self.options.limits()
            candidates = [clique for clique in self._candidates(limits) if len(clique) > _LOOK_ORDER]
            if not candidates or self.left <= _SCORES or self.score_noise(len(candidates)) > _SCORE_NOISE:
                return
            self.learn_measured()
            told, total = predict_tables(self.fit, candidates), self.session.pooled().total
            scores = score_candidates(self.session, candidates, told, total, weighted=False)
            noisy = self.session.score(scores, share_of(self.whole, _SCORES))
            chance = [_MEAN_NORMAL * np.sqrt(total * told[one] * (1 - told[one])).sum() for one in candidates]
            beyond = noisy.values - np.array(chance)
            beyond -= np.median(beyond)
            gains = {
                one: float(gain)
                for one, gain in zip(candidates, beyond, strict=True)
                if gain > _DEEP_DEVIATIONS * noisy.deviation
            }
            taken = self._best(gains, limits, careful=look < _DEEP_LOOKS) if gains else []
            self.growth.add(*taken)
            self._record(taken, deviation=noisy.deviation)
            if not taken:
                return
            tables = [*(clique for clique in self.had if len(clique) > 1), *taken]
            self._level_up({clique: self.pull(clique) for clique in tables}, self.left * _LOOK_PART)

    def _best(self, gains: Mapping[Clique, float], limits: Limits, *, careful: bool) -> list[Clique]:
        """Return the tables that are predicted to save most, over structures found at several prices of a cell."""
        sizes, workload = self.session.domain.sizes, self.workload
        tables = [clique for clique in self.had if len(clique) > 1]
        budget = self.left + sum(self.had[clique] for clique in tables)
        level = self.noise(budget) / _MEAN_NORMAL
        worth = _Worth(
            gains=gains,
            pulls={clique: self.pull(clique) for clique in gains},
            lasting={clique: lasting_noise(math.prod(sizes[name] - 1 for name in clique)) for clique in gains},
            weights={clique: float(workload.weight(clique)) for clique in gains},
            committed=sum(map(self.pull, tables)),
            level=level,
            careful=careful,
        )
        searched = list(gains)
        if len(searched) > _SEARCHED:
            searched = worth.best(searched, lambda _: True, {})[1]
        best: tuple[float, list[Clique]] = (0.0, [])
        for penalty in _PENALTIES:
            size = ModelSize(self.session.domain, self.growth.cliques)

            def fits(clique: Clique, size: ModelSize = size) -> bool:
                if not (size.may_fit(clique, limits) and size.fits(clique, limits)):
                    return False
                size.add(clique)
                return True

            price = penalty * level
            worth.best(searched, fits, {one: price * worth.weights[one] * self.cells(one) for one in searched})
            around: dict[str, list[frozenset[str]]] = {}
            for cluster in map(frozenset, size.clusters()):
                for name in cluster:
                    around.setdefault(name, []).append(cluster)
            inside = [one for one in gains if any(cluster.issuperset(one) for cluster in around[one[0]])]
            best = max(best, worth.best(inside, lambda _: True, {}), key=lambda found: found[0])
        return best[1]

    def pick_rounds(self) -> None:
        """Pick tables by the exponential mechanism and measure them, as long as they teach more than their noise."""
        for number in range(_ROUNDS):
            part = self.left * _ROUND_PART * _ROUNDED
            limits = self.options.limits(min(1.0, 1 - self.left + part), least=self.growth.size)
            candidates = self._candidates(limits)
            if not candidates:
                return
            self.learn_measured()
            told, total = predict_tables(self.fit, candidates), self.session.pooled().total
            picks = min(len(candidates), max(3, round(_PICKS * len(self.alone) * _MORE_PICKS**number)))
            tables = part * (1 - _ROUND_CHOICE)
            scores = score_candidates(self.session, candidates, told, total, _OFFSET * self.noise(tables / picks))
            choice = self.session.select(scores, share_of(self.whole, part * _ROUND_CHOICE), picks)
            batch = self._apart(choice.cliques, limits)
            if not batch:
                return
            measured = self.measure_together(batch, tables * math.sqrt(len(batch) / picks))
            self._record(batch, epsilon=epsilon_of(share_of(self.whole, part * _ROUND_CHOICE / picks)))
            self.progress(f"selecting: {len(batch)} tables", number + 1, _ROUNDS)
            gained, lost = self._taught(measured, told, total)
            if _MEAN_NORMAL**2 * gained < _STOP**2 * lost:
                return

    def _candidates(self, limits: Limits) -> list[Clique]:
        """Return what may still be measured."""
        return [
            clique
            for clique in informative_candidates(self.session)
            if clique not in self.growth.cliques and self.growth.size.may_fit(clique, limits)
        ]

    def _apart(self, cliques: Sequence[Clique], limits: Limits) -> list[Clique]:
        """Take those of the cliques, in their order, that fit and share no pair and no triangle with one taken."""
        batch, pairs = list[Clique](), set[Clique]()
        near: defaultdict[str, set[str]] = defaultdict(set)
        for clique in cliques:
            own = set(itertools.combinations(clique, 2))
            closes = len(clique) == 2 and near[clique[0]] & near[clique[1]]
            if pairs & own or closes or not self.growth.size.fits(clique, limits):
                continue
            pairs |= own
            for one, two in own:
                near[one].add(two)
                near[two].add(one)
            batch.append(clique)
            self.growth.add(clique)
        return batch

    def _taught(self, measured: NoisyTables, told: Mapping[Clique, FloatArray], total: float) -> tuple[float, float]:
        """Return how far the measured tables were from the model, without the noise of the measurement, and the noise
        that they will have at the end; sums of squares, weighted records."""
        tables = [clique for clique in self.had if len(clique) > 1]
        budget, whole = self.left + sum(self.had[clique] for clique in tables), sum(map(self.pull, tables))
        sizes, gained, lost = self.session.domain.sizes, 0.0, 0.0
        for number, clique in enumerate(measured.structure.cliques):
            apart = measured.tables.group(number).reshape(-1) - total * told[clique].reshape(-1)
            weight, cells = float(self.workload.weight(clique)), apart.size
            gained += weight**2 * cells * (float((apart**2).sum()) - cells * float(measured.variances[number]))
            # What a table tells of its attributes one by one is not lost.
            own = cells - 1 - sum(sizes[name] - 1 for name in clique)
            lost += (weight * own * self.noise(budget * self.pull(clique) / whole)) ** 2
        return gained, lost

    def spend_rest(self) -> None:
        """Spend what is left on all tables, those of single attributes too as far as the others do not tell them."""
        if self.left <= LEFT:
            return
        tables = [clique for clique in self.had if len(clique) > 1]
        wanted = {clique: self.pull(clique) for clique in tables}
        if not tables:
            wanted = dict.fromkeys(self.alone, 1.0)
        else:
            holding = Counter[Clique]()
            for clique, weight in self.workload.weights.items():
                for few in (1, 2):
                    for inside in itertools.combinations(clique, few):
                        holding[inside] += float(weight)  # type: ignore[assignment]
            scale = float(np.mean([self.workload.weight(pair) for pair in self.pairs]))
            scale /= float(np.mean([holding[pair] for pair in self.pairs]))
            sizes = self.session.domain.sizes
            told: defaultdict[str, float] = defaultdict(float)
            for clique in tables:
                for name in clique:
                    told[name] += wanted[clique] * sizes[name] / self.cells(clique)
            for one in self.alone:
                # A table of one attribute is not shrunk, so all of its noise counts.
                alone = pull(2 * scale * holding[one] * self.cells(one)) - told[one[0]]
                if alone > 0:
                    wanted[one] = alone
        self._level_up(wanted, self.left * _ROUNDED)

    def _level_up(self, wanted: Mapping[Clique, float], part: float) -> None:
        parts = level_up(wanted, self.had, part)
        least = sum(parts.values()) / len(parts) / 100  # what is next to nothing may need noise too wide to draw
        parts = {clique: more for clique, more in parts.items() if more > least or clique not in self.had}
        scale = part / sum(parts.values())
        self.measure({clique: more * scale for clique, more in parts.items()})

    def _record(self, tables: Sequence[Clique], **more: float) -> None:
        chosen = ", ".join(map(clique_text, tables))
        self.trace.append({"round": len(self.trace) + 1, "chosen": chosen, **more, "cells": self.growth.size.cells()})

    def selection(self, learner: str | None = None) -> Selection:
        """Return what came of it."""
        left_out = self.growth.left_out(informative_candidates(self.session), self.options)
        return Selection(
            structure=self.growth.structure,
            measure=self.growth.widest() if self.left > LEFT else {},
            trace=self.trace,
            notes=[*self.notes, *(left_out if learner is None else [])],
            learner=learner,
        )


def shrink_scores(values: FloatArray, deviation: float, cells: Sequence[int]) -> FloatArray:
    """Return the expected distances given noisy ones, records: shrunk to what tables of as many cells have.

    values: noisy distances, (candidates,), records. deviation: of their noise. Empirical Bayes: distances are normal
    around a line in the logarithm of the cells, and what varies more than the noise is theirs.

    >>> shrink_scores(np.array([0.0, 10.0]), 100.0, [4, 4]).round(6).tolist()
    [5.0, 5.0]
    """
    logs = np.log(np.asarray(cells, float))
    columns = [np.ones(len(values))]
    if len(values) > 20 and np.ptp(logs) > 0:
        columns.append(logs)
    design = np.column_stack(columns)
    expected = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    spread = float(((values - expected) ** 2).sum()) / max(1, len(values) - design.shape[1])
    own = max(0.0, spread - deviation**2)
    part = own / (own + deviation**2) if own else 0.0
    shrunk: FloatArray = np.maximum(expected + (values - expected) * part, 0.0)
    return shrunk
