"""Conditional tables from two releases: a first look that decides how the second one's budget is divided.

Source: Chowdhury, Rekatsinas, Jha, "Data-Dependent Differentially Private Parameter Learning for Directed Graphical
Models", ICML 2020; `dpgm_bayes_net.allocation` says what of it is our reading.

Privacy: whatever the first stage's tables were, the budgets of the second sum to the same number, so the two stages
cost what their budgets come to together: p(y1, y2 | D) / p(y1, y2 | D') is at most exp(eps_I) for y1 times, at that y1,
exp(eps_II) for y2, and likewise with rho. Because the sum is fixed before the first stage no privacy filter is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from attrs import evolve, frozen

from dpgm_bayes_net.allocation import (
    Need,
    assign_tables,
    divide_budget,
    least_share,
    losses_by_table,
    needs_of,
    optimal_shares,
)
from dpgm_bayes_net.tables import Counts, conditionals, counts_of, faint_rows, finite, reorder_families
from dpgm_core import (
    Budget,
    BudgetError,
    Clique,
    Curator,
    Dag,
    Fit,
    FloatArray,
    Inference,
    Model,
    Noise,
    NoisyTables,
    OptionError,
    Progress,
    Randomness,
    Structure,
    Tables,
    at_least_zero,
    flag,
    option,
)
from dpgm_core.learning import Resources, consistent

__all__ = ["BayesNetTwoStage", "Stage", "pool_stages"]


def _part(instance: object, attribute: Any, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise OptionError(f"{attribute.name} must lie between 0 and 1, got {value!r}; each stage needs some budget")


def _rate(instance: object, attribute: Any, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise OptionError(f"{attribute.name} must lie in (0, 1], got {value!r}")


@frozen(kw_only=True)
class BayesNetTwoStage:
    """A Bayesian network over the structure's directed graph, from a first look and a release that it steers.

    It foresees nothing for a plan: how noisy each table of the second release is depends on the first.

    >>> BayesNetTwoStage(weights="error", pool=False).first_share
    0.1
    """

    first_share: float = option(0.1, help="share of the budget that the first stage costs", validator=_part)
    sampling_rate: float = option(
        1.0,
        help="of each person to take part in the first stage; below 1 for pure budgets only",
        unit="probability",
        validator=_rate,
    )
    weights: Literal["paper", "error", "structure", "even"] = option(
        "paper", help="what divides the second stage's budget: graph times expected error, either alone, or nothing"
    )
    measure: Literal["families", "maximal"] = option(
        "families", help="measure each family, or only those in no other one, mostly more accurate"
    )
    pool: bool = option(
        True, help="learn from both stages, by their noise; else the first one only decides", validator=flag
    )
    consistency: bool = option(True, help="make the tables of a stage agree on what they share", validator=flag)
    smoothing: float = option(
        0.25,
        help="pseudo-count added to each cell after negative counts are taken as 0",
        unit="standard deviations of the noise in the cell",
        validator=at_least_zero,
    )

    def check(self, structure: Structure, inference: Inference) -> None:
        """Refuse a structure that is no directed graph, StructureError, and one whose conditional tables could not hold
        the domain's constraints. No engine is made: there is no inference."""
        Dag.of(structure).check_constraints()

    def estimate_resources(self, structure: Structure, inference: Inference) -> Resources:
        """Estimate by the number of cells, as measured on one table of 1000 x 500 labels; see `ResourceEstimator`."""
        return Resources.by_cells(structure, each=300, cpu_seconds=1e-5, calls=0)

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Take the two releases and read the conditional tables off them.

        Of saved releases it takes exactly the two of one run of its own, in their order. Raises StructureError for no
        directed graph, BudgetError for (epsilon, delta), and for subsampling under zCDP; all before any record is read.
        """
        dag = Dag.of(curator.structure)
        dag.check_constraints()
        cliques = dag.maximal if self.measure == "maximal" else dag.families
        whole = curator.remaining
        self._check_budget(whole, curator.replayed)
        first = whole * Fraction(str(float(self.first_share)))
        if curator.replayed:
            one, two = self._saved(curator, first, cliques)
            needs = self._needs(dag, one, cliques)
        else:
            # Not what remains after stage I: its noise may cost a trifle less than was asked, and with the two sums
            # known exactly a replay finds both budgets again.
            rest = whole - first
            _dry_run_second_stage(curator, dict.fromkeys(cliques, rest * least_share(len(cliques))))
            progress(f"measuring: stage I, {first}", 0, 2)
            one = self._first(curator, first, cliques)
            needs = self._needs(dag, one, cliques)
            parts = optimal_shares(losses_by_table(needs, len(cliques), self.weights), rest.kind)
            progress(f"measuring: stage II, {rest}", 1, 2)
            two = curator.release(budget=divide_budget(rest, parts, cliques), cliques=cliques)
            progress("measuring", 2, 2)
        fit = self._fit(dag, cliques, needs, one, two)
        return evolve(fit, model=reorder_families(fit.model, curator.structure))

    def _check_budget(self, budget: Budget, replayed: bool) -> None:
        if budget.kind == "approx" and replayed:
            raise BudgetError(
                f"learner bayes-net-two-stage was given releases that cost {budget} together; it learns again from the "
                "two of one run of its own, whose budgets are both pure or both zCDP"
            )
        if budget.kind == "approx":
            raise BudgetError(
                f"learner bayes-net-two-stage was asked to spend {budget}; two releases would each need a part of "
                f"delta, which wastes it: ask for {budget.zcdp_within()}, the most that stays within it, as "
                "Budget.zcdp_within gives it"
            )
        if budget.kind in ("zcdp", "gdp") and self.sampling_rate < 1 and not replayed:
            raise BudgetError(
                f"learner bayes-net-two-stage was asked for sampling_rate = {self.sampling_rate:g} under {budget}; a "
                f"subsample costs no less {'rho' if budget.kind == 'zcdp' else 'mu'} and tells less, so leave "
                "sampling_rate = 1, or ask for a pure epsilon"
            )

    def _saved(self, curator: Curator, first: Budget, cliques: Sequence[Clique]) -> tuple[NoisyTables, NoisyTables]:
        """Both releases of a replay, before any work."""
        try:
            one = curator.release(budget=first, cliques=cliques)
            return one, curator.release(cliques=cliques)
        except BudgetError as error:
            raise BudgetError(
                "learner bayes-net-two-stage learns again from the two releases of one run of its own, first stage "
                f"first, with its first_share and measure (here {self.first_share:g} and {self.measure!r}): {error}"
            ) from None

    def _first(self, curator: Curator, budget: Budget, cliques: Sequence[Clique]) -> NoisyTables:
        if self.sampling_rate == 1:
            return curator.release(budget=budget, cliques=cliques, split="even")
        with curator.rounds(1, sampling_rate=self.sampling_rate, cliques=cliques, budget=budget) as rounds:
            return rounds.next()

    def _needs(self, dag: Dag, release: NoisyTables, cliques: Sequence[Clique]) -> tuple[Need, ...]:
        """Return the need of each conditional table by the first stage."""
        stage = Stage.of(release, cliques)
        # All tables are of one subsample, which agrees with itself: only the noise is to be made consistent.
        counts = self._counts(dag, stage.tables, stage.noise)
        return needs_of(dag, counts, cliques, stage.noise)

    def _counts(self, dag: Dag, tables: Tables, variances: FloatArray) -> dict[str, Counts]:
        """Each family's counts: from all tables made to agree, or from the smallest that holds it."""
        if self.consistency:
            return counts_of(consistent(tables, variances), variances, dag.families)
        structure, counts = tables.structure, {}
        table_of = assign_tables(dag, structure.cliques)
        for family in dag.families:
            number = table_of[family[0]]
            own = Tables(structure.only(number), tables.values[structure.slices[number]])
            counts.update(counts_of(own, variances[[number]], [family]))
        return counts

    def _fit(
        self, dag: Dag, cliques: Sequence[Clique], needs: Sequence[Need], first: NoisyTables, second: NoisyTables
    ) -> Fit:
        one, two = Stage.of(first, cliques), Stage.of(second, cliques)
        counts = self._counts(dag, *(pool_stages(one, two) if self.pool else (two.tables, two.noise)))
        # What was asked for each table, from the release: a replay shows what was done, to the last digit.
        calibrations, of_group = second.calibrations, second.measurement.of_group
        budgets = [calibrations[of_group[second.structure.find(clique)[0]]].budget for clique in cliques]
        amounts = np.array([float(budget.epsilon + budget.rho + budget.mu_squared) for budget in budgets])
        parts = amounts / amounts.sum()
        notes = [
            f"stage I cost {first.cost} and stage II {second.cost}; the {len(cliques)} tables of stage II got "
            f"{parts.min():.1%} to {parts.max():.1%} of it, weights = {self.weights!r}",
            *faint_rows(counts),
        ]
        return Fit(
            model=Model.from_cpds(dag, conditionals(counts, self.smoothing, dag)),
            trace=_trace(needs, parts, one, two),
            notes=notes,
        )


def _trace(needs: Sequence[Need], parts: FloatArray, one: Stage, two: Stage) -> list[Mapping[str, float]]:
    """A row for each attribute, in the domain's order, with share and deviations of the table it is read off."""
    sds = [np.sqrt(stage.means(stage.variances(other.tables.values))) for stage, other in ((one, two), (two, one))]
    return [
        {
            "node": node,
            "table": need.table,
            "W": need.structure,
            "G": need.error,
            "S": need.influence,
            "share": float(parts[need.table]),
            "sd_first": float(sds[0][need.table]),
            "sd_second": float(sds[1][need.table]),
        }
        for node, need in enumerate(needs)
    ]


class _NoiseCalibrated(Exception):
    """The noise could be made."""


def _dry_run_second_stage(curator: Curator, budgets: Mapping[Clique, Budget]) -> None:
    """Raise now, with nothing read or charged, what the least budgets of stage II would have the mechanism raise."""

    def stop(noise: Sequence[Noise]) -> None:
        raise _NoiseCalibrated

    try:
        curator.release(budget=budgets, accept=stop)
    except _NoiseCalibrated:
        return
    except BudgetError as error:
        raise BudgetError(f"no table of stage II could be given as little as it may have to: {error}") from None


# --------------------------------------------------------------------------------------------------
# The tables of a stage on the scale of all records, and those of two stages together. Post-processing.


@frozen(kw_only=True, eq=False)
class Stage:
    """Release of one stage.

    tables: records. noise: its variance in a cell of each table, (groups,), records**2. rate: of the subsample that was
    counted; tables and noise are already those of all records, 1 / rate and 1 / rate**2 of the subsample's.
    """

    tables: Tables
    noise: FloatArray
    rate: float

    @classmethod
    def of(cls, release: NoisyTables, cliques: Sequence[Clique]) -> Stage:
        """cliques: the release's, in the order wanted."""
        measured = Structure(release.structure.domain, cliques)
        rate = 1.0 if release.round is None else float(release.round.sampling_rate)
        tables = Tables.from_arrays(measured, {clique: release.tables[clique] for clique in cliques})
        places = [release.structure.find(clique)[0] for clique in cliques]
        return cls(tables=tables / rate, noise=finite(release.variances[places]) / rate**2, rate=rate)

    def variances(self, counts: FloatArray) -> FloatArray:
        """Return variances of noise and sampling of each cell, records**2, if `counts` are those of all records.

        Each record is in the subsample with probability q, so that a count n scaled by 1 / q has variance
        n (1 - q) / q.
        """
        return self.tables.repeat(self.noise) + np.maximum(counts, 0.0) * ((1 - self.rate) / self.rate)

    def means(self, variances: FloatArray) -> FloatArray:
        """The mean of a number per cell over each table, (groups,)."""
        return np.array([float(variances[one].mean()) for one in self.tables.structure.slices])


def pool_stages(one: Stage, two: Stage) -> tuple[Tables, FloatArray]:
    """The mean of two stages by inverse variance, cell by cell, and the variance of each table, (groups,).

    What a subsample missed of a count is estimated by the other stage's count. Without sampling the weights are the
    same for all cells of a table, and the mean is the best linear one.

    >>> from dpgm_core import Domain
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> quiet, loud = (
    ...     Stage(tables=Tables(structure, np.array(counts)), noise=np.array([noise]), rate=1.0)
    ...     for counts, noise in (([4.0, 8.0], 1.0), ([8.0, 4.0], 3.0))
    ... )
    >>> mean, variances = pool_stages(quiet, loud)
    >>> mean["a"].tolist(), variances.tolist()
    ([5.0, 7.0], [0.75])
    """
    spreads = finite(np.stack([one.variances(two.tables.values), two.variances(one.tables.values)]))
    most = float(spreads.max())
    precisions = most / spreads
    together = precisions.sum(axis=0)
    mean = (one.tables.values * precisions[0] + two.tables.values * precisions[1]) / together
    return one.tables.like(mean), one.means(most / together)
