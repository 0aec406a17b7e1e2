"""What tests of selections share: attributes that go together in pairs, records nobody may read, and a ledger."""

from pathlib import Path

import numpy as np
from attrs import frozen

from dpgm_core import Budget, Domain, Ledger, SelectionPlan, Terms, Workload

DOMAIN = Domain.from_sizes({"a": 2, "b": 2, "c": 2, "d": 2})
WORKLOAD = Workload.all(DOMAIN, 2)
CODES = np.random.default_rng(0).integers(0, 2, (400, 2))[:, [0, 0, 1, 1]]  # a = b and c = d
TERMS = Terms(neighbours="add-remove")
RHO = Budget.zcdp(4)


class Unread:
    """Records that nobody may look at."""

    def batches(self, domain, columns):
        return iter(self._refused, None)

    def _refused(self):
        raise AssertionError("a record was read")


@frozen(kw_only=True)
class Undirected:
    """A selector that is planned and never asked to select."""

    directed: bool = False
    order: object = None

    def plan(self, workload, budget, terms, records=None):
        more = {"directed": self.directed, "order": self.order}
        return SelectionPlan(shares={"all": budget}, deviation=1.0, detectable=None, candidates=1, limits={}, **more)

    def select(self, session, *, inference, fitting, randomness, progress):
        raise AssertionError("it was asked to select, so the budget was charged")


def new_ledger(folder: Path, budget: Budget = RHO) -> Ledger:
    """With nothing spent."""
    return Ledger.create(folder / "x.ledger", name="x", budget=budget, neighbours="add-remove")
