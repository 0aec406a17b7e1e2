"""`mrf-stable`: the graph that many blocks of records agree on, published if one person could not have changed it.

Needs an (epsilon, delta), and is the one method here whose records grow like log p; the constant is large. Source:
Zhang, Kamath, Kulkarni, Wu (2020), section 5 (method "graph"); votes on each edge by itself, and the best probability
of publishing at a given distance, are beyond it (docs/proofs.md, "Votes").
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import attrs
from attrs import frozen

from dpgm_core import (
    Budget,
    BudgetError,
    Clique,
    Fitting,
    Inference,
    OptionError,
    Progress,
    Randomness,
    Selection,
    SelectionPlan,
    Session,
    Structure,
    Terms,
    Workload,
    option,
    positive,
    whole,
)
from dpgm_core.learning import (
    EdgeVotes,
    ThresholdVotes,
    Verdict,
    Voter,
    deviation,
    fit_bytes,
    fit_seconds,
    likely_distance,
    share_of,
)
from dpgm_mrf.common import inside, limits_of, pairs_of
from dpgm_mrf.pair_selection import ChosenPairs

__all__ = ["MrfStable"]

#: A block in how many misses most edges of .4, where nothing else is in the way.
_FEW = 50


def _order(instance: object, attribute: object, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 2:
        raise OptionError(f"order must be a whole number of at least 2, got {value!r}")


@frozen(kw_only=True)
class MrfStable:
    """Votes on the graph, out of a part of the (epsilon, delta); what is left measures the tables of its edges.

    Each person draws one of many blocks; in each block every attribute is regressed on the others, without noise, and
    the block votes. "votes": each edge by itself, published together if no pair is close to half of the blocks.
    "graph": whole graphs, as in the paper, which needs every edge right in the same block. "threshold": no blocks, but
    |sum z_i z_j| > tau N for binary attributes and a public or declared N: for forests, with a fraction of the records.

    With `order` t above 2 binary attributes interact by up to t, as in a parity of three of which no pair correlates: a
    block's regressions are on products of up to t - 1 attributes, and of the graph the candidates of up to t attributes
    are measured of which all pairs are edges, none inside another.

    Serves (epsilon, delta) only. Where the votes are not stable enough the share is spent and nothing is chosen: the
    attributes alone are measured, and a note says so.

    >>> MrfStable().method
    'votes'
    """

    method: Literal["votes", "graph", "threshold"] = option(
        "votes", help="votes on each edge, on whole graphs (the paper's), or a threshold on sums of single records"
    )
    blocks: int | Literal["auto"] = option(
        "auto",
        help="how many blocks vote; auto: 4.5 times the distance that is published with probability .9",
        unit="blocks",
        validator=whole,
    )
    least: float = option(
        0.4, help="the smallest parameter of an edge to be found; half of it counts as an edge", validator=positive
    )
    penalty: float = option(
        0.2, help="of a regression's l1 norm, in units of sqrt(log p / records of the block)", validator=positive
    )
    order: int = option(
        2, help="attributes of the largest interactions; above 2 all attributes are binary", validator=_order
    )
    tau: float | None = option(
        None,
        help="for threshold: which share of N a sum must pass, between the edges' and all others'",
        validator=attrs.validators.optional(inside),
    )
    share: float = option(
        0.5, help="of epsilon and of delta, for the votes; the rest measures the edges", validator=inside
    )
    max_fit_seconds: float = fit_seconds(
        1.0,
        "edges with which a fit's exact inferences are predicted to take longer are left out",
    )
    max_fit_bytes: int = fit_bytes(2**22)

    def __attrs_post_init__(self) -> None:
        if self.method == "threshold" and self.tau is None:
            raise OptionError("method 'threshold' needs tau, a share of N between the sums of edges and all others")
        if self.method != "threshold" and self.tau is not None:
            raise OptionError(f"tau is for method 'threshold' and was given with {self.method!r}; leave it out")
        if self.method == "threshold" and self.order != 2:
            raise OptionError(
                f"method 'threshold' holds pairs against tau and was given order = {self.order}; take 'votes' or "
                "'graph' for larger interactions, or leave order out"
            )

    def votes(self, budget: Budget) -> Budget:
        """See `VotingSelector.votes`."""
        if not isinstance(budget, Budget) or budget.kind != "approx":
            raise BudgetError(
                f"selector 'mrf-stable' needs an (epsilon, delta), as delta is what it spends; got {budget}; take "
                "'mrf-select' for pure and zCDP budgets"
            )
        return share_of(budget, self.share)

    def foretell(self, workload: Workload, votes: Budget, terms: Terms, records: float | None = None) -> Sequence[str]:
        """See `VotingSelector.foretell`."""
        voter = self._voter(workload, votes)
        voter.check(terms)
        needed = likely_distance(votes)
        if isinstance(voter, ThresholdVotes):
            return [
                f"a graph is published with probability .9 if no {needed - 1} persons could carry a sum past tau N; "
                "for forests only: pairs that correlate through others are taken for edges"
            ]
        notes = [
            f"{voter.blocks} blocks vote; a graph that {needed} of them could undo is published with probability .9"
        ]
        if (voter.blocks + 1) // 2 < needed:
            notes.append(f"not even blocks that all agree are published with probability .9; it takes {2 * needed - 1}")
        known = terms.declared_total if records is None else records
        if known is not None and known < _FEW * voter.blocks:
            notes.append(
                f"a block has about {known / voter.blocks:.0f} records, and with fewer than {_FEW} most miss edges; "
                "expect no graph, or take 'mrf-select'"
            )
        return notes

    def plan(self, workload: Workload, budget: Budget, terms: Terms, records: float | None = None) -> SelectionPlan:
        """See `Selector.plan`; budget: what the votes leave."""
        if budget.kind != "zcdp":
            raise BudgetError(f"selector 'mrf-stable' measures with the rho that votes leave, not with {budget}")
        pairs = _pairs(workload)
        count = len(workload.attributes)
        notes = [
            f"the noise shown is for {count} tables; a graph with more edges has more",
            "where the votes are not stable enough, their share is spent and attributes alone are measured",
        ]
        if self.order > 2 and not any(2 < len(one) <= self.order for one in workload.candidates):
            notes.append(
                f"no set of 3 to {self.order} attributes is a candidate of the workload, so pairs alone will be "
                f"measured; give the workload order = {self.order} to learn their interactions"
            )
        return SelectionPlan(
            shares={"the tables of its edges": budget},
            deviation=deviation(budget * Fraction(1, count), pairs.only(0), terms),
            detectable=None,
            candidates=len(pairs.cliques),
            order=self.order,
            choices=(),
            limits={"max_fit_seconds": self.max_fit_seconds, "max_fit_bytes": self.max_fit_bytes},
            notes=notes,
        )

    def select(
        self, session: Session, *, inference: Inference, fitting: Fitting, randomness: Randomness, progress: Progress
    ) -> Selection:
        """See `Selector.select`; all tables are left to the pipeline to measure."""
        votes = session.votes
        if votes is None or votes.is_zero:
            raise BudgetError("selector 'mrf-stable' has records vote, and this session has nothing for votes")
        voter = self._voter(session.workload, votes)
        progress("voting", 0, 1)
        verdict = session.vote(voter, votes)
        progress("voting", 1, 1)
        domain, names = session.domain, session.workload.attributes
        chosen = ChosenPairs(domain, limits_of(domain, names, self.max_fit_seconds, self.max_fit_bytes))
        edges = chosen.add(verdict.edges or ())
        joined = {name for pair in edges for name in pair}
        alone = [(name,) for name in names if name not in joined]
        structure = Structure(domain, [*self._measured(session.workload, edges), *alone])
        row = {"stable": verdict.edges is not None, "edges": len(edges), "epsilon": float(votes.epsilon)}
        notes = _said(verdict, session.terms) + chosen.notes("edges", "raise the limits")
        return Selection(
            structure=structure,
            # So shared, the noise summed over all cells is least.
            measure={clique: size ** (2 / 3) for clique, size in zip(structure.cliques, structure.sizes, strict=True)},
            trace=[{"round": 1, **row}],
            notes=notes,
        )

    def _voter(self, workload: Workload, votes: Budget) -> Voter:
        pairs = _pairs(workload)
        if self.method == "threshold":
            assert self.tau is not None  # held to it when it was made
            return ThresholdVotes(pairs=pairs, tau=self.tau)
        blocks = -(-9 * likely_distance(votes) // 2) if self.blocks == "auto" else self.blocks
        return EdgeVotes(
            pairs=pairs,
            blocks=blocks,
            least=self.least,
            penalty=self.penalty,
            whole=self.method == "graph",
            order=self.order,
        )

    def _measured(self, workload: Workload, edges: Sequence[Clique]) -> list[Clique]:
        """The candidates of 2 to `order` attributes of which all pairs are edges, without those inside another one.

        An exact engine's clusters hold them as soon as they hold the edges.
        """
        pairs = frozenset(edges)
        inside = [
            one
            for one in workload.candidates
            if 2 <= len(one) <= self.order and pairs.issuperset(itertools.combinations(one, 2))
        ]
        nested = set(Structure(workload.domain, inside).nested) if inside else ()
        return [one for one in inside if one not in nested]


def _pairs(workload: Workload) -> Structure:
    return Structure(workload.domain, pairs_of(workload, "mrf-stable"))


def _said(verdict: Verdict, terms: Terms) -> list[str]:
    voter = verdict.voter
    if verdict.edges is not None:
        return [f"the votes agree on {len(verdict.edges)} of {len(voter.pairs.cliques)} pairs"]
    how = "records held against tau N"
    if isinstance(voter, EdgeVotes):
        each = "" if terms.declared_total is None else f" of about {terms.declared_total / voter.blocks:.0f} records"
        how = f"{voter.blocks} blocks{each}"
    return [
        f"votes for {verdict.cost} by {how} were not stable enough to name a graph; that is spent, and attributes "
        "alone are measured"
    ]
