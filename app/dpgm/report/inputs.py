"""Inputs of the sections: a model, its file and ledger, and values computed from them once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from attrs import frozen

from dpgm.related import answering
from dpgm_core._util.arrays import FloatArray
from dpgm_core.errors import InferenceError, TooLarge
from dpgm_core.models.findings import Findings, measure_findings
from dpgm_core.models.model import Model
from dpgm_core.models.related import RelatedModel
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import TotalPolicy, flaws, grow_budget
from dpgm_core.releases.release import NoisyTables, condition_of
from dpgm_core.releases.session import UNKNOWN
from dpgm_core.releases.totals import counted

__all__ = ["Material", "Promised", "Shares"]


@frozen(kw_only=True, eq=False)
class Shares:
    """p(attribute), entry by entry: (labels,) each. low, high: None without intervals."""

    estimate: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None


@frozen(kw_only=True)
class Promised:
    """What the budget bounds between two data sets.

    budget: the loss; None if nothing is bounded. presence: whether the data sets differ in a unit that is in one
    alone; otherwise they differ in the values of one unit, which has as many rows in both if `by_rows`.

    A published exact number of records reveals whether a unit is there. Under add-remove the exchange of values is
    still bounded. exchange: its loss under add-remove (`grow_budget`); None under replace-one, whose budget bounds
    it, and if nothing is bounded.
    """

    budget: Budget | None
    presence: bool
    by_rows: bool
    exchange: Budget | None = None


class Material:
    """A model with its file, its ledger and values that a report states.

    file: its name. digest: the SHA-256 of the file, if there is one. ledger: the charged ledger, if it is
    shown. level: of all intervals.
    """

    def __init__(self, model: Model, *, file: str, digest: str | None, ledger: Ledger | None, level: float) -> None:
        self.model, self.file, self.digest, self.ledger, self.level = model, file, digest, ledger, level

    @property
    def releases(self) -> tuple[NoisyTables, ...]:
        """All that was paid for."""
        return self.model.releases

    @cached_property
    def answers(self) -> Model | RelatedModel:
        """What answers about columns: the model, or of two related tables what answers about both."""
        return answering(self.model)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that there are answers about: `names`, or those of two related tables."""
        return self.names if self.model.related is None else self.answers.domain.names

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes of which something was measured, in the domain's order."""
        unknown = set(self.model.unmeasured)
        return tuple(name for name in self.model.domain.names if name not in unknown)

    @cached_property
    def flaws(self) -> tuple[str, ...]:
        """Why the guarantee holds only with reservations, or not at all; empty if it holds."""
        if not self.releases:
            return (f"NO GUARANTEE: {UNKNOWN}",)
        return flaws(unsafe=(one.unsafe for one in self.releases), private=bool(self.model.private))

    @property
    def promises(self) -> bool:
        """Whether a budget binds: there are releases, and no seed."""
        return bool(self.releases) and bool(self.model.private)

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """Conditions of the guarantee."""
        return tuple(filter(None, [condition_of(self.releases)]))

    @property
    def promised(self) -> Promised:
        """The bound of the budget; only where there is a budget."""
        cost, terms = self.model.cost, self.releases[0].terms
        assert cost is not None  # there are releases
        by_rows = terms.person is not None and bool(self.conditions)
        if terms.neighbours is Neighbours.REPLACE_ONE:
            return Promised(budget=cost, presence=False, by_rows=by_rows)
        exchange = grow_budget(cost, max(one.exchange_factor(cost.kind) for one in self.releases))
        presence = not self.conditions
        return Promised(budget=cost if presence else exchange, presence=presence, by_rows=by_rows, exchange=exchange)

    @property
    def policy(self) -> TotalPolicy:
        """How the number of records became known; what one release publishes, no other hides."""
        known = {one.terms.total_policy for one in self.releases}
        return "public" if "public" in known else "declared" if "declared" in known else "estimated"

    @property
    def chose(self) -> bool:
        """Whether private choices used the records besides tables: of labels, bins or a structure."""
        return any(one.session is not None or one.discovery is not None for one in self.releases)

    @cached_property
    def surest(self) -> NoisyTables | None:
        """The release with the most precise number of records."""
        return min(self.model.seen, key=lambda one: counted(one)[1], default=None)

    @property
    def counted(self) -> tuple[float, float] | None:
        """The number of records (of persons, with normalised contributions) and its standard error."""
        if self.surest is None:
            return None
        total, variance = counted(self.surest)
        return total, variance**0.5

    @property
    def counted_as(self) -> str:
        """Unit of the count."""
        if self.model.related is not None:
            return "roots"
        return "records" if self.surest is None or self.surest.contributions is None else "persons"

    @cached_property
    def findings(self) -> Findings | None:
        """What the releases tell apart from noise; None where no table tells a column by itself."""
        return measure_findings(self.model)

    @cached_property
    def shares(self) -> Mapping[str, Shares] | None:
        """Shares of each measured attribute; None where exact answers do not fit."""
        try:
            if not self.model.replicates and any(map(self.answers.needs_replicates, self.columns)):
                return {name: Shares(estimate=self.answers.marginal(name)) for name in self.columns}
            found = {name: self.answers.intervals(name, level=self.level) for name in self.columns}
            return {name: Shares(estimate=one.estimate, low=one.low, high=one.high) for name, one in found.items()}
        except (TooLarge, InferenceError):
            return None
