"""The published algorithm for binary t-wise models, with noise that keeps its promise; to compare with.

Half of the budget: a logistic regression of every attribute on the products of up to t - 1 others, by Frank-Wolfe with
private choices of direction. Half: the parities by private multiplicative weights, each round a choice of the parity
that is furthest off and its measurement. Then the recovery formula. The model is a function of the session's steps, so
that a saved release gives the same model again.

Recovery: given all others, z_i = 1 has probability sigma(2 d_i h), a polynomial of order t - 1: so a regression's
weight of the monomial I is v_i(I) = 2 h(I + i). Where I + i is maximal, E[d_I v_i] / 2 = 1/2 sum over I' that hold I of
v_i(I') Q(I' - I) is h(I + i) too, Q the parities; it averages what noise puts on I's larger neighbours.

Multiplicative weights: the update D ~ D exp(z_I (measured - current) / 2), gone through several times over all that was
measured.

Sources: Zhang, Kamath, Kulkarni and Wu (2020), Algorithm 1 and t-wise models; Klivans and Meka (2017); Hardt, Ligett
and McSherry (2012), A simple and practical algorithm for differentially private data release, for the offline form of
multiplicative weights.
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
from dpgm_core.learning import Descent, NodeGradients, Regressions
from dpgm_core.privacy import descent_temperature, temperature
from dpgm_mrf.common import steps_budget
from dpgm_mrf.polynomials import clique_of, degrees, local, monomials_of, transform

__all__ = ["PublishedMethod", "multiply_weights", "recover_polynomial"]

#: Of the budget, for the attributes alone where the number of records is not public.
_TO_TOTAL = Fraction(1, 20)
#: Steps of Frank-Wolfe at least and at most; each reads the records once.
_MIN_STEPS, _MAX_STEPS = 5, 250
#: Units of a weight as handed to core, at most.
_UNITS = 2**16


@frozen(kw_only=True, eq=False)
class PublishedMethod:
    """Plan of the published algorithm for a model over `structure`, decided by public facts.

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
        """Regressions of every attribute on the products of the others; None where all stand alone."""
        several = [clique for clique in self.products if len(clique) > 1]
        if not several:
            return None
        return Regressions(candidates=Structure(self.structure.domain, several), loss="logistic")

    @property
    def radius(self) -> Fraction:
        """R = 2 lambda."""
        return 2 * Fraction(str(self.width))

    def measure(self, curator: Curator, progress: Progress) -> NoisyTables:
        """Take all steps of a session; return its release. Raises BudgetError before the charge if it is too small."""
        budget = steps_budget(curator.remaining, "mrf-walsh")
        self._check(curator, budget)
        workload = Workload.of(self.structure.domain, self.products, max_cells=2**self.order)
        with curator.session(workload=workload) as session:
            total = curator.terms.declared_total
            if total is None:
                alone = [(name,) for name in self.attributes]
                total = session.measure(alone, session.budget * _TO_TOTAL, contrasts=True).total
            half = session.remaining * Fraction(1, 2)
            regressions = self.regressions
            if regressions is not None:
                self._descend(
                    session, regressions, half, self._steps(regressions, half, total, curator.terms), progress
                )
            self._choose_and_measure(session, total, progress)
            return session.pooled()

    def coefficients(self, release: NoisyTables, above: float) -> FloatArray:
        """The polynomial out of the steps of a release that `measure` made, (2^p,); see `recover_polynomial`.

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
            final = _replay_steps(regressions, float(self.radius), descents)
            for (name, _), row in zip(regressions.rows, final, strict=True):
                weights[place[name]][columns] = row
        steps = [one for one in release.steps if isinstance(one, NoisyTables) and not one.holdout]
        logs: FloatArray = np.zeros(1 << len(self.attributes))
        means: list[tuple[int, float]] = []
        total = steps[0].total
        for one in steps:
            means += self._means(one, total)
            logs = multiply_weights(len(logs), means, logs)
        weighed = np.exp(logs - logs.max())
        return recover_polynomial(weights, transform(weighed / weighed.sum()), self.inside, above)

    def _check(self, curator: Curator, budget: Budget) -> None:
        terms = curator.terms
        regressions = self.regressions
        part = budget if terms.declared_total is not None else budget * (1 - _TO_TOTAL)
        half = part * Fraction(1, 2)
        try:
            temperature(self._each(half), 1, TableDistance.move(terms))
            if regressions is not None:
                self._warmth(regressions, half, _MIN_STEPS, terms)
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
            target = 0.5 * math.sqrt(pull * float(half.epsilon) / share)
        else:
            target = 0.25 * (pull * math.sqrt(float(half.rho) / share)) ** (2 / 3)
        steps = min(_MAX_STEPS, max(_MIN_STEPS, math.ceil(target)))
        while steps > _MIN_STEPS:
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

    def _descend(
        self, session: Session, regressions: Regressions, budget: Budget, steps: int, progress: Progress
    ) -> None:
        weights, radius = np.zeros(regressions.allowed.shape), float(self.radius)
        for step in range(1, steps):
            progress("regressions", step - 1, steps - 1)
            # Cut towards 0 only where it is handed over, so that the sum stays within the radius and nothing is lost.
            handed = np.fix(weights * self._grid * (1 - 1e-12)).astype(np.int64)
            descent = session.descend(self._gradients(regressions, handed), budget * Fraction(1, steps - 1))
            weights = _move_weights(weights, radius, step, descent)

    def _choose_and_measure(self, session: Session, total: float, progress: Progress) -> None:
        """Make as many rounds as attributes: half of each for the choice, half for the measurement."""
        each = self._each(session.remaining)
        products, inside = self.products, self.inside
        candidates = Structure(self.structure.domain, products)
        starts = np.array([part.start for part in candidates.slices])
        logs: FloatArray = np.zeros(1 << len(self.attributes))
        means: list[tuple[int, float]] = []
        for step in session.steps:
            if isinstance(step, NoisyTables):
                means += self._means(step, total)
        rounds = self._rounds
        for number in range(rounds):
            progress("parities", number, rounds)
            logs = multiply_weights(len(logs), means, logs) if means else logs
            weighed = np.exp(logs - logs.max())
            predicted = np.zeros(candidates.cells)
            predicted[starts] = total * transform(weighed / weighed.sum())[inside]  # a table with just this contrast
            chosen = session.select(TableDistance(candidates=candidates, predicted=predicted, contrast=True), each)
            clique = products[chosen.chosen[0][0]]
            means += self._means(session.measure([clique], each, contrasts=True), total)

    @property
    def _rounds(self) -> int:
        return len(self.attributes)

    def _each(self, budget: Budget) -> Budget:
        return budget * Fraction(1, 2 * self._rounds)

    def _means(self, step: NoisyTables, total: float) -> list[tuple[int, float]]:
        """Return the means of monomials that a step measured; the number of records is none."""
        return [
            (int(local(clique, self.attributes)[-1]), min(1.0, max(-1.0, float(sum_of) / total)))
            for clique, sum_of in zip(step.structure.cliques, step.measured, strict=True)
            if clique
        ]


def _move_weights(weights: FloatArray, radius: float, step: int, descent: Descent) -> FloatArray:
    """2 / (step + 2) of the way to the vertices that were chosen."""
    share = 2 / (step + 2)
    after = weights * (1 - share)
    for row, column, sign in descent.picks:
        after[row, column] += share * radius * sign
    return after


def _replay_steps(regressions: Regressions, radius: float, descents: Sequence[Descent]) -> FloatArray:
    """The weights after all steps, (rows, columns)."""
    weights: FloatArray = np.zeros(regressions.allowed.shape)
    for step, descent in enumerate(descents, 1):
        weights = _move_weights(weights, radius, step, descent)
    return weights


_PASSES = 20


def multiply_weights(size: int, measured: Sequence[tuple[int, float]], start: FloatArray | None = None) -> FloatArray:
    """The log-probabilities of the distribution over `size` states that the measured means of monomials lead to.

    measured: (monomial, mean), oldest first. start: log-probabilities to begin with, (size,); none: uniform.

    >>> np.exp(multiply_weights(4, [(1, 0.5)])).round(3).tolist()
    [0.375, 0.125, 0.375, 0.125]
    """
    logs = np.zeros(size) if start is None else np.array(start, np.float64)
    states, parity = np.arange(size), degrees(size) % 2
    signs = [1.0 - 2.0 * parity[states & monomial] for monomial, _ in measured]
    for _ in range(_PASSES):
        for sign, (_, mean) in zip(signs, measured, strict=True):
            weights = np.exp(logs - logs.max())
            logs += sign * ((mean - float(sign @ weights) / float(weights.sum())) / 2)
    normalised: FloatArray = logs - (logs.max() + math.log(float(np.exp(logs - logs.max()).sum())))
    return normalised


def recover_polynomial(
    weights: Sequence[FloatArray], parities: FloatArray, inside: IntArray, above: float
) -> FloatArray:
    """The polynomial, (2^p,).

    weights: of each attribute's regression, at the monomials of the others, (2^p,). parities: Q, of all monomials,
    (2^p,). inside: the monomials that may have a coefficient. above: the largest monomials whose coefficient is above
    it in absolute value are kept, with all inside them, and the rest is 0. A maximal monomial's coefficient is the mean
    over its attributes of the sum above, one inside another the mean of v_i(I) / 2.

    >>> weights = [np.array([0.0, 0, 0.8, 0]), np.array([0.0, 0.8, 0, 0])]
    >>> recover_polynomial(weights, np.array([1.0, 0, 0, 0.3]), np.array([1, 2, 3]), 0.2).tolist()
    [0.0, 0.0, 0.0, 0.4]
    """
    size = len(parities)
    averaged = [_expected(one, parities) for one in weights]
    coefficients = np.zeros(size)
    covered = np.zeros(size, np.bool_)
    may = set(inside.tolist())
    for monomial in sorted(may, key=lambda one: (-one.bit_count(), one)):
        places = [place for place in range(len(weights)) if monomial >> place & 1]
        of = weights if covered[monomial] else averaged
        value = sum(float(of[place][monomial ^ 1 << place]) for place in places) / (2 * len(places))
        if covered[monomial]:
            coefficients[monomial] = value
        elif abs(value) > above:
            coefficients[monomial], within = value, monomial
            while within:  # all that lie in it
                covered[within] = True
                within = (within - 1) & monomial
    return coefficients


def _expected(weights: FloatArray, parities: FloatArray) -> FloatArray:
    """E[d_I v] for all I, (2^p,): the sum over I' that hold I of v(I') Q(I' - I)."""
    expected = np.zeros_like(weights)
    everything = np.arange(len(weights))
    for larger in np.flatnonzero(weights).tolist():
        parts = everything[everything & ~larger == 0]
        expected[parts] += weights[larger] * parities[larger ^ parts]
    return expected
