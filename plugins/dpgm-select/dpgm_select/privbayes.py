"""A directed graph on an order of the attributes: parents of each among those before it, by the exponential mechanism.

Source: Zhang, Cormode, Procopiuc, Srivastava, Xiao (2017), PrivBayes, for the order, for at most k parents, and for the
score, the L1 distance of a family's table from what independence of the child and its parents would make of it. The
parents' own distribution is that of a model of what was measured before, so the sensitivity is that of one table.

Where no child has more than `_MOST_CANDIDATES` sets of one or two parents, a child chooses between all of these at
once, one child after the other as in the source; a pair that informs only together is found. Elsewhere, and for a third
parent, parents are added one at a time, all children against one model, and a parent counts for what it adds to those
before. Scores are less by a part of the noise that the family's own table would have, and every child may do with the
parents that it has: a large table of little dependence is not worth its noise.

A network keeps of two parents measured together only what its graph says. So the first becomes a parent of the second,
where the second has room for one more: that costs nothing, and a network over more arcs is never further from a model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

from attrs import frozen

from dpgm_core import (
    Budget,
    Clique,
    Dag,
    DomainError,
    Fit,
    Fitting,
    Inference,
    OptionError,
    Progress,
    Randomness,
    Selection,
    SelectionPlan,
    Session,
    Structure,
    StructureError,
    Terms,
    Workload,
    option,
)
from dpgm_core.learning import Limits, ModelSize, share_of
from dpgm_select.common import (
    Growth,
    Options,
    check_choice,
    check_workload,
    informative_candidates,
    larger_candidates,
    measure_attributes,
    noise_alone,
    predict_tables,
    score_candidates,
)
from dpgm_select.spending import absolute, detectable, epsilon_of

__all__ = ["PrivBayes"]

#: Of the budget, by its kind: to every attribute alone. And to all choices; rounds share these and the rest alike.
_ALONE, _CHOICES = {"pure": 0.4, "zcdp": 0.3}, 0.2
#: Of the noise in a family's table, what its score is less by: learners shrink noise.
_SHRUNKEN = 0.3
#: Of all records: where a dependence has to be larger to be found, there are fewer rounds, each with sharper choices.
_BLUNT = 0.1
#: Of one child: where there are more sets of at most two parents, parents are added one at a time. 16 attributes have
#: 121; a choice between more is blunter, and the model is learned anew for each child.
_MOST_CANDIDATES = 128
#: Of the budget of the tables of a stage whose children come one after the other, to a first look at each.
_LOOK = 0.2
#: A `Dag` has no larger family.
_MOST_CELLS = 10**7


def _names(instance: object, attribute: Any, value: object) -> None:
    if not isinstance(value, tuple) or not all(isinstance(name, str) for name in value):
        raise OptionError(f"{attribute.name} must be a tuple of attribute names, got {value!r}")


def _count(instance: object, attribute: Any, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise OptionError(f"{attribute.name} must be a whole number of at least 0, got {value!r}")


@frozen(kw_only=True)
class PrivBayes(Options):
    """Attributes alone, then parents for each, and a table of each one with its parents.

    Up to two parents are chosen together where there are few candidates, else one at a time, and so are further ones.
    Serves pure and zCDP budgets. The structure is a directed graph, one clique (child, parents...) for each attribute,
    which learners of Bayesian networks need and all others take. Families are candidates of the workload, so its size
    of sets bounds them too; its weights do not enter, as in a product of conditionals each family counts alike.

    >>> PrivBayes(order=("age", "income"), parents=1).parents
    1
    """

    order: tuple[str, ...] = option(
        (),
        help="the attributes, each after those that may be its parents; empty: as the domain has them",
        validator=_names,
    )
    parents: int = option(2, help="at most so many of each attribute", unit="attributes", validator=_count)

    def plan(self, workload: Workload, budget: Budget, terms: Terms, records: float | None = None) -> SelectionPlan:
        """See `Selector.plan`."""
        families = _families(self._ordered(workload), self._sets(workload))
        if not self.parents:
            return self._plan({"every attribute alone": budget}, budget, terms, workload)
        check_workload("privbayes", workload, budget)
        largest, notes = _largest(families), []
        if largest < self.parents:
            notes = [
                f"no attribute can have {self.parents} parents: the workload has no candidate of more than "
                f"{largest + 1} attributes; raise its order or max_cells"
            ]
        notes += self.check_room(workload)
        check_choice("privbayes", _each(budget, families, largest), terms)
        rounds = _rounds(budget, families, terms, records)
        notes += _fewer(rounds, largest)
        alone, choices = share_of(budget, _ALONE[budget.kind]), share_of(budget, _CHOICES)
        shares = {
            "every attribute alone": alone,
            f"choosing parents of {len(families)} attributes": choices,
            "the tables of attributes with their parents": budget - alone - choices,
        }
        return self._plan(
            shares,
            alone,
            terms,
            workload,
            detectable=_detectable(budget, families, terms, rounds),
            candidates=sum(map(len, families.values())),
            choices=((_count_choices(families, rounds), _each(budget, families, rounds)),),
            notes=notes,
        )

    def _plan(
        self,
        shares: Mapping[str, Budget],
        alone: Budget,
        terms: Terms,
        workload: Workload,
        *,
        detectable: float | None = None,
        candidates: int = 0,
        choices: tuple[tuple[int, Budget], ...] = (),
        notes: Sequence[str] = (),
    ) -> SelectionPlan:
        return SelectionPlan(
            shares=shares,
            deviation=noise_alone(alone, terms, workload),
            detectable=detectable,
            candidates=candidates,
            limits=self.limits_by_name(),
            choices=choices,
            notes=notes,
            directed=True,
            order=self.parents + 1,
        )

    def select(
        self, session: Session, *, inference: Inference, fitting: Fitting, randomness: Randomness, progress: Progress
    ) -> Selection:
        """See `Selector.select`; the last tables are left to the pipeline to measure."""
        workload, whole = session.workload, session.budget
        order = self._ordered(workload)
        planned = self._sets(workload)
        share = _ALONE[whole.kind] if planned else 1.0
        growth, notes = measure_attributes(session, share_of(whole, share), self.merge and bool(planned))
        families = _families(order, informative_candidates(session, self.parents + 1) if planned else [])
        rounds = _rounds(whole, families, session.terms, session.pooled().total)
        notes += _fewer(rounds, _largest(families))
        chosen: dict[str, Clique] = {name: (name,) for name in order}
        graph = partial(_graph, growth, order, families, self.limits())
        trace: list[dict[str, Any]] = []
        fit: Fit | None = None
        left_out = set[Clique]()
        stages = _stages(families, rounds)
        count = sum(len(children) for _, batches in stages for children in batches)
        progress("selecting parents", 0, count)
        for number, (parents, batches) in enumerate(stages, 1):
            tables = share_of(whole, (1 - share - _CHOICES) / len(stages))
            a_cell = _SHRUNKEN * absolute(share_of(tables, 1 / len(families)), session.terms, workload)
            # Of the last stage the rest is left, to be divided by the sizes of all families.
            part = share_of(tables, (_LOOK if number == len(stages) else 1.0) / len(batches))
            for at, children in enumerate(batches):
                fit = fitting(session.pooled(), graph(chosen), fit)
                total = session.pooled().total
                each = _each(whole, families, rounds)
                if session.choices_left and not each <= session.choices_left[-1]:
                    each = session.choices_left[-1]  # fewer are made than were planned, of the sharpness that was
                for child in children:
                    limits = self.limits((len(trace) + 1) / count, least=growth.size)
                    more = [family for family in families[child] if _grows(chosen[child], family, parents)]
                    room = [
                        family for family in more if _fits(growth.size, session.domain.shape(family), family, limits)
                    ]
                    left_out.update(set(more).difference(room))
                    candidates = [chosen[child], *room]
                    if len(candidates) > 1:
                        scores = score_candidates(
                            session, candidates, predict_tables(fit, candidates), total, a_cell, weighted=False
                        )
                        chosen[child] = session.select(scores, each).cliques[0]
                        growth.add(chosen[child])
                    trace.append(
                        {
                            "round": number,
                            "chosen": _family(child, chosen[child]),
                            "epsilon": epsilon_of(each),
                            "cells": growth.size.cells(),
                        }
                    )
                    progress("selecting parents", len(trace), count)
                if (number, at + 1) != (len(stages), len(batches)):
                    measured = {child: chosen[child] for child in children} if len(batches) > 1 else chosen
                    weights = _weights(session, measured)
                    session.measure({clique: share_of(part, weight) for clique, weight in weights.items()})
        if left_out:
            notes.append(
                f"{len(left_out):,} of {sum(map(len, families.values())):,} sets of parents were not there to choose: "
                "with them the model would have grown beyond max_fit_seconds or max_fit_bytes"
            )
        return Selection(
            structure=graph(chosen),
            measure=_weights(session, chosen) if planned else {},
            trace=trace,
            notes=notes,
        )

    def _sets(self, workload: Workload) -> list[Clique]:
        """The candidates that may be a child and its parents."""
        return larger_candidates(workload, self.parents + 1) if self.parents else []

    def _ordered(self, workload: Workload) -> tuple[str, ...]:
        """The attributes of the workload, parents first; StructureError for an order that is not of them."""
        if not self.order:
            return workload.attributes
        for name in self.order:
            try:
                workload.domain[name]
            except DomainError as error:
                raise StructureError(f"the order of selector 'privbayes': {error}") from None
            if self.order.count(name) > 1:
                raise StructureError(f"the order of selector 'privbayes' names {name!r} twice; name it once")
        missing = [name for name in workload.attributes if name not in self.order]
        if missing:
            raise StructureError(
                f"the order of selector 'privbayes' leaves out {', '.join(map(repr, missing))}; name every attribute "
                "of the workload once, or leave the order out to have the domain's"
            )
        return tuple(name for name in self.order if name in workload.attributes)


def _families(order: Sequence[str], cliques: Sequence[Clique]) -> dict[str, list[Clique]]:
    """Child -> the cliques that may be it and its parents; for each that may have any, in order."""
    place = {name: number for number, name in enumerate(order)}
    families: dict[str, list[Clique]] = {name: [] for name in order}
    for clique in cliques:
        families[max(clique, key=place.__getitem__)].append(clique)
    return {child: cliques for child, cliques in families.items() if cliques}


def _count_choices(families: Mapping[str, Sequence[Clique]], rounds: int) -> int:
    """Return how many choices there are at most: the second in the order has one parent to choose, and so on."""
    stages = [parents for parents, _ in _stages(families, rounds)]
    return sum(1 + sum(parents < max(map(len, cliques)) for parents in stages[1:]) for cliques in families.values())


def _stages(families: Mapping[str, Sequence[Clique]], rounds: int) -> list[tuple[int, list[list[str]]]]:
    """Return (at most so many parents, children in batches) for each stage; a model is learned before every batch."""
    together = [sum(len(family) <= 3 for family in cliques) for cliques in families.values()]
    pairs = rounds > 1 and max(together) <= _MOST_CANDIDATES
    first = [(2, [[child] for child in families])] if pairs else []
    return first + [(parents, [list(families)]) for parents in range(3 if pairs else 1, rounds + 1)]


def _largest(families: Mapping[str, Sequence[Clique]]) -> int:
    """Parents in the largest family."""
    return max((len(clique) - 1 for cliques in families.values() for clique in cliques), default=0)


def _each(budget: Budget, families: Mapping[str, Sequence[Clique]], rounds: int) -> Budget:
    """Return the budget of one choice."""
    return share_of(budget, _CHOICES / (len(_stages(families, rounds)) * len(families)))


def _detectable(budget: Budget, families: Mapping[str, Sequence[Clique]], terms: Terms, rounds: int) -> float | None:
    """Records by which a family must be ahead of all others in a child's first choice; see `spending.detectable`."""
    parents = _stages(families, rounds)[0][0]
    most = max(sum(len(family) <= parents + 1 for family in cliques) for cliques in families.values())
    return detectable(_each(budget, families, rounds), most, terms)


def _rounds(budget: Budget, families: Mapping[str, Sequence[Clique]], terms: Terms, records: float | None) -> int:
    """Return how many parents each may have: as the largest family, or fewer where choices would be too blunt for N.

    records: N, noisy or guessed; None: not known.
    """
    for rounds in range(_largest(families), 1, -1):
        ahead = _detectable(budget, families, terms, rounds)
        if records is None or ahead is None or ahead <= _BLUNT * records:
            return rounds
    return min(1, _largest(families))


def _fewer(rounds: int, largest: int) -> list[str]:
    """Return a note where they are fewer than the largest family."""
    if rounds == largest:
        return []
    return [
        f"at most {rounds} parent(s) each instead of {largest}: in more choices the budget would not tell a dependence "
        f"below {_BLUNT:.0%} of the records from none"
    ]


def _graph(
    growth: Growth,
    order: Sequence[str],
    families: Mapping[str, Sequence[Clique]],
    limits: Limits,
    chosen: Mapping[str, Clique],
) -> Structure:
    """One clique for each attribute of the domain, itself first; those that the workload leaves out are alone.

    Parents of one child are joined, the last child's first, where that makes one of the families and fits the limits.
    """
    domain, joined = growth.session.domain, dict(chosen)
    size = ModelSize(domain, growth.cliques)
    for child in reversed(order):
        for earlier, later in combinations([name for name in order if name in joined[child] and name != child], 2):
            wider = {*joined[later], earlier}
            family = next((one for one in families.get(later, ()) if set(one) == wider), None)
            if family is not None and _fits(size, domain.shape(family), family, limits):
                joined[later] = family
                size.add(family)
    parents = {child: [name for name in family if name != child] for child, family in joined.items()}
    return Dag(domain, parents).structure()


def _grows(family: Clique, other: Clique, parents: int) -> bool:
    """Whether the other one has all parents of the family and more, up to so many."""
    return len(other) <= parents + 1 and set(other) > set(family)


def _fits(size: ModelSize, shape: Sequence[int], family: Clique, limits: Limits) -> bool:
    return math.prod(shape) <= _MOST_CELLS and size.fits(family, limits)


def _weights(session: Session, chosen: Mapping[str, Clique]) -> dict[Clique, float]:
    """Parts of a budget for the tables of all families, which sum to 1: the noise summed over all cells is least.

    Attributes with one code left have no table, unless there is nothing else.
    """
    power = 1 / 2 if session.budget.kind == "pure" else 2 / 3
    cells = {clique: math.prod(session.domain.shape(clique)) for clique in chosen.values()}
    weights = {clique: count**power for clique, count in cells.items() if count > 1 or max(cells.values()) == 1}
    whole = sum(weights.values())
    return {clique: part / whole for clique, part in weights.items()}


def _family(child: str, family: Clique) -> str:
    """Return a family as traces have it."""
    return " | ".join(filter(None, (child, ", ".join(name for name in family if name != child))))
