"""Private Frank-Wolfe: regressions of each attribute on the others, each step a noisy choice of one direction.

Algorithms 1 to 3 of Zhang, Kamath, Kulkarni and Wu, "Privately Learning Markov Random Fields", ICML 2020, with noise
that keeps its promise: the exponential mechanism over exact sums, inside `Session.descend` (docs/proofs.md), in place
of Laplace noise at the printed scale. Everything here is post-processing of the directions that it chose.

The state is whole numbers on a public grid, so that what a record is scored by is exact. It starts at 0; step t of
T - 1 goes mu_t = 2 / (t + 2) of the way to the vertex chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Literal

import attrs
import numpy as np
from attrs import evolve, frozen

from dpgm_core import (
    Budget,
    BudgetError,
    Clique,
    Domain,
    IntArray,
    OptionError,
    Progress,
    Session,
    Structure,
    TableDistance,
    Terms,
    option,
    positive,
    whole,
)
from dpgm_core.learning import NodeGradients, Regressions
from dpgm_core.privacy import descent_temperature
from dpgm_mrf.common import inside

__all__ = ["Course", "FrankWolfe", "MIN_STEPS", "move_weights", "rebuild_weights", "regressions_of", "take_steps"]

#: Steps that "auto" takes at most: each reads the records once, and the last of so many moves a weight by a hundredth
#: of the radius.
MAX_STEPS = 250
#: And at least: at p = 32, rho = .01 and 5,000 records 9 steps find a matching in 7 of 9 runs, the formula's 6 in 1.
MIN_STEPS = 8


@frozen(kw_only=True, eq=False)
class Course:
    """Plan of a run of Frank-Wolfe, decided by public facts before its first step.

    options: of the run. regressions: what is regressed on what. terms: what is protected. budget: of all steps
    together, pure or zCDP.
    """

    options: FrankWolfe
    regressions: Regressions
    terms: Terms
    budget: Budget

    @classmethod
    def of(cls, options: FrankWolfe, regressions: Regressions, terms: Terms, budget: Budget) -> Course:
        """Return the course with the part of a budget that the options let regressions use."""
        used = _used(options, regressions)
        return cls(options=options, regressions=regressions, terms=terms, budget=budget * used)

    @property
    def radii(self) -> tuple[Fraction, ...]:
        """Largest absolute sum of the weights of each choice.

        A width bounds sum_j max_b |W_ij(a, b)| + |theta_i(a)| for every label a, so the one-hot weights of a row of W
        have at most k times the width, k the most labels of a partner: differences of two rows twice that, and all
        rows of an attribute as many times that as it has labels. Of binary attributes w = 2 A.
        """
        width, sizes = Fraction(str(float(self.options.width))), self.regressions.candidates.domain.sizes
        if self.regressions.loss == "logistic":
            return (2 * width,) * len(self.regressions.choices)
        adjacency = self.regressions.candidates.adjacency
        radii = []
        for rows in self.regressions.choices:
            name = self.regressions.rows[rows[0]][0]
            labels = max(sizes[other] for other in adjacency[name])
            radii.append(width * labels * (2 if self.regressions.loss == "pairs" else sizes[name]))
        return tuple(radii)

    @property
    def units(self) -> tuple[int, ...]:
        """The radii in whole units of the weights' grid, at least 1."""
        return tuple(max(1, math.floor(radius * self.options.weights_grid)) for radius in self.radii)

    def gradients(self, weights: IntArray) -> NodeGradients:
        """Return the scores that core is to compute at these weights."""
        return NodeGradients(
            regressions=self.regressions,
            weights=weights,
            radius=max(self.radii),
            weights_grid=self.options.weights_grid,
            residual_grid=self.options.residual_grid,
            clip=self.options.kappa(self.budget.kind, self._labels, self.regressions.loss),
        )

    @property
    def _labels(self) -> list[int]:
        sizes = self.regressions.candidates.domain.sizes
        return [sizes[name] for name in self.regressions.nodes]

    def check(self) -> None:
        """Refuse grids that core does not take, and a budget too small to choose by even in the fewest steps.

        Raises OptionError and BudgetError.
        """
        try:
            self.gradients(self.regressions.zeros())
        except BudgetError as error:  # of units, which no budget mends
            raise OptionError(f"mrf-fw cannot take these options: {error}") from None
        steps = MIN_STEPS if self.options.steps == "auto" else self.options.steps
        if self._pays(steps):
            return
        if self.budget.is_zero:
            raise BudgetError("nothing is left of the budget for mrf-fw to choose by")
        times = 2
        while not evolve(self, budget=self.budget * times)._pays(steps):
            times *= 2
        raise BudgetError(
            f"{self.budget} for {steps - 1} steps of {len(self.regressions.choices)} choices each is too little for "
            f"mrf-fw: every direction would be as likely as any other; give {times:,} times the budget, fewer steps, "
            "or a coarser residual_grid"
        )

    def temperature(self, steps: int) -> Fraction:
        """Return the temperature of each choice, with so many steps; BudgetError where it is too small."""
        gradients = self.gradients(self.regressions.zeros())
        reach = gradients.reach("pure" if self.budget.kind == "pure" else "zcdp")
        return descent_temperature(
            self.each(steps), reach, TableDistance.move(self.terms), len(self.regressions.choices)
        )

    def steps(self, records: float) -> int:
        """T, one more than the steps that are paid for.

        "auto": max(8, .25 (R N sqrt(rho_1))^(2/3)), or max(8, .5 sqrt(R N epsilon_1)), with the budget of one
        regression; less noise by clipping, or more by the relation, counts like records. At most 250, and as many as
        move a weight by a unit of its grid, and as can be paid for.
        """
        if self.options.steps != "auto":
            return self.options.steps
        radius, share = float(max(self.radii)), self.regressions.touched
        pull = radius * max(records, 1.0) * self._quiet()
        if self.budget.kind == "pure":
            target = 0.5 * math.sqrt(pull * float(self.budget.epsilon) / share)
        else:
            target = 0.25 * (pull * math.sqrt(float(self.budget.rho) / share)) ** (2 / 3)
        steps = max(MIN_STEPS, min(math.ceil(target), MAX_STEPS, 2 * max(self.units)))
        while steps > MIN_STEPS and not self._pays(steps):
            steps -= 1
        return steps

    def _pays(self, steps: int) -> bool:
        try:
            self.temperature(steps)
        except BudgetError:
            return False
        return True

    def _quiet(self) -> float:
        """The noise of Algorithm 2 under add-remove, unclipped, over that of this course."""
        gradients, radius = self.gradients(self.regressions.zeros()), float(max(self.radii))
        kind: Literal["pure", "zcdp"] = "pure" if self.budget.kind == "pure" else "zcdp"
        each = gradients.reach(kind) / self.regressions.touched
        bound = (each if kind == "pure" else math.sqrt(each)) / self.options.residual_grid
        plain = 1 / (1 + math.exp(-min(radius, 700.0)))
        return plain / bound / TableDistance.move(self.terms)

    def each(self, steps: int) -> Budget:
        """Return the budget of one step."""
        return self.budget * Fraction(1, steps - 1)


def move_weights(weights: IntArray, course: Course, step: int, picks: Sequence[tuple[int, int, int]]) -> IntArray:
    """Weights after a step, (rows, columns), units of 1/weights_grid: 2 / (step + 2) of the way to the vertices picked.

    Each choice's weights are rounded so that their absolute sum is the exact one, rounded: the largest remainders go
    up. Rounding each to the nearest would let the sum drift out of the radius, rounding all towards 0 would shrink it.
    """
    after = np.zeros_like(weights)
    exact = weights * step  # in units of 1 / (step + 2)
    for picked, units in zip(picks, course.units, strict=True):
        row, column, sign = picked
        exact[row, column] += 2 * sign * units
    for rows, units in zip(course.regressions.choices, course.units, strict=True):
        own = exact[list(rows)]
        whole, rest = np.divmod(np.abs(own).reshape(-1), step + 2)
        total = min((2 * int(np.abs(own).sum()) + step + 2) // (2 * (step + 2)), units)
        up = np.argsort(-rest, kind="stable")[: max(0, total - int(whole.sum()))]
        whole[up] += 1
        after[list(rows)] = whole.reshape(own.shape) * np.sign(own)
    return after


def take_steps(
    session: Session, course: Course, records: float, progress: Progress
) -> tuple[IntArray, list[dict[str, Any]]]:
    """Take all steps: the weights, (rows, columns), and a row of plain values for each step."""
    weights, steps = course.regressions.zeros(), course.steps(records)
    each = course.each(steps)
    trace: list[dict[str, Any]] = []
    for step in range(1, steps):
        progress("regressions", step - 1, steps - 1)
        descent = session.descend(course.gradients(weights), each)
        weights = move_weights(weights, course, step, descent.picks)
        trace.append(
            {
                "step": step,
                "share": 2 / (step + 2),
                "temperature": float(descent.temperature),
                "weights": int(np.count_nonzero(weights)),
            }
        )
    return weights, trace


def rebuild_weights(course: Course, picks: Sequence[Sequence[tuple[int, int, int]]]) -> IntArray:
    """The weights that these directions lead to, from a release that holds them."""
    weights = course.regressions.zeros()
    for step, one in enumerate(picks, 1):
        weights = move_weights(weights, course, step, one)
    return weights


def regressions_of(options: FrankWolfe, domain: Domain, pairs: Iterable[Clique]) -> Regressions | None:
    """Return the regressions on the pairs whose attributes both have several labels; None for no such pair.

    Raises TooLarge for more weights than core takes.
    """
    sizes = domain.sizes
    several = [pair for pair in pairs if min(sizes[name] for name in pair) > 1]
    if not several:
        return None
    binary = all(sizes[name] == 2 for pair in several for name in pair)
    return Regressions(candidates=Structure(domain, several), loss="logistic" if binary else options.regression)


def _used(options: FrankWolfe, regressions: Regressions) -> Fraction:
    """The share of their budget that regressions use.

    All of it; with budget_split = "paper" what the paper's split, rho / (k^2 p) for each two labels in order, adds
    up to for a record: k - 1 of them an attribute.
    """
    if options.budget_split == "touched" or regressions.loss != "pairs":
        return Fraction(1)
    sizes = regressions.candidates.domain.sizes
    return Fraction(regressions.touched, sum(sizes[name] ** 2 for name in regressions.nodes))


#: Standard deviations that one record of 10,000 is beyond.
_RARE = 3.72


def _steps(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 2:
        raise OptionError(f"steps must be 'auto' or a whole number of at least 2, got {value!r}; the first is free")


def _clip(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1):
        raise OptionError(f"clip must be 'auto', none, or a number above 0 and at most 1, got {value!r}")


def _width(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    positive(instance, attribute, value)
    if not 1e-3 <= float(value) <= 1e4:  # type: ignore[arg-type]
        raise OptionError(f"width must lie between 0.001 and 10,000 nats, got {value!r}; models have widths of 1 to 10")


@frozen(kw_only=True)
class FrankWolfe:
    """Options that the selector and the learner `mrf-fw` share.

    >>> [float(FrankWolfe(width=1.2).kappa("zcdp", [2] * p, "logistic")) for p in (3, 16, 32, 128)]
    [0.6763, 0.389, 0.3315, 0.3]
    """

    width: float = attrs.field(
        validator=_width,
        metadata={
            "help": "the largest sum of one attribute's couplings and field, in absolute value; public knowledge",
            "unit": "nats",
            "sample": 1.2,  # of what the conformance kit tries
        },
    )
    steps: int | Literal["auto"] = option(
        "auto",
        help="how often the records are read, and once more; 'auto': by the number of records and the budget",
        unit="steps",
        validator=_steps,
    )
    regression: Literal["softmax", "pairs"] = option(
        "softmax",
        help="of attributes of more than two labels: all labels at once, or each two of them, as in the paper; "
        "logistic where every attribute has two",
    )
    clip: float | Literal["auto"] | None = option(
        "auto",
        help="a record's residuals are shortened together to this mean square (pure budgets: mean); 'auto': 0.3 (0.5) "
        "of many binary attributes, more of few and of other ones",
        validator=_clip,
    )
    residual_grid: int = option(
        128, help="residuals are cut to multiples of 1/residual_grid", unit="units", validator=whole
    )
    weights_grid: int = option(
        64, help="weights are rounded to multiples of 1/weights_grid", unit="units", validator=whole
    )
    least: float = option(0.4, help="couplings above half of it are edges", unit="nats", validator=positive)
    budget_split: Literal["touched", "paper"] = option(
        "touched",
        help="regression 'pairs': charge for the regressions that a record touches, or use no more of the budget than "
        "the paper's rho / (k^2 p) each",
    )
    share_one_way: float = option(0.05, help="of the budget, for every attribute alone", validator=inside)

    def __attrs_post_init__(self) -> None:
        if self.budget_split == "paper" and self.regression != "pairs":
            raise OptionError("budget_split = 'paper' is of Algorithm 3; take regression = 'pairs' with it")

    def kappa(self, kind: str, labels: Sequence[int], loss: str) -> Fraction | None:
        """The clip for a kind of budget, of regressions of attributes with so many labels.

        "auto": so that under a model of attributes that do not matter to each other about one record of 10,000 is
        shortened. A logistic residual is 1 - P with probability P and else P: its square has mean v = P (1 - P) and
        variance v (1 - 4 v). Of p of them v + 3.72 sqrt(v (1 - 4 v) / p) is at most (1 + sqrt(1 + 4 * 3.72^2 / p)) / 8,
        whatever P, and the like of absolute values (pure) at most (1 + sqrt(1 + 3.72^2 / p)) / 4. The largest residual
        of a softmax is 1 - P(own label), and 1 - 1/k where its k labels are alike: as much larger than 1/2. Of few
        attributes .3 would shorten many records, the badly predicted ones, and overstate every parameter.
        """
        if self.clip is None:
            return None
        if self.clip != "auto":
            return Fraction(str(float(self.clip)))
        wrong = [1 - 1 / count if loss == "softmax" else 0.5 for count in labels]
        if kind == "pure":
            kappa = (1 + math.sqrt(1 + _RARE**2 / len(labels))) / 4 * 2 * sum(wrong) / len(wrong)
        else:
            least = max(0.3, (1 + math.sqrt(1 + 4 * _RARE**2 / len(labels))) / 8)
            kappa = least * 4 * sum(one**2 for one in wrong) / len(wrong)
        return Fraction(str(round(min(kappa, 1.0), 4)))
