"""The selector of cliques that a user names, and shares of a budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any

from attrs import evolve, frozen
from numpy.random import default_rng

from dpgm_core._util.progress import Progress
from dpgm_core._util.randomness import Randomness
from dpgm_core.components.registry import default_registry
from dpgm_core.curator.contract import Session
from dpgm_core.errors import BudgetError, OptionError, StructureError
from dpgm_core.inference.contract import Inference
from dpgm_core.learning.contract import Learner, check_contrast_learner, check_resources
from dpgm_core.learning.dry_run import DryRun
from dpgm_core.learning.selector import Fitting, Selection, SelectionPlan
from dpgm_core.privacy.bins import bins_choices, bins_cost, plan_bins
from dpgm_core.privacy.budget import Budget, Split
from dpgm_core.privacy.holdout import chosen_pairs, unmeasured_pairs
from dpgm_core.privacy.measurement import check_structure
from dpgm_core.privacy.mechanism import Noise
from dpgm_core.privacy.session_account import SessionAccount, SessionSpending, settle_account
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.steps import session_budget
from dpgm_core.structure.dag import Dag
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.workload import MAX_CELLS, Workload

__all__ = ["NamedCliques", "check_named", "deviation", "left_for_tables", "share_of"]


# --------------------------------------------------------------------------------------------------
# Parts of a budget, and the expected noise of tables measured for one


def share_of(whole: Budget, share: float) -> Budget:
    """Return a part of a budget, by a decimal of 9 digits rounded down; at least the smallest.

    Examples
    --------
    >>> print(share_of(Budget.pure(2), 0.05))
    epsilon = 0.1
    """
    return whole * Fraction(max(1, math.floor(share * 10**9)), 10**9)


def deviation(budget: Budget, structure: Structure, terms: Terms, *, contrasts: bool = False) -> float:
    """Return the standard deviation of the noise in a cell of these tables, measured together for this budget; records.

    Parameters
    ----------
    budget : Budget
        Pure or zCDP.
    contrasts : bool
        Products are measured, and N too where it is estimated: the noise is along the product of a table's codes, and
        each of 2^k cells has 2^-k of its variance, k attributes in each clique.

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
    >>> pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> terms = Terms(neighbours="add-remove", total=100)
    >>> [round(deviation(Budget.zcdp("0.5"), pair, terms, contrasts=how), 3) for how in (False, True)]
    [1.0, 0.5]
    """
    counted: list[Clique] = [()] if contrasts and terms.total_policy == "estimated" else []
    measured = Structure(structure.domain, [*counted, *structure.cliques]) if counted else structure
    moved = terms.with_one_draw().sensitivity(measured, contrasts=contrasts)  # in records
    if budget.kind == "pure":
        variance = 2 * float(moved.l1 / budget.epsilon) ** 2
    else:
        variance = float(moved.l2_squared / (2 * budget.rho))
    return math.sqrt(variance / (structure.sizes[0] if contrasts else 1))


# --------------------------------------------------------------------------------------------------
# Named cliques over private bins: a session finds the bins and measures the cliques with the rest of the budget


@frozen(kw_only=True)
class NamedCliques:
    """Selector that chooses nothing: the owner named the cliques, over a domain whose bins are private.

    structure: over that domain. checked: whether pairs outside of the cliques may be measured for a holdout. It
    is no component, and a guarantee says that the structure was named.

    >>> from dpgm_core.domain.domain import Domain
    >>> named = NamedCliques(structure=Structure(Domain.from_sizes({"a": 2, "b": 3}), [("b", "a")]))
    >>> named.workload.candidates
    (('a',), ('b',), ('a', 'b'))
    """

    structure: Structure
    checked: bool = False

    @property
    def workload(self) -> Workload:
        """Workload whose candidates are the cliques, their subsets, and the pairs of a holdout."""
        structure = self.structure
        pairs = unmeasured_pairs(structure) if self.checked else []
        cliques = {frozenset(clique): clique for clique in (*structure.cliques, *pairs)}
        most = max(MAX_CELLS, *structure.sizes)
        return Workload.of(structure.domain, list(cliques.values()), max_cells=most)

    def plan(self, workload: Workload, budget: Budget, terms: Terms, records: float | None = None) -> SelectionPlan:
        """Plan to spend all on the tables."""
        own, directed = self.structure.over(workload.domain), False
        with suppress(StructureError):
            directed = bool(Dag.of(own))
        return SelectionPlan(
            shares={"the tables of the cliques named": budget},
            deviation=deviation(budget, own, terms),
            detectable=None,
            candidates=len(own.cliques),
            limits={},
            choices=(),
            directed=directed,
        )

    def select(
        self, session: Session, *, inference: Inference, fitting: Fitting, randomness: Randomness, progress: Progress
    ) -> Selection:
        """Return the named cliques, over the bins that were found."""
        structure = self.structure.over(session.domain)
        return Selection(structure=structure, measure=dict.fromkeys(structure.cliques, 1.0))


def check_named(
    structure: Structure,
    budget: Budget,
    split: Split | str | Mapping[str, Any],
    learner: Learner,
    inference: Inference,
    terms: Terms,
    noises: tuple[Noise, ...] = (),
) -> Fraction:
    """Return the share of a holdout; refuse, before anything is charged, what does not go with private bins.

    noises: like those of the tables, where they are not core's own. Raises OptionError, StructureError and BudgetError.
    """
    check_structure(structure)
    columns = ", ".join(map(repr, structure.domain.undetermined[:5]))
    split = Split.of(split)
    if split.tables != "even":
        raise OptionError(
            f"split = {split.tables!r} does not go with private bins, as of {columns}, whose tables get the same noise "
            "all; leave split out, or give these columns public bins"
        )
    if max(structure.multiplicities) > 1:
        raise StructureError(
            f"tied cliques do not go with private bins, as of {columns}, whose sizes differ once they are found; leave "
            "tied out, or give these columns public bins"
        )
    if () in structure.cliques:
        raise StructureError(f"the empty clique does not go with private bins, as of {columns}; leave () out")
    if terms.contributions is not None:
        raise BudgetError(
            f"private bins, as of {columns}, count each row as 1, and contributions weigh rows; leave contributions "
            "out, or give these columns public bins"
        )
    if split.holdout:
        chosen_pairs(structure, default_rng(0))  # refuses where there is no pair to measure
    learner.check(structure, inference)
    check_resources(learner, structure, inference)
    check_contrast_learner(learner, False)
    _, left = split.divide(left_for_tables(structure, budget, terms, exact=not noises)[1])
    # What it asks of records, and of the release that is all that the session leaves it.
    dry_run = DryRun(learner=learner, inference=inference, structure=structure, terms=terms, budget=left, noises=noises)
    requests = {one.first_request() for one in (dry_run, evolve(dry_run, served=structure))}
    if requests & {"part", "rounds", "session", "tables"}:
        name = default_registry().name_of("learner", learner) or type(learner).__name__
        raise OptionError(
            f"learner {name} asks more of the records than one release of tables, which is all that private bins, as "
            f"of {columns}, leave; take another learner, such as 'eb-map', or give these columns public bins"
        )
    return split.holdout


def left_for_tables(structure: Structure, budget: Budget, terms: Terms, *, exact: bool = True) -> tuple[Budget, Budget]:
    """Return the cost of the private bins of a structure's attributes, and the rest of the session for tables.

    exact: whether the noise of its tables may have an exact Gaussian account, of which the rest is what its noise is
    drawn with.
    """
    whole = session_budget(budget)
    bins = plan_bins(structure.domain, NamedCliques(structure=structure).workload.attributes, whole, terms)
    cost = bins_cost(bins, whole)
    if budget.kind in ("approx", "gdp") and exact:
        account = settle_account(budget, bins_choices(bins), lambda _: ())
        if isinstance(account, SessionAccount):
            return cost, SessionSpending.drawn_rho(account.budget - cost, terms.sensitivity(structure))
    return cost, whole - cost
