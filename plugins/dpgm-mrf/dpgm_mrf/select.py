"""Partners picked by the dependence in pair tables, then those tables measured once.

Every attribute picks partners for itself, so the noise of a choice grows with the root of the number of attributes and
not of pairs; and the size of an effect is measured, not built up in steps. Source: the specification of this project,
private-mrf.md, section 6; picks without replacement after Durfee and Rogers (2019).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import attrs
from attrs import frozen

from dpgm_core import (
    Budget,
    BudgetError,
    Clique,
    Fit,
    Fitting,
    FloatArray,
    Inference,
    OptionError,
    Progress,
    Randomness,
    Selection,
    SelectionPlan,
    Session,
    Structure,
    TableDistance,
    Terms,
    TooLarge,
    Workload,
    option,
    share,
    whole,
)
from dpgm_core.learning import deviation, fit_bytes, fit_seconds, share_of
from dpgm_mrf.common import inside, limits_of
from dpgm_mrf.pair_selection import (
    ChosenPairs,
    Partners,
    check_choice,
    detectable_distance,
    partners_of,
    predict_independent,
    rank_pairs,
    score_pairs,
)

__all__ = ["MrfSelect"]

#: Picks where none are asked for.
_PICKS = 4


@frozen(kw_only=True)
class _Shares:
    """How a budget is divided. alone: None where nothing is measured first. picks: of each round, how many an attribute
    picks. choices: of each round's choices, together; None where nobody has to choose."""

    alone: Budget | None
    picks: tuple[int, ...]
    choices: tuple[Budget | None, ...]
    rest: Budget


@frozen(kw_only=True)
class MrfSelect:
    """Every attribute picks partners, and the pairs are measured.

    Serves pure and zCDP budgets. The pairs are those of the workload, whatever else it names; its weights do not enter.
    In one round dependence is marginal: an edge is missed that too many indirect pairs outrank at both of its ends, so
    picks should be above the largest number of neighbours by two, or rounds more than one.

    >>> MrfSelect(picks=2).picks
    2
    """

    picks: int | None = option(
        None,
        help="partners that each attribute picks, in all: the most neighbours one may have, and two more; none: 4, or "
        "all where there are fewer",
        validator=attrs.validators.optional(whole),
    )
    rounds: int = option(
        1,
        help="picks are divided over so many rounds; from the second on an attribute picks what a model of the pairs "
        "so far gets most wrong",
        validator=whole,
    )
    share_one_way: float = option(
        0.1,
        help="of the budget, for every attribute alone; 0 where the number of records is public, and so is that the "
        "labels of an attribute are about equally frequent",
        validator=share,
    )
    share: float = option(
        0.5, help="of what is left, for picking; the rest measures the pairs picked", validator=inside
    )
    measure: Literal["auto", "tables", "contrasts"] = option(
        "auto",
        help="contrasts: of binary attributes one sum of products a pair, half the noise of four cells, which learner "
        "'eb-map' takes; tables: cells; auto: contrasts where all attributes are binary",
    )
    max_fit_seconds: float = fit_seconds(
        1.0,
        "with an exact engine, pairs picked late with which a fit's inferences are predicted to take longer are "
        "left out",
    )
    max_fit_bytes: int = fit_bytes(2**22)

    def plan(self, workload: Workload, budget: Budget, terms: Terms, records: float | None = None) -> SelectionPlan:
        """See `Selector.plan`."""
        if budget.kind == "approx":
            raise BudgetError(f"a session spends epsilon or rho, not {budget}; plan with its zcdp_within()")
        partners = partners_of(workload)
        shares = self._shares(partners, budget, terms)
        sharp, planned = [], list[tuple[int, Budget]]()
        for picks, choices in zip(shares.picks, shares.choices, strict=True):
            if choices is not None:
                count = picks * partners.choosing(picks)
                check_choice(choices, count, terms)
                planned.append((count, choices * Fraction(1, count)))
                sharp.append(detectable_distance(choices, count, len(partners.names) - 1, terms))
        notes = []
        if shares.alone is None:
            notes.append(
                "share_one_way = 0: the labels of each attribute are taken to be equally frequent, as public knowledge"
            )
        spent = [one for one in shares.choices if one is not None]
        by_name = {
            "every attribute alone": shares.alone,
            "picking partners": Budget.sum(spent) if spent else None,
            "the pairs picked": shares.rest,
        }
        if self.measure == "auto" and self._by_products(partners):
            notes.append(
                "all attributes are binary, so one sum of products is measured of each pair in place of four cells; "
                "for a learner other than 'eb-map' state measure = 'tables'"
            )
        return SelectionPlan(
            shares={what: one for what, one in by_name.items() if one is not None},
            deviation=self._deviation(shares, partners, terms),
            detectable=max(sharp, default=None),
            candidates=len(partners.pairs),
            order=2,
            limits={"max_fit_seconds": self.max_fit_seconds, "max_fit_bytes": self.max_fit_bytes},
            notes=notes,
            # in later rounds fewer may have to choose, each then more sharply
            choices=tuple(planned) if self.rounds == 1 else None,
            contrasts=self._by_products(partners),
        )

    def select(
        self, session: Session, *, inference: Inference, fitting: Fitting, randomness: Randomness, progress: Progress
    ) -> Selection:
        """See `Selector.select`; the pairs of the last round are left to the pipeline to measure."""
        partners = partners_of(session.workload)
        shares = self._shares(partners, session.budget, session.terms)
        contrasts = self._by_products(partners)
        alone = [(name,) for name in partners.names]
        measured = None if shares.alone is None else session.measure(alone, shares.alone, contrasts=contrasts)
        # Without one, sums of products are predicted to be 0, whatever N is.
        total = session.terms.declared_total or 0.0 if measured is None else measured.total
        probabilities: Mapping[Clique, FloatArray] = predict_independent(partners, measured)
        in_model: list[Clique] = [] if measured is None else list(alone)  # what was measured before the last round
        # An engine that is not exact takes any graph; the models between rounds are asked exactly.
        limited = self.rounds > 1 or _is_exact(inference, partners)
        limits = limits_of(partners.domain, partners.names, self.max_fit_seconds, self.max_fit_bytes)
        picked = ChosenPairs(partners.domain, limits if limited else None)
        fit: Fit | None = None
        trace: list[dict[str, Any]] = []
        last: list[Clique] = []
        for number, (picks, budget) in enumerate(zip(shares.picks, shares.choices, strict=True), 1):
            progress("selecting", number - 1, len(shares.picks))
            scored = partial(score_pairs, partners, probabilities=probabilities, total=total)
            ranks = rank_pairs(_picks(session, partners, picked.pairs, picks, budget, scored))
            last = picked.add(ranks, number / len(shares.picks))
            trace.append({"round": number, "chosen": len(last), "left out": picked.left_out})
            if number < len(shares.picks) and last:
                session.measure(last, shares.rest * Fraction(picks, sum(shares.picks)), contrasts=contrasts)
                in_model += last
                fit = fitting(session.pooled(), Structure(partners.domain, in_model), fit)
                probabilities, total = (
                    fit.model.using("junction-tree").marginals_of(partners.pairs),
                    session.pooled().total,
                )
            progress("selecting", number, len(shares.picks))
        bare = [(name,) for name in partners.names if not any(name in clique for clique in (*in_model, *picked.pairs))]
        return Selection(
            structure=Structure(partners.domain, list(dict.fromkeys([*in_model, *picked.pairs, *bare]))),
            measure=dict.fromkeys([*(last or picked.pairs), *bare] or alone, 1.0),
            contrasts=contrasts,
            trace=trace,
            notes=picked.notes("pairs picked", "pick fewer partners, or raise the limits"),
        )

    def _deviation(self, shares: _Shares, partners: Partners, terms: Terms) -> float:
        """Return the standard deviation of the noise in a cell of the tables measured first."""
        most = min(len(partners.pairs), len(partners.names) * sum(shares.picks))
        first = list(partners.pairs[:most]) if shares.alone is None else [(name,) for name in partners.names]
        measured = Structure(partners.domain, first)
        return deviation(shares.alone or shares.rest, measured, terms, contrasts=self._by_products(partners))

    def _by_products(self, partners: Partners) -> bool:
        return self.measure == "contrasts" or (self.measure == "auto" and not partners.other)

    def _shares(self, partners: Partners, budget: Budget, terms: Terms) -> _Shares:
        """Raises OptionError for options that do not go with the workload or the terms."""
        most = len(partners.names) - 1
        if self.picks is not None and self.picks > most:
            raise OptionError(
                f"picks = {self.picks} asks each of {most + 1} attributes for more partners than there are; give at "
                f"most {most}"
            )
        picks = min(_PICKS, most) if self.picks is None else self.picks
        if self.rounds > picks:
            raise OptionError(
                f"rounds = {self.rounds} is more than picks = {picks}, and in each round an attribute picks at least "
                "once; ask for more picks or fewer rounds"
            )
        if self.measure == "contrasts" and partners.other:
            raise OptionError(
                f"measure = 'contrasts' is for binary attributes, and {partners.other[0]!r} has "
                f"{partners.domain[partners.other[0]].size} labels; take measure = 'tables'"
            )
        if not self.share_one_way and partners.other and terms.declared_total is None:
            raise OptionError(
                "share_one_way = 0 predicts tables by a declared number of records, but the terms say "
                f"{terms.total_policy!r}; state it as total, or give a share"
            )
        each = tuple(picks // self.rounds + (number < picks % self.rounds) for number in range(self.rounds))
        alone = share_of(budget, self.share_one_way) if self.share_one_way else None
        left = budget if alone is None else budget - alone
        picking = share_of(left, self.share)
        choices = tuple(picking * Fraction(one, picks) if partners.choosing(one) else None for one in each)
        spent = [one for one in choices if one is not None]
        return _Shares(alone=alone, picks=each, choices=choices, rest=left - Budget.sum(spent) if spent else left)


def _is_exact(inference: Inference, partners: Partners) -> bool:
    """Whether an engine is exact, and so limited, on a graph with a circle; all are on trees."""
    few = sorted(partners.names, key=lambda name: partners.domain[name].size)[:3]
    try:
        return inference.compile(Structure(partners.domain, list(itertools.combinations(few, 2)))).exact
    except TooLarge:
        return True


def _picks(
    session: Session,
    partners: Partners,
    taken: Sequence[Clique],
    picks: int,
    budget: Budget | None,
    scored: Callable[[Mapping[str, Sequence[int]]], TableDistance],
) -> dict[str, list[Clique]]:
    """Return what each attribute picks in one round, in its order; with no more partners than picks it takes all."""
    groups = partners.groups(taken)
    picked = {name: [partners.pairs[number] for number in group] for name, group in groups.items()}
    choosing = {name: group for name, group in groups.items() if len(group) > picks}
    if choosing and budget is not None:
        scores = scored(choosing)
        choice = session.select(scores, budget, picks)
        for name, numbers in zip(choosing, choice.chosen, strict=True):
            picked[name] = [scores.candidates.cliques[number] for number in numbers]
    return picked
