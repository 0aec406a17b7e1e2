"""Checks of the curator, the one class that sees both sides of the noise; the subject is its class.

No plugin offers a curator. These checks hold core's own (and, in tests, patched copies) to the order of a release.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array
from dpgm_core._util.randomness import Randomness, SeededRandomness, SystemRandomness
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, DataError, Overspent
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.terms import Terms
from dpgm_core.structure.structure import Structure
from dpgm_testing.check import Checklist, require, require_no_quote, require_refusal
from dpgm_testing.curators import SpyLedger, SpyMechanism, SpyRecords, TrappedRecords
from dpgm_testing.oracles import incidence, worst_change
from dpgm_testing.reference import ReferenceLaplace, ReferenceLaplaceNoise
from dpgm_testing.strategies import awkward_structures
from dpgm_testing.subjects import ClassSubject

if TYPE_CHECKING:
    from dpgm_core._util.arrays import Codes

__all__ = ["CHECKS"]

CHECKS = Checklist("curator")

_STRUCTURE = Structure(Domain.from_sizes({"a": 2, "b": 3, "c": 2}), [("a", "b"), ("b", "c"), ("a",), ("c",)])
_TERMS = Terms(neighbours="add-remove")
_RECORDS = 4861
_CANARY = "CANARY7291"


@frozen(kw_only=True)
class _Scene:
    """A curator among spies. log: what happened, in order. true: the exact tables."""

    curator: Any
    ledger: Ledger
    log: list[Any]
    true: Array


@contextmanager
def _scene(
    subject: ClassSubject, structure: Structure = _STRUCTURE, terms: Terms = _TERMS, **more: Any
) -> Iterator[_Scene]:
    log: list[Any] = []
    rng = np.random.default_rng(1)
    codes = np.stack([rng.integers(size, size=_RECORDS) for size in structure.domain.sizes.values()], axis=1)
    source = SpyRecords(codes, rows=97)
    source.log = log
    settings: dict[str, Any] = {"budget": Budget.pure(1), "randomness": SeededRandomness(1)} | more
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.ledger"
        Ledger.create(path, name="x", budget=Budget.pure(1), neighbours=terms.neighbours)
        ledger = SpyLedger(path.resolve(), Ledger.open(path).terms)
        ledger.log = log
        mechanism = settings.pop("mechanism", None) or SpyMechanism(log)
        curator = subject.component(source, structure, mechanism, terms=terms, ledger=ledger, **settings)
        yield _Scene(curator=curator, ledger=ledger, log=log, true=incidence(structure, codes).sum(axis=1))


@CHECKS.add()
def noise_comes_after_the_charge(subject: ClassSubject) -> None:
    """A release reads, commits the charge, and only then draws the noise it adds; when drawing fails, the charge stays.
    Cannot show: what a killed process leaves behind (the ledger's checks do)."""
    with _scene(subject) as scene:
        added = scene.curator.release().tables.values - scene.true
        order = [what for what, _ in scene.log]
        require("charge" in order, "the ledger was not charged")
        require(order.index("read") < order.index("charge"), f"the order was {order}")
        # a trial draw, thrown away, may come first
        early = sum(count for what, count in scene.log[: order.index("charge")] if what == "draw")
        require(bool((added >= 1_000_000 + early).all()), f"noise drawn before the charge was used: {order}")

    class Failing(SpyMechanism):
        def noise(self, sensitivity: Sensitivity, budget: Budget) -> Any:
            @frozen(kw_only=True)
            class Broken(ReferenceLaplaceNoise):
                def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
                    if math.prod(shape) < 3:  # a trial
                        return super().draw(shape, randomness)
                    raise MemoryError

            return Broken(**attrs.asdict(ReferenceLaplace().noise(sensitivity, budget), recurse=False))

    with _scene(subject, _STRUCTURE, mechanism=Failing([])) as scene:
        with suppress(Exception):
            scene.curator.release()
        require(len(scene.ledger.history()) == 1, "drawing noise failed, and the charge is not on the ledger")


@CHECKS.add()
def every_cell_gets_fresh_noise_once(subject: ClassSubject) -> None:
    """Every cell of every table is its count plus one draw of its own; as many draws as cells, however many batches.
    Cannot show: the noise's law (the mechanism's checks do)."""
    for name in ("chain", "nested", "tied", "empty clique"):
        structure = awkward_structures()[name]
        with _scene(subject, structure) as scene:
            noisy = scene.curator.release().tables.values
            added = noisy - scene.true
            bare = int(np.sum(added == 0))
            require(not bare, f"{name}: {bare} of {len(added)} cells are exact counts")
            require(len(np.unique(added)) == len(added), f"{name}: cells share their noise")
            charged = [what for what, _ in scene.log].index("charge")
            drawn = sum(count for what, count in scene.log[charged:] if what == "draw")
            require(drawn == structure.cells, f"{name}: {drawn} draws for {structure.cells} cells")
            every = sum(count for what, count in scene.log if what == "draw")
            legal = bool(((added >= 1_000_000) & (added < 1_000_000 + every)).all())
            require(legal, f"{name}: a cell is not its count plus one draw")


@CHECKS.add()
def sensitivity_is_that_of_the_relation(subject: ClassSubject) -> None:
    """The mechanism is asked for exactly the largest L1, L2 and Linf change that any two neighbours of the declared
    relation make, found by trying all of them, and at least their L0. Cannot show: several rows per person."""
    for neighbours in ("add-remove", "replace-one"):
        for name, structure in awkward_structures().items():
            if neighbours == "replace-one" and max(structure.sizes) == 1:
                continue  # nothing can change
            with _scene(subject, structure, Terms(neighbours=neighbours)) as scene:
                scene.curator.release()
                (asked,) = [what for kind, what in scene.log if kind == "sensitivity"][:1]
            l0, l1, l2_squared, linf = worst_change(structure, neighbours)
            found = (asked.l1, asked.l2_squared, asked.linf)
            require(
                found == (l1, l2_squared, linf) and asked.l0 >= l0,
                f"{neighbours}, {name}: noise for {asked}, but neighbours differ by L0, L1, L2^2, Linf = "
                f"{(l0, l1, l2_squared, linf)}",
            )


@CHECKS.add()
def exact_total_stays_secret(subject: ClassSubject) -> None:
    """With total = "estimated" the total is the estimate from the noisy tables alone, and the exact number of records
    is nowhere in the release. Cannot show: leaks through timing."""
    with _scene(subject) as scene:
        release = scene.curator.release()
        sums, cells = release.tables.sums(), np.array(_STRUCTURE.sizes, dtype=float)
        expected = float((sums / cells).sum() / (1 / cells).sum())  # equal variances: weights 1 / K
        require(
            math.isclose(release.total, max(1.0, expected), rel_tol=1e-9),
            f"the total {release.total} is not the estimate",
        )
        facts = (release.total, release.total_variance, release.provenance, release.unit, str(release.cost))
        require(str(_RECORDS) not in repr(facts), "the exact number of records is part of the release")


@CHECKS.add()
def public_total_is_stamped(subject: ClassSubject) -> None:
    """A published exact total under add-remove is stamped as conditional on public N. Cannot show: that anybody reads
    it."""
    with _scene(subject, terms=Terms(neighbours="add-remove", total="public")) as scene:
        release = scene.curator.release()
        require(release.total == _RECORDS and release.total_policy == "public", "the public total is not published")
        require(
            "CONDITIONAL ON PUBLIC N" in release.guarantee(), "the guarantee does not say that N is taken as public"
        )


@CHECKS.add()
def overspending_is_refused(subject: ClassSubject) -> None:
    """What exceeds the budget raises Overspent with nothing read, charged or drawn; parts add up exactly. Cannot show:
    races between processes (the ledger's checks do)."""
    with _scene(subject) as scene:
        tenth = Budget.pure("1/10")
        for _ in range(10):
            scene.curator.release(budget=tenth)
        require(scene.curator.remaining.is_zero, f"after ten tenths {scene.curator.remaining} remains")
        before = len(scene.log), len(scene.ledger.history())
        for asked in (tenth, None, Budget.pure("1/1000000")):
            release = partial(scene.curator.release, budget=asked)
            require_refusal(f"the budget is spent, and {asked} more", release, Overspent, answered="was released")
        touched = [what for what, _ in scene.log[before[0] :] if what != "sensitivity"]
        require(not touched, f"a refused release did {touched}")
        require(len(scene.ledger.history()) == before[1], "a refused release was charged")
    with _scene(subject) as scene:
        release = partial(scene.curator.release, budget=Budget.pure(2))
        require_refusal("twice the budget", release, Overspent, answered="was released")


@CHECKS.add()
def budgets_per_clique_add_up(subject: ClassSubject) -> None:
    """With a budget for each clique every table is charged on its own; the cost and the ledger show the sum. Cannot
    show: whether the split is clever."""
    parts = {clique: Budget.pure(Fraction(1 + place, 100)) for place, clique in enumerate(_STRUCTURE.cliques)}
    with _scene(subject) as scene:
        release = scene.curator.release(budget=parts)
        require(release.cost == Budget.pure("1/10"), f"four tables at 1, 2, 3 and 4 % cost {release.cost}")
        require(scene.ledger.spent() == Budget.pure("1/10"), f"the ledger shows {scene.ledger.spent()}")
        for clique, budget in parts.items():
            cost = release.noise[release.structure.find(clique)[0]].cost
            require(cost == budget, f"the noise of {clique} costs {cost}, not {budget}")


@CHECKS.add()
def nonsense_is_refused_unread(subject: ClassSubject) -> None:
    """Budgets that are none raise BudgetError before any record is read. Cannot show: every wrong argument."""
    with _scene(subject) as scene:
        for bad in (1, 1.0, True, "1", math.nan, Budget.zero("pure"), {}, {("a", "b"): 1}):
            require_refusal(f"release(budget={bad!r})", partial(scene.curator.release, budget=bad), BudgetError)
        require("read" not in [what for what, _ in scene.log], "records were read for a refused budget")


@CHECKS.add()
def costly_noise_is_refused(subject: ClassSubject) -> None:
    """A mechanism whose noise costs more than was asked, or has no finite variance, is refused with nothing charged.
    Cannot show: a mechanism that lies about its cost (its own checks do)."""

    class Costly(SpyMechanism):
        def noise(self, sensitivity: Sensitivity, budget: Budget) -> Any:
            return super().noise(sensitivity, budget * 2)

    with _scene(subject, mechanism=Costly([])) as scene:
        release = partial(scene.curator.release, budget=Budget.pure("1/4"))
        require_refusal("noise that costs twice what was asked", release, BudgetError, answered="was released")
        require(not scene.ledger.history(), "a refused release was charged")


@CHECKS.add()
def errors_and_reprs_show_nothing(subject: ClassSubject) -> None:
    """A source's exception is dropped whole, message, cause and context, and no repr shows a count. Cannot show: what a
    debugger sees."""

    class Leaky:
        def batches(self, domain: Domain, columns: Sequence[str]) -> Iterator[Codes]:
            raise ValueError(f"cannot parse {_CANARY}")

    curator = subject.component(Leaky(), _STRUCTURE, ReferenceLaplace(), terms=_TERMS, budget=Budget.pure(1))
    error: BaseException | None = None
    try:
        curator.release()
    except DataError as caught:
        error = caught
    except Exception as caught:
        require(False, f"a failing source gives {type(caught).__name__}, not DataError")
    require(error is not None, "a source failed, and a release came out")
    require_no_quote(error, _CANARY)
    with _scene(subject) as scene:
        release = scene.curator.release()
        require(str(_RECORDS) not in repr(scene.curator), "the curator's repr shows the number of records")
        require(not any(str(int(n)) in repr(release.tables) for n in scene.true), "the repr of tables shows a count")


@CHECKS.add()
def seeds_are_stamped(subject: ClassSubject) -> None:
    """What a seed touches is stamped private = false; noise from the operating system is not. Cannot show: the quality
    of the operating system's randomness."""
    for randomness, private in ((SeededRandomness(1), False), (SystemRandomness(), True), (None, True)):
        with _scene(subject, randomness=randomness) as scene:
            release = scene.curator.release()
            require(
                release.private is private, f"with {randomness!r} the release is stamped private = {release.private}"
            )


@CHECKS.add()
def other_relations_are_refused(subject: ClassSubject) -> None:
    """A ledger kept under one relation refuses a curator under another. Cannot show: two ledgers for one data set."""
    with _scene(subject) as scene:
        curator = partial(
            subject.component, TrappedRecords(np.zeros((1, 3), dtype=np.int64)), _STRUCTURE, ReferenceLaplace(),
            terms=Terms(neighbours="replace-one"), budget=Budget.pure(1), ledger=scene.ledger,
        )  # fmt: skip
        require_refusal("a replace-one release", curator, BudgetError, answered="is charged to an add-remove ledger")
