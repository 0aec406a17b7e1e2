"""A session that takes steps of every kind, and what it is about."""

from fractions import Fraction

import numpy as np

from dpgm_core import Budget, Domain, Structure, TableDistance, Workload
from dpgm_core.privacy.descent import NodeGradients, Regressions
from dpgm_core.privacy.session_account import SessionAccount, settle_account
from tests.fixtures import live_curator

DOMAIN = Domain.from_sizes({"a": 3, "b": 2, "c": 4})
WORKLOAD = Workload.all(DOMAIN, order=2)
CODES = np.random.default_rng(0).integers(0, [3, 2, 4], (500, 3))
KINDS = {
    "pure": Budget.pure(4),
    "zcdp": Budget.zcdp(1),
    "approx": Budget.approx(2, "1e-6"),
    "exact": Budget.approx(2, "1e-6"),
}
#: Of "exact": room for the choices of `held`, of each tenth that is left of a holdout; its descents are paid for apart.
ACCOUNT = settle_account(KINDS["exact"], (), lambda rho: ((2, rho * Fraction(19, 200)), (4, rho * Fraction(19, 800))))
assert isinstance(ACCOUNT, SessionAccount)


def flat(domain=DOMAIN, **more):
    """Distances of all pairs from 20 records a cell."""
    pairs = Structure(domain, [("a", "b"), ("a", "c"), ("b", "c")])
    return TableDistance(candidates=pairs, predicted=np.full(pairs.cells, 20.0), **more)


def slopes(domain=DOMAIN):
    """Regressions of labels on labels, at no weights."""
    own = Regressions(candidates=Structure(domain, [("a", "b"), ("b", "c")]), loss="softmax")
    return NodeGradients(regressions=own, weights=own.zeros(), radius="1/2", clip="0.3", residual_grid=16)


def held(path, budget, neighbours="add-remove", merged=True, account=None, mechanism=None):
    """A session with a step of each kind and sort, and its release."""
    curator = live_curator(CODES, Structure(DOMAIN, [("a",)]), neighbours=neighbours, budget=budget, save_to=path)
    with curator.session(workload=WORKLOAD, account=account, mechanism=mechanism) as session:
        session.reserve_holdout(Fraction(1, 20))
        each = session.budget * Fraction(1, 10)
        session.measure(["a", "b", "c"], each)
        domain = session.coarsen({"c": [0, 1, 1, 1]}) if merged else DOMAIN
        session.select(flat(domain), each)
        session.select(flat(domain, groups=((0, 2),)), each)
        session.select(flat(domain, groups=((0, 2), (1, 2))), each, 2)
        if budget.kind != "pure":
            session.score(flat(domain), each)
            session.score(flat(domain, groups=((0, 2), (1, 2))), each, mean=True)
        session.measure({("c", "b"): each, "a": each * 2})
        for _ in range(2):
            session.descend(slopes(domain), each * (Fraction(1, 2) if account is None else Fraction(1, 8)))
        session.measure_holdout(Structure(domain, [("a", "b")]))
    return curator.released[0]
