"""The published algorithm for binary t-wise models, with noise that keeps its promise; to compare with.

Half of the budget: a logistic regression of every attribute on the products of up to t - 1 others, by Frank-Wolfe with
private choices of direction. Half: the parities by private multiplicative weights, each round a choice of the parity
that is furthest off and its measurement. Then the recovery formula. What comes out is a function of the session's
steps, so that a saved release gives the same model again.

Source: Zhang, Kamath, Kulkarni and Wu (2020), Algorithm 1 and t-wise models; Hardt, Ligett and McSherry (2012) for the
offline form of multiplicative weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction

import numpy as np
from attrs import frozen

from dpgm_core import (
    Budget,
    BudgetError,
    Clique,
    Curator,
    FloatArray,
    IntArray,
    NoisyTables,
    Progress,
    Session,
    Structure,
    TableDistance,
    Terms,
    Workload,
)
from dpgm_core.noise import descent_temperature, temperature
from dpgm_core.selection import Descent, NodeGradients, Regressions
from dpgm_mrf.multiplicative import answered
from dpgm_mrf.polynomials import clique_of, local, monomials_of, transform
from dpgm_mrf.recovery import recovered

__all__ = ["Paper"]

#: Of the budget, for the attributes alone where the number of records is not public.
_TO_TOTAL = Fraction(1, 20)
#: Steps of Frank-Wolfe at least and at most; each reads the records once.
_LEAST_STEPS, _MOST_STEPS = 5, 250
#: Units of a weight as handed to core, at most.
_UNITS = 2**16


@frozen(kw_only=True, eq=False)
class Paper:
    """What the algorithm will do for a model over `structure`: decided by public things.

    attributes: those in cliques. order: t. width: lambda.
    """

    structure: Structure
    attributes: tuple[str, ...]
    order: int
    width: float

    @property
    def inside(self) -> IntArray:
        """The monomials that may have a coefficient."""
        return monomials_of(self.structure, self.attributes, self.order)

    @property
    def products(self) -> tuple[Clique, ...]:
        """Their cliques, in the same order."""
        return tuple(clique_of(one, self.attributes) for one in self.inside.tolist())

    @property
    def regressions(self) -> Regressions | None:
        """Of every attribute on the products of the others; None where all stand alone."""
        several = [clique for clique in self.products if len(clique) > 1]
        if not several:
            return None
        return Regressions(candidates=Structure(self.structure.domain, several), loss="logistic")

    @property
    def radius(self) -> Fraction:
        """R = 2 lambda."""
        return 2 * Fraction(str(self.width))

    def measured(self, curator: Curator, progress: Progress) -> NoisyTables:
        """All steps of a session, and its release. Raises BudgetError for a budget too small, before the charge."""
        budget = curator.remaining.zcdp_within() if curator.remaining.kind == "approx" else curator.remaining
        self._check(curator, budget)
        workload = Workload.of(self.structure.domain, self.products, max_cells=2**self.order)
        with curator.session(workload=workload) as session:
            total = curator.terms.declared
            if total is None:
                alone = [(name,) for name in self.attributes]
                total = session.measure(alone, session.budget * _TO_TOTAL, contrasts=True).total
            half = session.remaining * Fraction(1, 2)
            regressions = self.regressions
            if regressions is not None:
                self._descended(
                    session, regressions, half, self._steps(regressions, half, total, curator.terms), progress
                )
            self._weighted(session, total, progress)
            return session.pooled()

    def coefficients(self, release: NoisyTables, above: float) -> FloatArray:
        """The polynomial out of the steps of a release that `measured` made, (2^p,); see `recovered`.

        Raises BudgetError for any other release.
        """
        regressions = self.regressions
        descents = [one for one in release.steps if isinstance(one, Descent)]
        made = all(one.regressions == regressions and one.radius == self.radius for one in descents)
        if release.session is None or not made or (not descents and regressions is not None):
            raise BudgetError(
                "the release holds no run of mrf-walsh with method = 'paper', this structure, order and width; use "
                "method = 'release', which takes any"
            )
        weights = [np.zeros(1 << len(self.attributes)) for _ in self.attributes]
        if regressions is not None:
            place = {name: number for number, name in enumerate(self.attributes)}
            columns = [sum(1 << place[name] for name in names) for names, _ in regressions.columns]
            final = _walked(regressions, float(self.radius), descents)
            for (name, _), row in zip(regressions.rows, final, strict=True):
                weights[place[name]][columns] = row
        steps = [one for one in release.steps if isinstance(one, NoisyTables) and not one.holdout]
        logs: FloatArray = np.zeros(1 << len(self.attributes))
        told: list[tuple[int, float]] = []
        total = steps[0].total
        for one in steps:
            told += self._means(one, total)
            logs = answered(len(logs), told, logs)
        weighed = np.exp(logs - logs.max())
        return recovered(weights, transform(weighed / weighed.sum()), self.inside, above)

    def _check(self, curator: Curator, budget: Budget) -> None:
        terms = curator.terms
        regressions = self.regressions
        part = budget if terms.declared is not None else budget * (1 - _TO_TOTAL)
        half = part * Fraction(1, 2)
        try:
            temperature(self._each(half), 1, TableDistance.move(terms))
            if regressions is not None:
                self._warmth(regressions, half, _LEAST_STEPS, terms)
        except BudgetError as error:
            raise BudgetError(f"method = 'paper' divides the budget over many choices: {error}") from None

    def _warmth(self, regressions: Regressions, budget: Budget, steps: int, terms: Terms) -> Fraction:
        """The temperature of so many steps. Raises BudgetError where it would be too low."""
        reach = self._gradients(regressions, regressions.zeros()).reach("pure" if budget.kind == "pure" else "zcdp")
        each = budget * Fraction(1, steps - 1)
        return descent_temperature(each, reach, TableDistance.move(terms), len(regressions.choices))

    def _steps(self, regressions: Regressions, half: Budget, total: float, terms: Terms) -> int:
        """T = max(5, .25 (R N sqrt(rho_1))^(2/3)), or max(5, .5 sqrt(R N epsilon_1)), of one regression's budget; at
        most 250, and no more than the budget serves."""
        pull, share = float(self.radius) * total, len(self.attributes)
        if half.kind == "pure":
            wanted = 0.5 * math.sqrt(pull * float(half.epsilon) / share)
        else:
            wanted = 0.25 * (pull * math.sqrt(float(half.rho) / share)) ** (2 / 3)
        steps = min(_MOST_STEPS, max(_LEAST_STEPS, math.ceil(wanted)))
        while steps > _LEAST_STEPS:
            with suppress(BudgetError):
                self._warmth(regressions, half, steps, terms)
                break
            steps -= 1
        return steps

    def _gradients(self, regressions: Regressions, weights: IntArray) -> NodeGradients:
        return NodeGradients(regressions=regressions, weights=weights, radius=self.radius, weights_grid=self._grid)

    @property
    def _grid(self) -> int:
        """Units of a weight: as fine as lookup tables of residuals stay small."""
        return max(1, math.floor(_UNITS / self.radius))

    def _descended(
        self, session: Session, regressions: Regressions, budget: Budget, steps: int, progress: Progress
    ) -> None:
        weights, radius = np.zeros(regressions.allowed.shape), float(self.radius)
        for step in range(1, steps):
            progress("regressions", step - 1, steps - 1)
            # Cut towards 0 only where it is handed over, so that the sum stays within the radius and nothing is lost.
            handed = np.fix(weights * self._grid * (1 - 1e-12)).astype(np.int64)
            descent = session.descend(self._gradients(regressions, handed), budget * Fraction(1, steps - 1))
            weights = _moved(weights, radius, step, descent)

    def _weighted(self, session: Session, total: float, progress: Progress) -> None:
        """As many rounds as attributes: half of each for the choice, half for the measurement."""
        each = self._each(session.remaining)
        products, inside = self.products, self.inside
        candidates = Structure(self.structure.domain, products)
        starts = np.array([part.start for part in candidates.slices])
        logs: FloatArray = np.zeros(1 << len(self.attributes))
        told: list[tuple[int, float]] = []
        for step in session.steps:
            if isinstance(step, NoisyTables):
                told += self._means(step, total)
        rounds = self._rounds
        for number in range(rounds):
            progress("parities", number, rounds)
            logs = answered(len(logs), told, logs) if told else logs
            weighed = np.exp(logs - logs.max())
            predicted = np.zeros(candidates.cells)
            predicted[starts] = total * transform(weighed / weighed.sum())[inside]  # a table with just this contrast
            chosen = session.select(TableDistance(candidates=candidates, predicted=predicted, contrast=True), each)
            clique = products[chosen.chosen[0][0]]
            told += self._means(session.measure([clique], each, contrasts=True), total)

    @property
    def _rounds(self) -> int:
        return len(self.attributes)

    def _each(self, budget: Budget) -> Budget:
        return budget * Fraction(1, 2 * self._rounds)

    def _means(self, step: NoisyTables, total: float) -> list[tuple[int, float]]:
        """What a step told of means of monomials; the number of records is none."""
        return [
            (int(local(clique, self.attributes)[-1]), min(1.0, max(-1.0, float(sum_of) / total)))
            for clique, sum_of in zip(step.structure.cliques, step.measured, strict=True)
            if clique
        ]


def _moved(weights: FloatArray, radius: float, step: int, descent: Descent) -> FloatArray:
    """2 / (step + 2) of the way to the vertices that were chosen."""
    share = 2 / (step + 2)
    found = weights * (1 - share)
    for row, column, sign in descent.picks:
        found[row, column] += share * radius * sign
    return found


def _walked(regressions: Regressions, radius: float, descents: Sequence[Descent]) -> FloatArray:
    """The weights after all steps, (rows, columns)."""
    weights: FloatArray = np.zeros(regressions.allowed.shape)
    for step, descent in enumerate(descents, 1):
        weights = _moved(weights, radius, step, descent)
    return weights
