"""Sessions over 500 records of four attributes, and what watches in which order things happen."""

from fractions import Fraction

import numpy as np

from dpgm_core import Budget, Domain, Ledger, SeededRandomness, Structure, TableDistance, Workload
from dpgm_core.privacy.descent import NodeGradients, Regressions
from tests.fixtures import Batches, live_curator

DOMAIN = Domain.from_sizes({"a": 3, "b": 2, "c": 4, "d": 2})
MERGED = DOMAIN.coarsened({"c": [0, 1, 1, 1]})
WORKLOAD = Workload.of(DOMAIN, [("a", "b", "c"), ("c", "d")], never=[("a", "c")])
CODES = np.random.default_rng(0).integers(0, [3, 2, 4, 2], (500, 4))
PAIRS = Structure(DOMAIN, [("a", "b"), ("b", "c"), ("c", "d")])
KINDS = {"pure": Budget.pure(2), "zcdp": Budget.zcdp("1/2"), "approx": Budget.approx(1, "1e-6")}


def flat(candidates=PAIRS, **more):
    """Distances from the uniform table of 500 records."""
    sizes = np.repeat([500 / size for size in candidates.sizes], candidates.sizes)
    return TableDistance(**{"candidates": candidates, "predicted": sizes} | more)


def slopes(candidates=PAIRS, **more):
    """The gradient of regressions of labels on labels, at no weights."""
    own = Regressions(candidates=candidates, loss="softmax")
    return NodeGradients(**{"regressions": own, "weights": own.zeros(), "radius": 2, "clip": "0.3"} | more)


def curator(source=CODES, **more):
    settings = {"randomness": SeededRandomness(5), "budget": KINDS["zcdp"]} | more
    return live_curator(source, Structure(DOMAIN, [("a",), ("b",), ("c",), ("d",)]), **settings)


def ledger(path, budget=None, neighbours="add-remove"):
    return Ledger.create(path, name="x", budget=budget or Budget.zcdp("3/2"), neighbours=neighbours)


class Noted(SeededRandomness):
    """Random words that are noted in a log."""

    def __init__(self, log):
        super().__init__(5)
        self.log = log

    def words(self, count):
        self.log.append("words")
        return super().words(count)


class Hooked(SeededRandomness):
    """Seeded words; the next `armed` times `then` is called, or raised, before any is drawn."""

    def __init__(self, then, armed=10**9):
        super().__init__(1)
        self.then, self.armed = then, armed

    def words(self, count):
        if self.armed:
            self.armed -= 1
            if isinstance(self.then, BaseException):
                raise self.then
            self.then()
        return super().words(count)


class NotedLedger(Ledger):
    """Tells when it is charged, or refuses."""

    log, refuses = [], False

    def charge(self, budget, **more):
        if self.refuses:
            raise OSError("no room")
        self.log.append(f"charge {budget}")
        return super().charge(budget, **more)


def noted_ledger(tmp_path, log, refuses=False):
    book = NotedLedger.open(ledger(tmp_path / "x.ledger").path)
    book.log, book.refuses = log, refuses
    return book


def noted(tmp_path, log, refuses=False, fails=False):
    """A session's curator, its ledger and its words, all in one log; fails: in the middle of the records."""
    error = ValueError("Miss Marple, 1890-09-15") if fails else None
    book = noted_ledger(tmp_path, log, refuses)
    return curator(Batches(CODES, 250, log, error), ledger=book, randomness=Noted(log)), book


def take(session, share=Fraction(1, 20)):
    """One step of each kind that the session can pay."""
    each = session.budget * share
    session.measure(["a", ("c", "b")], each)
    session.measure({("b", "a"): each, "d": each * 2})
    session.select(flat(), each)
    session.select(flat(groups=((0, 1), (1, 2))), each, 2)
    if session.budget.kind == "zcdp":
        session.score(flat(), each)
